//! Import of schematics.

use super::types::with_states;
use super::{ClosedWorld, ClosedWorldError, Result, SchematicImport, SchematicImportReport};
use crate::chunk::{Column, ColumnSummary};
use crate::space::{BatchPos, BlockPos, CHUNK_COORDINATES, ColumnPos, HeightSet};
use crate::values::tile_masks::is_marked;
use crate::work::{Progress, Tell};
use crate::{Durability, EntityRecord, LoadedColumn, SaveBatch, mark_stored};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use terrane_world::snapshot::schematic::Schematic;
use terrane_world::snapshot::translation::{TranslationError, TranslationOptions};
use terrane_world::snapshot::{BlockFilter, BlockTurns, PlaceError, Relocation, Snapshot};
use uuid::Uuid;

struct Import<'a> {
    world: &'a ClosedWorld<'a>,
    snapshot: &'a Snapshot,
    replaces_entities: bool,
    /// The stable ids of all entities in the snapshot.
    brought: FxHashSet<Uuid>,
    report: SchematicImportReport,
}

impl ClosedWorld<'_> {
    /// Imports a schematic into the world. Its blocks replace the existing ones. Its entities are added to the existing
    /// ones, or replace them if the options say so.
    ///
    /// Each batch of 4 x 4 columns is one atomic commit. Besides the schematic, only one batch is in memory. A crash
    /// leaves some of the batches changed, each as a whole; the same import completes the rest.
    ///
    /// `progress` is called before the first batch and after each, counts batches, and can stop the import.
    ///
    /// # Errors
    /// Ground that was never generated, unless the options leave it out: the world is then unchanged. Damage in the
    /// store: committed batches stay.
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
        let mut batches: BTreeMap<BatchPos, Vec<ColumnPos>> = BTreeMap::new();
        snapshot.columns().for_each(|(pos, _)| batches.entry(pos.batch()).or_default().push(pos));
        let mut import = Import {
            world: self,
            snapshot: &snapshot,
            replaces_entities: options.replaces_entities,
            brought: snapshot.entities().flat_map(EntityRecord::ids).collect(),
            report: SchematicImportReport { new_types, translation: translated, ..SchematicImportReport::default() },
        };
        if !options.leaves_ungenerated {
            import.expect_generated(batches.values().flatten())?;
        }
        let total = batches.len() as u64;
        if progress(&Progress::of(0, total)).is_break() {
            return Err(ClosedWorldError::Cancelled);
        }
        if lists != stored {
            self.store.save_registry_lists(&lists)?;
        }
        for (done, (batch, columns)) in (1..).zip(batches) {
            import.put_batch(batch, &columns)?;
            if progress(&Progress::of(done, total)).is_break() && done < total {
                self.store.sync()?;
                return Ok(import.report);
            }
        }
        self.store.sync()?;
        import.report.finished = true;
        Ok(import.report)
    }
}

