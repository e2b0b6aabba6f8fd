//! Commits to the world.

use super::envelope::Replaced;
use super::servers::{Crossing, CrossingId};
use super::tiers::heat::Placed;
use super::tiers::{GroupReader, LOST_CHUNK, Moves, PackedGroup, READ_AHEAD, cluster};
use super::values::clocks::put_clocks;
use super::values::{block_ticks, record};
use super::{
    ChunkGroup, Durability, EntityRecord, Family, SaveBatch, StoreError, StoredItem, Tier, WorldStore, WriteBatch,
    envelope, keys,
};
use crate::block::BlockId;
use crate::chunk::Chunk;
use crate::chunk::format::cluster::cluster_place;
use crate::space::{ChunkPos, ColumnPos, DimensionId, TILE_BATCHES, TilePos};
use crate::values::blocks::KnownBlocks;
use crate::values::tile_masks;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// The number of stored values that are in memory at a time for comparison with new ones.
const COMPARED_AT_ONCE: usize = 256;

/// The maximum size of moves to the hot tier that are held in memory, in bytes.
const MAX_MOVES: u64 = 32 << 20;

/// The result of a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitReport {
    /// The size of all written keys and values in bytes.
    pub bytes: u64,
    /// The number of written chunks, without unchanged ones.
    pub chunks: usize,
    /// The number of chunks whose block ticks were written or removed, without unchanged ones.
    pub block_ticks: usize,
    /// The number of written or removed entities, without unchanged ones.
    pub entities: usize,
    /// The duration of the commit.
    pub duration: Duration,
    /// The damaged values that were replaced by whole ones. A copy of their readable bytes is [kept](WorldStore::set_aside).
    pub replaced: Vec<StoreError>,
}

#[derive(Default)]
pub(super) struct Commit {
    pub writes: WriteBatch,
    pub report: CommitReport,
    /// Promotions, which leave chunks unchanged. They are written before everything else.
    moves: WriteBatch,
    /// The groups that received chunks.
    placed: BTreeMap<ChunkGroup, Placed>,
    /// Entities that an earlier attempt sent to another server, which may have stored them since.
    sent_before: BTreeSet<Uuid>,
    /// The minimum versions of these chunks, if they change.
    pub versions: BTreeMap<(DimensionId, ChunkPos), u64>,
}

/// The stored values of the chunks of a group.
type StoredValues = Vec<Option<Vec<u8>>>;

type KeyedChunk<'a> = ([u8; keys::CHUNK_KEY_LENGTH], (DimensionId, ChunkPos), &'a Chunk);

/// Adds chunks to a commit, group by group in the order of their keys.
struct GroupWriter<'a> {
    world: &'a WorldStore,
    blocks: Arc<KnownBlocks>,
    packed: GroupReader<'a>,
    moves: Moves<'a>,
    commit: &'a mut Commit,
    /// The last requested tile of a stored graph.
    tile: Option<((DimensionId, TilePos), Option<tile_masks::Masks>)>,
}

