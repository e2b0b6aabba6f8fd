//! What all long work has in common, and all work on files: how far it is, what stops it, what the system refused, and what a
//! panic in it said. And how the system gets freed memory back.

mod file;
mod memory;
mod panic;
mod progress;
mod stop;

pub use file::FileError;
#[doc(hidden)]
pub use file::{if_there, sync_folder};
#[doc(hidden)]
pub use memory::return_freed_memory;
#[doc(hidden)]
pub use panic::panic_message;
pub use progress::{Progress, Tell};
pub use stop::Stop;
