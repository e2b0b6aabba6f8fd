//! Files made by hand, and small checks that apply to all of them.

use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

pub(super) fn compound(entries: &[(&str, Nbt)]) -> Compound {
    Compound(entries.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
}

pub(super) fn palette(entries: &[(&str, i32)]) -> Nbt {
    Nbt::Compound(Compound(entries.iter().map(|(name, number)| ((*name).to_owned(), Nbt::Int(*number))).collect()))
}

/// An uncompressed file: a root with this name and these values.
pub(super) fn file(root: &str, entries: &[(&str, Nbt)]) -> Vec<u8> {
    let mut writer = nbt::Writer::new(Vec::new());
    writer.named(root, &Nbt::Compound(compound(entries))).unwrap();
    writer.finish().unwrap()
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The values of a file of version 2 with 2 x 1 x 3 blocks.
pub(super) fn version_2() -> Vec<(&'static str, Nbt)> {
    vec![
        ("Version", Nbt::Int(2)),
        ("DataVersion", Nbt::Int(3000)),
        ("Width", Nbt::Short(2)),
        ("Height", Nbt::Short(1)),
        ("Length", Nbt::Short(3)),
        ("PaletteMax", Nbt::Int(2)),
        ("Palette", palette(&[("minecraft:air", 0), ("a:b", 1)])),
        ("BlockData", Nbt::ByteArray(vec![0, 1, 1, 0, 0, 1])),
        ("BlockEntities", Nbt::List(NbtKind::End, Vec::new())),
    ]
}

/// The same with one value changed.
pub(super) fn changed(name: &'static str, value: Nbt) -> Vec<u8> {
    let mut entries = version_2();
    match entries.iter_mut().find(|(other, _)| *other == name) {
        Some(entry) => entry.1 = value,
        None => entries.push((name, value)),
    }
    file("Schematic", &entries)
}

fn states(schematic: &Schematic) -> Vec<&str> {
    let [width, height, length] = schematic.size();
    let all = (0..height).flat_map(move |y| (0..length).flat_map(move |z| (0..width).map(move |x| [x, y, z])));
    all.map(|at| schematic.state(at).unwrap()).collect()
}

const EXPECTED: [&str; 6] = ["minecraft:air", "a:b", "a:b", "minecraft:air", "minecraft:air", "a:b"];

#[test]
fn values_may_come_in_any_order() {
    let mut entries = version_2();
    for _ in 0..entries.len() {
        entries.rotate_left(1);
        for is_reversed in [false, true] {
            let mut entries = entries.clone();
            if is_reversed {
                entries.reverse();
            }
            let bytes = file("Schematic", &entries);
            for bytes in [gzip(&bytes), bytes] {
                assert_eq!(states(&read(&bytes)), EXPECTED);
            }
        }
    }
}

/// Promise, snapshots: `.schem` files of versions 1 to 3 are read, and those of versions 2 and 3 are written.
#[test]
fn version_3_is_read_with_and_without_the_compound_around_it() {
    let blocks = compound(&[
        ("Data", Nbt::ByteArray(vec![4, 9, 9, 4, 4, 9])),
        ("Palette", palette(&[("a:b", 9), ("minecraft:air", 4)])),
    ]);
    let mut entries = version_2();
    entries.truncate(5);
    entries[0].1 = Nbt::Int(3);
    entries.insert(1, ("Blocks", Nbt::Compound(blocks)));
    let nested = [("Schematic", Nbt::Compound(compound(&entries)))];
    for bytes in [file("", &nested), file("", &entries), file("Schematic", &entries)] {
        let schematic = read(&bytes);
        assert_eq!((states(&schematic), schematic.version), (EXPECTED.to_vec(), 3));
    }
    let only_size: Vec<_> = entries.into_iter().filter(|(name, _)| *name != "Blocks").collect();
    assert_eq!(states(&read(&file("", &only_size))), [AIR; 6], "blocks are optional");
}

#[test]
fn a_palette_may_begin_at_1_have_gaps_and_lie_about_its_length() {
    let mut entries = version_2();
    entries[5] = ("PalettteMax", Nbt::Int(-7));
    entries[6].1 = palette(&[("a:unused", 77), ("a:b[c=d,a=e]", 300), (AIR, 1), ("a:b[a=e,c=d]", 2)]);
    entries[7].1 = Nbt::ByteArray(vec![1, 0xAC, 2, 2, 1, 1, 0xAC, 2]);
    let schematic = read(&file("Schematic", &entries));
    assert_eq!(states(&schematic), EXPECTED.map(|state| if state == "a:b" { "a:b[a=e,c=d]" } else { state }));
    assert_eq!(schematic.palette, [AIR, "a:b[a=e,c=d]", "a:unused"]);
    assert!(schematic.other.is_empty());
}

#[test]
fn members_of_gzip_follow_each_other_and_other_bytes_are_noticed() {
    let bytes = changed("Version", Nbt::Int(1));
    let (first, second) = bytes.split_at(40);
    let members = [gzip(first), gzip(second)].concat();
    let report = |bytes: &[u8]| {
        let (schematic, report) = Schematic::read(bytes, &ReadOptions::default()).unwrap();
        assert_eq!(states(&schematic), EXPECTED);
        (report.has_trailing_bytes, report.lacks_checksum)
    };
    assert_eq!(report(&members), (false, false));
    assert_eq!(report(&[&members[..], b"tail"].concat()), (true, false));
    assert_eq!(report(&[&bytes[..], &[0]].concat()), (true, false));
    assert_eq!(report(&gzip(&[&bytes[..], &[0]].concat())), (true, false));
    let whole = gzip(&bytes);
    assert_eq!(report(&whole[..whole.len() - 8]), (false, true));
    let mut wrong = whole.clone();
    wrong[whole.len() - 8] ^= 1;
    assert!(error(&wrong).to_string().contains(": the compressed data is damaged: "));
    assert_eq!(states(&salvaged(&wrong).0), EXPECTED);
}

#[test]
fn old_and_new_block_entities_are_read() {
    let position = Nbt::IntArray(vec![1, 0, 2]);
    let flat = [("Pos", position.clone()), ("Id", Nbt::String("a:chest".into())), ("Lock", Nbt::Byte(1))];
    let list = |entry: Compound| Nbt::List(NbtKind::Compound, vec![Nbt::Compound(entry)]);
    let expected = BlockEntity { position: [1, 0, 2], id: "a:chest".into(), data: compound(&[("Lock", Nbt::Byte(1))]) };
    for name in ["TileEntities", "BlockEntities"] {
        assert_eq!(read(&changed(name, list(compound(&flat)))).block_entities, std::slice::from_ref(&expected));
    }
    let mut stray = flat.clone();
    stray[0].1 = Nbt::IntArray(vec![1, 0, 3]);
    let bytes = changed("BlockEntities", list(compound(&stray)));
    let (schematic, report) = Schematic::read(&bytes[..], &ReadOptions::default()).unwrap();
    assert_eq!((schematic.block_entities.len(), report.stray_block_entities), (1, 1));
}

#[test]
fn entity_positions_are_relative_to_the_corner_for_every_writer() {
    let entity = |position: [f64; 3]| {
        let position = Nbt::List(NbtKind::Double, position.map(Nbt::Double).to_vec());
        let entry = compound(&[("Id", Nbt::String("a:cow".into())), ("Pos", position)]);
        Nbt::List(NbtKind::Compound, vec![Nbt::Compound(entry)])
    };
    let read_at = |position: [f64; 3], has_world_edit: bool| {
        let mut entries = version_2();
        entries.push(("Offset", Nbt::IntArray(vec![100, 60, -40])));
        entries.push(("Entities", entity(position)));
        if has_world_edit {
            let metadata = ["WEOffsetX", "WEOffsetY", "WEOffsetZ"].map(|name| (name, Nbt::Int(5)));
            entries.push(("Metadata", Nbt::Compound(compound(&metadata))));
        }
        let schematic = read(&file("Schematic", &entries));
        (schematic.entities[0].position, schematic.offset, schematic.origin)
    };
    let world_edit = (Some([5; 3]), Some([95, 55, -45]));
    assert_eq!(read_at([101.5, 60.0, -38.5], true), ([1.5, 0.0, 1.5], world_edit.0, world_edit.1));
    assert_eq!(read_at([1.5, 0.0, 1.5], true), ([1.5, 0.0, 1.5], world_edit.0, world_edit.1));
    let other = (Some([100, 60, -40]), None);
    assert_eq!(read_at([1.5, 0.0, 1.5], false), ([1.5, 0.0, 1.5], other.0, other.1));
    assert_eq!(read_at([101.5, 60.0, -38.5], false), ([1.5, 0.0, 1.5], other.0, other.1));
}
