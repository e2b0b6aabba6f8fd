//! `cargo xtask test`: runs every check, cheapest first, until the first failure.

use crate::cargo::Cargo;
use crate::{demo, documentation, setup, template};
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Sets the machine up and runs every check.
pub fn run() -> Result<ExitCode, String> {
    setup::machine(true)?;
    setup::rust_components()?;
    let cargo = Cargo::from_environment();
    let start = Instant::now();

    step("Formatting", &mut cargo.command(&["fmt", "--all", "--check"]))?;
    let game = template::make_game(&root(), GAME)?;
    let builds = builds_after_the_tests()?;
    features_of_one_build(&cargo, &game, &builds)?;
    let lints = ["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
    step("Lints, all features", &mut cargo.command(&lints))?;
    for features in ["", "rocksdb", "render", "picking", "overlay", "dev", "metrics", "testing"] {
        // Clippy includes `cargo check`, and denies warnings only in this project's crates, while RUSTFLAGS would rebuild Bevy.
        let check = ["clippy", "--package", "bevy_terrane", "--lib", "--no-default-features", "--features", features];
        let name = if features.is_empty() { "no features" } else { features };
        step(&format!("Lints, {name}"), cargo.command(&check).args(["--", "-D", "warnings"]))?;
    }
    let alone = ["terrane_objects", "terrane_postgres", "terrane_storage", "terrane_world"]
        .map(|name| format!("--package={name}"));
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

    step_of_one_build("The template, as a game", cargo.command_in(&game, &["build", "--offline"])?)?;
    let run = ["run", "--offline", "--quiet", "--", "--headless", "--seconds", "30"];
    step("The game without a window", &mut cargo.command_in(&game, &run)?)?;
    for left in ["world".to_owned(), format!("target/examples/{GAME}/{GAME}.png")] {
        if !game.join(&left).exists() {
            return Err(format!("the game has left no {left} in {}", game.display()));
        }
    }

    for command in builds {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        step_of_one_build(&format!("One build, cargo {}", command.join(" ")), cargo.command(&words))?;
    }
    // Reads the manifests and lists the files; what they compile was tested above.
    let package = ["package", "--workspace", "--no-verify", "--allow-dirty", "--offline", "--quiet"];
    step("Packages", &mut cargo.command(&package))?;

    println!("\nEverything passed in {}.", in_words(start.elapsed()));
    Ok(ExitCode::SUCCESS)
}

/// The name of the game that is made from the template.
const GAME: &str = "cave_game";

/// The documents with commands to run in this repository.
const DOCUMENTS: [&str; 3] = ["README.md", "docs/guide", "docs/servers.md"];

/// The commands that must not compile a dependency again: those of the documents, of `cargo xtask demo`, and the second run of the tests.
fn builds_after_the_tests() -> Result<BTreeSet<Vec<String>>, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut builds = BTreeSet::new();
    for document in DOCUMENTS {
        let path = root.join(document);
        let files = match fs::read_dir(&path) {
            Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
            Err(_) => vec![path],
        };
        for file in files {
            let text = fs::read_to_string(&file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
            builds.extend(builds_of(&text));
        }
    }
    let others = [&demo::RUN[..], &demo::WITH_SERVER, &["run", "--bin", "my_game"], &["run", "--bin", "far_server"]];
    builds.extend(others.into_iter().filter_map(|command| build_of(command.iter().copied())));
    builds.insert(
        ["test", "--workspace", "--all-features", "--lib", "--test", "it", "--no-run"].map(str::to_owned).into(),
    );
    Ok(builds)
}

/// The builds behind the commands `cargo run` and `cargo build` of a document, in its `sh` blocks and between backticks.
fn builds_of(document: &str) -> impl Iterator<Item = Vec<String>> {
    let commands = document.split("cargo ").skip(1).map(|rest| rest.split(['`', '#', '\n']).next().unwrap_or_default());
    commands.filter_map(|command| build_of(command.split_whitespace()))
}

/// The build behind `run` or `build` with these arguments, if they name a program of this repository. A plain `cargo run` is that of
/// the reader's game.
fn build_of<'a>(mut arguments: impl Iterator<Item = &'a str>) -> Option<Vec<String>> {
    let task = arguments.next()?;
    let choice: Vec<_> = arguments.take_while(|argument| *argument != "--").map(str::to_owned).collect();
    // `NAME` stands for any program.
    let names_a_program = choice.iter().any(|argument| argument == "--bin" || argument == "--example")
        && !choice.iter().any(|argument| argument == "NAME");
    (matches!(task, "run" | "build") && names_a_program).then(|| [vec!["build".to_owned()], choice].concat())
}

