//! Dimensions and their components in the main world.

use super::expected_plugin::expect_plugin_hook;
use crate::coordinator::{DimensionClock, DimensionGeneration, DimensionSpec, MainLink, requests};
use crate::generation::Generator;
use crate::space::DimensionId;
use bevy::prelude::*;
use rustc_hash::FxHashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A dimension of the world. Spawn it in the main world, and columns around its [`Viewer`](crate::simulation::Viewer)s
/// are generated, loaded, simulated and saved.
///
/// Despawning it saves and closes the dimension while the app runs; [`DimensionClosed`](super::DimensionClosed) reports
/// the end. Spawning a dimension of the same name continues it, even in the same frame. [`RemoveDimension`] also erases its
/// stored data. A [`DimensionClock`] on the same entity controls how its time passes, and a [`DimensionGeneration`] how its
/// columns are generated.
///
/// Its entity gets a [`DimensionOpen`] once it is open; [`DimensionFailed`](super::DimensionFailed) reports that it cannot
/// be opened.
#[derive(Component, Clone)]
#[component(on_insert = expect_plugin_hook)]
pub struct Dimension {
    name: String,
    heights: Range<i64>,
    generator: Arc<dyn Generator>,
}

impl Dimension {
    /// The default height range, in blocks.
    pub const DEFAULT_HEIGHTS: Range<i64> = -64..320;

    /// A dimension with a name in the store, and a generator for its columns.
    pub fn new(name: impl Into<String>, generator: impl Generator) -> Self {
        Self { name: name.into(), heights: Self::DEFAULT_HEIGHTS, generator: Arc::new(generator) }
    }

    /// Sets the height range, in blocks; up to all of `i64`.
    ///
    /// Up to 16,384 blocks, whole columns are generated, stored and loaded. A taller dimension is *sparse*, and remains so if
    /// its height is reduced later: of each column only the chunks within the vertical radius of a
    /// [`Viewer`](crate::simulation::Viewer) are generated and loaded. Accessing a block that is not loaded is an error in a
    /// region. Entities are loaded with their column at any height.
    pub fn with_height(mut self, heights: Range<i64>) -> Self {
        self.heights = heights;
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The height range, in blocks.
    pub fn heights(&self) -> Range<i64> {
        self.heights.clone()
    }
}

impl fmt::Debug for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dimension").field("name", &self.name).field("heights", &self.heights).finish_non_exhaustive()
    }
}

/// Closes a dimension, and erases everything that is stored of it, blocks and entities included. A
/// [`DimensionRemoved`](super::DimensionRemoved) reports the end; in lockstep it comes within one update. The number of a
/// removed dimension is never reused.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoveDimension {
    /// The dimension's entity.
    pub dimension: Entity,
}

/// Marks a dimension that is open.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct DimensionOpen {
    /// The number of the dimension in the world.
    pub id: DimensionId,
}

/// New dimensions with the name or the entity of one that closes in the same frame. They are opened after the old one has
/// received everything that was sent to it and has closed.
#[derive(Resource, Default)]
pub(super) struct Reopening(pub Vec<DimensionSpec>);

pub(super) fn build(app: &mut App) {
    app.register_type::<DimensionClock>()
        .register_type::<DimensionGeneration>()
        .add_message::<RemoveDimension>()
        .init_resource::<Reopening>();
}

pub(super) fn open(
    link: Res<MainLink>,
    dimensions: Query<(Entity, &Dimension, Option<&DimensionClock>, Option<&DimensionGeneration>), Added<Dimension>>,
    mut despawned: RemovedComponents<Dimension>,
    mut removed: MessageReader<RemoveDimension>,
    mut names: Local<FxHashMap<Entity, String>>,
    mut reopening: ResMut<Reopening>,
) {
    let removed = removed.read().map(|RemoveDimension { dimension }| *dimension);
    let going: Vec<Entity> = despawned.read().chain(removed).collect();
    let going_names: Vec<String> = going.iter().filter_map(|entity| names.remove(entity)).collect();
    for (entity, Dimension { name, heights, generator }, clock, generation) in &dimensions {
        names.insert(entity, name.clone());
        let spec = DimensionSpec {
            entity,
            name: name.clone(),
            heights: heights.clone(),
            generator: generator.clone(),
            clock: clock.copied(),
            generation: generation.copied(),
        };
        // The end of the old dimension is reported on the entity, which may also be the new one's.
        match going.contains(&entity) || going_names.contains(name) {
            true => reopening.0.push(spec),
            false => link.request(requests::open_dimension, spec),
        }
    }
}
