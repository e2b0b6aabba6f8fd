//! The end of a tick: what leaves the region, and what changed, goes into the outbox.

use super::columns::block_ticks::BlockTicks;
use super::columns::blocks::RegionColumns;
use super::columns::column_work::FinishedWork;
use super::columns::unsaved::{collect_chunks, collect_unsaved};
use super::letter::Undeliverable;
use super::player::{PlayersToTend, tend_players};
use super::post::Post;
use super::strict::StrictMode;
use super::travel::departure::{depart_all, followers, place, roots};
use super::travel::entities::{EntityIndex, MoveCause, Moving, StableId, let_go};
use super::travel::stored_entities::record;
use super::world::RegionContents;
use super::{
    Letter, LoadedColumn, MirrorUpdate, Outbox, Position, RegionComponents, RegionInfo, Task, Viewer, ViewerReport,
};
use crate::chunk::Column;
use crate::space::{ChunkPos, ColumnPos, HeightSet};
use crate::storage::{EntityRecord, SaveBatch};
use bevy::ecs::change_detection::Tick;
use bevy::ecs::entity_disabling::Disabled;
use bevy::ecs::error::{BevyError, ErrorContext};
use bevy::ecs::query::{Allow, QueryState};
use bevy::platform::collections::HashSet;
use bevy::prelude::*;
use bevy::utils::prelude::DebugName;
use rustc_hash::{FxHashMap, FxHashSet};
use std::mem;
use uuid::Uuid;

