//! Edits of a client, message by message.

use super::*;
use crate::block::BlockId;
use crate::space::BlockPos;

const HERE: BlockPos = BlockPos::new(3, 5, 3);

/// A server that takes edits and a client, which knows all of its world.
fn connected(edits_per_second: u32) -> (Wire, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let limits = SyncLimits { edits_per_second, ..SyncLimits::default() };
    let mut wire = Wire::new(limits, &folder.path().join("cache"), world(1));
    wire.client.look(area(0, 0, 1));
    wire.settle();
    (wire, folder)
}

/// The answers that the client has received.
fn answers(client: &mut SyncClient) -> Vec<(u64, bool)> {
    let edit =
        |news| if let SyncNews::Edit(EditAnswer { id, is_accepted }) = news { Some((id, is_accepted)) } else { None };
    std::iter::from_fn(|| client.next_news()).filter_map(edit).collect()
}

/// What the client hears next: chunks and answers.
fn hear(wire: &mut Wire) -> Vec<String> {
    wire.now += Duration::from_secs(1);
    for message in wire.server.messages(wire.now) {
        wire.client.receive(&message).unwrap();
    }
    let name = |news| match news {
        SyncNews::Chunk { chunk, .. } => Some(format!("chunk {chunk}")),
        SyncNews::Edit(EditAnswer { id, is_accepted }) => Some(format!("edit {id}: {is_accepted}")),
        _ => None,
    };
    std::iter::from_fn(|| wire.client.next_news()).filter_map(name).collect()
}

fn ask(wire: &mut Wire, ids: std::ops::Range<u64>) -> Vec<u64> {
    ids.for_each(|id| wire.client.edit(wire.now, id, HERE, BlockId::new(1)));
    while let Some(message) = wire.client.next_message() {
        wire.server.receive(&message).unwrap();
    }
    wire.server.take_wishes().iter().map(SyncWish::id).collect()
}

fn look_up(wire: &mut Wire) {
    for chunk in wire.server.wanted(64) {
        let bytes = &wire.world[&chunk];
        wire.server.found(chunk, Ok(Some(found(chunk, bytes))));
    }
}

/// Promise, chunk sync: A server answers an accepted edit after it has sent the chunk with it.
#[test]
fn an_edit_is_answered_after_its_chunk() {
    let (mut wire, _folder) = connected(20);
    assert_eq!(ask(&mut wire, 0..1), [0]);
    wire.edit(HERE.chunk(), b"with the block");
    wire.server.edit_decided(0, HERE.chunk(), true);
    assert!(hear(&mut wire).is_empty(), "the chunk is not looked up yet");
    look_up(&mut wire);
    assert_eq!(hear(&mut wire), [format!("chunk {}", HERE.chunk()), "edit 0: true".into()]);
    // It changed nothing.
    assert_eq!(ask(&mut wire, 1..2), [1]);
    wire.server.edit_decided(1, HERE.chunk(), true);
    assert_eq!(hear(&mut wire), ["edit 1: true"]);
}

/// Promise, chunk sync: On a slow connection, an edit is answered before other chunks that wait.
#[test]
fn an_edit_does_not_wait_for_other_chunks() {
    let (mut wire, _folder) = connected(20);
    let others: Vec<_> = wire.world.keys().copied().filter(|chunk| *chunk != HERE.chunk()).collect();
    others.iter().for_each(|chunk| wire.edit(*chunk, b"of another"));
    look_up(&mut wire);
    assert_eq!(ask(&mut wire, 0..2), [0, 1]);
    wire.edit(HERE.chunk(), b"with the block");
    wire.server.edit_decided(0, HERE.chunk(), true);
    wire.server.edit_decided(1, HERE.chunk(), false);
    look_up(&mut wire);
    let heard = hear(&mut wire);
    assert_eq!(heard[..3], ["edit 1: false".into(), format!("chunk {}", HERE.chunk()), "edit 0: true".into()]);
    assert!(heard.len() > 10, "the others follow");
}

