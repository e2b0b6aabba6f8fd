//! `cargo xtask test`: runs every check, cheapest first, until the first failure.

use crate::cargo::Cargo;
use crate::setup;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// Sets the machine up and runs every check.
pub fn run() -> Result<ExitCode, String> {
    setup::machine()?;
    setup::rust_components()?;
    let cargo = Cargo::from_environment();
    let start = Instant::now();

    step("Formatting", &mut cargo.command(&["fmt", "--all", "--check"]))?;
    let lints = ["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
    step("Lints, all features", &mut cargo.command(&lints))?;
    for features in ["", "rocksdb", "render", "overlay", "testing"] {
        // Clippy includes `cargo check`, and denies warnings only in this project's crates, while RUSTFLAGS would rebuild Bevy.
        let check = ["clippy", "--package", "bevy_terrane", "--lib", "--no-default-features", "--features", features];
        let name = if features.is_empty() { "no features" } else { features };
        step(&format!("Lints, {name}"), cargo.command(&check).args(["--", "-D", "warnings"]))?;
    }
    let alone = ["terrane_objects", "terrane_storage", "terrane_world"].map(|name| format!("--package={name}"));
    let mut check = cargo.command(&["clippy", "--lib", "--no-default-features"]);
    step("Lints, crates without Bevy and RocksDB", check.args(alone).args(["--", "-D", "warnings"]))?;
    let ours = ["bevy_terrane", "terrane_objects", "terrane_storage", "terrane_world"];
    let mut documentation = cargo.command(&["doc", "--no-deps", "--all-features"]);
    documentation.args(ours.map(|name| format!("--package={name}")));
    step("Documentation", documentation.env("RUSTDOCFLAGS", "-D warnings"))?;
    // `--all-targets` would leave out the doc tests.
    step("Tests", &mut cargo.command(&["test", "--workspace", "--all-features"]))?;
    let schematics = schematics();
    if schematics.exists() {
        let ignored = ["test", "--workspace", "--all-features", "--lib", "--test", "it", "--", "--ignored"];
        step("Tests of files of other programs", cargo.command(&ignored).env("TERRANE_SCHEMATICS", schematics))?;
    } else {
        println!("\nNot run: tests of files of other programs, since there is no {}", schematics.display());
    }

    println!("\nEverything passed in {}.", in_words(start.elapsed()));
    Ok(ExitCode::SUCCESS)
}

/// The folder with schematics from other programs, which are not part of the project.
fn schematics() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/schematics");
    env::var_os("TERRANE_SCHEMATICS").map_or_else(beside, PathBuf::from)
}

fn step(name: &str, command: &mut Command) -> Result<(), String> {
    println!("\n== {name} ==");
    let start = Instant::now();
    let status = command.status().map_err(|error| format!("{name}: cannot start {command:?}: {error}"))?;
    let elapsed = in_words(start.elapsed());
    if !status.success() {
        return Err(format!("{name} failed after {elapsed} ({status}): {command:?}"));
    }
    println!("-- {name}: passed in {elapsed}");
    Ok(())
}

fn in_words(duration: Duration) -> String {
    match duration.as_secs() {
        0..60 => format!("{:.1} s", duration.as_secs_f64()),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_readable() {
        assert_eq!(in_words(Duration::from_millis(1_240)), "1.2 s");
        assert_eq!(in_words(Duration::from_secs(60)), "1 min 0 s");
        assert_eq!(in_words(Duration::from_secs(754)), "12 min 34 s");
    }

    /// Promise, commands: `cargo xtask test` runs everything that CI runs, and names the step that failed.
    #[cfg(unix)]
    #[test]
    fn a_failed_step_names_itself_and_its_command() {
        assert_eq!(step("Fine", &mut Command::new("true")), Ok(()));
        let error = step("Wrong", &mut Command::new("false")).unwrap_err();
        assert!(error.contains("Wrong") && error.contains("\"false\""), "{error}");
        assert!(step("Absent", &mut Command::new("/no/such/program")).unwrap_err().contains("cannot start"));
    }
}
