//! The tasks of a region thread: what arrives, the tick, what is handed out, and what is left after a panic.

mod act;
pub mod assignment;
pub mod receive;
pub mod salvage;
pub mod send;
