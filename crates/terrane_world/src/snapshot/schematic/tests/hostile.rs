//! Damaged and hostile files: known ones and many generated ones.

use super::building::*;
use super::round_trip::full;
use super::*;
use crate::snapshot::schematic::grid::CHUNK_BYTES;
use std::collections::BTreeSet;
use std::sync::Arc;

fn limited(bytes: &[u8], change: impl Fn(&mut ReadOptions)) -> SchematicError {
    let mut options = ReadOptions::default();
    change(&mut options);
    Schematic::read(bytes, &options).unwrap_err()
}

/// Returns `true` if the file is rejected as malformed, with this end of the message.
fn is_malformed(bytes: &[u8], end: &str) -> bool {
    let error = error(bytes);
    assert!(error.is_damage() && error.to_string().ends_with(end), "{error}");
    matches!(error, SchematicError::Malformed { .. })
}

fn inflated(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(bytes), &mut plain).unwrap();
    plain
}

#[test]
fn other_files_are_refused_at_their_first_byte() {
    assert_eq!(error(b""), SchematicError::Truncated { at: "byte 0: the file".into() });
    assert_eq!(error(b"{\"Width\":1}"), SchematicError::NotASchematic { found: b'{' });
    assert_eq!(error(b"H4sIAAAA"), SchematicError::NotASchematic { found: b'H' });
    assert!(is_malformed(&gzip(b"hello"), "byte 0: the file: expected a tag of 12 or less, found 104"));
    assert_eq!(error(&gzip(b"")), SchematicError::Truncated { at: "byte 0: the file".into() });
    assert_eq!(error(&file("", &[])).to_string(), "byte 4: Width: it is missing");
    let nested = [("Schematic", Nbt::Compound(Compound::new()))];
    assert_eq!(error(&file("", &nested)).to_string(), "byte 17: Schematic.Width: it is missing");
}

#[test]
fn cells_that_do_not_fit_the_size_are_refused() {
    let data = |bytes: Vec<u8>| changed("BlockData", Nbt::ByteArray(bytes));
    assert!(is_malformed(&data(vec![0; 5]), ": BlockData: expected 6 cells, found 5"));
    assert!(is_malformed(&data(vec![0; 7]), ": BlockData: expected 6 cells, found 7"));
    let long = error(&data(vec![0; 1_127_520])).to_string();
    assert!(long.contains(": BlockData: expected 6 cells, found "), "{long}");
    assert!(is_malformed(&data(vec![0, 1, 2, 0, 0, 0]), "cell 2: number 2 is not in the palette"));
    assert!(is_malformed(&data(vec![0, 0, 0, 0, 0, 0x81]), "expected a number of 32 bits or less"));
    assert!(is_malformed(&data(vec![0x80, 0x80, 0x80, 0x80, 0x10, 0]), "cell 0: expected a number of 32 bits or less"));
    assert!(is_malformed(&data(vec![0x80, 0x80, 0x80, 0x80, 0x80, 0]), "cell 0: expected a number of 32 bits or less"));
    assert!(is_malformed(&changed("Palette", palette(&[])), "cell 0: number 0 is not in the palette"));
    let (schematic, report) = salvaged(&data(vec![1, 1, 1, 7, 1, 1]));
    assert_eq!(report.blocks, 3);
    assert!(report.damage.is_some());
    let states: Vec<_> =
        (0..3).flat_map(|z| [[0, 0, z], [1, 0, z]]).map(|at| schematic.state(at).unwrap().to_owned()).collect();
    assert_eq!(states, ["a:b", "a:b", "a:b", AIR, AIR, AIR]);
}

