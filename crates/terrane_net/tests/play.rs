//! Servers and clients in one process, over the loopback.

use bevy::prelude::*;
use bevy_terrane::plugin::{SaveSettings, ThreadSettings};
use bevy_terrane::prelude::*;
use bevy_terrane::storage::{MemoryStore, StorageConfig};
use bevy_terrane::view::{ChunkSyncClient, MirrorIndex, PlayerLoggedIn, PublishedColumns};
use serde::{Deserialize, Serialize};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use terrane_net::*;
use uuid::Uuid;

#[derive(Serialize, Deserialize, TypePath, Clone, Debug, PartialEq)]
struct Say(String);

/// The block on which players stand, and the place of new ones.
const GROUND: BlockPos = BlockPos::new(8, 0, 8);
const PLACE: BlockPos = BlockPos::new(8, 1, 8);

fn server(storage: StorageConfig, change: impl FnOnce(&mut ServerPlugin)) -> App {
    let mut app = App::new();
    let saving = SaveSettings::every(Duration::from_millis(500));
    let threads = ThreadSettings { regions: 1, generation: 1, ..default() };
    app.add_plugins((MinimalPlugins, TerranePlugin { storage, saving, threads, ..default() }, BodyPlugin));
    let mut plugin = ServerPlugin::new(([127, 0, 0, 1], 0), "overworld", PLACE);
    plugin.radius = 4;
    change(&mut plugin);
    app.add_plugins(plugin)
        .register_action::<SetBlock>()
        .register_net_message::<Say>()
        .add_systems(Update, (pass_on, give_bodies));
    let time = TimeOfDay { days: 3.25, seconds_per_day: 0.0 };
    app.world_mut().spawn((Dimension::new("overworld", Flat::new()), time));
    app.finish();
    app.cleanup();
    app
}

fn in_memory(change: impl FnOnce(&mut ServerPlugin)) -> App {
    server(StorageConfig::Memory, change)
}

fn pass_on(mut said: MessageReader<FromAClient<Say>>, mut all: MessageWriter<ToClients<Say>>) {
    all.write_batch(said.read().map(|said| ToClients { client: None, message: said.message.clone() }));
}

fn give_bodies(mut logged_in: MessageReader<PlayerLoggedIn>, mut commands: Commands) {
    for player in logged_in.read() {
        let body = (BlockBody::new(0.6, 1.8), CharacterController::default());
        let give = move |mut player: EntityWorldMut| _ = player.insert(body);
        commands.run_on_region_entity(player.id, 0, give, |_, _| {});
    }
}

/// A client of the server at this address.
fn client(
    address: SocketAddr,
    name: &str,
    trust: Trust,
    change: impl FnOnce(ServerConnection) -> ServerConnection,
) -> App {
    let mut app = App::new();
    app.add_plugins((MinimalPlugins, TerranePlugin::in_memory(), BodyPlugin, ClientPlugin));
    app.register_action::<SetBlock>().register_net_message::<Say>();
    app.init_resource::<Heard>().add_systems(Update, hear);
    app.finish();
    app.cleanup();
    let connection = ServerConnection::new(address.to_string(), name, trust).with_radius(3);
    app.world_mut().spawn(change(connection));
    app
}

fn join(server: &App, name: &str) -> App {
    client(address(server), name, pinned(server), |connection| connection)
}

fn address(server: &App) -> SocketAddr {
    server.world().resource::<NetServer>().address()
}

fn pinned(server: &App) -> Trust {
    Trust::Pinned(server.world().resource::<NetServer>().fingerprint())
}

/// The messages that a client has received.
#[derive(Resource, Default)]
struct Heard {
    news: Vec<ConnectionNews>,
    said: Vec<Say>,
}

fn hear(
    mut heard: ResMut<Heard>,
    mut news: MessageReader<ConnectionNews>,
    mut said: MessageReader<FromTheServer<Say>>,
) {
    heard.news.extend(news.read().cloned());
    heard.said.extend(said.read().map(|FromTheServer(said)| said.clone()));
}

