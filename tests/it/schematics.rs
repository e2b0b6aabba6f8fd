//! Schematics in running worlds; and the memory that they take: little more than their chunks, in whatever order the values of a
//! file come.

use crate::meter::peak_bytes;
use crate::support::*;
use bevy_terrane::block::PLACEHOLDER;
use bevy_terrane::prelude::*;
use bevy_terrane::snapshot::Snapshot;
use bevy_terrane::snapshot::schematic::{ReadOptions, Schematic, SchematicError, WriteOptions};
use bevy_terrane::snapshot::translation::{TranslationOptions, TranslationReport};
use bevy_terrane::snapshot::{BlockTurns, Relocation};
use bevy_terrane::view::{CaptureSnapshot, JobEnded, JobState, Jobs, RestoreSnapshot};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::sync::Arc;

#[path = "../../benches/worlds/terrain.rs"]
mod terrain;

const MEGABYTE: usize = 1_000_000;

fn uniform(side: u32) -> Schematic {
    let mut schematic = Schematic::new([side; 3]);
    schematic.palette.push("minecraft:stone".to_owned());
    let stone = Arc::new(Chunk::uniform(BlockId::new(1)));
    let along = i64::from(side / 16);
    for (x, y, z) in (0..along).flat_map(|x| (0..along).flat_map(move |y| (0..along).map(move |z| (x, y, z)))) {
        assert!(schematic.blocks.set_chunk(ChunkPos::new(x, y, z), stone.clone()));
    }
    schematic
}

/// The file, and the peak memory of writing it, without the file itself.
fn written(schematic: &Schematic) -> (Vec<u8>, usize) {
    let mut file = Vec::with_capacity(8 * MEGABYTE);
    let peak = peak_bytes(|| schematic.write(&mut file, &WriteOptions { version: 3, level: 1 }).unwrap());
    (file, peak)
}

fn read(file: &[u8]) -> (Schematic, usize) {
    let mut read = None;
    let peak = peak_bytes(|| read = Some(Schematic::read(file, &ReadOptions::default()).unwrap().0));
    (read.unwrap(), peak)
}

/// Promise, snapshots: A schematic is read and written as a stream, in little memory.
#[test]
fn reading_a_landscape_takes_little_more_memory_than_its_chunks() {
    let terrain = terrain::schematic();
    let (file, peak) = written(&terrain);
    assert!(peak < 24 * MEGABYTE, "writing took {peak} bytes");
    let (again, peak) = read(&file);
    assert!(peak < 24 * MEGABYTE, "reading took {peak} bytes");
    assert!(again.blocks == terrain.blocks);
}

#[test]
fn a_billion_blocks_that_are_alike_take_next_to_nothing() {
    let stone = uniform(1_000);
    let (file, peak) = written(&stone);
    assert!(peak < 32 * MEGABYTE, "writing took {peak} bytes");
    let (again, peak) = read(&file);
    assert!(peak < 32 * MEGABYTE, "reading took {peak} bytes");
    assert_eq!(again.blocks.block([991, 991, 991]), BlockId::new(1));
    assert_eq!(again.blocks.block([992, 999, 992]), BlockId::AIR);
}

/// A file of version 2 whose size and palette come after its blocks, which are `side` cubed zeros.
fn late_size(side: u16) -> Vec<u8> {
    let volume = u32::from(side).pow(3);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let mut write = |bytes: &[u8]| encoder.write_all(bytes).unwrap();
    write(b"\x0a\0\x09Schematic\x07\0\x09BlockData");
    write(&volume.to_be_bytes());
    let zeros = vec![0; 1 << 16];
    let mut left = volume as usize;
    while left > 0 {
        let part = left.min(zeros.len());
        write(&zeros[..part]);
        left -= part;
    }
    write(b"\x0a\0\x07Palette\x03\0\x03a:b\0\0\0\0\0");
    for name in [&b"\x02\0\x05Width"[..], b"\x02\0\x06Height", b"\x02\0\x06Length"] {
        write(name);
        write(&side.to_be_bytes());
    }
    write(b"\0");
    encoder.finish().unwrap()
}

/// Promise, snapshots: A schematic is read and written as a stream, in little memory.
#[test]
fn blocks_before_their_size_are_kept_compressed() {
    let file = late_size(640);
    let (schematic, peak) = read(&file);
    assert!(peak < 16 * MEGABYTE, "reading took {peak} bytes");
    assert_eq!(schematic.state([639, 639, 639]), Some("a:b"));
}

