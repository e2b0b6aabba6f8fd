//! Decoders either read or refuse any bytes: they do not panic, and they take no more memory than they state. Each decoder
//! gets 2,000 inputs, and with `TERRANE_ROUNDS=10` ten times as many.

use crate::meter::peak_bytes;
use crate::support::*;
use bevy_terrane::block::{BlockComponentId, BlockRegistry};
use bevy_terrane::chunk::format::cluster::{decode_cluster, encode_cluster};
use bevy_terrane::chunk::format::{EncodedChunk, decode, encode};
use bevy_terrane::chunk::{ColumnSummary, Detail};
use bevy_terrane::object_store::{ObjectBatch, ObjectStore, ObjectStoreOptions};
use bevy_terrane::prelude::*;
use bevy_terrane::snapshot::schematic::nbt::{Compound, Nbt, NbtKind};
use bevy_terrane::snapshot::schematic::{
    Biomes, BlockEntity, ChunkGrid, ReadOptions, Schematic, SchematicEntity, WriteOptions,
};
use bevy_terrane::space::{HeightSet, TilePos};
use bevy_terrane::storage::{
    BatchOpacity, Durability, EntityRecord, Family, KeyValueStore, MemoryStore, SaveBatch, StoredBlockTick,
    StoredPregeneration, TileHistory, ViewerRecord, WorldStore, WriteBatch, envelope,
};
use proptest::prelude::any;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use uuid::Uuid;

const MEBIBYTE: usize = 1 << 20;

/// Random numbers that depend on the seed only.
struct Chance(TestRunner);

impl Chance {
    fn new(name: &str) -> Self {
        let mut seed = [7; 32];
        seed.iter_mut().zip(name.bytes()).for_each(|(seed, byte)| *seed = byte);
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        Self(TestRunner::new_with_rng(Config::default(), rng))
    }

    fn number(&mut self) -> u64 {
        any::<u64>().new_tree(&mut self.0).expect("a number").current()
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.number() % limit.max(1) as u64) as usize
    }

    /// Damages bytes in the most effective ways: single bits and bytes, lengths and counts at their limits, cuts, repetitions,
    /// and parts of another input.
    fn damage(&mut self, bytes: &mut Vec<u8>, others: &[Vec<u8>]) {
        for _ in 0..1 + self.below(4) {
            // The most important bytes are at the beginning.
            let reach = if self.below(2) == 0 { bytes.len().min(64) } else { bytes.len() };
            let at = self.below(reach);
            match self.below(7) {
                0 => bytes.truncate(at),
                1 => {
                    let part = bytes[at..(at + self.below(32)).min(bytes.len())].to_vec();
                    bytes.splice(at..at, part);
                }
                2 => {
                    let edges = [0, 1, 0x7f, 0x80, 0xff, 0xffff, u64::from(u32::MAX), 1 << 31, 1 << 62, u64::MAX];
                    let edge = edges[self.below(edges.len())].wrapping_add(self.below(3) as u64).to_le_bytes();
                    let length = [1, 2, 4, 8][self.below(4)].min(bytes.len() - at);
                    bytes[at..at + length].copy_from_slice(&edge[..length]);
                }
                3 => {
                    let other = &others[self.below(others.len())];
                    let from = self.below(other.len());
                    bytes.truncate(at);
                    bytes.extend_from_slice(&other[from..]);
                }
                4 => {
                    bytes.splice(at..at, [0xff; 10]);
                }
                _ if bytes.is_empty() => bytes.push(self.number() as u8),
                5 => bytes[at] = self.number() as u8,
                _ => bytes[at] ^= 1 << self.below(8),
            }
        }
    }
}

