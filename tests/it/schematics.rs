//! What schematics take from memory: little more than their chunks, whichever way the values of a file are ordered.

use crate::meter::peak_bytes;
use bevy_terrane::block::BlockId;
use bevy_terrane::chunk::Chunk;
use bevy_terrane::snapshot::schematic::{ReadOptions, Schematic, SchematicError, SchematicLimits, WriteOptions};
use bevy_terrane::space::ChunkPos;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::sync::Arc;

#[path = "../../benches/worlds/terrain42.rs"]
#[allow(dead_code, missing_docs, clippy::all)]
mod terrain42;

const MEGABYTE: usize = 1_000_000;

fn terrain() -> Schematic {
    let cells = terrain42::generate();
    let (width, height, length) = (terrain42::W, terrain42::H, terrain42::L);
    let mut schematic = Schematic::new([width as u32, height as u32, length as u32]);
    schematic.palette = terrain42::NAMES.map(str::to_owned).to_vec();
    for (x, y, z) in
        (0..width / 16).flat_map(|x| (0..height / 16).flat_map(move |y| (0..length / 16).map(move |z| (x, y, z))))
    {
        let chunk = Chunk::from_fn(|[cx, cy, cz]| {
            let at = (x * 16 + cx) + (z * 16 + cz) * width + (y * 16 + cy) * width * length;
            BlockId::new(cells[at].into())
        });
        schematic.blocks.set_chunk(ChunkPos::new(x as i64, y as i64, z as i64), chunk.into());
    }
    schematic
}

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

/// The file, and the most memory that writing it took beyond the file itself.
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

#[test]
fn a_landscape_takes_little_more_than_its_chunks() {
    let terrain = terrain();
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

/// A file of version 2 whose size and palette come after its blocks: so many zeros.
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

#[test]
fn blocks_that_come_before_their_size_are_never_held_unpacked() {
    let file = late_size(640);
    let (schematic, peak) = read(&file);
    assert!(peak < 16 * MEGABYTE, "reading took {peak} bytes");
    assert_eq!(schematic.state([639, 639, 639]), Some("a:b"));
}

#[test]
fn what_a_small_file_can_take_is_limited() {
    let file = late_size(640);
    let limits = SchematicLimits { memory: 1 << 18, ..SchematicLimits::default() };
    for salvage in [false, true] {
        let mut result = None;
        let peak = peak_bytes(|| result = Some(Schematic::read(&file[..], &ReadOptions { limits, salvage }).map(drop)));
        assert!(peak < 2 * MEGABYTE, "reading took {peak} bytes");
        if !salvage {
            assert!(
                matches!(result, Some(Err(SchematicError::TooLarge { what: "bytes of memory", .. }))),
                "{result:?}"
            );
        }
    }
}
