//! Runs the cargo that runs this program, with one build directory for everything.

use std::env;
use std::ffi::OsString;
use std::path::{self, Path, PathBuf};
use std::process::Command;

/// Cargo and its build directory.
pub struct Cargo {
    program: OsString,
    target: Option<PathBuf>,
}

impl Cargo {
    /// Chooses the build directory and prints it.
    pub fn from_environment() -> Self {
        let target = target_directory(env::var_os("CARGO_TARGET_DIR"), env::var_os("HOME"));
        match &target {
            Some(directory) => println!("Building in {}", directory.display()),
            None => println!("Building in ./target"),
        }
        Self { program: env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), target }
    }

    /// A cargo command for a project in another folder, with the same build directory.
    pub fn command_in(&self, folder: &Path, arguments: &[&str]) -> Result<Command, String> {
        let target = self.target();
        let target = path::absolute(target).map_err(|error| format!("{}: {error}", target.display()))?;
        let mut command = self.command(arguments);
        command.current_dir(folder).env("CARGO_TARGET_DIR", target);
        Ok(command)
    }

    /// The build directory.
    pub fn target(&self) -> &Path {
        self.target.as_deref().unwrap_or(Path::new("target"))
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
        match &self.target {
            Some(directory) => command.env("CARGO_TARGET_DIR", directory),
            // Cargo rejects an empty value.
            None => command.env_remove("CARGO_TARGET_DIR"),
        };
        command
    }
}

/// The build directory, by default outside the repository, so that all checkouts share one build of Bevy and RocksDB.
fn target_directory(wish: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let set = |value: Option<OsString>| value.filter(|value| !value.is_empty());
    set(wish).map(PathBuf::from).or_else(|| Some(Path::new(&set(home)?).join(".cache/bevy_terrane/target")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_target_directory_wins() {
        let directory = |wish: Option<&str>, home: Option<&str>| {
            target_directory(wish.map(OsString::from), home.map(OsString::from))
        };
        assert_eq!(directory(Some("/builds"), Some("/home/ada")), Some("/builds".into()));
        assert_eq!(directory(None, Some("/home/ada")), Some("/home/ada/.cache/bevy_terrane/target".into()));
        assert_eq!(directory(Some(""), Some("/home/ada")), Some("/home/ada/.cache/bevy_terrane/target".into()));
        assert_eq!(directory(None, None), None);
    }
}
