//! Writing a world.

use super::{
    Durability, EntityRecord, Family, SaveBatch, StoreError, StoredItem, WorldStore, WriteBatch, block_ticks, envelope,
    keys, tiles,
};
use crate::block::BlockId;
use crate::chunk::Chunk;
use crate::space::{ChunkPos, DimensionId};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// How many stored values are held at a time to compare them with new ones.
const COMPARED_AT_ONCE: usize = 256;

/// What a commit did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitReport {
    /// Bytes of all keys and values that were written.
    pub bytes: u64,
    /// Chunks that were written; those that are stored just so already do not count.
    pub chunks: usize,
    /// Chunks whose block ticks were written or removed; those that are stored just so already do not count.
    pub block_ticks: usize,
    /// Entities that were written or removed; those that are stored just so already do not count.
    pub entities: usize,
    /// How long it took.
    pub duration: Duration,
    /// Damaged values that were found and replaced by whole ones. What could be read of them is
    /// [kept](WorldStore::set_aside).
    pub replaced: Vec<StoreError>,
}

/// A commit as it is put together.
#[derive(Default)]
pub(super) struct Commit {
    pub writes: WriteBatch,
    pub report: CommitReport,
}

impl WorldStore {
    /// Saves the whole batch or, on an error, nothing of it.
    ///
    /// A chunk that changes a stored one gets its version + 1. A chunk of air that nothing is stored of stays so,
    /// because that is what is read as air; but for [sparse](Self::make_sparse) dimensions.
    pub fn commit(&self, batch: &SaveBatch, durability: Durability) -> Result<CommitReport, StoreError> {
        let start = Instant::now();
        let _writing = self.lock_writes();
        let mut commit = Commit::default();
        self.add_chunks(batch, &mut commit)?;
        self.add_block_ticks(batch, &mut commit)?;
        self.add_entities(batch, &mut commit)?;
        self.add_summaries(batch, &mut commit)?;
        self.add_opacity(batch, &mut commit)?;
        self.add_pregenerations(batch, &mut commit)?;
        for (&(dimension, (x, z)), masks) in &batch.tiles {
            commit.writes.put(Family::Meta, keys::tile_key(dimension, x, z), tiles::encode(masks));
        }

        commit.report.bytes = commit.writes.bytes();
        if !commit.writes.is_empty() {
            self.write(commit.writes, durability)?;
        } else if durability == Durability::Sync {
            self.store.sync()?;
        }
        commit.report.duration = start.elapsed();
        Ok(commit.report)
    }

    fn add_chunks(&self, batch: &SaveBatch, commit: &mut Commit) -> Result<(), StoreError> {
        type Place = (DimensionId, ChunkPos);
        let mut chunks: Vec<([u8; keys::CHUNK_KEY_LENGTH], Place, &Chunk)> = batch
            .chunks
            .iter()
            .map(|(&(dimension, pos), chunk)| (keys::chunk_key(dimension, pos), (dimension, pos), &**chunk))
            .collect();
        chunks.sort_unstable_by_key(|(key, ..)| *key);
        let blocks = self.known_blocks()?;
        let dimensions: BTreeSet<DimensionId> = chunks.iter().map(|(_, (dimension, _), _)| *dimension).collect();
        let (mut sparse, mut outdated) = (BTreeSet::new(), BTreeSet::new());
        for dimension in dimensions {
            if self.is_sparse(dimension)? {
                sparse.insert(dimension);
            }
        }
        for chunks in chunks.chunks(COMPARED_AT_ONCE) {
            let stored = chunks.iter().map(|(key, ..)| &key[..]).collect::<Vec<_>>();
            let stored = self.read_to_replace(Family::Chunks, &stored, &mut commit.report)?;
            for ((key, (dimension, pos), chunk), stored) in chunks.iter().zip(stored) {
                let mut value = envelope::unsealed();
                self.encode_chunk(&blocks, (*dimension, *pos), chunk, &mut value)?;
                let version = match stored.as_deref().map(|stored| (stored, envelope::open(stored))) {
                    None if chunk.uniform_block() == Some(BlockId::AIR) && !sparse.contains(dimension) => continue,
                    None => 0,
                    Some((_, Ok(stored))) if stored.payload == &value[envelope::HEADER_LENGTH..] => continue,
                    Some((_, Ok(stored))) => stored.version.saturating_add(1),
                    Some((stored, Err(error))) => {
                        // The world goes on with what is in memory; refusing it would lose that too.
                        commit.report.replaced.push(self.corrupt(StoredItem::Chunk(*dimension, *pos), error));
                        commit.set_aside(Family::Chunks, key, stored);
                        envelope::claimed_version(stored).saturating_add(1)
                    }
                };
                envelope::seal(&mut value, version);
                commit.writes.put(Family::Chunks, *key, value);
                commit.report.chunks += 1;
                if sparse.contains(dimension) {
                    outdated.insert(keys::summary_key(*dimension, pos.column()));
                }
            }
        }
        // From the time when the dimension was not sparse.
        outdated.into_iter().for_each(|key| commit.writes.delete(Family::Meta, key));
        Ok(())
    }

