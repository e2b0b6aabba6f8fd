//! Actions: what an entity does to the ground and to itself, as one.

use crate::block::{BlockComponentId, BlockComponentLayout, BlockId, BlockLayout, BlockRegistry};
use crate::chunk::BlockChange;
use crate::simulation::entities::StableId;
use crate::simulation::position::Position;
use crate::space::{BlockPos, ChunkPos, DimensionId};
use bevy::ecs::component::Mutable;
use bevy::prelude::*;
use bytemuck::{AnyBitPattern, NoUninit};
use rustc_hash::FxHashMap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::any::{Any, TypeId, type_name};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use uuid::Uuid;

/// The distance within which an action reads and changes blocks, in blocks. Another region is farther away.
pub(crate) const REACH: f32 = 16.0;
/// The number of blocks that an action changes, at most.
const MOST_BLOCKS: usize = 1_024;

/// Something that an entity does: a player digs a block and gets it as an item, builds with one, or puts it into a chest. It changes
/// blocks near the entity, their block components, and mirrored components of the entity, all or nothing.
///
/// Register it with [`register_action`](crate::plugin::TerraneAppExt::register_action), give the entity an [`Actor`], and do it with
/// [`Actions::act`](crate::view::Actions::act). The main world shows the result at once, as *predicted*. The entity's region decides.
///
/// The changes and the effects of an action are in one save. So after a crash, all of them have happened or none.
///
/// ```
/// use bevy_terrane::prelude::*;
/// use serde::{Deserialize, Serialize};
///
/// /// The number of blocks that a player has: a saved and mirrored component.
/// #[derive(Component, Clone, Debug, Default, PartialEq, Serialize, Deserialize, TypePath)]
/// struct Bag(u32);
///
/// #[derive(Serialize, Deserialize, TypePath)]
/// struct Dig(BlockPos);
///
/// impl Action for Dig {
///     fn apply(&self, context: &mut ActionContext) -> Result<(), Refusal> {
///         if context.block(self.0)? == BlockId::AIR {
///             return Err(Refusal::because("there is nothing to dig"));
///         }
///         context.set_block(self.0, BlockId::AIR)?;
///         context.get_mut::<Bag>()?.0 += 1;
///         Ok(())
///     }
/// }
///
/// let mut app = App::new();
/// app.add_plugins((MinimalPlugins, TerranePlugin::in_memory()))
///     .register_saved_component::<Bag>()
///     .mirror_region_component::<Bag>()
///     .register_action::<Dig>();
/// ```
pub trait Action: Serialize + DeserializeOwned + TypePath + Send + Sync + 'static {
    /// Checks that the action is possible, and does it. It runs in the region and, to show the result at once, in the main world or on a
    /// client, there also several times. So its result must depend only on the action and on what the context gives. After an error,
    /// nothing has changed.
    ///
    /// # Errors
    /// The reason why the action is not possible.
    fn apply(&self, context: &mut ActionContext) -> Result<(), Refusal>;

    /// What follows from the action: spawns, messages, anything in the region's world. It runs in the region only, after `apply`
    /// succeeded, in the same tick.
    fn effects(&self, done: &ActionDone, region: &mut World) {
        let _ = (done, region);
    }
}

/// An action that a region has done.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionDone {
    /// The entity that acted, in the region's world.
    pub actor: Entity,
    /// The blocks that it changed, or whose components it changed.
    pub blocks: Vec<ChangedBlock>,
}

/// A block that an action changes. If both ids are the same, it changes components of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedBlock {
    /// Its position.
    pub position: BlockPos,
    /// What it was before the action.
    pub before: BlockId,
    /// What it is after the action.
    pub after: BlockId,
}

/// Lets an entity of a region do [actions](Action). It remembers the number of the last one, so that none happens twice. It is saved with
/// its entity, and mirrored. Every [`Player`](crate::simulation::Player) has one.
#[derive(Component, Clone, Copy, Debug, Default, Serialize, Deserialize, Reflect)]
#[type_path = "bevy_terrane"]
#[require(StableId)]
#[reflect(Component, Default, Clone)]
pub struct Actor {
    session: u64,
    number: u64,
    /// The actions that it may do at once, and when that was.
    #[serde(skip)]
    allowance: f32,
    #[serde(skip)]
    refilled: Option<Duration>,
}

impl PartialEq for Actor {
    fn eq(&self, other: &Self) -> bool {
        (self.session, self.number) == (other.session, other.number)
    }
}

