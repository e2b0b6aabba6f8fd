//! Reading of an export's files.

use super::format::{EXPORT_SIGNATURE, Files, Header, LARGEST_BATCH, MAX_LISTED, MAX_PACKED, Packed, Ticks};
use super::name::{self, COLUMNS, Name};
use super::writer::export_file;
use crate::bytes::UpTo;
use crate::space::{BatchPos, CHUNK_COORDINATES, ColumnPos, TILE_BATCHES, TilePos};
use crate::upkeep::UpkeepError;
use crate::values::tile_masks::{self, Masks};
use crate::{EntityRecord, StoredTile, TileHistory, values::record};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use terrane_objects::{ObjectStore, ObjectStoreError};

type Result<T> = std::result::Result<T, UpkeepError>;

/// An export with one open file.
pub(super) struct Reader {
    path: PathBuf,
    /// The header as encoded in each of the files.
    encoded_header: Vec<u8>,
    pub header: Header,
    /// `None` if the export is incomplete.
    files: Option<Files>,
    store: ObjectStore,
    number: u32,
    /// The last file that failed to open, so that it is not retried for each of its batches.
    failed: Option<(u32, UpkeepError)>,
    /// The files of the batches, if they had to be determined from the keys.
    places: Option<BTreeMap<BatchPos, u32>>,
    /// The unused objects from the packs of the current batch, by the pack's key.
    packs: BTreeMap<String, BTreeMap<String, (u64, Vec<u8>)>>,
    /// The number of bytes read from the current batch.
    bytes: usize,
}

/// A column of an export at its original position.
pub(super) struct FoundColumn {
    pub pos: ColumnPos,
    /// The height, version and bytes of each chunk.
    pub chunks: Vec<(i64, u64, Vec<u8>)>,
    pub ticks: Ticks,
    pub entities: Vec<EntityRecord>,
}

impl Reader {
    /// Opens an export. An incomplete one is an error, unless `leaves_damaged` is `true`.
    pub fn open(path: &Path, leaves_damaged: bool) -> Result<Self> {
        let store = ObjectStore::open_to_read(path, EXPORT_SIGNATURE)?;
        match Self::of(path, store) {
            Err(error)
                if leaves_damaged && (error.is_of_files() || matches!(error, UpkeepError::Unfinished { .. })) =>
            {
                let store = ObjectStore::open_to_salvage(path, EXPORT_SIGNATURE)?;
                let (encoded_header, header) = read_header(path, &store)?;
                Ok(Self::new(path, store, (encoded_header, header), None))
            }
            reader => reader,
        }
    }

    /// Opens a complete export by its first file.
    fn of(path: &Path, store: ObjectStore) -> Result<Self> {
        let header = read_header(path, &store)?;
        let damaged = |reason: String| damaged(path, Name::Files.to_string(), reason);
        let Some((_, files)) = read(&store, &Name::Files.to_string())? else {
            return Err(UpkeepError::Unfinished { path: path.to_path_buf() });
        };
        let files: Files = record::decode(&files).map_err(damaged)?;
        let Files { starts, .. } = &files;
        if starts.first() != Some(&0) || !starts.is_sorted() || u32::try_from(starts.len()).is_err() {
            return Err(damaged("it does not count batches from 0 on".into()));
        }
        Ok(Self::new(path, store, header, Some(files)))
    }

    fn new(path: &Path, store: ObjectStore, header: (Vec<u8>, Header), files: Option<Files>) -> Self {
        let (encoded_header, header) = header;
        let (path, packs) = (path.to_path_buf(), BTreeMap::new());
        Self { path, encoded_header, header, files, store, number: 1, failed: None, places: None, packs, bytes: 0 }
    }

    /// The encoded header, which identifies the export.
    pub fn encoded_header(&self) -> &[u8] {
        &self.encoded_header
    }

    /// The number of files.
    pub fn files(&self) -> u32 {
        match &self.files {
            Some(files) => files.starts.len() as u32,
            None => (1..).take_while(|number| export_file(&self.path, *number).exists()).count() as u32,
        }
    }

    /// A list from the first file.
    pub fn list<T: DeserializeOwned>(&mut self, list: &str) -> Result<Vec<T>> {
        self.turn_to(1)?;
        let UpTo(list) = self.value::<UpTo<T, MAX_LISTED>>(&Name::Registry(list).to_string())?;
        Ok(list)
    }

