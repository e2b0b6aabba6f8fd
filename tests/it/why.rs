//! Why a column, a region or an entity is as it is: each cause is made on purpose.

use crate::disk::Disk;
use crate::support::gate::Gate;
use crate::support::ground::Watched;
use crate::support::*;
use bevy::ecs::system::SystemState;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::{RegionColumns, RegionProfile};
use bevy_terrane::storage::{MemoryStore, StorageConfig};
use bevy_terrane::view::{
    AskColumn, AskError, ColumnAnswer, ColumnCause, ColumnPhase, ColumnReport, Coupling, DimensionClosed,
    DimensionGeneration, EntityPlaced, FollowEntity, Pacing, Pregeneration, RegionCause, RegionOrder, RetryColumns,
    Ticket, Whereabouts,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use terrane_inspect::Inspector;
use uuid::Uuid;

const FAR: ColumnPos = ColumnPos::new(100, 0);

/// Asks about a column.
fn ask(app: &mut App, dimension: DimensionId, column: ColumnPos) -> Result<ColumnReport, AskError> {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let request = LAST.fetch_add(1, Ordering::SeqCst);
    if !app.world().contains_resource::<Heard<ColumnAnswer>>() {
        listen::<ColumnAnswer>(app);
    }
    app.world_mut().write_message(AskColumn { request, dimension, column });
    let mut report = None;
    update_until(app, "the question is answered", |world| {
        let answers = &world.resource::<Heard<ColumnAnswer>>().0;
        report = answers.iter().find(|answer| answer.request == request).cloned();
        report.is_some()
    });
    let answer = report.unwrap();
    assert_eq!((answer.dimension, answer.column), (dimension, column));
    answer.report
}

/// Asks about a column until the report is as expected.
fn ask_until(
    app: &mut App,
    (dimension, column): (DimensionId, ColumnPos),
    what: &str,
    is_it: impl Fn(&ColumnReport) -> bool,
) -> ColumnReport {
    let mut last = None;
    for _ in 0..2_000 {
        let report = ask(app, dimension, column).unwrap();
        if is_it(&report) {
            assert!(!report.cause.to_string().is_empty() && report.cause.action().ends_with('.'));
            return report;
        }
        last = Some(report);
        update(app, 1);
    }
    panic!("waited in vain until {what}: {last:?}");
}

fn is(phase: ColumnPhase, cause: impl Fn(&ColumnCause) -> bool) -> impl Fn(&ColumnReport) -> bool {
    move |report| report.phase == phase && cause(&report.cause)
}

fn held_by(ticket: Ticket) -> impl Fn(&ColumnCause) -> bool {
    move |cause| matches!(cause, ColumnCause::Held(by) if by.ticket == ticket)
}

/// Promise, why: A question about a column names who holds it, and what it waits for.
#[test]
fn a_column_names_the_viewer_that_holds_it_until_it_is_gone() {
    let mut app = game(lockstep());
    let dimension = flat(&mut app);
    let main = viewer(&mut app, dimension, 8.0, 8.0, 2);
    start(&mut app);
    let here = (dimension, HERE.column());
    let report = ask_until(&mut app, here, "it is loaded", is(ColumnPhase::Loaded, held_by(Ticket::Main(main))));
    let region = region_at(app.world(), dimension, HERE.column()).map(|region| region.region);
    assert_eq!((report.region, report.holds, report.tickets.len()), (region, 1, 1));
    assert_eq!((report.tickets[0].center, report.tickets[0].radius), (ColumnPos::new(0, 0), 4));
    assert!(report.is_stored && report.made_in.is_some_and(|time| time > Duration::ZERO));
    save(&mut app);
    let report = ask(&mut app, dimension, HERE.column()).unwrap();
    assert!(!report.is_being_saved && report.last_save.is_some() && report.next_save.is_some(), "{report:?}");

    // A viewer in a region holds it as well. The nearer one comes first.
    let id = Uuid::from_u128(0x77);
    spawn_in_region(&mut app, dimension, BlockPos::new(56, 5, 8), (StableId(id), Viewer::new().with_radius(2)));
    let at = (dimension, ColumnPos::new(2, 0));
    let both = [Ticket::Region(id), Ticket::Main(main)];
    let report = ask_until(&mut app, at, "both hold it", |report| {
        report.holds == 2 && report.tickets.iter().map(|by| by.ticket).eq(both)
    });
    assert!(report.to_owned().cause.to_string().contains(&id.to_string()));

    app.world_mut().despawn(main);
    let report = ask_until(&mut app, (dimension, ColumnPos::new(-2, 0)), "it is stored", |report| {
        report.phase == ColumnPhase::Stored
    });
    assert_eq!((report.cause, report.holds, report.since, report.made_in), (ColumnCause::NoTicket, 0, None, None));
    let report = ask(&mut app, dimension, FAR).unwrap();
    assert_eq!((report.phase, report.cause, report.is_stored), (ColumnPhase::Absent, ColumnCause::NoTicket, false));
    // What lies in the margin of a ticket is kept, but not loaded.
    let report = ask(&mut app, dimension, ColumnPos::new(3, 4)).unwrap();
    assert_eq!((report.phase, report.cause, report.holds), (ColumnPhase::Absent, ColumnCause::NoTicket, 1));
    assert_eq!(ask(&mut app, DimensionId(77), FAR), Err(AskError::NotOpen));
}

/// Promise, why: A question about a column names who holds it, and what it waits for.
#[test]
fn a_column_that_waits_says_for_what() {
    let ground = Watched::default();
    let mut app = game(TerranePlugin { pacing: Pacing::fixed(4), ..TerranePlugin::in_memory() });
    let dimension = spawn_dimension(&mut app, ground.dimension("overworld"));
    let settings = DimensionGeneration { paused: true, attempts: 2, ..default() };
    start(&mut app);
    insert_into_dimension(&mut app, dimension, settings);
    viewer(&mut app, dimension, 8.0, 8.0, 3);
    let here = (dimension, HERE.column());
    let absent = |cause: fn(&ColumnCause) -> bool| is(ColumnPhase::Absent, cause);
    ask_until(&mut app, here, "it waits", absent(|cause| *cause == ColumnCause::GenerationPaused));

    // A letter waits for ground too.
    in_region(&mut app, dimension, FAR.chunk(0).min_block(), |_| {});
    let report = ask_until(&mut app, (dimension, FAR), "a letter waits", |report| report.letters == 1);
    assert_eq!((report.phase, report.cause, report.holds), (ColumnPhase::Absent, ColumnCause::GenerationPaused, 0));

    // No column passes the gate: four are in flight, and the others wait.
    ground.close_gate_after(0);
    insert_into_dimension(&mut app, dimension, DimensionGeneration { paused: false, ..settings });
    let border = (dimension, ColumnPos::new(-3, 0));
    ask_until(
        &mut app,
        border,
        "the limit is reached",
        absent(|cause| matches!(cause, ColumnCause::AllInFlight { limit: 4, .. })),
    );
    ask_until(&mut app, here, "it is on order", |report| report.phase == ColumnPhase::Ordered);
    let report = ask_until(&mut app, (dimension, FAR), "a letter holds it", |report| report.holds == 1);
    assert_eq!((report.tickets[0].ticket, report.letters), (Ticket::Letters(FAR.chunk(0)), 1));

    // It fails, is tried again, and is set aside.
    ground.fail(&[ColumnPos::new(2, 2), ColumnPos::new(0, 2)]);
    ground.open_gate();
    let failing = (dimension, ColumnPos::new(2, 2));
    let report = ask_until(&mut app, failing, "it fails", |report| report.phase == ColumnPhase::Failed);
    let ColumnCause::Failed { error: Some(error), attempts: 1, retry: Some(_) } = report.cause else {
        panic!("{report:?}")
    };
    assert!(error.contains("no ground here"), "{error}");
    let report = ask_until(&mut app, failing, "it is set aside", |report| report.phase == ColumnPhase::SetAside);
    assert!(matches!(report.cause, ColumnCause::Failed { error: Some(_), attempts: 2, retry: None }), "{report:?}");
    // The action ends it.
    ground.fail(&[]);
    app.world_mut().write_message(RetryColumns { dimension, column: None });
    ask_until(&mut app, failing, "it is there", |report| report.phase == ColumnPhase::Loaded);

    // A cap of columns a second.
    let settings = DimensionGeneration { columns_per_second: Some(0.0), ..settings };
    insert_into_dimension(&mut app, dimension, DimensionGeneration { paused: false, ..settings });
    update(&mut app, 5);
    viewer(&mut app, dimension, 3_208.0, 8.0, 1);
    let capped = (dimension, ColumnPos::new(200, 0));
    ask_until(&mut app, capped, "it is capped", absent(|cause| *cause == ColumnCause::Capped));

    // A pre-generation makes columns for the store only.
    insert_into_dimension(
        &mut app,
        dimension,
        DimensionGeneration { columns_per_second: None, paused: false, ..settings },
    );
    ask_until(&mut app, capped, "it is there", |report| report.phase == ColumnPhase::Loaded);
    ground.close_gate_after(0);
    let area = ColumnArea::Disc { center: ColumnPos::new(400, 0), radius: 1 };
    app.world_mut().spawn(Pregeneration { dimension, area });
    let report = ask_until(&mut app, (dimension, ColumnPos::new(400, 0)), "it is being made", |report| {
        report.phase == ColumnPhase::ForStore
    });
    assert_eq!((report.cause, report.holds), (ColumnCause::Pregeneration, 0));
    ground.open_gate();
    ask_until(&mut app, (dimension, ColumnPos::new(400, 0)), "it is stored", |report| {
        report.phase == ColumnPhase::Stored && report.since.is_none()
    });

    // So does a generation radius, once the five columns within the radius are there.
    ground.close_gate_after(5);
    let far = Viewer::in_dimension(dimension).with_radius(1).with_generation_radius(4);
    let far = app.world_mut().spawn((far, Transform::from_xyz(8_008.0, 0.0, 8.0))).id();
    let report = ask_until(&mut app, (dimension, ColumnPos::new(501, 1)), "it is being made", |report| {
        report.phase == ColumnPhase::ForStore
    });
    assert!(matches!(report.cause, ColumnCause::GeneratedFor(by) if by.ticket == Ticket::Main(far)), "{report:?}");
    ground.open_gate();
}

/// Promise, why: A question about a column names who holds it, and what it waits for.
#[test]
fn a_column_that_a_system_reads_or_that_halted_says_so() {
    let mut app = game(TerranePlugin::in_memory());
    app.add_region_plugins(|region| {
        region.add_systems(RegionTick, |walkers: Query<&Walker>| {
            assert!(walkers.iter().all(|walker| walker.name != "bomb"), "a bomb went off");
        });
    });
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 8.0, 8.0, 1);
    start(&mut app);
    let here = (dimension, HERE.column());
    ask_until(&mut app, here, "it is loaded", |report| report.phase == ColumnPhase::Loaded);
    // In the region's own section, out of the viewer's reach.
    let beside = BlockPos::new(3 * 16, 5, 3 * 16);
    let is_read = (0..500).any(|_| {
        // It is evicted a moment later.
        in_region(&mut app, dimension, HERE, move |world| {
            world.resource_mut::<RegionColumns>().load(beside).unwrap();
        });
        let report = ask(&mut app, dimension, beside.column()).unwrap();
        (report.phase, report.cause) == (ColumnPhase::Loaded, ColumnCause::Read)
    });
    assert!(is_read);
    ask_until(&mut app, (dimension, beside.column()), "it is evicted", |report| report.phase == ColumnPhase::Stored);

    spawn_in_region(&mut app, dimension, HERE, walker("bomb", 0.0));
    let report = ask_until(&mut app, here, "it halts", |report| report.phase == ColumnPhase::Halted);
    let ColumnCause::RegionHalted(fault) = &report.cause else { panic!("{report:?}") };
    assert_eq!(fault.reason, "a bomb went off");
    order(&mut app, dimension, HERE.column(), RegionOrder::Restart);
    ask_until(&mut app, here, "it is back", |report| report.phase == ColumnPhase::Loaded);
}

