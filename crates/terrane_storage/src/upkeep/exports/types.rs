//! Numbers of blocks and components of one world as those of another.

use crate::block::{BlockComponentId, BlockComponentRecord, BlockId, BlockRecord, BlockRegistry};
use crate::chunk::{Chunk, ChunkAssembly, format};
use crate::upkeep::UpkeepError;
use crate::{EntityRecord, RegistryLists};
use std::collections::BTreeMap;

/// What the blocks of an export are in a world. Types that the world does not know are added to its lists when the first
/// block of them comes: a game that registers their names finds them.
pub(super) struct Types {
    /// Of the export.
    registry: BlockRegistry,
    blocks: Vec<BlockRecord>,
    components: Vec<BlockComponentRecord>,
    known_blocks: BTreeMap<BlockId, BlockId>,
    known_components: BTreeMap<BlockComponentId, BlockComponentId>,
    /// Of the world.
    lists: RegistryLists,
    /// How many types are new in them.
    added: u64,
    is_changed: bool,
}

impl Types {
    /// The lists of the export, and those of the world. The reason, if those of the export cannot be used.
    pub fn new(
        blocks: Vec<BlockRecord>,
        components: Vec<BlockComponentRecord>,
        mut lists: RegistryLists,
    ) -> Result<Self, String> {
        let mut registry = BlockRegistry::new();
        if !blocks.is_empty() {
            let records = BlockRegistry::from_records(blocks.clone(), components.clone());
            registry = records.map_err(|error| error.to_string())?;
        }
        if lists.blocks.is_empty() {
            lists.blocks = BlockRegistry::new().block_records().collect();
        }
        let known_blocks = BTreeMap::from([(BlockId::AIR, BlockId::AIR)]);
        let known_components = BTreeMap::new();
        let (added, is_changed) = (0, false);
        Ok(Self { registry, blocks, components, known_blocks, known_components, lists, added, is_changed })
    }

    /// Adds types of components that the entity has and the world does not know. Not those of the export that no entity has: a
    /// game that cannot read one of them does not open the world.
    pub fn add_entity_types(&mut self, entity: &EntityRecord) {
        let of_children = entity.children.iter().flat_map(|child| &child.components);
        for (name, _) in entity.components.iter().chain(of_children) {
            if !self.lists.entity_types.contains(name) {
                self.lists.entity_types.push(name.clone());
                self.is_changed = true;
            }
        }
    }

    /// The lists of the world, if they changed since the last call.
    pub fn take_changed(&mut self) -> Option<&RegistryLists> {
        std::mem::take(&mut self.is_changed).then_some(&self.lists)
    }

    /// How many types of blocks are new in them since the last call.
    pub fn take_added(&mut self) -> u64 {
        std::mem::take(&mut self.added)
    }

    /// A chunk of the export as one of the world. The reason, if it is none.
    pub fn chunk(&mut self, bytes: &[u8]) -> Result<Result<Chunk, String>, UpkeepError> {
        let mut chunk = match format::decode(&self.registry, bytes) {
            Ok((chunk, _)) => chunk,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let layered = chunk.layered_blocks().map(|(.., block)| block);
        for block in chunk.palette().iter().copied().chain(layered) {
            if !self.known_blocks.contains_key(&block) {
                let Some(record) = self.blocks.get(block.index() as usize).cloned() else {
                    return Ok(Err(format!("the export has no type of block with the number {}", block.index())));
                };
                let known = self.block(&record)?;
                self.known_blocks.insert(block, known);
            }
        }
        let known = |block: BlockId| self.known_blocks.get(&block).copied().unwrap_or_default();
        // What has no layers and no components, as most have, needs no other cells.
        if chunk.rename_blocks(known) {
            return Ok(Ok(chunk));
        }
        let mut assembly = ChunkAssembly::default();
        assembly.copy_renamed(&chunk, known, |_, _, component| self.known_components.get(&component).copied());
        Ok(Ok(assembly.finish()))
    }

    /// The block of the world that has the same name and the same components.
    fn block(&mut self, of_export: &BlockRecord) -> Result<BlockId, UpkeepError> {
        let mut components = Vec::with_capacity(of_export.components.len());
        for number in &of_export.components {
            components.push(self.component(BlockComponentId::new(*number))?.number());
        }
        components.sort_unstable();
        let record = BlockRecord { name: of_export.name.clone(), components };
        let place = self.lists.blocks.iter().position(|known| *known == record).unwrap_or_else(|| {
            self.lists.blocks.push(record);
            self.added += 1;
            self.is_changed = true;
            self.lists.blocks.len() - 1
        });
        Ok(BlockId::new(place as u32))
    }

    /// The component of the world that has the same name, version and size. Of which the export's blocks have it was checked
    /// with its list.
    fn component(&mut self, of_export: BlockComponentId) -> Result<BlockComponentId, UpkeepError> {
        if let Some(known) = self.known_components.get(&of_export) {
            return Ok(*known);
        }
        let record = self.components[of_export.place() as usize].clone();
        let is_version = |known: &&BlockComponentRecord| known.name == record.name && known.version == record.version;
        if let Some(other) = self.lists.components.iter().filter(is_version).find(|known| known.size != record.size) {
            // No game could read a world that has both.
            return Err(UpkeepError::Component { name: other.name.clone(), version: other.version });
        }
        let size = record.size;
        let place = self.lists.components.iter().position(|known| *known == record).unwrap_or_else(|| {
            self.lists.components.push(record);
            self.is_changed = true;
            self.lists.components.len() - 1
        });
        let known = BlockComponentId::at(place, size);
        self.known_components.insert(of_export, known);
        Ok(known)
    }
}
