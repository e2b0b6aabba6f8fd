//! A long run: three servers as processes on a distant PostgreSQL, players that carry, trade and store items, log out and in
//! again, and faults all the time. After each fault, each item is stored once, and some acknowledged edits are looked up. In the
//! end none of them is lost.

use crate::support::distant::delay;
use crate::support::process::{Process, here, kill, program, start as start_process};
use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::SplitMix64;
use bevy_terrane::storage::servers::{Crossing, Incarnation};
use bevy_terrane::storage::{Access, EntityRecord, Family, KeyValueStore, StorageConfig, WorldStore};
use bevy_terrane::view::{
    BlockRefused, LogIn, LogInError, LogInRefused, LogOut, PlayerLoggedIn, PlayerLoggedOut, PlayerMoved, ServerEnded,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Write, stdin, stdout};
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use terrane_postgres::server::{Distance, PostgresServer, Stop, Syncing};
use terrane_postgres::{PostgresAccess, PostgresConfig, PostgresStore};

/// The variables that make [`server_of_players`] a server: the address of the world, and its own.
const WORLD: &str = "TERRANE_TEST_WORLD";
const OWN: &str = "TERRANE_TEST_OWN";

const SERVERS: usize = 3;
const PLAYERS: u64 = 200;
const ITEMS_EACH: u64 = 5;
/// Places where players are. Between two of them is room for the ground of two servers.
const SITES: u64 = 9;
const SITE_DISTANCE: i64 = 6 * 512;
/// The time between two faults.
const FAULT_PERIOD: Duration = Duration::from_secs(3);
/// How many acknowledged edits are looked up after each fault.
const SAMPLED_EDITS: usize = 20;

fn site(number: u64) -> BlockPos {
    let (x, z) = ((number % 3) as i64, (number / 3 % 3) as i64);
    BlockPos::new(x * SITE_DISTANCE + 250, 5, z * SITE_DISTANCE + 250)
}

/// What a player carries.
#[derive(Component, Clone, Debug, PartialEq, Serialize, Deserialize, TypePath)]
struct Bag(Vec<u64>);

/// What is in a chest, which stands at a site.
#[derive(Component, Clone, Debug, PartialEq, Serialize, Deserialize, TypePath)]
struct Chest(Vec<u64>);

/// Players walk about, go to another site once in a while, trade items with others in the region, and use the chest.
fn live(
    mut random: ResMut<RegionRandom>,
    mut players: Query<(&StableId, &mut Bag, &mut Position), With<Player>>,
    mut chests: Query<(&StableId, &mut Chest)>,
) {
    let random = &mut random.0;
    let mut players: Vec<_> = players.iter_mut().collect();
    players.sort_by_key(|(id, ..)| **id);
    for (_, bag, position) in &mut players {
        let step = |random: &mut SplitMix64| random.below(3) as f32 - 1.0;
        position.translate(Vec3::new(step(random), 0.0, step(random)));
        if random.below(400) == 0 {
            **position = Position::new(position.dimension, site(random.below(SITES as u32).into()));
        }
        if let Some((_, mut chest)) = chests.iter_mut().min_by_key(|(id, _)| **id)
            && random.below(20) == 0
        {
            match random.below(2) {
                0 => bag.0.extend(chest.0.pop()),
                _ => chest.0.extend(bag.0.pop()),
            }
        }
    }
    if players.len() > 1 && random.below(10) == 0 {
        let [a, b] = [0; 2].map(|_| random.below(players.len() as u32) as usize);
        let item = if a == b { None } else { players[a].1.0.pop() };
        players[b].1.0.extend(item);
    }
}

