use super::blocks::RegionColumns;
use super::entities::{EntityIndex, Migration, StableId};
use super::mail::Part;
use super::{
    Inbox, LoadedColumn, MirrorUpdate, Outbox, Position, RegionComponents, RegionRandom, RegionTemplate,
    RegionTemplateError, SplitMix64, Traveller, Viewer, ViewerReport,
};
use crate::chunk::Column;
use crate::region::RegionId;
use crate::simulation::Exclusive;
use crate::space::{ColumnPos, DimensionId, SectionPos};
use crate::storage::EntityRecord;
use bevy::app::MainScheduleOrder;
use bevy::ecs::change_detection::Tick;
use bevy::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::{mem, ops::Range, sync::Arc, time::Duration};
use uuid::Uuid;

/// What a system can know about the region that it runs in.
#[derive(Resource, Clone, Debug)]
pub struct RegionInfo {
    /// The region. After a merge it is the one that took over.
    pub region: RegionId,
    /// The dimension that the region is a part of.
    pub dimension: DimensionId,
    /// The dimension's heights, in blocks.
    pub heights: Range<i64>,
    /// How many ticks this region world has run.
    pub ticks: u64,
}

impl RegionInfo {
    pub(super) fn nowhere() -> Self {
        Self { region: RegionId::new(0), dimension: DimensionId(0), heights: 0..0, ticks: 0 }
    }
}

/// What a region thread is to do with a region world.
#[derive(Clone, Debug)]
pub enum Task {
    /// Run one tick.
    Tick {
        /// The dimension's clock at this tick.
        clock: Duration,
        /// The time since the tick before, for the first one of a world.
        period: Duration,
        /// Whether everything unsaved is to be handed out.
        save: bool,
    },
    /// Take in what waits and hand out everything unsaved, without a tick.
    Save,
    /// Hand over what lies in the parts' sections.
    Split {
        /// The parts that leave.
        parts: Vec<Part>,
        /// Columns to a section, as a power of two.
        section_shift: u32,
    },
}

/// A region world with what it is to do: handed to a region thread, and back with an [`Outbox`].
pub struct Assignment {
    /// What the region is.
    pub info: RegionInfo,
    /// The world; made on the region thread if there is none.
    pub world: Option<Box<RegionWorld>>,
    /// What waits for it.
    pub inbox: Inbox,
    /// What is to be done.
    pub task: Task,
}

impl Assignment {
    /// Does the work. A panic of a game's system is passed on to the caller.
    pub fn run(self, template: &RegionTemplate) -> Result<(Box<RegionWorld>, Outbox), RegionTemplateError> {
        let mut world = match self.world {
            Some(world) => world,
            None => Box::new(template.build(self.info.clone())?),
        };
        let outbox = world.run(self.info.region, self.inbox, self.task);
        Ok((world, outbox))
    }
}

/// The world of one region.
pub struct RegionWorld {
    pub(super) app: SubApp,
}

/// The part of a region world that only this room touches.
#[derive(Resource)]
struct RegionState {
    components: Arc<RegionComponents>,
    seed: u64,
    task: Task,
    started: bool,
    last_send: Tick,
    despawned: FxHashSet<Uuid>,
    left_behind: FxHashSet<String>,
    mirrored: FxHashSet<Uuid>,
    /// The viewers that the coordinator believes to be here.
    viewers: FxHashSet<Uuid>,
}

/// Boxes that cross threads need not be `Sync`, resources must be.
#[derive(Resource)]
struct Mailbox(Exclusive<(Inbox, Outbox)>);

/// Stored components of types that the game no longer registers: kept, and written back unchanged.
#[derive(Component)]
struct UnclaimedComponents(Vec<(String, Vec<u8>)>);

impl RegionWorld {
    pub(super) fn new(mut app: SubApp, info: RegionInfo, components: Arc<RegionComponents>, seed: u64) -> Self {
        app.insert_resource(RegionColumns::new(info.heights.clone()))
            .insert_resource(EntityIndex::new())
            .insert_resource(RegionRandom(SplitMix64::new(seed)))
            .insert_resource(Mailbox(Exclusive::new(Default::default())))
            .insert_resource(RegionState {
                components,
                seed,
                task: Task::Save,
                started: false,
                last_send: Tick::new(0),
                despawned: FxHashSet::default(),
                left_behind: FxHashSet::default(),
                mirrored: FxHashSet::default(),
                viewers: FxHashSet::default(),
            })
            .insert_resource(info);
        Self { app }
    }

