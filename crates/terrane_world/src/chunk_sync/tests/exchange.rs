//! The news that a client gets, and its cost.

use super::*;
use proptest::prelude::*;

/// Promise, multiplayer: A client is sent only the chunks that it does not have.
/// Promise, multiplayer: A client sees its cached chunks before the server's first message.
#[test]
fn the_second_time_only_what_changed_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let mut first = Wire::new(SyncLimits::default(), &cache, world(6));
    first.client.look(area(0, 0, 5));
    first.settle();
    first.assert_right(area(0, 0, 5));
    let wanted = 81 * 5;
    let progress = first.client.progress();
    assert_eq!((progress.wanted, progress.received, progress.cached, progress.current), (wanted, wanted as u64, 0, 0));
    first.client.flush();
    let Wire { world, client, .. } = first;
    drop(client);

    let mut second = Wire::new(SyncLimits::default(), &cache, world);
    second.edit(ChunkPos::new(1, 0, 1), b"a house");
    second.edit(ChunkPos::new(1, 1, 1), b"and its roof");
    second.client.look(area(0, 0, 5));
    // Before the server's first message.
    second.take_news();
    assert_eq!(second.told.len(), wanted);
    assert!(second.told.values().all(|(_, is_confirmed)| !is_confirmed));
    second.settle();
    second.assert_right(area(0, 0, 5));
    let progress = second.client.progress();
    assert_eq!((progress.cached, progress.current, progress.received), (wanted as u64, wanted as u64 - 2, 2));
    assert_eq!(progress.received_bytes, "a houseand its roof".len() as u64);
}

/// Promise, multiplayer: A client is sent the nearest chunks first.
/// Promise, chunk sync: A client asks for the nearest chunks first.
#[test]
fn the_nearest_is_asked_for_and_told_first() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    for _ in ["without a cache", "from the cache"] {
        let mut wire = Wire::new(SyncLimits::default(), &cache, world(7));
        wire.client.look(area(1, -1, 6));
        wire.settle();
        assert!(wire.order.len() > 500);
        assert!(wire.order.is_sorted_by_key(|chunk| area(1, -1, 6).order(*chunk)));
        wire.client.flush();
    }
}

/// Promise, multiplayer: A client is sent no more bytes a second than the server's cap.
/// Promise, chunk sync: In any span of time, a server sends at most its rate, a quarter of a second's bytes, and one message.
#[test]
fn no_more_bytes_are_sent_than_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let mut wire = Wire::new(
        SyncLimits { bytes_per_second: 20_000, ..SyncLimits::default() },
        folder.path().join("cache").as_path(),
        World::new(),
    );
    // Incompressible bytes.
    let mut random = 1_u64;
    let mut bytes = || -> Vec<u8> {
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 56) as u8
        };
        (0..2_000).map(|_| next()).collect()
    };
    for x in -3..=3 {
        wire.world.insert(ChunkPos::new(x, 0, 0), bytes().into());
    }
    wire.client.look(area(0, 0, 5));
    while wire.client.progress().answered < 81 * 5 {
        wire.step();
        let sent = wire.server.progress().bytes as f64;
        assert!(sent <= 20_000.0 * (wire.now.as_secs_f64() + 0.25), "{sent} bytes after {:?}", wire.now);
        assert!(wire.now < Duration::from_secs(2));
    }
    assert!(wire.server.progress().bytes > 14_000);
}

/// Promise, chunk sync: A chunk sync client sends its first message after the server's.
#[test]
fn a_client_speaks_only_after_the_server_has() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = client(&folder.path().join("cache"));
    client.look(area(0, 0, 1));
    assert_eq!(client.next_message(), None);
    client.receive(&welcome_of(&mut server(SyncLimits::default()))).unwrap();
    assert!(client.next_message().is_some());
}

