//! Into a world.

use super::format::{Header, moved_column};
use super::ground::{batches, columns_of};
use super::kept::{object_key, put_object};
use super::name::{self, Name};
use super::reader::Reader;
use super::types::Types;
use super::{ExistingGround, ImportOptions, ImportReport};
use crate::space::{BatchPos, ColumnPos, DimensionId};
use crate::upkeep::UpkeepError;
use crate::values::stored_graph;
use crate::work::{Progress, Tell};
use crate::{
    Durability, Family, StoreError, StoredDimension, StoredItem, StoredTile, WorldStore, WriteBatch, keys,
    values::record,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use terrane_objects::MAX_KEY_BYTES;

type Result<T> = std::result::Result<T, UpkeepError>;

/// Kept objects that are written at a time, and bytes of them.
const KEPT_AT_ONCE: usize = 256;
const KEPT_BYTES_AT_ONCE: u64 = 4 << 20;

/// Heights of a column that are stored as air where what is not stored would be generated.
const MAX_AIR: u64 = 4_096;

/// How far an import has come, as it is stored in the world.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ImportRecord {
    /// Which export, and how far it is moved, in chunks.
    of: (Vec<u8>, [i64; 3]),
    /// What becomes of ground that is there, and whether what was never generated is left out.
    with: (ExistingGround, bool),
    /// Batches that are in the world.
    batches: u64,
    /// The file and the key of the last kept object that is in the world. They come first, as long as the world tells which
    /// ground was there before.
    kept: (u32, String),
    pub(super) report: ImportReport,
}

impl ImportOptions {
    /// What an import that was stopped goes on with.
    fn with(&self) -> (ExistingGround, bool) {
        (self.existing, self.leaves_ungenerated)
    }
}

/// Looks whether the first file of an export is one, and the export is whole, if it must be.
///
/// # Errors
/// It is not, or the file cannot be read.
#[cfg(feature = "rocksdb")]
pub(in crate::upkeep) fn check_export(path: &Path, leaves_damaged: bool) -> Result<()> {
    Reader::open(path, leaves_damaged).map(drop)
}

impl WorldStore {
    /// Takes an [export](Self::export_dimension) in, whose first file is `path`: its ground becomes that of a dimension, with
    /// other numbers for its blocks where this world has others. A type of block, or a block component, that the world does not
    /// know is added to its lists. Objects of unknown keys are [kept](Self::keep_object).
    ///
    /// What is changed is the ground that the export has, and nothing around it. Entities come to those that are there; one
    /// whose id somebody has already, wherever it is, is left out. Summaries are made of the ground as it is then. No game may
    /// have the world open, nor have said what it has [registered](Self::set_blocks).
    ///
    /// Each batch of columns is one atomic write, together with how far the import is. So an import that was stopped, or whose
    /// process ended, goes on with the same call, and the world becomes what it would have been.
    ///
    /// `progress` is told after each batch of columns, in chunks, and can stop it.
    ///
    /// # Errors
    /// Ground that is there already, or that was never generated, unless the options say what to do then: nothing was changed.
    /// Damage in a file or in the world, unless what is damaged in a file is to be left out: what was written stays.
    pub fn import_dimension(
        &self,
        path: &Path,
        options: &ImportOptions,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<ImportReport> {
        let mut reader = Reader::open(path, options.leaves_damaged)?;
        let (tiles, lost) = reader.tiles(options.leaves_damaged)?;
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
        let is_sparse = known.map_or(reader.header.is_sparse, |known| known.is_sparse);
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
                lost.iter().for_each(|error| record.report.lose(None, error));
                record
            }
        };
        let origin = known.map_or(&reader.header.origin, |known| &known.generator);
        let dimension = self.open_dimension_as(&name, origin, reader.header.is_sparse)?;
        let others = dimension_numbers(&mut reader, &dimensions, dimension)?;
        let (tiles, done) = (&tiles, Progress::default());
        let mut import =
            Import { world: self, options, reader, tiles, types, dimension, is_sparse, others, number, record, done };
        let mut end = import.kept(&mut progress)?;
        if end.is_continue() {
            end = import.ground(&batches, &mut progress)?;
        }
        if end.is_continue() {
            import.finish()?;
        }
        self.sync()?;
        Ok(ImportReport { finished: end.is_continue(), ..import.record.report })
    }

    /// How far an import of the same is that was stopped, if it is to go on.
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

    /// Forgets imports into a dimension that are not finished: what they brought is not what it was.
    pub(in crate::upkeep) fn forget_imports(&self, dimension: DimensionId) -> std::result::Result<(), StoreError> {
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

    /// How far an import is, by the stored value.
    pub(crate) fn import_record(
        &self,
        dimension: DimensionId,
        number: u32,
        value: &[u8],
    ) -> std::result::Result<ImportRecord, StoreError> {
        self.record(value, StoredItem::Import(dimension, number))
    }
}

