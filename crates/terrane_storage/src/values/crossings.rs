//! Crossings in the whole world, whichever server they go to, and what a server reads of a plot that it has acquired.

use crate::bytes::record;
use crate::servers::Plot;
use crate::servers::crossings::{Crossing, CrossingId, parse};
use crate::space::{ColumnPos, DimensionId, TILE_BATCHES};
use crate::{EntityRecord, Family, Read, StoreError, TileHistory, WorldStore, keys};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use uuid::Uuid;

/// The maximum number of crossings that a search for entities holds in memory at a time.
const CROSSINGS_IN_SEARCH: usize = 1024;
/// The number of searches for the same entities.
const MAX_SEARCHES: usize = 8;

impl WorldStore {
    /// The places of these entities, some of which may be on their way to another server, or have arrived just now. Entities
    /// that are not stored are left out.
    ///
    /// # Errors
    /// Also [`StoreError::Backend`] if entities were not found and crossings were sent during each search, so that the search
    /// may have missed them.
    pub(crate) fn places_underway(
        &self,
        ids: &BTreeSet<Uuid>,
    ) -> Result<BTreeMap<Uuid, (DimensionId, ColumnPos)>, StoreError> {
        let keys: Vec<Vec<u8>> = ids.iter().map(|id| keys::entity_key(*id).to_vec()).collect();
        let sent = || Read::Range(Family::Meta, keys::range_of(keys::SENT), usize::MAX);
        for _ in 0..MAX_SEARCHES {
            let (mut places, mut range) = (BTreeMap::new(), keys::range_of(keys::CROSSING));
            let mut sent_before = None;
            loop {
                // While nothing is sent, an entity in a crossing can only arrive. So arrived entities are read after the
                // crossings, and the search begins again if something was sent meanwhile.
                let page = Read::Range(Family::Meta, range.clone(), CROSSINGS_IN_SEARCH);
                let reads = [sent(), page, Read::Keys(Family::Entities, keys.clone()), sent()];
                let mut found = self.store.read(&reads)?.into_iter();
                let mut next = || found.next().unwrap_or_default();
                let (before, page, arrived, after) = (next(), next(), next(), next());
                let before = sent_before.get_or_insert(before);
                // A damaged crossing is reported where it goes.
                let crossings = page.iter().filter_map(|(_, value)| record::decode::<Crossing>(value).ok());
                let underway = crossings.flat_map(|crossing| match crossing {
                    Crossing::Entities(records) => records,
                    Crossing::Message { .. } | Crossing::MessageAway { .. } => Vec::new(),
                });
                for record in underway {
                    let place = (record.dimension, record.column());
                    places.extend(record.ids().filter(|id| ids.contains(id)).map(|id| (id, place)));
                }
                for (key, value) in arrived {
                    let record =
                        self.entity_record(self.parsed(Family::Entities, &key, keys::parse_entity_key)?, &value)?;
                    places.insert(record.id, (record.dimension, record.column()));
                }
                let last = page.last().filter(|_| page.len() == CROSSINGS_IN_SEARCH && places.len() < ids.len());
                if let Some((key, _)) = last {
                    range.start = keys::after(key);
                } else if places.len() == ids.len() || *before == after {
                    return Ok(places);
                } else {
                    break;
                }
            }
        }
        let reason = "other servers sent entities during each search";
        Err(StoreError::backend("find entities", None, self.path(), reason))
    }

    /// The crossings to all plots of a dimension. A process that has the world alone receives all of them.
    pub fn crossings(&self, dimension: DimensionId) -> Result<Vec<(CrossingId, Crossing)>, StoreError> {
        let range: Range<Vec<u8>> = keys::dimension_range(keys::CROSSING, dimension);
        self.list_meta(range, |key, value| {
            let id = self.parsed(Family::Meta, key, parse)?;
            Ok(Some((id, self.record(value, id.item())?)))
        })
    }
}

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