/// Promise, chunk sync: A change of a chunk is encoded once for all clients that are told of it.
#[test]
fn clients_share_the_message_about_a_change() {
    let chunks = [0, 1].map(|x| ChunkPos::new(x, 0, 0));
    let mut servers = [0, 1].map(|_| server(SyncLimits::default()));
    for server in &mut servers {
        welcome_of(server);
        let questions = chunks.map(|chunk| (chunk, None)).into();
        server.receive(&ChunkQuestions { area: area(0, 0, 2), questions }.encode()).unwrap();
        server.wanted(usize::MAX).iter().for_each(|chunk| server.found(*chunk, Ok(Some(found(*chunk, b"before")))));
        assert_eq!(server.messages(Duration::from_secs(10)).len(), 1);
        chunks.iter().for_each(|chunk| server.changed(*chunk));
        assert_eq!(server.wanted(usize::MAX), chunks);
    }
    let changes = chunks.map(|chunk| found(chunk, b"after"));
    // In place of the first message, so that it is seen whether clients share it.
    changes[0].message.set(b"shared".to_vec()).unwrap();
    for mut server in servers {
        changes.iter().zip(chunks).for_each(|(change, chunk)| server.found(chunk, Ok(Some(change.clone()))));
        assert_eq!(server.progress().waiting, 2);
        let messages = server.messages(Duration::from_secs(11));
        assert_eq!((messages.len(), server.progress().waiting), (2, 0));
        assert_eq!(messages[0], b"shared");
        let news = ChunkNews::Chunk(b"after".to_vec());
        assert_eq!(ServerMessage::decode(&messages[1]), Ok(ServerMessage::Answers(vec![(chunks[1], news)])));
    }
}

/// A column that is generated under a client's eyes comes in one message.
#[test]
fn chunks_that_appear_come_together() {
    let mut server = server(SyncLimits::default());
    welcome_of(&mut server);
    let chunks = [-2, -1, 0, 1, 2].map(|y| ChunkPos::new(0, y, 0));
    let questions = chunks.map(|chunk| (chunk, None)).into();
    server.receive(&ChunkQuestions { area: area(0, 0, 2), questions }.encode()).unwrap();
    server.wanted(usize::MAX).iter().for_each(|chunk| server.found(*chunk, Ok(None)));
    assert_eq!(server.messages(Duration::from_secs(10)).len(), 1);
    server.column_changed(chunks[0].column());
    server.wanted(usize::MAX).iter().for_each(|chunk| server.found(*chunk, Ok(Some(found(*chunk, b"ground")))));
    assert_eq!(server.messages(Duration::from_secs(11)).len(), 1);
    assert_eq!(server.progress().sent, 5);
}

/// Promise, chunk sync: A message of the server is at most about 48 KiB before compression.
#[test]
fn a_message_of_the_server_is_about_48_kib_before_it_is_compressed() {
    const CHUNK: usize = 2_000;
    let mut server = server(SyncLimits::default());
    let welcome = welcome_of(&mut server);
    assert!(matches!(ServerMessage::decode(&welcome), Ok(ServerMessage::Welcome(_))));
    let chunks = (0..200).map(|at| ChunkPos::new(at / 20 - 5, 0, at % 20 - 10));
    let questions = chunks.map(|chunk| (chunk, None)).collect();
    server.receive(&ChunkQuestions { area: area(0, 0, 20), questions }.encode()).unwrap();
    let (mut longest, mut answered) = (0, 0);
    for second in 10..100 {
        for chunk in server.wanted(usize::MAX) {
            server.found(chunk, Ok(Some(found(chunk, &[7; CHUNK]))));
        }
        for message in server.messages(Duration::from_secs(second)) {
            let Ok(ServerMessage::Answers(answers)) = ServerMessage::decode(&message) else { panic!("no answers") };
            answered += answers.len();
            longest = longest.max(answers.len());
        }
    }
    assert_eq!(answered, 200);
    let most = (48 << 10) / CHUNK;
    assert!((most - 1..=most + 1).contains(&longest), "{longest} chunks in one message");
}

/// Promise, multiplayer: A client's chunk counts as current only if the hash of its content is right.
/// Promise, chunk sync: A client's chunk counts as current only if the hash of its content is right.
#[test]
fn a_server_that_was_set_back_is_not_believed_to_be_current() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let at = ChunkPos::new(0, 0, 0);
    let mut before = Wire::new(SyncLimits::default(), &cache, world(1));
    before.edit(at, b"lost in the crash");
    before.client.look(area(0, 0, 1));
    before.settle();
    before.client.flush();
    drop(before);
    // The same version of another history.
    let mut after = Wire::new(SyncLimits::default(), &cache, world(1));
    after.edit(at, b"built after the crash");
    after.client.look(area(0, 0, 1));
    after.settle();
    after.assert_right(area(0, 0, 1));
    assert_eq!(after.client.progress().received, 1);
}

