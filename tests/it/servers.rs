//! Several servers on one world: each ticks its own ground, and everything that crosses arrives exactly once.

use crate::actions::{Bag, Dig};
use crate::databases::new_world;
use crate::disk::Disk;
use crate::support::distant::{Distant, delay};
use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::{Address, SplitMix64};
use bevy_terrane::storage::servers::{Incarnation, Plot, TERM};
use bevy_terrane::storage::{
    Access, Family, KeyValueStore, MemoryStore, OpenWait, StorageConfig, WorldOpenError, WorldStore,
};
use bevy_terrane::view::{
    Arena, ArenaError, ArenaRefused, DrainServer, JobEnded, JobState, Jobs, LetterLost, LogIn, LogInError,
    LogInRefused, LogOut, PlayerLoggedIn, PlayerLoggedOut, PlayerMoved, Pregeneration, RegionCause, ServerDrained,
    ServerEnded,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use terrane_postgres::PostgresStore;
use uuid::Uuid;

/// The width of a plot in blocks.
const PLOT: i64 = 32 * 16;

/// A message that crosses between servers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TypePath)]
struct Parcel(u32);

/// A message that does not.
#[derive(Clone, Debug, PartialEq)]
struct Note(u32);

/// What the regions of a server have received.
#[derive(Resource, Clone, Default)]
struct Kept(Arc<Mutex<Vec<(u32, bool)>>>);

fn keep(mut parcels: MessageReader<Received<Parcel>>, mut notes: MessageReader<Received<Note>>, kept: Res<Kept>) {
    let parcels = parcels.read().map(|parcel| (parcel.message.0, parcel.entity.is_some()));
    kept.0.lock().unwrap().extend(parcels.chain(notes.read().map(|note| (note.message.0, note.entity.is_some()))));
}

/// A server in lockstep, and its dimension.
struct Server {
    app: App,
    dimension: DimensionId,
    kept: Kept,
}

impl Server {
    fn start<S: KeyValueStore + 'static>(store: &Arc<S>) -> Self {
        Self::start_with(store, |_| {})
    }

    fn start_with<S: KeyValueStore + 'static>(store: &Arc<S>, add: impl FnOnce(&mut App)) -> Self {
        static SERVERS: Mutex<u8> = Mutex::new(0);
        let mut number = SERVERS.lock().unwrap();
        *number = number.wrapping_add(1);
        let store = Arc::new(Distant::new(store, delay(5)));
        let storage = StorageConfig::Shared { store, address: vec![*number] };
        drop(number);
        let plugin = TerranePlugin { storage, saving: SaveSettings::every(Duration::from_secs(1)), ..lockstep() };
        let mut app = game(plugin);
        let kept = Kept::default();
        let region_kept = kept.clone();
        app.register_shared_message::<Parcel>().register_region_message::<Note>().mirror_region_component::<Player>();
        app.add_region_plugins(move |region| {
            region.insert_resource(region_kept.clone()).add_systems(RegionTick, keep);
        });
        listen::<PlayerLoggedIn>(&mut app);
        listen::<PlayerLoggedOut>(&mut app);
        listen::<PlayerMoved>(&mut app);
        listen::<LogInRefused>(&mut app);
        listen::<LetterLost>(&mut app);
        listen::<ServerDrained>(&mut app);
        listen::<ServerEnded>(&mut app);
        listen::<AppExit>(&mut app);
        add(&mut app);
        let dimension = flat(&mut app);
        start(&mut app);
        update(&mut app, 3);
        Self { app, dimension, kept }
    }

    fn is_loaded(&self, block: BlockPos) -> bool {
        block_at(self.app.world(), self.dimension, block).is_some()
    }

    fn edit(&mut self, position: BlockPos, block: &str) {
        let block = id_of(self.app.world(), block);
        self.app.world_mut().write_message(SetBlock { dimension: self.dimension, position, block });
    }

    fn block(&self, position: BlockPos) -> Option<BlockId> {
        block_at(self.app.world(), self.dimension, position)
    }

    fn log_in(&mut self, name: &str, block: BlockPos) {
        let first_place = Some((self.dimension, block));
        self.app.world_mut().write_message(LogIn { name: name.to_owned(), first_place });
    }

    fn number(&self) -> u64 {
        self.app.world().resource::<WorldStatistics>().servers.iter().find(|server| server.is_this).unwrap().incarnation
    }
}

/// Updates all servers in turn until `done`.
#[track_caller]
fn play_until(servers: &mut [&mut Server], what: &str, mut done: impl FnMut(&mut [&mut Server]) -> bool) {
    let begin = Instant::now();
    while !done(servers) {
        assert!(begin.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        servers.iter_mut().for_each(|server| server.app.update());
        thread::sleep(Duration::from_millis(1));
    }
}

fn play(servers: &mut [&mut Server], times: usize) {
    for _ in 0..times {
        servers.iter_mut().for_each(|server| server.app.update());
    }
}

/// The owners of all plots. A plot of one server is never beside one of another.
fn owners(store: &Arc<MemoryStore>, dimension: DimensionId) -> BTreeMap<Plot, u64> {
    let observer = Incarnation::join(store.clone(), b"observer").unwrap();
    let owners = observer.owners(dimension).unwrap();
    observer.leave().unwrap();
    for ((_, a), owner) in &owners {
        for ((_, b), other) in &owners {
            let is_near = a.x.abs_diff(b.x) <= 1 && a.z.abs_diff(b.z) <= 1;
            assert!(!is_near || owner == other, "{a} of {owner} is beside {b} of {other}");
        }
    }
    owners
}

fn owners_of(store: &Arc<MemoryStore>, dimension: DimensionId) -> BTreeSet<u64> {
    owners(store, dimension).into_values().collect()
}

#[track_caller]
fn verify(store: &Arc<MemoryStore>) {
    let config = StorageConfig::Custom(store.clone());
    let world = WorldStore::open_existing(&config, Access::Read).unwrap();
    let verified = world.verify(|_| ControlFlow::Continue(())).unwrap();
    assert_eq!(verified.damage.count(), 0);
}

/// Promise, servers: A world that servers shared can be opened by one process alone, and the other way round.
#[test]
fn one_server_plays_and_leaves_a_world_that_a_game_can_have_alone() {
    let store = Arc::new(MemoryStore::new());
    let mut server = Server::start(&store);
    let place = BlockPos::new(5, 0, 5);
    viewer(&mut server.app, server.dimension, 0.0, 0.0, 3);
    play_until(&mut [&mut server], "the ground is there", |servers| servers[0].is_loaded(place));
    server.edit(place, "terrane:sand");
    let sand = id_of(server.app.world(), "terrane:sand");
    play_until(&mut [&mut server], "the block is there", |servers| servers[0].block(place) == Some(sand));
    assert_eq!(owners(&store, server.dimension).len(), 4, "the viewer stands where four plots meet");
    let statistics = server.app.world().resource::<WorldStatistics>();
    assert!(
        matches!(&statistics.servers[..], [this] if this.is_this && !this.address.is_empty()),
        "{:?}",
        statistics.servers
    );
    drop(server);
    verify(&store);

    let mut app = game(TerranePlugin { ..lockstep_on(&store) });
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 3);
    start(&mut app);
    update_until(&mut app, "the ground is there", |world| block_at(world, dimension, place) == Some(sand));
}

