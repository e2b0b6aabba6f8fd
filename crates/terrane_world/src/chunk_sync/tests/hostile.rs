//! Invalid messages.

use super::*;
use proptest::prelude::*;

/// Promise, chunk sync: Each message of chunk sync begins with the number of the protocol and a byte for its kind. A program of another protocol says which of the two is older.
/// Promise, chunk sync: A client's message has at most 1,024 questions.
/// Promise, chunk sync: A client's message is at most 64 KiB long.
#[test]
fn a_message_says_what_is_wrong_with_it() {
    let unknown = SyncError::Malformed { reason: "it is of no known kind".into() };
    assert_eq!(ChunkQuestions::decode(&[]), Err(unknown.clone()));
    assert_eq!(ServerMessage::decode(&[PROTOCOL, 99]), Err(unknown));
    let older = ServerMessage::decode(&[3, 0]).unwrap_err();
    assert_eq!(older.to_string(), "the other side speaks protocol 3 and this one 4: update the older of the two");
    let older = server(SyncLimits::default()).receive(&[2, 1, 0, 0, 0, 0, 0]);
    assert_eq!(older, Err(SyncError::Protocol { found: 2 }));
    assert_eq!(SyncClient::new(None).receive(&[9, 0]), Err(SyncError::Protocol { found: 9 }));
    let questions = |count: usize| {
        let question = (ChunkPos::default(), None);
        ChunkQuestions { area: area(0, 0, 1), questions: vec![question; count] }
    };
    let most = questions(MAX_QUESTIONS);
    assert_eq!(ChunkQuestions::decode(&most.encode()), Ok(most));
    let too_many = ChunkQuestions::decode(&questions(MAX_QUESTIONS + 1).encode());
    assert!(matches!(too_many, Err(SyncError::Malformed { .. })));
    assert!(matches!(ChunkQuestions::decode(&vec![PROTOCOL; 1 << 20]), Err(SyncError::TooLarge { .. })));
    let mut long = questions(1).encode();
    long.push(0);
    assert_eq!(ChunkQuestions::decode(&long), Err(SyncError::Malformed { reason: "1 bytes follow its end".into() }));
}

/// Promise, chunk sync: A client refuses a message of the server that is more than 64 MiB decompressed.
#[test]
fn a_message_that_inflates_without_end_is_broken_off() {
    let bytes = vec![0; 65 << 20];
    let chunk = (ChunkPos::default(), ChunkNews::Chunk(bytes));
    let bomb = ServerMessage::Answers(vec![chunk]).encode();
    assert!(bomb.len() < 1 << 20);
    assert_eq!(ServerMessage::decode(&bomb), Err(SyncError::TooLarge { limit: 64 << 20 }));
}

/// Promise, chunk sync: A server's message has at most 1,024 answers.
#[test]
fn more_answers_than_a_server_sends_are_refused() {
    let gone = (ChunkPos::default(), ChunkNews::Gone);
    let answers = |count: usize| ServerMessage::Answers(vec![gone.clone(); count]);
    assert_eq!(ServerMessage::decode(&answers(1_024).encode()), Ok(answers(1_024)));
    assert!(matches!(ServerMessage::decode(&answers(1_025).encode()), Err(SyncError::Malformed { .. })));
}

/// Promise, chunk sync: A client refuses lists of more than a million types.
#[test]
fn lists_of_more_than_a_million_types_are_refused() {
    let welcome = |blocks: usize, components: usize| {
        let block = BlockRecord { name: String::new(), components: Vec::new() };
        let component = crate::block::BlockComponentRecord { name: String::new(), version: 0, size: None };
        ServerMessage::Welcome(SyncWelcome {
            dimension: "any".into(),
            chunk_heights: 0..1,
            radius: 1,
            vertical: 1,
            blocks: vec![block; blocks],
            components: vec![component; components],
        })
    };
    for (blocks, components) in [((1 << 20) + 1, 0), (0, (1 << 20) + 1)] {
        let read = ServerMessage::decode(&welcome(blocks, components).encode());
        assert!(matches!(read, Err(SyncError::Malformed { .. })));
    }
    assert!(ServerMessage::decode(&welcome(1 << 20, 1).encode()).is_ok());
}

