//! The dimensions of a world: their names, numbers and origins, and which of them are sparse.

use super::{Durability, Family, StoreError, StoredItem, WorldStore, WriteBatch, keys, values::record};
use crate::space::{DimensionId, GeneratorIdentity};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The generator of a dimension that has an id and was never opened.
const NEVER_OPENED: GeneratorIdentity = GeneratorIdentity { name: String::new(), version: 0, seed: 0 };

/// The ids of a world's dimensions, by name. Reading and assigning ids never waits for the store.
///
/// An id that was assigned here is stored with the next commit, so all data that a commit stores under the id can be found by the
/// name.
#[derive(Debug, Default)]
pub struct DimensionNames(Mutex<Names>);

#[derive(Debug, Default)]
struct Names {
    ids: BTreeMap<String, DimensionId>,
    /// The highest id that was ever assigned.
    last: Option<u64>,
    /// Names with new ids that are not stored yet.
    unstored: BTreeSet<String>,
    /// `true` if several servers share the world. They cannot agree on the next id without asking the store, so the id of a new
    /// name follows from the name.
    is_shared: bool,
}

impl DimensionNames {
    fn lock(&self) -> MutexGuard<'_, Names> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of the dimension with this name. A new name gets the next id, or, in a world that several servers share, one that
    /// follows from the name. After 2^64 dimensions every new name gets the last id, and cannot be opened.
    pub fn id(&self, name: &str) -> DimensionId {
        self.lock().assign(name).unwrap_or(DimensionId(u64::MAX))
    }

    /// The id of the dimension with this name, if it has one.
    pub fn find(&self, name: &str) -> Option<DimensionId> {
        self.lock().ids.get(name).copied()
    }

    /// The name of the dimension with this id.
    pub fn name(&self, id: DimensionId) -> Option<String> {
        self.lock().ids.iter().find(|(_, known)| **known == id).map(|(name, _)| name.clone())
    }

    /// Frees the name of a removed dimension. Its next dimension gets another id.
    pub fn forget(&self, name: &str, id: DimensionId) {
        let mut names = self.lock();
        if names.ids.get(name) == Some(&id) {
            names.ids.remove(name);
            names.unstored.remove(name);
        }
    }

    /// Gives the name back to a dimension that was not removed after all.
    pub fn restore(&self, name: &str, id: DimensionId) {
        let mut names = self.lock();
        names.ids.insert(name.to_owned(), id);
        names.unstored.insert(name.to_owned());
    }
}

impl Names {
    /// The id of this name, which may be new; `None` if no id is left.
    fn assign(&mut self, name: &str) -> Option<DimensionId> {
        if let Some(id) = self.ids.get(name) {
            return Some(*id);
        }
        let id = match self.is_shared {
            true => shared_id(name),
            false => self.last.map_or(Some(0), |last| last.checked_add(1))?,
        };
        self.last = self.last.max(Some(id));
        self.unstored.insert(name.to_owned());
        self.ids.insert(name.to_owned(), DimensionId(id));
        Some(DimensionId(id))
    }
}

/// The id of a new dimension of a shared world: bits of the FNV-1a hash of its name, above all ids that are counted.
fn shared_id(name: &str) -> u64 {
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    1 << 62 | hash >> 2
}

/// A stored dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDimension {
    /// Its name.
    pub name: String,
    /// Its number.
    pub id: DimensionId,
    /// The identity of its generator.
    pub generator: GeneratorIdentity,
    /// The seed that the game gave to the generator, for messages; `None` if there is none or it is unknown.
    pub own_seed: Option<u64>,
    /// `true` if the dimension generates each chunk on its own.
    pub sparse: bool,
    /// `true` if a removal was begun and not finished. The dimension can only be removed.
    pub being_removed: bool,
}

impl WorldStore {
    /// The ids of the dimensions, by name.
    #[doc(hidden)]
    pub fn dimension_names(&self) -> &Arc<DimensionNames> {
        &self.names
    }

