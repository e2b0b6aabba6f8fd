//! Reading all of what is stored, in pages, past what cannot be read.

use super::backends::store::entry_bytes;
use super::{Family, KeyValue, KeyValueStore, PageLimit, StoreError, keys};
use crate::work::Progress;
use std::collections::VecDeque;
use std::fmt;
use std::ops::{ControlFlow, Range};

/// What is held of a walk at a time: entries, and bytes of them, for values may be megabytes.
const PAGE: PageLimit = PageLimit { entries: 1024, bytes: 4 << 20 };

/// Keys whose values a store cannot read: some, or all there are between two keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableRange {
    /// In which family.
    pub family: Family,
    /// All before it can be read.
    pub first: Vec<u8>,
    /// From here on can be read.
    pub end: Vec<u8>,
    /// What the store said.
    pub reason: String,
}

impl fmt::Display for UnreadableRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { family, first, end, reason } = self;
        write!(f, "keys of {family} from {} to {} cannot be read: {reason}", Hex(first), Hex(end))
    }
}

/// The bytes of a key, all in a row.
pub(super) struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What a walk comes across.
pub(super) enum Found<'a> {
    /// Some entries, keys ascending.
    Page(Family, &'a [KeyValue]),
    /// Something that was left out.
    Unreadable(UnreadableRange),
}

/// A range of all keys of a family that a world may have. None of them begins with so many times the highest byte.
pub(super) fn all_keys() -> Range<Vec<u8>> {
    Vec::new()..vec![u8::MAX; 256]
}

/// A walk over ranges of keys.
pub(super) struct Walk<'a, P> {
    store: &'a dyn KeyValueStore,
    ranges: VecDeque<(Family, Range<Vec<u8>>)>,
    /// The entries of the first range so far, if all of a family is to be in it and could be read.
    seen: Option<u64>,
    /// About the bytes of all ranges.
    all: Option<u64>,
    done: Progress,
    progress: P,
}

impl<'a, P: FnMut(&Progress) -> ControlFlow<()>> Walk<'a, P> {
    /// `progress` is told after each page how far the walk is, and can stop it.
    pub fn new(
        store: &'a dyn KeyValueStore,
        ranges: impl IntoIterator<Item = (Family, Range<Vec<u8>>)>,
        progress: P,
    ) -> Result<Self, StoreError> {
        let ranges = ranges.into_iter().collect();
        let mut walk = Self { store, ranges, seen: None, all: None, done: Progress::default(), progress };
        walk.all = walk.bytes_left()?;
        walk.begin_range();
        Ok(walk)
    }

