//! Crossings: entities and messages on their way from one server to another. Each is a row for the plot where it goes.
//!
//! The commit of the sender that takes an entity out of the sender's ground stores it in a crossing, and the commit of the
//! receiver that puts it on the receiver's ground removes that crossing. So it is stored exactly once at any time.

use super::{Incarnation, Plot, decode};
use crate::bytes::record;
use crate::space::{BlockPos, ColumnPos, DimensionId};
use crate::{EntityRecord, Family, KeyValue, KeyValueStore, Read, StoreError, StoredItem, WorldStore, keys};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use uuid::Uuid;

/// The maximum number of crossings to a plot that are read at a time.
const CROSSINGS_AT_ONCE: usize = 256;
/// The maximum number of crossings that a search for entities holds in memory at a time.
const CROSSINGS_IN_SEARCH: usize = 1024;
/// The number of searches for the same entities.
const MAX_SEARCHES: usize = 8;

/// The number of a crossing, which is never assigned twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CrossingId {
    /// The plot where it goes.
    pub plot: Plot,
    /// The incarnation of the server that sent it.
    pub sender: u64,
    /// Its number among all crossings of this sender.
    pub number: u64,
}

/// Entities or a message on their way to another server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Crossing {
    /// Entities that travel together, each with the place where it goes.
    Entities(Vec<EntityRecord>),
    /// A message of the game.
    Message {
        /// The block where it goes, or the block where its entity was last stored.
        block: BlockPos,
        /// The entity that gets it; `None` for the region of the block.
        entity: Option<Uuid>,
        /// The type path of the message.
        kind: String,
        /// The message in its serialized form.
        bytes: Vec<u8>,
    },
}

impl CrossingId {
    pub(crate) fn key(&self) -> Vec<u8> {
        keys::crossing_key(self.plot.0, self.plot.1, self.sender, self.number)
    }

    pub(crate) fn item(&self) -> StoredItem {
        StoredItem::Crossing(Box::new((self.plot.0, self.plot.1, self.sender, self.number)))
    }
}

impl Crossing {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        record::encode(self)
    }
}

impl Incarnation {
    /// The key of the number of the last crossing that this server sent.
    pub(crate) fn sent_key(&self) -> Vec<u8> {
        keys::sent_key(self.number)
    }

    /// The number of the last crossing that this server sent; 0 if it sent none.
    pub(crate) fn last_sent(&self) -> Result<u64, StoreError> {
        let stored = self.store.get(Family::Meta, &self.sent_key())?;
        let last = stored.map(|value| decode(&*self.store, &value, StoredItem::Server(self.number)));
        Ok(last.transpose()?.unwrap_or(0))
    }

    /// The crossings to these plots, in the order of the plots, and of the numbers of each sender. Damaged ones are reported in
    /// the log and left out. A long queue to a plot is read in parts: the second result holds the plots of which more crossings
    /// may be stored, each with the last crossing that was read. As `after`, it continues behind them.
    pub fn crossings(
        &self,
        plots: &BTreeSet<Plot>,
        after: &BTreeMap<Plot, CrossingId>,
    ) -> Result<(Vec<(CrossingId, Crossing)>, BTreeMap<Plot, CrossingId>), StoreError> {
        let of = |plot: &Plot| {
            let mut range = keys::crossing_range(plot.0, plot.1);
            after.get(plot).into_iter().for_each(|last| range.start = keys::after(&last.key()));
            Read::Range(Family::Meta, range, CROSSINGS_AT_ONCE)
        };
        let found = self.store.read(&plots.iter().map(of).collect::<Vec<_>>())?;
        let long = plots.iter().zip(&found).filter(|(_, found)| found.len() >= CROSSINGS_AT_ONCE);
        let last = long.filter_map(|(plot, found)| Some((*plot, parse(&found.last()?.0)?))).collect();
        let crossing = |(key, value): KeyValue| {
            let id = parse(&key)?;
            match decode(&*self.store, &value, id.item()) {
                Ok(crossing) => Some((id, crossing)),
                // It stays in the store.
                Err(error) => {
                    tracing::error!("something from another server cannot arrive: {error}");
                    None
                }
            }
        };
        Ok((found.into_iter().flatten().filter_map(crossing).collect(), last))
    }
}

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
                    Crossing::Message { .. } => Vec::new(),
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

/// Checks the value of a crossing; `None` if the key is not one.
pub(super) fn check(store: &dyn KeyValueStore, key: &[u8], value: &[u8]) -> Option<Result<(), StoreError>> {
    let id = parse(key)?;
    Some(decode::<Crossing>(store, value, id.item()).map(drop))
}

fn parse(key: &[u8]) -> Option<CrossingId> {
    let (dimension, plot, sender, number) = keys::parse_crossing_key(key)?;
    Some(CrossingId { plot: (dimension, plot), sender, number })
}
