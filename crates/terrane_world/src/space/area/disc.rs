//! Counts the columns of a disc without visiting its rows.
//!
//! In each quadrant the columns of a disc are lattice points below a falling, concave curve. Their convex hull has about
//! r^(2/3) edges, and a formula counts the points below an edge. From a corner of the hull, the next edge is the one
//! with the smallest fall. A search of the Stern-Brocot tree, in strides, finds it.

use crate::space::ColumnPos;

/// The number of columns in a disc, in time proportional to r^(2/3). There are none beyond the edges of `i64`.
pub(super) fn columns_of_disc(center: ColumnPos, radius: u32) -> u128 {
    let radius = u64::from(radius);
    // The columns on either side of the middle.
    let sides = |center: i64| [i64::MAX, i64::MIN].map(|edge| edge.abs_diff(center).min(radius) as i64);
    let (x, z) = (sides(center.x), sides(center.z));
    let mut columns = 1 + x.into_iter().chain(z).map(i128::from).sum::<i128>();
    for x in x {
        for z in z {
            columns += count_quadrant(radius, x, z);
        }
    }
    columns as u128
}

fn square(distance: i64) -> u128 {
    u128::from(distance.unsigned_abs()).pow(2)
}

/// The number of columns out of `side` that are in range, at this distance along the other axis.
fn reach(radius: u64, side: i64, distance: i64) -> i64 {
    let rest = u128::from(radius).pow(2).checked_sub(square(distance));
    rest.map_or(0, |rest| side.min(rest.isqrt() as i64))
}

/// The number of columns in range off the two middle rows: `x` columns to the right and `z` upwards, counted from
/// place 0, which is 1 away from the middle.
fn count_quadrant(radius: u64, x: i64, z: i64) -> i128 {
    if z == 0 {
        return 0;
    }
    // Where the curve lies beyond the edge of the world, the edge is the limit.
    let cut = reach(radius, x, z);
    i128::from(cut) * i128::from(z) + count_columns(radius, z, cut, reach(radius, x, 1))
}

/// Counts the columns with x in `start..end`. For each of these x, at least the lowest column is in range.
fn count_columns(radius: u64, z: i64, start: i64, end: i64) -> i128 {
    if start >= end {
        return 0;
    }
    let top = reach(radius, z, start + 1);
    let (mut x, mut y) = (start, top - 1);
    let mut total = i128::from(top);
    // `true` if the point lies below the curve.
    let contains = |x: i64, y: i64| x < end && (y <= 0 || square(x + 1) + square(y + 1) <= u128::from(radius).pow(2));
    while x < end - 1 {
        let (dx, dy) = next_edge(x, y, end, contains);
        let times = last_true(|times| contains(x + times * dx, y - times * dy));
        // The points below `times` such edges, excluding the first column and including the last.
        let [wide_dx, wide_dy, wide_times] = [dx, dy, times].map(i128::from);
        let drops = wide_times * ((wide_dx - 1) * (wide_dy + 1) / 2 + wide_dy)
            + wide_dx * wide_dy * (wide_times * (wide_times - 1) / 2);
        total += wide_times * wide_dx * i128::from(y + 1) - drops;
        x += times * dx;
        y -= times * dy;
    }
    total
}

/// From a highest point (x, y), the step to the right (dx) and down (dy) with the smallest fall that ends below the curve.
fn next_edge(x: i64, y: i64, end: i64, is_below: impl Fn(i64, i64) -> bool) -> (i64, i64) {
    let contains = |dx: i64, dy: i64| is_below(x + dx, y - dy);
    if contains(1, 0) {
        return (1, 0);
    }
    // `above` falls too little and `below` ends below the curve. The step lies between them.
    let (mut above, mut below) = ((1, 0), (0, 1));
    loop {
        let ends_above = |times: i64| {
            let (dx, dy) = (above.0 + times * below.0, above.1 + times * below.1);
            if contains(dx, dy) || x + dx >= end {
                return false;
            }
            // A step that moves away from the curve never comes back.
            let along_x = i128::from(x + dx + 1) * i128::from(below.0);
            let along_z = i128::from(y - dy + 1) * i128::from(below.1);
            along_x < along_z
        };
        let times = last_true(ends_above);
        above = (above.0 + times * below.0, above.1 + times * below.1);
        if !contains(above.0 + below.0, above.1 + below.1) {
            return below;
        }
        let times = last_true(|times| contains(below.0 + times * above.0, below.1 + times * above.1));
        below = (below.0 + times * above.0, below.1 + times * above.1);
    }
}

/// The last number from 0 on for which `is_true` holds. It holds at 0, and from some number on it never holds.
fn last_true(is_true: impl Fn(i64) -> bool) -> i64 {
    let mut step = 1;
    while is_true(step) {
        step *= 2;
    }
    let mut last = step / 2;
    let mut step = step / 4;
    while step > 0 {
        if is_true(last + step) {
            last += step;
        }
        step /= 2;
    }
    last
}
