//! Dimensions whose heights are extended: stored columns are generated for the rest when they load.

use crate::disk::Disk;
use crate::support::ground::disc;
use crate::support::*;
use bevy_terrane::chunk::Chunk;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::{RegionColumns, SplitMix64};
use bevy_terrane::space::HeightSet;
use bevy_terrane::storage::{Access, Family, KeyValueStore, MemoryStore, StorageConfig, WorldStore};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Stone everywhere. Counts how often each column was generated.
#[derive(Clone, Default)]
struct Rock(Arc<Mutex<BTreeMap<ColumnPos, u32>>>);

impl Generator for Rock {
    fn identity(&self) -> GeneratorIdentity {
        GeneratorIdentity::new("rock", 1, 0)
    }

    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        *self.0.lock().unwrap().entry(request.column).or_default() += 1;
        let (stone, Range { start, end }) = (request.block("terrane:stone")?, request.heights.clone());
        let mut column = Column::new(request.column);
        for y in start >> 4..=(end - 1) >> 4 {
            let is_in = |height: usize| (start..end).contains(&((y << 4) + height as i64));
            let chunk = Chunk::from_fn(|[_, height, _]| if is_in(height) { stone } else { BlockId::AIR });
            column.set_chunk(y, Arc::new(chunk));
        }
        Ok(column)
    }
}

impl Rock {
    fn take(&self) -> BTreeSet<ColumnPos> {
        let made = std::mem::take(&mut *self.0.lock().unwrap());
        assert!(made.values().all(|times| *times == 1), "{made:?}");
        made.into_keys().collect()
    }
}

/// A world of rock with these heights and a viewer.
fn cliff(plugin: TerranePlugin, rock: &Rock, heights: Range<i64>, radius: u32) -> (App, DimensionId) {
    let mut app = game(TerranePlugin { tick_mode: TickMode::Lockstep, ..plugin });
    let dimension = spawn_dimension(&mut app, Dimension::new("cliff", rock.clone()).with_height(heights));
    viewer(&mut app, dimension, 0.0, 0.0, radius);
    start(&mut app);
    update(&mut app, 20);
    (app, dimension)
}

fn around(radius: i64) -> BTreeSet<ColumnPos> {
    disc(ColumnPos::new(0, 0), radius)
}

/// The heights at which the middle of a published column is not air.
fn seen(app: &App, dimension: DimensionId, column: ColumnPos) -> HeightSet {
    let published = app.world().resource::<PublishedColumns>().column(dimension, column).expect("it is published");
    (-200..200).filter(|y| published.block(column.min_block(*y).offset(8, 0, 8)) != BlockId::AIR).collect()
}

#[track_caller]
fn expect_rock(app: &App, dimension: DimensionId, radius: i64, heights: Range<i64>) {
    for column in around(radius) {
        assert_eq!(seen(app, dimension, column), heights.clone().into(), "{column}");
    }
}

fn set(app: &mut App, dimension: DimensionId, position: BlockPos, name: &str) {
    let block = id_of(app.world(), name);
    app.world_mut().write_message(SetBlock { dimension, position, block });
    update(app, 4);
}

