//! Answers the main world's questions about the ground, loaded or not.

use crate::block::{BlockId, BlockRegistry};
use crate::chunk::{BlockValueError, Chunk, Column, format};
use crate::coordinator::dimension::DimensionBook;
use crate::coordinator::messages::events::{ChunksAnswer, OpacityAnswer};
use crate::coordinator::messages::faults::WorkError;
use crate::coordinator::messages::questions::{AskChunks, AskError, AskOpacity, ChunkState};
use crate::coordinator::publish::Publisher;
use crate::coordinator::saves::Saves;
use crate::coordinator::threads::Threads;
use crate::space::{ChunkPos, ColumnPos, DimensionId};
use crate::storage::{StoreError, StoredChunk, StoredItem, WorldStore};
use bevy::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Answers the question. Published columns are passed along.
pub(crate) fn ask_opacity(
    In((ask, loaded)): In<(AskOpacity, Vec<Column>)>,
    dimensions: Res<DimensionBook>,
    saves: Res<Saves>,
    mut threads: ResMut<Threads>,
    mut publisher: ResMut<Publisher>,
) {
    let AskOpacity { request, dimension, batch } = ask;
    if !dimensions.open.contains_key(&dimension) {
        let opacity = Err(AskError::NotOpen);
        return publisher.event(OpacityAnswer { request, dimension, batch, opacity });
    }
    // Unsaved columns are newer than the store, and published columns are newer still.
    let unwritten: Vec<_> = batch.columns().map(|column| (column, saves.unwritten(dimension, column))).collect();
    threads.ask(
        None,
        move |store, blocks| {
            let mut opacity = store.opacity(dimension, batch)?;
            let is_opaque = |block| blocks.block(block).is_opaque();
            for (column, chunks) in &unwritten {
                chunks.iter().for_each(|(y, chunk)| opacity.set_chunk(*column, *y, chunk, is_opaque));
            }
            loaded.iter().for_each(|column| opacity.set_column(column, is_opaque));
            Ok(Arc::new(opacity))
        },
        move |world, read| {
            let opacity = read.flatten().map_err(AskError::from);
            world.resource_mut::<Publisher>().event(OpacityAnswer { request, dimension, batch, opacity });
        },
    );
}

struct KnownChunk {
    pos: ChunkPos,
    /// The published chunk, or the one on its way into the store.
    newest: Option<Arc<Chunk>>,
    /// `true` if its column is generated, even if the store does not know that yet.
    is_generated: bool,
}

/// Answers the question. Published chunks are passed along.
pub(crate) fn ask_chunks(
    In((ask, published)): In<(AskChunks, Vec<Option<Arc<Chunk>>>)>,
    dimensions: Res<DimensionBook>,
    saves: Res<Saves>,
    mut threads: ResMut<Threads>,
    mut publisher: ResMut<Publisher>,
) {
    let AskChunks { request, dimension, chunks } = ask;
    let Some(is_sparse) = dimensions.open.get(&dimension).map(|dimension| dimension.is_sparse()) else {
        let chunks = chunks.into_iter().map(|chunk| (chunk, Err(AskError::NotOpen))).collect();
        return publisher.event(ChunksAnswer { request, dimension, chunks });
    };
    let mut known = Vec::with_capacity(chunks.len());
    for (&pos, published) in chunks.iter().zip(published) {
        let mut batches = saves.unwritten_batches();
        let newest = published.or_else(|| batches.find_map(|batch| batch.chunks.get(&(dimension, pos)).cloned()));
        let is_generated = newest.is_some() || saves.unwritten_summary(dimension, pos.column()).is_some();
        known.push(KnownChunk { pos, newest, is_generated });
    }
    threads.ask(
        None,
        move |store, blocks| read(store, blocks, dimension, is_sparse, &known),
        move |world, read| {
            let failed = |error: WorkError| chunks.iter().map(|chunk| (*chunk, Err(error.clone().into()))).collect();
            let chunks = read.unwrap_or_else(failed);
            world.resource_mut::<Publisher>().event(ChunksAnswer { request, dimension, chunks });
        },
    );
}

