#![doc = include_str!("../README.md")]

mod read;
mod value;
mod write;

pub use read::{ArchetypeLook, ComponentLook, Cursor, EntityLook, Filter, Found, Listing};
pub use value::Value;

use bevy::ecs::system::SystemParam;
use bevy::prelude::*;
use bevy_terrane::region::RegionId;
use bevy_terrane::simulation::{RegionProfile, RegionProfiler, Undeliverable};
use bevy_terrane::space::{BlockPos, DimensionId};
use bevy_terrane::view::{PublishedColumns, RegionCommands, WorldStatistics};
use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};
use std::time::Duration;
use thiserror::Error;
use uuid::Uuid;

/// The time of a tick after which an answer begins no further archetype, run of entities or component.
const BUDGET: Duration = Duration::from_micros(200);

/// Asks regions, from the main world. See the [crate](self).
#[derive(SystemParam)]
pub struct Inspector<'w, 's> {
    commands: Commands<'w, 's>,
    columns: Res<'w, PublishedColumns>,
    statistics: Res<'w, WorldStatistics>,
}

/// A question to a region. Dropping it does not cancel the question.
#[derive(Debug)]
pub struct Asked<T> {
    answers: Receiver<Result<T, InspectError>>,
    is_taken: bool,
}

/// A question that cannot be asked, or is answered with an error.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum InspectError {
    /// The region does not exist, or the main world sees none of its columns.
    #[error("{0} does not exist, or has no ground that the main world sees")]
    NoSuchRegion(RegionId),
    /// The region is halted: it answers nothing until it is restarted.
    #[error("{0} is halted, and answers once it is restarted")]
    Halted(RegionId),
    /// The entity cannot be reached.
    #[error(transparent)]
    Unreachable(#[from] Undeliverable),
    /// The question was dropped: its place is not loaded any more or is on another server, the tick panicked, too many letters were
    /// under way, or the app ends.
    #[error(
        "the question was dropped: the ground is not loaded here any more, its tick failed, or too many letters were under way"
    )]
    Dropped,
    /// The entity does not have this component, or its type is not registered.
    #[error("the entity has no component {0}, or its type is not registered with #[reflect(Component)]")]
    NoComponent(String),
    /// The place is not loaded, or the main world does not see it.
    #[error("the ground at {0} is not loaded")]
    NotLoaded(BlockPos),
    /// The entity is a player, and a player's end is a matter of the game.
    #[error("entity {0} is a player: log it out instead")]
    Player(Uuid),
    /// The component must not be changed in this way.
    #[error("{component} must not be changed: {reason}")]
    Refused {
        /// The component's type path.
        component: String,
        /// Why it must not.
        reason: &'static str,
    },
    /// The value is not one of the component's type.
    #[error("this is not a value of {component}: {reason}")]
    WrongValue {
        /// The component's type path.
        component: String,
        /// Why it is none.
        reason: String,
    },
}

impl<T> Asked<T> {
    fn new() -> (Self, Reply<T>) {
        let (reply, answers) = bounded(1);
        (Self { answers, is_taken: false }, Reply(reply))
    }

    /// Takes the answer; `None` while there is none, and after it was taken.
    pub fn take(&mut self) -> Option<Result<T, InspectError>> {
        let answer = match self.answers.try_recv() {
            Ok(answer) => answer,
            Err(TryRecvError::Disconnected) if !self.is_taken => Err(InspectError::Dropped),
            Err(_) => return None,
        };
        self.is_taken = true;
        Some(answer)
    }
}

/// The other half of [`Asked`], in the region.
struct Reply<T>(Sender<Result<T, InspectError>>);

impl<T> Reply<T> {
    fn give(&self, answer: Result<T, InspectError>) {
        // The caller may have dropped the question.
        let _ = self.0.try_send(answer);
    }
}

impl Inspector<'_, '_> {
    /// Lists the entities of a region that have a stable id and match the filter, up to 256 a page; `after` is the last page's
    /// [`Listing::next`].
    ///
    /// # Errors
    /// The region is halted, or the main world sees none of its ground.
    pub fn list(
        &mut self,
        (dimension, region): (DimensionId, RegionId),
        filter: Filter,
        after: Option<Cursor>,
    ) -> Result<Asked<Listing>, InspectError> {
        let place = self.place_in(dimension, region)?;
        let (asked, reply) = Asked::new();
        self.commands.run_in_region(dimension, place, move |world| reply.give(Ok(read::list(world, &filter, after))));
        Ok(asked)
    }

    /// Reads an entity with its components, wherever it is. If it was last seen in a halted region, give that region.
    ///
    /// # Errors
    /// That region is halted.
    pub fn look(&mut self, id: Uuid, last: Option<(DimensionId, RegionId)>) -> Result<Asked<EntityLook>, InspectError> {
        self.ask_entity(id, last, |entity| read::look(&entity))
    }

