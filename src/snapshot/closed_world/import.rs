//! Into a world.

use super::types::with_states;
use super::{ClosedWorld, ClosedWorldError, Result, SchematicImport, SchematicImportReport};
use crate::chunk::{Column, ColumnSummary};
use crate::snapshot::schematic::Schematic;
use crate::snapshot::translation::{TranslationError, TranslationOptions};
use crate::snapshot::{BlockFilter, BlockTurns, ColumnSnapshot, PlaceError, Relocation, Snapshot};
use crate::space::{BatchPos, BlockBox, BlockPos, CHUNK_COORDINATES, ColumnPos, HeightSet};
use crate::storage::{Durability, EntityRecord, LoadedColumn, SaveBatch, mark_stored};
use crate::work::{Progress, Tell};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use uuid::Uuid;

/// Columns of a snapshot, by batches.
type Batches<'a> = BTreeMap<BatchPos, Vec<(ColumnPos, &'a ColumnSnapshot)>>;

/// An import that is under way.
struct Import<'a> {
    snapshot: &'a Snapshot,
    is_sparse: bool,
    replaces_entities: bool,
    /// The stable ids of all entities in the snapshot.
    brought: FxHashSet<Uuid>,
}

impl ClosedWorld<'_> {
    /// Puts a schematic into the world. Its blocks replace those that are there. Its entities are added to those that are there,
    /// or replace them if the options say so.
    ///
    /// Each square of 4 x 4 columns is one atomic commit, and no more than that is in memory besides the schematic. So a crash
    /// leaves some of the squares changed, each as a whole; the same import again does the rest.
    ///
    /// `progress` is told before the first square and after each, in squares, and can stop it.
    ///
    /// # Errors
    /// Ground that was never generated, unless it is to be left out: then nothing was changed. Damage in the store: what was
    /// committed stays.
    pub fn import(
        &self,
        schematic: Schematic,
        options: &SchematicImport,
        translation: &TranslationOptions,
        progress: Tell<'_>,
    ) -> Result<SchematicImportReport> {
        let translation = &TranslationOptions { turn: options.turn, ..translation.clone() };
        let stored = self.store.registry_lists()?;
        let (lists, registry) = with_states(stored.clone(), &schematic, options.turn, translation)?;
        let new_types = (lists.blocks.len() - stored.blocks.len().min(lists.blocks.len())) as u64;
        let (snapshot, translated) = Snapshot::from_schematic(schematic, self.dimension, &registry, translation)?;
        let snapshot = placed(snapshot, options, &BlockTurns::new(&registry, options.turn));
        let snapshot = snapshot.map_err(TranslationError::from)?;
        let mut report =
            SchematicImportReport { new_types, translation: translated, ..SchematicImportReport::default() };
        let mut batches: Batches<'_> = BTreeMap::new();
        for (pos, column) in snapshot.columns() {
            batches.entry(pos.batch()).or_default().push((pos, column));
        }
        let is_sparse = self.store.is_sparse(self.dimension)?;
        if !options.leaves_ungenerated {
            self.expect_generated(&snapshot, &batches, is_sparse)?;
        }
        if progress(&Progress::of(0, batches.len() as u64)).is_break() {
            return Err(ClosedWorldError::Cancelled);
        }
        if lists != stored {
            self.store.save_registry_lists(&lists)?;
        }
        let total = batches.len() as u64;
        let brought = snapshot.entities().flat_map(EntityRecord::ids).collect();
        let replaces_entities = options.replaces_entities;
        let import = Import { snapshot: &snapshot, is_sparse, replaces_entities, brought };
        for (done, (batch, columns)) in (1..).zip(batches) {
            self.put_batch(&import, batch, &columns, &mut report)?;
            if progress(&Progress::of(done, total)).is_break() && done < total {
                self.store.sync()?;
                return Ok(report);
            }
        }
        self.store.sync()?;
        report.finished = true;
        Ok(report)
    }

    fn expect_generated(&self, snapshot: &Snapshot, batches: &Batches<'_>, is_sparse: bool) -> Result<()> {
        let (mut count, mut first) = (0, None);
        for (pos, _) in batches.values().flatten() {
            let missing = match is_sparse {
                true => self.part(snapshot, *pos)?.1.len(),
                false => u64::from(!self.store.is_stored(self.dimension, *pos)?),
            };
            count += missing;
            first = first.or((missing > 0).then_some(*pos));
        }
        match first {
            Some(first) => Err(ClosedWorldError::Ungenerated { count, first }),
            None => Ok(()),
        }
    }

    /// What is stored of a column of a sparse dimension at the heights of the box, as if the chunks that the box fills were
    /// generated; and the heights of others that were not.
    fn part(&self, snapshot: &Snapshot, pos: ColumnPos) -> Result<(LoadedColumn, HeightSet)> {
        let all = snapshot.area().height_set();
        let mut stored = self.store.load_part(self.dimension, pos, &all)?;
        let ungenerated = all.difference(stored.column.loaded().unwrap_or(&all));
        let is_filled = |y: &i64| snapshot.area().part(pos.chunk(*y)).is_some_and(|part| part.is_whole());
        let (filled, missing): (Vec<i64>, Vec<i64>) = ungenerated.iter().partition(is_filled);
        let fresh = Column::partial(pos, filled.into_iter().collect());
        stored.column.extend(&fresh);
        Ok((stored, missing.into_iter().collect()))
    }

    fn put_batch(
        &self,
        import: &Import<'_>,
        batch: BatchPos,
        columns: &[(ColumnPos, &ColumnSnapshot)],
        report: &mut SchematicImportReport,
    ) -> Result<()> {
        let Import { snapshot, is_sparse, .. } = *import;
        let mut save = SaveBatch::default();
        let stored = match is_sparse {
            true => self.sparse_columns(snapshot, columns, &mut save, report)?,
            false => self.dense_columns(batch, columns, report)?,
        };
        import.take_others(&stored, &mut save, report);
        for LoadedColumn { mut column, block_ticks, .. } in stored {
            let pos = column.pos();
            report.columns += 1;
            let filter = BlockFilter::default();
            let changed: Vec<_> = snapshot.restored_chunks(&column, &filter).collect();
            for (y, chunk) in &changed {
                column.set_chunk(*y, chunk.clone());
                save.chunks.insert((self.dimension, pos.chunk(*y)), chunk.clone());
                // What was scheduled for blocks that are not there any more is not to happen to others.
                let of_chunk: Vec<_> = block_ticks.iter().filter(|tick| tick.block.chunk().y == *y).collect();
                let kept = of_chunk.iter().filter(|tick| !snapshot.area().contains(tick.block));
                let kept: Vec<_> = kept.map(|tick| (*tick).clone()).collect();
                if kept.len() < of_chunk.len() {
                    save.block_ticks.insert((self.dimension, pos.chunk(*y)), kept);
                }
            }
            if !changed.is_empty() && !is_sparse {
                save.summaries.insert((self.dimension, pos), Arc::new(ColumnSummary::new(&column)));
            }
            for entity in snapshot.column(pos).map_or(&[][..], ColumnSnapshot::entities) {
                self.put_entity(entity, snapshot.area(), &mut save, report)?;
            }
        }
        report.entities += save.entities.values().flatten().count() as u64;
        report.chunks += self.store.commit(&save, Durability::Process)?.chunks as u64;
        Ok(())
    }

    /// The columns of a batch that were generated.
    fn dense_columns(
        &self,
        batch: BatchPos,
        columns: &[(ColumnPos, &ColumnSnapshot)],
        report: &mut SchematicImportReport,
    ) -> Result<Vec<LoadedColumn>> {
        let mut generated = Vec::with_capacity(columns.len());
        for (pos, _) in columns {
            match self.store.is_stored(self.dimension, *pos)? {
                true => generated.push(*pos),
                false => report.ungenerated += 1,
            }
        }
        Ok(self.store.load_batch(self.dimension, batch, &generated, CHUNK_COORDINATES)?)
    }

    /// The parts of columns that were generated, or that the box fills. Those are generated by this.
    fn sparse_columns(
        &self,
        snapshot: &Snapshot,
        columns: &[(ColumnPos, &ColumnSnapshot)],
        save: &mut SaveBatch,
        report: &mut SchematicImportReport,
    ) -> Result<Vec<LoadedColumn>> {
        let mut parts = Vec::with_capacity(columns.len());
        for (pos, column) in columns {
            let (part, missing) = self.part(snapshot, *pos)?;
            report.ungenerated += missing.len();
            for y in part.column.loaded().into_iter().flat_map(HeightSet::iter) {
                // Air is stored as well: what is not stored was not generated.
                if column.chunk(y).is_none() && snapshot.area().part(pos.chunk(y)).is_some_and(|part| part.is_whole()) {
                    save.chunks.insert((self.dimension, pos.chunk(y)), Arc::default());
                }
            }
            if part.column.loaded().is_some_and(|loaded| !loaded.is_empty()) {
                let tile = pos.tile();
                let masks = match save.tiles.entry((self.dimension, tile)) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => new.insert(self.store.stored_tile(self.dimension, tile)?.unwrap_or([0; 64])),
                };
                mark_stored(masks, *pos);
                parts.push(part);
            }
        }
        Ok(parts)
    }

    /// Adds an entity that nobody is already.
    fn put_entity(
        &self,
        entity: &EntityRecord,
        area: &BlockBox,
        save: &mut SaveBatch,
        report: &mut SchematicImportReport,
    ) -> Result<()> {
        if !area.contains(entity.block) {
            return Ok(());
        }
        for id in entity.ids() {
            if self.store.entity(id)?.is_some() {
                report.known_entities += 1;
                return Ok(());
            }
        }
        save.entities.insert(entity.id, Some(entity.clone()));
        Ok(())
    }
}

