//! How a chunk keeps the blocks above layer 0.

use super::cell_set::CellSet;
use crate::block::BlockId;

/// The blocks above layer 0: a list for each layer, from 1, which is not empty. A cell that has a block in one of them has
/// one in each below.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layers(Vec<Layer>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Layer {
    cells: CellSet,
    /// In the order of the cells.
    blocks: Vec<BlockId>,
}

impl Layers {
    /// Takes blocks by cell, and those of a cell by layer, from 1.
    pub fn from_ascending(blocks: impl Iterator<Item = (u16, BlockId)>) -> Self {
        let mut layers: Vec<(Vec<u16>, Vec<BlockId>)> = Vec::new();
        let mut last = None;
        for (cell, block) in blocks {
            let layer = match last {
                Some((last, layer)) if last == cell => layer + 1,
                _ => 0,
            };
            last = Some((cell, layer));
            if layer == layers.len() {
                layers.push(Default::default());
            }
            layers[layer].0.push(cell);
            layers[layer].1.push(block);
        }
        let layer = |(cells, blocks): (Vec<u16>, _)| Layer { cells: CellSet::from_ascending(&cells), blocks };
        Self(layers.into_iter().map(layer).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of blocks in a cell, above layer 0.
    pub fn count(&self, cell: usize) -> usize {
        self.0.iter().take_while(|layer| layer.cells.rank(cell).is_ok()).count()
    }

    /// The block of a cell in a layer, which is 1 or more.
    pub fn block(&self, cell: usize, layer: u8) -> Option<BlockId> {
        let layer = self.0.get(usize::from(layer).checked_sub(1)?)?;
        layer.cells.rank(cell).ok().map(|rank| layer.blocks[rank])
    }

    /// Replaces a block, or puts one on top of a cell's others.
    pub fn set(&mut self, cell: usize, layer: u8, block: BlockId) -> Option<BlockId> {
        debug_assert!(layer > 0 && usize::from(layer) <= self.count(cell) + 1);
        if self.0.len() < usize::from(layer) {
            self.0.push(Layer { cells: CellSet::new(), blocks: Vec::new() });
        }
        let layer = &mut self.0[usize::from(layer) - 1];
        match layer.cells.rank(cell) {
            Ok(rank) => Some(std::mem::replace(&mut layer.blocks[rank], block)),
            Err(rank) => {
                layer.cells.insert(cell);
                layer.blocks.insert(rank, block);
                None
            }
        }
    }

    /// Takes the uppermost block out of a cell.
    pub fn pop(&mut self, cell: usize) -> Option<BlockId> {
        let top = self.count(cell).checked_sub(1)?;
        let layer = &mut self.0[top];
        let rank = layer.cells.rank(cell).ok()?;
        layer.cells.remove(cell);
        let block = layer.blocks.remove(rank);
        self.0.pop_if(|layer| layer.blocks.is_empty());
        Some(block)
    }

    /// Every block with its cell and layer, in the order of the format: by cell, the layer fastest.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u8, BlockId)> {
        let cells = self.0.first().into_iter().flat_map(|layer| layer.cells.iter());
        cells.flat_map(move |cell| (1..=u8::MAX).map_while(move |layer| Some((cell, layer, self.block(cell, layer)?))))
    }

    pub fn heap_bytes(&self) -> usize {
        let layers =
            self.0.iter().map(|layer| layer.cells.heap_bytes() + layer.blocks.capacity() * size_of::<BlockId>());
        self.0.capacity() * size_of::<Layer>() + layers.sum::<usize>()
    }
}
