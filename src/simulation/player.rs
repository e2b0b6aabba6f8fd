//! Players: entities that come with a log-in and go with a log-out, wherever they are.

use super::travel::components::RegionComponents;
use super::travel::departure::{followers, place};
use super::travel::entities::{EntityIndex, Moving, StableId, let_go};
use super::travel::stored_entities::spawn_stored;
use crate::simulation::columns::unsaved::collect_unsaved;
use crate::simulation::letter::{Address, Letter, LetterSender};
use crate::simulation::world::RegionContents;
use crate::simulation::{Position, Viewer};
use crate::storage::{EntityRecord, SaveBatch, player_component};
use bevy::ecs::lifecycle::HookContext;
use bevy::ecs::query::QueryState;
use bevy::ecs::world::DeferredWorld;
use bevy::platform::collections::HashSet;
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

    /// What brings it into the world, to be sent to the place that its record names.
    pub(crate) fn arrival(record: EntityRecord) -> Letter {
        let (id, to) = (record.id, Address::Place(record.dimension, record.block));
        let arrive = move |world: &mut World| {
            let components = world.resource::<RegionContents>().components.clone();
            world.insert_resource(Moving);
            spawn_stored(world, &components, record);
            world.remove_resource::<Moving>();
        };
        Letter::run(to, LetterSender::Main, Box::new(arrive)).bringing(id)
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

/// Players who have to leave or who hang on something.
pub(super) type PlayersToTend = (With<Player>, Or<(With<LoggedOut>, With<ChildOf>)>);

/// Lets go who logged out. With them all that is unsaved is handed out, so that a crash finds what they had once.
pub(super) fn tend_players(
    world: &mut World,
    components: &RegionComponents,
    players: &mut QueryState<Entity, PlayersToTend>,
    save: &mut SaveBatch,
) {
    let found: Vec<Entity> = players.iter(world).collect();
    if found.is_empty() {
        return;
    }
    for player in &found {
        set_free(world, components, *player);
    }
    let mut leaving: Vec<Entity> =
        found.into_iter().filter(|player| world.get::<LoggedOut>(*player).is_some()).collect();
    if leaving.is_empty() {
        return;
    }
    leaving.sort_unstable_by_key(|player| world.get::<StableId>(*player).copied());
    collect_unsaved(world, components, save);
    let mut taken = HashSet::new();
    world.insert_resource(Moving);
    for player in leaving {
        let followers = followers(world, components, player, &mut taken);
        let_go(world, player, followers);
    }
    world.remove_resource::<Moving>();
}

/// What hangs on something is stored with it, and nobody would find the player there.
fn set_free(world: &mut World, components: &RegionComponents, player: Entity) {
    let at = place(world, components, player);
    let Ok(mut entity) = world.get_entity_mut(player) else { return };
    if entity.contains::<ChildOf>() {
        let name = entity.get::<Player>().map_or("", Player::name);
        warn!("player {name:?} was made a child of another entity, which it cannot be: it is none any more");
        entity.remove::<ChildOf>();
        if let (false, Some(at)) = (entity.contains::<Position>(), at) {
            entity.insert(at);
        }
    }
}

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
