//! A server and its clients: cached chunks are visible at once, and only changed chunks are sent.
//!
//! `cargo run --example multiplayer --features multiplayer` plays a whole scenario in separate processes: a server, Ada who
//! looks around and leaves, Bob who builds a tower, and Ada who comes back. Add `-- --help` for how to run the server and
//! clients by hand.
//!
//! | file | what it shows |
//! |---|---|
//! | `server.rs` | a `ChunkSyncPeer` and a viewer for each player that connects |
//! | `client.rs` | a `ChunkSyncClient` with a cache, and its results |
//! | `rehearsal.rs` | running the processes one after the other |
//! | `arguments.rs` | the command line |
//!
//! Files shared with other examples, in `../shared`:
//!
//! | file | what it shows |
//! |---|---|
//! | `network.rs` | renet: sockets, channels, and the messages of players |
//! | `start.rs` | Bevy with or without a window |
//! | `watch.rs` | pictures of a run without a window, once nothing changes any more |
//! | `tell.rs` | the common arguments, error messages and figures |

mod arguments;
mod client;
#[path = "../shared/network.rs"]
mod network;
mod rehearsal;
mod server;
#[path = "../shared/start.rs"]
mod start;
#[path = "../shared/tell.rs"]
mod tell;
#[path = "../shared/watch.rs"]
mod watch;

use arguments::{Arguments, Role};
use rehearsal::Rehearsal;
use std::process::ExitCode;

/// The folder for the world, the caches and the pictures.
const FOLDER: &str = "target/examples/multiplayer";

fn main() -> ExitCode {
    start::main(|Arguments { role, run }| match role {
        None => Rehearsal { folder: FOLDER.into() }.play(&run),
        Some(Role::Rehearse(rehearsal)) => rehearsal.play(&run),
        Some(Role::Serve(serve)) => Ok(server::build(serve, run)?.run()),
        Some(Role::Join(join)) => Ok(client::build(join, &run)?.run()),
    })
}
