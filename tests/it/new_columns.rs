//! Regions are told of each new column once, and what they place there is saved together with that.

use crate::disk::Disk;
use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::{NewColumn, RegionColumns, SplitMix64};
use bevy_terrane::storage::{Access, MemoryStore, StorageConfig, WorldStore};
use bevy_terrane::view::{JobEnded, Pregeneration, RegionOrder};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The distance between the two places of the jumping sheep, in blocks.
const FAR: i64 = 3_200;

/// A sheep, with the column that it was placed on.
#[derive(Component, Clone, Debug, PartialEq, Serialize, Deserialize, TypePath)]
struct Sheep {
    home: (i64, i64),
    jumps: bool,
}

/// How often regions of this app were told of each column.
#[derive(Resource, Clone, Default)]
struct Told(Arc<Mutex<BTreeMap<ColumnPos, u32>>>);

impl Told {
    fn take(&self) -> BTreeMap<ColumnPos, u32> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// `true` if every second sheep jumps from place to place.
#[derive(Resource, Clone, Copy)]
struct Jumps(bool);

/// Places a sheep on each new column, and a block of stone on top of what is there: two if the region is told twice.
fn place_sheep(
    mut new: MessageReader<NewColumn>,
    (info, types, told, jumps): (Res<RegionInfo>, Res<BlockTypes>, Res<Told>, Res<Jumps>),
    mut blocks: RegionBlocks,
    mut commands: Commands,
) -> Result {
    for NewColumn { column } in new.read() {
        *told.0.lock().unwrap().entry(*column).or_default() += 1;
        let corner = column.min_block(0);
        let ground = blocks.surface(corner.x + 8, corner.z + 8).expect("the column is there");
        blocks.set_block(ground.offset(0, 1, 0), types.id("terrane:stone").expect("stone"))?;
        let jumps = jumps.0 && (column.x + column.z) % 2 == 0;
        commands.spawn((Sheep { home: (column.x, column.z), jumps }, Position::new(info.dimension, ground)));
    }
    Ok(())
}

/// Sheep that jump cross into another region.
fn jump(time: Res<Time>, mut sheep: Query<(&Sheep, &mut Position)>) {
    for (_, mut position) in sheep.iter_mut().filter(|(sheep, _)| sheep.jumps) {
        if time.elapsed().as_millis() / 50 % 5 == 0 {
            position.block.x += if position.block.x < FAR / 2 { FAR } else { -FAR };
        }
    }
}

fn world_with(plugin: TerranePlugin, jumps: Jumps) -> (App, Told) {
    let mut app = game(plugin);
    app.register_saved_component::<Sheep>().mirror_region_component::<Sheep>();
    let told = Told::default();
    let copy = told.clone();
    app.add_region_plugins(move |region| {
        region.insert_resource(copy.clone()).insert_resource(jumps).add_systems(RegionTick, (place_sheep, jump));
    });
    (app, told)
}

/// A world in lockstep with flat ground, without viewers.
fn flock(plugin: TerranePlugin) -> (App, DimensionId, Told) {
    let (mut app, told) = world_with(TerranePlugin { tick_mode: TickMode::Lockstep, ..plugin }, Jumps(false));
    let dimension = flat(&mut app);
    (app, dimension, told)
}

/// The columns of the stored world, each with its sheep and the height of its pile, and whether it is new.
fn stored(world: &WorldStore, dimension: DimensionId) -> BTreeMap<ColumnPos, (usize, i64, bool)> {
    let mut found = BTreeMap::new();
    for (tile, masks) in world.stored_tiles(dimension).unwrap() {
        let history = world.history(dimension, tile).unwrap();
        for (batch, mask) in tile.batches().zip(masks) {
            let columns: Vec<_> = (0..16).filter(|bit| mask >> bit & 1 == 1).map(|bit| batch.column(bit)).collect();
            for loaded in world.load_batch(dimension, batch, &columns, -4..20).unwrap() {
                let column = loaded.column.pos();
                let pile = loaded.column.surface(8, 8).expect("ground");
                found.insert(column, (loaded.entities.len(), pile, history.is_new(column)));
            }
        }
    }
    found
}

/// Checks that sheep and piles are where a region was told of the column, and nowhere else. Returns the numbers of old and new
/// columns.
fn check(config: &StorageConfig, when: &str) -> (usize, usize) {
    let Ok(world) = WorldStore::open_existing(config, Access::Read) else { return (0, 0) };
    let Some(dimension) = world.dimensions().unwrap().into_iter().map(|it| it.id).next() else { return (0, 0) };
    let found = stored(&world, dimension);
    for (column, found) in &found {
        let is_new = found.2;
        let expected = if is_new { (0, 0, true) } else { (1, 1, false) };
        assert_eq!(*found, expected, "sheep, pile and whether {column} is new, {when}");
    }
    let new = found.values().filter(|(.., is_new)| *is_new).count();
    (found.len() - new, new)
}

fn once(told: BTreeMap<ColumnPos, u32>) -> BTreeSet<ColumnPos> {
    assert!(told.values().all(|times| *times == 1), "{told:?}");
    told.into_keys().collect()
}

fn in_store(store: &Arc<MemoryStore>) -> TerranePlugin {
    lockstep_on(store)
}

/// The columns within the radius. Those of the same batches come along with them.
fn disc(radius: i64) -> BTreeSet<ColumnPos> {
    ground::disc(ColumnPos::new(0, 0), radius)
}

/// Promise, ground: A region is told of each new column once, however often it is loaded.
#[test]
fn generated_columns_are_told_once_and_never_again() {
    let store = Arc::new(MemoryStore::new());
    let (mut app, dimension, told) = flock(in_store(&store));
    let viewer = viewer(&mut app, dimension, 0.0, 0.0, 4);
    start(&mut app);
    update(&mut app, 20);
    let near = once(told.take());
    assert!(near.is_superset(&disc(4)));
    // Columns that are evicted and come back, in this session and in the next one.
    move_viewer(&mut app, viewer, 160.0, 0.0);
    update(&mut app, 30);
    move_viewer(&mut app, viewer, 0.0, 0.0);
    update(&mut app, 30);
    let more = once(told.take());
    assert!(!more.is_empty() && more.is_disjoint(&near));
    drop(app);
    let (mut app, dimension, told) = flock(in_store(&store));
    crate::support::viewer(&mut app, dimension, 0.0, 0.0, 4);
    start(&mut app);
    update(&mut app, 20);
    assert_eq!(told.take(), BTreeMap::new());
    drop(app);
    let (old, new) = check(&StorageConfig::Custom(store), "at the end");
    assert_eq!((old, new), (near.len() + more.len(), 0));
}

/// Promise, ground: A region is told of pre-generated columns once, when it first gets them.
#[test]
fn pregenerated_columns_are_told_when_a_region_gets_them() {
    let store = Arc::new(MemoryStore::new());
    let (mut app, dimension, told) = flock(in_store(&store));
    listen::<JobEnded>(&mut app);
    let area = ColumnArea::Square { center: ColumnPos::new(0, 0), radius: 8 };
    app.world_mut().spawn(Pregeneration { dimension, area });
    start(&mut app);
    update_until(&mut app, "it is done", |world| !world.resource::<Heard<JobEnded>>().0.is_empty());
    drop(app);
    assert_eq!(told.take(), BTreeMap::new(), "no region had them");
    assert_eq!(check(&StorageConfig::Custom(store.clone()), "after the job"), (0, 17 * 17));

    let (mut app, dimension, told) = flock(in_store(&store));
    viewer(&mut app, dimension, 0.0, 0.0, 4);
    start(&mut app);
    update(&mut app, 20);
    let near = once(told.take());
    assert!(near.is_superset(&disc(4)));
    drop(app);
    assert_eq!(check(&StorageConfig::Custom(store), "at the end"), (near.len(), 17 * 17 - near.len()));
}

/// Promise, ground: A column that is evicted before its region ticks is as new as before.
#[test]
fn a_column_that_leaves_before_a_tick_is_told_when_it_comes_back() {
    let store = Arc::new(MemoryStore::new());
    let (mut app, dimension, told) = flock(in_store(&store));
    let near = viewer(&mut app, dimension, 0.0, 0.0, 0);
    start(&mut app);
    update(&mut app, 10);
    assert_eq!(once(told.take()), disc(0));
    order(&mut app, dimension, ColumnPos::new(0, 0), RegionOrder::Pause);
    update(&mut app, 5);
    let more = viewer(&mut app, dimension, 0.0, 0.0, 3);
    update(&mut app, 20);
    save(&mut app);
    app.world_mut().despawn(more);
    update(&mut app, 30);
    assert_eq!(told.take(), BTreeMap::new(), "it did not tick");
    assert_eq!(check(&StorageConfig::Custom(store.clone()), "while it is paused"), (1, disc(3).len() - 1));
    order(&mut app, dimension, ColumnPos::new(0, 0), RegionOrder::Resume);
    app.world_mut().get_mut::<Viewer>(near).unwrap().radius = 3;
    update(&mut app, 30);
    assert_eq!(once(told.take()).len(), disc(3).len() - 1);
    drop(app);
    assert_eq!(check(&StorageConfig::Custom(store), "at the end"), (disc(3).len(), 0));
}

/// A region that generates a column within a tick hears of it when the column's entities are there too.
#[test]
fn a_column_that_a_region_fetches_is_told_once() {
    let store = Arc::new(MemoryStore::new());
    let (mut app, dimension, told) = flock(in_store(&store));
    viewer(&mut app, dimension, 0.0, 0.0, 0);
    start(&mut app);
    update(&mut app, 10);
    told.take();
    let beside = BlockPos::new(16, 0, 0);
    ask_region(&mut app, dimension, BlockPos::new(0, 0, 0), move |mut columns: ResMut<RegionColumns>| {
        assert!(columns.load(beside).is_ok());
    });
    update(&mut app, 30);
    assert_eq!(once(told.take()), BTreeSet::from([beside.column()]));
    drop(app);
    assert_eq!(check(&StorageConfig::Custom(store), "at the end"), (2, 0));
}

/// Promise, ground: If a region halts before it was saved, its new columns are told again, without what was placed.
#[test]
fn a_region_that_halts_before_its_save_is_told_again() {
    let store = Arc::new(MemoryStore::new());
    let saving = SaveSettings::every(Duration::from_secs(3_600));
    let (mut app, dimension, told) = flock(TerranePlugin { saving, ..in_store(&store) });
    viewer(&mut app, dimension, 0.0, 0.0, 2);
    start(&mut app);
    update(&mut app, 10);
    assert_eq!(once(told.take()), disc(2));
    order(&mut app, dimension, ColumnPos::new(0, 0), RegionOrder::Halt);
    update(&mut app, 10);
    order(&mut app, dimension, ColumnPos::new(0, 0), RegionOrder::Restart);
    update(&mut app, 30);
    assert_eq!(once(told.take()), disc(2), "nothing of the first time was saved");
    save(&mut app);
    order(&mut app, dimension, ColumnPos::new(0, 0), RegionOrder::Halt);
    update(&mut app, 10);
    order(&mut app, dimension, ColumnPos::new(0, 0), RegionOrder::Restart);
    update(&mut app, 30);
    assert_eq!(told.take(), BTreeMap::new(), "it was saved");
    drop(app);
    assert_eq!(check(&StorageConfig::Custom(store), "at the end"), (disc(2).len(), 0));
}

/// In a sparse dimension each column is told once, with its first slab.
#[test]
fn a_sparse_column_is_told_with_its_first_part() {
    let (mut app, told) = world_with(lockstep(), Jumps(false));
    let dimension = spawn_dimension(&mut app, Dimension::new("tower", Flat::new()).with_height(-10_000..10_000));
    let above = Viewer::in_dimension(dimension).with_radius(1).with_vertical_radius(1);
    let viewer = app.world_mut().spawn((above, Position::new(DimensionId::default(), BlockPos::new(0, 0, 0)))).id();
    start(&mut app);
    update(&mut app, 20);
    assert_eq!(once(told.take()), disc(1));
    for y in [4_000, 0, -4_000] {
        app.world_mut().get_mut::<Position>(viewer).unwrap().block.y = y;
        update(&mut app, 30);
    }
    assert_eq!(told.take(), BTreeMap::new());
}

/// The mirrored sheep of each column and the height of its pile, for the columns around both places.
fn mirrored(app: &mut App, dimension: DimensionId, radius: i64) -> BTreeMap<ColumnPos, (usize, i64)> {
    let world = app.world_mut();
    let mut sheep: BTreeMap<(i64, i64), usize> = BTreeMap::new();
    for found in world.query_filtered::<&Sheep, With<Mirror>>().iter(world) {
        *sheep.entry(found.home).or_default() += 1;
    }
    let columns = disc(radius).into_iter().flat_map(|at| [at, ColumnPos::new(at.x + FAR / 16, at.z)]);
    let published = world.resource::<PublishedColumns>();
    let pile = |at| published.column(dimension, at).and_then(|it| it.surface(8, 8)).unwrap_or(i64::MIN);
    columns.map(|at| (at, (sheep.remove(&(at.x, at.z)).unwrap_or_default(), pile(at)))).collect()
}

fn two_places(plugin: TerranePlugin, radius: u32) -> (App, DimensionId, [Entity; 2]) {
    let (mut app, _) = world_with(TerranePlugin { tick_mode: TickMode::Lockstep, ..plugin }, Jumps(true));
    let dimension = flat(&mut app);
    let viewers = [0, FAR].map(|x| viewer(&mut app, dimension, x as f32, 0.0, radius));
    start(&mut app);
    (app, dimension, viewers)
}

/// Checks that in the world of this disk, each column gets a sheep once, whatever was saved of it.
fn check_flock(disk: &Disk, when: &str) {
    let (mut app, dimension, _) = two_places(disk.plugin(), 5);
    update(&mut app, 24);
    for (column, found) in mirrored(&mut app, dimension, 5) {
        assert_eq!(found, (1, 1), "sheep and pile of {column}, {when}");
    }
}

/// Plays in lockstep, with other times of turns and commits for each seed. Viewers walk, sheep jump from region to region, and
/// sometimes a region halts and is restarted. Returns the number of checked moments.
fn graze(seed: u64) -> u64 {
    let disk = Disk::default();
    let mut random = SplitMix64::new(seed);
    let period = Duration::from_millis([100, 350, 900, 3_600_000][seed as usize % 4]);
    let plugin = TerranePlugin { saving: SaveSettings::every(period), seed, ..disk.plugin() };
    let (mut app, dimension, viewers) = two_places(plugin, 2);
    disk.keep_copies();
    let (mut moments, mut halted) = (0, None::<(ColumnPos, u32)>);
    for tick in 0..60 {
        if random.below(9) == 0 {
            app.world_mut().write_message(SaveWorld { request: u64::from(tick) });
        }
        let place = random.below(2) as usize;
        if random.below(5) == 0 {
            let x = place as i64 * FAR + (i64::from(random.below(7)) - 3) * 16;
            move_viewer(&mut app, viewers[place], x as f32, 0.0);
        }
        match halted {
            None if tick > 10 && random.below(12) == 0 => {
                let column = ColumnPos::new(place as i64 * FAR / 16, 0);
                if region_at(app.world(), dimension, column).is_some() {
                    order(&mut app, dimension, column, RegionOrder::Halt);
                    halted = Some((column, tick + 6));
                }
            }
            Some((column, until)) if until <= tick && region_at(app.world(), dimension, column).is_some() => {
                order(&mut app, dimension, column, RegionOrder::Restart);
                halted = None;
            }
            _ => {}
        }
        app.update();
        for copy in disk.take_copies().into_iter().filter(|_| random.below(3) == 0) {
            check_flock(&copy, &format!("seed {seed}, after tick {tick}"));
            moments += 1;
        }
    }
    drop(app);
    check_flock(&disk, &format!("seed {seed}, at the end"));
    moments + 1
}

/// Promise, crashes: After a crash at any moment, what a game places on new columns is there exactly once.
#[test]
fn after_a_crash_each_new_column_gets_its_sheep_once() {
    let moments: u64 = (0..rounds(4)).map(graze).sum();
    assert!(moments > 5 * rounds(4), "only {moments} moments");
}

#[cfg(feature = "rocksdb")]
mod killed {
    use super::*;
    use crate::support::process::{here, kill, process};
    use bevy_terrane::plugin::SaveDurability;
    use std::fs;
    use std::ops::ControlFlow;
    use std::path::Path;

