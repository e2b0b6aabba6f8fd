//! A world's folder that an earlier version of this crate wrote can be opened, and everything in it is there.
//!
//! `tests/fixtures/README.md` describes how the folder in `tests/fixtures` was made.

use crate::support::folder::{copy_folder, files};
use crate::support::ground::disc;
use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::snapshot::StoredSnapshot;
use bevy_terrane::storage::{Access, StorageConfig, StoredBlockTick, WorldStore};
use bevy_terrane::view::{
    Arena, ArenaState, ArenaStatus, CaptureSnapshot, ControlJob, JobEnded, JobOrder, JobProgress, JobState, Jobs,
    LogIn, Pacing, PlayerLoggedIn, Pregeneration,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use uuid::Uuid;

const FIXTURE: &str = "tests/fixtures/world-folder-1";
const OVERWORLD: DimensionId = DimensionId(0);
const TOWER: DimensionId = DimensionId(1);
const CHEST: BlockPos = BlockPos::new(3, 10, -5);
/// A place high up in the sparse dimension.
const LAMP: BlockPos = BlockPos::new(1, 40, 1);
const GUARD: Uuid = Uuid::from_u128(7);
const ARENA: BlockBox = BlockBox { min: BlockPos::new(-2, 20, -2), max: BlockPos::new(6, 26, 6) };
/// A block in the stored arena that is not in the world.
const PILLAR: BlockPos = BlockPos::new(2, 22, 2);
const AREA: ColumnArea = ColumnArea::Square { center: ColumnPos::new(9, -9), radius: 6 };

/// Its name in the world is the same in any program that contains this file.
#[derive(Component, Clone, Debug, PartialEq, Serialize, Deserialize, TypePath)]
#[type_path = "game"]
struct Guard(String);

/// The game of the world.
struct Game {
    app: App,
    overworld: DimensionId,
    tower: DimensionId,
}

impl Game {
    fn start(folder: &Path) -> Self {
        Self::start_with(folder, |_| {})
    }

    fn start_with(folder: &Path, add: impl FnOnce(&mut App)) -> Self {
        let mut app = game(TerranePlugin {
            tick_mode: TickMode::Lockstep,
            pacing: Pacing { pregeneration: Some(16), ..default() },
            ..TerranePlugin::at(folder)
        });
        app.register_block_component(BlockComponent::fixed::<u32>("game:lock")).unwrap();
        app.register_block_component(BlockComponent::variable("game:items")).unwrap();
        let chest = BlockType::new("game:chest").with_component("game:lock").with_component("game:items");
        app.register_block(chest).unwrap();
        app.register_saved_component::<Guard>().mirror_region_component::<Guard>();
        listen::<PlayerLoggedIn>(&mut app);
        listen::<JobEnded>(&mut app);
        add(&mut app);
        let overworld = flat(&mut app);
        let tower = spawn_dimension(&mut app, Dimension::new("tower", Flat::new()).with_height(0..16_400));
        viewer(&mut app, overworld, 0.0, 0.0, 1);
        let above = Viewer::in_dimension(tower).with_radius(0).with_vertical_radius(1);
        app.world_mut().spawn((above, Position::new(DimensionId::default(), LAMP)));
        start(&mut app);
        update_until(&mut app, "the ground is there", |world| {
            [(overworld, CHEST), (tower, LAMP)].iter().all(|(of, place)| block_at(world, *of, *place).is_some())
        });
        Self { app, overworld, tower }
    }

    fn set(&mut self, dimension: DimensionId, position: BlockPos, block: &str) {
        let block = id_of(self.app.world(), block);
        self.app.world_mut().write_message(SetBlock { dimension, position, block });
        update(&mut self.app, 4);
    }

    fn is(&self, dimension: DimensionId, position: BlockPos, block: &str) -> bool {
        block_at(self.app.world(), dimension, position) == Some(id_of(self.app.world(), block))
    }

    /// The lock and the items of the chest.
    fn chest(&mut self) -> (Option<u32>, Option<Vec<u8>>, Option<BlockId>) {
        ask_region(&mut self.app, self.overworld, CHEST, |blocks: RegionBlocks, types: Res<BlockTypes>| {
            let [lock, items] = ["game:lock", "game:items"].map(|name| types.component(name).unwrap());
            let items = blocks.component(CHEST, 0, items).unwrap().map(<[u8]>::to_vec);
            (blocks.component_as(CHEST, 0, lock).unwrap(), items, blocks.block_at(CHEST, 1).unwrap())
        })
    }

    fn log_in(&mut self) -> PlayerLoggedIn {
        let first_place = Some((self.overworld, HERE));
        self.app.world_mut().write_message(LogIn { name: "Zoë".into(), first_place });
        update_until(&mut self.app, "Zoë is in", |world| !world.resource::<Heard<PlayerLoggedIn>>().0.is_empty());
        heard::<PlayerLoggedIn>(&self.app)[0].clone()
    }

    fn wait_for_arena(&mut self, state: ArenaState) {
        update_until(&mut self.app, "the arena does what it should", |world| {
            let mut arenas = world.query::<(&Arena, &ArenaStatus)>();
            arenas.iter(world).any(|(arena, status)| arena.name == "Spleef" && status.state == state)
        });
    }

    /// The progress of the pre-generation, once it is known.
    fn pregeneration(&mut self, state: JobState) -> JobProgress {
        let mut found = None;
        update_until(&mut self.app, &format!("the pre-generation is {state:?}"), |world| {
            let mut jobs = world.query::<(&Pregeneration, &JobProgress)>();
            found = jobs
                .iter(world)
                .find(|(job, progress)| job.area == AREA && progress.state == state)
                .map(|(_, it)| it.clone());
            found.is_some()
        });
        found.unwrap()
    }

    fn control(&mut self, order: JobOrder) {
        let mut jobs = self.app.world_mut().query_filtered::<Entity, With<Pregeneration>>();
        let pregeneration = jobs.single(self.app.world()).unwrap();
        self.app.world_mut().write_message(ControlJob { entity: pregeneration, order });
    }
}

fn stored_snapshot(folder: &Path) -> PathBuf {
    folder.join("snapshots/before")
}

/// Makes the world of the fixture.
fn make(folder: &Path) {
    let mut game = Game::start(folder);
    let (overworld, tower) = (game.overworld, game.tower);
    game.set(overworld, CHEST, "game:chest");
    ask_region(&mut game.app, overworld, CHEST, |mut blocks: RegionBlocks, types: Res<BlockTypes>| {
        let [lock, items] = ["game:lock", "game:items"].map(|name| types.component(name).unwrap());
        blocks.set_component_as(CHEST, 0, lock, &77_u32).unwrap();
        blocks.set_component(CHEST, 0, items, b"a map and a spade").unwrap();
        blocks.set_block_at(CHEST, 1, types.id("terrane:water").unwrap()).unwrap();
    });
    game.set(tower, LAMP, "terrane:stone");
    game.set(overworld, PILLAR, "terrane:stone");
    spawn_in_region(&mut game.app, overworld, HERE, (Guard("Ann".into()), StableId(GUARD)));
    game.app.world_mut().commands().schedule_block_tick(overworld, HERE, "game:grow", 1_000_000);
    game.app.world_mut().flush();
    game.log_in();

    game.app.world().resource::<Jobs>().create_arena(Arena::new("Spleef", OVERWORLD, ARENA));
    game.wait_for_arena(ArenaState::Ready);
    let jobs = game.app.world().resource::<Jobs>().clone();
    jobs.capture(CaptureSnapshot::new(OVERWORLD, ARENA));
    let is_captured =
        |world: &mut World| world.resource::<Heard<JobEnded>>().0.iter().any(|ended| ended.outcome.snapshot.is_some());
    update_until(&mut game.app, "it is captured", is_captured);
    let ended = heard::<JobEnded>(&game.app).iter().find_map(|ended| ended.outcome.snapshot.clone()).unwrap();
    let types = game.app.world().resource::<BlockTypes>().clone();
    let (path, owner) = (stored_snapshot(folder), [("of".into(), "the hall".into())].into());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    StoredSnapshot::create(&path, (OVERWORLD, &ended), &types, &default(), owner, &mut |_| ControlFlow::Continue(()))
        .unwrap();
    game.set(overworld, PILLAR, "terrane:air");

    game.app.world_mut().spawn(Pregeneration { dimension: overworld, area: AREA });
    update_until(&mut game.app, "a part is done", |world| {
        world.query::<&JobProgress>().iter(world).any(|progress| progress.done > 20)
    });
    game.control(JobOrder::Pause);
    let progress = game.pregeneration(JobState::Paused);
    assert!((21..169).contains(&progress.done), "{progress:?}");
    update(&mut game.app, 5);
    save(&mut game.app);
}

/// The columns that the world has, according to its graph.
fn stored(world: &WorldStore, dimension: DimensionId) -> BTreeSet<ColumnPos> {
    let tiles = world.stored_tiles(dimension).unwrap();
    let batches = tiles.iter().flat_map(|(tile, masks)| tile.batches().zip(*masks));
    batches
        .flat_map(|(batch, mask)| (0..16).filter(move |bit| mask >> bit & 1 == 1).map(move |bit| batch.column(bit)))
        .collect()
}

fn in_package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(FIXTURE)
}