#[test]
fn values_of_the_wrong_kind_are_named_with_their_place() {
    for (name, value) in [
        ("Width", Nbt::Float(2.0)),
        ("Version", Nbt::String("2".into())),
        ("Palette", Nbt::Int(2)),
        ("BlockData", Nbt::IntArray(vec![0; 6])),
        ("BlockEntities", Nbt::Compound(compound(&[("a", Nbt::Int(1))]))),
        ("Entities", Nbt::List(NbtKind::Int, vec![Nbt::Int(0)])),
        ("Offset", Nbt::Int(4)),
        ("Offset", Nbt::List(NbtKind::Double, [1.0, 1e10, 0.0].map(Nbt::Double).to_vec())),
        ("Metadata", Nbt::Int(0)),
    ] {
        let text = error(&changed(name, value)).to_string();
        let (offset, rest) = text.strip_prefix("byte ").unwrap().split_once(": ").unwrap();
        assert!(offset.parse::<u64>().unwrap() > 0, "{text}");
        assert!(rest.starts_with(&format!("{name}: expected ")) && rest.contains(", found "), "{text}");
    }
    let text = error(&changed("Width", Nbt::Float(2.0))).to_string();
    assert!(text.ends_with(": Width: expected an integer, found a float"), "{text}");
    let version = error(&changed("Version", Nbt::Int(9))).to_string();
    assert_eq!(version, "byte 22: Version: expected version 1, 2 or 3, found 9");
    for side in [-1, 65_536] {
        let found = error(&changed("Width", Nbt::Int(side))).to_string();
        assert!(found.contains(": Width: ") && found.contains(&side.to_string()), "{found}");
    }
    for number in [-1, 1] {
        let twice = palette(&[(AIR, 1), ("a:b", number)]);
        assert!(is_malformed(&changed("Palette", twice), &format!("{number} is not a number of its own")));
    }
}

#[test]
fn an_error_names_its_place_in_few_printable_characters() {
    let long = "\u{1b}[31m\u{202e}\n".repeat(6_000);
    let mut bytes = vec![10, 0, 0];
    for _ in 0..200 {
        bytes.extend([10, (long.len() >> 8) as u8, long.len() as u8]);
        bytes.extend(long.as_bytes());
    }
    let deep = bytes.clone();
    let unknown_tag = [&deep[..], &[99]].concat();
    let name = |name: &str| [&[3, (name.len() >> 8) as u8, name.len() as u8][..], name.as_bytes()].concat();
    let twice = palette(&[("also", 1), ("\u{7}\u{9b}bell", 1)]);
    let extension = compound(&[("Version", Nbt::Int(1)), ("Palette", Nbt::Int(-5))]);
    let files = [
        deep,
        unknown_tag,
        [&[10, 0, 0][..], &name(&long)].concat(),
        changed("Palette", twice),
        changed("BlockData", Nbt::ByteArray(vec![9; 6])),
        changed("bevy_terrane", Nbt::Compound(extension)),
        file("", &[]),
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff".to_vec(),
        b"\x07".to_vec(),
    ];
    for file in files {
        let text = error(&file).to_string();
        assert!(text.len() <= 1024, "{} bytes", text.len());
        assert!(text.chars().all(|character| character == ' ' || character.is_ascii_graphic()), "{text:?}");
        let rest = text.strip_prefix("byte ").unwrap_or_else(|| panic!("no offset: {text}"));
        let (offset, path) = rest.split_once(": ").unwrap();
        assert!(offset.parse::<u64>().is_ok() && !path.is_empty(), "{text}");
    }
}

#[test]
fn a_long_path_to_an_error_keeps_its_end() {
    let name = "a".repeat(100);
    let mut value = Nbt::List(NbtKind::Compound, vec![Nbt::Compound(compound(&[("b", Nbt::Int(0))])); 2]);
    for _ in 0..20 {
        value = Nbt::Compound(compound(&[(name.as_str(), value)]));
    }
    let metadata = compound(&[("Deep", value), ("Short", Nbt::String("cut".into()))]);
    let mut bytes = changed("Metadata", Nbt::Compound(metadata));
    let at = bytes.windows(3).position(|window| window == b"cut").unwrap();
    bytes[at] = 0xFF;
    assert!(is_malformed(&bytes, ": Metadata.Short: expected text in modified UTF-8"));
}

