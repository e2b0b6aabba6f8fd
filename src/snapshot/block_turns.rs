//! What blocks become when they are turned.

use super::{StateTurns, Turn};
use crate::block::{BlockId, BlockLayout, BlockName, BlockRegistry};

/// What each block of a registry becomes when it is turned: looked up once, then by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockTurns {
    turn: Turn,
    /// By id; those beyond stay what they are.
    blocks: Vec<BlockId>,
    missing: Vec<MissingState>,
}

/// A block that stays as it is, since what it should become is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingState {
    /// The block.
    pub block: BlockId,
    /// The state that it should become: not registered, or with other components.
    pub wanted: BlockName,
}

impl BlockTurns {
    /// Looks up all blocks of the registry.
    pub fn new(registry: &BlockRegistry, table: &StateTurns, turn: Turn) -> Self {
        let mut turns = Self { turn, ..Self::default() };
        if turn.is_none() {
            return turns;
        }
        let names = registry.names().map(|name| BlockName::parse(name.to_owned()));
        for (block, name) in (0..).map(BlockId::new).zip(names) {
            turns.blocks.push(block);
            let Ok(name) = name else { continue };
            let wanted = table.turned(&name, turn);
            if wanted == name {
                continue;
            }
            let has_same_components = |other: &BlockId| registry.components(*other) == registry.components(block);
            match registry.id(wanted.as_str()).filter(has_same_components) {
                Some(other) => turns.blocks[block.index() as usize] = other,
                None => turns.missing.push(MissingState { block, wanted }),
            }
        }
        turns
    }

    /// How the blocks are turned.
    pub const fn turn(&self) -> Turn {
        self.turn
    }

    /// What the block becomes.
    #[inline]
    pub fn block(&self, block: BlockId) -> BlockId {
        self.blocks.get(block.index() as usize).copied().unwrap_or(block)
    }

    /// The blocks that stay as they are although the table has them turned, by id.
    pub fn missing(&self) -> &[MissingState] {
        &self.missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{BlockComponent, BlockStates, BlockType};
    use crate::snapshot::Flip;

    const QUARTER: Turn = Turn::new(1, Flip::None);

    #[test]
    fn blocks_become_the_registered_states() {
        let mut registry = BlockRegistry::new();
        let stairs = BlockStates::new(BlockType::new("game:stairs"))
            .with_property("facing", ["north", "east", "south", "west"])
            .with_property("wet", ["false", "true"]);
        let stairs = registry.register_states(stairs).unwrap();
        let turns = BlockTurns::new(&registry, &StateTurns::default(), QUARTER);
        assert_eq!(turns.missing(), []);
        assert_eq!(
            stairs.iter().map(|block| turns.block(*block)).collect::<Vec<_>>(),
            [&stairs[2..], &stairs[..2]].concat()
        );
        assert_eq!(turns.block(BlockId::AIR), BlockId::AIR);
        assert_eq!(turns.block(BlockId::new(900)), BlockId::new(900));
    }

    #[test]
    fn a_state_that_is_not_there_leaves_the_block_and_is_told() {
        let mut registry = BlockRegistry::new();
        registry.register_component(BlockComponent::fixed::<u32>("game:power")).unwrap();
        let north = registry.register(BlockType::new("game:lamp[facing=north]")).unwrap();
        let engine = registry.register(BlockType::new("game:engine[axis=x]").with_component("game:power")).unwrap();
        registry.register(BlockType::new("game:engine[axis=z]")).unwrap();
        let turns = BlockTurns::new(&registry, &StateTurns::default(), QUARTER);
        let told: Vec<_> = turns.missing().iter().map(|state| (state.block, state.wanted.as_str())).collect();
        assert_eq!(told[..2], [(north, "game:lamp[facing=east]"), (engine, "game:engine[axis=z]")]);
        assert_eq!((turns.block(north), turns.block(engine)), (north, engine));
    }
}
