//! How the world gets to disk and stays there: saves, backups, tiers, and what is saved before the end of a dimension or the app.

pub(super) mod autosave;
pub(super) mod backup;
pub(super) mod close;
pub(super) mod request;
pub(super) mod save;
pub(super) mod shutdown;
pub(super) mod tiers;
