//! `cargo xtask test`: runs every check, cheapest first, until the first failure.

use crate::cargo::Cargo;
use crate::documentation;
use crate::setup;
use crate::template;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
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
    documentation::build(&cargo)?;
    // `--all-targets` would leave out the doc tests.
    step("Tests", &mut cargo.command(&["test", "--workspace", "--all-features"]))?;
    let schematics = schematics();
    if schematics.exists() {
        let ignored = ["test", "--workspace", "--all-features", "--lib", "--test", "it", "--", "--ignored"];
        step("Tests of files of other programs", cargo.command(&ignored).env("TERRANE_SCHEMATICS", schematics))?;
    } else {
        println!("\nNot run: tests of files of other programs, since there is no {}", schematics.display());
    }

    let game = template::make_game(&root(), GAME)?;
    step_of_one_build("The template, as a game", cargo.command_in(&game, &["build", "--offline"])?)?;
    let run = ["run", "--offline", "--quiet", "--", "--headless", "--seconds", "30"];
    step("The game without a window", &mut cargo.command_in(&game, &run)?)?;
    for left in ["world".to_owned(), format!("target/examples/{GAME}/{GAME}.png")] {
        if !game.join(&left).exists() {
            return Err(format!("the game has left no {left} in {}", game.display()));
        }
    }

    for command in README_BUILDS {
        step_of_one_build(&format!("One build, cargo {}", command.join(" ")), cargo.command(command))?;
    }

    println!("\nEverything passed in {}.", in_words(start.elapsed()));
    Ok(ExitCode::SUCCESS)
}

/// The name of the game that is made from the template.
const GAME: &str = "cave_game";

/// How commands of the README and the demo build what they run.
const README_BUILDS: [&[&str]; 6] = [
    &["build", "--bin", "terrane"],
    &["build", "--bin", "far_server"],
    &["build", "--bin", "my_game"],
    &["build", "--example", "first_world"],
    &["build", "--example", "jacksboro"],
    &["build", "--example", "multiplayer", "--features", "multiplayer"],
];

/// Fails if a command of the README compiles a dependency that the tests have compiled already, with other features.
fn step_of_one_build(name: &str, mut command: Command) -> Result<(), String> {
    println!("\n== {name} ==");
    let start = Instant::now();
    let output = command.arg("--message-format=json").stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("{name}: cannot start: {error}"))?;
    if !output.status.success() {
        return Err(format!("{name} failed ({})", output.status));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let anew = dependencies_compiled(&messages);
    if !anew.is_empty() {
        return Err(format!("{name} compiled dependencies again, with other features than the tests: {anew:?}"));
    }
    println!("-- {name}: passed in {}", in_words(start.elapsed()));
    Ok(())
}

/// The dependencies from the registry that cargo compiled, by its messages in JSON.
fn dependencies_compiled(messages: &str) -> Vec<&str> {
    let compiled = messages
        .lines()
        .filter(|line| line.contains("\"reason\":\"compiler-artifact\"") && line.contains("\"fresh\":false"));
    let ids = compiled.filter_map(|line| line.split_once("\"package_id\":\"")?.1.split('"').next());
    ids.filter(|id| id.starts_with("registry+")).filter_map(|id| id.rsplit('#').next()).collect()
}

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_owned)
}

/// Where files of other programs are, which are no part of the project.
fn schematics() -> PathBuf {
    let beside = || root().join("../shared/schematics");
    env::var_os("TERRANE_SCHEMATICS").map_or_else(beside, PathBuf::from)
}

pub fn step(name: &str, command: &mut Command) -> Result<(), String> {
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

    /// Promise, commands: No command of the README compiles a dependency that the tests have compiled.
    #[test]
    fn dependencies_that_were_compiled_are_told_from_fresh_ones_and_from_our_own() {
        let artifact = |id: &str, fresh: bool| {
            format!(r#"{{"reason":"compiler-artifact","package_id":"{id}","target":{{"name":"x"}},"fresh":{fresh}}}"#)
        };
        let messages = [
            artifact("registry+https://example.org/index#serde_json@1.0.1", false),
            artifact("registry+https://example.org/index#serde@1.0.2", true),
            artifact("path+file:///home/project#bevy_terrane@0.1.0", false),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        assert_eq!(dependencies_compiled(&messages.join("\n")), ["serde_json@1.0.1"]);
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