    /// The columns of the export. If their list is damaged and `leaves_damaged` is `true`, they are determined from the
    /// keys. Some columns may then be missing without a trace, and the reason is returned.
    pub fn tiles(&mut self, leaves_damaged: bool) -> Result<(Vec<StoredTile>, Option<UpkeepError>)> {
        if self.files.is_none() {
            return Ok((self.tiles_of_rest()?, Some(UpkeepError::Unfinished { path: self.path.clone() })));
        }
        let named = self.named_tiles().and_then(|tiles| self.check_columns(&tiles).map(|()| tiles));
        match named {
            Err(UpkeepError::Damaged { .. }) if leaves_damaged => {
                let tiles = self.tiles_by_keys()?;
                let lost = self.check_columns(&tiles).err();
                Ok((tiles, lost))
            }
            tiles => Ok((tiles?, None)),
        }
    }

    /// The columns of an incomplete export: those that are in the files, and those that were still to come, as far as
    /// they are known.
    fn tiles_of_rest(&mut self) -> Result<Vec<StoredTile>> {
        let mut tiles: BTreeMap<TilePos, Masks> = self.tiles_by_keys()?.into_iter().collect();
        match self.named_tiles() {
            Err(error) if error.is_of_files() => {}
            named => {
                for (tile, masks) in named? {
                    let known = tiles.entry(tile).or_insert([0; TILE_BATCHES]);
                    known.iter_mut().zip(masks).for_each(|(known, mask)| *known |= mask);
                }
            }
        }
        Ok(tiles.into_iter().collect())
    }

    /// The columns that the first file lists.
    fn named_tiles(&mut self) -> Result<Vec<StoredTile>> {
        self.turn_to(1)?;
        let mut tiles = Vec::new();
        for (key, _) in self.store.with_prefix(COLUMNS) {
            // Other names are foreign objects, which the world keeps.
            let Name::Columns(tile) = Name::parse(key) else { continue };
            let bytes = self.required(key)?.1;
            let masks = tile_masks::masks_of(&bytes).map_err(|reason| self.damaged(key, reason))?;
            if !tile.batch(0).is_some_and(|batch| batch.column(0).exists()) {
                return Err(self.damaged(key, "there are no such columns".into()));
            }
            tiles.push((tile, masks));
        }
        tiles.sort_unstable_by_key(|(place, _)| *place);
        Ok(tiles)
    }

    /// The histories of the export's columns, by tile. If one is damaged and `leaves_damaged` is `true`, it is left out and the
    /// reason is returned.
    pub fn histories(
        &mut self,
        tiles: &[StoredTile],
        leaves_damaged: bool,
    ) -> Result<(BTreeMap<TilePos, TileHistory>, Vec<UpkeepError>)> {
        let (mut found, mut lost) = (BTreeMap::new(), Vec::new());
        self.turn_to(1)?;
        for (tile, _) in tiles {
            let name = Name::History(*tile);
            let history = read(&self.store, &name.to_string()).and_then(|object| {
                let history = object.map(|(_, bytes)| TileHistory::decode(&bytes));
                history.transpose().map_err(|reason| self.bad(name, &reason))
            });
            match history {
                Err(error) if leaves_damaged && error.is_of_files() => lost.push(error),
                history => found.extend(history?.map(|history| (*tile, history))),
            }
        }
        Ok((found, lost))
    }

    /// Checks that the number of columns is complete.
    fn check_columns(&self, tiles: &[StoredTile]) -> Result<()> {
        let Some(Files { columns, .. }) = &self.files else { return Ok(()) };
        let found: u64 = tiles.iter().flat_map(|(_, masks)| masks).map(|mask| u64::from(mask.count_ones())).sum();
        if found == *columns {
            return Ok(());
        }
        let reason = format!("{columns} columns are expected, and only {found} are known");
        Err(damaged(&self.path, Name::Files.to_string(), reason))
    }

    fn tiles_by_keys(&mut self) -> Result<Vec<StoredTile>> {
        let (mut tiles, mut places) = (BTreeMap::new(), BTreeMap::new());
        for file in 1..=self.files() {
            match self.turn_to(file) {
                Err(error) if error.is_of_files() => continue,
                turned => turned?,
            }
            for (key, _) in self.store.with_prefix("") {
                let UpTo(packed) = match Name::parse(key) {
                    Name::Batch(_) => match self.value::<UpTo<Packed, MAX_PACKED>>(key) {
                        // Its columns are then unknown.
                        Err(error) if error.is_of_files() => UpTo::default(),
                        value => value?,
                    },
                    _ => UpTo(vec![(key.to_owned(), 0, Vec::new())]),
                };
                for (key, ..) in packed {
                    if let Name::Column(column, name::CHUNKS) = Name::parse(&key)
                        && column.exists()
                    {
                        tile_masks::insert(&mut tiles, column);
                        places.entry(column.batch()).or_insert(file);
                    }
                }
            }
        }
        self.places = Some(places);
        Ok(tiles.into_iter().collect())
    }