/// Promise, why: A question about a column names who holds it, and what it waits for.
#[test]
fn a_store_that_is_behind_or_fails_is_named() {
    let disk = Disk::default();
    let saving = SaveSettings { unsaved_limit: 8, ..SaveSettings::every(Duration::from_millis(200)) };
    let mut app = game(TerranePlugin { saving, pacing: Pacing::fixed(16), ..disk.plugin() });
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 8.0, 8.0, 1);
    start(&mut app);
    let here = (dimension, HERE.column());
    ask_until(&mut app, here, "it is loaded", |report| report.phase == ColumnPhase::Loaded);
    update_until(&mut app, "its region is known", |world| region_at(world, dimension, HERE.column()).is_some());
    let region = region_at(app.world(), dimension, HERE.column()).unwrap().region;
    disk.gate().close();
    // A flying viewer makes new ground, which is to be saved.
    let flying = viewer(&mut app, dimension, 2_000.0, 8.0, 2);
    update_until(&mut app, "no region ticks", |world| {
        world.get_mut::<Transform>(flying).unwrap().translation.x += 4.0;
        let stone = id_of(world, "terrane:stone");
        for chunk in 0..24 {
            let position = BlockPos::new(world.resource::<Time>().elapsed().as_millis() as i64 % 16, 16 * chunk, 3);
            world.write_message(SetBlock { dimension, position, block: stone });
        }
        world.resource::<WorldStatistics>().why(dimension, region) == Some(RegionCause::StoreBehind)
    });
    let place = app.world().get::<Transform>(flying).unwrap().translation.x as i64;
    move_viewer(&mut app, flying, place as f32 + 4_000.0, 8.0);
    let ahead = BlockPos::new(place + 4_000, 5, 8).column();
    ask_until(
        &mut app,
        (dimension, ahead),
        "it waits for the store",
        is(ColumnPhase::Absent, |cause| *cause == ColumnCause::StoreBehind),
    );
    let flown_over = (2_000..place).step_by(16).map(|x| BlockPos::new(x, 5, 8).column());
    let is_being_saved = flown_over.map(|column| ask(&mut app, dimension, column).unwrap().is_being_saved);
    assert!(is_being_saved.collect::<Vec<_>>().contains(&true));
    disk.gate().open();
    ask_until(&mut app, (dimension, ahead), "it is there", |report| report.phase == ColumnPhase::Loaded);
    ask_until(&mut app, here, "it is saved", |report| !report.is_being_saved);
}

