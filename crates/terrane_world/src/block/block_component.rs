//! Block components as a game registers them: the data that a block has besides its type.

use super::Schema;
use bytemuck::Pod;
use std::borrow::Cow;

/// Data that every block of some types has, such as the fuel in a furnace or the contents of a chest.
///
/// A [`BlockType`](super::BlockType) names its components. An unset value is zeros, or empty if the component has a
/// variable size. Migrations receive unset values too.
#[derive(Clone, Debug)]
pub struct BlockComponent {
    pub(super) name: Cow<'static, str>,
    /// `None` for a variable size.
    pub(super) size: Option<usize>,
    pub(super) schema: Schema,
}

impl BlockComponent {
    /// A component with this name, `namespace:path`, whose values are the bytes of a `T`.
    pub fn fixed<T: Pod>(name: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), size: Some(size_of::<T>()), schema: Schema::default() }
    }

    /// A component with this name, `namespace:path`, and values of variable size.
    pub fn variable(name: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), size: None, schema: Schema::default() }
    }

    /// The same component with this schema: its version, migrations from older versions, and former names.
    pub fn with_schema(mut self, schema: Schema) -> Self {
        self.schema = schema;
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }
}