/// Fails if the game or a build asks for features of a dependency that the tests do not compile it with. Cargo's own messages show
/// that only in an empty build directory.
fn features_of_one_build(cargo: &Cargo, game: &Path, builds: &BTreeSet<Vec<String>>) -> Result<(), String> {
    const NAME: &str = "Features of one build";
    println!("\n== {NAME} ==");
    let features = |command: &mut Command| -> Result<BTreeSet<String>, String> {
        let output = command.args(["--format", "{p} {f}", "--prefix", "none"]).output();
        let output = output.map_err(|error| format!("{NAME}: cannot start {command:?}: {error}"))?;
        match output.status.success() {
            true => Ok(dependencies_with_features(&String::from_utf8_lossy(&output.stdout))),
            false => Err(format!("{NAME}: {command:?}: {}", String::from_utf8_lossy(&output.stderr))),
        }
    };
    let tests = features(&mut cargo.command(&["tree", "--workspace", "--all-features"]))?;
    let mut trees = vec![cargo.command_in(game, &["tree", "--offline", "--edges", "normal,build"])?];
    for build in builds.iter().filter(|build| build[0] == "build") {
        let packages = build.windows(2).filter(|pair| matches!(&*pair[0], "--features" | "--package")).flatten();
        let mut tree = cargo.command(&["tree", "--edges", "normal,build"]);
        tree.args(packages);
        trees.push(tree);
    }
    for mut tree in trees {
        let others: Vec<_> = features(&mut tree)?.difference(&tests).cloned().collect();
        if !others.is_empty() {
            return Err(format!("{NAME}: {tree:?} has other features than the tests: {others:?}"));
        }
    }
    println!("-- {NAME}: passed");
    Ok(())
}

/// The dependencies from the registry in what `cargo tree` prints, each with its version and features.
fn dependencies_with_features(tree: &str) -> BTreeSet<String> {
    let lines = tree.lines().map(|line| line.trim_end_matches(" (*)").trim_end());
    // A package of the workspace has its path in parentheses.
    lines.filter(|line| !line.is_empty() && !line.contains(" (/")).map(str::to_owned).collect()
}

/// Fails if a command compiles a dependency that the tests have compiled already, with other features.
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

    /// Promise, commands: No program that README and guide run from this repository compiles a dependency that the tests have compiled.
    #[test]
    fn the_builds_of_readme_and_guide_are_found() {
        let text = "```sh\ncargo run --bin terrane -- info my-world # shows it\ncargo run\ncargo xtask test\n```\n\
            `cargo run --example edit` runs it, `cargo build --example multiplayer --features multiplayer` builds it, \
            `cargo install --path tools` installs a program.";
        let found: Vec<_> = builds_of(text).map(|build| build.join(" ")).collect();
        assert_eq!(
            found,
            ["build --bin terrane", "build --example edit", "build --example multiplayer --features multiplayer"]
        );
        let all: Vec<_> = builds_after_the_tests().unwrap().into_iter().map(|build| build.join(" ")).collect();
        for build in
            ["build --bin terrane", "build --bin my_game", "build --example jacksboro", "build --example first_world"]
        {
            assert!(all.iter().any(|found| found == build), "{build} is not in {all:?}");
        }
    }

    #[test]
    fn only_compiled_dependencies_count() {
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

    #[test]
    fn features_of_dependencies_are_compared_and_those_of_the_workspace_are_not() {
        let tree = "game v0.1.0 (/here/game) dev\nserde v1.0.2 alloc,std\nlog v0.4.1 \nserde v1.0.2 alloc,std (*)\n\n";
        assert_eq!(
            dependencies_with_features(tree),
            ["log v0.4.1", "serde v1.0.2 alloc,std"].map(str::to_owned).into()
        );
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