/// Promise, why: A question about a column names who holds it, and what it waits for.
#[test]
fn a_column_that_waits_for_the_disk_says_so() {
    let disk = Disk::default();
    let saving = SaveSettings::every(Duration::from_millis(50));
    let mut app = game(TerranePlugin { saving, pacing: Pacing::fixed(4), ..disk.plugin() });
    app.add_region_plugins(|region| {
        region.add_systems(RegionTick, |walkers: Query<&Walker>| {
            assert!(walkers.iter().all(|walker| walker.name != "bomb"), "a bomb went off");
        });
    });
    listen::<DimensionClosed>(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 8.0, 8.0, 1);
    start(&mut app);
    let here = (dimension, HERE.column());
    ask_until(&mut app, here, "it is loaded", |report| report.phase == ColumnPhase::Loaded);

    // Ground that is stored cannot be read.
    let edge = (dimension, ColumnPos::new(FAR.x + 5, 0));
    let far = viewer(&mut app, dimension, 1_608.0, 8.0, 5);
    ask_until(&mut app, edge, "it is there", |report| report.phase == ColumnPhase::Loaded);
    save(&mut app);
    app.world_mut().despawn(far);
    ask_until(&mut app, edge, "it is in the store", |report| report.phase == ColumnPhase::Stored);
    disk.set_unreadable(true);
    let far = viewer(&mut app, dimension, 1_608.0, 8.0, 5);
    let fails = |cause: &ColumnCause| matches!(cause, ColumnCause::StoreFails(_));
    ask_until(&mut app, edge, "the store fails", is(ColumnPhase::Stored, fails));
    disk.set_unreadable(false);
    ask_until(&mut app, edge, "it is there", |report| report.phase == ColumnPhase::Loaded);
    app.world_mut().despawn(far);

    // A region restarts while its last changes are on their way into the store.
    disk.commits().close();
    let stone = id_of(app.world(), "terrane:stone");
    app.world_mut().write_message(SetBlock { dimension, position: HERE, block: stone });
    ask_until(&mut app, here, "it is being saved", |report| report.is_being_saved);
    spawn_in_region(&mut app, dimension, HERE, walker("bomb", 0.0));
    ask_until(&mut app, here, "it halts", |report| report.phase == ColumnPhase::Halted);
    order(&mut app, dimension, HERE.column(), RegionOrder::Restart);
    ask_until(&mut app, here, "it waits", is(ColumnPhase::Lost, |cause| *cause == ColumnCause::AwaitsSave));
    disk.commits().open();
    ask_until(&mut app, here, "it is back", |report| report.phase == ColumnPhase::Loaded);
    let kept = ask_region(&mut app, dimension, HERE, |blocks: RegionBlocks| blocks.block(HERE).ok());
    assert_eq!(kept, Some(stone));

    // Its dimension closes.
    disk.commits().close();
    let dirt = id_of(app.world(), "terrane:dirt");
    app.world_mut().write_message(SetBlock { dimension, position: HERE, block: dirt });
    update(&mut app, 5);
    despawn_dimension(&mut app, dimension);
    ask_until(&mut app, (dimension, ColumnPos::new(500, 0)), "it closes", |report| {
        report.cause == ColumnCause::Closing
    });
    disk.commits().open();
    update_until(&mut app, "it is closed", |world| !world.resource::<Heard<DimensionClosed>>().0.is_empty());
    assert_eq!(ask(&mut app, dimension, HERE.column()), Err(AskError::NotOpen));
}

