//! Sending letters from a region, and the letters that wait in it.

use crate::region::RegionId;
use crate::simulation::columns::blocks::RegionColumns;
use crate::simulation::letters::letter::{
    Address, Letter, LetterSender, Received, RegionMessage, Returned, Undeliverable,
};
use crate::simulation::schedules::OwnMessages;
use crate::space::{BlockPos, ColumnPos, DimensionId};
use bevy::prelude::*;
use rustc_hash::FxHashSet;
use std::any::{TypeId, type_name};
use std::mem;
use std::sync::Arc;
use uuid::Uuid;

/// Sends messages and closures to places, entities, the main world and all regions, wherever these are.
///
/// A letter is delivered before the next tick of the region that owns the target at that time. Letters of one sender to one
/// target arrive in order, even across merges, splits and journeys. A message returns to its sender as
/// [`Returned`](crate::simulation::Returned) if its target does not exist or if the tick that received it panics. If the sender's region
/// is gone too, the main world gets a `LetterLost`.
///
/// [`LetterLimits`](crate::plugin::LetterLimits) limit the bytes of a region's letters in flight, and the number of far places
/// for which ground is loaded at a time. Letters beyond the limits return as `Undeliverable::TooManyLetters`.
///
/// Messages of types that are registered with `register_shared_message` are stored on their way to a place or an entity, so neither a
/// crash nor closing the app loses them. All other messages and closures are never stored, neither in flight nor while they wait for
/// their delay. A crash loses them, although the sender's state of that tick may already be saved. Closing the app loses them if their
/// place is not loaded or their delay is not over.
///
/// ```
/// use bevy_terrane::prelude::*;
/// use bevy_terrane::simulation::Address;
///
/// #[derive(Clone)]
/// struct Damage(u32);
///
/// fn lightning(mut post: ResMut<Post>, mut random: ResMut<RegionRandom>, index: Res<EntityIndex>) {
///     let x = i64::from(random.0.below(100_000));
///     if let Some(id) = index.ids().next() {
///         post.send(Address::Entity(id), Damage(3));
///     }
///     post.run_at(BlockPos::new(x, 0, 0), 20, |world: &mut World| {
///         info!("a second later, in {}", world.resource::<RegionInfo>().region);
///     });
/// }
/// fn suffer(mut hits: MessageReader<Received<Damage>>) {
///     for hit in hits.read() {
///         info!("{:?} lost {}", hit.entity, hit.message.0);
///     }
/// }
/// # App::new().register_region_message::<Damage>().add_systems(RegionTick, (lightning, suffer));
/// ```
#[derive(Resource, Default, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(from_reflect = false)]
#[reflect(Component, Default)]
pub struct Post {
    #[reflect(ignore)]
    out: Vec<Letter>,
    /// The registered message types.
    #[reflect(ignore)]
    known: FxHashSet<TypeId>,
    #[reflect(ignore)]
    sender: LetterSender,
    #[reflect(ignore)]
    dimension: DimensionId,
    /// Types that were sent without being registered.
    #[reflect(ignore)]
    unknown: Vec<&'static str>,
}

impl Post {
    pub(in crate::simulation) fn set_sender(
        &mut self,
        dimension: DimensionId,
        region: RegionId,
        column: Option<ColumnPos>,
    ) {
        self.dimension = dimension;
        self.sender = LetterSender::Region { dimension, region, column };
    }

    /// Sends `message`. Unless its type is registered with `register_shared_message`, a crash loses it in flight.
    pub fn send<M: RegionMessage>(&mut self, to: Address, message: M) {
        if !self.known.contains(&TypeId::of::<M>()) {
            self.unknown.push(type_name::<M>());
            return;
        }
        let letter = Letter::message(to, self.sender, message);
        self.out.push(letter);
    }

    /// Runs `run` in the region that owns `block` at that time, in this dimension: at its next tick, or `delay` ticks later.
    ///
    /// The place is loaded for it. If it is unloaded before the delay is over, the closure is dropped, and the main
    /// world gets a `LetterLost`.
    pub fn run_at(&mut self, block: BlockPos, delay: u64, run: impl FnOnce(&mut World) + Send + 'static) {
        let to = Address::Place(self.dimension, block);
        let letter = Letter::run(to, self.sender, Box::new(run)).with_delay(delay);
        self.out.push(letter);
    }

    /// Runs `run` on the entity with this stable id, wherever it is: at the next tick of its region, or `delay` ticks
    /// later. If the entity is despawned or not loaded at that time, `retired` runs in this region instead.
    pub fn run_on(
        &mut self,
        id: Uuid,
        delay: u64,
        run: impl FnOnce(EntityWorldMut) + Send + 'static,
        retired: impl FnOnce(&mut World, Undeliverable) + Send + 'static,
    ) {
        let letter = Letter::run_on(id, self.sender, Box::new(run), Some(Box::new(retired))).with_delay(delay);
        self.out.push(letter);
    }

    /// Schedules a [`BlockTick`](crate::simulation::BlockTick) of `kind` for a block of this dimension, in the region that owns it. The delay
    /// counts from the tick in which that region receives the request.
    pub fn schedule_block_tick(&mut self, block: BlockPos, kind: impl Into<Arc<str>>, delay: u64) {
        let kind = kind.into();
        self.run_at(block, 0, move |region: &mut World| schedule(region, block, kind, delay));
    }

    /// Requests a column of this dimension. When it is loaded, the region that owns it at that time, most often this one, gets
    /// a [`Received<ColumnReady>`](crate::simulation::Received).
    pub fn request_column(&mut self, column: ColumnPos) {
        self.send(Address::Place(self.dimension, column.min_block(0)), ColumnReady { column });
    }

    pub(in crate::simulation) fn append(&mut self, mut letters: Vec<Letter>) {
        self.out.append(&mut letters);
    }

    pub(in crate::simulation) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    pub(in crate::simulation) fn take(&mut self) -> Vec<Letter> {
        mem::take(&mut self.out)
    }

    pub(in crate::simulation) fn take_unknown(&mut self) -> Vec<&'static str> {
        mem::take(&mut self.unknown)
    }
}

/// Registers `M` as a message that can be sent and read in the region.
pub(crate) fn register_message<M: RegionMessage>(region: &mut SubApp) {
    OwnMessages::add::<Received<M>>(region.world_mut());
    OwnMessages::add::<Returned<M>>(region.world_mut());
    region.world_mut().resource_mut::<Post>().known.insert(TypeId::of::<M>());
}

/// Reports that a column requested with [`Post::request_column`] is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnReady {
    /// The column.
    pub column: ColumnPos,
}

/// Schedules a block tick in the region that owns the block.
pub(crate) fn schedule(region: &mut World, block: BlockPos, kind: Arc<str>, delay: u64) {
    if let Err(error) = region.resource_mut::<RegionColumns>().schedule_tick(block, kind.clone(), delay) {
        error!("block tick {kind:?} was not scheduled: {error}");
    }
}