/// Feeds damaged inputs to the decoder.
fn fuzz(name: &str, limit: usize, seeds: &[Vec<u8>], mut decode: impl FnMut(&[u8])) {
    let mut chance = Chance::new(name);
    for seed in seeds {
        decode(seed);
    }
    for round in 0..rounds(2_000) {
        let mut bytes = seeds[chance.below(seeds.len())].clone();
        chance.damage(&mut bytes, seeds);
        let peak = peak_bytes(|| {
            let read = catch_unwind(AssertUnwindSafe(|| decode(&bytes)));
            assert!(read.is_ok(), "{name}, round {round}: it panicked at {bytes:02x?}");
        });
        assert!(peak <= limit + 64 * bytes.len(), "{name}, round {round}: it took {peak} bytes for {bytes:02x?}");
    }
}

/// A registry with chests, which have a lock and items, and signs, which have a text.
fn blocks() -> (BlockRegistry, [BlockId; 2], [BlockComponentId; 3]) {
    let mut blocks = BlockRegistry::new();
    blocks.register_basic_blocks();
    let lock = blocks.register_component(BlockComponent::fixed::<u32>("game:lock")).unwrap();
    let items = blocks.register_component(BlockComponent::variable("game:items")).unwrap();
    let text = blocks.register_component(BlockComponent::variable("game:text")).unwrap();
    let chest = BlockType::new("game:chest").with_component("game:lock").with_component("game:items");
    let chest = blocks.register(chest).unwrap();
    let sign = blocks.register(BlockType::new("game:sign").with_component("game:text")).unwrap();
    (blocks, [chest, sign], [lock, items, text])
}

/// Chunks of one block, of a few, of many, with layers and with components.
fn chunks() -> Vec<Chunk> {
    let (blocks, [chest, sign], [lock, items, text]) = blocks();
    let mixed = |kinds: u32| Chunk::from_fn(|[x, y, z]| BlockId::new((x * 31 + y * 17 + z * 7) as u32 % kinds));
    let mut furnished = mixed(3);
    for (at, layer) in [([1, 2, 3], 0), ([1, 2, 3], 1), ([15, 0, 9], 0)] {
        furnished.place_block(&blocks, at, layer, chest).unwrap();
        furnished.set_component(&blocks, at, layer, lock, &[1, 2, 3, 4]).unwrap();
        furnished.set_component(&blocks, at, layer, items, b"a spade").unwrap();
    }
    // Dirt on two chests, and a sign on top of it.
    furnished.set_block_at([1, 2, 3], 2, BlockId::new(2)).unwrap();
    furnished.place_block(&blocks, [1, 2, 3], 3, sign).unwrap();
    furnished.set_component(&blocks, [1, 2, 3], 3, text, b"mine").unwrap();
    vec![Chunk::uniform(BlockId::new(1)), mixed(2), mixed(9), mixed(300), furnished]
}

fn encoded_chunks() -> Vec<Vec<u8>> {
    let (blocks, ..) = blocks();
    let encoded = |chunk: &Chunk| {
        let mut bytes = Vec::new();
        encode(&blocks, chunk, &[Uuid::from_u128(3)], &mut bytes).unwrap();
        bytes
    };
    chunks().iter().map(encoded).collect()
}

#[test]
fn chunks_of_any_bytes_are_read_or_refused() {
    let (blocks, ..) = blocks();
    fuzz("chunk", MEBIBYTE, &encoded_chunks(), |bytes| {
        if let Ok(decoded) = decode(&blocks, bytes) {
            let mut again = Vec::new();
            encode(&blocks, &decoded.0, &decoded.1, &mut again).unwrap();
            assert_eq!(decode(&blocks, &again).as_ref(), Ok(&decoded));
        }
    });
}

/// Promise, chunk format: One component of one block can be read from an encoded chunk by itself.
#[test]
fn parts_of_chunks_of_any_bytes_are_read_or_refused() {
    let (blocks, _, components) = blocks();
    fuzz("part of a chunk", MEBIBYTE, &encoded_chunks(), |bytes| {
        let Ok(encoded) = EncodedChunk::new(bytes) else { return };
        let whole = decode(&blocks, bytes);
        for at in [[0, 0, 0], [1, 2, 3], [15, 0, 9], [15, 15, 15]] {
            for layer in 0..5 {
                let block = encoded.block_at(at, layer);
                if let Ok((whole, _)) = &whole {
                    assert_eq!(block, Ok(whole.block_at(at, layer)));
                }
                for component in components {
                    let value = encoded.component(&blocks, at, layer, component);
                    if let Ok((whole, _)) = &whole {
                        assert_eq!(value.unwrap(), whole.component(at, layer, component));
                    }
                }
            }
        }
        assert!(encoded.entities().len() <= bytes.len());
    });
}

