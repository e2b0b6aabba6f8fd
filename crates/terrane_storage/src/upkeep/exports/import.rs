//! Import of an export.

use super::format::{Header, moved_column, object_key, put_object};
use super::ground::{batches, columns_of};
use super::name::{self, Name};
use super::reader::Reader;
use super::types::Types;
use super::{ExistingGround, ImportOptions, ImportReport};
use crate::space::{BatchPos, ColumnPos, DimensionId, HeightSet, TilePos};
use crate::upkeep::UpkeepError;
use crate::values::tile_masks;
use crate::work::{Progress, Tell};
use crate::{
    Durability, Family, StoreError, StoredDimension, StoredItem, StoredTile, TileHistory, WorldStore, WriteBatch, keys,
    values::record,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use terrane_objects::MAX_KEY_BYTES;

type Result<T> = std::result::Result<T, UpkeepError>;

/// The maximum number and total size of kept objects that are written at a time.
const KEPT_AT_ONCE: usize = 256;
const KEPT_BYTES_AT_ONCE: u64 = 4 << 20;

/// The maximum number of air chunks stored per column, where chunks that are not stored would be generated.
const MAX_AIR: u64 = 4_096;

/// The progress of an import, as stored in the world.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ImportRecord {
    /// The export's header, and the distance by which it is moved, in chunks.
    of: (Vec<u8>, [i64; 3]),
    /// The treatment of existing ground, and whether ungenerated ground is left out.
    with: (ExistingGround, bool),
    batches: u64,
    /// The file and key of the last imported kept object. These objects are imported first, while the world still shows
    /// which ground existed before.
    kept: (u32, String),
    pub(super) report: ImportReport,
}

impl ImportOptions {
    /// The options that must be the same when an import is continued.
    fn with(&self) -> (ExistingGround, bool) {
        (self.existing, self.leaves_ungenerated)
    }
}

/// Checks that the first file belongs to an export, and that the export is complete if it must be.
///
/// # Errors
/// The check fails, or the file cannot be read.
#[cfg(feature = "rocksdb")]
pub(in crate::upkeep) fn check_export(path: &Path, leaves_damaged: bool) -> Result<()> {
    Reader::open(path, leaves_damaged).map(drop)
}

