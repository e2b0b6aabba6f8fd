//! The keys of stored values.
//!
//! A chunk's key is its dimension, big-endian, and then the interleaved bits of x, y and z, highest first, each
//! coordinate with its sign bit flipped so that negative ones come first. So keys sort in Morton order, and every
//! aligned cube of 2^n chunks a side is one contiguous range.
//!
//! Entities are stored under their UUID alone. *Place keys* and *viewer keys* in `meta` have no value. They lead to
//! records by column or by dimension, and the record decides whether the key is valid. *Player keys* lead to the
//! records of players by name; these have no other keys.

mod chunk;
#[cfg(test)]
mod tests;

pub use chunk::{chunk_cube_range, chunk_key};
pub(super) use chunk::{parse_chunk_key, span};

use super::{ChunkGroup, Family, Tier};
use crate::EntityRecord;
use crate::space::{BatchPos, ChunkPos, ColumnPos, DimensionId, TilePos};
use std::mem;
use std::ops::Range;
use uuid::Uuid;

/// The length of a chunk's key.
pub const CHUNK_KEY_LENGTH: usize = 32;
pub(super) const ENTITY_KEY_LENGTH: usize = 16;
pub(super) const OPACITY_KEY_LENGTH: usize = 24;
pub(super) const HEADER: &[u8] = b"header";
/// The key in `meta` of the number of the dimension that was created last.
pub(super) const LAST_DIMENSION: &[u8] = b"last dimension";

pub(super) const PLAY_TIME: &[u8] = b"play time";
/// The key in `meta` of the progress of the search for groups of chunks without heat.
pub(super) const ADOPTED: &[u8] = b"adopted";

/// The prefixes of keys that continue with a dimension. Kinds with a family of their own need no prefix.
pub const CHUNK: &[u8] = b"";
pub(super) const OPACITY: &[u8] = b"";
pub(super) const HEAT: &[u8] = b"heat:";
pub(super) const PLACE: &[u8] = b"place:";
pub(super) const VIEWER: &[u8] = b"viewer:";
pub(super) const BLOCK_TICKS: &[u8] = b"ticks:";
/// The tiles of a dimension's stored graph.
pub const TILE: &[u8] = b"stored:";
/// The histories of a dimension's tiles.
pub(super) const HISTORY: &[u8] = b"history:";
/// The summaries of columns.
pub const SUMMARY: &[u8] = b"summary:";
pub(super) const PREGENERATION: &[u8] = b"pregeneration:";
pub(super) const OBJECT: &[u8] = b"object:";
pub(super) const IMPORT: &[u8] = b"import:";
/// The mark of a dimension that is being removed. It contains the number, because a name may be reused.
pub(super) const REMOVAL: &[u8] = b"removal:";
/// The mark of a dimension that stores every generated chunk, even if it is all air.
pub(super) const SPARSE: &[u8] = b"sparse:";
pub(super) const CLOCK: &[u8] = b"clock:";
/// The time of day of a dimension.
pub(super) const DAYS: &[u8] = b"days:";
/// The heights for which a dimension's columns were generated at first.
pub(super) const HEIGHTS: &[u8] = b"heights:";
/// The seed that the game gave to a dimension's generator.
pub(super) const OWN_SEED: &[u8] = b"seed:";

/// The number of joins in a dimension of a shared world.
pub(super) const JOINS: &[u8] = b"joins:";
/// The owners of plots.
pub(super) const PLOT: &[u8] = b"plot:";

/// Entities and messages on their way to a plot of another server.
pub(super) const CROSSING: &[u8] = b"crossing:";

/// The key in `meta` of the number of the server that joined last.
pub(super) const LAST_SERVER: &[u8] = b"last server";

/// The prefixes of other keys.
pub(super) const SERVER: &[u8] = b"server:";
pub(super) const BEAT: &[u8] = b"beat:";
/// The numbers of the last crossings that servers sent.
pub(super) const SENT: &[u8] = b"sent:";
/// The servers on which players are.
pub(super) const LOG_IN: &[u8] = b"log-in:";
pub(super) const COOLING: &[u8] = b"cooling:";
pub(super) const DAMAGED: &[u8] = b"damaged:";
pub(super) const PLAYER: &[u8] = b"player:";
pub(super) const DIMENSION: &[u8] = b"dimension:";

