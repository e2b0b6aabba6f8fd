//! The unsaved data of a region.

use crate::chunk::ColumnSummary;
use crate::simulation::columns::blocks::RegionColumns;
use crate::simulation::components::RegionComponents;
use crate::simulation::components::stored_entities::{content, family, record};
use crate::simulation::components::{Stored, UnclaimedComponents};
use crate::simulation::entities::{EntityIndex, StableId};
use crate::simulation::inbox_outbox::Outbox;
use crate::simulation::info::RegionInfo;
use crate::simulation::position::{Position, Viewer};
use crate::simulation::world::RegionContents;
use crate::space::{ChunkPos, ColumnPos, DimensionId};
use crate::storage::SaveBatch;
use bevy::ecs::change_detection::Tick;
use bevy::ecs::component::ComponentId;
use bevy::prelude::*;
use rustc_hash::FxHashSet;
use std::any::TypeId;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem;
use std::sync::Arc;
use uuid::Uuid;

/// Hands out everything that differs from the store.
pub fn collect_unsaved(world: &mut World, contents: &mut RegionContents) {
    let RegionContents { components, outbox, ticks, .. } = contents;
    let Outbox { save, told, .. } = &mut **outbox;
    let dimension = world.resource::<RegionInfo>().dimension;
    let owned = world.resource_mut::<RegionColumns>().into_inner();
    // Whatever the game has placed there is handed out with it.
    told.append(&mut owned.told);
    collect_chunks(owned, dimension, |_| true, save);
    for chunk in owned.ticks.take_unsaved(|column| !owned.awaiting.contains(&column)) {
        save.block_ticks.insert((dimension, chunk), owned.ticks.stored(chunk));
    }
    for id in mem::take(&mut world.resource_mut::<EntityIndex>().despawned) {
        // Another entity took over the id. Its record must be handed out again.
        if let Some(heir) = world.resource::<EntityIndex>().entity(id)
            && let Ok(mut heir) = world.get_entity_mut(heir)
        {
            heir.remove::<Stored>();
        }
        save.entities.insert(id, None);
    }
    for (id, entity) in suspects(world, components, ticks.collected) {
        let record = record(world, components, entity);
        let content = record.as_ref().map(content);
        let before = world.get::<Stored>(entity).map(|stored| stored.content);
        remember(world, entity, content);
        // Two `None`s: the entity was never saved. Only `content` is `None`: nothing of it is saved any more, or it is a child
        // now. Its stored record must not come back.
        if content != before {
            save.entities.insert(id, record);
        }
    }
    ticks.collected = Some(world.increment_change_tick());
}

/// Fills the batch with the unsaved chunks of the columns that are wanted. Changed chunks of columns that are gone are skipped:
/// they must not be saved as air.
pub fn collect_chunks(
    owned: &mut RegionColumns,
    dimension: DimensionId,
    wanted: impl Fn(ColumnPos) -> bool,
    save: &mut SaveBatch,
) {
    let chunks: Vec<ChunkPos> = owned.unsaved.extract_if(|chunk| wanted(chunk.column())).collect();
    let mut changed = FxHashSet::default();
    for chunk in chunks.into_iter().filter(|chunk| owned.contains(chunk.column())) {
        save.chunks.insert((dimension, chunk), owned.chunk(chunk));
        changed.insert(chunk.column());
    }
    // The summary of a partial column would be wrong for the whole.
    let whole = changed.into_iter().filter_map(|column| owned.column(column)).filter(|it| it.loaded().is_none());
    for column in whole {
        save.summaries.insert((dimension, column.pos()), Arc::new(ColumnSummary::new(column)));
    }
}

/// Notes the handed-out content on the entity.
fn remember(world: &mut World, entity: Entity, content: Option<u64>) {
    let Ok(mut at) = world.get_entity_mut(entity) else { return };
    let Some(content) = content else {
        at.remove::<Stored>();
        return;
    };
    // The insertion changes the structure of the entity, so it comes first.
    if !at.contains::<Stored>() {
        at.insert(Stored::default());
    }
    let Ok(at) = world.get_entity(entity) else { return };
    let structure = Some(structure(world, at));
    if let Some(mut stored) = world.get_mut::<Stored>(entity) {
        *stored = Stored { content, structure };
    }
}

/// The entities whose record may differ from the last one handed out, because a value or the structure changed. Found by
/// change ticks and archetypes, without encoding anything.
fn suspects(world: &World, components: &RegionComponents, since: Option<Tick>) -> Vec<(Uuid, Entity)> {
    let id_of = |type_id: TypeId| world.components().get_valid_id(type_id);
    let saved: Vec<ComponentId> = components.recorded_types().filter_map(id_of).collect();
    let others = [
        TypeId::of::<StableId>(),
        TypeId::of::<Position>(),
        TypeId::of::<Viewer>(),
        TypeId::of::<Children>(),
        TypeId::of::<UnclaimedComponents>(),
    ];
    let recorded: Vec<ComponentId> = saved.iter().copied().chain(others.into_iter().filter_map(id_of)).collect();
    let now = world.read_change_tick();
    let changed = |entity: EntityRef| {
        let ticks = |id: &ComponentId| entity.get_change_ticks_by_id(*id);
        since.is_none_or(|since| recorded.iter().filter_map(ticks).any(|ticks| ticks.is_changed(since, now)))
    };

    let index = world.resource::<EntityIndex>();
    let mut found = Vec::new();
    for archetype in world.archetypes().iter() {
        let mut entities =
            archetype.entities().iter().filter_map(|entity| world.get_entity(entity.id()).ok()).peekable();
        // All entities of an archetype have the same components.
        if !entities.peek().is_some_and(|first| may_be_stored(first, &saved)) {
            continue;
        }
        for entity in entities {
            let Some(StableId(id)) = entity.get::<StableId>().copied() else { continue };
            // Only one of two entities with the same id can be stored.
            let is_found = index.entity(id) == Some(entity.id());
            if is_found && is_suspect(world, entity, changed) {
                found.push((id, entity.id()));
            }
        }
    }
    found.sort_unstable();
    found
}

/// Returns `true` if the entity may have a stored record.
fn may_be_stored(entity: &EntityRef, saved: &[ComponentId]) -> bool {
    let is_root = entity.contains::<Position>() && !entity.contains::<ChildOf>();
    let is_recordable = entity.contains::<Children>()
        || entity.contains::<UnclaimedComponents>()
        || saved.iter().any(|id| entity.contains_id(*id));
    entity.contains::<StableId>() && (entity.contains::<Stored>() || (is_root && is_recordable))
}

/// Returns `true` if the entity or a descendant changed since its record was handed out.
fn is_suspect(world: &World, entity: EntityRef, changed: impl Fn(EntityRef) -> bool) -> bool {
    let known = entity.get::<Stored>().and_then(|stored| stored.structure);
    known.is_none_or(|known| {
        known != structure(world, entity)
            || match entity.contains::<Children>() {
                true => family(world, entity).into_iter().any(|(_, entity)| changed(entity)),
                false => changed(entity),
            }
    })
}

/// A hash of the archetypes of the entity and its descendants in this world.
fn structure(world: &World, root: EntityRef) -> u64 {
    if !root.contains::<Children>() {
        return root.archetype().id().index() as u64;
    }
    let mut hasher = DefaultHasher::new();
    for (_, entity) in family(world, root) {
        (entity.id(), entity.archetype().id()).hash(&mut hasher);
    }
    hasher.finish()
}