    /// Reads the names and ids. Damaged records are left to the opening of their dimensions, which fails. The name of a dimension
    /// that is being removed is free: its next dimension gets another id.
    pub(super) fn read_names(&self) -> Result<(), StoreError> {
        let stored = self.list_meta(keys::range_of(keys::DIMENSION), |key, value| {
            let Some(name) = keys::parse_dimension_key(key) else { return Ok(None) };
            let Ok((id, _)) = self.dimension_of(name, value) else { return Ok(None) };
            Ok(Some((name.to_owned(), id, self.is_marked(id)?)))
        });
        let stored = match stored {
            Err(error) if error.is_damage() => {
                tracing::warn!("{error}; the ids of dimensions are unknown until they open");
                Vec::new()
            }
            stored => stored?,
        };
        let mut names = self.names.lock();
        let last: Option<u64> = self.read_record(keys::LAST_DIMENSION, StoredItem::LastDimension).unwrap_or_default();
        names.is_shared = self.incarnation().is_some();
        names.last = last.max(stored.iter().map(|(_, id, _)| id.0).max());
        let kept = stored.into_iter().filter(|(_, _, is_removed)| !is_removed);
        names.ids = kept.map(|(name, id, _)| (name, id)).collect();
        Ok(())
    }

    /// Adds ids that are not stored yet to a commit, and returns their names. A name whose old dimension is still being removed
    /// waits for the end of the removal, and a name with a damaged record for its repair. While the last id is damaged, none is
    /// stored.
    pub(super) fn add_names(&self, writes: &mut WriteBatch) -> Result<Vec<String>, StoreError> {
        let (unstored, last) = {
            let names = self.names.lock();
            let unstored = names.unstored.iter().filter_map(|name| Some((name.clone(), *names.ids.get(name)?)));
            (unstored.collect::<Vec<_>>(), names.last)
        };
        let mut added = Vec::new();
        if self.incarnation().is_some() {
            // Every server finds the same id, and opening the dimension stores it.
            return Ok(added);
        }
        if unstored.is_empty() || self.read_record::<u64>(keys::LAST_DIMENSION, StoredItem::LastDimension).is_err() {
            return Ok(added);
        }
        for (name, id) in unstored {
            match self.dimension_record(&name) {
                Ok(None) => writes.put(Family::Meta, keys::dimension_key(&name), record::encode(&(id, NEVER_OPENED))),
                Ok(Some((stored, _))) if stored == id => {}
                _ => continue,
            }
            added.push(name);
        }
        last.into_iter().for_each(|last| writes.put(Family::Meta, keys::LAST_DIMENSION, record::encode(&last)));
        Ok(added)
    }

    /// Notes that the ids of these names are stored.
    pub(super) fn names_stored(&self, stored: &[String]) {
        if !stored.is_empty() {
            let mut names = self.names.lock();
            names.unstored.retain(|name| !stored.contains(name));
        }
    }

    /// All dimensions, by name.
    pub fn dimensions(&self) -> Result<Vec<StoredDimension>, StoreError> {
        self.list_meta(keys::range_of(keys::DIMENSION), |key, value| {
            let name = self.parsed(Family::Meta, key, keys::parse_dimension_key)?;
            let (id, generator) = self.dimension_of(name, value)?;
            if generator == NEVER_OPENED {
                return Ok(None);
            }
            let (own_seed, sparse, being_removed) = (self.own_seed(id)?, self.is_sparse(id)?, self.is_marked(id)?);
            Ok(Some(StoredDimension { name: name.into(), id, generator, own_seed, sparse, being_removed }))
        })
    }

    /// Returns `true` if the dimension exists and is not being removed. One that this world knows costs a single read.
    pub fn has_dimension(&self, id: DimensionId) -> Result<bool, StoreError> {
        match self.names.name(id) {
            Some(_) => Ok(!self.is_marked(id)?),
            None => Ok(self.dimensions()?.iter().any(|known| known.id == id && !known.being_removed)),
        }
    }