    fn run(&mut self, region: RegionId, mut inbox: Inbox, task: Task) -> Outbox {
        let absorbed = mem::take(&mut inbox.absorbed);
        let world = self.app.world_mut();
        world.resource_mut::<RegionInfo>().region = region;
        for other in absorbed {
            absorb(world, *other);
        }
        world.resource_mut::<Mailbox>().0.get().0 = inbox;
        world.resource_mut::<RegionState>().task = task.clone();
        if let Task::Split { parts, section_shift } = &task {
            // No tick: what waits is taken in, so that it can be divided by place.
            receive(world);
            let parts = split(world, parts, *section_shift);
            return Outbox { parts, ..Outbox::default() };
        }
        self.app.update();
        let world = self.app.world_mut();
        world.check_change_ticks();
        mem::take(&mut world.resource_mut::<Mailbox>().0.get().1)
    }

    /// How many columns the region has loaded.
    pub fn columns(&self) -> usize {
        self.app.world().resource::<RegionColumns>().positions().len()
    }
}

/// Moves everything from `other` into `world`.
fn absorb(world: &mut World, mut other: RegionWorld) {
    let source = other.app.world_mut();
    let columns = mem::take(&mut *source.resource_mut::<RegionColumns>());
    let roots = roots(source, |_| true);
    let travellers = depart_all(source, roots);
    let mut state = source.resource_mut::<RegionState>();
    let despawned = mem::take(&mut state.despawned);
    world.resource_mut::<RegionState>().despawned.extend(despawned);
    world.resource_mut::<RegionColumns>().append(columns);
    arrive_all(world, travellers);
}

/// Divides what the region holds by place: the first list in `parts` that owns a section takes it.
fn split(world: &mut World, parts: &[Part], shift: u32) -> Vec<(RegionId, Inbox)> {
    parts
        .iter()
        .map(|part| {
            let sections: FxHashSet<SectionPos> = part.sections.iter().copied().collect();
            let wanted = |column: ColumnPos| sections.contains(&column.section(shift));
            let leaving = roots(world, |position| wanted(position.column()));
            let travellers = depart_all(world, leaving);
            let mut columns = world.resource_mut::<RegionColumns>().split_off(wanted);
            let mut inbox = Inbox { travellers, ..Inbox::default() };
            inbox.columns = columns
                .positions()
                .to_vec()
                .into_iter()
                .filter_map(|position| columns.remove(position))
                .map(|column| LoadedColumn { column, entities: Vec::new() })
                .collect();
            inbox.unsaved = mem::take(&mut columns.unsaved).into_iter().collect();
            inbox.unsaved.sort_unstable();
            (part.region, inbox)
        })
        .collect()
}

/// The entities that travel by themselves, sorted by their stable ids: those with a position and no parent.
fn roots(world: &mut World, wanted: impl Fn(&Position) -> bool) -> Vec<Entity> {
    let mut query = world.query_filtered::<(Entity, &StableId, &Position), Without<ChildOf>>();
    let mut found: Vec<_> =
        query.iter(world).filter(|(.., position)| wanted(position)).map(|(entity, id, _)| (*id, entity)).collect();
    found.sort_unstable();
    found.into_iter().map(|(_, entity)| entity).collect()
}

fn depart_all(world: &mut World, entities: Vec<Entity>) -> Vec<Traveller> {
    if entities.is_empty() {
        return Vec::new();
    }
    world.insert_resource(Migration);
    let components = world.resource::<RegionState>().components.clone();
    let travellers: Vec<_> = entities.into_iter().filter_map(|entity| depart(world, &components, entity)).collect();
    world.remove_resource::<Migration>();
    let mut state = world.resource_mut::<RegionState>();
    for traveller in &travellers {
        state.mirrored.remove(&traveller.id);
        state.viewers.remove(&traveller.id);
    }
    travellers
}