#[test]
fn an_unknown_tag_and_bad_text_are_refused() {
    let mut bytes = changed("Metadata", Nbt::Compound(compound(&[("Name", Nbt::String("house".into()))])));
    let at = bytes.windows(5).position(|window| window == b"house").unwrap();
    bytes[at] = 0xFF;
    let expected = format!("byte {}: Metadata.Name: expected text in modified UTF-8", at - 2);
    assert_eq!(error(&bytes).to_string(), expected);
    bytes[at] = b'h';
    bytes[at - 2 - 4 - 2 - 1] = 114;
    let expected = format!("byte {}: Metadata: expected a tag of 12 or less, found 114", at - 9);
    assert_eq!(error(&bytes).to_string(), expected);
}

#[test]
fn deep_values_are_kept_up_to_a_depth_and_refused_beyond() {
    let nested = |depth: usize| {
        let mut value = Nbt::Byte(1);
        for _ in 0..depth {
            value = Nbt::Compound(compound(&[("a", value)]));
        }
        changed("Metadata", value)
    };
    for depth in [93, 142] {
        assert!(!read(&nested(depth)).metadata.is_empty());
    }
    for opening in [&[10, 0, 0][..], &[9, 0, 0, 9, 0, 0, 0, 1, 9, 0, 0, 0, 1]] {
        let mut bytes = vec![10, 0, 0];
        bytes.extend(opening);
        let again = if opening[0] == 10 { opening } else { &[9, 0, 0, 0, 1] };
        bytes.extend(again.repeat(1_000_000));
        assert!(matches!(error(&bytes), SchematicError::TooLarge { what: "levels", limit: 512, .. }));
    }
}

#[test]
fn declared_lengths_are_not_believed() {
    for (kind, rest) in [(7_u8, &[][..]), (11, &[]), (12, &[]), (9, &[1]), (9, &[10]), (9, &[9]), (9, &[0])] {
        for length in [-1, 1 << 20, i32::MAX] {
            let mut bytes = [&[10, 0, 0, kind, 0, 1, b'x'][..], rest].concat();
            bytes.extend(i32::to_be_bytes(length));
            let found = error(&bytes);
            let is_expected = match &found {
                SchematicError::Malformed { what, .. } => *what == format!("{length} is not a valid length"),
                SchematicError::TooLarge { what, .. } => *what == "items",
                SchematicError::Truncated { .. } => true,
                _ => false,
            };
            assert!(is_expected, "{kind} {rest:?} {length}: {found}");
        }
    }
    let mut entries = version_2();
    entries[2].1 = Nbt::Short(-1);
    entries[3].1 = Nbt::Short(-1);
    entries[4].1 = Nbt::Short(-1);
    let found = error(&file("Schematic", &entries));
    assert!(matches!(found, SchematicError::TooLarge { what: "blocks", found: 281_462_092_005_375, .. }), "{found}");
    entries[3].1 = Nbt::Short(0);
    let text = error(&file("Schematic", &entries)).to_string();
    assert!(text.contains("BlockData: expected 0 cells, found "), "{text}");
}

#[test]
fn limits_hold() {
    let bomb = changed("Bomb", Nbt::ByteArray(vec![0; 3_000_000]));
    let packed = gzip(&bomb);
    assert!(packed.len() < 4_000);
    let found = limited(&packed, |limits| limits.inflated_bytes = 100_000);
    assert!(matches!(found, SchematicError::TooLarge { what: "uncompressed bytes", limit: 100_000, .. }), "{found}");
    let large = changed("Metadata", Nbt::Compound(compound(&[("a", Nbt::ByteArray(vec![0; 300_000]))])));
    let found = limited(&large, |limits| limits.memory = 200_000);
    assert!(matches!(found, SchematicError::TooLarge { what: "bytes of memory", limit: 200_000, .. }), "{found}");
    let found = limited(&changed("Version", Nbt::Int(2)), |limits| limits.volume = 5);
    assert!(matches!(found, SchematicError::TooLarge { what: "blocks", limit: 5, found: 6, .. }), "{found}");
    let names: Vec<String> = (0..65_535).map(|number| format!("a:{number}")).collect();
    let names: Vec<(&str, i32)> = names.iter().map(String::as_str).zip(0..).collect();
    let found = error(&changed("Palette", palette(&names)));
    assert!(matches!(found, SchematicError::TooLarge { what: "entries of a palette", .. }), "{found}");
    assert_eq!(read(&changed("Palette", palette(&names[..65_534]))).palette.len(), 65_535);
}

