//! The standard workloads of a distance graph for tests and benchmarks, which import the crate's names differently.

use super::{BatchColumns, ColumnPos, DistanceGraph, ListenerId};
use std::collections::VecDeque;

/// The middle of the world, where most workloads have their centre.
pub const ORIGIN: ColumnPos = ColumnPos::new(0, 0);
/// The completed area of G6 reaches this many columns to each side of the centre; the radius of G6 is half of that.
pub const G6_RADIUS: u32 = 256;

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// Returns `true` with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        let limit = (probability * (1u64 << 53) as f64).ceil() as u64;
        self.bits() >> 11 < limit
    }
}

fn complete(graph: &mut DistanceGraph, work: BatchColumns) {
    for column in work {
        graph.mark_completed(column);
    }
}

/// G1: finds and marks work until none is left. Returns the number of batches.
pub fn fill(graph: &mut DistanceGraph, radius: u32) -> usize {
    let mut batches = 0;
    while let Some(work) = graph.find_work(ORIGIN, radius) {
        complete(graph, work);
        batches += 1;
    }
    batches
}

/// G1w: G1 with this many batches in flight.
pub fn fill_with_window(graph: &mut DistanceGraph, radius: u32, window: usize) -> usize {
    let mut in_flight = VecDeque::with_capacity(window + 1);
    let mut batches = 0;
    while let Some(work) = graph.find_work(ORIGIN, radius) {
        batches += 1;
        in_flight.push_back(work);
        if in_flight.len() > window
            && let Some(oldest) = in_flight.pop_front()
        {
            complete(graph, oldest);
        }
    }
    in_flight.into_iter().for_each(|work| complete(graph, work));
    batches
}

/// G2: a walking centre, with 8 batches per step.
pub fn walk(graph: &mut DistanceGraph) -> usize {
    let mut batches = 0;
    for x in 0..1000 {
        for _ in 0..8 {
            if let Some(work) = graph.find_work(ColumnPos::new(x, 0), 128) {
                complete(graph, work);
                batches += 1;
            }
        }
    }
    batches
}

/// G3: the columns of a root, row by row.
pub fn rows() -> Vec<ColumnPos> {
    square(0, 2048).collect()
}

/// G3: the same in random order.
pub fn shuffled() -> Vec<ColumnPos> {
    let mut places: Vec<u32> = (0..2048 * 2048).collect();
    let mut random = Random(42);
    for i in (1..places.len()).rev() {
        places.swap(i, (random.bits() % (i as u64 + 1)) as usize);
    }
    places.into_iter().map(|place| ColumnPos::new((place & 2047).into(), (place >> 11).into())).collect()
}

/// The columns from `start` to `end` - 1 on both axes, row by row.
pub fn square(start: i64, end: i64) -> impl Iterator<Item = ColumnPos> {
    (start..end).flat_map(move |z| (start..end).map(move |x| ColumnPos::new(x, z)))
}

/// G4: a shape of completed columns.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// A square of this side, with a corner in the middle of the world.
    Square(i64),
    /// A disc of this radius.
    Disc(i64),
}

impl Shape {
    /// The shapes of G4, with the goal in bytes.
    pub const FIGURES: [(Self, &str, f64); 6] = [
        (Self::Square(7071), "square, 50 %", 50e3),
        (Self::Square(9487), "square, 90 %", 50e3),
        (Self::Square(9950), "square, 99 %", 50e3),
        (Self::Disc(3989), "disc, 50 %", 100e3),
        (Self::Disc(5352), "disc, 90 %", 100e3),
        (Self::Disc(5613), "disc, 99 %", 100e3),
    ];
}

/// G5: the completed part of [-1024, 1024)^2.
#[derive(Clone, Copy, Debug)]
pub enum Ground {
    /// No columns.
    Empty,
    /// Every other square of 32 x 32 columns.
    Checkerboard,
    /// Each column with a probability of 0.9.
    Random,
    /// All columns.
    Full,
}

impl Ground {
    /// A graph with these completed columns.
    pub fn graph(self) -> DistanceGraph {
        let mut graph = DistanceGraph::new();
        let mut random = Random(42);
        let is_done = |column: &ColumnPos| match self {
            Self::Empty => false,
            Self::Checkerboard => ((column.x >> 5) + (column.z >> 5)) % 2 == 0,
            Self::Random => random.chance(0.9),
            Self::Full => true,
        };
        square(-1024, 1024).filter(is_done).for_each(|column| _ = graph.mark_completed(column));
        graph
    }
}

/// G6: a graph with a completed square, and a listener.
pub fn listened() -> (DistanceGraph, ListenerId) {
    let mut graph = DistanceGraph::new();
    square(-512, 512).for_each(|column| _ = graph.mark_completed(column));
    let listener = graph.add_listener();
    (graph, listener)
}

/// G6: collects everything in range in steps of this size. Returns the number of columns.
pub fn collect(graph: &mut DistanceGraph, listener: ListenerId, step: usize) -> usize {
    let mut columns = Vec::with_capacity(step);
    let mut all = 0;
    while let Some(1..) = graph.collect_completed_in_range(listener, ORIGIN, G6_RADIUS, step, &mut columns) {
        all += columns.len();
        columns.clear();
    }
    all
}
