//! Summaries of generated columns are sent to far views: near to far, coarser with distance, under a cap.

use crate::disk::Disk;
use crate::support::*;
use bevy_terrane::chunk::{ColumnSummary, Detail};
use bevy_terrane::prelude::*;
use bevy_terrane::storage::{Family, StoreError};
use bevy_terrane::view::{ControlJob, FarColumnChanged, FarColumns, JobOrder, JobProgress, JobState};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// How much further out columns are reported as gone.
const HYSTERESIS: i64 = 4;
/// The number of updates after which everything in these small worlds has been sent.
const ENOUGH: usize = 60;

fn far_game(plugin: TerranePlugin) -> App {
    let mut app = game(plugin);
    listen::<FarColumnChanged>(&mut app);
    app
}

fn saving_soon() -> TerranePlugin {
    TerranePlugin { saving: SaveSettings::every(Duration::from_millis(500)), ..lockstep() }
}

fn disc(center: (i64, i64), radius: i64) -> BTreeSet<(i64, i64)> {
    let disc = (-radius..=radius).flat_map(|x| (-radius..=radius).map(move |z| (x, z)));
    disc.filter(|(x, z)| x * x + z * z <= radius * radius).map(|(x, z)| (center.0 + x, center.1 + z)).collect()
}

fn listener(app: &mut App, dimension: DimensionId, view: FarView, x: f32) -> Entity {
    let beside = Viewer::in_dimension(dimension).with_radius(0);
    app.world_mut().spawn((view, beside, Transform::from_xyz(x, 0.0, 0.0))).id()
}

/// A listener that loads no columns itself.
fn lone(app: &mut App, view: FarView, x: f32) -> Entity {
    app.world_mut().spawn((view, Transform::from_xyz(x, 0.0, 0.0))).id()
}

/// The last message about each column, from all messages to the listener.
fn received(app: &App, listener: Entity) -> Vec<&FarColumnChanged> {
    let told = heard::<FarColumnChanged>(app).iter();
    told.filter(|message| message.listener == listener && message.summary.is_some()).collect()
}

fn summary(message: &FarColumnChanged) -> &ColumnSummary {
    message.summary.as_ref().expect("it was received")
}

/// All messages about gone columns, to any listener.
fn gone(app: &App) -> Vec<&FarColumnChanged> {
    heard::<FarColumnChanged>(app).iter().filter(|message| message.summary.is_none()).collect()
}

fn places(messages: &[&FarColumnChanged]) -> Vec<(i64, i64)> {
    messages.iter().map(|message| (message.column.x, message.column.z)).collect()
}

fn known(app: &App, listener: Entity) -> BTreeMap<(i64, i64), Arc<ColumnSummary>> {
    let columns = app.world().resource::<FarColumns>().iter(listener);
    columns.map(|(_, column, summary)| ((column.x, column.z), summary.clone())).collect()
}

fn keys(known: &BTreeMap<(i64, i64), Arc<ColumnSummary>>) -> BTreeSet<(i64, i64)> {
    known.keys().copied().collect()
}

fn forget_messages(app: &mut App) {
    app.world_mut().resource_mut::<Heard<FarColumnChanged>>().0.clear();
}

fn detail_at(column: (i64, i64), center: (i64, i64), detail_radius: i64) -> Detail {
    let squared = (column.0 - center.0).pow(2) + (column.1 - center.1).pow(2);
    Detail::new((0..4).find(|level| squared <= (detail_radius << level).pow(2)).unwrap_or(4))
}

/// An app whose world has the columns within `generated` of the origin, without a listener.
fn generated(plugin: TerranePlugin, generated: u32) -> (App, DimensionId) {
    let mut app = far_game(plugin);
    let dimension = spawn_dimension(&mut app, Dimension::new("overworld", Hills::seeded(3)));
    let maker = viewer(&mut app, dimension, 8.0, 8.0, generated);
    start(&mut app);
    let wanted = disc((0, 0), generated.into()).len();
    let count = |world: &World| world.resource::<PublishedColumns>().len();
    update_until(&mut app, "everything is generated", |world| count(world) >= wanted);
    app.world_mut().despawn(maker);
    update_until(&mut app, "everything is unloaded", |world| count(world) == 0);
    update(&mut app, 30);
    (app, dimension)
}

