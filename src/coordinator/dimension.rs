//! A dimension in the coordinator: its regionizer, its two graphs, and the states of its columns.

pub(super) mod column_state;
mod columns;
mod history;
mod inboxes;
pub(super) mod opening;
pub(super) mod spec;

pub use spec::{DimensionError, DimensionSpec};

use super::clocks::clock::DimensionTime;
use super::region_slot::RegionSlot;
use super::servers::Plots;
use super::sharing::SharedWorlds;
use super::streaming::failed_columns::ColumnComplaints;
use super::streaming::generation_control::GenerationState;
use super::streaming::progress::Coverage;
use super::streaming::tickets::{Ticket, ViewerState};
use super::streaming::viewer_limits::ViewerCaps;
use super::travel::letter_limits::LetterPlaces;
use super::travel::transit::Transit;
use crate::block::BlockRegistry;
use crate::coordinator::config::Settings;
use crate::generation::{Completion, DistanceGraph};
use crate::region::{RegionId, RegionState, Regionizer};
use crate::simulation::{ColumnError, ColumnSource, DepartedColumns, Inbox, Letter, LightRules, TimeOfDay};
use crate::space::{ColumnPos, DimensionId, TilePos};
use crate::storage::{self, PregenerationEntry, SaveBatch, StoreError, WorldStore};
use crate::work::Stop;
use bevy::platform::cell::SyncCell;
use bevy::prelude::*;
use column_state::Columns;
use history::History;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use uuid::Uuid;

/// The result of opening a dimension.
pub enum Opening {
    /// The open dimension, and its stored viewers.
    Open(Box<Dimension>, Vec<storage::EntityRecord>),
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
pub struct Dimensions {
    pub open: BTreeMap<DimensionId, Dimension>,
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

impl Dimensions {
    /// The slot of a region that is not away: see [`Dimension::idle`].
    pub fn idle(&self, dimension: DimensionId, region: RegionId) -> Option<&RegionSlot> {
        self.open.get(&dimension)?.idle(region)
    }

    /// All regions, in order.
    pub fn regions(&self) -> Vec<(DimensionId, RegionId)> {
        let of = |(id, open): (&DimensionId, &Dimension)| {
            let id = *id;
            open.regionizer.regions().into_iter().map(move |region| (id, region))
        };
        self.open.iter().flat_map(of).collect()
    }

    /// Adds the clocks and the times of day of all dimensions to a save.
    pub fn save_clocks(&self, batch: &mut SaveBatch) {
        self.open.values().for_each(|dimension| dimension.save_clock(batch));
    }

    /// Adds the first heights of dimensions that are not stored yet to a save.
    pub fn save_heights(&self, batch: &mut SaveBatch) {
        let unsaved = self.open.values().filter(|open| open.history.has_unsaved_heights);
        batch.heights.extend(unsaved.map(|open| (open.id, open.ground.first_heights.clone())));
    }

    /// Notes the first heights that a commit has stored.
    pub fn note_saved_heights(&mut self, batch: &SaveBatch) {
        for id in batch.heights.keys() {
            if let Some(dimension) = self.open.get_mut(id) {
                dimension.history.has_unsaved_heights = false;
            }
        }
    }

