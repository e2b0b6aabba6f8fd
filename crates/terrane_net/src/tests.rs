//! Hostile and stalled sides, over sockets that speak the protocol by themselves.

use crate::identity::{NAME, Verifier};
use crate::wire::*;
use crate::*;
use bevy::prelude::*;
use bevy_terrane::chunk_sync;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::SplitMix64;
use proptest::prelude::*;
use quinn::{Connection, Endpoint, RecvStream, SendStream};
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use uuid::Uuid;

/// The place of new players.
const PLACE: BlockPos = BlockPos::new(8, 1, 8);

fn server() -> App {
    server_with(|_| ())
}

fn server_with(change: impl FnOnce(&mut ServerPlugin)) -> App {
    let mut app = App::new();
    app.add_plugins((MinimalPlugins, TerranePlugin::in_memory()));
    let mut plugin = ServerPlugin::new(([127, 0, 0, 1], 0), "overworld", PLACE);
    (plugin.radius, plugin.log_ins) = (2, (100_000, 100_000));
    change(&mut plugin);
    app.add_plugins(plugin);
    app.world_mut().spawn(Dimension::new("overworld", Flat::new()));
    app.finish();
    app.cleanup();
    app
}

fn client(address: SocketAddr, trust: Trust) -> App {
    let mut app = App::new();
    app.add_plugins((MinimalPlugins, TerranePlugin::in_memory(), ClientPlugin));
    app.init_resource::<News>().add_systems(
        Update,
        |mut all: ResMut<News>, mut news: MessageReader<ConnectionNews>| {
            all.0.extend(news.read().cloned());
        },
    );
    app.finish();
    app.cleanup();
    app.world_mut().spawn(ServerConnection::new(address.to_string(), "Ann", trust).with_radius(2));
    app
}

#[derive(Resource, Default)]
struct News(Vec<ConnectionNews>);

