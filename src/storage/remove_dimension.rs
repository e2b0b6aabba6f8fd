//! Taking a dimension away for good.
//!
//! A removal is made of many writes, and each may be the last one before the process ends:
//!
//! 1. A durable mark under the dimension's number says that it is being removed. From here on it cannot be opened.
//! 2. What is in it goes, page by page, in any order: entities together with the keys that find them.
//! 3. Only when all that is durable, its registration and the mark go, in one write. Its number is never given again.
//!
//! So a name is either free, or whole, or marked, and a marked one can always be finished.

#[cfg(test)]
mod tests;

use super::backends::store::page_of;
use super::{CommitReport, Durability, EntityRecord, Family, StoreError, Tier, WorldStore, WriteBatch, keys};
use crate::space::DimensionId;
use crate::work::Progress;
use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};
use uuid::Uuid;

/// Entries that are read at a time. Of one entity's entry up to three keys go in one write.
const PAGE: usize = 1024;

/// What [`WorldStore::remove_dimension`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemovedDimension {
    /// The entries that this call took out of the store, not those of an earlier call that was cut short.
    pub entries: u64,
    /// Whether the dimension is gone. If not, it was told to stop, and the removal can be gone on with.
    pub finished: bool,
}

/// How far a removal is.
struct Removal<'a> {
    world: &'a WorldStore,
    dimension: DimensionId,
    page: usize,
    entries: u64,
}