/// Promise, far view: A far view gets each column once, near to far, at a coarser LOD with each doubling of the distance.
#[test]
fn all_columns_in_range_arrive_once_and_near_to_far() {
    let (mut app, dimension) = generated(lockstep(), 12);
    let view = FarView::in_dimension(dimension).with_radius(10).with_detail_radius(3);
    let listener = lone(&mut app, view, 8.0);
    update(&mut app, ENOUGH);
    let messages = received(&app, listener);
    let places = places(&messages);
    assert_eq!(places.len(), disc((0, 0), 10).len());
    assert_eq!(places.iter().copied().collect::<BTreeSet<_>>(), disc((0, 0), 10));
    for message in &messages {
        let column = (message.column.x, message.column.z);
        assert_eq!(summary(message).detail(), detail_at(column, (0, 0), 3), "{column:?}");
    }
    assert!(messages.is_sorted_by_key(|message| summary(message).detail()), "finer ones are nearer");
    // Batches come near to far, so a column may be farther than the next one by up to a batch.
    let far = |column: &(i64, i64)| ((column.0.pow(2) + column.1.pow(2)) as f64).sqrt();
    for detail in messages.chunk_by(|a, b| summary(a).detail() == summary(b).detail()) {
        let mut farthest = 0.0_f64;
        for message in detail {
            let distance = far(&(message.column.x, message.column.z));
            assert!(distance > farthest - 6.0, "{} comes late", message.column);
            farthest = farthest.max(distance);
        }
    }
    assert!(gone(&app).is_empty());
}

/// Promise, far view: A `FarView` works beside a viewer, on any entity with a place, or for a viewer that lives in a region.
#[test]
fn columns_generated_later_arrive_at_a_far_view_too() {
    let mut app = far_game(lockstep());
    let dimension = flat(&mut app);
    let near = Viewer::in_dimension(dimension).with_radius(5);
    let listener = app.world_mut().spawn((near, FarView::new().with_radius(4), Transform::default())).id();
    start(&mut app);
    update(&mut app, ENOUGH);
    let messages = received(&app, listener);
    assert_eq!(messages.len(), disc((0, 0), 4).len(), "each of them once");
    assert_eq!(keys(&known(&app, listener)), disc((0, 0), 4));
    assert!(messages.iter().all(|message| summary(message).heights() == Some((0, 0))));
}

/// Promise, far view: A far view gets a finer LOD of near columns, and drops columns more than four beyond its radius.
#[test]
fn a_moving_listener_gets_new_columns_finer_detail_and_removals() {
    let (mut app, dimension) = generated(lockstep(), 16);
    let view = FarView::in_dimension(dimension).with_radius(6).with_detail_radius(2);
    let listener = lone(&mut app, view, 8.0 - 16.0 * 8.0);
    let mut has: BTreeMap<(i64, i64), Detail> = BTreeMap::new();
    for step in -8..=8 {
        move_viewer(&mut app, listener, (16 * step + 8) as f32, 0.0);
        forget_messages(&mut app);
        update(&mut app, if step == 8 { ENOUGH } else { 3 });
        for FarColumnChanged { column, summary, .. } in heard(&app) {
            let place = (column.x, column.z);
            let Some(summary) = summary else {
                assert!(has.remove(&place).is_some(), "{column} was not there");
                continue;
            };
            let is_finer = has.insert(place, summary.detail()).is_none_or(|before| summary.detail() < before);
            assert!(is_finer, "{column} was sent twice");
        }
    }
    let known = known(&app, listener);
    assert_eq!(has.keys().copied().collect::<BTreeSet<_>>(), keys(&known));
    let center = (8, 0);
    assert!(disc(center, 6).is_subset(&keys(&known)));
    assert!(keys(&known).is_subset(&disc(center, 6 + HYSTERESIS)));
    for column in disc(center, 6) {
        assert!(known[&column].detail() <= detail_at(column, center, 2), "{column:?}");
    }
}

