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

use super::{CommitReport, Durability, Family, StoreError, Tier, WorldStore, WriteBatch, keys};
use crate::space::DimensionId;
use crate::work::Progress;
use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};
use uuid::Uuid;

/// Entries that are read at a time. Of one entity's entry up to three keys go in one write.
const PAGE: usize = 1024;
/// With so many bytes of them a page ends.
const PAGE_BYTES: usize = 1 << 20;

impl WorldStore {
    /// Removes everything that is stored in the dimension with this name, and last the name itself, which is free
    /// then for a new, empty dimension with another number. Gives how many entries this call took out of the store, without
    /// those of an earlier call that was cut short; `None` if it was told to stop.
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
    ) -> Result<Option<u64>, StoreError> {
        self.remove_dimension_by(PAGE, name, progress)
    }

    fn remove_dimension_by(
        &self,
        page: usize,
        name: &str,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Option<u64>, StoreError> {
        let (dimension, mut entries) = (self.mark_for_removal(name)?, 0);
        for (family, range) in ranges(dimension) {
            if self.erase((family, range), page, dimension, &mut entries, &mut progress)?.is_break() {
                return Ok(None);
            }
        }
        // Only now may a loss of power find the name free.
        self.sync()?;
        self.unregister(name, dimension)?;
        Ok(Some(entries))
    }

    /// Marks the dimension with this name.
    fn mark_for_removal(&self, name: &str) -> Result<DimensionId, StoreError> {
        let _writing = self.lock_writes();
        let (dimension, _) = self.dimension_record(name)?.ok_or_else(|| self.unknown_dimension(name))?;
        let mut writes = WriteBatch::default();
        writes.put(Family::Meta, keys::key_of_dimension(keys::REMOVAL, dimension), Vec::new());
        self.write(writes, Durability::Sync)?;
        Ok(dimension)
    }

    /// Frees the name, and takes the mark away.
    fn unregister(&self, name: &str, dimension: DimensionId) -> Result<(), StoreError> {
        let _writing = self.lock_writes();
        // Another thread may have removed it at the same time, and the name may be somebody else's by now.
        if self.dimension_record(name)?.is_none_or(|(stored, _)| stored != dimension) {
            return Ok(());
        }
        let mut writes = WriteBatch::default();
        writes.delete(Family::Meta, keys::dimension_key(name));
        for kind in [keys::REMOVAL, keys::SPARSE, keys::CLOCK, keys::OWN_SEED] {
            writes.delete(Family::Meta, keys::key_of_dimension(kind, dimension));
        }
        self.write(writes, Durability::Sync)
    }

    /// Removes a range page by page, each together with the keys that hang on it.
    fn erase(
        &self,
        (family, mut range): (Family, Range<Vec<u8>>),
        page: usize,
        dimension: DimensionId,
        entries: &mut u64,
        progress: &mut impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, StoreError> {
        loop {
            let writing = self.lock_writes();
            let page = self.store.scan_page(family, &range.start..&range.end, page, PAGE_BYTES)?;
            let page: Vec<Vec<u8>> = page.into_iter().map(|(key, _)| key).collect();
            let Some(last) = page.last() else { return Ok(ControlFlow::Continue(())) };
            // Not from the start again: a database looks at what was removed there for a while yet.
            range.start = keys::after(last);
            let leads = |kinds: &[&[u8]]| family == Family::Meta && kinds.iter().any(|kind| page[0].starts_with(kind));
            let mut gone = match () {
                () if leads(&[keys::PLACE, keys::VIEWER]) => self.entities_of(dimension, &page)?,
                () if leads(&[keys::HEAT]) => self.cooling_keys_of(&page)?,
                () => BTreeSet::new(),
            };
            gone.extend(page.into_iter().map(|key| (family, key)));
            *entries += gone.len() as u64;
            let mut writes = WriteBatch::default();
            gone.into_iter().for_each(|(family, key)| writes.delete(family, key));
            self.write(writes, Durability::Process)?;
            drop(writing);
            if progress(&Progress { done: *entries, ..Progress::default() }).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }

    /// The records that a page of place or viewer keys finds in the dimension, and all other keys that find them.
    fn entities_of(&self, dimension: DimensionId, page: &[Vec<u8>]) -> Result<BTreeSet<(Family, Vec<u8>)>, StoreError> {
        let id = |key: &Vec<u8>| {
            let of_place = keys::parse_place_key(key).map(|(.., id)| id);
            let id = of_place.or_else(|| keys::parse_viewer_key(key).map(|(_, id)| id));
            id.ok_or_else(|| self.unknown_key(Family::Meta, key))
        };
        let ids = page.iter().map(id).collect::<Result<Vec<Uuid>, _>>()?;
        let records = ids.iter().map(|id| &id.as_bytes()[..]).collect::<Vec<_>>();
        let records = self.read_to_replace(Family::Entities, &records, &mut CommitReport::default())?;
        let mut gone = BTreeSet::new();
        for (id, value) in ids.into_iter().zip(records) {
            let Some(value) = value else { continue };
            match self.entity_record(id, &value) {
                // Its own place is elsewhere, so this key was left behind.
                Ok(entity) if entity.dimension != dimension => continue,
                Ok(entity) => gone.extend(keys::index_keys(&entity).into_iter().map(|key| (Family::Meta, key))),
                // Where it was is not known from it, only from the key.
                Err(_) => {}
            }
            gone.insert((Family::Entities, keys::entity_key(id).to_vec()));
        }
        Ok(gone)
    }
}

/// All that is stored of a dimension. The keys of places and viewers are the only way to its entities, as the records of heat are
/// to the keys by which groups cool down: each page of those goes together with what it leads to.
fn ranges(dimension: DimensionId) -> impl Iterator<Item = (Family, Range<Vec<u8>>)> {
    let meta = |kind: &[u8]| (Family::Meta, kind.to_vec());
    let leading = [keys::PLACE, keys::VIEWER, keys::HEAT].map(meta);
    let chunks = Tier::ALL.map(|tier| (tier.family(), keys::CHUNK.to_vec()));
    let damaged = Tier::ALL.map(|tier| meta(&keys::damaged_in(tier.family())));
    let others =
        [keys::BLOCK_TICKS, keys::TILE, keys::SUMMARY, keys::PREGENERATION, keys::OBJECT, keys::IMPORT].map(meta);
    let all = leading.into_iter().chain(chunks).chain(damaged).chain(others);
    let all = all.chain([(Family::Opacity, keys::OPACITY.to_vec())]);
    all.map(move |(family, kind)| (family, keys::dimension_range(&kind, dimension)))
}
