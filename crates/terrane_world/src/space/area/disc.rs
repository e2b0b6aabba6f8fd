//! How many columns a disc has, without a look at its rows.
//!
//! In each quadrant the columns of a disc are lattice points below a falling, concave curve. Their convex hull has about
//! r^(2/3) edges, and the points below an edge are counted by a formula. From a corner of the hull the next edge is the
//! one that falls least; it is found as the Stern-Brocot tree is searched, in strides.

use crate::space::ColumnPos;

/// The columns of a disc, in time in proportion to r^(2/3). Beyond the edges of `i64` there are none.
pub(super) fn columns_of_disc(center: ColumnPos, radius: u32) -> u128 {
    let radius = u64::from(radius);
    // Besides the column in the middle: those beside it, on either side.
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

/// How many columns of `side` are in range, so far away along the other axis.
fn reach(radius: u64, side: i64, distance: i64) -> i64 {
    let rest = u128::from(radius).pow(2).checked_sub(square(distance));
    rest.map_or(0, |rest| side.min(rest.isqrt() as i64))
}

/// The columns in range beside the rows of the middle: of `x` to the right and `z` upwards, each from place 0 on, which is 1
/// away from the middle.
fn count_quadrant(radius: u64, x: i64, z: i64) -> i128 {
    if z == 0 {
        return 0;
    }
    // Where the curve is above the edge of the world, the edge is what counts.
    let cut = reach(radius, x, z);
    i128::from(cut) * i128::from(z) + count_columns(radius, z, cut, reach(radius, x, 1))
}

/// Those with x from `start` to `end` - 1, in each of which at least the lowest is in range.
fn count_columns(radius: u64, z: i64, start: i64, end: i64) -> i128 {
    if start >= end {
        return 0;
    }
    let top = reach(radius, z, start + 1);
    let (mut x, mut y) = (start, top - 1);
    let mut total = i128::from(top);
    // Whether the point lies below the curve.
    let contains = |x: i64, y: i64| x < end && (y <= 0 || square(x + 1) + square(y + 1) <= u128::from(radius).pow(2));
    while x < end - 1 {
        let (dx, dy) = next_edge(x, y, end, contains);
        let times = last_true(|times| contains(x + times * dx, y - times * dy));
        // Below `times` edges of this kind, without the first column and with the last one.
        let [wide_dx, wide_dy, wide_times] = [dx, dy, times].map(i128::from);
        let drops = wide_times * ((wide_dx - 1) * (wide_dy + 1) / 2 + wide_dy)
            + wide_dx * wide_dy * (wide_times * (wide_times - 1) / 2);
        total += wide_times * wide_dx * i128::from(y + 1) - drops;
        x += times * dx;
        y -= times * dy;
    }
    total
}

/// From a highest point (x, y) the way to the right, dx, and down, dy, that falls least and ends below the curve.
fn next_edge(x: i64, y: i64, end: i64, is_below: impl Fn(i64, i64) -> bool) -> (i64, i64) {
    let contains = |dx: i64, dy: i64| is_below(x + dx, y - dy);
    if contains(1, 0) {
        return (1, 0);
    }
    // One that falls too little, and one that ends below the curve: what is looked for lies between.
    let (mut above, mut below) = ((1, 0), (0, 1));
    loop {
        let ends_above = |times: i64| {
            let (dx, dy) = (above.0 + times * below.0, above.1 + times * below.1);
            if contains(dx, dy) || x + dx >= end {
                return false;
            }
            // Once it goes away from the curve it does not come back.
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

/// The last number from 0 for which this is true, for something that is true at 0 and false from some number on.
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