/// Promise, ground: After the heights of a dimension were extended, stored columns are generated for the rest when they load.
#[test]
fn stored_columns_are_generated_for_new_heights_when_they_load() {
    let store = Arc::new(MemoryStore::new());
    let rock = Rock::default();
    let (mut app, dimension) = cliff(lockstep_on(&store), &rock, 0..37, 3);
    expect_rock(&app, dimension, 3, 0..37);
    let first = rock.take();
    assert!(first.is_superset(&around(3)));
    let (hole, lamp) = (BlockPos::new(8, 3, 8), BlockPos::new(9, 36, 9));
    set(&mut app, dimension, hole, "terrane:air");
    set(&mut app, dimension, lamp, "terrane:sand");
    drop(app);

    // Down and up, in the middle of chunks. The columns that are not loaded stay as they are.
    let (app, dimension) = cliff(lockstep_on(&store), &rock, -70..60, 1);
    let near = rock.take();
    assert!(near.is_superset(&around(1)) && near.len() < first.len());
    for column in around(1) {
        let mut expected = HeightSet::from(-70..60);
        if column == hole.column() {
            expected.remove(3..4);
        }
        assert_eq!(seen(&app, dimension, column), expected, "{column}");
    }
    assert_eq!(block_at(app.world(), dimension, lamp), Some(id_of(app.world(), "terrane:sand")));
    assert_eq!(block_at(app.world(), dimension, lamp.offset(0, 1, 0)), Some(id_of(app.world(), "terrane:stone")));
    drop(app);

    // Each is extended once.
    let (mut app, dimension) = cliff(lockstep_on(&store), &rock, -70..60, 4);
    let more = rock.take();
    assert!(more.is_disjoint(&near) && more.is_superset(&(&first - &near)));
    set(&mut app, dimension, hole, "terrane:stone");
    expect_rock(&app, dimension, 4, -70..60);
    drop(app);
    let (app, dimension) = cliff(lockstep_on(&store), &rock, -70..60, 4);
    assert_eq!(rock.take(), BTreeSet::new());
    expect_rock(&app, dimension, 4, -70..60);
    drop(app);

    // Smaller heights show less and remove nothing. Columns that are made meanwhile are extended later.
    let (app, dimension) = cliff(lockstep_on(&store), &rock, 0..16, 7);
    let outer = rock.take();
    assert!(!outer.is_empty() && outer.is_disjoint(&near) && outer.is_disjoint(&more));
    drop(app);
    let (app, _) = cliff(lockstep_on(&store), &rock, -70..60, 7);
    assert_eq!(rock.take(), outer);
    expect_rock(&app, dimension, 7, -70..60);
    drop(app);
    verify(&StorageConfig::Custom(store));
}

/// A region that fetches a stored column within a tick sees it with the new heights.
#[test]
fn a_region_fetches_a_column_with_the_new_heights() {
    let store = Arc::new(MemoryStore::new());
    let rock = Rock::default();
    drop(cliff(lockstep_on(&store), &rock, 0..32, 3));
    rock.take();
    let (mut app, dimension) = cliff(lockstep_on(&store), &rock, -16..48, 0);
    let beside = BlockPos::new(24, -10, 8);
    let low = ask_region(&mut app, dimension, BlockPos::new(0, 0, 0), move |mut columns: ResMut<RegionColumns>| {
        columns.load(beside).is_ok() && columns.block(beside).is_ok_and(|block| block != BlockId::AIR)
    });
    assert!(low);
    update(&mut app, 10);
    assert_eq!(rock.take(), [ColumnPos::new(0, 0), beside.column()].into());
    assert_eq!(seen(&app, dimension, beside.column()), (-16..48).into());
    drop(app);
    let (app, dimension) = cliff(lockstep_on(&store), &rock, -16..48, 1);
    assert_eq!(rock.take().len(), 3, "the fetched column was saved with its new part");
    expect_rock(&app, dimension, 1, -16..48);
}

/// The whole content of a world, without what each session changes.
fn content(store: &MemoryStore) -> BTreeMap<(Family, Vec<u8>), Vec<u8>> {
    let mut found = BTreeMap::new();
    for family in Family::ALL {
        let entries = store.scan(family, &[][..]..&[u8::MAX; 64][..], usize::MAX).unwrap();
        found.extend(entries.into_iter().map(|(key, value)| ((family, key), value)));
    }
    let is_of_session = |key: &[u8]| {
        [&b"header"[..], b"play time", b"clock:", b"days:", b"heat:", b"cooling:", b"adopted"]
            .iter()
            .any(|kind| key.starts_with(kind))
    };
    found.retain(|(family, key), _| *family != Family::Meta || !is_of_session(key));
    found
}

/// A world as versions before the history of columns left it.
fn without_history(store: &MemoryStore) {
    use bevy_terrane::storage::{Durability, WriteBatch};
    let mut writes = WriteBatch::default();
    for ((family, key), _) in content(store) {
        if key.starts_with(b"history:") || key.starts_with(b"heights:") {
            writes.delete(family, key);
        }
    }
    store.write(writes, Durability::Sync).unwrap();
}

