//! Groups of chunks in the three tiers: lookups and moves.
//!
//! A group is in one tier as a whole, and every move is one atomic write. A lookup searches one tier after the other
//! and could miss a group that moves meanwhile. So moves are written under a lock that readers share.

pub(super) mod chunk_group;
pub(super) mod cluster;
pub(super) mod compression;
mod cooling;
pub(super) mod heat;
pub(super) mod promotion;
mod removal;
#[cfg(test)]
mod tests;
pub(super) mod tier;

use super::{
    ChunkGroup, Durability, Family, KeyValue, Read, StoreError, StoredItem, Tier, WorldStore, WriteBatch, keys,
};
use crate::chunk::format::cluster::cluster_place;
use crate::space::{ChunkPos, ColumnPos, DimensionId};
use chunk_group::GROUP_VOLUME;
use cluster::{LARGEST_CLUSTER, Part, Parts};
use heat::Placed;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{PoisonError, RwLockReadGuard};

/// The number of bytes after which a list of moves stops and leaves the rest to another call, so that a commit waits
/// for less than a second.
const MOVED_AT_ONCE: u64 = 16 << 20;
/// The mark of a chunk whose bytes are lost. It is too short to be a chunk, so readers get an error.
pub(super) const LOST_CHUNK: [u8; 1] = [0];

/// The result of moves between tiers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TierMoves {
    /// The number of groups that became hot, warm and cold.
    pub groups: [u64; 3],
    /// The number of chunks in these groups.
    pub chunks: u64,
    /// The size of these chunks in bytes, before compression.
    pub chunk_bytes: u64,
    /// The size of all written keys and values in bytes.
    pub written: u64,
    /// The number of groups that could not be moved, because they are too large or a cluster is damaged or full.
    pub left: u64,
    /// The damaged values that were found.
    pub damaged: Vec<StoreError>,
}

impl TierMoves {
    /// Adds the result of later moves.
    pub fn add(&mut self, later: Self) {
        self.groups.iter_mut().zip(later.groups).for_each(|(groups, later)| *groups += later);
        self.chunks += later.chunks;
        self.chunk_bytes += later.chunk_bytes;
        self.written += later.written;
        self.left += later.left;
        self.damaged.extend(later.damaged);
    }
}

/// The number of groups whose clusters are read at once if they are not hot. A cluster may have many megabytes.
pub(super) const READ_AHEAD: usize = 8;

pub(super) type PackedGroup = (Tier, Part<'static>);
pub(super) type ChunkValues = Vec<(ChunkPos, Vec<u8>)>;

/// The entries that a read found, or the damage that prevented it.
pub(super) type Entries = Result<Vec<KeyValue>, StoreError>;

/// Reads groups from any tier. It keeps the last cold cube that it read, because the next group is usually in it too.
/// So it must be dropped before the lock that keeps groups from moving.
pub(super) struct GroupReader<'a> {
    world: &'a WorldStore,
    /// The clusters that were read ahead, by key; `None` if each is read when it is needed.
    warm: Option<BTreeMap<Vec<u8>, Vec<u8>>>,
    cold: Option<BTreeMap<Vec<u8>, Vec<u8>>>,
    cube: Option<([u8; keys::CHUNK_KEY_LENGTH], Option<Vec<u8>>)>,
}

impl<'a> GroupReader<'a> {
    pub fn new(world: &'a WorldStore) -> Self {
        Self { world, warm: None, cold: None, cube: None }
    }

    /// A reader for groups whose clusters [were read ahead](Self::reads_ahead). Clusters of a tier in which that read
    /// found damage are read one by one.
    pub fn ahead(world: &'a WorldStore, warm: Entries, cold: Entries) -> Self {
        let by_key = |clusters: Entries| clusters.ok().map(|clusters| clusters.into_iter().collect());
        Self { warm: by_key(warm), cold: by_key(cold), ..Self::new(world) }
    }

