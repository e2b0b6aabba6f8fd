//! [`Turn`]: quarter turns and flips.

/// One of the eight orientations on the grid: an optional flip, then a turn about the y axis.
///
/// A quarter turn takes north (-z) to east (+x): clockwise, seen from above. A flip along z equals a flip along x and
/// half a turn, so turns are equal if they have the same effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Turn {
    /// Quarter turns, 0 to 3.
    quarters: u8,
    /// `true` if x changes its sign before the quarter turns.
    is_flipped: bool,
}

impl Turn {
    /// No turn and no flip.
    pub const NONE: Self = Self { quarters: 0, is_flipped: false };

    /// East becomes west, and west east: x changes its sign.
    pub const FLIP_X: Self = Self { quarters: 0, is_flipped: true };
    /// North becomes south, and south north: z changes its sign.
    pub const FLIP_Z: Self = Self { quarters: 2, is_flipped: true };

    /// All eight turns: the four without a flip, beginning with [`NONE`](Self::NONE), then the four with one.
    pub fn all() -> impl Iterator<Item = Self> {
        [Self::NONE, Self::FLIP_X]
            .into_iter()
            .flat_map(|flip| (0..4).map(move |turns| flip.then(Self::quarters(turns))))
    }

    /// A turn by this many quarters, clockwise seen from above.
    pub const fn quarters(turns: u8) -> Self {
        Self { quarters: turns % 4, is_flipped: false }
    }

    /// This turn first, then the other.
    pub const fn then(self, other: Self) -> Self {
        let first = if other.is_flipped { 4 - self.quarters } else { self.quarters };
        Self { quarters: (first + other.quarters) % 4, is_flipped: self.is_flipped != other.is_flipped }
    }

    /// Returns `true` if the turn changes nothing.
    pub const fn is_none(self) -> bool {
        self.quarters == 0 && !self.is_flipped
    }

    /// The number of quarter turns after the flip along x, 0 to 3.
    pub const fn quarter_turns(self) -> u8 {
        self.quarters
    }

    /// Returns `true` if left and right are swapped.
    pub const fn is_flipped(self) -> bool {
        self.is_flipped
    }

    /// Returns `true` if the x and z axes are swapped.
    pub const fn swaps_axes(self) -> bool {
        self.quarters % 2 == 1
    }

    /// The inverse turn.
    pub const fn inverse(self) -> Self {
        // A flip with a turn is a flip along another line, and so its own inverse.
        if self.is_flipped { self } else { Self { quarters: (4 - self.quarters) % 4, is_flipped: false } }
    }

    /// The turned side of a block. Sides are numbered clockwise from north.
    pub(crate) const fn side(self, side: usize) -> usize {
        let side = if self.is_flipped { (4 - side) % 4 } else { side };
        (side + self.quarters as usize) % 4
    }

    pub(crate) fn vector(self, x: i128, z: i128) -> [i128; 2] {
        let x = if self.is_flipped { -x } else { x };
        match self.quarters {
            0 => [x, z],
            1 => [-z, x],
            2 => [-x, -z],
            _ => [z, -x],
        }
    }

    /// The turned position within a block: at least 0 and less than 1 on each axis.
    pub(crate) fn offset(self, [x, y, z]: [f32; 3]) -> [f32; 3] {
        // A position on the edge of a block stays within the block.
        let flip = |at: f32| (1.0 - at).min(1.0_f32.next_down());
        let x = if self.is_flipped { flip(x) } else { x };
        match self.quarters {
            0 => [x, y, z],
            1 => [flip(z), y, x],
            2 => [flip(x), y, flip(z)],
            _ => [z, y, flip(x)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: [[i128; 2]; 3] = [[1, 0], [0, 1], [-3, 7]];

    #[test]
    fn a_quarter_turn_takes_north_to_east() {
        let quarter = Turn::quarters(1);
        assert_eq!(
            [[0, -1], [1, 0], [0, 1], [-1, 0]].map(|[x, z]| quarter.vector(x, z)),
            [[1, 0], [0, 1], [-1, 0], [0, -1]]
        );
        assert_eq!(Turn::FLIP_Z.vector(2, 3), [2, -3]);
        assert_eq!(Turn::FLIP_X.then(Turn::quarters(1)).vector(0, -1), [1, 0], "the flip comes first");
        assert_eq!(Turn::quarters(5), quarter);
        assert_eq!(Turn::FLIP_Z.then(Turn::quarters(255)), Turn::FLIP_X.then(Turn::quarters(1)));
    }

    #[test]
    fn turns_are_a_group() {
        assert_eq!(Turn::all().collect::<std::collections::HashSet<_>>().len(), 8);
        for first in Turn::all() {
            assert!(first.then(first.inverse()).is_none() && first.inverse().then(first).is_none());
            for second in Turn::all() {
                for [x, z] in SOME {
                    let [between_x, between_z] = first.vector(x, z);
                    assert_eq!(first.then(second).vector(x, z), second.vector(between_x, between_z));
                }
            }
        }
    }

    #[test]
    fn a_place_in_a_block_turns_about_its_middle() {
        for turn in Turn::all() {
            let [x, z] = turn.vector(1, -2);
            // Each unit is an eighth of a block.
            let expected = [0.5 + x as f32 / 8.0, 0.25, 0.5 + z as f32 / 8.0];
            assert_eq!(turn.offset([0.625, 0.25, 0.25]), expected, "{turn:?}");
            assert!(turn.offset([0.0; 3]).iter().all(|at| (0.0..1.0).contains(at)));
        }
    }
}