impl GroupWriter<'_> {
    /// Adds the changed chunks of groups, and returns their places. Their stored values are read together, since a distant store takes
    /// a while for each answer.
    fn add_together(
        &mut self,
        groups: &[(ChunkGroup, &[KeyedChunk])],
        sparse: &BTreeSet<DimensionId>,
        batch: &SaveBatch,
    ) -> Result<Vec<(DimensionId, ChunkPos)>, StoreError> {
        let keys: Vec<&[u8]> = groups.iter().flat_map(|(_, chunks)| chunks.iter().map(|(key, ..)| &key[..])).collect();
        let mut values = self.world.read_to_replace(Family::Chunks, &keys, &mut self.commit.report)?.into_iter();
        let stored: Vec<StoredValues> =
            groups.iter().map(|(_, chunks)| values.by_ref().take(chunks.len()).collect()).collect();
        // A damaged value may be a remnant of deleted keys, so it does not make the group hot.
        let is_hot = |stored: &StoredValues| stored.iter().flatten().any(|value| !value.is_empty());
        let hot: Vec<bool> = stored.iter().map(is_hot).collect();
        let (mut changed, mut ahead) = (Vec::new(), 0);
        for (number, (&(group, chunks), stored)) in groups.iter().zip(stored).enumerate() {
            if !hot[number] && ahead == 0 {
                let next = groups[number..].iter().zip(&hot[number..]).filter(|(_, is_hot)| !**is_hot);
                let next: Vec<ChunkGroup> = next.map(|((group, _), _)| *group).take(READ_AHEAD).collect();
                ahead = next.len();
                self.packed = GroupReader::read_ahead(self.world, &next)?;
            }
            ahead -= usize::from(!hot[number]);
            let is_sparse = sparse.contains(&group.dimension());
            let places = self.add(group, chunks, (stored, hot[number]), is_sparse, batch)?;
            changed.extend(places.into_iter().map(|pos| (group.dimension(), pos)));
        }
        Ok(changed)
    }

    /// Adds the changed chunks of one group, and returns their positions. A warm or cold group becomes hot.
    fn add(
        &mut self,
        group: ChunkGroup,
        chunks: &[KeyedChunk],
        (mut stored, is_hot): (StoredValues, bool),
        is_sparse: bool,
        batch: &SaveBatch,
    ) -> Result<Vec<ChunkPos>, StoreError> {
        let packed = if is_hot { None } else { self.find_packed(group, chunks, is_sparse)? };
        if let Some((_, part)) = &packed {
            replace_packed(chunks, &mut stored, part);
        }
        let (mut changed, mut is_new) = (Vec::new(), false);
        for (chunk, stored) in chunks.iter().zip(stored) {
            if self.add_chunk(chunk, stored.as_deref(), is_sparse)? {
                is_new |= stored.is_none();
                changed.push(chunk.1.1);
            }
        }
        if changed.is_empty() {
            return Ok(changed);
        }
        if let Some(packed) = packed {
            self.moves.promote(group, &packed)?;
            if self.moves.writes.bytes() > MAX_MOVES {
                self.write_moves_early()?;
            }
        } else if is_new {
            let is_used =
                chunks.iter().any(|(_, (dimension, pos), _)| !batch.unused.contains(&(*dimension, pos.column())));
            let placed = if is_used { Placed::Accessed(Tier::Hot) } else { Placed::Moved(Tier::Hot) };
            self.commit.placed.insert(group, placed);
        }
        Ok(changed)
    }

    /// Adds a chunk in place of its stored value. Returns `true` if it changed.
    fn add_chunk(
        &mut self,
        &(key, (dimension, pos), chunk): &KeyedChunk,
        stored: Option<&[u8]>,
        is_sparse: bool,
    ) -> Result<bool, StoreError> {
        let mut value = envelope::unsealed();
        self.world.encode_chunk(&self.blocks, (dimension, pos), chunk, &mut value)?;
        let least = self.commit.versions.get(&(dimension, pos)).copied().unwrap_or(0);
        let version = match stored.map(|stored| (stored, Replaced::of(stored))) {
            None if chunk.uniform_block() == Some(BlockId::AIR) && !is_sparse && least == 0 => None,
            // In a stored column, a missing chunk was air.
            None => Some(least.max((!is_sparse && self.is_stored(dimension, pos.column())?).into())),
            Some((stored, old)) => {
                if let Err(error) = &old.payload {
                    // The chunk in memory replaces the damaged one. Refusing the commit would lose it too.
                    self.commit.report.replaced.push(self.world.corrupt(StoredItem::Chunk(dimension, pos), error));
                    if stored != LOST_CHUNK {
                        self.commit.set_aside(Family::Chunks, &key, stored);
                    }
                }
                old.next_version(&value[envelope::HEADER_LENGTH..], least)
            }
        };
        let Some(version) = version else { return Ok(false) };
        envelope::seal(&mut value, version);
        self.commit.writes.put(Family::Chunks, key, value);
        self.commit.report.chunks += 1;
        Ok(true)
    }

    fn is_stored(&mut self, dimension: DimensionId, column: ColumnPos) -> Result<bool, StoreError> {
        let tile = (dimension, column.tile());
        if self.tile.as_ref().is_none_or(|(known, _)| *known != tile) {
            let masks = match self.world.stored_tile(dimension, tile.1) {
                // With a damaged tile this is unknown, so the column counts as new.
                Err(error) if error.is_damage() => None,
                masks => masks?,
            };
            self.tile = Some((tile, masks));
        }
        let masks = self.tile.as_ref().and_then(|(_, masks)| masks.as_ref());
        Ok(masks.is_some_and(|masks| tile_masks::is_marked(masks, column)))
    }

    fn find_packed(
        &mut self,
        group: ChunkGroup,
        chunks: &[KeyedChunk],
        is_sparse: bool,
    ) -> Result<Option<PackedGroup>, StoreError> {
        match self.packed.find(group) {
            Err(error) if error.is_damage() => {
                // The contents of the cluster are unknown, so it stays unchanged. The chunks in memory are saved as hot ones.
                self.commit.report.replaced.push(error);
                self.lose_others(group, chunks, is_sparse)?;
                Ok(None)
            }
            found => found,
        }
    }

    /// Marks other chunks of a group whose cluster cannot be read as lost. With its first saved chunk the group becomes
    /// hot, and missing chunks would then be taken for air.
    fn lose_others(&mut self, group: ChunkGroup, chunks: &[KeyedChunk], is_sparse: bool) -> Result<(), StoreError> {
        let (range, first) = (group.range(), group.first());
        let hot = self.world.store.scan(Family::Chunks, &range.start..&range.end, 1);
        if !hot.is_ok_and(|hot| hot.is_empty()) {
            // The group is hot already, readable or not.
            return Ok(());
        }
        let stored = match self.world.stored_tile(group.dimension(), first.column().tile()) {
            Err(error) if error.is_damage() => None,
            tile => Some(tile?.unwrap_or([0; TILE_BATCHES])),
        };
        // Columns that are new in this commit had no chunks before.
        let is_new = |column: ColumnPos| match &stored {
            _ if is_sparse => false,
            Some(stored) => !tile_masks::is_marked(stored, column),
            None => chunks.iter().any(|(_, (_, chunk), _)| chunk.column() == column),
        };
        let others = group.chunks(u64::MAX).filter(|chunk| !is_new(chunk.column()));
        for key in others.map(|chunk| keys::chunk_key(group.dimension(), chunk)) {
            if chunks.iter().all(|(of, ..)| *of != key) {
                self.commit.writes.put(Family::Chunks, key, LOST_CHUNK.to_vec());
            }
        }
        Ok(())
    }

    /// Writes the promotions so far, to limit their size in memory. They change no chunks, so they can be written
    /// before the commit.
    fn write_moves_early(&mut self) -> Result<(), StoreError> {
        self.moves.put_cube_back();
        let mut writes = mem::take(&mut self.moves.writes);
        let accesses = self.world.add_heat(&mem::take(&mut self.moves.placed), &mut writes)?;
        self.commit.report.bytes += writes.bytes();
        self.world.write_moves(writes, Durability::Process)?;
        self.world.heat.forget(&accesses);
        // The cube in the reader may be outdated now.
        self.packed = GroupReader::new(self.world);
        Ok(())
    }

    fn finish(mut self) -> Result<(), StoreError> {
        self.moves.put_cube_back();
        self.commit.moves = self.moves.writes;
        self.commit.placed.append(&mut self.moves.placed);
        Ok(())
    }
}

