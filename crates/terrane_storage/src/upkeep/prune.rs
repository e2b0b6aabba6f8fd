//! Deletion of everything outside a shape.

use super::Listed;
use crate::envelope::{self, Replaced};
use crate::space::{BatchPos, ColumnArea, ColumnPos, DimensionId, TILE_COLUMNS, TilePos};
use crate::tiers::Moves;
use crate::values::tile_masks::{self, Masks};
use crate::work::Progress;
use crate::{Durability, EntityRecord, Family, StoreError, WorldStore, WriteBatch, keys};
use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};
use uuid::Uuid;

/// An entity outside the shape that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptEntity {
    /// The entity's UUID.
    pub id: Uuid,
    /// The entity's column.
    pub column: ColumnPos,
    /// `true` if the record is damaged. Otherwise the entity or a child of it is a viewer and may be a player.
    pub damaged: bool,
}

/// The result of [`WorldStore::prune`]: deleted data, or the data that would be deleted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PruneReport {
    /// The number of deleted columns. They are generated again when they are needed again.
    pub columns: u64,
    /// The number of deleted chunks, in all tiers.
    pub chunks: u64,
    /// The number of deleted entities.
    pub entities: u64,
    /// The number of deleted lists of block ticks, summaries, kept objects of exports, and opacity maps of batches.
    pub other: u64,
    /// The entities outside the shape that were kept.
    pub kept: Listed<KeptEntity>,
    /// `true` if the prune is complete. If not, the same call continues it.
    pub finished: bool,
}

/// The part of a graph's tile outside the shape. It is deleted in one write.
struct Tile<'a> {
    world: &'a WorldStore,
    dimension: DimensionId,
    keep: &'a ColumnArea,
    pos: TilePos,
    writes: WriteBatch,
}