impl Actor {
    /// The session and the number of the last action that was tried. Sessions count up, and so do the numbers in each.
    pub fn last(&self) -> (u64, u64) {
        (self.session, self.number)
    }

    /// Uses up the number of an action. Returns `false` if it was used before.
    pub(super) fn use_up(&mut self, session: u64, number: u64) -> bool {
        let is_new = (session, number) > (self.session, self.number);
        if is_new {
            (self.session, self.number) = (session, number);
        }
        is_new
    }

    /// Returns `true` if the actor has not done too many actions lately: this many a second, and as many at once.
    pub(super) fn has_time(&mut self, now: Duration, per_second: f32) -> bool {
        let since = self.refilled.map_or(f32::INFINITY, |refilled| now.saturating_sub(refilled).as_secs_f32());
        self.refilled = Some(now);
        self.allowance = (self.allowance + since * per_second).min(per_second);
        let has_time = self.allowance >= 1.0;
        self.allowance -= f32::from(u8::from(has_time));
        has_time
    }
}

/// Why an action was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
pub enum Refusal {
    /// The game refuses it, for this reason.
    #[error("{0}")]
    Because(String),
    /// The block is farther than 16 blocks from the entity.
    #[error("block {0} is out of reach")]
    OutOfReach(BlockPos),
    /// The block is not loaded, or lies outside of the dimension's heights.
    #[error("block {0} is not loaded, or outside of the dimension")]
    NotLoaded(BlockPos),
    /// No block type has the id to be set.
    #[error("block {0} cannot be set: no type is registered under that id")]
    NoSuchBlock(BlockPos),
    /// The action changes more than 1,024 blocks.
    #[error("the action changes too many blocks")]
    TooManyBlocks,
    /// The entity does not have the component, or it is not mirrored.
    #[error("the entity has no component {0}, or mirror_region_component was not called for it")]
    NoComponent(String),
    /// The entity has no [`Actor`].
    #[error("the entity has no Actor component")]
    NotAnActor,
    /// The entity is not loaded, is on another server, or left the world before it could act.
    #[error("the entity is not here")]
    NotHere,
    /// The entity has done an action with this or a higher number before.
    #[error("the action was done before, or a later one was")]
    Repeated,
    /// The entity acts too often.
    #[error("too many actions in a short time")]
    TooMany,
    /// The region halted in the tick in which it did the action, and what it did is undone.
    #[error("the region halted while it did the action")]
    Halted,
    /// The server did not answer, or the connection was lost. The action may have been done.
    #[error("the server did not answer")]
    Unanswered,
    /// The block does not have the block component, or it has another size.
    #[error("block {0} does not have the component {1}, or not in this size")]
    NoBlockComponent(BlockPos, String),
    /// The action is larger than 1,024 bytes, so a client cannot send it.
    #[error("the action is too large to be sent")]
    TooLarge,
    /// The game did not register the action with `register_action`, on this side or on the other.
    #[error("{0} is not registered: call register_action for it")]
    Unregistered(String),
}

impl Refusal {
    /// A refusal of the game.
    pub fn because(reason: impl Into<String>) -> Self {
        Self::Because(reason.into())
    }
}

/// What an action may look at and change.
pub struct ActionContext<'a> {
    actor: Uuid,
    position: Position,
    elapsed: Duration,
    types: &'a BlockRegistry,
    /// The number of a mirrored component type.
    number: &'a dyn Fn(TypeId) -> Option<usize>,
    ground: Ground<'a>,
    values: Values<'a>,
    reads: BTreeSet<ChunkPos>,
    outcome: Outcome,
}

/// The blocks before an action, and their components.
#[derive(Clone, Copy)]
pub(crate) struct Ground<'a> {
    /// The block at a position; `None` if it is not loaded.
    pub block: &'a dyn Fn(BlockPos) -> Option<BlockId>,
    /// A component of it.
    pub component: &'a dyn Fn(BlockPos, BlockComponentId) -> Option<Vec<u8>>,
}

/// A component of any type.
type ComponentValue = Box<dyn Any + Send + Sync>;