/// Replaces the stored values of chunks with those in a warm or cold cluster.
fn replace_packed(chunks: &[KeyedChunk], stored: &mut StoredValues, part: &cluster::Part<'_>) {
    let is_there = |chunk: ChunkPos| part.chunks >> cluster_place(chunk) & 1 == 1;
    let unpacked = part.unpack();
    let mut values: BTreeMap<usize, &[u8]> = unpacked.iter().flat_map(|unpacked| cluster::values(unpacked)).collect();
    for ((_, (_, pos), _), stored) in chunks.iter().zip(stored) {
        let value = values.remove(&cluster_place(*pos)).unwrap_or(&LOST_CHUNK);
        *stored = is_there(*pos).then(|| value.to_vec());
    }
}

impl WorldStore {
    /// Saves the whole batch, or nothing on an error.
    ///
    /// A chunk has version 0 when it is stored with its new column, and each later saved change adds 1. A chunk that is
    /// not stored counts as air, so a chunk of air with no stored value is not written, except in
    /// [sparse](Self::make_sparse) dimensions.
    pub fn commit(&self, batch: &SaveBatch, durability: Durability) -> Result<CommitReport, StoreError> {
        let _writing = self.lock_writes()?;
        self.finish_commit(batch, Commit::default(), durability)
    }

