//! Messages and closures that travel between worlds: to a place, to an entity, to the main world, to all regions.

use crate::region::RegionId;
use crate::simulation::actions::ActionOrder;
use crate::simulation::columns::column_work::OrderedWork;
use crate::simulation::letters::shared_messages::SharedMessages;
use crate::space::{BlockPos, ColumnPos, DimensionId};
use crate::storage::EntityRecord;
use crate::storage::servers::CrossingId;
use bevy::ecs::message::Messages;
use bevy::platform::cell::SyncCell;
use bevy::prelude::*;
use std::any::{Any, type_name};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use uuid::Uuid;

/// A type that can be sent between worlds once `register_region_message` has been called for it. A message to all regions is
/// cloned for each of them, and a message that a panicking tick had received is cloned to return it.
pub trait RegionMessage: Clone + Send + Sync + 'static {}
impl<M: Clone + Send + Sync + 'static> RegionMessage for M {}

/// The destination of a message or a closure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// To the region that owns the block's column at the moment of delivery. The column is loaded for it.
    Place(DimensionId, BlockPos),
    /// To the entity with this stable id, in any region.
    Entity(Uuid),
    /// To the main world.
    Main,
    /// To each region of a dimension, or of all dimensions, that exists when the coordinator forwards the letter.
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

/// The sender of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LetterSender {
    /// The main world.
    #[default]
    Main,
    /// A region.
    Region {
        /// The region's dimension.
        dimension: DimensionId,
        /// The region's id at the time of sending.
        region: RegionId,
        /// One of the region's columns. If the region no longer exists, the current owner of this column stands in for it.
        column: Option<ColumnPos>,
    },
    /// Another server of a shared world, or this one before it was restarted. It gets nothing back.
    Server,
}

impl fmt::Display for LetterSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Main => f.write_str("the main world"),
            Self::Region { dimension, region, .. } => write!(f, "{region} of {dimension}"),
            Self::Server => f.write_str("another server"),
        }
    }
}

/// The reason why a message or closure did not reach its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undeliverable {
    /// No entity with this stable id is in a region or on its way to one: it is despawned or not loaded. In a world that several
    /// servers share, a shared message has the ground of its entity loaded instead.
    #[error("no entity {0} is loaded")]
    NoSuchEntity(Uuid),
    /// The dimension is not open.
    #[error("{0} is not open")]
    DimensionNotOpen(DimensionId),
    /// The column was unloaded before the delay was over.
    #[error("column {0} was unloaded before the delay was over")]
    Unloaded(ColumnPos),
    /// The region halted in the tick that received the letter. The effects of that tick are undone.
    #[error("{0} halted in the tick in which it was handed over")]
    Halted(RegionId),
    /// The place is on another server of a shared world, and only messages whose type is registered with
    /// `register_shared_message` go there.
    #[error("{0} is on another server, where only shared messages go")]
    OtherServer(ColumnPos),
    /// The letters in flight from this sender, or from all senders, have reached their limit
    /// (`Limits::letters`). Some must arrive first.
    #[error("too many letters are on their way")]
    TooManyLetters,
}

/// A message from another world or from this one. Read it with `MessageReader<Received<M>>`.
#[derive(Message, Clone, Debug, PartialEq)]
pub struct Received<M: RegionMessage> {
    /// The message.
    pub message: M,
    /// The address it was sent to.
    pub to: Address,
    /// The target entity in this world, if the message was sent to an entity.
    pub entity: Option<Entity>,
    /// The sender.
    pub from: LetterSender,
}

/// A message from this world that could not be delivered. Read it with `MessageReader<Returned<M>>`.
#[derive(Message, Clone, Debug, PartialEq)]
pub struct Returned<M: RegionMessage> {
    /// The message.
    pub message: M,
    /// The address it was sent to.
    pub to: Address,
    /// The reason why it was returned.
    pub reason: Undeliverable,
}

