//! Players: entities that appear at log-in, wherever they last were, and disappear at log-out.

use super::position::{Position, Viewer};
use crate::simulation::actions::Actor;
use crate::simulation::entities::{EntityIndex, StableId};
use crate::storage::{EntityRecord, player_component};
use bevy::ecs::lifecycle::HookContext;
use bevy::ecs::world::DeferredWorld;
use bevy::prelude::*;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A player with a name. A `LogIn` spawns the player's entity where it last left the world. A player is stored separately from
/// the column that it stands in: after a restart of the app or of a halted region it is absent until its next log-in.
///
/// The player's [`Viewer`] keeps ground loaded. If its region does not tick and nothing else keeps its ground loaded, the player
/// leaves the world as if logged out. A player cannot be a child: the parent is removed again at the end of the tick. Despawning
/// a player kills it, and the next log-in under its name starts a new player.
#[derive(Component, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Reflect)]
#[type_path = "bevy_terrane"]
#[require(StableId, Viewer, Actor)]
#[component(on_discard = on_discard_player)]
#[reflect(opaque)]
#[reflect(Component, Clone, Debug)]
pub struct Player {
    name: String,
}

impl Player {
    /// The player's name, unique within the world.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The stored record of a player who has never been in the world.
    pub(crate) fn new_record(id: Uuid, name: &str, position: Position) -> EntityRecord {
        let Position { dimension, block, offset } = position;
        let components = vec![player_component(name)];
        let viewer = Some(Viewer::new().record());
        EntityRecord { id, dimension, block, offset: offset.to_array(), viewer, components, children: Vec::new() }
    }
}

/// A dead player must not return from the store while the items that it dropped are there too.
fn on_discard_player(mut world: DeferredWorld, _: HookContext) {
    if let Some(mut index) = world.get_resource_mut::<EntityIndex>() {
        index.has_lost_player = true;
    }
}

/// Added to a [`Player`] by a system of its region, it saves and removes the player and everything attached to it at the end of the
/// tick. The main world sends a [`LogOut`](crate::view::LogOut) instead.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Component, Clone, Default)]
pub struct LoggedOut;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::{BlockPos, DimensionId};

    #[test]
    fn the_store_knows_a_player_by_the_component_that_this_is() {
        let position = Position::new(DimensionId(3), BlockPos::new(1, 2, 3));
        let record = Player::new_record(Uuid::from_u128(7), "Zoë", position);
        let (name, bytes) = &record.components[0];
        assert_eq!(name, Player::type_path());
        assert_eq!(postcard::from_bytes::<Player>(bytes), Ok(Player { name: "Zoë".into() }));
        assert_eq!(record.player().as_deref(), Some("Zoë"));
        assert_eq!(EntityRecord { components: Vec::new(), ..record }.player(), None);
    }
}
