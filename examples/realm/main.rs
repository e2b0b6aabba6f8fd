//! One world on several servers: players walk from the ground of one server to that of another, and their clients follow.
//!
//! `cargo run --example realm --features realm` plays a whole scenario in separate processes: a PostgreSQL server, three servers of the
//! game, and four clients. Two players ride to the other two, are sent to other servers on the way, and give away a gem; a second client
//! logs in as one of them; one server is killed. It checks that no gem was lost or doubled, and saves pictures. Add `-- --help` for how
//! to run servers and clients by hand. PostgreSQL must be installed.
//!
//! | file | what it shows |
//! |---|---|
//! | `server.rs` | a server of a shared world: its plugin, and the overlay with all servers |
//! | `game.rs` | the game in the regions: players ride and give each other gems |
//! | `client.rs` | a client that follows its player from server to server, and keeps its chunks |
//! | `protocol.rs` | lines between the processes of the scenario |
//! | `rehearsal.rs` | the scenario |
//! | `arguments.rs` | the command line |
//!
//! Files shared with other examples, in `../shared`:
//!
//! | file | what it shows |
//! |---|---|
//! | `bodies.rs` | bodies of players, made of boxes |
//! | `start.rs` | Bevy with or without a window |
//! | `watch.rs` | pictures of a run without a window, once nothing changes any more |
//! | `tell.rs` | the common arguments, error messages and figures |

mod arguments;
#[path = "../shared/bodies.rs"]
mod bodies;
mod client;
mod game;
mod protocol;
#[cfg(unix)]
mod rehearsal;
mod server;
#[path = "../shared/start.rs"]
mod start;
#[path = "../shared/tell.rs"]
mod tell;
#[path = "../shared/watch.rs"]
mod watch;

use arguments::{Arguments, Role};
use std::process::ExitCode;

/// The folder for the caches, the pictures and the certificate of the servers.
const FOLDER: &str = "target/examples/realm";

fn main() -> ExitCode {
    start::main(|Arguments { role, run }| match role {
        Some(Role::Serve(serve)) => Ok(server::build(serve, &run)?.run()),
        Some(Role::Join(join)) => Ok(client::build(join, &run)?.run()),
        #[cfg(unix)]
        None => rehearsal::play(FOLDER.as_ref(), &run),
        #[cfg(unix)]
        Some(Role::Rehearse { folder }) => rehearsal::play(&folder, &run),
        #[cfg(not(unix))]
        _ => Err("the scenario starts PostgreSQL on Unix only; run `serve` and `join` by hand".into()),
    })
}
