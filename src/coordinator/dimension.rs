//! What the coordinator keeps of each dimension: its regionizer, its two graphs, and the stages of its columns.

use super::CoordinatorConfig;
use super::clocks::clock::{DimensionClock, DimensionTime};
use super::pregeneration::Pregenerations;
use super::region_slot::{RegionSlot, Revived};
use super::streaming::generation_control::{DimensionGeneration, GenerationState};
use super::streaming::holders::{Holder, ViewerState};
use super::streaming::nearest::Wanting;
use super::streaming::progress::{Coverage, Progress};
use super::streaming::sparse::SparseColumns;
use super::travel::transit::Transit;
use crate::block::BlockRegistry;
use crate::chunk::Column;
use crate::generation::{DistanceGraph, Generator, GeneratorIdentity, TilePos};
use crate::region::{RegionId, RegionState, Regionizer, RegionizerConfigError};
use crate::simulation::Exclusive;
use crate::simulation::{
    BlockAccessError, BlockEdit, DepartedColumns, Ground, Inbox, Letter, LoadedColumn, RegionHome, Repairs, Traveller,
    ViewerRadii,
};
use crate::space::{ChunkPos, ColumnPos, DimensionId};
use crate::storage::{self, StoreError, WorldStore};
use crate::work::Stop;
use bevy::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::{ops::Range, sync::Arc, time::Duration};
use uuid::Uuid;

/// A dimension as the game asked for it.
#[derive(Clone)]
pub struct DimensionSpec {
    /// Its entity in the main world.
    pub entity: Entity,
    /// Its name: the store knows it by this.
    pub name: String,
    /// Its heights, in blocks.
    pub heights: Range<i64>,
    /// What makes its ground.
    pub generator: Arc<dyn Generator>,
    /// How its time passes; `None` for the coordinator's own rate.
    pub clock: Option<DimensionClock>,
    /// How its ground is generated; `None` for the coordinator's own settings.
    pub generation: Option<DimensionGeneration>,
}

/// Why a dimension could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum DimensionError {
    /// It has no heights.
    #[error("dimension {name:?} has the height range {low}..{high}: it must hold at least one block")]
    Heights {
        /// The dimension.
        name: String,
        /// Its lowest y.
        low: i64,
        /// The first y above it.
        high: i64,
    },
    /// There is one of that name already.
    #[error("dimension {name:?} is open already: give each Dimension a name of its own")]
    AlreadyOpen {
        /// The dimension.
        name: String,
    },
    /// The regionizer's settings are wrong.
    #[error(transparent)]
    Regionizer(#[from] RegionizerConfigError),
    /// The store does not know it as it is now, or cannot be read.
    #[error(transparent)]
    Store(#[from] storage::StoredDimensionError),
    /// The store cannot be read.
    #[error("dimension {name:?}: {source}")]
    Read {
        /// The dimension.
        name: String,
        /// What the store said.
        source: StoreError,
    },
    /// One of its name had to be erased before, and could not be.
    #[error("dimension {name:?} is not opened, since one of that name could not be removed before: {reason}")]
    NotRemoved {
        /// The dimension.
        name: String,
        /// Why.
        reason: String,
    },
    /// What the store says of its stored columns is lost or damaged, and could not be made anew.
    #[error("dimension {name:?}: the graph of its stored columns is lost and cannot be made anew: {reason}")]
    NotRebuilt {
        /// The dimension.
        name: String,
        /// Why.
        reason: String,
    },
}

/// What came of opening a dimension.
pub(super) enum Opening {
    /// It is open; with the stored viewers in it.
    Open(Box<Dimension>, Vec<storage::EntityRecord>),
    /// Which columns the store has of it is to be found out before.
    Lost(DimensionId),
}

/// A higher dimension is sparse: only what is near to viewers above and below is generated and loaded of a column.
const MAX_WHOLE_HEIGHT: i64 = 1 << 14;

#[derive(Resource)]
pub(super) struct Store(pub Arc<WorldStore>);

/// All open dimensions.
#[derive(Resource, Default)]
pub(super) struct Dimensions {
    pub open: BTreeMap<DimensionId, Dimension>,
    pub by_entity: FxHashMap<Entity, DimensionId>,
    /// Dimensions to open as soon as those of the same name are closed.
    pub reopen: Vec<DimensionSpec>,
    /// Dimensions to open as soon as the store has this commit.
    pub late: Vec<(DimensionSpec, u64)>,
    /// Dimensions that waited so and are to be erased too: they hear of the end of the removal.
    pub unopened: Vec<DimensionSpec>,
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

    /// Whether something is done in the store that a dimension of this name has to wait for.
    pub fn is_busy(&self, name: &str) -> bool {
        self.removing.contains(name) || self.rebuilding.contains_key(name)
    }
}

/// Where a resident column is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Ordered with this claim: it is generated or loaded.
    Claimed(u64),
    /// In its region's inbox or world.
    Owned,
    /// Its region was asked to give it up.
    Leaving,
}

