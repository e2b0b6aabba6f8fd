//! The end of a task: filling the outbox with changes and with everything that leaves the region.

use crate::simulation::columns::blocks::RegionColumns;
use crate::simulation::columns::column_work::Answer;
use crate::simulation::components::followers::{place, roots};
use crate::simulation::entities::MoveCause;
use crate::simulation::inbox_outbox::MirrorUpdate;
use crate::simulation::info::RegionInfo;
use crate::simulation::position::{Position, ViewerRadii};
use crate::simulation::template_error::RegionTemplateError;
use crate::simulation::tick::assignment::Task;
use crate::simulation::travel::departure::depart_all;
use crate::simulation::travel::leaving::{evict_entities, tend_players};
use crate::simulation::work::unsaved::{collect_chunks, collect_unsaved};
use crate::simulation::world::{Ends, KnownViewers, Look, Params, RegionContents, ViewerPlace, get};
use crate::space::{ChunkPos, ColumnPos, HeightSet};
use crate::storage::LoadedColumn;
use bevy::ecs::change_detection::Tick;
use bevy::ecs::error::{BevyError, ErrorContext};
use bevy::prelude::*;
use bevy::utils::prelude::DebugName;
use rustc_hash::{FxHashMap, FxHashSet};
use std::mem;
use uuid::Uuid;

/// Fills the outbox, and removes entities that walked out and evicted columns. The outbox as filled so far survives a panic,
/// because leaving entities may have hooks.
pub fn send(world: &mut World, contents: &mut RegionContents, task: &Task) {
    // Runs before anything leaves.
    if let Some(error) = contents.seen_archetypes.look(world, &contents.components) {
        raise(world, error);
    }
    let mut found = look(world, contents);
    found.faults.drain(..).for_each(|error| raise(world, error));
    let has_players_to_tend = found.has_players_to_tend;
    if has_players_to_tend {
        tend_players(world, contents);
        // Players who left are no viewers any more. Everything that was outside of the region is found again.
        found = look(world, contents);
        found.faults.drain(..).for_each(|error| raise(world, error));
    }
    let is_asked = !matches!(task, Task::Tick { save: false, .. });
    report_viewers(world, contents, found.carried_viewers, is_asked);
    mirror(world, contents);
    let walked_out = if found.anyone_outside { walked_out(world, contents) } else { Vec::new() };
    let leaving = leaving_columns(world, contents, task);
    let cut = mem::take(&mut contents.inbox.cut);
    // All unsaved data goes along with anything that leaves, so a crash never loses only one side.
    let received = mem::take(&mut contents.unfinished.received);
    let is_wanted = !received.is_empty()
        || is_asked
        || found.must_save
        || has_players_to_tend
        || contents.outbox.worked.iter().any(Answer::has_changed);
    if is_wanted || !walked_out.is_empty() || !leaving.is_empty() || !cut.is_empty() {
        note_ticks(world, task, &leaving, &cut);
        collect_unsaved(world, contents);
        contents.outbox.save.received.extend(received);
        contents.outbox.saved_actions = mem::take(&mut contents.actions.unsaved);
    }
    if !walked_out.is_empty() {
        contents.outbox.travellers = depart_all(world, contents, walked_out, MoveCause::Crossing);
    }
    if !leaving.is_empty() {
        contents.outbox.left = evict_columns(world, contents, &leaving);
    }
    cut_columns(world, contents, cut);
    fill(world, contents, task);
}

/// The findings of [`look`].
#[derive(Default)]
struct Found {
    /// Mistakes of the game's systems, to be raised as if they had returned an error.
    faults: Vec<BevyError>,
    has_players_to_tend: bool,
    /// Viewers that have the position of another entity.
    carried_viewers: Vec<(Entity, Uuid, ViewerRadii)>,
    /// `true` if an entity is no longer on the region's ground.
    anyone_outside: bool,
    /// `true` if letters are sent or a player has died: then all unsaved data must be handed out.
    must_save: bool,
}

/// Looks at everything that may have changed, with one access to each resource.
fn look(world: &mut World, contents: &mut RegionContents) -> Found {
    let RegionContents { params: Params { look, .. }, viewers: KnownViewers { next_places, .. }, .. } = contents;
    let Look { mut columns, mut index, mut post, viewers, positions, players } = get(look, world);
    let (owned, post) = (columns.bypass_change_detection(), post.bypass_change_detection());
    let mut found = Found::default();
    let unknown = post.take_unknown().into_iter().map(RegionTemplateError::UnregisteredMessage);
    found.faults.extend(unknown.map(BevyError::from));
    found.faults.extend(owned.take_violations().into_iter().map(BevyError::from));
    found.has_players_to_tend = !players.is_empty();
    next_places.clear();
    for (entity, id, viewer, position) in &viewers {
        match position {
            Some(position) => next_places.push((id.0, *position, viewer.radii())),
            None => found.carried_viewers.push((entity, id.0, viewer.radii())),
        }
    }
    // Entities that did not move are skipped.
    let outside = |position: &Position| owned.is_outside(position);
    found.anyone_outside = positions.iter().any(|at| (owned.look_everywhere || at.is_changed()) && outside(&at));
    // Not all of them leave now: a child may be detached from its parent later.
    owned.look_everywhere = found.anyone_outside;
    // A player who died must not come back with the store.
    let has_lost_player = mem::take(&mut index.bypass_change_detection().has_lost_player);
    found.must_save = has_lost_player || !post.is_empty();
    found
}

