//! Checks of single stored entries. Each is decoded as a reader would decode it.

use super::Damage;
use crate::bytes::record;
use crate::space::{ChunkPos, DimensionId, TilePos};
use crate::tiers::LOST_CHUNK;
use crate::tiers::cluster::{self, Part};
use crate::values::blocks::KnownBlocks;
use crate::values::tile_masks::{self, Masks};
use crate::walk::all_keys;
use crate::{ChunkGroup, EntityRecord, Family, StoreError, StoredItem, Tier, WorldStore, keys, servers, tiers::heat};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// The ranges of all data of a world. Entries that are needed to judge others come first.
pub(super) fn ranges() -> impl Iterator<Item = (Family, Range<Vec<u8>>)> {
    let families = [
        Family::Registry,
        Family::Meta,
        Family::Chunks,
        Family::WarmChunks,
        Family::ColdChunks,
        Family::Entities,
        Family::Opacity,
    ];
    families.into_iter().map(|family| (family, all_keys()))
}

/// Checks entries in the order of [`ranges`].
pub(super) struct Checker<'a> {
    world: &'a WorldStore,
    /// `None` if the lists of types are damaged: the layout of chunks is then unknown.
    blocks: Option<Arc<KnownBlocks>>,
    tiles: FxHashMap<(DimensionId, TilePos), Masks>,
    /// The dimensions whose graph says which columns may be generated.
    graphs: BTreeSet<DimensionId>,
    damaged_graphs: BTreeSet<DimensionId>,
    /// The number of keys that lead to missing entries. They do no harm to readers.
    pub stale: u64,
    /// The number of chunks already marked as lost. They are known losses, not new damage.
    pub marked_lost: u64,
}

impl<'a> Checker<'a> {
    pub fn new(world: &'a WorldStore) -> Result<Self, StoreError> {
        let blocks = match world.known_blocks() {
            Err(error) if error.is_damage() => None,
            blocks => Some(blocks?),
        };
        let (tiles, graphs, damaged_graphs, stale, marked_lost) = Default::default();
        Ok(Self { world, blocks, tiles, graphs, damaged_graphs, stale, marked_lost })
    }

    /// Notes that a part of this family cannot be read.
    pub fn miss(&mut self, family: Family) {
        if family == Family::Meta {
            self.damaged_graphs.extend(&self.graphs);
        }
    }

    /// The damage in an entry; empty if the entry is whole.
    pub fn check(&mut self, family: Family, key: &[u8], value: &[u8]) -> Result<Vec<Damage>, StoreError> {
        let checked = match family {
            Family::Chunks => self.check_chunk(key, value),
            Family::WarmChunks => self.check_cluster(Tier::Warm, key, value),
            Family::ColdChunks => self.check_cluster(Tier::Cold, key, value),
            Family::Entities => self.check_entity(key, value),
            Family::Registry => self.world.check_list(key).map(|()| Vec::new()),
            Family::Opacity => self.check_opacity(key, value),
            Family::Meta => self.check_meta(key, value),
        };
        match checked {
            // This value is readable but depends on an unreadable one, which is reported at its own key.
            Err(StoreError::Damaged { .. }) => Ok(Vec::new()),
            Err(error) => damage(family, error).map(|damage| vec![damage]),
            damages => damages,
        }
    }

    fn check_chunk(&mut self, key: &[u8], value: &[u8]) -> Result<Vec<Damage>, StoreError> {
        let (dimension, pos) = self.world.parsed(Family::Chunks, key, keys::parse_chunk_key)?;
        self.decode(dimension, pos, value)?;
        let unmarked = (!self.is_marked(dimension, pos)).then_some(Damage::Unmarked { dimension, chunk: pos });
        Ok(unmarked.into_iter().collect())
    }

    /// Checks that the value of a chunk can be decoded, or is the mark of a lost chunk.
    pub fn decode(&mut self, dimension: DimensionId, pos: ChunkPos, value: &[u8]) -> Result<(), StoreError> {
        if value == LOST_CHUNK {
            self.marked_lost += 1;
            return Ok(());
        }
        match &self.blocks {
            Some(blocks) => match self.world.decode_chunk(blocks, (dimension, pos), value) {
                // The chunk is whole, but not readable by this version of the game.
                Err(StoreError::Unmigrated { .. }) => Ok(()),
                decoded => decoded.map(drop),
            },
            None => self.world.open_envelope(value, || StoredItem::Chunk(dimension, pos)).map(drop),
        }
    }

