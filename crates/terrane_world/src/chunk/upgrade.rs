//! Upgrades chunks to a registry: replaces outdated block ids, migrates components and finds unknown ids.

use super::Chunk;
use crate::block::{BlockId, BlockLayout, BlockRegistry, BlockRegistryError};
use crate::space::{CHUNK_VOLUME, cell_position};

impl Chunk {
    /// The same chunk with every block converted to the current id of its type and its components migrated. `None` if
    /// nothing changes.
    ///
    /// # Errors
    /// If the game's migration refuses a value.
    pub fn upgraded(&self, blocks: &BlockRegistry) -> Result<Option<Self>, BlockRegistryError> {
        let layered = || self.layered_blocks().map(|(.., block)| block);
        if !self.palette().iter().copied().chain(layered()).any(|block| blocks.successor(block).is_some()) {
            return Ok(None);
        }
        let mut upgraded = self.clone();
        for (cell, block) in (0..CHUNK_VOLUME).zip(self.blocks()) {
            upgraded.upgrade_block(blocks, cell_position(cell), 0, block)?;
        }
        for (position, layer, block) in self.layered_blocks() {
            upgraded.upgrade_block(blocks, position, layer, block)?;
        }
        // The palette still has the old blocks.
        upgraded.compact();
        Ok(Some(upgraded))
    }

    /// A block of any layer for which `is_wanted` is true, and its cell.
    pub fn find_block(&self, is_wanted: impl Fn(BlockId) -> bool) -> Option<([usize; 3], BlockId)> {
        // The palette may have blocks that no longer occur.
        if self.palette().iter().copied().any(&is_wanted)
            && let Some((cell, block)) = self.blocks().enumerate().find(|(_, block)| is_wanted(*block))
        {
            return Some((cell_position(cell), block));
        }
        let mut layered = self.layered_blocks().map(|(position, _, block)| (position, block));
        layered.find(|(_, block)| is_wanted(*block))
    }

    fn upgrade_block(
        &mut self,
        blocks: &BlockRegistry,
        position: [usize; 3],
        layer: u8,
        block: BlockId,
    ) -> Result<(), BlockRegistryError> {
        if blocks.successor(block).is_none() {
            return Ok(());
        }
        let components = blocks.components(block).iter();
        let values: Vec<Vec<u8>> = components
            .map(|of| self.component(position, layer, of.id).map_or_else(|| of.unset(), <[u8]>::to_vec))
            .collect();
        let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        let (block, values) = blocks.upgrade(block, &values)?;
        // This cannot fail: the layer exists, and the values fit the type.
        let _ = self.set_block_at(position, layer, block);
        for (of, value) in blocks.components(block).iter().zip(values) {
            let _ = self.set_component(blocks, position, layer, of.id, &value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{BlockComponent, BlockType, Schema};

    /// A world with chests of the old kind, with a lock of one byte and no label.
    fn old_world() -> (BlockRegistry, BlockId) {
        let mut old = BlockRegistry::new();
        old.register_component(BlockComponent::fixed::<u8>("game:lock")).unwrap();
        let chest = old.register(BlockType::new("game:chest").with_component("game:lock")).unwrap();
        (old, chest)
    }

    fn new_world(old: &BlockRegistry) -> BlockRegistry {
        let records = (old.block_records().collect(), old.component_records().cloned().collect());
        let mut new = BlockRegistry::from_records(records.0, records.1).unwrap();
        let schema = Schema::new(1).with_migration(0, |lock| match lock {
            [255] => Err("no key fits".into()),
            lock => Ok([lock, &[7]].concat()),
        });
        new.register_component(BlockComponent::fixed::<u16>("game:lock").with_schema(schema)).unwrap();
        new.register_component(BlockComponent::variable("game:label")).unwrap();
        let chest = BlockType::new("game:chest").with_component("game:lock").with_component("game:label");
        new.register(chest).unwrap();
        new
    }

    /// Promise, blocks: A block type whose components change gets a new id, and old blocks are converted when their chunk loads.
    #[test]
    fn blocks_of_every_layer_upgrade_to_their_current_type_with_their_values() {
        let (old, chest) = old_world();
        let lock = old.component("game:lock").unwrap();
        let mut chunk = Chunk::uniform(BlockId::AIR);
        for (position, layer, value) in [([1, 2, 3], 0, 5), ([1, 2, 3], 1, 6), ([15, 15, 15], 0, 9)] {
            chunk.place_block(&old, position, layer, chest).unwrap();
            chunk.set_component(&old, position, layer, lock, &[value]).unwrap();
        }
        let new = new_world(&old);
        let upgraded = chunk.upgraded(&new).unwrap().expect("it changed");
        let (lock, label) = (new.component("game:lock").unwrap(), new.component("game:label").unwrap());
        for (position, layer, value) in [([1, 2, 3], 0, 5), ([1, 2, 3], 1, 6), ([15, 15, 15], 0, 9)] {
            assert_eq!(upgraded.block_at(position, layer), new.id("game:chest"));
            assert_eq!(upgraded.component(position, layer, lock), Some(&[value, 7][..]));
            assert_eq!(upgraded.component(position, layer, label), Some(&[][..]));
        }
        assert_eq!(upgraded.block([0, 0, 0]), BlockId::AIR);
        assert_eq!(upgraded.upgraded(&new), Ok(None), "it is what it should be");
    }

    #[test]
    fn a_value_that_the_migration_refuses_is_an_error_and_the_chunk_stays() {
        let (old, chest) = old_world();
        let mut chunk = Chunk::uniform(BlockId::AIR);
        chunk.place_block(&old, [0, 1, 0], 0, chest).unwrap();
        chunk.set_component(&old, [0, 1, 0], 0, old.component("game:lock").unwrap(), &[255]).unwrap();
        let error = chunk.upgraded(&new_world(&old)).unwrap_err();
        assert!(error.to_string().contains("no key fits"), "{error}");
    }

    #[test]
    fn a_world_where_nothing_changed_costs_no_copy() {
        let (old, chest) = old_world();
        let mut chunk = Chunk::uniform(chest);
        chunk.set_block([0; 3], BlockId::AIR);
        assert_eq!(chunk.upgraded(&old), Ok(None));
    }
}