#[test]
fn clusters_of_any_bytes_are_read_or_refused() {
    let chunks = encoded_chunks();
    let mut cluster = Vec::new();
    encode_cluster(|place| chunks.get(place % 9).map(Vec::as_slice).filter(|_| place < 30), &mut cluster);
    fuzz("cluster", MEBIBYTE, &[cluster], |bytes| {
        let Ok(chunks) = decode_cluster(bytes) else { return };
        let listed: usize = chunks.iter().map(|(_, chunk)| chunk.len()).sum();
        assert!(listed <= bytes.len(), "no byte is in two chunks");
    });
}

fn column() -> Column {
    let mut column = Column::new(ColumnPos::new(1, -2));
    chunks().into_iter().zip(-2..).for_each(|(chunk, y)| drop(column.set_chunk(y, Arc::new(chunk))));
    column
}

#[test]
fn summaries_of_any_bytes_are_read_or_refused() {
    let finest = ColumnSummary::new(&column());
    let seeds = [0, 1, 4].map(|level| {
        let mut bytes = Vec::new();
        finest.at(Detail::new(level)).encode(&mut bytes);
        bytes
    });
    fuzz("summary", MEBIBYTE, &seeds, |bytes| {
        if let Ok(summary) = ColumnSummary::decode(bytes) {
            let mut again = Vec::new();
            summary.encode(&mut again);
            assert_eq!(ColumnSummary::decode(&again), Ok(summary));
        }
    });
}

#[test]
fn opacity_of_any_bytes_is_read_or_refused() {
    let tile = |height: i64| {
        let mut tile = BatchOpacity::default();
        tile.set_chunk(ColumnPos::new(1, 2), height, &chunks()[2], |block| block.index() % 2 == 1);
        let mut bytes = Vec::new();
        tile.encode(&mut bytes);
        bytes
    };
    // Three times the runs that a tile may have at most.
    let limit = 3 * 16 * (1 << 24) + 16 * MEBIBYTE;
    fuzz("opacity", limit, &[tile(0), tile(-(1 << 40))], |bytes| {
        if let Ok(tile) = BatchOpacity::decode(bytes) {
            let mut again = Vec::new();
            tile.encode(&mut again);
            assert_eq!(BatchOpacity::decode(&again), Ok(tile));
        }
    });
}

/// A schematic with all features.
fn schematic(size: [u32; 3]) -> Schematic {
    let (blocks, ..) = blocks();
    let data = Compound(vec![("Items".to_owned(), Nbt::List(NbtKind::Int, vec![Nbt::Int(1), Nbt::Int(2)]))]);
    let mut schematic = Schematic::new(size);
    schematic.data_version = Some(3955);
    (schematic.offset, schematic.origin) = (Some([-1, -2, -3]), Some([10, 20, 30]));
    schematic.palette.extend((1..300).map(|kind| format!("game:block[kind={kind},waterlogged=false]")));
    schematic.components = blocks.component_records().cloned().collect();
    for (chunk, x) in chunks().into_iter().rev().zip(0..i64::from(size[0]) / 16) {
        schematic.blocks.set_chunk(ChunkPos::new(x, 0, 0), Arc::new(chunk));
    }
    schematic.block_entities = vec![BlockEntity { position: [0, 0, 0], id: "a:chest".into(), data: data.clone() }];
    schematic.entities = vec![SchematicEntity { position: [0.5, 1.0, 0.5], id: "a:cow".into(), data }];
    schematic.biomes = Some(Biomes { palette: vec!["a:plains".into()], cells: ChunkGrid::new(size) });
    schematic
}

