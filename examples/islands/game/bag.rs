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

    /// Adds a number of blocks of a kind, or takes them away. Returns `false` if there are not as many.
    pub fn add(items: &mut Items, kind: usize, number: i32) -> bool {
        let left = u16::try_from(i32::from(items[kind]) + number);
        left.map(|left| items[kind] = left).is_ok()
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
pub fn kind(types: &BlockTypes, block: BlockId) -> Option<usize> {
    BLOCKS.iter().position(|name| types.id(name) == Some(block))
}

/// Runs a system in the region of the player's entity.
pub fn with_region<T: Send + 'static, M: 'static>(
    commands: &mut Commands,
    player: StableId,
    system: impl IntoSystem<In<(Entity, T)>, Result, M> + Send + 'static,
    input: T,
) {
    let run = move |mut player: EntityWorldMut| {
        let entity = player.id();
        player.world_scope(|region| match region.run_system_cached_with(system, (entity, input)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!("{error}"),
            Err(error) => warn!("{error}"),
        });
    };
    commands.run_on_region_entity(player.0, 0, run, |_, lost| warn!("{lost}"));
}
