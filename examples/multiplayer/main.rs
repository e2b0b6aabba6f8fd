//! A server and its clients: what a client has in its cache is seen at once, and only what changed is sent.
//!
//! `cargo run --example multiplayer --features multiplayer` plays it through with processes of its own: a server, Ada who looks
//! around and leaves, Bob who builds a tower, and Ada who comes back. With `-- --help` it lists how to run server and clients
//! by hand.
//!
//! | file | what it shows |
//! |---|---|
//! | `server.rs` | a `ChunkSyncPeer` and a viewer for each player that connects |
//! | `client.rs` | a `ChunkSyncClient` with a cache, and what came of it |
//! | `network.rs` | renet: sockets, channels, and what players say besides |
//! | `rehearsal.rs` | the processes, one after the other |
//! | `arguments.rs` | the command line |
//!
//! What it has in common with other examples lies beside it, in `../shared`:
//!
//! | file | what it shows |
//! |---|---|
//! | `start.rs` | Bevy with a window, or without one |
//! | `picture.rs`, `watch.rs` | pictures of a run without a window, when all has come to rest |
//! | `sky.rs` | light and sky |
//! | `tell.rs` | the arguments that all examples have, errors and figures told |

mod arguments;
mod client;
mod network;
#[path = "../shared/picture.rs"]
mod picture;
mod rehearsal;
mod server;
#[path = "../shared/sky.rs"]
mod sky;
#[path = "../shared/start.rs"]
mod start;
#[path = "../shared/tell.rs"]
mod tell;
#[path = "../shared/watch.rs"]
mod watch;

use arguments::{Arguments, Role};
use rehearsal::Rehearsal;
use std::process::ExitCode;

/// Where the world, the caches and the pictures go.
const FOLDER: &str = "target/examples/multiplayer";

fn main() -> ExitCode {
    start::main(|Arguments { role, run }| match role {
        None => Rehearsal { folder: FOLDER.into() }.play(&run),
        Some(Role::Rehearse(rehearsal)) => rehearsal.play(&run),
        Some(Role::Serve(serve)) => Ok(server::build(serve, run)?.run()),
        Some(Role::Join(join)) => Ok(client::build(join, &run)?.run()),
    })
}