#[test]
fn schematics_of_any_bytes_are_refused_or_can_be_written_again() {
    let files = [([32, 18, 17], 2), ([32, 17, 16], 3), ([5, 3, 18], 2), ([1, 1, 1], 3)];
    let seeds = files.map(|(size, version)| {
        let (mut packed, mut plain) = (Vec::new(), Vec::new());
        schematic(size).write(&mut packed, &WriteOptions { version, level: 1 }).unwrap();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&packed[..]), &mut plain).unwrap();
        [packed, plain]
    });
    // Reading takes half of it, and reading the rewritten file as much again.
    fuzz("schematic", 24 * MEBIBYTE, seeds.as_flattened(), |bytes| {
        for salvage in [false, true] {
            let (schematic, report) =
                match Schematic::read(bytes, &ReadOptions { memory: 2 << 20, salvage, ..ReadOptions::default() }) {
                    Ok(read) => read,
                    Err(error) => {
                        let text = error.to_string();
                        assert!(text.len() <= 1024 && !text.contains(char::is_control), "{text:?}");
                        assert!(text.starts_with("byte "), "{text}");
                        continue;
                    }
                };
            assert!(salvage || report.damage.is_none());
            assert!(report.blocks <= schematic.blocks.volume());
            for version in [2, 3] {
                let mut again = Vec::new();
                if schematic.write(&mut again, &WriteOptions { version, level: 0 }).is_ok() {
                    let read = Schematic::read(&again[..], &ReadOptions::default());
                    assert!(read.is_ok(), "{:?}", read.err());
                }
            }
        }
    });
}

#[test]
fn rebuilding_an_index_from_a_batch_of_many_keys_takes_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let [path, crashed] = ["store", "crashed"].map(|name| folder.path().join(name));
    let mut store = ObjectStore::create(&path, "fuzz 1", ObjectStoreOptions::default()).unwrap();
    store.write("gone", 1, b"").unwrap();
    let mut batch = ObjectBatch::default();
    batch.write("kept", 1, *b"one").delete("gone");
    (0..200_000_u32).for_each(|number| _ = batch.delete(format!("{number:x}")));
    store.apply(&batch).unwrap();
    // The state that a crash leaves.
    std::fs::copy(&path, &crashed).unwrap();
    let peak = peak_bytes(|| {
        let store = ObjectStore::open_to_read(&crashed, "fuzz 1").unwrap();
        assert!(store.recovery().is_some());
        assert_eq!(store.with_prefix("").collect::<Vec<_>>(), [("kept", 1)]);
    });
    // Each key as a separate string would take more.
    assert!(peak < 200_000 * size_of::<String>(), "it took {peak} bytes");
}

const HERE: DimensionId = DimensionId(0);

/// A world with every kind of stored data.
fn stored_world() -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    let world = WorldStore::from_store(store.clone()).unwrap();
    let (blocks, ..) = blocks();
    let mut lists = world.registry_lists().unwrap();
    lists.blocks = blocks.block_records().collect();
    lists.components = blocks.component_records().cloned().collect();
    lists.entity_types = vec!["game::Mob@1".into()];
    world.save_registry_lists(&lists).unwrap();
    world.set_blocks(Arc::new(blocks));
    let origin = GeneratorIdentity { name: "terrane:flat".into(), version: 1, seed: u64::MAX };
    assert_eq!(world.open_dimension("overworld", &origin), Ok(HERE));
    let (column, mut batch) = (column(), SaveBatch::default());
    let pos = column.pos();
    for (y, chunk) in column.chunks() {
        batch.chunks.insert((HERE, pos.chunk(y)), chunk.clone());
    }
    let block = pos.chunk(0).min_block();
    let tick = StoredBlockTick { block, kind: "flow".into(), remaining: 9 };
    batch.block_ticks.insert((HERE, pos.chunk(0)), vec![tick]);
    let record = EntityRecord {
        id: Uuid::from_u128(5),
        dimension: HERE,
        block,
        offset: [0.5; 3],
        viewer: Some(ViewerRecord { radius: 3, ..ViewerRecord::default() }),
        components: vec![("game::Mob@1".into(), vec![1, 2, 3])],
        children: Vec::new(),
    };
    batch.entities.insert(record.id, Some(record));
    let mut masks = [0; 64];
    masks[56] = 2;
    batch.tiles.insert((HERE, TilePos::new(0, -1)), masks);
    let mut history = TileHistory::default();
    history.set_new(pos, true);
    history.set_heights(pos, Some((-64..320).into()));
    batch.histories.insert((HERE, pos.tile()), history);
    batch.heights.insert(HERE, -16..16);
    batch.summaries.insert((HERE, pos), Arc::new(ColumnSummary::new(&column)));
    let (area, cursor) = (ColumnArea::Disc { center: pos, radius: 9 }, Default::default());
    let elapsed = std::time::Duration::from_secs(3);
    let job = StoredPregeneration { area, cursor, paused: true, elapsed };
    batch.pregenerations.insert((HERE, 0), Some(job));
    world.commit(&batch, Durability::Process).unwrap();
    world.opacity(HERE, pos.batch()).unwrap();
    store
}

