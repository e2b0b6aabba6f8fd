//! The commands of `terrane schematic`.

use super::*;
use crate::schematics::{real_file, states};
use bevy_terrane::snapshot::schematic::{BlockEntity, ReadOptions, Schematic, WriteOptions};

/// Promise, upkeep: `schematic export` writes a box of blocks, and `schematic import` puts it elsewhere and can turn it.
#[test]
fn a_box_is_exported_and_imported_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let world = folder.path().join("world");
    make_world(&world, 5);
    name_blocks(&world);
    let (path, file) = (world.to_str().unwrap(), folder.path().join("noise.schem"));
    let file_path = file.to_str().unwrap();
    let export = |file: &str, is_stopped| {
        let area = ["--from", "20,30,-5", "--to", "-7,-3,12", "--level", "1"];
        try_run(&[&["schematic", "export", path, file, "-d", "overworld"][..], &area].concat(), is_stopped)
    };
    assert_eq!(ending(&export(file_path, true).unwrap()), "stopped");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left of it");
    let exported = export(file_path, false).unwrap();
    assert_eq!(exported.json["size"], serde_json::json!([28, 34, 18]));
    assert_eq!((&exported.json["entities"], &exported.json["missing_chunks"]), (&1.into(), &0.into()));
    assert!(export(file_path, false).unwrap_err().contains("exists already"));
    let info = run(&["schematic", "info", file_path]);
    assert_eq!((&info.json["origin"], &info.json["offset"]), (&[-7, -3, -5].into(), &[0, 0, 0].into()));

    let import =
        |more: &[&str]| try_run(&[&["schematic", "import", path, file_path, "-d", "overworld"], more].concat(), false);
    let same = import(&[]).unwrap();
    assert_eq!((&same.json["chunks"], &same.json["known_entities"]), (&0.into(), &1.into()), "it is there already");
    let elsewhere = import(&["--at", "-40,1,-40"]).unwrap();
    assert_eq!(
        (&elsewhere.json["new_types"], &elsewhere.json["entities"]),
        (&0.into(), &0.into()),
        "{}",
        elsewhere.text()
    );
    assert!(elsewhere.json["chunks"].as_u64().unwrap() > 0);
    let copy = folder.path().join("copy.schem").to_str().unwrap().to_owned();
    let area = ["--from", "-40,1,-40", "--to", "-13,34,-23", "--version", "2"];
    run(&[&["schematic", "export", path, &copy, "-d", "overworld"][..], &area].concat());
    let read = |path: &str| Schematic::read(fs::File::open(path).unwrap(), &ReadOptions::default()).unwrap().0;
    assert_eq!((states(&read(file_path)), read(&copy).version), (states(&read(&copy)), 2));
    assert_eq!(run(&["verify", path]).json["damaged"], 0);

    let refused = import(&["--at", "80,0,80"]).unwrap_err();
    assert!(refused.contains("never generated") && refused.contains("--only-generated"), "{refused}");
    let partly = import(&["--at", "80,0,80", "--only-generated", "--turn", "1", "--flip", "z"]).unwrap();
    assert_eq!((ending(&partly), &partly.json["ungenerated"]), ("finished", &3.into()), "{}", partly.text());

    // From a damaged file whole layers are imported, and only on request.
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let refused = import(&["--at", "-40,1,-40"]).unwrap();
    assert!(ending(&refused) == "damaged" && refused.text().contains("too early"), "{}", refused.text());
    assert!(refused.text().contains("nothing was changed; --salvage takes"), "{}", refused.text());
    assert_eq!(ending(&run(&["schematic", "info", file_path])), "damaged");
    let salvaged = import(&["--at", "-40,1,-40", "--salvage"]).unwrap();
    let layers = salvaged.json["layers"].as_u64().unwrap();
    assert!(ending(&salvaged) == "damaged" && (5..30).contains(&layers), "{}", salvaged.text());
    assert_eq!(salvaged.json["chunks"], 0, "what was read is there already");
    for (more, reason) in [
        (&["--at", "1,2"][..], "10,64,-3"),
        (&["--at", "1,2,3", "--turn", "4"], "0..=3"),
        (&["--at", "1,2,3", "-d", "nether"], "cannot be used multiple times"),
    ] {
        assert!(import(more).unwrap_err().contains(reason), "{more:?}");
    }
}

