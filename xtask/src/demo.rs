//! `cargo xtask demo`

use crate::cargo::Cargo;
use crate::setup;
use std::ffi::OsString;
use std::process::{Command, ExitCode};

/// The command that runs the demo.
pub const RUN: [&str; 3] = ["run", "--example", "jacksboro"];

/// Sets the machine up and runs the demo; the exit status is the demo's.
pub fn run(arguments: Vec<OsString>) -> Result<ExitCode, String> {
    setup::machine()?;
    let cargo = Cargo::from_environment();
    hand_over(cargo.command(&RUN).arg("--").args(arguments))
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
