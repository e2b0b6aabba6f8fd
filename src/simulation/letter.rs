//! Messages and closures that travel between worlds: to a place, to an entity, to the main world, to all regions.

use super::world::RegionContents;
use super::{EntityIndex, Exclusive};
use crate::region::RegionId;
use crate::space::{BlockPos, ColumnPos, DimensionId};
use bevy::ecs::message::Messages;
use bevy::prelude::*;
use std::any::type_name;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use uuid::Uuid;

/// What can be sent from world to world, after `register_region_message` was called for it.
pub trait RegionMessage: Clone + Send + Sync + 'static {}
impl<M: Clone + Send + Sync + 'static> RegionMessage for M {}

/// Where a message or a closure goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// To the region that owns the block's column at the moment of delivery. The column is loaded for it.
    Place(DimensionId, BlockPos),
    /// To the entity with this stable id, in whatever region it is.
    Entity(Uuid),
    /// To the main world.
    Main,
    /// To each region of a dimension, or of all, that exists when the coordinator passes it on.
    Regions(Option<DimensionId>),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Place(dimension, block) => write!(f, "block {block} of {dimension}"),
            Self::Entity(id) => write!(f, "entity {id}"),
            Self::Main => f.write_str("the main world"),
            Self::Regions(Some(dimension)) => write!(f, "all regions of {dimension}"),
            Self::Regions(None) => f.write_str("all regions"),
        }
    }
}

/// Who sent a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LetterSender {
    /// The main world.
    Main,
    /// A region.
    Region {
        /// Its dimension.
        dimension: DimensionId,
        /// The region, as it was called when it sent.
        region: RegionId,
        /// One of its columns: whoever owns that later stands in for a region that is no more.
        column: Option<ColumnPos>,
    },
}

impl fmt::Display for LetterSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Main => f.write_str("the main world"),
            Self::Region { dimension, region, .. } => write!(f, "{region} of {dimension}"),
        }
    }
}

/// Why something did not reach its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undeliverable {
    /// No entity with this stable id is in a region or on its way to one: it is gone, or not loaded.
    #[error("no entity {0} is loaded")]
    NoSuchEntity(Uuid),
    /// The dimension is not open.
    #[error("{0} is not open")]
    DimensionNotOpen(DimensionId),
    /// This entity of the main world is no open dimension.
    #[error("{0} is no open dimension")]
    NotADimension(Entity),
    /// The column was unloaded before the delay was over.
    #[error("column {0} was unloaded before the delay was over")]
    Unloaded(ColumnPos),
    /// The region halted in the tick in which it was handed over: what it did there is undone.
    #[error("{0} halted in the tick in which it was handed over")]
    Halted(RegionId),
    /// Letters of its sender, or of all senders, that are on their way take as much as they may
    /// (`TerranePlugin::with_letter_limits`): some must arrive first.
    #[error("too many letters are on their way")]
    TooManyLetters,
}

/// A message that came from another world or from this one. Read it with `MessageReader<Received<M>>`.
#[derive(Message, Clone, Debug, PartialEq)]
pub struct Received<M: RegionMessage> {
    /// What was sent.
    pub message: M,
    /// To whom.
    pub to: Address,
    /// The target in this world, if it was sent to an entity.
    pub entity: Option<Entity>,
    /// By whom.
    pub from: LetterSender,
}

/// A message that this world sent and that could not be delivered. Read it with `MessageReader<Returned<M>>`.
#[derive(Message, Clone, Debug, PartialEq)]
pub struct Returned<M: RegionMessage> {
    /// What was sent.
    pub message: M,
    /// To whom.
    pub to: Address,
    /// Why it came back.
    pub reason: Undeliverable,
}

/// A closure that runs once in a world.
pub type RunInWorld = Box<dyn FnOnce(&mut World) + Send>;
/// A closure that runs once in the world that sent another one, if that cannot be run.
pub type RunIfRetired = Box<dyn FnOnce(&mut World, Undeliverable) + Send>;
/// A closure that runs once on an entity, wherever it is.
pub type RunOnEntity = Box<dyn FnOnce(EntityWorldMut) + Send>;

/// A message or a closure on its way.
pub struct Letter {
    /// Where it goes.
    pub to: Address,
    /// Where it comes from.
    pub from: LetterSender,
    /// How many ticks of its target it waits there; 0 for the next tick.
    pub delay: u64,
    content: Content,
    /// It is on its way back, for this reason.
    returned: Option<Undeliverable>,
    /// Who comes into the world with it.
    brings: Option<Uuid>,
    /// What it takes in memory, without what its message or closure has elsewhere.
    bytes: usize,
    stamp: Option<Stamp>,
}