    /// The reads of all warm and cold clusters that these groups may be in.
    pub fn reads_ahead(groups: impl Iterator<Item = ChunkGroup> + Clone) -> [Read; 2] {
        let warm = groups.clone().map(|group| group.key().to_vec()).collect();
        let cubes: BTreeSet<_> = groups.map(|group| group.cube_key().to_vec()).collect();
        [Read::Keys(Family::WarmChunks, warm), Read::Keys(Family::ColdChunks, cubes.into_iter().collect())]
    }

    /// A reader for these groups, whose clusters are read at once.
    pub fn read_ahead(world: &'a WorldStore, groups: &[ChunkGroup]) -> Result<Self, StoreError> {
        let mut found = world.read_apart(&Self::reads_ahead(groups.iter().copied()))?.into_iter();
        let mut next = || found.next().unwrap_or(Ok(Vec::new()));
        Ok(Self::ahead(world, next(), next()))
    }

    /// The group, if it is warm or cold.
    pub fn find(&mut self, group: ChunkGroup) -> Result<Option<PackedGroup>, StoreError> {
        let warm = match &self.warm {
            Some(ahead) => match ahead.get(&group.key()[..]) {
                Some(value) => self.world.packed_group(group, Tier::Warm, value)?,
                None => None,
            },
            None => self.world.find_warm(group)?,
        };
        if warm.is_some() {
            return Ok(warm);
        }
        let key = group.cube_key();
        let value = match &self.cold {
            Some(ahead) => ahead.get(&key[..]),
            None => {
                if self.cube.as_ref().is_none_or(|(cube, _)| *cube != key) {
                    self.cube = Some((key, self.world.store.get(Family::ColdChunks, &key)?));
                }
                self.cube.as_ref().and_then(|(_, value)| value.as_ref())
            }
        };
        value.map_or(Ok(None), |value| self.world.packed_group(group, Tier::Cold, value))
    }

    /// The same as [`values_beside`](Self::values_beside), and reads the group's hot chunks.
    pub fn values(
        &mut self,
        group: ChunkGroup,
        is_wanted: impl Fn(ChunkPos) -> bool,
    ) -> Result<(Option<Tier>, ChunkValues), StoreError> {
        let range = group.range();
        let hot = match self.world.store.scan(Family::Chunks, &range.start..&range.end, usize::MAX) {
            Err(error @ StoreError::Damaged { .. }) => Err(error),
            hot => Ok(hot?),
        };
        self.values_beside(group, hot, is_wanted)
    }

    /// The tier of a group, if any of it is stored, and its wanted chunks. `hot` are the entries of its
    /// [range](ChunkGroup::range). If a wanted chunk of a hot group cannot be read, the error names it.
    pub fn values_beside(
        &mut self,
        group: ChunkGroup,
        hot: Entries,
        is_wanted: impl Fn(ChunkPos) -> bool,
    ) -> Result<(Option<Tier>, ChunkValues), StoreError> {
        // A damaged value may be a remnant of deleted keys.
        let (world, hot) = (self.world, hot.ok());
        if hot.as_ref().is_none_or(Vec::is_empty)
            && let Some((tier, values)) = self.packed_values(group, &is_wanted)?
        {
            return Ok((Some(tier), values));
        }
        let Some(hot) = hot else {
            let values = world.values_one_by_one(group, is_wanted)?;
            return Ok(((!values.is_empty()).then_some(Tier::Hot), values));
        };
        let (tier, mut values) = ((!hot.is_empty()).then_some(Tier::Hot), Vec::new());
        for (key, value) in hot {
            let (_, chunk) = world.parsed(Family::Chunks, &key, keys::parse_chunk_key)?;
            if is_wanted(chunk) {
                values.push((chunk, value));
            }
        }
        Ok((tier, values))
    }