    /// Like [`commit`](Self::commit), for a commit that already has contents. The caller must hold the lock of writes.
    pub(super) fn finish_commit(
        &self,
        batch: &SaveBatch,
        mut commit: Commit,
        durability: Durability,
    ) -> Result<CommitReport, StoreError> {
        let start = Instant::now();
        self.add_chunks(batch, &mut commit)?;
        self.add_block_ticks(batch, &mut commit)?;
        self.add_crossings(batch, &mut commit)?;
        self.add_entities(batch, &mut commit)?;
        self.add_summaries(batch, &mut commit)?;
        self.add_histories(batch, &mut commit)?;
        self.add_pregenerations(batch, &mut commit);
        if self.incarnation().is_none() {
            put_clocks(batch, &mut commit.writes);
        }
        for (&(dimension, tile), masks) in &batch.tiles {
            commit.writes.put(Family::Meta, keys::tile_key(dimension, tile), tile_masks::encode(masks));
        }

        let names = self.add_names(&mut commit.writes)?;
        let accesses = self.add_heat(&commit.placed, &mut commit.writes)?;
        let has_moves = !commit.moves.is_empty();
        // The changes come second, so that they win over promotions of the same chunks.
        let mut writes = commit.moves;
        writes.append(commit.writes);
        commit.report.bytes += writes.bytes();
        let written = if has_moves {
            self.write_moves(writes, durability)
        } else if !writes.is_empty() {
            self.write(writes, durability)
        } else if durability == Durability::Sync {
            self.store.sync()
        } else {
            Ok(())
        };
        // Other batches may be written before the failed one is repeated.
        if !batch.sent.is_empty() || !batch.received.is_empty() {
            match &written {
                Ok(()) => self.is_unsettled.store(false, Ordering::Release),
                Err(error) if error.is_outage() => self.is_unsettled.store(true, Ordering::Release),
                Err(_) => {}
            }
        }
        written?;
        self.names_stored(&names);
        self.heat.forget(&accesses);
        commit.report.duration = start.elapsed();
        Ok(commit.report)
    }

