//! The command line.

use crate::FOLDER;
use crate::tell::Run;
use bevy::prelude::Resource;
use clap::Parser;
use std::path::PathBuf;

/// Terrain to the horizon: chunks are loaded around the camera, and everything beyond is drawn from summaries.
///
/// Land that is not in the world yet is generated as far as it is visible, also while you fly. With a display it opens a
/// window: W A S D fly, Space and Shift up and down, Ctrl faster, the right mouse button turns the view. Without a
/// display, or with --headless, it saves a picture when everything is there, or after --seconds.
#[derive(Parser, Resource, Clone, Debug)]
#[command(name = "horizon", verbatim_doc_comment)]
pub struct Arguments {
    /// The world's folder; created if missing
    #[arg(long, default_value = "target/examples/horizon/world")]
    pub world: PathBuf,

    /// The radius in which chunks are loaded, in columns of 16 blocks
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(2..=64))]
    pub radius: u32,

    /// The radius in which land is visible, in columns of 16 blocks
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(16..=512))]
    pub far_radius: u32,

    /// The radius in which every block is visible, in columns of 16 blocks; each doubling of the distance halves the detail
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(0..=512))]
    pub detail: u32,

    /// The limit of the far view, in bytes per second
    #[arg(long, default_value_t = 16 << 20)]
    pub bytes_per_second: u64,

    /// The position of the camera, in blocks: x and z, and the height above the ground
    #[arg(long, num_args = 3, value_names = ["X", "HEIGHT", "Z"], default_values_t = [264.0, 160.0, 330.0], allow_negative_numbers = true)]
    pub from: Vec<f32>,

    /// The direction of the camera: degrees from north to east, and degrees down
    #[arg(long, num_args = 2, value_names = ["EAST", "DOWN"], default_values_t = [150.0, 13.0], allow_negative_numbers = true)]
    pub look: Vec<f32>,

    /// The folder for pictures of a run without a window
    #[arg(long, default_value = FOLDER)]
    pub pictures: PathBuf,

    #[command(flatten)]
    pub run: Run,
}
