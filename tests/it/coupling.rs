//! Coupled regions tick one after the other on one thread, and letters pass between them within that time.

use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::Address;
use bevy_terrane::view::{Coupling, RegionOrder};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const THERE: BlockPos = BlockPos::new(16 * 100, 5, 0);
const BEYOND: BlockPos = BlockPos::new(16 * 200, 5, 0);

/// One tick, numbered by the sending region.
#[derive(Clone, Debug, PartialEq)]
struct Ping(u64);

/// The address to which a region writes in each of its ticks.
#[derive(Resource, Clone)]
struct PenPal(Address);

/// The age of each message when it was read, in ticks of the dimension's clock.
#[derive(Resource, Clone, Default)]
struct Delays(Arc<Mutex<Vec<u64>>>);

fn tick_number(time: &Time) -> u64 {
    time.elapsed().as_millis() as u64 / 50
}

fn write(pal: Option<Res<PenPal>>, time: Res<Time>, mut post: ResMut<Post>) {
    if let Some(pal) = pal {
        post.send(pal.0, Ping(tick_number(&time)));
    }
}

fn read(mut pings: MessageReader<Received<Ping>>, time: Res<Time>, delays: Res<Delays>) {
    delays.0.lock().unwrap().extend(pings.read().map(|ping| tick_number(&time).saturating_sub(ping.message.0)));
}

fn writing(plugin: TerranePlugin) -> (App, Diary, Delays) {
    let mut app = game(plugin);
    let (diary, delays) = (keep_diary(&mut app), Delays::default());
    let copy = delays.clone();
    app.register_region_message::<Ping>().add_region_plugins(move |region| {
        region.insert_resource(copy.clone()).add_systems(RegionTick, (read, write).chain());
    });
    (app, diary, delays)
}

fn couple(app: &mut App, ends: [(DimensionId, BlockPos); 2]) -> Entity {
    app.world_mut().spawn(Coupling { ends }).id()
}

/// Two regions of one dimension, or of two, that write to each other.
fn two_ends(app: &mut App, dimensions: [DimensionId; 2]) -> [(DimensionId, BlockPos); 2] {
    let ends = [(dimensions[0], HERE), (dimensions[1], THERE)];
    for (dimension, block) in ends {
        viewer(app, dimension, block.x as f32, 0.0, 1);
    }
    start(app);
    update_until(app, "both ends tick", |world| ends.iter().all(|end| ticks_at(world, *end) > 0));
    let address = |(dimension, block)| Address::Place(dimension, block);
    let pals = [PenPal(address(ends[1])), PenPal(address(ends[0]))];
    for ((dimension, block), pal) in ends.into_iter().zip(pals) {
        in_region(app, dimension, block, move |region| region.insert_resource(pal));
    }
    ends
}

fn ticks_at(world: &World, (dimension, block): (DimensionId, BlockPos)) -> u64 {
    region_at(world, dimension, block.column()).map_or(0, |region| region.ticks)
}

fn region_of(app: &App, (dimension, block): (DimensionId, BlockPos)) -> (DimensionId, RegionId) {
    let region = region_at(app.world(), dimension, block.column()).expect("a region");
    (region.dimension, region.region)
}

/// The ticks of these regions, in execution order.
fn ticks_of(diary: &Diary, regions: &[(DimensionId, RegionId)]) -> Vec<SeenTick> {
    diary.take().into_iter().filter(|tick| regions.contains(&(tick.dimension, tick.region))).collect()
}

/// Returns `true` if the ticks are groups of all of these regions, lowest first, each group on one thread.
fn are_groups(ticks: &[SeenTick], regions: &[(DimensionId, RegionId)]) -> bool {
    let mut sorted = regions.to_vec();
    sorted.sort();
    let is_group = |group: &[SeenTick]| {
        group.iter().map(|tick| (tick.dimension, tick.region)).eq(sorted.iter().copied())
            && group.iter().all(|tick| tick.thread == group[0].thread)
    };
    !ticks.is_empty() && ticks.chunks(regions.len()).all(is_group)
}

/// Promise, clocks and faults: Two regions that are joined by a `Coupling` tick back to back.
#[test]
fn coupled_regions_of_one_and_of_two_dimensions_tick_back_to_back_and_mail_passes_between() {
    for names in [["one", "one"], ["one", "two"]] {
        let (mut app, diary, delays) = writing(lockstep());
        let first = spawn_dimension(&mut app, Dimension::new(names[0], Flat::new()));
        let second = match names[0] == names[1] {
            true => first,
            false => spawn_dimension(&mut app, Dimension::new(names[1], Flat::new())),
        };
        let ends = two_ends(&mut app, [first, second]);
        update(&mut app, 10);
        delays.0.lock().unwrap().clear();
        update(&mut app, 20);
        assert_eq!(*delays.0.lock().unwrap(), [1; 40], "without a coupling each letter takes a tick");

        let coupling = couple(&mut app, ends);
        update(&mut app, 5);
        let regions = ends.map(|end| region_of(&app, end));
        diary.take();
        delays.0.lock().unwrap().clear();
        update(&mut app, 100);
        let ticks = ticks_of(&diary, &regions);
        assert_eq!(ticks.len(), 200);
        assert!(are_groups(&ticks, &regions), "{ticks:?}");
        let told = std::mem::take(&mut *delays.0.lock().unwrap());
        // To the second region within the pair, and to the first with its next tick.
        assert_eq!(told.iter().filter(|delay| **delay == 0).count(), 100, "{told:?}");
        assert_eq!(told.iter().filter(|delay| **delay == 1).count(), 100, "{told:?}");

        app.world_mut().despawn(coupling);
        update(&mut app, 5);
        delays.0.lock().unwrap().clear();
        update(&mut app, 20);
        assert_eq!(*delays.0.lock().unwrap(), [1; 40], "they are apart again");
    }
}