pub(super) struct Dimension {
    pub id: DimensionId,
    pub spec: DimensionSpec,
    pub regionizer: Regionizer<RegionSlot>,
    /// Loaded or on its way. Claimed is what viewers want loaded and what has to be generated before.
    pub resident: DistanceGraph,
    /// What the store holds, the pending save included. Claimed is what is being generated, and what failed, until it is
    /// tried again.
    pub stored: DistanceGraph,
    /// What of its columns is loaded, if it is sparse.
    pub sparse: Option<SparseColumns>,
    /// Columns that are claimed in `resident`, since somebody holds them, and are to be generated.
    pub awaited: FxHashSet<ColumnPos>,
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
    /// What the viewers' discs cover, until they change.
    pub coverage: Option<Arc<Coverage>>,
    /// As it was counted last.
    pub progress: Option<Progress>,
    pub viewers: BTreeMap<Holder, ViewerState>,
    pub wanting: Wanting,
    /// How many holders want each column kept.
    pub holds: FxHashMap<ColumnPos, u32>,
    /// Resident columns that nobody holds.
    pub unneeded: BTreeSet<ColumnPos>,
    pub columns: FxHashMap<ColumnPos, Stage>,
    /// Columns that are generated only to be stored, each with its claim.
    pub making: FxHashMap<ColumnPos, u64>,
    /// What is generated without being loaded.
    pub pregenerations: Pregenerations,
    /// What its region worlds have in common.
    pub home: Arc<RegionHome>,
    /// Columns that regions gave up and that are not stored yet.
    pub departed: Arc<DepartedColumns>,
    /// Columns that a region fetched within a tick, and the claim with which their entities are on their way.
    pub fetched: FxHashMap<ColumnPos, u64>,
    /// Entities on their way to columns that are not there yet.
    pub transit: Exclusive<Transit>,
    /// Letters to columns that are not there yet.
    pub letters: Exclusive<BTreeMap<ColumnPos, Vec<Letter>>>,
    /// What arrives for a region while it ticks.
    pub waiting: Exclusive<FxHashMap<RegionId, Inbox>>,
    /// Columns that could not be read: how often, and when they are tried again.
    pub failed: BTreeMap<ColumnPos, (u32, Duration)>,
    /// Columns of a halted region that a live one took over, and the commit that the store must have before.
    pub reload: BTreeMap<ColumnPos, u64>,
    /// Those of them that are being read.
    pub reloading: BTreeSet<ColumnPos>,
    /// Letters that a halted region kept for entities that come back, if they do, with columns that are read again.
    pub recalled: Exclusive<Vec<Letter>>,
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
pub(super) struct Closing {
    /// What is stored of it is to be removed then.
    pub remove: bool,
    /// The commit with which everything of it is stored, once all of it has been handed out.
    pub until: Option<u64>,
}

impl Dimension {
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
        let time = DimensionTime::new(spec.clock.unwrap_or(config.clock));
        let generation = GenerationState::new(spec.generation.unwrap_or(config.generation));
        let GeneratorIdentity { name: generator, version, seed } = spec.generator.identity();
        let id = store.open_dimension(&name, &storage::DimensionOrigin { generator, version, seed })?;
        let read = |source| DimensionError::Read { name: name.clone(), source };
        if high.abs_diff(low) > MAX_WHOLE_HEIGHT as u64 {
            store.make_sparse(id).map_err(read)?;
        }
        let is_sparse = store.is_sparse(id).map_err(read)?;
        let Some(stored) = stored_graph(store, id).map_err(read)? else { return Ok(Opening::Lost(id)) };
        let viewers = store.viewers(id).map_err(read)?;
        let pregenerations = Pregenerations::restore(store.pregenerations(id).map_err(read)?, &stored);
        let departed = Arc::<DepartedColumns>::default();
        let ground = Ground {
            dimension: id,
            heights: spec.heights.clone(),
            chunk_heights: chunk_heights(&spec.heights),
            is_sparse,
            generator: spec.generator.clone(),
            blocks: blocks.clone(),
            store: Arc::downgrade(store),
            departed: departed.clone(),
            repairs: Repairs::new(config.damaged_ground),
        };
        let owners = config.strict.then(Arc::default);
        let home = RegionHome { ground, section_shift: config.regionizer.section_shift, owners };
        let dimension = Self {
            id,
            spec,
            regionizer,
            resident: DistanceGraph::new(),
            sparse: is_sparse.then(SparseColumns::default),
            stored,
            awaited: FxHashSet::default(),
            generation,
            left_failures: Vec::new(),
            in_flight: 0,
            last_claim: 0,
            has_moved_viewers: false,
            real_now: Duration::ZERO,
            coverage: None,
            progress: None,
            viewers: BTreeMap::new(),
            wanting: Wanting::default(),
            holds: FxHashMap::default(),
            unneeded: BTreeSet::new(),
            columns: FxHashMap::default(),
            making: FxHashMap::default(),
            pregenerations,
            home: Arc::new(home),
            departed,
            fetched: FxHashMap::default(),
            transit: Default::default(),
            letters: Default::default(),
            waiting: Default::default(),
            failed: BTreeMap::new(),
            reload: BTreeMap::new(),
            reloading: BTreeSet::new(),
            recalled: Default::default(),
            orphans: Vec::new(),
            time,
            has_idle_regions: false,
            successors: FxHashMap::default(),
            closing: None,
        };
        Ok(Opening::Open(Box::new(dimension), viewers))
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
        let Some(owners) = &self.home.owners else { return };
        let regions = self.regionizer.regions();
        let owned = |region: RegionId| self.regionizer.sections(region).map(move |section| (section, region));
        owners.set(regions.into_iter().flat_map(owned).collect());
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

