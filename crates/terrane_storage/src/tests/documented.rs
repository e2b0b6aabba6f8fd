//! The documentation of the format is enough to read a world: `tools/read_world.py` was written from it, and finds the
//! same data as the library.

mod everything;
mod listing;

use crate::backends::test_store::TestStore;
use crate::bytes::record;
use crate::{Durability, Family, KeyValueStore, MemoryStore, StorageConfig, WorldStore, WriteBatch};
use listing::listing;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The maximum time for the reader, which needs a second.
const DEADLINE: Duration = Duration::from_secs(120);
/// The world with data of every kind.
const EVERYTHING: &str = "tests/fixtures/world-format-1-everything.txt";
const FIXTURES: [&str; 2] = ["tests/fixtures/world-format-1.txt", EVERYTHING];

fn in_package(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}

/// The world in the text form of fixtures.
fn dump(store: &TestStore) -> String {
    let entries = store.contents().into_iter();
    entries.fold(String::new(), |mut text, (family, (key, value))| {
        _ = writeln!(text, "{family} {} {}", hexadecimal(&key), hexadecimal(&value));
        text
    })
}

fn undump(text: &str) -> TestStore {
    let bytes = |text: &str| {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect::<Vec<u8>>()
    };
    let (memory, mut batch) = (MemoryStore::new(), WriteBatch::default());
    for line in text.lines() {
        let [family, key, value] = line.split(' ').collect::<Vec<_>>().try_into().expect("three words");
        let family = Family::ALL.into_iter().find(|of| of.name() == family).expect("a family");
        batch.put(family, bytes(key), bytes(value));
    }
    memory.write(batch, Durability::Sync).unwrap();
    TestStore::on(memory)
}

fn fixture(path: &str) -> TestStore {
    undump(&fs::read_to_string(in_package(path)).expect("tests/fixtures/README.md says how to make it"))
}

/// The reader's output, complaints and exit status for a world.
fn read(store: &TestStore) -> (String, String, ExitStatus) {
    let folder = tempfile::tempdir().unwrap();
    let [dumped, printed, complaints] = ["dump", "printed", "complaints"].map(|name| folder.path().join(name));
    fs::write(&dumped, dump(store)).unwrap();
    let mut reader = Command::new("python3")
        .arg(in_package("tools/read_world.py"))
        .arg(&dumped)
        .env("PYTHONUTF8", "1")
        .stdin(Stdio::null())
        .stdout(File::create(&printed).unwrap())
        .stderr(File::create(&complaints).unwrap())
        .spawn()
        .expect("this test runs tools/read_world.py: install `python3`, version 3.9 or later");
    let started = Instant::now();
    let status = loop {
        match reader.try_wait().unwrap() {
            Some(status) => break status,
            None if started.elapsed() < DEADLINE => thread::sleep(Duration::from_millis(5)),
            None => {
                reader.kill().unwrap();
                panic!("tools/read_world.py did not end within {DEADLINE:?}");
            }
        }
    };
    let [printed, complaints] = [printed, complaints].map(|path| fs::read_to_string(path).unwrap());
    (printed, complaints, status)
}

/// Checks that the reader and the library find the same.
fn check(store: &TestStore) {
    let (printed, complaints, status) = read(store);
    assert!(status.success(), "{complaints}");
    let expected = listing(store);
    let other = printed.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
    assert_eq!(other, None, "the reader's line, and the library's");
    assert_eq!(printed.lines().count(), expected.lines().count());
}

/// Promise, world format: A program that was written from the documentation alone reads everything in a world.
#[test]
fn a_reader_written_from_the_documentation_agrees_with_the_library() {
    FIXTURES.iter().for_each(|path| check(&fixture(path)));
}

/// Promise, world format: A world's list of block types in format 1 is read.
#[test]
fn blocks_of_the_first_format_are_read_and_an_empty_world_too() {
    let store = TestStore::default();
    drop(store.world());
    check(&store);
    let mut batch = WriteBatch::default();
    batch.put(Family::Registry, "blocks", record::encode(&["terrane:air", "game:stone"].to_vec()));
    store.write(batch, Durability::Process).unwrap();
    check(&store);
}

/// Without this, the comparison would not prove much.
///
/// Promise, world format: A program that was written from the documentation alone notices damage.
#[test]
fn the_reader_refuses_damage_and_names_its_place() {
    for (family, key, value) in everything_by_kind() {
        let store = fixture(EVERYTHING);
        store.tamper(family, &key, |value| value.push(0));
        let (_, complaints, status) = read(&store);
        assert_eq!(status.code(), Some(1), "{family} {} {}", String::from_utf8_lossy(&key), hexadecimal(&value));
        // All other entries need the lists, so a damaged list is reported first, whichever it is.
        let key = if family == Family::Registry { String::new() } else { hexadecimal(&key) };
        assert!(complaints.contains(&format!("{family} {key}")), "{complaints}");
    }
}

/// One entry of each kind, except kinds with arbitrary values.
fn everything_by_kind() -> Vec<(Family, Vec<u8>, Vec<u8>)> {
    let (mut kinds, mut entries) = (BTreeSet::new(), Vec::new());
    for (family, (key, value)) in fixture(EVERYTHING).contents() {
        let kind = kind(family, &key);
        if kind != "adopted" && kinds.insert((family, kind)) {
            entries.push((family, key, value));
        }
    }
    entries
}

/// The kind of an entry within its family: in `meta` and `registry`, the text at the start of the key.
fn kind(family: Family, key: &[u8]) -> String {
    match family {
        Family::Meta | Family::Registry => {
            let end = key.iter().position(|byte| *byte == b':').unwrap_or(key.len());
            String::from_utf8(key[..end].to_vec()).unwrap()
        }
        _ => String::new(),
    }
}