/// Not a test of its own: a server that does what its input says, and prints what happens.
#[test]
fn server_of_players() {
    if here().is_none() {
        return;
    }
    let (world, own) = (std::env::var(WORLD).unwrap(), std::env::var(OWN).unwrap());
    let store = Arc::new(PostgresStore::open(&world).unwrap());
    let plugin = TerranePlugin {
        storage: StorageConfig::Shared { store, address: own.clone().into_bytes() },
        saving: SaveSettings::every(Duration::from_secs(1)),
        threads: ThreadSettings { regions: 2, generation: 1, ..default() },
        ..default()
    };
    let mut app = headless(plugin);
    app.register_saved_component::<Bag>().register_saved_component::<Chest>().mirror_region_component::<Player>();
    app.add_region_plugins(|region| {
        region.add_systems(RegionTick, live);
    });
    listen::<PlayerLoggedIn>(&mut app);
    listen::<PlayerLoggedOut>(&mut app);
    listen::<PlayerMoved>(&mut app);
    listen::<LogInRefused>(&mut app);
    listen::<BlockRefused>(&mut app);
    listen::<WorldSaved>(&mut app);
    listen::<ServerEnded>(&mut app);
    // Its columns have few chunks, so that a distant database keeps up.
    let dimension = spawn_dimension(&mut app, Dimension::new("overworld", Flat::new()).with_height(-16..112));
    start(&mut app);
    if let Some(failure) = app.world().get_resource::<WorldFailure>() {
        return say(format_args!("refused {failure}"));
    }
    let input = lines_of_input();
    let (mut request, mut edits) = (0, BTreeMap::<u64, BlockPos>::new());
    let mut seen = (Instant::now(), SplitMix64::new(u64::from(own.as_bytes()[0])));
    say(format_args!("ready"));
    loop {
        app.update();
        thread::sleep(Duration::from_millis(5));
        for line in input.try_iter() {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["in", name] => {
                    let number: u64 = name.parse().unwrap();
                    let first_place = Some((dimension, site(number)));
                    app.world_mut().write_message(LogIn { name: name.to_owned(), first_place });
                }
                ["out", name] => {
                    app.world_mut().write_message(LogOut { name: name.to_owned() });
                }
                ["chest", number] => {
                    let place = site(number.parse().unwrap());
                    spawn_in_region(&mut app, dimension, place, Chest(Vec::new()));
                }
                ["save", number] => {
                    app.world_mut().write_message(SaveWorld { request: number.parse::<u64>().unwrap() | 1 << 40 });
                }
                _ => return,
            }
        }
        // An edit near a player, with a position that is not used again.
        if seen.0.elapsed() > Duration::from_millis(200) {
            seen.0 = Instant::now();
            let places: Vec<Position> = app
                .world_mut()
                .query_filtered::<&Position, (With<Player>, With<Mirror>)>()
                .iter(app.world())
                .copied()
                .collect();
            if !places.is_empty() {
                let near = places[seen.1.below(places.len() as u32) as usize].block;
                let high = 10 + i64::from(seen.1.below(1_000_000) / 10_000);
                let place =
                    BlockPos::new(near.x ^ i64::from(seen.1.below(16)), high, near.z ^ i64::from(seen.1.below(16)));
                let block = id_of(app.world(), "terrane:stone");
                request += 1;
                edits.insert(request, place);
                app.world_mut().write_message(SetBlock { dimension, position: place, block });
                app.world_mut().write_message(SaveWorld { request });
            }
        }
        for PlayerLoggedIn { name, id, .. } in taken(&mut app) {
            say(format_args!("in {name}"));
            let number: u64 = name.parse().unwrap();
            app.world_mut().commands().run_on_region_entity(
                id,
                0,
                move |mut player: EntityWorldMut| {
                    if !player.contains::<Bag>() {
                        player.insert(Bag((number * ITEMS_EACH..(number + 1) * ITEMS_EACH).collect()));
                    }
                    player.insert(Viewer::new().with_radius(2));
                },
                |_, _| {},
            );
        }
        for PlayerLoggedOut { name, .. } in taken(&mut app) {
            say(format_args!("out {name}"));
        }
        for PlayerMoved { name, address, .. } in taken(&mut app) {
            say(format_args!("to {name} {}", String::from_utf8_lossy(&address)));
        }
        for LogInRefused { name, reason } in taken(&mut app) {
            match reason {
                LogInError::Elsewhere { address, .. } => {
                    say(format_args!("to {name} {}", String::from_utf8_lossy(&address)));
                }
                LogInError::AlreadyThere => {}
                _ => say(format_args!("out {name}")),
            }
        }
        for BlockRefused { request, .. } in taken(&mut app) {
            edits.retain(|_, place| *place != request.position);
        }
        for WorldSaved { request } in taken(&mut app) {
            match edits.remove(&request) {
                Some(BlockPos { x, y, z }) => say(format_args!("kept {x} {y} {z}")),
                None => say(format_args!("saved {}", request & !(1 << 40))),
            }
        }
        if !heard::<ServerEnded>(&app).is_empty() {
            say(format_args!("ended"));
            return;
        }
    }
}

fn say(text: std::fmt::Arguments) {
    // Begins with a line break, because the test's own output may stand on the line.
    drop(writeln!(stdout().lock(), "\n{text}"));
    drop(stdout().flush());
}

fn lines_of_input() -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || stdin().lines().map_while(Result::ok).for_each(|line| drop(sender.send(line))));
    receiver
}