/// Promise, why: A question about a column names who holds it, and what it waits for.
#[test]
fn ground_of_another_server_is_named() {
    let store = Arc::new(MemoryStore::default());
    let server = |number: u8| {
        let storage = StorageConfig::Shared { store: store.clone(), address: vec![number] };
        let mut app =
            game(TerranePlugin { storage, saving: SaveSettings::every(Duration::from_secs(1)), ..lockstep() });
        let dimension = flat(&mut app);
        viewer(&mut app, dimension, 8.0, 8.0, 1);
        start(&mut app);
        (app, dimension)
    };
    let (mut first, dimension) = server(1);
    let here = (dimension, HERE.column());
    ask_until(&mut first, here, "it is loaded", |report| report.phase == ColumnPhase::Loaded);
    let (mut second, dimension) = server(2);
    let one = first.world().resource::<WorldStatistics>().servers.iter().find(|server| server.is_this).unwrap();
    let incarnation = one.incarnation;
    ask_until(&mut second, (dimension, HERE.column()), "the other has it", |report| {
        report.cause == ColumnCause::OtherServer(Some(incarnation))
    });
}

/// The cause of how the region here ticks.
fn why(world: &World, dimension: DimensionId, at: BlockPos) -> Option<RegionCause> {
    let region = region_at(world, dimension, at.column())?;
    world.resource::<WorldStatistics>().why(dimension, region.region)
}

