//! Plays it through: a server, and clients one after the other, each a process of its own.

use crate::FOLDER;
use bevy::app::AppExit;
use clap::Args;
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A server, Ada who looks around and leaves, Bob who builds a tower, and Ada who comes back.
#[derive(Args, Clone, Debug)]
pub struct Rehearsal {
    /// The folder of the world, the caches and the pictures; what a rehearsal left there is removed first
    #[arg(long, default_value = FOLDER)]
    pub folder: PathBuf,
}

/// Ends the server with the rehearsal.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Rehearsal {
    /// Gives success if Ada was sent next to nothing the second time.
    pub fn run(&self) -> Result<AppExit, Box<dyn Error>> {
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
        println!("the server listens at {address}");

        let join = |name: &str, caches: &str, more: &[&str]| -> Result<Sent, Box<dyn Error>> {
            let mut client = Command::new(&program);
            client.args(["join", "--headless", "--server", &address, "--name", name]).args(more);
            client.arg("--caches").arg(self.folder.join("caches")).arg("--pictures").arg(self.folder.join(caches));
            let output = client.stderr(Stdio::inherit()).output()?;
            let text = String::from_utf8_lossy(&output.stdout);
            print!("{text}");
            if !output.status.success() {
                return Err(format!("{name} could not visit the server").into());
            }
            text.lines().find_map(Sent::parse).ok_or_else(|| format!("{name} does not say what was sent").into())
        };
        let first = join("Ada", "first", &[])?;
        join("Bob", "second", &["--build"])?;
        let second = join("Ada", "third", &[])?;

        println!(
            "the second time Ada was sent {} KiB instead of {} KiB: {} of {} chunks",
            second.kib, first.kib, second.chunks, first.chunks
        );
        let status = server.0.wait()?;
        match status.success() && second.chunks > 0 && second.chunks * 50 < first.chunks {
            true => Ok(AppExit::Success),
            false => Err("that is not what this example is to show".into()),
        }
    }
}

/// What a client was sent.
struct Sent {
    chunks: u64,
    kib: u64,
}

impl Sent {
    /// From the client's summary.
    fn parse(line: &str) -> Option<Self> {
        let (_, sent) = line.split_once("the server sent ")?;
        let mut numbers = sent.split(' ').filter_map(|word| word.parse().ok());
        Some(Self { chunks: numbers.next()?, kib: numbers.next()? })
    }
}