#[test]
fn edits_of_a_chunk_are_answered_in_their_order() {
    let (mut wire, _folder) = connected(20);
    assert_eq!(ask(&mut wire, 0..4), [0, 1, 2, 3]);
    for id in 0..4 {
        if id != 2 {
            wire.edit(HERE.chunk(), &[id as u8]);
        }
        wire.server.edit_decided(id, HERE.chunk(), id != 2);
        look_up(&mut wire);
    }
    let answers = ["edit 0: true", "edit 1: true", "edit 3: true"].map(String::from);
    let heard = hear(&mut wire);
    assert_eq!(heard[0], "edit 2: false");
    assert_eq!(heard[1], format!("chunk {}", HERE.chunk()), "only its newest state");
    assert_eq!(heard[2..], answers);
}

#[test]
fn another_first_message_changes_nothing_about_edits() {
    let (mut wire, _folder) = connected(20);
    assert_eq!(ask(&mut wire, 0..1), [0]);
    wire.client.edit(wire.now, 1, HERE, BlockId::new(1));
    let limits = SyncLimits { edits_per_second: 20, radius: 2, ..SyncLimits::default() };
    wire.server.greet("overworld", -2..3, (records(&["game:stone"]), Vec::new()), limits);
    assert_eq!(ask(&mut wire, 2..2), [1], "it was on its way");
    wire.edit(HERE.chunk(), b"with the blocks");
    [0, 1].into_iter().for_each(|id| wire.server.edit_decided(id, HERE.chunk(), true));
    look_up(&mut wire);
    assert_eq!(hear(&mut wire), [format!("chunk {}", HERE.chunk()), "edit 0: true".into(), "edit 1: true".into()]);
    assert!(wire.client.takes_edits());
}

#[test]
fn a_question_from_before_newer_news_is_answered_with_the_whole_chunk() {
    let (mut wire, _folder) = connected(20);
    let before = wire.world[&HERE.chunk()].clone();
    wire.edit(HERE.chunk(), b"with the block");
    look_up(&mut wire);
    // The client asks with its old state, which is also the newest one by the time of the look-up.
    let known = Some(ChunkHash::of(&before));
    let question = ChunkQuestions { area: wire.server.area().unwrap(), questions: vec![(HERE.chunk(), known)] };
    wire.server.receive(&question.encode()).unwrap();
    wire.world.insert(HERE.chunk(), before);
    wire.server.changed(HERE.chunk());
    look_up(&mut wire);
    assert_eq!(hear(&mut wire), vec![format!("chunk {}", HERE.chunk()); 2]);
}

#[test]
fn a_look_up_that_began_before_an_edit_does_not_answer_it() {
    let (mut wire, _folder) = connected(20);
    wire.edit(HERE.chunk(), b"of another");
    let chunk = wire.server.wanted(64);
    assert_eq!(chunk, [HERE.chunk()]);
    let before = wire.world[&HERE.chunk()].clone();
    ask(&mut wire, 0..1);
    wire.edit(HERE.chunk(), b"with the block");
    wire.server.edit_decided(0, HERE.chunk(), true);
    wire.server.found(HERE.chunk(), Ok(Some(found(HERE.chunk(), &before))));
    assert_eq!(hear(&mut wire), [format!("chunk {}", HERE.chunk())]);
    look_up(&mut wire);
    assert_eq!(hear(&mut wire), [format!("chunk {}", HERE.chunk()), "edit 0: true".into()]);
}

/// Promise, chunk sync: A client may make no edits unless the server takes them, and no more per second than it allows.
#[test]
fn edits_beyond_the_rate_are_refused() {
    let (mut wire, _folder) = connected(5);
    assert_eq!(ask(&mut wire, 0..8), [0, 1, 2, 3, 4]);
    assert_eq!(hear(&mut wire), ["edit 7: false", "edit 6: false", "edit 5: false"]);
    assert_eq!(ask(&mut wire, 8..14).len(), 5);

    let (mut wire, _folder) = connected(0);
    assert!(!wire.client.takes_edits());
    assert!(ask(&mut wire, 0..1).is_empty());
    assert_eq!(answers(&mut wire.client), [(0, false)]);
    // As another program would do.
    let edit = SyncEdit { id: 7, position: HERE, block: 1, base: None };
    wire.server.receive(&EditRequests { edits: vec![edit] }.encode()).unwrap();
    assert!(wire.server.take_wishes().is_empty());
}

