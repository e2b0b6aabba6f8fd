//! Bodies of entities, and the system that moves them in a region.

pub(super) mod character;
pub(super) mod floor;
pub(super) mod movement;
pub(super) mod prediction;
pub(super) mod steering;
pub(super) mod walk;

use super::Position;
use crate::body::{Body, BodyMover, BodyTable, Contact};
use bevy::prelude::*;
use character::{CharacterController, Intent};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The box of an entity that stands on the ground. [`BodyPlugin`](crate::plugin::BodyPlugin) moves it in its region: it falls, slides,
/// floats, steps up, and is stopped by the [shapes](crate::block::BlockShape::boxes) of solid blocks. Lengths are in blocks.
///
/// The entity's [`Position`] is the middle of the box's floor. Its [`BodyVelocity`] and its body are saved, and travel with it. Where
/// the ground is not loaded, the body is [held](Contact::is_held). A fall out of the world ends at the [`Floor`](super::Floor) of the
/// dimension.
///
/// ```
/// use bevy_terrane::prelude::*;
///
/// #[derive(Component)]
/// struct Sheep;
///
/// /// Sheep jump when they meet a wall.
/// fn jump(mut sheep: Query<(&mut BodyVelocity, &Grounded), With<Sheep>>) {
///     for (mut velocity, grounded) in &mut sheep {
///         if grounded.ground && grounded.wall {
///             velocity.y = 9.0;
///         }
///     }
/// }
///
/// App::new().add_plugins((MinimalPlugins, TerranePlugin::default(), BodyPlugin)).add_region_plugins(|region| {
///     region.add_systems(RegionTick, jump.before(BodySystems));
/// });
/// ```
#[derive(Component, Clone, Copy, Debug, PartialEq, Serialize, Deserialize, Reflect)]
#[type_path = "bevy_terrane"]
#[require(BodyVelocity, Grounded)]
#[reflect(Component, Clone)]
pub struct BlockBody {
    /// The width along x and z: 1/16 to 16.
    pub width: f32,
    /// The height: 1/16 to 16.
    pub height: f32,
    /// The height of steps that the body goes up without a jump.
    pub step_height: f32,
    /// How fast it falls, in blocks per second squared. 0 lets it hover.
    pub gravity: f32,
}

impl BlockBody {
    /// A body of this width and height. It steps up 0.6 blocks, and falls at 32 blocks per second squared.
    pub const fn new(width: f32, height: f32) -> Self {
        Self { width, height, step_height: 0.6, gravity: 32.0 }
    }
}

/// The velocity of a [`BlockBody`], in blocks per second. A game may change it; the ground stops it.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, Reflect, Deref, DerefMut)]
#[type_path = "bevy_terrane"]
#[reflect(Component, Default, Clone)]
pub struct BodyVelocity(pub Vec3);

/// What a [`BlockBody`] touched in the last tick: ground, walls, liquids, ladders.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, Reflect, Deref)]
#[type_path = "bevy_terrane"]
#[reflect(Component, Default, Clone)]
pub struct Grounded(pub Contact);

/// The systems that move bodies: in [`RegionTick`](crate::simulation::RegionTick) of a region, and in `Update` of the main world.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BodySystems;

/// What bodies meet in the blocks of the world: for a [`BodyMover`] of the game's own. Added by
/// [`BodyPlugin`](crate::plugin::BodyPlugin), in the main world and in regions.
#[derive(Resource, Clone, Deref, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(opaque)]
#[reflect(Resource, Clone)]
pub struct BodyTypes(pub Arc<BodyTable>);

/// The part of a body that changes from tick to tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BodyState {
    /// The middle of the floor of its box.
    pub position: Position,
    /// Its velocity.
    pub velocity: BodyVelocity,
    /// What it touches.
    pub grounded: Grounded,
}

impl BodyState {
    /// Moves the body for some seconds: a character by its intent, anything else by its velocity and gravity.
    ///
    /// The result is rounded to the precision of [`Position`], so it is the same in all worlds with the same blocks.
    pub fn advance(
        &mut self,
        body: &BlockBody,
        character: Option<(&CharacterController, &Intent)>,
        mover: &mut BodyMover<'_>,
        seconds: f64,
    ) {
        let mut moved = Body {
            block: self.position.block,
            offset: self.position.offset.as_dvec3().to_array(),
            width: body.width.into(),
            height: body.height.into(),
            step_height: body.step_height.into(),
            velocity: self.velocity.as_dvec3().to_array(),
            contact: self.grounded.0,
        };
        match character {
            Some((character, intent)) => character.advance(&mut moved, intent, body.gravity.into(), mover, seconds),
            None => moved.fall(mover, body.gravity.into(), seconds),
        }
        self.position.block = moved.block;
        self.position.offset = Vec3::from_array(moved.offset.map(|along| (along as f32).min(1.0 - f32::EPSILON)));
        self.velocity.0 = Vec3::from_array(moved.velocity.map(|along| along as f32));
        self.grounded.0 = moved.contact;
    }
}
