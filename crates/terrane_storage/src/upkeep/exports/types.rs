//! Conversion of block and component numbers from one world to another.

use crate::block::{BlockComponentId, BlockComponentRecord, BlockId, BlockRecord, BlockRegistry};
use crate::chunk::{Chunk, ChunkAssembly, format};
use crate::upkeep::UpkeepError;
use crate::{EntityRecord, RegistryLists};
use std::collections::BTreeMap;

/// The mapping of an export's blocks to those of a world. Unknown types are added to the world's lists when their first
/// block arrives. A game that registers their names finds them.
pub(super) struct Types {
    /// The types of the export.
    registry: BlockRegistry,
    blocks: Vec<BlockRecord>,
    components: Vec<BlockComponentRecord>,
    known_blocks: BTreeMap<BlockId, BlockId>,
    known_components: BTreeMap<BlockComponentId, BlockComponentId>,
    /// The types of the world.
    lists: RegistryLists,
    /// The number of types added to the lists.
    added: u64,
    is_changed: bool,
}

impl Types {
    /// Creates the mapping between the lists of the export and those of the world. The error is the reason why the
    /// export's lists cannot be used.
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

    /// Adds the entity's component types that the world does not know. Types in the export's list that no entity uses
    /// are not added, because a game that cannot read one of them refuses to open the world.
    pub fn add_entity_types(&mut self, entity: &EntityRecord) {
        let of_children = entity.children.iter().flat_map(|child| &child.components);
        for (name, _) in entity.components.iter().chain(of_children) {
            if !self.lists.entity_types.contains(name) {
                self.lists.entity_types.push(name.clone());
                self.is_changed = true;
            }
        }
    }

    /// Returns the world's lists if they changed since the last call.
    pub fn take_changed(&mut self) -> Option<&RegistryLists> {
        std::mem::take(&mut self.is_changed).then_some(&self.lists)
    }

    /// Returns the number of block types added since the last call.
    pub fn take_added(&mut self) -> u64 {
        std::mem::take(&mut self.added)
    }

    /// Converts a chunk of the export to one of the world. The inner error is the reason why the bytes are not a valid chunk.
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
        // Most chunks have no layers and no components, and their cells can stay as they are.
        if chunk.rename_blocks(known) {
            return Ok(Ok(chunk));
        }
        let mut assembly = ChunkAssembly::default();
        assembly.copy_renamed(&chunk, known, |_, _, component| self.known_components.get(&component).copied());
        Ok(Ok(assembly.finish()))
    }

    /// The world's block with the same name and the same components.
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

    /// The world's component with the same name, version and size. The component numbers of the export's blocks were already
    /// checked against its list.
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
