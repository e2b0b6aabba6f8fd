//! The light of a region's columns.

use super::column_source::ColumnSource;
use crate::block::{BlockId, BlockRegistry};
use crate::chunk::{Chunk, Column};
use crate::generation::{SurfaceAnswer, SurfaceRequest};
use crate::light::{ColumnLight, LightBlocks, LightMap, LightTable};
use crate::space::{BlockPos, CHUNK_SIZE, ChunkPos, ColumnPos, HeightSet};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::time::Duration;

/// The fewest steps of light in a task, so that light advances in any region.
const MIN_STEPS: usize = 1_000;
/// All light is published after this many tasks in a row that left work.
const PATIENCE: u32 = 20;

/// How light is computed in a dimension.
pub struct LightRules {
    pub table: LightTable,
    /// The share of a region's period that is spent on light.
    pub share: f64,
}

impl LightRules {
    /// `None` for a share of 0: there is no light.
    pub fn new(blocks: &BlockRegistry, share: f64) -> Option<Self> {
        (share > 0.0).then(|| Self { table: LightTable::new(blocks), share })
    }

    /// The steps of light in one task. A step takes about a microsecond, and counting steps instead of time gives the same
    /// light in each run.
    pub fn steps(&self, period: Duration) -> usize {
        MIN_STEPS.max((period.as_micros() as f64 * self.share) as usize)
    }
}

impl ColumnSource {
    /// The light of a column, or of a part of one, without its neighbors; `None` if there is no light in this world.
    pub fn light_of(&self, column: &Column) -> Option<ColumnLight> {
        let LightRules { table, .. } = self.light.as_ref()?;
        let open_from = if column.loaded().is_some() { self.open_from(column.pos()) } else { self.chunk_heights.end };
        Some(light_alone(table, column, &self.chunk_heights, open_from))
    }

    /// In a sparse dimension, the chunk height from which the space above the loaded chunks is open sky: above the ground that
    /// the generator knows of. If it knows nothing, all that is loaded is under the sky.
    fn open_from(&self, column: ColumnPos) -> i64 {
        let corner = column.min_block(0);
        let places = [0, 4, 8, 12, CHUNK_SIZE as i64 - 1];
        let mut top = i64::MIN;
        for (x, z) in places.iter().flat_map(|x| places.map(|z| (corner.x + x, corner.z + z))) {
            match self.generator.surface(&SurfaceRequest { x, z, blocks: &self.blocks }) {
                Ok(SurfaceAnswer::Known(Some(surface))) => {
                    top = top.max(surface.covered_to.unwrap_or(surface.y).max(surface.y));
                }
                Ok(SurfaceAnswer::Known(None)) => {}
                Ok(SurfaceAnswer::Unknown) | Err(_) => return i64::MIN,
            }
        }
        if top == i64::MIN { top } else { (top >> 4) + 1 }
    }
}

/// The light of a column, or of a part of one, without its neighbors. `heights` are those of the dimension, in chunks, and above
/// the column is open sky from `open_from` on.
pub fn light_alone(table: &LightTable, column: &Column, heights: &Range<i64>, open_from: i64) -> ColumnLight {
    let whole = || HeightSet::from(heights.clone());
    ColumnLight::new(table, column, &column.loaded().cloned().unwrap_or_else(whole), open_from)
}

/// The light of a region's columns, worked off in a share of each task.
#[derive(Default)]
pub struct RegionLight {
    map: LightMap,
    /// Columns whose light is new since it was published.
    unpublished: FxHashSet<ColumnPos>,
    /// Tasks in a row that left work.
    behind: u32,
}

impl RegionLight {
    /// Adds a column, or a part of one. Heights that are there already stay as they are.
    pub fn insert(&mut self, column: &Column, light: impl FnOnce() -> Option<ColumnLight>) {
        let pos = column.pos();
        if column.loaded().is_none() && self.map.contains(pos) {
            return;
        }
        if let Some(light) = light() {
            self.map.insert(light);
            self.unpublished.insert(pos);
        }
    }

    /// Removes a column.
    pub fn remove(&mut self, column: ColumnPos) {
        self.map.remove(column);
        self.unpublished.remove(&column);
    }

    /// Removes a part of a column.
    pub fn cut(&mut self, column: ColumnPos, heights: &HeightSet) {
        self.map.remove_heights(column, heights);
        if self.map.contains(column) {
            self.unpublished.insert(column);
        }
    }

    /// Moves the columns for which `wanted` returns `true` to another region.
    pub fn split_off(&mut self, wanted: impl Fn(ColumnPos) -> bool) -> Self {
        let unpublished = self.unpublished.extract_if(|column| wanted(*column)).collect();
        Self { map: self.map.split_off(wanted), unpublished, behind: 0 }
    }

    /// Takes over the columns of another region. Light flows over the seams.
    pub fn append(&mut self, other: Self) {
        self.map.append(other.map);
        self.unpublished.extend(other.unpublished);
    }

    /// Announces that a block has changed.
    pub fn block_changed(&mut self, table: &LightTable, block: BlockPos, old: BlockId, new: BlockId) {
        self.map.block_changed(table, block, old, new);
    }

