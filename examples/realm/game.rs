//! The game in the regions: players ride, and give each other gems.

use bevy_terrane::prelude::*;
use serde::{Deserialize, Serialize};

/// The name of the dimension.
pub const DIMENSION: &str = "overworld";
/// The seed of the land.
const SEED: u64 = 12;
/// How far a player rides in a tick, in blocks.
const SPEED: f64 = 4.0;
/// How near a player must be to get a gem, in blocks.
const REACH: i64 = 16;
/// The distance of neighboring towns in blocks: three plots, so that the ground of two servers has room between them.
pub const TOWN_DISTANCE: i64 = 3 * 512;

/// The gems of a player. They are stored, and go with it from server to server.
#[derive(Component, Clone, PartialEq, Serialize, Deserialize, TypePath)]
pub struct Gems(pub Vec<String>);

impl Gems {
    /// What a new player has.
    pub fn of(name: &str) -> Self {
        Self(["ruby", "pearl", "opal"].map(|gem| format!("{name}'s {gem}")).to_vec())
    }
}

/// Where a player rides to.
#[derive(Component, Clone, Serialize, Deserialize, TypePath)]
struct Goal {
    x: i64,
    z: i64,
}

/// What a player wants, as a message to its entity.
#[derive(Clone)]
pub enum Wish {
    Go { x: i64, z: i64 },
    Give { to: String },
}

/// The land, and the game in each region.
pub struct GamePlugin;

impl Plugin for GamePlugin {
    fn build(&self, app: &mut App) {
        app.register_saved_component::<Gems>()
            .register_saved_component::<Goal>()
            .register_region_message::<Wish>()
            .mirror_region_component::<Player>()
            .mirror_region_component::<Gems>()
            .add_region_plugins(|region| {
                region.add_systems(RegionTick, (grant, ride).chain());
            });
        app.world_mut().spawn(Dimension::new(DIMENSION, land()));
    }
}

fn land() -> Hills {
    Hills::seeded(SEED)
}

/// The block on the ground, or on the sea.
fn on_ground(x: i64, z: i64) -> BlockPos {
    BlockPos::new(x, (land().height_at(x, z) + 1).max(0), z)
}

/// The middle of a town. Towns are in a square.
pub fn town(number: u8) -> BlockPos {
    let (x, z) = (i64::from(number % 2), i64::from(number / 2 % 2));
    on_ground(x * TOWN_DISTANCE + 256, z * TOWN_DISTANCE + 256)
}

/// Does what players wish.
fn grant(
    mut wishes: MessageReader<Received<Wish>>,
    mut players: Query<(Entity, &Player, &Position, &mut Gems)>,
    mut commands: Commands,
) {
    for wish in wishes.read() {
        let Some(entity) = wish.entity else { continue };
        match &wish.message {
            Wish::Go { x, z } => drop(commands.entity(entity).insert(Goal { x: *x, z: *z })),
            Wish::Give { to } => {
                let Some((other, ..)) = players.iter().find(|(_, player, ..)| player.name() == to) else { continue };
                // `None` if a player gives something to itself.
                let Ok([(.., from, mut own), (.., at, mut others)]) = players.get_many_mut([entity, other]) else {
                    continue;
                };
                let distance = from.block.x.abs_diff(at.block.x).max(from.block.z.abs_diff(at.block.z));
                if distance <= REACH as u64 {
                    others.0.extend(own.0.pop());
                }
            }
        }
    }
}

/// Players ride over the land in a straight line.
fn ride(mut players: Query<(Entity, &mut Position, &Goal)>, mut commands: Commands) {
    for (entity, mut position, goal) in &mut players {
        let (x, z) = (goal.x as f64 - position.block.x as f64, goal.z as f64 - position.block.z as f64);
        let step = (SPEED / x.hypot(z)).min(1.0);
        let next =
            on_ground(position.block.x + (x * step).round() as i64, position.block.z + (z * step).round() as i64);
        *position = Position::new(position.dimension, next);
        if (next.x, next.z) == (goal.x, goal.z) {
            commands.entity(entity).remove::<Goal>();
        }
    }
}
