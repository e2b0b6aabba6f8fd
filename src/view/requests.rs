//! What the main world asks of the simulation.

use super::dimension::Reopening;
use super::{
    Coupling, Dimension, DimensionClock, DimensionGeneration, DimensionOpen, Pacing, RemoveDimension, RetryColumns,
};
use crate::coordinator::{BackupWorld, ControlRegion, CoordinatorHandle, FromMain, MainLink, SetBlock, StepDimension};
use crate::simulation::{
    Address, Letter, LetterSender, Position, RegionInfo, RegionMessage, Undeliverable, Viewer, ViewerRadii, schedule,
};
use crate::space::{BlockPos, ChunkPos, DimensionId};
use bevy::prelude::*;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::Instant;
use uuid::Uuid;

/// Saves everything now. [`WorldSaved`](super::WorldSaved) with the same number answers when it is durable, or
/// [`SaveFailed`](super::SaveFailed) if a region halted before it had handed out what was unsaved.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaveWorld {
    /// A number of the game's choice, to know the answer by.
    pub request: u64,
}

/// Brings a player into the world, where it was when it left. [`PlayerLoggedIn`](super::PlayerLoggedIn) or
/// [`LogInRefused`](super::LogInRefused) answers.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct LogIn {
    /// Its name: 1 to 255 bytes.
    pub name: String,
    /// The dimension's entity and the block where it begins if nobody of this name has been in the world, or if the dimension
    /// where it left is removed; `None` if such a one is to be refused. What a new player has the game gives to its entity when it is there.
    pub first_place: Option<(Entity, BlockPos)>,
}

/// Has a player saved and taken out of the world: [`PlayerLoggedOut`](super::PlayerLoggedOut) answers. If no player of this
/// name is in the world, nothing happens; one who is on the way is not waited for any more, or leaves when it is there.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct LogOut {
    /// Its name.
    pub name: String,
}

/// What the main world can send to regions: the same as they send to each other with
/// [`Post`](crate::simulation::Post), and entities to spawn and despawn.
///
/// It is sent at the end of the frame, in the order of the calls, and delivered before the next tick of whoever owns the
/// target then. A place is loaded if it is not; what waits for its place when the app ends is dropped. Nothing of it is
/// stored while it is on its way: a crash loses it.
///
/// What was handed over in a tick that panics comes back, or is reported, as
/// [`Undeliverable::Halted`](crate::simulation::Undeliverable::Halted); edits of that tick as
/// [`BlockRefused`](super::BlockRefused). What still waited in the region waits for its restart.
pub trait RegionCommands {
    /// Runs `run` once in the region world that owns `block`.
    fn run_in_region(
        &mut self,
        dimension: Entity,
        block: BlockPos,
        run: impl FnOnce(&mut World) + Send + 'static,
    ) -> &mut Self {
        self.run_in_region_after(dimension, block, 0, run)
    }

    /// Runs `run` once in the region world that owns `block` then, `delay` of its ticks after its next one. If the place
    /// is unloaded meanwhile, it is dropped, and a [`LetterLost`](super::LetterLost) says so.
    fn run_in_region_after(
        &mut self,
        dimension: Entity,
        block: BlockPos,
        delay: u64,
        run: impl FnOnce(&mut World) + Send + 'static,
    ) -> &mut Self;

    /// Runs `run` on the entity with this stable id, in whatever region it is, `delay` of its ticks after the next one.
    /// If it is gone or not loaded then, `retired` runs in the main world instead.
    fn run_on_region_entity(
        &mut self,
        id: Uuid,
        delay: u64,
        run: impl FnOnce(EntityWorldMut) + Send + 'static,
        retired: impl FnOnce(&mut World, Undeliverable) + Send + 'static,
    ) -> &mut Self;

    /// Sends a message to the region that owns `block`.
    fn send_to_place<M: RegionMessage>(&mut self, dimension: Entity, block: BlockPos, message: M) -> &mut Self;

    /// Sends a message to an entity by its stable id.
    fn send_to_entity<M: RegionMessage>(&mut self, id: Uuid, message: M) -> &mut Self;

    /// Sends a message to each region of a dimension, or of all.
    fn send_to_regions<M: RegionMessage>(&mut self, only: Option<DimensionId>, message: M) -> &mut Self;

    /// Schedules a [`BlockTick`](crate::simulation::BlockTick) of `kind` for a block, so many ticks after its region has
    /// heard of it. It is stored with the block's chunk.
    fn schedule_block_tick(
        &mut self,
        dimension: Entity,
        block: BlockPos,
        kind: impl Into<Arc<str>>,
        delay: u64,
    ) -> &mut Self {
        let kind = kind.into();
        self.run_in_region(dimension, block, move |region: &mut World| schedule(region, block, kind, delay))
    }

