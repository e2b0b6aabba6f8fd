//! The opaque blocks of 64 x 64 block columns, as runs of opaque blocks for each, and their binary form.
//!
//! # Binary form, version 1
//!
//! LEB128 numbers; signed ones zigzag. The block columns are in order of x, then z.
//!
//! | part | content |
//! |---|---|
//! | version | 1 |
//! | counts | pairs until there are 4,096 block columns: how many successive ones have the same number of runs, and that number |
//! | bottoms | for each run, lowest first: its lowest block minus that of the run with the same index in the last earlier block column that has one, else minus that of the run below it, else (for the very first) minus 0; a 0 is followed by the number of further 0s |
//! | lengths | the same for the number of its blocks, minus 1 |

use crate::block::BlockId;
use crate::bytes::{ReadError, Reader, put_number, put_signed};
use crate::chunk::{Chunk, Column};
use crate::space::{CHUNK_COORDINATES, CHUNK_SIZE, ColumnPos, HeightSet};
use std::ops::Range;

/// The number of block columns along one side.
const TILE_SIZE: usize = 64;
const TILE_AREA: usize = TILE_SIZE * TILE_SIZE;
const VERSION: u64 = 1;
/// The maximum number of runs in a map, to limit the memory for a boundless world of stripes.
const MAX_RUNS: usize = 1 << 24;

/// The opaque runs of 64 x 64 block columns: a [batch](crate::space::BatchPos) of columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchOpacity {
    /// In the order of x, then z.
    columns: Vec<HeightSet>,
}

impl Default for BatchOpacity {
    /// A map without opaque blocks.
    fn default() -> Self {
        Self { columns: vec![HeightSet::new(); TILE_AREA] }
    }
}

impl BatchOpacity {
    /// The opaque heights at `x`, `z`, in blocks from the tile's lowest corner.
    ///
    /// # Panics
    /// If a coordinate is 64 or more.
    pub fn opaque(&self, x: usize, z: usize) -> &HeightSet {
        &self.columns[index(x, z)]
    }

    /// The highest opaque block.
    pub fn highest(&self, x: usize, z: usize) -> Option<i64> {
        self.opaque(x, z).ranges().next_back().map(|run| run.end - 1)
    }

    /// Returns `true` if all blocks of this range are opaque.
    pub fn is_opaque(&self, x: usize, z: usize, heights: Range<i64>) -> bool {
        self.opaque(x, z).contains_all(&HeightSet::from(heights))
    }

    /// Returns `true` if no block above this height is opaque, so that the sky is visible from it.
    pub fn sees_sky(&self, x: usize, z: usize, height: i64) -> bool {
        self.highest(x, z).is_none_or(|highest| highest <= height)
    }

    /// Adds a chunk of one of its columns.
    pub fn set_chunk(&mut self, column: ColumnPos, y: i64, chunk: &Chunk, is_opaque: impl Fn(BlockId) -> bool) {
        let [low_x, low_z] = [column.x, column.z].map(|of| (of & 3) as usize * CHUNK_SIZE);
        let heights = chunk.heights_of(is_opaque);
        for (x, heights) in heights.iter().enumerate() {
            for (z, heights) in heights.iter().enumerate() {
                self.columns[index(low_x + x, low_z + z)].set_window(y << 4, *heights);
            }
        }
    }

    /// Adds one of its columns, or the loaded part of it.
    #[doc(hidden)]
    pub fn set_column(&mut self, column: &Column, is_opaque: impl Fn(BlockId) -> bool + Copy) {
        let pos = column.pos();
        let all = HeightSet::from(CHUNK_COORDINATES);
        for range in column.loaded().unwrap_or(&all).ranges() {
            let [low_x, low_z] = [pos.x, pos.z].map(|of| (of & 3) as usize * CHUNK_SIZE);
            // There is no height above the highest block.
            let blocks = range.start << 4..((range.end - 1) << 4 | 15).saturating_add(1);
            for (x, z) in (0..CHUNK_SIZE).flat_map(|x| (0..CHUNK_SIZE).map(move |z| (x, z))) {
                self.columns[index(low_x + x, low_z + z)].remove(blocks.clone());
            }
        }
        column.chunks().for_each(|(y, chunk)| self.set_chunk(pos, y, chunk, is_opaque));
    }