impl WorldStore {
    /// Imports an [export](Self::export_dimension) whose first file is `path`. Its ground becomes ground of a
    /// dimension, and its blocks get the numbers of this world. Unknown block types and block components are added to
    /// the world's lists. Objects with unknown keys are [kept](Self::keep_object).
    ///
    /// Only the ground of the export is changed, and nothing around it. The export's entities are added to those of the
    /// world. An entity is left out if the world already has its id in any place. Summaries are made from the resulting
    /// ground. No game may have the world open, and no types may have been [registered](Self::set_blocks).
    ///
    /// Each batch of columns is one atomic write, together with the progress of the import. So the same call continues
    /// an import that was stopped or whose process ended, with the same final result.
    ///
    /// `progress` is called after each batch of columns, counts chunks, and can stop the import.
    ///
    /// # Errors
    /// Existing or ungenerated ground, unless the options allow it: the world is then unchanged. Damage in a file or in
    /// the world, unless the options leave out damage in files: data that was written stays.
    pub fn import_dimension(
        &self,
        path: &Path,
        options: &ImportOptions,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<ImportReport> {
        let mut reader = Reader::open(path, options.leaves_damaged)?;
        let (tiles, lost) = reader.tiles(options.leaves_damaged)?;
        let (histories, lost_histories) = reader.histories(&tiles, options.leaves_damaged)?;
        let batches = batches(&tiles);
        check_places(&batches, options)?;
        let (blocks, components) = (reader.list(name::BLOCKS)?, reader.list(name::COMPONENTS)?);
        let types = Types::new(blocks, components, self.registry_lists()?);
        let types = types.map_err(|reason| reader.bad(Name::Registry(name::BLOCKS), &reason))?;

        let name = options.dimension.as_ref().unwrap_or(&reader.header.dimension).clone();
        let dimensions = self.dimensions()?;
        let known = dimensions.iter().find(|dimension| dimension.name == name);
        if let Some(known) = known.filter(|known| !known.being_removed) {
            self.expect_graph(known.id)?;
        }
        let is_sparse = known.map_or(reader.header.is_sparse, |known| known.sparse);
        check_air(&reader.header, is_sparse, options)?;
        let of = (reader.encoded_header().to_vec(), options.moved_by);
        let number = crc32fast::hash(&record::encode(&of));
        let check = Check { world: self, dimension: known.map(|known| known.id), is_sparse, options };
        let record = match self.begun_import(check.dimension, number, &of, options)? {
            Some(begun) => begun,
            None => {
                check.run(&mut reader, &batches)?;
                let mut record =
                    ImportRecord { of, with: options.with(), kept: (1, String::new()), ..ImportRecord::default() };
                lost.iter().chain(&lost_histories).for_each(|error| record.report.lose(None, error));
                record
            }
        };
        let origin = known.map_or(&reader.header.origin, |known| &known.generator);
        let dimension = self.open_dimension_as(&name, origin, reader.header.is_sparse)?;
        let others = dimension_numbers(&mut reader, &dimensions, dimension)?;
        let (tiles, done) = (&tiles, Progress::default());
        let mut import = Import {
            world: self,
            options,
            reader,
            tiles,
            histories,
            first_heights: self.first_heights(dimension)?.map(HeightSet::from),
            types,
            dimension,
            is_sparse,
            others,
            number,
            record,
            done,
        };
        let finished = import.run(&batches, &mut progress)?;
        self.sync()?;
        Ok(ImportReport { finished, ..import.record.report })
    }

    /// The progress of an earlier stopped import with the same options, if it is to be continued.
    fn begun_import(
        &self,
        dimension: Option<DimensionId>,
        number: u32,
        of: &(Vec<u8>, [i64; 3]),
        options: &ImportOptions,
    ) -> Result<Option<ImportRecord>> {
        let Some(dimension) = dimension.filter(|_| !options.begins_anew) else { return Ok(None) };
        let item = StoredItem::Import(dimension, number);
        let begun: Option<ImportRecord> = self.read_record(&keys::import_key(dimension, number), item)?;
        match begun.filter(|begun| begun.of == *of) {
            Some(begun) if begun.with != options.with() => Err(UpkeepError::OtherOptions),
            begun => Ok(begun),
        }
    }

    /// Discards the progress of unfinished imports into a dimension, because their ground is about to change.
    pub(in crate::upkeep) fn forget_imports(&self, dimension: DimensionId) -> std::result::Result<(), StoreError> {
        let _writing = self.lock_writes()?;
        let mut writes = WriteBatch::default();
        self.scan_meta(keys::dimension_range(keys::IMPORT, dimension), |key, _| {
            writes.delete(Family::Meta, key);
            Ok(())
        })?;
        match writes.is_empty() {
            true => Ok(()),
            false => self.write(writes, Durability::Process),
        }
    }

    /// Decodes the progress of an import.
    pub(crate) fn import_record(
        &self,
        dimension: DimensionId,
        number: u32,
        value: &[u8],
    ) -> std::result::Result<ImportRecord, StoreError> {
        self.record(value, StoredItem::Import(dimension, number))
    }
}

/// Fails if a column would be moved out of the grid.
fn check_places(batches: &[(BatchPos, u16)], options: &ImportOptions) -> Result<()> {
    let mut columns = batches.iter().flat_map(|(batch, mask)| columns_of(*batch, *mask));
    match columns.find(|column| moved_column(*column, options.moved_by).is_none()) {
        Some(column) => Err(UpkeepError::OutOfRange { column }),
        None => Ok(()),
    }
}

/// Limits the height of imports into sparse dimensions. There every chunk marks itself as generated, so air is stored too.
fn check_air(header: &Header, is_sparse: bool, options: &ImportOptions) -> Result<()> {
    let told = header.covered_heights([].into_iter(), options.moved_by[1]).len();
    match is_sparse && !header.is_sparse && told > MAX_AIR {
        true => Err(UpkeepError::TooHigh { most: MAX_AIR }),
        false => Ok(()),
    }
}

/// Maps the export's dimension numbers to the numbers of the world's dimensions with the same names. The exported
/// dimension maps to `dimension`.
fn dimension_numbers(
    reader: &mut Reader,
    dimensions: &[StoredDimension],
    dimension: DimensionId,
) -> Result<BTreeMap<DimensionId, DimensionId>> {
    let names: Vec<(u64, String)> = reader.list(name::DIMENSIONS)?;
    let to = |(of_export, name): &(u64, String)| {
        let known = dimensions.iter().find(|known| known.name == *name)?;
        Some((DimensionId(*of_export), known.id))
    };
    let mut numbers: BTreeMap<_, _> = names.iter().filter_map(to).collect();
    numbers.insert(reader.header.number, dimension);
    Ok(numbers)
}

/// Checks that all columns can be imported, before anything is changed.
struct Check<'a> {
    world: &'a WorldStore,
    /// `None` if it does not exist yet.
    dimension: Option<DimensionId>,
    is_sparse: bool,
    options: &'a ImportOptions,
}

