//! How many batches or columns reach into a disc too wide to be counted row by row.
//!
//! In each quadrant the squares in range are lattice points below a falling, concave curve. Their convex hull has about
//! r^(2/3) edges, and the points below an edge are counted by a formula. From a corner of the hull the next edge is the
//! one that falls least; it is found as the Stern-Brocot tree is searched, in strides.

use super::disc::Disc;

impl Disc {
    /// Like [`Self::columns_in_range`] of all there is, in squares of 2^`shift` columns' edge, and in time in proportion to
    /// (r / edge)^(2/3).
    pub fn columns_in_all(&self, shift: u32) -> u128 {
        // Besides the row that the centre is in: the squares on either side, by the gap of the nearest and their number.
        let sides = |center: i64| {
            let place = center & ((1 << shift) - 1);
            let square: i64 = center >> shift;
            [
                Side { gap: (1 << shift) - place as u64, count: (i64::MAX >> shift).abs_diff(square) },
                Side { gap: place as u64 + 1, count: square.abs_diff(i64::MIN >> shift) },
            ]
        };
        let radius = u64::from(self.radius);
        let (x, z) = (sides(self.center.x), sides(self.center.z));
        let mut squares = 1 + x.into_iter().chain(z).map(|side| side.reach(radius, shift)).sum::<u64>() as i128;
        for x in x {
            for z in z {
                squares += Quadrant { radius, shift, x, z }.count();
            }
        }
        (squares as u128) << (2 * shift)
    }
}

/// Squares side by side, away from the centre.
#[derive(Clone, Copy)]
struct Side {
    /// From the centre to the nearest, in columns.
    gap: u64,
    /// How many there are before the edge of the world.
    count: u64,
}

impl Side {
    /// From the centre to one of them.
    fn gap_of(self, place: i64, shift: u32) -> u64 {
        ((place as u64) << shift) + self.gap
    }

    /// How many of them are within a distance.
    fn reach(self, distance: u64, shift: u32) -> u64 {
        distance.checked_sub(self.gap).map_or(0, |beyond| ((beyond >> shift) + 1).min(self.count))
    }
}

/// The squares of two sides: x to the right, y upwards, from 0. Those in range have places below 2^32.
struct Quadrant {
    radius: u64,
    shift: u32,
    x: Side,
    z: Side,
}

fn square(gap: u64) -> u128 {
    u128::from(gap) * u128::from(gap)
}

impl Quadrant {
    /// How many squares of a side are in range where the gap along the other axis is so large.
    fn reach(&self, side: Side, gap: u64) -> i64 {
        let distance = |gap| (square(self.radius) - square(gap)).isqrt() as u64;
        let reach = (gap <= self.radius).then(|| side.reach(distance(gap), self.shift));
        reach.unwrap_or(0) as i64
    }

    fn count(&self) -> i128 {
        let width = self.reach(self.x, self.z.gap);
        // The disc ends before the world does.
        let height = self.z.reach(self.radius, self.shift) as i64;
        if height == 0 {
            return 0;
        }
        // Where the curve is above the edge of the world, the edge is what counts.
        let cut = self.reach(self.x, self.z.gap_of(height - 1, self.shift));
        i128::from(cut) * i128::from(height) + self.count_columns(cut, width)
    }

    /// Those with x from `start` to `end` - 1, in each of which at least the lowest is in range.
    fn count_columns(&self, start: i64, end: i64) -> i128 {
        if start >= end {
            return 0;
        }
        let top = self.reach(self.z, self.x.gap_of(start, self.shift));
        let (mut x, mut y) = (start, top - 1);
        let mut total = i128::from(top);
        while x < end - 1 {
            let (dx, dy) = self.next_edge(x, y, end);
            let times = last_true(|times| self.contains(x + times * dx, y - times * dy, end));
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

    /// Whether the point lies below the curve.
    fn contains(&self, x: i64, y: i64, end: i64) -> bool {
        let gaps = || square(self.x.gap_of(x, self.shift)) + square(self.z.gap_of(y, self.shift));
        x < end && (y <= 0 || gaps() <= square(self.radius))
    }

    /// From a highest point (x, y) the way to the right, dx, and down, dy, that falls least and ends below the curve.
    fn next_edge(&self, x: i64, y: i64, end: i64) -> (i64, i64) {
        let contains = |dx: i64, dy: i64| self.contains(x + dx, y - dy, end);
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
                let along_x = i128::from(self.x.gap_of(x + dx, self.shift)) * i128::from(below.0);
                let along_z = i128::from(self.z.gap_of(y - dy, self.shift)) * i128::from(below.1);
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