fn depart(world: &mut World, components: &RegionComponents, entity: Entity) -> Option<Traveller> {
    let record = record(world, components, entity);
    let position = world.get::<Position>(entity).copied();
    let id = world.get::<StableId>(entity).map_or(Uuid::nil(), |id| id.0);
    let viewer_radius = world.get::<Viewer>(entity).map(|viewer| viewer.radius);
    let children: Vec<Entity> = world.get::<Children>(entity).map_or(Vec::new(), |children| children.to_vec());
    let children = children.into_iter().filter_map(|child| depart(world, components, child)).collect();
    let mut left_behind = Vec::new();
    let mut leaving = world.get_entity_mut(entity).ok()?;
    let taken = components.take_all(&mut leaving, |name| left_behind.push(name));
    leaving.despawn();
    for name in left_behind {
        if world.resource_mut::<RegionState>().left_behind.insert(name.clone()) {
            warn!("component {name} was lost as its entity moved between regions: register_region_component for it");
        }
    }
    Some(Traveller {
        id,
        position: position.unwrap_or_default(),
        has_position: position.is_some(),
        viewer_radius,
        record,
        components: taken,
        children,
    })
}

fn arrive_all(world: &mut World, travellers: Vec<Traveller>) {
    if travellers.is_empty() {
        return;
    }
    world.insert_resource(Migration);
    let components = world.resource::<RegionState>().components.clone();
    for traveller in travellers {
        if traveller.viewer_radius.is_some() {
            world.resource_mut::<RegionState>().viewers.insert(traveller.id);
        }
        arrive(world, &components, traveller, None);
    }
    world.remove_resource::<Migration>();
}

fn arrive(world: &mut World, components: &RegionComponents, traveller: Traveller, parent: Option<Entity>) {
    let mut entity = world.spawn_empty();
    if traveller.has_position {
        entity.insert((StableId(traveller.id), traveller.position));
    } else if !traveller.id.is_nil() {
        entity.insert(StableId(traveller.id));
    }
    components.insert_all(&mut entity, traveller.components);
    if let Some(parent) = parent {
        entity.insert(ChildOf(parent));
    }
    let entity = entity.id();
    for child in traveller.children {
        arrive(world, components, child, Some(entity));
    }
}

/// The entity as it is stored, if any of its components is.
fn record(world: &World, components: &RegionComponents, entity: Entity) -> Option<EntityRecord> {
    let entity = world.get_entity(entity).ok()?;
    let (id, position) = (entity.get::<StableId>()?, entity.get::<Position>()?);
    let mut saved = components.encode(entity);
    if let Some(unclaimed) = entity.get::<UnclaimedComponents>() {
        saved.extend(unclaimed.0.iter().cloned());
    }
    (!saved.is_empty()).then(|| EntityRecord {
        id: id.0,
        dimension: position.dimension,
        block: position.block,
        offset: position.offset.to_array(),
        viewer_radius: entity.get::<Viewer>().map(|viewer| viewer.radius),
        components: saved,
    })
}

fn spawn_stored(world: &mut World, components: &RegionComponents, record: EntityRecord) {
    if world.resource::<EntityIndex>().entity(record.id).is_some() {
        return;
    }
    let position =
        Position { dimension: record.dimension, block: record.block, offset: Vec3::from_array(record.offset) };
    let mut entity = world.spawn((StableId(record.id), position));
    if let Some(radius) = record.viewer_radius {
        entity.insert(Viewer::new().with_radius(radius));
    }
    let mut unclaimed = Vec::new();
    for (name, bytes) in record.components {
        if let Err(reason) = components.decode(&mut entity, &name, &bytes) {
            error!("entity {} in {}: {reason}; the stored value is kept", record.id, record.block.column());
            unclaimed.push((name, bytes));
        }
    }
    if !unclaimed.is_empty() {
        entity.insert(UnclaimedComponents(unclaimed));
    }
}

