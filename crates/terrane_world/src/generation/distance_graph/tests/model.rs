//! Random histories, compared with a slow and obvious model of plain sets.

use super::super::tree::FULL;
use super::super::*;
use super::disc;
use crate::space::ColumnArea;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// The same operations on plain sets of columns, trying every column of the disc.
#[derive(Default)]
struct Model {
    completed: BTreeSet<ColumnPos>,
    claimed: BTreeSet<ColumnPos>,
    /// The columns that each listener has.
    given: BTreeMap<ListenerId, BTreeSet<ColumnPos>>,
}

impl Model {
    fn nearest(&self, center: ColumnPos, radius: u32) -> Option<(BatchPos, u128)> {
        disc(center, radius)
            .filter(|column| !self.completed.contains(column) && !self.claimed.contains(column))
            .map(|column| (column.distance_squared(center), column.batch().z, column.batch().x))
            .min()
            .map(|(distance_squared, z, x)| (BatchPos::new(x, z), distance_squared))
    }

    fn claim(&mut self, batch: BatchPos, center: ColumnPos) -> Option<(BatchPos, Vec<ColumnPos>, u128)> {
        let free = |column: &ColumnPos| !self.completed.contains(column) && !self.claimed.contains(column);
        let mut columns: Vec<_> = batch.columns().filter(free).collect();
        columns.sort_by_key(|column| (column.distance_squared(center), column.z, column.x));
        self.claimed.extend(columns.iter().copied());
        let distance_squared = columns.first()?.distance_squared(center);
        Some((batch, columns, distance_squared))
    }

    fn mark(&mut self, column: ColumnPos) -> bool {
        self.claimed.remove(&column);
        self.completed.insert(column)
    }

    fn unmark(&mut self, column: ColumnPos) -> bool {
        self.given.values_mut().for_each(|given| _ = given.remove(&column));
        self.completed.remove(&column)
    }

    fn collect(&mut self, listener: ListenerId, center: ColumnPos, radius: u32, max: usize) -> Vec<ColumnPos> {
        let given = self.given.get_mut(&listener).unwrap();
        let key = |column: &ColumnPos| (column.distance_squared(center), column.z, column.x);
        let mut batches = BTreeMap::<BatchPos, Vec<ColumnPos>>::new();
        for column in disc(center, radius).filter(|column| self.completed.contains(column) && !given.contains(column)) {
            batches.entry(column.batch()).or_default().push(column);
        }
        batches.values_mut().for_each(|columns| columns.sort_by_key(key));
        let mut batches: Vec<_> = batches.into_iter().collect();
        batches.sort_by_key(|(batch, columns)| (columns[0].distance_squared(center), batch.z, batch.x));
        let columns: Vec<_> = batches.into_iter().flat_map(|(_, columns)| columns).take(max).collect();
        given.extend(columns.iter().copied());
        columns
    }
}

/// Work in the form that the model returns.
fn plain(work: BatchColumns, center: ColumnPos) -> (BatchPos, Vec<ColumnPos>, u128) {
    (work.batch(), work.collect(), work.first().unwrap().distance_squared(center))
}

/// Runs each operation on the graph and on the model, and compares the results.
struct Pair {
    graph: DistanceGraph,
    model: Model,
    origin: ColumnPos,
    listeners: Vec<ListenerId>,
}

#[derive(Clone, Debug)]
enum Operation {
    Mark(i64, i64),
    Unmark(i64, i64),
    Release(i64, i64),
    Find(i64, i64, u32),
    Peek(i64, i64, u32),
    Claim(i64, i64),
    Count(i64, i64, u32),
    /// Completes a square of 2^n columns a side, or makes it missing.
    Square(i64, i64, u32, bool),
    RestoreTile(i64, i64, u64),
    MarkBatch(i64, i64, u16),
    UnmarkBatch(i64, i64, u16),
    ReleaseBatch(i64, i64, u16),
    Edited(i64, i64),
    /// Collects up to this many columns for a listener, by number.
    Collect(usize, i64, i64, u32, usize),
    NoteGiven(usize, i64, i64),
    TakeBack(usize, i64, i64),
    Replace(usize),
}

impl Pair {
    fn at(origin: ColumnPos) -> Self {
        let (mut graph, mut model) = (DistanceGraph::new(), Model::default());
        let listeners: Vec<_> = (0..2).map(|_| graph.add_listener()).collect();
        model.given.extend(listeners.iter().map(|listener| (*listener, BTreeSet::new())));
        Self { graph, model, origin, listeners }
    }