/// Promise, servers: Ground of a server that nothing needs becomes free, and another server goes on with it.
#[test]
fn ground_that_nothing_needs_becomes_free() {
    let store = Arc::new(MemoryStore::new());
    let mut first = Server::start(&store);
    let mut second = Server::start(&store);
    let (near, far) = (BlockPos::new(5, 0, 5), BlockPos::new(20 * PLOT, 0, 5));
    let dimension = first.dimension;
    let eye = viewer(&mut first.app, dimension, 0.0, 0.0, 3);
    play_until(&mut [&mut first, &mut second], "the ground is there", |servers| servers[0].is_loaded(near));
    first.edit(near, "terrane:sand");
    move_viewer(&mut first.app, eye, far.x as f32, 0.0);
    play_until(&mut [&mut first, &mut second], "the first plots are free", |servers| {
        servers[0].is_loaded(far) && owners(&store, dimension).keys().all(|(_, plot)| plot.x > 10)
    });
    // Another server goes on with the ground that the first one left.
    viewer(&mut second.app, dimension, 0.0, 0.0, 3);
    let sand = id_of(first.app.world(), "terrane:sand");
    play_until(&mut [&mut first, &mut second], "the edit is there", |servers| servers[1].block(near) == Some(sand));
    assert_eq!(owners_of(&store, dimension).len(), 2);
}

/// Promise, servers: Ground of two servers that comes near each other ends on one of them, with everything on it.
#[test]
fn ground_that_comes_together_ends_on_one_server() {
    let store = Arc::new(MemoryStore::new());
    let mut first = Server::start(&store);
    let mut second = Server::start(&store);
    let dimension = first.dimension;
    let [here, there] = [BlockPos::new(5, 0, 5), BlockPos::new(4 * PLOT + 200, 0, 200)];
    viewer(&mut first.app, dimension, 0.0, 0.0, 4);
    let eye = viewer(&mut second.app, dimension, there.x as f32, there.z as f32, 4);
    play_until(&mut [&mut first, &mut second], "both have ground", |servers| {
        servers[0].is_loaded(here) && servers[1].is_loaded(there)
    });
    second.edit(there, "terrane:sand");
    spawn_in_region(&mut second.app, dimension, there.offset(1, 1, 0), walker("Ann", 0.0));
    play_until(&mut [&mut first, &mut second], "she is there", |servers| {
        walkers(servers[1].app.world_mut()).len() == 1
    });
    assert_eq!(owners_of(&store, dimension).len(), 2);

    // The second one's viewer comes near the first one's ground. Its ground goes there, with all that is on it.
    for step in 0..60 {
        move_viewer(&mut second.app, eye, there.x as f32 - step as f32 * 32.0, there.z as f32);
        play(&mut [&mut first, &mut second], 4);
        owners(&store, dimension);
    }
    let sand = id_of(first.app.world(), "terrane:sand");
    viewer(&mut first.app, dimension, there.x as f32, there.z as f32, 4);
    play_until(&mut [&mut first, &mut second], "the first one has all", |servers| {
        servers[0].block(there) == Some(sand) && walkers(servers[0].app.world_mut()).len() == 1
    });
    assert_eq!(walkers(second.app.world_mut()), []);
    assert_eq!(owners_of(&store, dimension).len(), 1);
    drop(first);
    drop(second);
    verify(&store);
}

