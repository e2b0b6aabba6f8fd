//! A server and a client survive any message of the other side; a message that can be read is written and read again unchanged.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::time::Duration;
use terrane_world::chunk_sync::{
    ChunkChanges, ChunkQuestions, EditMessage, EditRequests, ServerMessage, SyncAction, SyncArea, SyncClient,
    SyncLimits, SyncServer, SyncWish,
};
use terrane_world::space::ChunkPos;

fuzz_target!(|message: &[u8]| {
    if let Ok(questions) = ChunkQuestions::decode(message) {
        assert_eq!(ChunkQuestions::decode(&questions.encode()).as_ref(), Ok(&questions));
    }
    if let Ok(read) = ServerMessage::decode(message) {
        assert_eq!(ServerMessage::decode(&read.encode()).as_ref(), Ok(&read));
    }
    if let Some(Ok(edits)) = EditRequests::decode(message) {
        assert_eq!(EditRequests::decode(&edits.encode()), Some(Ok(edits)));
    }
    if let Some(Ok(read)) = EditMessage::decode(message) {
        assert_eq!(EditMessage::decode(&read.encode()), Some(Ok(read)));
    }
    if let Some(Ok(changes)) = ChunkChanges::decode(message) {
        assert_eq!(ChunkChanges::decode(&changes.encode()), Some(Ok(changes)));
    }
    let limits = SyncLimits { edits_per_second: 20, ..SyncLimits::default() };
    let mut server = SyncServer::new("overworld", -4..20, (Vec::new(), Vec::new()), limits);
    server.take_actions();
    server.messages(Duration::ZERO);
    let welcome = server.messages(Duration::from_secs(1));
    let mut client = SyncClient::new(None);
    client.look(SyncArea { center: ChunkPos::new(0, 0, 0), radius: 2, vertical: 2 });
    // As it comes, and after the right first message.
    for message in [message].into_iter().chain(welcome.iter().map(Vec::as_slice)).chain([message]) {
        let _ = client.receive(message);
        while client.next_news().is_some() {}
        while let Some(asked) = client.next_message() {
            server.receive(&asked).expect("what a client says");
        }
    }
    let _ = server.receive(message);
    server.take_excess().into_iter().for_each(|id| server.action_decided(id, None));
    for wish in server.take_wishes() {
        match wish {
            SyncWish::Edit(edit) => server.edit_decided(edit.id, edit.position.chunk(), edit.id % 2 == 0),
            SyncWish::Action(SyncAction { id, bytes }) => {
                let chunks: Vec<_> = bytes.iter().map(|byte| ChunkPos::new(i64::from(byte % 4), 0, 0)).collect();
                server.action_decided(id, (id % 3 > 0).then_some(&chunks));
                server.tell_of_actor(bytes);
            }
        }
    }
    for (chunk, second) in server.wanted(64).into_iter().zip(2..) {
        server.found(chunk, Ok(None));
        for answer in server.messages(Duration::from_secs(second)) {
            client.receive(&answer).expect("what a server says");
        }
    }
});