#[test]
fn a_client_that_runs_to_and_fro_costs_little() {
    let mut server = server(SyncLimits::default());
    for x in -32..=32 {
        let questions = (-2..3).flat_map(|y| (-32..=32).map(move |z| ChunkPos::new(x, y, z)));
        let questions = questions.map(|chunk| (chunk, None)).collect();
        server.receive(&ChunkQuestions { area: area(0, 0, 32), questions }.encode()).unwrap();
    }
    let waiting = server.progress().waiting;
    assert!(waiting > 15_000);
    // As often as messages fit into a frame: none of them causes a new sort.
    for round in 0..100_000 {
        server.receive(&ChunkQuestions { area: area(round & 1, 0, 32), questions: vec![] }.encode()).unwrap();
    }
    assert_eq!(server.progress().waiting, waiting);
    server.messages(Duration::from_secs(1));
    assert!(server.progress().waiting < waiting);
}

/// Promise, chunk sync: The server limits a client's area, and does not answer questions outside of it.
#[test]
fn a_client_that_asks_for_the_whole_world_gets_its_limits() {
    let limits = SyncLimits { radius: 2, vertical: 1, ..SyncLimits::default() };
    let mut server = SyncServer::new("tall", 0..1_000, (records(&[]), Vec::new()), limits);
    let everything = SyncArea { center: ChunkPos::default(), radius: u32::MAX, vertical: u32::MAX };
    for x in 0..40 {
        let questions = (0..1_000).map(|z| (ChunkPos::new(x, 0, z), None)).collect();
        server.receive(&ChunkQuestions { area: everything, questions }.encode()).unwrap();
    }
    assert_eq!(server.area(), Some(SyncArea { center: ChunkPos::default(), radius: 2, vertical: 1 }));
    // A quarter of the disc.
    assert_eq!(server.progress().waiting, 6);
}

/// Questions for all chunks of an area of the dimension, of a client that has none.
fn all_of(area: SyncArea) -> Vec<(ChunkPos, Option<ChunkHash>)> {
    let chunks = area.columns().into_iter().flat_map(|column| (-2..3).map(move |y| column.chunk(y)));
    chunks.map(|chunk| (chunk, None)).collect()
}

/// Promise, multiplayer: A client that sends and never reads takes a bounded amount of the server's memory.
/// Promise, chunk sync: The server remembers a bounded number of chunks for a client, enough for the radius that it allows.
#[test]
fn a_client_that_sends_and_never_reads_is_remembered_within_its_bound() {
    let limits = SyncLimits { chunks: 1_000, ..SyncLimits::default() };
    let mut server = server(limits);
    let mut last = area(0, 0, 6);
    // It requests another area with each message, and receives none.
    for x in 0..1_000 {
        last = area(x * 50, 0, 6);
        server.receive(&ChunkQuestions { area: last, questions: all_of(last) }.encode()).unwrap();
        let SyncServerProgress { chunks, waiting, .. } = server.progress();
        assert!(chunks <= 1_000 && waiting <= 1_000, "{chunks} chunks and {waiting} that wait after {x} messages");
    }
    // It still gets near chunks.
    assert!(server.wanted(64).is_empty(), "the first message comes before");
    server.messages(Duration::ZERO);
    server.messages(Duration::from_secs(9));
    let mut wanted = server.wanted(usize::MAX);
    let mut asked: Vec<_> = all_of(last).into_iter().map(|(chunk, _)| chunk).collect();
    wanted.sort_unstable();
    asked.sort_unstable();
    assert_eq!(wanted, asked);
}