    /// The tier and the wanted chunks of a warm or cold group; `None` if it is neither.
    pub fn packed_values(
        &mut self,
        group: ChunkGroup,
        is_wanted: impl Fn(ChunkPos) -> bool,
    ) -> Result<Option<(Tier, ChunkValues)>, StoreError> {
        let Some((tier, part)) = self.find(group)? else { return Ok(None) };
        let Some(first) = group.chunks(part.chunks).find(|chunk| is_wanted(*chunk)) else {
            return Ok(Some((tier, Vec::new())));
        };
        let damaged = |reason| self.world.corrupt(StoredItem::Chunk(group.dimension(), first), reason);
        let unpacked = part.unpack().map_err(damaged)?;
        let values = cluster::values(&unpacked).map(|(place, value)| (group.chunk(place), value));
        let wanted = values.filter(|(chunk, _)| is_wanted(*chunk)).map(|(chunk, value)| (chunk, value.to_vec()));
        Ok(Some((tier, wanted.collect())))
    }
}

/// Moves of groups under construction. They change the tiers of chunks, and nothing else.
pub(super) struct Moves<'a> {
    world: &'a WorldStore,
    pub writes: WriteBatch,
    pub placed: BTreeMap<ChunkGroup, Placed>,
    cube: Option<Cube>,
}

/// The decoded cold groups of a cube that is being changed.
struct Cube {
    key: [u8; keys::CHUNK_KEY_LENGTH],
    parts: Parts<'static>,
    is_changed: bool,
}

impl<'a> Moves<'a> {
    pub fn new(world: &'a WorldStore) -> Self {
        Self { world, writes: WriteBatch::default(), placed: BTreeMap::new(), cube: None }
    }

    /// The cube of a group. The previous cube, if it is another one, is written back.
    fn cube(&mut self, group: ChunkGroup) -> Result<&mut Cube, StoreError> {
        let key = group.cube_key();
        if self.cube.as_ref().is_none_or(|cube| cube.key != key) {
            self.put_cube_back();
            let value = self.world.store.get(Family::ColdChunks, &key)?;
            let parts = value.as_deref().map_or(Ok(Parts::new()), cluster::open);
            let parts = parts.map_err(|error| self.world.corrupt_cluster(Tier::Cold, group, error))?;
            let parts = parts.into_iter().map(|(place, part)| (place, part.into_owned())).collect();
            self.cube = Some(Cube { key, parts, is_changed: false });
        }
        Ok(self.cube.get_or_insert(Cube { key, parts: Parts::new(), is_changed: false }))
    }

    /// Writes the current cube back if it has changed.
    pub fn put_cube_back(&mut self) {
        let Some(Cube { key, parts, .. }) = self.cube.take().filter(|cube| cube.is_changed) else { return };
        match parts.is_empty() {
            true => self.writes.delete(Family::ColdChunks, key),
            false => self.writes.put(Family::ColdChunks, key, cluster::encode(&parts)),
        }
    }

    /// Removes a group from its warm or cold tier.
    fn unpack(&mut self, group: ChunkGroup, tier: Tier) -> Result<(), StoreError> {
        if tier == Tier::Warm {
            self.writes.delete(Family::WarmChunks, group.key());
            return Ok(());
        }
        let cube = self.cube(group)?;
        cube.is_changed |= cube.parts.remove(&group.place_in_cube()).is_some();
        Ok(())
    }

    /// Makes a packed group hot. If it is damaged, a copy of its bytes is kept and its chunks are marked as lost.
    pub fn promote(&mut self, group: ChunkGroup, packed: &PackedGroup) -> Result<(), StoreError> {
        let (tier, part) = packed;
        self.unpack(group, *tier)?;
        match part.unpack() {
            Ok(unpacked) => {
                for (place, value) in cluster::values(&unpacked) {
                    self.put_hot(group.chunk(place), group, value.to_vec());
                }
            }
            Err(_) => {
                let bytes = part.stored_bytes();
                let key = keys::damaged_key(tier.family(), &group.key(), bytes);
                self.writes.put(Family::Meta, key, bytes.to_vec());
                group.chunks(part.chunks).for_each(|chunk| self.put_hot(chunk, group, LOST_CHUNK.to_vec()));
            }
        }
        self.placed.insert(group, Placed::Accessed(Tier::Hot));
        Ok(())
    }