/// The messages of this kind since the last call.
fn taken<M: Message>(app: &mut App) -> Vec<M> {
    std::mem::take(&mut app.world_mut().resource_mut::<Heard<M>>().0)
}

/// A server's process.
struct Server {
    process: Process,
    is_stopped: bool,
}

/// The driver: the clients of all players.
struct Run {
    world: String,
    folder: tempfile::TempDir,
    servers: Vec<Option<Server>>,
    lines: Arc<Mutex<Vec<(usize, String)>>>,
    /// The server of each player, and when to log in there, unless the player is there.
    players: BTreeMap<u64, (usize, Option<Instant>)>,
    /// The players that were let in since this was empty. There is hardly a moment in which none of them is on its way.
    let_in: BTreeSet<u64>,
    kept: BTreeMap<(i64, i64, i64), usize>,
    saved: BTreeSet<(usize, u64)>,
    moves: usize,
    ended: usize,
    /// Why servers could not open the world.
    refusals: Vec<String>,
    /// `true` while players log out at random.
    logs_out: bool,
    random: SplitMix64,
}

impl Run {
    fn begin(&mut self, slot: usize) {
        let mut command = program();
        command.env(WORLD, &self.world).env(OWN, slot.to_string());
        let (process, lines) = start_process(command, "servers_under_faults::server_of_players", self.folder.path());
        let all = self.lines.clone();
        thread::spawn(move || lines.for_each(|line| all.lock().unwrap().push((slot, line))));
        self.servers[slot] = Some(Server { process, is_stopped: false });
    }

    fn tell(&mut self, slot: usize, text: &str) {
        if let Some(input) = self.servers[slot].as_mut().and_then(|server| server.process.stdin.as_mut()) {
            drop(writeln!(input, "{text}"));
        }
    }

    /// A server for a player, and when to log in there. The first one that comes to a site brings it to its server, so they come one
    /// after the other, and the sites are on different servers.
    fn any_server(&mut self) -> (usize, Option<Instant>) {
        let later = Duration::from_millis(self.random.below(3_000).into());
        (self.random.below(SERVERS as u32) as usize, Some(Instant::now() + later))
    }

    /// Sends the players of a server that is gone to others.
    fn scatter(&mut self, slot: usize) {
        let of_it = self.players.iter().filter(|(_, (at, _))| *at == slot).map(|(player, _)| *player);
        for player in of_it.collect::<Vec<_>>() {
            let server = self.any_server();
            self.players.insert(player, server);
        }
    }

    fn pass(&mut self) {
        for (slot, line) in std::mem::take(&mut *self.lines.lock().unwrap()) {
            assert!(!line.contains("panicked"), "server {slot}: {line}");
            let words: Vec<&str> = line.split(' ').collect();
            let player = || words[1].parse::<u64>().unwrap();
            let retry = Some(Instant::now() + Duration::from_millis(300));
            match words[..] {
                ["in", _] => {
                    self.players.insert(player(), (slot, None));
                    self.let_in.insert(player());
                }
                ["out", _] => drop(self.players.insert(player(), (slot, retry))),
                ["to", _, address] => {
                    self.moves += 1;
                    // Without an address the other server is not known yet.
                    let to = address.parse().unwrap_or(self.random.below(SERVERS as u32) as usize);
                    self.players.insert(player(), (to, retry));
                }
                ["kept", x, y, z] => {
                    *self.kept.entry((x.parse().unwrap(), y.parse().unwrap(), z.parse().unwrap())).or_default() += 1;
                }
                ["saved", number] => drop(self.saved.insert((slot, number.parse().unwrap()))),
                ["ended"] => self.ended += 1,
                ["refused", ..] => self.refusals.push(line),
                _ => {}
            }
        }
        for slot in 0..SERVERS {
            let has_ended =
                self.servers[slot].as_mut().is_some_and(|server| server.process.try_wait().unwrap().is_some());
            if has_ended {
                self.scatter(slot);
                self.begin(slot);
            }
        }
        let now = Instant::now();
        let due: Vec<(u64, usize)> = self
            .players
            .iter_mut()
            .filter_map(|(name, (slot, due))| {
                // A log-in without an answer is repeated.
                due.take_if(|at| *at <= now)?;
                *due = Some(now + Duration::from_secs(5));
                Some((*name, *slot))
            })
            .collect();
        due.into_iter().for_each(|(name, slot)| self.tell(slot, &format!("in {name}")));
        if self.logs_out && self.random.below(10) == 0 {
            let name = u64::from(self.random.below(PLAYERS as u32));
            if let Some((slot, due @ None)) = self.players.get_mut(&name) {
                // It logs in again once it is out, or if there is no answer.
                *due = Some(now + Duration::from_secs(5));
                let slot = *slot;
                self.tell(slot, &format!("out {name}"));
            }
        }
        thread::sleep(Duration::from_millis(20));
    }

