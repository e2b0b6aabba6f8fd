//! Dimensions, their components and their time of day in the main world.

use super::expected_plugin::expect_plugin;
use crate::coordinator::MainLink;
use crate::coordinator::closing::opening::open_dimension;
use crate::coordinator::messages::{DimensionClock, DimensionGeneration, DimensionSpec, Published};
use crate::generation::Generator;
use crate::simulation::{ClockedTimeOfDay, Floor, TimeOfDay};
use crate::space::DimensionId;
use crate::storage::DimensionNames;
use crate::view::PublishedColumns;
use bevy::ecs::lifecycle::HookContext;
use bevy::ecs::world::DeferredWorld;
use bevy::prelude::*;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, mem};

/// The ids of the world's dimensions, by name. All requests and answers name a dimension by its id, in the main world and in
/// regions alike.
///
/// The ids are known as soon as [`TerranePlugin`](crate::plugin::TerranePlugin) was added, before a dimension is open:
///
/// ```
/// # use bevy_terrane::prelude::*;
/// fn setup(mut commands: Commands, dimensions: Res<Dimensions>) {
///     commands.spawn(Dimension::new("overworld", Hills::seeded(42)));
///     commands.spawn((Viewer::in_dimension(dimensions.id("overworld")), Transform::default()));
/// }
/// # bevy::ecs::system::assert_is_system(setup);
/// ```
#[derive(Resource, Clone, Debug, Default, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(opaque)]
#[reflect(Resource, Clone, Default)]
pub struct Dimensions {
    names: Arc<DimensionNames>,
    removed: Arc<Mutex<Vec<(DimensionId, String)>>>,
}

impl Dimensions {
    pub(crate) fn new(names: Arc<DimensionNames>) -> Self {
        Self { names, ..Self::default() }
    }

    /// The id of the dimension with this name. A new name gets an id, which it keeps until the dimension is
    /// [removed](Self::remove).
    pub fn id(&self, name: &str) -> DimensionId {
        self.names.id(name)
    }

    /// The id of the dimension with this name, if it has one. Use this for names that players type, which are not worth an id.
    pub fn find(&self, name: &str) -> Option<DimensionId> {
        self.names.find(name)
    }

    /// The name of the dimension with this id.
    pub fn name(&self, id: DimensionId) -> Option<String> {
        self.names.name(id)
    }

    /// Closes a dimension at the end of the frame, and erases everything that is stored of it, blocks and entities included. A
    /// [`DimensionRemoved`](super::DimensionRemoved) reports the end; in lockstep it comes within one update. Its name has a
    /// new id from now on, and the old id is never reused. A dimension that no entity has is not removed, with a warning.
    pub fn remove(&self, id: DimensionId) {
        let Some(name) = self.names.name(id) else {
            return warn!("{id} cannot be removed: no dimension has this id");
        };
        self.names.forget(&name, id);
        self.removed.lock().unwrap_or_else(PoisonError::into_inner).push((id, name));
    }