/// Where the components of the acting entity are.
#[derive(Clone, Copy)]
pub(crate) enum Values<'a> {
    /// In a region.
    Entity(EntityRef<'a>),
    /// Copies, by number.
    Copies(&'a FxHashMap<usize, ComponentValue>),
}

/// What an action changes.
#[derive(Default)]
pub(crate) struct Outcome {
    pub blocks: Vec<ChangedBlock>,
    /// Components of blocks, as they are after the change of these.
    pub of_blocks: Vec<(BlockPos, BlockComponentId, Vec<u8>)>,
    /// The components of the entity, by number.
    pub components: FxHashMap<usize, ComponentValue>,
}

impl Outcome {
    /// All that changes on the ground, in this order.
    pub fn changes(&self) -> Vec<(BlockPos, BlockChange)> {
        let blocks = self.blocks.iter().filter(|changed| changed.before != changed.after);
        let blocks = blocks.map(|changed| (changed.position, BlockChange::Block(changed.after)));
        let values = self.of_blocks.iter().cloned();
        blocks.chain(values.map(|(position, id, value)| (position, BlockChange::Component(id, value)))).collect()
    }
}

/// The entity of an [`ActionContext`], and where it is when.
pub(crate) struct Acting<'a> {
    pub actor: Uuid,
    pub position: Position,
    pub elapsed: Duration,
    pub values: Values<'a>,
}

impl<'a> ActionContext<'a> {
    pub(crate) fn new(
        Acting { actor, position, elapsed, values }: Acting<'a>,
        types: &'a BlockRegistry,
        number: &'a dyn Fn(TypeId) -> Option<usize>,
        ground: Ground<'a>,
    ) -> Self {
        let (reads, outcome) = Default::default();
        Self { actor, position, elapsed, types, number, ground, values, reads, outcome }
    }

    /// Does an action. Returns what it changes, and the chunks that it looked at.
    pub(crate) fn run(mut self, action: &dyn ErasedAction) -> (Result<Outcome, Refusal>, BTreeSet<ChunkPos>) {
        let result = action.apply(&mut self);
        (result.map(|()| self.outcome), self.reads)
    }

    /// The stable id of the acting entity.
    pub fn actor(&self) -> Uuid {
        self.actor
    }

    /// The position of the acting entity. In the main world it may differ a little from that in the region.
    pub fn position(&self) -> Position {
        self.position
    }

    /// The time on the dimension's clock. In the main world it is the time of the newest news of the entity, so that a check of a time may be
    /// shown as refused and be done all the same.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// The block types.
    pub fn types(&self) -> &BlockRegistry {
        self.types
    }

    /// The block at a position, with the changes that the action has made so far.
    ///
    /// # Errors
    /// The block is out of reach or not loaded.
    pub fn block(&mut self, position: BlockPos) -> Result<BlockId, Refusal> {
        // From the entity to the nearest point of the block.
        let corner = self.position.relative_to(position);
        let distance = corner.distance(corner.clamp(Vec3::ZERO, Vec3::ONE));
        // A position that is not a number reaches nothing.
        if distance.is_nan() || distance > REACH {
            return Err(Refusal::OutOfReach(position));
        }
        self.reads.insert(position.chunk());
        let changed = self.outcome.blocks.iter().rev().find(|changed| changed.position == position);
        let block = changed.map(|changed| changed.after).or_else(|| (self.ground.block)(position));
        block.ok_or(Refusal::NotLoaded(position))
    }

    /// Sets the block at a position, and returns the block that was there.
    ///
    /// # Errors
    /// The block is out of reach or not loaded, the type is not registered, or the action has changed 1,024 blocks already.
    pub fn set_block(&mut self, position: BlockPos, block: BlockId) -> Result<BlockId, Refusal> {
        let before = self.block(position)?;
        if !self.types.contains(block) {
            return Err(Refusal::NoSuchBlock(position));
        }
        if before != block {
            let is_left = |changed: &ChangedBlock| changed.position != position || changed.before != changed.after;
            self.outcome.blocks.retain(is_left);
            self.outcome.of_blocks.retain(|(of, ..)| *of != position);
            self.change(ChangedBlock { position, before, after: block })?;
        }
        Ok(before)
    }

    fn change(&mut self, changed: ChangedBlock) -> Result<(), Refusal> {
        if self.outcome.blocks.len() >= MOST_BLOCKS {
            return Err(Refusal::TooManyBlocks);
        }
        self.outcome.blocks.push(changed);
        Ok(())
    }

    /// A [component](crate::block::BlockComponent) of the block at a position, in layer 0, with the changes that the action has made so
    /// far. `None` if the block's type does not have it.
    ///
    /// # Errors
    /// The block is out of reach or not loaded.
    pub fn component(&mut self, position: BlockPos, component: &str) -> Result<Option<Vec<u8>>, Refusal> {
        let block = self.block(position)?;
        let Some(id) = self.types.component(component) else { return Ok(None) };
        let mut own = self.outcome.of_blocks.iter();
        if let Some((.., value)) = own.find(|(of, component, _)| (*of, *component) == (position, id)) {
            return Ok(Some(value.clone()));
        }
        let is_new = |changed: &ChangedBlock| changed.position == position && changed.before != changed.after;
        Ok(match self.outcome.blocks.iter().any(is_new) {
            true => self.types.component_layout(block, id).map(|layout| layout.unset()),
            false => (self.ground.component)(position, id),
        })
    }