/// Promise, servers: `DrainServer` gives all ground of a server to another one, and sends the players after it.
#[test]
fn a_server_is_drained_by_hand() {
    let store = Arc::new(MemoryStore::new());
    let mut first = Server::start(&store);
    let mut second = Server::start(&store);
    let (dimension, here) = (first.dimension, BlockPos::new(5, 0, 5));
    first.log_in("Zoë", here);
    play_until(&mut [&mut first, &mut second], "she is there", |servers| {
        !heard::<PlayerLoggedIn>(&servers[0].app).is_empty()
    });
    play_until(&mut [&mut first, &mut second], "the ground is there", |servers| servers[0].is_loaded(here));
    first.edit(here, "terrane:sand");
    play(&mut [&mut first, &mut second], 20);
    let to = second.number();
    first.app.world_mut().write_message(DrainServer { to });
    play_until(&mut [&mut first, &mut second], "it is drained", |servers| {
        !heard::<ServerDrained>(&servers[0].app).is_empty()
    });
    assert_eq!(heard::<ServerDrained>(&first.app)[0].to, to);
    assert_eq!(owners_of(&store, dimension), [to].into());
    play_until(&mut [&mut first, &mut second], "she is sent there", |servers| {
        !heard::<PlayerMoved>(&servers[0].app).is_empty()
    });
    let moved = heard::<PlayerMoved>(&first.app)[0].clone();
    assert_eq!((&*moved.name, moved.server), ("Zoë", to));
    assert_eq!(heard::<PlayerLoggedOut>(&first.app).len(), 0);
    second.log_in("Zoë", BlockPos::new(900, 0, 900));
    play_until(&mut [&mut first, &mut second], "she is there", |servers| {
        !heard::<PlayerLoggedIn>(&servers[1].app).is_empty()
    });
    let arrived = &heard::<PlayerLoggedIn>(&second.app)[0];
    assert_eq!((arrived.id, arrived.block, arrived.new), (moved.id, here, false));
    let sand = id_of(first.app.world(), "terrane:sand");
    play_until(&mut [&mut first, &mut second], "the edit is there", |servers| servers[1].block(here) == Some(sand));
    // The drained server is no place to log in.
    first.log_in("Bob", BlockPos::new(90 * PLOT, 0, 0));
    play_until(&mut [&mut first, &mut second], "he is sent away", |servers| {
        !heard::<LogInRefused>(&servers[0].app).is_empty()
    });
    let reason = &heard::<LogInRefused>(&first.app)[0].reason;
    assert!(matches!(reason, LogInError::Elsewhere { server, .. } if *server == to), "{reason}");
}

/// The columns that the regions of a server were told of.
#[derive(Resource, Clone, Default)]
struct Told(Arc<Mutex<Vec<ColumnPos>>>);

impl Told {
    fn columns(&self) -> BTreeSet<ColumnPos> {
        let told = self.0.lock().unwrap();
        let columns: BTreeSet<_> = told.iter().copied().collect();
        assert_eq!(columns.len(), told.len(), "each once");
        columns
    }
}

fn note_new_columns(mut new: MessageReader<NewColumn>, told: Res<Told>) {
    told.0.lock().unwrap().extend(new.read().map(|new| new.column));
}

fn with_told(store: &Arc<MemoryStore>) -> (Server, Told) {
    let told = Told::default();
    let copy = told.clone();
    let server = Server::start_with(store, move |app| {
        app.add_region_plugins(move |region| {
            region.insert_resource(copy.clone()).add_systems(RegionTick, note_new_columns);
        });
    });
    (server, told)
}

/// Promise, servers: Regions of all servers together are told of each new column once.
#[test]
fn a_new_column_is_told_on_one_server() {
    let store = Arc::new(MemoryStore::new());
    let (mut first, told_first) = with_told(&store);
    let (mut second, told_second) = with_told(&store);
    let (dimension, middle) = (first.dimension, ColumnPos::new(16, 16));
    let eye = viewer(&mut first.app, dimension, 256.0, 256.0, 2);
    first.app.world_mut().get_mut::<Viewer>(eye).unwrap().generation_radius = 6;
    let [near, far] = [2, 6].map(|radius| ground::disc(middle, radius));
    play_until(&mut [&mut first, &mut second], "it is generated", |servers| {
        let statistics = servers[0].app.world().resource::<WorldStatistics>();
        told_first.columns().is_superset(&near) && statistics.generated >= far.len() as u64
    });
    // The ground goes to the other server, which loads all of it.
    let to = second.number();
    first.app.world_mut().write_message(DrainServer { to });
    play_until(&mut [&mut first, &mut second], "it is drained", |servers| {
        !heard::<ServerDrained>(&servers[0].app).is_empty()
    });
    viewer(&mut second.app, dimension, 256.0, 256.0, 6);
    play_until(&mut [&mut first, &mut second], "the rest is told there", |_| {
        (&told_first.columns() | &told_second.columns()).is_superset(&far)
    });
    play(&mut [&mut first, &mut second], 20);
    let (told_first, told_second) = (told_first.columns(), told_second.columns());
    assert!(told_first.is_disjoint(&told_second) && (&told_first | &told_second).is_superset(&far));
    drop(first);
    drop(second);
    verify(&store);
}

/// A component with things that must not be lost.
fn has_things(entity: &EntityRef) -> bool {
    entity.get::<Walker>().is_some_and(|walker| walker.name == "things")
}

