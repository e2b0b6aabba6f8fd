//! A client survives any message and packet about entities, before and after those of a server.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::time::Duration;
use terrane_world::chunk_sync::PROTOCOL;
use terrane_world::entity_sync::{EntityClient, EntityLimits, EntityPlace, EntityServer};
use terrane_world::space::{BlockPos, ChunkPos};
use uuid::Uuid;

fuzz_target!(|bytes: &[u8]| {
    let mut server = EntityServer::new(vec!["game::Name".into()]);
    server.connect(1, EntityLimits::default());
    server.look(1, ChunkPos::new(0, 4, 0), None);
    let mut client = EntityClient::default();
    let receive = |client: &mut EntityClient, bytes: &[u8]| {
        let result = client.receive(bytes);
        while client.next_news().is_some() {}
        result
    };
    for second in 0..3_i64 {
        let place = EntityPlace { block: BlockPos::new(second, 64, 5), ..EntityPlace::default() };
        server.put(Uuid::from_u128(7), place, Duration::from_secs(second as u64), vec![(0, Some(bytes.to_vec()))]);
        let now = Duration::from_secs(second as u64 + 1);
        for sent in server.tick(now, now) {
            for sound in sent.message.iter().chain(&sent.packets) {
                assert_eq!(receive(&mut client, sound), Ok(true), "what a server says");
            }
        }
        for kind in [4, 5] {
            let _ = receive(&mut client, &[&[PROTOCOL, kind][..], bytes].concat());
        }
        // It may say anything about the entities, and a server that begins anew puts that right.
        server.disconnect(1);
        server.connect(1, EntityLimits::default());
        server.look(1, ChunkPos::new(0, 4, 0), None);
    }
});