/// Promise, far view: A far view gets no more bytes a second than its cap.
/// Promise, far view: The radius, the detail and the cap of a far view can be changed at any time.
#[test]
fn a_far_view_stays_within_its_cap() {
    let (mut app, dimension) = generated(lockstep(), 10);
    let cap = 2_000;
    let view = FarView::in_dimension(dimension).with_radius(10).with_bytes_per_second(cap);
    let listener = lone(&mut app, view, 8.0);
    let mut bytes = Vec::new();
    for _ in 0..200 {
        forget_messages(&mut app);
        app.update();
        bytes.push(received(&app, listener).iter().map(|message| message.bytes).sum::<u64>());
    }
    let largest = 16 + 2 + 1 + 3 * 256 + 512;
    for second in bytes.windows(20) {
        assert!(second.iter().sum::<u64>() <= cap + cap / 4 + largest, "{second:?}");
    }
    let all: u64 = bytes.iter().sum();
    assert!((cap * 9..=cap * 11).contains(&all), "ten seconds bring what they may: {all}");
    // The settings apply from the next update.
    let mut set = |bytes: u64| {
        app.world_mut().get_mut::<FarView>(listener).unwrap().bytes_per_second = bytes;
        update(&mut app, 2);
        forget_messages(&mut app);
        update(&mut app, ENOUGH);
        (received(&app, listener).len(), known(&app, listener).len())
    };
    assert_eq!(set(0).0, 0);
    assert_eq!(set(1 << 20).1, disc((0, 0), 10).len());
}

/// Promise, far view: The radius, the detail and the cap of a far view can be changed at any time.
#[test]
fn the_radius_can_be_changed_at_any_time() {
    let (mut app, dimension) = generated(lockstep(), 12);
    let listener = lone(&mut app, FarView::in_dimension(dimension).with_radius(3).with_detail_radius(2), 8.0);
    update(&mut app, ENOUGH);
    for (radius, detail_radius) in [(9, 2), (9, 4), (2, 1), (5, 1), (0, 0), (12, 12)] {
        let before = known(&app, listener);
        forget_messages(&mut app);
        let mut view = app.world_mut().get_mut::<FarView>(listener).unwrap();
        (view.radius, view.detail_radius) = (radius, detail_radius);
        update(&mut app, ENOUGH);
        let known = known(&app, listener);
        assert!(disc((0, 0), radius.into()).is_subset(&keys(&known)));
        assert!(keys(&known).is_subset(&disc((0, 0), i64::from(radius) + HYSTERESIS)));
        for message in received(&app, listener) {
            let column = (message.column.x, message.column.z);
            assert_eq!(summary(message).detail(), detail_at(column, (0, 0), detail_radius.into()));
            let is_needed = before.get(&column).is_none_or(|before| before.detail() > summary(message).detail());
            assert!(is_needed, "{column:?} was sent again");
        }
    }
}

/// Promise, far view: A far view gets a column again after a visible edit.
#[test]
fn visible_edits_arrive_and_invisible_ones_do_not() {
    let mut app = far_game(saving_soon());
    let dimension = flat(&mut app);
    let near = Viewer::in_dimension(dimension).with_radius(5);
    let view = FarView::new().with_radius(4).with_detail_radius(1);
    let listener = app.world_mut().spawn((near, view, Transform::default())).id();
    start(&mut app);
    update(&mut app, ENOUGH);
    forget_messages(&mut app);
    let stone = id_of(app.world(), "terrane:stone");
    let set = |app: &mut App, position: BlockPos, block: BlockId| {
        app.world_mut().write_message(SetBlock { dimension, position, block });
    };
    set(&mut app, BlockPos::new(5, 30, 5), stone);
    // Below the surface, and too small for cells of four blocks.
    set(&mut app, BlockPos::new(5, -20, 25), BlockId::AIR);
    set(&mut app, BlockPos::new(16 * 3, 1, 0), stone);
    update(&mut app, ENOUGH);
    assert_eq!(places(&received(&app, listener)), [(0, 0)]);
    let tower = known(&app, listener)[&(0, 0)].surface(5, 5).unwrap();
    assert_eq!((tower.height, tower.block), (30, stone));

    set(&mut app, BlockPos::new(5, 30, 5), BlockId::AIR);
    update(&mut app, ENOUGH);
    assert_eq!(known(&app, listener)[&(0, 0)].surface(5, 5).unwrap().height, 0);
}

