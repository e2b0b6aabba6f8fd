//! Files as other programs write and expect them, beyond the format's specification.

use super::building::*;
use super::round_trip::full;
use super::*;

fn report(bytes: &[u8]) -> (Schematic, ReadReport) {
    let (schematic, report) = Schematic::read(bytes, &ReadOptions::default()).unwrap();
    assert_eq!(report.damage, None);
    (schematic, report)
}

fn list(entries: &[Compound]) -> Nbt {
    Nbt::List(NbtKind::Compound, entries.iter().cloned().map(Nbt::Compound).collect())
}

fn text(text: &str) -> Nbt {
    Nbt::String(text.to_owned())
}

fn chest(position: [i32; 3], data: Compound) -> BlockEntity {
    BlockEntity { position, id: "a:chest".into(), data }
}

#[test]
fn block_entities_as_chunks_have_them_are_read() {
    let old = |[x, y, z]: [i32; 3]| {
        compound(&[
            ("id", text("a:chest")),
            ("x", Nbt::Int(x)),
            ("y", Nbt::Int(y)),
            ("z", Nbt::Int(z)),
            ("Lock", Nbt::Byte(1)),
        ])
    };
    let lock = || compound(&[("Lock", Nbt::Byte(1))]);
    let read_with = |places: &[[i32; 3]], offset: Option<[i32; 3]>| {
        let mut entries = version_2();
        entries.push(("TileEntities", list(&places.iter().copied().map(old).collect::<Vec<_>>())));
        entries.extend(offset.map(|offset| ("Offset", Nbt::IntArray(offset.to_vec()))));
        let (schematic, report) = report(&file("Schematic", &entries));
        assert_eq!((report.malformed, report.first_malformed), (0, None));
        (schematic.block_entities, report.stray_block_entities)
    };
    let inside = [[0, 0, 1], [1, 0, 2]];
    assert_eq!(read_with(&inside, None), (inside.map(|at| chest(at, lock())).to_vec(), 0));
    // The positions are relative to the world's origin.
    let corner = [100, 60, -40];
    assert_eq!(read_with(&[[101, 60, -38], [1, 0, 2]], Some(corner)), (vec![chest([1, 0, 2], lock()); 2], 0));
    assert_eq!(read_with(&[[7, 7, 7]], Some(corner)), (vec![chest([7, 7, 7], lock())], 1));
}

/// Promise, snapshots: Small deviations in schematics are accepted, and a malformed block entity is skipped and reported.
#[test]
fn an_invalid_block_entity_is_skipped_and_the_rest_is_read() {
    let good = |x| compound(&[("Pos", Nbt::IntArray(vec![x, 0, 0])), ("Id", text("a:chest"))]);
    let bad = [
        (Compound::new(), "Pos: it is missing"),
        (
            compound(&[("Pos", Nbt::IntArray(vec![1, 2])), ("Id", text("a"))]),
            "Pos: expected three integers, found an int array",
        ),
        (compound(&[("x", Nbt::Int(0)), ("y", Nbt::Int(0)), ("Id", text("a"))]), "Pos: it is missing"),
        (compound(&[("Pos", Nbt::IntArray(vec![0; 3]))]), "Id: it is missing"),
        (compound(&[("Pos", Nbt::IntArray(vec![0; 3])), ("Id", Nbt::Int(3))]), "Id: expected a string, found an int"),
    ];
    for (bad, reason) in bad {
        let entries = [good(0), bad.clone(), good(1), bad];
        for salvage in [false, true] {
            let bytes = changed("BlockEntities", list(&entries));
            let (schematic, report) =
                Schematic::read(&bytes[..], &ReadOptions { salvage, ..Default::default() }).unwrap();
            assert_eq!(schematic.block_entities, [0, 1].map(|x| chest([x, 0, 0], Compound::new())));
            assert_eq!((report.damage, report.malformed, report.blocks), (None, 2, 6));
            let first = report.first_malformed.unwrap().to_string();
            assert!(first.starts_with("byte ") && first.ends_with(&format!("BlockEntities[1].{reason}")), "{first}");
        }
    }
    let cow = compound(&[("Pos", Nbt::List(NbtKind::Double, vec![Nbt::Double(0.5); 3])), ("Id", text("a:cow"))]);
    let (schematic, report) = report(&changed("Entities", list(&[Compound::new(), cow])));
    assert_eq!((schematic.entities.len(), report.malformed), (1, 1));
}

#[test]
fn data_of_version_3_is_found_wherever_the_blocks_come() {
    let lock = compound(&[("Lock", Nbt::Byte(1))]);
    let entity = compound(&[
        ("Pos", Nbt::IntArray(vec![0; 3])),
        ("Id", text("a:chest")),
        ("Data", Nbt::Compound(lock.clone())),
        ("Lock", Nbt::Byte(2)),
        ("Beside", Nbt::Byte(3)),
    ]);
    let mut data = lock;
    data.set("Beside", Nbt::Byte(3));
    let blocks = |entities: &[(&str, Nbt)]| {
        let cells = [("Palette", palette(&[("a:b", 0)])), ("Data", Nbt::ByteArray(vec![0; 6]))];
        ("Blocks", Nbt::Compound(compound(&[entities, &cells].concat())))
    };
    let entities = [("BlockEntities", list(&[entity]))];
    let head = || version_2()[2..5].to_vec();
    for entries in [
        [head(), vec![blocks(&entities)]].concat(),
        [head(), entities.to_vec(), vec![blocks(&[])]].concat(),
        [head(), vec![blocks(&[])], entities.to_vec()].concat(),
    ] {
        assert_eq!(report(&file("", &entries)).0.block_entities, [chest([0; 3], data.clone())]);
    }
}

