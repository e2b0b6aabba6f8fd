//! Restores that a crash interrupts: the next session continues or undoes them, and nothing stays half restored.

use crate::disk::Disk;
use crate::snapshots::{at, blocks, ended, jobs, set, world};
use crate::support::folder::copy_folder;
use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::snapshot::Snapshot;
use bevy_terrane::view::{
    AfterCrash, CaptureSnapshot, JobEnded, JobKind, JobOrder, JobState, RestoreSnapshot, SnapshotConfig,
};
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// A box that is not aligned to chunks, over nine columns and two heights.
const AREA: BlockBox = BlockBox { min: BlockPos::new(-5, 34, -7), max: BlockPos::new(20, 60, 21) };

/// The state that survives crashes: the store and the folder of snapshots.
struct Machine {
    disk: Disk,
    folder: TempDir,
}

impl Machine {
    fn new(disk: Disk) -> Self {
        Self { disk, folder: TempDir::new().unwrap() }
    }

    /// The state that a crash at this moment leaves.
    fn crash(&self) -> Self {
        let crashed = Self::new(self.disk.copy());
        copy_folder(self.folder.path(), crashed.folder.path());
        crashed
    }

    /// Saves every tick, and restores one column per tick.
    fn plugin(&self) -> TerranePlugin {
        let folder = Some(self.folder.path().to_owned());
        let config = SnapshotConfig { chunks: 1, folder, ..SnapshotConfig::default() };
        TerranePlugin { snapshots: config, saving: SaveSettings::every(Duration::ZERO), ..self.disk.plugin() }
    }

    /// The number of recorded restores.
    fn records(&self) -> usize {
        fs::read_dir(self.folder.path().join("restores")).map_or(0, Iterator::count)
    }
}

/// All blocks in and around the box, and the names of its entities.
type Scene = (BTreeMap<BlockPos, BlockId>, Vec<String>);

fn scene(app: &mut App, dimension: DimensionId) -> Scene {
    let names = walkers(app.world_mut()).into_iter().map(|(name, _)| name).collect();
    (blocks(app, dimension, &AREA), names)
}

/// A world whose box was captured and then torn down, with the scenes before and after.
fn torn(machine: &Machine) -> (App, DimensionId, Arc<Snapshot>, [Scene; 2]) {
    let (mut app, dimension, id) = world(machine.plugin());
    let stone = id_of(app.world(), "terrane:stone");
    let pillars =
        [-4, 7, 18].into_iter().flat_map(|x| [-5, 7, 19].into_iter().flat_map(move |z| [40, 52].map(|y| at(x, y, z))));
    set(&mut app, dimension, pillars.clone().map(|place| (place, stone)));
    spawn_in_region(&mut app, dimension, at(3, 40, 3), (walker("guard", 0.0), StableId::default()));
    update(&mut app, 5);
    let whole = scene(&mut app, dimension);
    let job = jobs(&app).capture(CaptureSnapshot::new(id, AREA));
    let snapshot = ended(&mut app, job).outcome.snapshot.clone().unwrap();

    set(&mut app, dimension, pillars.map(|place| (place, BlockId::AIR)));
    app.world_mut().commands().run_in_region(dimension, at(3, 40, 3), |region: &mut World| {
        let guards: Vec<_> = region.query_filtered::<Entity, With<Walker>>().iter(region).collect();
        guards.into_iter().for_each(|guard| assert!(region.despawn(guard)));
    });
    spawn_in_region(&mut app, dimension, at(5, 40, 5), (walker("raider", 0.0), StableId::default()));
    update(&mut app, 10);
    let torn = scene(&mut app, dimension);
    assert_ne!(torn.0, whole.0);
    assert_eq!([&whole.1[..], &torn.1[..]], [["guard"], ["raider"]]);
    (app, dimension, snapshot, [whole, torn])
}

/// The scene after the next session has opened.
fn after(crashed: &Machine) -> Scene {
    let is_remembered = crashed.records() > 0;
    let (mut app, dimension, _) = world(crashed.plugin());
    if is_remembered {
        update_until(&mut app, "the restore has ended", |world| {
            world.resource::<Heard<JobEnded>>().0.iter().any(is_resumed)
        });
        let ended = heard::<JobEnded>(&app)[0].clone();
        assert_eq!(ended.progress.state, JobState::Finished, "{:?}", ended.outcome);
    }
    update(&mut app, 10);
    assert_eq!(crashed.records(), 0, "it is forgotten once it is saved");
    scene(&mut app, dimension)
}

fn is_resumed(ended: &JobEnded) -> bool {
    matches!(ended.job.kind, JobKind::Restore { resumed: true, .. })
}