    /// The dimension with this name.
    ///
    /// # Errors
    /// [`StoreError::UnknownDimension`], also if the dimension is being removed, or an error of the store.
    pub fn dimension_named(&self, name: &str) -> Result<StoredDimension, StoreError> {
        let mut dimensions = self.dimensions()?.into_iter();
        let found = dimensions.find(|dimension| dimension.name == name && !dimension.being_removed);
        found.ok_or_else(|| self.unknown_dimension(name))
    }

    pub(super) fn unknown_dimension(&self, name: &str) -> StoreError {
        StoreError::UnknownDimension { name: name.into(), path: self.path().to_path_buf() }
    }

    /// The dimension with this name and record.
    pub(super) fn dimension_of(
        &self,
        name: &str,
        value: &[u8],
    ) -> Result<(DimensionId, GeneratorIdentity), StoreError> {
        self.record(value, StoredItem::Dimension(name.into()))
    }

    /// The id of the dimension with this name. A new dimension gets its id here, and must be opened with the same
    /// origin ever after.
    ///
    /// A dimension whose removal was interrupted is refused. Finishing the removal here could take minutes at a moment
    /// that the game did not choose.
    pub fn open_dimension(&self, name: &str, origin: &GeneratorIdentity) -> Result<DimensionId, StoreError> {
        self.open_dimension_as(name, origin, false)
    }

    /// Like [`open_dimension`](Self::open_dimension). A new dimension becomes [sparse](Self::make_sparse) if
    /// `is_sparse` is `true`.
    pub(super) fn open_dimension_as(
        &self,
        name: &str,
        origin: &GeneratorIdentity,
        is_sparse: bool,
    ) -> Result<DimensionId, StoreError> {
        // An existing one opens without a write, so it opens on a full disk.
        let stored = self.store.get(Family::Meta, &keys::dimension_key(name))?;
        if let Some(id) = self.existing_dimension(name, origin, stored.as_deref())? {
            return Ok(id);
        }
        let _writing = self.lock_writes()?;
        loop {
            match self.try_to_open_dimension(name, origin, is_sparse) {
                // Another server opened a dimension at the same moment.
                Err(StoreError::PreconditionFailed { .. }) => {}
                opened => return opened,
            }
        }
    }

    /// The dimension with this name and stored record, if it has this origin.
    fn existing_dimension(
        &self,
        name: &str,
        origin: &GeneratorIdentity,
        stored: Option<&[u8]>,
    ) -> Result<Option<DimensionId>, StoreError> {
        let known = stored.map(|value| self.dimension_of(name, value)).transpose()?;
        let Some((id, stored)) = known else { return Ok(None) };
        if self.is_marked(id)? {
            return Err(StoreError::BeingRemoved { name: name.into() });
        }
        if stored != *origin {
            return Ok(None);
        }
        // If the record could not be read at the start, the name is not known yet.
        self.names.lock().ids.entry(name.to_owned()).or_insert(id);
        Ok(Some(id))
    }