    /// Like [`component`](Self::component), as a value of a type of exactly the component's size.
    ///
    /// # Errors
    /// The block is out of reach or not loaded, or the component has another size.
    pub fn component_as<T: AnyBitPattern>(
        &mut self,
        position: BlockPos,
        component: &str,
    ) -> Result<Option<T>, Refusal> {
        let unfit = |_| Refusal::NoBlockComponent(position, component.to_owned());
        let value = self.component(position, component)?;
        value.map(|value| bytemuck::try_pod_read_unaligned(&value)).transpose().map_err(unfit)
    }

    /// Sets a [component](crate::block::BlockComponent) of the block at a position, in layer 0.
    ///
    /// # Errors
    /// The block is out of reach or not loaded, its type does not have the component, the component has another size, or the action has
    /// changed 1,024 blocks already.
    pub fn set_component(&mut self, position: BlockPos, component: &str, value: &[u8]) -> Result<(), Refusal> {
        let block = self.block(position)?;
        let layout = self.types.component(component).and_then(|id| self.types.component_layout(block, id));
        let fits = |layout: &BlockComponentLayout| layout.size.is_none_or(|size| size as usize == value.len());
        let unfit = || Refusal::NoBlockComponent(position, component.to_owned());
        let BlockComponentLayout { id, .. } = layout.filter(fits).ok_or_else(unfit)?;
        if self.outcome.blocks.iter().all(|changed| changed.position != position) {
            self.change(ChangedBlock { position, before: block, after: block })?;
        }
        self.outcome.of_blocks.retain(|(of, component, _)| (*of, *component) != (position, id));
        self.outcome.of_blocks.push((position, id, value.to_vec()));
        Ok(())
    }

    /// Like [`set_component`](Self::set_component), with the bytes of a value.
    ///
    /// # Errors
    /// As for [`set_component`](Self::set_component).
    pub fn set_component_as<T: NoUninit>(
        &mut self,
        position: BlockPos,
        component: &str,
        value: &T,
    ) -> Result<(), Refusal> {
        self.set_component(position, component, bytemuck::bytes_of(value))
    }

    /// A mirrored component of the acting entity, with the changes that the action has made so far.
    ///
    /// # Errors
    /// The entity does not have it, or it is not mirrored.
    pub fn get<C: Component>(&self) -> Result<&C, Refusal> {
        let missing = || Refusal::NoComponent(type_name::<C>().to_owned());
        let number = (self.number)(TypeId::of::<C>()).ok_or_else(missing)?;
        let copies = match self.values {
            Values::Entity(_) => None,
            Values::Copies(copies) => copies.get(&number),
        };
        let copy = self.outcome.components.get(&number).or(copies).and_then(|value| value.downcast_ref::<C>());
        let own = || match self.values {
            Values::Entity(entity) => entity.get::<C>(),
            Values::Copies(_) => None,
        };
        copy.or_else(own).ok_or_else(missing)
    }

    /// A mirrored component of the acting entity, to be changed.
    ///
    /// # Errors
    /// The entity does not have it, or it is not mirrored.
    pub fn get_mut<C: Component<Mutability = Mutable> + Clone>(&mut self) -> Result<&mut C, Refusal> {
        let missing = || Refusal::NoComponent(type_name::<C>().to_owned());
        let number = (self.number)(TypeId::of::<C>()).ok_or_else(missing)?;
        if !self.outcome.components.contains_key(&number) {
            let copy: ComponentValue = Box::new(self.get::<C>()?.clone());
            self.outcome.components.insert(number, copy);
        }
        let value = self.outcome.components.get_mut(&number);
        value.and_then(|value| value.downcast_mut::<C>()).ok_or_else(missing)
    }
}

/// An action of any type.
pub(crate) trait ErasedAction: Send + Sync {
    fn apply(&self, context: &mut ActionContext) -> Result<(), Refusal>;
    fn effects(&self, done: &ActionDone, region: &mut World);
    fn name(&self) -> &'static str;
    fn as_any(&self) -> &dyn Any;
}

impl<A: Action> ErasedAction for A {
    fn apply(&self, context: &mut ActionContext) -> Result<(), Refusal> {
        Action::apply(self, context)
    }

