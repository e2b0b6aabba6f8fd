//! Block types: their names, their properties and the stable numbers that chunks store.
//!
//! A [`BlockRegistry`] gives every [`BlockType`] a [`BlockId`], and every [`BlockComponent`] a [`BlockComponentId`]. A
//! world stores the registry's lists in the order of the ids, so a number keeps its meaning when the game later adds,
//! renames, removes or reorders its types.
//!
//! | data | source |
//! |---|---|
//! | a type's appearance, shape, light and tags | the game, at each start |
//! | its number, its name, its components with their versions and sizes | the world; for new types, the game |
//! | how values of older versions are read | the game: a migration of the [`Schema`] |

mod block_component;
mod block_name;
mod block_set;
mod block_shape;
mod block_states;
mod block_type;
mod component_layout;
mod component_table;
mod nearest_name;
mod registry;
mod schema;
mod shape_box;
mod state_shapes;
mod state_turns;
pub mod tags;
mod type_records;

pub use block_component::BlockComponent;
#[doc(hidden)]
pub use block_name::joined;
pub use block_name::{BlockName, BlockNameError};
pub use block_set::BlockSet;
pub use block_shape::{BlockShape, ShapeError};
pub use block_states::BlockStates;
pub use block_type::BlockType;
pub use component_layout::{BlockComponentId, BlockComponentLayout, BlockLayout};
pub use component_table::BlockComponentError;
pub use registry::{BLOCK_ENTITY, BlockRegistry, BlockRegistryError, PLACEHOLDER, STATE};
pub use schema::{MigrationFailure, Schema, SchemaError};
pub use shape_box::ShapeBox;
pub use state_turns::turned_state;
pub use type_records::{BlockComponentRecord, BlockRecord};

use serde::{Deserialize, Serialize};
use std::fmt;

/// The number of a block type in a [`BlockRegistry`]: its place in the order of registration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BlockId(u32);

impl BlockId {
    /// `terrane:air`, the first block of every registry.
    pub const AIR: Self = Self(0);

    /// The id with this number.
    #[inline]
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// The number: the place in the registry.
    #[inline]
    pub const fn index(self) -> u32 {
        self.0
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
