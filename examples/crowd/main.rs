//! How many players a server carries: bots in a process of their own that walk, look and dig.
//!
//! `cargo run --example crowd --features multiplayer` starts a server and 200 bots, first spread over the land and then all in one
//! town, and prints what the server needed for them. Add `-- --bots 2000` for more, and `-- --help` for the rest.
//!
//! | file | what it shows |
//! |---|---|
//! | `server.rs` | players that live in regions, and figures of a run |
//! | `swarm.rs` | clients without Bevy: `Bot`s of `terrane_net` |
//! | `game.rs` | messages of the bots |
//! | `arguments.rs` | the command line |
//!
//! Files shared with other examples, in `../shared`:
//!
//! | file | what it shows |
//! |---|---|
//! | `tell.rs` | the common arguments, error messages and figures |

mod arguments;
mod game;
mod server;
mod swarm;
#[path = "../shared/tell.rs"]
mod tell;

use arguments::{Arguments, Options, Place, Role};
use server::Figures;
use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};
use tell::Run;

fn main() -> ExitCode {
    let Arguments { role, options, run } = tell::arguments();
    let ended = match role {
        Some(Role::Serve) => server::build(&options, run).map(|mut app| app.run()),
        Some(Role::Swarm(swarm)) => swarm::run(&swarm, &options),
        None => rehearse(&options, &run).map(|rounds| {
            run.print(&rounds);
            bevy::app::AppExit::Success
        }),
    };
    tell::end(ended)
}

/// Ends a process with this run.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The figures of both rounds.
#[derive(serde::Serialize)]
struct Rounds(Vec<Figures>);

impl Display for Rounds {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|figures| writeln!(f, "{figures}"))
    }
}

/// Plays both rounds, each with a server and its bots in processes of their own.
fn rehearse(options: &Options, run: &Run) -> Result<Rounds, Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let places = options.place.map_or(vec![Place::Land, Place::Town], |place| vec![place]);
    let mut rounds = Vec::new();
    for place in places {
        let options = Options { place: Some(place), ..options.clone() };
        let mut server = Command::new(&program);
        server.arg("serve").args(options.arguments());
        server.args(run.seconds.map(|seconds| format!("--seconds={seconds}")));
        let mut server = Ended(server.stdout(Stdio::piped()).spawn()?);
        let mut lines = BufReader::new(server.0.stdout.take().ok_or("the server says nothing")?).lines();
        let line = lines.next().ok_or("the server has ended")??;
        let listening = line.strip_prefix("listening at ").and_then(|line| line.split_once(' '));
        let (address, fingerprint) = listening.ok_or("the server does not listen")?;
        let mut bots = Command::new(&program);
        bots.args(["swarm", "--server", address, "--fingerprint", fingerprint]).args(options.arguments());
        let mut bots = Ended(bots.stdout(Stdio::piped()).spawn()?);
        let line = lines.next().ok_or("the server has ended without figures")??;
        let mut figures: Figures = serde_json::from_str(&line)?;
        let mut seen = BufReader::new(bots.0.stdout.take().ok_or("the bots say nothing")?).lines();
        figures.latencies = serde_json::from_str(&seen.next().ok_or("the bots have ended without figures")??)?;
        tell::say(&figures);
        rounds.push(figures);
    }
    Ok(Rounds(rounds))
}
