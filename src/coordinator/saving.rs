//! Everything that keeps the world on disk: saves, backups, tiers, and the last saves of a dimension or the app.

pub(super) mod autosave;
pub(super) mod backup;
pub(super) mod close;
pub(super) mod request;
pub(super) mod save;
pub(super) mod shutdown;
pub(super) mod tiers;
