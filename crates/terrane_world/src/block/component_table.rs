//! The block components of a world, the migrations of their values, and the records that a world stores of its block types.

use super::block_name::check_base;
use super::{BlockComponent, BlockComponentId, BlockComponentLayout, BlockNameError, Schema, SchemaError};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use thiserror::Error;

/// The block components of a world. A number always stands for the same name, version and size, so the list is enough
/// to read every value of the world. A component whose schema changed gets a new number, and the old ones lead to it.
#[derive(Clone, Debug, Default)]
pub(super) struct ComponentTable {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    record: BlockComponentRecord,
    /// The place of the component that values of this one are converted to.
    newest: usize,
    /// Set on the newest entry of a component that the game has registered.
    schema: Option<Schema>,
}

/// The error for a block component that cannot be registered, or a value that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BlockComponentError {
    /// A name is invalid.
    #[error("{name:?} is not a valid component name: {source}")]
    InvalidName {
        /// The name as given.
        name: String,
        /// The fault in the name.
        source: BlockNameError,
    },
    /// The game registered two components under one name, or a component under a former name of another.
    #[error("the component {name:?} is already registered, as {id}")]
    AlreadyRegistered {
        /// The id of the component that was registered first.
        id: BlockComponentId,
        /// The name that both components share.
        name: String,
    },
    /// The size is 0, or too large.
    #[error("the component {name:?} has {size} bytes; 1 to {} are possible", u32::MAX)]
    Size {
        /// The component's name.
        name: String,
        /// The size of a value in bytes.
        size: usize,
    },
    /// The world has values of the same version, but of another size.
    #[error(
        "the world has values of the component {name:?} in version {version} {}, but the game's {}: give it another \
         version, and a migration from this one", size_in_words(*stored), size_in_words(*declared)
    )]
    SizeChanged {
        /// The component's name.
        name: String,
        /// The version of both sides.
        version: u32,
        /// The size in bytes of a value in the world; `None` for a variable size.
        stored: Option<u32>,
        /// The size in bytes that the game declares; `None` for a variable size.
        declared: Option<u32>,
    },
    /// The world has values of a version that the game cannot read.
    #[error(
        "the world has values of the component {name:?} in version {stored}, but the game's has version {declared} and no \
         migration from that"
    )]
    MigrationMissing {
        /// The component's name.
        name: String,
        /// The version in the world.
        stored: u32,
        /// The game's version.
        declared: u32,
    },
    /// A stored list gives two numbers to the same component.
    #[error("the components {first} and {second} are both version {version} of {name:?}")]
    Duplicate {
        /// The first number.
        first: BlockComponentId,
        /// The second number.
        second: BlockComponentId,
        /// The component's name.
        name: String,
        /// The version of both entries.
        version: u32,
    },
    /// A value has the wrong length for its component.
    #[error("a value of the component {name:?} in version {version} has {expected} bytes, found {found}")]
    Length {
        /// The component's name.
        name: String,
        /// The component's version.
        version: u32,
        /// The component's size in bytes.
        expected: u32,
        /// The size of the value in bytes.
        found: usize,
    },
    /// A value of an older version cannot be migrated to the newest one.
    #[error("a value of the component {name:?} cannot be used: {source}")]
    Migration {
        /// The component's name.
        name: String,
        /// The reason.
        source: SchemaError,
    },
}

fn size_in_words(size: Option<u32>) -> String {
    size.map_or("of any size".into(), |size| format!("of {size} bytes"))
}

impl BlockComponentError {
    pub(super) fn is_schema_mismatch(&self) -> bool {
        matches!(self, Self::SizeChanged { .. } | Self::MigrationMissing { .. })
    }
}

impl ComponentTable {
    /// The components of a stored world, known only from their records until the game registers them.
    pub fn from_records(records: Vec<BlockComponentRecord>) -> Result<Self, BlockComponentError> {
        let mut table = Self::default();
        for record in records {
            let name = record.name.clone();
            check_name(&name)?;
            checked_size(&name, record.size.map(|size| size as usize))?;
            let known: Vec<usize> = table.places(|entry| entry.record.name == name).collect();
            if let Some(first) = known.iter().copied().find(|place| table.entries[*place].record == record) {
                let second = BlockComponentId::at(table.entries.len(), record.size);
                return Err(BlockComponentError::Duplicate {
                    first: table.id(first),
                    second,
                    name,
                    version: record.version,
                });
            }
            let newest = table.push(record);
            known.into_iter().for_each(|place| table.entries[place].newest = newest);
        }
        Ok(table)
    }

