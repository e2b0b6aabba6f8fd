//! The template of a game: it runs as it is, and under another name.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn template() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../template")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

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

/// Promise, examples: `cargo generate` gives the template another name everywhere.
#[test]
fn a_game_made_from_the_template_has_its_own_name_everywhere() {
    let (template, game) = (template(), tempfile::tempdir().unwrap());
    let hook = fs::read_to_string(template.join("rename.rhai")).unwrap();
    for file in files(&template) {
        let name = file.strip_prefix(&template).unwrap();
        if name == Path::new("rename.rhai") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let is_renamed = hook.contains(&format!("{:?}", name.to_str().unwrap()));
        assert_eq!(is_renamed, text.contains("my_game"), "rename.rhai and {}", name.display());
        let copy = game.path().join(name);
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::write(copy, text.replace("my_game", "cave_game")).unwrap();
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut metadata = Command::new(cargo);
    metadata.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(game.path());
    let output = metadata.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("\"name\":\"cave_game\""), "{output:?}");
    let rules = fs::read_to_string(game.path().join("tests/rules.rs")).unwrap();
    assert!(rules.contains("use cave_game::{") && !rules.contains("my_game"));
}