fn fixture() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy_folder(&in_package(), folder.path());
    folder
}

/// Continues the world in a game.
fn check_with_game(folder: &Path) {
    let mut game = Game::start(folder);
    let (overworld, tower) = (game.overworld, game.tower);
    assert_eq!([overworld, tower].map(|it| it), [OVERWORLD, TOWER]);
    assert!(game.is(overworld, CHEST, "game:chest") && game.is(tower, LAMP, "terrane:stone"));
    let water = id_of(game.app.world(), "terrane:water");
    assert_eq!(game.chest(), (Some(77), Some(b"a map and a spade".to_vec()), Some(water)));
    let ticks =
        ask_region(&mut game.app, overworld, HERE, |blocks: RegionBlocks| blocks.ticks().scheduled(HERE, "game:grow"));
    assert!(ticks.is_some_and(|left| (900_000..=1_000_000).contains(&left)), "{ticks:?}");
    let mut guards = Vec::new();
    update_until(&mut game.app, "the guard is seen", |world| {
        let mut mirrors = world.query_filtered::<(&Guard, &Position), With<Mirror>>();
        guards.extend(mirrors.iter(world).map(|(guard, position)| (guard.0.clone(), position.block)));
        !guards.is_empty()
    });
    assert_eq!(guards, [("Ann".to_owned(), HERE)]);
    assert!(!game.log_in().new);

    assert!(game.is(overworld, PILLAR, "terrane:air"));
    game.wait_for_arena(ArenaState::Ready);
    game.app.world().resource::<Jobs>().revert_arena("spleef");
    game.wait_for_arena(ArenaState::CoolingDown);
    assert!(game.is(overworld, PILLAR, "terrane:stone"));

    let paused = game.pregeneration(JobState::Paused);
    assert!((21..169).contains(&paused.done) && paused.total == 169, "{paused:?}");
    game.control(JobOrder::Resume);
    assert_eq!(game.pregeneration(JobState::Finished).done, 169);
    drop(game);
    let world = WorldStore::open_existing(&StorageConfig::Path(folder.into()), Access::Read).unwrap();
    assert!(stored(&world, OVERWORLD).iter().filter(|column| AREA.contains(**column)).count() == 169);
}

