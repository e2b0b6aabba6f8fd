//! The opacity map: which blocks of each block column are opaque, one [`OpacityTile`] for each batch of columns. It follows
//! the stored chunks: of new ground it is written with the chunks, and a commit that changes others removes what the store
//! has of the map there. The changed tile is kept in memory, and written some minutes later or at the end.

pub(super) mod tile;
pub(super) mod unwritten;

use super::commit::Commit;
use super::values::blocks::OpaqueBlocks;
use super::{Durability, Family, SaveBatch, StoreError, StoredItem, WorldStore, WriteBatch, envelope, keys};
use crate::chunk::Chunk;
use crate::space::{BatchPos, CHUNK_COORDINATES, ChunkPos, ColumnPos, DimensionId};
use std::collections::BTreeMap;
use tile::OpacityTile;
use unwritten::TileChanges;

/// Bytes of the fingerprint before the tile.
const FINGERPRINT: usize = size_of::<u32>();

impl WorldStore {
    /// Which blocks of a batch of columns are opaque, as they are stored. What nobody has said the opacity of is opaque.
    ///
    /// It is one value to read, unless the map is lost or damaged, or was made when other types of blocks were opaque: then
    /// it is made from the chunks.
    pub fn opacity(&self, dimension: DimensionId, batch: BatchPos) -> Result<OpacityTile, StoreError> {
        let (blocks, unknown) = (self.known_blocks()?, OpaqueBlocks::unknown());
        let opaque = blocks.opaque().unwrap_or(&unknown);
        let value = match self.unwritten_opacity.get((dimension, batch)) {
            None => self.store.get(Family::Opacity, &keys::opacity_key(dimension, batch))?,
            unwritten => unwritten,
        };
        let known = value.map(|value| self.read_opacity(dimension, batch, &value, opaque));
        match known {
            Some(Ok(Some(tile))) => Ok(tile),
            Some(Err(error)) => {
                bevy::log::warn!("{error}; it is made anew from the chunks");
                self.opacity_of_chunks(dimension, batch, opaque)
            }
            Some(Ok(None)) | None => self.opacity_of_chunks(dimension, batch, opaque),
        }
    }

    /// The stored tile; `None` if it was made when other types of blocks were opaque.
    fn read_opacity(
        &self,
        dimension: DimensionId,
        batch: BatchPos,
        value: &[u8],
        opaque: &OpaqueBlocks,
    ) -> Result<Option<OpacityTile>, StoreError> {
        let damaged = |reason: String| self.corrupt(StoredItem::Opacity(dimension, batch), reason);
        let (fingerprint, tile) = open(value).map_err(damaged)?;
        if fingerprint != opaque.fingerprint() {
            return Ok(None);
        }
        OpacityTile::decode(tile).map(Some).map_err(|error| damaged(error.to_string()))
    }

    fn opacity_of_chunks(
        &self,
        dimension: DimensionId,
        batch: BatchPos,
        opaque: &OpaqueBlocks,
    ) -> Result<OpacityTile, StoreError> {
        let columns: Vec<ColumnPos> = batch.columns().collect();
        let mut tile = OpacityTile::default();
        for stored in self.peek_batch(dimension, batch, &columns, CHUNK_COORDINATES)? {
            for (y, chunk) in stored.column.chunks() {
                tile.set_chunk(stored.column.pos(), y, chunk, |block| opaque.contains(block));
            }
        }
        Ok(tile)
    }