    /// Returns `true` unless the generator may overwrite the chunk, according to the graph.
    fn is_marked(&self, dimension: DimensionId, chunk: ChunkPos) -> bool {
        if !self.graphs.contains(&dimension) || self.damaged_graphs.contains(&dimension) {
            return true;
        }
        let column = chunk.column();
        self.tiles.get(&(dimension, column.tile())).is_some_and(|masks| tile_masks::is_marked(masks, column))
    }

    /// Checks each group of a cluster separately.
    fn check_cluster(&mut self, tier: Tier, key: &[u8], value: &[u8]) -> Result<Vec<Damage>, StoreError> {
        let (dimension, first) = self.world.parsed(tier.family(), key, keys::parse_chunk_key)?;
        let own = ChunkGroup::of(dimension, first);
        let parts = cluster::open(value).map_err(|error| self.world.corrupt_cluster(tier, own, error))?;
        let mut damages = Vec::new();
        for (place, part) in parts {
            let group = ChunkGroup::in_cluster(tier, dimension, first, place);
            if group.first() != first && tier == Tier::Warm {
                return Err(self.world.unknown_key(tier.family(), key));
            }
            self.check_part(group, &part, &mut damages)?;
            if self.is_elsewhere(group, tier)? {
                damages.push(Damage::TwoTiers { group });
            }
            let unmarked = group.chunks(part.chunks).filter(|chunk| !self.is_marked(dimension, *chunk));
            damages.extend(unmarked.map(|chunk| Damage::Unmarked { dimension, chunk }));
        }
        Ok(damages)
    }

    fn check_part(&mut self, group: ChunkGroup, part: &Part, damages: &mut Vec<Damage>) -> Result<(), StoreError> {
        let family = Family::Chunks;
        match part.unpack() {
            Ok(unpacked) => {
                for (place, value) in cluster::values(&unpacked) {
                    if let Err(error) = self.decode(group.dimension(), group.chunk(place), value) {
                        damages.push(damage(family, error)?);
                    }
                }
            }
            Err(error) => damages.extend(group.chunks(part.chunks).map(|chunk| {
                let what = StoredItem::Chunk(group.dimension(), chunk);
                Damage::Value { family, what, reason: error.to_string() }
            })),
        }
        Ok(())
    }

    /// Returns `true` if the packed group also exists in a hotter tier, which is read first.
    pub fn is_elsewhere(&self, group: ChunkGroup, tier: Tier) -> Result<bool, StoreError> {
        let store = &self.world.store;
        let range = group.range();
        let hot = store.scan(Family::Chunks, &range.start..&range.end, 1);
        // Unreadable entries are reported at their own key.
        let is_hot = hot.map_or_else(unreadable, |found| Ok(!found.is_empty()))?;
        if is_hot || tier == Tier::Warm {
            return Ok(is_hot);
        }
        store.get(Family::WarmChunks, &group.key()).map_or_else(unreadable, |found| Ok(found.is_some()))
    }

    fn check_entity(&self, key: &[u8], value: &[u8]) -> Result<Vec<Damage>, StoreError> {
        let id = self.world.parsed(Family::Entities, key, keys::parse_entity_key)?;
        for key in keys::index_keys(&self.world.entity_record(id, value)?) {
            if self.world.store.get(Family::Meta, &key).map_or_else(unreadable, |found| Ok(found.is_none()))? {
                return Ok(vec![Damage::Unindexed { entity: id }]);
            }
        }
        Ok(Vec::new())
    }

    fn check_opacity(&self, key: &[u8], value: &[u8]) -> Result<Vec<Damage>, StoreError> {
        let (dimension, batch) = self.world.parsed(Family::Opacity, key, keys::parse_opacity_key)?;
        self.world.read_opacity(dimension, batch, value, None).map(|_| Vec::new())
    }