    fn pass_for(&mut self, time: Duration) {
        let begin = Instant::now();
        while begin.elapsed() < time {
            self.pass();
        }
    }

    /// Passes until each player was let in, or is there.
    fn wait_for_players(&mut self) {
        let are_there = self.players.iter().filter(|(_, (_, due))| due.is_none());
        self.let_in = are_there.map(|(player, _)| *player).collect();
        self.pass_until("all players are there", |run| run.let_in.len() as u64 == PLAYERS);
    }

    #[track_caller]
    fn pass_until(&mut self, what: &str, mut done: impl FnMut(&Self) -> bool) {
        let begin = Instant::now();
        while !done(self) {
            assert!(begin.elapsed() < Duration::from_secs(180), "waited in vain until {what}: {:?}", self.players);
            self.pass();
        }
    }

    fn fault(&mut self, database: &PostgresServer) {
        let slot = self.random.below(SERVERS as u32) as usize;
        let Some(server) = &mut self.servers[slot] else { return };
        match self.random.below(10) {
            _ if server.is_stopped => {
                server.process.signal("-CONT");
                server.is_stopped = false;
            }
            0..5 => kill(&mut server.process),
            5..7 => {
                server.process.signal("-STOP");
                server.is_stopped = true;
            }
            7..9 => {
                let cut = "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity \
                           WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 4) it";
                database.execute(cut).unwrap();
            }
            _ => {
                database.stop(Stop::Immediate).unwrap();
                thread::sleep(Duration::from_millis(500));
                database.restart().unwrap();
            }
        }
    }
}

/// No two servers own plots beside each other.
fn check_distance(store: &Arc<PostgresStore>) {
    // The first key of a plot has the dimension behind its prefix.
    let Some((key, _)) = store.scan(Family::Meta, b"plot:"..b"plot;", 1).unwrap().pop() else { return };
    let dimension = DimensionId(u64::from_be_bytes(key[5..13].try_into().unwrap()));
    let observer = Incarnation::join(store.clone(), b"observer").unwrap();
    let owners = observer.owners(dimension).unwrap();
    observer.leave().unwrap();
    for ((_, a), owner) in &owners {
        for ((_, b), other) in &owners {
            let is_near = a.x.abs_diff(b.x) <= 1 && a.z.abs_diff(b.z) <= 1;
            assert!(!is_near || owner == other, "{a} of {owner} is beside {b} of {other}");
        }
    }
}

fn items_of(record: &EntityRecord) -> Vec<u64> {
    let is_of = |name: &str| name.contains("Bag") || name.contains("Chest");
    let found = record.components.iter().filter(|(name, _)| is_of(name));
    found.flat_map(|(_, bytes)| postcard::from_bytes::<Bag>(bytes).unwrap().0).collect()
}

