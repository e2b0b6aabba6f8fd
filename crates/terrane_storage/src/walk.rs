//! Walks over all stored data, page by page, past unreadable parts.

use super::backends::store::entry_bytes;
use super::{Family, KeyValue, KeyValueStore, StoreError, keys};
use crate::work::Progress;
use std::collections::VecDeque;
use std::mem;
use std::ops::{ControlFlow, Range};

/// The maximum number of entries of a page, and their bytes, since values may be megabytes.
const PAGE_ENTRIES: usize = 1024;
const PAGE_BYTES: usize = 4 << 20;

/// A range of keys in which some or all values are unreadable, and the store's message.
pub(super) type Unreadable = (Range<Vec<u8>>, String);

/// The range of all keys of a family that a world may have.
pub(super) fn all_keys() -> Range<Vec<u8>> {
    keys::range_of(b"")
}

/// Calls `visit` with all entries of some ranges, in ascending order of keys, and with the ranges of unreadable ones.
/// `visit` may stop the walk with an error. `progress` is called after each page, and can stop the walk. Returns the
/// final progress, and whether the walk is complete.
pub(super) fn walk<E: From<StoreError>>(
    store: &dyn KeyValueStore,
    ranges: impl IntoIterator<Item = (Family, Range<Vec<u8>>)>,
    mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    mut visit: impl FnMut(Family, Result<&[KeyValue], Unreadable>) -> Result<(), E>,
) -> Result<(Progress, bool), E> {
    let mut ranges: VecDeque<_> = ranges.into_iter().collect();
    let (all, mut done) = (approximate_bytes(store, &ranges)?, Progress::default());
    let mut most_entries = PAGE_ENTRIES;
    // The number of entries of the first range so far, if the range is a whole family and was readable so far.
    let none_seen =
        |ranges: &VecDeque<(Family, Range<Vec<u8>>)>| ranges.front().filter(|of| of.1 == all_keys()).map(|_| 0);
    let mut seen = none_seen(&ranges);
    while let Some((family, range)) = ranges.front_mut() {
        let family = *family;
        match store.scan_page(family, &range.start..&range.end, most_entries, PAGE_BYTES) {
            Ok(page) if page.is_empty() => {
                if let Some(reason) = unseen(store, family, seen)? {
                    visit(family, Err((all_keys(), reason)))?;
                }
                ranges.pop_front();
                seen = none_seen(&ranges);
            }
            Ok(page) => {
                page.last().into_iter().for_each(|(last, _)| range.start = keys::after(last));
                done.done += page.len() as u64;
                seen = seen.map(|seen| seen + page.len() as u64);
                done.bytes += page.iter().map(entry_bytes).sum::<usize>() as u64;
                visit(family, Ok(&page))?;
                most_entries = PAGE_ENTRIES.min(most_entries * 2);
            }
            // Smaller pages find the entries before the unreadable one.
            Err(StoreError::Damaged { .. }) if most_entries > 1 => most_entries /= 2,
            Err(StoreError::Damaged { reason, .. }) => {
                let end = first_readable(store, family, range)?;
                let first = mem::replace(&mut range.start, end.clone());
                seen = None;
                visit(family, Err((first..end, reason)))?;
            }
            Err(error) => return Err(error.into()),
        }
        let left = approximate_bytes(store, &ranges)?;
        done.fraction = all.zip(left).map(|(all, left)| 1.0 - left.min(all) as f64 / all.max(1) as f64);
        if progress(&done).is_break() {
            return Ok((done, false));
        }
    }
    Ok((done, true))
}

fn approximate_bytes(
    store: &dyn KeyValueStore,
    ranges: &VecDeque<(Family, Range<Vec<u8>>)>,
) -> Result<Option<u64>, StoreError> {
    ranges.iter().map(|(family, range)| store.approximate_range_bytes(*family, &range.start..&range.end)).sum()
}

/// Describes the difference if the store expects another number of entries in a family than were seen, which is damage
/// that the store itself did not notice.
fn unseen(store: &dyn KeyValueStore, family: Family, seen: Option<u64>) -> Result<Option<String>, StoreError> {
    let Some(seen) = seen else { return Ok(None) };
    let expected = store.expected_entries(family)?.filter(|expected| !expected.contains(&seen));
    Ok(expected.map(|expected| {
        let (least, most) = expected.into_inner();
        format!("{seen} entries were read, but its tables have {least} to {most}")
    }))
}

