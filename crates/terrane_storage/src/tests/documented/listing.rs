//! The library's view of a world, entry by entry, in the format of `tools/read_world.py`.

use crate::backends::test_store::TestStore;
use crate::bytes::record;
use crate::chunk::Chunk;
use crate::chunk::format::cluster::cluster_place;
use crate::space::{
    BatchPos, BlockPos, CHUNK_SIZE, ChunkPos, ColumnArea, ColumnPos, DimensionId, HeightSet, TILE_BATCHES, cell_index,
};
use crate::tiers::cluster::{self, Part};
use crate::tiers::{LOST_CHUNK, heat};
use crate::upkeep::{ExistingGround, ImportReport};
use crate::values::blocks::KnownBlocks;
use crate::values::tile_masks::{self, Masks};
use crate::{
    Access, ChildRecord, ChunkGroup, EntityRecord, Family, StorageConfig, StoredPregeneration, Tier, ViewerRecord,
    WorldStore, bytes, envelope, keys, mark_stored,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// The listing of a world, which stays unchanged.
pub(super) fn listing(store: &TestStore) -> String {
    let config = StorageConfig::Custom(Arc::new(store.clone()));
    let world = WorldStore::open_existing(&config, Access::Read).unwrap();
    let blocks = world.known_blocks().unwrap();
    let mut listing = Listing { world, blocks, text: String::new() };
    store.contents().into_iter().for_each(|(family, (key, value))| listing.add(family, &key, &value));
    listing.text
}

struct Listing {
    world: WorldStore,
    blocks: Arc<KnownBlocks>,
    text: String,
}

impl Listing {
    fn line(&mut self, line: String) {
        self.text.push_str(&line);
        self.text.push('\n');
    }

    fn add(&mut self, family: Family, key: &[u8], value: &[u8]) {
        match family {
            Family::Chunks | Family::WarmChunks | Family::ColdChunks => self.chunks(family, key, value),
            Family::Entities => {
                let entity = self.world.entity_record(keys::parse_entity_key(key).unwrap(), value).unwrap();
                self.line(format!("entities {}", entity_text(&entity)));
            }
            Family::Registry => self.types(str::from_utf8(key).unwrap(), value),
            Family::Meta => {
                let line = self.meta(key, value);
                self.line(format!("meta {line}"));
            }
            Family::Opacity => self.opacity(key, value),
        }
    }

    fn chunks(&mut self, family: Family, key: &[u8], value: &[u8]) {
        let (dimension, first) = keys::parse_chunk_key(key).unwrap();
        self.line(format!("{family} {} {}", dimension.0, chunk_text(first)));
        let tier = Tier::of_family(family).unwrap();
        if tier == Tier::Hot {
            return self.chunk(dimension, first, value);
        }
        for (place, part) in cluster::open(value).unwrap() {
            self.group(ChunkGroup::in_cluster(tier, dimension, first, place), &part);
        }
    }

    fn group(&mut self, group: ChunkGroup, part: &Part) {
        let (chunks, stored, length) = (part.chunks, part.stored_bytes().len(), part.length());
        let first = chunk_text(group.first());
        self.line(format!("  group {first} chunks {chunks:016x} stored {stored} of {length} bytes"));
        for (place, value) in cluster::values(&part.unpack().unwrap()) {
            let chunk = group.chunk(place);
            assert_eq!(cluster_place(chunk), place);
            self.chunk(group.dimension(), chunk, value);
        }
    }

    fn chunk(&mut self, dimension: DimensionId, pos: ChunkPos, value: &[u8]) {
        let place = chunk_text(pos);
        if value == LOST_CHUNK {
            return self.line(format!("  chunk {place} is lost"));
        }
        let version = envelope::open(value).unwrap().0;
        let chunk = self.world.decode_chunk(&self.blocks, (dimension, pos), value).unwrap();
        let palette = tuple(chunk.palette().iter().map(|block| block.index().to_string()));
        let cells = checksum(chunk.blocks().map(|block| block.index().to_le_bytes()));
        let layers = chunk.layered_blocks();
        let layers = list(layers.map(|(at, layer, block)| format!("({} {layer} {})", cell_index(at), block.index())));
        self.line(format!("  chunk {place} version {version} palette {palette} cells {cells} layers {layers}"));
        self.components(&chunk);
    }

    fn components(&mut self, chunk: &Chunk) {
        let mut found: BTreeMap<u64, (Vec<u32>, Vec<String>)> = BTreeMap::new();
        for (cell, at) in cells().enumerate() {
            for layer in 0..chunk.layer_count(at) {
                for (component, value) in chunk.components(at, layer as u8) {
                    let (sizes, told) = found.entry(component.number()).or_default();
                    sizes.push(value.len() as u32);
                    if value.iter().any(|byte| *byte != 0) {
                        told.push(format!("({cell} {layer} {})", hex(value)));
                    }
                }
            }
        }
        for (number, (sizes, told)) in found {
            let (count, sizes) = (sizes.len(), checksum(sizes.iter().map(|size| size.to_le_bytes())));
            self.line(format!("    component {number:016x}: {count} values {sizes} {}", list(told.into_iter())));
        }
    }

    fn types(&mut self, name: &str, value: &[u8]) {
        let lists = self.world.registry_lists().unwrap();
        let types = match name {
            "blocks" => list(lists.blocks.iter().map(|block| {
                let components = list(block.components.iter().map(u64::to_string));
                format!("({} {components})", block.name)
            })),
            "components" => list(lists.components.iter().map(|component| {
                let size = option(component.size.map(|size| size.to_string()));
                format!("({} {} {size})", component.name, component.version)
            })),
            "entity_types" => list(lists.entity_types.into_iter()),
            _ => list(record::decode::<Vec<String>>(value).unwrap().into_iter()),
        };
        self.line(format!("registry {name}: {types}"));
    }

    fn opacity(&mut self, key: &[u8], value: &[u8]) {
        let (dimension, batch) = keys::parse_opacity_key(key).unwrap();
        let (version, payload) = envelope::open(value).unwrap();
        let fingerprint = bytes::u32_at(payload, 0).unwrap();
        let tile = &self.world.read_opacity(dimension, batch, value, None).unwrap().unwrap();
        let columns = || (0..64).flat_map(|x| (0..64).map(move |z| (x, z))).map(move |(x, z)| tile.opaque(x, z));
        let counts = checksum(columns().map(|runs| (runs.ranges().len() as u32).to_le_bytes()));
        let ends = |heights: Range<i64>| [heights.start, heights.end - 1];
        let runs: Vec<i64> = columns().flat_map(|runs| runs.ranges().flat_map(ends).collect::<Vec<_>>()).collect();
        let first = list(runs.iter().take(2).map(i64::to_string));
        let runs = checksum(runs.iter().map(|end| end.to_le_bytes()));
        let place = format!("({} {} {})", dimension.0, batch.x, batch.z);
        self.line(format!(
            "opacity {place}: version {version} fingerprint {fingerprint:08x} counts {counts} runs {runs} {first}"
        ));
    }

    fn meta(&self, key: &[u8], value: &[u8]) -> String {
        let single = self.single(key, value);
        let single = single.or_else(|| self.of_dimensions(key, value)).or_else(|| self.of_ground(key, value));
        single.or_else(|| of_entities(key)).or_else(|| of_tiers(key, value)).expect("a known key")
    }

    fn single(&self, key: &[u8], value: &[u8]) -> Option<String> {
        let world = &self.world;
        Some(match key {
            keys::HEADER => {
                let made_at = world.created_at().duration_since(UNIX_EPOCH).unwrap().as_secs();
                format!("header (): ({} {made_at} {})", world.format(), world.session())
            }
            keys::PLAY_TIME => format!("play time (): ({})", duration(record::decode(value).unwrap())),
            keys::LAST_DIMENSION => format!("last dimension (): ({})", record::decode::<u64>(value).unwrap()),
            keys::ADOPTED => format!("adopted (): {}", hex(value)),
            _ => {
                let (family, damaged) = keys::parse_damaged_key(key)?;
                format!("damaged ({family} {}): {}", hex(damaged), hex(value))
            }
        })
    }

    fn of_dimensions(&self, key: &[u8], value: &[u8]) -> Option<String> {
        if let Some(name) = keys::parse_dimension_key(key) {
            let (DimensionId(id), origin) = self.world.dimension_of(name, value).unwrap();
            return Some(format!("dimension ({name}): ({id} {} {} {})", origin.name, origin.version, origin.seed));
        }
        if let Some((dimension, number)) = keys::parse_pregeneration_key(key) {
            let job = self.world.pregeneration(dimension, number, value).unwrap();
            return Some(format!("pregeneration ({} {number}): version 0 {}", dimension.0, pregeneration_text(&job)));
        }
        if let Some((dimension, column, name)) = keys::parse_object_key(key) {
            let object = self.world.open_object(dimension, name, value).unwrap();
            let column = column.map_or_else(String::new, |column| format!("{} {} ", column.x, column.z));
            let place = format!("{} {column}{name}", dimension.0);
            return Some(format!("object ({place}): version {} {}", object.version, hex(&object.data)));
        }
        if let Some((dimension, number)) = keys::parse_import_key(key) {
            self.world.import_record(dimension, number, value).unwrap();
            return Some(format!("import ({} {number}): {}", dimension.0, import_text(value)));
        }
        if let Some(dimension) = keys::parse_key_of_dimension(keys::OWN_SEED, key) {
            return Some(format!("seed ({}): ({})", dimension.0, record::decode::<u64>(value).unwrap()));
        }
        if let Some(dimension) = keys::parse_key_of_dimension(keys::HEIGHTS, key) {
            let (low, high): (i64, i64) = record::decode(value).unwrap();
            return Some(format!("heights ({}): ({low} {high})", dimension.0));
        }
        if let Some(dimension) = keys::parse_key_of_dimension(keys::CLOCK, key) {
            let clock = duration(record::decode(envelope::open(value).unwrap().1).unwrap());
            return Some(format!("clock ({}): version 0 ({clock})", dimension.0));
        }
        if let Some(dimension) = keys::parse_key_of_dimension(keys::DAYS, key) {
            let days: f64 = record::decode(envelope::open(value).unwrap().1).unwrap();
            return Some(format!("days ({}): version 0 ({:016x})", dimension.0, days.to_bits()));
        }
        let marked =
            keys::parse_key_of_dimension(keys::SPARSE, key).map(|dimension| format!("sparse ({}): ", dimension.0));
        marked.or_else(|| {
            keys::parse_key_of_dimension(keys::REMOVAL, key).map(|dimension| format!("removal ({}): ", dimension.0))
        })
    }

    fn of_ground(&self, key: &[u8], value: &[u8]) -> Option<String> {
        if let Some((dimension, tile)) = keys::parse_tile_key(key) {
            let masks = self.world.tile_masks(dimension, tile, value).unwrap();
            let masks: Vec<u8> = masks.iter().flat_map(|mask| mask.to_le_bytes()).collect();
            return Some(format!("stored ({} {} {}): version 0 {}", dimension.0, tile.x, tile.z, hex(&masks)));
        }
        if let Some((dimension, tile)) = keys::parse_history_key(key) {
            let history = self.world.tile_history(dimension, tile, value).unwrap();
            let (mut new, mut heights) = ([0; TILE_BATCHES], Vec::<(&HeightSet, Masks)>::new());
            for column in tile.batches().flat_map(BatchPos::columns) {
                tile_masks::set_mark(&mut new, column, history.is_new(column));
                let Some(of) = history.heights(column) else { continue };
                match heights.iter_mut().find(|(known, _)| *known == of) {
                    Some((_, columns)) => mark_stored(columns, column),
                    None => {
                        heights.push((of, [0; TILE_BATCHES]));
                        heights.last_mut().into_iter().for_each(|(_, columns)| mark_stored(columns, column));
                    }
                }
            }
            let heights = list(heights.iter().map(|(heights, columns)| {
                let ranges = list(heights.ranges().map(|range| format!("({} {})", range.start, range.end)));
                format!("({ranges} {})", hex(&tile_masks::bytes_of(columns)))
            }));
            let (version, new) = (envelope::open(value).unwrap().0, hex(&tile_masks::bytes_of(&new)));
            let place = format!("({} {} {})", dimension.0, tile.x, tile.z);
            return Some(format!("history {place}: version {version} ({new} {heights})"));
        }
        if let Some((dimension, column)) = keys::parse_summary_key(key) {
            let summary = self.world.summary(dimension, column, value).unwrap();
            let side = summary.detail().cells();
            let cells = (0..side).flat_map(|z| (0..side).map(move |x| (x, z)));
            let cells = cells
                .map(|(x, z)| summary.surface(x, z))
                .flat_map(|cell| cell.map_or([0, 0], |cell| [cell.block.index().into(), cell.height]));
            let cells: Vec<i64> = cells.collect();
            let (version, detail) = (envelope::open(value).unwrap().0, summary.detail().level());
            let first = list(cells.iter().take(2).map(i64::to_string));
            let cells = checksum(cells.iter().map(|number| number.to_le_bytes()));
            let place = format!("({} {} {})", dimension.0, column.x, column.z);
            return Some(format!("summary {place}: version {version} detail {detail} cells {cells} {first}"));
        }
        let (dimension, chunk) = keys::parse_block_ticks_key(key)?;
        let ticks = self.world.block_ticks(dimension, chunk, value).unwrap();
        let mut kinds: Vec<&str> = ticks.iter().map(|tick| &*tick.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let ticks = list(ticks.iter().map(|tick| {
            let kind = kinds.iter().position(|kind| *kind == &*tick.kind).unwrap();
            format!("({} {kind} {})", cell_index(tick.block.in_chunk()), tick.remaining)
        }));
        let kinds = list(kinds.iter().map(|kind| (*kind).to_owned()));
        let version = envelope::open(value).unwrap().0;
        let ChunkPos { x, y, z } = chunk;
        Some(format!("ticks ({} {x} {z} {y}): version {version} ({kinds} {ticks})", dimension.0))
    }
}

fn of_entities(key: &[u8]) -> Option<String> {
    if let Some((dimension, ColumnPos { x, z }, id)) = keys::parse_place_key(key) {
        return Some(format!("place ({} {x} {z} {}): ", dimension.0, id.simple()));
    }
    if let Some((dimension, id)) = keys::parse_viewer_key(key) {
        return Some(format!("viewer ({} {}): ", dimension.0, id.simple()));
    }
    keys::parse_player_key(key).map(|(name, id)| format!("player ({name} {}): ", id.simple()))
}

fn of_tiers(key: &[u8], value: &[u8]) -> Option<String> {
    if let Some(group) = keys::parse_heat_key(key) {
        assert!(heat::is_record(value));
        let (accessed, waiting): (u64, Option<(Tier, u64)>) = record::decode(value).unwrap();
        let waiting = option(waiting.map(|(tier, second)| format!("({} {second})", tier.number())));
        return Some(format!("heat {}: ({accessed} {waiting})", group_text(None, group)));
    }
    let (tier, second, group) = keys::parse_cooling_key(key)?;
    Some(format!("cooling {}: ", group_text(Some((tier, second)), group)))
}

/// The text of a group in a key, after the parts before it.
fn group_text(before: Option<(Tier, u64)>, group: ChunkGroup) -> String {
    let before = before.map_or_else(String::new, |(tier, second)| format!("{} {second} ", tier.number()));
    format!("({before}{} {})", group.dimension().0, chunk_text(group.first()))
}

fn entity_text(entity: &EntityRecord) -> String {
    let EntityRecord { id, dimension, block, offset, viewer, components, children } = entity;
    let (place, viewer) = (place_text(*dimension, *block, *offset), viewer_text(*viewer));
    let children = list(children.iter().map(|child| {
        let ChildRecord { parent, id, place, viewer, components } = child;
        let (parent, id) = (option(parent.map(|it| it.to_string())), option(id.map(|id| id.simple().to_string())));
        let place = option(place.map(|(dimension, block, offset)| place_text(dimension, block, offset)));
        format!("({parent} {id} {place} {} {})", viewer_text(*viewer), components_text(components))
    }));
    format!("({} {place} {viewer} {} {children})", id.simple(), components_text(components))
}

fn place_text(dimension: DimensionId, BlockPos { x, y, z }: BlockPos, offset: [f32; 3]) -> String {
    let offset = tuple(offset.iter().map(|part| format!("{:08x}", part.to_bits())));
    format!("({} ({x} {y} {z}) {offset})", dimension.0)
}

fn viewer_text(viewer: Option<ViewerRecord>) -> String {
    option(viewer.map(|ViewerRecord { radius, generation_radius, vertical_radius }| {
        format!("({radius} {generation_radius} {vertical_radius})")
    }))
}

fn components_text(components: &[(String, Vec<u8>)]) -> String {
    list(components.iter().map(|(name, value)| format!("({name} {})", hex(value))))
}

fn pregeneration_text(job: &StoredPregeneration) -> String {
    let StoredPregeneration { area, cursor, paused, elapsed } = job;
    let area = match *area {
        ColumnArea::Disc { center: ColumnPos { x, z }, radius } => format!("(0 {x} {z} {radius})"),
        ColumnArea::Square { center: ColumnPos { x, z }, radius } => format!("(1 {x} {z} {radius})"),
        ColumnArea::Box { min, max } => format!("(2 {} {} {} {})", min.x, min.z, max.x, max.z),
    };
    let cursor = bytes::put_value(Vec::new(), cursor);
    let (distance, z, x): (u128, i64, i64) = bytes::value(&cursor).unwrap();
    format!("({area} {distance} {z} {x} {} {})", u8::from(*paused), duration(*elapsed))
}

type ImportFields = ((Vec<u8>, [i64; 3]), (ExistingGround, bool), u64, (u32, String), ImportReport);

fn import_text(value: &[u8]) -> String {
    let ((export, [x, y, z]), (existing, leaves), batches, (file, kept), report): ImportFields =
        record::decode(value).unwrap();
    let existing = match existing {
        ExistingGround::Refuse => 0,
        ExistingGround::Keep => 1,
        ExistingGround::Replace => 2,
    };
    let numbers = [
        report.columns,
        report.chunks,
        report.entities,
        report.known_entities,
        report.displaced_entities,
        report.objects,
        report.known_objects,
        report.left_objects,
        report.left,
        report.ungenerated,
        report.new_types,
    ];
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    let lost = list(report.lost.first.iter().map(|lost| {
        let column = option(lost.column.map(|column| format!("({} {})", column.x, column.z)));
        format!("({column} {})", lost.reason)
    }));
    let (leaves, finished) = (u8::from(leaves), u8::from(report.finished));
    let begun = format!("{} ({x} {y} {z}) {existing} {leaves} {batches} {file} {kept}", hex(&export));
    format!("({begun} {finished} {} {lost} {})", numbers.join(" "), report.lost.more)
}

fn cells() -> impl Iterator<Item = [usize; 3]> {
    let side = || 0..CHUNK_SIZE;
    side().flat_map(move |x| side().flat_map(move |y| side().map(move |z| [x, y, z])))
}

fn chunk_text(ChunkPos { x, y, z }: ChunkPos) -> String {
    format!("({x} {y} {z})")
}

fn checksum<const N: usize>(numbers: impl Iterator<Item = [u8; N]>) -> String {
    format!("{:08x}", crc32fast::hash(&numbers.flatten().collect::<Vec<u8>>()))
}

fn duration(duration: Duration) -> String {
    format!("{}.{:09}s", duration.as_secs(), duration.subsec_nanos())
}

fn hex(bytes: &[u8]) -> String {
    super::hexadecimal(bytes)
}

fn option(value: Option<String>) -> String {
    value.unwrap_or_else(|| "none".to_owned())
}

fn list(values: impl Iterator<Item = String>) -> String {
    format!("[{}]", values.collect::<Vec<_>>().join(" "))
}

fn tuple(values: impl Iterator<Item = String>) -> String {
    format!("({})", values.collect::<Vec<_>>().join(" "))
}
