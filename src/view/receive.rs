//! Applies the published state, a part in each frame.

use super::actions::{self, ActionPredictions};
use super::far_view;
use super::frame_news::{EntityChange, FrameNews, entity_change};
use super::light::outdate;
use super::mirror::Components;
use super::{
    ColumnChange, ColumnChanged, Dimension, DimensionOpen, Mirror, MirrorIndex, PublishedColumns, arenas, jobs,
};
use crate::coordinator::MainLink;
use crate::coordinator::messages::{ColumnUpdate, DecidedEdit, Published, WorldEvent};
use crate::simulation::{BlockTypes, DecidedAction, MirrorUpdate, StableId, TimeOfDay};
use crate::space::{ChunkPos, ColumnPos, DimensionId};
use bevy::platform::cell::SyncCell;
use bevy::prelude::*;
use std::collections::BTreeSet;
use std::mem;

/// The maximum number of columns and chunks that are applied in one frame; the rest waits for the next.
const MAX_A_FRAME: usize = 1_024;

pub(super) fn receive(world: &mut World) {
    let newer = world.resource::<MainLink>().take_published();
    let mut backlog = mem::take(&mut *world.resource_mut::<Published>());
    if let Some(newer) = newer {
        backlog.append(newer);
    }
    world.resource_mut::<FrameNews>().begin_frame();
    if !backlog.is_empty() {
        apply(world, &mut backlog);
    }
    *world.resource_mut::<Published>() = backlog;
}

fn apply(world: &mut World, backlog: &mut Published) {
    if let Some(payload) = backlog.panic.take() {
        std::panic::resume_unwind(SyncCell::to_inner(payload));
    }
    // Before a dimension and its jobs are reported as closed.
    for status in mem::take(&mut backlog.jobs).into_values() {
        jobs::apply(world, status);
    }
    for (arena, status) in mem::take(&mut backlog.arenas).into_values() {
        arenas::apply(world, arena, status);
    }
    mem::take(&mut backlog.events).into_iter().for_each(|event| tell(world, event));
    for letter in mem::take(&mut backlog.letters) {
        // A letter without an entity goes to the main world.
        letter.hand_over(world, None);
    }
    let dropped = mem::take(&mut backlog.dropped_events);
    if dropped > 0 {
        warn!("{dropped} messages of the simulation were dropped: the main world did not take them in for too long");
    }
    if let Some(statistics) = backlog.statistics.take() {
        world.insert_resource(statistics);
    }
    let acted = mem::take(&mut backlog.acted);
    let changed = apply_columns(world, backlog, &acted);
    apply_light(world, backlog);
    apply_decisions(world, backlog, &changed, &acted);
    far_view::apply(world, &mut backlog.far_views);
    let has_clients = world.resource::<FrameNews>().has_clients;
    mem::take(&mut backlog.mirrors).into_values().for_each(|update| apply_mirror(world, update, has_clients));
    actions::follow(world, &changed, &acted);
    world.resource_mut::<FrameNews>().actions = acted;
    world.write_message_batch(mem::take(&mut backlog.settled));
}

/// Returns the changed columns. Those that actions have changed come first, since the actions are decided in this frame.
fn apply_columns(
    world: &mut World,
    backlog: &mut Published,
    acted: &[DecidedAction],
) -> BTreeSet<(DimensionId, ColumnPos)> {
    let (mut budget, mut applied) = (MAX_A_FRAME, BTreeSet::new());
    let of_actions: BTreeSet<(DimensionId, ChunkPos)> = acted
        .iter()
        .filter_map(|decided| decided.result.as_ref().ok())
        .flat_map(|(dimension, chunks)| chunks.iter().map(|chunk| (*dimension, *chunk)))
        .collect();
    let columns = of_actions.iter().map(|(dimension, chunk)| (*dimension, chunk.column()));
    let mut first: Vec<_> = columns.filter_map(|place| backlog.columns.remove_entry(&place)).collect();
    while let Some(((dimension, column), update)) =
        first.pop().or_else(|| if budget > 0 { backlog.columns.pop_first() } else { None })
    {
        budget = budget.saturating_sub(1);
        let columns = &mut world.resource_mut::<PublishedColumns>().confirmed;
        let change = match (update, columns.get_mut(&(dimension, column))) {
            (ColumnUpdate::Loaded { blocks, is_new: _ }, _) => {
                columns.insert((dimension, column), blocks);
                ColumnChange::Loaded
            }
            (ColumnUpdate::Changed { lost, gained }, Some(blocks)) => {
                let mut heights = blocks.cut(&lost).loaded().cloned().unwrap_or_default();
                heights.insert_all(&blocks.extend(&gained));
                ColumnChange::Heights(heights)
            }
            (ColumnUpdate::Unloaded, Some(_)) => {
                columns.remove(&(dimension, column));
                world.resource_mut::<PublishedColumns>().light.remove((dimension, column));
                ColumnChange::Unloaded
            }
            (_, None) => continue,
        };
        applied.insert((dimension, column));
        world.write_message(ColumnChanged { dimension, column, change });
    }
    // Columns are applied before their chunks.
    let mut first: Vec<_> = of_actions.iter().filter_map(|place| backlog.chunks.remove_entry(place)).collect();
    while let Some(((dimension, chunk), blocks)) =
        first.pop().or_else(|| if budget > 0 { backlog.chunks.pop_first() } else { None })
    {
        budget = budget.saturating_sub(1);
        let mut published = world.resource_mut::<PublishedColumns>();
        let column = published.confirmed.get_mut(&(dimension, chunk.column()));
        if let Some(column) = column.filter(|column| column.is_loaded(chunk.y)) {
            let before = column.set_chunk(chunk.y, blocks.clone());
            applied.insert((dimension, chunk.column()));
            let news = (dimension, chunk, before.unwrap_or_default(), blocks);
            world.resource_mut::<FrameNews>().chunks.push(news);
            let change = ColumnChange::Chunk(chunk.y);
            world.write_message(ColumnChanged { dimension, column: chunk.column(), change });
        }
    }
    applied
}

