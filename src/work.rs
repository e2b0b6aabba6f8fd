//! What all long work has in common, and all work on files: how far it is, what stops it, and what the system refused.

mod file;
mod progress;
mod stop;

pub use file::FileError;
pub(crate) use file::sync_folder;
pub use progress::{Progress, Tell};
pub use stop::Stop;
