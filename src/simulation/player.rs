//! Players: entities that come with a log-in and go with a log-out, wherever they are.

use super::position::{Position, Viewer};
use super::travel::entities::{EntityIndex, StableId};
use crate::storage::{EntityRecord, player_component};
use bevy::ecs::lifecycle::HookContext;
use bevy::ecs::world::DeferredWorld;
use bevy::prelude::*;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A player, by its name: an entity that a `LogIn` brought into the world, where it was when it left. It is stored by
/// itself and not with the column that it stands in: after a restart of the app or of a halted region it is not there
/// before its next log-in.
///
/// It holds ground loaded as its [`Viewer`] says. Where its region does not tick and nobody holds its ground any more, it
/// leaves the world as if it had logged out. It hangs on no other entity: one that is made a child is set free again at the
/// end of the tick. When it is despawned it is dead: its name is new again.
#[derive(Component, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TypePath)]
#[type_path = "bevy_terrane"]
#[require(StableId, Viewer)]
#[component(on_discard = on_discard_player)]
pub struct Player {
    name: String,
}

impl Player {
    /// The player's name. No two players of a world have the same.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One who has never been in the world, as it is stored.
    pub(crate) fn new_record(id: Uuid, name: &str, position: Position) -> EntityRecord {
        let Position { dimension, block, offset } = position;
        let components = vec![player_component(name)];
        let viewer = Some(Viewer::new().record());
        EntityRecord { id, dimension, block, offset: offset.to_array(), viewer, components, children: Vec::new() }
    }
}

/// Who dies must not come back from the store while what it left behind is there too.
fn on_discard_player(mut world: DeferredWorld, _: HookContext) {
    if let Some(mut index) = world.get_resource_mut::<EntityIndex>() {
        index.has_lost_player = true;
    }
}

/// Put on a [`Player`], it is saved and leaves the world at the end of the tick, with all that hangs on it.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
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
