//! `cargo xtask pictures`: the pictures of README and guide.

use crate::cargo::Cargo;
use crate::test::step;
use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
use std::process::{Command, ExitCode};

pub fn run(names: Vec<OsString>) -> Result<ExitCode, String> {
    let cargo = Cargo::from_environment();
    step("Examples", &mut cargo.command(&["build", "--workspace", "--all-features", "--examples", "--bins"]))?;
    let program = cargo.target().join("debug").join(format!("pictures{EXE_SUFFIX}"));
    step("Pictures", Command::new(program).args(names))?;
    Ok(ExitCode::SUCCESS)
}
