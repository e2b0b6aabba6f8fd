//! The packets of bodies: the steps of a client's own body, and where its region has it.

use crate::bytes::{self, put_value, up_to};
use crate::chunk_sync::{PROTOCOL, SyncError};
use crate::simulation::{Steer, SteeredBody};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The kinds of these packets.
const STEPS: u8 = 6;
const BODY: u8 = 7;
/// The most steps in a packet. Each step is sent in this many packets at most, so that it arrives if some are lost.
pub(super) const MAX_STEPS: usize = 16;
/// The maximum size of a packet.
const MAX_BYTES: usize = 4 << 10;

#[derive(Serialize, Deserialize)]
struct Steps(#[serde(deserialize_with = "up_to::<_, _, MAX_STEPS>")] Vec<Steer>);

/// A client's own body as its region has it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SentBody {
    /// The dimension's clock.
    pub clock: Duration,
    pub body: SteeredBody,
}

pub(super) fn write_steps(steps: Vec<Steer>) -> Vec<u8> {
    put_value(vec![PROTOCOL, STEPS], &Steps(steps))
}

/// The steps in a packet; `None` if it is another one.
pub(super) fn read_steps(packet: &[u8]) -> Option<Result<Vec<Steer>, SyncError>> {
    let Steps(steps) = match read(packet, STEPS)? {
        Ok(steps) => steps,
        Err(error) => return Some(Err(error)),
    };
    Some(Ok(steps))
}

impl SentBody {
    pub fn encode(&self) -> Vec<u8> {
        put_value(vec![PROTOCOL, BODY], self)
    }

    /// The body in a packet; `None` if it is another one.
    pub fn read(packet: &[u8]) -> Option<Result<Self, SyncError>> {
        let read: Result<Self, SyncError> = read(packet, BODY)?;
        Some(read.and_then(|sent| {
            let SteeredBody { step, state, intent, .. } = &sent.body;
            let is_finite = step.is_finite()
                && state.position.offset.is_finite()
                && state.velocity.is_finite()
                && intent.look.is_finite()
                && state.grounded.drift.iter().all(|along| along.is_finite());
            is_finite.then_some(sent).ok_or(SyncError::Malformed { reason: "a number of a body is not finite".into() })
        }))
    }
}

fn read<T: serde::de::DeserializeOwned>(packet: &[u8], kind: u8) -> Option<Result<T, SyncError>> {
    let body = packet.strip_prefix(&[PROTOCOL, kind])?;
    Some(if packet.len() > MAX_BYTES {
        Err(SyncError::TooLarge { limit: MAX_BYTES })
    } else {
        bytes::value(body).map_err(|reason| SyncError::Malformed { reason })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{BlockBody, BodyState, CharacterController, Intent};
    use bevy::prelude::*;
    use proptest::prelude::*;

    fn body() -> SentBody {
        let (body, character) = (BlockBody::new(0.6, 1.8), CharacterController::default());
        let (intent, state) = (Intent::default(), BodyState::default());
        let body = SteeredBody { number: 300, intent, state, body, character, step: 0.05, floor: -64 };
        SentBody { clock: Duration::from_millis(123_456), body }
    }

    /// Promise, company: Steps and bodies come back from their packets; what is not a number of a body is refused.
    #[test]
    fn steps_and_bodies_come_back() {
        let steps: Vec<Steer> = (1..=16).map(|number| Steer { number, ..Steer::default() }).collect();
        assert_eq!(read_steps(&write_steps(steps.clone())), Some(Ok(steps)));
        assert_eq!(SentBody::read(&body().encode()), Some(Ok(body())));
        assert_eq!((read_steps(&body().encode()), SentBody::read(&write_steps(Vec::new()))), (None, None));
        for odd in [f32::NAN, f32::INFINITY] {
            let mut sent = body();
            sent.body.state.velocity.0 = Vec3::new(0.0, odd, 0.0);
            assert!(matches!(SentBody::read(&sent.encode()), Some(Err(SyncError::Malformed { .. }))));
        }
        let many = write_steps(vec![Steer::default(); 17]);
        assert!(matches!(read_steps(&many), Some(Err(SyncError::Malformed { .. }))));
        let long = [&body().encode()[..], &[0; MAX_BYTES]].concat();
        assert_eq!(SentBody::read(&long), Some(Err(SyncError::TooLarge { limit: MAX_BYTES })));
    }

    proptest! {
        /// Promise, company: Any bytes are steps, a body or an error.
        #[test]
        fn any_bytes_are_a_packet_or_an_error(mut noise in prop::collection::vec(any::<u8>(), 0..200), at in 0..200_usize) {
            // Damage to a valid packet reaches further than noise.
            let mut damaged = body().encode();
            let at = at % damaged.len();
            let part = noise.len().min(damaged.len() - at).min(6);
            damaged[at..at + part].copy_from_slice(&noise[..part]);
            noise.splice(..0, [PROTOCOL, BODY]);
            for packet in [damaged, noise] {
                if let Some(Ok(sent)) = SentBody::read(&packet) {
                    prop_assert!(sent.body.step.is_finite());
                    // Its character may be of numbers that are none.
                    let again = SentBody::read(&sent.encode()).and_then(Result::ok);
                    prop_assert_eq!(again.map(|again| again.encode()), Some(sent.encode()));
                }
                let steps = [&[PROTOCOL, STEPS], packet.get(2..).unwrap_or_default()].concat();
                if let Some(Ok(steps)) = read_steps(&steps) {
                    prop_assert!(steps.len() <= MAX_STEPS);
                }
            }
        }
    }
}