/// Promise, servers: A player is on one server at a time, and `PlayerMoved` and `LogInError::Elsewhere` tell which.
#[test]
fn a_player_is_on_one_server_at_a_time_and_goes_on_where_it_went() {
    let store = Arc::new(MemoryStore::new());
    let mut first = Server::start(&store);
    let mut second = Server::start(&store);
    let dimension = first.dimension;
    let [here, there] = [BlockPos::new(5, 3, 5), BlockPos::new(20 * PLOT, 3, 5)];
    viewer(&mut second.app, dimension, there.x as f32, 0.0, 3);
    first.log_in("Zoë", here);
    play_until(&mut [&mut first, &mut second], "both are there", |servers| {
        !heard::<PlayerLoggedIn>(&servers[0].app).is_empty() && servers[1].is_loaded(there)
    });
    let id = heard::<PlayerLoggedIn>(&first.app)[0].id;
    second.log_in("Zoë", there);
    play_until(&mut [&mut first, &mut second], "the second log-in is refused", |servers| {
        !heard::<LogInRefused>(&servers[1].app).is_empty()
    });
    let reason = heard::<LogInRefused>(&second.app)[0].reason.clone();
    assert!(matches!(reason, LogInError::Elsewhere { server, .. } if server == first.number()), "{reason}");

    // It gets things, and goes to the ground of the other server.
    first.app.world_mut().commands().run_on_region_entity(
        id,
        0,
        move |mut player: EntityWorldMut| {
            player.insert((walker("things", 0.0), Position::new(dimension, there)));
        },
        |_, reason| panic!("{reason}"),
    );
    first.app.world_mut().flush();
    play_until(&mut [&mut first, &mut second], "it is sent there", |servers| {
        !heard::<PlayerMoved>(&servers[0].app).is_empty()
    });
    assert_eq!(heard::<PlayerMoved>(&first.app)[0].server, second.number());
    second.log_in("Zoë", here);
    play_until(&mut [&mut first, &mut second], "it is there", |servers| {
        !heard::<PlayerLoggedIn>(&servers[1].app).is_empty()
    });
    let arrived = &heard::<PlayerLoggedIn>(&second.app)[0];
    assert_eq!((arrived.id, arrived.block, arrived.new), (id, there, false));
    let things = ask_region(&mut second.app, dimension, there, |players: Query<EntityRef, With<Player>>| {
        players.iter().filter(has_things).count()
    });
    assert_eq!(things, 1);
    second.app.world_mut().write_message(LogOut { name: "Zoë".to_owned() });
    play_until(&mut [&mut first, &mut second], "it has left", |servers| {
        !heard::<PlayerLoggedOut>(&servers[1].app).is_empty()
    });
    // The other server does not have the ground where it left.
    first.log_in("Zoë", here);
    play_until(&mut [&mut first, &mut second], "it is sent back", |servers| {
        !heard::<LogInRefused>(&servers[0].app).is_empty()
    });
    let reason = heard::<LogInRefused>(&first.app)[0].reason.clone();
    assert!(matches!(reason, LogInError::Elsewhere { server, .. } if server == second.number()), "{reason}");
    // The right server lets it in at once, and does not send it back.
    let refused = heard::<LogInRefused>(&second.app).len();
    second.log_in("Zoë", here);
    play_until(&mut [&mut first, &mut second], "it is there again", |servers| {
        heard::<PlayerLoggedIn>(&servers[1].app).len() == 2 || heard::<LogInRefused>(&servers[1].app).len() > refused
    });
    assert_eq!(heard::<LogInRefused>(&second.app).len(), refused);
}

/// Promise, actions: What a player does while it goes to another server is done or refused, and nothing is done twice.
#[test]
fn a_player_acts_on_its_way_to_another_server_and_there() {
    let store = Arc::new(MemoryStore::new());
    let start = || {
        Server::start_with(&store, |app| {
            app.register_saved_component::<Bag>().mirror_region_component::<Bag>().register_action::<Dig>();
            listen::<ActionAnswer>(app);
        })
    };
    let (mut first, mut second) = (start(), start());
    let dimension = first.dimension;
    let mut homes = [BlockPos::new(5, 3, 5), BlockPos::new(20 * PLOT, 3, 5)];
    viewer(&mut first.app, dimension, 0.0, 0.0, 2);
    viewer(&mut second.app, dimension, homes[1].x as f32, 0.0, 2);
    play_until(&mut [&mut first, &mut second], "both have ground", |servers| {
        servers[0].is_loaded(homes[0]) && servers[1].is_loaded(homes[1])
    });
    let has_bag = |world: &World, id: Uuid, blocks: u32| {
        let mirror = world.resource::<MirrorIndex>().entity(id);
        mirror.is_some_and(|mirror| world.get::<Bag>(mirror) == Some(&Bag(blocks)))
    };
    let mut blocks = 0;
    let mut sessions = Vec::new();
    first.log_in("Zoë", homes[0]);
    play_until(&mut [&mut first, &mut second], "it is there", |servers| {
        !heard::<PlayerLoggedIn>(&servers[0].app).is_empty()
    });
    let id = heard::<PlayerLoggedIn>(&first.app)[0].id;
    in_region(&mut first.app, dimension, homes[0], move |world| {
        let player = world.resource::<EntityIndex>().entity(id).unwrap();
        world.entity_mut(player).insert(Bag(0));
    });
    for round in 0..4_usize {
        play_until(&mut [&mut first, &mut second], "its bag is there", |servers| {
            has_bag(servers[0].app.world(), id, blocks)
        });
        let dig = |server: &mut Server, x: i64| {
            act(&mut server.app, id, Dig(BlockPos::new(homes[0].x + x, -1, round as i64)))
        };
        let mut made = vec![dig(&mut first, 0), dig(&mut first, 1)];
        play(&mut [&mut first, &mut second], round + 1);
        let there = homes[1];
        first.app.world_mut().commands().run_on_region_entity(
            id,
            0,
            move |mut player| _ = player.insert(Position::new(dimension, there)),
            |_, reason| panic!("{reason}"),
        );
        for x in 2..5 {
            made.push(dig(&mut first, x));
            play(&mut [&mut first, &mut second], 1);
        }
        let decided = |server: &Server| -> Vec<ActionAnswer> {
            let answers = heard::<ActionAnswer>(&server.app).iter().filter(|answer| made.contains(&answer.action));
            answers.filter(|answer| answer.outcome != ActionOutcome::Durable).cloned().collect()
        };
        play_until(&mut [&mut first, &mut second], "all is decided and it has moved", |servers| {
            decided(servers[0]).len() == made.len() && heard::<PlayerMoved>(&servers[0].app).len() > round / 2
        });
        let decided = decided(&first);
        let done = decided.iter().filter(|answer| answer.outcome == ActionOutcome::Done).count() as u32;
        assert!(done >= 2, "{decided:?}");
        blocks += done;
        second.log_in("Zoë", homes[0]);
        play_until(&mut [&mut first, &mut second], "it has arrived with its bag", |servers| {
            has_bag(servers[1].app.world(), id, blocks)
        });
        let dig = act(&mut second.app, id, Dig(BlockPos::new(there.x, -1, round as i64)));
        play_until(&mut [&mut first, &mut second], "it acts there", |servers| {
            let answers = heard::<ActionAnswer>(&servers[1].app);
            answers.iter().any(|answer| answer.action == dig && answer.outcome == ActionOutcome::Done)
        });
        blocks += 1;
        let mirror = second.app.world().resource::<MirrorIndex>().entity(id).unwrap();
        sessions.push(second.app.world().get::<Actor>(mirror).unwrap().last());
        // And back.
        homes.swap(0, 1);
        std::mem::swap(&mut first, &mut second);
    }
    assert!(sessions.is_sorted_by(|one, other| one < other), "{sessions:?}");
}

