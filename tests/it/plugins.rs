//! Region worlds take any plugin that needs only schedules, resources, messages and observers.

use crate::support::*;
use bevy::app::MainScheduleOrder;
use bevy::ecs::schedule::ScheduleLabel;
use bevy::state::app::StatesPlugin;
use bevy_terrane::plugin::{CoordinatorApp, CoordinatorMain, CoordinatorSystems};
use bevy_terrane::prelude::*;
use std::sync::{Arc, Mutex};

#[derive(States, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Weather {
    #[default]
    Dry,
    Rain,
}

#[derive(Message)]
struct Drop;

#[derive(Event)]
struct Thunder;

/// The observations of the region's systems.
#[derive(Resource, Clone, Default)]
struct Log(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    drops: usize,
    most_waiting: usize,
    thunder: usize,
    starts: usize,
    rained: bool,
    child_moved: bool,
}

/// A plugin from another crate, which does not know regions.
struct RainPlugin(Log);

impl Plugin for RainPlugin {
    fn build(&self, app: &mut App) {
        app.insert_resource(self.0.clone())
            .add_message::<Drop>()
            .init_state::<Weather>()
            .add_systems(Startup, |mut commands: Commands, log: Res<Log>| {
                log.0.lock().unwrap().starts += 1;
                let parent = commands.spawn(Transform::from_xyz(1.0, 2.0, 3.0)).id();
                commands.spawn((Transform::from_xyz(1.0, 0.0, 0.0), ChildOf(parent), Name::new("child")));
            })
            .add_systems(FixedUpdate, |mut drops: MessageWriter<Drop>| {
                drops.write_batch([Drop, Drop, Drop]);
            })
            .add_systems(Update, (rain, look_at_child))
            .add_systems(OnEnter(Weather::Rain), |mut commands: Commands| commands.trigger(Thunder))
            .add_observer(|_: On<Thunder>, log: Res<Log>| log.0.lock().unwrap().thunder += 1);
    }
}

fn rain(
    mut drops: MessageReader<Drop>,
    waiting: Res<Messages<Drop>>,
    log: Res<Log>,
    state: Res<State<Weather>>,
    mut next: ResMut<NextState<Weather>>,
    time: Res<Time>,
) {
    let mut seen = log.0.lock().unwrap();
    seen.drops += drops.read().count();
    seen.most_waiting = seen.most_waiting.max(waiting.len());
    seen.rained |= *state.get() == Weather::Rain;
    assert_eq!(time.delta(), std::time::Duration::from_millis(50));
    if *state.get() == Weather::Dry {
        next.set(Weather::Rain);
    }
}

fn look_at_child(children: Query<(&GlobalTransform, &Name)>, log: Res<Log>) {
    for (place, name) in &children {
        if name.as_str() == "child" && place.translation() == Vec3::new(2.0, 2.0, 3.0) {
            log.0.lock().unwrap().child_moved = true;
        }
    }
}

/// Promise, first game: A region plugin runs for every region world that is made.
/// Promise, worlds: `Update`, states, transforms, observers and messages work in region worlds.
#[test]
fn transforms_states_messages_and_observers_work_and_messages_do_not_pile_up() {
    let log = Log::default();
    let mut app = game(lockstep());
    let plugin_log = log.clone();
    app.add_region_plugins(move |region| {
        region.add_plugins((TransformPlugin, StatesPlugin, RainPlugin(plugin_log.clone())));
    });
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 60);

    let seen = log.0.lock().unwrap();
    assert!(seen.drops >= 3 * 40, "every tick writes three: {}", seen.drops);
    assert!(seen.most_waiting <= 6, "messages live for two ticks: {}", seen.most_waiting);
    assert_eq!(seen.starts, 1, "Startup runs once");
    assert!(seen.rained);
    assert_eq!(seen.thunder, 1);
    assert!(seen.child_moved, "TransformPlugin runs in the region");
}

