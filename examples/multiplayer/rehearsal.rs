//! Plays the whole scenario: a server, and clients one after the other, each in its own process.

use crate::FOLDER;
use crate::client::Figures;
use crate::tell::{Run, say};
use bevy::app::AppExit;
use clap::Args;
use serde::Serialize;
use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Options of the scenario: a server, Ada who looks around and leaves, Bob who builds a tower, and Ada who comes back.
#[derive(Args, Clone, Debug)]
pub struct Rehearsal {
    /// The folder of the world, the caches and the pictures; files of an earlier rehearsal are removed first
    #[arg(long, default_value = FOLDER)]
    pub folder: PathBuf,
}

/// Stops the server when the rehearsal ends.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Rehearsal {
    /// Plays the scenario. It succeeds if Ada's second visit transfers next to nothing.
    pub fn play(&self, run: &Run) -> Result<AppExit, Box<dyn Error>> {
        for left in ["world", "caches"].map(|name| self.folder.join(name)) {
            match std::fs::remove_dir_all(&left) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(format!("cannot remove {}: {error}", left.display()).into());
                }
                _ => {}
            }
        }
        let program = std::env::current_exe()?;
        let mut server = Command::new(&program);
        server.args(["serve", "--listen", "127.0.0.1:0", "--visits", "3", "--world"]).arg(self.folder.join("world"));
        let mut server = Server(server.stdout(Stdio::piped()).spawn()?);
        let mut line = String::new();
        BufReader::new(server.0.stdout.take().ok_or("the server says nothing")?).read_line(&mut line)?;
        let address = line.trim().strip_prefix("listening at ").ok_or("the server does not listen")?.to_owned();
        say(format_args!("the server listens at {address}"));

        let join = |name: &str, pictures: &str, more: &[&str]| -> Result<Figures, Box<dyn Error>> {
            let mut client = Command::new(&program);
            client.args(["join", "--headless", "--json", "--server", &address, "--name", name]).args(more);
            client.args(run.seconds.map(|seconds| format!("--seconds={seconds}")));
            client.arg("--caches").arg(self.folder.join("caches")).arg("--pictures").arg(self.folder.join(pictures));
            let output = client.stderr(Stdio::inherit()).output()?;
            if !output.status.success() {
                return Err(format!("{name} could not visit the server").into());
            }
            let figures: Figures = serde_json::from_slice(&output.stdout)?;
            say(&figures);
            Ok(figures)
        };
        let visits = Visits {
            first: join("Ada", "first", &[])?,
            second: join("Bob", "second", &["--build"])?,
            third: join("Ada", "third", &[])?,
        };
        run.print(&visits);
        let (first, third) = (visits.first.chunks_sent, visits.third.chunks_sent);
        // A client that had to leave early did not receive everything.
        match server.0.wait()?.success() && (run.seconds.is_some() || third > 0 && third * 50 < first) {
            true => Ok(AppExit::Success),
            false => Err("that is not what this example is to show".into()),
        }
    }
}

#[derive(Serialize)]
struct Visits {
    first: Figures,
    second: Figures,
    third: Figures,
}

impl Display for Visits {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { first, third, .. } = self;
        let [before, now] = [first, third].map(|visit| visit.bytes_sent.div_ceil(1 << 10));
        let (chunks, all) = (third.chunks_sent, first.chunks_sent);
        write!(f, "the second time Ada was sent {now} KiB instead of {before} KiB: {chunks} of {all} chunks")
    }
}
