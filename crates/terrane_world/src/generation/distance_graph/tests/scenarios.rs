//! Single cases, including large ones, and checks of memory.

use super::super::tree::FULL;
use super::super::*;
use super::disc;
use crate::space::ColumnArea;
use std::collections::BTreeSet;

fn missing(graph: &DistanceGraph, center: ColumnPos, radius: u32) -> u128 {
    let area = ColumnArea::Disc { center, radius };
    area.columns() - u128::from(graph.count_completed_in(&area))
}

#[test]
fn a_large_fill_goes_outwards_and_hands_out_each_column_once() {
    let (center, radius) = (ColumnPos::new(-1030, 2045), 150);
    let mut graph = DistanceGraph::new();
    let mut seen = BTreeSet::new();
    let mut last = (0, i64::MIN, i64::MIN);
    while let Some(work) = graph.find_work(center, radius) {
        let distance_squared = work.first().unwrap().distance_squared(center);
        let order = (distance_squared, work.batch().z, work.batch().x);
        assert!(order > last, "{order:?} after {last:?}");
        last = order;
        assert!(distance_squared <= u128::from(radius) * u128::from(radius));
        for column in work {
            assert!(seen.insert(column));
            graph.mark_completed(column);
        }
    }
    let batches: BTreeSet<_> = disc(center, radius).map(ColumnPos::batch).collect();
    let columns: BTreeSet<_> = batches.iter().flat_map(|batch| batch.columns()).collect();
    assert_eq!(seen, columns);
}

/// Other centres (more than are kept), marks and releases between two calls must not change a result.
#[test]
fn a_kept_search_answers_like_a_new_one() {
    let mut graph = DistanceGraph::new();
    let mut state = 7u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    let mut in_flight = Vec::new();
    for step in 0..3000 {
        let centers = if step % 1000 < 700 { 4 } else { 50 };
        let center = ColumnPos::new(random(centers) as i64 * 9 - 30, 12);
        let radius = 20 + random(30) as u32;
        let mut fresh = DistanceGraph { frontiers: Frontiers::default(), ..graph.clone() };
        let expected = fresh.nearest_missing(center, radius);
        assert_eq!(graph.nearest_missing(center, radius), expected);
        in_flight.extend(graph.find_work(center, radius));
        while in_flight.len() > 8 {
            let done: BatchColumns = in_flight.swap_remove(random(9) as usize);
            for column in done {
                if random(3) == 0 {
                    graph.release(column)
                } else {
                    graph.mark_completed(column)
                };
            }
        }
        if random(20) == 0 {
            let corner = ColumnPos::new(random(80) as i64 - 40, random(40) as i64);
            for place in 0..64 {
                graph.unmark(corner.offset(place & 7, place >> 3));
            }
        }
    }
    assert!(graph.completed_count() > 1000);
}

#[test]
fn a_search_that_missed_too_many_reopened_batches_restarts() {
    let center = ColumnPos::new(0, 0);
    let mut graph = DistanceGraph::new();
    let full = [FULL; TILE_BATCHES];
    for tile in (-4..4).flat_map(|z| (-4..4).map(move |x| TilePos::new(x, z))) {
        assert!(graph.restore_tile(tile, &full));
    }
    assert_eq!(graph.nearest_missing(center, 100), None);
    graph.unmark(ColumnPos::new(1, 0));
    // More than is remembered, all of it farther away.
    for column in (-128..-40).flat_map(|z| (-128..128).map(move |x| ColumnPos::new(x, z))) {
        graph.unmark(column);
    }
    for column in (40..128).flat_map(|z| (-128..128).rev().map(move |x| ColumnPos::new(x, z))) {
        graph.unmark(column);
    }
    assert_eq!(graph.nearest_missing(center, 100), Some((BatchPos::new(0, 0), 1)));
}