/// Promise, multiplayer: A chunk cache may be lost, damaged or of another world, and never gives a wrong chunk.
/// Promise, chunk sync: A chunk cache is emptied when the server's lists, name or heights are those of another world.
#[test]
fn the_cache_of_another_world_is_emptied() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    visit(&cache, world(2), area(0, 0, 2));
    let mut after = Wire::new(SyncLimits::default(), &cache, World::new());
    let numbers = (records(&["game:sand", "game:stone"]), Vec::new());
    after.server = SyncServer::new("overworld", -2..3, numbers, SyncLimits::default());
    after.client.look(area(0, 0, 2));
    after.settle();
    assert_eq!(after.told.len(), 0);
    after.client.flush();
    drop(after);
    let mut empty = ChunkCache::open(&cache, CACHE_BYTES).unwrap();
    assert_eq!(empty.chunk(ChunkPos::new(0, 0, 0)), Ok(None));
}

/// Promise, chunk sync: A chunk cache is emptied when the server's lists, name or heights are those of another world.
#[test]
fn a_world_with_more_types_is_the_same_world() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let world = visit(&cache, world(2), area(0, 0, 2));
    let mut after = Wire::new(SyncLimits::default(), &cache, world);
    let numbers = (records(&["game:stone", "game:sand"]), Vec::new());
    after.server = SyncServer::new("overworld", -2..3, numbers, SyncLimits::default());
    after.client.look(area(0, 0, 2));
    after.settle();
    after.assert_right(area(0, 0, 2));
    assert_eq!(after.client.progress().received, 0);
}

/// Promise, chunk sync: A client that gets a first message again asks for everything again.
#[test]
fn after_a_lost_connection_all_is_asked_for_again_and_little_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let mut wire = Wire::new(SyncLimits::default(), &folder.path().join("cache"), world(4));
    wire.client.look(area(0, 0, 4));
    wire.step();
    wire.client.disconnected();
    wire.reconnect(SyncLimits::default());
    wire.edit(ChunkPos::new(0, 0, 0), b"meanwhile");
    wire.settle();
    wire.assert_right(area(0, 0, 4));
    let received = wire.client.progress().received;
    // This time the client is not notified.
    wire.reconnect(SyncLimits::default());
    wire.edit(ChunkPos::new(1, 0, 0), b"meanwhile");
    (0..5).for_each(|_| wire.step());
    wire.settle();
    wire.assert_right(area(0, 0, 4));
    let received = received + 1;
    wire.client.disconnected();
    wire.reconnect(SyncLimits::default());
    wire.settle();
    assert_eq!(wire.client.progress().received, received);
}

/// Promise, chunk sync: If the server cannot read a chunk, the client keeps its own.
#[test]
fn what_the_server_cannot_read_leaves_the_client_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    visit(&cache, world(0), area(0, 0, 0));
    let mut after = Wire::new(SyncLimits::default(), &cache, World::new());
    after.client.look(area(0, 0, 0));
    after.take_news();
    after.client.receive(&welcome_of(&mut after.server)).unwrap();
    while let Some(message) = after.client.next_message() {
        after.server.receive(&message).unwrap();
    }
    let wanted = after.server.wanted(64);
    assert_eq!(wanted.len(), 5);
    wanted.iter().for_each(|chunk| after.server.found(*chunk, Err(())));
    after.server.messages(Duration::from_secs(19)).iter().for_each(|message| after.client.receive(message).unwrap());
    let news: Vec<_> = std::iter::from_fn(|| after.client.next_news()).collect();
    let unreadable = |news: &&SyncNews| matches!(news, SyncNews::Unreadable(_));
    assert_eq!(news.iter().filter(unreadable).count(), 5);
    after.client.flush();
    drop(after);
    let mut cache = ChunkCache::open(&cache, CACHE_BYTES).unwrap();
    assert!(cache.chunk(ChunkPos::new(0, 0, 0)).unwrap().is_some());
}