/// Where a parcel is unpacked.
#[derive(Resource, Clone, Copy)]
struct Shelf(DimensionId, BlockPos);

fn unpack(mut parcels: MessageReader<Received<Parcel>>, shelf: Res<Shelf>, mut commands: Commands) {
    for _ in parcels.read() {
        commands.spawn((Position::new(shelf.0, shelf.1), walker("parcel", 0.0)));
    }
}

/// Promise, servers: A registered message to ground that no server has yet, or to another dimension, is on its way or there after a crash.
#[test]
fn a_message_to_ground_that_nobody_has_survives_a_crash() {
    let here = BlockPos::new(5, 3, 5);
    for name in ["overworld", "moon"] {
        let start = |disk: &Arc<Disk>| {
            let mut shelf = None;
            let mut server = Server::start_with(disk, |app| {
                let dimension = match name {
                    "moon" => spawn_dimension(app, Dimension::new(name, Flat::new())),
                    _ => app.dimension_id(name),
                };
                let is_far = if name == "moon" { 0 } else { 9 * PLOT };
                shelf = Some(Shelf(dimension, BlockPos::new(is_far, 3, 5)));
                let shelf = shelf.unwrap();
                app.add_region_plugins(move |region| {
                    region.insert_resource(shelf).add_systems(RegionTick, unpack);
                });
            });
            viewer(&mut server.app, server.dimension, 0.0, 0.0, 1);
            (server, shelf.unwrap())
        };
        let disk = Arc::new(Disk::default());
        let (mut server, shelf) = start(&disk);
        play_until(&mut [&mut server], "the ground is there", |servers| servers[0].is_loaded(here));
        let dimension = server.dimension;
        spawn_in_region(&mut server.app, dimension, here, walker("giver", 0.0));
        play_until(&mut [&mut server], "the giver is there", |servers| walkers(servers[0].app.world_mut()).len() == 1);
        save(&mut server.app);
        disk.keep_copies();
        in_region(&mut server.app, dimension, here, move |world| {
            let mut givers = world.query::<&mut Walker>();
            givers.single_mut(world).unwrap().name = "who gave".to_owned();
            world.resource_mut::<Post>().send(Address::Place(shelf.0, shelf.1), Parcel(7));
        });
        let is_shown = |server: &mut Server| walkers(server.app.world_mut()).iter().any(|(name, _)| name == "parcel");
        viewer(&mut server.app, shelf.0, shelf.1.x as f32, 0.0, 1);
        play_until(&mut [&mut server], "it has arrived", |servers| is_shown(servers[0]));
        save(&mut server.app);
        drop(server);
        let copies = disk.take_copies();
        let (mut given, stride) = (0, copies.len() / 12 + 1);
        for (number, copy) in copies.into_iter().enumerate().filter(|(number, _)| number % stride == 0) {
            copy.end_servers();
            let (mut server, shelf) = start(&Arc::new(copy));
            viewer(&mut server.app, shelf.0, shelf.1.x as f32, 0.0, 1);
            play_until(&mut [&mut server], "both places are there", |servers| {
                let world = servers[0].app.world_mut();
                block_at(world, shelf.0, shelf.1).is_some() && walkers(world).iter().any(|(name, _)| name != "parcel")
            });
            let has_given = walkers(server.app.world_mut()).iter().any(|(name, _)| name == "who gave");
            if has_given {
                given += 1;
                play_until(&mut [&mut server], "the parcel is there", |servers| is_shown(servers[0]));
            }
            // Twice as long as between two looks into the store.
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_millis(600) {
                play(&mut [&mut server], 1);
                thread::sleep(Duration::from_millis(2));
            }
            let all = walkers(server.app.world_mut());
            let parcels = all.iter().filter(|(name, _)| name == "parcel").count();
            assert_eq!(parcels, usize::from(has_given), "{name}, after write {number}: {all:?}");
        }
        assert!(given >= 3, "only {given} moments after the gift");
    }
}

/// Promise, servers: Registered messages reach places and entities on other servers exactly once; others come back.
#[test]
fn messages_reach_places_and_entities_on_other_servers_once() {
    let store = Arc::new(MemoryStore::new());
    let mut first = Server::start(&store);
    let mut second = Server::start(&store);
    let dimension = first.dimension;
    let [here, there] = [BlockPos::new(5, 3, 5), BlockPos::new(20 * PLOT, 3, 5)];
    viewer(&mut first.app, dimension, 0.0, 0.0, 3);
    viewer(&mut second.app, dimension, there.x as f32, 0.0, 3);
    spawn_in_region(&mut second.app, dimension, there, walker("Ann", 0.0));
    play_until(&mut [&mut first, &mut second], "both have ground", |servers| {
        servers[0].is_loaded(here) && walkers(servers[1].app.world_mut()).len() == 1
    });
    save(&mut second.app);
    let ann = second.app.world_mut().query_filtered::<&StableId, With<Mirror>>().single(second.app.world()).unwrap().0;
    in_region(&mut first.app, dimension, here, move |region: &mut World| {
        let mut post = region.resource_mut::<Post>();
        post.send(Address::Place(dimension, there), Parcel(1));
        post.send(Address::Entity(ann), Parcel(2));
        post.send(Address::Place(dimension, there), Note(3));
    });
    play_until(&mut [&mut first, &mut second], "they arrive", |servers| servers[1].kept.0.lock().unwrap().len() >= 2);
    play(&mut [&mut first, &mut second], 60);
    let mut kept = second.kept.0.lock().unwrap().clone();
    kept.sort_unstable();
    assert_eq!(kept, [(1, false), (2, true)]);
    assert_eq!(*first.kept.0.lock().unwrap(), []);
    // Closures stay on their server.
    in_region(&mut first.app, dimension, there, |_: &mut World| panic!("this runs nowhere"));
    play_until(&mut [&mut first, &mut second], "it is lost", |servers| {
        heard::<LetterLost>(&servers[0].app).iter().any(|lost| lost.what == "a closure")
    });
    drop(first);
    drop(second);
    verify(&store);
}