    fn try_to_open_dimension(
        &self,
        name: &str,
        origin: &GeneratorIdentity,
        is_sparse: bool,
    ) -> Result<DimensionId, StoreError> {
        let key = keys::dimension_key(name);
        // It is read once: another server may open the dimension at any moment.
        let stored_record = self.store.get(Family::Meta, &key)?;
        if let Some(id) = self.existing_dimension(name, origin, stored_record.as_deref())? {
            return Ok(id);
        }
        let known = stored_record.as_deref().map(|value| self.dimension_of(name, value)).transpose()?;
        if let Some((_, stored)) = &known
            && *stored != NEVER_OPENED
        {
            let (name, stored, wanted) = (name.into(), Box::new(stored.clone()), Box::new(origin.clone()));
            return Err(StoreError::OriginMismatch { name, stored, wanted });
        }
        let stored_last = self.store.get(Family::Meta, keys::LAST_DIMENSION)?;
        let last = stored_last.as_deref().map(|value| self.record(value, StoredItem::LastDimension)).transpose()?;
        let dimension = {
            let mut names = self.names.lock();
            names.last = names.last.max(last);
            known.map(|(id, _)| id).or_else(|| names.assign(name)).map(|id| (id, names.last.unwrap_or(id.0)))
        };
        let dimension = dimension.ok_or_else(|| self.corrupt(StoredItem::LastDimension, "no number is left after it"));
        let (dimension, last) = dimension?;
        if self.names.name(dimension).is_some_and(|other| other != name) {
            let reason = "another name has the same number: choose another name";
            return Err(self.corrupt(StoredItem::Dimension(name.into()), reason));
        }
        let mut writes = WriteBatch::default();
        writes.require(Family::Meta, key.clone(), stored_record);
        writes.require(Family::Meta, keys::LAST_DIMENSION, stored_last);
        writes.put(Family::Meta, key, record::encode(&(dimension, origin)));
        writes.put(Family::Meta, keys::LAST_DIMENSION, record::encode(&last));
        if is_sparse {
            writes.put(Family::Meta, keys::key_of_dimension(keys::SPARSE, dimension), Vec::new());
        }
        if let Err(error) = self.write(writes, Durability::Sync) {
            if matches!(error, StoreError::PreconditionFailed { .. }) {
                self.names.forget(name, dimension);
            }
            return Err(error);
        }
        self.names_stored(&[name.to_owned()]);
        Ok(dimension)
    }

    /// Makes the dimension sparse. From now on every generated chunk is stored, even if it is all air, so a chunk that
    /// is not stored was not generated. A sparse dimension stays sparse.
    pub fn make_sparse(&self, dimension: DimensionId) -> Result<(), StoreError> {
        if self.is_sparse(dimension)? {
            return Ok(());
        }
        let _writing = self.lock_writes()?;
        if self.is_sparse(dimension)? {
            return Ok(());
        }
        let mut writes = WriteBatch::default();
        writes.put(Family::Meta, keys::key_of_dimension(keys::SPARSE, dimension), Vec::new());
        self.write(writes, Durability::Sync)
    }

    /// Returns `true` if every generated chunk of the dimension is stored, even if it is all air.
    pub fn is_sparse(&self, dimension: DimensionId) -> Result<bool, StoreError> {
        Ok(self.store.get(Family::Meta, &keys::key_of_dimension(keys::SPARSE, dimension))?.is_some())
    }

    fn own_seed(&self, dimension: DimensionId) -> Result<Option<u64>, StoreError> {
        self.read_record(&keys::key_of_dimension(keys::OWN_SEED, dimension), StoredItem::OwnSeed(dimension))
    }

    /// Stores the seed that the game gave to a dimension's generator, for messages. The origin may hold only a digest of it.
    pub fn note_own_seed(&self, dimension: DimensionId, seed: u64) -> Result<(), StoreError> {
        let _writing = self.lock_writes()?;
        let (key, value) = (keys::key_of_dimension(keys::OWN_SEED, dimension), record::encode(&seed));
        if self.store.get(Family::Meta, &key)?.as_deref() == Some(&value[..]) {
            return Ok(());
        }
        let mut writes = WriteBatch::default();
        writes.put(Family::Meta, key, value);
        self.write(writes, Durability::Process)
    }

    /// The generator of the dimension with this name, as text for messages, if it can be read.
    pub fn generator_text(&self, name: &str) -> Option<String> {
        let (id, generator) = self.dimension_record(name).ok()??;
        Some(generator.told(self.own_seed(id).ok().flatten()))
    }

    /// The dimension with this name, even if it is being removed; `None` if there is none.
    pub(super) fn dimension_record(&self, name: &str) -> Result<Option<(DimensionId, GeneratorIdentity)>, StoreError> {
        self.read_record(&keys::dimension_key(name), StoredItem::Dimension(name.into()))
    }

