//! `cargo xtask pictures`: the pictures of README and guide.

use crate::cargo::Cargo;
use crate::setup::{self, Of};
use crate::test::step;
use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
use std::process::{Command, ExitCode};

pub fn run(names: Vec<OsString>) -> Result<ExitCode, String> {
    let cargo = Cargo::from_environment();
    step("Examples", &mut cargo.command(&["build", "--workspace", "--all-features", "--examples", "--bins"]))?;
    // Its name is also in the package of the pictures' program and in the test.
    let (variable, folder) = ("TERRANE_WINDOW_PICTURES", cargo.target().join("window"));
    if names.is_empty() || names.iter().any(|name| name.to_string_lossy().starts_with("why_")) {
        setup::machine(&[Of::Window, Of::Screen])?;
        std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let test =
            ["test", "--workspace", "--all-features", "--test", "ladder", "window::a_person", "--", "--test-threads=1"];
        step("Clicks and keys in a window", cargo.command(&test).env(variable, &folder))?;
    }
    let program = cargo.target().join("debug").join(format!("pictures{EXE_SUFFIX}"));
    step("Pictures", Command::new(program).args(names).env(variable, &folder))?;
    Ok(ExitCode::SUCCESS)
}