/// Promise, world format: A world of an older version counts as generated for the heights of its first opening, and stays as it is.
#[test]
fn an_older_world_counts_as_generated_for_the_heights_of_its_first_opening() {
    let store = Arc::new(MemoryStore::new());
    let rock = Rock::default();
    drop(cliff(lockstep_on(&store), &rock, 0..32, 2));
    without_history(&store);
    rock.take();
    let before = content(&store);
    // The heights were extended by an older version. Nothing in the world changes because it is loaded.
    let (app, dimension) = cliff(lockstep_on(&store), &rock, -16..48, 2);
    expect_rock(&app, dimension, 2, 0..32);
    drop(app);
    assert_eq!((rock.take(), content(&store)), (BTreeSet::new(), before.clone()));

    // The first change brings the heights along, and only those.
    let (mut app, dimension) = cliff(lockstep_on(&store), &rock, -16..48, 2);
    set(&mut app, dimension, BlockPos::new(8, 40, 8), "terrane:sand");
    drop(app);
    let after = content(&store);
    let new: Vec<_> = after.keys().filter(|key| !before.contains_key(*key)).collect();
    assert!(new.iter().any(|(_, key)| key.starts_with(b"heights:")), "{new:?}");
    assert!(new.iter().all(|(family, key)| *family == Family::Chunks || key.starts_with(b"heights:")), "{new:?}");
    assert_eq!(before.keys().filter(|key| after[*key] != before[*key]).count(), 1, "the summary of that column");

    let (app, dimension) = cliff(lockstep_on(&store), &rock, -32..48, 2);
    for column in around(2) {
        let mut expected = HeightSet::from(-32..-16);
        expected.insert(0..32);
        if column == ColumnPos::new(0, 0) {
            expected.insert(40..41);
        }
        assert_eq!(seen(&app, dimension, column), expected, "{column}");
    }
}

fn verify(config: &StorageConfig) {
    let world = WorldStore::open_existing(config, Access::Read).unwrap();
    let verified = world.verify(|_| std::ops::ControlFlow::Continue(())).unwrap();
    assert!(verified.damage.is_empty(), "{:?}", verified.damage);
}

/// Checks that each stored column has rock or sand exactly at the heights for which it was generated. Returns the sand and the
/// number of different heights for which columns were generated.
fn check(config: &StorageConfig, when: &str) -> (BTreeSet<BlockPos>, usize) {
    let Ok(world) = WorldStore::open_existing(config, Access::Read) else { return Default::default() };
    let Some(dimension) = world.dimensions().unwrap().into_iter().map(|it| it.id).next() else {
        return Default::default();
    };
    let sand = world.registry_lists().unwrap().blocks.iter().position(|block| block.name == "terrane:sand");
    let (mut found, mut heights) = (BTreeSet::new(), HashSet::new());
    for (tile, masks) in world.stored_tiles(dimension).unwrap() {
        let first = world.first_heights(dimension).unwrap().expect("they are stored with the first column");
        let history = world.history(dimension, tile).unwrap();
        for (batch, mask) in tile.batches().zip(masks) {
            let columns: Vec<_> = (0..16).filter(|bit| mask >> bit & 1 == 1).map(|bit| batch.column(bit)).collect();
            for loaded in world.load_batch(dimension, batch, &columns, -30..30).unwrap() {
                let column = loaded.column.pos();
                let made = history.heights(column).cloned().unwrap_or_else(|| first.clone().into());
                let at = |y: i64| loaded.column.block(column.min_block(y).offset(8, 0, 8));
                let there: HeightSet = (-480..480).filter(|y| at(*y) != BlockId::AIR).collect();
                assert_eq!(there, made, "the heights of {column}, {when}");
                let sand = sand.map(|sand| BlockId::new(sand as u32));
                found.extend(made.iter().filter(|y| Some(at(*y)) == sand).map(|y| column.min_block(y).offset(8, 0, 8)));
                heights.insert(made);
            }
        }
    }
    (found, heights.len())
}

/// The heights of a session. They grow and shrink, in steps of half a chunk.
fn heights_of(session: u64) -> Range<i64> {
    let (down, up) = (session.wrapping_mul(7) % 20, session.wrapping_mul(3) % 20);
    -8 * down as i64..16 + 8 * up as i64
}

/// Puts blocks into the middle of each of these columns, at a height that every session has.
fn strew(app: &mut App, dimension: DimensionId, name: &str, columns: impl IntoIterator<Item = ColumnPos>, height: i64) {
    let block = id_of(app.world(), name);
    for column in columns {
        let position = column.min_block(height).offset(8, 0, 8);
        app.world_mut().write_message(SetBlock { dimension, position, block });
    }
}