/// Promise, chunk sync: Client and server forget a chunk that leaves the client's area.
#[test]
fn what_a_server_hardly_allows_is_answered_all_the_same() {
    for radius in 0..4 {
        let folder = tempfile::tempdir().unwrap();
        let limits = SyncLimits { radius, ..SyncLimits::default() };
        let mut wire = Wire::new(limits, &folder.path().join("cache"), world(4));
        wire.client.look(area(0, 0, 3));
        wire.settle();
        wire.assert_right(area(0, 0, 0));
        // A chunk that comes back into the area has its current state.
        wire.client.look(area(2, 0, 3));
        wire.settle();
        wire.edit(ChunkPos::new(0, 0, 0), b"behind it");
        wire.client.look(area(0, 0, 3));
        wire.settle();
        wire.assert_right(area(0, 0, 0));
    }
}

/// Promise, chunk sync: A client whose chunk was reported missing is sent the chunk once it exists.
#[test]
fn what_is_generated_without_being_loaded_is_told_a_moment_later() {
    let folder = tempfile::tempdir().unwrap();
    let mut wire = Wire::new(SyncLimits::default(), &folder.path().join("cache"), World::new());
    wire.client.look(area(0, 0, 3));
    wire.settle();
    assert_eq!(wire.told.len(), 0);
    // The server is not notified.
    wire.world = world(3);
    (0..60).for_each(|_| wire.step());
    wire.assert_right(area(0, 0, 3));
    assert_eq!(wire.told.len(), 29 * 5);
}

#[derive(Clone, Debug)]
enum Deed {
    Edit(ChunkPos, u8),
    Remove(ChunkPos),
    Look(i64, i64, u32),
    Step,
    Disconnect,
    Reopen,
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let chunk = || (-4..=4i64, -2..3i64, -4..=4i64).prop_map(|(x, y, z)| ChunkPos::new(x, y, z));
    let deed = prop_oneof![
        6 => (chunk(), any::<u8>()).prop_map(|(chunk, byte)| Deed::Edit(chunk, byte)),
        1 => chunk().prop_map(Deed::Remove),
        2 => (-3..=3i64, -3..=3i64, 0..4u32).prop_map(|(x, z, radius)| Deed::Look(x, z, radius)),
        6 => Just(Deed::Step),
        1 => Just(Deed::Disconnect),
        1 => Just(Deed::Reopen),
    ];
    proptest::collection::vec(deed, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// After any history, the client finally has the chunks of the world.
    ///
    /// Promise, multiplayer: A client is sent every later change of the chunks around it.
    /// Promise, crate: `chunk_sync` works without an app.
    /// Promise, chunk sync: Every question about a chunk in the client's area is answered, and later changes are sent without a
    /// question.
    /// Promise, chunk sync: A client asks again for a chunk that it has lost.
    #[test]
    fn in_the_end_the_client_is_right(deeds in deeds(), bytes_per_second in 2_000..200_000u64, latency in 0..4_usize) {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache");
        let limits = SyncLimits { bytes_per_second, ..SyncLimits::default() };
        let mut wire = Wire::new(limits, &cache, world(3));
        wire.latency = latency;
        let mut last = area(0, 0, 2);
        wire.client.look(last);
        for deed in deeds {
            match deed {
                Deed::Edit(chunk, byte) => wire.edit(chunk, &[byte; 40]),
                Deed::Remove(chunk) => {
                    wire.world.remove(&chunk);
                    wire.server.changed(chunk);
                }
                Deed::Look(x, z, radius) => {
                    last = area(x, z, radius);
                    wire.client.look(last);
                }
                Deed::Step => wire.step(),
                Deed::Disconnect => {
                    wire.client.disconnected();
                    wire.reconnect(limits);
                }
                Deed::Reopen => {
                    wire.client.flush();
                    let placeholder = SyncClient::new(None);
                    drop(std::mem::replace(&mut wire.client, placeholder));
                    wire.client = client(&cache);
                    wire.reconnect(limits);
                    wire.told.clear();
                    wire.client.look(last);
                }
            }
        }
        wire.settle();
        wire.assert_right(last);
    }
}
