//! Files of other programs, which are not part of the project: they are in the folder `TERRANE_SCHEMATICS`, or in
//! `../shared/schematics`. These tests are ignored; `cargo xtask test` runs them if the files exist.

use super::*;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

fn folder() -> PathBuf {
    match std::env::var_os("TERRANE_SCHEMATICS") {
        Some(folder) => folder.into(),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/schematics"),
    }
}

pub(in crate::snapshot) fn files_alone() -> Vec<(String, Vec<u8>)> {
    files().into_iter().map(|(name, bytes, _)| (name, bytes)).collect()
}

/// The files with their known properties.
fn files() -> Vec<(String, Vec<u8>, Value)> {
    let folder = folder();
    let entries = fs::read_dir(folder.join("truth")).unwrap();
    let mut truths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    truths.sort();
    let file = |truth: PathBuf| {
        let name = truth.file_stem().unwrap().to_str().unwrap().to_owned();
        let bytes = fs::read(folder.join(format!("{name}.schem"))).unwrap();
        (name, bytes, serde_json::from_slice(&fs::read(truth).unwrap()).unwrap())
    };
    truths.into_iter().map(file).collect()
}

fn numbers<N: TryFrom<i64>>(value: &Value) -> [N; 3] {
    std::array::from_fn(|at| value[at].as_i64().and_then(|number| N::try_from(number).ok()).unwrap())
}

/// All cells, x fastest, then z, then y.
fn cells(grid: &ChunkGrid) -> impl Iterator<Item = BlockId> {
    let [width, height, length] = grid.size();
    (0..height).flat_map(move |y| (0..length).flat_map(move |z| (0..width).map(move |x| grid.block([x, y, z]))))
}

fn histogram(grid: &ChunkGrid, palette: &[String]) -> BTreeMap<String, u64> {
    let mut counts = vec![0; palette.len()];
    cells(grid).for_each(|block| counts[block.index() as usize] += 1);
    palette.iter().cloned().zip(counts).filter(|(_, count)| *count > 0).collect()
}

fn check(name: &str, schematic: &Schematic, truth: &Value) {
    assert_eq!(schematic.size(), numbers::<u32>(&truth["dims"]), "{name}");
    assert_eq!(u64::from(schematic.version), truth["version"].as_u64().unwrap_or(1), "{name}");
    assert_eq!(schematic.data_version.map(i64::from), truth["data_version"].as_i64(), "{name}");
    let counts = truth["block_histogram"].as_object().unwrap();
    let expected = counts.iter().map(|(state, count)| (normalized(state.clone()), count.as_u64().unwrap()));
    assert_eq!(histogram(&schematic.blocks, &schematic.palette), expected.collect(), "{name}");
    for sample in truth["samples"].as_array().unwrap() {
        let state = normalized(sample[3].as_str().unwrap().to_owned());
        assert_eq!(schematic.state(numbers(sample)), Some(&*state), "{name}: {sample}");
    }
    // The digest is of the states as written in the file.
    let as_written: BTreeMap<String, &String> = counts.keys().map(|state| (normalized(state.clone()), state)).collect();
    let check_sums: Vec<[u8; 4]> = schematic
        .palette
        .iter()
        .map(|state| crc32fast::hash(as_written.get(state).copied().unwrap_or(state).as_bytes()).to_le_bytes())
        .collect();
    let mut digest = Sha256::new();
    for block in cells(&schematic.blocks) {
        digest.update(check_sums[block.index() as usize]);
    }
    let digest: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest, truth["cells_digest"].as_str().unwrap(), "{name}");
    check_block_entities(name, schematic, truth);
    match truth["biome_histogram"].as_object() {
        None => assert_eq!(schematic.biomes, None, "{name}"),
        Some(counts) => {
            let biomes = schematic.biomes.as_ref().unwrap();
            let expected = counts.iter().map(|(name, count)| (name.clone(), count.as_u64().unwrap()));
            assert_eq!(histogram(&biomes.cells, &biomes.palette), expected.collect(), "{name}");
        }
    }
}

fn check_block_entities(name: &str, schematic: &Schematic, truth: &Value) {
    let found: Vec<_> = schematic.block_entities.iter().map(|entity| (entity.position, entity.id.clone())).collect();
    let without_quotes = |id: &str| id.trim_matches('"').to_owned();
    // At most 5,000 of them are listed.
    let listed = truth["block_entity_positions"].as_array().unwrap();
    for (found, expected) in found.iter().zip(listed) {
        let id = without_quotes(expected[3].as_str().unwrap());
        assert_eq!((found.0, without_quotes(&found.1)), (numbers(expected), id), "{name}");
    }
    let count = truth["block_entities"].as_u64().unwrap_or_default();
    assert_eq!(found.len() as u64, count, "{name}");
    assert_eq!(schematic.entities.len() as u64, truth["entities"].as_u64().unwrap_or_default(), "{name}");
}

#[test]
#[ignore = "needs files of other programs"]
fn real_files_are_read_as_two_other_decoders_read_them() {
    for (name, bytes, truth) in files() {
        let (schematic, report) = Schematic::read(&bytes[..], &ReadOptions::default()).unwrap();
        check(&name, &schematic, &truth);
        let expected = ReadReport {
            blocks: schematic.blocks.volume(),
            bytes: truth["nbt_bytes"].as_u64().unwrap(),
            stray_block_entities: (name == "s4j_v1_noversion").into(),
            ..ReadReport::default()
        };
        assert_eq!(report, expected, "{name}");
    }
}

#[test]
#[ignore = "needs files of other programs"]
fn real_files_are_the_same_after_they_were_written_and_read() {
    for (name, bytes, _) in files() {
        let original = read(&bytes);
        for version in [2, 3] {
            let again = read(&written(&original, version));
            let mut expected = Schematic { version, ..original.clone() };
            if let (3, Some(biomes)) = (version, &mut expected.biomes) {
                // One biome per column becomes one per cell.
                biomes.cells = again.biomes.as_ref().unwrap().cells.clone();
            }
            assert!(again == expected, "{name}, version {version}");
        }
    }
}

#[test]
#[ignore = "needs files of other programs"]
fn the_origin_of_real_files_is_found_in_both_conventions() {
    let placement = |name: &str| {
        let (_, bytes, _) = files().into_iter().find(|(other, ..)| other == name).unwrap();
        let schematic = read(&bytes);
        assert!(schematic.metadata.get("WEOffsetX").is_none(), "{name}");
        (schematic.offset, schematic.origin)
    };
    assert_eq!(placement("limbo_v2_spawn"), (Some([-25, -23, -24]), Some([-81, 102, 81])));
    assert_eq!(placement("battle_v3_map"), (Some([-161, -37, -75]), Some([94, 6, 15])));
}
