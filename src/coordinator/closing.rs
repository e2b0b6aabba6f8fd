//! Dimensions that open and close, backups, and the end of the app.

pub mod backup;
pub mod close;
pub mod opening;
pub mod shutdown;
