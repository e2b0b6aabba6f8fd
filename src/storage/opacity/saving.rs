//! Writing the opacity map along with what it is made of.

use super::batch_opacity::BatchOpacity;
use super::unwritten::{TileChanges, TilePlace};
use crate::chunk::Chunk;
use crate::space::ChunkPos;
use crate::storage::commit::Commit;
use crate::storage::values::blocks::OpaqueBlocks;
use crate::storage::{CommitReport, Durability, Family, SaveBatch, StoreError, WorldStore, WriteBatch, envelope, keys};
use std::collections::BTreeMap;

impl WorldStore {
    /// What a batch of the store changes of the map.
    pub(in crate::storage) fn add_opacity(&self, batch: &SaveBatch, commit: &mut Commit) -> Result<(), StoreError> {
        let mut changed: BTreeMap<TilePlace, Vec<(ChunkPos, &Chunk)>> = BTreeMap::new();
        for (&(dimension, pos), chunk) in &batch.chunks {
            changed.entry((dimension, pos.column().batch())).or_default().push((pos, chunk));
        }
        let blocks = self.known_blocks()?;
        for (place, chunks) in changed {
            self.change_opacity(place, &chunks, blocks.opaque(), batch, commit)?;
        }
        for (place, value) in self.unwritten_opacity.due(self.play_time(), &commit.tiles) {
            commit.writes.put(Family::Opacity, keys::opacity_key(place.0, place.1), value);
            commit.tiles.insert(place, None);
        }
        Ok(())
    }

    /// What these chunks change of a tile.
    fn change_opacity(
        &self,
        place: TilePlace,
        chunks: &[(ChunkPos, &Chunk)],
        opaque: Option<&OpaqueBlocks>,
        batch: &SaveBatch,
        commit: &mut Commit,
    ) -> Result<(), StoreError> {
        let key = keys::opacity_key(place.0, place.1);
        let unwritten = self.unwritten_opacity.get(place);
        let is_unwritten = unwritten.is_some();
        let old = match unwritten {
            None => self.read_to_replace(Family::Opacity, &[&key], &mut commit.report)?.pop().flatten(),
            unwritten => unwritten,
        };
        let is_new = old.is_none() && self.is_new(batch, place)?;
        let new = match opaque {
            None => None,
            Some(_) if is_new => Some(BatchOpacity::default()),
            Some(opaque) => self.opacity_before(place, old.as_deref(), opaque, &mut commit.report)?,
        };
        let new = opaque.zip(new).map(|(opaque, mut tile)| {
            for (pos, chunk) in chunks {
                tile.set_chunk(pos.column(), pos.y, chunk, |block| opaque.contains(block));
            }
            seal(&tile, opaque)
        });
        if new == old {
            return Ok(());
        }
        if let Some(value) = new.as_ref().filter(|_| is_new) {
            commit.writes.put(Family::Opacity, key, value.clone());
            return Ok(());
        }
        if old.is_some() && !is_unwritten {
            commit.writes.delete(Family::Opacity, key);
        }
        // Without a value, whoever asks for it has it made anew.
        commit.tiles.insert(place, new);
        Ok(())
    }

    /// What was opaque before a commit, by the stored value or else by the chunks; `None` if a chunk that cannot be read keeps
    /// it a secret, which must not keep others from being saved.
    fn opacity_before(
        &self,
        place: TilePlace,
        stored: Option<&[u8]>,
        opaque: &OpaqueBlocks,
        report: &mut CommitReport,
    ) -> Result<Option<BatchOpacity>, StoreError> {
        match stored.map(|value| self.read_opacity(place, value, Some(opaque))) {
            Some(Ok(Some(tile))) => return Ok(Some(tile)),
            Some(Err(error)) => report.replaced.push(error),
            Some(Ok(None)) | None => {}
        }
        match self.opacity_of_chunks(place, opaque) {
            Err(error) if error.is_damage() || matches!(error, StoreError::Unmigrated { .. }) => Ok(None),
            tile => tile.map(Some),
        }
    }

    /// Whether nothing is stored of these columns yet, as the graph says that is saved with the first of them.
    fn is_new(&self, batch: &SaveBatch, (dimension, area): TilePlace) -> Result<bool, StoreError> {
        let tile = area.tile();
        if !batch.tiles.contains_key(&(dimension, tile)) {
            return Ok(false);
        }
        match self.stored_tile(dimension, tile) {
            // This commit replaces it.
            Err(error) if error.is_damage() => Ok(false),
            masks => Ok(masks?.is_none_or(|masks| masks[area.in_tile()] == 0)),
        }
    }

    /// Writes what changed of the opacity map, for when the world is closed.
    pub(crate) fn save_opacity(&self) -> Result<(), StoreError> {
        let _writing = self.lock_writes();
        let (mut writes, mut written) = (WriteBatch::default(), TileChanges::new());
        for (place, value) in self.unwritten_opacity.all() {
            writes.put(Family::Opacity, keys::opacity_key(place.0, place.1), value);
            written.insert(place, None);
        }
        if !writes.is_empty() {
            self.write(writes, Durability::Process)?;
        }
        self.unwritten_opacity.apply(written, self.play_time());
        Ok(())
    }
}

/// The value that a tile is stored as.
fn seal(tile: &BatchOpacity, opaque: &OpaqueBlocks) -> Vec<u8> {
    let mut value = envelope::unsealed();
    value.extend(opaque.fingerprint().to_le_bytes());
    tile.encode(&mut value);
    // Nobody asks how often a tile changed.
    envelope::seal(&mut value, 0);
    value
}