    pub(super) fn is_marked(&self, dimension: DimensionId) -> Result<bool, StoreError> {
        Ok(self.store.get(Family::Meta, &keys::key_of_dimension(keys::REMOVAL, dimension))?.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::test_store::TestStore;
    use crate::space::ChunkPos;
    use crate::{CommitReport, KeyValueStore, SaveBatch, StoredBlockTick};
    use std::ops::ControlFlow;

    fn origin() -> GeneratorIdentity {
        GeneratorIdentity { name: "hills".into(), version: 3, seed: 42 }
    }

    fn save(world: &WorldStore, dimension: DimensionId) -> CommitReport {
        let pos = ChunkPos::default();
        let tick = StoredBlockTick { block: pos.min_block(), kind: "flow".into(), remaining: 4 };
        let block_ticks = [((dimension, pos), vec![tick])].into_iter().collect();
        world.commit(&SaveBatch { block_ticks, ..SaveBatch::default() }, Durability::Process).unwrap()
    }

    #[test]
    fn an_id_is_assigned_before_the_dimension_opens_and_stored_with_its_first_data() {
        let store = TestStore::default();
        let world = store.world();
        let end = world.dimension_names().id("end");
        assert_eq!(world.dimension_names().id("nether"), DimensionId(end.0 + 1));
        assert_eq!(world.dimension_names().find("overworld"), None);
        save(&world, end);
        assert_eq!(world.dimensions().unwrap(), [], "neither was opened");

        let world = store.world();
        let names = world.dimension_names();
        assert_eq!(names.id("overworld"), DimensionId(end.0 + 2));
        assert_eq!((names.name(end).as_deref(), names.find("end")), (Some("end"), Some(end)));
        assert_eq!(world.open_dimension("end", &origin()), Ok(end));
        assert_eq!(world.dimension_named("end").map(|stored| (stored.id, stored.generator)), Ok((end, origin())));

        // An opened dimension keeps its generator.
        names.restore("end", end);
        save(&world, end);
        assert_eq!(store.world().open_dimension("end", &origin()), Ok(end));
    }

    #[test]
    fn a_removed_name_gets_another_id_at_once_and_after_a_restart() {
        let store = TestStore::default();
        let world = store.world();
        let old = world.open_dimension("end", &origin()).unwrap();
        world.dimension_names().forget("end", old);
        let new = world.dimension_names().id("end");
        assert_ne!(new, old);
        // The old dimension's record stays until its removal has ended.
        save(&world, new);
        assert_eq!(world.dimension_record("end").unwrap().map(|(id, _)| id), Some(old));
        world.remove_dimension("end", |_| ControlFlow::Continue(())).unwrap();
        save(&world, new);
        assert_eq!(store.world().dimension_names().id("end"), new);
    }

    #[test]
    fn the_name_of_an_interrupted_removal_has_the_id_of_its_next_dimension() {
        let store = TestStore::default();
        let world = store.world();
        let old = world.open_dimension("end", &origin()).unwrap();
        save(&world, old);
        assert_eq!(world.remove_dimension("end", |_| ControlFlow::Break(())), Ok(None));
        let world = store.world();
        let new = world.dimension_names().id("end");
        assert_ne!(new, old);
        assert!(world.remove_dimension("end", |_| ControlFlow::Continue(())).unwrap().is_some());
        assert_eq!(world.open_dimension("end", &origin()), Ok(new));
    }

    #[test]
    fn a_damaged_last_id_is_not_overwritten() {
        let store = TestStore::default();
        store.world().open_dimension("end", &origin()).unwrap();
        store.tamper(Family::Meta, keys::LAST_DIMENSION, |value| value.truncate(1));
        let world = store.world();
        save(&world, world.dimension_names().id("nether"));
        assert_eq!(store.get(Family::Meta, keys::LAST_DIMENSION).unwrap().map(|value| value.len()), Some(1));
        assert_eq!(world.dimension_record("nether"), Ok(None));
    }
}
