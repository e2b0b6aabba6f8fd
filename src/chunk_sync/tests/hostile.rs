//! Messages that are none.

use super::*;
use proptest::prelude::*;

#[test]
fn a_message_says_what_is_wrong_with_it() {
    assert_eq!(ChunkQuestions::decode(&[]), Err(SyncError::Empty));
    assert_eq!(ServerMessage::decode(&[9, 0]), Err(SyncError::Format { found: 9, known: 1 }));
    let questions = |count: usize| {
        let question = ChunkQuestion { chunk: ChunkPos::default(), known: None };
        ChunkQuestions { area: area(0, 0, 1), questions: vec![question; count] }
    };
    let most = questions(MAX_QUESTIONS);
    assert_eq!(ChunkQuestions::decode(&most.encode()), Ok(most));
    let too_many = ChunkQuestions::decode(&questions(MAX_QUESTIONS + 1).encode());
    assert!(matches!(too_many, Err(SyncError::Malformed { .. })));
    assert!(matches!(ChunkQuestions::decode(&vec![1; 1 << 20]), Err(SyncError::TooLarge { .. })));
    let mut long = questions(1).encode();
    long.push(0);
    assert_eq!(ChunkQuestions::decode(&long), Err(SyncError::Malformed { reason: "1 bytes follow its end".into() }));
}

#[test]
fn a_message_that_inflates_without_end_is_broken_off() {
    let bytes = vec![0; 65 << 20];
    let chunk = ChunkAnswer { chunk: ChunkPos::default(), news: ChunkNews::Chunk { version: 0, bytes } };
    let bomb = ServerMessage::Answers(vec![chunk]).encode();
    assert!(bomb.len() < 1 << 20);
    assert_eq!(ServerMessage::decode(&bomb), Err(SyncError::TooLarge { limit: 64 << 20 }));
}

#[test]
fn more_answers_than_a_server_sends_are_refused() {
    let gone = ChunkAnswer { chunk: ChunkPos::default(), news: ChunkNews::Gone };
    let answers = |count: usize| ServerMessage::Answers(vec![gone.clone(); count]);
    assert_eq!(ServerMessage::decode(&answers(1_024).encode()), Ok(answers(1_024)));
    assert!(matches!(ServerMessage::decode(&answers(1_025).encode()), Err(SyncError::Malformed { .. })));
}

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
        let questions = questions.map(|chunk| ChunkQuestion { chunk, known: None }).collect();
        server.receive(&ChunkQuestions { area: area(0, 0, 32), questions }.encode()).unwrap();
    }
    let waiting = server.progress().waiting;
    assert!(waiting > 15_000);
    // As often as messages fit into a frame: nothing is sorted anew for each.
    for round in 0..100_000 {
        server.receive(&ChunkQuestions { area: area(round & 1, 0, 32), questions: vec![] }.encode()).unwrap();
    }
    assert_eq!(server.progress().waiting, waiting);
    server.messages(Duration::from_secs(1));
    assert!(server.progress().waiting < waiting);
}

#[test]
fn a_client_that_asks_for_the_whole_world_gets_its_limits() {
    let limits = SyncLimits { radius: 2, vertical: 1, ..SyncLimits::default() };
    let mut server = SyncServer::new("tall", 0..1_000, (records(&[]), Vec::new()), limits);
    let everything = SyncArea { center: ChunkPos::default(), radius: u32::MAX, vertical: u32::MAX };
    for x in 0..40 {
        let questions = (0..1_000).map(|z| ChunkQuestion { chunk: ChunkPos::new(x, 0, z), known: None }).collect();
        server.receive(&ChunkQuestions { area: everything, questions }.encode()).unwrap();
    }
    assert_eq!(server.area(), Some(SyncArea { center: ChunkPos::default(), radius: 2, vertical: 1 }));
    // A quarter of the disc.
    assert_eq!(server.progress().waiting, 6);
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
        let question = ChunkQuestion { chunk: ChunkPos::new(1, 2, 3), known: Some(KnownVersion { version: 7, checksum: 9 }) };
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