fn why_until(
    app: &mut App,
    (dimension, at): (DimensionId, BlockPos),
    what: &str,
    is_it: impl Fn(&RegionCause) -> bool,
) {
    update_until(app, what, |world| why(world, dimension, at).is_some_and(|cause| is_it(&cause)));
    let cause = why(app.world(), dimension, at).unwrap();
    assert!(!cause.to_string().is_empty() && cause.action().ends_with('.'));
}

const THERE: BlockPos = BlockPos::new(16 * 100, 5, 0);

/// Two regions, with a bomb that halts one and a gate that holds one up.
fn two_regions(plugin: TerranePlugin) -> (App, DimensionId, Gate) {
    let mut app = game(plugin);
    let gate = Gate::default();
    let copy = gate.clone();
    app.add_region_plugins(move |region| {
        region.insert_resource(copy.clone()).add_systems(RegionTick, |gate: Res<Gate>, walkers: Query<&Walker>| {
            for walker in &walkers {
                match walker.name.as_str() {
                    "bomb" => panic!("a bomb went off"),
                    "slow" => gate.pass(),
                    "lazy" => std::thread::sleep(Duration::from_millis(60)),
                    _ => {}
                }
            }
        });
    });
    let dimension = flat(&mut app);
    for block in [HERE, THERE] {
        viewer(&mut app, dimension, block.x as f32, 0.0, 1);
    }
    start(&mut app);
    update_until(&mut app, "both tick", |world| {
        [HERE, THERE].iter().all(|place| region_at(world, dimension, place.column()).is_some_and(|it| it.ticks > 0))
    });
    (app, dimension, gate)
}