/// The first readable key of the range, whose start is unreadable, or the end of the range. A store fails whenever it
/// has to look at unreadable data. So keys are tried at doubling distances, and then the gap between the last
/// unreadable and the first readable one is bisected.
fn first_readable(store: &dyn KeyValueStore, family: Family, range: &Range<Vec<u8>>) -> Result<Vec<u8>, StoreError> {
    let is_readable = |key: &[u8]| {
        if key >= &range.end[..] {
            return Ok(true);
        }
        match store.scan_page(family, key..&range.end, 1, 1) {
            Ok(_) => Ok(true),
            Err(StoreError::Damaged { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    };
    let width = key_width(family);
    let start = number(&range.start, width);
    let (mut last, mut end) = (start.clone(), vec![u8::MAX; width]);
    for bit in 0..width * 8 {
        let Some(next) = plus_power(&start, bit) else { break };
        if is_readable(&next)? {
            end = next;
            break;
        }
        last = next;
    }
    while let Some(middle) = middle(&last, &end) {
        match is_readable(&middle)? {
            true => end = middle,
            false => last = middle,
        }
    }
    let behind = keys::after(&range.start);
    Ok(end.max(behind).min(range.end.clone()))
}

/// The number of bytes of a key that the search considers. Further bytes are not worth the time.
fn key_width(family: Family) -> usize {
    match family {
        Family::Chunks | Family::WarmChunks | Family::ColdChunks => keys::CHUNK_KEY_LENGTH,
        Family::Entities => keys::ENTITY_KEY_LENGTH,
        Family::Opacity => keys::OPACITY_KEY_LENGTH,
        Family::Registry | Family::Meta => 64,
    }
}

/// The first bytes of a key as one big-endian number.
fn number(key: &[u8], width: usize) -> Vec<u8> {
    let mut number = key[..key.len().min(width)].to_vec();
    number.resize(width, 0);
    number
}

/// `number` + 2^`bit`; `None` if it overflows.
fn plus_power(number: &[u8], bit: usize) -> Option<Vec<u8>> {
    let mut sum = number.to_vec();
    let place = sum.len().checked_sub(1 + bit / 8)?;
    let (lowest, is_over) = sum[place].overflowing_add(1 << (bit % 8));
    sum[place] = lowest;
    let mut carry = is_over;
    for byte in sum[..place].iter_mut().rev() {
        if !carry {
            break;
        }
        (*byte, carry) = byte.overflowing_add(1);
    }
    (!carry).then_some(sum)
}

/// The number halfway between two numbers; `None` if there is none.
fn middle(low: &[u8], high: &[u8]) -> Option<Vec<u8>> {
    let mut carry = 0;
    let mut sum: Vec<u16> = low.iter().zip(high).map(|(low, high)| u16::from(*low) + u16::from(*high)).collect();
    for byte in sum.iter_mut().rev() {
        *byte += carry;
        carry = *byte >> 8;
        *byte &= 0xff;
    }
    let mut above = carry;
    let half = sum.into_iter().map(|byte| {
        let half = (above << 8 | byte) >> 1;
        above = byte & 1;
        half as u8
    });
    let half: Vec<u8> = half.collect();
    (half.as_slice() > low).then_some(half)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn big(bytes: &[u8]) -> u128 {
        bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
    }

    proptest! {
        #[test]
        fn keys_are_numbers(low: [u8; 4], high: [u8; 4], bit in 0..40_usize) {
            let (a, b) = (big(&low), big(&high));
            if a < b {
                let expected = (a + b) / 2;
                prop_assert_eq!(middle(&low, &high).map(|middle| big(&middle)), (expected > a).then_some(expected));
            }
            let sum = plus_power(&low, bit).map(|sum| big(&sum));
            prop_assert_eq!(sum, Some(a + (1 << bit)).filter(|sum| *sum <= u128::from(u32::MAX)));
            prop_assert_eq!(number(&low, 6), [&low[..], &[0, 0]].concat());
            prop_assert_eq!(number(&low, 2), &low[..2]);
        }
    }
}