pub(super) fn receive(world: &mut World) {
    let inbox = mem::take(&mut world.resource_mut::<Mailbox>().0.get().0);
    let Inbox { absorbed: _, columns, travellers, give_up, edits, mail, unsaved } = inbox;
    let state = world.resource::<RegionState>();
    let (components, seed, task) = (state.components.clone(), state.seed, state.task.clone());

    let info = world.resource::<RegionInfo>();
    let moment = [seed, info.region.index(), info.ticks];
    let mut random = SplitMix64::from_parts(moment);
    world.resource_mut::<EntityIndex>().seed([random.next_u64(), random.next_u64(), random.next_u64()]);
    world.resource_mut::<RegionRandom>().0 = random;
    if let Task::Tick { clock, period, .. } = task {
        let mut time = world.resource_mut::<Time>();
        if time.elapsed().is_zero() {
            time.advance_to(clock.saturating_sub(period));
        }
        let clock = clock.max(time.elapsed());
        time.advance_to(clock);
    }

    if !columns.is_empty() {
        world.insert_resource(Migration);
        for LoadedColumn { column, entities } in columns {
            world.resource_mut::<RegionColumns>().insert(column);
            for record in entities {
                spawn_stored(world, &components, record);
            }
        }
        world.remove_resource::<Migration>();
    }
    world.resource_mut::<RegionColumns>().unsaved.extend(unsaved);
    arrive_all(world, travellers);

    let mut refused = Vec::new();
    let mut owned = world.resource_mut::<RegionColumns>();
    for edit in edits {
        if let Err(error) = owned.set_block(edit.block, edit.to) {
            refused.push((edit, error));
        }
    }
    for (_, run) in mail {
        run(world);
        world.flush();
    }
    // Given up at the end of the tick, when it is known who is still there.
    let (inbox, outbox) = world.resource_mut::<Mailbox>().into_inner().0.get();
    inbox.give_up = give_up;
    outbox.refused = refused;
}

pub(super) fn simulate(world: &mut World) {
    let mut state = world.resource_mut::<RegionState>();
    if !matches!(state.task, Task::Tick { .. }) {
        return;
    }
    let first = !mem::replace(&mut state.started, true);
    world.resource_scope(|world, order: Mut<MainScheduleOrder>| {
        let startup = if first { order.startup_labels.as_slice() } else { &[] };
        for &label in startup.iter().chain(&order.labels) {
            // A schedule that nobody added a system to does not exist.
            let _ = world.try_run_schedule(label);
        }
    });
    world.resource_mut::<RegionInfo>().ticks += 1;
}

pub(super) fn send(world: &mut World) {
    let state = world.resource::<RegionState>();
    let (components, last_send, task) = (state.components.clone(), state.last_send, state.task.clone());
    let info = world.resource::<RegionInfo>().clone();
    let mut outbox = mem::take(&mut world.resource_mut::<Mailbox>().0.get().1);
    let give_up = mem::take(&mut world.resource_mut::<Mailbox>().0.get().0.give_up);

    let mut viewers = world.query::<(&StableId, &Position, &Viewer)>();
    outbox.viewers = viewers
        .iter(world)
        .map(|(id, position, viewer)| ViewerReport { id: id.0, position: *position, radius: viewer.radius })
        .collect();
    outbox.viewers.sort_unstable_by_key(|viewer| viewer.id);
    let now: FxHashSet<Uuid> = outbox.viewers.iter().map(|viewer| viewer.id).collect();
    let before = mem::replace(&mut world.resource_mut::<RegionState>().viewers, now.clone());
    outbox.viewers_gone = before.difference(&now).copied().collect();
    outbox.viewers_gone.sort_unstable();
    let watched: FxHashSet<ColumnPos> = outbox.viewers.iter().map(|viewer| viewer.position.column()).collect();
    let (kept, give_up): (Vec<_>, Vec<_>) = give_up.into_iter().partition(|column| watched.contains(column));
    outbox.kept = kept;

    let mut index = world.resource_mut::<EntityIndex>();
    let mut despawned = mem::take(&mut index.despawned);
    despawned.sort_unstable();
    outbox.entities = index.len();
    world.resource_mut::<RegionState>().despawned.extend(despawned.iter().copied());

    mirror(world, &components, last_send, &despawned, &mut outbox);
    let now = world.increment_change_tick();
    world.resource_mut::<RegionState>().last_send = now;

    let roots = roots(world, |_| true);
    let owned = world.resource::<RegionColumns>();
    let leaving: FxHashSet<ColumnPos> = give_up.into_iter().filter(|column| owned.contains(*column)).collect();
    let outside = |position: &Position| position.dimension != info.dimension || !owned.contains(position.column());
    let walked_out: Vec<_> =
        roots.into_iter().filter(|entity| world.get::<Position>(*entity).is_some_and(outside)).collect();

    // Whatever leaves takes along all that is unsaved: a crash never sees one side without the other.
    let save = matches!(task, Task::Save | Task::Tick { save: true, .. });
    if save || !walked_out.is_empty() || !leaving.is_empty() {
        collect_unsaved(world, &components, info.dimension, &mut outbox);
    }
    outbox.travellers = depart_all(world, walked_out);
    if !leaving.is_empty() {
        outbox.left = give_up_columns(world, &components, leaving, &mut outbox.mirrors);
    }

    let mut owned = world.resource_mut::<RegionColumns>();
    let mut changed: Vec<_> = mem::take(&mut owned.changed).into_iter().collect();
    changed.sort_unstable();
    outbox.changed = changed.into_iter().map(|chunk| (chunk, owned.chunk(chunk))).collect();
    *world.resource_mut::<Mailbox>().0.get() = (Inbox::default(), outbox);
}