    /// Spawns an entity in the middle of the floor of `block`. A [`StableId`](crate::simulation::StableId) in the bundle
    /// says what it can be found by.
    fn spawn_in_region(&mut self, dimension: Entity, block: BlockPos, bundle: impl Bundle) -> &mut Self {
        self.run_in_region(dimension, block, move |region: &mut World| {
            let dimension = region.resource::<RegionInfo>().dimension;
            region.spawn((Position::new(dimension, block), bundle));
        })
    }

    /// Despawns the entity with this stable id, with its children, in whatever region it is. If there is none, nothing
    /// happens.
    fn despawn_in_region(&mut self, id: Uuid) -> &mut Self {
        self.run_on_region_entity(id, 0, |entity| entity.despawn(), |_, _| {})
    }
}

impl RegionCommands for Commands<'_, '_> {
    fn run_in_region_after(
        &mut self,
        dimension: Entity,
        block: BlockPos,
        delay: u64,
        run: impl FnOnce(&mut World) + Send + 'static,
    ) -> &mut Self {
        let letter = Letter::run(to_place(block), LetterSender::Main, Box::new(run)).with_delay(delay);
        post(self, FromMain::PostToPlace { dimension, block, letter })
    }

    fn run_on_region_entity(
        &mut self,
        id: Uuid,
        delay: u64,
        run: impl FnOnce(EntityWorldMut) + Send + 'static,
        retired: impl FnOnce(&mut World, Undeliverable) + Send + 'static,
    ) -> &mut Self {
        let letter = Letter::run_on(id, LetterSender::Main, Box::new(run), Some(Box::new(retired)));
        post(self, FromMain::Post(letter.with_delay(delay)))
    }

    fn send_to_place<M: RegionMessage>(&mut self, dimension: Entity, block: BlockPos, message: M) -> &mut Self {
        let letter = Letter::message(to_place(block), LetterSender::Main, message);
        post(self, FromMain::PostToPlace { dimension, block, letter })
    }

    fn send_to_entity<M: RegionMessage>(&mut self, id: Uuid, message: M) -> &mut Self {
        post(self, FromMain::Post(Letter::message(Address::Entity(id), LetterSender::Main, message)))
    }

    fn send_to_regions<M: RegionMessage>(&mut self, only: Option<DimensionId>, message: M) -> &mut Self {
        post(self, FromMain::Post(Letter::message(Address::Regions(only), LetterSender::Main, message)))
    }
}

/// The coordinator knows the dimension's number and puts it in.
fn to_place(block: BlockPos) -> Address {
    Address::Place(DimensionId(0), block)
}

fn post<'a, 'w, 's>(commands: &'a mut Commands<'w, 's>, letter: FromMain) -> &'a mut Commands<'w, 's> {
    commands.queue(move |world: &mut World| world.get_resource_or_init::<Outgoing>().0.push(letter));
    commands
}

/// What is sent to regions at the end of the frame, after the frame's new dimensions.
#[derive(Resource, Default)]
pub(super) struct Outgoing(Vec<FromMain>);

pub(super) fn send_letters(link: Res<MainLink>, mut outgoing: ResMut<Outgoing>) {
    std::mem::take(&mut outgoing.0).into_iter().for_each(|letter| link.send(letter));
}

type ViewerQuery<'w, 's> = Query<
    'w,
    's,
    (
        Entity,
        &'static Viewer,
        Option<&'static Position>,
        Option<&'static Transform>,
        Option<&'static GlobalTransform>,
        Has<ChildOf>,
    ),
>;

pub(super) fn send_viewers(
    link: Res<MainLink>,
    viewers: ViewerQuery,
    dimensions: Query<(), With<Dimension>>,
    opened: Query<(), Added<DimensionOpen>>,
    mut removed: RemovedComponents<Viewer>,
    mut sent: Local<FxHashMap<Entity, (Entity, ChunkPos, ViewerRadii)>>,
) {
    // What was said of a dimension that had to wait until it could be opened is said again.
    sent.retain(|_, (dimension, ..)| !opened.contains(*dimension));
    for viewer in removed.read() {
        if sent.remove(&viewer).is_some() {
            link.send(FromMain::RemoveViewer(viewer));
        }
    }
    for (entity, viewer, position, transform, global, is_child) in &viewers {
        let Some(dimension) = viewer.dimension().filter(|dimension| dimensions.contains(*dimension)) else { continue };
        let Some(position) = place_of(position, transform, global, is_child) else {
            warn_once!("{entity} is a Viewer without a Transform or a Position: it sees nothing");
            continue;
        };
        let state = (dimension, position.block.chunk(), viewer.radii());
        if sent.insert(entity, state) != Some(state) {
            let (_, chunk, radii) = state;
            link.send(FromMain::MoveViewer { viewer: entity, dimension, chunk, radii });
        }
    }
}