/// The range of all keys with this prefix.
pub(super) fn range_of(prefix: &[u8]) -> Range<Vec<u8>> {
    let mut end = prefix.to_vec();
    while end.pop_if(|last| *last == u8::MAX).is_some() {}
    match end.last_mut() {
        Some(last) => *last += 1,
        // No key begins with so many bytes of 0xff.
        None => end = vec![u8::MAX; 256],
    }
    prefix.to_vec()..end
}

/// The range of all entries of a kind in a dimension.
pub fn dimension_range(kind: &[u8], dimension: DimensionId) -> Range<Vec<u8>> {
    range_of(&key_of_dimension(kind, dimension))
}

/// The key of the only entry of a kind in a dimension.
pub(super) fn key_of_dimension(kind: &[u8], dimension: DimensionId) -> Vec<u8> {
    [kind, &dimension.0.to_be_bytes()].concat()
}

/// The dimension in the key of its only entry of a kind.
pub(super) fn parse_key_of_dimension(kind: &[u8], key: &[u8]) -> Option<DimensionId> {
    parse(kind, key, KeyReader::dimension)
}

/// The prefix of keys that belong to `x` and `z`.
fn key_at(kind: &[u8], dimension: DimensionId, x: i64, z: i64) -> Vec<u8> {
    [kind, &dimension.0.to_be_bytes(), &ordered(x), &ordered(z)].concat()
}

/// The range of all columns of one `x` from `first_z` to `last_z`.
fn row(key_of: impl Fn(ColumnPos) -> Vec<u8>, x: i64, first_z: i64, last_z: i64) -> Range<Vec<u8>> {
    let [first, last] = [first_z, last_z].map(|z| key_of(ColumnPos::new(x, z)));
    first..range_of(&last).end
}

pub(super) fn entity_key(id: Uuid) -> [u8; ENTITY_KEY_LENGTH] {
    *id.as_bytes()
}

pub(super) fn parse_entity_key(key: &[u8]) -> Option<Uuid> {
    Uuid::from_slice(key).ok()
}

/// A place key: the record of this entity may be in this column.
pub(super) fn place_key(dimension: DimensionId, column: ColumnPos, id: Uuid) -> Vec<u8> {
    [&key_at(PLACE, dimension, column.x, column.z)[..], id.as_bytes()].concat()
}

/// The range of the place keys of all columns of one `x` from `first_z` to `last_z`.
pub(super) fn place_range(dimension: DimensionId, x: i64, first_z: i64, last_z: i64) -> Range<Vec<u8>> {
    row(|column| key_at(PLACE, dimension, column.x, column.z), x, first_z, last_z)
}

pub(super) fn parse_place_key(key: &[u8]) -> Option<(DimensionId, ColumnPos, Uuid)> {
    parse(PLACE, key, |key| Some((key.dimension()?, key.column()?, key.id()?)))
}

/// A viewer key: the entity of this record may be a viewer in this dimension.
pub(super) fn viewer_key(dimension: DimensionId, id: Uuid) -> Vec<u8> {
    [VIEWER, &dimension.0.to_be_bytes(), id.as_bytes()].concat()
}

pub(super) fn parse_viewer_key(key: &[u8]) -> Option<(DimensionId, Uuid)> {
    parse(VIEWER, key, |key| Some((key.dimension()?, key.id()?)))
}

/// A player key: the record of this entity may belong to the player of this name. The key contains the name's length
/// first, so that the ranges of different names never overlap.
pub(super) fn player_key(name: &str, id: Uuid) -> Vec<u8> {
    [&player_name(name)[..], id.as_bytes()].concat()
}

fn player_name(name: &str) -> Vec<u8> {
    [PLAYER, &(name.len() as u32).to_be_bytes(), name.as_bytes()].concat()
}

pub(super) fn player_range(name: &str) -> Range<Vec<u8>> {
    range_of(&player_name(name))
}

pub(super) fn parse_player_key(key: &[u8]) -> Option<(&str, Uuid)> {
    parse(PLAYER, key, |key| {
        let length = usize::try_from(u32::from_be_bytes(key.array()?)).ok()?;
        Some((str::from_utf8(key.slice(length)?).ok()?, key.id()?))
    })
}

