//! Runs the cargo that runs this program.

use crate::test::root;
use std::env;
use std::ffi::OsString;
use std::path::{self, Path, PathBuf};
use std::process::Command;

/// Cargo and its build directory.
pub struct Cargo {
    program: OsString,
    target: PathBuf,
}

impl Cargo {
    /// Uses cargo's own build directory, so that plain cargo commands find everything built.
    pub fn from_environment() -> Self {
        let wish = env::var_os("CARGO_TARGET_DIR").filter(|wish| !wish.is_empty());
        let target = wish.map_or_else(|| root().join("target"), PathBuf::from);
        Self { program: env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), target }
    }

    /// A cargo command for a project in another folder, with the same build directory.
    pub fn command_in(&self, folder: &Path, arguments: &[&str]) -> Result<Command, String> {
        let target = path::absolute(&self.target).map_err(|error| format!("{}: {error}", self.target.display()))?;
        let mut command = self.command(arguments);
        command.current_dir(folder).env("CARGO_TARGET_DIR", target);
        Ok(command)
    }

    /// The build directory.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// A cargo command with these arguments.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments);
        // Cargo sets these for this program. Some build scripts run again when they change.
        for (name, _) in env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
                command.env_remove(name);
            }
        }
        command
    }
}
