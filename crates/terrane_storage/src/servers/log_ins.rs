//! Which server each player is on, so that two log-ins of one name on two servers are one player.

use super::{Incarnation, decode};
use crate::bytes::record;
use crate::{Family, StoreError, StoredItem, WriteBatch, keys};

impl Incarnation {
    /// Notes that the player of this name is on this server. Returns the number of another living server that has the player;
    /// then nothing changes.
    ///
    /// # Errors
    /// The same as those of [`write`](Self::write).
    pub fn log_in(&self, name: &str) -> Result<Option<u64>, StoreError> {
        let key = keys::log_in_key(name);
        loop {
            let stored = self.store.get(Family::Meta, &key)?;
            let known = stored.as_deref().map(|value| decode(&*self.store, value, StoredItem::LogIn(name.into())));
            if let Some(server) = known.transpose()?
                && server != self.number
                && self.living(&[server].into())?.contains(&server)
            {
                return Ok(Some(server));
            }
            let mut batch = WriteBatch::default();
            batch.require(Family::Meta, key.clone(), stored);
            batch.put(Family::Meta, key.clone(), record::encode(&self.number));
            match self.write(batch) {
                Err(StoreError::PreconditionFailed { .. }) => {}
                written => return written.map(|()| None),
            }
        }
    }

    /// Notes that the player of this name has left this server. Everything that the player owns must be saved before.
    ///
    /// # Errors
    /// The same as those of [`write`](Self::write).
    pub fn log_out(&self, name: &str) -> Result<(), StoreError> {
        let (key, own) = (keys::log_in_key(name), record::encode(&self.number));
        if self.store.get(Family::Meta, &key)?.as_ref() != Some(&own) {
            return Ok(());
        }
        let mut batch = WriteBatch::default();
        batch.require(Family::Meta, key.clone(), Some(own));
        batch.delete(Family::Meta, key);
        match self.write(batch) {
            // Another server can have it only if this one has ended, which the next write finds.
            Err(StoreError::PreconditionFailed { .. }) => Ok(()),
            written => written,
        }
    }
}