#[test]
fn a_change_just_beyond_the_radius_removes_the_sent_column() {
    let mut app = far_game(saving_soon());
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 9);
    let listener = listener(&mut app, dimension, FarView::new().with_radius(4), 0.0);
    start(&mut app);
    update(&mut app, ENOUGH);
    move_viewer(&mut app, listener, -32.0, 0.0);
    update(&mut app, ENOUGH);
    assert!(known(&app, listener).contains_key(&(4, 0)), "it is kept for a while");
    let stone = id_of(app.world(), "terrane:stone");
    app.world_mut().write_message(SetBlock { dimension, position: BlockPos::new(64, 5, 0), block: stone });
    update(&mut app, ENOUGH);
    assert!(!known(&app, listener).contains_key(&(4, 0)));
    move_viewer(&mut app, listener, 0.0, 0.0);
    update(&mut app, ENOUGH);
    assert_eq!(known(&app, listener)[&(4, 0)].surface(0, 0).unwrap().height, 5);
}

/// Promise, far view: A `FarView` works beside a viewer, on any entity with a place, or for a viewer that lives in a region.
/// Promise, far view: `FarColumns` holds all current columns of a far view.
#[test]
fn several_listeners_in_several_dimensions_each_get_their_own() {
    let mut app = far_game(lockstep());
    let dimensions = ["one", "two"].map(|name| spawn_dimension(&mut app, Dimension::new(name, Flat::new())));
    for dimension in dimensions {
        viewer(&mut app, dimension, 0.0, 0.0, 6);
    }
    start(&mut app);
    let near = lone(&mut app, FarView::in_dimension(dimensions[0]).with_radius(2), 0.0);
    let far = lone(&mut app, FarView::in_dimension(dimensions[0]).with_radius(5), 0.0);
    let elsewhere = lone(&mut app, FarView::in_dimension(dimensions[1]).with_radius(3), 0.0);
    update(&mut app, ENOUGH);
    for (listener, radius) in [(near, 2), (far, 5), (elsewhere, 3)] {
        assert_eq!(places(&received(&app, listener)).len(), disc((0, 0), radius).len());
        assert_eq!(keys(&known(&app, listener)), disc((0, 0), radius));
    }
    // From one dimension to the other: all columns of the first are gone.
    let [one, two] = dimensions.map(|dimension| dimension);
    forget_messages(&mut app);
    app.world_mut().entity_mut(near).insert(FarView::in_dimension(dimensions[1]).with_radius(2));
    update(&mut app, ENOUGH);
    let gone = gone(&app);
    assert!(
        gone.len() == disc((0, 0), 2).len() && gone.iter().all(|gone| (gone.listener, gone.dimension) == (near, one))
    );
    assert!(received(&app, near).iter().all(|message| message.dimension == two));
    assert_eq!(keys(&known(&app, near)), disc((0, 0), 2));

    // All columns of a dimension that closes are gone; when it opens again, they come back.
    despawn_dimension(&mut app, dimensions[1]);
    update(&mut app, ENOUGH);
    assert!(known(&app, near).is_empty() && known(&app, elsewhere).is_empty());
    let again = spawn_dimension(&mut app, Dimension::new("two", Flat::new()));
    app.world_mut().entity_mut(near).insert(FarView::in_dimension(again).with_radius(2));
    update(&mut app, ENOUGH);
    assert_eq!(keys(&known(&app, near)), disc((0, 0), 2));

    app.world_mut().despawn(far);
    update(&mut app, 3);
    assert!(app.world().resource::<FarColumns>().is_empty(far));
}