/// Promise, why: A question about a region names the first cause why it does not tick, or is slow.
#[test]
fn a_region_that_does_not_tick_says_why() {
    let faults = FaultSettings { watchdog_limit: Duration::from_millis(150), ..default() };
    let (mut app, dimension, gate) = two_regions(TerranePlugin { faults, ..TerranePlugin::in_memory() });
    let (here, there) = ((dimension, HERE), (dimension, THERE));
    why_until(&mut app, here, "it ticks", |cause| *cause == RegionCause::OnTime);
    order(&mut app, dimension, HERE.column(), RegionOrder::Pause);
    why_until(&mut app, here, "it is paused", |cause| *cause == RegionCause::Paused);
    // A coupled region waits for it.
    let coupling = app.world_mut().spawn(Coupling { ends: [here, there] }).id();
    let paused = region_at(app.world(), dimension, HERE.column()).unwrap().region;
    why_until(&mut app, there, "it waits", |cause| *cause == RegionCause::Coupled(dimension, paused));
    app.world_mut().despawn(coupling);
    order(&mut app, dimension, HERE.column(), RegionOrder::Resume);
    clock(&mut app, dimension, DimensionClock { paused: true, ..default() });
    why_until(&mut app, here, "the dimension is paused", |cause| *cause == RegionCause::DimensionPaused);
    clock(&mut app, dimension, DimensionClock::default());
    why_until(&mut app, here, "it ticks", |cause| *cause == RegionCause::OnTime);

    gate.close();
    spawn_in_region(&mut app, dimension, HERE, walker("slow", 0.0));
    let hung = region_at(app.world(), dimension, HERE.column()).unwrap().region;
    let is_hung = move |cause: &RegionCause| matches!(cause, RegionCause::Hung { region, step, .. } if *region == hung && step == "RegionTick");
    why_until(&mut app, here, "it hangs", is_hung);
    // New ground beside it waits for the end of its tick, and so names the region that hangs.
    let beside = BlockPos::new(16 * 12, 5, 0);
    viewer(&mut app, dimension, beside.x as f32, 0.0, 1);
    why_until(&mut app, (dimension, beside), "it waits for it", is_hung);
    gate.open();

    spawn_in_region(&mut app, dimension, THERE, walker("bomb", 0.0));
    why_until(
        &mut app,
        there,
        "it halts",
        |cause| matches!(cause, RegionCause::Halted(fault) if fault.reason == "a bomb went off"),
    );
    let gone = RegionId::new(u64::MAX);
    assert_eq!(app.world().resource::<WorldStatistics>().why(dimension, gone), None);
}

/// Promise, why: A question about a region names the first cause why it does not tick, or is slow.
#[test]
fn a_slow_region_says_whether_its_ticks_are_long_or_others_take_the_threads() {
    let threads = ThreadSettings { regions: 1, ..default() };
    let (mut app, dimension, _) = two_regions(TerranePlugin { threads, ..TerranePlugin::in_memory() });
    spawn_in_region(&mut app, dimension, HERE, walker("lazy", 0.0));
    why_until(&mut app, (dimension, HERE), "its ticks are long", |cause| {
        matches!(cause, RegionCause::LongTicks { mean, period }
            if *mean >= Duration::from_millis(55) && *period == Duration::from_millis(50))
    });
    let busiest = region_at(app.world(), dimension, HERE.column()).unwrap().region;
    why_until(&mut app, (dimension, THERE), "it has no thread", |cause| {
        *cause == RegionCause::NoThread { busiest: Some((dimension, busiest)) }
    });
}