    /// Returns `true` if there are opaque blocks and the binary form can be decoded.
    pub fn is_worth_storing(&self) -> bool {
        (1..=MAX_RUNS).contains(&self.columns.iter().map(|column| column.ranges().len()).sum())
    }

    /// Appends the binary form.
    pub fn encode(&self, into: &mut Vec<u8>) {
        put_number(into, VERSION);
        for same in self.columns.chunk_by(|a, b| a.ranges().len() == b.ranges().len()) {
            put_number(into, same.len() as u64);
            put_number(into, same[0].ranges().len() as u64);
        }
        write_differences(into, self.values(|run| run.start));
        write_differences(into, self.values(|run| run.end.wrapping_sub(run.start).wrapping_sub(1)));
    }

    /// A number for each run, minus that of the run with the same index in the previous block columns.
    fn values(&self, value: impl Fn(Range<i64>) -> i64) -> Vec<i64> {
        let mut before: Vec<i64> = Vec::new();
        let mut differences = Vec::new();
        for column in &self.columns {
            for (place, run) in column.ranges().enumerate() {
                if before.len() <= place {
                    before.push(before.last().copied().unwrap_or(0));
                }
                let value = value(run);
                differences.push(value.wrapping_sub(before[place]));
                before[place] = value;
            }
        }
        differences
    }

    /// Decodes the binary form. An error describes the damage and its offset.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let mut reader = Reader::new(bytes);
        let version = reader.number().map_err(unread)?;
        if version != VERSION {
            return Err(invalid(0, &format!("expected version {VERSION}, found {version}")));
        }
        let counts = read_counts(&mut reader)?;
        let runs = counts.iter().sum();
        let (bottoms, bottoms_at) = (read_differences(&mut reader, runs)?, reader.offset());
        let lengths = read_differences(&mut reader, runs)?;
        if reader.left() > 0 {
            return Err(invalid(reader.offset(), "expected the end"));
        }
        let [bottoms, lengths] = [bottoms, lengths].map(|differences| restore(&counts, differences));
        let mut runs = bottoms.into_iter().zip(lengths);
        let mut tile = Self::default();
        for (column, count) in tile.columns.iter_mut().zip(counts) {
            let mut lowest = None;
            for (bottom, length) in runs.by_ref().take(count) {
                let top = bottom.checked_add(length).and_then(|last| last.checked_add(1)).filter(|_| length >= 0);
                match top {
                    // Touching runs would be a single one.
                    Some(top) if lowest.is_none_or(|lowest| bottom > lowest) => {
                        column.insert(bottom..top);
                        lowest = Some(top);
                    }
                    _ => return Err(invalid(bottoms_at, "a run is empty, or not above the one below it")),
                }
            }
        }
        Ok(tile)
    }
}

fn index(x: usize, z: usize) -> usize {
    assert!((x | z) < TILE_SIZE, "[{x}, {z}] is outside of a tile");
    x * TILE_SIZE + z
}

/// Restores the numbers from their differences.
fn restore(counts: &[usize], differences: Vec<i64>) -> Vec<i64> {
    let mut before: Vec<i64> = Vec::new();
    let mut differences = differences.into_iter();
    let mut values = Vec::with_capacity(differences.len());
    for count in counts {
        for (place, difference) in differences.by_ref().take(*count).enumerate() {
            if before.len() <= place {
                before.push(before.last().copied().unwrap_or(0));
            }
            before[place] = before[place].wrapping_add(difference);
            values.push(before[place]);
        }
    }
    values
}

fn write_differences(into: &mut Vec<u8>, differences: Vec<i64>) {
    for same in differences.chunk_by(|a, b| a == b) {
        if same[0] == 0 {
            put_number(into, 0);
            put_number(into, same.len() as u64 - 1);
        } else {
            same.iter().for_each(|step| put_signed(into, *step));
        }
    }
}