    /// Opens the file that holds the batch with this number in the order of the export. Its [columns](Self::column) can
    /// then be read, each once.
    pub fn turn_to_batch(&mut self, number: u64, batch: BatchPos) -> Result<()> {
        self.packs.clear();
        self.bytes = 0;
        let file = match (&self.places, &self.files) {
            (None, Some(files)) => files.starts.partition_point(|start| *start <= number) as u32,
            (places, _) => places.as_ref().and_then(|places| places.get(&batch)).copied().unwrap_or(1),
        };
        self.turn_to(file)
    }

    /// Opens the file with this number.
    pub fn turn_to(&mut self, number: u32) -> Result<()> {
        if self.number == number {
            return Ok(());
        }
        if let Some((_, error)) = self.failed.as_ref().filter(|(failed, _)| *failed == number) {
            return Err(error.clone());
        }
        match self.open_file(number) {
            Ok(store) => (self.store, self.number) = (store, number),
            Err(error) => {
                self.failed = Some((number, error.clone()));
                return Err(error);
            }
        }
        Ok(())
    }

    fn open_file(&self, number: u32) -> Result<ObjectStore> {
        let path = export_file(&self.path, number);
        let opened = match self.files {
            Some(_) => ObjectStore::open_to_read(&path, EXPORT_SIGNATURE),
            None => ObjectStore::open_to_salvage(&path, EXPORT_SIGNATURE),
        };
        let store = match opened {
            Err(ObjectStoreError::Io(error)) if error.kind == ErrorKind::NotFound => {
                return Err(damaged(&path, Name::Export.to_string(), "the file is missing".into()));
            }
            opened => opened?,
        };
        let header = read(&store, &Name::Export.to_string())?.map(|(_, header)| header);
        if header.as_ref() != Some(&self.encoded_header) {
            return Err(damaged(&path, Name::Export.to_string(), "the file is of another export".into()));
        }
        Ok(store)
    }

    /// The keys in the open file, after `after`, of objects of games or other programs. They include keys of which only
    /// traces were found.
    pub fn others(&self, after: &str) -> Vec<String> {
        let lost = self.store.recovery().into_iter().flat_map(|recovery| recovery.dropped.keys());
        let keys = self.store.with_prefix("").map(|(key, _)| key).chain(lost.map(String::as_str));
        let others: BTreeSet<&str> = keys.filter(|key| *key > after && Name::parse(key).is_foreign()).collect();
        others.into_iter().map(str::to_owned).collect()
    }

    /// Fails if the open file may have lost objects of unknown keys. Losses of ground are noticed anyway.
    pub fn check_unknown(&self) -> Result<()> {
        match self.store.recovery() {
            Some(recovery) if recovery.damaged_blocks > 0 => {
                let (path, blocks) = (self.store.path().to_path_buf(), recovery.damaged_blocks);
                Err(UpkeepError::UnknownLoss { path, blocks })
            }
            _ => Ok(()),
        }
    }

    /// The version and bytes of an object in the open file.
    pub fn required(&self, key: &str) -> Result<(u64, Vec<u8>)> {
        read(&self.store, key)?.ok_or_else(|| self.damaged(key, MISSING.into()))
    }

    pub fn damaged(&self, key: &str, reason: String) -> UpkeepError {
        damaged(self.store.path(), key.to_owned(), reason)
    }

    fn value<T: DeserializeOwned>(&self, key: &str) -> Result<T> {
        record::decode(&self.required(key)?.1).map_err(|reason| self.damaged(key, reason))
    }

    /// A column of the current batch.
    pub fn column(&mut self, pos: ColumnPos) -> Result<FoundColumn> {
        let UpTo(heights) = self
            .part::<UpTo<i64, MAX_LISTED>>(pos, name::CHUNKS)?
            .ok_or_else(|| self.bad(Name::Column(pos, name::CHUNKS), MISSING))?;
        let area = self.header.area.chunk_heights();
        let has = |height: &i64| {
            area.as_ref().is_some_and(|area| area.contains(height)) && CHUNK_COORDINATES.contains(height)
        };
        if !heights.iter().all(has) || !heights.is_sorted_by(|a, b| a < b) {
            return Err(self.bad(Name::Column(pos, name::CHUNKS), "heights are out of order, or not in the box"));
        }
        let mut chunks = Vec::with_capacity(heights.len());
        for height in heights {
            let name = Name::Chunk(pos.chunk(height), name::BLOCKS);
            let (version, bytes) = self.object(name)?.ok_or_else(|| self.bad(name, MISSING))?;
            chunks.push((height, version, bytes));
        }
        let UpTo(ticks) = self.part::<UpTo<_, MAX_LISTED>>(pos, name::TICKS)?.unwrap_or_default();
        let ticks: Ticks = ticks;
        if !ticks.iter().all(|(height, _)| has(height)) {
            return Err(self.bad(Name::Column(pos, name::TICKS), "a height is not in the box"));
        }
        let UpTo(records) = self.part::<UpTo<Vec<u8>, MAX_LISTED>>(pos, name::ENTITIES)?.unwrap_or_default();
        let entities = records.iter().map(|record| self.entity(pos, record)).collect::<Result<_>>()?;
        Ok(FoundColumn { pos, chunks, ticks, entities })
    }

