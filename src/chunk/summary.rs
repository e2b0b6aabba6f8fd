//! What a column looks like from afar: the surface of each of its cells, and their binary form.
//!
//! # Binary form, version 1
//!
//! | bytes | content |
//! |---|---|
//! | 1 | version (1) |
//! | 1 | detail: 0 for cells of one block, 4 for one cell of 16 x 16 |
//! | .. | LEB128: how many blocks the palette has, 0 to the number of cells |
//! | .. | LEB128 each: the palette |
//! | .. | per cell, x fastest: LEB128, 0 for a cell without ground, else its place in the palette + 1 |
//! | .. | per cell with ground: LEB128 of the zigzag difference between its height and that of the one before, of the first to 0 |

use super::Column;
use crate::block::BlockId;
use crate::bytes::{ReadError, Reader, put_number, put_signed};
use crate::space::CHUNK_SIZE;
use std::fmt;
use thiserror::Error;

/// How fine a [`ColumnSummary`] is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Detail(u8);

impl Detail {
    /// A cell for each block.
    pub const FINEST: Self = Self(0);
    /// One cell for the whole column.
    pub const COARSEST: Self = Self(CHUNK_SIZE.trailing_zeros() as u8);

    /// Cells of 2^`level` blocks a side; none are larger than a column.
    pub const fn new(level: u8) -> Self {
        if level > Self::COARSEST.0 { Self::COARSEST } else { Self(level) }
    }

    /// The side of a cell is 2^`level` blocks.
    pub const fn level(self) -> u8 {
        self.0
    }

    /// The side of a cell, in blocks.
    pub const fn cell_size(self) -> usize {
        1 << self.0
    }

    /// Cells along a side of the column.
    pub const fn cells(self) -> usize {
        CHUNK_SIZE >> self.0
    }
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, cells) = (self.cell_size(), self.cells());
        write!(f, "{cells} x {cells} cells of {size} x {size} blocks")
    }
}

/// What is seen of a cell from above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SummaryCell {
    /// The height of its highest block that is not air, in blocks; of a larger cell the mean.
    pub height: i64,
    /// That block; of a larger cell the one that is seen most.
    pub block: BlockId,
}

/// The surface of a column, cell by cell: what is drawn of it, or sent to a player, from afar.
///
/// ```
/// # use bevy_terrane::{block::BlockId, chunk::{Column, ColumnSummary, Detail}, space::{BlockPos, ColumnPos}};
/// let mut column = Column::new(ColumnPos::new(0, 0));
/// column.set_block(BlockPos::new(3, 70, 5), BlockId::new(1));
/// let summary = ColumnSummary::new(&column);
/// assert_eq!(summary.surface(3, 5).unwrap().height, 70);
/// assert_eq!(summary.surface(4, 5), None);
/// assert_eq!(summary.at(Detail::COARSEST).surface(0, 0), None, "most of it has no ground");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSummary {
    detail: Detail,
    /// x fastest.
    cells: Box<[Option<SummaryCell>]>,
}

impl ColumnSummary {
    /// The finest summary of a column.
    pub fn new(column: &Column) -> Self {
        let mut cells = vec![None; CHUNK_SIZE * CHUNK_SIZE].into_boxed_slice();
        let mut open = cells.len();
        for (chunk_y, chunk) in column.chunks().rev() {
            if open == 0 {
                break;
            }
            if chunk.uniform_block() == Some(BlockId::AIR) {
                continue;
            }
            for (index, cell) in cells.iter_mut().enumerate().filter(|(_, cell)| cell.is_none()) {
                let (x, z) = (index % CHUNK_SIZE, index / CHUNK_SIZE);
                let seen = |y: usize| Some(chunk.block([x, y, z])).filter(|block| *block != BlockId::AIR);
                let found = (0..CHUNK_SIZE).rev().find_map(|y| Some((y, seen(y)?)));
                if let Some((y, block)) = found {
                    *cell = Some(SummaryCell { height: (chunk_y << 4) + y as i64, block });
                    open -= 1;
                }
            }
        }
        Self { detail: Detail::FINEST, cells }
    }

    /// How fine it is.
    pub fn detail(&self) -> Detail {
        self.detail
    }

    /// What is seen of the cell `x`, `z`, counted in cells from the column's lowest corner; `None` if there is no ground, or
    /// no such cell.
    pub fn surface(&self, x: usize, z: usize) -> Option<SummaryCell> {
        let side = self.detail.cells();
        (x < side && z < side).then(|| self.cells[x + side * z])?
    }