/// Promise, clocks and faults: `Regions` names the fault of a halted region, the step of a hanging one, and the regions coupled with it.
#[test]
fn a_chain_of_three_is_one_group_and_a_letter_reaches_its_end_within_it() {
    let (mut app, diary, delays) = writing(lockstep());
    let [low, high] = ["low", "high"].map(|name| spawn_dimension(&mut app, Dimension::new(name, Flat::new())));
    let places = [(low, HERE), (high, THERE), (low, BEYOND)];
    for (dimension, block) in places {
        viewer(&mut app, dimension, block.x as f32, 0.0, 1);
    }
    start(&mut app);
    update(&mut app, 20);
    couple(&mut app, [places[0], places[1]]);
    couple(&mut app, [places[1], places[2]]);
    let mut regions = places.map(|place| region_of(&app, place));
    regions.sort();
    // The first region of the group writes to the last one, with which it is not coupled itself.
    let first = places.into_iter().find(|place| region_of(&app, *place) == regions[0]).unwrap();
    let last = places.into_iter().find(|place| region_of(&app, *place) == regions[2]).unwrap();
    let pal = PenPal(Address::Place(last.0, last.1));
    in_region(&mut app, first.0, first.1, move |region| region.insert_resource(pal));
    update(&mut app, 5);
    diary.take();
    delays.0.lock().unwrap().clear();
    update(&mut app, 50);
    for place in places {
        let own = region_of(&app, place);
        let others: Vec<_> = regions.into_iter().filter(|region| *region != own).collect();
        assert_eq!(region_at(app.world(), place.0, place.1.column()).unwrap().coupled, others);
    }
    let ticks = ticks_of(&diary, &regions);
    assert_eq!(ticks.len(), 150);
    assert!(are_groups(&ticks, &regions), "{ticks:?}");
    assert_eq!(*delays.0.lock().unwrap(), [0; 50]);
}

#[test]
fn on_real_threads_a_pair_ticks_at_its_rate_and_together() {
    let (mut app, diary, delays) =
        writing(TerranePlugin { threads: ThreadSettings { regions: 3, ..default() }, ..TerranePlugin::in_memory() });
    let [low, high] = ["low", "high"].map(|name| spawn_dimension(&mut app, Dimension::new(name, Flat::new())));
    let ends = two_ends(&mut app, [low, high]);
    couple(&mut app, ends);
    let regions = ends.map(|end| region_of(&app, end));
    // The two start as separate tasks until they are in step.
    update_until(&mut app, "they tick together", |_| {
        let ticks = diary.0.lock().unwrap();
        ticks.len() >= 8 && are_groups(&ticks[ticks.len() - 4..], &regions)
    });
    diary.take();
    delays.0.lock().unwrap().clear();
    let mut measured = Vec::new();
    for _ in 0..8 {
        let end = Instant::now() + Duration::from_secs(2);
        update_until(&mut app, "the time is over", |_| Instant::now() >= end);
        let mut ticks = ticks_of(&diary, &regions);
        // The window may begin or end within a pair.
        if ticks.first().is_some_and(|tick| (tick.dimension, tick.region) == regions[1]) {
            ticks.remove(0);
        }
        ticks.truncate(ticks.len() / 2 * 2);
        assert!(are_groups(&ticks, &regions), "{ticks:?}");
        measured.push(ticks.len() / 2);
        if (36..=44).contains(measured.last().unwrap()) {
            assert!(delays.0.lock().unwrap().contains(&0));
            return;
        }
    }
    panic!("pairs in two seconds: {measured:?}");
}