/// Updates all until `done`.
#[track_caller]
fn until(apps: &mut [&mut App], what: &str, mut done: impl FnMut(&mut [&mut App]) -> bool) {
    let began = Instant::now();
    while !done(apps) {
        if began.elapsed() > Duration::from_secs(60) {
            let heard = apps.iter().filter_map(|app| app.world().get_resource::<Heard>());
            panic!("waited in vain until {what}: {:?}", heard.map(|heard| &heard.news).collect::<Vec<_>>());
        }
        apps.iter_mut().for_each(|app| app.update());
        thread::sleep(Duration::from_millis(3));
    }
}

fn news(client: &App) -> &[ConnectionNews] {
    &client.world().resource::<Heard>().news
}

/// The id of a client's player, and the server where it is.
fn plays(client: &App) -> Option<(Uuid, String)> {
    news(client).iter().rev().find_map(|news| match news {
        ConnectionNews::Plays { player, server, .. } => Some((*player, server.clone())),
        _ => None,
    })
}

fn refusal(client: &App) -> Option<String> {
    news(client).iter().find_map(|news| match news {
        ConnectionNews::Refused { reason, .. } => Some(reason.clone()),
        _ => None,
    })
}

fn loss(client: &App) -> Option<String> {
    news(client).iter().find_map(|news| match news {
        ConnectionNews::Lost { reason, .. } => Some(reason.clone()),
        _ => None,
    })
}

#[track_caller]
fn until_both_play(server: &mut App, one: &mut App, other: &mut App) -> [Uuid; 2] {
    until(&mut [server, one, other], "both play and see each other", |apps| {
        let ids = [1, 2].map(|app| plays(apps[app]).map(|(id, _)| id));
        let [Some(one), Some(other)] = ids else { return false };
        place(apps[1], other).is_some() && place(apps[2], one).is_some()
    });
    [&*one, &*other].map(|app| plays(app).unwrap().0)
}

/// Where an app shows an entity.
fn place(app: &App, id: Uuid) -> Option<Position> {
    let entity = app.world().resource::<MirrorIndex>().entity(id)?;
    Some(app.world().get::<Mirror>(entity)?.current.0)
}

/// In blocks.
fn distance(place: Option<Position>, other: Position) -> f32 {
    let place = place.expect("the entity is shown");
    (place.relative_to(other.block) - other.relative_to(other.block)).length()
}

/// The entity of a client's connection, and the dimension there.
fn connection(client: &mut App) -> (Entity, Option<DimensionId>) {
    let mut connections = client.world_mut().query::<(Entity, &ServerConnection, Option<&ChunkSyncClient>)>();
    let (entity, _, view) = connections.single(client.world()).unwrap();
    (entity, view.map(ChunkSyncClient::dimension))
}

/// The block that a client shows.
fn block(client: &mut App, at: BlockPos) -> Option<BlockId> {
    let dimension = connection(client).1?;
    bevy_terrane::testing::block_at(client.world(), dimension, at)
}

/// Promise, company: Two players of a server see each other come, walk, dig, speak, leave and come back, over one plugin on each side.
#[test]
fn two_players_see_each_other() {
    let mut server = in_memory(|_| {});
    let (mut ann, mut bob) = (join(&server, "Ann"), join(&server, "Bob"));
    let [ann_id, _] = until_both_play(&mut server, &mut ann, &mut bob);

    // Ann walks.
    let before = place(&bob, ann_id).unwrap();
    let (own, _) = connection(&mut ann);
    until(&mut [&mut server, &mut ann, &mut bob], "Bob sees Ann walk", |apps| {
        apps[1].world_mut().get_mut::<Intent>(own).unwrap().walk(1.0, 0.0);
        distance(place(apps[2], ann_id), before) > 3.0
    });
    ann.world_mut().get_mut::<Intent>(own).unwrap().walk(0.0, 0.0);

    // She digs.
    let ground = place(&ann, ann_id).unwrap().block.offset(0, -1, 0);
    until(&mut [&mut server, &mut ann, &mut bob], "Bob sees the ground", |apps| block(apps[2], ground).is_some());
    assert_ne!(block(&mut bob, ground), Some(BlockId::AIR));
    let dimension = connection(&mut ann).1.unwrap();
    ann.world_mut().write_message(SetBlock { dimension, position: ground, block: BlockId::AIR });
    until(&mut [&mut server, &mut ann, &mut bob], "Bob sees the hole", |apps| {
        block(apps[2], ground) == Some(BlockId::AIR)
    });

    // She speaks.
    ann.world_mut().write_message(ToTheServer(Say("hello".to_owned())));
    until(&mut [&mut server, &mut ann, &mut bob], "Bob hears Ann", |apps| {
        apps[2].world().resource::<Heard>().said == [Say("hello".to_owned())]
    });

    // It is the same time of day.
    until(&mut [&mut server, &mut ann, &mut bob], "Bob knows the time", |apps| {
        let (entity, _) = connection(apps[2]);
        apps[2].world().get::<TimeOfDay>(entity).is_some_and(|time| (time.days - 3.25).abs() < 1e-6)
    });

    // She leaves, and comes back as the same player to the same place.
    let left = place(&server, ann_id).unwrap();
    drop(ann);
    until(&mut [&mut server, &mut bob], "Ann is gone", |apps| place(apps[1], ann_id).is_none());
    let mut ann = join(&server, "Ann");
    until(&mut [&mut server, &mut ann, &mut bob], "Bob sees Ann again", |apps| place(apps[2], ann_id).is_some());
    assert_eq!(plays(&ann).map(|(id, _)| id), Some(ann_id));
    assert!(distance(place(&bob, ann_id), left) < 3.0);
    assert!(loss(&bob).is_none() && refusal(&bob).is_none(), "{:?}", news(&bob));
}

