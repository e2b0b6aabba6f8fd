//! Arenas: their rules, their results, and their return in the next session.

use crate::disk::Disk;
use crate::snapshots::{at, blocks, set, world, world_with};
use crate::support::*;
use bevy_terrane::block::Schema;
use bevy_terrane::prelude::*;
use bevy_terrane::view::{
    Arena, ArenaCreated, ArenaError, ArenaOrder, ArenaRefused, ArenaRemoved, ArenaReverted, ArenaSettings, ArenaState,
    ArenaStatus, Job, JobError, Jobs, SnapshotConfig, WorkError,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tempfile::TempDir;

const AREA: BlockBox = BlockBox { min: BlockPos::new(-5, 20, -7), max: BlockPos::new(20, 60, 21) };

struct Hall {
    app: App,
    dimension: DimensionId,
    id: DimensionId,
}

fn hall(disk: &Disk, folder: &Path, config: SnapshotConfig) -> Hall {
    hall_with(disk, folder, config, |_| {})
}

fn hall_with(disk: &Disk, folder: &Path, config: SnapshotConfig, register: impl FnOnce(&mut App)) -> Hall {
    let config = SnapshotConfig { folder: Some(folder.to_owned()), ..config };
    let (mut app, dimension, id) = world_with(TerranePlugin { snapshots: config, ..disk.plugin() }, register);
    listen::<ArenaCreated>(&mut app);
    listen::<ArenaReverted>(&mut app);
    listen::<ArenaRemoved>(&mut app);
    listen::<ArenaRefused>(&mut app);
    Hall { app, dimension, id }
}

impl Hall {
    fn create(&mut self, arena: Arena) {
        self.app.world().resource::<Jobs>().create_arena(arena);
        update(&mut self.app, 1);
    }

    fn revert(&mut self, name: &str) {
        self.app.world().resource::<Jobs>().revert_arena(name);
        update(&mut self.app, 1);
    }

    fn remove(&mut self, name: &str) {
        self.app.world().resource::<Jobs>().remove_arena(name);
        update(&mut self.app, 1);
    }

    fn status(&mut self, name: &str) -> Option<(Arena, ArenaStatus)> {
        let mut arenas = self.app.world_mut().query::<(&Arena, &ArenaStatus)>();
        let found = arenas.iter(self.app.world()).find(|(arena, _)| arena.name == name);
        found.map(|(arena, status)| (arena.clone(), status.clone()))
    }

    fn wait_until(&mut self, name: &str, state: ArenaState) {
        update_until(&mut self.app, "the arena does what it should", |world| {
            let mut arenas = world.query::<(&Arena, &ArenaStatus)>();
            arenas.iter(world).any(|(arena, status)| arena.name == name && status.state == state)
        });
    }

    /// The last refusal.
    fn refused(&mut self) -> (ArenaOrder, ArenaError) {
        let before = heard::<ArenaRefused>(&self.app).len();
        if before == 0 {
            update_until(&mut self.app, "it is refused", |world| !world.resource::<Heard<ArenaRefused>>().0.is_empty());
        }
        let refused = self.app.world_mut().resource_mut::<Heard<ArenaRefused>>().0.pop().unwrap();
        (refused.order, refused.error)
    }

    fn build(&mut self, block: &str, x: i64) {
        let block = id_of(self.app.world(), block);
        set(&mut self.app, self.dimension, (22..50).map(|y| (at(x, y, 3), block)));
    }
}

/// Promise, snapshots: An arena is reverted to its snapshot by one command, in later sessions too.
#[test]
fn an_arena_reverts_again_and_again_in_later_sessions_too() {
    let (disk, folder) = (Disk::default(), TempDir::new().unwrap());
    let mut hall = hall(&disk, folder.path(), SnapshotConfig::default());
    hall.build("terrane:stone", 3);
    let before = blocks(&mut hall.app, hall.dimension, &AREA);
    hall.create(Arena::new("Spleef", hall.id, AREA));
    hall.wait_until("Spleef", ArenaState::Ready);
    let created = heard::<ArenaCreated>(&hall.app)[0].clone();
    assert_eq!((&created.name[..], created.outcome.columns.len()), ("Spleef", 9));
    let (arena, status) = hall.status("Spleef").unwrap();
    assert_eq!((arena.area, arena.dimension, status.columns), (AREA, hall.id, 9));
    assert!(status.bytes > 0 && status.job.is_none());

    for round in 1..3 {
        hall.build("terrane:air", 3);
        hall.build("terrane:grass", 5 + round);
        assert_ne!(blocks(&mut hall.app, hall.dimension, &AREA), before);
        hall.revert("spleef");
        hall.wait_until("Spleef", ArenaState::CoolingDown);
        let reverted = heard::<ArenaReverted>(&hall.app).last().unwrap().clone();
        assert_eq!((&reverted.name[..], reverted.error), ("Spleef", None));
        assert_eq!(blocks(&mut hall.app, hall.dimension, &AREA), before);
        hall.wait_until("Spleef", ArenaState::Ready);
        assert_eq!(hall.status("Spleef").unwrap().1.reverts, round as u64);
    }
    hall.build("terrane:air", 3);
    drop(hall);

    let mut hall = super::arenas::hall(&disk, folder.path(), SnapshotConfig::default());
    update(&mut hall.app, 2);
    let (arena, status) = hall.status("Spleef").unwrap();
    assert_eq!((arena.area, arena.settings, status.state), (AREA, ArenaSettings::default(), ArenaState::Ready));
    assert_ne!(blocks(&mut hall.app, hall.dimension, &AREA), before);
    hall.revert("SPLEEF");
    hall.wait_until("Spleef", ArenaState::CoolingDown);
    assert_eq!(blocks(&mut hall.app, hall.dimension, &AREA), before);

    hall.remove("Spleef");
    update(&mut hall.app, 4);
    assert_eq!(heard::<ArenaRemoved>(&hall.app)[0].name, "Spleef");
    assert_eq!(hall.status("Spleef"), None);
    assert_eq!(folder.path().join("arenas").read_dir().unwrap().count(), 0);
    assert_eq!(blocks(&mut hall.app, hall.dimension, &AREA), before);
}

#[test]
fn arenas_keep_apart_and_names_are_names() {
    let (disk, folder) = (Disk::default(), TempDir::new().unwrap());
    let mut hall = hall(&disk, folder.path(), SnapshotConfig::default());
    let id = hall.id;
    hall.create(Arena::new("first", id, AREA));
    let one = |x: i64| BlockBox::new(at(x, 20, 0), at(x, 20, 0));
    for name in ["ab", "with space", "../../etc", "näme", &"n".repeat(33), ""] {
        hall.create(Arena::new(name, id, one(40)));
        assert_eq!(hall.refused(), (ArenaOrder::Create, ArenaError::Name { name: name.into() }));
    }
    hall.create(Arena::new("FIRST", id, one(40)));
    assert_eq!(hall.refused().1, ArenaError::Exists { name: "FIRST".into() });
    // Works even while the other one is being created.
    hall.create(Arena::new("second", id, one(20)));
    assert_eq!(hall.refused().1, ArenaError::Overlap { name: "second".into(), other: "first".into() });
    hall.create(Arena::new("third", id, BlockBox::new(at(100, 0, 0), at(100, 0, 1_024))));
    assert_eq!(hall.refused().1, ArenaError::Size { name: "third".into(), side: 1_025, limit: 1_024 });
    hall.create(Arena::new("fourth", id, BlockBox { min: at(1, 0, 0), max: at(0, 0, 0) }));
    assert_eq!(hall.refused().1, ArenaError::Size { name: "fourth".into(), side: 0, limit: 1_024 });
    hall.revert("nobody");
    assert_eq!(hall.refused(), (ArenaOrder::Revert, ArenaError::Unknown { name: "nobody".into() }));
    hall.remove("nobody");
    assert_eq!(hall.refused(), (ArenaOrder::Remove, ArenaError::Unknown { name: "nobody".into() }));

    hall.wait_until("first", ArenaState::Ready);
    // The same box in another dimension, and one beside the first.
    hall.create(Arena::new("beside", id, one(21)));
    hall.wait_until("beside", ArenaState::Ready);
    hall.create(Arena::new("nowhere", DimensionId(99), AREA));
    let (order, error) = hall.refused();
    let source = Box::new(JobError::NotOpen(DimensionId(99)));
    assert_eq!((order, error), (ArenaOrder::Create, ArenaError::Failed { name: "nowhere".into(), source }));
    update(&mut hall.app, 3);
    assert_eq!(hall.status("nowhere"), None);
    assert_eq!(folder.path().join("arenas").read_dir().unwrap().count(), 2);
}

#[test]
fn a_revert_waits_for_the_one_before_and_is_ended_when_it_takes_too_long() {
    let (disk, folder) = (Disk::default(), TempDir::new().unwrap());
    // One chunk per tick.
    let mut hall = hall(&disk, folder.path(), SnapshotConfig { chunks: 1, ..SnapshotConfig::default() });
    let settings = ArenaSettings {
        cooldown: Duration::from_millis(1_000),
        timeout: Duration::from_millis(300),
        ..ArenaSettings::default()
    };
    hall.create(Arena { settings, ..Arena::new("slow", hall.id, AREA) });
    hall.revert("slow");
    assert!(matches!(hall.refused().1, ArenaError::Busy { state: ArenaState::Creating, .. }));
    hall.wait_until("slow", ArenaState::Ready);
    let stone = id_of(hall.app.world(), "terrane:stone");
    let all =
        (-5..21).step_by(5).flat_map(|x| (-7..22).step_by(5).flat_map(move |z| [25, 37, 55].map(|y| at(x, y, z))));
    set(&mut hall.app, hall.dimension, all.map(|place| (place, stone)));

    hall.revert("slow");
    hall.wait_until("slow", ArenaState::Reverting);
    let job = hall.status("slow").unwrap().1.job.unwrap();
    update(&mut hall.app, 1);
    let mut running = hall.app.world_mut().query::<&Job>();
    assert!(running.iter(hall.app.world()).any(|running| running.id == job));
    for order in [ArenaOrder::Revert, ArenaOrder::Remove] {
        match order {
            ArenaOrder::Revert => hall.revert("slow"),
            _ => hall.remove("slow"),
        }
        assert!(matches!(hall.refused(), (of, ArenaError::Busy { state: ArenaState::Reverting, .. }) if of == order));
    }
    hall.wait_until("slow", ArenaState::CoolingDown);
    let reverted = heard::<ArenaReverted>(&hall.app)[0].clone();
    assert_eq!(reverted.error, Some(ArenaError::TimedOut { name: "slow".into(), timeout: settings.timeout }));
    let changed: usize = reverted.outcome.columns.iter().map(|column| column.changed.len()).sum();
    assert!((2..27).contains(&changed), "{changed}");
    hall.revert("slow");
    assert!(matches!(hall.refused().1, ArenaError::CoolingDown { left, .. } if left <= settings.cooldown));
    // Each time it ends.
    for _ in 0..4 {
        hall.wait_until("slow", ArenaState::Ready);
        hall.revert("slow");
        hall.wait_until("slow", ArenaState::CoolingDown);
    }
    assert_eq!(heard::<ArenaReverted>(&hall.app).last().unwrap().error, None);
}

#[test]
fn a_region_orders_too_and_a_damaged_arena_changes_nothing() {
    let (disk, folder) = (Disk::default(), TempDir::new().unwrap());
    let mut hall = hall(&disk, folder.path(), SnapshotConfig::default());
    let id = hall.id;
    in_region(&mut hall.app, hall.dimension, at(0, 0, 0), move |region: &mut World| {
        region.resource::<Jobs>().create_arena(Arena::new("ours", id, AREA));
    });
    hall.wait_until("ours", ArenaState::Ready);
    hall.build("terrane:stone", 3);
    let built = blocks(&mut hall.app, hall.dimension, &AREA);
    // The file of one column is damaged.
    let arena = folder.path().join("arenas/ours");
    let files = arena.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let column: PathBuf = files.filter(|path| path.extension().is_some_and(|ending| ending == "schem")).max().unwrap();
    let whole = std::fs::read(&column).unwrap();
    std::fs::write(&column, &whole[..whole.len() - 1]).unwrap();
    hall.revert("ours");
    hall.wait_until("ours", ArenaState::CoolingDown);
    let error = heard::<ArenaReverted>(&hall.app)[0].error.clone();
    let Some(ArenaError::Failed { source, .. }) = error else { panic!("{error:?}") };
    let JobError::Stored(error) = *source else { panic!("{source}") };
    assert!(error.to_string().contains(".schem"), "{error}");
    assert_eq!(blocks(&mut hall.app, hall.dimension, &AREA), built);
    drop(hall);

    // Without its index the arena cannot be listed; its name stays taken until it is removed.
    let index = arena.read_dir().unwrap().map(|entry| entry.unwrap().path());
    index.filter(|path| path.extension().is_none_or(|ending| ending != "schem")).for_each(|index| {
        std::fs::write(index, "nothing").unwrap();
    });
    let mut hall = super::arenas::hall(&disk, folder.path(), SnapshotConfig::default());
    assert_eq!(hall.status("ours"), None);
    hall.revert("ours");
    assert!(matches!(hall.refused().1, ArenaError::Damaged { .. }));
    hall.create(Arena::new("ours", id, AREA));
    assert!(matches!(hall.refused().1, ArenaError::Damaged { .. }));
    hall.remove("ours");
    update(&mut hall.app, 3);
    hall.create(Arena::new("ours", id, AREA));
    hall.wait_until("ours", ArenaState::Ready);
}

#[test]
fn a_migration_that_panics_while_an_arena_is_read_ends_that_revert_and_no_other_one() {
    let folder = TempDir::new().unwrap();
    // A new world each time: a world with values of the old version itself needs no migration to read them.
    let with_chests = |schema: Schema| {
        hall_with(&Disk::default(), folder.path(), SnapshotConfig { jobs: 1, ..SnapshotConfig::default() }, |app| {
            let lock = BlockComponent::fixed::<u32>("game:lock").with_schema(schema);
            app.register_block_component(lock).unwrap();
            app.register_block(BlockType::new("game:chest").with_component("game:lock")).unwrap();
        })
    };
    let mut hall = with_chests(Schema::new(0));
    hall.build("game:chest", 3);
    let before = blocks(&mut hall.app, hall.dimension, &AREA);
    hall.create(Arena::new("vault", hall.id, AREA));
    hall.wait_until("vault", ArenaState::Ready);
    drop(hall);

    let panics = Arc::<AtomicBool>::default();
    let is_armed = panics.clone();
    let mut hall = with_chests(Schema::new(1).with_migration(0, move |old| {
        assert!(!is_armed.load(Ordering::Relaxed), "the key breaks");
        Ok(old.to_vec())
    }));
    hall.build("terrane:air", 3);
    panics.store(true, Ordering::Relaxed);
    hall.revert("vault");
    hall.wait_until("vault", ArenaState::CoolingDown);
    let error = heard::<ArenaReverted>(&hall.app)[0].error.clone();
    let Some(ArenaError::Failed { source, .. }) = error else { panic!("{error:?}") };
    let JobError::Work(WorkError::Panicked(message)) = *source else { panic!("{source}") };
    assert!(message.contains("the key breaks"), "{message}");

    panics.store(false, Ordering::Relaxed);
    hall.wait_until("vault", ArenaState::Ready);
    hall.revert("vault");
    hall.wait_until("vault", ArenaState::CoolingDown);
    assert_eq!(heard::<ArenaReverted>(&hall.app)[1].error, None);
    assert_eq!(blocks(&mut hall.app, hall.dimension, &AREA), before);
}

#[test]
fn a_world_whose_arenas_or_restores_cannot_be_listed_is_not_opened() {
    for what in ["arenas", "restores"] {
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join(what), "no folder").unwrap();
        let config = SnapshotConfig { folder: Some(folder.path().to_owned()), ..SnapshotConfig::default() };
        let mut app = game(TerranePlugin { snapshots: config, ..Disk::default().plugin() });
        start(&mut app);
        app.update();
        assert_eq!(app.should_exit(), Some(AppExit::error()), "{what}");
        let failure = app.world().resource::<WorldFailure>().to_string();
        assert!(failure.contains(&folder.path().join(what).display().to_string()), "{failure}");
    }
}

#[test]
fn a_world_in_memory_has_no_arenas() {
    let (mut app, _, id) = world(lockstep());
    listen::<ArenaRefused>(&mut app);
    app.world().resource::<Jobs>().create_arena(Arena::new("nowhere", id, AREA));
    update(&mut app, 3);
    assert_eq!(heard::<ArenaRefused>(&app)[0].error, ArenaError::NoFolder);
}