#[test]
fn edits_of_chunks_that_the_client_does_not_see_are_refused() {
    let (mut wire, _folder) = connected(20);
    wire.client.edit(wire.now, 0, BlockPos::new(160, 5, 0), BlockId::new(1));
    assert_eq!(answers(&mut wire.client), [(0, false)], "the client knows no such chunk");
    let edit = SyncEdit { id: 1, position: BlockPos::new(160, 5, 0), block: 1, base: None };
    wire.server.receive(&EditRequests { edits: vec![edit] }.encode()).unwrap();
    assert!(wire.server.take_wishes().is_empty());
    wire.server.see(Some(area(100, 100, 1)));
    assert!(ask(&mut wire, 2..3).is_empty(), "it is out of sight");
}

#[test]
fn a_server_knows_whether_an_edit_is_based_on_the_newest_chunk() {
    let (mut wire, _folder) = connected(20);
    let base = |wire: &mut Wire| {
        wire.client.edit(wire.now, wire.now.as_secs(), HERE, BlockId::new(1));
        let message = wire.client.next_message().unwrap();
        wire.server.receive(&message).unwrap();
        let SyncWish::Edit(edit) = wire.server.take_wishes()[0] else { panic!("no edit") };
        edit
    };
    let edit = base(&mut wire);
    assert!(wire.server.is_current(&edit));
    wire.edit(HERE.chunk(), b"of another");
    assert!(!wire.server.is_current(&edit));
    look_up(&mut wire);
    assert!(!wire.server.is_current(&edit), "the client had an older chunk");
    hear(&mut wire);
    let edit = base(&mut wire);
    assert!(wire.server.is_current(&edit));
}

/// Promise, predicted edits: An edit whose answer does not come, or whose connection is lost, is taken back.
#[test]
fn an_edit_without_an_answer_is_taken_back() {
    let (mut wire, _folder) = connected(20);
    ask(&mut wire, 0..2);
    wire.client.expire(wire.now + Duration::from_secs(9));
    assert_eq!(answers(&mut wire.client), []);
    wire.client.expire(wire.now + Duration::from_secs(10));
    assert_eq!(answers(&mut wire.client), [(0, false), (1, false)]);
    wire.server.edit_decided(0, HERE.chunk(), true);
    assert_eq!(hear(&mut wire), Vec::<String>::new(), "it is too late");
    ask(&mut wire, 2..3);
    wire.client.disconnected();
    assert_eq!(answers(&mut wire.client), [(2, false)]);
    assert!(!wire.client.takes_edits());
}

/// Promise, chunk sync: A client has at most 1,024 unanswered edits.
#[test]
fn a_client_that_never_reads_gets_no_more_answers() {
    let (mut wire, _folder) = connected(u32::MAX);
    assert_eq!(ask(&mut wire, 0..2_000).len(), 1_024);
    assert_eq!(answers(&mut wire.client).len(), 2_000 - 1_024, "the client knows the limit");
    // Another program sends on.
    for id in 2_000..9_000 {
        let edit = SyncEdit { id, position: HERE, block: 1, base: None };
        wire.server.receive(&EditRequests { edits: vec![edit] }.encode()).unwrap();
    }
    assert!(wire.server.take_wishes().is_empty());
    (0..1_024).for_each(|id| wire.server.edit_decided(id, HERE.chunk(), true));
    assert_eq!(hear(&mut wire).len(), 1_024);
    assert_eq!(ask(&mut wire, 9_000..9_001).len(), 1);
}