/// Reads everything in a world, and ignores the results.
fn read_everything(store: &Arc<MemoryStore>) {
    let Ok(world) = WorldStore::from_store(Arc::new(store.snapshot())) else { return };
    let _ = world.registry_lists();
    let (blocks, ..) = blocks();
    let pos = column().pos();
    for round in 0..2 {
        let _ = world.dimensions();
        let _ = world.load_batch(HERE, pos.batch(), &[pos], -9..9);
        let _ = world.load_part(HERE, pos, &HeightSet::from(-9..9));
        let _ = world.viewers(HERE);
        let _ = world.entity(Uuid::from_u128(5));
        let _ = world.stored_tiles(HERE);
        let _ = world.histories(HERE);
        let _ = world.history_of_stored(HERE, pos);
        let _ = world.first_heights(HERE);
        let _ = world.summaries(HERE, &[pos]);
        let _ = world.pregenerations(HERE);
        let _ = world.opacity(HERE, pos.batch());
        let _ = world.has_lost_tiles(HERE);
        if round == 0 {
            world.set_blocks(Arc::new(blocks.clone()));
        }
    }
}

#[test]
fn stored_values_of_any_bytes_are_read_or_refused() {
    let store = stored_world();
    let scan = |family: Family| store.scan(family, &[]..&[0xff; 64], usize::MAX).unwrap();
    let entries: Vec<_> =
        Family::ALL.into_iter().flat_map(|family| scan(family).into_iter().map(move |entry| (family, entry))).collect();
    assert!(entries.len() >= 15, "{}", entries.len());
    let values: Vec<Vec<u8>> = entries.iter().map(|(_, (_, value))| value.clone()).collect();
    let mut chance = Chance::new("store");
    read_everything(&store);
    for round in 0..rounds(2_000) {
        let (family, (key, value)) = &entries[chance.below(entries.len())];
        let mut damaged = value.clone();
        // Behind a correct checksum half of the time.
        let sealed = envelope::open(value).map(|(version, payload)| (version, payload.to_vec()));
        match sealed {
            Ok((version, mut payload)) if chance.below(2) == 0 => {
                chance.damage(&mut payload, &values);
                damaged = envelope::sealed(version, &payload);
            }
            _ => chance.damage(&mut damaged, &values),
        }
        let broken = Arc::new(store.snapshot());
        let mut batch = WriteBatch::default();
        batch.put(*family, key.clone(), damaged.clone());
        broken.write(batch, Durability::Process).unwrap();
        let what = || format!("round {round}: {family} {key:02x?} with {damaged:02x?}");
        let peak = peak_bytes(|| {
            let read = catch_unwind(AssertUnwindSafe(|| read_everything(&broken)));
            assert!(read.is_ok(), "it panicked, {}", what());
        });
        // A tile of the opacity map may have many runs.
        let limit = if *family == Family::Opacity { 1_000 * MEBIBYTE } else { 64 * MEBIBYTE };
        assert!(peak <= limit, "it took {peak} bytes, {}", what());
    }
}
