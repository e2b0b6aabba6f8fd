//! How far loading and generating have come around viewers.

use super::shares::{Share, shares};
use crate::generation::{Completion, DistanceGraph};
use crate::space::{ColumnArea, ColumnPos};

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