fn unread(error: ReadError) -> String {
    match error {
        ReadError::Truncated { offset } => invalid(offset, "the opacity ends too early"),
        ReadError::TooLong { offset } => invalid(offset, "expected a number of 64 bits or less"),
    }
}

fn invalid(offset: usize, what: &str) -> String {
    format!("byte {offset}: {what}")
}

/// The number of runs of each block column.
fn read_counts(reader: &mut Reader<'_>) -> Result<Vec<usize>, String> {
    let mut counts = Vec::with_capacity(TILE_AREA);
    let mut runs = 0_u64;
    while counts.len() < TILE_AREA {
        let begin = reader.offset();
        let (columns, count) = (reader.number().map_err(unread)?, reader.number().map_err(unread)?);
        runs = runs.saturating_add(columns.saturating_mul(count));
        if columns == 0 || columns > (TILE_AREA - counts.len()) as u64 {
            return Err(invalid(begin, "expected 4,096 block columns in all"));
        }
        if runs > MAX_RUNS as u64 {
            return Err(invalid(begin, "there are more runs than anybody needs"));
        }
        counts.resize(counts.len() + columns as usize, count as usize);
    }
    Ok(counts)
}

fn read_differences(reader: &mut Reader<'_>, runs: usize) -> Result<Vec<i64>, String> {
    // Allocates no more up front than the bytes can hold: repeated zeros take fewer bytes.
    let mut differences = Vec::with_capacity(runs.min(reader.left()));
    while differences.len() < runs {
        let begin = reader.offset();
        let step = reader.signed().map_err(unread)?;
        if step != 0 {
            differences.push(step);
            continue;
        }
        let further = reader.number().map_err(unread)?;
        if further >= (runs - differences.len()) as u64 {
            return Err(invalid(begin, "there are more numbers than runs"));
        }
        differences.resize(differences.len() + 1 + further as usize, 0);
    }
    Ok(differences)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::{CHUNK_VOLUME, cell_position};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    const GLASS: BlockId = BlockId::new(2);

    fn is_opaque(block: BlockId) -> bool {
        block.index() == 1
    }

    fn bytes(tile: &BatchOpacity) -> Vec<u8> {
        let mut bytes = Vec::new();
        tile.encode(&mut bytes);
        bytes
    }

    /// A chunk with a few cuboids of stone and of glass in air.
    fn any_chunk() -> impl Strategy<Value = Chunk> {
        let side = || (0..16_usize, 1..17_usize).prop_map(|(from, length)| from..(from + length).min(16));
        let cuboids = vec((side(), side(), side(), 0..3_u32), 0..4);
        cuboids.prop_map(|cuboids| {
            Chunk::from_fn(|[x, y, z]| {
                let within = |(xs, ys, zs, _): &&(Range<usize>, Range<usize>, Range<usize>, u32)| {
                    xs.contains(&x) && ys.contains(&y) && zs.contains(&z)
                };
                cuboids.iter().rev().find(within).map_or(BlockId::AIR, |cuboid| BlockId::new(cuboid.3))
            })
        })
    }

    #[test]
    fn level_ground_takes_a_few_bytes_and_hills_a_byte_a_block_column() {
        let mut level = BatchOpacity::default();
        let mut hills = BatchOpacity::default();
        for x in 0..TILE_SIZE {
            for z in 0..TILE_SIZE {
                level.columns[index(x, z)].insert(-64..63);
                let wave = ((x as f64 / 9.0).sin() * 8.0 + (z as f64 / 13.0).cos() * 11.0) as i64;
                hills.columns[index(x, z)].insert(-64..63 + wave);
            }
        }
        assert!(bytes(&level).len() < 24, "{}", bytes(&level).len());
        assert!(bytes(&hills).len() < TILE_AREA * 5 / 4, "{}", bytes(&hills).len());
        assert_eq!(BatchOpacity::decode(&bytes(&hills)), Ok(hills));
    }

    #[test]
    fn questions_are_answered_from_the_runs() {
        let mut tile = BatchOpacity::default();
        let column = ColumnPos::new(-3, 6);
        tile.set_chunk(column, 0, &Chunk::uniform(BlockId::new(1)), is_opaque);
        tile.set_chunk(column, 1, &Chunk::uniform(GLASS), is_opaque);
        tile.set_chunk(column, 2, &Chunk::from_fn(|[_, y, _]| BlockId::new(u32::from(y == 3))), is_opaque);
        let (x, z) = (16, 32);
        assert!(tile.opaque(x, z).ranges().eq([0..16, 35..36]));
        assert_eq!((tile.highest(x, z), tile.highest(x - 1, z)), (Some(35), None));
        assert!(tile.is_opaque(x, z, 0..16) && !tile.is_opaque(x, z, 0..17) && tile.is_opaque(x, z, 5..5));
        assert!(!tile.sees_sky(x, z, 34) && tile.sees_sky(x, z, 35) && tile.sees_sky(x, z, 100));
        assert!(tile.sees_sky(x - 1, z, i64::MIN));
    }

    #[test]
    fn heights_reach_the_edges() {
        let mut tile = BatchOpacity::default();
        for y in [i64::MIN >> 4, i64::MAX >> 4] {
            tile.set_chunk(ColumnPos::new(0, 0), y, &Chunk::uniform(BlockId::new(1)), is_opaque);
        }
        assert!(tile.is_opaque(0, 0, i64::MIN..i64::MIN + 16));
        assert_eq!(BatchOpacity::decode(&bytes(&tile)), Ok(tile));
    }

    #[test]
    fn errors_name_the_problem_and_its_place() {
        let error = |bytes: &[u8]| BatchOpacity::decode(bytes).unwrap_err();
        assert_eq!(error(&[]), "byte 0: the opacity ends too early");
        assert_eq!(error(&[2]), "byte 0: expected version 1, found 2");
        assert_eq!(error(&[1, 0, 0]), "byte 1: expected 4,096 block columns in all");
        assert_eq!(error(&[1, 0x81, 0x20, 0]), "byte 1: expected 4,096 block columns in all");
        assert_eq!(error(&[1, 0x80, 0x20, 0x81, 0x20]), "byte 1: there are more runs than anybody needs");
        assert_eq!(error(&[1, 0x80, 0x20, 0, 7]), "byte 4: expected the end");
        let one_run = [1, 1, 1, 0xFF, 0x1F, 0];
        assert_eq!(error(&[&one_run[..], &[0, 1]].concat()), "byte 6: there are more numbers than runs");
        assert_eq!(
            error(&[&one_run[..], &[0, 0, 1]].concat()),
            "byte 8: a run is empty, or not above the one below it"
        );
        let whole = [&one_run[..], &[0, 0, 0, 0]].concat();
        assert_eq!(BatchOpacity::decode(&whole).unwrap().highest(0, 0), Some(0));
        (0..whole.len()).for_each(|end| assert!(BatchOpacity::decode(&whole[..end]).is_err()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn a_tile_agrees_with_a_set_of_blocks(chunks in vec((0..4_i64, 0..4_i64, -2..2_i64, any_chunk()), 0..12)) {
            let mut tile = BatchOpacity::default();
            let mut model: BTreeMap<(usize, usize), BTreeSet<i64>> = BTreeMap::new();
            for (x, z, y, chunk) in chunks {
                tile.set_chunk(ColumnPos::new(x - 4, z + 8), y, &chunk, is_opaque);
                for at in (0..CHUNK_VOLUME).map(cell_position) {
                    let column = model.entry((x as usize * 16 + at[0], z as usize * 16 + at[2])).or_default();
                    let height = (y << 4) + at[1] as i64;
                    if is_opaque(chunk.block(at)) { column.insert(height) } else { column.remove(&height) };
                }
            }
            for (x, z) in (0..64).flat_map(|x| (0..64).map(move |z| (x, z))) {
                let expected = model.get(&(x, z)).cloned().unwrap_or_default();
                prop_assert!(tile.opaque(x, z).iter().eq(expected));
            }
            prop_assert_eq!(BatchOpacity::decode(&bytes(&tile)), Ok(tile));
        }
    }
}
