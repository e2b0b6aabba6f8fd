//! Changed blocks, which are sent instead of their chunks.

use super::*;
use crate::block::{BlockComponent, BlockId, BlockType};
use crate::chunk::{Chunk, format};

const HERE: ChunkPos = ChunkPos::new(-1, 1, 2);

/// A world of stone and chests.
struct Ground {
    types: BlockRegistry,
    chunk: Chunk,
}

impl Ground {
    fn new() -> Self {
        let mut types = BlockRegistry::new();
        types.register_component(BlockComponent::fixed::<u8>("game:lock")).unwrap();
        types.register(BlockType::new("game:stone")).unwrap();
        types.register(BlockType::new("game:chest").with_component("game:lock")).unwrap();
        Self { types, chunk: Chunk::from_fn(|[_, y, _]| BlockId::new(u32::from(y < 8))) }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        format::encode(&self.types, &self.chunk, &[], &mut bytes).unwrap();
        bytes
    }

    fn server(&self, limits: SyncLimits) -> SyncServer {
        let records = (self.types.block_records().collect(), self.types.component_records().cloned().collect());
        SyncServer::new("overworld", -2..3, records, limits)
    }

    /// Sets a block. Returns the change.
    fn set(&mut self, at: [usize; 3], block: u32) -> Option<Arc<ChunkChange>> {
        let before = self.chunk.clone();
        self.chunk.set_block(at, BlockId::new(block));
        ChunkChange::between(HERE, &before, &self.chunk, &self.types)
    }
}

/// A server and a client that has the chunk.
fn pair(ground: &Ground, limits: SyncLimits) -> (SyncServer, SyncClient) {
    let (mut server, mut client) = (ground.server(limits), SyncClient::new(None));
    client.receive(&welcome_of(&mut server)).unwrap();
    client.look(area(0, 0, 4));
    exchange(ground, &mut server, &mut client, 10);
    assert_eq!(shown(&mut client), Some(ground.bytes()));
    (server, client)
}

/// Hands over questions, looks up, and hands over messages. Returns the size of the messages.
fn exchange(ground: &Ground, server: &mut SyncServer, client: &mut SyncClient, second: u64) -> usize {
    while client.next_news().is_some() {}
    while let Some(message) = client.next_message() {
        server.receive(&message).unwrap();
    }
    for chunk in server.wanted(usize::MAX) {
        server.found(chunk, Ok((chunk == HERE).then(|| found(chunk, &ground.bytes()))));
    }
    let messages = server.messages(Duration::from_secs(second));
    messages.iter().for_each(|message| client.receive(message).unwrap());
    messages.iter().map(Vec::len).sum()
}

/// The newest content of the chunk among the client's news.
fn shown(client: &mut SyncClient) -> Option<Vec<u8>> {
    let news = std::iter::from_fn(|| client.next_news());
    news.filter_map(|news| if let SyncNews::Chunk { bytes, .. } = news { Some(bytes) } else { None }).last()
}

/// Promise, chunk sync: A changed block is sent in some ten bytes to clients that have its chunk.
#[test]
fn a_changed_block_has_some_ten_bytes() {
    let mut ground = Ground::new();
    let (mut server, mut client) = pair(&ground, SyncLimits::default());
    let change = ground.set([3, 7, 15], 0).unwrap();
    server.take_change(&change);
    let messages = server.messages(Duration::from_secs(11));
    assert_eq!(messages.iter().map(Vec::len).collect::<Vec<_>>(), [17], "two changes have 28 and so on");
    client.receive(&messages[0]).unwrap();
    assert_eq!(shown(&mut client), Some(ground.bytes()));
    assert_eq!((client.progress().changes, server.progress().changes), (1, 1));
    // In the order in which they were made, though another chunk is in between.
    let changes: Vec<_> = [1, 2, 0, 1].map(|block| ground.set([3, 7, 15], block).unwrap()).into();
    changes.iter().for_each(|change| server.take_change(change));
    assert_eq!(exchange(&ground, &mut server, &mut client, 12), 2 + 1 + 3 + 1 + 4 * 10);
    assert_eq!(shown(&mut client), Some(ground.bytes()));
}

