//! What all long work has in common, and all work on files: how far it is, what stops it, what the system refused, and what a
//! panic in it said.

mod file;
mod panic;
mod progress;
mod stop;

pub use file::FileError;
pub(crate) use file::sync_folder;
pub(crate) use panic::panic_message;
pub use progress::{Progress, Tell};
pub use stop::Stop;
