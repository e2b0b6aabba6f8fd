//! Export of a dimension.

use super::format::{Header, MAX_LISTED, Packed, whole_chunks};
use super::ground::{BatchObjects, Walk, batches, columns_of};
use super::name::{self, Name};
use super::writer::Writer;
use super::{ExportOptions, ExportReport, LostObject};
use crate::space::{BatchPos, BlockBox, ColumnPos, DimensionId, TilePos};
use crate::upkeep::UpkeepError;
use crate::values::{record, tile_masks};
use crate::work::Progress;
use crate::{ChunkGroup, Family, RegistryLists, StoredDimension, StoredTile, WorldStore, keys};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::UNIX_EPOCH;

type Result<T> = std::result::Result<T, UpkeepError>;

/// Exports with more columns than this are packed by default.
const MAX_COLUMNS_BY_CHUNK: u64 = 1_024;

/// The amount of data that is written to the file at a time.
const AT_ONCE: usize = 4 << 20;

impl WorldStore {
    /// Exports a dimension, or a box of it, into the object store `path`: chunks of all tiers with their block ticks, entities
    /// except players, summaries, the dimension's [kept objects](Self::keep_object), and the lists that map numbers to names.
    /// `docs/exports.md` specifies the keys and values. Ground that was never generated is not exported.
    ///
    /// Objects beyond the allowed number per file go to `path.2`, `path.3` and so on. The same call continues an export
    /// that was stopped or whose process ended, with the same final result, unless the world has since been opened to
    /// be played. The dimension must not be changed during the export: to export a world that is being played, export a
    /// [backup](Self::back_up).
    ///
    /// `progress` is called after each batch of columns, counts chunks, and can stop the export.
    ///
    /// # Errors
    /// Other data in the file; damage in the world, unless the options leave it out; errors of the system. Data that
    /// was written stays, and the same call continues the export.
    pub fn export_dimension(
        &self,
        name: &str,
        path: &Path,
        options: &ExportOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<ExportReport> {
        self.export_by(AT_ONCE, name, path, options, progress)
    }

    pub(super) fn export_by(
        &self,
        at_once: usize,
        name: &str,
        path: &Path,
        options: &ExportOptions,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<ExportReport> {
        let dimensions = self.dimensions()?;
        let dimension = self.dimension_named(name)?;
        self.expect_graph(dimension.id)?;
        let area = whole_chunks(&options.area);
        let tiles = self.tiles_in(dimension.id, &area)?;
        let batches = batches(&tiles);
        let columns: u64 = batches.iter().map(|(_, mask)| u64::from(mask.count_ones())).sum();
        let header = self.header_of(&dimension, area, options.packs.unwrap_or(columns > MAX_COLUMNS_BY_CHUNK))?;
        let lists = self.registry_lists()?;
        let lengths = [lists.blocks.len(), lists.components.len(), lists.entity_types.len(), dimensions.len()];
        if lengths.iter().any(|length| *length > MAX_LISTED) {
            return Err(UpkeepError::TooLarge { what: "the list of types".into() });
        }
        let masks: Vec<Packed> = tiles.iter().map(columns_object).collect();
        let state = self.state_of(&masks, &lists);
        let histories = self.history_objects(dimension.id, &tiles)?;
        let first = || list_objects(&lists, &dimensions).chain(masks).chain(histories).collect();
        let mut writer = Writer::open(path, record::encode(&header), state, options.objects_per_file, at_once, first)?;
        if writer.progress.report.finished {
            return Ok(writer.report());
        }
        let (leaves_damaged, done, cubes) = (options.leaves_damaged, Progress::default(), BTreeMap::new());
        let mut walk = Walk { world: self, header: &header, leaves_damaged, columns, done, tell: &mut progress, cubes };
        match walk.run(&mut writer, &batches) {
            Ok(ControlFlow::Continue(())) => {
                let last = without(tiles, &writer.progress.lost_columns);
                writer.finish(last)
            }
            Ok(ControlFlow::Break(())) => {
                writer.write()?;
                Ok(writer.report())
            }
            Err(error) => {
                // Best effort, so that the next call continues from here: the first error matters more.
                let _ = writer.write();
                Err(error)
            }
        }
    }
}

impl WorldStore {
    fn header_of(&self, dimension: &StoredDimension, area: BlockBox, is_clustered: bool) -> Result<Header> {
        let made_at = self.created_at().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Header {
            world: (made_at.as_secs(), self.session()),
            dimension: dimension.name.clone(),
            number: dimension.id,
            origin: dimension.generator.clone(),
            is_sparse: dimension.sparse,
            area,
            is_clustered,
        })
    }

    /// The histories of the exported columns, for the tiles that have one.
    fn history_objects(&self, dimension: DimensionId, tiles: &[StoredTile]) -> Result<Vec<Packed>> {
        let mut histories: BTreeMap<_, _> = self.histories(dimension)?.into_iter().collect();
        let first = self.first_heights(dimension)?;
        let objects = tiles.iter().filter_map(|(tile, masks)| {
            let history = histories.remove(tile).unwrap_or_default().of_columns(masks, first.clone());
            (!history.is_empty()).then(|| (Name::History(*tile).to_string(), 0, history.encode()))
        });
        Ok(objects.collect())
    }

    /// A checksum that distinguishes states of the world within one session.
    fn state_of(&self, masks: &[Packed], lists: &RegistryLists) -> u64 {
        // Each save advances the play time, and changes of the ground without a save are in the graph.
        let played = self.play_time().as_nanos().to_le_bytes();
        let sums = [crc32fast::hash(&played), crc32fast::hash(&record::encode(&(masks, &lists.blocks)))];
        u64::from(sums[0]) << 32 | u64::from(sums[1])
    }
}

impl Walk<'_> {
    fn run(&mut self, writer: &mut Writer, batches: &[(BatchPos, u16)]) -> Result<ControlFlow<()>> {
        match self.ground(writer, batches)? {
            ControlFlow::Continue(()) => self.kept(writer),
            ControlFlow::Break(()) => Ok(ControlFlow::Break(())),
        }
    }