/// Promise, snapshots: Small deviations in schematics are accepted, and a malformed block entity is skipped and reported.
#[test]
fn values_of_other_kinds_are_read_where_their_meaning_is_plain() {
    let plain = report(&file("Schematic", &version_2())).0;
    let empty = || Nbt::Compound(Compound::new());
    let numbers = |numbers: [f64; 3]| Nbt::List(NbtKind::Double, numbers.map(Nbt::Double).to_vec());
    for (name, value) in [
        ("BlockEntities", empty()),
        ("TileEntities", empty()),
        ("Entities", empty()),
        ("Metadata", Nbt::List(NbtKind::End, Vec::new())),
        ("Width", Nbt::Int(2)),
        ("Width", Nbt::Byte(2)),
        ("Length", Nbt::Long(3)),
    ] {
        assert_eq!(report(&changed(name, value.clone())).0, plain, "{name}: {value:?}");
    }
    for (offset, expected) in [([1.0, -2.0, 3.0], [1, -2, 3]), ([0.5, -0.5, 3.0], [0, -1, 3])] {
        assert_eq!(report(&changed("Offset", numbers(offset))).0.offset, Some(expected));
    }
    let remarks = Nbt::List(NbtKind::String, vec![text("a"), text("b")]);
    let (schematic, _) = report(&changed("Metadata", remarks.clone()));
    assert_eq!(schematic.other, compound(&[("Metadata", remarks)]));
    assert_eq!(read(&written(&schematic, 2)), schematic);
}

#[test]
fn absent_metadata_is_not_written() {
    let mut entries = version_2();
    entries.retain(|(name, _)| *name != "DataVersion");
    let (schematic, _) = report(&file("Schematic", &entries));
    assert_eq!((schematic.data_version, &schematic.metadata), (None, &Compound::new()));
    for version in [2, 3] {
        let root = root(&schematic, version);
        assert_eq!((root.get("DataVersion"), root.get("Metadata")), (None, None));
    }
    assert_eq!(root(&Schematic::new([1; 3]), 3).get("DataVersion"), Some(&Nbt::Int(-1)), "the format asks for it");
}

/// The values of a file.
fn root(schematic: &Schematic, version: u8) -> Compound {
    let mut plain = Vec::new();
    let bytes = written(schematic, version);
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut plain).unwrap();
    let name = if version == 3 { 0 } else { "Schematic".len() };
    // `from_bytes` reads a compound without a name.
    plain.splice(1..3 + name, [0, 0]);
    let mut root = Compound::from_bytes(&plain).unwrap();
    match root.take("Schematic") {
        Some(Nbt::Compound(inner)) if version == 3 => inner,
        _ => root,
    }
}

/// Checks that no compound has a name twice.
fn check_names(value: &Nbt) {
    match value {
        Nbt::List(_, items) => items.iter().for_each(check_names),
        Nbt::Compound(compound) => {
            for (place, (name, value)) in compound.0.iter().enumerate() {
                assert!(!compound.0[..place].iter().any(|(other, _)| other == name), "{name} is there twice");
                check_names(value);
            }
        }
        _ => {}
    }
}

#[test]
fn no_name_is_twice_in_a_compound() {
    let mut schematic = full([3, 3, 3], 5);
    let data = compound(&[
        ("Pos", Nbt::List(NbtKind::Double, vec![Nbt::Double(900.0); 3])),
        ("Id", text("a:other")),
        ("Lock", Nbt::Byte(1)),
        ("Lock", Nbt::Byte(2)),
        ("Inner", Nbt::Compound(compound(&[("a", Nbt::Byte(1)), ("a", Nbt::Byte(2))]))),
    ]);
    schematic.block_entities[0].data = data.clone();
    schematic.entities[0].data = data;
    schematic.metadata = compound(&[("WEOffsetX", Nbt::Byte(1)), ("Name", text("a")), ("Name", text("b"))]);
    schematic.other = compound(&[
        ("Width", Nbt::Int(9)),
        ("Metadata", Nbt::Int(9)),
        ("bevy_terrane", Nbt::Int(9)),
        ("Schematic", Nbt::Compound(Compound::new())),
        ("Own", Nbt::Int(1)),
        ("Own", Nbt::Int(2)),
    ]);
    for version in [2, 3] {
        let root = root(&schematic, version);
        check_names(&Nbt::Compound(root.clone()));
        assert_eq!((root.get("Width"), root.get("Own")), (Some(&Nbt::Short(3)), Some(&Nbt::Int(1))));
        let again = read(&written(&schematic, version));
        assert_eq!(again.blocks, schematic.blocks);
        let (block_entity, entity) = (&again.block_entities[0], &again.entities[0]);
        assert_eq!((block_entity.position, &*block_entity.id), ([0; 3], "a:chest"));
        assert_eq!((entity.position, &*entity.id), ([0.5, 1.0, 0.5], "a:cow"));
        for data in [&block_entity.data, &entity.data] {
            assert_eq!((data.get("Lock"), data.get("Pos").is_some()), (Some(&Nbt::Byte(1)), version == 3));
        }
    }
}

