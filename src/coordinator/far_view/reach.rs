//! How far a listener sees, and how fine.

use crate::chunk::Detail;
use crate::space::ColumnPos;

/// The largest radius of a far view, in columns: what is asked for beyond it is cut.
pub const MAX_FAR_RADIUS: u32 = 1024;

/// How far beyond its radius a far view keeps what it has, in columns: a step back sends nothing again.
pub const LET_GO: u32 = 4;

/// How far a far view reaches, and how fine it is where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FarRadii {
    /// Columns are sent within this distance, in columns (a disc), and told of as gone four columns further out. At
    /// most [`MAX_FAR_RADIUS`] counts.
    pub radius: u32,
    /// Within this distance, in columns, a cell is one block wide; each doubling of the distance doubles the cells, up
    /// to one for a whole column.
    pub detail_radius: u32,
}

impl FarRadii {
    fn radius(self) -> u32 {
        self.radius.min(MAX_FAR_RADIUS)
    }

    /// The details that are used, finest first, each with the radius within which columns are to be at least so fine.
    pub(super) fn rings(self) -> impl Iterator<Item = (Detail, u32)> {
        let radius = self.radius();
        let mut is_whole = false;
        (0..=Detail::COARSEST.level()).map_while(move |level| {
            let ring = match level == Detail::COARSEST.level() {
                true => radius,
                false => self.detail_radius.saturating_mul(1 << level).min(radius),
            };
            (!std::mem::replace(&mut is_whole, ring == radius)).then_some((Detail::new(level), ring))
        })
    }

    /// Whether a column is to be sent.
    pub(super) fn contains(self, center: ColumnPos, column: ColumnPos) -> bool {
        center.distance_squared(column) <= u128::from(self.radius()).pow(2)
    }

    /// The radius beyond which a column is told of as gone.
    pub(super) fn keeps_within(self) -> u32 {
        self.radius() + LET_GO
    }

    /// Whether a column may stay with a listener that has it.
    pub(super) fn keeps(self, center: ColumnPos, column: ColumnPos) -> bool {
        center.distance_squared(column) <= u128::from(self.keeps_within()).pow(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rings(radius: u32, detail_radius: u32) -> Vec<(u8, u32)> {
        FarRadii { radius, detail_radius }.rings().map(|(detail, radius)| (detail.level(), radius)).collect()
    }

    #[test]
    fn each_doubling_of_the_distance_halves_the_detail_and_the_last_ring_ends_at_the_radius() {
        assert_eq!(rings(128, 16), [(0, 16), (1, 32), (2, 64), (3, 128)]);
        assert_eq!(rings(200, 10), [(0, 10), (1, 20), (2, 40), (3, 80), (4, 200)]);
        assert_eq!(rings(20, 16), [(0, 16), (1, 20)]);
        assert_eq!(rings(5, 16), [(0, 5)]);
        assert_eq!(rings(0, 0), [(0, 0)]);
        assert_eq!(rings(9, 0), [(0, 0), (1, 0), (2, 0), (3, 0), (4, 9)]);
        assert_eq!(rings(u32::MAX, u32::MAX), [(0, MAX_FAR_RADIUS)]);
    }
}