#[test]
#[ignore = "needs files of other programs"]
fn files_of_other_programs_go_through_a_world_that_knows_nothing_of_them() {
    for name in ["s4j_v2_green_cottage", "terra_v2_mob_room", "limbo_v2_spawn", "rootwars_v3_depot", "ark_v2_biomes"] {
        let file = real_file(name);
        let folder = tempfile::tempdir().unwrap();
        let world = folder.path().join("world");
        make_world(&world, 5);
        name_blocks(&world);
        let (path, out) = (world.to_str().unwrap(), folder.path().join("out.schem"));
        let imported =
            run(&["schematic", "import", path, file.to_str().unwrap(), "-d", "overworld", "--at", "-75,-8,-70"]);
        assert_eq!(imported.json["placeholders"], 0, "{name}: all of them have names");
        let (original, _) = Schematic::read(fs::File::open(&file).unwrap(), &ReadOptions::default()).unwrap();
        let [width, height, length] = original.size().map(i64::from);
        let to = format!("{},{},{}", -76 + width, -9 + height, -71 + length);
        let area = ["--from", "-75,-8,-70", "--to", &to];
        run(&[&["schematic", "export", path, out.to_str().unwrap(), "-d", "overworld"][..], &area].concat());
        let (again, _) = Schematic::read(fs::File::open(&out).unwrap(), &ReadOptions::default()).unwrap();
        assert_eq!(states(&again), states(&original), "{name}");
        let sorted = |schematic: &Schematic| {
            let mut entities = schematic.block_entities.clone();
            entities.sort_by_key(|entity| entity.position);
            entities
        };
        assert_eq!(sorted(&again), sorted(&original), "{name}");
        assert_eq!(imported.json["left_out"]["biomes"], original.biomes.is_some());
    }
}

/// Promise, upkeep: `schematic info` lists the contents of a schematic and its faults.
#[test]
fn info_lists_the_contents_and_problems_of_a_schematic() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("house.schem");
    let mut schematic = Schematic::new([20, 3, 4]);
    schematic.palette.push("game:stone".into());
    let wall = Chunk::from_fn(|[_, y, z]| BlockId::new((y < 3 && z == 0).into()));
    schematic.blocks.set_chunk(ChunkPos::new(0, 0, 0), wall.into());
    let mut bytes = Vec::new();
    schematic.write(&mut bytes, &WriteOptions::default()).unwrap();
    fs::write(&file, &bytes).unwrap();
    let path = file.to_str().unwrap();
    let well = run(&["schematic", "info", path]);
    assert_eq!((ending(&well), &well.json["size"]), ("finished", &serde_json::json!([20, 3, 4])));
    assert_eq!(well.json["blocks"], serde_json::json!({ "minecraft:air": 192, "game:stone": 48 }));
    assert!(well.text().contains("size: 20, 3, 4") && well.text().contains("game:stone: 48"), "{}", well.text());
    fs::write(&file, &bytes[..bytes.len() - 20]).unwrap();
    assert!(matches!(ending(&run(&["schematic", "info", path])), "damaged"));
    fs::write(&file, b"no schematic").unwrap();
    assert!(try_run(&["schematic", "info", path], false).unwrap_err().contains("expected gzip or a compound"));
}

/// Promise, upkeep: `schematic import` reports the entities in the box, and `--replace-entities` removes them.
#[test]
fn an_import_reports_skipped_entities_and_parts() {
    let folder = tempfile::tempdir().unwrap();
    let [world, file] = ["world", "house.schem"].map(|name| folder.path().join(name));
    make_world(&world, 5);
    name_blocks(&world);
    let mut schematic = Schematic::new([20, 3, 4]);
    let chest = |id: &str| BlockEntity { position: [1, 0, 0], id: id.into(), data: Default::default() };
    schematic.block_entities = vec![chest("a:chest"), chest("Nothing")];
    let mut bytes = Vec::new();
    schematic.write(&mut bytes, &WriteOptions { level: 0, ..WriteOptions::default() }).unwrap();
    let mut plain = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut plain).unwrap();
    // The second block entity has no name.
    let at = plain.windows(13).position(|window| window == b"\x08\0\x02Id\0\x07Nothing".get(..13).unwrap()).unwrap();
    plain[at + 3] = b'i';
    plain[at + 4] = b'D';
    fs::write(&file, &plain).unwrap();
    let file = file.to_str().unwrap();
    let info = run(&["schematic", "info", file]);
    assert_eq!(
        (ending(&info), &info.json["malformed"], &info.json["block_entities"]),
        ("finished", &1.into(), &1.into())
    );
    assert!(info.text().contains("BlockEntities[1].Id: it is missing"), "{}", info.text());
    let import = |more: &[&str]| {
        let line = ["schematic", "import", world.to_str().unwrap(), file, "-d", "overworld", "--at", "-5,8,0"];
        run(&[&line[..], more].concat())
    };
    let kept = import(&[]);
    assert_eq!((ending(&kept), &kept.json["kept_entities"]), ("finished", &1.into()));
    assert!(
        kept.text().contains("1 entities were in the box already") && kept.text().contains("--replace-entities"),
        "{}",
        kept.text()
    );
    assert!(kept.text().contains("BlockEntities[1].Id: it is missing"), "{}", kept.text());
    let replaced = import(&["--replace-entities"]);
    assert_eq!((&replaced.json["kept_entities"], &replaced.json["removed_entities"]), (&0.into(), &1.into()));
    assert!(replaced.text().contains("1 entities that were in the box were removed"), "{}", replaced.text());
    assert_eq!(import(&["--replace-entities"]).json["removed_entities"], 0);
}
