//! Common parts of long work and of work on files: progress, stopping, I/O errors and panic messages, and
//! returning freed memory to the system.

mod file;
mod memory;
mod panic;
mod progress;
mod stop;

pub use file::FileError;
#[doc(hidden)]
pub use file::{if_exists, sync_folder};
#[doc(hidden)]
pub use memory::return_freed_memory;
#[doc(hidden)]
pub use panic::panic_message;
pub use progress::{Progress, Tell};
pub use stop::Stop;