/// Promise, snapshot files: A written schematic has the values in `Metadata.WorldEdit` that some programs require.
#[test]
fn written_files_have_the_metadata_of_worldedit() {
    let mut schematic = Schematic::new([1; 3]);
    (schematic.offset, schematic.origin) = (Some([-1, -2, -3]), Some([10, 20, 30]));
    for (version, name, place) in [(3, "Origin", [10, 20, 30]), (2, "Offset", [-1, -2, -3])] {
        let root = root(&schematic, version);
        let world_edit = root.get("Metadata").unwrap().as_compound().unwrap().get("WorldEdit").unwrap();
        let world_edit = world_edit.as_compound().unwrap();
        let platform = world_edit.get("EditingPlatform").and_then(Nbt::as_str).unwrap();
        assert!(world_edit.get("Version").and_then(Nbt::as_str).is_some_and(|version| !version.is_empty()));
        assert_eq!(world_edit.get(name), Some(&position(place)));
        let platforms = world_edit.get("Platforms").and_then(Nbt::as_compound).unwrap();
        let own = platforms.get(platform).and_then(Nbt::as_compound).unwrap();
        assert!(["Name", "Version"].iter().all(|name| own.get(name).and_then(Nbt::as_str).is_some()));
        assert_eq!(read(&written(&schematic, version)), Schematic { version, ..schematic.clone() });
    }
    // WorldEdit's own values stay unchanged.
    let own = compound(&[("Version", text("7.3.8")), ("EditingPlatform", text("enginehub:fabric"))]);
    schematic.metadata = compound(&[("WorldEdit", Nbt::Compound(own)), ("Date", Nbt::Long(1))]);
    for version in [3, 2] {
        let again = read(&written(&schematic, version));
        assert_eq!((again.metadata, again.origin), (schematic.metadata.clone(), schematic.origin));
        let root = root(&schematic, version);
        let world_edit = root.get("Metadata").unwrap().as_compound().unwrap().get("WorldEdit").unwrap();
        assert_eq!(world_edit.as_compound().unwrap().get("EditingPlatform"), Some(&text("enginehub:fabric")));
    }
    // A position that is only among these values is read too.
    let world_edit = compound(&[("Offset", Nbt::IntArray(vec![1, 2, 3])), ("Version", text("8"))]);
    let mut entries = version_2();
    entries.push(("Offset", Nbt::IntArray(vec![11, 12, 13])));
    entries.push(("Metadata", Nbt::Compound(compound(&[("WorldEdit", Nbt::Compound(world_edit))]))));
    let (schematic, _) = report(&file("Schematic", &entries));
    assert_eq!((schematic.offset, schematic.origin), (Some([1, 2, 3]), Some([10, 10, 10])));
}

#[test]
fn biomes_are_read_in_every_known_layout() {
    let names = || palette(&[("a:sea", 4), ("a:plains", 0)]);
    let data = || Nbt::ByteArray(vec![0, 4, 4, 0, 0, 4]);
    let flat = [("BiomePaletteMax", Nbt::Int(2)), ("BiomePalette", names()), ("BiomeData", data())];
    let nested = compound(&[("Data", data()), ("Palette", names()), ("Other", Nbt::Int(1))]);
    for bytes in [
        file("Schematic", &[&flat[..], &version_2()].concat()),
        file("Schematic", &[&version_2()[..], &flat].concat()),
        changed("Biomes", Nbt::Compound(nested)),
    ] {
        let schematic = report(&bytes).0;
        let Biomes { palette, cells } = schematic.biomes.unwrap();
        assert_eq!((palette, cells.size()), (vec!["a:plains".to_owned(), "a:sea".to_owned()], [2, 1, 3]));
        let places = [[0, 0, 0], [1, 0, 0], [0, 0, 1], [1, 0, 1], [0, 0, 2], [1, 0, 2]];
        assert_eq!(places.map(|at| cells.block(at).index()), [0, 1, 1, 0, 0, 1]);
        assert_eq!(schematic.other, Compound::new());
    }
    let text = error(&changed("BiomeData", data())).to_string();
    assert!(text.ends_with(": BiomeData: its palette is missing"), "{text}");
    let unknown = compound(&[("Palette", palette(&[("a:sea", 0)])), ("Data", data())]);
    let text = error(&changed("Biomes", Nbt::Compound(unknown))).to_string();
    assert!(text.ends_with(": Biomes.Data: cell 1: number 4 is not in the palette"), "{text}");
}
