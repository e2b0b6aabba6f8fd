//! Generates and stores an area of a world before players arrive: a command-line tool.
//!
//! `cargo run --example pregenerate -- --help` lists the options. It can be stopped at any time, by Ctrl-C too, and the
//! next run continues.
//!
//! | file | what it shows |
//! |---|---|
//! | `main.rs` | exit codes |
//! | `arguments.rs` | the command line |
//! | `ground.rs` | the available generators |
//! | `job.rs` | an app without a window that runs a `Pregeneration` until it ends |
//! | `display.rs` | its `JobProgress` as a bar, or as lines |
//! | `summary.rs` | a summary of the run |
//! | `../shared/progress.rs` | a bar, or lines |
//! | `../shared/tell.rs` | the common arguments, error messages and figures |

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

/// Runs the tool, without the command line and the exit code.
pub fn run(arguments: &Arguments) -> Result<Summary, String> {
    job::run(arguments)
}
