//! [`Floor`]: the end of each fall out of the world.

use super::BodyVelocity;
use crate::simulation::components::RegionComponents;
use crate::simulation::components::followers::followers;
use crate::simulation::entities::StableId;
use crate::simulation::info::Floor;
use crate::simulation::{Player, Position};
use crate::space::BlockPos;
use bevy::ecs::component::ComponentId;
use bevy::platform::collections::HashSet;
use bevy::prelude::*;
use std::sync::Arc;
use uuid::Uuid;

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

/// Returns `true` if entities of this region world may have the component: it is registered for regions, or left behind as its entity
/// goes to another region.
pub fn is_region_component(region: &World, component: ComponentId) -> bool {
    let registered = region.get_resource::<RegionFollowers>();
    registered.is_some_and(|RegionFollowers(registered)| registered.knows(component, region.components()))
}

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
