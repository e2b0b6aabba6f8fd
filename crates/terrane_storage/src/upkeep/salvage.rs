//! Salvage: a new world from the readable parts of a damaged one.

use super::check::{self, Checker};
use super::copy::expect_empty;
use super::{Damage, Listed, UpkeepError, VerifyReport};
use crate::space::{ColumnPos, DimensionId, GeneratorIdentity, TilePos};
use crate::tiers::{LOST_CHUNK, cluster};
use crate::values::tile_masks::Masks;
use crate::values::{record, registry_lists, tile_masks};
use crate::walk::{Unreadable, walk};
use crate::work::Progress;
use crate::{
    ChunkGroup, Durability, Family, KeyValue, KeyValueStore, StoreError, Tier, TileHistory, WorldStore, WriteBatch,
    envelope, keys,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Copies the readable parts of a world into an empty store.
///
/// Whole values are copied unchanged. Damaged values are kept as a [copy](WorldStore::set_aside) that no game reads. A
/// damaged chunk is marked as lost: depending on its settings, the game refuses the chunk's column or generates it
/// anew. Parts that the database cannot read are left out. A damaged header, a damaged stored graph and the keys that
/// lead to entities are rebuilt from the other data. A dimension whose record is lost gets one without a generator: no
/// game can open it, but it can be exported, and imported into another dimension.
///
/// The lists of types give meaning to all other data. Without them, a game would reuse the same numbers for other
/// types. So they are copied even if damaged, and unreadable lists are marked as lost: the new world is then refused
/// until its lists are repaired. All other data of the new world passes [`verify`](WorldStore::verify).
///
/// # Errors
/// [`UpkeepError::NotEmpty`], [`UpkeepError::Cancelled`], or an error of a store.
pub fn salvage(
    from: &WorldStore,
    to: &dyn KeyValueStore,
    progress: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<VerifyReport, UpkeepError> {
    salvage_rest(from, to, Listed::default(), progress)
}

/// Like [`salvage`], for a world that has already lost some files.
pub(super) fn salvage_rest(
    from: &WorldStore,
    to: &dyn KeyValueStore,
    lost_files: Listed<Damage>,
    progress: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<VerifyReport, UpkeepError> {
    expect_empty(to)?;
    // The lost files may have held data of any family.
    let lost: BTreeSet<Family> = Family::ALL.into_iter().filter(|_| !lost_files.is_empty()).collect();
    let report = VerifyReport { damage: lost_files, ..VerifyReport::default() };
    let (known, nameless, columns, without_graph) = Default::default();
    let checker = Checker::new(from)?;
    let mut salvage = Salvage { from, to, checker, lost, known, nameless, columns, without_graph, report };
    let (read, finished) = walk(&*from.store, check::ranges(), progress, |family, found| salvage.take(family, found))?;
    if !finished {
        return Err(UpkeepError::Cancelled);
    }
    salvage.finish()?;
    let Checker { stale, marked_lost, .. } = salvage.checker;
    Ok(VerifyReport { read, stale, marked_lost, finished, ..salvage.report })
}

struct Salvage<'a> {
    from: &'a WorldStore,
    to: &'a dyn KeyValueStore,
    checker: Checker<'a>,
    /// The families with unreadable parts.
    lost: BTreeSet<Family>,
    /// The dimensions that have a record.
    known: BTreeSet<DimensionId>,
    /// The names of dimensions whose record is damaged.
    nameless: Vec<String>,
    /// The dimensions of the salvaged data, with the columns that have chunks or a summary.
    columns: BTreeMap<DimensionId, BTreeMap<TilePos, Masks>>,
    /// The dimensions whose stored graph has to be rebuilt.
    without_graph: BTreeSet<DimensionId>,
    report: VerifyReport,
}

impl Salvage<'_> {
    fn take(&mut self, family: Family, found: Result<&[KeyValue], Unreadable>) -> Result<(), UpkeepError> {
        match found {
            Ok(page) => {
                let mut writes = WriteBatch::default();
                page.iter().try_for_each(|(key, value)| self.take_entry(family, key, value, &mut writes))?;
                self.to.write(writes, Durability::Process)?;
            }
            Err((keys, reason)) => {
                self.checker.miss(family);
                self.lost.insert(family);
                self.report.damage.add(Damage::Unreadable { family, keys, reason });
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
        let damages = self.checker.check(family, key, value)?;
        // A group that is stored in two tiers is copied only once.
        let is_packed = matches!(family, Family::WarmChunks | Family::ColdChunks);
        let is_whole = damages.is_empty() || !is_packed && damages.iter().all(Damage::is_of_place);
        for damage in damages {
            if let Damage::Unmarked { dimension, .. } = damage {
                self.without_graph.insert(dimension);
            }
            self.report.damage.add(damage);
        }
        if family == Family::Opacity {
            // Rebuilt from the remaining chunks.
            return Ok(());
        }
        if is_whole {
            self.note(family, key, value, writes)?;
            writes.put(family, key, value.to_vec());
            return Ok(());
        }
        if family == Family::Registry && registry_lists::KEYS.iter().any(|list| list.as_bytes() == key) {
            writes.put(family, key, value.to_vec());
            return Ok(());
        }
        self.report.set_aside += 1;
        writes.put(Family::Meta, keys::damaged_key(family, key, value), value.to_vec());
        match Tier::of_family(family) {
            Some(Tier::Hot) => self.mark_lost(key, writes),
            Some(tier) => self.take_cluster(tier, key, value, writes)?,
            None if family == Family::Meta => {
                self.nameless.extend(keys::parse_dimension_key(key).map(str::to_owned));
                self.without_graph.extend(keys::parse_tile_key(key).map(|(dimension, _)| dimension));
                if keys::parse_history_key(key).is_some() {
                    // Columns whose history is damaged count as told and complete, so that nothing is placed or generated on them twice.
                    writes.put(Family::Meta, key, envelope::sealed(0, &TileHistory::complete().encode()));
                }
            }
            None => {}
        }
        Ok(())
    }

    /// Records what a whole value says about other data, and rebuilds the keys that lead to it, which may be lost.
    fn note(&mut self, family: Family, key: &[u8], value: &[u8], writes: &mut WriteBatch) -> Result<(), StoreError> {
        match (family, Tier::of_family(family)) {
            (_, Some(Tier::Hot)) => {
                let (dimension, chunk) = self.from.parsed(family, key, keys::parse_chunk_key)?;
                self.add_columns(dimension, [chunk.column()]);
            }
            (_, Some(tier)) => {
                let (dimension, _) = self.from.parsed(family, key, keys::parse_chunk_key)?;
                self.add_columns(dimension, self.from.columns_in_cluster(tier, key, value)?);
            }
            (Family::Entities, _) => {
                let id = self.from.parsed(family, key, keys::parse_entity_key)?;
                let entity = self.from.entity_record(id, value)?;
                self.add_columns(entity.dimension, []);
                keys::index_keys(&entity).into_iter().for_each(|key| writes.put(Family::Meta, key, Vec::new()));
            }
            (Family::Meta, _) => {
                if let Some((dimension, column)) = keys::parse_summary_key(key) {
                    self.add_columns(dimension, [column]);
                } else if let Some(name) = keys::parse_dimension_key(key) {
                    self.known.insert(self.from.dimension_of(name, value)?.0);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Records that data of these columns was salvaged.
    fn add_columns(&mut self, dimension: DimensionId, columns: impl IntoIterator<Item = ColumnPos>) {
        let tiles = self.columns.entry(dimension).or_default();
        columns.into_iter().for_each(|column| tile_masks::insert(tiles, column));
    }

    /// Replaces a damaged chunk with the mark of a lost one.
    fn mark_lost(&mut self, key: &[u8], writes: &mut WriteBatch) {
        if let Some((dimension, chunk)) = keys::parse_chunk_key(key) {
            self.add_columns(dimension, [chunk.column()]);
            writes.put(Family::Chunks, key, LOST_CHUNK.to_vec());
        }
    }

    /// Moves the whole chunks of a damaged cluster to the hot tier. Groups that are also stored in a hotter tier are skipped.
    fn take_cluster(
        &mut self,
        tier: Tier,
        key: &[u8],
        value: &[u8],
        writes: &mut WriteBatch,
    ) -> Result<(), StoreError> {
        let (Some((dimension, first)), Ok(parts)) = (keys::parse_chunk_key(key), cluster::open(value)) else {
            return Ok(());
        };
        for (place, part) in parts {
            let group = ChunkGroup::in_cluster(tier, dimension, first, place);
            let is_foreign = tier == Tier::Warm && group.first() != first;
            if is_foreign || self.checker.is_elsewhere(group, tier)? {
                continue;
            }
            let Ok(unpacked) = part.unpack() else {
                for chunk in group.chunks(part.chunks) {
                    self.mark_lost(&keys::chunk_key(dimension, chunk), writes);
                }
                continue;
            };
            for (place, value) in cluster::values(&unpacked) {
                let chunk = group.chunk(place);
                let key = keys::chunk_key(dimension, chunk);
                match self.checker.decode(dimension, chunk, value) {
                    Ok(()) => {
                        self.add_columns(dimension, [chunk.column()]);
                        writes.put(Family::Chunks, key, value.to_vec());
                    }
                    Err(error) if error.is_damage() => self.mark_lost(&key, writes),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Rebuilds lost data where possible, marks the rest as lost, and makes everything durable.
    fn finish(&mut self) -> Result<(), UpkeepError> {
        let mut writes = WriteBatch::default();
        if self.to.get(Family::Meta, keys::HEADER)?.is_none() {
            writes.put(Family::Meta, keys::HEADER, self.from.header_anew());
        }
        for key in registry_lists::KEYS.map(str::as_bytes) {
            if self.lost.contains(&Family::Registry) && self.to.get(Family::Registry, key)?.is_none() {
                // No list is encoded as zero bytes, so readers refuse this value.
                writes.put(Family::Registry, key, Vec::new());
            }
        }
        self.finish_dimensions(&mut writes)?;
        self.to.write(writes, Durability::Process)?;
        self.finish_graphs()?;
        Ok(self.to.sync()?)
    }

    /// Makes sure that each dimension has a record, and that the next new dimension gets an unused number.
    fn finish_dimensions(&mut self, writes: &mut WriteBatch) -> Result<(), UpkeepError> {
        let Self { known, nameless, columns, .. } = self;
        let lost: Vec<DimensionId> = columns.keys().copied().filter(|dimension| !known.contains(dimension)).collect();
        // With several candidates, the right name is unknown.
        let mut old_name = nameless.pop().filter(|_| nameless.is_empty() && lost.len() == 1);
        for dimension in &lost {
            let name = old_name.take().unwrap_or_else(|| format!("lost/{}", dimension.0));
            let origin = GeneratorIdentity { name: "lost".into(), version: 0, seed: 0 };
            writes.put(Family::Meta, keys::dimension_key(&name), record::encode(&(dimension, origin)));
            self.report.damage.add(Damage::LostRecord { dimension: *dimension, name });
        }
        let Some(last) = known.iter().copied().chain(lost).max() else { return Ok(()) };
        let stored = self.to.get(Family::Meta, keys::LAST_DIMENSION)?;
        if stored.and_then(|stored| record::decode::<u64>(&stored).ok()).is_none_or(|stored| stored < last.0) {
            writes.put(Family::Meta, keys::LAST_DIMENSION, record::encode(&last.0));
        }
        Ok(())
    }

    /// Rebuilds incomplete graphs from the salvaged data. Otherwise stored columns would be generated again.
    fn finish_graphs(&mut self) -> Result<(), UpkeepError> {
        if self.lost.contains(&Family::Meta) {
            self.without_graph.extend(self.columns.keys());
        }
        for dimension in &self.without_graph {
            let range = keys::dimension_range(keys::TILE, *dimension);
            loop {
                let page = self.to.scan(Family::Meta, &range.start..&range.end, 1_024)?;
                if page.is_empty() {
                    break;
                }
                let mut writes = WriteBatch::default();
                page.into_iter().for_each(|(key, _)| writes.delete(Family::Meta, key));
                self.to.write(writes, Durability::Process)?;
            }
            let mut writes = WriteBatch::default();
            for (tile, masks) in self.columns.remove(dimension).unwrap_or_default() {
                writes.put(Family::Meta, keys::tile_key(*dimension, tile), tile_masks::encode(&masks));
            }
            self.to.write(writes, Durability::Process)?;
        }
        Ok(())
    }
}
