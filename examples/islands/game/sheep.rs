//! Sheep: they walk to a place nearby, rest, and walk to another one.

use super::land;
use bevy_terrane::plugin::WalkPlugin;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::{PathSystems, PathTo, Walk, WalkEnded};
use serde::{Deserialize, Serialize};

const FLOCK: i64 = 8;
/// How far a sheep goes at a time, in blocks.
const WAY: u32 = 24;

/// Lives in a region, is saved, and is seen in the main world.
#[derive(Component, Clone, PartialEq, Serialize, Deserialize, TypePath)]
#[type_path = "islands"]
pub struct Sheep {
    /// Ticks until it goes on.
    rests: u32,
}

/// What a sheep walks with.
type Legs = (&'static BlockBody, &'static CharacterController);

pub fn build(app: &mut App) {
    app.add_plugins(WalkPlugin::default());
    app.register_saved_component::<Sheep>().mirror_region_component::<Sheep>();
    app.mirror_region_component::<Intent>().add_region_plugins(|region| {
        region.add_systems(RegionTick, choose_goals.before(PathSystems::Find)).add_observer(rest);
    });
}

/// A flock for a new world.
pub fn settle(commands: &mut Commands, islands: DimensionId) {
    for number in 0..FLOCK {
        let place = land::ARRIVAL.offset(number % 4 * 2 - 4, 0, number / 4 * 2 - 3);
        let slow = CharacterController { walk: 1.6, ..default() };
        let sheep = (Sheep { rests: 20 * number as u32 }, BlockBody::new(0.9, 1.3), slow, Walk::default());
        commands.spawn_in_region(islands, place, sheep);
    }
}

/// A sheep that has rested goes somewhere, on foot. It swims if there is hardly another way.
fn choose_goals(
    blocks: RegionBlocks,
    mut random: ResMut<RegionRandom>,
    mut commands: Commands,
    mut sheep: Query<(Entity, &StableId, &Position, &mut Sheep, Legs, Option<&mut PathTo>)>,
) {
    // In an order that does not depend on how the entities came here.
    for (entity, _, position, mut sheep, (body, character), path) in sheep.iter_mut().sort::<&StableId>() {
        if path.as_ref().is_some_and(|path| !path.is_over()) {
            continue;
        }
        if sheep.rests > 0 {
            sheep.rests -= 1;
            continue;
        }
        let mut away = || i64::from(random.0.below(2 * WAY)) - i64::from(WAY);
        let (x, z) = (position.block.x.saturating_add(away()), position.block.z.saturating_add(away()));
        let Some(goal) = blocks.surface(x, z).map(|ground| ground.offset(0, 1, 0)) else { continue };
        match path {
            Some(mut path) => path.go_to(goal),
            None => drop(commands.entity(entity).insert(PathTo::new(character.walker(body), goal))),
        }
    }
}

/// Wherever its walk has ended, a sheep rests.
fn rest(ended: On<WalkEnded>, mut sheep: Query<&mut Sheep>, mut random: ResMut<RegionRandom>) {
    if let Ok(mut sheep) = sheep.get_mut(ended.entity) {
        sheep.rests = 50 + random.0.below(200);
    }
}
