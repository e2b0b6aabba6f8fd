//! A dimension in the coordinator: its regionizer, its two graphs, and the states of its columns.

mod columns;
mod history;
pub mod holding;
mod inboxes;
pub mod plots;
pub mod progress;
pub mod slabs;

pub use crate::coordinator::messages::dimensions::{DimensionError, DimensionSpec};

use crate::block::BlockRegistry;
use crate::coordinator::clock::DimensionTime;
use crate::coordinator::columns::Columns;
use crate::coordinator::demand::{Demand, DimensionOrders};
use crate::coordinator::mail::DimensionMail;
use crate::coordinator::messages::settings::Settings;
use crate::coordinator::plots::Plots;
use crate::coordinator::regions::{RegionSlot, Regions};
use crate::generation::DistanceGraph;
use crate::region::{RegionId, RegionState, Regionizer};
use crate::simulation::{ColumnSource, DepartedColumns, LightRules, TimeOfDay};
use crate::space::{ColumnPos, DimensionId};
use crate::storage::{self, SaveBatch, StoreError, WorldStore};
use crate::work::Stop;
use bevy::prelude::*;
use history::History;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

/// The result of opening a dimension.
pub enum Opening {
    /// The open dimension, and its stored viewers.
    Open(Box<OpenDimension>, Vec<storage::EntityRecord>),
    /// The stored graph is lost and must be rebuilt first.
    Lost(DimensionId),
}

/// The maximum height in blocks of a dimension that is not sparse. In a sparse one, only the parts of a column that are near
/// to viewers above and below are generated and loaded.
pub(crate) const MAX_WHOLE_HEIGHT: i64 = 1 << 14;

/// A dimension that opens once those of the same name are closed and the store has a commit.
pub struct Unopened {
    pub spec: DimensionSpec,
    /// The number of that commit.
    pub until: u64,
    /// `true` if it is not opened after all, and everything stored under its name is erased.
    pub is_removed: bool,
}

#[derive(Resource, Default)]
pub struct DimensionBook {
    pub open: BTreeMap<DimensionId, OpenDimension>,
    /// Dimensions that wait to be opened.
    pub unopened: Vec<Unopened>,
    /// The names of closed dimensions that are being erased from the store.
    pub removing: BTreeSet<String>,
    /// Dimensions that were closed to be erased. Their ids are never used again.
    pub removed: BTreeSet<DimensionId>,
    /// The names of dimensions whose stored graphs are being rebuilt, each with the signal that stops it.
    pub rebuilding: BTreeMap<String, Stop>,
    /// The names of dimensions whose stored graphs were just rebuilt, so that a failure does not repeat it at once.
    pub rebuilt: BTreeSet<String>,
}

impl DimensionBook {
    /// The slot of a region that is not away.
    pub fn idle(&self, dimension: DimensionId, region: RegionId) -> Option<&RegionSlot> {
        Some(self.open.get(&dimension)?.regions.regionizer.data(region)?)
    }

    /// The number of columns that the jobs of all dimensions have in flight.
    pub fn in_flight_for_jobs(&self) -> usize {
        self.open.values().map(|dimension| dimension.orders.for_jobs.len()).sum()
    }

    /// All regions, in order.
    pub fn regions(&self) -> Vec<(DimensionId, RegionId)> {
        let of = |(id, open): (&DimensionId, &OpenDimension)| {
            let id = *id;
            open.regions.regionizer.regions().into_iter().map(move |region| (id, region))
        };
        self.open.iter().flat_map(of).collect()
    }

    /// Adds the clocks and the times of day of all dimensions to a save.
    pub fn save_clocks(&self, batch: &mut SaveBatch) {
        self.open.values().for_each(|dimension| dimension.save_clock(batch));
    }

    /// Adds the first heights of dimensions that are not stored yet to a save.
    pub fn save_heights(&self, batch: &mut SaveBatch) {
        let unsaved = self.open.values().filter(|open| open.land.history.has_unsaved_heights);
        batch.heights.extend(unsaved.map(|open| (open.id, open.ground.first_heights.clone())));
    }

    /// Notes the first heights that a commit has stored.
    pub fn note_saved_heights(&mut self, batch: &SaveBatch) {
        for id in batch.heights.keys() {
            if let Some(dimension) = self.open.get_mut(id) {
                dimension.land.history.has_unsaved_heights = false;
            }
        }
    }

    /// Returns `true` if a dimension of this name must wait for work in the store, or is to be erased first.
    pub fn is_busy(&self, name: &str) -> bool {
        let is_to_go = |waiting: &Unopened| waiting.is_removed && waiting.spec.name == name;
        self.removing.contains(name) || self.rebuilding.contains_key(name) || self.unopened.iter().any(is_to_go)
    }
}

