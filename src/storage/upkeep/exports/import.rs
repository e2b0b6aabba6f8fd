//! Into a world.

use super::arrival::Arrival;
use super::format::{Header, moved_column};
use super::ground::{batches, columns_of};
use super::kept::{object_key, put_object};
use super::name::{List, Name, Place};
use super::reader::Reader;
use super::types::Types;
use super::{ExistingGround, ImportError, ImportOptions, ImportReport};
use crate::object_store::MAX_KEY_BYTES;
use crate::space::{BatchPos, ColumnPos, DimensionId, TilePos};
use crate::storage::values::stored_graph::{self, Masks};
use crate::storage::{
    Durability, Family, StoreError, StoredDimension, StoredItem, StoredTile, WorldStore, WriteBatch, keys,
    values::record,
};
use crate::work::Progress;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

type Result<T> = std::result::Result<T, ImportError>;

/// Kept objects that are written at a time, and bytes of them.
const KEPT_AT_ONCE: usize = 256;
const KEPT_BYTES_AT_ONCE: u64 = 4 << 20;

/// Heights of a column that are stored as air where what is not stored would be generated.
const MAX_AIR: u64 = 4_096;

/// How far an import has come, as it is stored in the world.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::storage) struct ImportRecord {
    /// Which export, and how far it is moved, in chunks.
    of: (Vec<u8>, [i64; 3]),
    /// What becomes of ground that is there, and whether what was never generated is left out.
    with: (ExistingGround, bool),
    /// Batches that are in the world.
    batches: u64,
    /// The file and the key of the last kept object that is in the world. They come first, as long as the world tells which
    /// ground was there before.
    kept: (u32, String),
    report: ImportReport,
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
pub(in crate::storage::upkeep) fn check_export(path: &Path, leaves_damaged: bool) -> Result<()> {
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
        let (blocks, components) = (reader.list(List::Blocks)?, reader.list(List::Components)?);
        let types = Types::new(blocks, components, self.registry_lists()?);
        let mut types = types.map_err(|reason| reader.damaged(&Name::Registry(List::Blocks).to_string(), reason))?;

        let name = options.dimension.as_ref().unwrap_or(&reader.header.dimension).clone();
        let dimensions = self.dimensions()?;
        let known = dimensions.iter().find(|dimension| dimension.name == name);
        if let Some(known) = known.filter(|known| !known.being_removed) {
            self.expect_graph(known.id)?;
        }
        let is_sparse = known.map_or(Ok(reader.header.is_sparse), |known| self.is_sparse(known.id))?;
        check_air(&reader.header, is_sparse, options)?;
        let of = (reader.encoded_header().to_vec(), options.moved_by);
        let number = crc32fast::hash(&record::encode(&of));
        let mut check = Check { world: self, dimension: known.map(|known| known.id), is_sparse, options, tile: None };
        let record = match self.begun_import(check.dimension, number, &of, options)? {
            Some(begun) => begun,
            None => {
                check.run(&mut reader, &tiles)?;
                let mut record =
                    ImportRecord { of, with: options.with(), kept: (1, String::new()), ..ImportRecord::default() };
                lost.iter().for_each(|error| record.report.lose(None, error));
                record
            }
        };
        let origin = known.map_or(&reader.header.origin, |known| &known.origin);
        let dimension = self.open_dimension_as(&name, origin, reader.header.is_sparse)?;
        let others = dimension_numbers(&mut reader, &dimensions, dimension)?;
        let (makes_columns, done) = (reader.header.makes_columns(), Progress::default());
        let mut import =
            Import { world: self, dimension, number, is_sparse, makes_columns, options, tiles: &tiles, record, done };
        let arrival = Arrival { world: self, dimension, is_sparse, header: reader.header.clone(), options, others };
        let mut end = import.kept(&mut reader, &mut progress)?;
        if end.is_continue() {
            end = import.ground(&mut reader, &arrival, &mut types, &batches, &mut progress)?;
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
        let item = || StoredItem::Import(dimension, number);
        let begun: Option<ImportRecord> = self.read_record(&keys::import_key(dimension, number), item)?;
        match begun.filter(|begun| begun.of == *of) {
            Some(begun) if begun.with != options.with() => Err(ImportError::OtherOptions),
            begun => Ok(begun),
        }
    }

    /// Forgets imports into a dimension that are not finished: what they brought is not what it was.
    pub(in crate::storage::upkeep) fn forget_imports(
        &self,
        dimension: DimensionId,
    ) -> std::result::Result<(), StoreError> {
        let mut writes = WriteBatch::default();
        self.scan_all(Family::Meta, keys::dimension_range(keys::IMPORT, dimension), |key, _| {
            writes.delete(Family::Meta, key);
            Ok(())
        })?;
        match writes.is_empty() {
            true => Ok(()),
            false => self.write(writes, Durability::Process),
        }
    }

    /// How far an import is, by the stored value.
    pub(in crate::storage) fn import_record(
        &self,
        dimension: DimensionId,
        number: u32,
        value: &[u8],
    ) -> std::result::Result<ImportRecord, StoreError> {
        record::decode(value).map_err(|reason| self.corrupt(StoredItem::Import(dimension, number), reason))
    }
}

