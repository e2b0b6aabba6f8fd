//! Entities that leave a region world for the store: players who log out, and who is on ground that is given up.

use super::components::RegionComponents;
use super::entities::{EntityIndex, Moving, StableId, let_go};
use super::followers::{followers, place, roots};
use super::stored_entities::record;
use crate::simulation::columns::unsaved::collect_unsaved;
use crate::simulation::inbox_outbox::MirrorUpdate;
use crate::simulation::world::RegionContents;
use crate::simulation::{Letter, LoggedOut, Player, Position, Undeliverable};
use crate::space::ColumnPos;
use crate::storage::EntityRecord;
use bevy::platform::collections::HashSet;
use bevy::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::mem;
use uuid::Uuid;

/// Lets go who logged out. With them all that is unsaved is handed out, so that a crash finds what they had once.
pub fn tend_players(world: &mut World, contents: &mut RegionContents) {
    let found: Vec<Entity> = contents.player_query.iter(world).collect();
    for player in &found {
        set_free(world, &contents.components, *player);
    }
    let mut leaving: Vec<Entity> =
        found.into_iter().filter(|player| world.get::<LoggedOut>(*player).is_some()).collect();
    if leaving.is_empty() {
        return;
    }
    leaving.sort_unstable_by_key(|player| world.get::<StableId>(*player).copied());
    collect_unsaved(world, contents);
    let mut taken = HashSet::new();
    world.insert_resource(Moving);
    for player in leaving {
        let followers = followers(world, &contents.components, player, &mut taken);
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

/// Lets go of the entities in columns that are given up, and of what waits for them or their columns. Gives how they are
/// stored, by their columns.
pub fn give_up_entities(
    world: &mut World,
    contents: &mut RegionContents,
    leaving: &FxHashSet<ColumnPos>,
) -> FxHashMap<ColumnPos, Vec<EntityRecord>> {
    let RegionContents { components, mirrored, outbox, .. } = &mut *contents;
    let mut gone = FxHashSet::default();
    let mut records: FxHashMap<ColumnPos, Vec<EntityRecord>> = FxHashMap::default();
    let (mut taken, mut families) = (HashSet::new(), Vec::new());
    for root in roots(world, components, |position| leaving.contains(&position.column())) {
        let Some(column) = world.get::<Position>(root).map(Position::column) else { continue };
        let followers = followers(world, components, root, &mut taken);
        // Whatever follows it without being its child has a record of its own, and waits in the same column.
        let stored = followers.iter().filter_map(|entity| record(world, components, *entity));
        // A player leaves the world with its ground, and has been handed out.
        let stored = stored.filter(|record| record.player().is_none());
        records.entry(column).or_default().extend(stored);
        let ids = followers.iter().filter_map(|entity| Some(world.get::<StableId>(*entity)?.0));
        gone.extend(ids.clone());
        outbox.mirrors.extend(ids.filter(|id| mirrored.remove(id)).map(MirrorUpdate::gone));
        families.push((root, followers));
    }
    // Before hooks of the game run.
    give_up_letters(contents, leaving, &gone);
    world.insert_resource(Moving);
    families.into_iter().for_each(|(root, followers)| let_go(world, root, followers));
    world.remove_resource::<Moving>();
    let mut index = world.resource_mut::<EntityIndex>();
    // An id that somebody took over waits for the next time, with the record of its heir.
    let (heirs, died): (FxHashSet<_>, FxHashSet<_>) =
        mem::take(&mut index.despawned).into_iter().partition(|id| index.entity(*id).is_some());
    index.despawned = heirs;
    // Also those who were to be given up, until one before them took them along into death.
    records.values_mut().for_each(|records| records.retain(|record| !died.contains(&record.id)));
    contents.outbox.save.entities.extend(died.into_iter().map(|id| (id, None)));
    records
}

fn give_up_letters(contents: &mut RegionContents, leaving: &FxHashSet<ColumnPos>, gone: &FxHashSet<Uuid>) {
    let reason = |letter: &Letter| match (letter.column(), letter.entity()) {
        (Some((_, column)), _) if leaving.contains(&column) => Some(Undeliverable::Unloaded(column)),
        (_, Some(id)) if gone.contains(&id) => Some(Undeliverable::NoSuchEntity(id)),
        _ => None,
    };
    let letters = contents.take_waiting(|letter| reason(letter).is_some()).into_iter();
    contents.outbox.undelivered.extend(letters.filter_map(|letter| reason(&letter).map(|reason| (letter, reason))));
}
