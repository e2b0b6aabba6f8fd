//! The command line.

use crate::FOLDER;
use crate::tell::Run;
use bevy::prelude::Resource;
#[cfg(feature = "postgres")]
use bevy_terrane::storage::KeyValueStore;
use bevy_terrane::storage::{StorageConfig, StoreError};
use clap::Parser;
use std::path::PathBuf;
#[cfg(feature = "postgres")]
use std::sync::Arc;

/// Real terrain around the Jacksboro fault, Tennessee. A camera and some bots move over it, and the world is divided into
/// regions that tick in parallel, merge and split. Everything is saved; a second run continues the world.
///
/// With a display it opens a window:
/// W A S D fly, Space and Shift (or E and Q) up and down, Ctrl faster, the right mouse button turns the view;
/// the left button breaks the block under the pointer, the middle one or R places one; F3 shows the regions.
///
/// Without a display, or with --headless, it runs for --seconds, 30 by default, and saves three pictures in
/// target/examples/jacksboro/.
#[derive(Parser, Resource, Clone, Debug)]
#[command(name = "demo", verbatim_doc_comment)]
pub struct Arguments {
    /// The world's folder; created if missing
    #[arg(long, default_value = "target/examples/jacksboro/world")]
    pub world: PathBuf,

    /// The address of the world in PostgreSQL, instead of a folder: postgres://user@host/database#world
    #[cfg(feature = "postgres")]
    #[arg(long, value_name = "ADDRESS", conflicts_with = "world")]
    pub store: Option<String>,

    /// The number of bots that ride through the world
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub viewers: u32,

    /// The viewing distance of the camera, in columns of 16 blocks
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(4..=128))]
    pub radius: u32,

    /// The seed for the places of the trees
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// A custom terrain, a 16-bit greyscale PNG [default: the Jacksboro fault]
    #[arg(long, value_name = "PNG")]
    pub heightmap: Option<PathBuf>,

    /// The folder for pictures of a run without a window
    #[arg(long, default_value = FOLDER)]
    pub pictures: PathBuf,

    #[command(flatten)]
    pub run: Run,
}

impl Arguments {
    /// Where the world is stored. An address moves out of the arguments, and `world` gets it without its password.
    #[cfg(feature = "postgres")]
    pub fn storage(&mut self) -> Result<StorageConfig, StoreError> {
        let Some(address) = self.store.take() else { return Ok(StorageConfig::Path(self.world.clone())) };
        let store = terrane_postgres::PostgresStore::open(&address)?;
        self.world = store.path().to_path_buf();
        Ok(StorageConfig::Custom(Arc::new(store)))
    }

    /// Where the world is stored.
    #[cfg(not(feature = "postgres"))]
    pub fn storage(&mut self) -> Result<StorageConfig, StoreError> {
        Ok(StorageConfig::Path(self.world.clone()))
    }
}