/// Where an entity of the main world is, by its position or else by its transform.
pub(super) fn place_of(
    position: Option<&Position>,
    transform: Option<&Transform>,
    global: Option<&GlobalTransform>,
    is_child: bool,
) -> Option<Position> {
    let translation = match (is_child, transform, global) {
        // A root's own transform is this frame's; its global one may be the last frame's.
        (false, Some(transform), _) | (true, Some(transform), None) => Some(transform.translation),
        (_, _, global) => global.map(GlobalTransform::translation),
    };
    position.copied().or(translation.map(|at| Position::from_translation(default(), at)))
}

pub(super) fn send_edits(link: Res<MainLink>, mut edits: MessageReader<SetBlock>) {
    for edit in edits.read() {
        link.send(FromMain::Edit(*edit));
    }
}

pub(super) fn send_players(
    link: Res<MainLink>,
    mut log_outs: MessageReader<LogOut>,
    mut log_ins: MessageReader<LogIn>,
) {
    for LogOut { name } in log_outs.read() {
        link.send(FromMain::LogOut { name: name.clone() });
    }
    for LogIn { name, first_place } in log_ins.read() {
        link.send(FromMain::LogIn { name: name.clone(), first_place: *first_place });
    }
}

pub(super) fn send_saves(
    link: Res<MainLink>,
    mut saves: MessageReader<SaveWorld>,
    mut backups: MessageReader<BackupWorld>,
) {
    for save in saves.read() {
        link.send(FromMain::Save(save.request));
    }
    for backup in backups.read() {
        link.send(FromMain::BackUp(backup.clone()));
    }
}

pub(super) fn send_orders(
    link: Res<MainLink>,
    clocks: Query<(Entity, &DimensionClock), (With<Dimension>, Or<(Changed<DimensionClock>, Added<DimensionOpen>)>)>,
    couplings: Query<(Entity, &Coupling), Changed<Coupling>>,
    mut uncoupled: RemovedComponents<Coupling>,
    mut steps: MessageReader<StepDimension>,
    mut orders: MessageReader<ControlRegion>,
) {
    for (dimension, clock) in &clocks {
        link.send(FromMain::SetClock { dimension, clock: *clock });
    }
    uncoupled.read().for_each(|coupling| link.send(FromMain::Uncouple(coupling)));
    couplings.iter().for_each(|(entity, coupling)| link.send(FromMain::Couple(entity, *coupling)));
    steps.read().for_each(|step| link.send(FromMain::Step(*step)));
    orders.read().for_each(|order| link.send(FromMain::Control(*order)));
}

type ChangedGeneration = (With<Dimension>, Or<(Changed<DimensionGeneration>, Added<DimensionOpen>)>);

pub(super) fn send_generation(
    link: Res<MainLink>,
    dimensions: Query<(Entity, &DimensionGeneration), ChangedGeneration>,
    pacing: Option<Res<Pacing>>,
    mut retries: MessageReader<RetryColumns>,
) {
    for (dimension, generation) in &dimensions {
        link.send(FromMain::SetGeneration { dimension, generation: *generation });
    }
    if let Some(pacing) = pacing.filter(|pacing| pacing.is_changed()) {
        link.send(FromMain::SetPacing(*pacing));
    }
    retries.read().for_each(|retry| link.send(FromMain::Retry(*retry)));
}

/// When the main world's frame began.
#[derive(Resource, Default)]
pub(super) struct FrameBegan(Option<Instant>);

pub(super) fn begin_frame(mut began: ResMut<FrameBegan>) {
    began.0 = Some(Instant::now());
}

pub(super) fn end_frame(link: Res<MainLink>, mut began: ResMut<FrameBegan>) {
    if let Some(began) = began.0.take() {
        link.note_frame(began.elapsed());
    }
}

pub(super) fn send_closings(
    link: Res<MainLink>,
    mut despawned: RemovedComponents<Dimension>,
    mut removed: MessageReader<RemoveDimension>,
    mut reopening: ResMut<Reopening>,
) {
    for RemoveDimension { dimension } in removed.read() {
        link.send(FromMain::CloseDimension { dimension: *dimension, remove: true });
    }
    for dimension in despawned.read() {
        link.send(FromMain::CloseDimension { dimension, remove: false });
    }
    reopening.0.drain(..).for_each(|spec| link.send(FromMain::OpenDimension(spec)));
}

/// Exclusive, so that it waits on the main thread and not on a compute thread that a region may need.
pub(super) fn update_lockstep(world: &mut World) {
    world.resource_mut::<CoordinatorHandle>().update_inline();
}

/// The process may end right after the app: everything is saved before.
pub(super) fn end_with_app(world: &mut World) {
    if !world.resource::<Messages<AppExit>>().is_empty() {
        world.resource_mut::<CoordinatorHandle>().shut_down();
    }
}
