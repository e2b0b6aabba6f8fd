//! The watchdog: regions that hang are reported with their activity.

use super::*;
use crate::support::gate::Gate;
use bevy_terrane::view::RegionHung;

/// Promise, clocks and faults: A region that hangs is named with the schedule that it is in.
/// Promise, clocks and faults: `Regions` names the fault of a halted region, the step of a hanging one, and the regions coupled with it.
#[test]
fn the_watchdog_names_a_hung_region_with_its_place_and_schedule() {
    let plugin = TerranePlugin {
        faults: FaultSettings { watchdog_limit: Duration::from_millis(150), ..default() },
        ..TerranePlugin::in_memory()
    };
    let mut app = game(plugin);
    let gate = Gate::default();
    gate.close();
    let copy = gate.clone();
    app.add_region_plugins(move |region| {
        region.insert_resource(copy.clone()).add_systems(RegionTick, |gate: Res<Gate>, walkers: Query<&Walker>| {
            if !walkers.is_empty() {
                gate.pass();
            }
        });
    });
    listen::<RegionHung>(&mut app);
    let dimension = flat(&mut app);
    let [_, there] = [HERE, THERE].map(|block| viewer(&mut app, dimension, block.x as f32, 0.0, 1));
    start(&mut app);
    update_until(&mut app, "both tick", |world| {
        [HERE, THERE].iter().all(|place| block_at(world, dimension, *place).is_some())
    });
    update_until(&mut app, "statistics know it", |world| {
        region_at(world, dimension, HERE.column()).is_some_and(|region| region.columns > 0 && region.hung.is_none())
    });
    assert!(heard::<RegionHung>(&app).is_empty());
    let region = region_at(app.world(), dimension, HERE.column()).unwrap();
    spawn_in_region(&mut app, dimension, HERE, walker("slow", 0.0));
    update_until(&mut app, "it is told twice", |world| world.resource::<Heard<RegionHung>>().0.len() >= 2);
    let hung = heard::<RegionHung>(&app).to_vec();
    for (number, hung) in hung.iter().enumerate() {
        assert_eq!((hung.dimension, hung.region), (region.dimension, region.region));
        let shift = app.world().resource::<WorldStatistics>().section_shift;
        assert!(region.contains(hung.column.unwrap().section(shift)), "{:?}", hung.column);
        assert!(hung.running_for >= Duration::from_millis(150) * (number as u32 + 1), "{:?}", hung.running_for);
        assert_eq!(hung.step, "RegionTick");
    }
    update_until(&mut app, "statistics know it", |world| {
        region_at(world, dimension, HERE.column()).is_some_and(|region| region.hung.is_some())
    });
    assert_eq!(region_at(app.world(), dimension, HERE.column()).unwrap().hung_in.as_deref(), Some("RegionTick"));
    let other = region_at(app.world(), dimension, THERE.column()).unwrap();
    assert_eq!((other.hung, other.hung_in), (None, None));

    // New columns beside it become a transient region, which waits for it.
    move_viewer(&mut app, there, 16.0 * 12.0, 0.0);
    update_until(&mut app, "a region waits for it", |world| {
        world.resource::<Heard<RegionHung>>().0.iter().any(|hung| !hung.waiting.is_empty())
    });
    gate.open();
}

#[test]
fn the_watchdog_distinguishes_a_letter_from_a_schedule() {
    let mut app = game(TerranePlugin {
        faults: FaultSettings { watchdog_limit: Duration::from_millis(100), ..default() },
        ..TerranePlugin::in_memory()
    });
    listen::<RegionHung>(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    update_until(&mut app, "it ticks", |world| block_at(world, dimension, HERE).is_some());
    let gate = Gate::default();
    gate.close();
    let copy = gate.clone();
    in_region(&mut app, dimension, HERE, move |_| copy.pass());
    update_until(&mut app, "it is told", |world| !world.resource::<Heard<RegionHung>>().0.is_empty());
    assert_eq!(heard::<RegionHung>(&app)[0].step, "receiving");
    gate.open();
}
