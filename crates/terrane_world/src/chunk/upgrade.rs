//! Upgrades chunks to a registry: replaces outdated block ids, migrates components and finds unknown ids. [`Renumbering`]
//! converts them between two registries.

use super::Chunk;
use crate::block::{BlockComponentId, BlockId, BlockLayout, BlockRegistry, BlockRegistryError};
use crate::chunk::ChunkAssembly;
use crate::space::{CHUNK_VOLUME, cell_position};
use std::collections::BTreeMap;

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

/// Maps the numbers of one registry to those of another by the names of the types.
#[derive(Clone, Debug)]
pub struct Renumbering {
    blocks: Vec<BlockId>,
    components: BTreeMap<BlockComponentId, BlockComponentId>,
    unknown: Vec<String>,
}

impl Renumbering {
    /// A mapping between two registries. Blocks that `to` does not have become `unknown`.
    pub fn new(from: &BlockRegistry, to: &BlockRegistry, unknown: BlockId) -> Self {
        let mut renumbering = Self { blocks: Vec::new(), components: BTreeMap::new(), unknown: Vec::new() };
        for (block, name) in (0..).map(BlockId::new).zip(from.names()) {
            renumbering.blocks.push(to.id(name).unwrap_or_else(|| {
                renumbering.unknown.push(name.to_owned());
                unknown
            }));
            for layout in from.components(block) {
                let known = from.component_record(layout.id).and_then(|record| to.component_of(record));
                renumbering.components.extend(known.map(|known| (layout.id, known)));
            }
        }
        renumbering
    }

    /// The names of the blocks that the other registry does not have.
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }

    /// Converts a chunk to the numbers of the other registry. Drops values of components that the other registry does
    /// not have in the same version or for the same block.
    pub fn chunk(&self, mut chunk: Chunk, to: &BlockRegistry) -> Chunk {
        let block = |number: BlockId| self.blocks.get(number.index() as usize).copied().unwrap_or(BlockId::AIR);
        if chunk.rename_blocks(block) {
            return chunk;
        }
        let mut assembly = ChunkAssembly::default();
        assembly.copy_renamed(&chunk, block, |position, layer, component| {
            let known = self.components.get(&component)?;
            let owner = block(chunk.block_at(position, layer)?);
            to.component_layout(owner, *known).map(|layout| layout.id)
        });
        assembly.finish()
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

    fn registry(names: &[&'static str], has_lock: bool) -> BlockRegistry {
        let mut registry = BlockRegistry::new();
        registry.register_component(BlockComponent::fixed::<u8>("game:lock")).unwrap();
        for name in names {
            let block = BlockType::new(*name);
            let block = if *name == "game:chest" && has_lock { block.with_component("game:lock") } else { block };
            registry.register(block).unwrap();
        }
        registry
    }

    /// Promise, multiplayer: A client and its server match blocks by their names.
    #[test]
    fn names_count_and_not_numbers() {
        let from = registry(&["game:stone", "game:chest", "game:lamp"], true);
        let to = registry(&["game:gravel", "game:chest", "game:stone"], true);
        let id = |registry: &BlockRegistry, name: &str| registry.id(name).unwrap();
        let mut chunk =
            Chunk::from_fn(
                |[x, y, _]| if y < 8 { id(&from, ["game:stone", "game:lamp"][x % 2]) } else { BlockId::AIR },
            );
        let at = [3, 9, 4];
        chunk.set_block(at, id(&from, "game:chest"));
        chunk.set_component(&from, at, 0, from.component("game:lock").unwrap(), &[7]).unwrap();
        chunk.set_block_at([0, 0, 0], 1, id(&from, "game:chest")).unwrap();

        let renumbering = Renumbering::new(&from, &to, id(&to, "game:gravel"));
        assert_eq!(renumbering.unknown(), ["game:lamp"]);
        let there = renumbering.chunk(chunk.clone(), &to);
        assert_eq!(there.block([0, 7, 0]), id(&to, "game:stone"));
        assert_eq!(there.block([1, 7, 0]), id(&to, "game:gravel"));
        assert_eq!((there.block(at), there.block([0, 15, 0])), (id(&to, "game:chest"), BlockId::AIR));
        assert_eq!(there.component(at, 0, to.component("game:lock").unwrap()), Some(&[7][..]));
        assert_eq!(there.block_at([0, 0, 0], 1), Some(id(&to, "game:chest")));

        // A block without such a component in the other registry loses the value.
        let to = registry(&["game:chest"], false);
        let there = Renumbering::new(&from, &to, BlockId::AIR).chunk(chunk, &to);
        assert_eq!(there.block(at), id(&to, "game:chest"));
        assert_eq!(there.component(at, 0, to.component("game:lock").unwrap()), None);
    }
}
