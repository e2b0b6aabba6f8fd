//! The tool of the example `pregenerate`, from its command line to its summary.

#![cfg(feature = "rocksdb")]

// Its `main` is not called here, and it shares files with another example.
#[allow(dead_code, clippy::duplicate_mod)]
#[path = "../../examples/pregenerate/main.rs"]
mod tool;

use bevy_terrane::storage::WorldStore;
use clap::Parser;
use std::path::Path;
use std::process::ExitCode;

fn parse(world: &Path, arguments: &[&str]) -> Result<tool::Arguments, String> {
    let line = ["pregenerate", world.to_str().unwrap()].into_iter().chain(arguments.iter().copied());
    tool::Arguments::try_parse_from(line).map_err(|error| error.to_string())
}

fn run(world: &Path, arguments: &[&str]) -> Result<serde_json::Value, String> {
    tool::run(&parse(world, arguments)?).map(|summary| serde_json::to_value(summary).unwrap())
}

/// Promise, pre-generation: A pre-generation counts columns that are stored already as done.
/// Promise, pre-generation: The example `pregenerate` generates an area from the command line, and reports as JSON with
/// `--json`.
#[test]
fn it_generates_an_area_continues_it_and_refuses_invalid_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let world = folder.path().join("world");
    let hills = ["--seed", "7", "--heights", "-16..48"];
    assert!(run(&world, &hills).unwrap_err().contains("no pre-generation to continue"));
    assert!(!world.exists(), "nothing is made for it");
    let summary = run(&world, &[&["--radius", "6", "--center", "-3,100"], &hills[..]].concat()).unwrap();
    assert_eq!((&summary["outcome"], &summary["columns"]), (&"finished".into(), &113.into()));
    assert_eq!((&summary["done"], &summary["failed"], &summary["generated"]), (&113.into(), &0.into(), &113.into()));
    assert!(summary["stored_bytes"].as_u64().unwrap() > 10_000);

    // A larger area around it has only the rest to do.
    let larger = ["--shape", "square", "--radius", "6", "--center=-3,100"];
    let summary = run(&world, &[&larger, &hills[..]].concat()).unwrap();
    assert_eq!((&summary["done"], &summary["generated"]), (&169.into(), &56.into()));

    let error = run(&world, &hills).unwrap_err();
    assert!(error.contains("no pre-generation to continue"), "{error}");
    let error = run(&world, &["--radius", "6", "--seed", "8"]).unwrap_err();
    assert!(error.contains("cannot be continued") && error.contains("seed"), "{error}");
    let store = WorldStore::open(&bevy_terrane::storage::StorageConfig::Path(world)).unwrap();
    let id = store.dimensions().unwrap()[0].id;
    let stored: u32 = store.stored_tiles(id).unwrap().iter().flat_map(|tile| tile.1).map(u16::count_ones).sum();
    assert_eq!((stored, store.pregenerations(id).unwrap().len()), (169, 0));
}

/// Promise, pre-generation: The example `pregenerate` generates an area from the command line, and reports as JSON with
/// `--json`.
#[test]
fn wrong_arguments_are_refused() {
    let world = Path::new("world");
    for (arguments, reason) in [
        (&["--radius", "many"][..], "invalid value 'many'"),
        (&["--center", "5", "--radius", "3"], "10,-3"),
        (&["--center", "9223372036854775807,0", "--radius", "3"], "no blocks so far out"),
        (&["--from", "0,0"], "--to"),
        (&["--from", "0,0", "--to", "1,1", "--radius", "3"], "cannot be used with"),
        (&["--heights", "5", "--radius", "3"], "-64..320"),
        (&["--generator", "cheese"], "cheese"),
        (&["--generator", "heightmap", "--radius", "3"], "--heightmap"),
    ] {
        let error = run(world, arguments).unwrap_err();
        assert!(error.contains(reason), "{arguments:?}: {error}");
    }
}

/// Promise, pre-generation: The exit code of the example `pregenerate` says how it ended.
#[test]
fn the_exit_code_says_how_it_ended() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = parse(&folder.path().join("world"), &["--radius", "1"]).unwrap();
    let mut summary = tool::run(&arguments).unwrap();
    assert_eq!(summary.outcome, "finished");
    let large = parse(&folder.path().join("large"), &["--radius", "300", "--seconds", "1"]).unwrap();
    assert_eq!(tool::run(&large).unwrap().outcome, "stopped");
    for (outcome, code) in [("finished", 0), ("incomplete", 3), ("stopped", 124), ("interrupted", 130)] {
        summary.outcome = outcome;
        assert_eq!(format!("{:?}", summary.exit_code()), format!("{:?}", ExitCode::from(code)), "{outcome}");
    }
}
