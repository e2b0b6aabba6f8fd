//! The examples run without a window, and leave pictures. One of them also runs in a window.

#[path = "ladder/window.rs"]
mod window;

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn program(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let built = tests.parent().and_then(Path::parent).unwrap();
    let example = built.join("examples").join(name);
    // `barrels` is a package of its own.
    if example.exists() { example } else { built.join(name) }
}

/// Runs an example in a folder, and returns its output.
fn run(name: &str, arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(program(name));
    command.arg("--headless").args(arguments).current_dir(folder).env_remove("RUST_LOG").env("NO_COLOR", "1");
    // `DevPlugins` silence the display driver by themselves; for the larger examples `.cargo/config.toml` does.
    if arguments.is_empty() {
        command.env_remove("XDG_RUNTIME_DIR");
    } else {
        command.env("XDG_RUNTIME_DIR", "/nonexistent");
    }
    let output = command.output().unwrap();
    let text = text(&output);
    assert!(output.status.success(), "{name}: {text}");
    for line in text.lines() {
        assert!(!line.contains("ERROR") && !line.contains("WARN") && !line.contains("error"), "{name}: {text}");
    }
    output
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Checks the pictures of an example.
fn check_pictures(name: &str, folder: &Path, pictures: &[&str]) {
    for picture in pictures {
        let path = folder.join(format!("target/examples/{name}/{picture}.png"));
        let bytes = fs::metadata(&path).map_or(0, |file| file.len());
        // A picture of one colour is much smaller.
        assert!(bytes > 50_000, "{name}: {} of {bytes} bytes", path.display());
    }
}

/// Runs a small example, and returns what it logs.
fn step(name: &str, folder: &Path) -> String {
    let output = run(name, &[], folder);
    check_pictures(name, folder, &[name]);
    text(&output)
}

/// Runs a larger example, and returns its figures.
fn figures(name: &str, arguments: &[&str], pictures: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let output = run(name, &[arguments, &["--json"]].concat(), folder.path());
    check_pictures(name, folder.path(), pictures);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Promise, examples: Each example of the guide runs with `--headless`, and saves a picture.
#[test]
fn the_first_world_is_generated_drawn_and_saved() {
    let folder = tempfile::tempdir().unwrap();
    step("first_world", folder.path());
    assert!(folder.path().join("world").is_dir());
    step("first_world", folder.path());
}

/// Promise, examples: Each example of the guide runs with `--headless`, and saves a picture.
#[test]
fn barrels_roll_down_the_slope() {
    step("barrels", tempfile::tempdir().unwrap().path());
}

/// Promise, examples: Each example of the guide runs with `--headless`, and saves a picture.
#[test]
fn sheep_are_drawn_and_are_still_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let text = step("mobs", folder.path());
        assert!(text.contains(" 24 sheep, ") && !text.contains(" 48 sheep, "), "{text}");
    }
}

/// Promise, examples: Each example of the guide runs with `--headless`, and saves a picture.
#[test]
fn the_steps_with_other_dimensions_are_drawn() {
    for name in ["dimensions", "sparse_sky"] {
        step(name, tempfile::tempdir().unwrap().path());
    }
}

/// Promise, examples: Each example of the guide runs with `--headless`, and saves a picture.
#[test]
fn the_other_steps_of_the_guide_are_drawn() {
    for name in ["edit", "hud", "islands"] {
        step(name, tempfile::tempdir().unwrap().path());
    }
}

/// The mean color of the 9 x 9 pixels around a place of a picture, in sRGB, since textures are turned at random.
fn color(folder: &Path, example: &str, picture: &str, [x, y]: [usize; 2]) -> [u8; 3] {
    let file = fs::File::open(folder.join(format!("target/examples/{example}/{picture}.png"))).unwrap();
    let mut reader = png::Decoder::new(std::io::BufReader::new(file)).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    let pixels = (y - 4..=y + 4).flat_map(|y| (x - 4..=x + 4).map(move |x| (x, y)));
    let starts: Vec<_> = pixels.map(|(x, y)| y * info.line_size + x * info.color_type.samples()).collect();
    [0, 1, 2].map(|channel| {
        let sum: usize = starts.iter().map(|start| usize::from(bytes[start + channel])).sum();
        (sum / starts.len()) as u8
    })
}