#[track_caller]
fn until(apps: &mut [&mut App], what: &str, mut done: impl FnMut(&mut [&mut App]) -> bool) {
    let began = Instant::now();
    while !done(apps) {
        assert!(began.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        apps.iter_mut().for_each(|app| app.update());
        thread::sleep(Duration::from_millis(2));
    }
}

fn plays(client: &App) -> bool {
    client.world().resource::<News>().0.iter().any(|news| matches!(news, ConnectionNews::Plays { .. }))
}

fn connect(threads: &Runtime, address: SocketAddr, fingerprint: Fingerprint) -> (Endpoint, Connection) {
    threads.block_on(async {
        let mut endpoint = Endpoint::client(([127, 0, 0, 1], 0).into()).unwrap();
        let verifier = Verifier::new(Trust::Pinned(fingerprint), address.to_string());
        endpoint.set_default_client_config(socket::client_config(verifier).unwrap());
        let connection = endpoint.connect(address, NAME).unwrap().await.unwrap();
        (endpoint, connection)
    })
}

fn hello() -> Hello {
    let (name, session) = ("Eve".to_owned(), Uuid::from_u128(7));
    Hello { protocol: PROTOCOL, sync: chunk_sync::PROTOCOL, name, secret: vec![1, 2, 3], session }
}

/// The reason with which the other side has ended the connection.
fn reason(threads: &Runtime, connection: &Connection) -> Option<String> {
    let closed = async { tokio::time::timeout(Duration::from_secs(20), connection.closed()).await };
    Some(threads.block_on(closed).ok()?.to_string())
}

/// How many times as many cases as usual.
fn rounds() -> u32 {
    std::env::var("TERRANE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000 * rounds()))]

    /// Promise, company: Messages of both sides either are read or are errors, whatever their bytes.
    #[test]
    fn any_bytes_are_a_message_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(message) = postcard::from_bytes::<Hello>(&bytes) {
            prop_assert_eq!(postcard::from_bytes::<Hello>(&encode(&message)).ok(), Some(message));
        }
        if let Ok(message) = postcard::from_bytes::<ToServer>(&bytes) {
            prop_assert_eq!(postcard::from_bytes::<ToServer>(&encode(&message)).ok(), Some(message));
        }
        if let Ok(message) = postcard::from_bytes::<ToClient>(&bytes) {
            // Not a number is not itself.
            prop_assert_eq!(encode(&postcard::from_bytes::<ToClient>(&encode(&message)).unwrap()), encode(&message));
        }
    }

    #[test]
    fn messages_come_back(name in ".{0,40}", secret in prop::collection::vec(any::<u8>(), 0..300), stay: u32, id: u128) {
        let place = BlockPos::new(id as i64, stay.into(), i64::MIN);
        let hello = Hello { name: name.clone(), secret: secret.clone(), ..hello() };
        prop_assert_eq!(postcard::from_bytes::<Hello>(&encode(&hello)), Ok(hello));
        let all = [
            ToClient::Refused(name.clone()),
            ToClient::Elsewhere(name.clone()),
            ToClient::Plays { player: Uuid::from_u128(id), place, dimension: name.clone(), stay },
            ToClient::Time { days: f64::from(stay), seconds_per_day: 1.5 },
            ToClient::Game(name, secret),
        ];
        for message in all {
            prop_assert_eq!(postcard::from_bytes::<ToClient>(&encode(&message)), Ok(message));
        }
    }
}

/// Promise, company: A client of another version reads one sentence, and so does its player.
#[test]
fn clients_of_other_versions_are_told_so() {
    let threads = socket::runtime(1).unwrap();
    let server = server();
    let net = server.world().resource::<NetServer>();
    // Whatever follows the numbers.
    for (numbers, said) in [
        ((PROTOCOL - 1, chunk_sync::PROTOCOL), "older than the server"),
        ((PROTOCOL + 1, chunk_sync::PROTOCOL), "the server is older"),
        ((PROTOCOL, chunk_sync::PROTOCOL + 1), "the server is older"),
    ] {
        let (_endpoint, connection) = connect(&threads, net.address(), net.fingerprint());
        let answer = threads.block_on(async {
            let (mut send, mut receive) = connection.open_bi().await.unwrap();
            write(&mut send, &(numbers, "Eve")).await.unwrap();
            read::<ToClient>(&mut receive).await.unwrap()
        });
        let Some(ToClient::Refused(reason)) = answer else { panic!("{answer:?}") };
        assert!(reason.contains(said), "{reason}");
    }
}

/// Promise, company: Where a second log-in is refused, a client may come back before the server has noticed that it was lost.
#[test]
fn a_client_comes_back_before_its_loss_is_noticed() {
    let threads = socket::runtime(1).unwrap();
    let mut server = server_with(|plugin| plugin.second_log_in = SecondLogIn::IsRefused);
    let (address, fingerprint) = {
        let net = server.world().resource::<NetServer>();
        (net.address(), net.fingerprint())
    };
    let mut answer = |hello: Hello| {
        let (endpoint, connection) = connect(&threads, address, fingerprint);
        let task = threads.spawn(async move {
            let (mut send, mut receive) = connection.open_bi().await.unwrap();
            write(&mut send, &hello).await.unwrap();
            let answer = read::<ToClient>(&mut receive).await.unwrap().unwrap();
            // The connection lives on.
            (answer, endpoint, send, receive)
        });
        until(&mut [&mut server], "the client is answered", |_| task.is_finished());
        threads.block_on(task).unwrap()
    };
    let (first, _endpoint, _send, mut lost) = answer(hello());
    let (other, ..) = answer(Hello { session: Uuid::from_u128(8), ..hello() });
    let (again, ..) = answer(hello());
    assert!(matches!((&first, &again), (ToClient::Plays { .. }, ToClient::Plays { .. })), "{first:?} {again:?}");
    assert_eq!(other, ToClient::Refused("Eve plays already".to_owned()));
    let last = threads.block_on(async {
        let mut last = None;
        while let Ok(Some(message)) = read::<ToClient>(&mut lost).await {
            last = Some(message);
        }
        last
    });
    assert_eq!(last, Some(ToClient::Refused("you have logged in elsewhere".to_owned())));
}

/// A bad deed of a client: it fails once the server has ended the connection.
async fn misbehave(
    connection: &Connection,
    (send, receive): (&mut SendStream, &mut RecvStream),
    random: &mut SplitMix64,
) -> Result<(), WireError> {
    let mut noise = |most: u32| -> Vec<u8> { (0..random.below(most)).map(|_| random.below(256) as u8).collect() };
    let bytes = noise(2_000);
    match random.below(7) {
        // No message at all, a message without an end, and one of too many bytes.
        0 => send.write_all(&bytes).await?,
        1 => send.write_all(&[50, 0, 0, 0, 1]).await?,
        2 => send.write_all(&u32::MAX.to_le_bytes()).await?,
        // Messages that the game does not know.
        3 => write(send, &ToServer::Game("nothing::Known".to_owned(), bytes)).await?,
        4 => _ = connection.send_datagram(bytes.into()),
        // Streams of stays that there are not, and of one that there may be.
        5 => {
            let mut stream = connection.open_uni().await.map_err(|_| WireError::Malformed)?;
            let stay = random.below(3);
            write_bytes(&mut stream, &stay.to_le_bytes()).await?;
            write_bytes(&mut stream, &bytes).await?;
        }
        _ => {
            let message = in_time(Duration::from_millis(20), read::<ToClient>(receive)).await;
            if let Err(WireError::Read(_)) = message {
                return Err(WireError::Malformed);
            }
        }
    }
    Ok(())
}

/// Promise, company: A hostile client ends its own connection, and nothing else.
#[test]
fn hostile_clients_disturb_nobody() {
    let threads = socket::runtime(1).unwrap();
    let mut server = server();
    let (address, fingerprint) = {
        let net = server.world().resource::<NetServer>();
        (net.address(), net.fingerprint())
    };
    let mut ann = client(address, Trust::Pinned(fingerprint));
    until(&mut [&mut server, &mut ann], "Ann plays", |apps| plays(apps[1]));
    for seed in 0..40 * u64::from(rounds()) {
        let mut random = SplitMix64::new(seed);
        let (endpoint, connection) = connect(&threads, address, fingerprint);
        let says_hello = random.below(4) > 0;
        let task = threads.spawn(async move {
            let Ok((mut send, mut receive)) = connection.open_bi().await else { return };
            if says_hello && write(&mut send, &hello()).await.is_err() {
                return;
            }
            if says_hello && random.below(2) == 0 {
                // It misbehaves only when it plays.
                while let Ok(Some(message)) = read::<ToClient>(&mut receive).await {
                    if matches!(message, ToClient::Plays { .. }) {
                        break;
                    }
                }
            }
            for _ in 0..30 {
                if misbehave(&connection, (&mut send, &mut receive), &mut random).await.is_err() {
                    break;
                }
            }
            connection.close(0_u32.into(), b"");
            endpoint.wait_idle().await;
        });
        until(&mut [&mut server, &mut ann], "the hostile client is done", |_| task.is_finished());
        threads.block_on(task).unwrap();
    }
    let count = |server: &mut App| server.world_mut().query::<&ConnectedClient>().iter(server.world()).count();
    until(&mut [&mut server, &mut ann], "only Ann is there", |apps| count(apps[0]) == 1);
    assert!(!ann.world().resource::<News>().0.iter().any(|news| matches!(news, ConnectionNews::Lost { .. })));
}

/// A server that takes in hellos and then does as it likes, and how many bytes it could send to each client.
struct FalseServer {
    threads: Runtime,
    endpoint: Endpoint,
    identity: Identity,
}

impl FalseServer {
    fn new() -> Self {
        let (threads, identity) = (socket::runtime(1).unwrap(), Identity::generate().unwrap());
        let endpoint = {
            let _entered = threads.enter();
            socket::listen(([127, 0, 0, 1], 0).into(), &identity).unwrap()
        };
        Self { threads, endpoint, identity }
    }

    fn client(&self) -> App {
        client(self.endpoint.local_addr().unwrap(), Trust::Pinned(self.identity.fingerprint()))
    }

    /// Takes in a client.
    async fn accept(endpoint: &Endpoint) -> (Connection, SendStream, RecvStream) {
        let connection = endpoint.accept().await.unwrap().await.unwrap();
        let (send, mut receive) = connection.accept_bi().await.unwrap();
        let hello: Option<Hello> = read(&mut receive).await.unwrap();
        assert_eq!(hello.unwrap().name, "Ann");
        (connection, send, receive)
    }
}

/// Promise, company: A hostile server cannot make a client panic, and the client goes on trying.
#[test]
fn a_hostile_server_is_survived() {
    let server = FalseServer::new();
    let endpoint = server.endpoint.clone();
    let visits = 12 * rounds();
    let task = server.threads.spawn(async move {
        let mut random = SplitMix64::new(7);
        for visit in 0..visits {
            let (connection, mut send, _receive) = FalseServer::accept(&endpoint).await;
            if visit % 4 > 0 {
                let plays =
                    ToClient::Plays { player: Uuid::nil(), place: PLACE, dimension: "../..".to_owned(), stay: 1 };
                write(&mut send, &plays).await.unwrap();
            }
            for _ in 0..60 {
                let bytes: Vec<u8> = (0..random.below(3_000)).map(|_| random.below(256) as u8).collect();
                let done = match random.below(8) {
                    0 => write(&mut send, &ToClient::Time { days: f64::NAN, seconds_per_day: f64::INFINITY }).await,
                    1 => write(&mut send, &ToClient::Game("nothing::Known".to_owned(), bytes)).await,
                    2 => {
                        let (stay, dimension) = (random.below(3), format!("{:?}", &bytes[..bytes.len().min(5)]));
                        let place =
                            [PLACE, BlockPos::new(i64::MIN, 0, i64::MAX), BlockPos::new(0, i64::MAX, 0)][stay as usize];
                        let player = Uuid::from_u128(stay.into());
                        write(&mut send, &ToClient::Plays { player, place, dimension, stay }).await
                    }
                    3 | 4 => {
                        let _ = connection.send_datagram(
                            [&[1, chunk_sync::PROTOCOL, random.below(9) as u8], &bytes[..]].concat().into(),
                        );
                        Ok(())
                    }
                    5 | 6 => match tokio::time::timeout(Duration::from_millis(5), connection.open_uni()).await {
                        Ok(Ok(mut stream)) => {
                            let _ = write_bytes(&mut stream, &1_u32.to_le_bytes()).await;
                            let kind = random.below(9) as u8;
                            let message = [&[chunk_sync::PROTOCOL, kind], &bytes[..]].concat();
                            write_bytes(&mut stream, &message).await
                        }
                        _ => Ok(()),
                    },
                    _ => {
                        tokio::time::sleep(Duration::from_millis(2)).await;
                        Ok(())
                    }
                };
                if done.is_err() {
                    break;
                }
            }
            // At last something that is no message.
            let _ = send.write_all(&[9, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255]).await;
            connection.closed().await;
        }
    });
    let mut ann = server.client();
    until(&mut [&mut ann], "the server has done its worst", |_| task.is_finished());
    server.threads.block_on(task).unwrap();
    let news = &ann.world().resource::<News>().0;
    let losses = news.iter().filter(|news| matches!(news, ConnectionNews::Lost { .. })).count();
    assert!(losses as u32 >= visits - 1, "{losses} of {visits}");
}

/// Promise, company: A client whose frames stand still takes a bounded amount of what a server sends.
#[test]
fn a_stalled_client_lets_the_server_wait() {
    let server = FalseServer::new();
    let endpoint = server.endpoint.clone();
    let task = server.threads.spawn(async move {
        let (connection, mut send, _receive) = FalseServer::accept(&endpoint).await;
        let plays = ToClient::Plays { player: Uuid::nil(), place: PLACE, dimension: "overworld".to_owned(), stay: 1 };
        write(&mut send, &plays).await.unwrap();
        let mut stream = connection.open_uni().await.unwrap();
        write_bytes(&mut stream, &1_u32.to_le_bytes()).await.unwrap();
        let (mut sent, message) = (0_usize, vec![0; 100_000]);
        // A write that takes so long is held up by the client.
        while in_time(Duration::from_secs(2), write_bytes(&mut stream, &message)).await.is_ok() {
            sent += message.len();
        }
        sent
    });
    let mut ann = server.client();
    until(&mut [&mut ann], "it plays", |apps| plays(apps[0]));
    // No more frames.
    let sent = server.threads.block_on(task).unwrap();
    assert!((1 << 20..40 << 20).contains(&sent), "{sent} bytes");
}

/// Promise, company: A client that does not read is disconnected before much waits for it, and others go on.
#[test]
fn a_client_that_does_not_read_is_disconnected() {
    let threads = socket::runtime(1).unwrap();
    let mut server = server();
    server.register_net_message::<String>();
    let (address, fingerprint) = {
        let net = server.world().resource::<NetServer>();
        (net.address(), net.fingerprint())
    };
    let mut ann = client(address, Trust::Pinned(fingerprint));
    ann.register_net_message::<String>();
    let (_endpoint, connection) = connect(&threads, address, fingerprint);
    let _streams = threads.block_on(async {
        let (mut send, receive) = connection.open_bi().await.unwrap();
        write(&mut send, &hello()).await.unwrap();
        (send, receive)
    });
    let count = |server: &mut App| {
        server
            .world_mut()
            .query::<&ConnectedClient>()
            .iter(server.world())
            .filter(|client| client.player().is_some())
            .count()
    };
    until(&mut [&mut server, &mut ann], "both play", |apps| count(apps[0]) == 2);
    until(&mut [&mut server, &mut ann], "one is disconnected", |apps| {
        let message = "x".repeat(20_000);
        apps[0].world_mut().write_message(ToClients { client: None, message });
        count(apps[0]) == 1
    });
    assert!(reason(&threads, &connection).is_some());
    assert!(!ann.world().resource::<News>().0.iter().any(|news| matches!(news, ConnectionNews::Lost { .. })));
}
