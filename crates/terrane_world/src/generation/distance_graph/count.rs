//! Counts the missing columns of a disc, a square or a box.

use super::DistanceGraph;
use super::disc::{Area, Disc};
use super::tree::{ROOT, Square, TILE, Tree};
use crate::space::{BatchPos, ColumnArea, ColumnPos, bits};

/// The number of missing columns of an area, and of all its columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect), type_path = "bevy_terrane")]
pub struct Completion {
    /// The number of missing columns, capped at `u64::MAX`.
    pub missing: u64,
    /// The number of all columns, capped at `u64::MAX`.
    pub total: u64,
}

impl Completion {
    /// The completed fraction, from 0 to 1. It is 1 if and only if no column is missing.
    pub fn fraction(self) -> f64 {
        let Self { missing, total } = self;
        if missing == 0 {
            return 1.0;
        }
        // Close to 1, the division may round up to 1.
        (total.saturating_sub(missing) as f64 / total as f64).min(1.0 - f64::EPSILON)
    }
}

impl DistanceGraph {
    /// The number of columns of the area that are not completed. Takes time in proportion to the nodes of the graph in
    /// the area, and to the edge of the area where columns are missing.
    pub fn count_missing_in(&self, area: &ColumnArea) -> u128 {
        let roots: Vec<_> = self.tree.roots().filter(|(root, _)| touches(area, root.bounds())).collect();
        let in_roots = roots.iter().map(|(root, number)| self.tree.missing_in(area, *root, Square::Node(*number)));
        let missing = in_roots.map(u128::from).sum::<u128>();
        if is_covered(area, roots.len()) {
            return missing;
        }
        let beside = roots.iter().map(|(root, _)| u128::from(columns_in(area, root.bounds()))).sum::<u128>();
        missing + (area.columns() - beside)
    }

    /// The number of completed columns of the area.
    pub fn count_completed_in(&self, area: &ColumnArea) -> u64 {
        let completed = area.columns() - self.count_missing_in(area);
        u64::try_from(completed).unwrap_or(u64::MAX)
    }
}

/// Returns `true` if this is the number of all roots that intersect the area. Always `false` for a wide area.
fn is_covered(of: &ColumnArea, roots: usize) -> bool {
    const MOST: u64 = 64;
    let Some((min, max)) = of.bounds() else { return true };
    let shift = Area::shift(ROOT);
    let width = |min: i64, max: i64| (max >> shift).abs_diff(min >> shift) + 1;
    if width(min.x, max.x).saturating_mul(width(min.z, max.z)) > MOST {
        return false;
    }
    let along = |min: i64, max: i64| min >> shift..=max >> shift;
    let squares = along(min.z, max.z).flat_map(|z| along(min.x, max.x).map(move |x| Area { level: ROOT, x, z }));
    squares.filter(|square| touches(of, square.bounds())).count() == roots
}

fn disc(of: &ColumnArea) -> Option<Disc> {
    if let ColumnArea::Disc { center, radius } = *of { Some(Disc { center, radius }) } else { None }
}

/// The intersection of a square or a box with the rectangle; `None` if it is empty.
fn overlap(of: &ColumnArea, (min, max): (ColumnPos, ColumnPos)) -> Option<(ColumnPos, ColumnPos)> {
    let (low, high) = of.bounds()?;
    let (min, max) =
        (ColumnPos::new(min.x.max(low.x), min.z.max(low.z)), ColumnPos::new(max.x.min(high.x), max.z.min(high.z)));
    (min.x <= max.x && min.z <= max.z).then_some((min, max))
}

fn touches(of: &ColumnArea, rectangle: (ColumnPos, ColumnPos)) -> bool {
    disc(of).map_or_else(|| overlap(of, rectangle).is_some(), |disc| disc.nearest(rectangle).is_some())
}

fn contains(of: &ColumnArea, rectangle: (ColumnPos, ColumnPos)) -> bool {
    disc(of).map_or_else(|| overlap(of, rectangle) == Some(rectangle), |disc| disc.contains(rectangle))
}

