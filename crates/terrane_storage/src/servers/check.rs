//! Checks of the values that servers store.

use super::{crossings, decode, plots};
use crate::{KeyValueStore, StoreError, StoredItem, keys};

/// Checks a value that servers store; `None` if the key is not one of them.
pub(crate) fn check(store: &dyn KeyValueStore, key: &[u8], value: &[u8]) -> Option<Result<(), StoreError>> {
    if let Some((dimension, plot)) = keys::parse_plot_key(key) {
        return Some(decode::<plots::Owned>(store, value, StoredItem::Plot(dimension, plot)).map(drop));
    }
    if let Some(dimension) = keys::parse_key_of_dimension(keys::JOINS, key) {
        return Some(decode::<u64>(store, value, StoredItem::Joins(dimension)).map(drop));
    }
    if let Some(incarnation) = keys::parse_server_key(key) {
        return Some(decode::<Vec<u8>>(store, value, StoredItem::Server(incarnation)).map(drop));
    }
    if let Some(incarnation) = keys::parse_beat_key(key) {
        return Some(decode::<u64>(store, value, StoredItem::Server(incarnation)).map(drop));
    }
    if let Some(checked) = crossings::check(store, key, value) {
        return Some(checked);
    }
    if let Some(incarnation) = keys::parse_sent_key(key) {
        return Some(decode::<u64>(store, value, StoredItem::Server(incarnation)).map(drop));
    }
    if let Some(name) = keys::parse_log_in_key(key) {
        return Some(decode::<u64>(store, value, StoredItem::LogIn(name.into())).map(drop));
    }
    (key == keys::LAST_SERVER).then(|| decode::<u64>(store, value, StoredItem::LastServer).map(drop))
}