impl Import<'_> {
    /// Counts the entities in the box that are not the schematic's own, and removes them if the options say so.
    fn take_others(&self, stored: &[LoadedColumn], save: &mut SaveBatch, report: &mut SchematicImportReport) {
        let is_other = |entity: &&EntityRecord| {
            self.snapshot.area().contains(entity.block) && !entity.ids().any(|id| self.brought.contains(&id))
        };
        for other in stored.iter().flat_map(|column| &column.entities).filter(is_other) {
            report.others += 1;
            if self.replaces_entities {
                save.entities.insert(other.id, None);
            }
        }
    }
}

/// The snapshot where it is to be, without the layers that were not read.
fn placed(
    mut snapshot: Snapshot,
    options: &SchematicImport,
    turns: &BlockTurns,
) -> std::result::Result<Snapshot, PlaceError> {
    if let Some(layers) = options.layers {
        snapshot.area.max.y = snapshot.area.max.y.min(i64::from(layers) - 1);
    }
    if snapshot.area.is_empty() {
        return Ok(snapshot);
    }
    let turned = Relocation { turn: options.turn, ..Relocation::default() }.area(&snapshot.area)?;
    let shift = |to: i64, from: i64| to.checked_sub(from).ok_or(PlaceError::OutOfRange(options.at));
    let (at, from) = (options.at, turned.min);
    let to = BlockPos::new(shift(at.x, from.x)?, shift(at.y, from.y)?, shift(at.z, from.z)?);
    snapshot.placed(&Relocation { turn: options.turn, from: BlockPos::default(), to }, turns)
}
