//! The summaries that a listener was sent.

use crate::chunk::Detail;
use crate::space::ColumnPos;
use std::collections::BTreeMap;

/// The number of columns along a side of a tile.
const SIDE: i64 = 16;

/// The columns that a listener has, with the detail and the checksum of each summary, in four bytes per column.
#[derive(Debug, Default)]
pub struct SentColumns {
    /// The tiles by z and x in steps of [`SIDE`] columns, each with the number of its columns.
    tiles: BTreeMap<(i64, i64), (Box<[u32; (SIDE * SIDE) as usize]>, u16)>,
}

/// The state of a column at a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// A summary of this detail, with the lower [`Sent::CHECKSUM_BITS`] of its checksum.
    Summary(Detail, u32),
    /// No summary, since it cannot be read.
    Unreadable,
}

impl Sent {
    const CHECKSUM_BITS: u32 = 29;
    const UNREADABLE: u32 = 6;

    /// The part of a checksum that is kept.
    pub fn shortened(checksum: u32) -> u32 {
        checksum & ((1 << Self::CHECKSUM_BITS) - 1)
    }

    /// Never 0, which stands for a missing column.
    fn pack(self) -> u32 {
        match self {
            Self::Summary(detail, checksum) => Self::shortened(checksum) << 3 | (u32::from(detail.level()) + 1),
            Self::Unreadable => Self::UNREADABLE,
        }
    }

    fn unpack(packed: u32) -> Option<Self> {
        match packed & 7 {
            0 => None,
            Self::UNREADABLE => Some(Self::Unreadable),
            level => Some(Self::Summary(Detail::new(level as u8 - 1), packed >> 3)),
        }
    }
}

fn place(column: ColumnPos) -> ((i64, i64), usize) {
    let (x, z) = (column.x.rem_euclid(SIDE), column.z.rem_euclid(SIDE));
    ((column.z.div_euclid(SIDE), column.x.div_euclid(SIDE)), (x + SIDE * z) as usize)
}

fn column((z, x): (i64, i64), index: usize) -> ColumnPos {
    ColumnPos::new(x * SIDE + index as i64 % SIDE, z * SIDE + index as i64 / SIDE)
}

impl SentColumns {
    /// The number of columns.
    pub fn len(&self) -> usize {
        self.tiles.values().map(|(_, count)| usize::from(*count)).sum()
    }

    pub fn get(&self, column: ColumnPos) -> Option<Sent> {
        let (tile, index) = place(column);
        Sent::unpack(self.tiles.get(&tile)?.0[index])
    }

    pub fn insert(&mut self, column: ColumnPos, sent: Sent) {
        let (tile, index) = place(column);
        let (columns, count) = self.tiles.entry(tile).or_insert_with(|| (Box::new([0; _]), 0));
        if columns[index] == 0 {
            *count += 1;
        }
        columns[index] = sent.pack();
    }

    pub fn remove(&mut self, column: ColumnPos) -> Option<Sent> {
        let (tile, index) = place(column);
        let (columns, count) = self.tiles.get_mut(&tile)?;
        let sent = Sent::unpack(std::mem::take(&mut columns[index]))?;
        *count -= 1;
        if *count == 0 {
            self.tiles.remove(&tile);
        }
        Some(sent)
    }

    /// Columns outside of the disc, at most `most` of them. Tiles within the disc are skipped.
    pub fn beyond(&self, center: ColumnPos, radius: u32, most: usize) -> Vec<ColumnPos> {
        let limit = u128::from(radius).pow(2);
        let corners = |tile: (i64, i64)| {
            [0, SIDE - 1, SIDE * (SIDE - 1), SIDE * SIDE - 1].map(|index| column(tile, index as usize))
        };
        // A disc is convex, so it contains a tile if it contains its corners.
        let is_within = |tile| corners(tile).iter().all(|corner| corner.distance_squared(center) <= limit);
        let beyond = self.tiles.iter().filter(|(tile, _)| !is_within(**tile)).flat_map(|(tile, (columns, _))| {
            let there = columns.iter().enumerate().filter(|(_, packed)| **packed != 0);
            there.map(|(index, _)| column(*tile, index))
        });
        beyond.filter(|column| column.distance_squared(center) > limit).take(most).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_column() -> impl Strategy<Value = ColumnPos> {
        let coordinate = || prop_oneof![4 => -40..40i64, 1 => Just(i64::MIN >> 4), 1 => Just(i64::MAX >> 4)];
        (coordinate(), coordinate()).prop_map(|(x, z)| ColumnPos::new(x, z))
    }

    proptest! {
        #[test]
        fn it_is_a_map(
            changes in prop::collection::vec((any_column(), prop::option::of((0..=5u8, any::<u32>()))), 0..60),
            center in any_column(), radius in 0..50u32,
        ) {
            let mut sent = SentColumns::default();
            let mut model = BTreeMap::new();
            for (column, change) in changes {
                match change {
                    Some((level, checksum)) => {
                        let known = match level {
                            5 => Sent::Unreadable,
                            level => Sent::Summary(Detail::new(level), Sent::shortened(checksum)),
                        };
                        sent.insert(column, known);
                        model.insert(column, known);
                    }
                    None => prop_assert_eq!(sent.remove(column), model.remove(&column)),
                }
                prop_assert_eq!(sent.get(column), model.get(&column).copied());
            }
            prop_assert_eq!(sent.len(), model.len());
            let far = |column: &ColumnPos| column.distance_squared(center) > u128::from(radius).pow(2);
            let mut beyond = sent.beyond(center, radius, usize::MAX);
            beyond.sort_unstable();
            let mut expected: Vec<_> = model.into_keys().filter(far).collect();
            expected.sort_unstable();
            prop_assert_eq!(beyond.len().min(3), sent.beyond(center, radius, 3).len());
            prop_assert_eq!(beyond, expected);
        }
    }
}