/// Promise, servers: Of the items of 200 players none is lost or doubled while servers are killed, stopped and cut off.
#[test]
fn items_exist_once_and_edits_stay_while_servers_fail() {
    let database = PostgresServer::start(Syncing::On).unwrap();
    let world = format!("{}#world", database.address());
    let distance = Distance::to(database.port(), delay(25)).unwrap();
    let mut run = Run {
        world: format!("{}#world", database.address_at(&[distance.port()])),
        folder: tempfile::tempdir().unwrap(),
        servers: (0..SERVERS).map(|_| None).collect(),
        lines: Arc::default(),
        players: BTreeMap::new(),
        let_in: BTreeSet::new(),
        kept: BTreeMap::new(),
        saved: BTreeSet::new(),
        moves: 0,
        ended: 0,
        refusals: Vec::new(),
        logs_out: false,
        random: SplitMix64::new(11),
    };
    (0..SERVERS).for_each(|slot| run.begin(slot));
    run.pass_for(Duration::from_secs(3));
    for player in 0..PLAYERS {
        let server = run.any_server();
        run.players.insert(player, server);
    }
    run.wait_for_players();
    assert!(run.refusals.is_empty(), "{:?}", run.refusals);
    (0..SITES).for_each(|number| {
        let (slot, _) = run.players[&number];
        run.tell(slot, &format!("chest {number}"));
    });
    let all = (0..PLAYERS * ITEMS_EACH).map(|item| (item, 1)).collect();
    run.pass_until("all items are stored", |_| stored_items(&stored(&world)) == all);

    let store = Arc::new(PostgresStore::open(&world).unwrap());
    // `TERRANE_ROUNDS=100` makes 1,000 faults.
    let faults = rounds(10);
    run.logs_out = true;
    for fault in 0..faults {
        run.fault(&database);
        run.pass_for(FAULT_PERIOD);
        check_distance(&store);
        let sampled: Vec<_> = (0..SAMPLED_EDITS)
            .filter_map(|_| {
                let index = run.random.below(run.kept.len().max(1) as u32) as usize;
                run.kept.keys().nth(index).copied()
            })
            .collect();
        let moment = stored(&world);
        check_world(&moment, sampled.iter());
        if fault % 10 == 9 {
            check_damage(&moment);
            println!("{} faults, {} moves, {} ended, {} edits", fault + 1, run.moves, run.ended, run.kept.len());
        }
    }
    for slot in 0..SERVERS {
        if let Some(server) = &mut run.servers[slot]
            && server.is_stopped
        {
            server.process.signal("-CONT");
            server.is_stopped = false;
        }
    }
    run.logs_out = false;
    run.wait_for_players();
    run.pass_for(Duration::from_secs(3));
    for slot in 0..SERVERS {
        let mut server = run.servers[slot].take().unwrap();
        drop(server.process.stdin.take().map(|mut input| writeln!(input, "quit")));
        server.process.wait().unwrap();
    }
    run.pass_for(Duration::from_millis(200));
    assert!(!run.kept.is_empty(), "no edit is acknowledged");
    let end = stored(&world);
    check_world(&end, run.kept.keys());
    check_damage(&end);
    assert!(run.moves > 100 && run.ended > 0 || faults < 100, "{} moves, {} ended", run.moves, run.ended);
    println!("{faults} faults, {} moves, {} servers ended, {} edits", run.moves, run.ended, run.kept.len());
}

/// The world as it is stored in one moment.
struct Stored {
    store: Arc<PostgresStore>,
    world: WorldStore,
}

/// Also works while servers write.
fn stored(address: &str) -> Stored {
    let config = PostgresConfig { access: PostgresAccess::Read, ..default() };
    let store = Arc::new(PostgresStore::open_with(address, &config).unwrap());
    let world = WorldStore::open_existing(&StorageConfig::Custom(store.clone()), Access::Read).unwrap();
    Stored { store, world }
}

/// How often each item is stored: in bags, in chests, and on its way to another server.
fn stored_items(Stored { store, world }: &Stored) -> BTreeMap<u64, usize> {
    let dimension = world.dimension_named("overworld").unwrap().id;
    let mut items = BTreeMap::new();
    let mut count =
        |record: &EntityRecord| items_of(record).into_iter().for_each(|item| *items.entry(item).or_default() += 1);
    for (_, value) in store.scan(Family::Entities, b""..&[u8::MAX; 17], usize::MAX).unwrap() {
        count(&EntityRecord::from_bytes(&value).unwrap());
    }
    for (_, crossing) in world.crossings(dimension).unwrap() {
        if let Crossing::Entities(records) = crossing {
            records.iter().for_each(&mut count);
        }
    }
    items
}

/// Each item exists once, and these edits are stored.
fn check_world<'a>(stored: &Stored, edits: impl Iterator<Item = &'a (i64, i64, i64)>) {
    let (items, world) = (stored_items(stored), &stored.world);
    let wrong: Vec<_> = (0..PLAYERS * ITEMS_EACH).filter(|item| items.get(item) != Some(&1)).collect();
    assert!(wrong.is_empty(), "{wrong:?}: {:?}", wrong.iter().map(|item| items.get(item)).collect::<Vec<_>>());
    assert_eq!(items.len() as u64, PLAYERS * ITEMS_EACH);
    let dimension = world.dimension_named("overworld").unwrap().id;
    for (x, y, z) in edits {
        let place = BlockPos::new(*x, *y, *z);
        let column = place.column();
        let loaded = world.load_batch(dimension, column.batch(), &[column], -8..20).unwrap();
        assert_ne!(loaded[0].column.block(place), BlockId::AIR, "the edit of {place} is lost");
    }
}

/// Nothing in the world is damaged.
fn check_damage(stored: &Stored) {
    let verified = stored.world.verify(|_| ControlFlow::Continue(())).unwrap();
    assert_eq!(verified.damage.count(), 0);
}
