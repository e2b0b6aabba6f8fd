#![doc = include_str!("../README.md")]

pub mod block;
pub mod body;
pub mod chunk;
pub mod chunk_sync;
pub mod entity;
pub mod entity_sync;
pub mod generation;
pub mod light;
pub mod liquid;
pub mod path;
pub mod region;
pub mod snapshot;
pub mod space;

use terrane_objects::{bytes, work};
