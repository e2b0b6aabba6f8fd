//! A summary of a world's contents, made without reading all of them, and the inspection of single chunks.

use crate::chunk::Chunk;
use crate::space::{BlockPos, ChunkPos, DimensionId};
use crate::{Family, FamilySize, RegistryLists, StoreError, StoredDimension, StoredItem, Tier, WorldStore, keys};
use std::time::{Duration, SystemTime};
use uuid::Uuid;

/// A summary of a world's contents.
#[derive(Clone, Debug, PartialEq)]
pub struct WorldInfo {
    /// The format of the stored data.
    pub format: u32,
    /// The creation time of the world.
    pub created_at: SystemTime,
    /// The number of times that the world was opened to be played.
    pub sessions: u64,
    /// The play time of the world.
    pub play_time: Duration,
    /// The approximate size of each family; `None` if the store does not know it.
    pub families: Vec<(Family, Option<FamilySize>)>,
    /// The dimensions, by name, each with the number of its stored columns according to its graph.
    pub dimensions: Vec<(StoredDimension, u64)>,
    /// The players, ordered by the length of their names and then by name.
    pub players: Vec<StoredPlayer>,
    /// The types that the world knows.
    pub registry: RegistryLists,
}

/// A player of the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPlayer {
    /// The player's name.
    pub name: String,
    /// The UUID of the player's entity.
    pub id: Uuid,
    /// The player's dimension and position; `None` if the record cannot be read.
    pub place: Option<(DimensionId, BlockPos)>,
}

impl WorldStore {
    /// A summary of the world's contents. The time it takes grows with the number of columns and players, not with
    /// their contents.
    ///
    /// # Errors
    /// Errors of the store, and damage in lists of types, records or graphs of dimensions.
    pub fn info(&self) -> Result<WorldInfo, StoreError> {
        let size = |family| Ok((family, self.store.approximate_family(family)?));
        let mut dimensions = Vec::new();
        for dimension in self.dimensions()? {
            let tiles = self.stored_tiles(dimension.id)?;
            let columns = tiles.iter().flat_map(|(.., masks)| masks).map(|mask| u64::from(mask.count_ones())).sum();
            dimensions.push((dimension, columns));
        }
        Ok(WorldInfo {
            format: self.format(),
            created_at: self.created_at(),
            sessions: self.session(),
            play_time: self.play_time(),
            families: Family::ALL.into_iter().map(size).collect::<Result<_, StoreError>>()?,
            dimensions,
            players: self.players()?,
            registry: self.registry_lists()?,
        })
    }

    fn players(&self) -> Result<Vec<StoredPlayer>, StoreError> {
        self.list_meta(keys::range_of(keys::PLAYER), |key, _| {
            let (name, id) = self.parsed(Family::Meta, key, keys::parse_player_key)?;
            let place = match self.entity(id) {
                Ok(Some(record)) if record.player().as_deref() == Some(name) => Some((record.dimension, record.block)),
                // The key is stale.
                Ok(_) => return Ok(None),
                Err(error) if error.is_damage() => None,
                Err(error) => return Err(error),
            };
            Ok(Some(StoredPlayer { name: name.into(), id, place }))
        })
    }
}

/// A stored chunk.
#[derive(Clone, Debug, PartialEq)]
pub struct InspectedChunk {
    /// The chunk's tier.
    pub tier: Tier,
    /// The number of times that the chunk changed.
    pub version: u64,
    /// The size of the value in bytes, before compression by the store.
    pub bytes: usize,
    /// The contents.
    pub chunk: Chunk,
}

impl WorldStore {
    /// The stored chunk at `pos`, from any tier; `None` if it is not stored.
    ///
    /// # Errors
    /// Errors of the store, and damage of the chunk.
    pub fn inspect_chunk(&self, dimension: DimensionId, pos: ChunkPos) -> Result<Option<InspectedChunk>, StoreError> {
        let blocks = self.known_blocks()?;
        let Some((tier, value)) = self.chunk_value(dimension, pos)? else { return Ok(None) };
        let (version, _) = self.open_envelope(&value, || StoredItem::Chunk(dimension, pos))?;
        let chunk = self.decode_chunk(&blocks, (dimension, pos), &value)?;
        Ok(Some(InspectedChunk { tier, version, bytes: value.len(), chunk }))
    }
}