/// The key of a chunk's scheduled block ticks. The keys of a column are one range.
pub(super) fn block_ticks_key(dimension: DimensionId, pos: ChunkPos) -> Vec<u8> {
    [&key_at(BLOCK_TICKS, dimension, pos.x, pos.z)[..], &ordered(pos.y)].concat()
}

/// The range of the block ticks of all columns of one `x` from `first_z` to `last_z`.
pub(super) fn block_ticks_range(dimension: DimensionId, x: i64, first_z: i64, last_z: i64) -> Range<Vec<u8>> {
    row(|column| key_at(BLOCK_TICKS, dimension, column.x, column.z), x, first_z, last_z)
}

pub(super) fn parse_block_ticks_key(key: &[u8]) -> Option<(DimensionId, ChunkPos)> {
    parse(BLOCK_TICKS, key, |key| Some((key.dimension()?, key.column()?.chunk(key.coordinate()?))))
}

pub(super) fn tile_key(dimension: DimensionId, tile: TilePos) -> Vec<u8> {
    key_at(TILE, dimension, tile.x, tile.z)
}

pub(super) fn parse_tile_key(key: &[u8]) -> Option<(DimensionId, TilePos)> {
    parse(TILE, key, |key| Some((key.dimension()?, TilePos::new(key.coordinate()?, key.coordinate()?))))
}

/// The key of the history of a tile's columns.
pub(super) fn history_key(dimension: DimensionId, tile: TilePos) -> Vec<u8> {
    key_at(HISTORY, dimension, tile.x, tile.z)
}

pub(super) fn parse_history_key(key: &[u8]) -> Option<(DimensionId, TilePos)> {
    parse(HISTORY, key, |key| Some((key.dimension()?, TilePos::new(key.coordinate()?, key.coordinate()?))))
}

/// The key of the `number`th crossing of a server, on its way to this plot. The keys of a plot are one range.
pub(super) fn crossing_key(dimension: DimensionId, plot: TilePos, sender: u64, number: u64) -> Vec<u8> {
    [&key_at(CROSSING, dimension, plot.x, plot.z)[..], &sender.to_be_bytes(), &number.to_be_bytes()].concat()
}

/// The range of the crossings to a plot.
pub(super) fn crossing_range(dimension: DimensionId, plot: TilePos) -> Range<Vec<u8>> {
    range_of(&key_at(CROSSING, dimension, plot.x, plot.z))
}

pub(super) fn parse_crossing_key(key: &[u8]) -> Option<(DimensionId, TilePos, u64, u64)> {
    parse(CROSSING, key, |key| {
        let plot = (key.dimension()?, TilePos::new(key.coordinate()?, key.coordinate()?));
        Some((plot.0, plot.1, u64::from_be_bytes(key.array()?), u64::from_be_bytes(key.array()?)))
    })
}

/// The key of the number of the last crossing that a server sent.
pub(super) fn sent_key(incarnation: u64) -> Vec<u8> {
    [SENT, &incarnation.to_be_bytes()].concat()
}

pub(super) fn parse_sent_key(key: &[u8]) -> Option<u64> {
    parse(SENT, key, |key| Some(u64::from_be_bytes(key.array()?)))
}

/// The key of the server on which the player of this name is.
pub(super) fn log_in_key(name: &str) -> Vec<u8> {
    [LOG_IN, name.as_bytes()].concat()
}

pub(super) fn parse_log_in_key(key: &[u8]) -> Option<&str> {
    str::from_utf8(key.strip_prefix(LOG_IN)?).ok()
}

/// The key of the owner of a plot, which is a tile.
pub(super) fn plot_key(dimension: DimensionId, plot: TilePos) -> Vec<u8> {
    key_at(PLOT, dimension, plot.x, plot.z)
}

pub(super) fn parse_plot_key(key: &[u8]) -> Option<(DimensionId, TilePos)> {
    parse(PLOT, key, |key| Some((key.dimension()?, TilePos::new(key.coordinate()?, key.coordinate()?))))
}

/// The key of a living server, by the number of its incarnation.
pub(super) fn server_key(incarnation: u64) -> Vec<u8> {
    [SERVER, &incarnation.to_be_bytes()].concat()
}

pub(super) fn parse_server_key(key: &[u8]) -> Option<u64> {
    parse(SERVER, key, |key| Some(u64::from_be_bytes(key.array()?)))
}

