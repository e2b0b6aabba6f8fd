//! The command line.

use crate::FOLDER;
use crate::rehearsal::Rehearsal;
use crate::tell::Run;
use bevy::prelude::Resource;
use clap::{Args, Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;

/// A server and its clients: cached chunks are visible at once, and only changed chunks are sent.
///
/// Without a command it plays a whole scenario: a server, Ada who looks around and leaves, Bob who builds a tower, and Ada
/// who comes back. It prints the amount of data sent each time, and saves pictures. --seconds limits how long each client
/// stays connected.
#[derive(Parser, Debug)]
#[command(name = "multiplayer", verbatim_doc_comment)]
pub struct Arguments {
    #[command(subcommand)]
    pub role: Option<Role>,

    #[command(flatten)]
    pub run: Run,
}

/// The role of this process.
#[derive(Subcommand, Clone, Debug)]
pub enum Role {
    /// Play the whole scenario, in separate processes
    Rehearse(Rehearsal),
    /// Run the server
    Serve(Serve),
    /// Run a client; without a window it shows the cache, connects, and leaves when everything is there, with a picture of each
    Join(Join),
}

/// Options of the server.
#[derive(Args, Resource, Clone, Debug)]
pub struct Serve {
    /// The address to listen on; port 0 takes any free port, which the first printed line names
    #[arg(long, default_value = "127.0.0.1:5700")]
    pub listen: SocketAddr,

    /// The world's folder; created if missing
    #[arg(long, default_value = "target/examples/multiplayer/world")]
    pub world: PathBuf,

    /// The maximum number of bytes per second sent to a client
    #[arg(long, default_value_t = 1 << 20)]
    pub bytes_per_second: u64,

    /// Exit after this many clients have left
    #[arg(long)]
    pub visits: Option<usize>,
}

/// Options of a client.
#[derive(Args, Resource, Clone, Debug)]
pub struct Join {
    /// The server's address
    #[arg(long, default_value = "127.0.0.1:5700")]
    pub server: SocketAddr,

    /// The player's name; clients that are connected at the same time need different names
    #[arg(long, default_value = "Ada")]
    pub name: String,

    /// The folder of the cache; created if missing
    #[arg(long, default_value = "target/examples/multiplayer/caches")]
    pub caches: PathBuf,

    /// The radius of the visible columns; the server keeps 12 loaded
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=12))]
    pub radius: u32,

    /// Build a tower in the middle
    #[arg(long)]
    pub build: bool,

    /// The folder for pictures of a run without a window
    #[arg(long, default_value = FOLDER)]
    pub pictures: PathBuf,
}