/// Promise, looks: Opaque, cut-out and blended blocks are drawn with their textures: sky is seen through glass, sand through water, and
/// torches and lamps shine at night.
#[test]
fn the_garden_shows_every_render_mode() {
    let folder = tempfile::tempdir().unwrap();
    run("blocks", &[], folder.path());
    check_pictures("blocks", folder.path(), &["day", "dusk", "night", "under_water", "behind_glass", "rain"]);
    let color = |picture: &str, place| color(folder.path(), "blocks", picture, place).map(i32::from);
    let is_blue = |[red, _, blue]: [i32; 3]| blue > red + 30;
    assert!(is_blue(color("day", [640, 40])), "the sky");
    let through_two_panes = color("behind_glass", [1000, 260]);
    assert!(is_blue(through_two_panes) && through_two_panes[0] > 120, "sky behind glass: {through_two_panes:?}");
    let [red, _, blue] = color("under_water", [640, 600]);
    assert!(red > blue + 20, "sand under water");
    assert!(is_blue(color("day", [1120, 420])), "water over sand");
    let brightness = |picture| color(picture, [1000, 560]).iter().sum::<i32>();
    assert!(brightness("rain") + 60 < brightness("day"), "the game's extension of the material darkens wet ground");
    let [torch, lit, dark] = [[430, 370], [700, 350], [1100, 240]].map(|place| color("night", place));
    assert!(
        torch[0] > 150 && lit[0] > 100 && lit[0] > lit[2] + 50,
        "torches shine, and light the path: {torch:?}, {lit:?}"
    );
    assert!(dark.iter().all(|channel| *channel < 60), "the ground away from them is dark: {dark:?}");
}

/// Promise, light: Chunks are drawn with the light of the sky and of blocks: a torch lights the ground at night, a cave is dark away from
/// its torches and below its roof, and sunlight falls through a shaft and through water. A single block has the light of its place.
#[test]
fn the_cave_shows_light_of_the_sky_and_of_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let text = text(&run("cave", &[], folder.path()));
    let pictures = ["torch", "torch_moved", "dusk", "cave", "skylight", "water_and_leaves"];
    check_pictures("cave", folder.path(), &pictures);
    let brightness =
        |picture: &str, place| -> u32 { color(folder.path(), "cave", picture, place).into_iter().map(u32::from).sum() };
    for place in [[750, 407], [1200, 386]] {
        let [near, far] = ["torch", "torch_moved"].map(|picture| brightness(picture, place));
        assert!(near * 4 > far * 5, "a torch that moves away from {place:?}: {near} to {far}");
    }
    let pairs = [("cave", [607, 448], [1186, 214]), ("skylight", [782, 639], [214, 321])];
    for (picture, bright, dark) in pairs.into_iter().chain([("water_and_leaves", [450, 350], [640, 250])]) {
        let [bright, dark] = [bright, dark].map(|place| brightness(picture, place));
        assert!(bright > 2 * dark, "{picture}: {bright} and {dark}");
    }
    // The same block of snow in the sun, and in a hole without light.
    let [sun, hole] = ["snow_in_the_sun", "snow_in_a_hole"].map(|picture| brightness(picture, [640, 360]));
    assert!(sun > 450 && hole < 60, "{sun} and {hole}");
    // Mobs that spawn in the dark.
    assert!(text.contains("12 slimes, 0 of them in the light"), "{text}");
}

/// Promise, looks: A mesher of the game draws the blocks that it wants, follows every change, and goes with the chunk.
#[test]
fn the_hills_are_smooth() {
    step("smooth", tempfile::tempdir().unwrap().path());
}

/// Promise, examples: Each example of the guide runs with `--headless`, and saves a picture.
#[test]
fn the_arena_is_put_back_as_it_was() {
    let round = figures("arena", &["--bots", "8", "--explosions", "40"], &["before", "ruins", "after"]);
    assert_eq!((&round["explosions"], &round["columns_lost"]), (&40.into(), &0.into()), "{round}");
    assert!(round["columns_torn"].as_u64() > Some(0), "{round}");
}

