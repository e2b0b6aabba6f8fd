//! Messages, closures and entities from the main world to regions, and its view of regions.

use crate::coordinator::MainLink;
use crate::coordinator::messages::RegionStatistics;
use crate::coordinator::passes::letters::post_letters;
use crate::region::RegionId;
use crate::simulation::{Address, Letter, LetterSender, Position, RegionMessage, Undeliverable, schedule};
use crate::space::{BlockPos, DimensionId};
use crate::view::WorldStatistics;
use bevy::ecs::system::SystemParam;
use bevy::prelude::*;
use std::mem;
use std::sync::Arc;
use uuid::Uuid;

/// Commands of the main world to regions: the same as regions send to each other with
/// [`Post`](crate::simulation::Post), and entities to spawn and despawn.
///
/// Commands are sent at the end of the frame, in the order of the calls, and delivered before the next tick of the region
/// that owns the target at that time. A place is loaded if necessary; commands that still wait for their place when the app
/// ends are dropped. Nothing is stored in transit, so a crash loses it.
///
/// Commands that were delivered for a tick that panics come back, or are reported, as
/// [`Undeliverable::Halted`](crate::simulation::Undeliverable::Halted), and edits of that tick as
/// [`BlockRefused`](super::BlockRefused). Commands still waiting in the region wait for its restart.
///
/// Commands beyond the [`LetterLimits`](crate::plugin::LetterLimits) come back or are reported as
/// [`Undeliverable::TooManyLetters`](crate::simulation::Undeliverable::TooManyLetters).
pub trait RegionCommands {
    /// Runs `run` once in the region world that owns `block`.
    fn run_in_region(
        &mut self,
        dimension: DimensionId,
        block: BlockPos,
        run: impl FnOnce(&mut World) + Send + 'static,
    ) -> &mut Self {
        self.run_in_region_after(dimension, block, 0, run)
    }

    /// Runs `run` once in the region world that then owns `block`, `delay` of its ticks after its next one. If the place
    /// is unloaded meanwhile, the closure is dropped and reported by a [`LetterLost`](super::LetterLost).
    fn run_in_region_after(
        &mut self,
        dimension: DimensionId,
        block: BlockPos,
        delay: u64,
        run: impl FnOnce(&mut World) + Send + 'static,
    ) -> &mut Self;

    /// Runs `run` on the entity with this stable id, in its present region, `delay` ticks of that after the next one.
    /// If the entity is gone or not loaded then, `retired` runs in the main world instead.
    fn run_on_region_entity(
        &mut self,
        id: Uuid,
        delay: u64,
        run: impl FnOnce(EntityWorldMut) + Send + 'static,
        retired: impl FnOnce(&mut World, Undeliverable) + Send + 'static,
    ) -> &mut Self;

    /// Sends a message to the region that owns `block`.
    fn send_to_place<M: RegionMessage>(&mut self, dimension: DimensionId, block: BlockPos, message: M) -> &mut Self;

    /// Sends a message to an entity by its stable id.
    fn send_to_entity<M: RegionMessage>(&mut self, id: Uuid, message: M) -> &mut Self;

    /// Sends a message to each region of a dimension, or of all dimensions.
    fn send_to_regions<M: RegionMessage>(&mut self, only: Option<DimensionId>, message: M) -> &mut Self;

    /// Schedules a [`BlockTick`](crate::simulation::BlockTick) of `kind` for a block, `delay` ticks after its region
    /// receives the command. The block tick is stored with the block's chunk.
    fn schedule_block_tick(
        &mut self,
        dimension: DimensionId,
        block: BlockPos,
        kind: impl Into<Arc<str>>,
        delay: u64,
    ) -> &mut Self {
        let kind = kind.into();
        self.run_in_region(dimension, block, move |region: &mut World| schedule(region, block, kind, delay))
    }

    /// Spawns an entity in the middle of the floor of `block`. Add a [`StableId`](crate::simulation::StableId) to the bundle
    /// to find the entity again.
    fn spawn_in_region(&mut self, dimension: DimensionId, block: BlockPos, bundle: impl Bundle) -> &mut Self {
        self.run_in_region(dimension, block, move |region: &mut World| {
            region.spawn((Position::new(dimension, block), bundle));
        })
    }

