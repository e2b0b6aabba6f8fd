//! Generating ground: the [`Generator`] trait, ready-made generators, and the [`DistanceGraph`], which finds the
//! nearest columns that are still missing.
//!
//! | generator | result |
//! |---|---|
//! | [`Void`] | nothing |
//! | [`Flat`] | level layers |
//! | [`Hills`] | endless smooth hills from noise |
//! | [`Heightmap`] | real or drawn terrain from a 16-bit greyscale PNG |
//! | [`Layers`] | the ground of another generator, changed by layers |
//! | [`Select`] | one of two generators at each place, chosen by a [`Mask`] such as [`NoiseMask`] and blended in between |
//!
//! | layer, a [`GenerateLayer`] | adds |
//! |---|---|
//! | [`GroundCover`] | another surface between two heights |
//! | [`Veins`] | ore, gravel or the like in the rock |
//! | [`Caves`] | winding tunnels |
//! | [`WaterFill`] | a sea |
//! | [`Features`] | objects on the ground, even across column borders: [`Tree`], [`Boulder`] or any other [`Feature`], scattered by a [`Placement`] |

mod digest;
mod distance_graph;
mod features;
mod flat;
mod generator;
#[cfg(test)]
mod golden_tests;
mod heightmap;
mod hills;
mod layers;
mod noise;
#[cfg(test)]
mod rule_tests;
mod select;
mod surface;
mod terrain;

pub use digest::GeneratorIdentity;
pub use distance_graph::{BatchColumns, Completion, DistanceGraph, ListenerId};
pub use features::{
    Boulder, Feature, FeatureCanvas, FeatureError, FeatureRandom, FeatureReach, Features, Placement, Tree, TreeShape,
};
pub use flat::{Flat, Void};
#[doc(hidden)]
pub use generator::generate;
pub use generator::{GenerateError, GenerateRequest, Generator};
pub use heightmap::{HeightBand, Heightmap, HeightmapError};
pub use hills::Hills;
pub use layers::{Caves, GenerateLayer, GroundCover, LayerColumn, Layers, Veins, WaterFill};
pub use select::{Mask, NoiseMask, Select};
pub use surface::{Surface, SurfaceAnswer, SurfaceRequest};

/// The number of cells of a column, seen from above. A cell's index is `x + 16 * z`.
const COLUMN_AREA: usize = crate::space::CHUNK_SIZE * crate::space::CHUNK_SIZE;

/// A registry with only the basic blocks.
#[cfg(test)]
fn basic_blocks() -> crate::block::BlockRegistry {
    let mut registry = crate::block::BlockRegistry::new();
    registry.register_basic_blocks();
    registry
}