/// Works for this long.
fn work(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

/// The time of the systems in their own spans.
#[derive(Resource, Clone, Default)]
struct Spans(Arc<Mutex<[Duration; 3]>>);

impl Spans {
    fn within(&self, number: usize, micros: u64) {
        let began = Instant::now();
        work(Duration::from_micros(micros));
        self.0.lock().unwrap()[number] += began.elapsed();
    }
}

fn plough(spans: Res<Spans>) {
    spans.within(0, 4_000);
}

fn sow(spans: Res<Spans>) {
    spans.within(1, 2_000);
}

fn harvest(spans: Res<Spans>) {
    spans.within(2, 500);
}

fn profile(app: &mut App, dimension: DimensionId, length: Duration) -> RegionProfile {
    let region = region_at(app.world(), dimension, HERE.column()).unwrap().region;
    let mut state = SystemState::<Inspector>::new(app.world_mut());
    let mut asked = state.get_mut(app.world_mut()).unwrap().profile((dimension, region), length).unwrap();
    state.apply(app.world_mut());
    let mut answer = None;
    update_until(app, "the profile is made", |_| {
        answer = asked.take();
        answer.is_some()
    });
    answer.unwrap().unwrap()
}

/// Promise, why: A profile names the share of each system in a region's ticks, within 5 points of spans around the systems.
#[test]
fn a_profile_agrees_with_spans() {
    let spans = Spans::default();
    let mut app = game(TerranePlugin::in_memory());
    let copy = spans.clone();
    app.add_region_plugins(move |region| {
        region.insert_resource(copy.clone());
        region.add_systems(RegionTick, (plough, harvest)).add_systems(Update, sow);
        region.add_systems(Update, (|| panic!("never")).run_if(|| false));
    });
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 8.0, 8.0, 1);
    start(&mut app);
    update_until(&mut app, "it ticks", |world| {
        region_at(world, dimension, HERE.column()).is_some_and(|region| region.ticks > 3)
    });
    *spans.0.lock().unwrap() = Default::default();
    let profile = profile(&mut app, dimension, Duration::from_secs(2));
    let measured = *spans.0.lock().unwrap();
    let region = region_at(app.world(), dimension, HERE.column()).unwrap();
    assert_eq!((profile.dimension, profile.region), (dimension, region.region));
    assert!(profile.ticks > 10 && profile.elapsed >= Duration::from_secs(2), "{profile:?}");
    assert!(profile.parts.is_sorted_by_key(|part| std::cmp::Reverse(part.time)));
    let all: Duration = profile.parts.iter().map(|part| part.time).sum();
    assert_eq!(all, profile.busy, "the parts are the whole");
    // The spans also saw a few ticks before and after the profile, so shares are compared, not times.
    let own: f64 = measured.iter().map(Duration::as_secs_f64).sum();
    let found: Vec<_> = ["plough", "sow", "harvest"]
        .map(|name| {
            profile.parts.iter().find(|part| part.name.ends_with(name)).unwrap_or_else(|| panic!("{profile:?}"))
        })
        .to_vec();
    let of_them: f64 = found.iter().map(|part| part.time.as_secs_f64()).sum();
    for (part, spans) in found.iter().zip(measured) {
        let (share, expected) = (part.time.as_secs_f64() / of_them, spans.as_secs_f64() / own);
        assert!((share - expected).abs() < 0.05, "{part:?}: {share} instead of {expected}");
        assert_eq!(part.runs, profile.ticks, "{part:?}");
    }
    assert_eq!((found[0].schedule.as_str(), found[1].schedule.as_str()), ("RegionTick", "Update"));
    assert!(profile.share(found[0]) > 0.4, "{profile:?}");
    // A system that never runs takes no part.
    assert!(profile.parts.iter().all(|part| part.runs > 0));
}

/// Promise, why: A profile that cannot end says so.
#[test]
fn a_profile_ends_with_its_region_and_a_newer_one_replaces_it() {
    let mut app = game(lockstep());
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 8.0, 8.0, 1);
    start(&mut app);
    update_until(&mut app, "it ticks", |world| {
        region_at(world, dimension, HERE.column()).is_some_and(|region| region.ticks > 0 && region.columns > 0)
    });
    let region = region_at(app.world(), dimension, HERE.column()).unwrap().region;
    let mut state = SystemState::<Inspector>::new(app.world_mut());
    let mut begin = |app: &mut App| {
        let asked = state.get_mut(app.world_mut()).unwrap().profile((dimension, region), Duration::from_secs(3_600));
        state.apply(app.world_mut());
        asked.unwrap()
    };
    let (mut first, mut second) = (begin(&mut app), begin(&mut app));
    let dropped = |app: &mut App, asked: &mut terrane_inspect::Asked<RegionProfile>| {
        let mut answer = None;
        update_until(app, "it is dropped", |_| {
            answer = asked.take();
            answer.is_some()
        });
        assert_eq!(answer, Some(Err(terrane_inspect::InspectError::Dropped)));
    };
    dropped(&mut app, &mut first);
    order(&mut app, dimension, HERE.column(), RegionOrder::Halt);
    dropped(&mut app, &mut second);
}

/// The places of an entity so far.
fn places(app: &App, id: Uuid) -> Vec<Option<Whereabouts>> {
    let heard = heard::<EntityPlaced>(app).iter();
    heard.filter(|placed| placed.id == id).map(|placed| placed.place).collect()
}