/// Promise, snapshots: The memory that reading a schematic may take is limited.
#[test]
fn the_memory_for_a_small_file_is_limited() {
    let file = late_size(640);
    for salvage in [false, true] {
        let mut result = None;
        let options = ReadOptions { memory: 1 << 18, salvage, ..ReadOptions::default() };
        let peak = peak_bytes(|| result = Some(Schematic::read(&file[..], &options).map(drop)));
        assert!(peak < 2 * MEGABYTE, "reading took {peak} bytes");
        if !salvage {
            assert!(
                matches!(result, Some(Err(SchematicError::TooLarge { what: "bytes of memory", .. }))),
                "{result:?}"
            );
        }
    }
}

/// A file of one block, followed by a list of `count` compounds under this name.
fn with_items(name: &str, count: u32, item: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let mut write = |bytes: &[u8]| encoder.write_all(bytes).unwrap();
    write(b"\x0a\0\x09Schematic\x02\0\x05Width\0\x01\x02\0\x06Height\0\x01\x02\0\x06Length\0\x01");
    write(b"\x0a\0\x07Palette\x03\0\x03a:b\0\0\0\0\0\x07\0\x09BlockData\0\0\0\x01\0\x09\0");
    write(&[name.len() as u8]);
    write(name.as_bytes());
    write(b"\x0a");
    write(&count.to_be_bytes());
    (0..count).for_each(|number| write(&item(number)));
    write(b"\0");
    encoder.finish().unwrap()
}

/// A block entity at `x`, with further values.
fn block_entity(x: u32, data: &[u8]) -> Vec<u8> {
    let head = [&b"\x0b\0\x03Pos\0\0\0\x03"[..], &x.to_be_bytes(), &[0; 8], b"\x08\0\x02Id\0\x07a:chest"];
    [&head.concat(), data, b"\0"].concat()
}

/// Reading never takes more than the limit, and a file that takes much less is not refused.
///
/// Promise, snapshots: The memory that reading a schematic may take is limited.
#[test]
fn the_memory_limit_counts_held_data() {
    const LIMIT: usize = 24 << 20;
    let options = |salvage| ReadOptions { memory: LIMIT as u64, salvage, ..ReadOptions::default() };
    let list = |count: u32| [&b"\x0b\0\x01a"[..], &count.to_be_bytes(), &vec![7; 4 * count as usize]].concat();
    let values = |count: u16| (0..count).flat_map(|_| *b"\x01\0\x01a\x07").collect::<Vec<u8>>();
    let files = [
        ("places alone", with_items("BlockEntities", 500_000, |x| block_entity(x, b""))),
        ("a byte each", with_items("BlockEntities", 500_000, |x| block_entity(x, b"\x01\0\x01a\x07"))),
        ("a compound each", with_items("BlockEntities", 300_000, |x| block_entity(x, b"\x0a\0\x01a\0"))),
        ("many values each", with_items("BlockEntities", 9_000, |x| block_entity(x, &values(60)))),
        ("numbers", with_items("BlockEntities", 30, |x| block_entity(x, &list(1 << 18)))),
        ("values of no meaning", with_items("Own", 500_000, |_| b"\x01\0\x01a\x07\0".to_vec())),
        ("empty compounds", with_items("Own", 2_000_000, |_| vec![0])),
    ];
    for (what, file) in files {
        let mut strict = None;
        let peak = peak_bytes(|| strict = Some(Schematic::read(&file[..], &options(false)).err()));
        assert!(
            matches!(strict, Some(Some(SchematicError::TooLarge { what: "bytes of memory", .. }))),
            "{what}: {strict:?}"
        );
        // The meter does not include the allocator's overhead for each value.
        assert!((LIMIT / 3..LIMIT + MEGABYTE).contains(&peak), "{what}: refused at {peak} bytes");
        let peak = peak_bytes(|| {
            let (_, report) = Schematic::read(&file[..], &options(true)).unwrap();
            assert!(report.damage.is_some() && report.blocks == 1, "{what}");
        });
        assert!(peak < LIMIT + MEGABYTE, "{what}: salvaged with {peak} bytes");
    }
}

#[test]
fn malformed_block_entities_take_no_memory() {
    let file = with_items("BlockEntities", 1_000_000, |_| vec![0]);
    let options = ReadOptions { memory: 1 << 20, ..ReadOptions::default() };
    let peak = peak_bytes(|| {
        let (schematic, report) = Schematic::read(&file[..], &options).unwrap();
        assert_eq!((schematic.block_entities.len(), report.malformed), (0, 1_000_000));
    });
    assert!(peak < MEGABYTE, "reading took {peak} bytes");
}

