//! A new world of all that can still be read of a damaged one.

use super::check::{self, Checker, Verdict};
use super::copy::expect_empty;
use super::{Damage, Listed, UpkeepError};
use crate::storage::walk::{Found, Walk};
use crate::storage::{
    Durability, Family, KeyValueStore, StoreError, WorldStore, WriteBatch, keys, values::registry_lists,
};
use crate::work::Progress;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// What [`salvage`] could save.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SalvageReport {
    /// What was read.
    pub read: Progress,
    /// What was damaged.
    pub damage: Listed<Damage>,
    /// Damaged values that only a [copy](WorldStore::set_aside) was kept of.
    pub set_aside: u64,
    /// Whether all was looked at.
    pub finished: bool,
}

/// Copies all that can be read of a world into an empty store.
///
/// Whole values are copied as they are. So are damaged chunks: the game refuses them or generates them anew, as it is set to.
/// Of other damaged values a [copy](WorldStore::set_aside) is kept, which nobody reads unasked. What the database cannot
/// read is left out. A damaged header is replaced by a new one.
///
/// The lists of types and the records of dimensions say what all the rest means. Without them a game would give the same
/// numbers to other things, so they are copied also if they are damaged, and what cannot be read of them is marked as lost:
/// then the new world, or the dimension, is refused until somebody has put them right.
///
/// # Errors
/// [`UpkeepError::NotEmpty`], or what a store said.
pub fn salvage(
    from: &WorldStore,
    to: &dyn KeyValueStore,
    progress: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<SalvageReport, UpkeepError> {
    expect_empty(to)?;
    let checker = Checker::new(from)?;
    let mut salvage = Salvage { from, to, checker, lost: BTreeSet::new(), report: SalvageReport::default() };
    let mut walk = Walk::new(&*from.store, check::ranges(), progress)?;
    let end = walk.run(|found| salvage.take(found))?;
    salvage.report.read = walk.done();
    if end.is_continue() {
        salvage.finish()?;
    }
    Ok(salvage.report)
}

/// A world that is being salvaged.
struct Salvage<'a> {
    from: &'a WorldStore,
    to: &'a dyn KeyValueStore,
    checker: Checker<'a>,
    /// The families of which something cannot be read.
    lost: BTreeSet<Family>,
    report: SalvageReport,
}

impl Salvage<'_> {
    fn take(&mut self, found: Found) -> Result<(), UpkeepError> {
        match found {
            Found::Page(family, page) => {
                let mut writes = WriteBatch::default();
                page.iter().try_for_each(|(key, value)| self.take_entry(family, key, value, &mut writes))?;
                self.to.write(writes, Durability::Process)?;
            }
            Found::Unreadable(range) => {
                self.checker.miss(range.family);
                self.lost.insert(range.family);
                self.report.damage.add(Damage::Unreadable(range));
            }
        }
        Ok(())
    }

    fn take_entry(
        &mut self,
        family: Family,
        key: &[u8],
        value: &[u8],
        writes: &mut WriteBatch,
    ) -> Result<(), StoreError> {
        let (damages, is_usable) = match self.checker.check(family, key, value)? {
            Verdict::Whole | Verdict::Stale => (Vec::new(), true),
            Verdict::Misplaced(damages) => (damages, true),
            Verdict::Damaged(damages) => (damages, is_kept(family, key)),
        };
        damages.into_iter().for_each(|damage| self.report.damage.add(damage));
        if !is_usable {
            self.report.set_aside += 1;
            writes.put(Family::Meta, keys::damaged_key(family, key, value), value.to_vec());
            return Ok(());
        }
        writes.put(family, key, value.to_vec());
        if let Some(entity) = keys::parse_entity_key(key).filter(|_| family == Family::Entities) {
            // The keys that lead to it may be lost.
            let keys = self.from.entity_record(entity, value).map(|record| record.index_keys()).unwrap_or_default();
            keys.into_iter().for_each(|key| writes.put(Family::Meta, key, Vec::new()));
        }
        Ok(())
    }

    /// Puts a new header in the place of a damaged one, marks what is lost, and makes all of it durable.
    fn finish(&mut self) -> Result<(), UpkeepError> {
        let mut writes = WriteBatch::default();
        if self.to.get(Family::Meta, keys::HEADER)?.is_none() {
            writes.put(Family::Meta, keys::HEADER, self.from.header_anew());
        }
        let lists = registry_lists::KEYS.map(|key| (Family::Registry, key.as_bytes()));
        for (family, key) in lists.into_iter().chain([(Family::Meta, keys::LAST_DIMENSION)]) {
            if self.lost.contains(&family) && self.to.get(family, key)?.is_none() {
                // Nothing is stored as no bytes at all, so this is refused by whoever reads it.
                writes.put(family, key, Vec::new());
            }
        }
        self.to.write(writes, Durability::Process)?;
        if self.lost.contains(&Family::Meta) {
            forget_graphs(self.to)?;
        }
        self.to.sync()?;
        self.report.finished = true;
        Ok(())
    }
}

/// A graph of which a part is lost would have stored columns generated over. One that is lost as a whole is made anew from what
/// is stored, when its dimension is opened.
fn forget_graphs(world: &dyn KeyValueStore) -> Result<(), UpkeepError> {
    let range = keys::all_tiles_range();
    loop {
        let page = world.scan(Family::Meta, &range.start..&range.end, 1_024)?;
        if page.is_empty() {
            return Ok(());
        }
        let mut writes = WriteBatch::default();
        page.into_iter().for_each(|(key, _)| writes.delete(Family::Meta, key));
        world.write(writes, Durability::Process)?;
    }
}

/// Whether a damaged value is copied as it is, and not only kept aside.
fn is_kept(family: Family, key: &[u8]) -> bool {
    match family {
        Family::Chunks | Family::WarmChunks | Family::ColdChunks | Family::Registry => true,
        // A damaged piece of a graph says that the graph is to be made anew.
        Family::Meta => {
            key == keys::LAST_DIMENSION
                || keys::parse_dimension_key(key).is_some()
                || keys::parse_tile_key(key).is_some()
        }
        Family::Entities | Family::Opacity => false,
    }
}
