//! The first game of the README runs and keeps its sheep.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The time limit of each wait, long enough for a debug build on a busy machine.
const DEADLINE: Duration = Duration::from_secs(120);

/// Kills the game if the test ends first.
struct Game(Child);

impl Drop for Game {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the game until it prints a line with the text, shuts it down cleanly, and returns its output.
fn play_until(folder: &Path, text: &str) -> Vec<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_first_game"));
    command.current_dir(folder).env_remove("RUST_LOG").env("NO_COLOR", "1");
    let mut game = Game(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let (sender, lines) = mpsc::channel();
    let err = BufReader::new(game.0.stderr.take().unwrap());
    let out = BufReader::new(game.0.stdout.take().unwrap());
    let other = sender.clone();
    thread::spawn(move || err.lines().map_while(Result::ok).try_for_each(|line| other.send(line)));
    thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));

    let mut printed = Vec::new();
    let start = Instant::now();
    while !printed.iter().any(|line: &String| line.contains(text)) {
        let left = DEADLINE.saturating_sub(start.elapsed());
        let line = lines.recv_timeout(left).unwrap_or_else(|error| panic!("no {text:?} ({error}) in {printed:#?}"));
        printed.push(line);
    }
    // Background jobs of a shell ignore SIGINT.
    Command::new("kill").args(["-TERM", &game.0.id().to_string()]).status().unwrap();
    let start = Instant::now();
    let status = loop {
        if let Some(status) = game.0.try_wait().unwrap() {
            break status;
        }
        assert!(start.elapsed() < DEADLINE, "the game does not end: {printed:#?}");
        thread::sleep(Duration::from_millis(20));
    };
    printed.extend(lines.iter());
    // Bevy's exit code for a clean shutdown after a signal.
    assert_eq!(status.code(), Some(130), "{status}: {printed:#?}");
    printed
}

#[test]
fn the_readme_has_this_game_and_its_dependencies() {
    let readme = include_str!("../../../README.md");
    assert!(readme.contains(include_str!("../src/main.rs")), "the README's first game is another one");
    let manifest = include_str!("../Cargo.toml").replace(", path = \"../..\"", "");
    let dependencies = manifest.split("[dependencies]\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap();
    for line in dependencies.lines() {
        assert!(readme.contains(line), "the README does not name {line}");
    }
}

#[cfg(unix)]
#[test]
fn the_first_game_prints_and_keeps_its_one_sheep() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..3 {
        let printed = play_until(folder.path(), "1 sheep, the hungriest has not eaten for");
        assert!(!printed.iter().any(|line| line.contains("2 sheep")), "{printed:#?}");
    }
    assert!(folder.path().join("world").is_dir());
}