    fn put_hot(&mut self, chunk: ChunkPos, group: ChunkGroup, value: Vec<u8>) {
        self.writes.put(Family::Chunks, keys::chunk_key(group.dimension(), chunk), value);
    }

    /// Adds a packed group to a tier. If its cold cube is full, it becomes warm. Returns the resulting tier.
    fn pack(&mut self, group: ChunkGroup, part: Part<'static>, to: Tier) -> Result<Tier, StoreError> {
        if to == Tier::Cold {
            let cube = self.cube(group)?;
            let length: usize = cube.parts.values().map(Part::stored_length).sum();
            if length + part.stored_length() <= LARGEST_CLUSTER {
                cube.parts.insert(group.place_in_cube(), part);
                cube.is_changed = true;
                return Ok(Tier::Cold);
            }
        }
        let value = cluster::encode(&Parts::from([(group.place_in_cube(), part)]));
        self.writes.put(Family::WarmChunks, group.key(), value);
        Ok(Tier::Warm)
    }
}

impl WorldStore {
    /// The tier of a group; `None` if none of its chunks is stored.
    pub fn tier(&self, group: ChunkGroup) -> Result<Option<Tier>, StoreError> {
        let _resting = self.groups_at_rest();
        let range = group.range();
        if !self.store.scan(Family::Chunks, &range.start..&range.end, 1)?.is_empty() {
            return Ok(Some(Tier::Hot));
        }
        Ok(GroupReader::new(self).find(group)?.map(|(tier, _)| tier))
    }

    /// The stored value of a chunk and its tier; `None` if it is not stored.
    pub(super) fn chunk_value(
        &self,
        dimension: DimensionId,
        pos: ChunkPos,
    ) -> Result<Option<(Tier, Vec<u8>)>, StoreError> {
        let _resting = self.groups_at_rest();
        if let Some(value) = self.store.get(Family::Chunks, &keys::chunk_key(dimension, pos))? {
            return Ok(Some((Tier::Hot, value)));
        }
        let group = ChunkGroup::of(dimension, pos);
        let packed = GroupReader::new(self).packed_values(group, |chunk| chunk == pos)?;
        Ok(packed.and_then(|(tier, mut values)| Some((tier, values.pop()?.1))))
    }

    /// The wanted chunks of a hot group with unreadable values. If a wanted one is unreadable, the error names it.
    fn values_one_by_one(
        &self,
        group: ChunkGroup,
        is_wanted: impl Fn(ChunkPos) -> bool,
    ) -> Result<ChunkValues, StoreError> {
        let chunks: Vec<ChunkPos> = group.chunks(u64::MAX).filter(|chunk| is_wanted(*chunk)).collect();
        let keys: Vec<_> = chunks.iter().map(|chunk| keys::chunk_key(group.dimension(), *chunk)).collect();
        let by_bytes: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let item = |index: usize| StoredItem::Chunk(group.dimension(), chunks[index]);
        let values = self.read_named(Family::Chunks, &by_bytes, item)?;
        Ok(chunks.into_iter().zip(values).filter_map(|(chunk, value)| Some((chunk, value?))).collect())
    }

    /// Moves groups to other tiers. The groups of a cube of 16 x 16 x 16 chunks are moved in one atomic write. Stops
    /// after 16 MiB. Returns the result and the number of groups that are left, which may be any of them.
    ///
    /// Groups that are already in their tier stay there, and damaged groups are moved unchanged. A group that is too
    /// large to be packed, with more than 64 MiB, stays in its tier, and so does a group whose cluster cannot be read.
    /// Both count as accessed now, so that they are not retried immediately.
    pub fn move_groups(&self, groups: &[(ChunkGroup, Tier)]) -> Result<(TierMoves, usize), StoreError> {
        let mut groups = groups.to_vec();
        groups.sort_by_cached_key(|(group, _)| group.key());
        groups.dedup_by_key(|(group, _)| *group);
        let (mut moves, mut left) = (TierMoves::default(), groups.len());
        for groups in groups.chunk_by(|(a, _), (b, _)| a.cube_key() == b.cube_key()) {
            if moves.chunk_bytes >= MOVED_AT_ONCE {
                break;
            }
            left -= self.move_in_cube(groups, &mut moves)?;
        }
        Ok((moves, left))
    }

