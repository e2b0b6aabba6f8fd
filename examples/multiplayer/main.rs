//! A server and its clients: what a client has in its cache is seen at once, and only what changed is sent.
//!
//! `cargo run --example multiplayer --all-features` plays it through with processes of its own: a server, Ada who looks around
//! and leaves, Bob who builds a tower, and Ada who comes back. With `-- --help` it lists how to run server and clients by hand.
//!
//! | file | what it shows |
//! |---|---|
//! | `server.rs` | a `ChunkSyncPeer` and a viewer for each player that connects |
//! | `client.rs` | a `ChunkSyncClient` with a cache, and what came of it |
//! | `network.rs` | renet: sockets, channels, and what players say besides |
//! | `rehearsal.rs` | the processes, one after the other |
//! | `scene.rs` | light and camera |
//! | `arguments.rs` | the command line |
//! | `../shared/start.rs` | a window, or none |
//! | `../shared/picture.rs` | pictures of a run without a window |

mod arguments;
mod client;
mod network;
#[path = "../shared/picture.rs"]
mod picture;
mod rehearsal;
mod scene;
mod server;
#[path = "../shared/start.rs"]
mod start;

use arguments::{Arguments, Role};
use bevy::app::AppExit;
use clap::Parser;
use std::error::Error;

fn main() -> AppExit {
    let ended = match Arguments::parse().role() {
        Role::Rehearse(rehearsal) => rehearsal.run(),
        Role::Serve(serve) => server::build(serve).map(|mut app| app.run()),
        Role::Join(join) => client::build(join).map(|mut app| app.run()),
    };
    ended.unwrap_or_else(|error: Box<dyn Error>| {
        eprintln!("error: {error}");
        AppExit::error()
    })
}
