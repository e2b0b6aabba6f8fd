//! What a server reads of a plot that it has acquired.

use crate::servers::Plot;
use crate::space::TILE_BATCHES;
use crate::{EntityRecord, StoreError, TileHistory, WorldStore};

/// The stored contents of a plot that its new owner reads.
#[derive(Clone, Debug, PartialEq)]
pub struct PlotContents {
    /// The stored columns: a mask for each batch of the tile.
    pub stored: [u16; TILE_BATCHES],
    /// Their history.
    pub history: TileHistory,
    /// The entities in it that are viewers.
    pub viewers: Vec<EntityRecord>,
}

impl WorldStore {
    /// The contents of a plot. They are up to date only for its owner.
    pub fn plot_contents(&self, (dimension, plot): Plot) -> Result<PlotContents, StoreError> {
        let stored = self.stored_tile(dimension, plot)?.unwrap_or([0; TILE_BATCHES]);
        let mut viewers = self.viewers(dimension)?;
        viewers.retain(|record| record.column().tile() == plot);
        Ok(PlotContents { stored, history: self.history(dimension, plot)?, viewers })
    }
}
