//! [`BlockComponent`]: a component as a game registers it, with the versions of its bytes and migrations from older ones.

use bytemuck::Pod;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// The reason of a failed migration, in the game's own words.
pub type MigrationFailure = Box<dyn Error + Send + Sync>;

type Migrate = Arc<dyn Fn(&[u8]) -> Result<Vec<u8>, MigrationFailure> + Send + Sync>;

/// The version of a component's data, the component's former names, and migrations for values of older versions.
///
/// ```
/// # use terrane_world::block::Schema;
/// // Version 0 was one byte, version 1 is two.
/// let schema = Schema::new(1).with_migration(0, |old| match old {
///     [low] => Ok(vec![*low, 0]),
///     _ => Err("one byte was expected".into()),
/// });
/// assert_eq!(schema.upgrade(0, &[7]).unwrap(), [7, 0].as_slice());
/// ```
#[derive(Clone, Default)]
pub struct Schema {
    version: u32,
    migrations: BTreeMap<u32, Migrate>,
    former_names: Vec<Cow<'static, str>>,
}

/// The error for a value of an older version that cannot be migrated to the newest one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SchemaError {
    /// The game has no migration from this version.
    #[error("it has version {from}, and the game has no migration from that to version {to}")]
    NoMigration {
        /// The value's version.
        from: u32,
        /// The game's version.
        to: u32,
    },
    /// The migration refused the value.
    #[error("the migration from version {from} to version {to} failed: {reason}")]
    Failed {
        /// The value's version.
        from: u32,
        /// The game's version.
        to: u32,
        /// The migration's own message.
        reason: String,
    },
}

impl Schema {
    /// A schema of this version. Components without a schema have version 0.
    pub fn new(version: u32) -> Self {
        Self { version, ..Self::default() }
    }

    /// Adds a migration from version `from` to this version: old bytes in, new bytes out. A migration always leads to
    /// the newest version, and may also start from a higher one.
    pub fn with_migration(
        mut self,
        from: u32,
        migrate: impl Fn(&[u8]) -> Result<Vec<u8>, MigrationFailure> + Send + Sync + 'static,
    ) -> Self {
        self.migrations.insert(from, Arc::new(migrate));
        self
    }

    /// Adds a former name of the component.
    pub fn formerly(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.former_names.push(name.into());
        self
    }

    /// The version.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The former names of the component.
    pub fn former_names(&self) -> impl Iterator<Item = &str> {
        self.former_names.iter().map(Cow::as_ref)
    }

    /// Returns `true` if values of this version can be migrated to the newest one.
    pub fn can_read(&self, version: u32) -> bool {
        version == self.version || self.migrations.contains_key(&version)
    }

    /// Migrates a value to the newest version.
    pub fn upgrade<'a>(&self, from: u32, value: &'a [u8]) -> Result<Cow<'a, [u8]>, SchemaError> {
        let to = self.version;
        if from == to {
            return Ok(Cow::Borrowed(value));
        }
        let migrate = self.migrations.get(&from).ok_or(SchemaError::NoMigration { from, to })?;
        let failed = |failure: MigrationFailure| SchemaError::Failed { from, to, reason: failure.to_string() };
        migrate(value).map(Cow::Owned).map_err(failed)
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema")
            .field("version", &self.version)
            .field("migrations", &self.migrations.keys().collect::<Vec<_>>())
            .field("former_names", &self.former_names)
            .finish()
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_migrated_from_where_it_is_or_the_reason_is_said() {
        let schema = Schema::new(3)
            .with_migration(1, |old| Ok([old, &[0]].concat()))
            .with_migration(7, |_| Err("from the future".into()));
        assert_eq!(schema.upgrade(3, &[9]), Ok(Cow::Borrowed(&[9][..])));
        assert_eq!(schema.upgrade(1, &[9]).unwrap(), [9, 0].as_slice());
        assert_eq!(schema.upgrade(2, &[9]), Err(SchemaError::NoMigration { from: 2, to: 3 }));
        let reason = "from the future".into();
        assert_eq!(schema.upgrade(7, &[9]), Err(SchemaError::Failed { from: 7, to: 3, reason }));
        assert_eq!([0, 1, 2, 3, 7].map(|version| schema.can_read(version)), [false, true, false, true, true]);
    }
}
