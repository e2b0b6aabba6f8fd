//! Dimensions, as a game spawns them.

use super::expected_plugin::expect_plugin_hook;
use crate::coordinator::{DimensionClock, DimensionGeneration, DimensionSpec, MainLink, requests};
use crate::generation::Generator;
use crate::space::DimensionId;
use bevy::prelude::*;
use rustc_hash::FxHashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A dimension of the world: spawn it in the main world, and columns around its [`Viewer`](crate::simulation::Viewer)s
/// are generated, loaded, simulated and saved.
///
/// Despawning it saves and closes it while the app runs; [`DimensionClosed`](super::DimensionClosed) tells when that is
/// done, and spawning a dimension of the same name, in the same frame already, goes on with it. [`RemoveDimension`]
/// erases what is stored of it too. A [`DimensionClock`] beside it changes how its time passes, a
/// [`DimensionGeneration`] how its ground is generated.
///
/// Its entity gets a [`DimensionOpen`] once it is open; [`DimensionFailed`](super::DimensionFailed) tells if it cannot
/// be.
#[derive(Component, Clone)]
#[component(on_insert = expect_plugin_hook)]
pub struct Dimension {
    name: String,
    heights: Range<i64>,
    generator: Arc<dyn Generator>,
}

impl Dimension {
    /// The heights of a dimension that says nothing else, in blocks.
    pub const DEFAULT_HEIGHTS: Range<i64> = -64..320;

    /// A dimension that the store knows by `name`, with ground made by `generator`.
    pub fn new(name: impl Into<String>, generator: impl Generator) -> Self {
        Self { name: name.into(), heights: Self::DEFAULT_HEIGHTS, generator: Arc::new(generator) }
    }

    /// The same dimension with other heights, in blocks; up to all of `i64`.
    ///
    /// Up to 16,384 blocks, all of a column is generated, stored and loaded together. A dimension with more is *sparse*,
    /// and stays so if it gets less later: of each column only the chunks within the vertical radius of a
    /// [`Viewer`](crate::simulation::Viewer) are generated and loaded. A block that is not loaded is an error for whoever
    /// asks for it in a region. Entities are loaded with their column at any height.
    pub fn with_height(mut self, heights: Range<i64>) -> Self {
        self.heights = heights;
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its heights, in blocks.
    pub fn heights(&self) -> Range<i64> {
        self.heights.clone()
    }
}

impl fmt::Debug for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dimension").field("name", &self.name).field("heights", &self.heights).finish_non_exhaustive()
    }
}

/// Closes a dimension, and erases all that is stored of it: blocks, entities, everything. A
/// [`DimensionRemoved`](super::DimensionRemoved) tells when that is done; in lockstep it is done within an update. The
/// number of a removed dimension is never given again.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoveDimension {
    /// The dimension's entity.
    pub dimension: Entity,
}

/// A dimension that is open.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct DimensionOpen {
    /// Its number in the world.
    pub id: DimensionId,
}

/// New dimensions with the name, or on the entity, of one that goes in the same frame: they are opened after all that
/// was sent to the old one, and after its end.
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
        // The end of the old one is told by the entity, which may be the new one's too.
        match going.contains(&entity) || going_names.contains(name) {
            true => reopening.0.push(spec),
            false => link.request(requests::open_dimension, spec),
        }
    }
}