/// All columns must have a place where they are moved to.
fn check_places(batches: &[(BatchPos, u16)], options: &ImportOptions) -> Result<()> {
    let mut columns = batches.iter().flat_map(|(batch, mask)| columns_of(*batch, *mask));
    match columns.find(|column| moved_column(*column, options.moved_by).is_none()) {
        Some(column) => Err(ImportError::OutOfRange { column }),
        None => Ok(()),
    }
}

/// Where each chunk says for itself that it was generated, air is stored too, and must not be too much.
fn check_air(header: &Header, is_sparse: bool, options: &ImportOptions) -> Result<()> {
    let told = header.told_heights([].into_iter(), options.moved_by[1]).len();
    match is_sparse && !header.is_sparse && told > MAX_AIR {
        true => Err(ImportError::TooHigh { most: MAX_AIR }),
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
    let names: Vec<(u64, String)> = reader.list(List::Dimensions)?;
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
    tile: Option<(TilePos, Option<Masks>)>,
}

/// Columns that were counted.
#[derive(Default)]
struct Found {
    count: u64,
    first: Option<ColumnPos>,
}

impl Found {
    fn add(&mut self, column: ColumnPos) {
        self.count += 1;
        self.first.get_or_insert(column);
    }
}

impl Check<'_> {
    fn run(&mut self, reader: &mut Reader, tiles: &[StoredTile]) -> Result<()> {
        let makes_columns = self.is_sparse || reader.header.makes_columns();
        let (mut occupied, mut ungenerated) = (Found::default(), Found::default());
        for (number, (batch, mask)) in batches(tiles).into_iter().enumerate() {
            let mut of_batch = Vec::new();
            for column in columns_of(batch, mask) {
                let Some(pos) = moved_column(column, self.options.moved_by) else { continue };
                match self.is_stored(pos)? {
                    true => of_batch.push((column, pos)),
                    false if !makes_columns => ungenerated.add(pos),
                    false => {}
                }
            }
            if self.options.existing != ExistingGround::Refuse || of_batch.is_empty() {
                continue;
            }
            if !self.is_sparse {
                of_batch.into_iter().for_each(|(_, pos)| occupied.add(pos));
                continue;
            }
            match reader.turn_to_batch(number as u64, batch) {
                // Nothing comes from there.
                Err(error) if self.options.leaves_damaged && error.is_of_files() => continue,
                turned => turned?,
            }
            for (column, pos) in of_batch {
                if self.has_chunks(reader, column, pos)? {
                    occupied.add(pos);
                }
            }
        }
        if let Found { count, first: Some(first) } = occupied {
            return Err(ImportError::Occupied { count, first });
        }
        match ungenerated {
            Found { count, first: Some(first) } if !self.options.leaves_ungenerated => {
                Err(ImportError::Ungenerated { count, first })
            }
            _ => self.check_kept(reader),
        }
    }

    /// Whether all objects that are only kept have a place.
    fn check_kept(&self, reader: &mut Reader) -> Result<()> {
        let is_left_out = |error: &ImportError| self.options.leaves_damaged && error.is_of_files();
        for file in 1..=reader.files() {
            match reader.turn_to(file) {
                Err(error) if is_left_out(&error) => continue,
                turned => turned?,
            }
            if !self.options.leaves_damaged {
                reader.check_unknown()?;
            }
            for key in reader.others("") {
                match moved_key(reader, &key, self.options.moved_by) {
                    Err(error) if is_left_out(&error) => {}
                    moved => drop(moved?),
                }
            }
        }
        Ok(())
    }

    fn is_stored(&mut self, pos: ColumnPos) -> Result<bool> {
        let Some(dimension) = self.dimension else { return Ok(false) };
        let place = pos.tile();
        if self.tile.is_none_or(|(tile, _)| tile != place) {
            self.tile = Some((place, self.world.stored_tile(dimension, place)?));
        }
        let masks = self.tile.and_then(|(_, masks)| masks);
        Ok(masks.is_some_and(|masks| stored_graph::is_marked(&masks, pos)))
    }

    /// Whether the sparse dimension has chunks where those of the column are to come.
    fn has_chunks(&self, reader: &Reader, column: ColumnPos, pos: ColumnPos) -> Result<bool> {
        let Some(dimension) = self.dimension else { return Ok(false) };
        let found = match reader.batch().column(column) {
            Err(ImportError::Damaged { .. }) if self.options.leaves_damaged => return Ok(false),
            found => found?,
        };
        let heights = found.chunks.iter().map(|(height, ..)| *height);
        let told = reader.header.told_heights(heights, self.options.moved_by[1]);
        let part = self.world.load_part(dimension, pos, &told)?;
        Ok(part.column.loaded().is_some_and(|loaded| !loaded.is_empty()))
    }
}

