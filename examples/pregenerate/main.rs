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
//! | `display.rs` | its `PregenerationProgress` as a bar, or as lines |
//! | `summary.rs` | what the run did |

mod arguments;
mod display;
mod ground;
mod job;
mod summary;

use std::process::ExitCode;
use summary::Summary;

pub use arguments::Arguments;

fn main() -> ExitCode {
    let arguments = match Arguments::from_command_line() {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    match run(&arguments) {
        Ok(summary) => {
            summary.print(arguments.json);
            summary.exit_code()
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// All that the tool does but for the command line and the exit code.
pub fn run(arguments: &Arguments) -> Result<Summary, String> {
    job::run(arguments)
}