    /// Moves groups of one cube. Returns the number of processed groups.
    fn move_in_cube(&self, groups: &[(ChunkGroup, Tier)], report: &mut TierMoves) -> Result<usize, StoreError> {
        let _writing = self.lock_writes()?;
        let Some(&(first, _)) = groups.first() else { return Ok(0) };
        if self.is_marked(first.dimension())? {
            // Chunks of a dimension that is being removed must not move to ranges that are already deleted.
            return Ok(groups.len());
        }
        let mut moves = Moves::new(self);
        let mut count = 0;
        for &(group, to) in groups {
            if report.chunk_bytes >= MOVED_AT_ONCE {
                break;
            }
            count += 1;
            match self.move_group(group, to, &mut moves, report) {
                Err(error) if error.is_damage() => {
                    // The damaged cluster stays unchanged for later repair.
                    report.damaged.push(error);
                    report.left += 1;
                    moves.placed.insert(group, Placed::Postponed);
                }
                moved => moved?,
            }
        }
        moves.put_cube_back();
        let Moves { mut writes, placed, .. } = moves;
        let written = self.add_heat(&placed, &mut writes)?;
        if !writes.is_empty() {
            report.written += writes.bytes();
            self.write_moves(writes, Durability::Process)?;
        }
        self.heat.forget(&written);
        Ok(count)
    }

    fn move_group(
        &self,
        group: ChunkGroup,
        to: Tier,
        moves: &mut Moves,
        done: &mut TierMoves,
    ) -> Result<(), StoreError> {
        let range = group.range();
        let values = self.store.scan(Family::Chunks, &range.start..&range.end, GROUP_VOLUME)?;
        if values.is_empty() {
            let Some(packed) = self.find_for_move(group, moves)? else {
                moves.placed.insert(group, Placed::Gone);
                return Ok(());
            };
            return self.move_packed(group, packed, to, moves, done);
        }
        if to == Tier::Hot {
            moves.placed.insert(group, Placed::Moved(Tier::Hot));
            return Ok(());
        }
        // An unreadable cluster may hold more of the group, so it must not be overwritten.
        self.find_for_move(group, moves)?;
        let Some(part) = self.pack_values(&values)? else {
            done.left += 1;
            moves.placed.insert(group, Placed::Postponed);
            return Ok(());
        };
        let to = moves.pack(group, part, to)?;
        for (key, value) in values {
            done.chunks += 1;
            done.chunk_bytes += value.len() as u64;
            moves.writes.delete(Family::Chunks, key);
        }
        done.groups[usize::from(to.number())] += 1;
        moves.placed.insert(group, Placed::Moved(to));
        Ok(())
    }

    /// The packed group, including the effects of the moves so far.
    fn find_for_move(&self, group: ChunkGroup, moves: &mut Moves) -> Result<Option<PackedGroup>, StoreError> {
        let packed = self.find_warm(group)?;
        if packed.is_some() {
            return Ok(packed);
        }
        let part = moves.cube(group)?.parts.get(&group.place_in_cube()).cloned();
        Ok(part.map(|part| (Tier::Cold, part)))
    }

