//! `cargo xtask test` runs every check, cheapest first, until the first failure; `cargo xtask check` runs the quick ones.

mod one_build;
mod programs;
mod steps;

use crate::cargo::Cargo;
use crate::setup::Of;
use crate::{documentation, setup, template};
use programs::Programs;
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use steps::Steps;
pub use steps::step;

/// The name of the game that is made from the template.
const GAME: &str = "cave_game";

/// Sets the machine up and runs every check.
pub fn run() -> Result<ExitCode, String> {
    setup::machine(&[Of::Database, Of::Window, Of::Screen])?;
    setup::rust_components()?;
    let cargo = Cargo::from_environment();
    let mut steps = Steps::default();
    let mut programs = Programs::default();
    let result = run_steps(&cargo, &mut steps, &mut programs);
    // Also after a failure: a slow step may be its reason.
    print!("{}{}", steps.table(), programs.slowest());
    result?;
    println!("\nEverything passed in {}.", steps.elapsed());
    Ok(ExitCode::SUCCESS)
}

fn run_steps(cargo: &Cargo, steps: &mut Steps, programs: &mut Programs) -> Result<(), String> {
    let game = template::make_game(&root(), GAME)?;
    steps.run("Formatting", &mut cargo.command(&["fmt", "--all", "--check"]))?;
    // Some of the next steps are offline, to fail on what is not in the lock file.
    steps.run("Downloads", &mut cargo.command(&["fetch", "--locked", "--target", "host-tuple"]))?;
    let tree = |game: &Path| cargo.command_in(game, &["tree", "--offline"]);
    steps.time("Versions of the template", || template::check_lock_file(&root(), tree))?;
    steps.time("Features of one build", || one_build::compare_features(cargo, &game))?;
    steps.run("Lints, all features", &mut lints(cargo))?;
    for features in ["", "rocksdb", "testing"] {
        // Clippy includes `cargo check`, and denies warnings only in this project's crates, while RUSTFLAGS would rebuild Bevy.
        let check = ["clippy", "--package", "bevy_terrane", "--lib", "--no-default-features", "--features", features];
        let name = if features.is_empty() { "no features" } else { features };
        steps.run(&format!("Lints, {name}"), cargo.command(&check).args(["--", "-D", "warnings"]))?;
    }
    let upon = ["dev", "gizmos", "inspect", "metrics", "overlay", "remote", "render"];
    let upon = upon.map(|name| format!("--package=terrane_{name}"));
    let mut check = cargo.command(&["clippy", "--lib"]);
    steps.run("Lints, crates upon this one", check.args(upon).args(["--", "-D", "warnings"]))?;
    let alone = ["terrane_objects", "terrane_postgres", "terrane_storage", "terrane_world"]
        .map(|name| format!("--package={name}"));
    let mut check = cargo.command(&["clippy", "--lib", "--no-default-features"]);
    steps.run("Lints, crates without Bevy and RocksDB", check.args(alone).args(["--", "-D", "warnings"]))?;
    steps.time("Documentation", || documentation::build(cargo))?;

    steps.time("Building the tests", || programs.build(cargo, &["--workspace", "--all-features"]))?;
    steps.time("Tests", || programs.run(&[], &[]))?;
    let schematics = schematics();
    if schematics.exists() {
        let variable = ("TERRANE_SCHEMATICS", schematics.as_os_str());
        steps.time("Tests of files of other programs", || programs.run(&["--ignored"], &[variable]))?;
    } else {
        println!("\nNot run: tests of files of other programs, since there is no {}", schematics.display());
    }
    steps.run(
        "Programs of the documentation",
        &mut cargo.command(&["test", "--workspace", "--all-features", "--doc"]),
    )?;

    // At these levels the crates compile in a sixth of the time.
    let levels = ["bevy_terrane", "terrane_storage"].map(|name| format!("profile.dev.package.{name}.opt-level=0"));
    let quickly = [&["--offline"][..], &["--config", &levels[0], "--config", &levels[1]]].concat();
    let build = [&["build"], &*quickly].concat();
    steps.time("The template, as a game", || one_build::build(cargo.command_in(&game, &build)?))?;
    let run = [&["run"], &*quickly, &["--quiet", "--", "--headless", "--seconds", "30"]].concat();
    steps.run("The game without a window", &mut cargo.command_in(&game, &run)?)?;
    for left in ["world".to_owned(), format!("target/examples/{GAME}/{GAME}.png")] {
        if !game.join(&left).exists() {
            return Err(format!("the game has left no {left} in {}", game.display()));
        }
    }
    // Reads the manifests and lists the files; what they compile was tested above. The template names the others as if they were published.
    let package = ["package", "--workspace", "--no-verify", "--allow-dirty", "--offline", "--quiet", "--exclude"];
    steps.run("Packages", cargo.command(&package).arg(template::PLACEHOLDER))
}