    fn ground(&mut self, writer: &mut Writer, batches: &[(BatchPos, u16)]) -> Result<ControlFlow<()>> {
        let left = usize::try_from(writer.progress.batches).unwrap_or(usize::MAX).min(batches.len());
        for of_tile in batches[left..].chunk_by(|(a, _), (b, _)| a.tile() == b.tile()) {
            let Some((first, _)) = of_tile.first() else { continue };
            let _resting = self.world.groups_at_rest();
            let mut groups: BTreeMap<BatchPos, Vec<ChunkGroup>> = BTreeMap::new();
            for group in self.world.groups_over(self.header.number, first.tile(), self.leaves_damaged)? {
                groups.entry(group.batch()).or_default().push(group);
            }
            self.cubes.clear();
            for (batch, mask) in of_tile {
                let groups = groups.remove(batch).unwrap_or_default();
                let columns = columns_of(*batch, *mask);
                let Some(at) = columns.first() else { continue };
                let mut lost = Vec::new();
                let found = match self.objects(&columns, &groups) {
                    Err(error) if self.leaves_damaged && error.is_damage() => {
                        self.whole_columns(&columns, &groups, &mut lost)?
                    }
                    found => found?,
                };
                if !found.fits() {
                    return Err(UpkeepError::TooLarge { what: format!("what is in the column {at} and beside it") });
                }
                let BatchObjects { objects, bytes, chunks, entities, lost_summaries, .. } = found;
                writer.add(objects)?;
                let report = &mut writer.progress.report;
                let written = (columns.len() - lost.len()) as u64;
                report.columns += written;
                report.chunks += chunks;
                report.entities += entities;
                writer.progress.lost_columns.extend(lost.iter().filter_map(|lost| lost.column));
                lost.into_iter().for_each(|lost| report.lost.add(lost));
                lost_summaries.into_iter().for_each(|reason| report.lost.add(LostObject { column: None, reason }));
                writer.progress.batches += 1;
                writer.progress.written += u64::from(written > 0);
                writer.write_if_full()?;
                self.done.done += chunks;
                self.done.bytes += bytes as u64;
                let come_to = writer.progress.report.columns + writer.progress.lost_columns.len() as u64;
                self.done.fraction = Some(come_to as f64 / self.columns.max(1) as f64);
                if (self.tell)(&self.done).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Exports the kept objects, except those of places outside the box.
    fn kept(&mut self, writer: &mut Writer) -> Result<ControlFlow<()>> {
        let world = self.world;
        let mut range = keys::dimension_range(keys::OBJECT, self.header.number);
        if let Some(last) = &writer.progress.kept {
            range.start = keys::after(last);
        }
        loop {
            let page = world.store.scan(Family::Meta, &range.start..&range.end, 64)?;
            let Some((last, _)) = page.last() else { return Ok(ControlFlow::Continue(())) };
            range.start = keys::after(last);
            for (key, value) in page {
                let (_, _, name) = world.parsed(Family::Meta, &key, keys::parse_object_key)?;
                if self.has(name) {
                    match world.open_object(self.header.number, name, &value) {
                        Err(error) if self.leaves_damaged && error.is_damage() => {
                            writer.progress.report.lost.add(LostObject { column: None, reason: error.to_string() });
                        }
                        object => {
                            let object = object?;
                            writer.add(vec![(name.to_owned(), object.version, object.data)])?;
                            writer.progress.report.objects += 1;
                        }
                    }
                }
                writer.progress.kept = Some(key);
                writer.write_if_full()?;
            }
            if (self.tell)(&self.done).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }

    fn has(&self, name: &str) -> bool {
        let name = Name::parse(name);
        let is_at_height = !matches!(name, Name::Chunk(chunk, _) if !self.reaches(chunk.y));
        is_at_height && name.column().is_none_or(|column| self.header.area.reaches(column))
    }

    /// The objects of the columns without damage.
    fn whole_columns(
        &mut self,
        columns: &[ColumnPos],
        groups: &[ChunkGroup],
        lost: &mut Vec<LostObject>,
    ) -> Result<BatchObjects> {
        let mut whole = Vec::new();
        for column in columns {
            match self.objects(&[*column], groups) {
                Ok(_) => whole.push(*column),
                Err(error) if error.is_damage() => {
                    lost.push(LostObject { column: Some(*column), reason: error.to_string() });
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.objects(&whole, groups)?)
    }
}

/// The objects that map numbers to names.
fn list_objects(lists: &RegistryLists, dimensions: &[StoredDimension]) -> impl Iterator<Item = Packed> + use<> {
    let names: Vec<(u64, &str)> = dimensions.iter().map(|it| (it.id.0, &*it.name)).collect();
    let lists = [
        (name::BLOCKS, record::encode(&lists.blocks)),
        (name::COMPONENTS, record::encode(&lists.components)),
        (name::ENTITY_TYPES, record::encode(&lists.entity_types)),
        (name::DIMENSIONS, record::encode(&names)),
    ];
    lists.into_iter().map(|(list, value)| (Name::Registry(list).to_string(), 0, value))
}

fn columns_object((tile, masks): &StoredTile) -> Packed {
    (Name::Columns(*tile).to_string(), 0, tile_masks::bytes_of(masks))
}

/// The objects that list the exported columns, without the lost ones.
fn without(tiles: Vec<StoredTile>, lost: &[ColumnPos]) -> Vec<Packed> {
    let mut of_tiles: BTreeMap<TilePos, Vec<ColumnPos>> = BTreeMap::new();
    for column in lost {
        of_tiles.entry(column.tile()).or_default().push(*column);
    }
    let changed = tiles.into_iter().filter_map(|(tile, mut masks)| {
        of_tiles.get(&tile)?.iter().for_each(|column| tile_masks::set_mark(&mut masks, *column, false));
        Some(columns_object(&(tile, masks)))
    });
    changed.collect()
}