/// Promise, chunk sync: A change that does not fit the client's chunk is replaced by the whole chunk.
#[test]
fn a_change_that_does_not_fit_is_replaced_by_the_chunk() {
    let mut ground = Ground::new();
    let (mut server, mut client) = pair(&ground, SyncLimits::default());
    // The client is not told of this one.
    ground.set([0, 0, 0], 0).unwrap();
    let change = ground.set([1, 0, 0], 0).unwrap();
    server.take_change(&change);
    exchange(&ground, &mut server, &mut client, 11);
    assert_eq!(shown(&mut client), None, "it shows nothing wrong");
    assert!(client.progress().answered < client.progress().wanted);
    exchange(&ground, &mut server, &mut client, 12);
    assert_eq!(shown(&mut client), Some(ground.bytes()));
    assert_eq!(client.progress().answered, client.progress().wanted);
    // And then changes fit again.
    server.take_change(&ground.set([2, 0, 0], 0).unwrap());
    exchange(&ground, &mut server, &mut client, 13);
    assert_eq!((shown(&mut client), client.progress().received), (Some(ground.bytes()), 2));
}

#[test]
fn only_a_few_blocks_of_one_layer_are_a_change() {
    let mut ground = Ground::new();
    let before = ground.chunk.clone();
    let many = Chunk::from_fn(|[_, y, _]| BlockId::new(u32::from(y < 5)));
    assert!(ChunkChange::between(HERE, &before, &many, &ground.types).is_none(), "768 blocks");
    assert!(ground.set([0, 9, 0], 2).is_some(), "a chest whose lock is not set");
    let [unlocked, mut locked] = [ground.chunk.clone(), ground.chunk.clone()];
    let lock = ground.types.component("game:lock").unwrap();
    locked.set_component(&ground.types, [0, 9, 0], 0, lock, &[7]).unwrap();
    assert!(ChunkChange::between(HERE, &unlocked, &locked, &ground.types).is_none(), "a component");
    // A block beside it is one, and keeps the component.
    ground.chunk = locked;
    let (mut server, mut client) = pair(&ground, SyncLimits::default());
    server.take_change(&ground.set([0, 8, 0], 1).unwrap());
    exchange(&ground, &mut server, &mut client, 11);
    assert_eq!(shown(&mut client), Some(ground.bytes()));
    // A chest that is dug out takes its component along.
    server.take_change(&ground.set([0, 9, 0], 0).unwrap());
    exchange(&ground, &mut server, &mut client, 12);
    assert_eq!((shown(&mut client), client.progress().received), (Some(ground.bytes()), 1));
}

/// Promise, chunk sync: A client that does not keep up with changes is sent the chunk once it does.
#[test]
fn a_slow_client_is_sent_the_chunk_later() {
    let mut ground = Ground::new();
    let (mut server, mut client) = pair(&ground, SyncLimits::default());
    for round in 0..20_000_usize {
        server.take_change(&ground.set([round % 16, 9, round / 16 % 16], (round / 256 % 3) as u32).unwrap());
    }
    assert!(server.progress().waiting < 3_000, "what waits is bounded: {:?}", server.progress());
    for second in 20..24 {
        exchange(&ground, &mut server, &mut client, second);
    }
    assert_eq!(client.progress().received, 2, "it is sent whole");
    exchange(&ground, &mut server, &mut client, 30);
    let hash = ChunkHash::of(&ground.bytes());
    let asked = ChunkQuestions { area: area(0, 0, 4), questions: vec![(HERE, Some(hash))] };
    server.receive(&asked.encode()).unwrap();
    server.wanted(usize::MAX);
    let answers = server.messages(Duration::from_secs(40));
    let current = ServerMessage::Answers(vec![(HERE, ChunkNews::Current(hash))]);
    assert_eq!(answers.iter().map(|answer| ServerMessage::decode(answer).unwrap()).collect::<Vec<_>>(), [current]);
}

