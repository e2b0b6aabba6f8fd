//! What the user can choose.

use crate::FOLDER;
use crate::tell::Run;
use bevy::prelude::Resource;
use clap::Parser;
use std::path::PathBuf;

/// Real terrain around the Jacksboro fault, Tennessee: a camera and some bots move over it, and the world is cut into
/// regions that tick in parallel, merge and split. Everything is saved; a second run continues the world.
///
/// With a display it opens a window:
/// W A S D fly, Space and Shift (or E and Q) up and down, Ctrl faster, the right mouse button turns the view;
/// the left button breaks the block under the pointer, the middle one or R places one; F3 shows the regions.
///
/// Without a display, or with --headless, it simulates for --seconds, or for 30, and leaves three pictures in
/// target/examples/jacksboro/.
#[derive(Parser, Resource, Clone, Debug)]
#[command(name = "demo", verbatim_doc_comment)]
pub struct Arguments {
    /// The world's folder; it is made if there is none
    #[arg(long, default_value = "target/examples/jacksboro/world")]
    pub world: PathBuf,

    /// How many bots ride through the world
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub viewers: u32,

    /// How far the camera sees, in columns of 16 blocks
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(4..=128))]
    pub radius: u32,

    /// Decides where the trees stand
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Terrain of your own, a 16-bit greyscale PNG [default: the Jacksboro fault]
    #[arg(long, value_name = "PNG")]
    pub heightmap: Option<PathBuf>,

    /// The folder of the pictures that are taken without a window
    #[arg(long, default_value = FOLDER)]
    pub pictures: PathBuf,

    #[command(flatten)]
    pub run: Run,
}