    /// Shows all entries to `visit`, which may stop it with an error.
    pub fn run<E: From<StoreError>>(
        &mut self,
        mut visit: impl FnMut(Found) -> Result<(), E>,
    ) -> Result<ControlFlow<()>, E> {
        let mut limit = PAGE;
        while let Some((family, range)) = self.ranges.front_mut() {
            let family = *family;
            match self.store.scan_page(family, &range.start..&range.end, limit) {
                Ok(page) => {
                    match page.last() {
                        Some((last, _)) => range.start = keys::after(last),
                        None => {
                            if let Some(range) = self.unseen(family)? {
                                visit(Found::Unreadable(range))?;
                            }
                            self.ranges.pop_front();
                            self.begin_range();
                        }
                    }
                    if !page.is_empty() {
                        self.done.done += page.len() as u64;
                        self.seen = self.seen.map(|seen| seen + page.len() as u64);
                        self.done.bytes += page.iter().map(entry_bytes).sum::<usize>() as u64;
                        visit(Found::Page(family, &page))?;
                        limit.entries = PAGE.entries.min(limit.entries * 2);
                    }
                }
                // All before what cannot be read comes first.
                Err(StoreError::Damaged { .. }) if limit.entries > 1 => limit.entries /= 2,
                Err(StoreError::Damaged { reason, .. }) => {
                    let end = Search { store: self.store, family, range: range.clone() }.run()?;
                    let first = std::mem::replace(&mut range.start, end.clone());
                    self.seen = None;
                    visit(Found::Unreadable(UnreadableRange { family, first, end, reason }))?;
                }
                Err(error) => return Err(error.into()),
            }
            let left = self.bytes_left()?;
            self.done.fraction = self.all.zip(left).map(|(all, left)| 1.0 - left.min(all) as f64 / all.max(1) as f64);
            let told = (self.progress)(&self.done);
            if told.is_break() {
                return Ok(told);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn begin_range(&mut self) {
        self.seen = self.ranges.front().and_then(|(_, range)| (*range == all_keys()).then_some(0));
    }

    /// All of a family, if its store knows of another number of entries than were seen: an error that it did not notice.
    fn unseen(&self, family: Family) -> Result<Option<UnreadableRange>, StoreError> {
        let Some(seen) = self.seen else { return Ok(None) };
        let expected = self.store.expected_entries(family)?.filter(|expected| !expected.contains(&seen));
        Ok(expected.map(|expected| {
            let (least, most) = expected.into_inner();
            let reason = format!("{seen} entries were read, but its tables have {least} to {most}");
            let Range { start: first, end } = all_keys();
            UnreadableRange { family, first, end, reason }
        }))
    }

    /// What was looked at.
    pub fn done(&self) -> Progress {
        self.done
    }

    fn bytes_left(&self) -> Result<Option<u64>, StoreError> {
        let bytes = |(family, range): &(Family, Range<Vec<u8>>)| {
            self.store.approximate_range_bytes(*family, &range.start..&range.end)
        };
        self.ranges.iter().map(bytes).sum()
    }
}

/// The search for the end of what cannot be read. A store fails wherever it would have to look at it, so keys are tried at
/// distances that double, and what lies between the last that failed and the first that did not is halved.
struct Search<'a> {
    store: &'a dyn KeyValueStore,
    family: Family,
    /// From its start nothing can be read.
    range: Range<Vec<u8>>,
}

impl Search<'_> {
    /// The first key from which something can be read, or the end of the range.
    fn run(&self) -> Result<Vec<u8>, StoreError> {
        let width = self.width();
        let mut last = number(&self.range.start, width);
        let start = last.clone();
        let mut end = vec![u8::MAX; width];
        for bit in 0..width * 8 {
            let Some(next) = plus_power(&start, bit) else { break };
            if self.is_readable(&next)? {
                end = next;
                break;
            }
            last = next;
        }
        while let Some(middle) = middle(&last, &end) {
            match self.is_readable(&middle)? {
                true => end = middle,
                false => last = middle,
            }
        }
        let behind = keys::after(&self.range.start);
        Ok(end.max(behind).min(self.range.end.clone()))
    }

    /// The bytes of a key that are looked at: of a longer one the rest makes no difference worth the time.
    fn width(&self) -> usize {
        match self.family {
            Family::Chunks | Family::WarmChunks | Family::ColdChunks => keys::CHUNK_KEY_LENGTH,
            Family::Entities => keys::ENTITY_KEY_LENGTH,
            Family::Opacity => keys::OPACITY_KEY_LENGTH,
            Family::Registry | Family::Meta => 64,
        }
    }

    fn is_readable(&self, key: &[u8]) -> Result<bool, StoreError> {
        if key >= &self.range.end[..] {
            return Ok(true);
        }
        match self.store.scan_page(self.family, key..&self.range.end, PageLimit { entries: 1, bytes: 1 }) {
            Ok(_) => Ok(true),
            Err(StoreError::Damaged { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// The first bytes of a key as one number, highest first.
fn number(key: &[u8], width: usize) -> Vec<u8> {
    let mut number = key[..key.len().min(width)].to_vec();
    number.resize(width, 0);
    number
}

/// `number` + 2^`bit`; `None` if it has no room for that.
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

/// The number in the middle of two; `None` if there is none between them.
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