/// Promise, chunk sync: A client has at most 1,024 unanswered edits.
#[test]
fn a_message_of_too_many_edits_is_invalid() {
    let edit =
        SyncEdit { id: u64::MAX, position: BlockPos::new(i64::MIN, i64::MIN, i64::MIN), block: u32::MAX, base: None };
    let base = Some(ChunkHash(u64::MAX));
    let most = EditRequests { edits: vec![SyncEdit { base, ..edit }; 1_024] };
    assert_eq!(EditRequests::decode(&most.encode()), Some(Ok(most.clone())));
    let more = EditRequests { edits: vec![edit; 1_025] };
    assert!(matches!(EditRequests::decode(&more.encode()), Some(Err(SyncError::Malformed { .. }))));
    assert!(matches!(
        EditRequests::decode(&[&[PROTOCOL, 1][..], &[0; 1 << 20]].concat()),
        Some(Err(SyncError::TooLarge { .. }))
    ));
    let answers = EditMessage::Answers(vec![EditAnswer { id: 0, is_accepted: true }; 1_025]);
    assert!(matches!(EditMessage::decode(&answers.encode()), Some(Err(SyncError::Malformed { .. }))));
}

/// Promise, chunk sync: A server answers an action after it has sent all chunks that the action has changed.
#[test]
fn an_action_is_answered_after_all_of_its_chunks() {
    let (mut wire, _folder) = connected(20);
    wire.server.take_actions();
    let chunks = [HERE.chunk(), ChunkPos::new(1, 0, 0)];
    wire.client.act(wire.now, 0, b"dig".to_vec());
    wire.client.edit(wire.now, 1, HERE, BlockId::new(1));
    wire.client.act(wire.now, 2, b"build".to_vec());
    wire.client.act(wire.now, 3, vec![0; MAX_ACTION_BYTES + 1]);
    assert_eq!(ask(&mut wire, 0..0), [0, 1, 2], "in their order");
    assert_eq!(answers(&mut wire.client), [(3, false)], "it is too large");
    chunks.iter().for_each(|chunk| wire.edit(*chunk, b"with a hole"));
    wire.server.action_decided(0, Some(&chunks));
    let waiting = wire.server.wanted(64);
    assert_eq!(waiting.len(), 2);
    let found_of = |wire: &mut Wire, chunk: ChunkPos| {
        let bytes = wire.world[&chunk].clone();
        wire.server.found(chunk, Ok(Some(found(chunk, &bytes))));
    };
    found_of(&mut wire, waiting[0]);
    assert_eq!(hear(&mut wire), [format!("chunk {}", waiting[0])], "the other is on its way");
    found_of(&mut wire, waiting[1]);
    assert_eq!(hear(&mut wire), [format!("chunk {}", waiting[1]), "edit 0: true".into()]);

    // One that changes no chunk, and one that is refused, wait for nothing. News of the actor come first.
    wire.server.action_decided(2, Some(&[]));
    wire.server.edit_decided(1, HERE.chunk(), false);
    wire.server.tell_of_actor(b"is tired".to_vec());
    wire.now += Duration::from_secs(1);
    let messages = wire.server.messages(wire.now);
    messages.iter().for_each(|message| wire.client.receive(message).unwrap());
    let news: Vec<_> = std::iter::from_fn(|| wire.client.next_news()).collect();
    assert_eq!(news[0], SyncNews::Actor(b"is tired".to_vec()));
    assert_eq!(news.len(), 3);
}

#[test]
fn a_server_that_takes_no_actions_ignores_them_and_too_large_ones_are_an_error() {
    let (mut wire, _folder) = connected(20);
    wire.client.act(wire.now, 0, b"dig".to_vec());
    assert!(ask(&mut wire, 0..0).is_empty());
    let large = ActionRequests { actions: vec![SyncAction { id: 1, bytes: vec![7; MAX_ACTION_BYTES + 1] }] };
    assert_eq!(wire.server.receive(&large.encode()), Err(SyncError::TooLarge { limit: MAX_ACTION_BYTES }));
    wire.server.take_actions();
    let many = (0..100_u64).map(|id| SyncAction { id, bytes: vec![7; 600] }).collect();
    wire.server.receive(&ActionRequests { actions: many }.encode()).unwrap();
    assert_eq!(wire.server.take_wishes().len(), 100);
    let repeated = ActionRequests { actions: vec![SyncAction { id: 5, bytes: Vec::new() }] };
    wire.server.receive(&repeated.encode()).unwrap();
    assert!(wire.server.take_wishes().is_empty(), "it is not decided yet");
}