fn read(
    store: &WorldStore,
    blocks: &BlockRegistry,
    dimension: DimensionId,
    is_sparse: bool,
    chunks: &[KnownChunk],
) -> Vec<(ChunkPos, Result<Option<ChunkState>, AskError>)> {
    let positions: Vec<ChunkPos> = chunks.iter().map(|chunk| chunk.pos).collect();
    // The marks are read before the chunks: a chunk stored in between must not look like the air of a stored column.
    let mut marks = BTreeMap::new();
    for column in positions.iter().map(|chunk| chunk.column()) {
        marks.entry(column).or_insert_with(|| store.is_stored(dimension, column));
    }
    let stored = store.stored_chunks(dimension, &positions);
    let reader = Reader { store, blocks, dimension, is_sparse, marks };
    let answer = |(chunk, stored): (&KnownChunk, _)| {
        (chunk.pos, reader.state(chunk, stored).map_err(|error| AskError::Work(error.into())))
    };
    chunks.iter().zip(stored).map(answer).collect()
}

struct Reader<'a> {
    store: &'a WorldStore,
    blocks: &'a BlockRegistry,
    dimension: DimensionId,
    is_sparse: bool,
    /// The columns, each with whether it is stored.
    marks: BTreeMap<ColumnPos, Result<bool, StoreError>>,
}

impl Reader<'_> {
    /// Returns `true` if unstored chunks of the column are air.
    fn is_air(&self, column: ColumnPos) -> Result<bool, StoreError> {
        if self.is_sparse { Ok(false) } else { self.marks.get(&column).cloned().unwrap_or(Ok(false)) }
    }

    /// Returns `None` if there is no such chunk.
    fn state(
        &self,
        chunk: &KnownChunk,
        stored: Result<Option<StoredChunk>, StoreError>,
    ) -> Result<Option<ChunkState>, StoreError> {
        let Some(newest) = &chunk.newest else {
            if let Some((version, bytes)) = stored? {
                return Ok(Some(ChunkState::new(version, true, bytes)));
            }
            let is_air = chunk.is_generated && !self.is_sparse || self.is_air(chunk.pos.column())?;
            let air = || self.encode(chunk.pos, &Chunk::uniform(BlockId::AIR));
            return is_air.then(|| Ok(ChunkState::new(0, true, air()?))).transpose();
        };
        let bytes = self.encode(chunk.pos, newest)?;
        let (version, is_saved) = match stored {
            Ok(Some((version, stored))) if stored == bytes => (version, true),
            Ok(Some((version, _))) => (version.saturating_add(1), false),
            Ok(None) => {
                // The chunk is stored as air, or nothing of its column is stored.
                let (was_air, is_air) =
                    (self.is_air(chunk.pos.column())?, newest.uniform_block() == Some(BlockId::AIR));
                (u64::from(was_air && !is_air), was_air && is_air)
            }
            // The chunk in memory replaces it with the next save, with a version that no count of changes has reached.
            Err(error) if error.is_damage() => (1 << 32, false),
            Err(error) => return Err(error),
        };
        Ok(Some(ChunkState::new(version, is_saved, bytes)))
    }

    fn encode(&self, pos: ChunkPos, chunk: &Chunk) -> Result<Arc<[u8]>, StoreError> {
        let mut bytes = Vec::new();
        let unfit = |error: BlockValueError| StoreError::Corrupt {
            what: StoredItem::Chunk(self.dimension, pos),
            path: self.store.path().to_path_buf(),
            reason: error.to_string(),
        };
        format::encode(self.blocks, chunk, &[], &mut bytes).map_err(unfit)?;
        Ok(bytes.into())
    }
}