/// A file made by another program. Such files are not part of the project: they are in the folder `TERRANE_SCHEMATICS`, or in
/// `../shared/schematics`. Tests of them are ignored; `cargo xtask test` runs them if there are such files.
pub fn real_file(name: &str) -> std::path::PathBuf {
    let folder = std::env::var_os("TERRANE_SCHEMATICS").map(std::path::PathBuf::from);
    let beside = || std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/schematics");
    folder.unwrap_or_else(beside).join(format!("{name}.schem"))
}

/// All states, x slowest, then y, then z.
pub fn states(schematic: &Schematic) -> Vec<&str> {
    let [width, height, length] = schematic.size();
    let rows = (0..width).flat_map(|x| (0..height).map(move |y| (x, y)));
    rows.flat_map(|(x, y)| (0..length).map(move |z| schematic.state([x, y, z]).unwrap())).collect()
}

#[test]
#[ignore = "needs files of other programs"]
fn a_file_of_another_program_is_pasted_and_exported_unchanged() {
    let file = std::fs::File::open(real_file("s4j_v3_flat")).unwrap();
    let (original, _) = Schematic::read(file, &ReadOptions::default()).unwrap();
    let mut app = game(lockstep());
    listen::<JobEnded>(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 8.0, 8.0, 3);
    start(&mut app);
    update_until(&mut app, "the ground is there", |world| {
        [-20, 36].iter().all(|at| block_at(world, dimension, BlockPos::new(*at, 0, *at)).is_some())
    });
    let (id, registry) = (dimension, app.world().resource::<BlockTypes>().clone());
    let options = TranslationOptions::default();
    let (snapshot, report) = Snapshot::from_schematic(original.clone(), id, &registry, &options).unwrap();
    // It contains an entity far outside its box.
    let outside = TranslationReport { entities: 1, ..TranslationReport::default() };
    assert_eq!(TranslationReport { placeholders: 0, ..report.clone() }, outside);
    assert!(report.placeholders > 500);
    let place = Relocation { to: BlockPos::new(-9, 21, -7), ..Relocation::default() };
    let snapshot = Arc::new(snapshot.placed(&place, &BlockTurns::default()).unwrap());
    let area = *snapshot.area();
    let jobs = app.world().resource::<Jobs>().clone();
    let ended = |app: &mut App, job| {
        update_until(app, "the job has ended", |world| {
            world.resource::<Heard<JobEnded>>().0.iter().any(|ended| ended.job.id == job)
        });
        let ended = heard::<JobEnded>(app).iter().find(|ended| ended.job.id == job).cloned().unwrap();
        assert_eq!(ended.progress.state, JobState::Finished, "{:?}", ended.outcome);
        ended
    };
    ended(&mut app, jobs.restore(RestoreSnapshot::new(id, snapshot)));
    update(&mut app, 5);
    let placeholder = id_of(app.world(), PLACEHOLDER);
    // The first corner of the box is air, like most of it.
    let [width, height, length] = original.size().map(i64::from);
    let cells =
        (0..height).flat_map(|y| (0..length).flat_map(move |z| (0..width).map(move |x| BlockPos::new(x, y, z))));
    let mut seen = 0;
    for BlockPos { x, y, z } in cells {
        let place = BlockPos::new(area.min.x + x, area.min.y + y, area.min.z + z);
        let found = block_at(app.world_mut(), dimension, place);
        let is_air = original.state([x, y, z].map(|at| at as u32)) == Some("minecraft:air");
        assert_eq!(found, Some(if is_air { BlockId::AIR } else { placeholder }), "{place}");
        seen += u32::from(!is_air);
    }
    assert_eq!(u64::from(seen), report.placeholders);

    let captured = ended(&mut app, jobs.capture(CaptureSnapshot::new(id, area)));
    let captured = captured.outcome.snapshot.clone().unwrap();
    let again = captured.to_schematic(&registry, &options).unwrap();
    assert_eq!(captured.missing_chunks(), 0);
    let mut bytes = Vec::new();
    again.write(&mut bytes, &WriteOptions::default()).unwrap();
    let (again, _) = Schematic::read(&bytes[..], &ReadOptions::default()).unwrap();
    assert_eq!(states(&again), states(&original));
    assert_eq!((&again.block_entities, &again.entities[..]), (&original.block_entities, &[][..]));
    assert_eq!(again.corner(), Some([-9, 21, -7]));
}