/// What a letter takes of its sender's share while it is on its way: given back when the letter is handed over or dropped,
/// wherever that is.
pub struct Stamp {
    bytes: usize,
    returned: Arc<AtomicUsize>,
}

impl Stamp {
    /// So many bytes, to be added to `returned`.
    pub fn new(bytes: usize, returned: Arc<AtomicUsize>) -> Self {
        Self { bytes, returned }
    }
}

impl Drop for Stamp {
    fn drop(&mut self) {
        self.returned.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

enum Content {
    Message(Box<dyn Parcel>),
    Run(Exclusive<RunInWorld>),
    RunOn(Exclusive<RunOnEntity>, Option<Exclusive<RunIfRetired>>),
}

impl Content {
    /// What is left of a closure that ran.
    fn nothing() -> Self {
        Self::Run(Exclusive::new(Box::new(|_| {})))
    }
}

/// A message whose type is forgotten.
trait Parcel: Send + Sync {
    fn deliver(
        self: Box<Self>,
        world: &mut World,
        to: Address,
        entity: Option<Entity>,
        from: LetterSender,
    ) -> Option<Handed>;
    fn give_back(self: Box<Self>, world: &mut World, to: Address, reason: Undeliverable);
    fn copy(&self) -> Box<dyn Parcel>;
    fn name(&self) -> &'static str;
}

impl<M: RegionMessage> Parcel for M {
    fn deliver(
        self: Box<Self>,
        world: &mut World,
        to: Address,
        entity: Option<Entity>,
        from: LetterSender,
    ) -> Option<Handed> {
        let number = write(world, Received { message: *self, to, entity, from })?;
        let find = |world: &World, number: usize| {
            let (Received { message, to, from, .. }, _) =
                world.get_resource::<Messages<Received<M>>>()?.get_message(number)?;
            Some(Letter::message(*to, *from, message.clone()))
        };
        Some(Handed::Message { find, number })
    }

    fn give_back(self: Box<Self>, world: &mut World, to: Address, reason: Undeliverable) {
        let _ = write(world, Returned { message: *self, to, reason });
    }

    fn copy(&self) -> Box<dyn Parcel> {
        Box::new(self.clone())
    }

    fn name(&self) -> &'static str {
        type_name::<M>()
    }
}

/// The number that the message has among those of its type.
fn write<T: Message>(world: &mut World, message: T) -> Option<usize> {
    let Some(mut messages) = world.get_resource_mut::<Messages<T>>() else {
        error!("{} was dropped: call register_region_message for what is sent", type_name::<T>());
        return None;
    };
    Some(messages.write(message).id)
}

/// What was handed over in a task. If that panics, the sender is told.
pub(super) enum Handed {
    /// A message lies in the world until the next tick but one.
    Message { find: fn(&World, usize) -> Option<Letter>, number: usize },
    /// What is left of a closure that ran.
    Closure(Letter),
}

impl Handed {
    /// As it was before it was handed over; a closure does nothing any more.
    pub fn into_letter(self, world: &World) -> Option<Letter> {
        match self {
            Self::Message { find, number } => find(world, number),
            Self::Closure(letter) => Some(letter),
        }
    }
}

impl Letter {
    fn new(to: Address, from: LetterSender, content: Content, bytes: usize) -> Self {
        let bytes = size_of::<Self>() + bytes;
        Self { to, from, delay: 0, content, returned: None, brings: None, bytes, stamp: None }
    }

    /// A message.
    pub fn message<M: RegionMessage>(to: Address, from: LetterSender, message: M) -> Self {
        Self::new(to, from, Content::Message(Box::new(message)), size_of::<M>())
    }

    /// A closure for whoever gets it.
    pub fn run(to: Address, from: LetterSender, run: RunInWorld) -> Self {
        let bytes = size_of_val(&*run);
        Self::new(to, from, Content::Run(Exclusive::new(run)), bytes)
    }

    /// A closure for an entity, and one for the sender if the entity cannot be found.
    pub fn run_on(id: Uuid, from: LetterSender, run: RunOnEntity, retired: Option<RunIfRetired>) -> Self {
        let bytes = size_of_val(&*run) + retired.as_ref().map_or(0, |retired| size_of_val(&**retired));
        let content = Content::RunOn(Exclusive::new(run), retired.map(Exclusive::new));
        Self::new(Address::Entity(id), from, content, bytes)
    }

    /// What it takes in memory, without what its message or closure has elsewhere.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The same letter, which counts as its sender's from now on.
    pub fn stamped(mut self, stamp: Stamp) -> Self {
        self.stamp = Some(stamp);
        self
    }

    /// Whether a game sent it, whose letters are bounded.
    pub fn is_stamped(&self) -> bool {
        self.stamp.is_some()
    }

    /// The same letter, handed over so many ticks later.
    pub fn with_delay(mut self, ticks: u64) -> Self {
        self.delay = ticks;
        self
    }

