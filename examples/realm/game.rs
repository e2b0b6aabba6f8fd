//! The game: players ride, and give each other gems.

use bevy_terrane::prelude::*;
use bevy_terrane::view::PlayerLoggedIn;
use serde::{Deserialize, Serialize};
use terrane_net::{ConnectedClient, FromAClient, LogInAttempt, NetAppExt};

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

/// A wish of a player: a message of its client to the server, and of the server to the player's entity.
#[derive(Clone, Debug, Serialize, Deserialize, TypePath)]
pub enum Wish {
    Go {
        x: i64,
        z: i64,
    },
    /// A gem for this player, if it is near.
    Give {
        to: String,
    },
}

/// Both sides register what clients see and send.
pub fn register(app: &mut App) {
    app.replicate_region_component::<Gems>().register_net_message::<Wish>();
}

/// The land, the players, and the game in each region.
pub struct GamePlugin;

impl Plugin for GamePlugin {
    fn build(&self, app: &mut App) {
        register(app);
        app.register_saved_component::<Gems>()
            .register_saved_component::<Goal>()
            .register_region_message::<Wish>()
            .add_region_plugins(|region| {
                region.add_systems(RegionTick, (grant, ride).chain());
            })
            .add_systems(Update, (equip, pass_on))
            .add_observer(begin_in_town);
        app.world_mut().spawn(Dimension::new(DIMENSION, land()));
    }
}

/// A new player begins in the town that its client names. A real game checks a password first.
fn begin_in_town(mut attempt: On<LogInAttempt>) {
    let place = town(attempt.secret.first().copied().unwrap_or(0));
    attempt.first_place = attempt.first_place.map(|(dimension, _)| (dimension, place));
}

fn equip(mut logged_in: MessageReader<PlayerLoggedIn>, mut commands: Commands) {
    for PlayerLoggedIn { name, id, .. } in logged_in.read() {
        let gems = Gems::of(name);
        let equip = move |mut player: EntityWorldMut| _ = player.insert_if_new(gems);
        commands.run_on_region_entity(*id, 0, equip, |_, _| {});
    }
}

fn pass_on(mut wishes: MessageReader<FromAClient<Wish>>, clients: Query<&ConnectedClient>, mut commands: Commands) {
    for FromAClient { client, message } in wishes.read() {
        // Its player may just have left for another server.
        if let Some(player) = clients.get(*client).ok().and_then(ConnectedClient::player) {
            commands.send_to_entity(player, message.clone());
        }
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