    fn move_packed(
        &self,
        group: ChunkGroup,
        packed: PackedGroup,
        to: Tier,
        moves: &mut Moves,
        done: &mut TierMoves,
    ) -> Result<(), StoreError> {
        let (from, part) = &packed;
        if *from == to {
            moves.placed.insert(group, Placed::Moved(to));
            return Ok(());
        }
        done.chunks += u64::from(part.chunks.count_ones());
        done.chunk_bytes += part.length() as u64;
        if to == Tier::Hot {
            moves.promote(group, &packed)?;
            if let Err(error) = part.unpack() {
                done.damaged.extend(
                    group
                        .chunks(part.chunks)
                        .map(|chunk| self.corrupt(StoredItem::Chunk(group.dimension(), chunk), &error)),
                );
            }
        } else {
            // Errors must happen before the group is removed from its old tier.
            let (from, part) = packed;
            if moves.pack(group, part, to)? == from {
                done.left += 1;
                moves.placed.insert(group, Placed::Postponed);
                return Ok(());
            }
            moves.unpack(group, from)?;
            moves.placed.insert(group, Placed::Moved(to));
        }
        done.groups[usize::from(to.number())] += 1;
        Ok(())
    }

    fn find_warm(&self, group: ChunkGroup) -> Result<Option<PackedGroup>, StoreError> {
        match self.store.get(Family::WarmChunks, &group.key())? {
            Some(value) => self.packed_group(group, Tier::Warm, &value),
            None => Ok(None),
        }
    }

    /// The group in a cluster, if it is there.
    fn packed_group(&self, group: ChunkGroup, tier: Tier, value: &[u8]) -> Result<Option<PackedGroup>, StoreError> {
        let mut parts = cluster::open(value).map_err(|error| self.corrupt_cluster(tier, group, error))?;
        Ok(parts.remove(&group.place_in_cube()).map(|part| (tier, part.into_owned())))
    }

    /// Packs the stored values of a hot group; `None` if it is too large.
    fn pack_values(&self, values: &[KeyValue]) -> Result<Option<Part<'static>>, StoreError> {
        let place = |key: &[u8]| {
            let (_, chunk) = self.parsed(Family::Chunks, key, keys::parse_chunk_key)?;
            Ok(cluster_place(chunk))
        };
        // A cluster skips empty values, but the chunk must still count as damaged.
        fn bytes((_, value): &KeyValue) -> &[u8] {
            if value.is_empty() { &LOST_CHUNK } else { value }
        }
        let places = values.iter().map(|(key, _)| place(key)).collect::<Result<Vec<_>, StoreError>>()?;
        Ok(Part::pack(places.into_iter().zip(values.iter().map(bytes))))
    }

    /// A lock to hold while groups are looked up in several tiers.
    pub(super) fn groups_at_rest(&self) -> RwLockReadGuard<'_, ()> {
        self.moving.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The columns that have chunks in the cluster with this key.
    pub(super) fn columns_in_cluster(
        &self,
        tier: Tier,
        key: &[u8],
        value: &[u8],
    ) -> Result<BTreeSet<ColumnPos>, StoreError> {
        let (dimension, first) = self.parsed(tier.family(), key, keys::parse_chunk_key)?;
        let parts = cluster::open(value);
        let parts = parts.map_err(|error| self.corrupt_cluster(tier, ChunkGroup::of(dimension, first), error))?;
        let chunks =
            |(place, part): (u8, Part)| ChunkGroup::in_cluster(tier, dimension, first, place).chunks(part.chunks);
        Ok(parts.into_iter().flat_map(chunks).map(ChunkPos::column).collect())
    }

    /// Writes a batch that moves groups, while lookups wait.
    pub(super) fn write_moves(&self, writes: WriteBatch, durability: Durability) -> Result<(), StoreError> {
        {
            let _moving = self.moving.write().unwrap_or_else(PoisonError::into_inner);
            let written = self.write(writes, Durability::Process);
            self.has_late_move.store(written.is_err(), Ordering::Release);
            written?;
        }
        // Syncing the disk is slow, so it happens outside the lock.
        if durability == Durability::Sync { self.store.sync() } else { Ok(()) }
    }

    pub(super) fn corrupt_cluster(&self, tier: Tier, group: ChunkGroup, reason: impl ToString) -> StoreError {
        let key = if tier == Tier::Cold { group.cube_key() } else { group.key() };
        let first = keys::parse_chunk_key(&key).map_or(group.first(), |(_, first)| first);
        self.corrupt(StoredItem::Cluster(tier, group.dimension(), first), reason)
    }
}