    /// What a batch of the store changes of the map.
    pub(super) fn add_opacity(&self, batch: &SaveBatch, commit: &mut Commit) -> Result<(), StoreError> {
        let mut changed: BTreeMap<(DimensionId, BatchPos), Vec<(ChunkPos, &Chunk)>> = BTreeMap::new();
        for (&(dimension, pos), chunk) in &batch.chunks {
            changed.entry((dimension, pos.column().batch())).or_default().push((pos, chunk));
        }
        let blocks = self.known_blocks()?;
        let opaque = blocks.opaque();
        for ((dimension, area), chunks) in changed {
            let place = (dimension, area);
            let unwritten = self.unwritten_opacity.get(place);
            let (key, is_unwritten) = (keys::opacity_key(dimension, area), unwritten.is_some());
            let old = match unwritten {
                None => self.read_to_replace(Family::Opacity, &[&key], &mut commit.report)?.pop().flatten(),
                unwritten => unwritten,
            };
            let is_new = old.is_none() && self.is_new(batch, dimension, area)?;
            let known = match (opaque, old.as_deref()) {
                (None, _) => None,
                (Some(opaque), Some(value)) => match self.read_opacity(dimension, area, value, opaque) {
                    Ok(Some(tile)) => Some((opaque, tile)),
                    Ok(None) => self.opacity_before(dimension, area, opaque)?,
                    Err(error) => {
                        commit.report.replaced.push(error);
                        self.opacity_before(dimension, area, opaque)?
                    }
                },
                (Some(opaque), None) if is_new => Some((opaque, OpacityTile::default())),
                (Some(opaque), None) => self.opacity_before(dimension, area, opaque)?,
            };
            let new = known.map(|(opaque, mut tile)| {
                for (pos, chunk) in chunks {
                    tile.set_chunk(pos.column(), pos.y, chunk, |block| opaque.contains(block));
                }
                seal(&tile, opaque)
            });
            if new == old {
                continue;
            }
            if let Some(value) = new.as_ref().filter(|_| is_new) {
                commit.writes.put(Family::Opacity, key, value.clone());
                continue;
            }
            if old.is_some() && !is_unwritten {
                commit.writes.delete(Family::Opacity, key);
            }
            // Without a value, whoever asks for it has it made anew.
            commit.tiles.insert(place, new);
        }
        let due = self.unwritten_opacity.due(self.play_time(), &commit.tiles);
        for ((dimension, area), value) in due {
            commit.writes.put(Family::Opacity, keys::opacity_key(dimension, area), value);
            commit.tiles.insert((dimension, area), None);
        }
        Ok(())
    }

    /// Writes what changed of the opacity map, for when the world is closed.
    pub(crate) fn save_opacity(&self) -> Result<(), StoreError> {
        let _writing = self.lock_writes();
        let (mut writes, mut written) = (WriteBatch::default(), TileChanges::new());
        for ((dimension, area), value) in self.unwritten_opacity.all() {
            writes.put(Family::Opacity, keys::opacity_key(dimension, area), value);
            written.insert((dimension, area), None);
        }
        if !writes.is_empty() {
            self.write(writes, Durability::Process)?;
        }
        self.unwritten_opacity.apply(written, self.play_time());
        Ok(())
    }

