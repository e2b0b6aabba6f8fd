//! Several servers on one world: which of them live, and which ground each of them owns.
//!
//! All of it is stored in the world's own store, and changes only in batches with
//! [preconditions](WriteBatch::require), so any [`KeyValueStore`] can hold a shared world. Clocks decide when a server
//! may be ended, and never whether a write counts.

mod check;
pub(crate) mod crossings;
mod joins;
mod lease;
mod log_ins;
mod plots;
#[cfg(test)]
mod tests;

use crate::bytes::record;
use crate::{Durability, Family, KeyValueStore, OpenWait, Read, StoreError, StoredItem, WriteBatch, keys};
pub(crate) use check::check;
pub use crossings::{Crossing, CrossingId, LOCAL};
pub use joins::Join;
pub use lease::{Lease, Watch};
pub use plots::{PLOT_SIZE, Plot};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a server must show no sign of life until another one may end it. The servers of a world must agree on it.
pub const TERM: Duration = Duration::from_secs(8);

/// One run of a server on a shared world. Its number is never assigned twice.
///
/// Every write requires that the run has not [ended](Self::end). After its end it can change nothing, not even by a
/// write that is already under way.
pub struct Incarnation {
    store: Arc<dyn KeyValueStore>,
    number: u64,
    /// The stored row. It never changes, and is deleted at the end.
    row: Vec<u8>,
    beats: AtomicU64,
}

/// A living server, as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sign {
    /// The number of its incarnation.
    pub incarnation: u64,
    /// The address that it gave when it joined.
    pub address: Vec<u8>,
    /// Its heartbeat. Each write of the server changes it.
    pub beat: Vec<u8>,
}

impl Incarnation {
    /// Joins an existing world as a new incarnation. `address` tells the game's clients and other servers where this server is;
    /// the crate does not interpret it.
    pub fn join(store: Arc<dyn KeyValueStore>, address: &[u8]) -> Result<Self, StoreError> {
        loop {
            let mut batch = WriteBatch::default();
            let incarnation = Self::announce(store.clone(), address, &mut batch)?;
            match store.write(batch, Durability::Sync) {
                Err(StoreError::PreconditionFailed { .. }) => {}
                written => return written.map(|()| incarnation),
            }
        }
    }

    /// A new incarnation that begins with this batch. If another server begins at the same moment, the batch is refused.
    pub(crate) fn announce(
        store: Arc<dyn KeyValueStore>,
        address: &[u8],
        batch: &mut WriteBatch,
    ) -> Result<Self, StoreError> {
        let last = store.get(Family::Meta, keys::LAST_SERVER)?;
        let number = match &last {
            Some(last) => decode::<u64>(&*store, last, StoredItem::LastServer)?.saturating_add(1),
            None => 1,
        };
        let row = record::encode(&address);
        batch.require(Family::Meta, keys::LAST_SERVER, last);
        batch.put(Family::Meta, keys::LAST_SERVER, record::encode(&number));
        batch.put(Family::Meta, keys::server_key(number), row.clone());
        batch.put(Family::Meta, keys::beat_key(number), record::encode(&0_u64));
        Ok(Self { store, number, row, beats: AtomicU64::new(1) })
    }

    /// The number of this incarnation.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Writes a batch if this incarnation has not ended. The write counts as a heartbeat.
    ///
    /// # Errors
    /// [`StoreError::Superseded`] if it has ended. The process must then drop all unsaved state and join anew.
    pub fn write(&self, mut batch: WriteBatch) -> Result<(), StoreError> {
        let row = keys::server_key(self.number);
        batch.require(Family::Meta, row.clone(), Some(self.row.clone()));
        let beat = self.beats.fetch_add(1, Ordering::Relaxed);
        batch.put(Family::Meta, keys::beat_key(self.number), record::encode(&beat));
        match self.store.write(batch, Durability::Sync) {
            // The store may have found another precondition first.
            Err(StoreError::PreconditionFailed { path, .. })
                if self.store.get(Family::Meta, &row)?.as_ref() != Some(&self.row) =>
            {
                Err(StoreError::Superseded { session: self.number, path })
            }
            written => written,
        }
    }

    /// Shows the other servers that this one is alive.
    ///
    /// # Errors
    /// The same as those of [`write`](Self::write).
    pub fn beat(&self) -> Result<(), StoreError> {
        self.write(WriteBatch::default())
    }

    /// The living servers, by number, this one included.
    pub fn signs(&self) -> Result<Vec<Sign>, StoreError> {
        signs(&*self.store)
    }

    /// The number of other living servers. The batch is refused if another one joins before it is written. It ends those that
    /// show no sign of life; this waits for that.
    pub(crate) fn others(&self, batch: &mut WriteBatch) -> Result<usize, StoreError> {
        end_silent(&*self.store, Some(self.number), batch, &mut OpenWait::default())
    }