/// Promise, world format: The documentation of the world format lists every kind of key in `meta`.
#[test]
fn the_fixture_of_everything_has_every_kind_of_key_that_the_documentation_lists() {
    let page = fs::read_to_string(in_package("docs/world-format.md")).unwrap();
    let listed = page.lines().filter_map(|line| line.strip_prefix("| `\"")?.split_once('"')).map(|(key, _)| key);
    let listed: BTreeSet<String> = listed.map(|key| key.trim_end_matches(':').to_owned()).collect();
    let found: BTreeSet<(Family, String)> =
        fixture(EVERYTHING).contents().into_iter().map(|(family, (key, _))| (family, kind(family, &key))).collect();
    let in_meta = found.iter().filter(|(family, _)| *family == Family::Meta).map(|(_, kind)| kind.clone());
    assert_eq!(in_meta.collect::<BTreeSet<_>>(), listed);
    assert!(Family::ALL.iter().all(|family| found.iter().any(|(of, _)| of == family)));
}

/// The newest file with RocksDB's options of a database, section by section.
fn options(database: &Path) -> Vec<String> {
    let names = fs::read_dir(database).unwrap().map(|entry| entry.unwrap().path());
    let is_options = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("OPTIONS-");
    let text = fs::read_to_string(names.filter(is_options).max().expect("a file of options")).unwrap();
    text.split("\n[").map(str::to_owned).collect()
}

/// The documented options of a family: a row of numbers and words behind its name.
fn documented_options(page: &str, family: Family) -> [&str; 4] {
    let name = format!("`{family}`");
    let row = |line: &&str| line.contains(&name) && line.contains("` | ") && line.matches(" | ").count() == 4;
    let row = page.lines().find(row).unwrap_or_else(|| panic!("no options of {family}"));
    let cells: Vec<&str> = row.trim_end_matches('|').split(" | ").skip(1).map(str::trim).collect();
    cells.try_into().unwrap_or_else(|cells| panic!("{cells:?}"))
}

/// Promise, world format: A world's folder and its RocksDB database have the documented names, version, families and options.
#[test]
fn the_folder_and_the_database_are_as_documented() {
    let page = fs::read_to_string(in_package("docs/world-format.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    drop(WorldStore::open(&StorageConfig::Path(folder.path().to_path_buf())).unwrap());
    for entry in fs::read_dir(folder.path()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let row = |line: &&str| line.starts_with(&format!("| `{name}")) && !line.contains("while it is");
        assert!(page.lines().any(|line| row(&line)), "the page does not tell of {name}");
    }

    let options = options(&folder.path().join("db"));
    let section = |name: &str| {
        let section = options.iter().find(|section| section.starts_with(name)).unwrap_or_else(|| panic!("no {name}"));
        section.lines().map(|line| line.trim().to_owned()).collect::<BTreeSet<String>>()
    };
    let version =
        section("Version]").into_iter().find_map(|line| Some(line.strip_prefix("rocksdb_version=")?.to_owned()));
    assert!(page.contains(&format!("RocksDB {} ", version.unwrap())));
    assert_eq!(options.iter().filter(|section| section.starts_with("CFOptions")).count(), Family::ALL.len() + 1);
    let levels = "compression_per_level=kLZ4Compression:kLZ4Compression:kZSTD:kZSTD:kZSTD:kZSTD:kZSTD";
    let name_of = |compression: &str| if compression == "none" { "kNoCompression" } else { "kZSTD" };
    for family in Family::ALL {
        let [block_bytes, compression, least, of_blobs] = documented_options(&page, family);
        let mut expected = vec![
            "comparator=leveldb.BytewiseComparator".to_owned(),
            "merge_operator=nullptr".to_owned(),
            "prefix_extractor=nullptr".to_owned(),
            format!("compression={}", name_of(compression)),
        ];
        if compression == "LZ4, zstd" {
            expected.extend([levels, "bottommost_compression=kZSTD"].map(str::to_owned));
        }
        if least == "no blob files" {
            expected.push("enable_blob_files=false".to_owned());
        } else {
            expected.extend(["enable_blob_files=true".to_owned(), format!("min_blob_size={least}")]);
            expected.push(format!("blob_compression_type={}", name_of(of_blobs)));
        }
        let found = section(&format!("CFOptions \"{family}\"]"));
        let missing: Vec<_> = expected.into_iter().filter(|line| !found.contains(line)).collect();
        assert!(missing.is_empty(), "{family}: {missing:?} are not in {found:?}");
        let table = section(&format!("TableOptions/BlockBasedTable \"{family}\"]"));
        let block_size = format!("block_size={block_bytes}");
        for line in ["format_version=7", &block_size, "checksum=kXXH3", "index_type=kBinarySearch"] {
            assert!(table.contains(line), "{family}: {line} is not in {table:?}");
        }
    }
}

/// Writes the fixture if `TERRANE_WRITE_FIXTURE` is set. Otherwise checks that a new fixture is read like the stored one.
///
/// Promise, world format: A program that was written from the documentation alone reads everything in a world.
#[test]
fn the_fixture_of_everything_can_be_made() {
    let store = everything::make();
    check(&store);
    let text = dump(&store);
    assert!(text.len() < 100_000, "{} bytes are a lot", text.len());
    if std::env::var_os("TERRANE_WRITE_FIXTURE").is_some() {
        fs::write(in_package(EVERYTHING), text).unwrap();
    }
}
