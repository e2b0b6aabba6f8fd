//! [`Floor`]: the end of each fall out of the world.

use super::BodyVelocity;
use crate::simulation::travel::components::RegionComponents;
use crate::simulation::travel::followers::followers;
use crate::simulation::{Player, Position, StableId};
use crate::space::BlockPos;
use bevy::platform::collections::HashSet;
use bevy::prelude::*;
use std::ops::Range;
use std::sync::Arc;
use uuid::Uuid;

/// The floor of a dimension, somewhere below its ground. A [`BlockBody`](super::BlockBody) that falls down to it ends, or comes back, so that
/// nothing falls for ever. A [`Player`] never ends. Give it to a dimension with
/// [`Dimension::with_floor`](crate::view::Dimension::with_floor).
///
/// An entity that a player follows counts as a player.
#[derive(Clone, Copy, Debug, PartialEq, Reflect)]
#[type_path = "bevy_terrane"]
pub struct Floor {
    /// The height of the floor, in blocks. Below it, all is solid to bodies.
    pub height: i64,
    /// Where bodies come back, also in another dimension. Without it they end: they are despawned, with their followers.
    pub bodies_return: Option<Position>,
    /// Where players come back. Without it they stand on the floor.
    pub players_return: Option<Position>,
}

impl Floor {
    /// How far below the lowest block of a dimension its floor is by default.
    pub const DEPTH: i64 = 64;

    /// A floor at this height, at which bodies end and on which players stand. There is none at `i64::MIN`.
    pub const fn at(height: i64) -> Self {
        Self { height, bodies_return: None, players_return: None }
    }

    /// The floor of a dimension with these heights, unless it is given another.
    pub(crate) const fn below(heights: &Range<i64>) -> Self {
        Self::at(heights.start.saturating_sub(Self::DEPTH))
    }

    /// The same floor, but players come back to this place.
    pub const fn returning_players(mut self, to: Position) -> Self {
        self.players_return = Some(to);
        self
    }

    /// The same floor, but players and all other bodies come back to this place.
    pub const fn returning_all(mut self, to: Position) -> Self {
        self.bodies_return = Some(to);
        self.returning_players(to)
    }

    /// Returns `true` if the place is at the floor, or below it.
    pub(super) const fn is_reached_at(&self, place: &Position) -> bool {
        self.height != i64::MIN && place.block.y <= self.height
    }
}

impl Default for Floor {
    /// No floor.
    fn default() -> Self {
        Self::at(i64::MIN)
    }
}

/// What happens to a body at the [`Floor`] of its dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FloorOutcome {
    /// It is despawned, with its followers.
    Ends,
    /// It comes back to this place, at rest.
    Returns(Position),
    /// It stands on the floor.
    Stands,
}

/// Triggered in a region for each body that reaches the [`Floor`] of its dimension, before that has an effect. An observer that moves the
/// entity elsewhere decides otherwise.
///
/// ```
/// use bevy_terrane::prelude::*;
/// use bevy_terrane::simulation::{FloorOutcome, FloorReached};
///
/// #[derive(Component)]
/// struct Item(String);
///
/// fn report(reached: On<FloorReached>, items: Query<&Item>) {
///     if let (FloorOutcome::Ends, Ok(item)) = (reached.outcome, items.get(reached.entity)) {
///         info!("{} is lost", item.0);
///     }
/// }
///
/// fn add(app: &mut App) {
///     app.add_region_plugins(|region| {
///         region.add_observer(report);
///     });
/// }
/// ```
#[derive(EntityEvent, Clone, Copy, Debug, PartialEq)]
pub struct FloorReached {
    /// The entity in this region.
    pub entity: Entity,
    /// Its stable id.
    pub id: Uuid,
    /// What happens to it.
    pub outcome: FloorOutcome,
}

/// The relationships in a region, by which entities follow others.
#[derive(Resource)]
pub(crate) struct RegionFollowers(pub Arc<RegionComponents>);

/// Ends a body at the floor, or lets it come back. A player who stands there already is left alone.
pub(super) fn reach(world: &mut World, entity: Entity, floor: &Floor, is_new: bool) {
    let place = |world: &World| world.get::<Position>(entity).copied();
    let Some(at) = place(world).filter(|at| floor.is_reached_at(at)) else { return };
    let id = world.get::<StableId>(entity).copied().unwrap_or_default().0;
    let relationships = world.resource::<RegionFollowers>().0.clone();
    let family = followers(world, &relationships, entity, &mut HashSet::new());
    let has_player = family.into_iter().any(|entity| world.get::<Player>(entity).is_some());
    let (to, otherwise) = match has_player {
        true => (floor.players_return, FloorOutcome::Stands),
        false => (floor.bodies_return, FloorOutcome::Ends),
    };
    let outcome = to.map_or(otherwise, FloorOutcome::Returns);
    if outcome == FloorOutcome::Stands && !is_new && at.block.y == floor.height {
        return;
    }
    world.trigger(FloorReached { entity, id, outcome });
    if place(world) != Some(at) {
        return;
    }
    match outcome {
        FloorOutcome::Ends => _ = world.despawn(entity),
        FloorOutcome::Returns(to) => _ = world.entity_mut(entity).insert((to, BodyVelocity::default())),
        FloorOutcome::Stands if at.block.y < floor.height => {
            let block = BlockPos { y: floor.height, ..at.block };
            world.entity_mut(entity).insert(Position { block, offset: at.offset.with_y(0.0), ..at });
        }
        FloorOutcome::Stands => {}
    }
}