/// Promise, chunk sync: The server remembers a bounded number of chunks for a client, enough for the radius that it allows.
#[test]
fn the_largest_area_fits_into_what_is_remembered() {
    for chunks in [0, 1_000, 20_000, 1 << 18, usize::MAX] {
        for heights in [0..1, -2..3, 0..64, 0..65, -4_000..4_000] {
            let limits = SyncLimits { radius: 48, vertical: 20, chunks, ..SyncLimits::default() };
            let mut server = SyncServer::new("any", heights.clone(), (records(&[]), Vec::new()), limits);
            let ServerMessage::Welcome(welcome) = ServerMessage::decode(&welcome_of(&mut server)).unwrap() else {
                panic!("the first message says what the client may ask for");
            };
            let area = SyncArea { center: ChunkPos::default(), radius: welcome.radius, vertical: welcome.vertical };
            let height = (heights.end - heights.start).min(2 * i64::from(welcome.vertical) + 1) as usize;
            let most = chunks.max(128);
            assert!(area.columns().len() * height <= most - most / 8, "{chunks} chunks, {heights:?}: {welcome:?}");
        }
    }
    let welcome = SyncLimits::default().fitting(&(-4..20), true);
    assert_eq!(welcome.radius, 32, "the defaults cut nothing");
}

/// Promise, chunk sync: A repeated question of a client is looked up once.
#[test]
fn a_question_that_is_repeated_is_looked_up_once() {
    let mut server = server(SyncLimits { bytes_per_second: 1 << 40, ..SyncLimits::default() });
    welcome_of(&mut server);
    let [there, nowhere, broken] = [0, 1, 2].map(|x| ChunkPos::new(x, 0, 0));
    let known = ChunkHash::of(b"ground");
    let ask = |server: &mut SyncServer, known| {
        let questions = [(there, known), (nowhere, None), (broken, None)];
        let questions = questions.into();
        server.receive(&ChunkQuestions { area: area(0, 0, 4), questions }.encode()).unwrap();
    };
    let find = |server: &mut SyncServer| {
        server.found(there, Ok(Some(found(there, b"ground"))));
        server.found(nowhere, Ok(None));
        server.found(broken, Err(()));
    };
    ask(&mut server, None);
    assert_eq!(server.wanted(64), [there, nowhere, broken]);
    // Asked again before the result is known: one answer suffices.
    ask(&mut server, None);
    find(&mut server);
    assert!(server.wanted(64).is_empty());
    assert_eq!(server.progress().looked_up, 3);
    let mut now = Duration::from_secs(10);
    for _ in 0..1_000 {
        ask(&mut server, Some(known));
        ask(&mut server, Some(known));
        assert!(server.wanted(64).is_empty());
        now += Duration::from_millis(1);
        server.messages(now);
    }
    let SyncServerProgress { looked_up, current, waiting, .. } = server.progress();
    assert_eq!((looked_up, current, waiting), (3, 1_000, 0));
    // Changed chunks are looked up again, and so are chunks that the client has lost.
    server.changed(nowhere);
    ask(&mut server, None);
    assert_eq!(server.wanted(64), [there, nowhere]);
}

#[test]
fn what_could_not_be_read_is_looked_up_again_and_told_once_it_can_be() {
    let mut server = server(SyncLimits { bytes_per_second: 1 << 40, ..SyncLimits::default() });
    welcome_of(&mut server);
    let [low, high] = [0, 1].map(|y| ChunkPos::new(0, y, 0));
    let questions = [low, high].map(|chunk| (chunk, None)).into();
    server.receive(&ChunkQuestions { area: area(0, 0, 4), questions }.encode()).unwrap();
    assert_eq!(server.wanted(64), [low, high]);
    [low, high].into_iter().for_each(|chunk| server.found(chunk, Err(())));
    // One chunk of the column suffices to notice that the disk works again.
    server.messages(Duration::from_secs(20));
    assert_eq!(server.wanted(64), [low]);
    server.found(low, Err(()));
    server.messages(Duration::from_secs(30));
    assert_eq!(server.wanted(64), [low]);
    server.found(low, Ok(Some(found(low, b"ground"))));
    assert_eq!(server.wanted(64), [high]);
    server.found(high, Ok(Some(found(high, b"ground"))));
    server.messages(Duration::from_secs(40));
    assert_eq!(server.progress().sent, 2);
}