    /// Changes a component of an entity, wherever it is, given the component's type path, as in [`ComponentLook::name`]. The value is
    /// one of the component's type, or a dynamic value such as a `DynamicStruct` that has only the fields to change. A dynamic list
    /// replaces and adds elements, and removes none. An `Entity` in a value is one of the region's world.
    ///
    /// # Errors
    /// The region in which the entity was last seen is halted. A refused change is the error of the answer.
    pub fn write(
        &mut self,
        id: Uuid,
        last: Option<(DimensionId, RegionId)>,
        component: impl Into<String>,
        value: Box<dyn PartialReflect>,
    ) -> Result<Asked<()>, InspectError> {
        let component = component.into();
        self.ask_entity(id, last, move |entity| write::write(entity, &component, value))
    }

    /// Changes components of an entity, and inserts those that it does not have, given their type paths. All of them or, after an
    /// error, none. For values see [`write`](Self::write). If the type of a new component has a default, a dynamic value needs only
    /// the fields that differ from it.
    ///
    /// New components must be of types that are registered for regions (`register_region_component`, `register_saved_component`),
    /// as if a system of the game inserted them.
    ///
    /// # Errors
    /// The region in which the entity was last seen is halted. A refused change is the error of the answer.
    pub fn insert(
        &mut self,
        id: Uuid,
        last: Option<(DimensionId, RegionId)>,
        components: Vec<(String, Box<dyn PartialReflect>)>,
    ) -> Result<Asked<()>, InspectError> {
        self.ask_entity(id, last, move |entity| write::insert(entity, components))
    }

    /// Despawns an entity and its children, wherever it is. Players are refused.
    ///
    /// # Errors
    /// The region in which the entity was last seen is halted. A refusal is the error of the answer.
    pub fn despawn(&mut self, id: Uuid, last: Option<(DimensionId, RegionId)>) -> Result<Asked<()>, InspectError> {
        self.ask_entity(id, last, write::despawn)
    }

    /// Asks the region that owns a block a question of the game's own, which may also change that region's world.
    ///
    /// # Errors
    /// The region is halted, or the main world sees no ground there.
    pub fn ask<T: Send + 'static>(
        &mut self,
        dimension: DimensionId,
        block: BlockPos,
        ask: impl FnOnce(&mut World) -> T + Send + 'static,
    ) -> Result<Asked<T>, InspectError> {
        // The question would load the ground.
        let column = self.columns.column(dimension, block.column());
        column.filter(|column| column.is_loaded(block.chunk().y)).ok_or(InspectError::NotLoaded(block))?;
        if let Some(region) = self.statistics.region_at(dimension, block.column()) {
            self.check_halted(dimension, region.region)?;
        }
        let (asked, reply) = Asked::new();
        self.commands.run_in_region(dimension, block, move |world| reply.give(Ok(ask(world))));
        Ok(asked)
    }

    /// Measures for this long how much time each system of a region takes. The answer comes with the first tick after that; a region that
    /// ends before, by a merge or as it halts, drops the question, and so does another profile of the same region.
    ///
    /// # Errors
    /// The region is halted, or the main world sees none of its ground.
    pub fn profile(
        &mut self,
        (dimension, region): (DimensionId, RegionId),
        length: Duration,
    ) -> Result<Asked<RegionProfile>, InspectError> {
        let place = self.place_in(dimension, region)?;
        let (asked, reply) = Asked::new();
        self.commands.run_in_region(dimension, place, move |world| {
            world.resource::<RegionProfiler>().begin(length, move |profile| reply.give(Ok(profile)));
        });
        Ok(asked)
    }

    fn ask_entity<T: Send + 'static>(
        &mut self,
        id: Uuid,
        last: Option<(DimensionId, RegionId)>,
        ask: impl FnOnce(EntityWorldMut) -> Result<T, InspectError> + Send + 'static,
    ) -> Result<Asked<T>, InspectError> {
        if let Some((dimension, region)) = last {
            self.check_halted(dimension, region)?;
        }
        let (asked, reply) = Asked::new();
        let failed = Reply(reply.0.clone());
        let retired = move |_: &mut World, reason: Undeliverable| failed.give(Err(reason.into()));
        self.commands.run_on_region_entity(id, 0, move |entity| reply.give(ask(entity)), retired);
        Ok(asked)
    }

    fn check_halted(&self, dimension: DimensionId, region: RegionId) -> Result<(), InspectError> {
        match self.statistics.region(dimension, region) {
            Some(known) if known.halted => Err(InspectError::Halted(region)),
            _ => Ok(()),
        }
    }

    /// A block in a loaded column of the region, so that a question loads no ground.
    fn place_in(&self, dimension: DimensionId, region: RegionId) -> Result<BlockPos, InspectError> {
        self.check_halted(dimension, region)?;
        let known = self.statistics.region(dimension, region).ok_or(InspectError::NoSuchRegion(region))?;
        let shift = self.statistics.section_shift;
        let mut places = known.sections.iter().flat_map(|section| section.columns(shift));
        let column = places.find_map(|column| self.columns.column(dimension, column));
        let column = column.ok_or(InspectError::NoSuchRegion(region))?;
        // In a sparse dimension only some heights are loaded.
        let height = column.loaded().and_then(|heights| heights.iter().next()).unwrap_or(0);
        Ok(column.pos().chunk(height).min_block())
    }
}