#[test]
fn a_far_view_is_a_job_that_pauses_ends_and_begins_again() {
    let (mut app, dimension) = generated(lockstep(), 12);
    let view = FarView::in_dimension(dimension).with_radius(2);
    let [one, two] = [view, view].map(|view| lone(&mut app, view, 0.0));
    update(&mut app, ENOUGH);
    let all = disc((0, 0), 2);
    assert_eq!(keys(&known(&app, one)), all);
    let progress = app.world().get::<JobProgress>(one).unwrap();
    assert_eq!((progress.state, progress.done, progress.total), (JobState::Running, 13, 13));

    // Removed and inserted again within a frame.
    app.world_mut().entity_mut(one).remove::<FarView>().insert(view);
    update(&mut app, ENOUGH);
    assert_eq!(keys(&known(&app, one)), all);

    // A paused listener gets no news except that its dimension closes, and the next dimension is not affected by it.
    app.world_mut().write_message(ControlJob { entity: one, order: JobOrder::Pause });
    update(&mut app, 5);
    assert_eq!(app.world().get::<JobProgress>(one).unwrap().state, JobState::Paused);
    despawn_dimension(&mut app, dimension);
    update(&mut app, ENOUGH);
    assert!(known(&app, one).is_empty() && known(&app, two).is_empty());
    let again = spawn_dimension(&mut app, Dimension::new("overworld", Hills::seeded(3)));
    for listener in [two, one] {
        app.world_mut().entity_mut(listener).insert(FarView::in_dimension(again).with_radius(2));
    }
    update(&mut app, ENOUGH);
    assert!(known(&app, one).is_empty());
    assert_eq!(keys(&known(&app, two)), all);
    app.world_mut().write_message(ControlJob { entity: one, order: JobOrder::Resume });
    update(&mut app, ENOUGH);
    assert_eq!([one, two].map(|listener| keys(&known(&app, listener))), [all.clone(), all.clone()]);

    app.world_mut().write_message(ControlJob { entity: one, order: JobOrder::Cancel });
    update(&mut app, 5);
    assert!(app.world().get::<FarView>(one).is_none() && app.world().resource::<FarColumns>().is_empty(one));
    assert_eq!(keys(&known(&app, two)), all);
    app.world_mut().entity_mut(one).insert(FarView::in_dimension(again).with_radius(2));
    update(&mut app, ENOUGH);
    assert_eq!(keys(&known(&app, one)), all);
}

/// Promise, far view: A `FarView` works beside a viewer, on any entity with a place, or for a viewer that lives in a region.
#[test]
fn a_viewer_in_a_region_has_a_far_view_in_the_main_world() {
    let (mut app, dimension) = generated(lockstep(), 12);
    let id = uuid::Uuid::from_u128(77);
    let bundle = (walker("far", 2.0), StableId(id), Viewer::new().with_radius(1));
    spawn_in_region(&mut app, dimension, BlockPos::new(8, 5, 8), bundle);
    let listener = app.world_mut().spawn(FarView::of_viewer(id).with_radius(3)).id();
    update(&mut app, 48);
    let (_, place) = walkers(app.world_mut()).pop().unwrap();
    assert!(place.column().x >= 3, "it walks: {place:?}");
    update(&mut app, 6);
    let center = walkers(app.world_mut()).pop().unwrap().1.column();
    let known = keys(&known(&app, listener));
    let inner = disc((center.x, center.z), 2);
    assert!(inner.is_subset(&known), "{center}: {known:?}");
    assert!(known.is_subset(&disc((center.x, center.z), 3 + HYSTERESIS + 1)));
}

#[test]
fn two_runs_send_the_same_in_the_same_order() {
    let run = || {
        let mut app = far_game(lockstep());
        let dimension = spawn_dimension(&mut app, Dimension::new("overworld", Hills::seeded(3)));
        let near = Viewer::in_dimension(dimension).with_radius(7);
        let view = FarView::new().with_radius(6).with_detail_radius(2).with_bytes_per_second(9_000);
        let listener = app.world_mut().spawn((near, view, Transform::default())).id();
        start(&mut app);
        let mut log = Vec::new();
        for step in 0..80 {
            move_viewer(&mut app, listener, (step * 3) as f32, 0.0);
            forget_messages(&mut app);
            app.update();
            let received = received(&app, listener);
            log.push(received.iter().map(|message| (message.column, message.summary.clone())).collect::<Vec<_>>());
        }
        log
    };
    assert!(run() == run());
}

/// Makes values on a disk unreadable.
#[derive(Default)]
struct Damage {
    is_damaged: AtomicBool,
    is_unreadable: AtomicBool,
    asked: AtomicUsize,
}

