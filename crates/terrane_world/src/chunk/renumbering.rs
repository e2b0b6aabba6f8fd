//! [`Renumbering`]: converts chunks from the numbers of one registry to those of another.

use super::{Chunk, ChunkAssembly};
use crate::block::{BlockComponentId, BlockId, BlockLayout, BlockRegistry};
use std::collections::BTreeMap;

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
    use crate::block::{BlockComponent, BlockType};

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
