//! The placeholder block for unknown states.

use crate::block::{
    BLOCK_ENTITY, BlockComponentId, BlockComponentRecord, BlockId, BlockLayout, BlockRegistry, PLACEHOLDER, STATE,
};

/// The placeholder block for unknown states, and its components.
#[derive(Clone, Copy)]
pub(super) struct Placeholder {
    pub block: BlockId,
    pub state: BlockComponentId,
    pub block_entity: BlockComponentId,
}

impl Placeholder {
    /// `None` if the registry does not have it in the form that this crate registers.
    pub fn of(registry: &BlockRegistry) -> Option<Self> {
        let block_entity = block_entity(registry)?;
        let state = registry.component_of(&variable(STATE))?;
        let has = |block: &BlockId| {
            [state, block_entity].into_iter().all(|id| registry.component_layout(*block, id).is_some())
        };
        let block = registry.ids_of(PLACEHOLDER).iter().copied().rev().find(has)?;
        Some(Self { block, state, block_entity })
    }
}

/// The component for block entities of other programs.
pub(super) fn block_entity(registry: &BlockRegistry) -> Option<BlockComponentId> {
    registry.component_of(&variable(BLOCK_ENTITY))
}

fn variable(name: &str) -> BlockComponentRecord {
    BlockComponentRecord { name: name.to_owned(), version: 0, size: None }
}