    /// Returns `true` if a dimension of this name must wait for work in the store, or is to be erased first.
    pub fn is_busy(&self, name: &str) -> bool {
        let is_to_go = |waiting: &Unopened| waiting.is_removed && waiting.spec.name == name;
        self.removing.contains(name) || self.rebuilding.contains_key(name) || self.unopened.iter().any(is_to_go)
    }
}

pub struct Dimension {
    pub id: DimensionId,
    pub spec: DimensionSpec,
    pub regionizer: Regionizer<Box<RegionSlot>>,
    /// The worlds that several regions share.
    pub shared: SharedWorlds,
    /// Columns that are loaded or in flight. Held columns that must be generated first are claimed.
    pub resident: DistanceGraph,
    /// Columns in the store, including the pending save. Columns that are being generated are claimed; failed columns too, until
    /// they are tried again.
    pub stored: DistanceGraph,
    /// Which stored columns are new, and for which heights they were generated, including the pending save.
    pub history: History,
    /// Columns whose wanted slabs may have changed, if it is sparse.
    pub revised: BTreeSet<ColumnPos>,
    pub generation: GenerationState,
    /// Columns that wait for another try and have lost their tickets.
    pub left_failures: Vec<ColumnPos>,
    /// The number of columns on order.
    pub in_flight: usize,
    /// The number of the last order.
    pub last_claim: u64,
    /// `true` if viewers moved since the orders were last examined.
    pub has_moved_viewers: bool,
    /// The time of the coordinator's clock.
    pub real_now: Duration,
    /// The areas of the viewers' discs for loading and for generating, until they change.
    pub coverage: Option<[Coverage; 2]>,
    /// How far loading and generating had come around the viewers at the last count.
    pub progress: Option<[Completion; 2]>,
    pub viewers: BTreeMap<Ticket, ViewerState>,
    /// The viewers' allowances.
    pub caps: ViewerCaps,
    /// The viewers that may want something; `None` for all. A viewer that wants nothing is examined again only after a change, so
    /// thousands of satisfied viewers cost nothing.
    pub wanting: Option<Vec<Ticket>>,
    /// The number of tickets of each column.
    pub holds: FxHashMap<ColumnPos, u32>,
    /// Resident columns without a ticket.
    pub unneeded: BTreeSet<ColumnPos>,
    /// The state of each column.
    pub columns: Columns,
    /// Stored jobs that have not been resumed yet.
    pub stored_jobs: Vec<PregenerationEntry>,
    /// Columns that jobs generate for the store, each with the error if it failed.
    pub for_jobs: BTreeMap<ColumnPos, Option<ColumnError>>,
    /// The data that its region worlds share.
    pub ground: Arc<ColumnSource>,
    pub store: Arc<WorldStore>,
    /// Columns whose look from afar has changed.
    pub edited: Vec<ColumnPos>,
    /// Columns whose blocks regions already have, and whose other parts must be ordered.
    pub to_complete: Vec<ColumnPos>,
    /// Entities on their way to columns that are not loaded yet.
    pub transit: Transit,
    /// Letters to columns that are not loaded yet.
    pub letters: BTreeMap<ColumnPos, Vec<Letter>>,
    /// The places of these letters, and those for which ground is loaded now.
    pub letter_places: LetterPlaces,
    /// Everything that arrives for a region while it ticks.
    pub waiting: SyncCell<FxHashMap<RegionId, Inbox>>,
    pub complaints: ColumnComplaints,
    /// The number of columns in a row that failed because of a store outage.
    pub outages: u32,
    /// After such failures, no order is placed before this time.
    pub orders_rest_until: Duration,
    /// Letters of a halted region to entities that may come back with reloaded columns.
    pub recalled: Vec<Letter>,
    /// Viewers whose region halted, each with the commit after which the store shows whether it still exists.
    pub orphans: Vec<(Uuid, u64)>,
    pub time: DimensionTime,
    /// The time of day that was stored when it was opened, in days.
    pub stored_days: Option<f64>,
    /// `true` if some regions may be idle while others tick: paused, halted or slow.
    pub has_idle_regions: bool,
    /// Merged regions, each with its absorber, until that one has taken over their contents.
    successors: FxHashMap<RegionId, RegionId>,
    /// The plots of this server, if several servers share the world.
    pub plots: Option<Plots>,
    /// Plots on which players are to appear that are not this server's own.
    pub sought: BTreeSet<TilePos>,
    /// Set while it is being saved and closed.
    pub closing: Option<Closing>,
}

#[derive(Clone, Copy, Debug)]
pub struct Closing {
    /// `true` if its stored data is to be erased afterwards.
    pub remove: bool,
    /// The commit that stores all of it, once everything has been handed out.
    pub until: Option<u64>,
}

impl Dimension {
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
        let (wanted, own_seed) = (spec.generator.identity(), spec.generator.own_seed());
        let id = store.open_dimension(&name, &wanted).map_err(|error| match (error, store.generator_text(&name)) {
            (StoreError::OriginMismatch { name, .. }, Some(stored)) => {
                DimensionError::MadeOtherwise { name, stored, wanted: wanted.told(own_seed) }
            }
            (error, _) => error.into(),
        })?;
        let read = |source| DimensionError::Read { name: name.clone(), source };
        if let Some(seed) = own_seed
            && let Err(error) = store.note_own_seed(id, seed)
        {
            warn!("log messages will lack the seed of dimension {name:?}: {error}");
        }
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
        let (regenerates_damaged, open_plots) = (config.saving.regenerate_damaged, plots.as_ref().map(|_| default()));
        let whole = ColumnSource { first_heights, floor: spec.floor, ..whole };
        let ground = ColumnSource { is_sparse, light, regenerates_damaged, open_plots, ..whole };
        let mut time = DimensionTime::resumed(spec.clock.unwrap_or(config.clock), clock);
        time.set_time_of_day(spec.time_of_day.map(|time| TimeOfDay { days: stored_days.unwrap_or(time.days), ..time }));
        let new = Self::new(spec, regionizer, ground, config, store.clone());
        let dimension = Self { stored, history, stored_jobs, time, stored_days, plots, ..new };
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
            regionizer,
            shared: SharedWorlds::default(),
            resident: DistanceGraph::new(),
            stored: DistanceGraph::new(),
            history: History::default(),
            revised: BTreeSet::new(),
            generation: GenerationState::new(spec.generation.unwrap_or(config.generation)),
            left_failures: Vec::new(),
            in_flight: 0,
            last_claim: 0,
            has_moved_viewers: false,
            real_now: Duration::ZERO,
            coverage: None,
            progress: None,
            viewers: BTreeMap::new(),
            caps: ViewerCaps::new(config.limits.viewers),
            wanting: None,
            holds: FxHashMap::default(),
            unneeded: BTreeSet::new(),
            columns: Columns::default(),
            stored_jobs: Vec::new(),
            for_jobs: BTreeMap::new(),
            ground: Arc::new(ColumnSource { section_shift, owners, ..ground }),
            store,
            edited: Vec::new(),
            to_complete: Vec::new(),
            transit: Default::default(),
            letters: Default::default(),
            letter_places: Default::default(),
            waiting: SyncCell::new(FxHashMap::default()),
            complaints: ColumnComplaints::default(),
            outages: 0,
            orders_rest_until: Duration::ZERO,
            recalled: Default::default(),
            orphans: Vec::new(),
            time: DimensionTime::new(spec.clock.unwrap_or(config.clock)),
            stored_days: None,
            has_idle_regions: false,
            successors: FxHashMap::default(),
            plots: None,
            sought: BTreeSet::new(),
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
        self.time.settings.paused || self.time.is_slow(None) || self.has_idle_regions
    }

