//! How much is completed in a disc, a square or a box.

use super::DistanceGraph;
use super::count::all_columns;
use super::disc::{Area, Disc, Grain};
use super::range::ColumnRange;
use super::tree::{Square, TILE, Tree};
use crate::space::{ColumnArea, bits};

impl DistanceGraph {
    /// How many columns of the area are completed. Takes time in proportion to what is kept of the graph there, and to
    /// the edge of the area where that is completed.
    pub fn count_completed_in(&self, area: &ColumnArea) -> u64 {
        match Shape::of(area) {
            Some(shape) => {
                self.tree.roots().map(|(root, number)| self.tree.count(&shape, root, Square::Node(number))).sum()
            }
            None => 0,
        }
    }

    /// How many columns an area has, as [`ColumnArea::columns`] counts them, but of a disc in time in proportion to
    /// r^(2/3).
    pub fn columns_of(area: &ColumnArea) -> u128 {
        match *area {
            ColumnArea::Disc { center, radius } => all_columns(&Disc { center, radius }),
            ColumnArea::Square { .. } | ColumnArea::Box { .. } => area.columns(),
        }
    }
}

/// An area as it is held against squares of the tree.
enum Shape {
    Disc(Disc),
    Range(ColumnRange),
}

impl Shape {
    fn of(area: &ColumnArea) -> Option<Self> {
        match *area {
            ColumnArea::Disc { center, radius } => Some(Self::Disc(Disc { center, radius })),
            ColumnArea::Square { .. } | ColumnArea::Box { .. } => {
                let (min, max) = area.bounds()?;
                ColumnRange::new(min, max).map(Self::Range)
            }
        }
    }

    fn touches(&self, area: Area) -> bool {
        match self {
            Self::Disc(disc) => disc.nearest(area.rect()).is_some(),
            Self::Range(range) => range.touches(area),
        }
    }

    fn contains(&self, area: Area) -> bool {
        match self {
            Self::Disc(disc) => disc.contains(area.rect()),
            Self::Range(range) => range.contains(area),
        }
    }

    /// How many columns of a square belong to it.
    fn columns_in(&self, area: Area) -> u64 {
        match self {
            // One area of at most 2048 x 2048 columns.
            Self::Disc(disc) => disc.columns_in_range(area.rect(), Grain::Columns) as u64,
            Self::Range(range) => range.columns_in(area),
        }
    }

    /// Those of the columns in a batch that belong to it.
    fn mask(&self, batch: Area, mask: u16) -> u16 {
        match self {
            Self::Disc(disc) => disc.mask_of(batch.min_batch(), mask),
            Self::Range(range) => mask & range.mask(batch),
        }
    }
}

impl Tree {
    /// How many columns of a square are completed and belong to the shape.
    fn count(&self, shape: &Shape, area: Area, square: Square) -> u64 {
        if square == Square::Empty || !shape.touches(area) {
            return 0;
        }
        if shape.contains(area) {
            return self.completed_count(area.level, square);
        }
        match square {
            Square::Empty => 0,
            Square::Full => shape.columns_in(area),
            Square::Node(tile) if area.level == TILE => {
                let completed = bits(self.tile(tile).full | self.tile(tile).partial);
                let in_batch = |index| shape.mask(area.child(index), self.completed_in(tile, index)).count_ones();
                completed.map(|index| u64::from(in_batch(index))).sum()
            }
            Square::Node(number) => {
                let branch = self.branch(number);
                let children = bits(branch.full | branch.kept);
                children.map(|index| self.count(shape, area.child(index), branch.child(index))).sum()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::{BatchPos, ColumnPos};
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Around zero and beside both edges of the world.
    fn origin() -> impl Strategy<Value = ColumnPos> {
        let place = || prop_oneof![-3_000..3_000_i64, Just(i64::MIN), Just(i64::MAX), Just(1 << 40)];
        (place(), place()).prop_map(|(x, z)| ColumnPos::new(x, z))
    }

    fn area(origin: ColumnPos) -> impl Strategy<Value = ColumnArea> {
        let center = (-60..60_i64, -60..60_i64).prop_map(move |(x, z)| origin.offset(x, z));
        let radius = || prop_oneof![0..90_u32, 0..5_000_u32];
        prop_oneof![
            (center.clone(), radius()).prop_map(|(center, radius)| ColumnArea::Disc { center, radius }),
            (center.clone(), radius()).prop_map(|(center, radius)| ColumnArea::Square { center, radius }),
            (center, -3..120_i64, -3..120_i64).prop_map(|(min, x, z)| ColumnArea::Box { min, max: min.offset(x, z) }),
        ]
    }

    fn marks() -> impl Strategy<Value = Vec<(i64, i64, i64, i64)>> {
        let single = (-70..70_i64, -70..70_i64).prop_map(|(x, z)| (x, z, 0, 0));
        let wide = (-70..70_i64, -70..70_i64, 0..80_i64, 0..80_i64);
        vec(prop_oneof![single, wide], 0..12)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn the_count_is_that_of_the_columns_one_by_one(
            (origin, area) in origin().prop_flat_map(|origin| (Just(origin), area(origin))),
            marks in marks(),
            huge: bool,
        ) {
            let mut graph = DistanceGraph::new();
            for (x, z, width, depth) in marks {
                let min = origin.offset(x, z);
                graph.mark_range(min, min.offset(width, depth)).unwrap();
            }
            if huge {
                // Whole squares of the highest level.
                graph.mark_range(origin.offset(-2_100, -30), origin.offset(2_100, 4_200)).unwrap();
            }
            let inside = graph.completed_columns().filter(|column| area.contains(*column)).count();
            prop_assert_eq!(graph.count_completed_in(&area), inside as u64);
            prop_assert_eq!(DistanceGraph::columns_of(&area), area.columns());
        }
    }

    #[test]
    fn the_widest_areas_are_counted_too() {
        let mut graph = DistanceGraph::new();
        graph.mark_batch(BatchPos::new(i64::MIN >> 2, 0), 0xff);
        graph.mark_batch(BatchPos::new(0, 0), 0xf);
        let (min, max) = (ColumnPos::new(i64::MIN, i64::MIN), ColumnPos::new(i64::MAX, i64::MAX));
        assert_eq!(graph.count_completed_in(&ColumnArea::Box { min, max }), 12);
        assert_eq!(graph.count_completed_in(&ColumnArea::Box { min: max, max: min }), 0);
        let disc = ColumnArea::Disc { center: ColumnPos::new(0, 0), radius: u32::MAX };
        assert_eq!(graph.count_completed_in(&disc), 4);
        // pi * r^2, and more than a u64 can tell.
        let columns = DistanceGraph::columns_of(&disc) as f64;
        let expected = std::f64::consts::PI * f64::from(u32::MAX).powi(2);
        assert!((columns / expected - 1.0).abs() < 1e-9, "{columns}");
    }
}