/// Checks that nothing is damaged, and that the folder has nothing else.
fn check_without_game(folder: &Path) {
    let world = WorldStore::open_existing(&StorageConfig::Path(folder.into()), Access::Read).unwrap();
    let verified = world.verify(|_| ControlFlow::Continue(())).unwrap();
    assert_eq!((verified.damage.count(), verified.stale, verified.finished), (0, 0, true), "{verified:?}");
    assert_eq!((world.format(), world.session()), (1, 1));
    let info = world.info().unwrap();
    assert!(info.play_time > std::time::Duration::ZERO);
    let names: Vec<_> = info.dimensions.iter().map(|(it, _)| (it.name.as_str(), it.id, it.sparse)).collect();
    assert_eq!(names, [("overworld", OVERWORLD, false), ("tower", TOWER, true)]);
    let players: Vec<_> = info.players.iter().map(|player| (player.name.as_str(), player.place)).collect();
    assert_eq!(players, [("Zoë", Some((OVERWORLD, HERE)))]);
    assert_eq!(
        info.registry.components.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(),
        ["terrane:state", "terrane:block_entity", "game:lock", "game:items"]
    );
    assert_eq!(world.pregenerations(OVERWORLD).unwrap().len(), 1);

    let types = info.registry.blocks.iter().map(|block| block.name.as_str()).collect::<Vec<_>>();
    let mut differing = BTreeSet::new();
    for column in stored(&world, OVERWORLD) {
        let loaded = world.load_batch(OVERWORLD, column.batch(), &[column], -4..20).unwrap().remove(0);
        for (y, chunk) in loaded.column.chunks() {
            let start = column.chunk(y).min_block();
            for [x, y, z] in (0..16).flat_map(|x| (0..16).flat_map(move |y| (0..16).map(move |z| [x, y, z]))) {
                let place = start.offset(x as i64, y as i64, z as i64);
                let name = types[chunk.block([x, y, z]).index() as usize];
                differing.extend((name != flat_block(place.y)).then(|| (place, name.to_owned())));
            }
        }
        assert_eq!(loaded.entities.iter().any(|entity| entity.id == GUARD), column == HERE.column());
        let kinds: Vec<_> =
            loaded.block_ticks.iter().map(|StoredBlockTick { block, kind, .. }| (*block, &**kind)).collect();
        assert!(kinds == [(HERE, "game:grow")] || kinds.is_empty() && column != HERE.column(), "{kinds:?}");
    }
    assert_eq!(differing.into_iter().collect::<Vec<_>>(), [(CHEST, "game:chest".to_owned())]);
    let lamp = world.load_part(TOWER, LAMP.column(), &(LAMP.chunk().y..LAMP.chunk().y + 1).collect()).unwrap().column;
    assert_eq!(types[lamp.block(LAMP).index() as usize], "terrane:stone");

    let snapshot = StoredSnapshot::open(&stored_snapshot(folder)).unwrap();
    snapshot.verify(&mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!((snapshot.dimension(), snapshot.area(), snapshot.columns().len()), (OVERWORLD, &ARENA, 4));
    assert_eq!(snapshot.owner_data()["of"], "the hall");
}

/// The block of flat terrain at this height.
fn flat_block(y: i64) -> &'static str {
    match y {
        1.. => "terrane:air",
        0 => "terrane:grass",
        -3..0 => "terrane:dirt",
        _ => "terrane:stone",
    }
}

