//! Compares areas with a check of every column.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Coordinates around zero, near the edges of the world, and anywhere.
fn coordinate() -> impl Strategy<Value = i64> {
    prop_oneof![-20..20_i64, 0..12_i64, any::<i64>()].prop_flat_map(|near| {
        prop_oneof![
            Just(near),
            Just(i64::MIN.saturating_add(near.rem_euclid(30))),
            Just(i64::MAX - near.rem_euclid(30))
        ]
    })
}

fn column() -> impl Strategy<Value = ColumnPos> {
    (coordinate(), coordinate()).prop_map(|(x, z)| ColumnPos::new(x, z))
}

/// Areas small enough for counting column by column.
fn small_area() -> impl Strategy<Value = ColumnArea> {
    prop_oneof![
        (column(), 0..40_u32).prop_map(|(center, radius)| ColumnArea::Disc { center, radius }),
        (column(), 0..30_u32).prop_map(|(center, radius)| ColumnArea::Square { center, radius }),
        (column(), -3..60_i64, -3..60_i64).prop_map(|(min, x, z)| ColumnArea::Box { min, max: min.offset(x, z) }),
        // Long and thin, along either axis.
        (column(), 0..5_i64, 0..3_000_i64, any::<bool>()).prop_map(|(min, thin, long, along_x)| {
            let max = if along_x { min.offset(long, thin) } else { min.offset(thin, long) };
            ColumnArea::Box { min, max }
        }),
    ]
}

/// Every column, by the definition.
fn model(area: &ColumnArea) -> BTreeSet<ColumnPos> {
    let within = |column: ColumnPos| match *area {
        ColumnArea::Disc { center, radius } => {
            let (x, z) = (i128::from(column.x) - i128::from(center.x), i128::from(column.z) - i128::from(center.z));
            x * x + z * z <= i128::from(radius).pow(2)
        }
        ColumnArea::Square { center, radius } => {
            column.x.abs_diff(center.x) <= radius.into() && column.z.abs_diff(center.z) <= radius.into()
        }
        ColumnArea::Box { min, max } => {
            min.x <= column.x && column.x <= max.x && min.z <= column.z && column.z <= max.z
        }
    };
    let (min, max) = match *area {
        ColumnArea::Box { min, max } => (min, max),
        ColumnArea::Disc { center, radius } | ColumnArea::Square { center, radius } => {
            let radius = i64::from(radius) + 2;
            (center.offset(-radius, -radius), center.offset(radius, radius))
        }
    };
    let columns = (min.z..=max.z).flat_map(|z| (min.x..=max.x).map(move |x| ColumnPos::new(x, z)));
    columns.filter(|column| within(*column)).collect()
}

fn columns_of((batch, mask): (BatchPos, u16)) -> impl Iterator<Item = ColumnPos> {
    (0..16).filter(move |bit| mask >> bit & 1 == 1).map(move |bit| batch.column(bit))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn count_and_contains_agree_with_the_columns(area in small_area(), probe in column()) {
        let model = model(&area);
        prop_assert_eq!(area.columns(), model.len() as u128);
        prop_assert_eq!(area.contains(probe), model.contains(&probe));
        let bounds = area.bounds();
        prop_assert_eq!(bounds.is_some(), !model.is_empty());
        for column in model.iter().take(50) {
            prop_assert!(area.contains(*column));
            let (min, max) = bounds.unwrap();
            prop_assert!(min.x <= column.x && column.x <= max.x && min.z <= column.z && column.z <= max.z);
        }
    }

    #[test]
    fn batches_come_once_with_their_columns_nearest_first(area in small_area()) {
        let batches: Vec<_> = area.batches().collect();
        let found: Vec<_> = batches.iter().copied().flat_map(columns_of).collect();
        let distinct: BTreeSet<_> = found.iter().copied().collect();
        prop_assert_eq!(distinct.len(), found.len());
        prop_assert_eq!(distinct, model(&area));
        let center = area.center();
        let key = |(batch, mask): &(BatchPos, u16)| {
            let nearest = columns_of((*batch, *mask)).map(|column| column.distance_squared(center)).min();
            (nearest, batch.z, batch.x)
        };
        prop_assert!(batches.iter().all(|(_, mask)| *mask != 0));
        prop_assert!(batches.is_sorted_by_key(key));
    }

    #[test]
    fn a_cursor_continues_where_it_was_taken(area in small_area(), at: prop::sample::Index) {
        let all: Vec<_> = area.batches().collect();
        let at = at.index(all.len() + 1);
        let mut walk = area.batches();
        let before: Vec<_> = walk.by_ref().take(at).collect();
        prop_assert_eq!(&before[..], &all[..at]);
        let stored = postcard::to_extend(&walk.cursor(), Vec::new()).unwrap();
        let cursor: AreaCursor = postcard::from_bytes(&stored).unwrap();
        let rest: Vec<_> = AreaBatches::from_cursor(area, cursor).collect();
        prop_assert_eq!(&rest[..], &all[at..]);
        if let Some((batch, _)) = all.get(at) {
            let again: Vec<_> = AreaBatches::from_cursor(area, AreaCursor::at(&area, *batch)).collect();
            prop_assert_eq!(&again[..], &all[at..]);
        }
    }

    #[test]
    fn the_widest_areas_begin_at_their_centre(center in column(), corner in column(), radius in any::<u32>()) {
        let (min, max) = (ColumnPos::new(i64::MIN, i64::MIN), ColumnPos::new(i64::MAX, i64::MAX));
        let boxed = |min, max| ColumnArea::Box { min, max };
        for area in [
            ColumnArea::Disc { center, radius },
            ColumnArea::Square { center, radius },
            boxed(min, max),
            boxed(min, corner),
            boxed(ColumnPos::new(i64::MIN, 5), ColumnPos::new(i64::MAX, 7)),
        ] {
            let first: Vec<_> = area.batches().take(5_000).collect();
            prop_assert_eq!(first.first().map(|(batch, _)| *batch), Some(area.center().batch()));
            let distance = |(batch, _): &(BatchPos, u16)| AreaCursor::at(&area, *batch);
            prop_assert!(first.is_sorted_by_key(distance));
        }
    }
}