    /// Ends another incarnation unless it has shown life since `sign` was read. Returns `false` if it has, has ended
    /// already, or is this one. The ground of an ended server is free.
    ///
    /// # Errors
    /// The same as those of [`write`](Self::write).
    pub fn end(&self, sign: &Sign) -> Result<bool, StoreError> {
        if sign.incarnation == self.number {
            return Ok(false);
        }
        let mut batch = WriteBatch::default();
        sign.end(&mut batch);
        match self.write(batch) {
            Err(StoreError::PreconditionFailed { .. }) => Ok(false),
            written => written.map(|()| true),
        }
    }

    /// Ends this incarnation. Its ground becomes free, and it can write nothing more.
    pub fn leave(&self) -> Result<(), StoreError> {
        let mut batch = WriteBatch::default();
        batch.delete(Family::Meta, keys::server_key(self.number));
        batch.delete(Family::Meta, keys::beat_key(self.number));
        batch.delete(Family::Meta, keys::sent_key(self.number));
        self.store.write(batch, Durability::Sync)
    }
}

impl Sign {
    /// Ends the server with this batch, unless it has shown life since this was read.
    fn end(&self, batch: &mut WriteBatch) {
        let (row, beat) = (keys::server_key(self.incarnation), keys::beat_key(self.incarnation));
        batch.require(Family::Meta, row.clone(), Some(record::encode(&self.address)));
        batch.require(Family::Meta, beat.clone(), Some(self.beat.clone()));
        batch.delete(Family::Meta, row);
        batch.delete(Family::Meta, beat);
        batch.delete(Family::Meta, keys::sent_key(self.incarnation));
    }
}

/// The living servers, by number.
fn signs(store: &dyn KeyValueStore) -> Result<Vec<Sign>, StoreError> {
    let all = |prefix| Read::Range(Family::Meta, keys::range_of(prefix), usize::MAX);
    let mut found = store.read(&[all(keys::SERVER), all(keys::BEAT)])?.into_iter();
    let rows = found.next().unwrap_or_default();
    let beats: BTreeMap<Vec<u8>, Vec<u8>> = found.next().unwrap_or_default().into_iter().collect();
    let sign = |(key, row): (Vec<u8>, Vec<u8>)| {
        let incarnation = keys::parse_server_key(&key)?;
        let beat = beats.get(&keys::beat_key(incarnation))?.clone();
        let address = decode(store, &row, StoredItem::Server(incarnation));
        Some(address.map(|address| Sign { incarnation, address, beat }))
    };
    rows.into_iter().filter_map(sign).collect()
}

/// Ends all servers of a world but `own` with this batch, and returns 0. A server that has not left by itself is taken for dead
/// after a [`TERM`] without a sign of life; this waits for that. Returns the number of servers if one of them lives: if it
/// shows life after `wait` is over. Before, the last heartbeat of a server that was killed may have been on its way.
pub(crate) fn end_silent(
    store: &dyn KeyValueStore,
    own: Option<u64>,
    batch: &mut WriteBatch,
    wait: &mut OpenWait<'_>,
) -> Result<usize, StoreError> {
    let last = store.get(Family::Meta, keys::LAST_SERVER)?;
    // Nor may another server join meanwhile.
    batch.require(Family::Meta, keys::LAST_SERVER, last.clone());
    if last.is_none() {
        return Ok(0);
    }
    let (clock, term) = (Instant::now(), wait.term());
    let (mut watch, mut last_signs) = (Watch::new(term), None);
    loop {
        let (is_over, asked) = (wait.is_over(), clock.elapsed());
        let mut signs = signs(store)?;
        signs.retain(|sign| Some(sign.incarnation) != own);
        let silent = watch.read(asked, clock.elapsed(), &signs);
        if silent.len() == signs.len() {
            silent.iter().for_each(|sign| sign.end(batch));
            return Ok(0);
        }
        let (servers, path) = (signs.len(), store.path().display());
        let reason = format!("{servers} servers did not leave {path}; each is dead that shows no life for {term:?}");
        if is_over {
            let last_signs = last_signs.get_or_insert_with(|| signs.clone());
            if signs.iter().any(|sign| !last_signs.contains(sign)) {
                return Ok(servers);
            }
        }
        if !wait.rest(term / 8, &reason) {
            return Ok(servers);
        }
    }
}

/// Decodes the record of `item`.
fn decode<T: serde::de::DeserializeOwned>(
    store: &dyn KeyValueStore,
    value: &[u8],
    item: StoredItem,
) -> Result<T, StoreError> {
    let path = store.path().to_path_buf();
    record::decode(value).map_err(|reason| StoreError::Corrupt { what: item, path, reason })
}