    /// The chunk heights of the dimension.
    pub fn chunk_heights(&self) -> Range<i64> {
        chunk_heights(&self.spec.heights)
    }

    /// Where what is sent to the region waits: its inbox, or beside it while it ticks.
    pub fn inbox(&mut self, region: RegionId) -> &mut Inbox {
        match self.regionizer.data_mut(region) {
            Some(slot) => &mut slot.parked.get().inbox,
            None => self.waiting.get().entry(region).or_default(),
        }
    }

    /// Whether the column is in the world of a region that has told who is in it: `None` while the region ticks, and nobody
    /// knows yet.
    pub fn has_reported(&mut self, column: ColumnPos) -> Option<bool> {
        // Of a fetched column the region has only the blocks yet.
        let is_whole = !self.fetched.contains_key(&column) && !self.reload.contains_key(&column);
        if !is_whole || self.columns.get(&column) != Some(&Stage::Owned) {
            return Some(false);
        }
        let region = self.regionizer.region_at(column)?;
        let slot = self.regionizer.data_mut(region)?;
        if slot.has_lost(column) {
            return Some(false);
        }
        let inbox = &slot.parked.get().inbox;
        Some(!inbox.columns.iter().any(|loaded| loaded.column.pos() == column))
    }

    /// Whether the column is generated only to be stored, with this claim.
    pub fn is_making(&self, column: ColumnPos, claim: u64) -> bool {
        self.making.get(&column) == Some(&claim)
    }

    /// Whether an order for the column is out.
    pub fn is_under_way(&self, column: ColumnPos) -> bool {
        self.making.contains_key(&column) || self.columns.contains_key(&column)
    }

    /// The column can be generated again.
    pub fn release_generation(&mut self, column: ColumnPos) {
        if self.stored.release(column) {
            self.viewers.values_mut().for_each(|viewer| viewer.to_generate.reopened(column));
            self.wanting.ask_everybody();
        }
    }