/// All columns must have a place where they are moved to.
fn check_places(batches: &[(BatchPos, u16)], options: &ImportOptions) -> Result<()> {
    let mut columns = batches.iter().flat_map(|(batch, mask)| columns_of(*batch, *mask));
    match columns.find(|column| moved_column(*column, options.moved_by).is_none()) {
        Some(column) => Err(UpkeepError::OutOfRange { column }),
        None => Ok(()),
    }
}

/// Where each chunk says for itself that it was generated, air is stored too, and must not be too much.
fn check_air(header: &Header, is_sparse: bool, options: &ImportOptions) -> Result<()> {
    let told = header.told_heights([].into_iter(), options.moved_by[1]).len();
    match is_sparse && !header.is_sparse && told > MAX_AIR {
        true => Err(UpkeepError::TooHigh { most: MAX_AIR }),
        false => Ok(()),
    }
}

/// The numbers of the world's dimensions by those of the dimensions of the same names that the export was made beside. Its own
/// comes to `dimension`.
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

/// Whether all columns have a place, before anything is changed.
struct Check<'a> {
    world: &'a WorldStore,
    /// `None` if it is not there yet.
    dimension: Option<DimensionId>,
    is_sparse: bool,
    options: &'a ImportOptions,
}

impl Check<'_> {
    fn run(&self, reader: &mut Reader, batches: &[(BatchPos, u16)]) -> Result<()> {
        let makes_columns = self.is_sparse || reader.header.makes_columns();
        // How many, and the first one.
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
                // Nothing comes from there.
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

    /// Whether something of the files is there, and not left out because it is damaged.
    fn is_there<T>(&self, found: Result<T>) -> Result<bool> {
        match found {
            Err(error) if self.options.leaves_damaged && error.is_of_files() => Ok(false),
            found => found.map(|_| true),
        }
    }

    /// Whether all objects that are only kept have a place.
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

    /// Whether the sparse dimension has chunks where those of the column are to come.
    fn has_chunks(&self, reader: &mut Reader, column: ColumnPos, pos: ColumnPos) -> Result<bool> {
        let Some(dimension) = self.dimension else { return Ok(false) };
        let found = match reader.column(column) {
            Err(UpkeepError::Damaged { .. }) if self.options.leaves_damaged => return Ok(false),
            found => found?,
        };
        let heights = found.chunks.iter().map(|(height, ..)| *height);
        let told = reader.header.told_heights(heights, self.options.moved_by[1]);
        let part = self.world.load_part(dimension, pos, &told)?;
        Ok(part.column.loaded().is_some_and(|loaded| !loaded.is_empty()))
    }
}

/// An import that is under way.
pub(super) struct Import<'a> {
    pub world: &'a WorldStore,
    pub options: &'a ImportOptions,
    pub reader: Reader,
    tiles: &'a [StoredTile],
    pub types: Types,
    pub dimension: DimensionId,
    pub is_sparse: bool,
    /// The numbers of dimensions, by those that they have in the export.
    pub others: BTreeMap<DimensionId, DimensionId>,
    number: u32,
    pub record: ImportRecord,
    done: Progress,
}

impl Import<'_> {
    /// The batches that are not yet in the world.
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
                // They come first: no chunk has a number that nobody knows.
                self.world.save_registry_lists(lists)?;
            }
            let (report, chunks) = (&mut self.record.report, save.chunks.len() as u64);
            report.new_types += self.types.take_added();
            report.entities += save.entities.len() as u64;
            report.chunks += chunks;
            self.record.batches += 1;
            self.put_record(&mut commit.writes);
            let writing = self.world.lock_writes();
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

    /// Whether what an error is about is to be left out.
    fn is_left_out(&self, error: &UpkeepError) -> bool {
        self.options.leaves_damaged && error.is_of_files()
    }

    /// The objects that are only kept, and are not yet in the world.
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
                // With the first objects of the file it is in the record.
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

    /// Whether an object belongs to ground of the export that will not come. Its place is that in the world.
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
            found.is_ok_and(|found| stored_graph::is_marked(&self.tiles[found].1, column))
        });
        let is_stored = self.world.is_stored(self.dimension, pos)?;
        Ok(is_to_come && if is_stored { keeps } else { !self.reader.header.makes_columns() })
    }

    fn put_record(&self, writes: &mut WriteBatch) {
        writes.put(Family::Meta, keys::import_key(self.dimension, self.number), record::encode(&self.record));
    }

    /// Nothing is left to go on with.
    fn finish(&self) -> Result<()> {
        let mut writes = WriteBatch::default();
        writes.delete(Family::Meta, keys::import_key(self.dimension, self.number));
        Ok(self.world.write(writes, Durability::Process)?)
    }
}

/// The key of an object that is only kept, where it is to be.
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
