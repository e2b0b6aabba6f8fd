//! Removing a dimension removes all of it and nothing else.

use super::*;
use crate::ViewerRecord;
use crate::backends::test_store::TestStore;
use crate::block::BlockId;
use crate::chunk::{Chunk, Column, ColumnSummary};
use crate::space::{BatchPos, BlockPos, ChunkPos, ColumnArea, ColumnPos, GeneratorIdentity, TilePos};
use crate::{
    ChunkGroup, EntityRecord, KeyValue, KeyValueStore, LoadedColumn, MemoryStore, SaveBatch, StoredBlockTick,
    StoredDimension, StoredItem, StoredPregeneration, TileHistory,
};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const NAMES: [&str; 3] = ["overworld", "nether", "end"];
/// The dimension that is removed.
const NETHER: DimensionId = DimensionId(1);
/// Small enough that every kind of entry takes several pages.
const SMALL_PAGE: usize = 3;

fn origin() -> GeneratorIdentity {
    GeneratorIdentity { name: "hills".into(), version: 3, seed: 42 }
}

fn on() -> impl FnMut(&Progress) -> ControlFlow<()> {
    |_| ControlFlow::Continue(())
}

fn entity(id: u128, dimension: DimensionId, block: BlockPos) -> EntityRecord {
    let viewer = id.is_multiple_of(2).then(ViewerRecord::default);
    let (components, children) = (Vec::new(), Vec::new());
    let (id, offset) = (Uuid::from_u128(id), [0.5; 3]);
    EntityRecord { id, dimension, block, offset, viewer, components, children }
}

/// Data of every kind, spread over the dimension.
fn content(dimension: DimensionId) -> SaveBatch {
    let mut batch = SaveBatch::default();
    let mut chunk = Chunk::uniform(BlockId::AIR);
    chunk.set_block([1, 2, 3], BlockId::new(7));
    let chunk = Arc::new(chunk);
    let places = [i64::MIN >> 4, -1, 0, 1, 9, 1000, i64::MAX >> 4];
    for (place, id) in places.into_iter().zip(dimension.0 as u128 * 100..) {
        let pos = ChunkPos::new(place, -place.clamp(-5, 5), place);
        batch.chunks.insert((dimension, pos), Arc::clone(&chunk));
        let tick = StoredBlockTick { block: pos.min_block(), kind: "flow".into(), remaining: 4 };
        batch.block_ticks.insert((dimension, pos), vec![tick]);
        batch.tiles.insert((dimension, TilePos::new(place, place)), [1; 64]);
        let mut history = TileHistory::default();
        history.set_new(TilePos::new(place, place).batch(0).map_or(pos.column(), |batch| batch.column(0)), true);
        batch.histories.insert((dimension, TilePos::new(place, place)), history);
        let area = ColumnArea::Square { center: pos.column(), radius: 9 };
        let job = StoredPregeneration { area, cursor: Default::default(), paused: false, elapsed: Duration::ZERO };
        batch.pregenerations.insert((dimension, id as u64), Some(job));
        let summary = ColumnSummary::new(&Column::new(pos.column()));
        batch.summaries.insert((dimension, pos.column()), Arc::new(summary));
        batch.entities.insert(Uuid::from_u128(id), Some(entity(id, dimension, pos.min_block())));
    }
    batch
}

/// Saves the content with chunks in every tier and one group that was once found damaged.
fn fill(store: &TestStore, world: &WorldStore, dimension: DimensionId) {
    world.commit(&content(dimension), Durability::Process).unwrap();
    let groups = [(-1, Tier::Warm), (1000, Tier::Warm), (9, Tier::Cold), (i64::MAX >> 4, Tier::Cold)];
    let group = |place: i64| ChunkGroup::of(dimension, ChunkPos::new(place, -place.clamp(-5, 5), place));
    world.move_groups(&groups.map(|(place, tier)| (group(place), tier))).unwrap();
    let mut writes = WriteBatch::default();
    writes.put(Family::Meta, keys::damaged_key(Family::ColdChunks, &group(0).key(), &[1, 2, 3]), vec![1, 2, 3]);
    store.write(writes, Durability::Process).unwrap();
}

/// A world with these dimensions filled.
fn filled(dimensions: &[u64]) -> TestStore {
    let store = TestStore::default();
    let world = store.world();
    for (name, id) in NAMES.into_iter().zip(0..) {
        assert_eq!(world.open_dimension(name, &origin()), Ok(DimensionId(id)));
    }
    for id in dimensions {
        fill(&store, &world, DimensionId(*id));
    }
    store
}

/// All entries except the header, which counts sessions.
fn contents(store: &TestStore) -> Vec<(Family, KeyValue)> {
    store.contents().into_iter().filter(|(_, (key, _))| key != keys::HEADER).collect()
}

