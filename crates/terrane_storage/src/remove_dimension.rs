//! Permanent removal of a dimension.
//!
//! A removal takes many writes, and the process may end after any of them:
//!
//! 1. A durable mark under the dimension's number says that the dimension is being removed. It can no longer be opened.
//! 2. Its contents are deleted page by page, in any order. Entities are deleted together with the keys that find them.
//! 3. Once all of this is durable, one write deletes the dimension's registration and the mark. Its number is never reused.
//!
//! So a name is always free, whole or marked, and the removal of a marked dimension can always be finished.

#[cfg(test)]
mod tests;

use super::{CommitReport, Durability, Family, StoreError, Tier, WorldStore, WriteBatch, keys};
use crate::space::DimensionId;
use crate::work::Progress;
use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};
use uuid::Uuid;

/// The number of entries read at a time. Deleting one entity's entry deletes up to three keys in the same write.
const PAGE: usize = 1024;
/// A page ends when its entries reach this many bytes.
const PAGE_BYTES: usize = 1 << 20;

impl WorldStore {
    /// Removes everything that is stored in the dimension with this name, and finally the name itself. The name is then
    /// free for a new, empty dimension with another number. Returns the number of entries that this call removed, not
    /// counting an earlier interrupted call; `None` if `progress` stopped it.
    ///
    /// The dimension must not be open in a running world: data saved into it meanwhile may stay behind, unreachable.
    /// Other dimensions can be saved between the writes.
    ///
    /// `progress` is called after each write with the number of removed entries, and can stop the removal. After a stop, an
    /// error or the end of the process, the dimension can no longer be opened, and calling this again continues the removal.
    ///
    /// An entity with a damaged record is removed if the store finds it in this dimension.
    ///
    /// # Errors
    /// [`StoreError::UnknownDimension`], or an error of the store. Entries that were removed by then stay removed.
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
        // After a loss of power, the name may be free only if everything else is gone.
        self.sync()?;
        self.unregister(name, dimension)?;
        Ok(Some(entries))
    }

    fn mark_for_removal(&self, name: &str) -> Result<DimensionId, StoreError> {
        self.require_alone("the removal of a dimension")?;
        let _writing = self.lock_writes()?;
        let (dimension, _) = self.dimension_record(name)?.ok_or_else(|| self.unknown_dimension(name))?;
        let mut writes = WriteBatch::default();
        writes.put(Family::Meta, keys::key_of_dimension(keys::REMOVAL, dimension), Vec::new());
        self.write(writes, Durability::Sync)?;
        Ok(dimension)
    }

    /// Frees the name and deletes the mark.
    fn unregister(&self, name: &str, dimension: DimensionId) -> Result<(), StoreError> {
        let _writing = self.lock_writes()?;
        // Another thread may have removed the dimension at the same time, and a new dimension may have the name by now.
        if self.dimension_record(name)?.is_none_or(|(stored, _)| stored != dimension) {
            return Ok(());
        }
        let mut writes = WriteBatch::default();
        writes.delete(Family::Meta, keys::dimension_key(name));
        for kind in [keys::REMOVAL, keys::SPARSE, keys::CLOCK, keys::DAYS, keys::HEIGHTS, keys::OWN_SEED, keys::JOINS] {
            writes.delete(Family::Meta, keys::key_of_dimension(kind, dimension));
        }
        self.write(writes, Durability::Sync)?;
        self.names.forget(name, dimension);
        Ok(())
    }

    /// Removes a range page by page, each entry together with its dependent keys.
    fn erase(
        &self,
        (family, mut range): (Family, Range<Vec<u8>>),
        page: usize,
        dimension: DimensionId,
        entries: &mut u64,
        progress: &mut impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, StoreError> {
        loop {
            let writing = self.lock_writes()?;
            let page = self.store.scan_page(family, &range.start..&range.end, page, PAGE_BYTES)?;
            let page: Vec<Vec<u8>> = page.into_iter().map(|(key, _)| key).collect();
            let Some(last) = page.last() else { return Ok(ControlFlow::Continue(())) };
            // Continues behind the last key: the database takes a while to skip deleted keys at the start.
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

    /// The records that a page of place or viewer keys finds in the dimension, and all other keys that find these records.
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
                // The entity is in another dimension, so this key is stale.
                Ok(entity) if entity.dimension != dimension => continue,
                Ok(entity) => gone.extend(keys::index_keys(&entity).into_iter().map(|key| (Family::Meta, key))),
                // The place of a damaged entity is known only from the key.
                Err(_) => {}
            }
            gone.insert((Family::Entities, keys::entity_key(id).to_vec()));
        }
        Ok(gone)
    }
}

/// The ranges of all data of a dimension. Only the keys of places and viewers lead to its entities, and only heat records lead
/// to the cooling keys of groups. So each page of those keys is removed together with the entries it leads to.
fn ranges(dimension: DimensionId) -> impl Iterator<Item = (Family, Range<Vec<u8>>)> {
    let meta = |kind: &[u8]| (Family::Meta, kind.to_vec());
    let leading = [keys::PLACE, keys::VIEWER, keys::HEAT].map(meta);
    let chunks = Tier::ALL.map(|tier| (tier.family(), keys::CHUNK.to_vec()));
    let damaged = Tier::ALL.map(|tier| meta(&keys::damaged_in(tier.family())));
    let others =
        [keys::BLOCK_TICKS, keys::TILE, keys::HISTORY, keys::SUMMARY, keys::PREGENERATION, keys::OBJECT, keys::IMPORT]
            .map(meta);
    let all = leading.into_iter().chain(chunks).chain(damaged).chain(others);
    let all = all.chain([(Family::Opacity, keys::OPACITY.to_vec())]);
    all.map(move |(family, kind)| (family, keys::dimension_range(&kind, dimension)))
}
