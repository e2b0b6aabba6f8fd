//! What the main world asks of the simulation.

use super::Dimension;
use crate::coordinator::{CoordinatorHandle, FromMain, MainLink, SetBlock};
use crate::simulation::{Exclusive, Position, Viewer};
use crate::space::{BlockPos, ColumnPos};
use bevy::prelude::*;
use rustc_hash::FxHashMap;

/// Saves everything now. [`WorldSaved`](super::WorldSaved) with the same number answers when it is durable.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaveWorld {
    /// A number of the game's choice, to know the answer by.
    pub request: u64,
}

/// Runs code in region worlds.
pub trait RegionCommands {
    /// Runs `run` once in the region world that owns `block`, before its next tick. The place is loaded for it if it is
    /// not. Entities spawned there with a [`Position`] live in that region from then on.
    ///
    /// What waits for its place to be loaded when the app ends is dropped.
    fn run_in_region(
        &mut self,
        dimension: Entity,
        block: BlockPos,
        run: impl FnOnce(&mut World) + Send + 'static,
    ) -> &mut Self;
}

impl RegionCommands for Commands<'_, '_> {
    fn run_in_region(
        &mut self,
        dimension: Entity,
        block: BlockPos,
        run: impl FnOnce(&mut World) + Send + 'static,
    ) -> &mut Self {
        self.queue(move |world: &mut World| {
            let run = FromMain::Run { dimension, block, run: Box::new(run) };
            world.get_resource_or_init::<QueuedRuns>().0.get().push(run);
        });
        self
    }
}

/// What is to run in regions. It is sent after the frame's new dimensions.
#[derive(Resource, Default)]
pub(super) struct QueuedRuns(Exclusive<Vec<FromMain>>);

pub(super) fn send_runs(link: Res<MainLink>, mut runs: ResMut<QueuedRuns>) {
    std::mem::take(runs.0.get()).into_iter().for_each(|run| link.send(run));
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
    mut removed: RemovedComponents<Viewer>,
    mut sent: Local<FxHashMap<Entity, (Entity, ColumnPos, u32)>>,
) {
    for viewer in removed.read() {
        if sent.remove(&viewer).is_some() {
            link.send(FromMain::RemoveViewer(viewer));
        }
    }
    for (entity, viewer, position, transform, global, is_child) in &viewers {
        let Some(dimension) = viewer.dimension().filter(|dimension| dimensions.contains(*dimension)) else { continue };
        let translation = match (is_child, transform, global) {
            // A root's own transform is this frame's; its global one may be the last frame's.
            (false, Some(transform), _) | (true, Some(transform), None) => Some(transform.translation),
            (_, _, global) => global.map(GlobalTransform::translation),
        };
        let position = position.copied();
        let Some(position) = position.or(translation.map(|at| Position::from_translation(default(), at))) else {
            warn_once!("{entity} is a Viewer without a Transform or a Position: it sees nothing");
            continue;
        };
        let state = (dimension, position.column(), viewer.radius);
        if sent.insert(entity, state) != Some(state) {
            let (_, column, radius) = state;
            link.send(FromMain::MoveViewer { viewer: entity, dimension, column, radius });
        }
    }
}

pub(super) fn send_edits(link: Res<MainLink>, mut edits: MessageReader<SetBlock>) {
    for edit in edits.read() {
        link.send(FromMain::Edit(*edit));
    }
}

pub(super) fn send_saves(link: Res<MainLink>, mut saves: MessageReader<SaveWorld>) {
    for save in saves.read() {
        link.send(FromMain::Save(save.request));
    }
}

pub(super) fn update_lockstep(mut coordinator: ResMut<CoordinatorHandle>) {
    coordinator.update_inline();
}

/// The process may end right after the app: everything is saved before.
pub(super) fn end_with_app(mut exits: MessageReader<AppExit>, mut coordinator: ResMut<CoordinatorHandle>) {
    if exits.read().next().is_some() {
        coordinator.shut_down();
    }
}
