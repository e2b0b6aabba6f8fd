//! Stored ground that cannot be read: it is rejected or regenerated.

use crate::block::BlockId;
use crate::chunk::Chunk;
use crate::simulation::ColumnSource;
use crate::space::{ChunkPos, ColumnPos};
use crate::storage::{StoreError, StoredItem, WorldStore};
use std::collections::BTreeSet;
use std::mem;
use std::sync::{Arc, PoisonError};

impl ColumnSource {
    /// Takes the chunks regenerated since the last call, each with the error that was found.
    pub fn take_regenerated(&self) -> Vec<(ChunkPos, StoreError)> {
        let Some(regenerated) = &self.regenerated else { return Vec::new() };
        mem::take(&mut regenerated.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads data of a column, after regenerating the chunks of it that turn out to be damaged, if that is enabled.
    ///
    /// # Errors
    /// Any error of `read` that is not about a chunk of the column, or about a chunk that may not or cannot be regenerated.
    pub fn read_repaired<T>(
        &self,
        store: &WorldStore,
        column: ColumnPos,
        read: impl Fn(&WorldStore) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let Some(regenerated) = &self.regenerated else { return read(store) };
        let mut made = BTreeSet::new();
        loop {
            let error = match read(store) {
                Err(error) => error,
                read => return read,
            };
            let chunk = match error {
                StoreError::Corrupt { what: StoredItem::Chunk(dimension, chunk), .. }
                    if dimension == self.dimension && chunk.column() == column && made.insert(chunk) =>
                {
                    chunk
                }
                error => return Err(error),
            };
            let Some(blocks) = self.generate_chunk(chunk) else { return Err(error) };
            if store.replace_damaged(self.dimension, chunk, blocks)? {
                regenerated.lock().unwrap_or_else(PoisonError::into_inner).push((chunk, error));
            }
        }
    }

    /// Generates the chunk, if the generator can.
    fn generate_chunk(&self, chunk: ChunkPos) -> Option<Arc<Chunk>> {
        // In a dimension that is not sparse, the generator need not support making a part of a column.
        let heights = if self.is_sparse { chunk.y..chunk.y + 1 } else { self.chunk_heights.clone() };
        let column = self.generate(chunk.column(), heights).ok()?;
        Some(column.chunk(chunk.y).cloned().unwrap_or_else(|| Arc::new(Chunk::uniform(BlockId::AIR))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BlockRegistry;
    use crate::chunk::Column;
    use crate::generation::{Flat, GenerateError, GenerateRequest, Generator, GeneratorIdentity};
    use crate::space::{DimensionId, HeightSet};
    use crate::storage::{Durability, Family, KeyValueStore, MemoryStore, SaveBatch, WriteBatch, envelope, keys};

    const DIMENSION: DimensionId = DimensionId(0);
    const COLUMN: ColumnPos = ColumnPos::new(2, -3);

    /// A generator that always fails.
    struct Broken;

    impl Generator for Broken {
        fn identity(&self) -> GeneratorIdentity {
            GeneratorIdentity::new("broken", 1, 0)
        }

        fn generate(&self, _request: &GenerateRequest) -> Result<Column, GenerateError> {
            Err(GenerateError::UnknownBlock { name: "game:ground".into(), nearest: None })
        }
    }

    /// Ground of four stored chunks, with damaged chunks at these heights.
    fn ground(regenerates_damaged: bool, is_sparse: bool, damaged: &[i64]) -> (ColumnSource, Arc<WorldStore>) {
        let disk = Arc::new(MemoryStore::new());
        let store = Arc::new(WorldStore::from_store(disk.clone()).unwrap());
        if is_sparse {
            store.make_sparse(DIMENSION).unwrap();
        }
        let chunk = Arc::new(Chunk::uniform(BlockId::new(3)));
        let chunks = (-2..2).map(|y| ((DIMENSION, COLUMN.chunk(y)), chunk.clone())).collect();
        store.commit(&SaveBatch { chunks, ..SaveBatch::default() }, Durability::Sync).unwrap();
        for height in damaged {
            let mut writes = WriteBatch::default();
            writes.put(Family::Chunks, keys::chunk_key(DIMENSION, COLUMN.chunk(*height)), vec![7; 40]);
            // Written past the world.
            disk.write(writes, Durability::Sync).unwrap();
        }
        let mut blocks = BlockRegistry::new();
        blocks.register_basic_blocks();
        let whole =
            ColumnSource::new(DIMENSION, -64..64, Arc::new(Flat::new()), Arc::new(blocks), Arc::downgrade(&store));
        let ground = ColumnSource { is_sparse, regenerated: regenerates_damaged.then(Default::default), ..whole };
        (ground, store)
    }

    fn read(ground: &ColumnSource) -> Result<Column, String> {
        let heights = HeightSet::from(-2..2);
        ground.stored(COLUMN, &heights).map_err(|error| error.to_string())
    }

    /// Promise, crashes: With `regenerate_damaged`, a damaged chunk is generated again and reported, and its old value is
    /// kept.
    #[test]
    fn damaged_chunks_are_regenerated_once_in_every_kind_of_dimension() {
        for is_sparse in [false, true] {
            let (ground, store) = ground(true, is_sparse, &[-1, 1]);
            let found = read(&ground).unwrap();
            let request = GenerateRequest { column: COLUMN, heights: -64..64, blocks: &ground.blocks };
            let generated = ground.generator.generate(&request).unwrap();
            let is_new = |y| found.chunk(y) == generated.chunk(y);
            assert_eq!([-2, -1, 0, 1].map(is_new), [false, true, false, true]);
            assert_eq!(found.chunk(0), Some(&Arc::new(Chunk::uniform(BlockId::new(3)))));
            let told = ground.take_regenerated();
            assert_eq!(told.iter().map(|made| made.0.y).collect::<BTreeSet<_>>(), BTreeSet::from([-1, 1]));
            assert!(told.iter().all(|made| made.1.to_string().contains(&made.0.to_string())));
            assert_eq!(store.set_aside().unwrap().len(), 2);
            // The regenerated chunks are stored now.
            assert_eq!(read(&ground), Ok(found));
            assert!(ground.take_regenerated().is_empty());
        }
    }

    #[test]
    fn an_undecodable_chunk_with_a_valid_checksum_is_set_aside() {
        let disk = Arc::new(MemoryStore::new());
        let (mut ground, _) = ground(true, false, &[]);
        let store = Arc::new(WorldStore::from_store(disk.clone()).unwrap());
        ground.store = Arc::downgrade(&store);
        let value = envelope::sealed(3, &[9; 30]);
        let mut writes = WriteBatch::default();
        writes.put(Family::Chunks, keys::chunk_key(DIMENSION, COLUMN.chunk(0)), value.clone());
        disk.write(writes, Durability::Sync).unwrap();
        read(&ground).unwrap();
        assert_eq!(ground.take_regenerated().len(), 1);
        let kept = store.set_aside().unwrap();
        assert_eq!(kept.into_iter().map(|kept| kept.value).collect::<Vec<_>>(), [Some(value)]);
    }

    #[test]
    fn chunks_that_may_not_or_cannot_be_regenerated_stay() {
        for is_sparse in [false, true] {
            for may_regenerate in [false, true] {
                let (mut ground, store) = ground(may_regenerate, is_sparse, &[0]);
                if may_regenerate {
                    ground.generator = Arc::new(Broken);
                }
                for _ in 0..2 {
                    let error = read(&ground).unwrap_err();
                    assert!(error.contains("chunk [2, 0, -3] of dimension 0") && error.contains("checksum"), "{error}");
                }
                assert!(ground.take_regenerated().is_empty() && store.set_aside().unwrap().is_empty());
            }
        }
    }
}
