//! Entities that leave a region world for the store: players who log out, and entities in evicted columns.

use crate::simulation::components::RegionComponents;
use crate::simulation::components::followers::{followers, place, roots};
use crate::simulation::components::stored_entities::record;
use crate::simulation::entities::{EntityIndex, Moving, StableId, remove_family};
use crate::simulation::inbox_outbox::MirrorUpdate;
use crate::simulation::letters::letter::{Letter, Undeliverable};
use crate::simulation::work::unsaved::collect_unsaved;
use crate::simulation::world::{RegionContents, get};
use crate::simulation::{LoggedOut, Player, Position};
use crate::space::ColumnPos;
use crate::storage::EntityRecord;
use bevy::platform::collections::HashSet;
use bevy::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::mem;
use uuid::Uuid;

/// Removes players who logged out. All unsaved data is handed out with them, so that a crash neither duplicates nor loses
/// their belongings.
pub fn tend_players(world: &mut World, contents: &mut RegionContents) {
    let found: Vec<Entity> = get(&mut contents.params.look, world).players.iter().collect();
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
        remove_family(world, player, followers);
    }
    world.remove_resource::<Moving>();
}

/// Detaches a player from its parent. A child is stored with its parent, where a log-in would not find the player.
fn set_free(world: &mut World, components: &RegionComponents, player: Entity) {
    let at = place(world, components, player);
    let Ok(mut entity) = world.get_entity_mut(player) else { return };
    if entity.contains::<ChildOf>() {
        let name = entity.get::<Player>().map_or("", Player::name);
        warn!("player {name:?} was made a child of another entity, which players cannot be: the parent was removed");
        entity.remove::<ChildOf>();
        if let (false, Some(at)) = (entity.contains::<Position>(), at) {
            entity.insert(at);
        }
    }
}

/// Removes the entities in evicted columns, and the letters that wait for them or their columns. Returns their records by
/// column.
pub fn evict_entities(
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
        // A follower that is not a child has a record of its own, and waits in the same column.
        let stored = followers.iter().filter_map(|entity| record(world, components, *entity));
        // Players leave the world together with their ground. They have been handed out already.
        let stored = stored.filter(|record| record.player().is_none());
        records.entry(column).or_default().extend(stored);
        let ids = followers.iter().filter_map(|entity| Some(world.get::<StableId>(*entity)?.0));
        gone.extend(ids.clone());
        outbox.mirrors.extend(ids.filter(|id| mirrored.remove(id).is_some()).map(MirrorUpdate::gone));
        families.push((root, followers));
    }
    // Runs before hooks of the game.
    evict_letters(contents, leaving, &gone);
    world.insert_resource(Moving);
    families.into_iter().for_each(|(root, followers)| remove_family(world, root, followers));
    world.remove_resource::<Moving>();
    let mut index = world.resource_mut::<EntityIndex>();
    // An id with a new owner waits for the next save, together with the owner's record.
    let (heirs, died): (FxHashSet<_>, FxHashSet<_>) =
        mem::take(&mut index.despawned).into_iter().partition(|id| index.entity(*id).is_some());
    index.despawned = heirs;
    // Includes leaving entities that were despawned by a hook of an earlier one.
    records.values_mut().for_each(|records| records.retain(|record| !died.contains(&record.id)));
    contents.outbox.save.entities.extend(died.into_iter().map(|id| (id, None)));
    records
}

fn evict_letters(contents: &mut RegionContents, leaving: &FxHashSet<ColumnPos>, gone: &FxHashSet<Uuid>) {
    let reason = |letter: &Letter| match (letter.column(), letter.entity()) {
        (Some((_, column)), _) if leaving.contains(&column) => Some(Undeliverable::Unloaded(column)),
        (_, Some(id)) if gone.contains(&id) => Some(Undeliverable::NoSuchEntity(id)),
        _ => None,
    };
    let letters = contents.letters.take(|letter| reason(letter).is_some()).into_iter();
    contents.outbox.undelivered.extend(letters.filter_map(|letter| reason(&letter).map(|reason| (letter, reason))));
}
