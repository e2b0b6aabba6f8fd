//! The blocks of the garden. Their looks are in `assets/garden.looks.ron`.

use bevy::prelude::*;
use bevy_terrane::block::{BlockRegistryError, BlockShape, ShapeBox};
use bevy_terrane::prelude::*;

/// Cubes that are opaque.
const CUBES: [&str; 10] =
    ["cobblestone", "planks", "brick", "basalt", "marble", "ore", "crate", "bookshelf", "log", "colour_test"];
/// Cubes that are not.
const CLEAR: [&str; 4] = ["glass", "red_glass", "blue_glass", "ice"];
const PLANTS: [&str; 5] = ["poppy", "dandelion", "tall_grass", "fern", "mushroom"];
const FACING: [&str; 4] = ["north", "east", "south", "west"];

/// Registers all blocks.
pub fn register(app: &mut App) -> Result {
    let block = |name: &str| BlockType::new(format!("garden:{name}"));
    for name in CUBES {
        app.register_block(block(name))?;
    }
    for name in CLEAR {
        app.register_block(block(name).transparent())?;
    }
    for name in PLANTS {
        app.register_block(block(name).with_shape(BlockShape::Cross))?;
    }
    for material in ["planks", "brick"] {
        let slab = block(&format!("{material}_slab")).with_shape(BlockShape::slab());
        app.register_block_states(BlockStates::new(slab).with_property("half", ["bottom", "top"]))?;
        let stairs = block(&format!("{material}_stairs")).with_shape(BlockShape::stairs());
        let stairs = BlockStates::new(stairs).with_property("facing", FACING).with_property("half", ["bottom", "top"]);
        app.register_block_states(stairs)?;
    }
    app.register_block(block("fence").with_shape(BlockShape::fence()))?;
    app.register_block(block("pane").with_shape(BlockShape::pane()).transparent())?;
    app.register_block(block("bars").with_shape(BlockShape::pane()).transparent())?;
    app.register_block(block("torch").with_shape(BlockShape::torch()).non_solid().with_light(14))?;
    let lamp = BlockStates::new(block("lamp")).with_property("lit", ["false", "true"]);
    app.register_block_states(lamp.varied_by(|state| match state.property("lit") {
        Some("true") => state.with_light(15),
        _ => state,
    }))?;
    app.register_block_states(BlockStates::new(block("furnace")).with_property("facing", FACING))?;
    app.register_block(block("table").with_shape(table()?))?;
    liquid(app, "lava", 15)?;
    liquid(app, "stream", 0)?;
    Ok(())
}

/// A top on four legs.
fn table() -> Result<BlockShape> {
    let leg = |x: u8, z: u8| ShapeBox::new([x, 0, z], [x + 2, 13, z + 2]);
    let top = ShapeBox::new([0, 13, 0], [16, 16, 16]);
    Ok(BlockShape::from_boxes([top, leg(1, 1), leg(13, 1), leg(1, 13), leg(13, 13)])?)
}

/// A liquid with a state for each level.
fn liquid(app: &mut App, name: &str, light: u8) -> Result<(), BlockRegistryError> {
    let shape = BlockShape::liquid(8).unwrap_or_default();
    let source = BlockType::new(format!("garden:{name}")).with_shape(shape).transparent().with_light(light);
    let states = BlockStates::new(source).with_property("level", ["8", "7", "6", "5", "4", "3", "2", "1"]);
    let states = states.varied_by(|state| {
        let level = state.property("level").and_then(|level| level.parse().ok()).unwrap_or(8);
        BlockShape::liquid(level).map_or_else(|_| state.clone(), |shape| state.clone().with_shape(shape))
    });
    app.register_block_states(states).map(drop)
}
