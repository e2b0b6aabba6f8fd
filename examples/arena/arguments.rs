//! What the user can choose.

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

    /// Where the pictures go, without a window
    #[arg(long, default_value = "target/arena")]
    pub pictures: PathBuf,

    /// Open no window, play one round, and leave pictures
    #[arg(long)]
    pub headless: bool,
}

impl Arguments {
    /// The same, with `headless` set if there is nothing to open a window on.
    pub fn parse_for_this_machine() -> Self {
        let mut arguments = Self::parse();
        arguments.headless |= crate::start::lacks_display();
        arguments
    }
}
