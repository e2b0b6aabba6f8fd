//! Computes how much of each of several discs is not covered by the discs before it, and how far loading and generating have come.
//!
//! With these shares, the missing columns of all discs together follow from those of each disc, without a walk over all
//! columns. The result is exact where discs do not overlap. Where they do, it is an estimate that assumes an even spread of
//! missing columns. It is 0 if and only if nothing is missing.

use crate::generation::{Completion, DistanceGraph};
use crate::space::{ColumnArea, ColumnPos};
use std::collections::BTreeMap;

/// The area of one disc, in columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    pub center: ColumnPos,
    pub radius: u32,
    /// The number of its columns.
    pub all: u64,
    /// The number of its columns that no disc before it covers.
    pub columns: u64,
}

/// The shares of the discs, largest disc first, without those that others cover.
pub fn shares(discs: impl IntoIterator<Item = (ColumnPos, u32)>) -> Vec<Share> {
    // For each z the covered stretches of x: disjoint, not touching, sorted, both ends included.
    let mut covered: BTreeMap<i64, Vec<(i64, i64)>> = BTreeMap::new();
    let mut discs: Vec<_> = discs.into_iter().collect();
    // The largest come first, since most others lie in them.
    discs.sort_by_key(|(center, radius)| (std::cmp::Reverse(*radius), *center));
    discs.dedup();
    let mut shares = Vec::new();
    for (center, radius) in discs {
        let (mut all, mut new) = (0, 0);
        for (z, half) in rows(radius) {
            let Some(row) = center.z.checked_add(z) else { continue };
            let (from, to) = (center.x.saturating_sub(half), center.x.saturating_add(half));
            all += to.abs_diff(from) + 1;
            new += add(covered.entry(row).or_default(), from, to);
        }
        if new > 0 {
            shares.push(Share { center, radius, all, columns: new });
        }
    }
    shares
}

/// For each z of a disc around 0 the greatest x.
fn rows(radius: u32) -> impl Iterator<Item = (i64, i64)> {
    let radius = i64::from(radius);
    (-radius..=radius).map(move |z| (z, (radius * radius - z * z).isqrt()))
}

/// Adds a stretch to those of a row. Returns how many of its columns are new.
fn add(stretches: &mut Vec<(i64, i64)>, from: i64, to: i64) -> u64 {
    let length = |(from, to): (i64, i64)| to.abs_diff(from) + 1;
    let first = stretches.partition_point(|(_, end)| end.saturating_add(1) < from);
    let last = stretches.partition_point(|(start, _)| *start <= to.saturating_add(1));
    let joined = &stretches[first..last];
    let known: u64 = joined.iter().copied().map(length).sum();
    let start = joined.first().map_or(from, |(start, _)| from.min(*start));
    let end = joined.last().map_or(to, |(_, end)| to.max(*end));
    stretches.splice(first..last, [(start, end)]);
    length((start, end)) - known
}

/// The areas of viewers' discs, with the last count.
pub struct Coverage {
    shares: Vec<Share>,
    /// The changes of the graph until then, and the count.
    last: Option<(u64, Completion)>,
}

impl Coverage {
    pub fn new(discs: impl Iterator<Item = (ColumnPos, u32)>) -> Self {
        Self { shares: shares(discs), last: None }
    }

    /// The completion of the graph in these areas. Counts only if the graph has changed.
    pub fn completion(&mut self, graph: &DistanceGraph) -> Completion {
        let changes = graph.changes();
        if let Some((at, known)) = self.last
            && at == changes
        {
            return known;
        }
        let missing = |share: &Share| {
            let disc = ColumnArea::Disc { center: share.center, radius: share.radius };
            let missing = graph.count_missing_in(&disc);
            // Rounded up: the result is 0 only if nothing is missing.
            (missing as f64 * (share.columns as f64 / share.all as f64)).ceil() as u64
        };
        let total = self.shares.iter().map(|share| share.columns).sum();
        let counted = Completion { missing: self.shares.iter().map(missing).sum(), total };
        self.last = Some((changes, counted));
        counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn shares_sum_up_to_the_area_of_all_discs(discs in vec((-20..20_i64, -20..20_i64, 0..12_u32), 0..12)) {
            let discs: Vec<_> = discs.into_iter().map(|(x, z, radius)| (ColumnPos::new(x, z), radius)).collect();
            let mut covered = BTreeSet::new();
            for (center, radius) in &discs {
                let range = -i64::from(*radius)..=i64::from(*radius);
                for (x, z) in range.clone().flat_map(|z| range.clone().map(move |x| (x, z))) {
                    let column = ColumnPos::new(center.x + x, center.z + z);
                    if column.distance_squared(*center) <= u128::from(radius * radius) {
                        covered.insert(column);
                    }
                }
            }
            let shares = shares(discs);
            prop_assert_eq!(shares.iter().map(|share| share.columns).sum::<u64>(), covered.len() as u64);
            prop_assert!(shares.iter().all(|share| 0 < share.columns && share.columns <= share.all));
        }
    }

    #[test]
    fn a_crowd_counts_once_and_the_edge_of_the_world_is_no_trouble() {
        let center = ColumnPos::new(5, 5);
        let crowd = shares((0..100).map(|_| (center, 64)).chain([(ColumnPos::new(7, 9), 8)]));
        assert_eq!(crowd.len(), 1);
        assert_eq!(crowd[0].columns, crowd[0].all);
        let edge = shares([(ColumnPos::new(i64::MAX, i64::MIN), 3), (ColumnPos::new(i64::MAX - 1, i64::MIN), 3)]);
        assert!(edge.iter().map(|share| share.columns).sum::<u64>() > 10);
    }

    #[test]
    fn a_count_is_repeated_when_another_column_is_missing() {
        let (inside, outside) = (ColumnPos::new(1, 0), ColumnPos::new(50, 0));
        let mut coverage = Coverage::new([(ColumnPos::new(0, 0), 1)].into_iter());
        let mut graph = DistanceGraph::new();
        graph.mark_completed(inside);
        let counted = |coverage: &mut Coverage, graph: &DistanceGraph| {
            let Completion { missing, total } = coverage.completion(graph);
            (missing, total)
        };
        assert_eq!(counted(&mut coverage, &graph), (4, 5));
        assert_eq!(counted(&mut coverage, &graph), (4, 5));
        // As many columns are completed as before.
        graph.unmark(inside);
        graph.mark_completed(outside);
        assert_eq!(counted(&mut coverage, &graph), (5, 5));
        graph.mark_completed(inside);
        assert_eq!(counted(&mut coverage, &graph), (4, 5));
    }
}