    fn entity(&self, pos: ColumnPos, bytes: &[u8]) -> Result<EntityRecord> {
        let bad = |reason: &str| self.bad(Name::Column(pos, name::ENTITIES), reason);
        let entity = EntityRecord::from_bytes(bytes);
        let entity = entity.map_err(|reason| bad(&reason))?;
        let is_here = entity.column() == pos && self.header.area.contains(entity.block);
        if entity.dimension != self.header.number || !is_here {
            return Err(bad(&format!("the entity {} is elsewhere", entity.id)));
        }
        if let Some(name) = entity.player() {
            // A game would take the entity for the player of this name.
            return Err(bad(&format!("the player {name:?} belongs to no column")));
        }
        Ok(entity)
    }

    fn part<T: DeserializeOwned>(&mut self, pos: ColumnPos, part: &str) -> Result<Option<T>> {
        let name = Name::Column(pos, part);
        let Some((_, bytes)) = self.object(name)? else {
            let chunks = Name::Column(pos, name::CHUNKS).to_string();
            return match self.store.may_be_cut_off(&name.to_string(), &chunks) {
                true => Err(self.bad(name, "it may have been cut off")),
                false => Ok(None),
            };
        };
        record::decode(&bytes).map(Some).map_err(|reason| self.bad(name, &reason))
    }

    /// An object, stored on its own or in a pack. The one on its own wins.
    fn object(&mut self, name: Name<'_>) -> Result<Option<(u64, Vec<u8>)>> {
        let key = name.to_string();
        let alone = read(&self.store, &key)?;
        if let Some((_, bytes)) = &alone {
            self.count(&key, bytes.len())?;
            return Ok(alone);
        }
        let Some(pack) = name.pack() else { return Ok(None) };
        let key_of_pack = pack.to_string();
        if !self.packs.contains_key(&key_of_pack) {
            let mut objects = BTreeMap::new();
            if let Some((_, bytes)) = read(&self.store, &key_of_pack)? {
                self.count(&key_of_pack, bytes.len())?;
                let damaged = |reason| self.damaged(&key_of_pack, reason);
                let UpTo(packed) = record::decode::<UpTo<Packed, MAX_PACKED>>(&bytes).map_err(damaged)?;
                for (key, version, bytes) in packed {
                    if !pack.is_pack_of(&key) {
                        return Err(damaged(format!("{key:?} does not belong into it")));
                    }
                    if objects.insert(key.clone(), (version, bytes)).is_some() {
                        return Err(damaged(format!("{key:?} is in it twice")));
                    }
                }
            }
            self.packs.insert(key_of_pack.clone(), objects);
        }
        Ok(self.packs.get_mut(&key_of_pack).and_then(|objects| objects.remove(&key)))
    }

    fn count(&mut self, key: &str, bytes: usize) -> Result<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        match self.bytes <= LARGEST_BATCH {
            true => Ok(()),
            false => Err(self.damaged(key, format!("its batch of columns has more than {LARGEST_BATCH} bytes"))),
        }
    }

    pub fn bad(&self, name: Name<'_>, reason: &str) -> UpkeepError {
        self.damaged(&name.to_string(), reason.to_owned())
    }
}

const MISSING: &str = "it is missing";

/// Reads the header from the first file, encoded and decoded.
fn read_header(path: &Path, store: &ObjectStore) -> Result<(Vec<u8>, Header)> {
    let damaged = |reason: String| damaged(path, Name::Export.to_string(), reason);
    let (_, encoded) = read(store, &Name::Export.to_string())?.ok_or_else(|| damaged(MISSING.into()))?;
    let header = record::decode(&encoded).map_err(damaged)?;
    Ok((encoded, header))
}

/// The version and bytes of an object. An error names the file and the object once.
fn read(store: &ObjectStore, key: &str) -> Result<Option<(u64, Vec<u8>)>> {
    let damaged = |reason| damaged(store.path(), key.to_owned(), reason);
    match store.read(key) {
        Ok(object) => Ok(object.map(|object| (object.version, object.data))),
        Err(ObjectStoreError::Damaged { block, reason, .. }) => Err(damaged(format!("in block {block}, {reason}"))),
        Err(error) => Err(error.into()),
    }
}

fn damaged(path: &Path, key: String, reason: String) -> UpkeepError {
    UpkeepError::Damaged { path: path.to_path_buf(), key, reason }
}
