//! [`Plan`]: the written palette, and the written form of each block.

use crate::block::BlockId;
use crate::chunk::Chunk;
use crate::snapshot::schematic::palette::{base, wet};
use crate::snapshot::schematic::{ChunkGrid, Result, Schematic, SchematicError, unnamed};
use rustc_hash::FxHashMap;

/// The maximum number of entries of a written palette.
const LARGEST: usize = 65_534;

/// The written palette, and the written form of each block.
pub(super) struct Plan {
    pub palette: Vec<String>,
    /// By block: the waterlogged state, if the block is dry and can be waterlogged.
    wet: Vec<Option<u16>>,
    /// By block: `true` if it is water.
    is_water: Vec<bool>,
}

impl Plan {
    pub fn new(schematic: &Schematic) -> Result<Self> {
        let blocks = &schematic.blocks;
        let mut palette = schematic.palette.clone();
        let is_water = palette.iter().map(|state| schematic.water.iter().any(|water| base(state) == water)).collect();
        let mut plan = Self { wet: vec![None; palette.len()], is_water, palette: Vec::new() };
        let mut places: FxHashMap<String, u16> = palette.iter().cloned().zip(0..).collect();
        for (_, chunk) in blocks.chunks() {
            for (at, _, block) in chunk.layered_blocks().filter(|(_, layer, _)| *layer == 1) {
                let below = chunk.block(at).index() as usize;
                if !plan.is_water(block) || plan.wet.get(below).is_none_or(Option::is_some) {
                    continue;
                }
                plan.wet[below] = wet(&palette[below]).map(|state| {
                    *places.entry(state).or_insert_with_key(|state| {
                        palette.push(state.clone());
                        (palette.len() - 1) as u16
                    })
                });
            }
        }
        plan.palette = palette;
        plan.check("block", blocks, schematic.palette.len())?;
        Ok(plan)
    }

    /// A plan for names that are not blocks.
    pub fn of_names(palette: &[String], cells: &ChunkGrid) -> Result<Self> {
        let plan = Self { wet: Vec::new(), is_water: Vec::new(), palette: palette.to_vec() };
        plan.check("biome", cells, palette.len())?;
        Ok(plan)
    }

    /// Checks that every number has a name.
    fn check(&self, what: &str, cells: &ChunkGrid, names: usize) -> Result<()> {
        if self.palette.len() > LARGEST {
            let found = self.palette.len() as u64;
            return Err(SchematicError::too_large("the palette", "entries", LARGEST as u64, found));
        }
        let is_unnamed = |block: BlockId| block.index() as usize >= names;
        match cells.chunks().find_map(|(_, chunk)| chunk.find_block(is_unnamed)) {
            Some((_, block)) => Err(unnamed(what, block.index().into())),
            None => Ok(()),
        }
    }

    /// The block that is written instead of this one if it is waterlogged; `None` if it is written unchanged.
    pub fn wet_block(&self, chunk: &Chunk, at: [usize; 3]) -> Option<u16> {
        chunk.block_at(at, 1).filter(|block| self.is_water(*block))?;
        *self.wet.get(chunk.block(at).index() as usize)?
    }

    fn is_water(&self, block: BlockId) -> bool {
        self.is_water.get(block.index() as usize) == Some(&true)
    }
}