/// Applies the light of columns. It waits for the blocks that it belongs to.
fn apply_light(world: &mut World, backlog: &mut Published) {
    let Published { columns, chunks, light, .. } = backlog;
    if light.is_empty() {
        return;
    }
    let waiting: BTreeSet<_> = chunks.keys().map(|(dimension, chunk)| (*dimension, chunk.column())).collect();
    let lit: Vec<_> =
        light.extract_if(.., |place, _| !columns.contains_key(place) && !waiting.contains(place)).collect();
    for (place, light) in lit {
        let mut published = world.resource_mut::<PublishedColumns>();
        if !published.confirmed.contains_key(&place) {
            continue;
        }
        let heights = published.light.publish(place, light);
        outdate(&mut published);
        if !heights.is_empty() {
            let change = ColumnChange::Light(heights);
            world.write_message(ColumnChanged { dimension: place.0, column: place.1, change });
        }
    }
}

/// Ends the predictions that were decided. A decision waits for the chunk that includes it, so that no block reverts in
/// between.
fn apply_decisions(
    world: &mut World,
    backlog: &mut Published,
    changed: &BTreeSet<(DimensionId, ColumnPos)>,
    acted: &[DecidedAction],
) {
    if changed.is_empty() && backlog.decided.is_empty() && acted.is_empty() {
        return;
    }
    let Some(blocks) = world.get_resource::<BlockTypes>().map(|types| types.0.clone()) else { return };
    let Published { columns, chunks, decided, .. } = backlog;
    let is_there = |edit: &mut DecidedEdit| {
        let DecidedEdit { dimension, chunk, .. } = *edit;
        !columns.contains_key(&(dimension, chunk.column())) && !chunks.contains_key(&(dimension, chunk))
    };
    let decided: Vec<DecidedEdit> = decided.extract_if(.., is_there).collect();
    let mut published = world.resource_mut::<PublishedColumns>();
    let numbers = decided.iter().map(|edit| edit.number).chain(acted.iter().map(|action| action.id));
    let reverted = published.follow(changed.iter().copied(), numbers, &blocks);
    for (dimension, chunk) in reverted {
        let change = ColumnChange::Chunk(chunk.y);
        world.write_message(ColumnChanged { dimension, column: chunk.column(), change });
    }
    world.resource_mut::<FrameNews>().edits = decided;
}

fn apply_mirror(world: &mut World, MirrorUpdate { id, position, mut components, .. }: MirrorUpdate, has_clients: bool) {
    let known = world.resource::<MirrorIndex>().entity(id).filter(|entity| world.get_entity(*entity).is_ok());
    let Some(current) = position else {
        world.resource_mut::<MirrorIndex>().entities.remove(&id);
        world.resource_mut::<ActionPredictions>().forget(id);
        if let Some(entity) = known {
            world.despawn(entity);
            let gone = EntityChange { id, place: None, components: Vec::new() };
            world.resource_mut::<FrameNews>().entities.push(gone);
        }
        return;
    };
    let known_components = world.resource::<Components>().clone();
    let for_clients = has_clients.then(|| known_components.0.mirrored.encode_for_all(&components));
    world.resource_mut::<ActionPredictions>().confirm(id, &mut components);
    let mut entity = match known {
        Some(entity) => world.entity_mut(entity),
        None => {
            let entity = world.spawn((Mirror { id, previous: current, current }, StableId(id), current.0));
            let spawned = entity.id();
            entity.into_world_mut().resource_mut::<MirrorIndex>().entities.insert(id, spawned);
            world.entity_mut(spawned)
        }
    };
    if let Some(mut mirror) = entity.get_mut::<Mirror>()
        && mirror.current != current
    {
        mirror.previous = mem::replace(&mut mirror.current, current);
        entity.insert(current.0);
    }
    for (number, component) in components {
        known_components.0.mirrored.apply(&mut entity, number, component);
    }
    if let Some(changes) = for_clients
        && let Some(change) = entity_change(&known_components.0, entity.as_readonly(), id, Some(current), changes)
    {
        entity.resource_mut::<FrameNews>().entities.push(change);
    }
}

/// Turns an event into a message; an opened dimension is also marked on its entity.
fn tell(world: &mut World, event: WorldEvent) {
    match &event {
        WorldEvent::DimensionOpened(opened) => {
            if let Ok(mut dimension) = world.get_entity_mut(opened.entity) {
                // The entity may have had another dimension. A new component makes its viewers send their places again.
                dimension.remove::<DimensionOpen>().insert(DimensionOpen { id: opened.dimension });
                if let (Some(days), Some(mut time)) = (opened.stored_days, dimension.get_mut::<TimeOfDay>()) {
                    time.days = days;
                }
                // The name of a removed dimension has another id.
                if let Some(mut dimension) = dimension.get_mut::<Dimension>() {
                    dimension.bypass_change_detection().set_id(opened.dimension);
                }
            }
        }
        WorldEvent::DimensionClosed(closed) => {
            // The entity may have another dimension by now.
            if let Ok(mut dimension) = world.get_entity_mut(closed.entity)
                && dimension.get::<DimensionOpen>().is_some_and(|open| open.id == closed.dimension)
            {
                dimension.remove::<DimensionOpen>();
            }
            world.resource_mut::<PublishedColumns>().forget_predictions(closed.dimension);
            jobs::close(world, closed);
        }
        _ => {}
    }
    event.write(world);
}