/// The key of a server's heartbeat.
pub(super) fn beat_key(incarnation: u64) -> Vec<u8> {
    [BEAT, &incarnation.to_be_bytes()].concat()
}

pub(super) fn parse_beat_key(key: &[u8]) -> Option<u64> {
    parse(BEAT, key, |key| Some(u64::from_be_bytes(key.array()?)))
}

pub(super) fn opacity_key(dimension: DimensionId, batch: BatchPos) -> Vec<u8> {
    key_at(OPACITY, dimension, batch.x, batch.z)
}

pub(super) fn parse_opacity_key(key: &[u8]) -> Option<(DimensionId, BatchPos)> {
    parse(OPACITY, key, |key| Some((key.dimension()?, BatchPos::new(key.coordinate()?, key.coordinate()?))))
}

/// The key of a column's summary.
pub fn summary_key(dimension: DimensionId, column: ColumnPos) -> Vec<u8> {
    key_at(SUMMARY, dimension, column.x, column.z)
}

/// The column whose summary has this key.
pub fn parse_summary_key(key: &[u8]) -> Option<(DimensionId, ColumnPos)> {
    parse(SUMMARY, key, |key| Some((key.dimension()?, key.column()?)))
}

/// The key of a pre-generation, by its number in the dimension.
pub fn pregeneration_key(dimension: DimensionId, number: u64) -> Vec<u8> {
    [PREGENERATION, &dimension.0.to_be_bytes(), &number.to_be_bytes()].concat()
}

pub(super) fn parse_pregeneration_key(key: &[u8]) -> Option<(DimensionId, u64)> {
    parse(PREGENERATION, key, |key| Some((key.dimension()?, u64::from_be_bytes(key.array()?))))
}

pub(super) fn dimension_key(name: &str) -> Vec<u8> {
    [DIMENSION, name.as_bytes()].concat()
}

pub(super) fn parse_dimension_key(key: &[u8]) -> Option<&str> {
    str::from_utf8(key.strip_prefix(DIMENSION)?).ok()
}

/// The key of a kept object. The keys of a column are one range.
pub(super) fn object_key(dimension: DimensionId, column: Option<ColumnPos>, name: &str) -> Vec<u8> {
    [&objects_of(dimension, column)[..], name.as_bytes()].concat()
}

/// The range of the kept objects of all columns of one `x` from `first_z` to `last_z`.
pub(super) fn object_range(dimension: DimensionId, x: i64, first_z: i64, last_z: i64) -> Range<Vec<u8>> {
    row(|column| objects_of(dimension, Some(column)), x, first_z, last_z)
}

fn objects_of(dimension: DimensionId, column: Option<ColumnPos>) -> Vec<u8> {
    let place = column.map(|column| [&[1][..], &ordered(column.x), &ordered(column.z)].concat());
    [OBJECT, &dimension.0.to_be_bytes(), &place.unwrap_or(vec![0])].concat()
}

/// The dimension, the column if there is one, and the name of a kept object.
pub(super) fn parse_object_key(key: &[u8]) -> Option<(DimensionId, Option<ColumnPos>, &str)> {
    parse(OBJECT, key, |key| {
        let dimension = key.dimension()?;
        let column = match key.array()? {
            [0] => None,
            [1] => Some(key.column()?),
            _ => return None,
        };
        Some((dimension, column, str::from_utf8(key.rest()).ok()?))
    })
}

/// The key of the progress of an import into a dimension, a different one for each import.
pub(super) fn import_key(dimension: DimensionId, import: u32) -> Vec<u8> {
    [IMPORT, &dimension.0.to_be_bytes(), &import.to_be_bytes()].concat()
}

pub(super) fn parse_import_key(key: &[u8]) -> Option<(DimensionId, u32)> {
    parse(IMPORT, key, |key| Some((key.dimension()?, u32::from_be_bytes(key.array()?))))
}

/// The key in `meta` of the copy of a damaged value that was stored under `key`. It is different for each such value.
pub(super) fn damaged_key(family: Family, key: &[u8], value: &[u8]) -> Vec<u8> {
    [&damaged_in(family)[..], key, &crc32fast::hash(value).to_be_bytes()].concat()
}