/// A closure that runs once in a world.
pub type RunInWorld = Box<dyn FnOnce(&mut World) + Send>;
/// A closure that runs once in the sender's world if the closure that was sent cannot run.
pub type RunIfRetired = Box<dyn FnOnce(&mut World, Undeliverable) + Send>;
/// A closure that runs once on an entity, wherever it is.
pub type RunOnEntity = Box<dyn FnOnce(EntityWorldMut) + Send>;

/// A message or a closure in flight.
pub struct Letter {
    /// The destination.
    pub to: Address,
    /// The sender.
    pub from: LetterSender,
    /// The number of ticks of the target's region that the letter waits there; 0 for the next tick.
    pub delay: u64,
    pub(in crate::simulation) content: Content,
    /// The reason for the return, if the letter is on its way back to its sender.
    pub returned: Option<Undeliverable>,
    /// Its size in memory in bytes, without heap data of its message or closure.
    pub bytes: usize,
    /// Set if a game sent the letter. Letters of a game are limited.
    pub stamp: Option<Stamp>,
    /// Its number in the store if it is stored on its way. The save that has its effect removes it there.
    pub crossing: Option<CrossingId>,
}

/// The letter's share of its sender's limit. Dropping the stamp, when the letter is delivered or dropped, gives the share
/// back.
pub struct Stamp {
    pub bytes: usize,
    /// The counter to which `bytes` is added on drop.
    pub returned: Arc<AtomicUsize>,
}

