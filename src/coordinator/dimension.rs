//! A dimension as the coordinator knows it: its regionizer, its two graphs, and the states of its columns.

pub(super) mod column_state;
mod columns;
mod inboxes;
pub(super) mod opening;
pub(super) mod spec;

pub use spec::{DimensionError, DimensionSpec};

use super::clocks::clock::DimensionTime;
use super::region_slot::RegionSlot;
use super::streaming::failed_columns::ColumnComplaints;
use super::streaming::generation_control::GenerationState;
use super::streaming::holders::{Holder, ViewerState};
use super::streaming::shares::Share;
use super::streaming::viewer_limits::ViewerCaps;
use super::travel::letter_limits::LetterPlaces;
use super::travel::transit::Transit;
use crate::block::BlockRegistry;
use crate::coordinator::config::CoordinatorConfig;
use crate::generation::{Completion, DistanceGraph};
use crate::region::{RegionId, RegionState, Regionizer};
use crate::simulation::{ColumnError, ColumnSource, DepartedColumns, Inbox, Letter};
use crate::space::{ColumnPos, DimensionId};
use crate::storage::{self, PregenerationEntry, StoreError, WorldStore};
use crate::work::Stop;
use bevy::platform::cell::SyncCell;
use bevy::prelude::*;
use column_state::Columns;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use uuid::Uuid;

/// What came of opening a dimension.
pub enum Opening {
    /// It is open; with the stored viewers in it.
    Open(Box<Dimension>, Vec<storage::EntityRecord>),
    /// Which columns the store has of it is to be found out before.
    Lost(DimensionId),
}

/// A higher dimension is sparse: only what is near to viewers above and below is generated and loaded of a column.
pub(crate) const MAX_WHOLE_HEIGHT: i64 = 1 << 14;

/// A dimension to be opened as soon as those of the same name are closed, and the store has a commit.
pub struct Unopened {
    pub spec: DimensionSpec,
    /// The commit.
    pub until: u64,
    /// Then it is not opened: what is stored under its name is erased.
    pub is_removed: bool,
}

/// All open dimensions.
#[derive(Resource, Default)]
pub struct Dimensions {
    pub open: BTreeMap<DimensionId, Dimension>,
    pub by_entity: FxHashMap<Entity, DimensionId>,
    /// Dimensions that wait to be opened.
    pub unopened: Vec<Unopened>,
    /// The names of closed dimensions that are being erased from the store.
    pub removing: BTreeSet<String>,
    /// Those that were closed to be erased. Their numbers are never given again.
    pub removed: BTreeSet<DimensionId>,
    /// The names of dimensions whose stored columns are being searched for, and what ends the search.
    pub rebuilding: BTreeMap<String, Stop>,
    /// The names of those of which it has just been found out: it is not searched again at once.
    pub rebuilt: BTreeSet<String>,
}

impl Dimensions {
    pub fn by_entity(&mut self, entity: Entity) -> Option<&mut Dimension> {
        self.open.get_mut(self.by_entity.get(&entity)?)
    }

    /// What is kept of a region that is not away.
    pub fn slot(&self, dimension: DimensionId, region: RegionId) -> Option<&RegionSlot> {
        self.open.get(&dimension)?.regionizer.data(region)
    }

    /// All regions, in order.
    pub fn regions(&self) -> Vec<(DimensionId, RegionId)> {
        let of = |(id, open): (&DimensionId, &Dimension)| {
            let id = *id;
            open.regionizer.regions().into_iter().map(move |region| (id, region))
        };
        self.open.iter().flat_map(of).collect()
    }

    /// How much time has passed in each, to be saved.
    pub fn clocks(&self) -> impl Iterator<Item = (DimensionId, Duration)> {
        self.open.iter().map(|(id, dimension)| (*id, dimension.time.now))
    }

    /// Whether something is done in the store that a dimension of this name has to wait for, or is to be erased before.
    pub fn is_busy(&self, name: &str) -> bool {
        let is_to_go = |waiting: &Unopened| waiting.is_removed && waiting.spec.name == name;
        self.removing.contains(name) || self.rebuilding.contains_key(name) || self.unopened.iter().any(is_to_go)
    }
}

