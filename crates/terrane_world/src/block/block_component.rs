//! Components of blocks, as a game registers them: what a block holds besides its type.

use super::Schema;
use bytemuck::Pod;
use std::borrow::Cow;

/// Data that every block of some types has: how much burns in a furnace, what lies in a chest.
///
/// A [`BlockType`](super::BlockType) names its components. Before a value is set it is zeroes, or of no bytes if its size
/// differs from block to block; migrations are given such values too.
#[derive(Clone, Debug)]
pub struct BlockComponent {
    pub(super) name: Cow<'static, str>,
    /// `None` if it differs from block to block.
    pub(super) size: Option<usize>,
    pub(super) schema: Schema,
}

impl BlockComponent {
    /// A component with this name, `namespace:path`, whose values are the bytes of a `T`.
    pub fn fixed<T: Pod>(name: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), size: Some(size_of::<T>()), schema: Schema::default() }
    }

    /// A component with this name, `namespace:path`, whose values are as long as each needs to be.
    pub fn variable(name: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), size: None, schema: Schema::default() }
    }

    /// The same component with a version of its schema, migrations from older ones, and former names.
    pub fn with_schema(mut self, schema: Schema) -> Self {
        self.schema = schema;
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }
}
