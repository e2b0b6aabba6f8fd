//! Sheep: they have bodies, and find their way to a place nearby, then to another one.

use super::land;
use bevy_terrane::path::Walker;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::{PathPlugin, PathSystems, PathTo};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

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

pub fn build(app: &mut App) {
    app.register_saved_component::<Sheep>().mirror_region_component::<Sheep>().add_region_plugins(|region| {
        region.add_plugins(PathPlugin::default());
        let follow = follow.after(PathSystems::Find).before(BodySystems);
        region.add_systems(RegionTick, (choose_goals.before(PathSystems::Find), follow));
    });
}

/// A flock for a new world.
pub fn settle(commands: &mut Commands, islands: DimensionId) {
    for number in 0..FLOCK {
        let place = land::ARRIVAL.offset(number % 4 * 2 - 4, 0, number / 4 * 2 - 3);
        commands.spawn_in_region(islands, place, (Sheep { rests: 20 * number as u32 }, BlockBody::new(0.9, 1.3)));
    }
}

/// A sheep that has rested goes somewhere, on foot.
fn choose_goals(
    blocks: RegionBlocks,
    mut random: ResMut<RegionRandom>,
    mut commands: Commands,
    mut sheep: Query<(Entity, &StableId, &Position, &mut Sheep, Option<&mut PathTo>)>,
    mut shared: Local<Option<Arc<Walker>>>,
) {
    // It swims if there is hardly another way.
    let walker = Walker { swim: Some(8.0), ..Walker::default() }.with_size(0.9, 1.3);
    let walker = shared.get_or_insert_with(|| Arc::new(walker));
    // In an order that does not depend on how the entities came here.
    for (entity, _, position, mut sheep, path) in sheep.iter_mut().sort::<&StableId>() {
        if sheep.rests > 0 {
            sheep.rests -= 1;
            continue;
        }
        let mut away = || i64::from(random.0.below(2 * WAY)) - i64::from(WAY);
        let (x, z) = (position.block.x.saturating_add(away()), position.block.z.saturating_add(away()));
        let Some(goal) = blocks.surface(x, z).map(|ground| ground.offset(0, 1, 0)) else { continue };
        sheep.rests = 200 + random.0.below(200);
        match path {
            Some(mut path) => path.go_to(goal),
            None => drop(commands.entity(entity).insert(PathTo::new(walker.clone(), goal))),
        }
    }
}

/// A sheep walks along its path, and jumps where it leads up.
fn follow(mut sheep: Query<(&Position, &mut PathTo, &mut BodyVelocity, &Grounded), With<Sheep>>) {
    const SPEED: f32 = 1.6;
    for (position, mut path, mut velocity, grounded) in &mut sheep {
        let way = path.follow(position).unwrap_or_default();
        if grounded.ground || grounded.submerged > 0.4 {
            let level = way.with_y(0.0).clamp_length_max(0.5) * 2.0 * SPEED;
            let jump = if way.y > 0.7 && grounded.wall { 9.0 } else { 0.0 };
            velocity.0 = level.with_y(jump);
        }
    }
}
