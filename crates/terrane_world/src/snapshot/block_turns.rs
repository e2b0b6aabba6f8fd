//! [`BlockTurns`]: the turned states of blocks.

use super::{Turn, turned_state};
use crate::block::{BlockId, BlockLayout, BlockName, BlockRegistry};

/// The turned state of each block of a registry: looked up once, then by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockTurns {
    turn: Turn,
    /// By id. Blocks beyond the list are unchanged.
    blocks: Vec<BlockId>,
}

impl BlockTurns {
    /// Looks up the [`turned_state`] of all blocks of the registry. A block stays unchanged if that state is not
    /// registered or has other components.
    pub fn new(registry: &BlockRegistry, turn: Turn) -> Self {
        Self::of_states(registry, turn, turned_state)
    }

    /// Like [`new`](Self::new), but with a function of the game's own.
    pub fn of_states(registry: &BlockRegistry, turn: Turn, turned: impl Fn(&BlockName, Turn) -> BlockName) -> Self {
        let mut turns = Self { turn, ..Self::default() };
        if turn.is_none() {
            return turns;
        }
        let names = registry.names().map(|name| BlockName::parse(name.to_owned()));
        for (block, name) in (0..).map(BlockId::new).zip(names) {
            turns.blocks.push(block);
            let Ok(name) = name else { continue };
            let has_same_components = |other: &BlockId| registry.components(*other) == registry.components(block);
            if let Some(other) = registry.id(turned(&name, turn).as_str()).filter(has_same_components) {
                turns.blocks[block.index() as usize] = other;
            }
        }
        turns
    }

    /// The turn of the blocks.
    pub const fn turn(&self) -> Turn {
        self.turn
    }

    /// The turned state of the block.
    #[inline]
    pub fn block(&self, block: BlockId) -> BlockId {
        self.blocks.get(block.index() as usize).copied().unwrap_or(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{BlockComponent, BlockShape, BlockStates, BlockType, ShapeBox};
    use proptest::prelude::*;

    const QUARTER: Turn = Turn::quarters(1);

    #[test]
    fn blocks_become_the_registered_states() {
        let mut registry = BlockRegistry::new();
        let stairs = BlockStates::new(BlockType::new("game:stairs"))
            .with_property("facing", ["north", "east", "south", "west"])
            .with_property("wet", ["false", "true"]);
        let stairs = registry.register_states(stairs).unwrap();
        let turns = BlockTurns::new(&registry, QUARTER);
        assert_eq!(
            stairs.iter().map(|block| turns.block(*block)).collect::<Vec<_>>(),
            [&stairs[2..], &stairs[..2]].concat()
        );
        assert_eq!(turns.block(BlockId::AIR), BlockId::AIR);
        assert_eq!(turns.block(BlockId::new(900)), BlockId::new(900));
    }

    #[test]
    fn a_block_stays_as_it_is_if_its_turned_state_is_not_there_or_has_other_components() {
        let mut registry = BlockRegistry::new();
        registry.register_component(BlockComponent::fixed::<u32>("game:power")).unwrap();
        let north = registry.register(BlockType::new("game:lamp[facing=north]")).unwrap();
        let engine = registry.register(BlockType::new("game:engine[axis=x]").with_component("game:power")).unwrap();
        registry.register(BlockType::new("game:engine[axis=z]")).unwrap();
        let turns = BlockTurns::new(&registry, QUARTER);
        assert_eq!((turns.block(north), turns.block(engine)), (north, engine));
    }

    #[test]
    fn a_game_turns_its_blocks_by_its_own_rules() {
        let mut registry = BlockRegistry::new();
        let pipes = BlockStates::new(BlockType::new("game:pipe")).with_property("end", ["north", "east"]);
        let pipes = registry.register_states(pipes).unwrap();
        let turned = |_: &BlockName, _: Turn| BlockName::parse("game:pipe[end=east]").unwrap();
        assert_eq!(BlockTurns::of_states(&registry, QUARTER, turned).block(pipes[0]), pipes[1]);
        assert_eq!(BlockTurns::new(&registry, QUARTER).block(pipes[0]), pipes[0]);
    }

    /// Blocks with this shape that face four ways, lie or hang, and have their hinge on either side.
    fn turned_blocks(shape: BlockShape) -> BlockRegistry {
        let mut registry = BlockRegistry::new();
        let states = BlockStates::new(BlockType::new("game:block").with_shape(shape))
            .with_property("facing", ["north", "east", "south", "west"])
            .with_property("half", ["bottom", "top"])
            .with_property("hinge", ["left", "right"])
            .with_property("wet", ["false", "true"]);
        registry.register_states(states).unwrap();
        registry
    }

    proptest! {
        /// Promise, blocks: The states of a block type turn its shape, and turn it upside down.
        /// Promise, snapshots: A turned block has the turned shape.
        #[test]
        fn a_turned_block_has_the_turned_shape(
            corners in prop::collection::vec(prop::array::uniform3((0_u8..16, 0_u8..16)), 1..4),
            turn in prop::sample::select(Turn::all().collect::<Vec<_>>()), is_stairs in any::<bool>(),
        ) {
            let part = |corners: [(u8, u8); 3]| {
                ShapeBox::new(corners.map(|(a, b)| a.min(b)), corners.map(|(a, b)| a.max(b) + 1))
            };
            let any = BlockShape::from_boxes(corners.into_iter().map(part)).unwrap();
            let registry = turned_blocks(if is_stairs { BlockShape::stairs() } else { any });
            let turns = BlockTurns::new(&registry, turn);
            for block in (0..registry.len() as u32).map(BlockId::new) {
                let turned = registry.block(turns.block(block)).shape();
                prop_assert_eq!(turned, &registry.block(block).shape().turned(turn));
            }
        }
    }
}