fn mirror(world: &mut World, components: &RegionComponents, last: Tick, gone: &[Uuid], outbox: &mut Outbox) {
    let now = world.change_tick();
    let clock = world.resource::<Time>().elapsed();
    let mut updates = Vec::new();
    let mut shown = mem::take(&mut world.resource_mut::<RegionState>().mirrored);
    let mut query = world.query::<(EntityRef, &StableId, Ref<Position>)>();
    for (entity, id, position) in query.iter(world) {
        if !components.is_mirrored(entity) {
            continue;
        }
        let new = shown.insert(id.0);
        // A world's clock of changes starts anew for what it has never sent.
        let last = if new { Tick::new(now.get().wrapping_sub(Tick::MAX.get())) } else { last };
        let changed = components.read_mirrored(entity, last, now);
        let moved = position.last_changed().is_newer_than(last, now);
        if new || moved || !changed.is_empty() {
            let components: FxHashMap<_, _> = changed.into_iter().collect();
            updates.push(MirrorUpdate { id: id.0, position: Some((*position, clock)), components });
        }
    }
    for id in gone {
        if shown.remove(id) {
            updates.push(MirrorUpdate { id: *id, position: None, components: FxHashMap::default() });
        }
    }
    updates.sort_unstable_by_key(|update| update.id);
    outbox.mirrors = updates;
    world.resource_mut::<RegionState>().mirrored = shown;
}

/// Fills the outbox's save batch with all that is not stored as it is now.
fn collect_unsaved(world: &mut World, components: &RegionComponents, dimension: DimensionId, outbox: &mut Outbox) {
    let mut owned = world.resource_mut::<RegionColumns>();
    for chunk in mem::take(&mut owned.unsaved) {
        outbox.save.chunks.insert((dimension, chunk), owned.chunk(chunk));
    }
    for id in mem::take(&mut world.resource_mut::<RegionState>().despawned) {
        outbox.save.entities.insert(id, None);
    }
    for entity in roots(world, |_| true) {
        if let Some(record) = record(world, components, entity) {
            outbox.save.entities.insert(record.id, Some(record));
        }
    }
}

fn give_up_columns(
    world: &mut World,
    components: &RegionComponents,
    leaving: FxHashSet<ColumnPos>,
    mirrors: &mut Vec<MirrorUpdate>,
) -> Vec<LoadedColumn> {
    let mut records: FxHashMap<ColumnPos, Vec<EntityRecord>> = FxHashMap::default();
    world.insert_resource(Migration);
    for entity in roots(world, |position| leaving.contains(&position.column())) {
        if let Some(record) = record(world, components, entity) {
            records.entry(record.block.column()).or_default().push(record);
        }
        let id = world.get::<StableId>(entity).map_or(Uuid::nil(), |id| id.0);
        if world.resource_mut::<RegionState>().mirrored.remove(&id) {
            mirrors.push(MirrorUpdate { id, position: None, components: FxHashMap::default() });
        }
        world.despawn(entity);
    }
    world.remove_resource::<Migration>();
    let mut leaving: Vec<_> = leaving.into_iter().collect();
    leaving.sort_unstable();
    let mut owned = world.resource_mut::<RegionColumns>();
    let columns: Vec<Column> = leaving.into_iter().filter_map(|column| owned.remove(column)).collect();
    columns
        .into_iter()
        .map(|column| LoadedColumn { entities: records.remove(&column.pos()).unwrap_or_default(), column })
        .collect()
}
