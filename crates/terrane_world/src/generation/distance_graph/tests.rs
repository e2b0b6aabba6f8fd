//! Compares the graph with a set of columns.

mod model;
mod scenarios;
mod workload;
mod workloads;

use super::*;

impl DistanceGraph {
    /// The heap memory of completed and claimed columns in bytes.
    pub(super) fn memory(&self) -> usize {
        self.tree.memory()
    }
}

/// All columns of the disc in no particular order, without any beyond `i64`.
fn disc(center: ColumnPos, radius: u32) -> impl Iterator<Item = ColumnPos> {
    let r = i64::from(radius);
    (-r..=r).flat_map(move |dz| {
        (-r..=r)
            .filter(move |dx| dx * dx + dz * dz <= r * r)
            .filter_map(move |dx| Some(ColumnPos::new(center.x.checked_add(dx)?, center.z.checked_add(dz)?)))
    })
}

#[test]
fn a_long_row_of_columns_takes_some_bytes_for_each() {
    let mut graph = DistanceGraph::default();
    assert!((0..20_000).all(|x| graph.mark_completed(ColumnPos::new(x, 0))));
    assert!(graph.memory() < 100_000, "{} bytes", graph.memory());
}