    /// The records that the world stores, by number.
    pub fn records(&self) -> impl ExactSizeIterator<Item = &BlockComponentRecord> {
        self.entries.iter().map(|entry| &entry.record)
    }

    /// Adds a component, or the schema of a component that the world has. Returns the id of its newest version.
    pub fn register(&mut self, component: BlockComponent) -> Result<BlockComponentId, BlockComponentError> {
        let BlockComponent { name, size, schema } = component;
        let names: Vec<&str> = [&*name].into_iter().chain(schema.former_names()).collect();
        for name in names.iter().copied() {
            check_name(name)?;
            if let Some(id) = self.registered(name) {
                return Err(BlockComponentError::AlreadyRegistered { id, name: name.into() });
            }
        }
        let record = BlockComponentRecord {
            size: checked_size(&name, size)?,
            version: schema.version(),
            name: name.to_string(),
        };
        let known: Vec<usize> = self.places(|entry| names.contains(&entry.record.name.as_str())).collect();
        for place in known.iter().copied() {
            self.check_known(place, &record, &schema)?;
        }
        self.rename(&known, &record.name);
        let same = known.iter().copied().find(|place| self.entries[*place].record == record);
        let alike = |place: &usize| self.entries[*place].record.is_like(&record);
        let current = same.or_else(|| known.iter().copied().find(alike)).unwrap_or_else(|| self.push(record));
        known.into_iter().for_each(|place| self.entries[place].newest = current);
        self.entries[current].schema = Some(schema);
        Ok(self.id(current))
    }

    /// Checks that values of a component in the world can become values of the game's `record`.
    fn check_known(
        &self,
        place: usize,
        record: &BlockComponentRecord,
        schema: &Schema,
    ) -> Result<(), BlockComponentError> {
        let stored = &self.entries[place].record;
        if stored.version == record.version && stored.size != record.size {
            return Err(BlockComponentError::SizeChanged {
                name: record.name.clone(),
                version: record.version,
                stored: stored.size,
                declared: record.size,
            });
        }
        if !schema.can_read(stored.version) {
            let (name, stored, declared) = (record.name.clone(), stored.version, record.version);
            return Err(BlockComponentError::MigrationMissing { name, stored, declared });
        }
        Ok(())
    }

    /// Renames the entries with former names, except those that would become duplicates.
    fn rename(&mut self, known: &[usize], name: &str) {
        for place in known {
            let renamed = BlockComponentRecord { name: name.to_owned(), ..self.entries[*place].record.clone() };
            if !known.iter().any(|other| self.entries[*other].record == renamed) {
                self.entries[*place].record = renamed;
            }
        }
    }

    /// The component that the game has registered under this name.
    pub fn registered(&self, name: &str) -> Option<BlockComponentId> {
        let is_it = |entry: &Entry| entry.record.name == name && self.entries[entry.newest].schema.is_some();
        let by_name = self.entries.iter().find(|entry| is_it(entry)).map(|entry| self.id(entry.newest));
        let was_called = |entry: &Entry| entry.schema.as_ref().is_some_and(|it| it.former_names().any(|it| it == name));
        by_name.or_else(|| self.places(was_called).next().map(|place| self.id(place)))
    }

    /// The component with this number, if there is one.
    pub fn record(&self, id: BlockComponentId) -> Option<&BlockComponentRecord> {
        self.place(id).map(|place| &self.entries[place].record)
    }

    /// The layout of the component; `None` if it is unknown.
    pub fn layout(&self, id: BlockComponentId) -> Option<BlockComponentLayout> {
        self.record(id).map(|record| BlockComponentLayout { id, size: record.size })
    }

    /// The component that values of this component are converted to.
    pub fn newest(&self, id: BlockComponentId) -> BlockComponentId {
        self.place(id).map_or(id, |place| self.id(self.entries[place].newest))
    }

    /// Returns `true` if values of the component can be converted to its newest version.
    pub fn can_upgrade(&self, id: BlockComponentId) -> bool {
        self.place(id).is_some_and(|place| {
            let newest = self.entries[place].newest;
            place == newest || self.entries[newest].schema.is_some()
        })
    }

