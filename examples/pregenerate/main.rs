//! Generates and stores an area of a world before anybody walks there: a tool for the command line.
//!
//! `cargo run --example pregenerate -- --help` lists what it can do. It can be stopped at any time, by Ctrl-C too, and
//! the next run goes on where it was.
//!
//! | file | what it shows |
//! |---|---|
//! | `main.rs` | exit codes |
//! | `arguments.rs` | the command line |
//! | `ground.rs` | generators to choose from |
//! | `job.rs` | an app without a window that runs a `Pregeneration` to its end |
//! | `display.rs` | its `JobProgress` as a bar, or as lines |
//! | `summary.rs` | what the run did |
//! | `../shared/progress.rs` | a bar, or lines |
//! | `../shared/tell.rs` | the arguments that all examples have, errors and figures told |

mod arguments;
mod display;
mod ground;
mod job;
#[path = "../shared/progress.rs"]
mod progress;
mod summary;
#[path = "../shared/tell.rs"]
mod tell;

use std::process::ExitCode;
use summary::Summary;

pub use arguments::Arguments;

fn main() -> ExitCode {
    let arguments: Arguments = tell::arguments();
    tell::end(run(&arguments).map(|summary| {
        arguments.run.print(&summary);
        summary.exit_code()
    }))
}

/// All that the tool does but for the command line and the exit code.
pub fn run(arguments: &Arguments) -> Result<Summary, String> {
    job::run(arguments)
}
