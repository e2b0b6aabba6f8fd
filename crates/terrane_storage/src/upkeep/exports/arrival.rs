//! Conversion of an export's columns to columns of the world.

use super::ExistingGround;
use super::format::{moved, moved_column};
use super::import::Import;
use super::name::{self, Name};
use super::reader::FoundColumn;
use crate::chunk::{Chunk, Column, ColumnSummary};
use crate::commit::Commit;
use crate::space::{BlockPos, CHUNK_COORDINATES, CHUNK_SIZE, ColumnPos, HeightSet, TILE_BATCHES};
use crate::upkeep::UpkeepError;
use crate::values::tile_masks::{self, Masks};
use crate::{EntityRecord, Family, LoadedColumn, SaveBatch, StoredBlockTick, keys, mark_stored, values::block_ticks};
use std::collections::btree_map::Entry;
use std::sync::Arc;

type Result<T> = std::result::Result<T, UpkeepError>;

/// A column of the export with its position and numbers in the world.
struct ArrivingColumn {
    pos: ColumnPos,
    /// The height, version and contents of each chunk.
    chunks: Vec<(i64, u64, Arc<Chunk>)>,
    ticks: Vec<(i64, Vec<StoredBlockTick>)>,
    entities: Vec<EntityRecord>,
    /// The number of entities that could not stay in their dimension.
    displaced: u64,
    /// The chunk heights for which the export has data.
    told: HeightSet,
    /// `true` if no region of the exported world was told of it.
    is_new: bool,
    /// The block heights for which it was generated, if they are known.
    heights: Option<HeightSet>,
}