#[test]
fn a_clock_of_its_own_is_refused_with_a_hint() {
    let mut app = game(lockstep());
    app.add_region_plugins(|region| {
        region.add_plugins(bevy::time::TimePlugin);
    });
    start(&mut app);
    app.update();
    let failure = app.world().resource::<WorldFailure>();
    assert!(failure.to_string().contains("TimePlugin") && failure.to_string().contains("dimension's clock"));
    assert_eq!(app.should_exit(), Some(AppExit::error()));
}

/// Names of systems in execution order.
#[derive(Resource, Clone, Default)]
struct Order(Arc<Mutex<Vec<&'static str>>>);

impl Order {
    fn note(name: &'static str) -> impl Fn(Res<Order>) {
        move |order| order.0.lock().unwrap().push(name)
    }

    /// The first `count` names from the first `begin` on.
    fn from(&self, begin: &str, count: usize) -> Vec<&'static str> {
        let order = self.0.lock().unwrap();
        order.iter().skip_while(|name| **name != begin).take(count).copied().collect()
    }
}

#[derive(ScheduleLabel, Clone, Debug, PartialEq, Eq, Hash)]
struct Before;

#[derive(ScheduleLabel, Clone, Debug, PartialEq, Eq, Hash)]
struct After;

#[test]
fn a_schedule_that_a_system_adds_runs_from_some_tick_on() {
    let mut app = game(lockstep());
    let order = Order::default();
    let noted = order.clone();
    app.add_region_plugins(move |region| {
        region.insert_resource(order.clone()).add_systems(Startup, |mut schedules: ResMut<Schedules>| {
            schedules.add_systems(PostUpdate, Order::note("late"));
        });
    });
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 100);
    assert_eq!(noted.from("late", 2), ["late"; 2]);
}

/// Promise, worlds: The system sets of the main world, the coordinator and the regions run in a fixed order.
#[test]
fn the_public_system_sets_run_in_their_order() {
    let [in_regions, in_the_coordinator] = [(); 2].map(|()| Order::default());
    let mut app = game(lockstep());
    let order = in_regions.clone();
    app.add_region_plugins(move |region| {
        region
            .insert_resource(order.clone())
            .add_systems(Last, Order::note("Last"))
            .add_systems(PostUpdate, Order::note("PostUpdate"))
            .add_systems(Update, Order::note("Update"))
            .add_systems(RegionTick, Order::note("RegionTick"))
            .add_systems(FixedUpdate, Order::note("FixedUpdate"))
            .add_systems(PreUpdate, Order::note("PreUpdate"))
            .add_systems(First, Order::note("First"))
            .add_systems(After, Order::note("After"))
            .add_systems(Before, Order::note("Before"));
        let mut order = region.world_mut().resource_mut::<MainScheduleOrder>();
        order.insert_before(First, Before);
        order.insert_after(Last, After);
    });
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    app.finish();
    app.sub_app_mut(CoordinatorApp).insert_resource(in_the_coordinator.clone()).add_systems(
        CoordinatorMain,
        (
            Order::note("Publish").in_set(CoordinatorSystems::Publish),
            Order::note("Dispatch").in_set(CoordinatorSystems::Dispatch),
            Order::note("Deliver").in_set(CoordinatorSystems::Deliver),
            Order::note("Stream").in_set(CoordinatorSystems::Stream),
            Order::note("Collect").in_set(CoordinatorSystems::Collect),
        ),
    );
    app.cleanup();
    update(&mut app, 20);
    let tick = [
        "Before",
        "First",
        "PreUpdate",
        "FixedUpdate",
        "RegionTick",
        "Update",
        "PostUpdate",
        "Last",
        "After",
        "Before",
    ];
    assert_eq!(in_regions.from("Before", 10), tick);
    let pass = ["Collect", "Stream", "Deliver", "Dispatch", "Publish", "Collect"];
    assert_eq!(in_the_coordinator.from("Collect", 6), pass);
}
