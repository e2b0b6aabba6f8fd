//! Sets of chunk heights.

use std::fmt;
use std::iter;
use std::ops::Range;

/// A set of chunk heights, as ascending ranges with gaps between them.
///
/// ```
/// use terrane_world::space::HeightSet;
///
/// let mut heights = HeightSet::from(0..4);
/// heights.insert(4..6);
/// heights.insert(100..101);
/// heights.remove(1..2);
/// assert!(heights.ranges().eq([0..1, 2..6, 100..101]));
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct HeightSet {
    /// Ascending and not empty, with gaps between them.
    ranges: Vec<Range<i64>>,
}

impl HeightSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self { ranges: Vec::new() }
    }

    /// Returns `true` if the set is empty.
    pub const fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The number of heights.
    pub fn len(&self) -> u64 {
        self.ranges.iter().map(|range| range.end.abs_diff(range.start)).sum()
    }

    /// Returns `true` if the set contains the height.
    #[inline]
    pub fn contains(&self, height: i64) -> bool {
        let next = self.ranges.partition_point(|range| range.end <= height);
        self.ranges.get(next).is_some_and(|range| range.start <= height)
    }

    /// Returns `true` if `other` is a subset of this set.
    pub fn contains_all(&self, other: &Self) -> bool {
        other.ranges.iter().all(|wanted| {
            let next = self.ranges.partition_point(|range| range.end <= wanted.start);
            self.ranges.get(next).is_some_and(|range| range.start <= wanted.start && wanted.end <= range.end)
        })
    }

    /// The ranges, in ascending order, with gaps between them.
    pub fn ranges(&self) -> impl DoubleEndedIterator<Item = Range<i64>> + ExactSizeIterator {
        self.ranges.iter().cloned()
    }

    /// The heights, in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = i64> {
        self.ranges().flatten()
    }

    /// Adds a range.
    pub fn insert(&mut self, range: Range<i64>) {
        if range.is_empty() {
            return;
        }
        if self.ranges.last().is_none_or(|highest| highest.end < range.start) {
            return self.ranges.push(range);
        }
        // Merge the ranges that overlap or touch the new one.
        let first = self.ranges.partition_point(|known| known.end < range.start);
        let last = self.ranges.partition_point(|known| known.start <= range.end);
        let joined = self.ranges[first..last].iter();
        let whole = joined.fold(range, |all, known| all.start.min(known.start)..all.end.max(known.end));
        self.ranges.splice(first..last, [whole]);
    }

    /// Removes a range.
    pub fn remove(&mut self, range: Range<i64>) {
        if range.is_empty() {
            return;
        }
        let first = self.ranges.partition_point(|known| known.end <= range.start);
        let last = self.ranges.partition_point(|known| known.start < range.end);
        let cut = self.ranges[first..last].iter();
        let rest: Vec<_> = cut
            .flat_map(|known| [known.start..range.start.min(known.end), range.end.max(known.start)..known.end])
            .filter(|rest| !rest.is_empty())
            .collect();
        self.ranges.splice(first..last, rest);
    }

    /// Replaces the 16 heights from `bottom` on with those whose bit is set, bit 0 for the lowest. The set never
    /// contains the highest `i64`.
    #[doc(hidden)]
    pub fn set_window(&mut self, bottom: i64, mask: u16) {
        const MAX_RUNS: usize = u16::BITS as usize / 2;
        let runs = runs_of(bottom, mask);
        if self.ranges.last().is_none_or(|highest| highest.end <= bottom) {
            return runs.for_each(|run| match self.ranges.last_mut() {
                Some(below) if below.end == run.start => below.end = run.end,
                _ => self.ranges.push(run),
            });
        }
        let top = bottom.saturating_add(u16::BITS.into());
        let first = self.ranges.partition_point(|known| known.end < bottom);
        let count = self.ranges[first..].partition_point(|known| known.start <= top);
        let old = &self.ranges[first..first + count];
        // Keep the part of the lowest range below the window and the part of the highest range above it.
        let below = old.first().map(|lowest| lowest.start.min(bottom)..bottom);
        let above = old.last().map(|highest| top..highest.end.max(top));
        let mut new = [const { 0..0 }; MAX_RUNS + 2];
        let mut length = 0;
        for range in below.into_iter().chain(runs).chain(above).filter(|range| !range.is_empty()) {
            match new[..length].last_mut() {
                Some(below) if below.end == range.start => below.end = range.end,
                _ => {
                    new[length] = range;
                    length += 1;
                }
            }
        }
        let new = &new[..length];
        if count == length {
            self.ranges[first..first + count].clone_from_slice(new);
        } else {
            self.ranges.splice(first..first + count, new.iter().cloned());
        }
    }

    /// Adds all heights of `other`.
    pub fn insert_all(&mut self, other: &Self) {
        other.ranges().for_each(|range| self.insert(range));
    }

    /// Removes all heights of `other`.
    pub fn remove_all(&mut self, other: &Self) {
        other.ranges().for_each(|range| self.remove(range));
    }

    /// The heights that are not in `other`.
    pub fn difference(&self, other: &Self) -> Self {
        let mut rest = self.clone();
        rest.remove_all(other);
        rest
    }

    /// The heights that are in both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        self.difference(&self.difference(other))
    }
}

