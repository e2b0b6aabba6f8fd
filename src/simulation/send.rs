//! The end of a task: filling the outbox with changes and with everything that leaves the region.

use super::columns::blocks::RegionColumns;
use super::columns::column_work::Answer;
use super::columns::unsaved::{collect_chunks, collect_unsaved};
use super::inbox_outbox::MirrorUpdate;
use super::info::RegionInfo;
use super::post::Post;
use super::travel::departure::depart_all;
use super::travel::entities::{EntityIndex, MoveCause};
use super::travel::followers::{place, roots};
use super::travel::leaving::{evict_entities, tend_players};
use super::world::RegionContents;
use super::{LoadedColumn, Position, RegionTemplateError, Task};
use crate::space::{ChunkPos, ColumnPos, HeightSet};
use bevy::ecs::change_detection::Tick;
use bevy::ecs::error::{BevyError, ErrorContext};
use bevy::prelude::*;
use bevy::utils::prelude::DebugName;
use rustc_hash::FxHashSet;
use std::mem;
use uuid::Uuid;

/// Fills the outbox, and removes entities that walked out and evicted columns. The outbox as filled so far survives a panic,
/// because leaving entities may have hooks.
pub fn send(world: &mut World, contents: &mut RegionContents, task: &Task) {
    // Runs before anything leaves.
    raise_faults(world, contents);
    tend_players(world, contents);
    report_viewers(world, contents);
    mirror(world, contents);
    let walked_out = walked_out(world, contents);
    let leaving = leaving_columns(world, contents, task);
    let cut = mem::take(&mut contents.inbox.cut);
    // All unsaved data goes along with anything that leaves, so a crash never loses only one side.
    let is_wanted = must_save(world, contents, task);
    if is_wanted || !walked_out.is_empty() || !leaving.is_empty() || !cut.is_empty() {
        note_ticks(world, task, &leaving, &cut);
        collect_unsaved(world, contents);
    }
    contents.outbox.travellers = depart_all(world, contents, walked_out, MoveCause::Crossing);
    if !leaving.is_empty() {
        contents.outbox.left = evict_columns(world, contents, &leaving);
    }
    cut_columns(world, contents, cut);
    contents.outbox.letters = world.resource_mut::<Post>().take();
    let mut owned = world.resource_mut::<RegionColumns>();
    contents.outbox.fetched = mem::take(&mut owned.fetched);
    contents.outbox.light = match task {
        Task::Tick { .. } => owned.advance_light(Some(contents.period)),
        // No tick waits.
        Task::Save => owned.advance_light(None),
        Task::Split { .. } | Task::Close => Vec::new(),
    };
    let mut changed = mem::take(&mut owned.changed);
    changed.retain(|chunk| owned.column(chunk.column()).is_some_and(|column| column.is_loaded(chunk.y)));
    contents.outbox.changed = changed.into_iter().map(|chunk| (chunk, owned.chunk(chunk))).collect();
}

/// Raises mistakes of the game's systems as if they had returned an error.
fn raise_faults(world: &mut World, contents: &mut RegionContents) {
    if let Some(error) = contents.seen_archetypes.look(world, &contents.components) {
        raise(world, error);
    }
    for name in world.resource_mut::<Post>().take_unknown() {
        raise(world, RegionTemplateError::UnregisteredMessage(name));
    }
    for violation in world.resource_mut::<RegionColumns>().take_violations() {
        raise(world, violation);
    }
}

/// Hands an error to the region's error handler, as if a system of the game had returned it. By default that panics,
/// and the region halts.
fn raise(world: &mut World, error: impl Into<BevyError>) {
    let handler = world.fallback_error_handler();
    let context =
        ErrorContext::System { name: DebugName::borrowed("the region's tick"), last_run: world.change_tick() };
    handler(error.into(), context);
}

/// Reports the positions of the viewers. A viewer without a position of its own has that of its parent.
fn report_viewers(world: &mut World, contents: &mut RegionContents) {
    let RegionContents { components, viewer_query, outbox, viewers: known, .. } = contents;
    for (entity, id, viewer) in viewer_query.query(world) {
        if let Some(position) = place(world, components, entity) {
            outbox.viewers.push((id.0, position, viewer.radii()));
        }
    }
    outbox.viewers.sort_unstable_by_key(|(id, ..)| *id);
    if known.len() == outbox.viewers.len() && outbox.viewers.iter().all(|(id, ..)| known.contains(id)) {
        return;
    }
    let now: FxHashSet<Uuid> = outbox.viewers.iter().map(|(id, ..)| *id).collect();
    outbox.viewers_gone = known.difference(&now).copied().collect();
    outbox.viewers_gone.sort_unstable();
    *known = now;
}

/// Reports changes of the mirrored entities since the last call.
fn mirror(world: &mut World, contents: &mut RegionContents) {
    let RegionContents { components, mirrored_query, outbox, mirrored, last_send, .. } = contents;
    if !components.mirrors_anything() {
        return;
    }
    let clock = world.resource::<Time>().elapsed();
    let now = world.change_tick();
    let mut shown = FxHashSet::default();
    for (entity, id, position) in mirrored_query.iter(world) {
        if !components.is_mirrored(entity) {
            continue;
        }
        shown.insert(id.0);
        let new = !mirrored.contains(&id.0);
        // Every component of an entity that the main world has not seen yet counts as changed.
        let last = if new { Tick::new(now.get().wrapping_sub(Tick::MAX.get())) } else { *last_send };
        let components = components.read_mirrored(entity, last, now);
        let moved = position.last_changed().is_newer_than(last, now);
        if new || moved || !components.is_empty() {
            outbox.mirrors.push(MirrorUpdate {
                position: Some((*position, clock)),
                components,
                ..MirrorUpdate::gone(id.0)
            });
        }
    }
    outbox.mirrors.extend(mirrored.difference(&shown).map(|id| MirrorUpdate::gone(*id)));
    outbox.mirrors.sort_unstable_by_key(|update| update.id);
    (*mirrored, *last_send) = (shown, world.increment_change_tick());
}

