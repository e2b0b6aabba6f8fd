//! What a region sends, and what waits in it for its time.

use super::RegionColumns;
use super::columns::block_ticks::ticks_until;
use super::letter::{Address, Letter, LetterSender, Received, RegionMessage, Returned, Undeliverable};
use crate::region::RegionId;
use crate::space::{BlockPos, ColumnPos, DimensionId};
use bevy::prelude::*;
use rustc_hash::FxHashSet;
use std::any::{TypeId, type_name};
use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// Sends messages and closures to places, entities, the main world and all regions, wherever these are.
///
/// What is sent is delivered before the next tick of whoever owns the target then: in order for one sender and one
/// target, also across merges, splits and journeys. A message whose target is not there comes back to the sender as
/// [`Returned`](super::Returned), and so does one that was handed over in a tick that panics. If the sender's region is
/// gone too, the main world gets a `LetterLost`.
///
/// [`LetterLimits`](crate::plugin::LetterLimits) say how many bytes of a region's letters may be on their way, and for how many
/// far places ground is loaded at a time. What is too much comes back as `Undeliverable::TooManyLetters`.
///
/// Messages and closures are not stored, neither on their way nor while they wait for their time: a crash loses them,
/// though the sender's state of that tick may be saved already, and so does the end of the app if their place is not
/// loaded or their delay is not over. What carries value should be an entity that goes there, or a block tick.
///
/// ```
/// use bevy_terrane::prelude::*;
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
#[derive(Resource, Default)]
pub struct Post {
    out: Vec<Letter>,
    /// The message types that can be sent.
    known: FxHashSet<TypeId>,
    sender: LetterSender,
    dimension: DimensionId,
    /// Types that were sent and are not registered.
    unknown: Vec<&'static str>,
}

impl Post {
    pub(super) fn set_sender(&mut self, dimension: DimensionId, region: RegionId, column: Option<ColumnPos>) {
        self.dimension = dimension;
        self.sender = LetterSender::Region { dimension, region, column };
    }

    /// Sends `message`. It is not stored: a crash loses what is on its way.
    pub fn send<M: RegionMessage>(&mut self, to: Address, message: M) {
        if !self.known.contains(&TypeId::of::<M>()) {
            self.unknown.push(type_name::<M>());
            return;
        }
        let letter = Letter::message(to, self.sender, message);
        self.out.push(letter);
    }

    /// Sends `message` to a place in this dimension.
    pub fn send_to_place<M: RegionMessage>(&mut self, block: BlockPos, message: M) {
        self.send(Address::Place(self.dimension, block), message);
    }

    /// Runs `run` in the region that owns `block` then, in this dimension: at its next tick, or `delay` ticks later.
    ///
    /// The place is loaded for it. If it is unloaded before the delay is over, the closure is dropped, and the main
    /// world gets a `LetterLost`.
    pub fn run_at(&mut self, block: BlockPos, delay: u64, run: impl FnOnce(&mut World) + Send + 'static) {
        let to = Address::Place(self.dimension, block);
        let letter = Letter::run(to, self.sender, Box::new(run)).with_delay(delay);
        self.out.push(letter);
    }

    /// Runs `run` on the entity with this stable id, wherever it is: at the next tick of its region, or `delay` ticks
    /// later. If it is gone or not loaded then, `retired` runs in this region instead.
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

    /// Schedules a [`BlockTick`](super::BlockTick) of `kind` for a block of this dimension, in whatever region it is, so
    /// many ticks after the closure that does it has reached that.
    pub fn schedule_block_tick(&mut self, block: BlockPos, kind: impl Into<Arc<str>>, delay: u64) {
        let kind = kind.into();
        self.run_at(block, 0, move |region: &mut World| schedule(region, block, kind, delay));
    }

    /// Asks for a column of this dimension. When it is loaded, the region that owns it then, most often this one, gets a
    /// [`Received<ColumnReady>`](super::Received).
    pub fn request_column(&mut self, column: ColumnPos) {
        self.send_to_place(column.min_block(0), ColumnReady { column });
    }

    pub(super) fn append(&mut self, mut letters: Vec<Letter>) {
        self.out.append(&mut letters);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    pub(super) fn take(&mut self) -> Vec<Letter> {
        mem::take(&mut self.out)
    }

    pub(super) fn take_unknown(&mut self) -> Vec<&'static str> {
        mem::take(&mut self.unknown)
    }
}

/// Makes `M` a message that can be sent and read in the region.
pub(crate) fn register_message<M: RegionMessage>(region: &mut SubApp) {
    region.add_message::<Received<M>>().add_message::<Returned<M>>();
    region.world_mut().resource_mut::<Post>().known.insert(TypeId::of::<M>());
}

/// A column that was asked for with [`Post::request_column`] is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnReady {
    /// The column.
    pub column: ColumnPos,
}

/// In the region that has the block.
pub(crate) fn schedule(region: &mut World, block: BlockPos, kind: Arc<str>, delay: u64) {
    if let Err(error) = region.resource_mut::<RegionColumns>().schedule_tick(block, kind.clone(), delay) {
        error!("no block tick {kind:?} was scheduled: {error}");
    }
}

/// Letters that have reached the region and wait for their time.
#[derive(Default)]
pub(super) struct Waiting {
    /// By the dimension's clock, then in the order of arrival.
    letters: BTreeMap<(Duration, u64), Letter>,
    arrivals: u64,
}

impl Waiting {
    pub fn push(&mut self, due: Duration, letter: Letter) {
        self.arrivals += 1;
        self.letters.insert((due, self.arrivals), letter);
    }

    pub fn is_empty(&self) -> bool {
        self.letters.is_empty()
    }

    /// Takes out the next letter that is due. If it panics as it is handed over, the others are still here.
    pub fn next_due(&mut self, clock: Duration) -> Option<Letter> {
        let next = self.letters.first_entry().filter(|next| next.key().0 <= clock)?;
        Some(next.remove())
    }

    /// Takes out what `wanted` names, each with the ticks that it still has to wait.
    pub fn take_out(
        &mut self,
        clock: Duration,
        period: Duration,
        mut wanted: impl FnMut(&Letter) -> bool,
    ) -> Vec<Letter> {
        let taken = self.letters.extract_if(.., |_, letter| wanted(letter));
        taken.map(|((due, _), letter)| letter.with_delay(ticks_until(due, clock, period))).collect()
    }

    /// Takes over what waits in a region that is absorbed: the dimension's clock is the same for both.
    pub fn append(&mut self, mut other: Self) {
        for ((due, _), letter) in mem::take(&mut other.letters) {
            self.push(due, letter);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(number: u64) -> Letter {
        Letter::message(
            Address::Place(DimensionId(0), BlockPos::new(number as i64 * 16, 0, 0)),
            LetterSender::Main,
            number,
        )
    }

    #[test]
    fn what_is_due_comes_in_the_order_of_time_and_arrival() {
        let mut waiting = Waiting::default();
        let tick = Duration::from_millis(50);
        for (number, due) in [(1, 3), (2, 1), (3, 1), (4, 2)] {
            waiting.push(tick * due, letter(number));
        }
        let places = |letters: Vec<Letter>| -> Vec<i64> {
            letters.iter().filter_map(|letter| Some(letter.column()?.1.x)).collect()
        };
        assert_eq!(places(std::iter::from_fn(|| waiting.next_due(tick * 2)).collect()), [2, 3, 4]);
        assert!(waiting.next_due(tick * 2).is_none());
        let left = waiting.take_out(tick * 2, tick, |_| true);
        assert_eq!((left[0].delay, places(left)), (1, vec![1]));
    }
}