    /// The columns of the mask for which `change` returns `true`, as a mask.
    fn mask(batch: BatchPos, mask: u16, mut change: impl FnMut(ColumnPos) -> bool) -> u16 {
        let mut bits = bits(mask.into()).collect::<Vec<_>>();
        bits.retain(|bit| change(batch.column(*bit)));
        bits.into_iter().fold(0, |mask, bit| mask | 1 << bit)
    }

    fn column(&self, x: i64, z: i64) -> ColumnPos {
        self.origin.offset(x, z)
    }

    fn mark(&mut self, column: ColumnPos) {
        assert_eq!(self.graph.mark_completed(column), self.model.mark(column));
        assert!(self.graph.is_completed(column) && !self.graph.is_claimed(column));
    }

    fn unmark(&mut self, column: ColumnPos) {
        assert_eq!(self.graph.unmark(column), self.model.unmark(column));
        assert!(!self.graph.is_completed(column));
        assert_eq!(self.graph.is_claimed(column), self.model.claimed.contains(&column));
    }

    fn find(&mut self, center: ColumnPos, radius: u32) -> Option<BatchColumns> {
        let expected = self.model.nearest(center, radius).and_then(|(batch, _)| self.model.claim(batch, center));
        let work = self.graph.find_work(center, radius);
        assert_eq!(work.map(|work| plain(work, center)), expected, "work around {center} within {radius}");
        work
    }

    fn run(&mut self, operation: Operation) {
        let (before, changes) = (self.model.completed.clone(), self.graph.changes());
        match operation {
            Operation::Mark(x, z) => self.mark(self.column(x, z)),
            Operation::Unmark(x, z) => self.unmark(self.column(x, z)),
            Operation::Release(x, z) => {
                let column = self.column(x, z);
                assert_eq!(self.graph.release(column), self.model.claimed.remove(&column));
                assert!(!self.graph.is_claimed(column));
            }
            Operation::Find(x, z, radius) => drop(self.find(self.column(x, z), radius)),
            Operation::Peek(x, z, radius) => {
                let center = self.column(x, z);
                assert_eq!(self.graph.nearest_missing(center, radius), self.model.nearest(center, radius));
            }
            Operation::Claim(x, z) => {
                let batch = self.column(x, z).batch();
                let work = self.graph.claim(batch, self.origin).map(|work| plain(work, self.origin));
                assert_eq!(work, self.model.claim(batch, self.origin));
            }
            Operation::Count(x, z, radius) => {
                let center = self.column(x, z);
                let completed = disc(center, radius).filter(|column| self.model.completed.contains(column)).count();
                let count = self.graph.count_completed_in(&ColumnArea::Disc { center, radius });
                assert_eq!(count, completed as u64, "around {center} within {radius}");
            }
            Operation::Square(x, z, size, complete) => {
                let first = self.column(x, z);
                let corner = ColumnPos::new(first.x >> size << size, first.z >> size << size);
                for place in 0..1i64 << (2 * size) {
                    let column = ColumnPos::new(corner.x + (place & ((1 << size) - 1)), corner.z + (place >> size));
                    if complete { self.mark(column) } else { self.unmark(column) }
                }
            }
            Operation::RestoreTile(x, z, seed) => {
                let tile = self.column(x, z).tile();
                let masks = std::array::from_fn(|index| match seed.rotate_left(index as u32) & 3 {
                    0 => 0,
                    1 => seed.wrapping_mul(index as u64 | 1) as u16,
                    _ => FULL,
                });
                assert!(self.graph.restore_tile(tile, &masks));
                for (index, mask) in masks.iter().enumerate() {
                    for (bit, column) in tile.batch(index).unwrap().columns().enumerate() {
                        if mask >> bit & 1 == 1 {
                            self.model.mark(column);
                        } else {
                            self.model.unmark(column);
                        }
                    }
                }
                assert_eq!(self.graph.tile(tile), masks);
            }
            Operation::MarkBatch(x, z, mask) => {
                let batch = self.column(x, z).batch();
                let missing = Self::mask(batch, mask, |column| self.model.mark(column));
                assert_eq!(self.graph.mark_batch(batch, mask), missing);
                assert_eq!(self.graph.completed_in_batch(batch) & mask, mask);
            }
            Operation::UnmarkBatch(x, z, mask) => {
                let batch = self.column(x, z).batch();
                let completed = Self::mask(batch, mask, |column| self.model.unmark(column));
                assert_eq!(self.graph.unmark_batch(batch, mask), completed);
            }
            Operation::ReleaseBatch(x, z, mask) => {
                let batch = self.column(x, z).batch();
                let claimed = Self::mask(batch, mask, |column| self.model.claimed.remove(&column));
                assert_eq!(self.graph.claimed_in_batch(batch) & mask, claimed);
                assert_eq!(self.graph.release_batch(batch, mask), claimed);
            }
            Operation::Edited(x, z) => {
                let column = self.column(x, z);
                self.model.given.values_mut().for_each(|given| _ = given.remove(&column));
                assert_eq!(self.graph.edited(column), self.model.completed.contains(&column));
            }
            Operation::Collect(number, x, z, radius, max) => {
                let (listener, center) = (self.listeners[number], self.column(x, z));
                let expected = self.model.collect(listener, center, radius, max);
                let mut columns = Vec::new();
                let count = self.graph.collect_completed_in_range(listener, center, radius, max, &mut columns);
                assert_eq!(columns, expected, "listener {number} around {center} within {radius}");
                assert_eq!(count, Some(columns.len()));
            }
            Operation::NoteGiven(number, x, z) => {
                let (listener, column) = (self.listeners[number], self.column(x, z));
                let is_completed = self.model.completed.contains(&column);
                if is_completed {
                    self.model.given.entry(listener).or_default().insert(column);
                }
                assert_eq!(self.graph.note_given(listener, column), is_completed);
            }
            Operation::TakeBack(number, x, z) => {
                let (listener, column) = (self.listeners[number], self.column(x, z));
                self.model.given.entry(listener).or_default().remove(&column);
                assert!(self.graph.take_back(listener, column));
            }
            Operation::Replace(number) => {
                let old = self.listeners[number];
                assert!(self.graph.remove_listener(old) && !self.graph.remove_listener(old));
                assert_eq!(self.graph.collect_completed_in_range(old, self.origin, 9, 9, &mut Vec::new()), None);
                assert!(!self.graph.note_given(old, self.origin) && !self.graph.take_back(old, self.origin));
                self.model.given.remove(&old);
                self.listeners[number] = self.graph.add_listener();
                self.model.given.insert(self.listeners[number], BTreeSet::new());
            }
        }
        let changed = before.symmetric_difference(&self.model.completed).count() as u64;
        assert_eq!(self.graph.changes() - changes, changed);
        assert_eq!(self.graph.completed_count(), self.model.completed.len() as u64);
        assert_eq!(self.graph.tree.claimed_count(), self.model.claimed.len() as u64);
    }

