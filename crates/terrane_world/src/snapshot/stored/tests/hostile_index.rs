//! Indexes that this crate never writes.

use super::super::index::{IndexedColumn, IndexedFile};
use super::*;

fn parse(text: &str) -> Result<StoredSnapshot> {
    StoredSnapshot::parse(text.as_bytes(), Path::new(""))
}

/// Appends the correct checksum.
fn sealed(content: &str) -> String {
    format!("{content}checksum {:08x}\n", crc32fast::hash(content.as_bytes()))
}

const HEAD: &str = "bevy_terrane snapshot 1\ndimension 1\nbox 0 0 0 31 99 31\n";

/// Promise, snapshot files: An invalid line of a stored snapshot's index is reported with its number.
#[test]
fn an_invalid_line_is_reported_with_its_number() {
    let line_of = |content: &str| match parse(&sealed(content)).unwrap_err() {
        StoredSnapshotError::Damaged { what, .. } => {
            let (line, _) = what.strip_prefix("line ").unwrap().split_once(": expected ").unwrap();
            line.parse::<usize>().unwrap()
        }
        other => panic!("{content}: {other}"),
    };
    let after = |lines: &str| line_of(&format!("{HEAD}{lines}"));
    assert!(parse(&sealed(&format!("{HEAD}columns 1\ncolumn 0 1 7 0..2,5..6\nfile 0 2 99 00c0ffee\n"))).is_ok());
    assert_eq!(line_of("bevy_terrane snapshot 1\n"), 2);
    assert_eq!(line_of("bevy_terrane snapshot 1\ndimension x\n"), 2);
    assert_eq!(line_of("bevy_terrane snapshot 1\ndimension 1\nbox 0 0 0 0 0\n"), 3);
    for (lines, line) in [
        ("", 4),
        ("columns -1\n", 4),
        ("owner a\n", 4),
        ("owner a b c\n", 4),
        ("owner a \\x\n", 4),
        ("columns 0\nmore\n", 5),
        ("columns 1\n", 4),
        ("columns 18446744073709551615\n", 4),
        ("columns 1\ncolumn 0 0 1 all \n", 5),
        ("columns 1\ncolumn 2 0 1 all\n", 5),
        ("columns 1\ncolumn +1 0 1 all\n", 5),
        ("columns 1\ncolumn 0 0 1 2..2\n", 5),
        ("columns 1\ncolumn 0 0 1 2..4,4..5\n", 5),
        ("columns 1\ncolumn 0 0 1 all\nfile 0 0 1 00000000\n", 6),
        ("columns 1\ncolumn 0 0 1 all\nfile 0 4096 1 00000000\n", 6),
        ("columns 1\ncolumn 0 0 1 all\nfile 9223372036854775807 2 1 00000000\n", 6),
        ("columns 1\ncolumn 0 0 1 all\nfile 0 2 1 0000000G\n", 6),
        ("columns 1\ncolumn 0 0 1 all\nfile 0 2 1 00000000\nfile 1 2 1 00000000\n", 7),
        ("columns 2\ncolumn 0 1 1 all\nfile 0 2 1 00000000\ncolumn 0 1 1 all\nfile 0 2 1 00000000\n", 4),
        ("columns 1\nfile 0 2 1 00000000\n", 5),
    ] {
        assert_eq!(after(lines), line, "{lines:?}");
    }
}

/// Promise, snapshot files: An unknown version of a stored snapshot's index and a foreign file are different errors.
#[test]
fn an_unknown_version_and_a_foreign_file_are_different_errors() {
    let error = parse("bevy_terrane snapshot 2\nwhatever").unwrap_err();
    assert_eq!(error, StoredSnapshotError::Version { path: "index.txt".into(), found: 2 });
    for text in ["", "\n", "PNG", "bevy_terrane snapshot one\n", "bevy_terrane snapshot 1"] {
        assert!(matches!(parse(text).unwrap_err(), StoredSnapshotError::Damaged { .. }), "{text:?}");
    }
    assert!(StoredSnapshot::parse(&[0xFF, b'\n', 0xFF], Path::new("")).is_err());
    let wrong = format!("{HEAD}columns 0\nchecksum 00000000\n");
    assert!(parse(&wrong).unwrap_err().to_string().ends_with("but 00000000 was stored"));
}

fn any_index() -> impl Strategy<Value = StoredSnapshot> {
    let heights = prop::option::of(prop::collection::btree_set(0..7_i64, 0..5).prop_map(HeightSet::from_iter));
    let file = (1..3_u32, any::<u64>(), any::<u32>());
    let column = (any::<u64>(), heights, prop::collection::vec(file, 0..3));
    let columns = prop::collection::btree_map((-2..3_i64, -2..3_i64), column, 0..6);
    let owner = prop::collection::btree_map(any::<String>(), any::<String>(), 0..4);
    let concerned = prop::option::of(prop::collection::btree_set(any::<u128>().prop_map(Uuid::from_u128), 0..4));
    let parts = any::<[bool; 4]>().prop_map(|[blocks, layers, components, entities]| SnapshotParts {
        blocks,
        layers,
        components,
        entities,
    });
    (any::<u64>(), (parts, concerned), owner, columns).prop_map(
        |(dimension, (parts, concerned), owner_data, columns)| {
            let column = |((x, z), (tick, heights, files)): ((i64, i64), (u64, _, Vec<_>))| {
                let mut base = 0;
                let file = |(chunks, bytes, checksum)| {
                    let file = IndexedFile { base, chunks, bytes, checksum };
                    base += i64::from(chunks);
                    file
                };
                (ColumnPos::new(x, z), IndexedColumn { tick, heights, files: files.into_iter().map(file).collect() })
            };
            let area = BlockBox::new(BlockPos::new(-32, 0, -32), BlockPos::new(47, 127, 47));
            StoredSnapshot {
                folder: PathBuf::new(),
                dimension: DimensionId(dimension),
                area,
                parts,
                concerned,
                owner_data,
                columns: columns.into_iter().map(column).collect(),
            }
        },
    )
}

/// The number of inputs to try: `few` times `TERRANE_ROUNDS`.
pub fn rounds(few: u32) -> u32 {
    few * std::env::var("TERRANE_ROUNDS").ok().and_then(|times| times.parse().ok()).unwrap_or(1_u32)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: rounds(2_000), ..ProptestConfig::default() })]

    /// Promise, snapshot files: An invalid line of a stored snapshot's index is reported with its number.
    #[test]
    fn an_index_survives_writing_and_parsing(index in any_index()) {
        prop_assert_eq!(parse(&index.to_text()).unwrap(), index);
    }

    #[test]
    fn an_index_that_was_changed_and_sealed_again_is_read_or_refused(
        index in any_index(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..4_u8, "[0-9 \\-a-z\n.,]{0,9}"), 1..4),
    ) {
        let text = index.to_text();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.pop();
        for (at, kind, new) in changes {
            let at = at.index(lines.len());
            match kind {
                0 => drop(lines.remove(at)),
                1 => lines[at] = new,
                2 => lines.insert(at, lines[at].clone()),
                _ => {
                    let place = lines[at].char_indices().map(|(place, _)| place).nth(new.len() % 5).unwrap_or(0);
                    lines[at].insert_str(place, &new);
                }
            }
            if lines.is_empty() {
                lines.push(String::new());
            }
        }
        let content = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        // A valid index has exactly the text that would be written.
        if let Ok(read) = parse(&sealed(&content)) {
            prop_assert_eq!(read.to_text(), sealed(&content));
        }
    }
}
