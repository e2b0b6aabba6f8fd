//! The command line.

use crate::FOLDER;
use crate::tell::Run;
use bevy::prelude::Resource;
use clap::Parser;
use std::path::PathBuf;

/// Demolishes an arena with explosions while bots run through it, and restores it.
///
/// With a display it opens a window and plays round after round. Without one, or with --headless, it plays a single round,
/// or all rounds that start within --seconds. It saves pictures of the arena before, of the ruins, and after, and reports
/// whether every block was restored.
#[derive(Parser, Resource, Clone, Debug)]
#[command(name = "arena", verbatim_doc_comment)]
pub struct Arguments {
    /// The world's folder; created if missing
    #[arg(long, default_value = "target/examples/arena/world")]
    pub world: PathBuf,

    /// The number of bots that run through the arena
    #[arg(long, default_value_t = 24)]
    pub bots: u32,

    /// The number of explosions in a round
    #[arg(long, default_value_t = 400)]
    pub explosions: u32,

    /// The folder for pictures of a run without a window
    #[arg(long, default_value = FOLDER)]
    pub pictures: PathBuf,

    #[command(flatten)]
    pub run: Run,
}
