#![doc = include_str!("../README.md")]

mod read;
mod value;
mod write;

pub use read::{ArchetypeLook, ComponentLook, Cursor, EntityLook, Filter, Found, Listing};
pub use value::Value;

use bevy::ecs::system::SystemParam;
use bevy::prelude::*;
use bevy_terrane::chunk::Column;
use bevy_terrane::region::RegionId;
use bevy_terrane::simulation::Undeliverable;
use bevy_terrane::space::{BlockPos, DimensionId};
use bevy_terrane::view::{PublishedColumns, RegionCommands, WorldStatistics};
use std::sync::{Arc, Mutex, PoisonError};
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
    answer: Arc<Mutex<Option<Result<T, InspectError>>>>,
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
    /// The component must not be changed in this way.
    #[error("{component} must not be changed: {reason}")]
    Refused {
        /// The component's type path.
        component: String,
        /// Why it must not.
        reason: &'static str,
    },
    /// The value is not one of the component's type.
    #[error("this is no value of {component}: {reason}")]
    WrongValue {
        /// The component's type path.
        component: String,
        /// Why it is none.
        reason: String,
    },
}

impl<T> Asked<T> {
    fn new() -> (Self, Reply<T>) {
        let answer = Arc::new(Mutex::new(None));
        (Self { answer: answer.clone(), is_taken: false }, Reply(answer))
    }

    /// Takes the answer; `None` while there is none, and after it was taken.
    pub fn take(&mut self) -> Option<Result<T, InspectError>> {
        if self.is_taken {
            return None;
        }
        // Read before the answer: it is given before the other half is dropped.
        let is_dropped = Arc::strong_count(&self.answer) == 1;
        let answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let answer = answer.or_else(|| is_dropped.then_some(Err(InspectError::Dropped)));
        self.is_taken = answer.is_some();
        answer
    }
}

/// The other half of [`Asked`], in the region.
struct Reply<T>(Arc<Mutex<Option<Result<T, InspectError>>>>);

impl<T> Reply<T> {
    fn give(&self, answer: Result<T, InspectError>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
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
        let other = Reply(reply.0.clone());
        let retired = move |_: &mut World, reason: Undeliverable| other.give(Err(reason.into()));
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
        let mut columns = self.columns.iter().filter(|(of, _)| *of == dimension).map(|(_, column)| column);
        let is_here = |column: &&Column| known.contains(column.pos().section(shift));
        let column = columns.find(is_here).ok_or(InspectError::NoSuchRegion(region))?;
        // In a sparse dimension only some heights are loaded.
        let height = column.loaded().and_then(|heights| heights.iter().next()).unwrap_or(0);
        Ok(column.pos().chunk(height).min_block())
    }
}
