//! Where new ground comes from: the [`Generator`] trait, generators to start with, and the [`DistanceGraph`] that
//! knows the nearest ground still to be generated.
//!
//! | generator | makes |
//! |---|---|
//! | [`Void`] | nothing |
//! | [`Flat`] | level layers |
//! | [`Hills`] | endless smooth hills from noise |
//! | [`Heightmap`] | real or drawn terrain from a 16-bit greyscale PNG |

mod digest;
mod distance_graph;
mod flat;
mod generator;
mod heightmap;
mod hills;
mod noise;
mod surface;
mod terrain;

pub use distance_graph::{DistanceGraph, TileOutOfRange, TilePos, Work};
pub use flat::{Flat, Void};
pub use generator::{GenerateError, GenerateRequest, Generator, GeneratorIdentity};
pub use heightmap::{HeightBand, Heightmap, HeightmapError};
pub use hills::{Hills, HillsBlocks};
pub use surface::{Surface, SurfaceAnswer, SurfaceRequest};

/// A game with the basic blocks and no others.
#[cfg(test)]
fn basic_blocks() -> crate::block::BlockRegistry {
    let mut registry = crate::block::BlockRegistry::new();
    registry.register_basic_blocks();
    registry
}
