//! The bytes of an object as they are in its blocks: how they are encoded, how many they are when decoded, and they.

use super::{MOST_KEY_BYTES, index};
use flate2::Compression;
use flate2::read::{ZlibDecoder, ZlibEncoder};
use std::io::Read;

/// In front of the bytes.
const HEAD: usize = 9;
const PLAIN: u8 = 0;
const ZLIB: u8 = 1;

/// Compressed, if that makes it smaller and the level is not 0.
pub(super) fn encode(data: &[u8], level: u32) -> Vec<u8> {
    let mut payload = Vec::with_capacity(data.len() / 2 + HEAD);
    payload.push(ZLIB);
    payload.extend_from_slice(&(data.len() as u64).to_le_bytes());
    let compressed = match level {
        0 => None,
        level => ZlibEncoder::new(data, Compression::new(level.min(9))).read_to_end(&mut payload).ok(),
    };
    if compressed.is_none_or(|length| length >= data.len()) {
        payload.truncate(HEAD);
        payload[0] = PLAIN;
        payload.extend_from_slice(data);
    }
    payload
}

/// Why bytes are none of an object.
pub(super) enum PayloadError {
    TooLarge(u64),
    Damaged(&'static str),
}

pub(super) fn decode(mut payload: Vec<u8>, limit: u64) -> Result<Vec<u8>, PayloadError> {
    let too_short = PayloadError::Damaged("it is too short");
    let Some((head, encoded)) = payload.split_first_chunk::<HEAD>() else { return Err(too_short) };
    let [encoding, length @ ..] = *head;
    let length = u64::from_le_bytes(length);
    if length > limit {
        return Err(PayloadError::TooLarge(length));
    }
    let data = match encoding {
        PLAIN => {
            payload.drain(..HEAD);
            payload
        }
        ZLIB => {
            // Memory grows with what comes, not with what is said to come.
            let mut data = Vec::new();
            let read = ZlibDecoder::new(encoded).take(length.saturating_add(1)).read_to_end(&mut data);
            read.map_err(|_| PayloadError::Damaged("it cannot be decompressed"))?;
            data
        }
        _ => return Err(PayloadError::Damaged("it has an encoding that is not known")),
    };
    match data.len() as u64 == length {
        true => Ok(data),
        false => Err(PayloadError::Damaged("it has another length than it says")),
    }
}

/// Tells each key that the data of a commit deletes; `None` if it is none of a commit.
pub(super) fn deleted_keys(mut data: &[u8], mut tell: impl FnMut(&str)) -> Option<()> {
    while !data.is_empty() {
        let length = usize::try_from(index::take(&mut data)?).ok()?;
        let (key, rest) = data.split_at_checked(length)?;
        tell(str::from_utf8(key).ok().filter(|key| (1..=MOST_KEY_BYTES).contains(&key.len()))?);
        data = rest;
    }
    Some(())
}