    fn add_block_ticks(&self, batch: &SaveBatch, commit: &mut Commit) -> Result<(), StoreError> {
        let lists: Vec<_> = batch
            .block_ticks
            .iter()
            .map(|(&(dimension, pos), ticks)| (keys::block_ticks_key(dimension, pos), (dimension, pos), ticks))
            .collect();
        for lists in lists.chunks(COMPARED_AT_ONCE) {
            let stored = lists.iter().map(|(key, ..)| &key[..]).collect::<Vec<_>>();
            let stored = self.read_to_replace(Family::Meta, &stored, &mut commit.report)?;
            for ((key, (dimension, pos), ticks), stored) in lists.iter().zip(stored) {
                let damaged = |reason| self.corrupt(StoredItem::BlockTicks(*dimension, *pos), reason);
                let old = stored.as_deref().map(|stored| (stored, envelope::open(stored)));
                if let Some((stored, Err(error))) = old {
                    commit.report.replaced.push(damaged(error.to_string()));
                    commit.set_aside(Family::Meta, key, stored);
                }
                if ticks.is_empty() {
                    if old.is_some() {
                        commit.writes.delete(Family::Meta, key.clone());
                        commit.report.block_ticks += 1;
                    }
                    continue;
                }
                let payload = block_ticks::encode(*pos, ticks).map_err(damaged)?;
                let version = match old {
                    None => 0,
                    Some((_, Ok(old))) if old.payload == payload => continue,
                    Some((_, Ok(old))) => old.version.saturating_add(1),
                    Some((stored, Err(_))) => envelope::claimed_version(stored).saturating_add(1),
                };
                let mut value = envelope::unsealed();
                value.extend(payload);
                envelope::seal(&mut value, version);
                commit.writes.put(Family::Meta, key.clone(), value);
                commit.report.block_ticks += 1;
            }
        }
        Ok(())
    }

    fn add_entities(&self, batch: &SaveBatch, commit: &mut Commit) -> Result<(), StoreError> {
        let entities: Vec<(Uuid, Option<&EntityRecord>)> =
            batch.entities.iter().map(|(id, entity)| (*id, entity.as_ref())).collect();
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
        let item = || StoredItem::Entity(id);
        if entity.is_some_and(|entity| entity.id != id) {
            return Err(self.corrupt(item(), "the batch holds the record of another entity under this id"));
        }
        let encode = |entity: &EntityRecord| entity.to_bytes().map_err(|reason| self.corrupt(item(), reason));
        let value = entity.map(encode).transpose()?;
        if stored == value {
            return Ok(());
        }
        // Of a damaged record the old place is unknown. The place key that stays behind is ignored when read.
        let old = stored.and_then(|stored| {
            let damaged = |error| {
                commit.report.replaced.push(error);
                commit.set_aside(Family::Entities, &keys::entity_key(id), &stored);
            };
            self.entity_record(id, &stored).map_err(damaged).ok()
        });
        let (old, new) = (old.as_ref().map(EntityRecord::index_keys), entity.map(EntityRecord::index_keys));
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