#[test]
fn the_widest_counts_do_not_overflow() {
    let (min, max) = (ColumnPos::new(i64::MIN, i64::MIN), ColumnPos::new(i64::MAX, i64::MAX));
    assert_eq!(ColumnArea::Box { min, max }.columns(), u128::MAX);
    let half = ColumnArea::Box { min, max: ColumnPos::new(-1, i64::MAX) };
    assert_eq!(half.columns(), 1 << 127);
    assert_eq!(half.center(), ColumnPos::new(i64::MIN / 2 - 1, -1));
    let square = ColumnArea::Square { center: ColumnPos::new(0, 0), radius: u32::MAX };
    assert_eq!(square.columns(), (2 * u128::from(u32::MAX) + 1).pow(2));
    // At the edge of the world, only a quarter remains.
    let square = ColumnArea::Square { center: max, radius: u32::MAX };
    assert_eq!(square.columns(), (u128::from(u32::MAX) + 1).pow(2));
    assert_eq!(ColumnArea::Disc { center: max, radius: 2 }.columns(), 6);
    assert_eq!(ColumnArea::Disc { center: ColumnPos::new(10, -3), radius: 2 }.columns(), 13);
    assert_eq!(ColumnArea::Box { min: max, max: min }.batches().count(), 0);
}

/// Counting row by row and along the convex hull must agree.
#[test]
fn wide_discs_are_counted_without_their_rows() {
    let far = [i64::MIN, i64::MIN + 7, -1234, -3, 0, 1, 2, 77, i64::MAX - 1000, i64::MAX - 6, i64::MAX];
    let centers = || far.iter().flat_map(|x| far.iter().map(|z| ColumnPos::new(*x, *z)));
    let check = |center: ColumnPos, radius: u32| {
        let squared = u64::from(radius).pow(2);
        let reach = u64::from(radius);
        let rows = center.z.saturating_sub_unsigned(reach)..=center.z.saturating_add_unsigned(reach);
        let in_row = |z: i64| {
            let half = (squared - z.abs_diff(center.z).pow(2)).isqrt();
            let (min, max) = (center.x.saturating_sub_unsigned(half), center.x.saturating_add_unsigned(half));
            u128::from(max.abs_diff(min)) + 1
        };
        let expected: u128 = rows.map(in_row).sum();
        assert_eq!(ColumnArea::Disc { center, radius }.columns(), expected, "around {center} within {radius}");
    };
    for center in centers() {
        (0..80).chain([1000, 1001, 4099]).for_each(|radius| check(center, radius));
    }
    for radius in (100..2000).step_by(7).chain([65_536, 99_999, 1_000_003]) {
        check(ColumnPos::new(-2, 5), radius);
    }
    // pi * r^2, more than a u64 can hold.
    let widest = ColumnArea::Disc { center: ColumnPos::new(0, 0), radius: u32::MAX }.columns() as f64;
    let expected = std::f64::consts::PI * f64::from(u32::MAX).powi(2);
    assert!((widest / expected - 1.0).abs() < 1e-9, "{widest}");
}