/// An import that is under way.
struct Import<'a> {
    world: &'a WorldStore,
    dimension: DimensionId,
    number: u32,
    is_sparse: bool,
    /// Whether columns that were never generated are made of the export's.
    makes_columns: bool,
    options: &'a ImportOptions,
    tiles: &'a [StoredTile],
    record: ImportRecord,
    done: Progress,
}

impl Import<'_> {
    /// The batches that are not yet in the world.
    fn ground(
        &mut self,
        reader: &mut Reader,
        arrival: &Arrival<'_>,
        types: &mut Types,
        batches: &[(BatchPos, u16)],
        progress: &mut impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let left = usize::try_from(self.record.batches).unwrap_or(usize::MAX).min(batches.len());
        for (batch, mask) in &batches[left..] {
            let (report, columns) = (&mut self.record.report, columns_of(*batch, *mask));
            let (save, mut along) = match reader.turn_to_batch(self.record.batches, *batch) {
                Err(error) if self.options.leaves_damaged && error.is_of_files() => {
                    columns.iter().for_each(|column| report.lose(Some(*column), &error));
                    Default::default()
                }
                turned => {
                    turned?;
                    arrival.batch(reader, types, &columns, report)?
                }
            };
            save.entities.values().flatten().for_each(|entity| types.add_entity_types(entity));
            if let Some(lists) = types.take_changed() {
                // They come first: no chunk has a number that nobody knows.
                self.world.save_registry_lists(lists)?;
            }
            report.new_types += types.take_added();
            report.entities += save.entities.len() as u64;
            let chunks = save.chunks.len() as u64;
            report.chunks += chunks;
            self.record.batches += 1;
            self.put_record(&mut along.writes);
            let writing = self.world.lock_writes();
            self.done.bytes += self.world.commit_along(&save, along, Durability::Process)?.bytes;
            drop(writing);
            self.done.done += chunks;
            self.done.fraction = Some(self.record.batches as f64 / batches.len() as f64);
            if progress(&self.done).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The objects that are only kept, and are not yet in the world.
    fn kept(
        &mut self,
        reader: &mut Reader,
        progress: &mut impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        for file in self.record.kept.0..=reader.files() {
            match reader.turn_to(file) {
                Err(error) if self.options.leaves_damaged && error.is_of_files() => {
                    self.record.report.lose(None, &error);
                    continue;
                }
                turned => turned?,
            }
            let after = if file == self.record.kept.0 { self.record.kept.1.clone() } else { String::new() };
            match reader.check_unknown() {
                // With the first objects of the file it is in the record.
                Err(error) if self.options.leaves_damaged && after.is_empty() => self.record.report.lose(None, &error),
                Err(error) if !self.options.leaves_damaged => return Err(error),
                _ => {}
            }
            let (mut writes, mut count) = (WriteBatch::default(), 0);
            let keys = reader.others(&after);
            for (place, key) in (1..).zip(&keys) {
                self.keep(reader, key, &mut writes)?;
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
                if progress(&self.done).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        self.record.kept = (reader.files() + 1, String::new());
        Ok(ControlFlow::Continue(()))
    }

    fn keep(&mut self, reader: &Reader, key: &str, writes: &mut WriteBatch) -> Result<()> {
        let found = moved_key(reader, key, self.options.moved_by);
        let (key, (version, data)) = match found.and_then(|moved_key| Ok((moved_key, reader.required(key)?))) {
            Err(error) if self.options.leaves_damaged && error.is_of_files() => {
                self.record.report.lose(None, &error);
                return Ok(());
            }
            found => found?,
        };
        if self.is_left_out(&key)? {
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
    fn is_left_out(&self, key: &str) -> Result<bool> {
        let Some((place, _)) = Place::of(key) else { return Ok(false) };
        let (pos, keeps) = (place.column(), self.options.existing == ExistingGround::Keep);
        if self.is_sparse {
            let is_there = |chunk| Ok::<_, ImportError>(self.world.chunk_value(self.dimension, chunk)?.is_some());
            return match place {
                Place::Chunk(chunk) if keeps => is_there(chunk),
                _ => Ok(false),
            };
        }
        let back = self.options.moved_by.map(|by| by.checked_neg().unwrap_or(i64::MAX));
        let is_to_come = moved_column(pos, back).is_some_and(|column| {
            let found = self.tiles.binary_search_by_key(&column.tile(), |(place, _)| *place);
            found.is_ok_and(|found| stored_graph::is_marked(&self.tiles[found].1, column))
        });
        let is_stored = self.world.is_stored(self.dimension, pos)?;
        Ok(is_to_come && if is_stored { keeps } else { !self.makes_columns })
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
    let Some((place, rest)) = Place::of(key) else { return Ok(key.to_owned()) };
    if place.moved([0; 3]).is_none() {
        return Err(reader.damaged(key, "its place is nowhere".into()));
    }
    let moved = place.moved(by).ok_or(ImportError::OutOfRange { column: place.column() })?.key(rest);
    match moved.len() <= MAX_KEY_BYTES {
        true => Ok(moved),
        false => Err(reader.damaged(key, "its key would be too long where it is moved to".into())),
    }
}