    /// Compares all queries of each column, and rebuilds the graph from its tiles.
    fn check(&self) {
        for column in &self.model.completed {
            assert!(self.graph.is_completed(*column) && !self.graph.is_claimed(*column));
        }
        for column in &self.model.claimed {
            assert!(!self.graph.is_completed(*column) && self.graph.is_claimed(*column));
        }
        let tiles: BTreeSet<_> = self.model.completed.iter().map(|column| column.tile()).collect();
        let mut restored = DistanceGraph::new();
        for tile in tiles {
            assert!(restored.restore_tile(tile, &self.graph.tile(tile)));
        }
        assert_eq!(restored.completed_count(), self.graph.completed_count());
        assert!(self.model.completed.iter().all(|column| restored.is_completed(*column)));

        let columns: Vec<_> = self.graph.completed_columns().collect();
        assert_eq!(columns.len(), self.model.completed.len());
        assert!(columns.iter().copied().collect::<BTreeSet<_>>() == self.model.completed);
        assert!(restored.completed_batches().eq(self.graph.completed_batches()));

        // Undoing everything leaves an empty graph.
        let mut graph = self.graph.clone();
        assert!(self.model.completed.iter().all(|column| graph.unmark(*column)));
        assert!(self.model.claimed.iter().all(|column| graph.release(*column)));
        assert!(graph.tree.is_bare());
    }
}

/// The seams of the tree: the centre of the world, a corner of four roots, all edges of `i64`.
fn origins() -> impl Strategy<Value = ColumnPos> {
    prop::sample::select(vec![
        ColumnPos::new(0, 0),
        ColumnPos::new(2048, -4096),
        ColumnPos::new(-123_456_789, 987_654_321),
        ColumnPos::new(i64::MIN, i64::MIN),
        ColumnPos::new(i64::MAX, i64::MIN),
        ColumnPos::new(i64::MIN, 5),
        ColumnPos::new(i64::MAX, i64::MAX),
    ])
}

