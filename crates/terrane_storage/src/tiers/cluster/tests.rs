//! Clusters, their parts and their damage.

use super::*;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

impl Part<'_> {
    /// The same group with other stored bytes; `raw_length` is 0 if they are uncompressed.
    pub(crate) fn stored_as(&self, bytes: Vec<u8>, raw_length: u32) -> Part<'static> {
        Part { chunks: self.chunks, raw_length, checksum: crc32fast::hash(&bytes), bytes: bytes.into() }
    }
}

type Groups = BTreeMap<u8, BTreeMap<usize, Vec<u8>>>;

fn groups() -> impl Strategy<Value = Groups> {
    let value = prop_oneof![vec(any::<u8>(), 1..40), (any::<u8>(), 1..400_usize).prop_map(|(byte, n)| vec![byte; n])];
    btree_map(0..64_u8, btree_map(0..GROUP_VOLUME, value, 1..6), 0..6)
}

fn pack(groups: &Groups) -> Parts<'static> {
    let part = |values: &BTreeMap<usize, Vec<u8>>| Part::pack(values.iter().map(|(place, value)| (*place, &value[..])));
    groups.iter().map(|(place, values)| (*place, part(values).unwrap())).collect()
}

fn unpack(part: &Part) -> Result<BTreeMap<usize, Vec<u8>>, String> {
    Ok(values(&part.unpack()?).map(|(place, value)| (place, value.to_vec())).collect())
}

proptest! {
    /// Promise, tiers: Each chunk group in a warm or cold value is a cluster of scale 1, compressed by zstd.
    #[test]
    fn packed_chunks_unpack_unchanged(groups in groups()) {
        let parts = pack(&groups);
        let value = encode(&parts);
        let opened = open(&value).unwrap();
        prop_assert_eq!(&opened, &parts);
        for (place, part) in &opened {
            let mask = groups[place].keys().fold(0_u64, |mask, place| mask | 1 << place);
            prop_assert_eq!(part.chunks, mask);
            prop_assert_eq!(&unpack(part).unwrap(), &groups[place]);
        }
        prop_assert_eq!(encode(&opened), value);
    }

    /// With any bit flipped, the cluster opens, at most one group is unreadable, and no group has wrong contents.
    ///
    /// Promise, tiers: A flipped bit in a warm or cold value damages at most one chunk group, and its chunks are named.
    #[test]
    fn a_flipped_bit_damages_one_group_at_most(groups in groups(), at: prop::sample::Index, bit in 0..8_u8) {
        let mut value = encode(&pack(&groups));
        let at = at.index(value.len());
        value[at] ^= 1 << bit;
        let opened = open(&value).unwrap();
        prop_assert!(opened.keys().eq(groups.keys()));
        let read: Vec<_> = opened.iter().map(|(place, part)| (place, unpack(part))).collect();
        prop_assert!(read.iter().filter(|(_, read)| read.is_err()).count() <= 1);
        for (place, read) in read {
            if let Ok(read) = read {
                prop_assert_eq!(&read, &groups[place]);
            }
        }
        // After rewriting, the damage and its place are still known.
        let damaged = opened.iter().filter(|(_, part)| unpack(part).is_err()).map(|(place, _)| *place).collect::<Vec<_>>();
        let again = encode(&opened);
        let again = open(&again).unwrap();
        prop_assert!(again.iter().all(|(place, part)| unpack(part).is_err() == damaged.contains(place)));
    }

    #[test]
    fn random_bytes_never_panic(value in vec(any::<u8>(), 0..300), cut: prop::sample::Index, groups in groups()) {
        let _ = open(&value).map(|parts| parts.values().map(unpack).collect::<Vec<_>>());
        let whole = encode(&pack(&groups));
        let mut torn = whole[..cut.index(whole.len())].to_vec();
        let _ = open(&torn).map(|parts| parts.values().map(unpack).collect::<Vec<_>>());
        torn.extend(value);
        let _ = open(&torn).map(|parts| parts.values().map(unpack).collect::<Vec<_>>());
    }
}

#[test]
fn an_unknown_version_is_not_reported_as_damage() {
    let mut value = encode(&pack(&[(3, [(5, vec![1, 2, 3])].into())].into()));
    let end = value.len() - 4;
    value[0] = 2;
    value[end] = 2;
    let table = value.len() - END - u32_at(&value, end - 4).unwrap() as usize;
    value[table] = 2;
    assert!(open(&value).unwrap_err().starts_with("it has version 2,"));
    value[end] = 3;
    let damaged = |length: usize| Err(format!("both tables of the cluster are damaged, in {length} bytes"));
    assert_eq!((open(&value), open(&[])), (damaged(value.len()), damaged(0)));
}

#[test]
fn a_group_that_claims_too_much_allocates_nothing() {
    let bytes = vec![1; 10];
    let checksum = crc32fast::hash(&bytes);
    let part = Part { chunks: 1, raw_length: u32::MAX, checksum, bytes: bytes.into() };
    assert!(part.unpack().err().unwrap().contains(&format!("would take {} bytes", u32::MAX)));
}

/// Promise, tiers: A chunk group of more than 64 MiB stays hot.
#[test]
fn a_group_that_is_too_large_is_not_packed() {
    let half = vec![0; LARGEST_GROUP / 2];
    assert!(Part::pack([(0, &half[..])]).is_some());
    assert!(Part::pack([(0, &half[..]), (1, &half[..])]).is_none());
}

/// Promise, tiers: The value of a warm or cold key has the documented bytes.
#[test]
fn the_layout_is_as_documented() {
    let value = encode(&pack(&[(2, [(0, vec![7]), (63, vec![9])].into())].into()));
    assert_eq!(value[..4], [1, 0, 0, 0]);
    assert_eq!(value[4..12], 4_u64.to_le_bytes());
    assert_eq!(value[12..20], (1_u64 | 1 << 63).to_le_bytes());
    let length = u32_at(&value, 20).unwrap() as usize;
    assert_eq!(u32_at(&value, 28), Some(crc32fast::hash(&value[36..36 + length])));
    assert_eq!(u32_at(&value, 32), Some(crc32fast::hash(&value[..32])));
    assert_eq!(value[36 + length..72 + length], value[..36]);
    assert_eq!(value[72 + length..], [36, 0, 0, 0, 1, 0, 0, 0]);
}