type ViewerData = (Entity, &'static StableId, &'static Viewer);
type MirroredData = (EntityRef<'static>, &'static StableId, Ref<'static, Position>);

pub(super) struct SendQueries {
    viewers: QueryState<ViewerData>,
    mirrored: QueryState<MirroredData>,
    /// Of disabled entities too: they travel like others.
    positions: QueryState<Ref<'static, Position>, Allow<Disabled>>,
    players: QueryState<Entity, PlayersToTend>,
}

impl SendQueries {
    fn new(world: &mut World) -> Self {
        Self {
            viewers: world.query(),
            mirrored: world.query(),
            positions: world.query_filtered(),
            players: world.query_filtered(),
        }
    }
}

/// Fills the outbox, and lets go what leaves the region: entities that walked out, columns that nobody needs.
pub(super) fn send(world: &mut World) {
    // Before anything leaves.
    raise_faults(world);
    let components = world.resource::<RegionContents>().components.clone();
    let mut outbox = Outbox::default();
    let walked_out = look_around(world, &components, &mut outbox);
    let leaving = leaving_columns(world, &mut outbox);
    let cut = mem::take(&mut world.resource_mut::<RegionContents>().inbox.get().cut);
    note_ticks(world, &leaving, &cut);
    // Whatever leaves takes along all that is unsaved: a crash never sees one side without the other.
    let is_wanted = must_save(world);
    if is_wanted || !walked_out.is_empty() || !leaving.is_empty() || !cut.is_empty() {
        collect_unsaved(world, &components, &mut outbox.save);
    }
    let travellers = depart_all(world, walked_out, MoveCause::Crossing);
    within_reach(world).travellers = travellers;
    if !leaving.is_empty() {
        let letters = letters_of(world, &components, &leaving);
        within_reach(world).undelivered.extend(letters);
        outbox.left = give_up_columns(world, &components, leaving, &mut outbox);
    }
    outbox.cut = cut_columns(world, cut, &mut outbox.save);
    outbox.letters = world.resource_mut::<Post>().take();
    let mut owned = world.resource_mut::<RegionColumns>();
    outbox.fetched = mem::take(&mut owned.fetched);
    let mut changed = mem::take(&mut owned.changed);
    changed.retain(|chunk| owned.column(chunk.column()).is_some_and(|column| column.is_loaded(chunk.y)));
    outbox.changed = changed.into_iter().map(|chunk| (chunk, owned.chunk(chunk))).collect();
    let Outbox { travellers, undelivered, refused, worked, .. } = mem::take(within_reach(world));
    *within_reach(world) = Outbox { travellers, undelivered, refused, worked, ..outbox };
}

/// What this task has put into the outbox so far. It stays within reach: what leaves may have hooks that panic.
fn within_reach(world: &mut World) -> &mut Outbox {
    world.resource_mut::<RegionContents>().into_inner().outbox.get()
}

/// Tends players, and tells of viewers, mirrors and how many entities there are. Gives the entities that walked out.
fn look_around(world: &mut World, components: &RegionComponents, outbox: &mut Outbox) -> Vec<Entity> {
    // What every tick looks for is found by queries that remember where they looked.
    let known = world.resource_mut::<RegionContents>().queries.take();
    let mut queries = known.unwrap_or_else(|| Box::new(SendQueries::new(world)));
    tend_players(world, components, &mut queries.players, &mut outbox.save);
    report_viewers(world, components, &mut queries.viewers, outbox);
    outbox.entities = world.resource::<EntityIndex>().len();
    outbox.mirrors = mirror(world, components, &mut queries.mirrored);
    let walked_out = walked_out(world, components, &mut queries);
    world.resource_mut::<RegionContents>().queries = Some(queries);
    walked_out
}

/// The columns that are to be given up and that no viewer stands in; below viewers too when the world is closed.
fn leaving_columns(world: &mut World, outbox: &mut Outbox) -> FxHashSet<ColumnPos> {
    let contents = world.resource_mut::<RegionContents>().into_inner();
    let is_closing = matches!(contents.task, Task::Close);
    let give_up = mem::take(&mut contents.inbox.get().give_up);
    let is_watched = |column: &ColumnPos| outbox.viewers.iter().any(|viewer| viewer.position.column() == *column);
    let (kept, give_up): (Vec<_>, Vec<_>) = give_up.into_iter().partition(|column| !is_closing && is_watched(column));
    outbox.kept = kept;
    let owned = world.resource::<RegionColumns>();
    give_up.into_iter().filter(|column| owned.contains(*column)).collect()
}

/// Takes in ticks that were fetched, and has those saved that go with what leaves.
fn note_ticks(world: &mut World, leaving: &FxHashSet<ColumnPos>, cut: &[(ColumnPos, HeightSet)]) {
    let fetched = world.resource_mut::<RegionColumns>().take_fetched_ticks();
    let mut ticks = world.resource_mut::<BlockTicks>();
    ticks.take_in(fetched);
    let is_cut =
        |chunk: ChunkPos| cut.iter().any(|(column, heights)| *column == chunk.column() && heights.contains(chunk.y));
    if !leaving.is_empty() || !cut.is_empty() {
        ticks.save_chunks(|chunk| leaving.contains(&chunk.column()) || is_cut(chunk));
    }
}

/// Whether all that is unsaved is handed out though nothing may leave: it was asked for, or letters are sent, or a player
/// is no more, or something was restored: who was removed here may come back elsewhere, and a region that halts undoes
/// nothing of it.
fn must_save(world: &mut World) -> bool {
    let is_asked = !matches!(world.resource::<RegionContents>().task, Task::Tick { save: false, .. });
    let has_lost_player = mem::take(&mut world.resource_mut::<EntityIndex>().has_lost_player);
    let has_restored = within_reach(world).worked.iter().any(FinishedWork::has_changed);
    is_asked || has_lost_player || has_restored || !world.resource::<Post>().is_empty()
}

/// The entities that are not on the region's ground any more.
fn walked_out(world: &mut World, components: &RegionComponents, queries: &mut SendQueries) -> Vec<Entity> {
    let now = world.increment_change_tick();
    let last = mem::replace(&mut world.resource_mut::<RegionContents>().last_look, now);
    let everywhere = mem::take(&mut world.resource_mut::<RegionColumns>().look_everywhere);
    let dimension = world.resource::<RegionInfo>().dimension;
    let owned = world.resource::<RegionColumns>();
    let outside = |position: &Position| position.dimension != dimension || !owned.contains(position.column());
    // Those that stood still need not be read.
    let may_be_outside = |position: &Ref<Position>| everywhere || position.last_changed().is_newer_than(last, now);
    let anyone = queries.positions.iter(world).any(|position| may_be_outside(&position) && outside(&position));
    let found = if anyone { roots(world, components, outside) } else { Vec::new() };
    // Not all of them leave now: what hangs on another one may be let go of later.
    world.resource_mut::<RegionColumns>().look_everywhere = anyone;
    found
}

/// Where the viewers are; one without a position of its own is where that is what it hangs on.
fn report_viewers(
    world: &mut World,
    components: &RegionComponents,
    viewers: &mut QueryState<ViewerData>,
    outbox: &mut Outbox,
) {
    let report = |(entity, id, viewer): (Entity, &StableId, &Viewer)| {
        Some(ViewerReport { id: id.0, position: place(world, components, entity)?, radii: viewer.radii() })
    };
    outbox.viewers = viewers.query(world).into_iter().filter_map(report).collect();
    outbox.viewers.sort_unstable_by_key(|viewer| viewer.id);
    let known = &mut world.resource_mut::<RegionContents>().into_inner().viewers;
    if known.len() == outbox.viewers.len() && outbox.viewers.iter().all(|viewer| known.contains(&viewer.id)) {
        return;
    }
    let now: FxHashSet<Uuid> = outbox.viewers.iter().map(|viewer| viewer.id).collect();
    outbox.viewers_gone = known.difference(&now).copied().collect();
    outbox.viewers_gone.sort_unstable();
    *known = now;
}

/// What changed of the mirrored entities since the last time.
fn mirror(world: &mut World, components: &RegionComponents, query: &mut QueryState<MirroredData>) -> Vec<MirrorUpdate> {
    if !components.mirrors_anything() {
        return Vec::new();
    }
    let clock = world.resource::<Time>().elapsed();
    let mut contents = world.resource_mut::<RegionContents>();
    let (last, before) = (contents.last_send, mem::take(&mut contents.mirrored));
    let now = world.change_tick();
    let (mut updates, mut shown) = (Vec::new(), FxHashSet::default());
    for (entity, id, position) in query.iter(world) {
        if !components.is_mirrored(entity) {
            continue;
        }
        shown.insert(id.0);
        let new = !before.contains(&id.0);
        // Of what the main world has not seen yet, everything is new.
        let last = if new { Tick::new(now.get().wrapping_sub(Tick::MAX.get())) } else { last };
        let components = components.read_mirrored(entity, last, now);
        let moved = position.last_changed().is_newer_than(last, now);
        if new || moved || !components.is_empty() {
            updates.push(MirrorUpdate { id: id.0, position: Some((*position, clock)), components });
        }
    }
    updates.extend(before.difference(&shown).map(|id| MirrorUpdate::gone(*id)));
    updates.sort_unstable_by_key(|update| update.id);
    let last_send = world.increment_change_tick();
    let mut contents = world.resource_mut::<RegionContents>();
    (contents.mirrored, contents.last_send) = (shown, last_send);
    updates
}

/// What the game's systems did wrong is an error as if they had returned it.
fn raise_faults(world: &mut World) {
    for name in world.resource_mut::<Post>().take_unknown() {
        raise(world, format!("{name} cannot be sent: call register_region_message::<{name}>() on the app"));
    }
    let violations = world.resource::<RegionColumns>().strict.as_ref().map(StrictMode::take).unwrap_or_default();
    for violation in violations {
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

/// What waits for columns that are given up, and for the entities in them.
fn letters_of(
    world: &mut World,
    components: &RegionComponents,
    leaving: &FxHashSet<ColumnPos>,
) -> Vec<(Letter, Undeliverable)> {
    if world.resource::<RegionContents>().waiting.is_empty() {
        return Vec::new();
    }
    let roots = roots(world, components, |position| leaving.contains(&position.column()));
    let mut taken = HashSet::new();
    let followers: Vec<_> = roots.into_iter().flat_map(|root| followers(world, components, root, &mut taken)).collect();
    let ids: FxHashSet<Uuid> =
        followers.into_iter().filter_map(|entity| Some(world.get::<StableId>(entity)?.0)).collect();
    let reason = |letter: &Letter| match (letter.column(), letter.entity()) {
        (Some((_, column)), _) if leaving.contains(&column) => Some(Undeliverable::Unloaded(column)),
        (_, Some(id)) if ids.contains(&id) => Some(Undeliverable::NoSuchEntity(id)),
        _ => None,
    };
    let letters = world.resource_mut::<RegionContents>().take_waiting(|letter| reason(letter).is_some());
    letters.into_iter().filter_map(|letter| reason(&letter).map(|reason| (letter, reason))).collect()
}

/// Lets go of parts of columns.
fn cut_columns(world: &mut World, cut: Vec<(ColumnPos, HeightSet)>, save: &mut SaveBatch) -> Vec<LoadedColumn> {
    if cut.is_empty() {
        return Vec::new();
    }
    let dimension = world.resource::<RegionInfo>().dimension;
    let mut parts = Vec::with_capacity(cut.len());
    for (position, heights) in cut {
        let owned = world.resource_mut::<RegionColumns>().into_inner();
        // Hooks and observers of those who left may have built something.
        collect_chunks(owned, dimension, |column| column == position, save);
        let Some(column) = owned.cut(position, &heights) else { continue };
        let is_cut = |chunk: ChunkPos| chunk.column() == position && heights.contains(chunk.y);
        let block_ticks = world.resource_mut::<BlockTicks>().take_chunks(is_cut);
        parts.push(LoadedColumn { block_ticks, ..column.into() });
    }
    parts
}

fn give_up_columns(
    world: &mut World,
    components: &RegionComponents,
    leaving: FxHashSet<ColumnPos>,
    outbox: &mut Outbox,
) -> Vec<LoadedColumn> {
    let mut records = give_up_entities(world, components, &leaving, outbox);
    let dimension = world.resource::<RegionInfo>().dimension;
    let owned = world.resource_mut::<RegionColumns>().into_inner();
    // Hooks and observers of those who left may have built something.
    collect_chunks(owned, dimension, |column| leaving.contains(&column), &mut outbox.save);
    let mut leaving: Vec<_> = leaving.into_iter().collect();
    leaving.sort_unstable();
    let columns: Vec<Column> = leaving.into_iter().filter_map(|column| owned.remove(column)).collect();
    let mut ticks = world.resource_mut::<BlockTicks>();
    let loaded = |column: Column| LoadedColumn {
        entities: records.remove(&column.pos()).unwrap_or_default(),
        block_ticks: ticks.take_column(column.pos()),
        column,
    };
    columns.into_iter().map(loaded).collect()
}

/// Lets go of the entities in columns that are given up. Gives how they are stored, by their columns.
fn give_up_entities(
    world: &mut World,
    components: &RegionComponents,
    leaving: &FxHashSet<ColumnPos>,
    outbox: &mut Outbox,
) -> FxHashMap<ColumnPos, Vec<EntityRecord>> {
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
        for entity in &followers {
            let Some(StableId(id)) = world.get::<StableId>(*entity).copied() else { continue };
            if world.resource_mut::<RegionContents>().mirrored.remove(&id) {
                outbox.mirrors.push(MirrorUpdate::gone(id));
            }
        }
        families.push((root, followers));
    }
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
    outbox.save.entities.extend(died.into_iter().map(|id| (id, None)));
    records
}
