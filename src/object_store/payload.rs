//! The bytes of an object as they are in its blocks: how they are encoded, how many they are when decoded, and they.

use super::index;
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

pub(super) fn decode(payload: &[u8], limit: u64) -> Result<Vec<u8>, PayloadError> {
    let too_short = PayloadError::Damaged("it is too short");
    let (encoding, rest) = payload.split_first().ok_or(too_short)?;
    let (length, encoded) = rest.split_first_chunk::<8>().ok_or(PayloadError::Damaged("it is too short"))?;
    let length = u64::from_le_bytes(*length);
    if length > limit {
        return Err(PayloadError::TooLarge(length));
    }
    let data = match *encoding {
        PLAIN => encoded.to_vec(),
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

/// The keys that a commit deletes.
pub(super) fn deleted_keys(payload: &[u8], limit: u64) -> Option<Vec<String>> {
    let data = decode(payload, limit).ok()?;
    let (mut rest, mut keys) = (&data[..], Vec::new());
    while !rest.is_empty() {
        let length = usize::try_from(index::take(&mut rest)?).ok()?;
        let (key, behind) = rest.split_at_checked(length)?;
        keys.push(str::from_utf8(key).ok()?.to_owned());
        rest = behind;
    }
    Some(keys)
}
