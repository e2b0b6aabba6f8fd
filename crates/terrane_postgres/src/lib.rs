#![doc = include_str!("../README.md")]

mod address;
mod batch;
mod connection;
mod failure;
mod reads;
mod schema;
#[cfg(all(unix, any(test, feature = "server")))]
pub mod server;
mod store;
#[cfg(all(unix, test))]
mod tests;
mod writer;

pub use store::{PostgresAccess, PostgresConfig, PostgresStore};