/// Promise, why: A followed entity tells each crossing: a walk, a merge, a split, its end.
#[test]
fn a_followed_entity_tells_where_it_goes() {
    let mut app = game(TerranePlugin { regionizer: parting_soon(), ..lockstep() });
    listen::<EntityPlaced>(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 8.0, 8.0, 1);
    viewer(&mut app, dimension, THERE.x as f32, 0.0, 1);
    start(&mut app);
    update_until(&mut app, "both are there", |world| {
        [HERE, THERE].iter().all(|place| region_at(world, dimension, place.column()).is_some_and(|it| it.columns > 0))
    });
    let [here, there] = [HERE, THERE].map(|place| region_at(app.world(), dimension, place.column()).unwrap().region);
    let (bess, rex) = (Uuid::from_u128(1), Uuid::from_u128(2));
    for id in [bess, rex] {
        spawn_in_region(&mut app, dimension, HERE, (StableId(id), walker("Bess", 0.0)));
    }
    update(&mut app, 2);
    app.world_mut().write_message(FollowEntity { id: bess, follow: true });
    let in_region_of = |region| Some(Whereabouts::Region(dimension, region));
    update_until(&mut app, "its place is told", |world| !world.resource::<Heard<EntityPlaced>>().0.is_empty());
    assert_eq!(places(&app, bess), [in_region_of(here)]);

    in_region(&mut app, dimension, HERE, move |world| {
        let mut all = world.query::<(&StableId, &mut Position)>();
        let (_, mut position) = all.iter_mut(world).find(|(id, _)| id.0 == bess).unwrap();
        position.block = THERE;
    });
    update_until(&mut app, "it has arrived", |world| world.resource::<Heard<EntityPlaced>>().0.len() >= 3);
    let walk = [in_region_of(here), Some(Whereabouts::OnTheWay(dimension, THERE.column())), in_region_of(there)];
    assert_eq!(places(&app, bess), walk);
    assert!(places(&app, rex).is_empty(), "nobody follows it yet");

    // Ground between two regions merges them.
    let near = BlockPos::new(16 * 40, 5, 8);
    viewer(&mut app, dimension, near.x as f32, 8.0, 1);
    let max = Uuid::from_u128(3);
    spawn_in_region(&mut app, dimension, near, (StableId(max), walker("Max", 0.0)));
    update_until(&mut app, "it is there", |world| {
        region_at(world, dimension, near.column()).is_some_and(|region| region.entities == 1)
    });
    for id in [rex, max] {
        app.world_mut().write_message(FollowEntity { id, follow: true });
    }
    let last = |world: &World, id: Uuid| {
        let heard = &world.resource::<Heard<EntityPlaced>>().0;
        heard.iter().rev().find(|placed| placed.id == id).and_then(|placed| placed.place)
    };
    update_until(&mut app, "both are told", |world| last(world, rex).is_some() && last(world, max).is_some());
    assert_ne!(last(app.world(), rex), last(app.world(), max));
    let between = viewer(&mut app, dimension, 16.0 * 20.0, 8.0, 16);
    update_until(&mut app, "they are in one region", |world| last(world, rex) == last(world, max));
    let mut moves = [places(&app, rex).len(), places(&app, max).len()];
    moves.sort();
    assert_eq!(moves, [1, 2], "one region absorbed the other, without a way between");
    // Without it they part.
    app.world_mut().despawn(between);
    update_until(&mut app, "they have parted", |world| last(world, rex) != last(world, max));
    update_until(&mut app, "each is in a region", |world| {
        [rex, max].iter().all(|id| matches!(last(world, *id), Some(Whereabouts::Region(..))))
    });
    let all = [places(&app, rex), places(&app, max)].concat();
    assert!(all.iter().all(Option::is_some), "{all:?}");

    app.world_mut().commands().despawn_in_region(bess);
    update_until(&mut app, "it is gone", |world| {
        world.resource::<Heard<EntityPlaced>>().0.last().is_some_and(|placed| placed.place.is_none())
    });
    assert_eq!(places(&app, bess), [&walk[..], &[None]].concat());

    // An entity that is not followed any more tells nothing.
    app.world_mut().write_message(FollowEntity { id: rex, follow: false });
    update(&mut app, 2);
    let before = places(&app, rex);
    app.world_mut().commands().despawn_in_region(rex);
    update(&mut app, 5);
    assert_eq!(places(&app, rex), before);
}