/// Promise, company: The game decides who may play and under which name, and the client reads why it may not.
#[test]
fn a_game_says_who_may_play() {
    let mut server = in_memory(|_| {});
    server.add_observer(|mut attempt: On<LogInAttempt>| {
        let name = std::str::from_utf8(&attempt.secret)
            .ok()
            .and_then(|secret| secret.strip_prefix("I am "))
            .map(str::to_owned);
        match name {
            Some(name) => attempt.name = name,
            None => attempt.refuse("who are you?"),
        }
    });
    let mut ann = client(address(&server), "x", pinned(&server), |connection| connection.with_secret("I am Ann"));
    let mut bob = join(&server, "Bob");
    until(&mut [&mut server, &mut ann, &mut bob], "one plays and one does not", |apps| {
        plays(apps[1]).is_some() && refusal(apps[2]).is_some()
    });
    assert_eq!(refusal(&bob).as_deref(), Some("who are you?"));
    let names: Vec<String> = server
        .world_mut()
        .query::<&ConnectedClient>()
        .iter(server.world())
        .map(|client| client.name().to_owned())
        .collect();
    assert_eq!(names, ["Ann"]);
    // A refused client does not try again.
    until(&mut [&mut server, &mut bob], "its connection ends", {
        let mut frames = 0;
        move |_| {
            frames += 1;
            frames > 100
        }
    });
    assert_eq!(news(&bob).len(), 1);
}

/// Promise, company: Who plays after a second log-in of a name is a setting.
#[test]
fn who_wins_a_second_log_in_is_a_setting() {
    for setting in [SecondLogIn::Replaces, SecondLogIn::IsRefused] {
        // A second log-in takes no other place.
        let mut server = in_memory(|plugin| (plugin.second_log_in, plugin.players) = (setting, 1));
        let mut first = join(&server, "Ann");
        until(&mut [&mut server, &mut first], "the first plays", |apps| plays(apps[1]).is_some());
        let id = plays(&first).unwrap().0;
        let mut second = join(&server, "Ann");
        let replaces = setting == SecondLogIn::Replaces;
        until(&mut [&mut server, &mut first, &mut second], "one of them is refused", |apps| {
            let [loser, winner] = if replaces { [1, 2] } else { [2, 1] };
            refusal(apps[loser]).is_some() && plays(apps[winner]).is_some()
        });
        if replaces {
            assert_eq!(plays(&second).unwrap().0, id);
            assert_eq!(refusal(&first).unwrap(), "you have logged in elsewhere");
        } else {
            assert_eq!(refusal(&second).unwrap(), "Ann plays already");
        }
        // The winner stays.
        for _ in 0..100 {
            [&mut server, &mut first, &mut second].into_iter().for_each(|app| app.update());
            thread::sleep(Duration::from_millis(2));
        }
        let winner = if replaces { &second } else { &first };
        assert!(refusal(winner).is_none() && loss(winner).is_none(), "{:?}", news(winner));
        assert!(place(&server, id).is_some());
    }
}