    fn take_removed(&self) -> Vec<(DimensionId, String)> {
        mem::take(&mut *self.removed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A dimension of the world. Spawn it in the main world, and columns around its [`Viewer`](crate::simulation::Viewer)s
/// are generated, loaded, simulated and saved.
///
/// Despawning it saves and closes the dimension while the app runs; [`DimensionClosed`](super::DimensionClosed) reports
/// the end. Spawning a dimension of the same name continues it, even in the same frame. [`Dimensions::remove`] also erases its
/// stored data. A [`DimensionClock`] on the same entity controls how its time passes, a [`TimeOfDay`] gives it day and night, and a
/// [`DimensionGeneration`] controls how its columns are generated.
///
/// Its entity gets a [`DimensionOpen`] once it is open; [`DimensionFailed`](super::DimensionFailed) reports that it cannot
/// be opened.
#[derive(Component, Clone, Reflect)]
#[type_path = "bevy_terrane"]
#[component(on_insert = note_inserted, on_remove = note_removed)]
#[reflect(opaque)]
#[reflect(Component, Clone, Debug)]
pub struct Dimension {
    /// `None` before it is spawned.
    id: Option<DimensionId>,
    name: String,
    heights: Range<i64>,
    /// `None` for the default of its heights.
    floor: Option<Floor>,
    generator: Arc<dyn Generator>,
}

impl Dimension {
    /// The default height range, in blocks.
    pub const DEFAULT_HEIGHTS: Range<i64> = -64..320;

    /// A dimension with a name in the store, and a generator for its columns.
    pub fn new(name: impl Into<String>, generator: impl Generator) -> Self {
        let (heights, generator) = (Self::DEFAULT_HEIGHTS, Arc::new(generator));
        Self { id: None, name: name.into(), heights, floor: None, generator }
    }

    /// Sets the height range, in blocks; up to all of `i64`.
    ///
    /// Up to 16,384 blocks, whole columns are generated, stored and loaded. A taller dimension is *sparse*, and remains so if
    /// its height is reduced later: of each column only the chunks within the vertical radius of a
    /// [`Viewer`](crate::simulation::Viewer) are generated and loaded. Accessing a block that is not loaded is an error in a
    /// region. Entities are loaded with their column at any height.
    ///
    /// The heights may differ from those of an earlier session. Columns that were stored with smaller ones are generated for the
    /// rest when they load.
    pub fn with_height(mut self, heights: Range<i64>) -> Self {
        self.heights = heights;
        self
    }

    /// Sets where falls out of the dimension end, and how. By default bodies end 64 blocks below the lowest block, and players stand there.
    pub fn with_floor(mut self, floor: Floor) -> Self {
        self.floor = Some(floor);
        self
    }

    /// The id, once the dimension is spawned.
    pub fn id(&self) -> Option<DimensionId> {
        self.id
    }

    pub(super) fn set_id(&mut self, id: DimensionId) {
        self.id = Some(id);
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The height range, in blocks.
    pub fn heights(&self) -> Range<i64> {
        self.heights.clone()
    }

    /// The floor.
    pub fn floor(&self) -> Floor {
        self.floor.unwrap_or_else(|| Floor::below(&self.heights))
    }
}

/// Gives a dimension its id.
fn note_inserted(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    let Some(dimensions) = world.get_resource::<Dimensions>().cloned() else {
        return world.commands().queue(expect_plugin);
    };
    if let Some(mut dimension) = world.get_mut::<Dimension>(entity) {
        let id = dimensions.id(&dimension.name);
        dimension.bypass_change_detection().id = Some(id);
    }
}

fn note_removed(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    let id = world.get::<Dimension>(entity).and_then(Dimension::id);
    if let (Some(id), Some(mut despawned)) = (id, world.get_resource_mut::<Despawned>()) {
        despawned.0.push((entity, id));
    }
}

/// Dimensions that lost their entity or their component in this frame.
#[derive(Resource, Default)]
pub(super) struct Despawned(pub Vec<(Entity, DimensionId)>);

/// Returns `true` if an entity of the main world has this dimension.
pub(super) fn is_spawned(world: &mut World, id: DimensionId) -> bool {
    world.query::<&Dimension>().iter(world).any(|dimension| dimension.id == Some(id))
}

impl fmt::Debug for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dimension").field("name", &self.name).field("heights", &self.heights).finish_non_exhaustive()
    }
}

/// Marks a dimension that is open.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Component, Clone)]
pub struct DimensionOpen {
    /// The dimension.
    pub id: DimensionId,
}

/// The dimensions that close at the end of this frame.
#[derive(Resource, Default)]
pub(super) struct Closing {
    /// Their entities, each with `true` if everything that is stored of the dimension is erased.
    pub entities: Vec<(Entity, bool)>,
    /// New dimensions with the name or the entity of one of them. They are opened after the old one has received everything
    /// that was sent to it and has closed.
    pub reopening: Vec<DimensionSpec>,
}

pub(super) fn build(app: &mut App) {
    app.init_resource::<Dimensions>().init_resource::<Despawned>().init_resource::<Closing>();
}

type Settings = (Option<&'static DimensionClock>, Option<&'static TimeOfDay>, Option<&'static DimensionGeneration>);

pub(super) fn open(
    link: Res<MainLink>,
    ids: Res<Dimensions>,
    mut dimensions: Query<(Entity, &mut Dimension, Has<DimensionOpen>, Settings)>,
    mut despawned: ResMut<Despawned>,
    mut names: Local<FxHashMap<Entity, String>>,
    mut closing: ResMut<Closing>,
) {
    let despawned = mem::take(&mut despawned.0);
    for (id, name) in ids.take_removed() {
        let gone = despawned.iter().find(|(_, of)| *of == id).map(|(entity, _)| *entity);
        let its = dimensions.iter().filter(|(_, dimension, ..)| dimension.id == Some(id));
        match gone.or_else(|| its.max_by_key(|(.., is_open, _)| *is_open).map(|(entity, ..)| entity)) {
            Some(entity) => closing.entities.push((entity, true)),
            None => {
                warn!("{name:?} cannot be removed: no entity has a Dimension with this name");
                ids.names.restore(&name, id);
            }
        }
    }
    closing.entities.extend(despawned.into_iter().map(|(entity, _)| (entity, false)));
    let going: Vec<Entity> = closing.entities.iter().map(|(entity, _)| *entity).collect();
    let going_names: Vec<String> = going.iter().filter_map(|entity| names.remove(entity)).collect();
    for (entity, mut dimension, _, (clock, time_of_day, generation)) in &mut dimensions {
        let is_added = dimension.is_added();
        let dimension = dimension.bypass_change_detection();
        // The name of a removed dimension has a new id.
        if !going.contains(&entity) || is_added {
            dimension.id = Some(ids.id(&dimension.name));
        }
        if !is_added {
            continue;
        }
        let floor = dimension.floor();
        let Dimension { name, heights, generator, .. } = dimension;
        names.insert(entity, name.clone());
        let spec = DimensionSpec {
            entity,
            name: name.clone(),
            heights: heights.clone(),
            floor,
            generator: generator.clone(),
            clock: clock.copied(),
            time_of_day: time_of_day.copied(),
            generation: generation.copied(),
        };
        // The end of the old dimension is reported on the entity, which may also be the new one's.
        match going.contains(&entity) || going_names.contains(name) {
            true => closing.reopening.push(spec),
            false => link.request(open_dimension, spec),
        }
    }
}

/// Moves each time of day on, from where the game has set it. A client of a server has no clock of the dimension, and uses its own
/// time.
pub(super) fn follow_clocks(
    published: Res<Published>,
    time: Res<Time>,
    mut times: Query<(&DimensionOpen, Has<Dimension>, &mut TimeOfDay)>,
    mut set: Local<FxHashMap<DimensionId, ClockedTimeOfDay>>,
    mut columns: ResMut<PublishedColumns>,
) {
    let before = mem::take(&mut *set);
    let columns = columns.bypass_change_detection();
    columns.daylight.clear();
    for (DimensionOpen { id }, is_own, mut shown) in &mut times {
        columns.daylight.insert(*id, shown.daylight());
        let clock = if is_own { published.clocks.get(id).copied() } else { Some(time.elapsed()) };
        let Some(clock) = clock else { continue };
        let known = before.get(id).filter(|_| !shown.is_changed());
        let known = known.copied().unwrap_or(ClockedTimeOfDay { time: *shown, clock });
        *shown.bypass_change_detection() = known.at(clock);
        columns.daylight.insert(*id, shown.daylight());
        set.insert(*id, known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn on_a_client_time_passes_from_what_the_game_sets() {
        let mut app = App::new();
        app.init_resource::<Published>().init_resource::<PublishedColumns>().init_resource::<Time>();
        app.add_systems(Update, follow_clocks);
        let id = DimensionId(3);
        let time = TimeOfDay { days: 2.5, seconds_per_day: 100.0 };
        let client = app.world_mut().spawn((DimensionOpen { id }, time)).id();
        let pass = |app: &mut App, seconds: u64| {
            app.world_mut().resource_mut::<Time>().advance_by(Duration::from_secs(seconds));
            app.update();
            app.world().get::<TimeOfDay>(client).unwrap().days
        };
        assert_eq!([0, 10, 15].map(|seconds| pass(&mut app, seconds)), [2.5, 2.6, 2.75]);
        assert!(app.world().resource::<PublishedColumns>().daylight(id) < 1.0, "the sun sets");
        // News of the server.
        app.world_mut().get_mut::<TimeOfDay>(client).unwrap().days = 8.0;
        assert_eq!([5, 25].map(|seconds| pass(&mut app, seconds)), [8.0, 8.25]);
        app.world_mut().entity_mut(client).remove::<TimeOfDay>();
        app.update();
        assert_eq!(app.world().resource::<PublishedColumns>().daylight(id), 1.0);
    }
}
