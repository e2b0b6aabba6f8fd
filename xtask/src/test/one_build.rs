//! One build of the dependencies for all: what README and guide run, and a game beside this repository, compiles none anew.

use crate::cargo::Cargo;
use crate::demo;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The documents with commands to run in this repository.
const DOCUMENTS: [&str; 3] = ["README.md", "docs/guide", "docs/servers.md"];

/// The builds of the documents and of `cargo xtask demo`.
fn documented_builds() -> Result<BTreeSet<Vec<String>>, String> {
    let root = super::root();
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

/// Fails if the game or a build of the documents asks for features of a dependency that the tests do not compile it with. So neither
/// compiles one anew, in a build directory that the tests or the demo have filled.
pub fn compare_features(cargo: &Cargo, game: &Path) -> Result<(), String> {
    let features = |command: &mut Command| -> Result<BTreeSet<String>, String> {
        let output = command.args(["--format", "{p} {f}", "--prefix", "none"]).output();
        let output = output.map_err(|error| format!("cannot start {command:?}: {error}"))?;
        match output.status.success() {
            true => Ok(dependencies_with_features(&String::from_utf8_lossy(&output.stdout))),
            false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))),
        }
    };
    let tests = features(&mut cargo.command(&["tree", "--workspace", "--all-features"]))?;
    let mut trees = vec![cargo.command_in(game, &["tree", "--offline", "--edges", "normal,build"])?];
    for build in documented_builds()? {
        let choice = build.windows(2).filter(|pair| matches!(&*pair[0], "--features" | "--package")).flatten();
        let mut tree = cargo.command(&["tree", "--edges", "normal,build"]);
        tree.args(choice);
        trees.push(tree);
    }
    for mut tree in trees {
        let others: Vec<_> = features(&mut tree)?.difference(&tests).cloned().collect();
        if !others.is_empty() {
            return Err(format!("{tree:?} has other features than the tests: {others:?}"));
        }
    }
    Ok(())
}

/// The dependencies from the registry in what `cargo tree` prints, each with its version and features.
fn dependencies_with_features(tree: &str) -> BTreeSet<String> {
    let lines = tree.lines().map(|line| line.trim_end_matches(" (*)").trim_end());
    // A package of the workspace has its path in parentheses.
    lines.filter(|line| !line.is_empty() && !line.contains(" (/")).map(str::to_owned).collect()
}

/// Runs a build, and fails if it compiles a dependency that the tests have compiled already.
pub fn build(mut command: Command) -> Result<(), String> {
    let output = command.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("cannot start {command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?} failed ({})", output.status));
    }
    match &*dependencies_compiled(&String::from_utf8_lossy(&output.stdout)) {
        [] => Ok(()),
        anew => Err(format!("{command:?} compiled dependencies again, with other features than the tests: {anew:?}")),
    }
}

/// The dependencies from the registry that cargo compiled, by its messages in JSON.
fn dependencies_compiled(messages: &str) -> Vec<&str> {
    let compiled = messages
        .lines()
        .filter(|line| line.contains("\"reason\":\"compiler-artifact\"") && line.contains("\"fresh\":false"));
    let ids = compiled.filter_map(|line| line.split_once("\"package_id\":\"")?.1.split('"').next());
    ids.filter(|id| id.starts_with("registry+")).filter_map(|id| id.rsplit('#').next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let all: Vec<_> = documented_builds().unwrap().into_iter().map(|build| build.join(" ")).collect();
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
}