    /// What was opaque before a commit; `None` if a chunk that cannot be read keeps it a secret, which must not keep others from
    /// being saved.
    fn opacity_before<'a>(
        &self,
        dimension: DimensionId,
        batch: BatchPos,
        opaque: &'a OpaqueBlocks,
    ) -> Result<Option<(&'a OpaqueBlocks, OpacityTile)>, StoreError> {
        match self.opacity_of_chunks(dimension, batch, opaque) {
            Err(StoreError::Corrupt { .. } | StoreError::Unmigrated { .. } | StoreError::Damaged { .. }) => Ok(None),
            tile => Ok(Some((opaque, tile?))),
        }
    }

    /// Whether nothing is stored of these columns yet, as the graph says that is saved with the first of them.
    fn is_new(&self, batch: &SaveBatch, dimension: DimensionId, area: BatchPos) -> Result<bool, StoreError> {
        let tile = area.tile();
        if !batch.tiles.contains_key(&(dimension, tile)) {
            return Ok(false);
        }
        match self.stored_tile(dimension, tile) {
            Ok(None) => Ok(true),
            Ok(Some(masks)) => Ok(masks[area.in_tile()] == 0),
            // This commit replaces it.
            Err(StoreError::Corrupt { .. } | StoreError::Damaged { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// The value that a tile is stored as.
fn seal(tile: &OpacityTile, opaque: &OpaqueBlocks) -> Vec<u8> {
    let mut value = envelope::unsealed();
    value.extend(opaque.fingerprint().to_le_bytes());
    tile.encode(&mut value);
    // Nobody asks how often a tile changed.
    envelope::seal(&mut value, 0);
    value
}

/// The fingerprint of the list that a stored tile was made with, and the tile. The reason, if there is none.
pub(super) fn open(value: &[u8]) -> Result<(u32, &[u8]), String> {
    let opened = envelope::open(value).map_err(|error| error.to_string())?;
    let (fingerprint, tile) = opened.payload.split_first_chunk::<FINGERPRINT>().ok_or("it ends too early")?;
    Ok((u32::from_le_bytes(*fingerprint), tile))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{BlockComponent, BlockId, BlockRegistry, BlockType, Schema};
    use crate::storage::RegistryLists;
    use crate::storage::backends::test_store::TestStore;
    use crate::storage::{KeyValueStore, values::tiles};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::sync::Arc;
    use std::time::Duration;

    const DIMENSION: DimensionId = DimensionId(0);
    const STONE: BlockId = BlockId::new(1);
    const GLASS: BlockId = BlockId::new(2);
    const OPAQUE: [bool; 3] = [false, true, false];

    fn open(store: &TestStore, opaque: [bool; 3]) -> WorldStore {
        let world = store.world();
        let mut blocks = BlockRegistry::new();
        for (id, name) in [(1, "game:stone"), (2, "game:glass")] {
            let block = BlockType::new(name);
            blocks.register(if opaque[id] { block } else { block.transparent() }).unwrap();
        }
        world.set_blocks(Arc::new(blocks));
        world
    }

    fn save(world: &WorldStore, chunks: impl IntoIterator<Item = (ChunkPos, Chunk)>) -> super::super::CommitReport {
        let chunks = chunks.into_iter().map(|(pos, chunk)| ((DIMENSION, pos), Arc::new(chunk)));
        let batch = SaveBatch { chunks: chunks.collect(), ..SaveBatch::default() };
        world.commit(&batch, Durability::Process).unwrap()
    }

    /// A slab of one block at the height 3 of a chunk of another.
    fn slab(block: BlockId, other: BlockId) -> Chunk {
        Chunk::from_fn(|[_, y, _]| if y == 3 { block } else { other })
    }

    fn stored_value(store: &TestStore, batch: BatchPos) -> Option<Vec<u8>> {
        store.get(Family::Opacity, &keys::opacity_key(DIMENSION, batch)).unwrap()
    }

    #[test]
    fn edits_are_seen_and_nothing_is_written_that_stays_as_it_was() {
        let store = TestStore::default();
        let world = open(&store, OPAQUE);
        let (pos, batch) = (ChunkPos::new(-3, 2, 5), BatchPos::new(-1, 1));
        assert_eq!(world.opacity(DIMENSION, batch).unwrap(), OpacityTile::default());
        save(&world, [(pos, slab(STONE, GLASS))]);
        assert_eq!(world.opacity(DIMENSION, batch).unwrap().highest(16, 16), Some(35));
        world.save_opacity().unwrap();
        let before = stored_value(&store, batch);
        save(&world, [(pos, slab(STONE, BlockId::AIR))]);
        assert!(before.is_some() && stored_value(&store, batch) == before, "glass hides as little as air");
        save(&world, [(pos, slab(GLASS, BlockId::AIR))]);
        assert_eq!(world.opacity(DIMENSION, batch).unwrap().highest(16, 16), None);
        assert_eq!(stored_value(&store, batch), None, "what is not true any more is not stored");
    }

    #[test]
    fn a_tile_that_changes_is_written_minutes_later_or_made_anew_after_a_crash() {
        let store = TestStore::default();
        let (pos, batch) = (ChunkPos::new(1, 0, 1), BatchPos::new(0, 0));
        let mut graph = BTreeMap::new();
        tiles::insert(&mut graph, pos.column());
        let new = SaveBatch {
            chunks: [((DIMENSION, pos), Arc::new(slab(STONE, BlockId::AIR)))].into(),
            tiles: graph.into_iter().map(|(tile, masks)| ((DIMENSION, tile), masks)).collect(),
            ..SaveBatch::default()
        };
        let highest = |world: &WorldStore| world.opacity(DIMENSION, batch).unwrap().highest(16, 16);
        let above = |y: i64| [(ChunkPos::new(1, y, 1), slab(STONE, BlockId::AIR))];
        {
            let world = open(&store, OPAQUE);
            world.commit(&new, Durability::Process).unwrap();
            assert!(stored_value(&store, batch).is_some(), "of new ground it is written at once");
            save(&world, above(1));
            assert_eq!((highest(&world), stored_value(&store, batch)), (Some(19), None));
        }
        let world = open(&store, OPAQUE);
        assert_eq!(highest(&world), Some(19), "after a crash");
        save(&world, above(2));
        world.set_session_time(Duration::from_secs(299));
        save(&world, above(3));
        assert_eq!((highest(&world), stored_value(&store, batch)), (Some(51), None));
        world.set_session_time(Duration::from_secs(300));
        let elsewhere = [(ChunkPos::new(100, 0, 0), slab(STONE, BlockId::AIR))];
        save(&world, elsewhere);
        assert!(stored_value(&store, batch).is_some());
        // A commit that fails changes nothing of what is known.
        store.fail_writes(true);
        let batch_above = SaveBatch {
            chunks: above(9).into_iter().map(|(pos, chunk)| ((DIMENSION, pos), Arc::new(chunk))).collect(),
            ..SaveBatch::default()
        };
        assert!(world.commit(&batch_above, Durability::Process).is_err());
        store.fail_writes(false);
        assert_eq!((highest(&world), highest(&open(&store, OPAQUE))), (Some(51), Some(51)));
    }

    #[test]
    fn a_map_that_is_lost_or_damaged_or_says_something_else_is_made_anew() {
        let store = TestStore::default();
        let (pos, batch) = (ChunkPos::new(1, 0, 1), BatchPos::new(0, 0));
        // Nobody has said yet what is opaque.
        save(&store.world(), [(pos, slab(STONE, BlockId::AIR))]);
        assert_eq!(stored_value(&store, batch), None);
        let highest = |world: &WorldStore| world.opacity(DIMENSION, batch).unwrap().highest(16, 16);
        let world = open(&store, OPAQUE);
        assert_eq!(highest(&world), Some(3));
        let above = |y: i64| [(ChunkPos::new(1, y, 1), slab(GLASS, BlockId::AIR))];
        save(&world, above(1));
        assert_eq!(highest(&world), Some(3), "what was there before is in it");
        // Glass hides what is behind it now.
        let world = open(&store, [false, true, true]);
        assert_eq!(highest(&world), Some(19));
        save(&world, above(2));
        world.save_opacity().unwrap();
        assert_eq!(highest(&world), Some(35));
        store.tamper(Family::Opacity, &keys::opacity_key(DIMENSION, batch), |value| value[20] ^= 1);
        assert_eq!(highest(&world), Some(35));
        let report = save(&world, above(3));
        world.save_opacity().unwrap();
        assert!(report.replaced[0].to_string().contains("opacity"), "{:?}", report.replaced);
        assert_eq!((highest(&world), report.replaced.len()), (Some(51), 1));
        assert!(save(&world, above(4)).replaced.is_empty());
    }

    #[test]
    fn a_damaged_chunk_keeps_nothing_else_from_being_saved() {
        let store = TestStore::default();
        let (damaged, whole, batch) = (ChunkPos::new(0, 0, 0), ChunkPos::new(1, 0, 1), BatchPos::new(0, 0));
        save(&store.world(), [(damaged, slab(STONE, BlockId::AIR))]);
        store.tamper(Family::Chunks, &keys::chunk_key(DIMENSION, damaged), |value| value[30] ^= 1);
        let world = open(&store, OPAQUE);
        assert!(matches!(
            world.opacity(DIMENSION, batch),
            Err(StoreError::Corrupt { what: StoredItem::Chunk(..), .. })
        ));
        assert_eq!(save(&world, [(whole, slab(STONE, BlockId::AIR))]).chunks, 1);
        assert_eq!(stored_value(&store, batch), None);
        // It is whole again when the chunk is.
        save(&world, [(damaged, slab(GLASS, BlockId::AIR))]);
        save(&world, [(damaged, slab(STONE, BlockId::AIR))]);
        let tile = world.opacity(DIMENSION, batch).unwrap();
        assert_eq!((tile.highest(0, 0), tile.highest(16, 16)), (Some(3), Some(3)));
        world.save_opacity().unwrap();
        assert!(stored_value(&store, batch).is_some());
    }

    #[test]
    fn a_chunk_that_cannot_be_migrated_keeps_nothing_else_from_being_saved() {
        let (store, mut old) = (TestStore::default(), BlockRegistry::new());
        old.register_component(BlockComponent::fixed::<u8>("game:lock")).unwrap();
        let chest = BlockType::new("game:chest").with_component("game:lock");
        let id = old.register(chest.clone()).unwrap();
        let (blocks, components): (Vec<_>, Vec<_>) =
            (old.block_records().collect(), old.component_records().cloned().collect());
        let world = store.world();
        let lists =
            RegistryLists { blocks: blocks.clone(), components: components.clone(), ..RegistryLists::default() };
        world.save_registry_lists(&lists).unwrap();
        let (refused, whole, batch) = (ChunkPos::new(0, 0, 0), ChunkPos::new(1, 0, 1), BatchPos::new(0, 0));
        save(&world, [(refused, slab(id, BlockId::AIR))]);

        let mut new = BlockRegistry::from_records(blocks, components).unwrap();
        let schema = Schema::new(1).with_migration(0, |_| Err("no key fits".into()));
        new.register_component(BlockComponent::fixed::<u16>("game:lock").with_schema(schema)).unwrap();
        new.register(chest).unwrap();
        world.set_blocks(Arc::new(new));
        assert!(matches!(world.opacity(DIMENSION, batch), Err(StoreError::Unmigrated { .. })));
        assert_eq!(save(&world, [(whole, slab(id, BlockId::AIR))]).chunks, 1);
        assert_eq!(stored_value(&store, batch), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Whatever is saved, with the graph or without, in whatever batches: the map is that of the stored chunks.
        #[test]
        fn the_map_follows_the_chunks(
            commits in vec((vec((-5..5_i64, -2..3_i64, -5..5_i64, 0..3_u32, 0..3_u32), 1..6), any::<bool>(), 0..200_u64), 1..8),
            is_saved: bool,
        ) {
            let store = TestStore::default();
            let world = open(&store, OPAQUE);
            let mut graph = BTreeMap::new();
            let mut known = BTreeMap::new();
            let mut seconds = 0;
            for (chunks, with_graph, later) in commits {
                seconds += later;
                world.set_session_time(Duration::from_secs(seconds));
                let mut batch = SaveBatch::default();
                for (x, y, z, block, other) in chunks {
                    let (pos, chunk) = (ChunkPos::new(x, y, z), slab(BlockId::new(block), BlockId::new(other)));
                    known.insert(pos, chunk.clone());
                    batch.chunks.insert((DIMENSION, pos), Arc::new(chunk));
                    tiles::insert(&mut graph, pos.column());
                }
                if with_graph {
                    for (dimension, pos) in batch.chunks.keys() {
                        let tile = pos.column().tile();
                        batch.tiles.insert((*dimension, tile), graph[&tile]);
                    }
                }
                world.commit(&batch, Durability::Process).unwrap();
            }
            if is_saved {
                world.save_opacity().unwrap();
            }
            let reopened = open(&store, OPAQUE);
            for batch in (-2..2).flat_map(|x| (-2..2).map(move |z| BatchPos::new(x, z))) {
                let mut expected = OpacityTile::default();
                for (pos, chunk) in known.iter().filter(|(pos, _)| pos.column().batch() == batch) {
                    expected.set_chunk(pos.column(), pos.y, chunk, |block| OPAQUE[block.index() as usize]);
                }
                prop_assert_eq!(&world.opacity(DIMENSION, batch).unwrap(), &expected);
                prop_assert_eq!(reopened.opacity(DIMENSION, batch).unwrap(), expected);
            }
        }
    }
}