impl Damage {
    /// Summaries are the only values of this family that are read many at once.
    fn on_read(&self, family: Family, keys: &[&[u8]], values: &mut [Option<Vec<u8>>]) -> Result<(), StoreError> {
        self.check("read", Some(family))?;
        if family == Family::Meta && self.is_damaged.load(Ordering::SeqCst) {
            self.asked.fetch_add(1, Ordering::SeqCst);
            // One is damaged, one lost, one intact, and so on.
            for (key, value) in keys.iter().zip(values) {
                match key.last().copied().unwrap_or_default() % 3 {
                    0 => value.iter_mut().flat_map(|value| value.last_mut()).for_each(|byte| *byte ^= 1),
                    1 => *value = None,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn check(&self, operation: &'static str, family: Option<Family>) -> Result<(), StoreError> {
        match self.is_unreadable.load(Ordering::SeqCst) {
            false => Ok(()),
            true => Err(StoreError::Backend { operation, family, path: "disk".into(), reason: "a bad sector".into() }),
        }
    }
}

/// A disk whose summaries can be made unreadable.
fn damageable() -> (Disk, Arc<Damage>) {
    let (disk, damage) = (Disk::default(), Arc::<Damage>::default());
    let reads = damage.clone();
    disk.on_read(move |family, keys, values| reads.on_read(family, keys, values));
    let scans = damage.clone();
    disk.on_scan(move |_, _, _| scans.check("scan", None));
    (disk, damage)
}

fn stored_in(disk: &Disk) -> TerranePlugin {
    TerranePlugin { tick_mode: TickMode::Lockstep, ..disk.plugin() }
}

/// The summaries that a listener at the origin gets of the stored columns.
fn look(disk: &Disk, radius: u32) -> BTreeMap<(i64, i64), Arc<ColumnSummary>> {
    let mut app = far_game(stored_in(disk));
    let dimension = spawn_dimension(&mut app, Dimension::new("overworld", Hills::seeded(3)));
    start(&mut app);
    let view = FarView::in_dimension(dimension).with_radius(radius).with_detail_radius(3);
    let listener = lone(&mut app, view, 8.0);
    update(&mut app, ENOUGH);
    assert_eq!(received(&app, listener).len(), known(&app, listener).len(), "each once");
    known(&app, listener)
}

#[test]
fn after_a_restart_the_same_summaries_arrive_and_damaged_ones_are_rebuilt() {
    let (disk, damage) = damageable();
    let (app, _) = generated(stored_in(&disk), 8);
    drop(app);
    let whole = look(&disk, 7);
    assert_eq!(keys(&whole), disc((0, 0), 7));

    damage.is_damaged.store(true, Ordering::SeqCst);
    assert!(look(&disk, 7) == whole);
    assert!(damage.asked.load(Ordering::SeqCst) > 0);
}

#[test]
fn an_unreadable_summary_is_skipped_and_sent_once_readable() {
    let (disk, damage) = damageable();
    let plugin = TerranePlugin { saving: SaveSettings::every(Duration::from_millis(500)), ..stored_in(&disk) };
    let (mut app, dimension) = generated(plugin, 6);
    damage.is_unreadable.store(true, Ordering::SeqCst);
    let listener = lone(&mut app, FarView::in_dimension(dimension).with_radius(4), 8.0);
    update(&mut app, ENOUGH);
    assert!(known(&app, listener).is_empty());
    damage.is_unreadable.store(false, Ordering::SeqCst);
    // Out of its range, and back.
    move_viewer(&mut app, listener, 16.0 * 40.0, 0.0);
    update(&mut app, 4);
    assert!(gone(&app).is_empty(), "it had nothing");
    move_viewer(&mut app, listener, 8.0, 0.0);
    update(&mut app, ENOUGH);
    assert_eq!(keys(&known(&app, listener)), disc((0, 0), 4));
}

#[test]
fn a_stalled_main_world_bounds_the_far_view() {
    let plugin = TerranePlugin::in_memory();
    let mut app = far_game(plugin);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 40);
    start(&mut app);
    let wanted = disc((0, 0), 40).len();
    update_until(&mut app, "everything is generated", |world| world.resource::<PublishedColumns>().len() >= wanted);
    let listener = lone(&mut app, FarView::in_dimension(dimension).with_radius(40).with_bytes_per_second(1 << 30), 0.0);
    app.update();
    // The app stands still, but the coordinator does not: it may continue up to its limit.
    std::thread::sleep(Duration::from_millis(500));
    app.update();
    let first = received(&app, listener).len();
    assert!((100..=4_096).contains(&first) && first < wanted, "{first} of {wanted}");
    update_until(&mut app, "the rest has come", |world| world.resource::<FarColumns>().len(listener) == wanted);
    assert_eq!(received(&app, listener).len(), wanted, "each once");
}
