//! `cargo xtask demo`

use crate::cargo::Cargo;
use crate::setup;
use crate::setup::Of;
use std::ffi::OsString;
use std::process::{Command, ExitCode};

/// The command that runs the demo.
pub const RUN: [&str; 3] = ["run", "--example", "jacksboro"];

/// The command that starts a PostgreSQL server for the demo, and then the command behind it.
pub const WITH_SERVER: [&str; 5] = ["run", "--example", "postgres_server", "--features", "server"];
/// The folder of that server.
const SERVER: &str = "target/postgres";

/// Sets the machine up and runs the demo; the exit status is the demo's. `--postgres` starts a PostgreSQL server for its world.
pub fn run(mut arguments: Vec<OsString>) -> Result<ExitCode, String> {
    let has_server = arguments.iter().any(|argument| argument == "--postgres");
    setup::machine(if has_server { &[Of::Database] } else { &[] })?;
    let cargo = Cargo::from_environment();
    let has_store = arguments.iter().any(|argument| argument.to_str().is_some_and(|text| text.starts_with("--store")));
    let features: &[&str] = if has_server || has_store { &["--features", "postgres"] } else { &[] };
    if !has_server {
        return hand_over(cargo.command(&RUN).args(features).arg("--").args(arguments));
    }
    arguments.retain(|argument| argument != "--postgres");
    let demo = cargo.command(&RUN);
    let mut command = cargo.command(&WITH_SERVER);
    command.args(["--", SERVER]).arg(demo.get_program()).args(demo.get_args());
    hand_over(command.args(features).arg("--").args(arguments).arg("--store"))
}

/// Replaces this process with cargo, which replaces itself with the demo. So Ctrl-C or `kill` reaches only the demo, and the
/// shell waits until the demo has saved its world.
#[cfg(unix)]
fn hand_over(command: &mut Command) -> Result<ExitCode, String> {
    use std::os::unix::process::CommandExt;
    let error = command.exec();
    Err(format!("cannot start {command:?}: {error}"))
}

#[cfg(not(unix))]
fn hand_over(command: &mut Command) -> Result<ExitCode, String> {
    let status = command.status().map_err(|error| format!("cannot start {command:?}: {error}"))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}
