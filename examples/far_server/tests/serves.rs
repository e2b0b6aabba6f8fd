//! The server runs, and has no renderer in it.

use std::process::Command;

/// Promise, crate: A server is built without a renderer: `cargo tree` of the example `far_server` shows none.
#[test]
fn no_renderer_is_compiled_in() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["tree", "--offline", "--package", "far_server", "--edges", "normal", "--prefix", "none"]);
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    let tree = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && tree.contains("bevy_ecs") && tree.contains("bevy_terrane"), "{output:?}");
    for crate_of_a_renderer in ["bevy_render", "bevy_pbr", "bevy_winit", "wgpu", "winit", "egui"] {
        assert!(!tree.lines().any(|line| line.starts_with(crate_of_a_renderer)), "{crate_of_a_renderer}: {tree}");
    }
}

#[test]
fn the_server_sends_land_to_its_players_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Command::new(env!("CARGO_BIN_EXE_far_server"));
    server
        .args(["--headless", "--seconds", "8"])
        .current_dir(folder.path())
        .env_remove("RUST_LOG")
        .env("NO_COLOR", "1");
    let output = server.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    for player in ["player at 0 sees ", "player at 1500 sees "] {
        let seen = text.lines().filter_map(|line| line.split_once(player)?.1.split(' ').next()?.parse::<u32>().ok());
        assert!(seen.max().is_some_and(|columns| columns > 200), "{text}");
    }
    assert!(folder.path().join("target/examples/far_server/world").is_dir());
}

/// Promise, examples: `far_server` prints its figures as JSON with `--json`, and refuses unknown and wrong arguments.
#[test]
fn figures_are_json_and_wrong_arguments_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut server = Command::new(env!("CARGO_BIN_EXE_far_server"));
        server.args(arguments).current_dir(folder.path()).env_remove("RUST_LOG").output().unwrap()
    };
    let output = run(&["--json", "--seconds", "4"]);
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.starts_with("{\"second\":")).unwrap();
    assert!(line.contains("\"player\":\"player at ") && line.ends_with('}'), "{text}");
    for wrong in [&["--seconds", "abc"][..], &["--seconds"], &["--seconds", "0"], &["--second", "3"]] {
        assert_eq!(run(wrong).status.code(), Some(2), "{wrong:?}");
    }
    assert!(run(&["-h"]).status.success());
}
