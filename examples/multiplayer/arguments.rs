//! What the user can choose.

use crate::FOLDER;
use crate::rehearsal::Rehearsal;
use crate::tell::Run;
use bevy::prelude::Resource;
use clap::{Args, Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;

/// A server and its clients: what a client has in its cache is seen at once, and only what changed is sent.
///
/// Without a command it plays that through: a server, Ada who looks around and leaves, Bob who builds a tower, and Ada who comes
/// back. It says what was sent each time, and leaves pictures. --seconds is how long each of them stays, connected, at the most.
#[derive(Parser, Debug)]
#[command(name = "multiplayer", verbatim_doc_comment)]
pub struct Arguments {
    #[command(subcommand)]
    pub role: Option<Role>,

    #[command(flatten)]
    pub run: Run,
}

/// What this process is.
#[derive(Subcommand, Clone, Debug)]
pub enum Role {
    /// Play it through, in processes of its own
    Rehearse(Rehearsal),
    /// Be the server
    Serve(Serve),
    /// Be a client; without a window it shows the cache, connects, and leaves when all is there, with a picture of each
    Join(Join),
}

/// A server.
#[derive(Args, Resource, Clone, Debug)]
pub struct Serve {
    /// Where to listen; port 0 takes any that is free, and the first line printed says which
    #[arg(long, default_value = "127.0.0.1:5700")]
    pub listen: SocketAddr,

    /// The world's folder; it is made if there is none
    #[arg(long, default_value = "target/examples/multiplayer/world")]
    pub world: PathBuf,

    /// Bytes a second that a client is sent at the most
    #[arg(long, default_value_t = 1 << 20)]
    pub bytes_per_second: u64,

    /// End when so many clients have left
    #[arg(long)]
    pub visits: Option<usize>,
}

/// A client.
#[derive(Args, Resource, Clone, Debug)]
pub struct Join {
    /// The server
    #[arg(long, default_value = "127.0.0.1:5700")]
    pub server: SocketAddr,

    /// The player: another one for each client at a time
    #[arg(long, default_value = "Ada")]
    pub name: String,

    /// The folder of the cache; it is made if there is none
    #[arg(long, default_value = "target/examples/multiplayer/caches")]
    pub caches: PathBuf,

    /// Columns that are seen around; the server keeps 12 loaded
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=12))]
    pub radius: u32,

    /// Build a tower in the middle
    #[arg(long)]
    pub build: bool,

    /// The folder of the pictures that are taken without a window
    #[arg(long, default_value = FOLDER)]
    pub pictures: PathBuf,
}
