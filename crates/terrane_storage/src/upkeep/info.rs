//! What is in a world, at a glance: without reading all of it.

use crate::space::{BlockPos, DimensionId};
use crate::{Family, FamilySize, RegistryLists, StoreError, StoredDimension, WorldStore, keys};
use std::time::{Duration, SystemTime};
use uuid::Uuid;

/// What is in a world.
#[derive(Clone, Debug, PartialEq)]
pub struct WorldInfo {
    /// The format of what is stored.
    pub format: u32,
    /// When the world was made.
    pub created_at: SystemTime,
    /// How often it has been opened to be played.
    pub sessions: u64,
    /// How long it has been open in all of them.
    pub play_time: Duration,
    /// About how much there is in each family, as the store knows it; `None` if it does not.
    pub families: Vec<(Family, Option<FamilySize>)>,
    /// The dimensions, by name, each with the number of columns that are stored of it, as its graph says.
    pub dimensions: Vec<(StoredDimension, u64)>,
    /// The players, by the length of their names and then by name.
    pub players: Vec<StoredPlayer>,
    /// The types that the world knows.
    pub registry: RegistryLists,
}

/// A player of the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPlayer {
    /// Its name.
    pub name: String,
    /// Its entity.
    pub id: Uuid,
    /// In which dimension it is, and where; `None` if its record cannot be read.
    pub place: Option<(DimensionId, BlockPos)>,
}

impl WorldStore {
    /// What is in the world. Takes time in proportion to the columns and players, not to what is in them.
    ///
    /// # Errors
    /// Those of the store, and of damaged lists of types, records and graphs of dimensions.
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
                // The key was left behind.
                Ok(_) => return Ok(None),
                Err(error) if error.is_damage() => None,
                Err(error) => return Err(error),
            };
            Ok(Some(StoredPlayer { name: name.into(), id, place }))
        })
    }
}
