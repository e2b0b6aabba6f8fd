//! Sky light and block light of chunks, kept up to date as blocks, chunks and columns change.
//!
//! Each cell has two levels, 0 to 15. *Sky light* is 15 under the open sky; *block light* comes from blocks that
//! [shine](crate::block::BlockType::with_light). Both follow the same rules:
//!
//! | rule | |
//! |---|---|
//! | a step | into one of the six neighbors takes 1, or the neighbor's [attenuation](crate::block::BlockType::with_attenuation) if that is more |
//! | falling sky light | of level 15 takes nothing downwards, through blocks of attenuation 0 |
//! | closed faces | let no light pass, if the face of either neighbor is [closed](crate::block::BlockType::closed_faces); partly closed faces are open |
//! | opaque cubes | are dark inside, unless they shine |
//! | a shining block | has at least its own level, and its block light leaves through all of its faces |
//! | several sources | do not add up: a cell has the highest level that reaches it |
//! | the sky | is above the highest chunk of a column, if the column says so |
//! | a missing chunk | neither gives nor takes light: light waits at its border until it appears |
//! | block layers | above layer 0 do nothing to light |
//!
//! The light is a function of the blocks, whatever the order of the changes: each cell has the highest level that these
//! rules allow. The tests compare it with a flood fill.
//!
//! # Parts
//!
//! | type | role |
//! |---|---|
//! | [`LightTable`] | what each block type does to light, by id |
//! | [`LightBlocks`] | the caller's blocks, which the light is computed from and which it does not keep |
//! | [`ColumnLight`] | the light of one column alone, from scratch: for generation threads |
//! | [`LightMap`] | the light of all columns of a region: changes are announced, and [`LightMap::advance`] works them off |
//! | [`ChunkLight`], [`LightLevels`] | the result: two levels a cell, shared by pointer, without memory if they are all alike |
//!
//! # How it works
//!
//! Light moves 64 cells at a time. A set of cells has one bit each (`cells`), and levels are stored bit by bit
//! (`levels`), so a step of all cells of a level is a few shifts, and a comparison of 64 levels a few more operations. Each chunk
//! with work to do has three sets of cells per channel:
//!
//! | set | meaning | what is done |
//! |---|---|---|
//! | edited | the block or a missing neighbor has changed | the cell drops to its base, which is its own light or that of the sky, and joins *fallen* with its old level |
//! | fallen | the cell has dropped from this level | neighbors that the old level may have lit fall too; brighter ones join *rising* |
//! | rising | the cell may be too bright for its neighbors | neighbors that it lights to more than they have are raised and join *rising* |
//!
//! All fallen cells are worked off before any rising one. Two invariants hold in between, and lead to the one result: a cell that is brighter than
//! its base and its neighbors allow is beside a fallen one; and a cell that is darker than a neighbor allows is beside a rising
//! one. Both hold at any time, so the work can pause anywhere. The order from the highest level to the lowest only saves
//! time. Dropping too many cells costs time as well, but changes no result.
//!
//! # Cost
//!
//! A chunk without light, or under the full sky, costs no array. Pending work takes at most 7 KiB per chunk. One step of the
//! work is one chunk at one level, 0.1 to 1 us, and a microsecond or two for the first look at a chunk's blocks.

mod cells;
mod levels;
mod map;
mod optics;
mod parts;
mod pending;
mod spread;
#[cfg(test)]
mod tests;

pub use levels::LightLevels;
pub use map::LightMap;
pub use optics::LightTable;
pub use parts::ColumnLight;

use crate::block::BlockType;
use crate::chunk::{Chunk, Column};
use crate::space::{CHUNK_SIZE, ChunkPos};
use std::ops::RangeInclusive;

use cells::WORDS;
use levels::differing;

const MAX_LEVEL: u8 = BlockType::MAX_LIGHT;

/// The light of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Light {
    /// The light of the sky, as by day.
    pub sky: u8,
    /// The light of blocks.
    pub block: u8,
    /// The higher of both, with the light of the sky at the present time of day.
    pub now: u8,
}

impl Light {
    /// The levels that the sky loses from noon to midnight. The moon leaves 4 of 15.
    pub const NIGHT: u8 = 11;

    /// The levels of sky light and of block light under the open sky.
    pub const OPEN_SKY: [u8; 2] = [MAX_LEVEL, 0];

    /// The light of a cell with these levels of sky light and of block light. `daylight` is 1 by day and 0 at night.
    pub fn new([sky, block]: [u8; 2], daylight: f32) -> Self {
        let lost = (f32::from(Self::NIGHT) * (1.0 - daylight.clamp(0.0, 1.0))).round() as u8;
        Self { sky, block, now: block.max(sky.saturating_sub(lost)) }
    }
}

/// The light of a chunk. Clones share their memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChunkLight {
    /// The light of the sky.
    pub sky: LightLevels,
    /// The light of blocks.
    pub block: LightLevels,
}

impl ChunkLight {
    /// The levels of sky light and of block light at x, y, z.
    ///
    /// # Panics
    /// If a coordinate is not below 16, as with a slice.
    pub fn levels(&self, cell: [usize; 3]) -> [u8; 2] {
        [self.sky.level(cell), self.block.level(cell)]
    }

    /// The light of a chunk under the open sky.
    pub const fn open_sky() -> Self {
        Self { sky: LightLevels::uniform(Light::OPEN_SKY[0]), block: LightLevels::uniform(Light::OPEN_SKY[1]) }
    }

    /// The x, y and z of the box around all cells whose levels differ; `None` if there are none. Costs next to nothing for
    /// light that shares its memory.
    pub fn differing_cells(&self, other: &Self) -> Option<[RangeInclusive<usize>; 3]> {
        if self == other {
            return None;
        }
        // One bit for each coordinate at which a cell differs.
        let mut found = [0_u16; 3];
        for word in 0..WORDS {
            let of = |channel| differing(&self.channel(channel).word(word), &other.channel(channel).word(word));
            let cells = of(Channel::Sky) | of(Channel::Block);
            for row in 0..4 {
                let along_z = (cells >> (row * CHUNK_SIZE)) as u16;
                if along_z != 0 {
                    found[0] |= 1 << (word / 4);
                    found[1] |= 1 << (word % 4 * 4 + row);
                    found[2] |= along_z;
                }
            }
        }
        Some(found.map(|bits| bits.trailing_zeros() as usize..=bits.ilog2() as usize))
    }

    /// The heap memory in bytes, including memory that is shared with clones.
    pub fn heap_bytes(&self) -> usize {
        self.sky.heap_bytes() + self.block.heap_bytes()
    }

    const fn channel(&self, channel: Channel) -> &LightLevels {
        match channel {
            Channel::Sky => &self.sky,
            Channel::Block => &self.block,
        }
    }

    const fn channel_mut(&mut self, channel: Channel) -> &mut LightLevels {
        match channel {
            Channel::Sky => &mut self.sky,
            Channel::Block => &mut self.block,
        }
    }
}

/// The blocks that light is computed from.
pub trait LightBlocks {
    /// The chunk at a position that the [`LightMap`] has; `None` for air.
    fn chunk(&self, pos: ChunkPos) -> Option<&Chunk>;
}

impl LightBlocks for Column {
    /// Air for the chunks of other columns.
    fn chunk(&self, pos: ChunkPos) -> Option<&Chunk> {
        if pos.column() == self.pos() { Column::chunk(self, pos.y).map(AsRef::as_ref) } else { None }
    }
}

/// One of the two kinds of light.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Channel {
    Sky,
    Block,
}

impl Channel {
    const ALL: [Self; 2] = [Self::Sky, Self::Block];
}