    /// The same letter, with which this entity comes into the world.
    pub fn bringing(mut self, id: Uuid) -> Self {
        self.brings = Some(id);
        self
    }

    /// Who comes into the world with it, if somebody does.
    pub fn brings(&self) -> Option<Uuid> {
        self.brings
    }

    /// The block that it goes to, if it goes to a place.
    pub fn block(&self) -> Option<BlockPos> {
        match self.to {
            Address::Place(_, block) if self.returned.is_none() => Some(block),
            _ => None,
        }
    }

    /// The column that it goes to, if it goes to a place.
    pub fn column(&self) -> Option<(DimensionId, ColumnPos)> {
        match self.to {
            Address::Place(dimension, _) => Some((dimension, self.block()?.column())),
            _ => None,
        }
    }

    /// The entity that it goes to, if it goes to one.
    pub fn entity(&self) -> Option<Uuid> {
        match self.to {
            Address::Entity(id) if self.returned.is_none() => Some(id),
            _ => None,
        }
    }

    /// Whether it is on its way back to its sender.
    pub fn is_returned(&self) -> bool {
        self.returned.is_some()
    }

    /// Why it is on its way back, if it is.
    pub fn returned(&self) -> Option<Undeliverable> {
        self.returned
    }

    /// The same letter on its way back; `None` if nobody would hear of it there.
    pub fn give_back(mut self, reason: Undeliverable) -> Option<Self> {
        if self.returned.is_some() || matches!(self.content, Content::Run(_) | Content::RunOn(_, None)) {
            return None;
        }
        self.returned = Some(reason);
        self.delay = 0;
        self.stamp = None;
        Some(self)
    }

    /// One more of the same kind; `None` for closures, which run once.
    pub fn copy(&self) -> Option<Self> {
        let Content::Message(message) = &self.content else { return None };
        let Self { to, from, delay, returned, bytes, .. } = *self;
        let content = Content::Message((**message).copy());
        Some(Self { to, from, delay, content, returned, brings: None, bytes, stamp: None })
    }

    /// What it is, for messages about it.
    pub fn name(&self) -> &'static str {
        match &self.content {
            Content::Message(message) => (**message).name(),
            Content::Run(_) | Content::RunOn(..) => "a closure",
        }
    }

    /// Hands it over in the world that it has reached. Gives it back if its entity is not there.
    pub fn hand_over(self, world: &mut World) -> Option<(Self, Undeliverable)> {
        let mut entity = None;
        if let Some(id) = self.entity() {
            entity = world.get_resource::<EntityIndex>().and_then(|index| index.entity(id));
            if entity.is_none() {
                return Some((self, Undeliverable::NoSuchEntity(id)));
            }
        }
        match self.returned {
            Some(reason) => self.come_back(world, reason),
            None => self.open(world, entity),
        }
        world.flush();
        None
    }

    /// In the world of its sender.
    fn come_back(self, world: &mut World, reason: Undeliverable) {
        match self.content {
            Content::Message(message) => message.give_back(world, self.to, reason),
            Content::RunOn(_, Some(retired)) => {
                // Noted before it runs: it may panic.
                note(world, Handed::Closure(Self { content: Content::nothing(), ..self }));
                retired.into_inner()(world, reason);
            }
            Content::Run(_) | Content::RunOn(_, None) => {}
        }
    }

    /// In the world that it was sent to; with the entity, if it was sent to one.
    fn open(self, world: &mut World, entity: Option<Entity>) {
        match self.content {
            Content::Message(message) => {
                if let Some(handed) = message.deliver(world, self.to, entity, self.from) {
                    note(world, handed);
                }
            }
            // Closures are noted before they run: they may panic.
            Content::Run(run) => {
                note(world, Handed::Closure(Self { content: Content::nothing(), ..self }));
                run.into_inner()(world);
            }
            Content::RunOn(run, retired) => {
                let content = Content::RunOn(Exclusive::new(Box::new(|_| {})), retired);
                note(world, Handed::Closure(Self { content, ..self }));
                if let Some(entity) = entity.and_then(|entity| world.get_entity_mut(entity).ok()) {
                    run.into_inner()(entity);
                }
            }
        }
    }
}

fn note(world: &mut World, handed: Handed) {
    // The main world keeps none: its panics end the app.
    if let Some(mut contents) = world.get_resource_mut::<RegionContents>() {
        contents.waiting.note(handed);
    }
}

impl fmt::Debug for Letter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { to, from, delay, returned, .. } = self;
        f.debug_struct("Letter")
            .field("content", &self.name())
            .field("to", to)
            .field("from", from)
            .field("delay", delay)
            .field("returned", returned)
            .finish()
    }
}