    /// The regions in whose name tasks run, in order: all but guests in the world of another region.
    pub fn task_regions(&self) -> impl Iterator<Item = RegionId> + use<> {
        let mut regions = self.regionizer.regions();
        regions.retain(|region| !self.shared.is_guest(*region));
        regions.into_iter()
    }

    /// The slot of a region whose world is not away. `None` for a guest in the world of another region: its host has that slot.
    pub fn idle(&self, region: RegionId) -> Option<&RegionSlot> {
        self.regionizer.data(region).map(AsRef::as_ref).or_else(|| self.shared.idle_host(region))
    }

    /// [`idle`](Self::idle), for changes.
    pub fn idle_mut(&mut self, region: RegionId) -> Option<&mut RegionSlot> {
        self.regionizer.data_mut(region).map(AsMut::as_mut).or_else(|| self.shared.idle_host_mut(region))
    }

    /// Takes the slot of a region that is ready, or of a host whose world is not away, for a task.
    pub fn begin_task(&mut self, region: RegionId) -> Option<Box<RegionSlot>> {
        self.regionizer.try_begin_tick(region).or_else(|| self.shared.begin(region))
    }

    /// Takes back the slot of a region after a task, and returns the parts that split off in the regionizer.
    pub fn end_task(&mut self, region: RegionId, slot: Box<RegionSlot>) -> Vec<RegionId> {
        let Some(slot) = self.shared.end(region, slot) else { return Vec::new() };
        self.regionizer.end_tick(region, slot).unwrap_or_else(|error| {
            // Only begun ticks are ended, so this is a bug of the crate.
            error!("{}, {region}: {error}", self.id);
            Vec::new()
        })
    }

    /// In strict mode, updates the owners of all sections, which regions name in their errors.
    pub fn tell_owners(&self) {
        let Some(owners) = &self.ground.owners else { return };
        let regions = self.regionizer.regions();
        let owned = |region: RegionId| self.regionizer.sections(region).map(move |section| (section, region));
        *owners.write().unwrap_or_else(PoisonError::into_inner) = regions.into_iter().flat_map(owned).collect();
    }

    pub fn note_merge(&mut self, from: RegionId, into: RegionId) {
        self.successors.values_mut().filter(|region| **region == from).for_each(|region| *region = into);
        self.successors.insert(from, into);
    }

    /// The region, and those that merged into it and are not yet reported as part of it.
    pub fn all_predecessors(&self, region: RegionId) -> Vec<RegionId> {
        let merged = self.successors.iter().filter(|(_, into)| **into == region).map(|(from, _)| *from);
        merged.chain([region]).collect()
    }

    /// Notes that the region has absorbed its merged regions, so that all their contents are reported as its own.
    pub fn note_absorbed(&mut self, into: RegionId) {
        self.successors.retain(|_, region| *region != into);
    }

    /// The region, or the one that absorbed it, unless it is dead.
    pub fn live_successor(&self, region: RegionId) -> Option<RegionId> {
        let region = self.successor(region);
        let state = self.regionizer.state(region)?;
        (state != RegionState::Dead).then_some(region)
    }

    /// The region, or the one that absorbed it.
    pub fn successor(&self, region: RegionId) -> RegionId {
        self.successors.get(&region).copied().unwrap_or(region)
    }

    /// Columns that regions evicted and that are not stored yet.
    pub fn departed(&self) -> &DepartedColumns {
        &self.ground.departed
    }

    /// The columns in the world of a region, or in its inbox, sorted.
    pub fn columns_of(&self, region: RegionId) -> Vec<ColumnPos> {
        let columns = self.regionizer.columns(region).filter(|column| self.columns.is_in_region(*column));
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
