//! The template of a game runs as it is. `cargo xtask test` runs it under another name.

use std::path::Path;
use std::process::Command;

/// Promise, examples: The template is a game that runs as it is, and with `--headless` leaves a picture.
#[test]
fn the_template_runs_without_a_window_and_saves_its_world() {
    let folder = tempfile::tempdir().unwrap();
    let tests = std::env::current_exe().unwrap();
    let mut game = Command::new(tests.parent().and_then(Path::parent).unwrap().join("my_game"));
    game.arg("--headless").current_dir(folder.path()).env_remove("RUST_LOG").env("NO_COLOR", "1");
    let output = game.env_remove("XDG_RUNTIME_DIR").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !text.contains("ERROR") && !text.contains("WARN"), "{text}");
    assert!(folder.path().join("target/examples/my_game/my_game.png").is_file(), "{text}");
    assert!(folder.path().join("world").is_dir());
}