    /// Who comes to a place again does not wait for what failed there before.
    pub fn forget_left_failures(&mut self) {
        for column in std::mem::take(&mut self.left_failures) {
            let is_wanted = self.viewers.values().any(|viewer| viewer.reaches(column));
            if !is_wanted && self.generation.failures.is_waiting(column) {
                self.generation.failures.forget(column);
                self.release_generation(column);
            }
        }
    }

    /// Nobody else begins to generate the column.
    pub fn claim_generation(&mut self, column: ColumnPos) {
        if self.stored.is_claimed(column) {
            return;
        }
        let work = self.stored.claim(column.batch(), column);
        for other in work.into_iter().flat_map(|work| work.columns).filter(|other| *other != column) {
            self.stored.release(other);
        }
    }

    /// The column is stored now, without an order of those who hold it: they can have it loaded.
    pub fn end_waiting(&mut self, column: ColumnPos) {
        if self.awaited.remove(&column) && self.resident.release(column) {
            self.note_reopened(column);
        }
    }

    /// The column is to be loaded again, for those who want it.
    fn note_reopened(&mut self, column: ColumnPos) {
        // Whoever has it in range holds it.
        if self.is_held(column) {
            self.viewers.values_mut().for_each(|viewer| viewer.to_load.reopened(column));
            self.wanting.ask_everybody();
        }
    }

    /// The column is not resident any more; viewers that want it look again.
    pub fn forget(&mut self, column: ColumnPos) {
        self.columns.remove(&column);
        self.unneeded.remove(&column);
        self.fetched.remove(&column);
        if let Some(sparse) = &mut self.sparse {
            sparse.forget(column);
        }
        self.is_found(column);
        if let Err(error) = self.regionizer.remove_column(column) {
            error!("{}: {error}", self.id);
        }
        self.make_missing(column);
    }

    /// Columns that failed and that nobody wants any more are like others that are not there.
    pub fn forget_unwanted_failures(&mut self) {
        let Self { failed, holds, fetched, columns, .. } = self;
        let is_unwanted = |column: &ColumnPos| {
            !holds.contains_key(column) && !fetched.contains_key(column) && !columns.contains_key(column)
        };
        let unwanted: Vec<_> = failed.extract_if(.., |column, _| is_unwanted(column)).collect();
        unwanted.into_iter().for_each(|(column, _)| self.make_missing(column));
    }

    pub fn make_missing(&mut self, column: ColumnPos) {
        self.resident.unmark(column);
        self.note_reopened(column);
    }

    /// Delivers a column to the region that owns its place, with all that waited for it.
    pub fn deliver(&mut self, mut loaded: LoadedColumn) -> Option<Column> {
        let position = loaded.column.pos();
        let region = self.regionizer.region_at(position)?;
        let column = loaded.column.clone();
        let travellers = self.transit.get().take(position);
        self.note_loaded(&column);
        let mut letters = self.take_letters(position);
        letters.splice(..0, self.recalled_to(&loaded));
        self.is_found(position);
        // The live entity is newer than the record of its journey.
        loaded.entities.retain(|record| travellers.iter().all(|traveller| traveller.id != record.id));
        let inbox = self.inbox(region);
        inbox.columns.push(loaded);
        inbox.travellers.extend(travellers);
        inbox.letters.extend(letters);
        self.columns.insert(position, Stage::Owned);
        if !self.is_held(position) {
            self.unneeded.insert(position);
        }
        Some(column)
    }

    /// The column has been read again, or is nobody's any more.
    fn is_found(&mut self, column: ColumnPos) {
        self.reload.remove(&column);
        self.reloading.remove(&column);
        self.departed.find_again(column);
    }

    /// What waits for the entities in a column that comes.
    fn recalled_to(&mut self, loaded: &LoadedColumn) -> Vec<Letter> {
        let recalled = self.recalled.get();
        if recalled.is_empty() {
            return Vec::new();
        }
        let ids = |record: &storage::EntityRecord| {
            let children: Vec<_> = record.children.iter().filter_map(|child| child.id).collect();
            children.into_iter().chain([record.id])
        };
        let ids: FxHashSet<Uuid> = loaded.entities.iter().flat_map(ids).collect();
        recalled.extract_if(.., |letter| letter.entity().is_some_and(|id| ids.contains(&id))).collect()
    }

