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
        read(packet, BODY)
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