impl Drop for Stamp {
    fn drop(&mut self) {
        self.returned.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

/// The content of a letter. The last four variants are internal.
pub(in crate::simulation) enum Content {
    /// Shared by the copies for several regions, so that the game's `Clone` runs where the message is delivered.
    Message(Arc<dyn Parcel>),
    Run(SyncCell<RunInWorld>),
    RunOn(SyncCell<RunOnEntity>, Option<SyncCell<RunIfRetired>>),
    /// What its entity is to do.
    Action(Box<ActionOrder>),
    /// A player who logs in, or an entity from another server.
    Arrival(Box<EntityRecord>),
    /// Work for the end of the tick.
    Work(SyncCell<Box<OrderedWork>>),
    /// Content that has been delivered: its name and, for a message, its place.
    Spent(&'static str, Option<Written>),
}

/// The place of a delivered message: its number among all of its type in this world, and the function that finds and clones it.
pub type Written = (usize, fn(&World, usize) -> Option<Arc<dyn Parcel>>);

/// A type-erased message.
pub trait Parcel: Send + Sync {
    fn deliver(
        self: Arc<Self>,
        world: &mut World,
        to: Address,
        entity: Option<Entity>,
        from: LetterSender,
    ) -> Option<Written>;
    fn give_back(self: Arc<Self>, world: &mut World, to: Address, reason: Undeliverable);
    fn name(&self) -> &'static str;
    fn as_any(&self) -> &dyn Any;
}

impl<M: RegionMessage> Parcel for M {
    fn deliver(
        self: Arc<Self>,
        world: &mut World,
        to: Address,
        entity: Option<Entity>,
        from: LetterSender,
    ) -> Option<Written> {
        let number = write(world, Received { message: Arc::unwrap_or_clone(self), to, entity, from })?;
        let find = |world: &World, number| {
            let (received, _) = world.get_resource::<Messages<Received<M>>>()?.get_message(number)?;
            Some(Arc::new(received.message.clone()) as Arc<dyn Parcel>)
        };
        Some((number, find))
    }

    fn give_back(self: Arc<Self>, world: &mut World, to: Address, reason: Undeliverable) {
        write(world, Returned { message: Arc::unwrap_or_clone(self), to, reason });
    }

    fn name(&self) -> &'static str {
        type_name::<M>()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Writes the message and returns its number.
fn write<T: Message>(world: &mut World, message: T) -> Option<usize> {
    match world.get_resource_mut::<Messages<T>>() {
        Some(mut messages) => Some(messages.write(message).id),
        None => {
            error!("{} was dropped: call register_region_message for each sent type", type_name::<T>());
            None
        }
    }
}

impl Letter {
    fn new(to: Address, from: LetterSender, content: Content, bytes: usize) -> Self {
        let bytes = size_of::<Self>() + bytes;
        Self { to, from, delay: 0, content, returned: None, bytes, stamp: None, crossing: None }
    }

    /// A letter with a message.
    pub fn message<M: RegionMessage>(to: Address, from: LetterSender, message: M) -> Self {
        Self::new(to, from, Content::Message(Arc::new(message)), size_of::<M>())
    }

    /// A letter with a closure for the world at `to`.
    pub fn run(to: Address, from: LetterSender, run: RunInWorld) -> Self {
        let bytes = size_of_val(&*run);
        Self::new(to, from, Content::Run(SyncCell::new(run)), bytes)
    }

    /// A letter with a closure for an entity, and one for the sender if the entity cannot be found.
    pub fn run_on(id: Uuid, from: LetterSender, run: RunOnEntity, retired: Option<RunIfRetired>) -> Self {
        let bytes = size_of_val(&*run) + retired.as_ref().map_or(0, |retired| size_of_val(&**retired));
        let content = Content::RunOn(SyncCell::new(run), retired.map(SyncCell::new));
        Self::new(Address::Entity(id), from, content, bytes)
    }

    /// A letter with an action for its entity.
    pub fn action(order: ActionOrder) -> Self {
        let to = Address::Entity(order.actor);
        Self::new(to, LetterSender::Main, Content::Action(Box::new(order)), size_of::<ActionOrder>())
    }

    /// A letter with a stored entity, which appears at its place: a player who logs in, or an entity from another server.
    pub fn arrival(record: EntityRecord) -> Self {
        let to = Address::Place(record.dimension, record.block);
        Self::new(to, LetterSender::Main, Content::Arrival(Box::new(record)), size_of::<EntityRecord>())
    }

    /// The message of this letter in the form in which another server gets it, if its type is shared.
    pub fn shared(&self, messages: &SharedMessages) -> Option<(String, Vec<u8>)> {
        match &self.content {
            Content::Message(message) if self.returned.is_none() => messages.encode(&**message),
            _ => None,
        }
    }

    /// A letter from another server.
    pub fn from_server(
        crossing: CrossingId,
        to: Address,
        messages: &SharedMessages,
        kind: &str,
        bytes: &[u8],
    ) -> Result<Self, String> {
        let content = Content::Message(messages.decode(kind, bytes)?);
        Ok(Self { crossing: Some(crossing), ..Self::new(to, LetterSender::Server, content, bytes.len()) })
    }

    /// A letter with work for the region that owns a block's column.
    pub fn work(dimension: DimensionId, block: BlockPos, work: OrderedWork) -> Self {
        let content = Content::Work(SyncCell::new(Box::new(work)));
        Self::new(Address::Place(dimension, block), LetterSender::Main, content, size_of::<OrderedWork>())
    }

    /// The same letter, delivered this many ticks later.
    pub fn with_delay(mut self, ticks: u64) -> Self {
        self.delay = ticks;
        self
    }

    /// The action that the letter brings, if any.
    pub fn order(&self) -> Option<&ActionOrder> {
        match &self.content {
            Content::Action(order) => Some(order),
            _ => None,
        }
    }

    /// The entity that arrives with the letter, if any.
    pub fn brings(&self) -> Option<Uuid> {
        match &self.content {
            Content::Arrival(record) => Some(record.id),
            _ => None,
        }
    }

    /// The destination block, if the letter goes to a place.
    pub fn block(&self) -> Option<BlockPos> {
        match self.to {
            Address::Place(_, block) if self.returned.is_none() => Some(block),
            _ => None,
        }
    }

    /// The destination column, if the letter goes to a place.
    pub fn column(&self) -> Option<(DimensionId, ColumnPos)> {
        match self.to {
            Address::Place(dimension, _) => Some((dimension, self.block()?.column())),
            _ => None,
        }
    }

    /// The destination entity, if the letter goes to one.
    pub fn entity(&self) -> Option<Uuid> {
        match self.to {
            Address::Entity(id) if self.returned.is_none() => Some(id),
            _ => None,
        }
    }

    /// The same letter on its way back; `None` if the sender would not be notified.
    pub fn give_back(mut self, reason: Undeliverable) -> Option<Self> {
        let is_heard_of = matches!(self.content, Content::Message(_) | Content::RunOn(_, Some(_)));
        if self.returned.is_some() || !is_heard_of || self.from == LetterSender::Server {
            return None;
        }
        self.returned = Some(reason);
        self.delay = 0;
        self.stamp = None;
        Some(self)
    }

    /// A copy of a message letter; `None` for all other letters, which are delivered only once.
    pub fn copy(&self) -> Option<Self> {
        let Content::Message(message) = &self.content else { return None };
        Some(self.with_content(Content::Message(message.clone())))
    }

    fn with_content(&self, content: Content) -> Self {
        let Self { to, from, delay, returned, bytes, crossing, .. } = *self;
        Self { to, from, delay, content, returned, bytes, stamp: None, crossing }
    }

    /// The letter that replaces this one on delivery. If the tick panics, its effects are undone and the trace identifies the sender.
    /// The trace of a closure does nothing; a message is looked up where it was [`written`](Self::note_written).
    pub(in crate::simulation) fn trace(&mut self) -> Option<Self> {
        let name = self.name();
        let content = match &mut self.content {
            Content::Message(_) if self.returned.is_some() && self.crossing.is_none() => return None,
            Content::RunOn(_, retired) if self.returned.is_none() => {
                Content::RunOn(SyncCell::new(Box::new(|_| {})), retired.take())
            }
            Content::Message(_) | Content::Run(_) | Content::RunOn(..) | Content::Spent(..) => {
                Content::Spent(name, None)
            }
            Content::Action(order) => Content::Action(order.clone()),
            Content::Arrival(record) => Content::Arrival(record.clone()),
            // The work reports by itself.
            Content::Work(_) => return None,
        };
        Some(self.with_content(content))
    }

    /// Notes in this trace where its message was written.
    pub(in crate::simulation) fn note_written(&mut self, written: Written) {
        if let Content::Spent(_, place) = &mut self.content {
            *place = Some(written);
        }
    }

    /// Turns the trace of a message that was delivered in this world back into a letter with that message, unless a system has
    /// removed the message or the game's `Clone` panics.
    pub(in crate::simulation) fn recover(mut self, world: &World) -> Self {
        if let Content::Spent(_, Some((number, find))) = self.content
            && let Ok(Some(message)) = catch_unwind(AssertUnwindSafe(|| find(world, number)))
        {
            self.content = Content::Message(message);
        }
        self
    }

    /// The letter's name for log messages.
    pub fn name(&self) -> &'static str {
        match &self.content {
            Content::Message(message) => (**message).name(),
            Content::Run(_) | Content::RunOn(..) => "a closure",
            Content::Action(order) => order.action.name(),
            Content::Arrival(_) => "an entity that arrives",
            Content::Work(_) => "work on a column",
            Content::Spent(name, _) => name,
        }
    }

    /// Delivers the letter in its destination world, to `entity` if it was sent to one. Returns the place of a message.
    pub fn hand_over(self, world: &mut World, entity: Option<Entity>) -> Option<Written> {
        let Self { to, from, content, returned, .. } = self;
        match (content, returned) {
            (Content::Message(message), None) => return message.deliver(world, to, entity, from),
            (Content::Message(message), Some(reason)) => message.give_back(world, to, reason),
            (Content::Run(run), None) => SyncCell::to_inner(run)(world),
            (Content::RunOn(run, _), None) => {
                if let Some(entity) = entity.and_then(|entity| world.get_entity_mut(entity).ok()) {
                    SyncCell::to_inner(run)(entity);
                }
            }
            (Content::RunOn(_, Some(retired)), Some(reason)) => SyncCell::to_inner(retired)(world, reason),
            _ => {}
        }
        world.flush();
        None
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
