//! What the user can choose.

use crate::start::Screen;
use bevy::prelude::Resource;
use clap::Parser;
use std::path::PathBuf;

/// An arena that is torn down while bots run through it, and restored.
///
/// With a display it opens a window and goes on round after round. Without one, or with --headless, it plays a single
/// round, leaves a picture from before, of the ruins and from after, and says whether every block is what it was.
#[derive(Parser, Resource, Clone, Debug)]
#[command(name = "arena", verbatim_doc_comment)]
pub struct Arguments {
    /// The world's folder; it is made if there is none
    #[arg(long, default_value = "target/arena/world")]
    pub world: PathBuf,

    /// How many bots run through the arena
    #[arg(long, default_value_t = 24)]
    pub bots: u32,

    /// Explosions in a round
    #[arg(long, default_value_t = 400)]
    pub explosions: u32,

    #[command(flatten)]
    pub screen: Screen,
}