    fn check_meta(&mut self, key: &[u8], value: &[u8]) -> Result<Vec<Damage>, StoreError> {
        let world = self.world;
        if let Some((dimension, column, id)) = keys::parse_place_key(key) {
            return self.check_index(id, |record| record.dimension == dimension && record.column() == column);
        }
        if let Some((dimension, id)) = keys::parse_viewer_key(key) {
            return self.check_index(id, |record| record.dimension == dimension && record.viewers().next().is_some());
        }
        if let Some((_, id)) = keys::parse_player_key(key) {
            return self.check_index(id, |record| keys::index_keys(record).iter().any(|own| own == key));
        }
        if let Some((dimension, tile)) = keys::parse_tile_key(key) {
            return self.check_tile(dimension, tile, value);
        }
        if let Some((dimension, pos)) = keys::parse_block_ticks_key(key) {
            world.block_ticks(dimension, pos, value)?;
        } else if let Some((dimension, column)) = keys::parse_summary_key(key) {
            world.summary(dimension, column, value)?;
        } else if let Some((dimension, tile)) = keys::parse_history_key(key) {
            world.tile_history(dimension, tile, value)?;
        } else if let Some((dimension, number)) = keys::parse_pregeneration_key(key) {
            world.pregeneration(dimension, number, value)?;
        } else if let Some(dimension) = keys::parse_key_of_dimension(keys::CLOCK, key) {
            world.open_as(value, StoredItem::Clock(dimension), record::decode::<Duration>)?;
        } else if let Some(dimension) = keys::parse_key_of_dimension(keys::DAYS, key) {
            world.open_as(value, StoredItem::Days(dimension), record::decode::<f64>)?;
        } else if let Some(dimension) = keys::parse_key_of_dimension(keys::HEIGHTS, key) {
            world.record::<(i64, i64)>(value, StoredItem::Heights(dimension))?;
        } else if let Some(dimension) = keys::parse_key_of_dimension(keys::OWN_SEED, key) {
            world.record::<u64>(value, StoredItem::OwnSeed(dimension))?;
        } else if let Some((dimension, _, name)) = keys::parse_object_key(key) {
            world.open_object(dimension, name, value)?;
        } else if let Some((dimension, import)) = keys::parse_import_key(key) {
            world.import_record(dimension, import, value)?;
        } else if let Some(name) = keys::parse_dimension_key(key) {
            world.dimension_of(name, value)?;
        } else if keys::parse_heat_key(key).is_some() {
            if !heat::is_record(value) {
                return Err(world.corrupt(StoredItem::Key(Family::Meta, key.to_vec()), "it is not a record of heat"));
            }
        } else if let Some(checked) = servers::check(&*world.store, key, value) {
            checked?;
        } else if !says_all_by_itself(key) {
            world.check_single(key, value)?;
        }
        Ok(Vec::new())
    }

    fn check_tile(&mut self, dimension: DimensionId, tile: TilePos, value: &[u8]) -> Result<Vec<Damage>, StoreError> {
        match self.world.tile_masks(dimension, tile, value) {
            Ok(masks) => {
                // In a sparse dimension each stored chunk marks itself as generated.
                if self.graphs.contains(&dimension) || !self.world.is_sparse(dimension)? {
                    self.graphs.insert(dimension);
                    self.tiles.insert((dimension, tile), masks);
                }
                Ok(Vec::new())
            }
            Err(error) => {
                // The graph is rebuilt when the dimension is opened.
                self.damaged_graphs.insert(dimension);
                Err(error)
            }
        }
    }

    fn check_index(
        &mut self,
        id: Uuid,
        leads_there: impl Fn(&EntityRecord) -> bool,
    ) -> Result<Vec<Damage>, StoreError> {
        let leads_there = match self.world.entity(id) {
            // A damaged entity is reported at its own key.
            Err(error) if error.is_damage() => true,
            record => record?.as_ref().is_some_and(leads_there),
        };
        self.stale += u64::from(!leads_there);
        Ok(Vec::new())
    }
}

/// Returns `true` for keys that are valid if they can be parsed, with any value.
fn says_all_by_itself(key: &[u8]) -> bool {
    keys::parse_key_of_dimension(keys::REMOVAL, key).is_some()
        || keys::parse_key_of_dimension(keys::SPARSE, key).is_some()
        || keys::parse_cooling_key(key).is_some()
        || keys::parse_damaged_key(key).is_some()
}

/// Converts the error of a damaged value to its damage. Failures of the store stay errors.
fn damage(family: Family, error: StoreError) -> Result<Damage, StoreError> {
    match error {
        StoreError::Corrupt { what, reason, .. } => Ok(Damage::Value { family, what, reason }),
        error => Err(error),
    }
}

/// Unreadable entries are reported at their own key.
fn unreadable(error: StoreError) -> Result<bool, StoreError> {
    match error {
        StoreError::Damaged { .. } => Ok(false),
        error => Err(error),
    }
}
