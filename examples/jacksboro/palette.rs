//! The demo's block types, in addition to the crate's basic ones.

use bevy_terrane::block::BlockRegistryError;
use bevy_terrane::prelude::*;

pub const MEADOW: &str = "jacksboro:meadow";
pub const HEATH: &str = "jacksboro:heath";
pub const LEAVES: [&str; 4] =
    ["terrane:leaves", "jacksboro:spruce_leaves", "jacksboro:maple_leaves", "jacksboro:birch_leaves"];
const CAIRN: &str = "jacksboro:cairn";
const BEACON: &str = "jacksboro:beacon";

pub fn register(app: &mut App) -> Result<(), BlockRegistryError> {
    let blocks = [
        BlockType::new(MEADOW).with_color([130, 152, 80]),
        BlockType::new(HEATH).with_color([140, 132, 82]),
        BlockType::new("jacksboro:spruce_leaves").with_color([52, 86, 60]),
        BlockType::new("jacksboro:maple_leaves").with_color([158, 100, 52]),
        BlockType::new("jacksboro:birch_leaves").with_color([150, 142, 66]),
        BlockType::new(CAIRN).with_color([208, 204, 196]),
        BlockType::new(BEACON).with_color([214, 60, 40]),
    ];
    blocks.into_iter().try_for_each(|block| app.register_block(block).map(drop))
}

/// The ids used by the demo's systems, looked up once per world.
#[derive(Resource, Clone, Copy)]
pub struct Palette {
    pub dirt: BlockId,
    pub stone: BlockId,
    pub cairn: BlockId,
    pub beacon: BlockId,
    turf: [BlockId; 3],
    tree: [BlockId; 5],
}

impl FromWorld for Palette {
    fn from_world(world: &mut World) -> Self {
        let types = world.resource::<BlockTypes>();
        let id = |name| types.id(name).unwrap_or_default();
        let [oak, spruce, maple, birch] = LEAVES.map(id);
        Self {
            dirt: id("terrane:dirt"),
            stone: id("terrane:stone"),
            cairn: id(CAIRN),
            beacon: id(BEACON),
            turf: [id("terrane:grass"), id(MEADOW), id(HEATH)],
            tree: [id("terrane:wood"), oak, spruce, maple, birch],
        }
    }
}

impl Palette {
    /// Returns `true` for ground that plants cover.
    pub fn is_turf(&self, block: BlockId) -> bool {
        self.turf.contains(&block)
    }

    /// Returns `true` for parts of trees.
    pub fn is_tree(&self, block: BlockId) -> bool {
        self.tree.contains(&block)
    }

    /// Returns `true` for blocks of landmarks, which later runs check.
    pub fn is_landmark(&self, block: BlockId) -> bool {
        block == self.cairn || block == self.beacon
    }
}
