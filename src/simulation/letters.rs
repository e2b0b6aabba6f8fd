//! Letters: messages and closures to places, entities, regions and servers.

pub mod letter;
pub mod post;
pub mod shared_messages;
pub mod waiting;