/// Operations on columns up to `reach` away. There are few centres, so that searches are continued.
fn operations(reach: i64, radius: u32, large: bool) -> impl Strategy<Value = Vec<Operation>> {
    let near = move || -reach..=reach;
    let center = || prop::sample::select(vec![(0, 0), (3, -2), (-7, 5), (1, 11)]);
    let radii = move || prop_oneof![Just(radius), 0..=radius];
    let sizes = if large { 1..=5u32 } else { 1..=3 };
    let masks = || prop_oneof![Just(FULL), any::<u16>()];
    let operation = prop_oneof![
        4 => (near(), near()).prop_map(|(x, z)| Operation::Mark(x, z)),
        4 => (near(), near()).prop_map(|(x, z)| Operation::Unmark(x, z)),
        6 => (near(), near()).prop_map(|(x, z)| Operation::Release(x, z)),
        8 => (center(), radii()).prop_map(|((x, z), radius)| Operation::Find(x, z, radius)),
        4 => (center(), radii()).prop_map(|((x, z), radius)| Operation::Peek(x, z, radius)),
        1 => (near(), near(), radii()).prop_map(|(x, z, radius)| Operation::Find(x, z, radius)),
        1 => (near(), near()).prop_map(|(x, z)| Operation::Claim(x, z)),
        2 => (near(), near(), radii()).prop_map(|(x, z, radius)| Operation::Count(x, z, radius)),
        1 => (near(), near(), sizes, any::<bool>()).prop_map(|(x, z, n, c)| Operation::Square(x, z, n, c)),
        1 => (near(), near(), any::<u64>()).prop_map(|(x, z, seed)| Operation::RestoreTile(x, z, seed)),
        2 => (near(), near(), masks()).prop_map(|(x, z, mask)| Operation::MarkBatch(x, z, mask)),
        2 => (near(), near(), masks()).prop_map(|(x, z, mask)| Operation::UnmarkBatch(x, z, mask)),
        2 => (near(), near(), masks()).prop_map(|(x, z, mask)| Operation::ReleaseBatch(x, z, mask)),
        2 => (near(), near()).prop_map(|(x, z)| Operation::Edited(x, z)),
        6 => (0..2usize, center(), radii(), 0..50usize)
            .prop_map(|(number, (x, z), radius, max)| Operation::Collect(number, x, z, radius, max)),
        2 => (0..2usize, near(), near()).prop_map(|(number, x, z)| Operation::NoteGiven(number, x, z)),
        2 => (0..2usize, near(), near()).prop_map(|(number, x, z)| Operation::TakeBack(number, x, z)),
        1 => (0..2usize).prop_map(Operation::Replace),
    ];
    prop::collection::vec(operation, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Promise, overview: The nearest missing column is always generated first.
    #[test]
    fn small_graphs_agree_with_the_model(origin in origins(), operations in operations(9, 8, false)) {
        let mut pair = Pair::at(origin);
        for operation in operations {
            pair.run(operation);
        }
        pair.check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn large_graphs_agree_with_the_model(origin in origins(), operations in operations(40, 45, true)) {
        let mut pair = Pair::at(origin);
        for operation in operations {
            pair.run(operation);
        }
        pair.check();
    }

    /// With a window of claims in flight, some of which fail. Results are ordered nearest first as long as none fails.
    #[test]
    fn a_fill_completes_every_batch_it_touches(
        origin in origins(), radius in 0..24u32, window in 0..6usize, fail_every in 2..9usize,
    ) {
        let mut pair = Pair::at(origin);
        let mut in_flight = std::collections::VecDeque::new();
        let mut turns = 0;
        loop {
            let work = pair.find(origin, radius);
            let idle = work.is_none();
            in_flight.extend(work);
            if idle && in_flight.is_empty() {
                break;
            }
            if idle || in_flight.len() > window {
                turns += 1;
                for column in in_flight.pop_front().unwrap() {
                    if turns % fail_every == 0 {
                        pair.run(Operation::Release(column.x - origin.x, column.z - origin.z));
                    } else {
                        pair.mark(column);
                    }
                }
            }
        }
        let batches: BTreeSet<_> = disc(origin, radius).map(ColumnPos::batch).collect();
        let columns: BTreeSet<_> = batches.iter().flat_map(|batch| batch.columns()).collect();
        prop_assert_eq!(&pair.model.completed, &columns);
        let area = ColumnArea::Disc { center: origin, radius };
        prop_assert_eq!(u128::from(pair.graph.count_completed_in(&area)), area.columns());
        pair.check();
    }
}
