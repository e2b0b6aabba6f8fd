//! The standard workloads, with their known results.

use super::super::*;
use super::disc;
use super::workload::{G6_RADIUS, Ground, ORIGIN, Random, Shape, collect, fill, fill_with_window};
use super::workload::{listened, rows, shuffled, walk};
use crate::space::ColumnArea;
use std::collections::BTreeSet;

#[test]
fn the_streams_are_the_standard_ones() {
    let mut random = Random(42);
    let first = [random.bits(), random.bits(), random.bits()];
    assert_eq!(first, [0xbdd7_3226_2feb_6e95, 0x28ef_e333_b266_f103, 0x4752_6757_130f_9f52]);
    let place = |column: &ColumnPos| column.x | column.z << 11;
    let first: Vec<_> = shuffled().iter().take(4).map(place).collect();
    assert_eq!(first, [2_707_918, 3_678_758, 4_071_525, 1_666_163]);
    assert!(rows().iter().map(place).eq(0..2048 * 2048));
}

/// Workload G1.
#[test]
fn a_fill_hands_out_the_known_batches_with_a_window_or_without() {
    for (radius, batches) in [(64, 850), (128, 3_300), (256, 13_052), (512, 51_832)] {
        let mut graph = DistanceGraph::new();
        assert_eq!(fill(&mut graph, radius), batches);
        assert_eq!((graph.completed_count(), graph.tree.claimed_count()), (16 * batches as u64, 0));
        if radius <= 128 {
            let expected: BTreeSet<_> = disc(ORIGIN, radius).map(ColumnPos::batch).collect();
            assert!(graph.completed_batches().all(|(batch, mask)| mask == u16::MAX && expected.contains(&batch)));
            assert_eq!(expected.len(), batches);
        }
        for window in [64, 1024] {
            let mut windowed = DistanceGraph::new();
            assert_eq!(fill_with_window(&mut windowed, radius, window), batches);
            assert!(windowed.completed_batches().eq(graph.completed_batches()));
        }
    }
}

/// Workload G2.
#[test]
fn a_walk_hands_out_eight_thousand_batches() {
    let mut graph = DistanceGraph::new();
    assert_eq!(walk(&mut graph), 8_000);
    assert_eq!(graph.completed_count(), 128_000);
}

/// Workload G3.
#[test]
fn marked_in_any_order_a_full_ground_is_one_node() {
    for columns in [rows(), shuffled()] {
        let mut graph = DistanceGraph::new();
        assert!(columns.iter().all(|column| graph.mark_completed(*column)));
        assert_eq!(graph.tree.node_counts(), (1, 0));
        assert!(columns.iter().all(|column| !graph.mark_completed(*column)));
        assert!(graph.memory() < 8000, "{}", graph.memory());
    }
}

/// Workload G4.
#[test]
fn large_figures_take_little_memory_and_few_bytes() {
    // The larger shapes and the random ones take seconds, so they are only in the benchmark.
    for (index, count) in [(0, 49_999_041), (3, 49_989_317)] {
        let (shape, name, goal) = Shape::FIGURES[index];
        let mut graph = DistanceGraph::new();
        let mut mark = |z: i64, min: i64, max: i64| {
            let full = (min + 3) >> 2..(max + 1) >> 2;
            full.clone().for_each(|x| _ = graph.mark_batch(BatchPos::new(x, z >> 2), 0xf << (4 * (z & 3))));
            let (first, end) = (full.start << 2, full.end.max(full.start) << 2);
            let rest = (min..first.min(max + 1)).chain(end..=max);
            rest.for_each(|x| _ = graph.mark_completed(ColumnPos::new(x, z)));
        };
        match shape {
            Shape::Square(side) => (0..side).for_each(|z| mark(z, 0, side - 1)),
            Shape::Disc(radius) => (-radius..=radius).for_each(|z| {
                let half = (radius * radius - z * z).isqrt();
                mark(z, -half, half);
            }),
        }
        assert_eq!(graph.completed_count(), count, "{name}");
        assert!((graph.memory() as f64) < goal, "{name}: {}", graph.memory());
    }
}

/// Workload G5.
#[test]
fn counts_agree_with_a_look_at_each_column() {
    let grounds = [Ground::Empty, Ground::Checkerboard, Ground::Random, Ground::Full];
    for ground in grounds {
        let graph = ground.graph();
        let completed = disc(ORIGIN, 512).filter(|column| graph.is_completed(*column)).count();
        let area = ColumnArea::Disc { center: ORIGIN, radius: 512 };
        assert_eq!(graph.count_completed_in(&area), completed as u64, "{ground:?}");
    }
}

/// Workload G6.
#[test]
fn columns_are_collected_once_in_steps_of_any_size() {
    let expected = disc(ORIGIN, G6_RADIUS).count();
    assert_eq!(expected, 205_861);
    let (mut graph, listener) = listened();
    for step in [64, 1000, usize::MAX] {
        let another = graph.add_listener();
        assert_eq!(collect(&mut graph, another, step.min(expected + 1)), expected);
        assert_eq!(collect(&mut graph, another, 10), 0);
    }
    assert!(graph.remove_listener(listener));
}