pub struct Dimension {
    pub id: DimensionId,
    pub spec: DimensionSpec,
    pub regionizer: Regionizer<RegionSlot>,
    /// Loaded or on its way. Claimed is what somebody holds and what has to be generated before.
    pub resident: DistanceGraph,
    /// What the store holds, the pending save included. Claimed is what is being generated, and what failed, until it is
    /// tried again.
    pub stored: DistanceGraph,
    /// Columns of which other slabs may be wanted than before, if it is sparse.
    pub revised: BTreeSet<ColumnPos>,
    pub generation: GenerationState,
    /// Columns that wait for another try and that nobody holds any more.
    pub left_failures: Vec<ColumnPos>,
    /// Columns that are on order.
    pub in_flight: usize,
    /// Its last order.
    pub last_claim: u64,
    /// Since the last look at what is on order.
    pub has_moved_viewers: bool,
    /// The coordinator's clock.
    pub real_now: Duration,
    /// What the viewers' discs cover, those that are loaded and those that are generated, until they change.
    pub coverage: Option<[Vec<Share>; 2]>,
    /// How far loading and generating had come around the viewers when that was counted last.
    pub progress: Option<[Completion; 2]>,
    pub viewers: BTreeMap<Holder, ViewerState>,
    /// What each may have loaded and generated.
    pub caps: ViewerCaps,
    /// The viewers that may want something; `None` for all. A viewer that wants nothing is not asked again before something
    /// changes: of thousands that have all they want, none is.
    pub wanting: Option<Vec<Holder>>,
    /// How many holders want each column kept.
    pub holds: FxHashMap<ColumnPos, u32>,
    /// Resident columns that nobody holds.
    pub unneeded: BTreeSet<ColumnPos>,
    /// Where each column is in its life.
    pub columns: Columns,
    /// Jobs that the store remembers and nobody took up yet.
    pub stored_jobs: Vec<PregenerationEntry>,
    /// Columns that jobs have generated for the store, and why one failed.
    pub for_jobs: BTreeMap<ColumnPos, Option<ColumnError>>,
    /// What its region worlds have in common.
    pub ground: Arc<ColumnSource>,
    pub store: Arc<WorldStore>,
    /// Columns that look different from afar than before.
    pub edited: Vec<ColumnPos>,
    /// Columns of which more is to be ordered: regions have their blocks already.
    pub to_complete: Vec<ColumnPos>,
    /// Entities on their way to columns that are not there yet.
    pub transit: Transit,
    /// Letters to columns that are not there yet.
    pub letters: BTreeMap<ColumnPos, Vec<Letter>>,
    /// Where they go, and for which of these places ground is loaded now.
    pub letter_places: LetterPlaces,
    /// What arrives for a region while it ticks.
    pub waiting: SyncCell<FxHashMap<RegionId, Inbox>>,
    pub complaints: ColumnComplaints,
    /// Columns that failed, one after the other, because the store did not work.
    pub outages: u32,
    /// After such failures, nothing is ordered before this time.
    pub orders_rest_until: Duration,
    /// Letters that a halted region kept for entities that come back, if they do, with columns that are read again.
    pub recalled: Vec<Letter>,
    /// Viewers whose region halted, and the commit with which the store knows whether there is one like that.
    pub orphans: Vec<(Uuid, u64)>,
    pub time: DimensionTime,
    /// Some of its regions may be idle while others tick: paused, halted or slow by themselves.
    pub has_idle_regions: bool,
    /// Regions that merged, and into which: until that has taken in what they held.
    successors: FxHashMap<RegionId, RegionId>,
    /// It is being saved and closed.
    pub closing: Option<Closing>,
}

/// A dimension that is being closed.
#[derive(Clone, Copy, Debug)]
pub struct Closing {
    /// What is stored of it is to be removed then.
    pub remove: bool,
    /// The commit with which everything of it is stored, once all of it has been handed out.
    pub until: Option<u64>,
}