/// The entities that are no longer on the region's ground.
fn walked_out(world: &mut World, contents: &mut RegionContents) -> Vec<Entity> {
    let RegionContents { components, position_query, last_look, .. } = contents;
    let now = world.increment_change_tick();
    let last = mem::replace(last_look, now);
    let dimension = world.resource::<RegionInfo>().dimension;
    let owned = world.resource::<RegionColumns>();
    let outside = |position: &Position| position.dimension != dimension || !owned.contains(position.column());
    // Entities that did not move are skipped.
    let everywhere = owned.look_everywhere;
    let may_be_outside = |position: &Ref<Position>| everywhere || position.last_changed().is_newer_than(last, now);
    let anyone = position_query.iter(world).any(|position| may_be_outside(&position) && outside(&position));
    let found = if anyone { roots(world, components, outside) } else { Vec::new() };
    if anyone != everywhere {
        // Not all of them leave now: a child may be detached from its parent later.
        world.resource_mut::<RegionColumns>().look_everywhere = anyone;
    }
    found
}

/// The columns to evict in which no viewer stands. When the world closes, viewers do not matter.
fn leaving_columns(world: &World, contents: &mut RegionContents, task: &Task) -> FxHashSet<ColumnPos> {
    let evict = mem::take(&mut contents.inbox.evict);
    if evict.is_empty() {
        return FxHashSet::default();
    }
    let is_closing = matches!(task, Task::Close);
    let outbox = &mut contents.outbox;
    let is_watched = |column: &ColumnPos| outbox.viewers.iter().any(|(_, position, _)| position.column() == *column);
    let (kept, evict): (Vec<_>, Vec<_>) = evict.into_iter().partition(|column| !is_closing && is_watched(column));
    outbox.kept = kept;
    let owned = world.resource::<RegionColumns>();
    evict.into_iter().filter(|column| owned.contains(*column)).collect()
}

/// Marks the scheduled ticks of leaving columns and parts for saving, and all of them at the end of the world: their remaining
/// delays change all the time.
fn note_ticks(world: &mut World, task: &Task, leaving: &FxHashSet<ColumnPos>, cut: &[(ColumnPos, HeightSet)]) {
    let is_cut =
        |chunk: ChunkPos| cut.iter().any(|(column, heights)| *column == chunk.column() && heights.contains(chunk.y));
    let is_closing = matches!(task, Task::Close);
    if is_closing || !leaving.is_empty() || !cut.is_empty() {
        let mut owned = world.resource_mut::<RegionColumns>();
        owned.ticks.save_chunks(|chunk| is_closing || leaving.contains(&chunk.column()) || is_cut(chunk));
    }
}

/// Returns `true` if all unsaved data must be handed out even if nothing leaves: because the task asks for it, letters are sent, a player
/// has died, or columns were restored. A restored column's removed entities may reappear elsewhere, and halting the region does
/// not undo that.
fn must_save(world: &mut World, contents: &RegionContents, task: &Task) -> bool {
    let is_asked = !matches!(task, Task::Tick { save: false, .. });
    let has_lost_player = mem::take(&mut world.resource_mut::<EntityIndex>().has_lost_player);
    let has_restored = contents.outbox.worked.iter().any(Answer::has_changed);
    is_asked || has_lost_player || has_restored || !world.resource::<Post>().is_empty()
}

fn evict_columns(
    world: &mut World,
    contents: &mut RegionContents,
    leaving: &FxHashSet<ColumnPos>,
) -> Vec<LoadedColumn> {
    let mut records = evict_entities(world, contents, leaving);
    let dimension = world.resource::<RegionInfo>().dimension;
    let mut owned = world.resource_mut::<RegionColumns>();
    // Hooks and observers of entities that left may have changed blocks.
    collect_chunks(&mut owned, dimension, |column| leaving.contains(&column), &mut contents.outbox.save);
    let (mut columns, _) = owned.split_off(|column| leaving.contains(&column));
    for loaded in &mut columns {
        loaded.entities = records.remove(&loaded.column.pos()).unwrap_or_default();
    }
    columns
}

/// Removes parts of columns.
fn cut_columns(world: &mut World, contents: &mut RegionContents, cut: Vec<(ColumnPos, HeightSet)>) {
    if cut.is_empty() {
        return;
    }
    let dimension = world.resource::<RegionInfo>().dimension;
    let mut owned = world.resource_mut::<RegionColumns>();
    for (position, heights) in cut {
        // Hooks and observers of entities that left may have changed blocks.
        collect_chunks(&mut owned, dimension, |column| column == position, &mut contents.outbox.save);
        let Some(column) = owned.cut(position, &heights) else { continue };
        let is_cut = |chunk: ChunkPos| chunk.column() == position && heights.contains(chunk.y);
        let block_ticks = owned.ticks.take_chunks(is_cut);
        contents.outbox.cut.push(LoadedColumn { block_ticks, ..column.into() });
    }
}