    fn effects(&self, done: &ActionDone, region: &mut World) {
        Action::effects(self, done, region);
    }

    fn name(&self) -> &'static str {
        A::type_path()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// An action on its way to its entity.
#[derive(Clone)]
pub(crate) struct ActionOrder {
    /// The number under which the main world waits for the decision.
    pub id: u64,
    pub actor: Uuid,
    pub session: u64,
    pub number: u64,
    pub action: Arc<dyn ErasedAction>,
}

/// What has become of an action.
#[derive(Clone, Debug)]
pub(crate) struct DecidedAction {
    pub id: u64,
    pub actor: Uuid,
    /// The dimension and the chunks that it changed, if it was done.
    pub result: Result<(DimensionId, Vec<ChunkPos>), Refusal>,
}

impl ActionOrder {
    /// The decision about this order.
    pub fn decided(&self, result: Result<(DimensionId, Vec<ChunkPos>), Refusal>) -> DecidedAction {
        DecidedAction { id: self.id, actor: self.actor, result }
    }
}

/// An entity is about to act: `apply` has succeeded, and its changes follow, unless an observer refuses the action. Here a game checks
/// rights. It is triggered in the region, in the tick that runs the action. Observers only check: what they change of the blocks and the
/// components that the action changes is overwritten.
///
/// ```
/// use bevy_terrane::prelude::*;
///
/// /// Nobody changes the ground around the origin. Add it with `region.add_observer(protect_spawn)`.
/// fn protect_spawn(mut attempt: On<ActionAttempt>) {
///     if attempt.blocks().iter().any(|changed| changed.position.x.abs() < 16 && changed.position.z.abs() < 16) {
///         attempt.refuse(Refusal::because("this is not your ground"));
///     }
/// }
///
/// # App::new().add_plugins((MinimalPlugins, TerranePlugin::in_memory()))
/// .add_region_plugins(|region| {
///     region.add_observer(protect_spawn);
/// });
/// ```
#[derive(EntityEvent, Clone)]
pub struct ActionAttempt {
    /// The acting entity.
    #[event_target]
    pub actor: Entity,
    blocks: Vec<ChangedBlock>,
    action: Arc<dyn ErasedAction>,
    pub(super) refusal: Option<Refusal>,
}

impl ActionAttempt {
    pub(super) fn new(actor: Entity, blocks: Vec<ChangedBlock>, action: Arc<dyn ErasedAction>) -> Self {
        Self { actor, blocks, action, refusal: None }
    }

    pub(super) fn into_blocks(self) -> Vec<ChangedBlock> {
        self.blocks
    }

    /// The blocks that it would change, or whose components it would change.
    pub fn blocks(&self) -> &[ChangedBlock] {
        &self.blocks
    }

    /// The action, if it is of this type.
    pub fn action<A: Action>(&self) -> Option<&A> {
        self.action.as_any().downcast_ref()
    }

    /// Refuses the action. The first reason counts.
    pub fn refuse(&mut self, reason: Refusal) {
        self.refusal.get_or_insert(reason);
    }
}

/// The functions of the registered actions, by their type paths.
#[derive(Clone, Default)]
pub(crate) struct ActionTypes(FxHashMap<&'static str, ActionFunctions>);

/// Writes and reads an action of one type.
#[derive(Clone, Copy)]
struct ActionFunctions {
    encode: fn(&dyn Any) -> Option<Vec<u8>>,
    decode: fn(&[u8]) -> Result<Arc<dyn ErasedAction>, String>,
}

impl ActionTypes {
    pub fn register<A: Action>(&mut self) {
        let functions = ActionFunctions {
            encode: |action| postcard::to_allocvec(action.downcast_ref::<A>()?).ok(),
            decode: |bytes| Ok(Arc::new(crate::bytes::value::<A>(bytes)?)),
        };
        self.0.insert(A::type_path(), functions);
    }

    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The bytes of an action; `None` if its type is not registered.
    pub fn encode(&self, action: &dyn ErasedAction) -> Option<Vec<u8>> {
        (self.0.get(action.name())?.encode)(action.as_any())
    }

    pub fn decode(&self, name: &str, bytes: &[u8]) -> Result<Arc<dyn ErasedAction>, Refusal> {
        let functions = self.0.get(name).ok_or_else(|| Refusal::Unregistered(name.to_owned()))?;
        (functions.decode)(bytes).map_err(|error| Refusal::Because(format!("{name} cannot be read: {error}")))
    }
}
