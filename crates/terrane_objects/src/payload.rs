//! Payloads: the bytes of objects in their blocks, consisting of the encoding, the decoded length and the encoded bytes.

use super::MAX_KEY_BYTES;
use crate::bytes::Reader;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

const HEAD: usize = 9;
const PLAIN: u8 = 0;
const ZLIB: u8 = 1;
/// Spare bytes beyond the expected ones.
const SPARE: usize = 512;

/// Encodes data, compressed if that is smaller. The level is 0 for no compression to 9. The tables are allocated for
/// the first object and reused.
pub(super) fn encode(tables: &mut Option<Compress>, level: u32, data: &[u8]) -> Vec<u8> {
    // If compression needs more space than this, it is not smaller.
    let mut payload = Vec::with_capacity(HEAD + data.len());
    payload.push(ZLIB);
    payload.extend_from_slice(&(data.len() as u64).to_le_bytes());
    let is_smaller = level > 0 && {
        let stream = tables.get_or_insert_with(|| Compress::new(Compression::new(level.min(9)), true));
        stream.reset();
        let ended = stream.compress_vec(data, &mut payload, FlushCompress::Finish);
        matches!(ended, Ok(Status::StreamEnd)) && payload.len() < HEAD + data.len()
    };
    if !is_smaller {
        payload.truncate(HEAD);
        payload[0] = PLAIN;
        payload.extend_from_slice(data);
    }
    payload
}

/// Decodes the bytes of an object, at most `limit`. The error is the reason why the payload is invalid.
pub(super) fn decode(mut payload: Vec<u8>, limit: u64) -> Result<Vec<u8>, String> {
    let Some((head, encoded)) = payload.split_first_chunk::<HEAD>() else { return Err("it is too short".into()) };
    let [encoding, length @ ..] = *head;
    let length = u64::from_le_bytes(length);
    if length > limit {
        return Err(format!("expected {limit} bytes or less, found {length}"));
    }
    let data = match encoding {
        PLAIN => {
            payload.drain(..HEAD);
            payload
        }
        ZLIB => inflate(encoded, length).ok_or("it cannot be decompressed")?,
        _ => return Err("it has an encoding that is not known".into()),
    };
    match data.len() as u64 == length {
        true => Ok(data),
        false => Err("it has another length than it says".into()),
    }
}

/// Decompresses data of at most `length` bytes.
fn inflate(encoded: &[u8], length: u64) -> Option<Vec<u8>> {
    let mut stream = Decompress::new(true);
    // Memory grows with the actual data, not with the declared length. Spare room makes the end faster.
    let expected = length.min(16 * encoded.len() as u64);
    let mut data = Vec::with_capacity(expected as usize + SPARE);
    loop {
        let before = (stream.total_in(), data.len());
        let rest = &encoded[before.0 as usize..];
        let status = stream.decompress_vec(rest, &mut data, FlushDecompress::Finish).ok()?;
        let (is_stuck, is_full) = ((stream.total_in(), data.len()) == before, data.len() == data.capacity());
        match status {
            Status::StreamEnd => return Some(data),
            // The data is truncated, or continues beyond its declared length.
            _ if is_stuck && !is_full || data.len() as u64 > length => return None,
            _ if is_full => data.reserve(data.len()),
            _ => {}
        }
    }
}

/// Calls `tell` with each key that a commit's data deletes; `None` if it is not the data of a commit.
pub(super) fn deleted_keys(data: &[u8], mut tell: impl FnMut(&str)) -> Option<()> {
    let mut reader = Reader::new(data);
    while reader.left() > 0 {
        let length = usize::try_from(reader.number().ok()?).ok()?;
        let key = reader.slice(length).ok()?;
        tell(str::from_utf8(key).ok().filter(|key| (1..=MAX_KEY_BYTES).contains(&key.len()))?);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Bytes that compress well or badly.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let run = (any::<u8>(), prop_oneof![1..3_usize, 1..400_usize, 1..9_000_usize]);
        let runs = vec(run, 0..60);
        runs.prop_map(|runs| runs.into_iter().flat_map(|(byte, count)| std::iter::repeat_n(byte, count)).collect())
    }

    proptest! {
        /// Promise, object store: Objects survive storing, compressed or not.
        #[test]
        fn objects_come_back_and_wrong_bytes_are_an_error(
            objects in vec(bytes(), 1..6), level in 0..12_u32,
            cut in any::<prop::sample::Index>(), wrong in prop_oneof![0..40_000_u64, any::<u64>()],
        ) {
            let mut tables = None;
            for data in objects {
                let payload = encode(&mut tables, level, &data);
                prop_assert!(payload.len() <= HEAD + data.len());
                let length = data.len() as u64;
                prop_assert_eq!(decode(payload.clone(), length).ok(), Some(data));
                prop_assert!(decode(payload[..cut.index(payload.len())].to_vec(), u64::MAX).is_err());
                if length > 0 {
                    let refused = decode(payload.clone(), length - 1);
                    let told = format!("found {length}");
                    prop_assert!(refused.is_err_and(|reason| reason.ends_with(&told)));
                }
                if wrong != length {
                    let mut lying = payload;
                    lying[1..HEAD].copy_from_slice(&wrong.to_le_bytes());
                    prop_assert!(decode(lying, u64::MAX).is_err());
                }
            }
        }
    }
}