impl Dimension {
    /// Opens it as the store knows it.
    pub fn open(
        spec: DimensionSpec,
        store: &Arc<WorldStore>,
        config: &CoordinatorConfig,
        blocks: &Arc<BlockRegistry>,
    ) -> Result<Opening, DimensionError> {
        let name = spec.name.clone();
        let Range { start: low, end: high } = spec.heights;
        if low >= high {
            return Err(DimensionError::Heights { name, low, high });
        }
        let regionizer = Regionizer::new(config.regionizer.clone())?;
        let (wanted, own_seed) = (spec.generator.identity(), spec.generator.own_seed());
        let id = store.open_dimension(&name, &wanted).map_err(|error| match (error, store.told_generator(&name)) {
            (StoreError::OriginMismatch { name, .. }, Some(stored)) => {
                DimensionError::MadeOtherwise { name, stored, wanted: wanted.told(own_seed) }
            }
            (error, _) => error.into(),
        })?;
        let read = |source| DimensionError::Read { name: name.clone(), source };
        if let Some(seed) = own_seed
            && let Err(error) = store.note_own_seed(id, seed)
        {
            warn!("messages will not know the seed of dimension {name:?}: {error}");
        }
        if high.abs_diff(low) > MAX_WHOLE_HEIGHT as u64 {
            store.make_sparse(id).map_err(read)?;
        }
        let is_sparse = store.is_sparse(id).map_err(read)?;
        let Some(stored) = stored_graph(store, id).map_err(read)? else { return Ok(Opening::Lost(id)) };
        let viewers = store.viewers(id).map_err(read)?;
        let stored_jobs = store.pregenerations(id).map_err(read)?;
        let clock = stored_clock(store, id).map_err(read)?;
        let (heights, generator) = (spec.heights.clone(), spec.generator.clone());
        let whole = ColumnSource::new(id, heights, generator, blocks.clone(), Arc::downgrade(store));
        let ground = ColumnSource { is_sparse, regenerates_damaged: config.regenerates_damaged, ..whole };
        let time = DimensionTime::resumed(spec.clock.unwrap_or(config.clock), clock);
        let dimension =
            Self { stored, stored_jobs, time, ..Self::new(spec, regionizer, ground, config, store.clone()) };
        Ok(Opening::Open(Box::new(dimension), viewers))
    }

    /// One of which nothing is stored or loaded.
    fn new(
        spec: DimensionSpec,
        regionizer: Regionizer<RegionSlot>,
        ground: ColumnSource,
        config: &CoordinatorConfig,
        store: Arc<WorldStore>,
    ) -> Self {
        let section_shift = config.regionizer.section_shift;
        let owners = config.strict.then(RwLock::default);
        Self {
            id: ground.dimension,
            regionizer,
            resident: DistanceGraph::new(),
            stored: DistanceGraph::new(),
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
            caps: ViewerCaps::new(config.viewers),
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
            has_idle_regions: false,
            successors: FxHashMap::default(),
            closing: None,
            spec,
        }
    }

    /// Whether it is being closed: nothing new begins in it.
    pub fn is_closing(&self) -> bool {
        self.closing.is_some()
    }

    /// Whether some of its regions may not tick for a while.
    pub fn may_be_idle(&self) -> bool {
        self.time.settings.paused || self.time.is_slow(None) || self.has_idle_regions
    }

    /// In strict mode, regions can tell who owns what is not theirs.
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

    /// The region, and those that merged into it and are not reported as its own yet.
    pub fn all_predecessors(&self, region: RegionId) -> Vec<RegionId> {
        let merged = self.successors.iter().filter(|(_, into)| **into == region).map(|(from, _)| *from);
        merged.chain([region]).collect()
    }

    /// The region has taken in what it absorbed: all that was there is reported as its own.
    pub fn note_absorbed(&mut self, into: RegionId) {
        self.successors.retain(|_, region| *region != into);
    }

    /// The region that took over from this one, or this one, if it is not dead.
    pub fn live_successor(&self, region: RegionId) -> Option<RegionId> {
        let region = self.successor(region);
        let state = self.regionizer.state(region)?;
        (state != RegionState::Dead).then_some(region)
    }

    /// The region that took over from this one, or this one.
    pub fn successor(&self, region: RegionId) -> RegionId {
        self.successors.get(&region).copied().unwrap_or(region)
    }

    /// Columns that regions gave up and that are not stored yet.
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

    /// Whether its columns come and go in slabs of 16 chunks, and not as a whole.
    pub fn is_sparse(&self) -> bool {
        self.ground.is_sparse
    }

    /// The chunk heights of the dimension.
    pub fn chunk_heights(&self) -> Range<i64> {
        self.ground.chunk_heights.clone()
    }
}

/// The clock of a dimension as it was saved last. One that is damaged begins anew: nothing else hangs on it.
fn stored_clock(store: &WorldStore, id: DimensionId) -> Result<Duration, StoreError> {
    match store.clock(id) {
        Err(error) if error.is_damage() => {
            warn!("{error}; it begins anew");
            Ok(Duration::ZERO)
        }
        clock => Ok(clock?.unwrap_or_default()),
    }
}

/// Which columns the store holds; `None` if what it says of that is lost or damaged.
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