    /// Converts a value of the component to its newest version.
    pub fn upgrade<'a>(&self, id: BlockComponentId, value: &'a [u8]) -> Result<Cow<'a, [u8]>, BlockComponentError> {
        let Some(place) = self.place(id) else { return Ok(Cow::Borrowed(value)) };
        let stored = &self.entries[place].record;
        stored.check_length(value.len())?;
        let newest = &self.entries[self.entries[place].newest];
        Ok(newest.migrated(stored.version, value)?.unwrap_or(Cow::Borrowed(value)))
    }

    /// The component with exactly this name, version and size.
    pub fn find(&self, record: &BlockComponentRecord) -> Option<BlockComponentId> {
        self.places(|entry| entry.record == *record).next().map(|place| self.id(place))
    }

    /// Converts a value of a component that may be unknown to this world to a component of this world.
    pub fn import<'a>(
        &self,
        record: &BlockComponentRecord,
        value: &'a [u8],
    ) -> Result<Option<(BlockComponentId, Cow<'a, [u8]>)>, BlockComponentError> {
        record.check_length(value.len())?;
        if let Some(id) = self.find(record) {
            return Ok(Some((id, Cow::Borrowed(value))));
        }
        let Some(id) = self.registered(&record.name) else { return Ok(None) };
        let own = self.place(id).map(|place| &self.entries[place]);
        let can_read = |own: &&Entry| {
            let is_other = own.record.version != record.version;
            is_other && own.schema.as_ref().is_some_and(|schema| schema.can_read(record.version))
        };
        let Some(own) = own.filter(can_read) else { return Ok(None) };
        Ok(own.migrated(record.version, value)?.map(|value| (id, value)))
    }

    fn push(&mut self, record: BlockComponentRecord) -> usize {
        let place = self.entries.len();
        self.entries.push(Entry { record, newest: place, schema: None });
        place
    }

    fn places(&self, is_wanted: impl Fn(&Entry) -> bool) -> impl Iterator<Item = usize> {
        (0..self.entries.len()).filter(move |place| is_wanted(&self.entries[*place]))
    }

    fn id(&self, place: usize) -> BlockComponentId {
        BlockComponentId::at(place, self.entries[place].record.size)
    }

    fn place(&self, id: BlockComponentId) -> Option<usize> {
        let place = usize::try_from(id.place()).ok()?;
        (place < self.entries.len() && self.id(place) == id).then_some(place)
    }
}

impl Entry {
    /// Migrates a value of another version to this entry; `None` if the game has not registered the component.
    fn migrated<'a>(&self, version: u32, value: &'a [u8]) -> Result<Option<Cow<'a, [u8]>>, BlockComponentError> {
        let Some(schema) = &self.schema else { return Ok(None) };
        let failed = |source| BlockComponentError::Migration { name: self.record.name.clone(), source };
        let value = schema.upgrade(version, value).map_err(failed)?;
        self.record.check_length(value.len())?;
        Ok(Some(value))
    }
}

impl BlockComponentRecord {
    fn is_like(&self, other: &Self) -> bool {
        (self.version, self.size) == (other.version, other.size)
    }

    fn check_length(&self, found: usize) -> Result<(), BlockComponentError> {
        match self.size {
            Some(expected) if usize::try_from(expected) != Ok(found) => {
                Err(BlockComponentError::Length { name: self.name.clone(), version: self.version, expected, found })
            }
            _ => Ok(()),
        }
    }
}

fn check_name(name: &str) -> Result<(), BlockComponentError> {
    check_base(name).map_err(|source| BlockComponentError::InvalidName { name: name.into(), source })
}

fn checked_size(name: &str, size: Option<usize>) -> Result<Option<u32>, BlockComponentError> {
    let Some(size) = size else { return Ok(None) };
    match u32::try_from(size) {
        Ok(bytes) if bytes > 0 => Ok(Some(bytes)),
        _ => Err(BlockComponentError::Size { name: name.into(), size }),
    }
}

/// The stored record of a block. The block's number is its place in the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockRecord {
    /// The name with its properties.
    pub name: String,
    /// The numbers of its components, ascending.
    pub components: Vec<u64>,
}

/// The stored record of a block component. With it, values stay readable after the game has removed the component. The
/// component's number is its place in the list, with the highest bit set if it has a variable size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockComponentRecord {
    /// The name.
    pub name: String,
    /// The version of its schema.
    pub version: u32,
    /// The size of each value in bytes; `None` for a variable size.
    pub size: Option<u32>,
}