#[test]
fn a_full_root_is_a_handful_of_bits_and_opens_again() {
    let mut graph = DistanceGraph::new();
    let corner = TilePos::new(-64, 64);
    for place in 0..4096 {
        assert!(graph.restore_tile(TilePos::new(corner.x + (place & 63), corner.z + (place >> 6)), &[FULL; 64]));
    }
    assert_eq!(graph.completed_count(), 2048 * 2048);
    assert_eq!(graph.tree.node_counts(), (1, 0));
    assert_eq!(graph.completed_batches().count(), 4096 * 64);
    let center = ColumnPos::new(-1024, 3072);
    assert_eq!(graph.nearest_missing(center, 1000), None);
    assert_eq!(missing(&graph, center, 1000), 0);

    let hole = ColumnPos::new(-1500, 3300);
    assert!(graph.unmark(hole));
    assert_eq!(graph.tree.node_counts(), (3, 1));
    assert_eq!(graph.nearest_missing(center, 1000), Some((hole.batch(), hole.distance_squared(center))));
    assert_eq!(missing(&graph, center, 1000), 1);
    let work = graph.find_work(center, 1000).unwrap();
    assert!(work.eq([hole]));
    assert_eq!(graph.find_work(center, 1000), None);
    assert!(graph.mark_completed(hole));
    assert_eq!(graph.tree.node_counts(), (1, 0));
    // The nearest columns beyond the root: at its lower edges they are 1025 away, at its upper ones 1024.
    assert_eq!(graph.nearest_missing(center, 5000), Some((BatchPos::new(0, 768), 1024 * 1024)));
}

#[test]
fn a_released_claim_leaves_nothing_behind() {
    let mut graph = DistanceGraph::new();
    let center = ColumnPos::new(-3, 2050);
    let mut columns = Vec::new();
    while let Some(work) = graph.find_work(center, 40) {
        columns.extend(work);
    }
    for (index, column) in columns.iter().enumerate() {
        if index % 2 == 0 {
            graph.mark_completed(*column);
            graph.unmark(*column);
        } else {
            graph.release(*column);
        }
    }
    assert_eq!(graph.completed_count(), 0);
    assert!(graph.tree.is_bare());
    assert_eq!(graph.completed_batches().count(), 0);
}

#[test]
fn huge_radii_reach_no_farther_than_needed() {
    let mut graph = DistanceGraph::new();
    for (x, z) in [(0, 0), (i64::MIN, i64::MAX), (i64::MAX, 17), (-1, i64::MIN + 3)] {
        let center = ColumnPos::new(x, z);
        let work = graph.find_work(center, u32::MAX).unwrap();
        assert_eq!((work.batch(), work.first()), (center.batch(), Some(center)));
        assert!(graph.tree.node_counts().0 <= 12);
    }
    // A hole of land on the way: the search must cross the edges of several roots.
    let mut graph = DistanceGraph::new();
    for place in 0..9 * 4096i64 {
        let (root, tile) = (place / 4096, place % 4096);
        let tile = TilePos::new((root % 3 - 1) * 64 + (tile & 63), (root / 3 - 1) * 64 + (tile >> 6));
        assert!(graph.restore_tile(tile, &[FULL; 64]));
    }
    let center = ColumnPos::new(1500, 1000);
    assert_eq!(graph.nearest_missing(center, 2595), None);
    assert_eq!(
        graph.nearest_missing(center, u32::MAX),
        Some((BatchPos::new(1024, 250), (4096 - 1500) * (4096 - 1500)))
    );
    assert_eq!(graph.tree.node_counts(), (9, 0));
}

#[test]
fn counts_of_wide_discs_are_exact() {
    let mut graph = DistanceGraph::new();
    let center = ColumnPos::new(-1000, 3001);
    // Two full roots, one completely in range and one at the rim, and a few columns in a third.
    for x in [-1, 2] {
        for place in 0..4096 {
            assert!(graph.restore_tile(TilePos::new(x * 64 + (place & 63), 64 + (place >> 6)), &[FULL; 64]));
        }
    }
    // Column by column, independent of the tree.
    let done = |x: i64| {
        let columns = (0..2048).flat_map(|z| (0..2048).map(move |i| ColumnPos::new(x * 2048 + i, 2048 + z)));
        columns.filter(|column| column.distance_squared(center) <= 6000 * 6000).count() as u64
    };
    assert!(graph.mark_completed(ColumnPos::new(-5000, 3000)));
    let disc = ColumnArea::Disc { center, radius: 6000 };
    assert_eq!(graph.count_completed_in(&disc), done(-1) + done(2) + 1);
    assert_eq!(done(-1), 2048 * 2048);
    assert!((1..2048 * 2048).contains(&done(2)));
}

#[test]
fn a_column_is_never_claimed_and_completed_at_once() {
    let mut graph = DistanceGraph::new();
    let column = ColumnPos::new(-1, -1);
    assert!(!graph.release(column));
    let work = graph.find_work(column, 0).unwrap();
    assert_eq!(work.len(), 16);
    assert!(!graph.unmark(column), "a claim is not a mark");
    assert!(graph.is_claimed(column) && !graph.is_completed(column));
    assert_eq!(graph.find_work(column, 0), None);
    assert_eq!(missing(&graph, column, 0), 1);
    assert!(graph.mark_completed(column));
    assert!(!graph.mark_completed(column));
    assert!(!graph.is_claimed(column) && !graph.release(column));
    assert!(graph.unmark(column));
    assert!(!graph.is_claimed(column) && !graph.is_completed(column));
    assert!(graph.find_work(column, 0).unwrap().eq([column]));
}