/// Promise, servers: A process cannot have a world alone while a server lives, and pre-generation is refused in a shared world.
#[test]
fn what_needs_a_world_of_its_own_is_refused() {
    let store = Arc::new(MemoryStore::new());
    let mut server = Server::start_with(&store, |app| {
        listen::<JobEnded>(app);
        listen::<ArenaRefused>(app);
    });
    // The server shows life meanwhile.
    let opened = thread::scope(|scope| {
        let other = store.clone();
        let opened = scope.spawn(move || {
            let mut wait = OpenWait::new(Duration::ZERO, |_| ControlFlow::Continue(()));
            WorldStore::open_waiting(&StorageConfig::Custom(other), &mut wait)
        });
        while !opened.is_finished() {
            play(&mut [&mut server], 5);
            thread::sleep(Duration::from_millis(20));
        }
        opened.join().unwrap().unwrap_err()
    });
    assert!(matches!(opened, WorldOpenError::Shared { servers: 1, .. }), "{opened}");
    let area = ColumnArea::Square { center: ColumnPos::new(0, 0), radius: 4 };
    server.app.world_mut().spawn(Pregeneration { dimension: server.dimension, area });
    play_until(&mut [&mut server], "it is refused", |servers| !heard::<JobEnded>(&servers[0].app).is_empty());
    assert_eq!(heard::<JobEnded>(&server.app)[0].progress.state, JobState::Cancelled);
    let area = BlockBox { min: BlockPos::new(0, 0, 0), max: BlockPos::new(7, 7, 7) };
    server.app.world().resource::<Jobs>().create_arena(Arena::new("arena", server.dimension, area));
    play_until(&mut [&mut server], "it is refused", |servers| !heard::<ArenaRefused>(&servers[0].app).is_empty());
    assert_eq!(heard::<ArenaRefused>(&server.app)[0].error, ArenaError::Shared);
}

/// Promise, servers: A server that shows no life for eight seconds is ended, can change nothing any more, and its app ends.
#[test]
fn a_server_that_stops_is_ended_and_the_others_go_on_with_its_ground() {
    let store = Arc::new(MemoryStore::new());
    let mut first = Server::start(&store);
    let mut second = Server::start(&store);
    let (dimension, here) = (first.dimension, BlockPos::new(5, 0, 5));
    let eye = viewer(&mut first.app, dimension, 0.0, 0.0, 3);
    play_until(&mut [&mut first, &mut second], "the ground is there", |servers| servers[0].is_loaded(here));
    first.edit(here, "terrane:sand");
    play(&mut [&mut first, &mut second], 40);
    save(&mut first.app);
    // An edit that is not saved.
    first.edit(here.offset(1, 0, 0), "terrane:sand");
    play(&mut [&mut first], 1);
    viewer(&mut second.app, dimension, 0.0, 0.0, 3);
    let begin = Instant::now();
    play_until(&mut [&mut second], "the second one has the ground", |servers| servers[0].is_loaded(here));
    assert!(begin.elapsed() >= TERM, "it must not be ended earlier");
    let sand = id_of(second.app.world(), "terrane:sand");
    assert_eq!(second.block(here), Some(sand));
    assert_ne!(second.block(here.offset(1, 0, 0)), Some(sand));
    second.edit(here, "terrane:stone");
    play(&mut [&mut second], 40);
    // The first one goes on, finds that it has been ended, and can change nothing.
    move_viewer(&mut first.app, eye, 40.0, 0.0);
    first.edit(here, "terrane:sand");
    play_until(&mut [&mut first, &mut second], "it knows", |servers| !heard::<ServerEnded>(&servers[0].app).is_empty());
    play(&mut [&mut first], 10);
    assert!(heard::<AppExit>(&first.app).iter().any(AppExit::is_error));
    drop(first);
    play(&mut [&mut second], 40);
    drop(second);
    let mut app = game(lockstep_on(&store));
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 3);
    start(&mut app);
    let stone = id_of(app.world(), "terrane:stone");
    update_until(&mut app, "the ground is there", |world| block_at(world, dimension, here) == Some(stone));
    verify(&store);
}

/// Promise, servers: A server that another one has ended says so at once, fails its saves, and does not try them again.
#[test]
fn an_ended_server_drops_what_it_has_not_saved() {
    let store = Arc::new(MemoryStore::new());
    let mut server = Server::start_with(&store, |app| {
        listen::<SaveFailed>(app);
        listen::<WorldSaved>(app);
    });
    let (dimension, here) = (server.dimension, BlockPos::new(5, 0, 5));
    viewer(&mut server.app, dimension, 0.0, 0.0, 3);
    play_until(&mut [&mut server], "the ground is there", |servers| servers[0].is_loaded(here));
    let number = server.number();
    let judge = Incarnation::join(store.clone(), b"judge").unwrap();
    // A heartbeat may be on its way.
    let end = || {
        let sign = judge.signs().unwrap().into_iter().find(|sign| sign.incarnation == number);
        sign.is_none_or(|sign| judge.end(&sign).unwrap())
    };
    while !end() {}
    let chunks = || store.scan(Family::Chunks, b""..&[u8::MAX; 64], usize::MAX).unwrap();
    let before = chunks();
    server.edit(here, "terrane:sand");
    server.app.world_mut().write_message(SaveWorld { request: 7 });
    let failed = |server: &Server, request: u64| {
        heard::<SaveFailed>(&server.app).iter().any(|failed| failed.requests.contains(&request))
    };
    play_until(&mut [&mut server], "the save fails", |servers| failed(servers[0], 7));
    play_until(&mut [&mut server], "it knows", |servers| !heard::<ServerEnded>(&servers[0].app).is_empty());
    // A failed commit is tried again after a second, of which each update is a part.
    let failures = heard::<SaveFailed>(&server.app).len();
    play(&mut [&mut server], 100);
    assert_eq!(heard::<SaveFailed>(&server.app).len(), failures);
    assert!(heard::<WorldSaved>(&server.app).is_empty());
    drop(server);
    assert!(chunks() == before);
}

