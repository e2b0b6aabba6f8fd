//! The envelope of a stored chunk or list of block ticks, with its version and checksum.
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | `u64` version: 0 as generated, + 1 for each saved change |
//! | 8..12 | `u32` CRC-32 of the version and the payload |
//! | 12.. | the payload |
//!
//! All integers are little-endian.

pub(super) const HEADER_LENGTH: usize = 12;

/// The value with this version and payload.
pub fn sealed(version: u64, payload: &[u8]) -> Vec<u8> {
    let mut value = unsealed();
    value.extend_from_slice(payload);
    seal(&mut value, version);
    value
}

/// Starts a value: append the payload, then [`seal`] it.
pub fn unsealed() -> Vec<u8> {
    vec![0; HEADER_LENGTH]
}

/// Fills in the header of a value that was started with [`unsealed`].
pub fn seal(value: &mut [u8], version: u64) {
    let Some((header, payload)) = value.split_first_chunk_mut::<HEADER_LENGTH>() else { return };
    header[..8].copy_from_slice(&version.to_le_bytes());
    header[8..].copy_from_slice(&checksum(&version.to_le_bytes(), payload).to_le_bytes());
}

/// Opens a stored value, and returns its version and payload. The error describes the damage.
pub fn open(value: &[u8]) -> Result<(u64, &[u8]), String> {
    let too_short = || format!("{} bytes are too few, an envelope alone takes {HEADER_LENGTH}", value.len());
    let (version, rest) = value.split_first_chunk::<8>().ok_or_else(too_short)?;
    let (stored, payload) = rest.split_first_chunk::<4>().ok_or_else(too_short)?;
    let (stored, found) = (u32::from_le_bytes(*stored), checksum(version, payload));
    if stored != found {
        return Err(format!("its checksum is {found:08x}, but {stored:08x} was stored with it"));
    }
    Ok((u64::from_le_bytes(*version), payload))
}

/// The version in the value, even if the value is damaged. If it is missing, a number that no version has reached, so
/// that readers who know the right version see that theirs is old.
fn claimed_version(value: &[u8]) -> u64 {
    value.first_chunk().map_or(1 << 32, |version| u64::from_le_bytes(*version))
}

/// A stored value that is about to be replaced.
pub(super) struct Replaced<'a> {
    /// The version in the value, even if the value is damaged.
    version: u64,
    /// The payload, or a description of the damage.
    pub payload: Result<&'a [u8], String>,
}

impl<'a> Replaced<'a> {
    pub fn of(value: &'a [u8]) -> Self {
        Self { version: claimed_version(value), payload: open(value).map(|(_, payload)| payload) }
    }

    /// The version of this payload as the new value, at least `least`; `None` if it is stored already.
    pub fn next_version(&self, payload: &[u8], least: u64) -> Option<u64> {
        let is_stored = self.payload == Ok(payload) && self.version >= least;
        (!is_stored).then(|| self.version.saturating_add(1).max(least))
    }
}

fn checksum(version: &[u8; 8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(version);
    hasher.update(payload);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Promise, world format: The envelope of a stored value has the documented bytes.
    #[test]
    fn layout_is_as_documented() {
        let value = sealed(0x0102_0304, b"payload");
        assert_eq!(value[..8], [4, 3, 2, 1, 0, 0, 0, 0]);
        assert_eq!(value[8..12], crc32fast::hash(b"\x04\x03\x02\x01\0\0\0\0payload").to_le_bytes());
        assert_eq!(&value[12..], b"payload");
    }

    proptest! {
        #[test]
        fn a_sealed_value_opens_unchanged(version: u64, payload in proptest::collection::vec(any::<u8>(), 0..200)) {
            let value = sealed(version, &payload);
            prop_assert_eq!(open(&value), Ok((version, &payload[..])));
            prop_assert_eq!(claimed_version(&value), version);
        }

        /// Promise, crashes: Every stored value has a checksum.
        #[test]
        fn every_flipped_bit_and_every_cut_is_found(
            payload in proptest::collection::vec(any::<u8>(), 0..200),
            at: prop::sample::Index,
            bit in 0..8_u8,
        ) {
            let mut value = sealed(7, &payload);
            let at = at.index(value.len());
            prop_assert!(open(&value[..at]).is_err());
            value[at] ^= 1 << bit;
            prop_assert!(open(&value).is_err_and(|reason| reason.starts_with("its checksum is")));
        }
    }
}