/// The entries after a finished removal: those of a world into whose dimension nothing was ever saved.
fn expected() -> Vec<(Family, KeyValue)> {
    let name = keys::dimension_key(NAMES[1]);
    contents(&filled(&[0, 2])).into_iter().filter(|(_, (key, _))| *key != name).collect()
}

fn all_there(world: &WorldStore, dimension: DimensionId) -> bool {
    let content = content(dimension);
    let column = |stored: LoadedColumn| (stored.column.chunks().len(), stored.block_ticks.len(), stored.entities.len());
    world.stored_tiles(dimension).unwrap().len() == content.tiles.len()
        && content.chunks.keys().all(|(_, pos)| {
            let mut loaded = world.load_batch(dimension, pos.column().batch(), &[pos.column()], -9..9).unwrap();
            column(loaded.remove(0)) == (1, 1, 1)
        })
}

#[test]
fn all_of_a_dimension_goes_and_nothing_else() {
    let expected = expected();
    for page in [1, 2, SMALL_PAGE, PAGE] {
        let store = filled(&[0, 1, 2]);
        let world = store.world();
        world.make_sparse(NETHER).unwrap();
        let before = store.contents().len();
        let mut told = Vec::new();
        let removed = world.remove_dimension_by(page, NAMES[1], |progress| {
            told.push(progress.done);
            ControlFlow::Continue(())
        });
        assert!(contents(&store) == expected, "with pages of {page}");
        // Every entry is counted except the name and the sparse mark.
        let entries = (before - 2 - store.contents().len()) as u64;
        assert_eq!(removed, Ok(Some(entries)));
        assert!(told.is_sorted_by(|a, b| a < b) && told.last() == Some(&entries), "{told:?}");
        assert!(all_there(&world, DimensionId(0)) && all_there(&world, DimensionId(2)));
    }
}

/// Promise, world format: The number of a dimension is never reused.
#[test]
fn the_name_is_free_again_and_the_number_is_not() {
    let store = filled(&[0, 1, 2]);
    for number in [3, 4] {
        let world = store.world();
        world.remove_dimension(NAMES[1], on()).unwrap();
        let unknown = world.unknown_dimension(NAMES[1]);
        assert_eq!(world.remove_dimension(NAMES[1], on()), Err(unknown));
        // Another origin is fine too: it is another dimension.
        let other = GeneratorIdentity { seed: number, ..origin() };
        let id = world.open_dimension(NAMES[1], &other).unwrap();
        assert_eq!(id, DimensionId(number));
        assert!(world.stored_tiles(id).unwrap().is_empty() && world.viewers(id).unwrap().is_empty());
        world.commit(&content(id), Durability::Process).unwrap();
        assert!(all_there(&store.world(), id));
    }
}

#[test]
fn an_unknown_name_changes_nothing() {
    let store = filled(&[0, 1, 2]);
    let world = store.world();
    let before = store.contents();
    for name in ["", "nethe", "nether ", "dimension:nether"] {
        let error = world.remove_dimension(name, on()).unwrap_err();
        assert_eq!(error, world.unknown_dimension(name));
        assert!(error.to_string().contains(&format!("{name:?}")), "{error}");
    }
    assert!(store.contents() == before);
}

#[test]
fn dimensions_are_listed_by_name() {
    let store = filled(&[]);
    let world = store.world();
    let dimension = |name: &str, id| StoredDimension {
        name: name.into(),
        id: DimensionId(id),
        generator: origin(),
        sparse: false,
        own_seed: None,
        being_removed: false,
    };
    let mut expected = vec![dimension("end", 2), dimension("nether", 1), dimension("overworld", 0)];
    assert_eq!(world.dimensions(), Ok(expected.clone()));
    world.commit(&content(NETHER), Durability::Process).unwrap();
    world.remove_dimension(NAMES[1], |_| ControlFlow::Break(())).unwrap();
    expected[1].being_removed = true;
    let world = store.world();
    assert_eq!(world.dimensions(), Ok(expected.clone()));
    assert_eq!([2, 1, 0].map(|id| world.has_dimension(DimensionId(id))), [Ok(true), Ok(false), Ok(true)]);
    world.remove_dimension(NAMES[1], on()).unwrap();
    assert_eq!(world.has_dimension(NETHER), Ok(false));
    expected.remove(1);
    assert_eq!(world.dimensions(), Ok(expected));
    assert_eq!(TestStore::default().world().dimensions(), Ok(Vec::new()));
    store.tamper(Family::Meta, &keys::dimension_key("end"), |value| value[0] = 9);
    let error = world.dimensions().unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { what: StoredItem::Dimension(of), .. } if of == "end"));
}