impl WorldStore {
    /// Deletes everything outside `keep` in a dimension: columns in all tiers with their block ticks, entities,
    /// summaries and opacity maps. The columns are generated again when they are needed again. Entities that are
    /// viewers, such as players, are kept. With `is_trial`, data is only counted.
    ///
    /// Each tile of 32 x 32 columns is deleted in one atomic write, together with its marks in the stored graph. Tiles
    /// that the graph does not know are skipped; [`verify`](Self::verify) finds chunks there. The dimension must not be
    /// open in a running world. The progress of unfinished imports into it is discarded. The store reclaims the space
    /// when it is [compacted](super::super::KeyValueStore::compact).
    ///
    /// `progress` is called after each tile, counts tiles, and can stop the prune.
    ///
    /// # Errors
    /// Errors of the store, and damage of clusters or of tiles of the graph. Data that was deleted by then stays
    /// deleted, and the same call continues.
    pub fn prune(
        &self,
        dimension: DimensionId,
        keep: &ColumnArea,
        is_trial: bool,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<PruneReport, StoreError> {
        let mut report = PruneReport::default();
        let tiles = self.stored_tiles(dimension)?;
        if !is_trial {
            self.forget_imports(dimension)?;
        }
        let mut bytes = 0;
        for (done, &(pos, _)) in (1..).zip(&tiles) {
            let writes = WriteBatch::default();
            bytes += Tile { world: self, dimension, keep, pos, writes }.prune(is_trial, &mut report)?;
            if progress(&Progress { bytes, ..Progress::of(done, tiles.len() as u64) }).is_break() {
                return Ok(report);
            }
        }
        if !is_trial {
            self.sync()?;
        }
        report.finished = true;
        Ok(report)
    }

    /// Reclaims the space of deleted data, family by family. `progress` is called before each family, counts families,
    /// and can stop the compaction.
    ///
    /// # Errors
    /// Errors of the store; also if the world was opened only to be read.
    pub fn compact(
        &self,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, StoreError> {
        for (done, family) in (0..).zip(Family::ALL) {
            if progress(&Progress::of(done, Family::ALL.len() as u64)).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            self.store.compact(family)?;
        }
        Ok(ControlFlow::Continue(()))
    }
}

impl Tile<'_> {
    /// Deletes the tile's part. Returns the size of the written keys and values in bytes.
    fn prune(mut self, is_trial: bool, report: &mut PruneReport) -> Result<u64, StoreError> {
        if self.columns().all(|column| self.keep.contains(column)) {
            return Ok(0);
        }
        let world = self.world;
        let _writing = world.lock_writes()?;
        let Some(masks) = world.stored_tile(self.dimension, self.pos)? else { return Ok(0) };
        let mut found = PruneReport { columns: self.unmark(masks), ..PruneReport::default() };
        self.forget_histories()?;
        let mut moves = Moves::new(world);
        let is_outside = |column: ColumnPos| !self.keep.contains(column);
        for group in world.groups_over(self.dimension, self.pos, false)? {
            if group.batch().columns().any(is_outside) {
                found.chunks += moves.remove_chunks(group, |chunk| is_outside(chunk.column()))?;
            }
        }
        moves.put_cube_back();
        let Moves { writes: mut deletions, placed, .. } = moves;
        let noted = world.add_heat(&placed, &mut deletions)?;
        self.remove_entities(&mut found)?;
        found.other = self.remove_block_ticks()? + self.remove_objects()? + self.remove_values()?;
        deletions.append(self.writes);
        report.columns += found.columns;
        report.chunks += found.chunks;
        report.entities += found.entities;
        report.other += found.other;
        report.kept.append(found.kept);
        let bytes = deletions.bytes();
        if !is_trial && !deletions.is_empty() {
            world.write_moves(deletions, Durability::Process)?;
            world.heat.forget(&noted);
        }
        Ok(bytes)
    }

    fn columns(&self) -> impl Iterator<Item = ColumnPos> + use<> {
        self.pos.batches().flat_map(BatchPos::columns)
    }

    /// Removes the marks of the columns. Returns the number of columns that were marked.
    fn unmark(&mut self, mut masks: Masks) -> u64 {
        let mut count = 0;
        for column in self.columns().filter(|column| !self.keep.contains(*column)) {
            count += u64::from(tile_masks::is_marked(&masks, column));
            tile_masks::set_mark(&mut masks, column, false);
        }
        let key = keys::tile_key(self.dimension, self.pos);
        match masks.iter().all(|mask| *mask == 0) {
            true => self.writes.delete(Family::Meta, key),
            false if count > 0 => self.writes.put(Family::Meta, key, tile_masks::encode(&masks)),
            false => {}
        }
        count
    }

    /// Forgets the histories of the columns. When they are generated again, they are new.
    fn forget_histories(&mut self) -> Result<(), StoreError> {
        let key = keys::history_key(self.dimension, self.pos);
        let Some(stored) = self.world.store.get(Family::Meta, &key)? else { return Ok(()) };
        let mut history = match self.world.tile_history(self.dimension, self.pos, &stored) {
            // A damaged history says nothing.
            Err(error) if error.is_damage() => return Ok(()),
            history => history?,
        };
        self.columns().filter(|column| !self.keep.contains(*column)).for_each(|column| history.forget(column));
        let payload = history.encode();
        match Replaced::of(&stored).next_version(&payload, 0) {
            Some(_) if history.is_empty() => self.writes.delete(Family::Meta, key),
            Some(version) => self.writes.put(Family::Meta, key, envelope::sealed(version, &payload)),
            None => {}
        }
        Ok(())
    }

    fn remove_block_ticks(&mut self) -> Result<u64, StoreError> {
        let column = |key: &[u8]| keys::parse_block_ticks_key(key).map(|(_, chunk)| chunk.column());
        self.remove_rows(keys::block_ticks_range, column)
    }

    /// Removes kept objects that belong to the columns.
    fn remove_objects(&mut self) -> Result<u64, StoreError> {
        self.remove_rows(keys::object_range, |key| keys::parse_object_key(key)?.1)
    }

    fn remove_rows(
        &mut self,
        range: impl Fn(DimensionId, i64, i64, i64) -> Range<Vec<u8>>,
        column: impl Fn(&[u8]) -> Option<ColumnPos>,
    ) -> Result<u64, StoreError> {
        let mut count = 0;
        for (x, first, last) in self.rows() {
            let found = self.world.list_meta(range(self.dimension, x, first, last), |key, _| {
                let column = self.world.parsed(Family::Meta, key, &column)?;
                Ok((!self.keep.contains(column)).then(|| key.to_vec()))
            })?;
            count += found.len() as u64;
            found.into_iter().for_each(|key| self.writes.delete(Family::Meta, key));
        }
        Ok(count)
    }

    /// Removes summaries of the columns, and opacity maps of batches that are not kept whole. Those are rebuilt.
    fn remove_values(&mut self) -> Result<u64, StoreError> {
        let outside: Vec<ColumnPos> = self.columns().filter(|column| !self.keep.contains(*column)).collect();
        let batches: BTreeSet<BatchPos> = outside.iter().map(|column| column.batch()).collect();
        let summaries = outside.iter().map(|column| (Family::Meta, keys::summary_key(self.dimension, *column)));
        let opacity = batches.iter().map(|batch| (Family::Opacity, keys::opacity_key(self.dimension, *batch)));
        let mut count = 0;
        for (family, key) in summaries.chain(opacity).collect::<Vec<_>>() {
            if self.world.store.get(family, &key)?.is_some() {
                count += 1;
                self.writes.delete(family, key);
            }
        }
        Ok(count)
    }

    fn remove_entities(&mut self, report: &mut PruneReport) -> Result<(), StoreError> {
        let (world, dimension) = (self.world, self.dimension);
        for (x, first, last) in self.rows() {
            let places = world.list_meta(keys::place_range(dimension, x, first, last), |key, _| {
                let (_, column, id) = world.parsed(Family::Meta, key, keys::parse_place_key)?;
                Ok((!self.keep.contains(column)).then(|| (key.to_vec(), column, id)))
            })?;
            for (key, column, id) in places {
                match world.entity(id) {
                    Ok(Some(record)) if record.dimension == dimension && record.column() == column => {
                        self.remove_entity(&record, report);
                    }
                    // The entity is not in this column, so the key is stale.
                    Ok(_) => self.writes.delete(Family::Meta, key),
                    Err(error) if error.is_damage() => {
                        report.kept.add(KeptEntity { id, column, damaged: true });
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    fn remove_entity(&mut self, record: &EntityRecord, report: &mut PruneReport) {
        if record.viewers().next().is_some() {
            report.kept.add(KeptEntity { id: record.id, column: record.column(), damaged: false });
            return;
        }
        report.entities += 1;
        keys::index_keys(record).into_iter().for_each(|key| self.writes.delete(Family::Meta, key));
        self.writes.delete(Family::Entities, keys::entity_key(record.id));
    }

    /// The rows of columns, each as x, first z and last z.
    fn rows(&self) -> impl Iterator<Item = (i64, i64, i64)> + use<> {
        let side = TILE_COLUMNS as i64;
        let (x, z) = (self.pos.x * side, self.pos.z * side);
        (0..side).map(move |row| (x + row, z, z + side - 1))
    }
}