/// Crashes after each update while a restore runs. Returns the scenes of the next sessions, and those before and after.
fn scenes_after_crashes(after_crash: AfterCrash) -> (Vec<Scene>, [Scene; 2]) {
    let machine = Machine::new(Disk::default());
    let (mut app, dimension, snapshot, [whole, torn]) = torn(&machine);
    let order = RestoreSnapshot { after_crash, ..RestoreSnapshot::new(dimension, snapshot) };
    let job = jobs(&app).restore(order);
    let mut crashes = vec![machine.crash()];
    let has_ended = |app: &App| heard::<JobEnded>(app).iter().any(|ended| ended.job.id == job && !is_resumed(ended));
    while !has_ended(&app) {
        assert!(crashes.len() < 200);
        app.update();
        crashes.push(machine.crash());
    }
    for _ in 0..5 {
        app.update();
        crashes.push(machine.crash());
    }
    assert_eq!(scene(&mut app, dimension), whole);
    assert!(crashes.iter().filter(|crashed| crashed.records() > 0).count() > 8, "it is cut short in many places");
    drop(app);
    (crashes.iter().map(after).collect(), [whole, torn])
}

/// Promise, snapshots: A restore that a crash interrupts continues, or is undone, when the world opens again.
#[test]
fn an_interrupted_restore_resumes_from_any_point() {
    let (scenes, [whole, torn]) = scenes_after_crashes(AfterCrash::Continue);
    assert!(scenes.iter().all(|scene| *scene == whole || *scene == torn));
    // Only crashes before the restore began leave the old scene.
    let begun = scenes.iter().position(|scene| *scene == whole).unwrap();
    assert!(begun < 4 && scenes[begun..].iter().all(|scene| *scene == whole), "{begun}");
}

/// Promise, snapshots: A restore that a crash interrupts continues, or is undone, when the world opens again.
#[test]
fn it_is_taken_back_until_it_is_done() {
    let (scenes, [whole, torn]) = scenes_after_crashes(AfterCrash::Undo);
    assert!(scenes.iter().all(|scene| *scene == whole || *scene == torn));
    let done = scenes.iter().position(|scene| *scene == whole).unwrap();
    assert!(done > 8 && scenes[done..].iter().all(|scene| *scene == whole), "{done}");
}

#[test]
fn a_restore_resumes_when_its_dimension_is_reopened() {
    let machine = Machine::new(Disk::default());
    let (mut app, dimension, snapshot, [whole, _]) = torn(&machine);
    let job = jobs(&app).restore(RestoreSnapshot::new(dimension, snapshot));
    update(&mut app, 6);
    despawn_dimension(&mut app, dimension);
    let failed = ended(&mut app, job);
    assert_eq!(failed.progress.state, JobState::Failed);
    update(&mut app, 10);
    assert_eq!(machine.records(), 1);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 8.0, 8.0, 3);
    update_until(&mut app, "the restore has ended", |world| {
        world.resource::<Heard<JobEnded>>().0.iter().any(is_resumed)
    });
    update(&mut app, 10);
    assert_eq!(scene(&mut app, dimension), whole);
    assert_eq!(machine.records(), 0);
}

#[test]
fn cancelled_and_forgotten_restores_do_not_resume() {
    let machine = Machine::new(Disk::default());
    let (mut app, dimension, snapshot, _) = torn(&machine);
    let id = dimension;
    let left = RestoreSnapshot { after_crash: AfterCrash::Leave, ..RestoreSnapshot::new(id, snapshot.clone()) };
    let job = jobs(&app).restore(left);
    update(&mut app, 6);
    assert_eq!(machine.records(), 0);
    jobs(&app).control(job, JobOrder::Cancel);
    assert_eq!(ended(&mut app, job).progress.state, JobState::Cancelled);
    let job = jobs(&app).restore(RestoreSnapshot::new(id, snapshot));
    update(&mut app, 4);
    assert_eq!(machine.records(), 1);
    jobs(&app).control(job, JobOrder::Cancel);
    assert_eq!(ended(&mut app, job).progress.state, JobState::Cancelled);
    update(&mut app, 10);
    assert_eq!(machine.records(), 0);
}

#[test]
fn a_damaged_record_changes_nothing_and_is_kept() {
    let machine = Machine::new(Disk::default());
    let (mut app, dimension, snapshot, [_, torn]) = torn(&machine);
    let before = machine.disk.copy();
    jobs(&app).restore(RestoreSnapshot::new(dimension, snapshot));
    update(&mut app, 4);
    let crashed = Machine { disk: before, ..machine.crash() };
    drop(app);
    let record = crashed.folder.path().join("restores/0");
    let columns = fs::read_dir(record.join("snapshot")).unwrap().map(|entry| entry.unwrap().path());
    let column = columns.filter(|path| path.extension().is_some_and(|ending| ending == "schem")).max().unwrap();
    for (file, place) in [(record.join("restore"), 0), (record.join("restore"), 30), (column, 99)] {
        let mut bytes = fs::read(&file).unwrap();
        bytes[place] ^= 1;
        fs::write(&file, &bytes).unwrap();
        let (mut app, dimension, _) = world(crashed.plugin());
        update(&mut app, 20);
        assert_eq!(scene(&mut app, dimension), torn);
        drop(app);
        assert_eq!(fs::read(&file).unwrap(), bytes);
        bytes[place] ^= 1;
        fs::write(&file, &bytes).unwrap();
    }
    assert_ne!(after(&crashed), torn);
}