/// Checks that an interrupted removal left other dimensions unchanged and can be finished.
fn check_resumable(store: &TestStore, expected: &[(Family, KeyValue)], reached: &str) {
    let left = contents(store);
    assert!(expected.iter().all(|entry| left.contains(entry)), "something else is gone {reached}");
    let world = store.world();
    let is_listed = world.dimensions().unwrap().into_iter().find(|dimension| dimension.id == NETHER);
    match is_listed.map(|dimension| dimension.being_removed) {
        Some(true) => {
            let refused = StoreError::BeingRemoved { name: NAMES[1].into() };
            // The dimension is refused with any origin.
            for seed in [42, 43] {
                let opened = world.open_dimension(NAMES[1], &GeneratorIdentity { seed, ..origin() });
                assert_eq!(opened, Err(refused.clone()), "{reached}");
            }
        }
        Some(false) => {
            assert_eq!(world.open_dimension(NAMES[1], &origin()), Ok(NETHER), "{reached}");
            assert!(all_there(&world, NETHER), "it is not marked, but something is gone {reached}");
        }
        None => {
            assert!(left == expected, "the name is free, but something is left {reached}");
            return;
        }
    }
    let removed = world.remove_dimension_by(SMALL_PAGE, NAMES[1], on()).unwrap();
    assert!(removed.is_some());
    assert!(contents(store) == expected, "something is left {reached}");
}

#[test]
fn a_removal_may_end_after_any_write() {
    let expected = expected();
    let store = filled(&[0, 1, 2]);
    let mut ends = vec![store.snapshot()];
    let world = store.world();
    store.record_writes();
    world.remove_dimension_by(SMALL_PAGE, NAMES[1], on()).unwrap();
    ends.extend(store.take_history());
    // The initial state, the mark, three pages each of entities, heat, ticks, tiles, histories, summaries and pre-generations,
    // one of the chunks in each tier and of a damaged group, and the name.
    assert_eq!(ends.len(), 1 + 1 + 7 * 3 + 4 + 1);
    for (writes, end) in ends.into_iter().enumerate() {
        check_resumable(&TestStore::on(end), &expected, &format!("after write {writes}"));
    }
}

#[test]
fn a_removal_whose_write_fails_can_be_continued() {
    let expected = expected();
    for good_pages in 0.. {
        let store = filled(&[0, 1, 2]);
        let world = store.world();
        store.fail_writes(good_pages == 0);
        let mut pages = 0;
        // The first write is that of the mark.
        let removed = world.remove_dimension_by(SMALL_PAGE, NAMES[1], |_| {
            pages += 1;
            store.fail_writes(pages == good_pages);
            ControlFlow::Continue(())
        });
        store.fail_writes(false);
        if removed.is_ok() {
            assert!(good_pages == 26 && contents(&store) == expected);
            return;
        }
        assert!(matches!(removed, Err(StoreError::Backend { .. })), "{removed:?}");
        check_resumable(&store, &expected, &format!("after {good_pages} pages"));
    }
}

#[test]
fn a_stopped_removal_continues_where_it_was() {
    let expected = expected();
    let store = filled(&[0, 1, 2]);
    let world = store.world();
    let before = store.contents().len();
    let mut entries = 0;
    // One page at a time.
    for calls in 1.. {
        let mut gone = 0;
        let one_page = |progress: &Progress| {
            gone = progress.done;
            ControlFlow::Break(())
        };
        let removed = world.remove_dimension_by(SMALL_PAGE, NAMES[1], one_page).unwrap();
        entries += gone;
        if let Some(removed) = removed {
            assert!(calls == 26 && removed == 0);
            break;
        }
        assert!(gone > 0);
        check_resumable(&TestStore::on(store.snapshot()), &expected, &format!("after {calls} calls"));
    }
    assert!(contents(&store) == expected);
    assert_eq!(entries, (before - 1 - store.contents().len()) as u64);
}

