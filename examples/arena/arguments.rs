//! What the user can choose.

use crate::FOLDER;
use crate::tell::Run;
use bevy::prelude::Resource;
use clap::Parser;
use std::path::PathBuf;

/// An arena that is torn down while bots run through it, and restored.
///
/// With a display it opens a window and goes on round after round. Without one, or with --headless, it leaves a picture
/// from before, of the ruins and from after, and says whether every block is what it was: of a single round, or of all that
/// begin within --seconds.
#[derive(Parser, Resource, Clone, Debug)]
#[command(name = "arena", verbatim_doc_comment)]
pub struct Arguments {
    /// The world's folder; it is made if there is none
    #[arg(long, default_value = "target/examples/arena/world")]
    pub world: PathBuf,

    /// How many bots run through the arena
    #[arg(long, default_value_t = 24)]
    pub bots: u32,

    /// Explosions in a round
    #[arg(long, default_value_t = 400)]
    pub explosions: u32,

    /// The folder of the pictures that are taken without a window
    #[arg(long, default_value = FOLDER)]
    pub pictures: PathBuf,

    #[command(flatten)]
    pub run: Run,
}