/// The prefix of the keys of copies of a family's damaged values. For chunks, the dimension follows.
pub(super) fn damaged_in(family: Family) -> Vec<u8> {
    [DAMAGED, family.name().as_bytes(), b":"].concat()
}

/// The family and the key of the damaged value whose copy has this key.
pub(super) fn parse_damaged_key(key: &[u8]) -> Option<(Family, &[u8])> {
    let (key, _checksum) = key.strip_prefix(DAMAGED)?.split_last_chunk::<4>()?;
    Family::ALL.into_iter().find_map(|family| {
        let key = key.strip_prefix(family.name().as_bytes())?.strip_prefix(b":")?;
        Some((family, key))
    })
}

/// The key of the last access of a group of chunks.
pub(super) fn heat_key(group: ChunkGroup) -> Vec<u8> {
    [HEAT, &group.key()].concat()
}

pub(super) fn parse_heat_key(key: &[u8]) -> Option<ChunkGroup> {
    ChunkGroup::parse(key.strip_prefix(HEAT)?)
}

/// A cooling key: this group is in this tier, and was last accessed in this second or later; 0 means unknown. The keys
/// of a tier are sorted by time.
pub(super) fn cooling_key(tier: Tier, second: u64, group: ChunkGroup) -> Vec<u8> {
    [COOLING, &[tier.number()], &second.to_be_bytes(), &group.key()].concat()
}

/// The range of the groups of a tier with this second or an earlier one.
pub(super) fn cooling_range(tier: Tier, last_second: u64) -> Range<Vec<u8>> {
    let first = [COOLING, &[tier.number()]].concat();
    let end = range_of(&[&first[..], &last_second.to_be_bytes()].concat()).end;
    first..end
}

pub(super) fn parse_cooling_key(key: &[u8]) -> Option<(Tier, u64, ChunkGroup)> {
    parse(COOLING, key, |key| {
        let [tier] = key.array()?;
        Some((Tier::from_number(tier)?, u64::from_be_bytes(key.array()?), ChunkGroup::parse(key.rest())?))
    })
}

/// The key directly after `key`.
pub(super) fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// The bytes of a number, which sort in the order of the numbers.
fn ordered(value: i64) -> [u8; 8] {
    (value ^ i64::MIN).to_be_bytes()
}

fn from_ordered(bytes: [u8; 8]) -> i64 {
    i64::from_be_bytes(bytes) ^ i64::MIN
}

/// Reads the parts of a key from the front. Missing parts are `None`.
struct KeyReader<'a>(&'a [u8]);

impl<'a> KeyReader<'a> {
    fn slice(&mut self, length: usize) -> Option<&'a [u8]> {
        self.0.split_off(..length)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.slice(N)?.try_into().ok()
    }

    fn dimension(&mut self) -> Option<DimensionId> {
        self.array().map(|bytes| DimensionId(u64::from_be_bytes(bytes)))
    }

    fn coordinate(&mut self) -> Option<i64> {
        self.array().map(from_ordered)
    }

    fn column(&mut self) -> Option<ColumnPos> {
        Some(ColumnPos::new(self.coordinate()?, self.coordinate()?))
    }

    fn id(&mut self) -> Option<Uuid> {
        self.array().map(Uuid::from_bytes)
    }

    fn rest(&mut self) -> &'a [u8] {
        mem::take(&mut self.0)
    }
}

/// The result of `read` for the key without the prefix of its kind; `None` unless it reads the whole key.
fn parse<'a, T>(kind: &[u8], key: &'a [u8], read: impl FnOnce(&mut KeyReader<'a>) -> Option<T>) -> Option<T> {
    let mut reader = KeyReader(key.strip_prefix(kind)?);
    read(&mut reader).filter(|_| reader.0.is_empty())
}

/// The keys in `meta` that lead to an entity: its place key, and a viewer key if it or a child is a viewer. A player
/// has only its player key.
pub(crate) fn index_keys(entity: &EntityRecord) -> Vec<Vec<u8>> {
    if let Some(name) = entity.player() {
        return vec![player_key(&name, entity.id)];
    }
    let mut keys = vec![place_key(entity.dimension, entity.column(), entity.id)];
    if entity.viewers().next().is_some() {
        keys.push(viewer_key(entity.dimension, entity.id));
    }
    keys
}