impl Check<'_> {
    fn run(&self, reader: &mut Reader, batches: &[(BatchPos, u16)]) -> Result<()> {
        let makes_columns = self.is_sparse || reader.header.makes_columns();
        // The count and the first column of each.
        let (mut occupied, mut ungenerated) = ((0, None), (0, None));
        let add = |found: &mut (u64, Option<ColumnPos>), column| *found = (found.0 + 1, found.1.or(Some(column)));
        for (number, (batch, mask)) in batches.iter().enumerate() {
            let mut of_batch = Vec::new();
            for column in columns_of(*batch, *mask) {
                let Some(pos) = moved_column(column, self.options.moved_by) else { continue };
                let is_stored = self.dimension.map_or(Ok(false), |dimension| self.world.is_stored(dimension, pos))?;
                match is_stored {
                    true => of_batch.push((column, pos)),
                    false if !makes_columns => add(&mut ungenerated, pos),
                    false => {}
                }
            }
            if self.options.existing != ExistingGround::Refuse || of_batch.is_empty() {
                continue;
            }
            if self.is_sparse && !self.is_there(reader.turn_to_batch(number as u64, *batch))? {
                // These columns are not imported.
                continue;
            }
            for (column, pos) in of_batch {
                if !self.is_sparse || self.has_chunks(reader, column, pos)? {
                    add(&mut occupied, pos);
                }
            }
        }
        match (occupied, ungenerated) {
            ((count, Some(first)), _) => Err(UpkeepError::Occupied { count, first }),
            (_, (count, Some(first))) if !self.options.leaves_ungenerated => {
                Err(UpkeepError::Ungenerated { count, first })
            }
            _ => self.check_kept(reader),
        }
    }

    /// Returns `true` if the object was found. Damage counts as not found if the options leave it out.
    fn is_there<T>(&self, found: Result<T>) -> Result<bool> {
        match found {
            Err(error) if self.options.leaves_damaged && error.is_of_files() => Ok(false),
            found => found.map(|_| true),
        }
    }

    /// Checks that all kept objects have a place in the world.
    fn check_kept(&self, reader: &mut Reader) -> Result<()> {
        for file in 1..=reader.files() {
            if !self.is_there(reader.turn_to(file))? {
                continue;
            }
            if !self.options.leaves_damaged {
                reader.check_unknown()?;
            }
            for key in reader.others("") {
                self.is_there(moved_key(reader, &key, self.options.moved_by))?;
            }
        }
        Ok(())
    }

    /// Returns `true` if the sparse dimension has chunks where the column's chunks would be imported.
    fn has_chunks(&self, reader: &mut Reader, column: ColumnPos, pos: ColumnPos) -> Result<bool> {
        let Some(dimension) = self.dimension else { return Ok(false) };
        let found = match reader.column(column) {
            Err(UpkeepError::Damaged { .. }) if self.options.leaves_damaged => return Ok(false),
            found => found?,
        };
        let heights = found.chunks.iter().map(|(height, ..)| *height);
        let told = reader.header.covered_heights(heights, self.options.moved_by[1]);
        let part = self.world.load_part(dimension, pos, &told)?;
        Ok(part.column.loaded().is_some_and(|loaded| !loaded.is_empty()))
    }
}