    fn add_chunks(&self, batch: &SaveBatch, commit: &mut Commit) -> Result<(), StoreError> {
        let mut chunks: Vec<KeyedChunk> = batch
            .chunks
            .iter()
            .map(|(&(dimension, pos), chunk)| (keys::chunk_key(dimension, pos), (dimension, pos), &**chunk))
            .collect();
        chunks.sort_unstable_by_key(|(key, ..)| *key);
        let dimensions: BTreeSet<DimensionId> = chunks.iter().map(|(_, (dimension, _), _)| *dimension).collect();
        let (mut sparse, mut outdated, mut batches) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for dimension in dimensions {
            if self.is_sparse(dimension)? {
                sparse.insert(dimension);
            }
        }
        let (packed, moves, blocks) = (GroupReader::new(self), Moves::new(self), self.known_blocks()?);
        let mut groups = GroupWriter { world: self, blocks, packed, moves, commit, tile: None };
        let of_one =
            |(_, a, _): &KeyedChunk, (_, b, _): &KeyedChunk| ChunkGroup::of(a.0, a.1) == ChunkGroup::of(b.0, b.1);
        fn with_group<'a, 'b>(chunks: &'a [KeyedChunk<'b>]) -> Option<(ChunkGroup, &'a [KeyedChunk<'b>])> {
            let (_, (dimension, pos), _) = chunks.first()?;
            Some((ChunkGroup::of(*dimension, *pos), chunks))
        }
        let all: Vec<_> = chunks.chunk_by(of_one).filter_map(with_group).collect();
        let mut rest = &all[..];
        while !rest.is_empty() {
            let mut size = 0;
            let fits = |(_, chunks): &&(_, &[KeyedChunk])| {
                size += chunks.len();
                size <= COMPARED_AT_ONCE
            };
            let (together, left) = rest.split_at(rest.iter().take_while(fits).count().max(1));
            rest = left;
            for (dimension, pos) in groups.add_together(together, &sparse, batch)? {
                batches.insert(keys::opacity_key(dimension, pos.column().batch()));
                if sparse.contains(&dimension) {
                    outdated.insert(keys::summary_key(dimension, pos.column()));
                }
            }
        }
        groups.finish()?;
        // Summaries from the time before the dimension became sparse.
        outdated.into_iter().for_each(|key| commit.writes.delete(Family::Meta, key));
        self.forget_opacity(&batches.into_iter().collect::<Vec<_>>(), commit)
    }

    /// Removes opacity maps of batches. They are rebuilt on demand.
    fn forget_opacity(&self, tiles: &[Vec<u8>], commit: &mut Commit) -> Result<(), StoreError> {
        for tiles in tiles.chunks(COMPARED_AT_ONCE) {
            let keys = tiles.iter().map(Vec::as_slice).collect::<Vec<_>>();
            let stored = self.read_to_replace(Family::Opacity, &keys, &mut commit.report)?;
            for (key, _) in keys.into_iter().zip(stored).filter(|(_, stored)| stored.is_some()) {
                commit.writes.delete(Family::Opacity, key);
            }
        }
        Ok(())
    }

    fn add_block_ticks(&self, batch: &SaveBatch, commit: &mut Commit) -> Result<(), StoreError> {
        let mut values = Vec::new();
        for (&(dimension, pos), ticks) in &batch.block_ticks {
            let item = StoredItem::BlockTicks(dimension, pos);
            let payload = block_ticks::encode(pos, ticks).map_err(|reason| self.corrupt(item.clone(), reason))?;
            values.push((keys::block_ticks_key(dimension, pos), item, (!ticks.is_empty()).then_some(payload)));
        }
        commit.report.block_ticks += self.replace_values(&values, commit)?;
        Ok(())
    }

    /// Adds values to `meta` in place of the stored ones: each with its key, item and new payload, or `None` to delete
    /// it. Returns the number of changed values.
    pub(super) fn replace_values(
        &self,
        values: &[(Vec<u8>, StoredItem, Option<Vec<u8>>)],
        commit: &mut Commit,
    ) -> Result<usize, StoreError> {
        let mut changed = 0;
        for values in values.chunks(COMPARED_AT_ONCE) {
            let keys = values.iter().map(|(key, ..)| &key[..]).collect::<Vec<_>>();
            let stored = self.read_to_replace(Family::Meta, &keys, &mut commit.report)?;
            for ((key, item, payload), stored) in values.iter().zip(stored) {
                let old = stored.as_deref().map(Replaced::of);
                if let (Some(stored), Some(Replaced { payload: Err(error), .. })) = (&stored, &old) {
                    commit.report.replaced.push(self.corrupt(item.clone(), error));
                    commit.set_aside(Family::Meta, key, stored);
                }
                let version = |payload: &Vec<u8>| old.as_ref().map_or(Some(0), |old| old.next_version(payload, 0));
                match payload.as_ref().map(|payload| (payload, version(payload))) {
                    Some((payload, Some(version))) => {
                        commit.writes.put(Family::Meta, key.clone(), envelope::sealed(version, payload));
                    }
                    None if old.is_some() => commit.writes.delete(Family::Meta, key.clone()),
                    _ => continue,
                }
                changed += 1;
            }
        }
        Ok(changed)
    }

    /// Adds the crossings of a batch to its commit.
    ///
    /// # Errors
    /// A crossing that is to be removed is not stored, and no earlier attempt may have removed it. Nothing is written, because
    /// the content of the crossing would exist twice.
    fn add_crossings(&self, batch: &SaveBatch, commit: &mut Commit) -> Result<(), StoreError> {
        let mut before = 0;
        if let Some(last) = batch.sent.keys().filter(|id| !id.is_local()).map(|id| id.number).max()
            && let Some(server) = self.incarnation()
        {
            // An earlier attempt may have sent some of these, although its answer was lost. They may have arrived and gone on since, so
            // they are not sent again. Local ones stay until a later commit of this server.
            if self.is_unsettled.load(Ordering::Acquire) {
                before = server.last_sent()?;
            }
            commit.writes.put(Family::Meta, server.sent_key(), record::encode(&last.max(before)));
        }
        // A crossing that has arrived by now is not stored.
        for (id, crossing) in batch.sent.iter().filter(|(id, _)| !batch.received.contains(id)) {
            match crossing {
                _ if id.is_local() || id.number > before => {
                    commit.writes.put(Family::Meta, id.key(), crossing.to_bytes());
                }
                Crossing::Entities(records) => commit.sent_before.extend(records.iter().flat_map(EntityRecord::ids)),
                Crossing::Message { .. } | Crossing::MessageAway { .. } => {}
            }
        }
        if batch.received.is_empty() {
            return Ok(());
        }
        let keys: Vec<Vec<u8>> = batch.received.iter().map(CrossingId::key).collect();
        let stored = self.store.multi_get(Family::Meta, &keys.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
        for ((id, key), value) in batch.received.iter().zip(keys).zip(stored) {
            match value {
                Some(value) => {
                    commit.writes.require(Family::Meta, key.clone(), Some(value));
                    commit.writes.delete(Family::Meta, key);
                }
                // It was never stored, the answer to an attempt was lost that removed it, or its dimension was removed with it.
                None if batch.sent.contains_key(id) || self.is_unsettled.load(Ordering::Acquire) => {}
                None if self.incarnation().is_none() => {}
                None => return Err(self.corrupt(id.item(), "it was received before")),
            }
        }
        Ok(())
    }

    fn add_entities(&self, batch: &SaveBatch, commit: &mut Commit) -> Result<(), StoreError> {
        let entities: Vec<(Uuid, Option<&EntityRecord>)> =
            batch.entities.iter().map(|(id, entity)| (*id, entity.as_ref())).collect();
        let entities: Vec<_> = entities.into_iter().filter(|(id, _)| !commit.sent_before.contains(id)).collect();
        for entities in entities.chunks(COMPARED_AT_ONCE) {
            let stored = entities.iter().map(|(id, _)| &id.as_bytes()[..]).collect::<Vec<_>>();
            let stored = self.read_to_replace(Family::Entities, &stored, &mut commit.report)?;
            for (&(id, entity), stored) in entities.iter().zip(stored) {
                self.add_entity(id, entity, stored, commit)?;
            }
        }
        Ok(())
    }

    fn add_entity(
        &self,
        id: Uuid,
        entity: Option<&EntityRecord>,
        stored: Option<Vec<u8>>,
        commit: &mut Commit,
    ) -> Result<(), StoreError> {
        if entity.is_some_and(|entity| entity.id != id) {
            return Err(
                self.corrupt(StoredItem::Entity(id), "the batch holds the record of another entity under this id")
            );
        }
        let value = entity.map(EntityRecord::to_bytes);
        if stored == value {
            return Ok(());
        }
        // The old place of a damaged record is unknown. Its stale place key is ignored by readers.
        let old = stored.and_then(|stored| {
            let damaged = |error| {
                commit.report.replaced.push(error);
                commit.set_aside(Family::Entities, &keys::entity_key(id), &stored);
            };
            self.entity_record(id, &stored).map_err(damaged).ok()
        });
        let (old, new) = (old.as_ref().map(keys::index_keys), entity.map(keys::index_keys));
        for key in old.iter().flatten().filter(|key| !new.iter().flatten().any(|new| new == *key)) {
            commit.writes.delete(Family::Meta, key.clone());
        }
        for key in new.iter().flatten().filter(|key| !old.iter().flatten().any(|old| old == *key)) {
            commit.writes.put(Family::Meta, key.clone(), Vec::new());
        }
        match value {
            Some(value) => commit.writes.put(Family::Entities, keys::entity_key(id), value),
            None => commit.writes.delete(Family::Entities, keys::entity_key(id)),
        }
        commit.report.entities += 1;
        Ok(())
    }
}