/// Runs the quick checks: formatting, the lints of all features, and the unit tests of the packages that have changed.
pub fn check() -> Result<ExitCode, String> {
    setup::rust_components()?;
    let cargo = Cargo::from_environment();
    let mut steps = Steps::default();
    let mut programs = Programs::default();
    steps.run("Formatting", &mut cargo.command(&["fmt", "--all", "--check"]))?;
    steps.run("Lints, all features", &mut lints(&cargo))?;
    let changed = changed_packages()?;
    if changed.is_empty() {
        println!("\nNo package has changed.");
    } else {
        let names: Vec<String> = changed.iter().map(|(name, _)| format!("--package={name}")).collect();
        // Cargo refuses to test libraries of packages that have none.
        let libraries = changed.iter().any(|(_, has_library)| *has_library).then_some("--lib");
        let kinds = ["--all-features", "--bins"].into_iter().chain(libraries);
        let choice: Vec<&str> = kinds.chain(names.iter().map(|name| &**name)).collect();
        steps.time("Building the unit tests", || programs.build(&cargo, &choice))?;
        steps.time("Unit tests", || programs.run(&[], &[]))?;
    }
    println!("{}\nPassed in {}.", steps.table(), steps.elapsed());
    Ok(ExitCode::SUCCESS)
}

/// The lints of all packages and features.
fn lints(cargo: &Cargo) -> Command {
    cargo.command(&["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"])
}

/// The packages with files that differ from the last commit, and whether each has a library.
fn changed_packages() -> Result<BTreeSet<(String, bool)>, String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(root()).output();
        let output = output.map_err(|error| format!("cannot start git: {error}"))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(format!("git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr))),
        }
    };
    let files = git(&["diff", "--name-only", "HEAD"])? + &git(&["ls-files", "--others", "--exclude-standard"])?;
    Ok(files.lines().filter_map(|file| package_of(&root(), Path::new(file))).collect())
}

/// The package of a Rust file, which is that of the nearest manifest above it, and whether it has a library.
fn package_of(root: &Path, file: &Path) -> Option<(String, bool)> {
    let is_rust = file.extension().is_some_and(|extension| extension == "rs") || file.ends_with("Cargo.toml");
    let mut folders = file.ancestors().skip(1).filter(|_| is_rust).map(|folder| root.join(folder));
    let (folder, package) = folders.find_map(|folder| {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).ok()?;
        Some((folder, manifest.split_once("[package]")?.1.to_owned()))
    })?;
    let name = package.split_once("name = \"")?.1.split('"').next()?;
    Some((name.to_owned(), folder.join("src/lib.rs").exists()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_belongs_to_the_package_above_it() {
        let of = |file| package_of(&root(), Path::new(file));
        assert_eq!(of("src/view/light.rs"), Some(("bevy_terrane".to_owned(), true)));
        assert_eq!(of("tests/it/light.rs"), Some(("bevy_terrane".to_owned(), true)));
        assert_eq!(of("crates/terrane_world/src/light.rs"), Some(("terrane_world".to_owned(), true)));
        assert_eq!(of("xtask/src/test.rs"), Some(("xtask".to_owned(), false)));
        assert_eq!(of("docs/guide/light.md"), None);
    }
}