/// Promise, chunk sync: Questions about chunks outside of a client's view wait until they are in view.
#[test]
fn what_is_out_of_sight_waits_until_it_is_seen() {
    let mut server = server(SyncLimits { bytes_per_second: 1 << 40, ..SyncLimits::default() });
    welcome_of(&mut server);
    let questions = all_of(area(0, 0, 4));
    server.see(Some(SyncArea { vertical: u32::MAX, ..area(100, 0, 5) }));
    server.receive(&ChunkQuestions { area: area(0, 0, 4), questions: questions.clone() }.encode()).unwrap();
    server.messages(Duration::from_secs(10));
    server.changed(questions[0].0);
    assert!(server.wanted(usize::MAX).is_empty());
    // The viewer approaches, and moves on.
    server.see(Some(SyncArea { vertical: u32::MAX, ..area(5, 0, 5) }));
    server.messages(Duration::from_secs(11));
    let seen = server.wanted(usize::MAX);
    assert!(seen.len() > 50 && seen.iter().all(|chunk| area(5, 0, 5).contains(*chunk)), "{seen:?}");
    seen.iter().for_each(|chunk| server.found(*chunk, Ok(None)));
    server.see(None);
    server.messages(Duration::from_millis(11_500));
    assert_eq!(server.wanted(usize::MAX).len() + seen.len(), questions.len());
}

proptest! {
    #[test]
    fn any_bytes_are_a_message_or_an_error(mut bytes in proptest::collection::vec(any::<u8>(), 0..300), is_known in any::<bool>()) {
        if is_known && let Some(first) = bytes.first_mut() {
            *first = 1;
        }
        let _ = ChunkQuestions::decode(&bytes);
        let _ = ServerMessage::decode(&bytes);
        let mut server = server(SyncLimits::default());
        let _ = server.receive(&bytes);
        prop_assert!(server.wanted(usize::MAX).is_empty());
    }

    #[test]
    fn a_dimension_of_any_heights_is_one_or_an_error(
        start in any::<i64>(), heights in prop_oneof![0..70_i64, any::<i64>()], y in any::<i64>(),
        reach in (0..4_u32, 0..4_u32),
    ) {
        let chunk_heights = start..start.wrapping_add(heights);
        let (blocks, components) = (records(&[]), Vec::new());
        let (radius, vertical) = reach;
        let welcome = SyncWelcome { dimension: "any".into(), chunk_heights, radius, vertical, blocks, components };
        let message = ServerMessage::Welcome(welcome.clone()).encode();
        let mut client = SyncClient::new(None);
        let wish = SyncArea { center: ChunkPos::new(0, y, 0), radius: 2, vertical: 3 };
        client.look(wish);
        prop_assert_eq!(client.receive(&message).is_ok(), !welcome.chunk_heights.is_empty());
        client.look(SyncArea { center: ChunkPos::new(i64::MAX, y.wrapping_neg(), 7), ..wish });
        client.look(wish);
        while client.next_news().is_some() {}
        let _ = client.next_message();
        let inside = client.progress().wanted as u64;
        prop_assert!(inside <= 25 * 145);
    }

    #[test]
    fn a_flipped_bit_is_a_message_or_an_error(flips in proptest::collection::vec(any::<u16>(), 1..4)) {
        let mut server = server(SyncLimits::default());
        let question = (ChunkPos::new(1, 2, 3), Some(ChunkHash(9)));
        let mut asked = ChunkQuestions { area: area(0, 0, 5), questions: vec![question; 20] }.encode();
        let mut welcome = welcome_of(&mut server);
        for flip in flips {
            let (byte, bit) = (usize::from(flip >> 3), flip & 7);
            let (asked_at, welcome_at) = (byte % asked.len(), byte % welcome.len());
            asked[asked_at] ^= 1 << bit;
            welcome[welcome_at] ^= 1 << bit;
        }
        let _ = server.receive(&asked);
        let mut client = SyncClient::new(None);
        client.look(area(0, 0, 3));
        let _ = client.receive(&welcome);
        while client.next_news().is_some() {}
        let _ = client.next_message();
    }
}