pub struct OpenDimension {
    pub id: DimensionId,
    pub spec: DimensionSpec,
    /// Which columns are loaded, and which are stored.
    pub land: Land,
    /// The state of each column.
    pub columns: Columns,
    /// The demand for its ground.
    pub demand: Demand,
    /// The columns on order, and those to be ordered.
    pub orders: DimensionOrders,
    /// Its regions, and what waits for them.
    pub regions: Regions,
    /// Letters and entities that wait for columns.
    pub mail: DimensionMail,
    pub time: DimensionTime,
    /// The plots of this server, if several servers share the world.
    pub plots: Option<Plots>,
    /// The data that its region worlds share.
    pub ground: Arc<ColumnSource>,
    pub store: Arc<WorldStore>,
    /// Set while it is being saved and closed.
    pub closing: Option<Closing>,
}

/// The ground of a dimension.
#[derive(Default)]
pub struct Land {
    /// Columns that are loaded or in flight. Held columns that must be generated first are claimed.
    pub resident: DistanceGraph,
    /// Columns in the store, including the pending save. Columns that are being generated are claimed; failed columns too, until
    /// they are tried again.
    pub stored: DistanceGraph,
    /// Which stored columns are new, and for which heights they were generated, including the pending save.
    pub history: History,
    /// Columns whose look from afar has changed.
    pub edited: Vec<ColumnPos>,
}

#[derive(Clone, Copy, Debug)]
pub struct Closing {
    /// `true` if its stored data is to be erased afterwards.
    pub remove: bool,
    /// The commit that stores all of it, once everything has been handed out.
    pub until: Option<u64>,
}

impl OpenDimension {
    /// Adds the clock and the time of day to a save.
    pub fn save_clock(&self, batch: &mut SaveBatch) {
        batch.clocks.insert(self.id, self.time.now);
        batch.days.extend(self.time.days().map(|days| (self.id, days)));
    }

    /// Opens a dimension from the store.
    pub fn open(
        spec: DimensionSpec,
        store: &Arc<WorldStore>,
        config: &Settings,
        blocks: &Arc<BlockRegistry>,
    ) -> Result<Opening, DimensionError> {
        let name = spec.name.clone();
        let Range { start: low, end: high } = spec.heights;
        if low >= high {
            return Err(DimensionError::Heights { name, low, high });
        }
        let regionizer = Regionizer::new(config.regionizer.clone())?;
        let id = stored_id(&spec, store)?;
        let read = |source| DimensionError::Read { name: name.clone(), source };
        if high.abs_diff(low) > MAX_WHOLE_HEIGHT as u64 {
            store.make_sparse(id).map_err(read)?;
        }
        let is_sparse = store.is_sparse(id).map_err(read)?;
        // A server that shares the world reads these for each plot that it acquires.
        let plots = store.incarnation().map(|_| Plots::default());
        let (stored, viewers, stored_jobs) = if plots.is_some() {
            (DistanceGraph::new(), Vec::new(), Vec::new())
        } else {
            let Some(stored) = stored_graph(store, id).map_err(read)? else { return Ok(Opening::Lost(id)) };
            (stored, store.viewers(id).map_err(read)?, store.pregenerations(id).map_err(read)?)
        };
        let mut history = History::stored(store, id).map_err(read)?;
        let first_heights = match is_sparse {
            true => spec.heights.clone(),
            false => history.first_heights(store, id, &spec.heights).map_err(read)?,
        };
        if first_heights != spec.heights {
            info!(
                "columns of {name:?} were generated for {first_heights:?} at first; the rest is generated when they load"
            );
        }
        let clock = undamaged(store.clock(id)).map_err(read)?.unwrap_or_default();
        let stored_days = undamaged(store.days(id)).map_err(read)?.filter(|days| days.is_finite());
        let (heights, generator) = (spec.heights.clone(), spec.generator.clone());
        let whole = ColumnSource::new(id, heights, generator, blocks.clone(), Arc::downgrade(store));
        let light = LightRules::new(blocks, config.light);
        let (regenerated, open_plots) =
            (config.saving.regenerate_damaged.then(default), plots.as_ref().map(|_| default()));
        let whole = ColumnSource { first_heights, floor: spec.floor, ..whole };
        let ground = ColumnSource { is_sparse, light, regenerated, open_plots, ..whole };
        let mut time = DimensionTime::resumed(spec.clock.unwrap_or(config.clock), clock);
        time.set_time_of_day(spec.time_of_day.map(|time| TimeOfDay { days: stored_days.unwrap_or(time.days), ..time }));
        let new = Self::new(spec, regionizer, ground, config, store.clone());
        time.stored_days = stored_days;
        let (land, orders) =
            (Land { stored, history, ..Land::default() }, DimensionOrders { stored_jobs, ..new.orders });
        let dimension = Self { land, orders, time, plots, ..new };
        Ok(Opening::Open(Box::new(dimension), viewers))
    }