    /// The same from further away. A summary never gets finer: if it is as coarse already, it is copied.
    pub fn at(&self, detail: Detail) -> Self {
        let mut summary = self.clone();
        while summary.detail < detail {
            summary = summary.coarser();
        }
        summary
    }

    /// Cells of twice the sides.
    fn coarser(&self) -> Self {
        let detail = Detail::new(self.detail.0 + 1);
        let side = detail.cells();
        let cell = |index: usize| {
            let (x, z) = (index % side * 2, index / side * 2);
            merge([(x, z), (x + 1, z), (x, z + 1), (x + 1, z + 1)].map(|(x, z)| self.surface(x, z)))
        };
        Self { detail, cells: (0..side * side).map(cell).collect() }
    }

    /// The lowest and the highest cell with ground.
    pub fn heights(&self) -> Option<(i64, i64)> {
        let heights = || self.cells.iter().flatten().map(|cell| cell.height);
        Some((heights().min()?, heights().max()?))
    }

    /// Appends the binary form.
    pub fn encode(&self, into: &mut Vec<u8>) {
        let mut palette: Vec<BlockId> = Vec::new();
        let places: Vec<usize> = self
            .cells
            .iter()
            .map(|cell| {
                let Some(SummaryCell { block, .. }) = cell else { return 0 };
                let known = palette.iter().position(|known| known == block);
                known.unwrap_or_else(|| {
                    palette.push(*block);
                    palette.len() - 1
                }) + 1
            })
            .collect();
        into.extend([VERSION, self.detail.0]);
        put_number(into, palette.len() as u64);
        palette.iter().for_each(|block| put_number(into, block.index().into()));
        places.iter().for_each(|place| put_number(into, *place as u64));
        let mut before = 0;
        for cell in self.cells.iter().flatten() {
            let step = cell.height.wrapping_sub(before);
            put_signed(into, step);
            before = cell.height;
        }
    }

    /// Reads the binary form.
    pub fn decode(bytes: &[u8]) -> Result<Self, SummaryError> {
        let mut reader = Reader::new(bytes);
        let version = reader.byte()?;
        if version != VERSION {
            return Err(SummaryError::Version { found: version });
        }
        let level = reader.byte()?;
        if level > Detail::COARSEST.0 {
            return Err(SummaryError::Detail { found: level });
        }
        let detail = Detail(level);
        let count = detail.cells() * detail.cells();
        let length = number_below(&mut reader, count as u64 + 1, "blocks in the palette")?;
        let palette = (0..length)
            .map(|_| Ok(BlockId::new(number_below(&mut reader, 1 << 32, "a block id")? as u32)))
            .collect::<Result<Vec<_>, SummaryError>>()?;
        let places = (0..count)
            .map(|_| Ok(number_below(&mut reader, length + 1, "a place in the palette")? as usize))
            .collect::<Result<Vec<_>, SummaryError>>()?;
        let mut height = 0_i64;
        let cells = places
            .into_iter()
            .map(|place| {
                let Some(block) = place.checked_sub(1).and_then(|place| palette.get(place)) else { return Ok(None) };
                height = height.wrapping_add(reader.signed()?);
                Ok(Some(SummaryCell { height, block: *block }))
            })
            .collect::<Result<_, SummaryError>>()?;
        match reader.left() {
            0 => Ok(Self { detail, cells }),
            left => Err(SummaryError::Trailing { offset: reader.offset(), left }),
        }
    }
}

const VERSION: u8 = 1;

/// Why bytes are no summary. Every `offset` is in bytes, from the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SummaryError {
    /// The bytes end too early.
    #[error("byte {offset}: the summary ends too early")]
    Truncated {
        /// Where more was expected.
        offset: usize,
    },
    /// A version that this crate cannot read.
    #[error("byte 0: expected version {VERSION}, found {found}")]
    Version {
        /// The version found.
        found: u8,
    },
    /// No such detail exists.
    #[error("byte 1: expected a detail of {} or less, found {found}", Detail::COARSEST.0)]
    Detail {
        /// The detail found.
        found: u8,
    },
    /// A number that is too large.
    #[error("byte {offset}: expected {what} below {limit}, found {found}")]
    OutOfRange {
        /// Where it begins.
        offset: usize,
        /// What it stands for.
        what: &'static str,
        /// The first number that is too large.
        limit: u64,
        /// The number found.
        found: u64,
    },
    /// A number of more than 64 bits.
    #[error("byte {offset}: expected a number of 64 bits or less")]
    TooLong {
        /// Where it begins.
        offset: usize,
    },
    /// Something follows that does not belong there.
    #[error("byte {offset}: expected the end, found {left} more bytes")]
    Trailing {
        /// Where the summary ends.
        offset: usize,
        /// The bytes that follow.
        left: usize,
    },
}