#[test]
fn a_message_to_an_entity_waits_for_its_ground() {
    let store = Arc::new(MemoryStore::new());
    let mut first = Server::start(&store);
    let mut second = Server::start(&store);
    let (dimension, there) = (first.dimension, BlockPos::new(20 * PLOT, 3, 5));
    let eye = viewer(&mut second.app, dimension, there.x as f32, 0.0, 3);
    play_until(&mut [&mut first, &mut second], "the ground is there", |servers| servers[1].is_loaded(there));
    spawn_in_region(&mut second.app, dimension, there, walker("Ann", 0.0));
    play_until(&mut [&mut first, &mut second], "she is there", |servers| {
        walkers(servers[1].app.world_mut()).len() == 1
    });
    let ann = second.app.world_mut().query_filtered::<&StableId, With<Mirror>>().single(second.app.world()).unwrap().0;
    // Her ground is no longer loaded, but still belongs to the second server.
    move_viewer(&mut second.app, eye, there.x as f32 + 300.0, 0.0);
    play_until(&mut [&mut first, &mut second], "she is gone", |servers| {
        !servers[1].is_loaded(there) && walkers(servers[1].app.world_mut()).is_empty()
    });
    save(&mut second.app);
    // From another server, and from her own.
    for (number, from) in [(9, BlockPos::new(5, 3, 5)), (10, there.offset(300, 0, 0))] {
        let sender = if number == 9 { &mut first } else { &mut second };
        in_region(&mut sender.app, dimension, from, move |region: &mut World| {
            region.resource_mut::<Post>().send(Address::Entity(ann), Parcel(number));
        });
        play_until(&mut [&mut first, &mut second], "it arrives", |servers| {
            servers[1].kept.0.lock().unwrap().last() == Some(&(number, true))
        });
        play_until(&mut [&mut first, &mut second], "she is gone again", |servers| {
            !servers[1].is_loaded(there) && walkers(servers[1].app.world_mut()).is_empty()
        });
        save(&mut second.app);
    }
    assert_eq!(*second.kept.0.lock().unwrap(), [(9, true), (10, true)]);
    drop(first);
    drop(second);
    assert_eq!(store.scan(Family::Meta, b"crossing:"..b"crossing;", 1), Ok(Vec::new()));
}

/// Promise, servers: Regions stand still while the database does not answer, and go on with their state.
#[test]
fn regions_stand_still_while_the_database_is_away() {
    let disk = Arc::new(Disk::default());
    let mut server = Server::start(&disk);
    let (dimension, here) = (server.dimension, BlockPos::new(5, 0, 5));
    viewer(&mut server.app, dimension, 0.0, 0.0, 3);
    play_until(&mut [&mut server], "the ground is there", |servers| servers[0].is_loaded(here));
    let ticks = |server: &Server| server.app.world().resource::<WorldStatistics>().ticks;
    let is_frozen = |server: &Server| server.app.world().resource::<WorldStatistics>().is_frozen;
    disk.set_full(true);
    let begin = Instant::now();
    play_until(&mut [&mut server], "it is frozen", |servers| is_frozen(servers[0]));
    assert!(begin.elapsed() + Duration::from_secs(1) >= TERM / 2, "an outage shorter than its lease is none");
    play(&mut [&mut server], 10);
    let before = ticks(&server);
    play(&mut [&mut server], 50);
    assert_eq!(ticks(&server), before);
    let region = region_at(server.app.world(), dimension, here.column()).unwrap().region;
    let why = server.app.world().resource::<WorldStatistics>().why(dimension, region);
    assert_eq!(why, Some(RegionCause::Frozen));
    // Its state is still there.
    assert!(server.is_loaded(here));
    disk.set_full(false);
    play_until(&mut [&mut server], "it goes on", |servers| ticks(servers[0]) > before + 20);
    assert!(!is_frozen(&server));
    server.edit(here, "terrane:sand");
    let sand = id_of(server.app.world(), "terrane:sand");
    play_until(&mut [&mut server], "the block is there", |servers| servers[0].block(here) == Some(sand));
    save(&mut server.app);
    assert!(heard::<ServerEnded>(&server.app).is_empty());
}

/// An entity that jumps, with luggage that must not change.
#[derive(Component, Clone, PartialEq, Debug, Serialize, Deserialize, TypePath)]
struct Jumper {
    number: u64,
    luggage: Vec<u64>,
}

/// Jumps between the grounds of all servers, and to ground that none of them has.
fn jump(mut random: ResMut<RegionRandom>, mut jumpers: Query<(&StableId, &mut Position), With<Jumper>>) {
    let mut jumpers: Vec<_> = jumpers.iter_mut().collect();
    jumpers.sort_by_key(|(id, ..)| **id);
    for (_, mut position) in jumpers {
        if random.0.below(30) == 0 {
            let x = i64::from(random.0.below(3)) * 4 * PLOT + i64::from(random.0.below(1_000)) - 300;
            *position = Position::new(position.dimension, BlockPos::new(x, 5, i64::from(random.0.below(300))));
        }
    }
}