/// Promise, crashes: After a crash at any moment, a column has all of the heights that it was generated for.
#[test]
fn a_crash_leaves_each_column_whole_at_its_old_or_its_new_heights() {
    let (mut moments, mut random) = (0, SplitMix64::new(rounds(6)));
    let mut disk = Disk::default();
    for session in 0..rounds(6) {
        let saving = SaveSettings::every(Duration::from_millis([100, 350][session as usize % 2]));
        let plugin = TerranePlugin { saving, ..disk.plugin() };
        disk.keep_copies();
        let (mut app, dimension) = cliff(plugin, &Rock::default(), heights_of(session), 1 + session as u32 % 4);
        let mut crashed = None;
        for tick in 0..20 {
            let placed = around(1).into_iter().filter(|_| random.below(4) == 0).collect::<Vec<_>>();
            // Sand, and rock again, so that there is always something to save.
            let name = ["terrane:sand", "terrane:stone"][random.below(2) as usize];
            strew(&mut app, dimension, name, placed, i64::from(random.below(16)));
            app.update();
            for copy in disk.take_copies() {
                check(&copy.storage(), &format!("session {session}, tick {tick}"));
                moments += 1;
                if random.below(8) == 0 {
                    crashed = Some(copy);
                }
            }
        }
        drop(app);
        let (sand, _) = check(&disk.storage(), &format!("after session {session}"));
        assert!(!sand.is_empty() || session < 2);
        // The next session continues from the end, or from a crash.
        disk = crashed.unwrap_or_else(|| disk.copy());
    }
    assert!(moments > 5 * rounds(6), "only {moments} moments");
}

#[cfg(feature = "rocksdb")]
mod killed {
    use super::*;
    use crate::support::process::{here, kill, process};
    use bevy_terrane::plugin::SaveDurability;
    use std::fs;
    use std::path::Path;

    /// The line that the process writes when its ground is there.
    const WALKS: &str = "walks";

    fn at(path: &Path) -> StorageConfig {
        StorageConfig::Path(path.join("world"))
    }

    /// Runs only in the process that `whenever_it_is_killed_each_column_is_whole` starts and kills; otherwise it does nothing.
    #[test]
    fn process_whose_heights_change() {
        let Some(path) = here() else { return };
        let round: u64 = fs::read_to_string(path.join("round")).unwrap().parse().unwrap();
        let saving =
            SaveSettings { durability: SaveDurability::AtShutdown, ..SaveSettings::every(Duration::from_millis(40)) };
        let mut app = game(TerranePlugin {
            clock: DimensionClock { ticks_per_second: 200.0, ..default() },
            saving,
            ..TerranePlugin::at(path.join("world"))
        });
        let rock = Dimension::new("cliff", Rock::default()).with_height(heights_of(round));
        let dimension = spawn_dimension(&mut app, rock);
        let first = round as i64 * 64 % 640;
        let walking = viewer(&mut app, dimension, first as f32, 0.0, 2);
        start(&mut app);
        let here = BlockPos::new(first, 0, 0);
        update_until(&mut app, "the ground is there", |world| block_at(world, dimension, here).is_some());
        println!("\n{WALKS}");
        for step in 0_i64.. {
            let x = (first + step * 4) % 640;
            move_viewer(&mut app, walking, x as f32, 0.0);
            strew(&mut app, dimension, "terrane:sand", [ColumnPos::new(x >> 4, 0)], (step + round as i64) % 16);
            app.update();
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// `TERRANE_ROUNDS=10` kills 200 times.
    ///
    /// Promise, crashes: Whenever the process is killed, a column has all of the heights that it was generated for, and everything
    /// that was built there.
    #[test]
    fn whenever_it_is_killed_each_column_is_whole() {
        let mut random = SplitMix64::new(rounds(20));
        let folder = tempfile::tempdir().unwrap();
        let (mut known, mut most) = (BTreeSet::new(), 0);
        for round in 0..rounds(20) {
            fs::write(folder.path().join("round"), round.to_string()).unwrap();
            let test = "extended_heights::killed::process_whose_heights_change";
            let (mut process, mut lines) = process(test, folder.path());
            assert!(lines.any(|line| line == WALKS), "after {round} kills");
            std::thread::sleep(Duration::from_micros(random.below(150_000).into()));
            kill(&mut process);
            let (sand, heights) = check(&at(folder.path()), &format!("after {} kills", round + 1));
            assert!(sand.is_superset(&known), "saved sand is lost: {:?}", &known - &sand);
            known = sand;
            most = most.max(heights);
        }
        assert!(known.len() > 20 && most > 2, "{} grains, {most} different heights", known.len());
        verify(&at(folder.path()));
    }
}