/// The size of all chunks in bytes, and the number of distinct chunks.
fn held(grid: &ChunkGrid) -> (u64, usize) {
    let (mut bytes, mut known) = (0, BTreeSet::new());
    for (_, chunk) in grid.chunks() {
        let own = if known.insert(Arc::as_ptr(chunk)) { chunk.heap_bytes() } else { 0 };
        bytes += (CHUNK_BYTES + own) as u64;
    }
    (bytes, known.len())
}

#[test]
fn salvaging_a_layer_respects_the_memory_limit() {
    const SIDE: u32 = 400;
    /// The number of chunks along a side.
    const ALONG: usize = 25;
    let sides = [("Width", SIDE as i16), ("Height", 2), ("Length", SIDE as i16)];
    let (side, layer) = (u64::from(SIDE), u64::from(SIDE * SIDE));
    // A row of chunks is only partly read.
    let part = u64::from(100 * SIDE + 50);
    let with = |name: &'static str, count: u64| {
        let mut entries = version_2();
        for (name, blocks) in sides {
            entries.iter_mut().find(|(other, _)| *other == name).unwrap().1 = Nbt::Short(blocks);
        }
        let place = entries.iter().position(|(other, _)| *other == "BlockData").unwrap();
        entries.insert(place, ("BiomePalette", palette(&[("a:plains", 0), ("a:desert", 1)])));
        entries[place + 1] = (name, Nbt::ByteArray(vec![1; count as usize]));
        file("Schematic", &entries)
    };
    let read = |file: &[u8], memory: usize| {
        let options = ReadOptions { memory: memory as u64, salvage: true, ..ReadOptions::default() };
        let (schematic, report) = Schematic::read(file, &options).unwrap();
        assert!(report.damage.is_some());
        (schematic, report.blocks)
    };
    let is_whole = |grid: &ChunkGrid, count: u64| {
        let at = |cell: u64| [cell % side, cell / layer, cell / side % side].map(|at| at as u32);
        (0..count).all(|cell| grid.block(at(cell)) == BlockId::new(1))
    };
    let cells = |grid: &ChunkGrid| -> u64 {
        let count = |chunk: &Chunk| chunk.blocks().filter(|block| *block != BlockId::AIR).count();
        grid.chunks().map(|(_, chunk)| count(chunk) as u64).sum()
    };

    let come = layer + part;
    let blocks = with("BlockData", come);
    let ample = 2 * ALONG * ALONG * CHUNK_BYTES + (128 << 10);
    // The first does not suffice for reading, the second not for all chunks.
    for memory in [(16 << 10) - 256, (24 << 10) + 300 * CHUNK_BYTES, ample] {
        let (schematic, kept) = read(&blocks, memory);
        let (bytes, different) = held(&schematic.blocks);
        assert!(bytes <= memory as u64, "{bytes} bytes of {memory}");
        assert!(different <= ALONG + 2, "{different} chunks that are not shared");
        assert!(kept > 0 && (kept == come) == (memory == ample), "{kept} of {come} cells in {memory} bytes");
        assert!(is_whole(&schematic.blocks, kept) && cells(&schematic.blocks) <= come);
    }

    let biomes = with("BiomeData", part);
    for memory in [16 << 10, ample] {
        let grid = read(&biomes, memory).0.biomes.unwrap().cells;
        let (bytes, different) = held(&grid);
        assert!(bytes <= memory as u64 && different <= ALONG + 2, "{bytes} bytes of {memory}, {different} chunks");
        assert!((1..=part).contains(&cells(&grid)) && (cells(&grid) == part) == (memory == ample));
    }
}