/// Counts the tick, and puts the letters and the changes of the ground into the outbox.
fn fill(world: &mut World, contents: &mut RegionContents, task: &Task) {
    let RegionContents { params: Params { ends, .. }, outbox, .. } = contents;
    let Ends { mut columns, mut post, mut info, .. } = get(ends, world);
    if let Task::Tick { .. } = task {
        info.bypass_change_detection().ticks += 1;
    }
    outbox.letters = post.bypass_change_detection().take();
    let owned = columns.bypass_change_detection();
    outbox.fetched = mem::take(&mut owned.fetched);
    outbox.light = match task {
        Task::Tick { .. } => owned.advance_light(Some(owned.ticks.clock().1)),
        // No tick waits.
        Task::Save => owned.advance_light(None),
        Task::Split { .. } | Task::Close | Task::Leave => Vec::new(),
    };
    if !owned.changed.is_empty() {
        let mut changed = mem::take(&mut owned.changed);
        changed.retain(|chunk| owned.column(chunk.column()).is_some_and(|column| column.is_loaded(chunk.y)));
        outbox.changed = changed.into_iter().map(|chunk| (chunk, owned.chunk(chunk))).collect();
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

/// Reports the viewers and their places if one of them is in another chunk than before, and with each save. A viewer without a
/// position of its own has that of its parent.
fn report_viewers(
    world: &mut World,
    contents: &mut RegionContents,
    carried: Vec<(Entity, Uuid, ViewerRadii)>,
    always: bool,
) {
    let RegionContents { components, outbox, viewers, .. } = contents;
    let KnownViewers { expected: known, places: before, next_places: now } = viewers;
    let placed = |(entity, id, radii)| Some((id, place(world, components, entity)?, radii));
    now.extend(carried.into_iter().filter_map(placed));
    now.sort_unstable_by_key(|(id, ..)| *id);
    mem::swap(before, now);
    let (now, before) = (before, now);
    let chunk_of = |(id, at, radii): &ViewerPlace| (*id, at.dimension, at.block.chunk(), *radii);
    let is_known = known.len() == now.len() && now.iter().all(|(id, ..)| known.contains(id));
    if !always && is_known && now.iter().map(chunk_of).eq(before.iter().map(chunk_of)) {
        return;
    }
    outbox.viewers.clone_from(now);
    let now: FxHashSet<Uuid> = now.iter().map(|(id, ..)| *id).collect();
    outbox.viewers_gone = known.difference(&now).copied().collect();
    outbox.viewers_gone.sort_unstable();
    *known = now;
}

/// Reports changes of the mirrored entities since the last call.
fn mirror(world: &mut World, contents: &mut RegionContents) {
    let RegionContents { components, params, outbox, mirrored, unfinished, ticks, .. } = contents;
    let arrived = &mut unfinished.arrived;
    if components.mirrored.is_empty() {
        arrived.clear();
        return;
    }
    let clock = world.resource::<Time>().elapsed();
    let now = world.change_tick();
    let mut shown = FxHashMap::default();
    for (entity, id, position) in params.mirrored.iter(world) {
        if !components.mirrored.is_on(entity) {
            continue;
        }
        shown.insert(id.0, Some(entity.archetype().id()));
        let before = mirrored.get(&id.0).copied().flatten();
        let new = before.is_none();
        // Every component of an entity that the main world has not seen yet counts as changed.
        let last = if new { Tick::new(now.get().wrapping_sub(Tick::MAX.get())) } else { ticks.sent };
        let components = components.mirrored.read(world, entity, before, (last, now));
        let moved = position.last_changed().is_newer_than(last, now);
        if new || moved || !components.is_empty() {
            outbox.mirrors.push(MirrorUpdate {
                position: Some((*position, clock)),
                components,
                ..MirrorUpdate::gone(id.0)
            });
        }
    }
    mirrored.extend(arrived.drain(..).map(|id| (id, None)));
    outbox.mirrors.extend(mirrored.keys().filter(|id| !shown.contains_key(id)).map(|id| MirrorUpdate::gone(*id)));
    outbox.mirrors.sort_unstable_by_key(|update| update.id);
    (*mirrored, ticks.sent) = (shown, world.increment_change_tick());
}

/// The entities that are no longer on the region's ground.
fn walked_out(world: &World, contents: &RegionContents) -> Vec<Entity> {
    let owned = world.resource::<RegionColumns>();
    roots(world, &contents.components, |position| owned.is_outside(position))
}

/// The columns to evict in which no viewer stands. When the world closes, viewers do not matter.
fn leaving_columns(world: &World, contents: &mut RegionContents, task: &Task) -> FxHashSet<ColumnPos> {
    let evict = mem::take(&mut contents.inbox.evict);
    if evict.is_empty() {
        return FxHashSet::default();
    }
    let is_closing = matches!(task, Task::Close | Task::Leave);
    let RegionContents { outbox, viewers, .. } = contents;
    let is_watched = |column: &ColumnPos| viewers.places.iter().any(|(_, position, _)| position.column() == *column);
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
    let is_closing = matches!(task, Task::Close | Task::Leave);
    if is_closing || !leaving.is_empty() || !cut.is_empty() {
        let mut owned = world.resource_mut::<RegionColumns>();
        owned.ticks.save_chunks(|chunk| is_closing || leaving.contains(&chunk.column()) || is_cut(chunk));
    }
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
