//! Crossings: entities on their way from one server to another, and messages on their way from region to region. Each is a row for the
//! plot where it goes.
//!
//! The commit of the sender that takes an entity out of the sender's ground stores it in a crossing, and the commit of the
//! receiver that puts it on the receiver's ground removes that crossing. So it is stored exactly once at any time.

use super::{Incarnation, Plot, decode};
use crate::bytes::record;
use crate::space::{BlockPos, DimensionId};
use crate::{EntityRecord, Family, KeyValue, KeyValueStore, Read, StoreError, StoredItem, keys};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// The maximum number of crossings to a plot that are read at a time.
const CROSSINGS_AT_ONCE: usize = 256;

/// The number of a crossing, which is never assigned twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CrossingId {
    /// The plot where it goes.
    pub plot: Plot,
    /// The incarnation of the server that sent it to another one, or [`LOCAL`] and more for a message from region to region.
    pub sender: u64,
    /// Its number among all crossings of this sender.
    pub number: u64,
}

/// The lowest number of a sender of [local](CrossingId::is_local) crossings. Servers count from 1.
pub const LOCAL: u64 = 1 << 62;

/// Entities or a message on their way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Crossing {
    /// Entities that travel together, each with the place where it goes.
    Entities(Vec<EntityRecord>),
    /// A message of the game.
    Message {
        /// The block where it goes, or a block near its entity or its sender.
        block: BlockPos,
        /// The entity that gets it; `None` for the region of the block.
        entity: Option<Uuid>,
        /// The type path of the message.
        kind: String,
        /// The message in its serialized form.
        bytes: Vec<u8>,
    },
    /// A message of the game to a place in another dimension than that of its plot, which is the plot of its sender.
    MessageAway {
        /// The dimension where it goes.
        dimension: DimensionId,
        /// The block where it goes.
        block: BlockPos,
        /// The type path of the message.
        kind: String,
        /// The message in its serialized form.
        bytes: Vec<u8>,
    },
}

impl CrossingId {
    /// Returns `true` if it is on its way from region to region. Its sender has it in memory, unless its plot has got another owner since.
    pub fn is_local(&self) -> bool {
        self.sender >= LOCAL
    }

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

    /// The crossings to these plots, in the order of the plots, and of the numbers of each sender; local ones only of plots in
    /// `with_local`. Damaged ones are reported in the log and left out. A long queue to a plot is read in parts: the second result holds
    /// the plots of which more crossings may be stored, each with the last crossing that was read. As `after`, it continues behind them.
    pub fn crossings(
        &self,
        plots: &BTreeSet<Plot>,
        with_local: &BTreeSet<Plot>,
        after: &BTreeMap<Plot, CrossingId>,
    ) -> Result<(Vec<(CrossingId, Crossing)>, BTreeMap<Plot, CrossingId>), StoreError> {
        let of = |plot: &Plot| {
            let mut range = keys::crossing_range(plot.0, plot.1);
            if !with_local.contains(plot) {
                range.end = keys::crossing_key(plot.0, plot.1, LOCAL, 0);
            }
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

/// Checks the value of a crossing; `None` if the key is not one.
pub(super) fn check(store: &dyn KeyValueStore, key: &[u8], value: &[u8]) -> Option<Result<(), StoreError>> {
    let id = parse(key)?;
    Some(decode::<Crossing>(store, value, id.item()).map(drop))
}

/// The number of the crossing with this key.
pub(crate) fn parse(key: &[u8]) -> Option<CrossingId> {
    let (dimension, plot, sender, number) = keys::parse_crossing_key(key)?;
    Some(CrossingId { plot: (dimension, plot), sender, number })
}