#[test]
fn an_entity_goes_only_if_it_is_in_the_dimension() {
    let store = filled(&[0, 1, 2]);
    let world = store.world();
    // A stale key of an entity that is elsewhere, and one of a removed entity.
    let column = ColumnPos::new(70, 70);
    let mut writes = WriteBatch::default();
    for id in [Uuid::from_u128(2), Uuid::from_u128(777)] {
        writes.put(Family::Meta, keys::place_key(NETHER, column, id), Vec::new());
        writes.put(Family::Meta, keys::viewer_key(NETHER, id), Vec::new());
    }
    // A stale key of an entity that moved within the dimension.
    writes.put(Family::Meta, keys::place_key(NETHER, column, Uuid::from_u128(103)), Vec::new());
    store.write(writes, Durability::Process).unwrap();
    // Entity 101 left the dimension, and entity 3 entered it.
    let block = BlockPos::new(1, 2, 3);
    let moved = [entity(101, DimensionId(2), block), entity(3, NETHER, block)];
    let batch = SaveBatch {
        entities: moved.iter().map(|moved| (moved.id, Some(moved.clone()))).collect(),
        ..SaveBatch::default()
    };
    world.commit(&batch, Durability::Process).unwrap();
    // Entity 102 can no longer be read.
    store.tamper(Family::Entities, &keys::entity_key(Uuid::from_u128(102)), |value| value[0] = 99);

    world.remove_dimension_by(SMALL_PAGE, NAMES[1], on()).unwrap();
    let known = |id| world.entity(Uuid::from_u128(id)).unwrap().is_some();
    assert!(known(2) && known(101));
    assert!(![3, 100, 102, 103, 104, 105, 106].into_iter().any(known));
    let loaded = world.load_batch(DimensionId(2), BatchPos::new(0, 0), &[ColumnPos::new(0, 0)], -1..1).unwrap();
    assert!(loaded[0].entities.contains(&moved[0]));
    let left = |(_, (key, _)): &(Family, KeyValue)| {
        keys::parse_place_key(key).is_some_and(|(of, ..)| of == NETHER)
            || keys::parse_viewer_key(key).is_some_and(|(of, _)| of == NETHER)
    };
    assert!(!store.contents().iter().any(left));
}

#[test]
fn others_may_save_between_the_writes() {
    let store = filled(&[1]);
    let world = store.world();
    let mut saved = false;
    let removed = world.remove_dimension_by(SMALL_PAGE, NAMES[1], |_| {
        fill(&store, &world, DimensionId(0));
        fill(&store, &world, DimensionId(2));
        saved = true;
        ControlFlow::Continue(())
    });
    assert!(saved && removed.unwrap().is_some());
    assert!(contents(&store) == expected());
}

#[test]
fn two_removals_at_once_do_not_take_the_names_next_dimension() {
    let store = filled(&[0, 1, 2]);
    let world = store.world();
    let mut next = None;
    let removed = world.remove_dimension_by(SMALL_PAGE, NAMES[1], |_| {
        if next.is_none() {
            assert!(world.remove_dimension(NAMES[1], on()).unwrap().is_some());
            next = Some(world.open_dimension(NAMES[1], &origin()).unwrap());
        }
        ControlFlow::Continue(())
    });
    assert!(removed.unwrap().is_some());
    assert_eq!(next, Some(DimensionId(3)));
    assert_eq!(world.open_dimension(NAMES[1], &origin()), Ok(DimensionId(3)));
}

/// A disk that keeps only synced writes through a loss of power. A synced write does not make earlier ones durable.
#[derive(Default)]
struct ForgetfulDisk {
    now: MemoryStore,
    synced: Mutex<Vec<MemoryStore>>,
}

impl ForgetfulDisk {
    fn keep(&self, state: MemoryStore) {
        self.synced.lock().unwrap().push(state);
    }

    fn after_a_loss_of_power(&self) -> MemoryStore {
        self.synced.lock().unwrap().last().map(MemoryStore::snapshot).unwrap_or_default()
    }
}

impl KeyValueStore for ForgetfulDisk {
    fn path(&self) -> &Path {
        self.now.path()
    }

    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.now.get(family, key)
    }

    fn multi_get(&self, family: Family, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.now.multi_get(family, keys)
    }

    fn scan(&self, family: Family, range: Range<&[u8]>, limit: usize) -> Result<Vec<KeyValue>, StoreError> {
        self.now.scan(family, range, limit)
    }

    fn write(&self, batch: WriteBatch, durability: Durability) -> Result<(), StoreError> {
        if durability == Durability::Sync {
            let synced = self.after_a_loss_of_power();
            synced.write(batch.clone(), durability)?;
            self.keep(synced);
        }
        self.now.write(batch, durability)
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.keep(self.now.snapshot());
        Ok(())
    }
}

#[test]
fn the_name_is_never_free_before_all_else_is_durably_gone() {
    let expected = expected();
    let disk = Arc::new(ForgetfulDisk { now: filled(&[0, 1, 2]).snapshot(), ..ForgetfulDisk::default() });
    disk.sync().unwrap();
    let world = WorldStore::from_store(disk.clone()).unwrap();
    world.remove_dimension_by(SMALL_PAGE, NAMES[1], on()).unwrap();
    let states = std::mem::take(&mut *disk.synced.lock().unwrap());
    // The states at the beginning, and after the session, the mark, the final sync and the name.
    assert_eq!(states.len(), 5);
    for (number, state) in states.into_iter().enumerate() {
        let store = TestStore::on(state);
        check_resumable(&store, &expected, &format!("in durable state {number}"));
        assert!(contents(&store) == expected);
    }
}
