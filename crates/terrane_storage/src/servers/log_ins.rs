//! Which server each player is on, so that two log-ins of one name on two servers are one player.

use super::{Incarnation, decode};
use crate::bytes::record;
use crate::{Family, StoreError, StoredItem, WriteBatch, keys};
use std::collections::{BTreeMap, BTreeSet};

/// The row of a name, as stored, and the number of the server in it.
type Row = (Option<Vec<u8>>, Option<u64>);

impl Incarnation {
    /// Notes that the players of these names are on this server. Returns those that are on other living servers, each with the number
    /// of its server; for them, nothing changes.
    ///
    /// # Errors
    /// The same as those of [`write`](Self::write). After an error, either all of the names were noted or none.
    pub fn log_in(&self, names: &BTreeSet<String>) -> Result<BTreeMap<String, u64>, StoreError> {
        loop {
            let rows = self.log_in_rows(names)?;
            let others = rows.values().filter_map(|(_, server)| server.filter(|server| *server != self.number));
            let living = self.living(&others.collect())?;
            let (mut batch, mut elsewhere) = (WriteBatch::default(), BTreeMap::new());
            for (name, (stored, server)) in rows {
                if let Some(server) = server.filter(|server| living.contains(server)) {
                    elsewhere.insert(name.clone(), server);
                    continue;
                }
                let key = keys::log_in_key(name);
                batch.require(Family::Meta, key.clone(), stored);
                batch.put(Family::Meta, key, record::encode(&self.number));
            }
            match self.write(batch) {
                // Another server has noted one of them.
                Err(StoreError::PreconditionFailed { .. }) => {}
                written => return written.map(|()| elsewhere),
            }
        }
    }

    /// Notes that the players of these names have left this server. Everything that they own must be saved before.
    ///
    /// # Errors
    /// The same as those of [`write`](Self::write). After an error, either all of the names were noted or none.
    pub fn log_out(&self, names: &BTreeSet<String>) -> Result<(), StoreError> {
        loop {
            let mut batch = WriteBatch::default();
            for (name, (stored, server)) in self.log_in_rows(names)? {
                if server == Some(self.number) {
                    let key = keys::log_in_key(name);
                    batch.require(Family::Meta, key.clone(), stored);
                    batch.delete(Family::Meta, key);
                }
            }
            match self.write(batch) {
                // Another server can have one only if this one has ended, which the write finds next time.
                Err(StoreError::PreconditionFailed { .. }) => {}
                written => return written,
            }
        }
    }

    fn log_in_rows<'a>(&self, names: &'a BTreeSet<String>) -> Result<BTreeMap<&'a String, Row>, StoreError> {
        let keys: Vec<_> = names.iter().map(|name| keys::log_in_key(name)).collect();
        let values = self.store.multi_get(Family::Meta, &keys.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
        let row = |(name, value): (&'a String, Option<Vec<u8>>)| {
            let item = || StoredItem::LogIn(name.clone());
            let server = value.as_deref().map(|value| decode(&*self.store, value, item())).transpose()?;
            Ok((name, (value, server)))
        };
        names.iter().zip(values).map(row).collect()
    }
}