#[test]
fn cut_anywhere_a_file_is_refused_or_complete() {
    for version in [2, 3] {
        let packed = written(&full([5, 3, 18], 5), version);
        let plain = inflated(&packed);
        let whole = read(&plain);
        for length in 0..plain.len() {
            let found = error(&plain[..length]);
            let place = format!("byte {length}: ");
            assert!(matches!(&found, SchematicError::Truncated { at } if at.starts_with(&place)), "{length}: {found}");
            if let Ok((part, report)) =
                Schematic::read(&plain[..length], &ReadOptions { salvage: true, ..ReadOptions::default() })
            {
                assert!(report.damage.is_some() && part.size() == whole.size());
                if report.blocks == whole.blocks.volume() && part.components == whole.components {
                    assert_eq!(part.blocks, whole.blocks);
                }
            }
        }
        for length in 0..packed.len() {
            match Schematic::read(&packed[..length], &ReadOptions::default()) {
                Ok((part, report)) => assert!(report.lacks_checksum && part == whole),
                Err(SchematicError::Truncated { .. }) => {}
                Err(other) => panic!("{length}: {other}"),
            }
        }
    }
}

#[test]
fn every_flipped_bit_is_read_or_refused() {
    let packed = written(&full([5, 3, 18], 5), 3);
    let plain = inflated(&packed);
    for bytes in [packed, plain] {
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            for salvage in [false, true] {
                let _ = Schematic::read(&damaged[..], &ReadOptions { salvage, ..ReadOptions::default() });
            }
        }
    }
}

#[test]
fn layers_and_components_that_make_no_sense_are_refused() {
    let extension = |entries: &[(&str, Nbt)]| {
        let entries = [&[("Version", Nbt::Int(1))], entries].concat();
        changed("bevy_terrane", Nbt::Compound(compound(&entries)))
    };
    let layers = |bytes: &[u8]| extension(&[("Layers", Nbt::ByteArray(bytes.to_vec()))]);
    // Cell 1 is at x 0, y 0, z 1, which is air; with one more layer, of block 1.
    assert_eq!(read(&layers(&[1, 2, 1])).blocks.chunk(ChunkPos::new(0, 0, 0)).unwrap().layer_count([0, 0, 1]), 2);
    for bytes in [&[1, 2][..], &[1], &[1, 2, 9], &[3, 2, 1], &[0x80, 0x20, 2, 1], &[1, 3, 1], &[0xFF; 11]] {
        let text = error(&layers(bytes)).to_string();
        assert!(text.contains(": bevy_terrane.Layers: "), "{bytes:?}: {text}");
    }
    for entries in [("Layers", Nbt::Int(1)), ("Components", Nbt::Int(1)), ("Version", Nbt::Int(2))] {
        let bytes = changed("bevy_terrane", Nbt::Compound(compound(&[entries])));
        assert!(error(&bytes).to_string().contains(": bevy_terrane."));
    }
    let component = |values: &[u8]| {
        let item =
            [("Name", Nbt::String("a:b".into())), ("Size", Nbt::Int(2)), ("Values", Nbt::ByteArray(values.to_vec()))];
        extension(&[("Components", Nbt::List(NbtKind::Compound, vec![Nbt::Compound(compound(&item))]))])
    };
    assert_eq!(read(&component(&[1, 0, 7, 8])).components.len(), 1);
    for values in [&[1, 0, 7][..], &[1, 1, 7, 8], &[3, 0, 7, 8], &[1]] {
        let text = error(&component(values)).to_string();
        assert!(text.contains(": bevy_terrane.Components: "), "{values:?}: {text}");
    }
    for wrong in [Nbt::Int(-5), Nbt::String("5".into())] {
        assert!(is_malformed(&extension(&[("Palette", wrong)]), ": bevy_terrane.Palette: it is not a valid number"));
    }
    let short = read(&extension(&[("Palette", Nbt::Int(1))]));
    assert_eq!(short.palette, [AIR, "a:b"], "every block that occurs keeps its name");
}