impl WorldStore {
    /// Removes everything that is stored in the dimension with this name, and last the name itself, which is free
    /// then for a new, empty dimension with another number.
    ///
    /// The dimension must not be open in a running world: what is saved into it meanwhile may stay behind, out of
    /// reach. Saves of other dimensions go on between the writes.
    ///
    /// `progress` is told after each write, in entries that are gone, and can stop the removal. Then, and after an
    /// error or the end of the process, the dimension cannot be opened any more, and calling this again goes on.
    ///
    /// An entity whose record is damaged goes if the store finds it in this dimension.
    ///
    /// # Errors
    /// [`StoreError::UnknownDimension`], or what the store says: then what was removed so far stays so.
    pub fn remove_dimension(
        &self,
        name: &str,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<RemovedDimension, StoreError> {
        self.remove_dimension_by(PAGE, name, progress)
    }

    fn remove_dimension_by(
        &self,
        page: usize,
        name: &str,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<RemovedDimension, StoreError> {
        let dimension = self.mark_for_removal(name)?;
        let mut removal = Removal { world: self, dimension, page, entries: 0 };
        if removal.run(&mut progress)?.is_break() {
            return Ok(RemovedDimension { entries: removal.entries, finished: false });
        }
        // Only now may a loss of power find the name free.
        self.sync()?;
        self.unregister(name, dimension)?;
        Ok(RemovedDimension { entries: removal.entries, finished: true })
    }

    /// Marks the dimension with this name.
    fn mark_for_removal(&self, name: &str) -> Result<DimensionId, StoreError> {
        let _writing = self.lock_writes();
        let stored = self.dimension_record(name)?.ok_or_else(|| self.unknown_dimension(name))?;
        let mut writes = WriteBatch::default();
        writes.put(Family::Meta, keys::key_of_dimension(keys::REMOVAL, stored.id), Vec::new());
        self.write(writes, Durability::Sync)?;
        Ok(stored.id)
    }

    /// Frees the name, and takes the mark away.
    fn unregister(&self, name: &str, dimension: DimensionId) -> Result<(), StoreError> {
        let _writing = self.lock_writes();
        // Another thread may have removed it at the same time, and the name may be somebody else's by now.
        if self.dimension_record(name)?.is_none_or(|stored| stored.id != dimension) {
            return Ok(());
        }
        let mut writes = WriteBatch::default();
        writes.delete(Family::Meta, keys::dimension_key(name));
        writes.delete(Family::Meta, keys::key_of_dimension(keys::REMOVAL, dimension));
        writes.delete(Family::Meta, keys::key_of_dimension(keys::SPARSE, dimension));
        writes.delete(Family::Meta, keys::key_of_dimension(keys::CLOCK, dimension));
        writes.delete(Family::Meta, keys::key_of_dimension(keys::OWN_SEED, dimension));
        self.write(writes, Durability::Sync)
    }
}

impl Removal<'_> {
    fn run(&mut self, progress: &mut impl FnMut(&Progress) -> ControlFlow<()>) -> Result<ControlFlow<()>, StoreError> {
        let dimension = self.dimension;
        {
            let _writing = self.world.lock_writes();
            self.world.unwritten_opacity.remove(|(of, _)| of == dimension);
        }
        // Their keys are the only way to the entities, so each page of keys goes together with its entities.
        for range in [keys::dimension_range(keys::PLACE, dimension), keys::dimension_range(keys::VIEWER, dimension)] {
            if self.erase(Family::Meta, range, Self::entity_keys, progress)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        // As with entities: only the records of heat lead to the keys by which groups cool down.
        if self
            .erase(Family::Meta, keys::dimension_range(keys::HEAT, dimension), Self::cooling_keys, progress)?
            .is_break()
        {
            return Ok(ControlFlow::Break(()));
        }
        let chunks = Tier::ALL.map(|tier| (tier.family(), keys::dimension_range(keys::CHUNK, dimension)));
        let damaged =
            Tier::ALL.map(|tier| (Family::Meta, keys::dimension_range(&keys::damaged_in(tier.family()), dimension)));
        let others = [
            (Family::Meta, keys::dimension_range(keys::BLOCK_TICKS, dimension)),
            (Family::Meta, keys::dimension_range(keys::TILE, dimension)),
            (Family::Meta, keys::dimension_range(keys::SUMMARY, dimension)),
            (Family::Meta, keys::dimension_range(keys::PREGENERATION, dimension)),
            (Family::Meta, keys::dimension_range(keys::OBJECT, dimension)),
            (Family::Meta, keys::dimension_range(keys::IMPORT, dimension)),
            (Family::Opacity, keys::dimension_range(keys::OPACITY, dimension)),
        ];
        for (family, range) in chunks.into_iter().chain(damaged).chain(others) {
            if self.erase(family, range, |_, _| Ok(BTreeSet::new()), progress)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Removes a range page by page, each together with the keys that hang on it.
    fn erase(
        &mut self,
        family: Family,
        mut range: Range<Vec<u8>>,
        others: impl Fn(&Self, &[Vec<u8>]) -> Result<BTreeSet<(Family, Vec<u8>)>, StoreError>,
        progress: &mut impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, StoreError> {
        loop {
            let writing = self.world.lock_writes();
            let page = self.world.store.scan(family, &range.start..&range.end, self.page.min(page_of(family)))?;
            let page: Vec<Vec<u8>> = page.into_iter().map(|(key, _)| key).collect();
            let Some(last) = page.last() else { return Ok(ControlFlow::Continue(())) };
            // Not from the start again: a database looks at what was removed there for a while yet.
            range.start = keys::after(last);
            let mut gone = others(self, &page)?;
            gone.extend(page.into_iter().map(|key| (family, key)));
            let mut writes = WriteBatch::default();
            let count = gone.len() as u64;
            gone.into_iter().for_each(|(family, key)| writes.delete(family, key));
            self.world.write(writes, Durability::Process)?;
            self.entries += count;
            drop(writing);
            if progress(&Progress { done: self.entries, ..Progress::default() }).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }

    fn cooling_keys(&self, page: &[Vec<u8>]) -> Result<BTreeSet<(Family, Vec<u8>)>, StoreError> {
        self.world.cooling_keys_of(page)
    }

    /// The records that a page of place or viewer keys finds in the dimension, and all other keys that find them.
    fn entity_keys(&self, page: &[Vec<u8>]) -> Result<BTreeSet<(Family, Vec<u8>)>, StoreError> {
        let id = |key: &Vec<u8>| {
            let of_place = keys::parse_place_key(key).map(|(.., id)| id);
            let id = of_place.or_else(|| keys::parse_viewer_key(key).map(|(_, id)| id));
            id.ok_or_else(|| self.world.unknown_key(Family::Meta, key))
        };
        let ids = page.iter().map(id).collect::<Result<Vec<Uuid>, _>>()?;
        let records = ids.iter().map(|id| &id.as_bytes()[..]).collect::<Vec<_>>();
        let records = self.world.read_to_replace(Family::Entities, &records, &mut CommitReport::default())?;
        let mut gone = BTreeSet::new();
        for (id, value) in ids.into_iter().zip(records) {
            let Some(value) = value else { continue };
            match self.world.entity_record(id, &value) {
                // Its own place is elsewhere, so this key was left behind.
                Ok(EntityRecord { dimension, .. }) if dimension != self.dimension => continue,
                Ok(entity) => gone.extend(entity.index_keys().into_iter().map(|key| (Family::Meta, key))),
                // Where it was is not known from it, only from the key.
                Err(_) => {}
            }
            gone.insert((Family::Entities, keys::entity_key(id).to_vec()));
        }
        Ok(gone)
    }
}
