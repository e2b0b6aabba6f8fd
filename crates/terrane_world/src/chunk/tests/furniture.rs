//! Block types with components, and chunks of them as plain arrays.

use super::*;
use crate::block::{BlockComponentId, BlockComponentLayout, BlockLayout};
use std::collections::BTreeMap;

pub const STONE: BlockId = BlockId::new(1);
pub const WATER: BlockId = BlockId::new(2);
pub const FURNACE: BlockId = BlockId::new(3);
pub const SIGN: BlockId = BlockId::new(4);
pub const CHEST: BlockId = BlockId::new(5);
/// One more than the highest block id.
pub const KINDS: u32 = 6;

pub const HEAT: BlockComponentId = BlockComponentId::new(0);
pub const FACING: BlockComponentId = BlockComponentId::new(1);
pub const TEXT: BlockComponentId = BlockComponentId::new(BlockComponentId::VARIABLE | 2);
pub const ITEMS: BlockComponentId = BlockComponentId::new(BlockComponentId::VARIABLE | 3);

const HEAT_LAYOUT: BlockComponentLayout = BlockComponentLayout { id: HEAT, size: Some(4) };
const FACING_LAYOUT: BlockComponentLayout = BlockComponentLayout { id: FACING, size: Some(1) };
const TEXT_LAYOUT: BlockComponentLayout = BlockComponentLayout { id: TEXT, size: None };
const ITEMS_LAYOUT: BlockComponentLayout = BlockComponentLayout { id: ITEMS, size: None };

pub struct Furniture;

impl BlockLayout for Furniture {
    fn components(&self, block: BlockId) -> &[BlockComponentLayout] {
        match block {
            FURNACE => &[HEAT_LAYOUT, FACING_LAYOUT],
            SIGN => &[FACING_LAYOUT, TEXT_LAYOUT],
            CHEST => &[FACING_LAYOUT, ITEMS_LAYOUT],
            _ => &[],
        }
    }
}

pub type ModelBlock = (BlockId, BTreeMap<BlockComponentId, Vec<u8>>);

/// The blocks of each cell, from layer 0.
#[derive(Clone)]
pub struct ModelChunk(pub Vec<Vec<ModelBlock>>);

#[derive(Clone, Debug)]
pub enum Edit {
    Set(usize, u8, BlockId),
    Place(usize, u8, BlockId),
    Remove(usize, u8),
    SetComponents(usize, u8, Vec<u8>),
}

pub fn edits(length: usize) -> impl Strategy<Value = Vec<Edit>> {
    // A few cells get many edits, and others make the sets of cells large.
    let cell = || prop_oneof![0..24_usize, 0..CHUNK_VOLUME, 4000..CHUNK_VOLUME];
    let layer = || prop_oneof![3 => Just(0_u8), 2 => 0..4_u8];
    let block = || (0..KINDS).prop_map(BlockId::new);
    let value = prop::collection::vec(any::<u8>(), 4..12);
    let edit = prop_oneof![
        1 => (cell(), layer(), block()).prop_map(|(cell, layer, block)| Edit::Set(cell, layer, block)),
        4 => (cell(), layer(), block()).prop_map(|(cell, layer, block)| Edit::Place(cell, layer, block)),
        1 => (cell(), layer()).prop_map(|(cell, layer)| Edit::Remove(cell, layer)),
        3 => (cell(), layer(), value).prop_map(|(cell, layer, value)| Edit::SetComponents(cell, layer, value)),
    ];
    prop::collection::vec(edit, 0..length)
}

/// The value of a component, made from some bytes.
fn sized(layout: &BlockComponentLayout, bytes: &[u8]) -> Vec<u8> {
    layout.size.map_or(bytes, |size| &bytes[..size as usize]).to_vec()
}

impl ModelChunk {
    pub fn new(block: BlockId) -> Self {
        Self(vec![vec![(block, BTreeMap::new())]; CHUNK_VOLUME])
    }

    /// Applies the edit to the model and the chunk, and compares the results.
    pub fn edit(&mut self, chunk: &mut Chunk, edit: &Edit) {
        match edit {
            Edit::Set(cell, layer, block) => {
                let old = chunk.set_block_at(cell_position(*cell), *layer, *block);
                assert_eq!(old.ok(), self.set(*cell, *layer, *block));
            }
            Edit::Place(cell, layer, block) => {
                let old = chunk.place_block(&Furniture, cell_position(*cell), *layer, *block);
                let expected = self.set(*cell, *layer, *block);
                assert_eq!(old.ok(), expected);
                if expected.is_some_and(|old| old != Some(*block)) {
                    let components = &mut self.0[*cell][usize::from(*layer)].1;
                    components.extend(Furniture.components(*block).iter().map(unset));
                }
            }
            Edit::Remove(cell, layer) => {
                let blocks = &mut self.0[*cell];
                let removed = (usize::from(*layer) < blocks.len()).then(|| blocks.remove((*layer).into()));
                if blocks.is_empty() {
                    blocks.push((BlockId::AIR, BTreeMap::new()));
                }
                assert_eq!(chunk.remove_block(cell_position(*cell), *layer), removed.map(|(block, _)| block));
            }
            Edit::SetComponents(cell, layer, bytes) => {
                let Some((block, components)) = self.0[*cell].get_mut(usize::from(*layer)) else { return };
                for layout in Furniture.components(*block) {
                    let value = sized(layout, bytes);
                    chunk.set_component(&Furniture, cell_position(*cell), *layer, layout.id, &value).unwrap();
                    components.insert(layout.id, value);
                }
            }
        }
    }

    /// Adds the missing components of each block, like the format.
    pub fn complete(&mut self) {
        for (block, components) in self.0.iter_mut().flatten() {
            for layout in Furniture.components(*block) {
                components.entry(layout.id).or_insert_with(|| unset(layout).1);
            }
        }
    }

    pub fn check(&self, chunk: &Chunk) {
        for (cell, blocks) in self.0.iter().enumerate() {
            let position = cell_position(cell);
            assert_eq!(chunk.layer_count(position), blocks.len());
            for (layer, (block, components)) in (0..).zip(blocks) {
                assert_eq!(chunk.block_at(position, layer), Some(*block));
                let found = chunk.components(position, layer).map(|(id, value)| (id, value.to_vec()));
                assert!(found.eq(components.clone()), "cell {cell}, layer {layer}");
                for (id, value) in components {
                    assert_eq!(chunk.component(position, layer, *id), Some(&value[..]));
                }
            }
            assert_eq!(chunk.block_at(position, blocks.len() as u8), None);
        }
        let layered = self.0.iter().map(|blocks| blocks.len() - 1).sum::<usize>();
        assert_eq!(chunk.layered_blocks().count(), layered);
        assert_eq!(chunk.has_components(), self.0.iter().flatten().any(|(_, components)| !components.is_empty()));
    }

    /// `None` if there is no such layer, otherwise the previous block, if any.
    fn set(&mut self, cell: usize, layer: u8, block: BlockId) -> Option<Option<BlockId>> {
        let blocks = &mut self.0[cell];
        let count = blocks.len();
        match blocks.get_mut(usize::from(layer)) {
            Some((old, _)) if *old == block => Some(Some(block)),
            Some(there) => Some(Some(std::mem::replace(there, (block, BTreeMap::new())).0)),
            None if count == usize::from(layer) => {
                blocks.push((block, BTreeMap::new()));
                Some(None)
            }
            None => None,
        }
    }
}

fn unset(layout: &BlockComponentLayout) -> (BlockComponentId, Vec<u8>) {
    (layout.id, layout.unset())
}
