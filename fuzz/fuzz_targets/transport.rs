//! Every message and packet of a connection is read or refused. One that is read can be written and read again unchanged.

#![no_main]

use bevy_terrane::{chunk_sync, simulation};
use libfuzzer_sys::fuzz_target;
use terrane_objects::bytes;

#[path = "../../src/view/chunk_sync/packets.rs"]
mod packets;
#[path = "../../crates/terrane_net/src/wire.rs"]
#[expect(dead_code, reason = "there are no streams here")]
mod wire;

use packets::{MAX_STEPS, SentBody, read_steps, write_steps};
use wire::{Hello, ToClient, ToServer, encode};

fuzz_target!(|message: &[u8]| {
    // Bytes are compared instead of values, because NaN is not equal to itself.
    macro_rules! check {
        ($kind:ty) => {
            if let Ok(read) = postcard::from_bytes::<$kind>(message) {
                let bytes = encode(&read);
                let again = postcard::from_bytes::<$kind>(&bytes).expect("it was read before");
                assert_eq!(encode(&again), bytes);
            }
        };
    }
    check!(Hello);
    check!(ToServer);
    check!(ToClient);
    for kind in [6, 7] {
        let packet = [&[chunk_sync::PROTOCOL, kind][..], message].concat();
        if let Some(Ok(steps)) = read_steps(&packet) {
            assert!(steps.len() <= MAX_STEPS);
            let bytes = write_steps(steps);
            let again = read_steps(&bytes).and_then(Result::ok).expect("they were read before");
            assert_eq!(write_steps(again), bytes);
        }
        if let Some(Ok(sent)) = SentBody::read(&packet) {
            let bytes = sent.encode();
            let again = SentBody::read(&bytes).and_then(Result::ok).expect("it was read before");
            assert_eq!(again.encode(), bytes);
        }
    }
});