#[test]
fn the_folder_of_an_earlier_version_is_read_in_full() {
    check_without_game(fixture().path());
}

/// Promise, world format: Released world formats stay readable.
#[test]
fn a_game_continues_with_the_folder_of_an_earlier_version() {
    check_with_game(fixture().path());
}

/// The columns that regions were told of.
#[derive(Resource, Clone, Default)]
struct Told(Arc<Mutex<BTreeSet<ColumnPos>>>);

fn note_new_columns(mut new: MessageReader<NewColumn>, info: Res<RegionInfo>, told: Res<Told>) {
    let new = new.read().filter(|_| info.dimension == OVERWORLD);
    told.0.lock().unwrap().extend(new.map(|new| new.column));
}

/// Promise, world format: Columns that were stored before worlds knew of new columns are never new.
#[test]
fn no_column_of_an_earlier_version_is_new() {
    let folder = fixture();
    let known = {
        let world = WorldStore::open_existing(&StorageConfig::Path(folder.path().into()), Access::Read).unwrap();
        stored(&world, OVERWORLD)
    };
    let told = Told::default();
    let copy = told.clone();
    let mut game = Game::start_with(folder.path(), move |app| {
        app.add_region_plugins(move |region| {
            region.insert_resource(copy.clone()).add_systems(RegionTick, note_new_columns);
        });
    });
    // Over its ground, and where it has none yet.
    viewer(&mut game.app, OVERWORLD, 0.0, 0.0, 6);
    viewer(&mut game.app, OVERWORLD, 1_600.0, 0.0, 2);
    update(&mut game.app, 40);
    let told = std::mem::take(&mut *told.0.lock().unwrap());
    assert!(known.len() > 100 && told.is_disjoint(&known));
    assert!(told.is_superset(&disc(ColumnPos::new(100, 0), 2)));
}

/// Writes the fixture if `TERRANE_WRITE_FIXTURE` is set. Otherwise applies the same checks to a new folder.
#[test]
fn the_folder_that_is_a_fixture_can_be_made() {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path());
    // These files are not part of the world's content, or are created again.
    let is_needless = |name: &str| ["LOG", "LOCK", "world.lock"].contains(&name) || name.starts_with("OPTIONS-");
    for (path, _) in files(folder.path()) {
        if is_needless(path.file_name().unwrap().to_str().unwrap()) {
            fs::remove_file(path).unwrap();
        }
    }
    if std::env::var_os("TERRANE_WRITE_FIXTURE").is_some() {
        fs::remove_dir_all(in_package()).unwrap();
        copy_folder(folder.path(), &in_package());
    }
    check_without_game(folder.path());
    check_with_game(folder.path());
}