/// Promise, servers: An entity that crosses between servers exists exactly once, also if one of them dies.
#[test]
fn entities_that_jump_between_servers_exist_once() {
    let store = Arc::new(MemoryStore::new());
    let add = |app: &mut App| {
        app.register_saved_component::<Jumper>().add_region_plugins(|region| {
            region.add_systems(RegionTick, jump);
        });
    };
    let mut servers: Vec<Server> = (0..3).map(|_| Server::start_with(&store, add)).collect();
    let dimension = servers[0].dimension;
    let mut random = SplitMix64::from_parts([7]);
    let center = |place: usize| BlockPos::new(place as i64 * 4 * PLOT + 200, 5, 150);
    for (place, server) in servers.iter_mut().enumerate() {
        viewer(&mut server.app, dimension, center(place).x as f32, 150.0, 4);
    }
    play_until(&mut servers.iter_mut().collect::<Vec<_>>(), "all have ground", |servers| {
        servers.iter().enumerate().all(|(place, server)| server.is_loaded(center(place)))
    });
    let jumpers = 30;
    for number in 0..jumpers {
        let place = random.below(3) as usize;
        let luggage = (0..number % 5).map(|item| number * 31 + item).collect();
        spawn_in_region(&mut servers[place].app, dimension, center(place), Jumper { number, luggage });
    }
    let mut crossed = 0;
    let mut play_on = |servers: &mut Vec<Server>| {
        for _ in 0..300 {
            play(&mut servers.iter_mut().collect::<Vec<_>>(), 1);
            crossed += store.scan(Family::Meta, b"crossing:"..b"crossing;", usize::MAX).unwrap().len();
        }
    };
    play_on(&mut servers);
    // One dies without saving, and another one takes its place once its term is over.
    std::mem::forget(servers.remove(1));
    let mut heir = Server::start_with(&store, add);
    viewer(&mut heir.app, dimension, center(1).x as f32, 150.0, 4);
    servers.insert(1, heir);
    play_until(&mut servers.iter_mut().collect::<Vec<_>>(), "the heir has the ground", |servers| {
        servers[1].is_loaded(center(1))
    });
    play_on(&mut servers);
    assert!(crossed > 50, "{crossed}");
    owners(&store, dimension);
    drop(servers);
    verify(&store);
    // Everything that still was on its way arrives in a game that has the world alone.
    let mut app = headless(lockstep_on(&store));
    add(&mut app);
    app.mirror_region_component::<Jumper>();
    let dimension = flat(&mut app);
    for place in 0..3 {
        viewer(&mut app, dimension, center(place).x as f32, 150.0, 60);
    }
    start(&mut app);
    let all = |world: &mut World| {
        let mut found: Vec<_> = world.query_filtered::<&Jumper, With<Mirror>>().iter(world).cloned().collect();
        found.sort_unstable_by_key(|jumper| jumper.number);
        found
    };
    update_until(&mut app, "all are there", |world| all(world).len() as u64 == jumpers);
    for (number, jumper) in all(app.world_mut()).into_iter().enumerate() {
        let number = number as u64;
        assert_eq!(jumper, Jumper { number, luggage: (0..number % 5).map(|item| number * 31 + item).collect() });
    }
}

/// Gives all ground away, several times to and fro, until the other server ticks it.
fn hand_over(store: &Arc<dyn KeyValueStore>, times: usize) {
    let server = |number: u8| {
        let storage = StorageConfig::Shared { store: store.clone(), address: vec![number] };
        let mut app = game(TerranePlugin::stored_in(storage));
        let ticks = Arc::new(AtomicU64::new(0));
        let of_regions = ticks.clone();
        app.add_region_plugins(move |region| {
            let ticks = of_regions.clone();
            region.add_systems(RegionTick, move || _ = ticks.fetch_add(1, Ordering::Relaxed));
        });
        let dimension = flat(&mut app);
        start(&mut app);
        update_until(&mut app, "it is open", |world| is_open(world, dimension));
        // Twelve columns around it are 489 columns.
        viewer(&mut app, dimension, 200.0, 200.0, 12);
        (app, ticks)
    };
    let mut servers = [server(1), server(2)];
    let columns = |app: &App| app.world().resource::<WorldStatistics>().columns;
    update_until(&mut servers[0].0, "it has the ground", |world| world.resource::<WorldStatistics>().columns > 480);
    let numbers = servers.each_mut().map(|(app, _)| {
        update_until(app, "it knows its number", |world| !world.resource::<WorldStatistics>().servers.is_empty());
        let servers = &app.world().resource::<WorldStatistics>().servers;
        servers.iter().find(|server| server.is_this).unwrap().incarnation
    });
    for turn in 0..times {
        let (from, to) = (turn % 2, (turn + 1) % 2);
        servers[from].0.world_mut().write_message(DrainServer { to: numbers[to] });
        let (begin, before) = (Instant::now(), servers[to].1.load(Ordering::Relaxed));
        while servers[to].1.load(Ordering::Relaxed) <= before {
            servers.iter_mut().for_each(|(app, _)| app.update());
            assert!(begin.elapsed() < Duration::from_secs(60), "the ground does not come");
            thread::sleep(Duration::from_millis(1));
        }
        while columns(&servers[to].0) < 480 || columns(&servers[from].0) > 0 {
            servers.iter_mut().for_each(|(app, _)| app.update());
            assert!(begin.elapsed() < Duration::from_secs(120), "not all of the ground comes");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Promise, servers: Ground of 500 columns ticks again on the other server.
#[test]
fn ground_of_500_columns_changes_hands() {
    let memory: Arc<dyn KeyValueStore> = Arc::new(MemoryStore::new());
    let database: Arc<dyn KeyValueStore> = Arc::new(PostgresStore::open(&new_world()).unwrap());
    [memory, database].iter().for_each(|store| hand_over(store, 8));
}