/// Promise, company: Connections beyond the limits are turned away before they cost anything, and a full server says that it is full.
#[test]
fn log_ins_are_limited() {
    let mut server = in_memory(|plugin| (plugin.log_ins, plugin.players) = ((4, 100), 2));
    let mut clients: Vec<App> = (0..4).map(|number| join(&server, &format!("player {number}"))).collect();
    let mut apps: Vec<&mut App> = [&mut server].into_iter().chain(&mut clients).collect();
    until(&mut apps, "two play and two are refused", |apps| {
        apps[1..].iter().all(|app| plays(app).is_some() || refusal(app).is_some())
    });
    let refusals: Vec<String> = clients.iter().filter_map(refusal).collect();
    assert_eq!(refusals, ["the server is full"; 2]);
    assert_eq!(server.world().resource::<NetServer>().turned_away(), 0);
    let mut fifth = join(&server, "player 4");
    until(&mut [&mut server, &mut fifth], "the fifth is turned away", |apps| loss(apps[1]).is_some());
    assert!(server.world().resource::<NetServer>().turned_away() > 0);
    assert!(plays(&fifth).is_none() && refusal(&fifth).is_none());
}

/// Promise, company: A client goes only to the server that it knows.
#[test]
fn a_server_with_another_certificate_is_refused() {
    let mut server = in_memory(|_| {});
    let other = Identity::generate().unwrap();
    let mut ann = client(address(&server), "Ann", Trust::Pinned(other.fingerprint()), |connection| connection);
    until(&mut [&mut server, &mut ann], "the server is refused", |apps| loss(apps[1]).is_some());
    assert!(loss(&ann).unwrap().contains("has another certificate"), "{:?}", news(&ann));

    let folder = tempfile::tempdir().unwrap();
    let known = || Trust::FirstUse(folder.path().join("known/servers"));
    let mut bob = client(address(&server), "Bob", known(), |connection| connection);
    until(&mut [&mut server, &mut bob], "a new server is trusted", |apps| plays(apps[1]).is_some());
    let address = address(&server);
    drop((server, bob));
    let mut server = in_memory(|plugin| (plugin.listen, plugin.identity) = (address, Some(Arc::new(other))));
    let mut bob = client(address, "Bob", known(), |connection| connection);
    until(&mut [&mut server, &mut bob], "another server is refused", |apps| loss(apps[1]).is_some());
    assert!(loss(&bob).unwrap().contains("another certificate than before"), "{:?}", news(&bob));
}

/// Promise, company: A bot that is refused hears of that at each update.
#[test]
fn a_bot_that_is_refused_stays_refused() {
    let mut server = in_memory(|_| ());
    server.add_observer(|mut attempt: On<LogInAttempt>| attempt.refuse("no bots"));
    let mut bot = Bot::connect(address(&server).to_string(), "Eve", Vec::new(), pinned(&server)).unwrap();
    let mut first = Ok(());
    until(&mut [&mut server], "the bot is refused", |_| {
        first = bot.update();
        first.is_err()
    });
    assert_eq!(first, Err(BotError::Refused("no bots".to_owned())));
    assert_eq!((bot.update(), bot.player()), (first, None));
}

/// Promise, company: A server's certificate stays over restarts, and all servers that share its file have it.
#[test]
fn an_identity_is_kept_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secrets/identity.pem");
    // All servers of a world may begin at the same time.
    let begin = || Identity::in_file(&path).unwrap().fingerprint();
    let all = thread::scope(|threads| {
        let all: Vec<_> = (0..8).map(|_| threads.spawn(begin)).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<Fingerprint>>()
    });
    let made = begin();
    assert_eq!(all, [made; 8]);
    assert_eq!(made.to_string().parse(), Ok(made));
    assert!("0123".parse::<Fingerprint>().is_err() && "é".repeat(32).parse::<Fingerprint>().is_err());
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&path).unwrap());
        assert_eq!(mode & 0o077, 0, "{mode:o}");
    }
    std::fs::write(&path, "nothing").unwrap();
    let error = Identity::in_file(&path).unwrap_err().to_string();
    assert!(error.contains("identity.pem is not the identity of a server"), "{error}");
}