    /// Despawns the entity with this stable id and its children, in its present region. Does nothing if there is no such
    /// entity.
    fn despawn_in_region(&mut self, id: Uuid) -> &mut Self {
        self.run_on_region_entity(id, 0, |entity| entity.despawn(), |_, _| {})
    }
}

impl RegionCommands for Commands<'_, '_> {
    fn run_in_region_after(
        &mut self,
        dimension: DimensionId,
        block: BlockPos,
        delay: u64,
        run: impl FnOnce(&mut World) + Send + 'static,
    ) -> &mut Self {
        let letter = Letter::run(Address::Place(dimension, block), LetterSender::Main, Box::new(run)).with_delay(delay);
        post(self, letter)
    }

    fn run_on_region_entity(
        &mut self,
        id: Uuid,
        delay: u64,
        run: impl FnOnce(EntityWorldMut) + Send + 'static,
        retired: impl FnOnce(&mut World, Undeliverable) + Send + 'static,
    ) -> &mut Self {
        let letter = Letter::run_on(id, LetterSender::Main, Box::new(run), Some(Box::new(retired)));
        post(self, letter.with_delay(delay))
    }

    fn send_to_place<M: RegionMessage>(&mut self, dimension: DimensionId, block: BlockPos, message: M) -> &mut Self {
        let letter = Letter::message(Address::Place(dimension, block), LetterSender::Main, message);
        post(self, letter)
    }

    fn send_to_entity<M: RegionMessage>(&mut self, id: Uuid, message: M) -> &mut Self {
        post(self, Letter::message(Address::Entity(id), LetterSender::Main, message))
    }

    fn send_to_regions<M: RegionMessage>(&mut self, only: Option<DimensionId>, message: M) -> &mut Self {
        post(self, Letter::message(Address::Regions(only), LetterSender::Main, message))
    }
}

fn post<'a, 'w, 's>(commands: &'a mut Commands<'w, 's>, letter: Letter) -> &'a mut Commands<'w, 's> {
    commands.queue(move |world: &mut World| world.get_resource_or_init::<Outgoing>().0.push(letter));
    commands
}

/// Letters that are sent to regions at the end of the frame, after the frame's new dimensions.
#[derive(Resource, Default)]
pub(super) struct Outgoing(Vec<Letter>);

pub(super) fn build(app: &mut App) {
    app.init_resource::<Outgoing>();
}

pub(super) fn send_letters(link: Res<MainLink>, mut outgoing: ResMut<Outgoing>) {
    if !outgoing.0.is_empty() {
        link.request(post_letters, mem::take(&mut outgoing.0));
    }
}

/// The state of all regions as the coordinator published it last, four times a second.
///
/// Regions tick on while this is read, and sections beside a ticking region may belong to a transient region for the
/// moment. To reach the region that owns a place at that very time, send it a message or a closure.
///
/// ```
/// use bevy_terrane::prelude::*;
///
/// fn look(regions: Regions, dimensions: Res<Dimensions>) {
///     if let Some(here) = regions.at(dimensions.id("overworld"), BlockPos::new(0, 0, 0)) {
///         info!("{} has {} entities in {} columns", here.region, here.entities, here.columns);
///     }
///     let slow = regions.iter().filter(|region| region.ticks_per_second().is_some_and(|rate| rate < 19.5));
///     info!("{} of {} regions are slow", slow.count(), regions.iter().count());
/// }
/// # bevy::ecs::system::assert_is_system(look);
/// ```
#[derive(SystemParam)]
pub struct Regions<'w> {
    statistics: Res<'w, WorldStatistics>,
}

impl Regions<'_> {
    /// All regions, by dimension and id.
    pub fn iter(&self) -> impl Iterator<Item = &RegionStatistics> {
        self.statistics.regions.iter()
    }

    /// The regions of a dimension.
    pub fn of_dimension(&self, dimension: DimensionId) -> impl Iterator<Item = &RegionStatistics> {
        self.iter().filter(move |region| region.dimension == dimension)
    }

    /// The region with this id.
    pub fn get(&self, dimension: DimensionId, region: RegionId) -> Option<&RegionStatistics> {
        self.statistics.region(dimension, region)
    }

    /// The region that owns a block.
    pub fn at(&self, dimension: DimensionId, block: BlockPos) -> Option<&RegionStatistics> {
        self.statistics.region_at(dimension, block.column())
    }
}
