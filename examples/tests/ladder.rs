//! The small examples run without a window, and leave a picture.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs an example in a folder, and returns its output.
fn run(name: &str, folder: &Path) -> String {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    let mut command = Command::new(program);
    command.arg("--headless").current_dir(folder).env_remove("RUST_LOG").env("NO_COLOR", "1");
    let output = command.env_remove("XDG_RUNTIME_DIR").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {text}");
    for line in text.lines() {
        assert!(!line.contains("ERROR") && !line.contains("WARN") && !line.contains("error"), "{name}: {text}");
    }
    let picture = folder.join(format!("target/examples/{name}/{name}.png"));
    // A picture of one colour is much smaller.
    assert!(fs::metadata(&picture).unwrap().len() > 50_000, "{name}: {}", picture.display());
    text
}

/// Promise, examples: Each small example runs with `--headless`, and saves a picture.
#[test]
fn the_first_world_is_generated_drawn_and_saved() {
    let folder = tempfile::tempdir().unwrap();
    run("first_world", folder.path());
    assert!(folder.path().join("world").is_dir());
    run("first_world", folder.path());
}

/// Promise, examples: Each small example runs with `--headless`, and saves a picture.
#[test]
fn sheep_are_drawn_and_are_still_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let text = run("mobs", folder.path());
        assert!(text.contains(" 24 sheep, ") && !text.contains(" 48 sheep, "), "{text}");
    }
}

/// Promise, examples: Each small example runs with `--headless`, and saves a picture.
#[test]
fn the_other_small_examples_are_drawn() {
    for name in ["dimensions", "edit", "sparse_sky"] {
        run(name, tempfile::tempdir().unwrap().path());
    }
}

/// Promise, examples: The first game of the README and of the guide is the example `first_world`.
#[test]
fn the_readme_has_the_first_world() {
    let game = include_str!("../first_world.rs").split_once("\n\n").unwrap().1;
    let readme = include_str!("../../README.md");
    assert!(readme.contains(game), "the README's first game is another one");
    for line in [
        "bevy = { version = \"0.19\", default-features = false }",
        "bevy_terrane = { version = \"0.1\", features = [\"dev\"] }",
    ] {
        assert!(readme.contains(line), "the README does not name {line}");
    }
}

#[test]
fn an_unknown_argument_is_refused() {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().and_then(Path::parent).unwrap().join("examples/first_world");
    let output = Command::new(program).arg("--second").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("unknown argument \"--second\""), "{output:?}");
}