/// The number of columns in the intersection of the area and a rectangle, which must not be empty.
fn columns_in(of: &ColumnArea, rectangle: (ColumnPos, ColumnPos)) -> u64 {
    let width = |min: i64, max: i64| max.abs_diff(min) + 1;
    let in_overlap = || overlap(of, rectangle).map_or(0, |(min, max)| width(min.x, max.x) * width(min.z, max.z));
    disc(of).map_or_else(in_overlap, |disc| disc.columns_in(rectangle))
}

/// The columns of a batch that lie in the area.
fn mask_in(of: &ColumnArea, batch: BatchPos, columns: u16) -> u16 {
    disc(of).map_or_else(|| columns & of.mask(batch), |disc| disc.mask_of(batch, columns))
}

impl Tree {
    /// The number of columns in the intersection of a square and an area that are not completed.
    fn missing_in(&self, of: &ColumnArea, square_area: Area, square: Square) -> u64 {
        let rectangle = square_area.bounds();
        if square == Square::Full || !touches(of, rectangle) {
            return 0;
        }
        if contains(of, rectangle) {
            return Area::column_count(square_area.level) - self.completed_count(square_area.level, square);
        }
        match square {
            Square::Full => 0,
            Square::Empty => columns_in(of, rectangle),
            Square::Node(tile) if square_area.level == TILE => {
                let missing_in = |index| {
                    let (batch, missing) = (square_area.child(index), !self.completed_in(tile, index));
                    let mask = match batch.bounds() {
                        rectangle if contains(of, rectangle) => missing,
                        rectangle if touches(of, rectangle) => mask_in(of, batch.min_batch(), missing),
                        _ => 0,
                    };
                    u64::from(mask.count_ones())
                };
                bits(!self.tile(tile).full).map(missing_in).sum()
            }
            Square::Node(number) => {
                let branch = self.branch(number);
                bits(!branch.full).map(|index| self.missing_in(of, square_area.child(index), branch.child(index))).sum()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Positions around zero and near both edges of the world.
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

    fn marks() -> impl Strategy<Value = Vec<ColumnArea>> {
        let single = (-70..70_i64, -70..70_i64).prop_map(|(x, z)| (x, z, 0, 0));
        let wide = (-70..70_i64, -70..70_i64, 0..80_i64, 0..80_i64);
        vec(prop_oneof![single, wide], 0..12).prop_map(|marks| {
            let area = |(x, z, width, depth)| ColumnArea::Box {
                min: ColumnPos::new(x, z),
                max: ColumnPos::new(x + width, z + depth),
            };
            marks.into_iter().map(area).collect()
        })
    }

    fn mark(graph: &mut DistanceGraph, area: ColumnArea) {
        area.batches().for_each(|(batch, mask)| _ = graph.mark_batch(batch, mask));
    }

    /// A graph in which the root square with this column is full.
    fn full_root(column: ColumnPos) -> DistanceGraph {
        let mut graph = DistanceGraph::new();
        let corner = ColumnPos::new(column.x >> 11 << 11, column.z >> 11 << 11);
        mark(&mut graph, ColumnArea::Box { min: corner, max: corner.offset(2047, 2047) });
        graph
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn the_count_is_that_of_the_columns_one_by_one(
            (origin, area) in origin().prop_flat_map(|origin| (Just(origin), area(origin))),
            marks in marks(),
        ) {
            let mut graph = DistanceGraph::new();
            for area in marks {
                let ColumnArea::Box { min, max } = area else { continue };
                let area = ColumnArea::Box { min: origin.offset(min.x, min.z), max: origin.offset(max.x, max.z) };
                mark(&mut graph, area);
            }
            let inside = graph.completed_columns().filter(|column| area.contains(*column)).count();
            prop_assert_eq!(graph.count_completed_in(&area), inside as u64);
            prop_assert_eq!(graph.count_missing_in(&area), area.columns() - inside as u128);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(6))]

        #[test]
        fn the_count_in_a_full_square_is_that_of_the_columns_one_by_one(
            (origin, areas) in origin().prop_flat_map(|origin| (Just(origin), vec(area(origin), 4))),
        ) {
            let graph = full_root(origin);
            for area in areas {
                let inside = graph.completed_columns().filter(|column| area.contains(*column)).count();
                prop_assert_eq!(graph.count_completed_in(&area), inside as u64);
            }
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
    }
}