/// Promise, chunk sync: A change of a chunk is encoded once for all clients that are told of it.
#[test]
fn encodings_do_not_grow_with_the_number_of_clients() {
    let mut ground = Ground::new();
    let mut pairs: Vec<_> = (0..20).map(|_| pair(&ground, SyncLimits::default())).collect();
    let changes: Vec<_> = (0..50).map(|at| ground.set([at % 16, at / 16, 3], 0).unwrap()).collect();
    let mut messages = Vec::new();
    for (server, client) in &mut pairs {
        changes.iter().for_each(|change| server.take_change(change));
        let sent = server.messages(Duration::from_secs(11));
        assert!(sent.iter().map(Vec::len).sum::<usize>() < 50 * 10 + 10);
        sent.iter().for_each(|message| client.receive(message).unwrap());
        assert_eq!(shown(client), Some(ground.bytes()));
        messages.push(sent);
    }
    // Each change was encoded before, and no client's message has anything of its own.
    assert!(messages.iter().all(|sent| *sent == messages[0]));
    assert!(changes.iter().all(|change| Arc::strong_count(change) == 1), "nothing is kept");
}

/// Promise, chunk sync: Messages with changes have the documented bytes.
#[test]
fn changes_have_the_bytes_of_the_table() {
    let mut ground = Ground::new();
    let (mut server, _) = pair(&ground, SyncLimits::default());
    let change = ground.set([0, 8, 1], 2).unwrap();
    server.take_change(&change);
    let message = server.messages(Duration::from_secs(11)).remove(0);
    let check = ChunkHash::of(&ground.bytes()).short().to_le_bytes();
    // The cell -1, 0, 0; in it the chunk 15, 1, 2; in that the block 0, 8, 1.
    let head = [4, 3, 1, 1, 0, 0, 1, 0x92, 0x1e];
    assert_eq!(message, [&head[..], &check, &[1, 0x81, 1, 2]].concat());
    let read = ChunkChanges::decode(&message).unwrap().unwrap();
    assert_eq!(read.encode(), message);
}

#[test]
fn wrong_changes_are_errors_or_questions() {
    let ground = Ground::new();
    let (_, mut client) = pair(&ground, SyncLimits::default());
    let too_long = [&[PROTOCOL, 3][..], &[0; 1 << 20]].concat();
    assert!(matches!(client.receive(&too_long), Err(SyncError::TooLarge { .. })));
    assert!(matches!(client.receive(&[PROTOCOL, 3, 1]), Err(SyncError::Malformed { .. })));
    // A cell at the end of the world, a block beyond the chunk, and an unknown type.
    let end = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    let far = [&[PROTOCOL, 3, 1][..], &end, &end, &end, &[1, 0, 0, 0, 0, 0, 0]].concat();
    client.receive(&far).unwrap();
    let asks = |client: &mut SyncClient| client.next_message().is_some();
    assert!(!asks(&mut client), "{:?}", client.progress());
    for block in [[0x80, 0x20, 1], [0, 0x7f, 0]] {
        let message = [&[PROTOCOL, 3, 1, 1, 0, 0, 1, 0x92, 0x1e, 1, 2, 3, 4, 1][..], &block[..]].concat();
        let message = message.strip_suffix(&[0]).unwrap_or(&message);
        client.receive(message).unwrap();
        assert_eq!((asks(&mut client), shown(&mut client)), (true, None));
        let answer = ServerMessage::Answers(vec![(HERE, ChunkNews::Chunk(ground.bytes()))]);
        client.receive(&answer.encode()).unwrap();
        assert_eq!(shown(&mut client), Some(ground.bytes()));
    }
}