/// Promise, company: Clients come back by themselves after a server was down, and what they have seen stays in view meanwhile.
#[test]
fn clients_come_back_after_a_restart_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(MemoryStore::new());
    let identity = || Some(Arc::new(Identity::in_file(folder.path().join("identity.pem")).unwrap()));
    let mut first = server(StorageConfig::Custom(store.clone()), |plugin| plugin.identity = identity());
    let address = address(&first);
    let (mut ann, mut bob) = (join(&first, "Ann"), join(&first, "Bob"));
    let ids = until_both_play(&mut first, &mut ann, &mut bob);
    until(&mut [&mut first, &mut ann, &mut bob], "Bob sees the ground", |apps| block(apps[2], GROUND).is_some());
    drop(first);
    until(&mut [&mut ann, &mut bob], "they notice", |apps| loss(apps[0]).is_some() && loss(apps[1]).is_some());
    assert!(block(&mut bob, GROUND).is_some() && place(&bob, ids[0]).is_some());
    let mut second =
        server(StorageConfig::Custom(store.clone()), |plugin| (plugin.listen, plugin.identity) = (address, identity()));
    let times = |app: &App| news(app).iter().filter(|news| matches!(news, ConnectionNews::Plays { .. })).count();
    // The one that is back first sees the other one once that is back too.
    until(&mut [&mut second, &mut ann, &mut bob], "both are back", |apps| {
        times(apps[1]) == 2 && times(apps[2]) == 2 && place(apps[2], ids[0]).is_some()
    });
    let (own, _) = connection(&mut ann);
    let before = place(&bob, ids[0]).unwrap();
    until(&mut [&mut second, &mut ann, &mut bob], "Bob sees Ann walk", |apps| {
        apps[1].world_mut().get_mut::<Intent>(own).unwrap().walk(1.0, 0.0);
        distance(place(apps[2], ids[0]), before) > 3.0
    });
}

/// Promise, company: A client asks for the ground around its player only, when it logs in and in each other dimension.
#[test]
fn clients_ask_for_the_ground_around_their_players_only() {
    let far = BlockPos::new(8 + 4_000, 1, 8);
    let mut server = in_memory(|plugin| plugin.first_place.1 = far);
    server.world_mut().spawn(Dimension::new("caves", Flat::new()));
    let [overworld, caves] = ["overworld", "caves"].map(|name| server.dimension_id(name));
    // There is ground to send around the origin and around the place of new players, in both dimensions.
    for (dimension, place) in [(overworld, PLACE), (caves, PLACE), (caves, far)] {
        let viewer = Viewer::in_dimension(dimension).with_radius(4);
        server.world_mut().spawn((viewer, Position::new(dimension, place)));
    }
    let is_there =
        |app: &App, dimension, place| bevy_terrane::testing::block_at(app.world(), dimension, place).is_some();
    until(&mut [&mut server], "the ground is there", |apps| {
        [(overworld, PLACE), (caves, PLACE), (caves, far)].iter().all(|(of, place)| is_there(apps[0], *of, *place))
    });
    let mut ann = join(&server, "Ann");
    let arrive = |server: &mut App, ann: &mut App, at: BlockPos, stay: usize| {
        until(&mut [server, ann], "the ground around Ann is there", |apps| {
            let (entity, _) = connection(apps[1]);
            let client = apps[1].world();
            let Some(view) = client.get::<ChunkSyncClient>(entity) else { return false };
            let stays = news(apps[1]).iter().filter(|news| matches!(news, ConnectionNews::Plays { .. })).count();
            if stays == stay {
                // The client asks for what is around its position.
                let is_near = |x: i64| (x - at.x).abs() < 100;
                let position = client.get::<Position>(entity).unwrap();
                assert!(is_near(position.block.x) && position.dimension == view.dimension(), "{position:?}, not {at}");
                let columns = client.resource::<PublishedColumns>().iter();
                let columns = columns.filter(|(dimension, _)| *dimension == view.dimension());
                columns.for_each(|(_, column)| assert!(is_near(column.pos().x * 16), "{}", column.pos()));
            }
            stays == stay && view.is_complete()
        });
    };
    arrive(&mut server, &mut ann, far, 1);
    let id = plays(&ann).unwrap().0;
    for (stay, (dimension, place)) in [(2, (caves, PLACE)), (3, (overworld, far)), (4, (caves, far.offset(2, 0, 0)))] {
        let go = move |mut player: EntityWorldMut| _ = player.insert(Position::new(dimension, place));
        server.world_mut().commands().run_on_region_entity(id, 0, go, |_, reason| panic!("{reason}"));
        arrive(&mut server, &mut ann, place, stay);
    }
}