    /// Announces that a chunk was replaced. Returns the number of blocks that do something else to light now.
    pub fn chunk_changed(
        &mut self,
        table: &LightTable,
        chunk: ChunkPos,
        old: Option<&Chunk>,
        new: Option<&Chunk>,
    ) -> usize {
        self.map.chunk_changed(table, chunk, old, new)
    }

    /// Replaces the light of a column with light that was computed from scratch.
    pub fn replace(&mut self, light: ColumnLight) {
        self.unpublished.insert(light.pos());
        self.map.replace(light);
    }

    /// Returns `true` if the last task left work, and not for long.
    pub fn is_awaited(&self) -> bool {
        (1..PATIENCE).contains(&self.behind)
    }

    /// Returns `true` if no change is left to be worked off.
    pub fn is_settled(&self) -> bool {
        self.map.is_settled()
    }

    /// The levels of sky light and of block light.
    pub fn levels(&self, block: BlockPos) -> Option<[u8; 2]> {
        self.map.levels(block)
    }

    /// Works off changes in so many steps, and returns the light to publish. Light with work left in its column, or beside it, is
    /// held back for a while, because it may be too dark.
    pub fn advance(
        &mut self,
        table: &LightTable,
        columns: &FxHashMap<ColumnPos, Column>,
        steps: usize,
    ) -> Vec<ColumnLight> {
        if self.map.is_settled() && self.unpublished.is_empty() {
            return Vec::new();
        }
        let is_settled = self.map.advance(table, &Ground(columns), steps);
        self.unpublished.extend(self.map.drain_changed().map(|(chunk, _)| chunk.column()));
        self.behind = if is_settled { 0 } else { self.behind + 1 };
        let mut unsettled = FxHashSet::default();
        if !self.unpublished.is_empty() && !self.behind.is_multiple_of(PATIENCE) {
            unsettled.extend(self.map.unsettled_columns());
        }
        let is_settled = |column: &ColumnPos| {
            let beside = |x| (-1..=1).map(move |z| column.offset(x, z));
            !(-1..=1).flat_map(beside).any(|column| unsettled.contains(&column))
        };
        let mut columns: Vec<_> = self.unpublished.extract_if(is_settled).collect();
        columns.sort_unstable();
        columns.into_iter().filter_map(|column| self.map.column(column)).collect()
    }
}

/// The blocks that the light is computed from.
struct Ground<'a>(&'a FxHashMap<ColumnPos, Column>);

impl LightBlocks for Ground<'_> {
    fn chunk(&self, pos: ChunkPos) -> Option<&Chunk> {
        self.0.get(&pos.column())?.chunk(pos.y).map(AsRef::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BlockType;
    use crate::simulation::SplitMix64;

    const EDGE: i64 = 12;
    const HEIGHTS: Range<i64> = 0..4;

    /// Uneven ground under a roof with holes.
    fn column(pos: ColumnPos, stone: BlockId, random: &mut SplitMix64) -> Column {
        let (mut column, corner) = (Column::new(pos), pos.min_block(0));
        for (x, z) in (0..16).flat_map(|x| (0..16).map(move |z| (x, z))) {
            let top = i64::from(random.below(24));
            (0..top).for_each(|y| _ = column.set_block(corner.offset(x, y, z), stone));
            if random.below(8) > 0 {
                column.set_block(corner.offset(x, 40, z), stone);
            }
        }
        column
    }

    /// Promise, light: When much ground arrives at once, its light is published in parts, each when it is right.
    #[test]
    fn light_of_many_columns_is_published_in_parts_and_once() {
        let mut blocks = BlockRegistry::new();
        let stone = blocks.register(BlockType::new("game:stone")).unwrap();
        let (table, mut random) = (LightTable::new(&blocks), SplitMix64::new(7));
        let (mut light, mut columns) = (RegionLight::default(), FxHashMap::default());
        for pos in (0..EDGE).flat_map(|x| (0..EDGE).map(move |z| ColumnPos::new(x, z))) {
            let column = column(pos, stone, &mut random);
            light.insert(&column, || Some(light_alone(&table, &column, &HEIGHTS, HEIGHTS.end)));
            columns.insert(pos, column);
        }
        let (mut published, mut first, mut tasks) = (FxHashMap::default(), None, 0);
        while !light.is_settled() {
            tasks += 1;
            for column in light.advance(&table, &columns, 5_000) {
                first.get_or_insert(tasks);
                assert!(published.insert(column.pos(), column).is_none(), "each column is published once");
            }
            // After many tasks in a row, columns are published as they are.
            light.behind = light.behind.min(1);
        }
        assert!(first.is_some_and(|first| first < tasks), "{first:?} of {tasks} tasks");
        assert_eq!(published.len(), columns.len());
        for column in published.into_values() {
            for (y, chunk) in light.map.column(column.pos()).unwrap().chunks() {
                assert_eq!(column.chunk(y), Some(chunk), "{} at {y}", column.pos());
            }
        }
    }
}