#[test]
fn positions_beyond_the_last_column_are_refused() {
    let mut graph = DistanceGraph::new();
    let last = ColumnPos::new(i64::MAX, i64::MIN).tile();
    for tile in [TilePos::new(last.x + 1, 0), TilePos::new(0, last.z - 1), TilePos::new(i64::MIN, i64::MAX)] {
        assert!(!graph.restore_tile(tile, &[FULL; 64]));
        assert_eq!(graph.tile(tile), [0; 64]);
    }
    assert_eq!(graph.completed_count(), 0);
    assert_eq!(graph.claim(BatchPos::new(i64::MAX, 0), ColumnPos::new(0, 0)), None);
    assert!(graph.restore_tile(last, &[FULL; 64]));
    assert!(graph.is_completed(ColumnPos::new(i64::MAX, i64::MIN)));
    assert!(!graph.is_completed(ColumnPos::new(i64::MIN, i64::MIN)));
    assert!(graph.completed_batches().all(|(batch, _)| batch.tile() == last));
}

#[test]
fn work_that_always_fails_does_not_make_a_search_grow() {
    let mut graph = DistanceGraph::new();
    let center = ColumnPos::new(0, 0);
    for step in 0..200_000 {
        let work = graph.find_work(center, 64).unwrap();
        assert_eq!(work.first(), Some(center));
        // The farthest column first, so that the batch returns at several distances.
        for column in work.collect::<Vec<_>>().into_iter().rev() {
            graph.release(column);
            if step % 3 == 0 {
                graph.nearest_missing(center, 64);
            }
        }
    }
    assert!(graph.frontiers.candidate_count() < 1 << 17, "{}", graph.frontiers.candidate_count());
}

/// Wide ground with holes, a centre that walks and jumps, and claims in flight. Every result is compared with all
/// batches in range.
#[test]
fn far_answers_are_the_nearest_wherever_the_centre_goes() {
    let mut random = super::workload::Random(7);
    let mut graph = DistanceGraph::new();
    for place in 0..150 * 150 {
        let batch = BatchPos::new(place % 150 - 75, place / 150 - 75);
        match random.bits() % 256 {
            0 => _ = graph.mark_batch(batch, random.bits() as u16),
            1 => {}
            _ => _ = graph.mark_batch(batch, FULL),
        }
    }
    let (radius, mut center) = (330u32, ColumnPos::new(-100, 40));
    let mut in_flight = std::collections::VecDeque::new();
    for step in 0..600 {
        match random.bits() % 8 {
            0..4 => {}
            4..7 => center = center.offset(random.bits() as i64 % 3, random.bits() as i64 % 3),
            _ => center = ColumnPos::new(random.bits() as i64 % 300, random.bits() as i64 % 300),
        }
        let disc = Disc { center, radius };
        let reach = i64::from(radius) / 4 + 1;
        let near = center.batch();
        let expected = (-reach..=reach)
            .flat_map(|z| (-reach..=reach).map(move |x| BatchPos::new(near.x + x, near.z + z)))
            .filter_map(|batch| {
                let free = FULL & !graph.completed_in_batch(batch) & !graph.claimed_in_batch(batch);
                Some((disc.nearest_of(batch, free)?, batch.z, batch.x))
            })
            .min();
        let work = graph.find_work(center, radius);
        let found =
            work.and_then(|work| Some((work.first()?.distance_squared(center) as u64, work.batch().z, work.batch().x)));
        assert_eq!(found, expected, "step {step} around {center}");
        in_flight.extend(work);
        if in_flight.len() > 40 {
            let work: BatchColumns = in_flight.pop_front().unwrap();
            match random.bits() % 3 {
                0 => _ = graph.release_batch(work.batch(), FULL),
                _ => _ = graph.mark_batch(work.batch(), work.mask()),
            }
        }
        if step % 50 == 49 {
            let min = center.offset(random.bits() as i64 % 64, random.bits() as i64 % 64);
            for place in 0..60 {
                graph.unmark(min.offset(place % 6, place / 6));
            }
        }
    }
}
