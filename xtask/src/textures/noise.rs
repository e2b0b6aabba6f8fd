//! Chance that is the same on every machine: dice, smooth noise and cells, all of which tile.

use super::canvas::{SIZE, everywhere};

/// Mixes numbers into one that looks random.
pub fn hash(seed: u32, parts: &[i32]) -> u32 {
    parts.iter().fold(seed.wrapping_mul(0x9e37_79b9) ^ 0x85eb_ca6b, |mut hash, part| {
        hash = (hash ^ *part as u32).wrapping_mul(0xcc9e_2d51);
        hash = (hash ^ hash >> 15).wrapping_mul(0x1b87_3593);
        hash ^ hash >> 13
    })
}

/// A sequence of random numbers.
pub struct Dice {
    seed: u32,
    rolls: i32,
}

impl Dice {
    pub fn new(seed: u32) -> Self {
        Self { seed, rolls: 0 }
    }

    /// A number from 0 to `sides - 1`.
    pub fn roll(&mut self, sides: u32) -> u32 {
        self.rolls += 1;
        hash(self.seed, &[self.rolls]) % sides
    }

    /// Places that keep clear of each other: each is the best of eight candidates.
    pub fn places(&mut self, count: usize) -> Vec<(i32, i32)> {
        let mut places: Vec<(i32, i32)> = Vec::new();
        while places.len() < count {
            let candidates: [_; 8] = std::array::from_fn(|_| (self.roll(16) as i32, self.roll(16) as i32));
            let room = |at: &(i32, i32)| places.iter().map(|other| distance(*at, *other, (1, 1))).min().unwrap_or(0);
            places.extend(candidates.into_iter().max_by_key(room));
        }
        places
    }
}

/// The squared distance on the picture that wraps around, with a weight for each axis.
fn distance((x, y): (i32, i32), (to_x, to_y): (i32, i32), weights: (i32, i32)) -> i32 {
    let along = |from: i32, to: i32| {
        let apart = (from - to).rem_euclid(SIZE as i32);
        apart.min(SIZE as i32 - apart)
    };
    along(x, to_x).pow(2) * weights.0 + along(y, to_y).pow(2) * weights.1
}

/// Blends the values of the four knots around a pixel. A knot is at every corner of a grid of `spot`, which must divide 16.
fn blended((width, height): (i32, i32), x: i32, y: i32, value: impl Fn(i32, i32) -> i32) -> i32 {
    let (x, y) = (x.rem_euclid(SIZE as i32), y.rem_euclid(SIZE as i32));
    // How much of the next knot counts, out of 256: slow at the knots, fast between them.
    let share = |at: i32, spot: i32| {
        let within = at % spot;
        256 * within * within * (3 * spot - 2 * within) / spot.pow(3)
    };
    let (right, down) = (share(x, width), share(y, height));
    let knot = |next_x: i32, next_y: i32| {
        value((x / width + next_x) % (SIZE as i32 / width), (y / height + next_y) % (SIZE as i32 / height))
    };
    let upper = knot(0, 0) * (256 - right) + knot(1, 0) * right;
    let lower = knot(0, 1) * (256 - right) + knot(1, 1) * right;
    (upper / 256 * (256 - down) + lower / 256 * down) / 256
}

/// Smooth noise from 0 to 1023, with spots of this width and height.
pub fn clouds(seed: u32, spot: (i32, i32), x: i32, y: i32) -> i32 {
    blended(spot, x, y, |x, y| (hash(seed, &[x, y]) % 1024) as i32)
}

/// Noise turned by half a right angle and shrunk, so that its grid does not show beside that of [`clouds`].
pub fn turned_clouds(seed: u32, spot: i32, x: i32, y: i32) -> i32 {
    clouds(seed, (spot, spot), x + y, y - x)
}

/// The frames after which [`moving_clouds`] repeat.
pub const FRAMES: i32 = 8;

/// Smooth noise from 0 to 1023 that changes gently from frame to frame: each knot swings around a value of its own.
pub fn moving_clouds(seed: u32, spot: (i32, i32), (x, y): (i32, i32), frame: i32) -> i32 {
    blended(spot, x, y, |x, y| {
        let (middle, start) = (hash(seed, &[x, y]) % 684, hash(seed, &[x, y, 1]) % 32);
        middle as i32 + 170 + sine(start as i32 + frame * 32 / FRAMES) / 3
    })
}

/// The sine of an angle in parts of 32, times 511.
fn sine(angle: i32) -> i32 {
    let quarter = [0, 100, 196, 284, 361, 425, 472, 501, 511];
    match angle.rem_euclid(32) {
        angle @ 0..=8 => quarter[angle as usize],
        angle @ 9..=16 => quarter[16 - angle as usize],
        angle => -sine(angle - 16),
    }
}

/// A picture divided into cells, such as stones of a wall. Each pixel has the number of its cell and its distance from other cells.
pub struct Cells([[(usize, i32); SIZE]; SIZE]);

/// Where a pixel lies in its cell, as light from the upper left sees it.
#[derive(Clone, Copy, PartialEq)]
pub enum Part {
    Gap,
    Light,
    Middle,
    Shadow,
}

impl Cells {
    /// Each pixel belongs to the nearest of these places. The greater weight is that of the axis along which cells are short.
    pub fn around(places: &[(i32, i32)], weights: (i32, i32)) -> Self {
        let mut cells = [[(0, 0); SIZE]; SIZE];
        for (x, y) in everywhere() {
            let away = |(cell, place)| (distance((x, y), place, weights), cell);
            let mut order: Vec<_> =
                places.iter().copied().enumerate().map(|(cell, place)| away((cell, place))).collect();
            order.sort_unstable();
            cells[y as usize][x as usize] = (order[0].1, order[1].0 - order[0].0);
        }
        Self(cells)
    }

    fn at(&self, x: i32, y: i32) -> (usize, i32) {
        self.0[y.rem_euclid(SIZE as i32) as usize][x.rem_euclid(SIZE as i32) as usize]
    }

    /// The number of the pixel's cell.
    pub fn of(&self, x: i32, y: i32) -> usize {
        self.at(x, y).0
    }

    /// How far a pixel is from the seam between cells: the difference of the squared distances to the two nearest places.
    pub fn depth(&self, x: i32, y: i32) -> i32 {
        self.at(x, y).1
    }

    fn is_gap(&self, x: i32, y: i32) -> bool {
        self.of(x, y) != self.of(x + 1, y) || self.of(x, y) != self.of(x, y + 1)
    }

    pub fn part(&self, x: i32, y: i32) -> Part {
        if self.is_gap(x, y) {
            Part::Gap
        } else if self.is_gap(x - 1, y) || self.is_gap(x, y - 1) {
            Part::Light
        } else if self.is_gap(x + 1, y) || self.is_gap(x, y + 1) {
            Part::Shadow
        } else {
            Part::Middle
        }
    }
}