/// Promise, company: A client follows its player from server to server of a shared world, and others there see it.
#[test]
fn clients_follow_their_players_to_other_servers() {
    let store = Arc::new(MemoryStore::new());
    let folder = tempfile::tempdir().unwrap();
    let identity = Arc::new(Identity::in_file(folder.path().join("identity.pem")).unwrap());
    let shared = |place: BlockPos| {
        // A server says where it is before it listens.
        let listen = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let storage = StorageConfig::Shared { store: store.clone(), address: listen.to_string().into_bytes() };
        let mut app = server(storage, |plugin| {
            (plugin.listen, plugin.identity) = (listen, Some(identity.clone()));
            // Ann comes more often than players do.
            (plugin.first_place.1, plugin.log_ins.0) = (place, u32::MAX);
        });
        let dimension = app.dimension_id("overworld");
        let viewer = Viewer::in_dimension(dimension).with_radius(3);
        app.world_mut().spawn((viewer, Position::new(dimension, place)));
        (app, listen)
    };
    let far = BlockPos::new(8 + 20 * 512, 1, 8);
    let (mut here, here_at) = shared(PLACE);
    let (mut there, there_at) = shared(far);
    let (mut ann, mut bob, mut cid) = (join(&here, "Ann"), join(&there, "Bob"), join(&here, "Cid"));
    let mut apps = [&mut here, &mut there, &mut ann, &mut bob, &mut cid];
    until(&mut apps, "all play", |apps| apps[2..].iter().all(|app| plays(app).is_some()));
    let id = plays(apps[2]).unwrap().0;
    assert_ne!(plays(apps[2]).unwrap().1, plays(apps[3]).unwrap().1);
    let dimension = apps[0].dimension_id("overworld");
    let rounds = std::env::var("TERRANE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1);
    // There and back, and there. Each time is from the last moment on a server until the own client and one on the other server see Ann.
    let mut times: Vec<Duration> = Vec::new();
    for journey in 0..=2 * rounds {
        let ways = [(0, 3, far, there_at), (1, 4, PLACE, here_at)];
        let (from, watcher, to, server): (usize, usize, BlockPos, SocketAddr) = ways[journey % 2];
        let go = move |mut player: EntityWorldMut| _ = player.insert(Position::new(dimension, to.offset(2, 0, 0)));
        apps[from].world_mut().commands().run_on_region_entity(id, 0, go, |_, reason| panic!("{reason}"));
        until(&mut apps, "Ann leaves", |apps| place(apps[from], id).is_none());
        let left = Instant::now();
        until(&mut apps, "all see Ann come", |apps| {
            let seen = place(apps[watcher], id);
            let is_there = seen.is_some_and(|seen| distance(Some(seen), Position::new(seen.dimension, to)) < 9.0);
            is_there && plays(apps[2]).is_some_and(|(_, at)| at == server.to_string())
        });
        times.push(left.elapsed());
    }
    times.sort_unstable();
    println!("{} redirections: {:?} at the median, {:?} at most", times.len(), times[times.len() / 2], times.last());
    assert_eq!(plays(apps[2]).unwrap().0, id);
    assert!(loss(apps[2]).is_none() && refusal(apps[2]).is_none(), "{:?}", news(apps[2]));
    drop(cid);
    // A log-in at the wrong server ends at the right one.
    drop(ann);
    until(&mut [&mut here, &mut there, &mut bob], "Ann is gone", |apps| place(apps[2], id).is_none());
    let mut ann = join(&here, "Ann");
    until(&mut [&mut here, &mut there, &mut ann, &mut bob], "she is sent there", |apps| {
        plays(apps[2]).is_some_and(|(_, server)| server == there_at.to_string()) && place(apps[3], id).is_some()
    });
}
