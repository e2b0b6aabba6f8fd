//! Upgrades objects to a new format: all keys of one ending become keys of another, and each value is converted.
//!
//! `cargo run --example upgrade_keys -- FILE` turns `column/1,2/heights` into `column/1,2/heights.v2` and so on. A format of
//! values is part of their keys, not of their versions: so both can be in one file, and whoever reads it sees which it has.
//! It can be killed at any time; the next run goes on where it was, for what is upgraded has the other ending by then.
//!
//! | file | what it shows |
//! |---|---|
//! | `main.rs` | exit codes, and a bar or lines that say how far it is |
//! | `arguments.rs` | the command line |
//! | `upgrade.rs` | the upgrade, in atomic batches |
//! | `heights.rs` | both formats of a value |

mod arguments;
mod heights;
mod upgrade;

use bevy_terrane::object_store::{ObjectStore, ObjectStoreOptions};
use indicatif::{ProgressBar, ProgressStyle};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::{Duration, Instant};

pub use arguments::Arguments;
pub use upgrade::{Endings, Outcome, upgrade};

/// The time between two lines where there is no terminal.
const LINE_PERIOD: Duration = Duration::from_secs(5);
/// Objects that are named that cannot be upgraded; of others there is only their number.
const MOST_NAMED: usize = 20;

fn main() -> ExitCode {
    let arguments = match Arguments::from_command_line() {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    match run(&arguments) {
        Ok(Outcome { upgraded, left }) => {
            for (key, reason) in left.iter().take(MOST_NAMED) {
                eprintln!("warning: {key} stays as it is: {reason}");
            }
            println!("{upgraded} objects are upgraded, {} stay as they are", left.len());
            if left.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(3) }
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// All that the tool does but for the command line and the exit code.
pub fn run(arguments: &Arguments) -> Result<Outcome, String> {
    let Arguments { file, from, to } = arguments;
    let endings = Endings::new(from, to)?;
    let work = || {
        // Any signature will do: what is upgraded is told by the keys.
        let signature = ObjectStore::signature_of(file)?;
        let mut store = ObjectStore::open(file, &signature, ObjectStoreOptions::default())?;
        let outcome = upgrade(&mut store, endings, heights::convert, show())?;
        store.close()?;
        Ok(outcome)
    };
    work().map_err(|error: bevy_terrane::object_store::ObjectStoreError| error.to_string())
}

/// Shows how far it is: a bar in a terminal, lines elsewhere.
fn show() -> impl FnMut(usize, usize) -> ControlFlow<()> {
    let bar = ProgressBar::new(0);
    let style = ProgressStyle::with_template("[{wide_bar}] {pos} of {len} objects, {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
    let mut last_line = Instant::now();
    move |done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
        if bar.is_hidden() && last_line.elapsed() >= LINE_PERIOD {
            last_line = Instant::now();
            eprintln!("{done} of {all} objects");
        }
        ControlFlow::Continue(())
    }
}