    /// Columns of a halted region are read again, and what waits in it for them and their entities waits for that.
    pub fn read_again(&mut self, Revived { lost, waiting }: Revived) {
        self.reload.extend(lost);
        self.revise_all();
        for (block, _) in self.send_on(waiting) {
            // Edits of a halted region were refused, so there are none.
            warn!("{}: an edit of block {} is lost", self.id, block.block);
        }
    }

    /// A letter goes to the region that owns its place, or waits for the column, which is loaded for it.
    pub fn send_letter(&mut self, column: ColumnPos, letter: Letter) {
        // Behind those that wait already, while what the store has of a fetched column is being read.
        let is_whole = !self.fetched.contains_key(&column) && !self.reload.contains_key(&column);
        let owned = self.columns.get(&column) == Some(&Stage::Owned) && is_whole;
        let place = self.letter_place(column, &letter);
        match self.regionizer.region_at(column).filter(|_| owned && self.has_height(column, place.y)) {
            Some(region) => self.inbox(region).letters.push(letter),
            None => {
                self.hold(Holder::Letters(place), place, ViewerRadii::default());
                self.letters.get().entry(column).or_default().push(letter);
            }
        }
    }

    /// The chunk that is loaded for a letter; any of the column unless the dimension is sparse.
    fn letter_place(&self, column: ColumnPos, letter: &Letter) -> ChunkPos {
        let height = letter.block().filter(|_| self.sparse.is_some()).map_or(0, |block| block.chunk().y);
        column.chunk(height)
    }

    /// The letters that wait for the column, as far as the heights that they go to are loaded.
    pub fn take_letters(&mut self, column: ColumnPos) -> Vec<Letter> {
        let letters = self.letters.get().remove(&column).unwrap_or_default();
        let mut there = Vec::with_capacity(letters.len());
        for letter in letters {
            let place = self.letter_place(column, &letter);
            if self.has_height(column, place.y) {
                self.release(Holder::Letters(place));
                there.push(letter);
            } else {
                self.letters.get().entry(column).or_default().push(letter);
            }
        }
        there
    }

    /// The region keeps a column that it was asked to give up; what waited for its return goes to the region.
    pub fn keep(&mut self, column: ColumnPos) {
        self.columns.insert(column, Stage::Owned);
        if let Some(sparse) = &mut self.sparse {
            sparse.revise(column);
        }
        let letters = self.take_letters(column);
        letters.into_iter().for_each(|letter| self.send_letter(column, letter));
        if !self.is_held(column) {
            self.unneeded.insert(column);
        }
    }

    /// Sends on what waited for columns that are gone. Gives back the edits, which are refused.
    pub fn send_on(&mut self, astray: Inbox) -> Vec<(BlockEdit, BlockAccessError)> {
        astray.travellers.into_iter().for_each(|traveller| self.route(traveller));
        for letter in astray.letters {
            match letter.column() {
                Some((_, column)) => self.send_letter(column, letter),
                None => self.recalled.get().push(letter),
            }
        }
        let refuse = |edit: BlockEdit| (edit, BlockAccessError::OutsideRegion(edit.block));
        astray.edits.into_iter().map(refuse).collect()
    }

    /// An entity goes to whoever owns its place now, or waits for the column.
    pub fn route(&mut self, traveller: Traveller) {
        let column = traveller.position.column();
        for (viewer, radii) in &traveller.viewers {
            self.hold(Holder::Region(*viewer), traveller.position.block.chunk(), *radii);
        }
        let loaded = matches!(self.columns.get(&column), Some(Stage::Owned | Stage::Leaving));
        // What the store has of a fetched column is still being read: whoever comes now could be among it.
        let whole = loaded && !self.fetched.contains_key(&column) && !self.reload.contains_key(&column);
        match self.regionizer.region_at(column).filter(|_| whole) {
            Some(region) => self.inbox(region).travellers.push(traveller),
            None => self.transit.get().push(traveller),
        }
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
    let restored = tiles.into_iter().try_for_each(|(x, z, masks)| graph.restore_tile(TilePos::new(x, z), &masks));
    Ok(restored.is_ok().then_some(graph))
}

fn chunk_heights(blocks: &Range<i64>) -> Range<i64> {
    blocks.start >> 4..((blocks.end - 1) >> 4) + 1
}