/// Promise, examples: Each example of the guide runs with `--headless`, and saves a picture.
#[test]
fn land_is_seen_beyond_the_loaded_columns() {
    let seen = figures("horizon", &["--radius", "4", "--far-radius", "32"], &["horizon"]);
    assert!(seen["columns_seen"].as_u64() > Some(3_000) && seen["columns_loaded"].as_u64() < Some(200), "{seen}");
}

/// Promise, examples: Each example of the guide runs with `--headless`, and saves a picture.
#[test]
fn the_demo_builds_its_landmarks() {
    let arguments = ["--seconds", "3", "--viewers", "4", "--radius", "8"];
    let demo = figures("jacksboro", &arguments, &["jacksboro", "overlay", "halted"]);
    assert!(demo["ticks"].as_u64() > Some(0) && demo["edits_found"] == demo["edits_expected"], "{demo}");
}

/// Promise, company: A client that comes back is sent only the chunks that have changed.
#[cfg(feature = "multiplayer")]
#[test]
fn a_client_that_comes_back_is_sent_only_what_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    let visit = || -> Vec<u64> {
        let text = step("multiplayer", folder.path());
        let line = text.lines().find(|line| line.contains("were in the cache")).expect(&text);
        line.split_whitespace().filter_map(|word| word.parse().ok()).collect()
    };
    let (first, second) = (visit(), visit());
    let ([all, none], [few, most]) = (&first[..], &second[..]) else { panic!("{first:?}, {second:?}") };
    assert!(*none == 0 && *all > 5_000 && few * 20 < *all && most + few >= *all, "{first:?}, {second:?}");
}

/// The rehearsal fails by itself if a gem is lost or doubled, or if two log-ins of one name are two players.
///
/// Promise, servers: Clients follow their players from server to server, and play again within 15 s of a server's death.
#[cfg(all(unix, feature = "realm"))]
#[test]
fn two_players_ride_to_others_and_all_outlive_a_server() {
    let realm = figures("realm", &[], &["ada", "servers", "after-the-death"]);
    assert!(realm["redirections"].as_u64() >= Some(3) && realm["gems"].as_u64() == Some(12), "{realm}");
    assert!(realm["recovery"].as_f64() < Some(15.0) && realm["chunks_saved"].as_u64() > Some(0), "{realm}");
}

#[cfg(feature = "multiplayer")]
#[test]
fn a_crowd_of_bots_plays_on_a_server() {
    let rounds = figures("crowd", &["--bots", "6", "--seconds", "3", "--place", "town"], &[]);
    let town = &rounds[0];
    assert_eq!((town["players"].as_u64(), town["columns_missing"].as_u64()), (Some(6), Some(0)), "{rounds}");
    assert!(
        town["bytes_per_player_and_second"].as_f64() > Some(0.0) && town["tps"][0].as_f64() > Some(10.0),
        "{rounds}"
    );
}

/// Promise, examples: The first game of the README and of the guide is the example `first_world`.
#[test]
fn the_readme_and_the_guide_have_the_first_world() {
    let (_, game) = include_str!("../first_world.rs").split_once("\n\n").unwrap();
    let readme = include_str!("../../README.md");
    assert!(readme.contains(game), "the README's first game is another one");
    let chapter = include_str!("../../docs/guide/first-world.md");
    for part in game.split("\n\n").filter(|part| part.contains("fn ")) {
        assert!(chapter.contains(part.trim_end()), "the first chapter does not have {part}");
    }
    for line in [
        "bevy = { version = \"0.19\", default-features = false }",
        "bevy_terrane = \"0.1\"",
        "terrane_dev = \"0.1\"",
        "terrane_render = \"0.1\"",
    ] {
        assert!(
            readme.contains(line) && chapter.contains(line),
            "the README or the first chapter does not name {line}"
        );
    }
}

#[test]
fn an_unknown_argument_is_refused() {
    let output = Command::new(program("first_world")).arg("--second").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("unknown argument \"--second\""), "{output:?}");
}