impl From<ReadError> for SummaryError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Truncated { offset } => Self::Truncated { offset },
            ReadError::TooLong { offset } => Self::TooLong { offset },
        }
    }
}

fn number_below(reader: &mut Reader<'_>, limit: u64, what: &'static str) -> Result<u64, SummaryError> {
    let offset = reader.offset();
    let found = reader.number()?;
    if found < limit { Ok(found) } else { Err(SummaryError::OutOfRange { offset, what, limit, found }) }
}

/// One cell of four: ground if at least half of them have it.
fn merge(cells: [Option<SummaryCell>; 4]) -> Option<SummaryCell> {
    let ground: Vec<SummaryCell> = cells.into_iter().flatten().collect();
    if ground.len() < 2 {
        return None;
    }
    let sum: i128 = ground.iter().map(|cell| i128::from(cell.height)).sum();
    let height = sum.div_euclid(ground.len() as i128) as i64;
    let seen = |surface: &&SummaryCell| ground.iter().filter(|other| other.block == surface.block).count();
    // Of those that are seen as often, the higher one; of equally high ones any, but always the same.
    let block = ground.iter().max_by_key(|cell| (seen(cell), cell.height, cell.block.index()))?.block;
    Some(SummaryCell { height, block })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::Chunk;
    use crate::space::{BlockPos, ColumnPos};
    use proptest::prelude::*;
    use std::sync::Arc;

    const POS: ColumnPos = ColumnPos::new(-3, 2);

    fn summary(detail: u8, cells: Vec<Option<(i64, u32)>>) -> ColumnSummary {
        let surface = |(height, block)| SummaryCell { height, block: BlockId::new(block) };
        ColumnSummary { detail: Detail(detail), cells: cells.into_iter().map(|cell| cell.map(surface)).collect() }
    }

    fn any_summary() -> impl Strategy<Value = ColumnSummary> {
        let height = prop_oneof![any::<i64>(), -100..400_i64, Just(i64::MIN), Just(i64::MAX)];
        (0..=4_u8).prop_flat_map(move |detail| {
            let cell = proptest::option::of((height.clone(), prop_oneof![1..5_u32, any::<u32>()]));
            let cells = Detail(detail).cells().pow(2);
            proptest::collection::vec(cell, cells).prop_map(move |cells| summary(detail, cells))
        })
    }

    fn bytes(summary: &ColumnSummary) -> Vec<u8> {
        let mut bytes = Vec::new();
        summary.encode(&mut bytes);
        bytes
    }

    #[test]
    fn level_ground_takes_one_byte_a_cell_and_one_a_height() {
        let mut column = Column::new(POS);
        column.set_chunk(4, Arc::new(Chunk::uniform(BlockId::new(9))));
        let flat = ColumnSummary::new(&column);
        assert_eq!(flat.heights(), Some((79, 79)));
        assert_eq!(bytes(&flat).len(), 2 + 1 + 1 + 256 + 2 + 255);
        assert_eq!(bytes(&flat.at(Detail::COARSEST)), [1, 4, 1, 9, 1, 158, 1]);
        assert_eq!(bytes(&ColumnSummary::new(&Column::new(POS)).at(Detail::COARSEST)), [1, 4, 0, 0]);
    }

    #[test]
    fn four_cells_become_what_is_seen_of_them() {
        let merged = |cells: [Option<(i64, u32)>; 4]| {
            let cells = summary(3, cells.to_vec());
            cells.at(Detail::COARSEST).surface(0, 0).map(|cell| (cell.height, cell.block.index()))
        };
        assert_eq!(merged([None; 4]), None);
        assert_eq!(merged([Some((5, 1)), None, None, None]), None);
        assert_eq!(merged([Some((5, 1)), None, None, Some((8, 2))]), Some((6, 2)));
        assert_eq!(merged([Some((1, 1)), Some((2, 1)), Some((3, 2)), Some((90, 3))]), Some((24, 1)));
        let edge = Some((i64::MIN, 1));
        assert_eq!(merged([edge; 4]), Some((i64::MIN, 1)));
        assert_eq!(merged([Some((i64::MAX, 1)); 4]), Some((i64::MAX, 1)));
    }

    #[test]
    fn every_truncation_is_an_error() {
        let whole = bytes(&summary(3, vec![Some((1_000, 300)), None, Some((-5, 1)), Some((i64::MIN, 300))]));
        for length in 0..whole.len() {
            assert_eq!(ColumnSummary::decode(&whole[..length]), Err(SummaryError::Truncated { offset: length }));
        }
        let longer = [&whole[..], &[0]].concat();
        assert_eq!(ColumnSummary::decode(&longer), Err(SummaryError::Trailing { offset: whole.len(), left: 1 }));
    }

    #[test]
    fn errors_say_what_and_where() {
        let error = |bytes: &[u8]| ColumnSummary::decode(bytes).unwrap_err().to_string();
        assert_eq!(error(&[2, 0]), "byte 0: expected version 1, found 2");
        assert_eq!(error(&[1, 5]), "byte 1: expected a detail of 4 or less, found 5");
        assert_eq!(error(&[1, 4, 2]), "byte 2: expected blocks in the palette below 2, found 2");
        assert_eq!(error(&[1, 4, 1, 7, 2]), "byte 4: expected a place in the palette below 2, found 2");
        let long = [&[1, 4][..], &[0xFF; 10]].concat();
        assert_eq!(error(&long), "byte 2: expected a number of 64 bits or less");
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_was_written(summary in any_summary()) {
            prop_assert_eq!(ColumnSummary::decode(&bytes(&summary)), Ok(summary));
        }

        #[test]
        fn hostile_bytes_are_an_error_or_a_summary(mut bytes in proptest::collection::vec(any::<u8>(), 0..400), level in 0..=4_u8) {
            if let [version, detail, ..] = &mut bytes[..] {
                (*version, *detail) = (VERSION, level);
            }
            if let Ok(summary) = ColumnSummary::decode(&bytes) {
                prop_assert_eq!(summary.cells.len(), summary.detail().cells().pow(2));
            }
        }

        #[test]
        fn each_cell_is_the_highest_block_there(
            blocks in proptest::collection::vec((0..16_i64, -70..70_i64, 0..16_i64, 0..4_u32), 0..200),
        ) {
            let mut column = Column::new(POS);
            for (x, y, z, block) in blocks {
                column.set_block(BlockPos::new(POS.x * 16 + x, y, POS.z * 16 + z), BlockId::new(block));
            }
            let summary = ColumnSummary::new(&column);
            for (x, z) in (0..16).flat_map(|x| (0..16).map(move |z| (x, z))) {
                let height = column.surface(x, z);
                prop_assert_eq!(summary.surface(x, z).map(|cell| cell.height), height);
                if let Some(cell) = summary.surface(x, z) {
                    let place = BlockPos::new(POS.x * 16 + x as i64, cell.height, POS.z * 16 + z as i64);
                    prop_assert_eq!(column.block(place), cell.block);
                }
            }
        }

        #[test]
        fn coarser_cells_stay_within_what_they_cover(fine in any_summary()) {
            for level in fine.detail().level()..=Detail::COARSEST.level() {
                let coarse = fine.at(Detail::new(level));
                prop_assert_eq!(coarse.detail().level(), level);
                let factor = fine.detail().cells() / coarse.detail().cells();
                for (x, z) in (0..coarse.detail().cells()).flat_map(|x| (0..coarse.detail().cells()).map(move |z| (x, z))) {
                    let covered = (0..factor).flat_map(|dz| (0..factor).map(move |dx| (dx, dz)));
                    let covered: Vec<_> = covered.filter_map(|(dx, dz)| fine.surface(x * factor + dx, z * factor + dz)).collect();
                    if let Some(cell) = coarse.surface(x, z) {
                        prop_assert!(covered.iter().any(|it| it.block == cell.block));
                        prop_assert!(covered.iter().any(|it| it.height <= cell.height));
                        prop_assert!(covered.iter().any(|it| it.height >= cell.height));
                    }
                }
            }
        }
    }
}
