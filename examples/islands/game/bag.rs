//! The player's bag: how many it has of each block that it can place, and which one it holds.

use bevy_terrane::prelude::*;
use serde::{Deserialize, Serialize};

/// The blocks of the bar.
pub const BLOCKS: [&str; 7] = [
    "terrane:stone",
    "terrane:dirt",
    "terrane:grass",
    "terrane:sand",
    "terrane:wood",
    "islands:lamp",
    super::chests::CHEST,
];
pub type Items = [u16; BLOCKS.len()];

/// Lives in the player's region, is saved with the player, and is seen in the main world.
#[derive(Component, Clone, PartialEq, Debug, Serialize, Deserialize, TypePath)]
#[type_path = "islands"]
pub struct Bag(pub Items);

impl Bag {
    pub fn new() -> Self {
        Self([0, 8, 0, 0, 16, 4, 1])
    }

    /// Adds a number of blocks of a kind, or takes them away if there are as many.
    pub fn add(items: &mut Items, kind: usize, number: i32) -> Result<(), Refusal> {
        let items = items.get_mut(kind).ok_or(Refusal::because("there is no such block"))?;
        let left = u16::try_from(i32::from(*items) + number);
        *items = left.map_err(|_| Refusal::because("the bag is empty, or full"))?;
        Ok(())
    }
}

/// The place of the chosen block in the bar.
#[derive(Resource, Default)]
pub struct Chosen(pub usize);

pub fn build(app: &mut App) {
    app.register_saved_component::<Bag>()
        .mirror_region_component::<Bag>()
        .mirror_region_component::<Player>()
        .init_resource::<Chosen>()
        .add_systems(Update, choose);
}

/// 1 to 7 choose a block.
fn choose(keys: Res<ButtonInput<KeyCode>>, mut chosen: ResMut<Chosen>) {
    use KeyCode::{Digit1, Digit2, Digit3, Digit4, Digit5, Digit6, Digit7};
    let digits = [Digit1, Digit2, Digit3, Digit4, Digit5, Digit6, Digit7];
    if let Some(digit) = digits.iter().position(|digit| keys.just_pressed(*digit)) {
        chosen.0 = digit;
    }
}

/// The place of a block in the bar.
pub fn kind(types: &BlockRegistry, block: BlockId) -> Option<usize> {
    BLOCKS.iter().position(|name| types.id(name) == Some(block))
}