impl Import<'_> {
    /// The data to save for some columns of the batch that the reader is at.
    pub fn batch(&mut self, columns: &[ColumnPos]) -> Result<(SaveBatch, Commit)> {
        let (mut save, mut commit) = (SaveBatch::default(), Commit::default());
        for pos in columns {
            match self.reader.column(*pos).and_then(|column| self.translated(column)) {
                Err(error @ UpkeepError::Damaged { .. }) if self.options.leaves_damaged => {
                    self.record.report.lose(Some(*pos), &error);
                }
                column => self.put(column?, &mut save, &mut commit)?,
            }
        }
        Ok((save, commit))
    }

    fn translated(&mut self, found: FoundColumn) -> Result<ArrivingColumn> {
        let by = self.options.moved_by;
        let outside = || UpkeepError::OutOfRange { column: found.pos };
        let pos = moved_column(found.pos, by).ok_or_else(outside)?;
        let told = self.reader.header.covered_heights(found.chunks.iter().map(|(height, ..)| *height), by[1]);
        let mut chunks = Vec::with_capacity(found.chunks.len());
        for (height, version, bytes) in &found.chunks {
            let chunk = self.types.chunk(bytes)?;
            let name = Name::Chunk(found.pos.chunk(*height), name::BLOCKS);
            let chunk = chunk.map_err(|reason| self.reader.bad(name, &reason))?;
            chunks.push((moved(*height, by[1]).ok_or_else(outside)?, *version, Arc::new(chunk)));
        }
        let mut ticks = Vec::with_capacity(found.ticks.len());
        for (height, list) in &found.ticks {
            let height = moved(*height, by[1]).ok_or_else(outside)?;
            let list = block_ticks::decode(pos.chunk(height), list);
            let name = Name::Column(found.pos, name::TICKS);
            ticks.push((height, list.map_err(|reason| self.reader.bad(name, &reason))?));
        }
        let history = self.histories.get(&found.pos.tile());
        let is_new = history.is_some_and(|history| history.is_new(found.pos));
        let heights = history.and_then(|history| history.heights(found.pos));
        let heights = heights.map(|heights| moved_heights(heights, by[1]));
        let (entities, displaced) = (Vec::new(), 0);
        let mut arriving = ArrivingColumn { pos, chunks, ticks, entities, displaced, told, is_new, heights };
        for mut entity in found.entities {
            entity.dimension = self.dimension;
            entity.block = moved_block(entity.block, by).ok_or(UpkeepError::OutOfRange { column: found.pos })?;
            for child in &mut entity.children {
                let Some((dimension, block, offset)) = child.place else { continue };
                let known = self.others.get(&dimension);
                let by = if dimension == self.reader.header.number { by } else { [0; 3] };
                child.place = known.zip(moved_block(block, by)).map(|(known, block)| (*known, block, offset));
                arriving.displaced += u64::from(child.place.is_none());
            }
            arriving.entities.push(entity);
        }
        Ok(arriving)
    }

    fn put(&mut self, mut arriving: ArrivingColumn, save: &mut SaveBatch, commit: &mut Commit) -> Result<()> {
        let (dimension, pos) = (self.dimension, arriving.pos);
        let tile = pos.tile();
        let stored = match save.tiles.get(&(dimension, tile)) {
            Some(masks) => Some(*masks),
            None => self.world.stored_tile(dimension, tile)?,
        };
        let is_stored = stored.is_some_and(|masks| tile_masks::is_marked(&masks, pos));
        let ground = match self.is_sparse {
            true => self.sparse_ground(&mut arriving, is_stored)?,
            false => self.dense_ground(&arriving, is_stored)?,
        };
        let Some(ground) = ground else { return Ok(()) };
        let mut column = self.clear(ground, &arriving.told, save);
        for (height, version, chunk) in arriving.chunks {
            column.set_chunk(height, chunk.clone());
            save.chunks.insert((dimension, pos.chunk(height)), chunk);
            commit.versions.insert((dimension, pos.chunk(height)), version);
        }
        for (height, list) in arriving.ticks {
            save.block_ticks.insert((dimension, pos.chunk(height)), list);
        }
        if !self.is_sparse {
            save.summaries.insert((dimension, pos), Arc::new(ColumnSummary::new(&column)));
        }
        for entity in arriving.entities {
            self.put_entity(entity, save)?;
        }
        let mut masks: Masks = stored.unwrap_or([0; TILE_BATCHES]);
        mark_stored(&mut masks, pos);
        save.tiles.insert((dimension, tile), masks);
        let heights =
            arriving.heights.filter(|heights| !self.is_sparse && Some(heights) != self.first_heights.as_ref());
        if !is_stored && (arriving.is_new || heights.is_some()) {
            let history = self.world.history_in(save, dimension, tile)?;
            history.set_new(pos, arriving.is_new);
            history.set_heights(pos, heights);
        }
        save.unused.insert((dimension, pos));
        self.record.report.columns += 1;
        self.record.report.displaced_entities += arriving.displaced;
        Ok(())
    }

    /// Removes existing ground at the arriving heights. Returns the remaining column.
    fn clear(&self, ground: LoadedColumn, told: &HeightSet, save: &mut SaveBatch) -> Column {
        let LoadedColumn { mut column, block_ticks, .. } = ground;
        let (dimension, pos) = (self.dimension, column.pos());
        let gone: Vec<i64> = column.chunks().map(|(height, _)| height).filter(|y| told.contains(*y)).collect();
        for height in gone {
            column.remove_chunk(height);
            save.chunks.insert((dimension, pos.chunk(height)), Arc::default());
        }
        for tick in block_ticks.iter().filter(|tick| told.contains(tick.block.chunk().y)) {
            save.block_ticks.insert((dimension, tick.block.chunk()), Vec::new());
        }
        if self.is_sparse && !self.reader.header.is_sparse {
            // Chunks that are air in the export are stored as well. Otherwise they would be generated.
            for height in told.iter() {
                save.chunks.insert((dimension, pos.chunk(height)), Arc::default());
            }
        }
        column
    }

    /// The existing column, or a new one; `None` if the arriving column is left out.
    fn dense_ground(&mut self, arriving: &ArrivingColumn, is_stored: bool) -> Result<Option<LoadedColumn>> {
        let pos = arriving.pos;
        match (is_stored, self.options.existing) {
            (true, ExistingGround::Refuse) => Err(UpkeepError::Occupied { count: 1, first: pos }),
            (true, ExistingGround::Keep) => {
                self.record.report.left += 1;
                Ok(None)
            }
            (true, ExistingGround::Replace) => {
                Ok(self.world.load_batch(self.dimension, pos.batch(), &[pos], CHUNK_COORDINATES)?.pop())
            }
            (false, _) if self.reader.header.makes_columns() => Ok(Some(Column::new(pos).into())),
            (false, _) if self.options.leaves_ungenerated => {
                self.record.report.ungenerated += 1;
                Ok(None)
            }
            (false, _) => Err(UpkeepError::Ungenerated { count: 1, first: pos }),
        }
    }

    /// The existing ground of the column at the arriving heights. Heights whose ground is kept are removed from the
    /// arriving ones.
    fn sparse_ground(&mut self, arriving: &mut ArrivingColumn, is_stored: bool) -> Result<Option<LoadedColumn>> {
        let pos = arriving.pos;
        if !is_stored {
            return Ok(Some(Column::partial(pos, HeightSet::new()).into()));
        }
        let part = self.world.load_part(self.dimension, pos, &arriving.told)?;
        let existing = part.column.loaded().cloned().unwrap_or_default();
        if existing.is_empty() || self.options.existing == ExistingGround::Replace {
            return Ok(Some(part));
        }
        if self.options.existing == ExistingGround::Refuse {
            return Err(UpkeepError::Occupied { count: 1, first: pos });
        }
        self.record.report.left += existing.len();
        arriving.told.remove_all(&existing);
        arriving.chunks.retain(|(height, ..)| !existing.contains(*height));
        arriving.ticks.retain(|(height, _)| !existing.contains(*height));
        arriving.entities.retain(|entity| !existing.contains(entity.block.chunk().y));
        Ok(Some(Column::partial(pos, HeightSet::new()).into()))
    }

    /// Adds an entity unless the world already has it.
    fn put_entity(&mut self, entity: EntityRecord, save: &mut SaveBatch) -> Result<()> {
        let is_known = entity.ids().try_fold(false, |is_known, id| {
            let stored = || self.world.store.get(Family::Entities, &keys::entity_key(id));
            Ok::<_, UpkeepError>(is_known || save.entities.contains_key(&id) || stored()?.is_some())
        })?;
        match save.entities.entry(entity.id) {
            Entry::Vacant(new) if !is_known => drop(new.insert(Some(entity))),
            _ => self.record.report.known_entities += 1,
        }
        Ok(())
    }
}

/// Block heights, moved up by `by` chunks. Ends of `i64` stay where they are.
fn moved_heights(heights: &HeightSet, by: i64) -> HeightSet {
    let end = |height: i64| match height {
        i64::MIN | i64::MAX => height,
        height => height.saturating_add(by.saturating_mul(CHUNK_SIZE as i64)),
    };
    heights.ranges().fold(HeightSet::new(), |mut moved, range| {
        moved.insert(end(range.start)..end(range.end));
        moved
    })
}

fn moved_block(block: BlockPos, by: [i64; 3]) -> Option<BlockPos> {
    let along = |block: i64, by: i64| Some(moved(block >> 4, by)? << 4 | block & 15);
    Some(BlockPos::new(along(block.x, by[0])?, along(block.y, by[1])?, along(block.z, by[2])?))
}