    /// A dimension without stored or loaded columns.
    fn new(
        spec: DimensionSpec,
        regionizer: Regionizer<Box<RegionSlot>>,
        ground: ColumnSource,
        config: &Settings,
        store: Arc<WorldStore>,
    ) -> Self {
        let section_shift = config.regionizer.section_shift;
        let owners = config.faults.strict.then(RwLock::default);
        Self {
            id: ground.dimension,
            land: Land::default(),
            columns: Columns::default(),
            demand: Demand::new(config.limits.viewers),
            orders: DimensionOrders::new(spec.generation.unwrap_or(config.generation)),
            regions: Regions::new(regionizer),
            mail: DimensionMail::default(),
            time: DimensionTime::new(spec.clock.unwrap_or(config.clock)),
            plots: None,
            ground: Arc::new(ColumnSource { section_shift, owners, ..ground }),
            store,
            closing: None,
            spec,
        }
    }

    /// Returns `true` if it is being closed: nothing new begins in it.
    pub fn is_closing(&self) -> bool {
        self.closing.is_some()
    }

    /// Returns `true` if some of its regions may not tick for a while.
    pub fn may_be_idle(&self) -> bool {
        self.time.settings.paused || self.time.is_slow(None) || self.regions.has_idle
    }

    /// Takes back the slot of a region after a task, and returns the parts that split off in the regionizer.
    pub fn end_task(&mut self, region: RegionId, slot: Box<RegionSlot>) -> Vec<RegionId> {
        self.regions.regionizer.end_tick(region, slot).unwrap_or_else(|error| {
            // Only begun ticks are ended, so this is a bug of the crate.
            error!("{}, {region}: {error}", self.id);
            Vec::new()
        })
    }

    /// In strict mode, updates the owners of all sections, which regions name in their errors.
    pub fn tell_owners(&self) {
        let Some(owners) = &self.ground.owners else { return };
        let regions = self.regions.regionizer.regions();
        let owned = |region: RegionId| self.regions.regionizer.sections(region).map(move |section| (section, region));
        *owners.write().unwrap_or_else(PoisonError::into_inner) = regions.into_iter().flat_map(owned).collect();
    }

    /// The region, or the one that absorbed it, unless it is dead.
    pub fn live_successor(&self, region: RegionId) -> Option<RegionId> {
        let region = self.regions.successor(region);
        let state = self.regions.regionizer.state(region)?;
        (state != RegionState::Dead).then_some(region)
    }

    /// Columns that regions evicted and that are not stored yet.
    pub fn departed(&self) -> &DepartedColumns {
        &self.ground.departed
    }

    /// The columns in the world of a region, or in its inbox, sorted.
    pub fn columns_of(&self, region: RegionId) -> Vec<ColumnPos> {
        let columns = self.regions.regionizer.columns(region).filter(|column| self.columns.is_in_region(*column));
        let mut columns: Vec<_> = columns.collect();
        columns.sort_unstable();
        columns
    }

    /// Returns `true` if its columns come and go in slabs of 16 chunks instead of as a whole.
    pub fn is_sparse(&self) -> bool {
        self.ground.is_sparse
    }

    pub fn chunk_heights(&self) -> Range<i64> {
        self.ground.chunk_heights.clone()
    }
}

/// The stored clock or time of day; `None` if it is damaged, since nothing else depends on it.
fn undamaged<T>(stored: Result<Option<T>, StoreError>) -> Result<Option<T>, StoreError> {
    match stored {
        Err(error) if error.is_damage() => {
            warn!("{error}; it starts again");
            Ok(None)
        }
        stored => stored,
    }
}

/// The stored graph; `None` if it is lost or damaged.
fn stored_graph(store: &WorldStore, id: DimensionId) -> Result<Option<DistanceGraph>, StoreError> {
    if store.has_lost_tiles(id)? {
        return Ok(None);
    }
    let tiles = match store.stored_tiles(id) {
        Err(StoreError::Corrupt { .. }) => return Ok(None),
        tiles => tiles?,
    };
    let mut graph = DistanceGraph::new();
    let is_whole = tiles.into_iter().all(|(tile, masks)| graph.restore_tile(tile, &masks));
    Ok(is_whole.then_some(graph))
}

/// Opens a dimension in the store.
fn stored_id(spec: &DimensionSpec, store: &WorldStore) -> Result<DimensionId, DimensionError> {
    let (name, wanted, own_seed) = (&spec.name, spec.generator.identity(), spec.generator.own_seed());
    let id = store.open_dimension(name, &wanted).map_err(|error| match (error, store.generator_text(name)) {
        (StoreError::OriginMismatch { name, .. }, Some(stored)) => {
            DimensionError::MadeOtherwise { name, stored, wanted: wanted.told(own_seed) }
        }
        (error, _) => error.into(),
    })?;
    if let Some(seed) = own_seed
        && let Err(error) = store.note_own_seed(id, seed)
    {
        warn!("log messages will lack the seed of dimension {name:?}: {error}");
    }
    Ok(id)
}