pub(super) struct Import<'a> {
    pub world: &'a WorldStore,
    pub options: &'a ImportOptions,
    pub reader: Reader,
    tiles: &'a [StoredTile],
    /// The histories of the export's columns, by tiles of the export.
    pub histories: BTreeMap<TilePos, TileHistory>,
    /// The first heights of the world's dimension, if they are known.
    pub first_heights: Option<HeightSet>,
    pub types: Types,
    pub dimension: DimensionId,
    pub is_sparse: bool,
    /// The numbers of the world's dimensions, by their numbers in the export.
    pub others: BTreeMap<DimensionId, DimensionId>,
    number: u32,
    pub record: ImportRecord,
    done: Progress,
}

impl Import<'_> {
    /// Imports what is not yet in the world. Returns `false` if `tell` stopped it.
    fn run(&mut self, batches: &[(BatchPos, u16)], tell: Tell<'_>) -> Result<bool> {
        if self.kept(tell)?.is_break() || self.ground(batches, tell)?.is_break() {
            return Ok(false);
        }
        self.finish().map(|()| true)
    }

    /// Imports the batches that are not yet in the world.
    fn ground(&mut self, batches: &[(BatchPos, u16)], tell: Tell<'_>) -> Result<ControlFlow<()>> {
        let left = usize::try_from(self.record.batches).unwrap_or(usize::MAX).min(batches.len());
        for (batch, mask) in &batches[left..] {
            let columns = columns_of(*batch, *mask);
            let (save, mut commit) = match self.reader.turn_to_batch(self.record.batches, *batch) {
                Err(error) if self.is_left_out(&error) => {
                    columns.iter().for_each(|column| self.record.report.lose(Some(*column), &error));
                    Default::default()
                }
                turned => {
                    turned?;
                    self.batch(&columns)?
                }
            };
            save.entities.values().flatten().for_each(|entity| self.types.add_entity_types(entity));
            if let Some(lists) = self.types.take_changed() {
                // The lists are saved first, so that no chunk contains an unknown number.
                self.world.save_registry_lists(lists)?;
            }
            let (report, chunks) = (&mut self.record.report, save.chunks.len() as u64);
            report.new_types += self.types.take_added();
            report.entities += save.entities.len() as u64;
            report.chunks += chunks;
            self.record.batches += 1;
            self.put_record(&mut commit.writes);
            let writing = self.world.lock_writes()?;
            self.done.bytes += self.world.finish_commit(&save, commit, Durability::Process)?.bytes;
            drop(writing);
            self.done.done += chunks;
            self.done.fraction = Some(self.record.batches as f64 / batches.len() as f64);
            if tell(&self.done).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Returns `true` if the options leave out the data of this error.
    fn is_left_out(&self, error: &UpkeepError) -> bool {
        self.options.leaves_damaged && error.is_of_files()
    }

    /// Imports the kept objects that are not yet in the world.
    fn kept(&mut self, tell: Tell<'_>) -> Result<ControlFlow<()>> {
        for file in self.record.kept.0..=self.reader.files() {
            match self.reader.turn_to(file) {
                Err(error) if self.is_left_out(&error) => {
                    self.record.report.lose(None, &error);
                    continue;
                }
                turned => turned?,
            }
            let after = if file == self.record.kept.0 { self.record.kept.1.clone() } else { String::new() };
            match self.reader.check_unknown() {
                // Recorded once per file, together with its first objects.
                Err(error) if self.options.leaves_damaged && after.is_empty() => self.record.report.lose(None, &error),
                Err(error) if !self.options.leaves_damaged => return Err(error),
                _ => {}
            }
            let (mut writes, mut count) = (WriteBatch::default(), 0);
            let keys = self.reader.others(&after);
            for (place, key) in (1..).zip(&keys) {
                self.keep(key, &mut writes)?;
                (self.record.kept, count) = ((file, key.clone()), count + 1);
                let is_full = count >= KEPT_AT_ONCE || writes.bytes() >= KEPT_BYTES_AT_ONCE;
                if !is_full && place < keys.len() {
                    continue;
                }
                if place == keys.len() {
                    self.record.kept = (file + 1, String::new());
                }
                self.put_record(&mut writes);
                self.world.write(std::mem::take(&mut writes), Durability::Process)?;
                count = 0;
                if tell(&self.done).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        self.record.kept = (self.reader.files() + 1, String::new());
        Ok(ControlFlow::Continue(()))
    }

    fn keep(&mut self, key: &str, writes: &mut WriteBatch) -> Result<()> {
        let found = moved_key(&self.reader, key, self.options.moved_by);
        let (key, (version, data)) = match found.and_then(|moved_key| Ok((moved_key, self.reader.required(key)?))) {
            Err(error) if self.is_left_out(&error) => {
                self.record.report.lose(None, &error);
                return Ok(());
            }
            found => found?,
        };
        if self.is_without_ground(&key)? {
            self.record.report.left_objects += 1;
            return Ok(());
        }
        let is_there = || self.world.store.get(Family::Meta, &object_key(self.dimension, &key));
        if self.options.existing != ExistingGround::Replace && is_there()?.is_some() {
            self.record.report.known_objects += 1;
            return Ok(());
        }
        put_object(writes, self.dimension, &key, version, &data);
        self.record.report.objects += 1;
        Ok(())
    }

    /// Returns `true` if the object belongs to exported ground that is left out. The key has the object's place in the world.
    fn is_without_ground(&self, key: &str) -> Result<bool> {
        let name = Name::parse(key);
        let Some(pos) = name.column() else { return Ok(false) };
        let keeps = self.options.existing == ExistingGround::Keep;
        if self.is_sparse {
            return match name {
                Name::Chunk(chunk, _) if keeps => Ok(self.world.chunk_value(self.dimension, chunk)?.is_some()),
                _ => Ok(false),
            };
        }
        let back = self.options.moved_by.map(|by| by.checked_neg().unwrap_or(i64::MAX));
        let is_to_come = moved_column(pos, back).is_some_and(|column| {
            let found = self.tiles.binary_search_by_key(&column.tile(), |(place, _)| *place);
            found.is_ok_and(|found| tile_masks::is_marked(&self.tiles[found].1, column))
        });
        let is_stored = self.world.is_stored(self.dimension, pos)?;
        Ok(is_to_come && if is_stored { keeps } else { !self.reader.header.makes_columns() })
    }

    fn put_record(&self, writes: &mut WriteBatch) {
        writes.put(Family::Meta, keys::import_key(self.dimension, self.number), record::encode(&self.record));
    }

    /// Deletes the record of the finished import.
    fn finish(&self) -> Result<()> {
        let mut writes = WriteBatch::default();
        writes.delete(Family::Meta, keys::import_key(self.dimension, self.number));
        Ok(self.world.write(writes, Durability::Process)?)
    }
}

/// The key of a kept object at its place in the world.
fn moved_key(reader: &Reader, key: &str, by: [i64; 3]) -> Result<String> {
    let name = Name::parse(key);
    let Some(column) = name.column() else { return Ok(key.to_owned()) };
    if name.moved([0; 3]).is_none() {
        return Err(reader.bad(name, "its place is nowhere"));
    }
    let moved = name.moved(by).ok_or(UpkeepError::OutOfRange { column })?.to_string();
    match moved.len() <= MAX_KEY_BYTES {
        true => Ok(moved),
        false => Err(reader.bad(name, "its key would be too long where it is moved to")),
    }
}
