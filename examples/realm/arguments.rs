//! The command line.

use crate::FOLDER;
use crate::tell::Run;
use bevy::prelude::Resource;
use clap::{Args, Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;

/// One world on several servers, and clients that are sent from one to another as their players walk.
///
/// Without a command it plays a whole scenario in separate processes and checks it: a PostgreSQL server, three servers of the
/// game, and four clients. One of the servers is killed. Pictures of all clients and of the overlay are saved.
#[derive(Parser, Debug)]
#[command(name = "realm", verbatim_doc_comment)]
pub struct Arguments {
    #[command(subcommand)]
    pub role: Option<Role>,

    #[command(flatten)]
    pub run: Run,
}

/// The role of this process.
#[derive(Subcommand, Clone, Debug)]
pub enum Role {
    /// Play the whole scenario
    Rehearse {
        /// The folder of the caches and the pictures; caches of an earlier rehearsal are removed first
        #[arg(long, default_value = FOLDER)]
        folder: PathBuf,
    },
    /// Run a server
    Serve(Serve),
    /// Run a client; W, A, S, D ride, and G gives a gem to the nearest player
    Join(Join),
}

/// Options of a server.
#[derive(Args, Clone, Debug)]
pub struct Serve {
    /// The world's address, such as postgres://user:password@host/database#world
    #[arg(long)]
    pub world: String,

    /// The address to listen on, under which clients reach this server; port 0 takes any free port
    #[arg(long, default_value = "127.0.0.1:5700")]
    pub listen: SocketAddr,

    /// Show the overlay, in a window if there is a display
    #[arg(long)]
    pub watch: bool,

    /// The folder for pictures of the overlay without a window
    #[arg(long, default_value = FOLDER)]
    pub pictures: PathBuf,
}

/// Options of a client.
#[derive(Args, Resource, Clone, Debug)]
pub struct Join {
    /// The addresses of the servers, separated by commas; the client begins with the first
    #[arg(long, value_delimiter = ',', default_value = "127.0.0.1:5700")]
    pub servers: Vec<SocketAddr>,

    /// The player's name
    #[arg(long, default_value = "Ada")]
    pub name: String,

    /// The town where a new player begins
    #[arg(long, default_value_t = 0)]
    pub town: u8,

    /// The folder of the cache; created if missing
    #[arg(long, default_value = "target/examples/realm/caches")]
    pub caches: PathBuf,

    /// The folder for pictures of a run without a window
    #[arg(long, default_value = FOLDER)]
    pub pictures: PathBuf,
}