/// The runs of set bits, bit 0 at `bottom`. No run is empty, and none touches the next.
fn runs_of(bottom: i64, mask: u16) -> impl Iterator<Item = Range<i64>> {
    let (mut rest, mut at) = (mask, bottom);
    let next = move || {
        let gap = rest.trailing_zeros();
        let length = rest.checked_shr(gap)?.trailing_ones();
        let start = at.saturating_add(gap.into());
        at = start.saturating_add(length.into());
        rest = rest.checked_shr(gap + length).unwrap_or(0);
        Some(start..at)
    };
    iter::from_fn(next).filter(|run| !run.is_empty())
}

impl From<Range<i64>> for HeightSet {
    fn from(range: Range<i64>) -> Self {
        let mut heights = Self::new();
        heights.insert(range);
        heights
    }
}

impl FromIterator<i64> for HeightSet {
    /// # Panics
    /// If the heights include the highest `i64`, where no chunk lies.
    fn from_iter<I: IntoIterator<Item = i64>>(heights: I) -> Self {
        let mut set = Self::new();
        heights.into_iter().for_each(|height| set.insert(height..height + 1));
        set
    }
}

impl fmt::Debug for HeightSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(&self.ranges).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn range() -> impl Strategy<Value = Range<i64>> {
        (-20..20_i64, 0..8_i64).prop_map(|(start, length)| start..start + length)
    }

    #[test]
    fn ranges_reach_the_edges() {
        let mut heights = HeightSet::from(i64::MIN..i64::MAX);
        assert_eq!(heights.len(), u64::MAX);
        heights.remove(i64::MIN + 1..i64::MAX - 1);
        assert!(heights.iter().eq([i64::MIN, i64::MAX - 1]));
        assert_eq!(format!("{heights:?}"), format!("{{{:?}, {:?}}}", i64::MIN..i64::MIN + 1, i64::MAX - 1..i64::MAX));
    }

    proptest! {
        #[test]
        fn a_window_is_set_bit_by_bit(
            before in prop::collection::vec(range(), 0..12),
            bottom in prop_oneof![-40..40_i64, Just(i64::MIN), i64::MAX - 20..i64::MAX - 14],
            mask: u16,
        ) {
            let mut set = HeightSet::new();
            before.into_iter().for_each(|range| set.insert(range));
            let mut model = set.clone();
            model.remove(bottom..bottom.saturating_add(16));
            for height in (0..16).filter(|bit| mask >> bit & 1 == 1).map(|bit| bottom.saturating_add(bit)) {
                model.insert(height..height.saturating_add(1));
            }
            set.set_window(bottom, mask);
            prop_assert_eq!(&set, &model);
            set.set_window(bottom, mask);
            prop_assert_eq!(set, model);
        }

        #[test]
        fn it_is_a_set_of_heights(
            changes in prop::collection::vec((any::<bool>(), range()), 0..40),
            others in prop::collection::vec(range(), 0..5),
        ) {
            let (mut set, mut model) = (HeightSet::new(), BTreeSet::new());
            for (inserts, range) in changes {
                match inserts {
                    true => {
                        set.insert(range.clone());
                        model.extend(range);
                    }
                    false => {
                        set.remove(range.clone());
                        model.retain(|height| !range.contains(height));
                    }
                }
                prop_assert!(set.iter().eq(model.iter().copied()));
                prop_assert_eq!(set.len(), model.len() as u64);
                prop_assert_eq!(set.is_empty(), model.is_empty());
                let ranges: Vec<_> = set.ranges().collect();
                prop_assert!(ranges.iter().all(|range| !range.is_empty()));
                prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start), "{ranges:?}");
                prop_assert!((-30..30).all(|height| set.contains(height) == model.contains(&height)));
            }
            let mut other = HeightSet::new();
            others.iter().cloned().for_each(|range| other.insert(range));
            let model_of_other: BTreeSet<i64> = others.into_iter().flatten().collect();
            prop_assert!(set.difference(&other).iter().eq(model.difference(&model_of_other).copied()));
            prop_assert!(set.intersection(&other).iter().eq(model.intersection(&model_of_other).copied()));
            prop_assert_eq!(set.contains_all(&other), model.is_superset(&model_of_other));
            prop_assert_eq!(model.iter().copied().collect::<HeightSet>(), set.clone());
            let mut both = set;
            both.insert_all(&other);
            prop_assert!(both.iter().eq(model.union(&model_of_other).copied()));
        }
    }
}