    /// The line that the process writes when its ground is there.
    const WALKS: &str = "walks";

    fn at(path: &Path) -> StorageConfig {
        StorageConfig::Path(path.join("world"))
    }

    /// Runs only in the process that `whenever_it_is_killed_each_new_column_gets_its_sheep_once` starts and kills; otherwise it
    /// does nothing.
    #[test]
    fn process_that_places_sheep() {
        let Some(path) = here() else { return };
        let round: i64 = fs::read_to_string(path.join("round")).unwrap().parse().unwrap();
        let saving =
            SaveSettings { durability: SaveDurability::AtShutdown, ..SaveSettings::every(Duration::from_millis(40)) };
        let (mut app, _) = world_with(
            TerranePlugin {
                clock: DimensionClock { ticks_per_second: 200.0, ..default() },
                saving,
                ..TerranePlugin::at(path.join("world"))
            },
            Jumps(false),
        );
        let dimension = flat(&mut app);
        let first = round * 64;
        let walking = viewer(&mut app, dimension, 0.0, first as f32, 3);
        start(&mut app);
        update_until(&mut app, "the ground is there", |world| {
            block_at(world, dimension, BlockPos::new(0, 0, first)).is_some()
        });
        println!("\n{WALKS}");
        for step in 0.. {
            move_viewer(&mut app, walking, 0.0, (first + step * 4) as f32);
            app.update();
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// `TERRANE_ROUNDS=10` kills 200 times.
    ///
    /// Promise, crashes: Whenever the process is killed, what a game places on new columns is there exactly once.
    #[test]
    fn whenever_it_is_killed_each_new_column_gets_its_sheep_once() {
        let mut random = SplitMix64::new(rounds(20));
        let folder = tempfile::tempdir().unwrap();
        let mut torn = 0;
        for round in 0..rounds(20) {
            fs::write(folder.path().join("round"), round.to_string()).unwrap();
            let test = "new_columns::killed::process_that_places_sheep";
            let (mut process, mut lines) = process(test, folder.path());
            assert!(lines.any(|line| line == WALKS), "after {round} kills");
            std::thread::sleep(Duration::from_micros(random.below(150_000).into()));
            kill(&mut process);
            let (old, new) = check(&at(folder.path()), &format!("after {} kills", round + 1));
            torn += u64::from(old > 0 && new > 0);
        }
        assert!(torn > 0, "no kill came between the generation of a column and its first save");
        let report = WorldStore::open_existing(&at(folder.path()), Access::Read).unwrap();
        let report = report.verify(|_| ControlFlow::Continue(())).unwrap();
        assert!(report.damage.is_empty(), "{:?}", report.damage);
    }
}