impl Import<'_> {
    fn expect_generated<'b>(&self, columns: impl Iterator<Item = &'b ColumnPos>) -> Result<()> {
        let (mut count, mut first) = (0, None);
        for pos in columns {
            let missing = match self.world.is_sparse {
                true => self.part(*pos)?.1,
                false => u64::from(!self.world.store.is_stored(self.world.dimension, *pos)?),
            };
            count += missing;
            first = first.or((missing > 0).then_some(*pos));
        }
        match first {
            Some(first) => Err(ClosedWorldError::Ungenerated { count, first }),
            None => Ok(()),
        }
    }

    fn put_batch(&mut self, batch: BatchPos, columns: &[ColumnPos]) -> Result<()> {
        let mut save = SaveBatch::default();
        let stored = self.stored(batch, columns)?;
        self.take_others(&stored, &mut save);
        for stored in stored {
            self.report.columns += 1;
            self.put_column(stored, &mut save)?;
        }
        self.report.entities += save.entities.values().flatten().count() as u64;
        self.report.chunks += self.world.store.commit(&save, Durability::Process)?.chunks as u64;
        Ok(())
    }

    /// The stored data of the generated columns of a batch. In a sparse dimension these are the parts in the box,
    /// including chunks that the box fills. The others are counted as ungenerated.
    fn stored(&mut self, batch: BatchPos, columns: &[ColumnPos]) -> Result<Vec<LoadedColumn>> {
        let ClosedWorld { store, dimension, is_sparse } = *self.world;
        if is_sparse {
            let mut stored = store.load_batch(dimension, batch, columns, 0..0)?;
            for LoadedColumn { column, block_ticks, .. } in &mut stored {
                let (part, missing) = self.part(column.pos())?;
                (*column, *block_ticks) = (part.column, part.block_ticks);
                self.report.ungenerated += missing;
            }
            stored.retain(|stored| stored.column.loaded().is_some_and(|loaded| !loaded.is_empty()));
            return Ok(stored);
        }
        let mut generated = Vec::with_capacity(columns.len());
        for pos in columns {
            match store.is_stored(dimension, *pos)? {
                true => generated.push(*pos),
                false => self.report.ungenerated += 1,
            }
        }
        Ok(store.load_batch(dimension, batch, &generated, CHUNK_COORDINATES)?)
    }

    /// The stored data of a sparse dimension's column at the heights of the box. Chunks that the box fills count as
    /// generated. The number of other ungenerated chunks is returned as well.
    fn part(&self, pos: ColumnPos) -> Result<(LoadedColumn, u64)> {
        let all = self.snapshot.area().height_set();
        let mut stored = self.world.store.load_part(self.world.dimension, pos, &all)?;
        let ungenerated = all.difference(stored.column.loaded().unwrap_or(&all));
        let filled: HeightSet = ungenerated.iter().filter(|y| self.is_filled(pos, *y)).collect();
        let missing = ungenerated.len() - filled.len();
        stored.column.extend(&Column::partial(pos, filled));
        Ok((stored, missing))
    }

    fn is_filled(&self, pos: ColumnPos, y: i64) -> bool {
        self.snapshot.area().part(pos.chunk(y)).is_some_and(|part| part.is_whole())
    }

    fn put_column(&mut self, stored: LoadedColumn, save: &mut SaveBatch) -> Result<()> {
        let ClosedWorld { store, dimension, is_sparse } = *self.world;
        let LoadedColumn { mut column, block_ticks, .. } = stored;
        let (snapshot, pos) = (self.snapshot, column.pos());
        let Some(wanted) = snapshot.column(pos) else { return Ok(()) };
        if is_sparse {
            // Air is stored as well: a chunk that is not stored was not generated.
            let heights = column.loaded().into_iter().flat_map(HeightSet::iter);
            let air = heights.filter(|y| wanted.chunk(*y).is_none() && self.is_filled(pos, *y));
            save.chunks.extend(air.map(|y| ((dimension, pos.chunk(y)), Arc::default())));
            let masks = match save.tiles.entry((dimension, pos.tile())) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(store.stored_tile(dimension, pos.tile())?.unwrap_or([0; 64])),
            };
            if !is_marked(masks, pos) {
                mark_stored(masks, pos);
                store.history_in(save, dimension, pos.tile())?.set_new(pos, true);
            }
        }
        let changed: Vec<_> = snapshot.restored_chunks(&column, &BlockFilter::default()).collect();
        for (y, chunk) in &changed {
            column.set_chunk(*y, chunk.clone());
            save.chunks.insert((dimension, pos.chunk(*y)), chunk.clone());
            // Ticks that were scheduled for replaced blocks must not happen to the new ones.
            let of_chunk: Vec<_> = block_ticks.iter().filter(|tick| tick.block.chunk().y == *y).collect();
            let kept = of_chunk.iter().filter(|tick| !snapshot.area().contains(tick.block));
            let kept: Vec<_> = kept.map(|tick| (*tick).clone()).collect();
            if kept.len() < of_chunk.len() {
                save.block_ticks.insert((dimension, pos.chunk(*y)), kept);
            }
        }
        if !changed.is_empty() && !is_sparse {
            save.summaries.insert((dimension, pos), Arc::new(ColumnSummary::new(&column)));
        }
        wanted.entities().iter().try_for_each(|entity| self.put_entity(entity, save))
    }

    /// Adds an entity unless the world already has it.
    fn put_entity(&mut self, entity: &EntityRecord, save: &mut SaveBatch) -> Result<()> {
        if !self.snapshot.area().contains(entity.block) {
            return Ok(());
        }
        for id in entity.ids() {
            if self.world.store.entity(id)?.is_some() {
                self.report.known_entities += 1;
                return Ok(());
            }
        }
        save.entities.insert(entity.id, Some(entity.clone()));
        Ok(())
    }

    /// Counts the entities in the box that are not the schematic's, and removes them if the options say so.
    fn take_others(&mut self, stored: &[LoadedColumn], save: &mut SaveBatch) {
        let is_other = |entity: &&EntityRecord| {
            self.snapshot.area().contains(entity.block) && !entity.ids().any(|id| self.brought.contains(&id))
        };
        for other in stored.iter().flat_map(|column| &column.entities).filter(is_other) {
            self.report.others += 1;
            if self.replaces_entities {
                save.entities.insert(other.id, None);
            }
        }
    }
}

/// The snapshot at its target position, without the layers that were not read.
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