#[test]
fn a_slow_end_and_a_quick_one_keep_their_rates_and_tick_together_when_both_are_due() {
    let (mut app, diary, _) = writing(TerranePlugin::in_memory());
    let slow = DimensionClock { ticks_per_second: 5.0, ..default() };
    let slow = spawn_dimension(&mut app, (Dimension::new("slow", Flat::new()), slow));
    let quick = spawn_dimension(&mut app, Dimension::new("quick", Flat::new()));
    let ends = two_ends(&mut app, [slow, quick]);
    couple(&mut app, ends);
    let regions = ends.map(|end| region_of(&app, end));
    let mut measured = Vec::new();
    for _ in 0..8 {
        let end = Instant::now() + Duration::from_millis(500);
        update_until(&mut app, "they are in step", |_| Instant::now() >= end);
        diary.take();
        let end = Instant::now() + Duration::from_secs(3);
        update_until(&mut app, "the time is over", |_| Instant::now() >= end);
        let ticks = ticks_of(&diary, &regions);
        let is_slow = |tick: &SeenTick| (tick.dimension, tick.region) == regions[0];
        let slow = ticks.iter().filter(|tick| is_slow(tick)).count();
        let quick = ticks.len() - slow;
        // Whenever the slow one ticks, the quick one ticks on the same thread, lowest first.
        let together = ticks
            .windows(2)
            .filter(|pair| is_slow(&pair[0]) != is_slow(&pair[1]) && are_groups(pair, &regions))
            .count();
        measured.push((slow, quick, together));
        // A busy machine slows both, but their ratio stays.
        let ratio = quick as f64 / slow.max(1) as f64;
        if slow >= 10 && (3.6..=4.4).contains(&ratio) && together + 1 >= slow {
            return;
        }
    }
    panic!("ticks in three seconds of the slow one, the quick one, and both: {measured:?}");
}

#[test]
fn an_end_that_is_not_loaded_holds_up_nothing_and_joins_when_it_is_there() {
    let (mut app, diary, _) = writing(lockstep());
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    let nowhere = DimensionId(99);
    start(&mut app);
    couple(&mut app, [(dimension, HERE), (dimension, THERE)]);
    couple(&mut app, [(nowhere, HERE), (dimension, HERE)]);
    update(&mut app, 20);
    diary.take();
    update(&mut app, 20);
    let here = region_of(&app, (dimension, HERE));
    assert_eq!(ticks_of(&diary, &[here]).len(), 20);

    let camera = viewer(&mut app, dimension, THERE.x as f32, 0.0, 1);
    update(&mut app, 20);
    let regions = [here, region_of(&app, (dimension, THERE))];
    diary.take();
    update(&mut app, 20);
    let ticks = ticks_of(&diary, &regions);
    assert_eq!(ticks.len(), 40);
    assert!(are_groups(&ticks, &regions), "{ticks:?}");

    app.world_mut().despawn(camera);
    update(&mut app, 20);
    assert_eq!(region_at(app.world(), dimension, THERE.column()), None);
    diary.take();
    update(&mut app, 20);
    assert_eq!(ticks_of(&diary, &[here]).len(), 20);
}

#[test]
fn a_paused_end_stays_paused_and_the_other_ticks_alone() {
    let (mut app, diary, _) = writing(lockstep());
    let dimension = flat(&mut app);
    let ends = two_ends(&mut app, [dimension, dimension]);
    couple(&mut app, ends);
    order(&mut app, dimension, HERE.column(), RegionOrder::Pause);
    let regions = ends.map(|end| region_of(&app, end));
    update(&mut app, 2);
    diary.take();
    update(&mut app, 20);
    let ticks = ticks_of(&diary, &regions);
    assert!(ticks.len() == 20 && ticks.iter().all(|tick| tick.region == regions[1].1), "{ticks:?}");
    order(&mut app, dimension, HERE.column(), RegionOrder::Step(3));
    update(&mut app, 3);
    assert!(are_groups(&ticks_of(&diary, &regions), &regions), "its steps are made together with the other");
}

#[test]
fn a_coupled_region_that_panics_does_not_take_the_other_along() {
    fn fail(walkers: Query<&Walker>) {
        assert!(walkers.iter().all(|walker| walker.name != "bomb"), "a bomb went off");
    }
    for bombed in 0..2 {
        let (mut app, diary, _) = writing(TerranePlugin::in_memory());
        app.add_region_plugins(|region| {
            region.add_systems(RegionTick, fail);
        });
        listen::<RegionHalted>(&mut app);
        let dimension = flat(&mut app);
        let ends = two_ends(&mut app, [dimension, dimension]);
        couple(&mut app, ends);
        let regions = ends.map(|end| region_of(&app, end));
        update_until(&mut app, "they tick together", |_| {
            let ticks = diary.0.lock().unwrap();
            ticks.len() >= 8 && are_groups(&ticks[ticks.len() - 4..], &regions)
        });
        spawn_in_region(&mut app, dimension, ends[bombed].1, walker("bomb", 0.0));
        update_until(&mut app, "one halts", |world| !world.resource::<Heard<RegionHalted>>().0.is_empty());
        diary.take();
        update_until(&mut app, "the other goes on", |_| diary.0.lock().unwrap().len() > 10);
        let ticks = diary.take();
        assert!(ticks.iter().all(|tick| tick.region == regions[1 - bombed].1), "{ticks:?}");
        let halted = heard::<RegionHalted>(&app);
        assert_eq!((halted.len(), halted[0].region), (1, regions[bombed].1));
    }
}
