//! Copies, backups, salvage and pruning, compared with the contents of the world.

use super::*;
use crate::backends::test_store::TestStore;
use crate::block::{BlockId, BlockRecord};
use crate::chunk::{Chunk, Column, ColumnSummary};
use crate::space::{BlockPos, ChunkPos, ColumnArea, ColumnPos, DimensionId, GeneratorIdentity, TilePos};
use crate::values::tile_masks;
use crate::work::Progress;
use crate::{
    Access, ChunkGroup, Durability, EntityRecord, Entry, Family, KeyValueStore, MemoryStore, RegistryLists, SaveBatch,
    StorageConfig, StoredBlockTick, Tier, ViewerRecord, WorldOpenError, WorldStore, WriteBatch, keys,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use uuid::Uuid;

const OVERWORLD: DimensionId = DimensionId(0);
/// The side of the square of stored columns, which starts at -40. It has columns of four tiles and clusters that cross
/// its borders.
const SIDE: i64 = 44;

fn go_on(_: &Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn entity(id: u128, column: ColumnPos, viewer: bool) -> EntityRecord {
    EntityRecord {
        id: Uuid::from_u128(id),
        dimension: OVERWORLD,
        block: BlockPos::new(column.x * 16, 5, column.z * 16),
        offset: [0.5; 3],
        viewer: viewer.then(ViewerRecord::default),
        components: vec![("name".into(), b"Alice".to_vec())],
        children: Vec::new(),
    }
}

fn columns() -> impl Iterator<Item = ColumnPos> {
    (-40..SIDE - 40).flat_map(|x| (-40..SIDE - 40).map(move |z| ColumnPos::new(x, z)))
}

fn chunk(pos: ChunkPos) -> Arc<Chunk> {
    let mut chunk = Chunk::uniform(BlockId::new(1));
    chunk.set_block([1, 2, 3], BlockId::new((pos.x & 1) as u32));
    Arc::new(chunk)
}

/// A world with data of every kind in all tiers.
fn full_world() -> TestStore {
    static WORLD: OnceLock<MemoryStore> = OnceLock::new();
    TestStore::on(WORLD.get_or_init(|| make_world().snapshot()).snapshot())
}

fn make_world() -> TestStore {
    let store = TestStore::default();
    let world = store.world();
    let lists = RegistryLists {
        blocks: ["terrane:air", "game:stone"].map(|name| BlockRecord { name: name.into(), components: vec![] }).into(),
        entity_types: vec!["name".into()],
        ..RegistryLists::default()
    };
    world.save_registry_lists(&lists).unwrap();
    let origin = GeneratorIdentity { name: "hills".into(), version: 1, seed: 7 };
    assert_eq!(world.open_dimension("overworld", &origin), Ok(OVERWORLD));
    let mut batch = SaveBatch::default();
    let mut graph = BTreeMap::new();
    for column in columns() {
        tile_masks::insert(&mut graph, column);
        for y in [-1, 0, 9] {
            batch.chunks.insert((OVERWORLD, column.chunk(y)), chunk(column.chunk(y)));
        }
        batch.summaries.insert((OVERWORLD, column), Arc::new(ColumnSummary::new(&Column::new(column))));
        let pos = column.chunk(0);
        let block = BlockPos::new(pos.x * 16, 3, pos.z * 16);
        let ticks = vec![StoredBlockTick { block, kind: "grow".into(), remaining: 4 }];
        batch.block_ticks.insert((OVERWORLD, pos), ticks);
        if column.x % 3 == 0 {
            let id = (((column.x + 64) << 8) + column.z + 64) as u128;
            batch.entities.insert(Uuid::from_u128(id), Some(entity(id, column, column.x == column.z)));
        }
    }
    world.set_session_time(Duration::from_secs(90));
    batch.tiles = graph.into_iter().map(|(tile, masks)| ((OVERWORLD, tile), masks)).collect();
    for column in columns().filter(|column| column.x % 2 == 0) {
        batch.histories.entry((OVERWORLD, column.tile())).or_default().set_new(column, true);
    }
    world.commit(&batch, Durability::Process).unwrap();
    let mut groups: Vec<_> = batch.chunks.keys().map(|(id, chunk)| ChunkGroup::of(*id, *chunk)).collect();
    groups.dedup();
    let mut moves: Vec<_> = groups
        .into_iter()
        .filter_map(|group| match (group.first().x >> 2).rem_euclid(3) {
            0 => None,
            1 => Some((group, Tier::Warm)),
            _ => Some((group, Tier::Cold)),
        })
        .collect();
    while !moves.is_empty() {
        let left = world.move_groups(&moves).unwrap().1;
        moves.drain(..moves.len() - left);
    }
    store
}

fn look_at(store: &TestStore) -> WorldStore {
    let config = StorageConfig::Custom(Arc::new(store.clone()));
    WorldStore::open_existing(&config, Access::Read).unwrap()
}

fn damages(store: &TestStore) -> Vec<String> {
    let report = look_at(store).verify(go_on).unwrap();
    assert!(report.finished);
    assert_eq!(report.damage.count(), report.damage.first.len() as u64);
    report.damage.first.iter().map(ToString::to_string).collect()
}

/// Promise, upkeep: A game can call `verify`, `prune`, `compact` and `back_up` itself.
#[test]
fn verifying_an_intact_world_finds_nothing_and_changes_nothing() {
    let store = full_world();
    let before = store.contents();
    let tiers = [Family::Chunks, Family::WarmChunks, Family::ColdChunks];
    for tier in tiers {
        assert!(before.iter().any(|(family, _)| *family == tier), "{tier}");
    }
    let report = look_at(&store).verify(go_on).unwrap();
    assert_eq!((report.damage, report.stale), (Listed::default(), 0));
    assert_eq!(report.read.done, before.len() as u64);
    let bytes: usize = before.iter().map(|(_, (key, value))| key.len() + value.len()).sum();
    assert_eq!(report.read.bytes, bytes as u64);
    assert_eq!(store.contents(), before);
}

#[test]
fn a_walk_can_be_stopped() {
    let store = full_world();
    let report = look_at(&store).verify(|_| ControlFlow::Break(())).unwrap();
    assert!(!report.finished && report.read.done > 0);
    assert!(report.read.done < store.contents().len() as u64);
}

/// Promise, crashes: Every stored value has a checksum.
/// Promise, upkeep: `terrane verify` reads and checks every value of a world.
#[test]
fn each_kind_of_damage_is_found_and_named() {
    let place =
        |family: Family| move |(of, (key, _)): &(Family, (Vec<u8>, Vec<u8>))| (*of == family).then(|| key.clone());
    let whole = full_world();
    let first = |family| whole.contents().iter().find_map(place(family)).unwrap();
    let column = ColumnPos::new(-40, -40);
    let id = whole.contents().iter().find_map(place(Family::Entities)).unwrap();
    let cases: [(Family, Vec<u8>, &str); 11] = [
        (Family::Chunks, first(Family::Chunks), "chunk [-"),
        (Family::WarmChunks, first(Family::WarmChunks), "chunk [-"),
        (Family::ColdChunks, first(Family::ColdChunks), "chunk [-"),
        (Family::Entities, id, "entity "),
        (Family::Opacity, Vec::new(), ""),
        (Family::Meta, keys::block_ticks_key(OVERWORLD, column.chunk(0)), "block ticks"),
        (Family::Meta, keys::summary_key(OVERWORLD, column), "summary"),
        (Family::Meta, keys::tile_key(OVERWORLD, TilePos::new(-2, -2)), "graph tile"),
        (Family::Meta, keys::history_key(OVERWORLD, TilePos::new(-2, -2)), "the history of tile"),
        (Family::Meta, keys::dimension_key("overworld"), "\"overworld\""),
        (Family::Registry, b"entity_types".to_vec(), "entity_types"),
    ];
    for (family, key, name) in cases.into_iter().filter(|case| !case.1.is_empty()) {
        let store = TestStore::on(whole.snapshot());
        store.tamper(family, &key, |value| {
            let last = value.len() / 2;
            value[last] ^= 0x55;
            if family == Family::Entities || family == Family::Registry || name.contains("overworld") {
                value.push(0);
            }
        });
        let found = damages(&store);
        assert!(!found.is_empty() && found.iter().all(|damage| damage.contains(name)), "{family} {name}: {found:?}");
        // At most one group of the cluster is damaged.
        assert!(found.len() <= 64, "{found:?}");
    }
    assert_eq!(damages(&whole), [""; 0]);
}

#[test]
fn misplaced_entries_are_found() {
    let whole = full_world();
    let put = |family, key: Vec<u8>, value: Option<Vec<u8>>| {
        let store = TestStore::on(whole.snapshot());
        let mut writes = WriteBatch::default();
        match value {
            Some(value) => writes.put(family, key, value),
            None => writes.delete(family, key),
        }
        store.write(writes, Durability::Process).unwrap();
        damages(&store)
    };
    let contents = whole.contents();
    let (_, (hot_key, hot)) = contents.iter().find(|(family, _)| *family == Family::Chunks).unwrap();
    let (_, (warm_key, _)) = contents.iter().find(|(family, _)| *family == Family::WarmChunks).unwrap();
    let found = put(Family::Chunks, warm_key.clone(), Some(hot.clone()));
    assert!(found.len() == 1 && found[0].contains("two tiers"), "{found:?}");
    let far = keys::chunk_key(OVERWORLD, ChunkPos::new(5_000, 0, 0)).to_vec();
    let found = put(Family::Chunks, far, Some(hot.clone()));
    assert!(found.len() == 1 && found[0].contains("not marked as stored"), "{found:?}");
    let found = put(Family::Chunks, [&hot_key[..], &[1]].concat(), Some(hot.clone()));
    assert!(found.len() == 1 && found[0].contains("key"), "{found:?}");
    let found = put(Family::Meta, b"nonsense".to_vec(), Some(Vec::new()));
    assert!(found.len() == 1 && found[0].contains("key"), "{found:?}");
    let found = put(Family::Meta, keys::HEADER.to_vec(), None);
    assert!(found.len() == 1 && found[0].contains("header") && found[0].contains("missing"), "{found:?}");
    let column = ColumnPos::new(-39, -40);
    let lost = entity((25 << 8) + 24, column, false);
    assert!(look_at(&whole).entity(lost.id).unwrap().is_some());
    let found = put(Family::Meta, keys::place_key(OVERWORLD, column, lost.id), None);
    assert!(found.len() == 1 && found[0].contains(&lost.id.to_string()), "{found:?}");

    // A key that leads nowhere does no harm.
    let mut writes = WriteBatch::default();
    writes.delete(Family::Entities, keys::entity_key(lost.id));
    whole.write(writes, Durability::Process).unwrap();
    let report = look_at(&whole).verify(go_on).unwrap();
    assert_eq!((report.damage.count(), report.stale), (0, 1));
}

#[test]
fn unreadable_blocks_are_reported_as_ranges_and_everything_else_is_read() {
    let store = full_world();
    let contents = store.contents();
    let all: Vec<&[u8]> =
        contents.iter().filter(|(family, _)| *family == Family::Chunks).map(|(_, (key, _))| &key[..]).collect();
    let lost = [&all[3..9], &all[40..41], &all[all.len() - 2..]];
    lost.iter().for_each(|keys| store.damage_block(Family::Chunks, keys));
    let report = look_at(&store).verify(go_on).unwrap();
    assert!(report.finished);
    let range = |damage| match damage {
        Damage::Unreadable { keys, .. } => keys,
        other => panic!("{other}"),
    };
    let ranges: Vec<Range<Vec<u8>>> = report.damage.first.into_iter().map(range).collect();
    assert_eq!(ranges.len(), lost.len());
    for (range, lost) in ranges.iter().zip(lost) {
        let inside: Vec<&[u8]> =
            all.iter().copied().filter(|key| (&range.start[..]..&range.end[..]).contains(key)).collect();
        assert_eq!(inside, lost);
    }
    assert_eq!(report.read.done, (contents.len() - 9) as u64);
}

/// Promise, upkeep: `terrane salvage` makes a new world of all readable data of a damaged one.
#[test]
fn a_salvaged_world_has_all_that_could_be_read() {
    let store = full_world();
    let contents = store.contents();
    let keys_of = |family| contents.iter().filter(move |(of, _)| *of == family).map(|(_, (key, _))| &key[..]);
    let entity = keys_of(Family::Entities).nth(4).unwrap();
    let chunk = keys_of(Family::Chunks).nth(7).unwrap();
    let unreadable: Vec<&[u8]> = keys_of(Family::Chunks).skip(20).take(5).collect();
    store.tamper(Family::Entities, entity, |value| value.push(0));
    store.tamper(Family::Chunks, chunk, |value| value[20] ^= 1);
    store.tamper(Family::Meta, keys::HEADER, |value| value.clear());
    store.damage_block(Family::Chunks, &unreadable);
    let before = store.contents();

    let new = MemoryStore::new();
    let report = salvage(&look_at(&store), &new, go_on).unwrap();
    assert_eq!((report.damage.count(), report.set_aside), (4, 3), "{:?}", report.damage);
    assert_eq!(store.contents(), before);
    let new = TestStore::on(new);
    let found: BTreeSet<_> = new.contents().into_iter().collect();
    let missing: BTreeSet<_> =
        before.iter().filter(|entry| !found.contains(entry)).map(|(family, (key, _))| (*family, &key[..])).collect();
    let expected = unreadable.iter().map(|key| (Family::Chunks, *key));
    let expected = expected.chain([(Family::Entities, entity), (Family::Meta, keys::HEADER), (Family::Chunks, chunk)]);
    assert_eq!(missing, expected.collect());

    let world = new.world();
    assert_eq!(world.set_aside().unwrap().len(), 3);
    // Only the damaged chunk is refused, and the error names it.
    let (dimension, lost) = keys::parse_chunk_key(chunk).unwrap();
    let error = world.load_batch(dimension, lost.column().batch(), &[lost.column()], -4..20).unwrap_err().to_string();
    assert!(error.contains(&format!("chunk {lost} of")), "{error}");
    let report = look_at(&new).verify(go_on).unwrap();
    assert_eq!((report.damage, report.marked_lost), (Listed::default(), 1));
    // Salvage refuses a store that is not empty.
    let refused = salvage(&look_at(&store), &new, go_on).unwrap_err();
    assert!(matches!(refused, UpkeepError::NotEmpty { .. }), "{refused}");
}

#[test]
fn no_column_of_a_salvaged_world_is_generated_over() {
    let tile = keys::tile_key(OVERWORLD, TilePos::new(-1, -1));
    let known = |world: &WorldStore| {
        let tiles = world.stored_tiles(OVERWORLD).unwrap();
        tiles.iter().flat_map(|(.., masks)| masks).map(|mask| mask.count_ones()).sum::<u32>()
    };
    for is_unreadable in [false, true] {
        let store = full_world();
        if is_unreadable {
            store.damage_block(Family::Meta, &[&tile]);
        } else {
            store.tamper(Family::Meta, &tile, |value| value[5] ^= 1);
        }
        let new = MemoryStore::new();
        salvage(&look_at(&store), &new, go_on).unwrap();
        let world = TestStore::on(new).world();
        assert_eq!(known(&world), known(&full_world().world()), "unreadable: {is_unreadable}");
    }
}

#[test]
fn entities_of_a_salvaged_world_are_found_without_their_index_keys() {
    let store = full_world();
    let contents = store.contents();
    let leads = |key: &[u8]| keys::parse_place_key(key).is_some() || keys::parse_viewer_key(key).is_some();
    let lost: Vec<&[u8]> = contents
        .iter()
        .filter(|(family, (key, _))| *family == Family::Meta && leads(key))
        .map(|(_, (key, _))| &key[..])
        .collect();
    store.damage_block(Family::Meta, &lost[..lost.len() / 2]);
    let new = MemoryStore::new();
    salvage(&look_at(&store), &new, go_on).unwrap();
    let new = TestStore::on(new);
    let found: BTreeSet<_> = new.contents().into_iter().map(|(family, (key, _))| (family, key)).collect();
    assert!(lost.iter().all(|key| found.contains(&(Family::Meta, key.to_vec()))));
    assert_eq!(new.world().viewers(OVERWORLD).unwrap(), full_world().world().viewers(OVERWORLD).unwrap());
}

/// One or all values of a family are damaged, unreadable or gone: the salvaged world is whole.
///
/// Promise, upkeep: `terrane salvage` makes a new world of all readable data of a damaged one.
#[test]
fn worlds_that_salvage_writes_verify_clean() {
    let whole = full_world();
    let contents = whole.contents();
    let of = |family: Family| -> Vec<&[u8]> {
        contents.iter().filter(|(of, _)| *of == family).map(|(_, (key, _))| &key[..]).collect()
    };
    let single = [keys::LAST_DIMENSION.to_vec(), keys::dimension_key("overworld"), keys::HEADER.to_vec()];
    let mut cases: Vec<(Family, Vec<&[u8]>)> = single.iter().map(|key| (Family::Meta, vec![&key[..]])).collect();
    for family in Family::ALL.into_iter().filter(|family| *family != Family::Registry && !of(*family).is_empty()) {
        let keys = of(family);
        cases.extend([(family, keys[..1].to_vec()), (family, keys[keys.len() / 2..].to_vec()), (family, keys)]);
    }
    for (family, keys) in cases {
        for damage in ["bytes", "unreadable", "gone"] {
            let store = full_world();
            match damage {
                "bytes" => keys.iter().for_each(|key| store.tamper(family, key, |value| value.push(7))),
                "unreadable" => store.damage_block(family, &keys),
                _ => {
                    let mut writes = WriteBatch::default();
                    keys.iter().for_each(|key| writes.delete(family, key.to_vec()));
                    store.write(writes, Durability::Process).unwrap();
                }
            }
            let what = format!("{} keys of {family}, {damage}", keys.len());
            let Ok(from) = WorldStore::look_at(Arc::new(store.clone())) else { panic!("{what}") };
            let new = MemoryStore::new();
            salvage(&from, &new, go_on).unwrap();
            let new = TestStore::on(new);
            assert_eq!(damages(&new), [""; 0], "{what}");
            // Numbers of dimensions are never reused.
            let origin = GeneratorIdentity { name: "void".into(), version: 1, seed: 1 };
            assert_ne!(new.world().open_dimension("new", &origin), Ok(OVERWORLD), "{what}");
        }
    }
}

#[test]
fn the_ground_of_a_dimension_whose_record_is_lost_can_be_exported() {
    let store = full_world();
    store.tamper(Family::Meta, &keys::dimension_key("overworld"), |value| value.clear());
    let damaged = TestStore::on(store.snapshot());
    let mut writes = WriteBatch::default();
    writes.delete(Family::Meta, keys::dimension_key("overworld"));
    store.write(writes, Durability::Process).unwrap();
    for (store, name) in [(damaged, "overworld"), (store, "lost/0")] {
        let new = MemoryStore::new();
        let report = salvage(&look_at(&store), &new, go_on).unwrap();
        let is_listed = |damage: &Damage| matches!(damage, Damage::LostRecord { name: told, .. } if told == name);
        assert!(report.damage.first.iter().any(is_listed), "{:?}", report.damage);
        let world = TestStore::on(new).world();
        assert_eq!(world.dimension_named(name).unwrap().id, OVERWORLD);
        // No game mistakes the dimension for the one that it generates.
        let origin = GeneratorIdentity { name: "hills".into(), version: 1, seed: 7 };
        assert_ne!(world.open_dimension("overworld", &origin), Ok(OVERWORLD));
        let folder = tempfile::tempdir().unwrap();
        let exported = world.export_dimension(name, &folder.path().join("file"), &ExportOptions::default(), go_on);
        assert_eq!(exported.unwrap().columns, (SIDE * SIDE) as u64);
    }
}

/// A salvage makes all whole chunks of a damaged cluster hot, and stores a group once that was stored twice.
#[test]
fn a_salvaged_cluster_has_all_of_its_whole_groups() {
    for family in [Family::WarmChunks, Family::ColdChunks] {
        let store = full_world();
        let (_, (key, value)) = store.contents().into_iter().find(|(of, _)| *of == family).unwrap();
        store.tamper(family, &key, |value| {
            let middle = value.len() / 2;
            value[middle] ^= 0x55;
        });
        let before = damages(&store).len() as u64;
        assert!((1..=64).contains(&before));
        let new = MemoryStore::new();
        salvage(&look_at(&store), &new, go_on).unwrap();
        let new = TestStore::on(new);
        let report = look_at(&new).verify(go_on).unwrap();
        assert_eq!((report.damage, report.marked_lost), (Listed::default(), before), "{family}");
        let (world, old) = (look_at(&new), look_at(&full_world()));
        let (mut same, mut lost) = (0, 0);
        for column in columns() {
            for y in [-1, 0, 9] {
                let expected = old.inspect_chunk(OVERWORLD, column.chunk(y)).unwrap().unwrap().chunk;
                match world.inspect_chunk(OVERWORLD, column.chunk(y)) {
                    Ok(found) => same += u64::from(found.unwrap().chunk == expected),
                    Err(_) => lost += 1,
                }
            }
        }
        assert_eq!((same, lost), ((SIDE * SIDE * 3) as u64 - before, before), "{family}");
        let is_kept = |kept: &Entry| kept.family == family && kept.value.as_ref().map(Vec::len) == Some(value.len());
        assert!(world.set_aside().unwrap().iter().any(is_kept));
    }
}

#[test]
fn lost_type_lists_are_not_replaced() {
    for key in ["blocks", "components"] {
        let store = full_world();
        store.damage_block(Family::Registry, &[key.as_bytes()]);
        let new = MemoryStore::new();
        let report = salvage(&look_at(&store), &new, go_on).unwrap();
        assert_eq!(report.damage.count(), 1);
        let error = TestStore::on(new).world().registry_lists().unwrap_err().to_string();
        assert!(error.contains(key), "{error}");
    }
}

/// Promise, upkeep: `terrane copy` copies a world byte for byte.
#[test]
fn a_copy_is_the_same_byte_for_byte_and_mixes_nothing() {
    let store = full_world();
    let new = MemoryStore::new();
    let copied = copy_store(&store, &new, go_on).unwrap();
    assert_eq!(copied.done, store.contents().len() as u64);
    assert_eq!(TestStore::on(new.snapshot()).contents(), store.contents());
    assert!(matches!(copy_store(&store, &new, go_on), Err(UpkeepError::NotEmpty { .. })));

    let part = MemoryStore::new();
    assert_eq!(copy_store(&store, &part, |_| ControlFlow::Break(())), Err(UpkeepError::Cancelled));
    let chunk = store.contents().into_iter().find(|(family, _)| *family == Family::Chunks).unwrap().1.0;
    store.damage_block(Family::Chunks, &[&chunk]);
    assert!(copy_store(&store, &MemoryStore::new(), go_on).is_err(), "a copy leaves nothing out");
}

/// The stored data of each column, from any tier.
fn ground(world: &WorldStore) -> BTreeMap<ColumnPos, (Vec<(i64, Arc<Chunk>)>, usize, usize)> {
    let mut ground = BTreeMap::new();
    for column in columns() {
        let mut loaded = world.load_batch(OVERWORLD, column.batch(), &[column], -4..20).unwrap();
        let loaded = loaded.remove(0);
        let chunks: Vec<_> = loaded.column.chunks().map(|(y, chunk)| (y, chunk.clone())).collect();
        ground.insert(column, (chunks, loaded.entities.len(), loaded.block_ticks.len()));
    }
    ground
}

/// Promise, upkeep: `terrane prune` deletes everything outside of a shape, and frees the disk space.
#[test]
fn pruning_removes_everything_outside_the_shape_and_nothing_else() {
    let center = ColumnPos::new(-14, -20);
    let disc = ColumnArea::Disc { center, radius: 13 };
    let square = ColumnArea::Square { center, radius: 9 };
    let none = ColumnArea::Box { min: ColumnPos::new(500, 0), max: ColumnPos::new(500, 0) };
    for keep in [disc, square, none] {
        let store = full_world();
        let world = store.world();
        let before = ground(&world);
        let trial = world.prune(OVERWORLD, &keep, true, go_on).unwrap();
        assert_eq!(ground(&world), before);
        // The prune is interrupted and then continued.
        let mut left = 2;
        let first = world.prune(OVERWORLD, &keep, false, |_| {
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(!first.as_ref().unwrap().finished);
        let second = world.prune(OVERWORLD, &keep, false, go_on).unwrap();
        let first = first.unwrap();
        assert_eq!(trial.columns, first.columns + second.columns);
        assert_eq!(trial.chunks, first.chunks + second.chunks);
        assert_eq!(trial.entities, first.entities + second.entities);
        let outside = columns().filter(|column| !keep.contains(*column)).count();
        assert_eq!((trial.columns, trial.chunks), (outside as u64, 3 * outside as u64), "{keep}");

        let after = ground(&world);
        for (column, ground) in before {
            if keep.contains(column) {
                assert_eq!(after[&column], ground, "{column}");
            } else {
                let is_viewer = column.x % 3 == 0 && column.x == column.z;
                assert_eq!(after[&column], (Vec::new(), usize::from(is_viewer), 0), "{column}");
            }
        }
        let viewers = columns().filter(|column| column.x % 3 == 0 && column.x == column.z && !keep.contains(*column));
        assert_eq!(trial.kept.first.len(), viewers.count());
        let marked: u32 =
            world.stored_tiles(OVERWORLD).unwrap().iter().flat_map(|tile| tile.1).map(u16::count_ones).sum();
        assert_eq!(marked as usize, columns().filter(|column| keep.contains(*column)).count());
        let new = world.histories(OVERWORLD).unwrap();
        let is_new = |column: ColumnPos| new.iter().any(|(tile, it)| *tile == column.tile() && it.is_new(column));
        assert!(columns().all(|column| is_new(column) == (column.x % 2 == 0 && keep.contains(column))), "{keep}");
        // No stale keys are left.
        let report = look_at(&store).verify(go_on).unwrap();
        assert_eq!((report.damage, report.stale), (Listed::default(), 0));
        let heat = store.contents().into_iter().filter_map(|(_, (key, _))| keys::parse_heat_key(&key));
        heat.for_each(|group| assert!(world.tier(group).unwrap().is_some(), "{group}"));
    }
}

#[test]
fn an_end_in_the_middle_of_a_prune_leaves_whole_squares() {
    let store = full_world();
    let keep = ColumnArea::Disc { center: ColumnPos::new(-14, -20), radius: 5 };
    store.record_writes();
    store.world().prune(OVERWORLD, &keep, false, go_on).unwrap();
    let history = store.take_history();
    assert!(history.len() >= 4);
    for moment in history {
        let store = TestStore::on(moment);
        assert_eq!(damages(&store), [""; 0]);
        store.world().prune(OVERWORLD, &keep, false, go_on).unwrap();
        let marked: u32 =
            store.world().stored_tiles(OVERWORLD).unwrap().iter().flat_map(|tile| tile.1).map(u16::count_ones).sum();
        assert_eq!(marked, 81);
    }
}

/// Promise, upkeep: `terrane inspect` shows a stored chunk or entity.
#[test]
fn a_chunk_is_shown_as_it_is_stored_in_each_tier() {
    let store = full_world();
    let world = look_at(&store);
    let mut tiers = BTreeSet::new();
    for column in columns().take(200) {
        let found = world.inspect_chunk(OVERWORLD, column.chunk(9)).unwrap().unwrap();
        assert_eq!((found.version, &found.chunk), (0, &*chunk(column.chunk(9))));
        tiers.insert(found.tier);
        assert_eq!(world.inspect_chunk(OVERWORLD, column.chunk(10)).unwrap(), None);
    }
    tiers.extend(columns().map(|column| world.tier(ChunkGroup::of(OVERWORLD, column.chunk(9))).unwrap().unwrap()));
    assert_eq!(tiers.len(), 3);
}

#[test]
fn a_world_opened_to_be_read_counts_no_session_and_refuses_writes() {
    let store = full_world();
    let before = store.contents();
    for access in [Access::Read, Access::Maintain] {
        let config = StorageConfig::Custom(Arc::new(store.clone()));
        let world = WorldStore::open_existing(&config, access).unwrap();
        assert_eq!((world.session(), world.info().unwrap().play_time), (1, Duration::from_secs(90)));
        let origin = GeneratorIdentity { name: "hills".into(), version: 1, seed: 7 };
        let refused = world.open_dimension("new", &origin).unwrap_err();
        assert!(refused.to_string().contains("was opened read-only"), "{refused}");
        assert_eq!(world.info().unwrap().dimensions[0].1, (SIDE * SIDE) as u64);
    }
    assert_eq!(store.contents(), before);
    let config = StorageConfig::Custom(Arc::new(store.clone()));
    assert_eq!(WorldStore::open_existing(&config, Access::Write).unwrap().session(), 2);
    for config in [StorageConfig::Memory, StorageConfig::Custom(Arc::new(MemoryStore::new()))] {
        for access in [Access::Read, Access::Maintain, Access::Write] {
            let error = WorldStore::open_existing(&config, access).unwrap_err();
            assert!(matches!(error, WorldOpenError::NoWorld { .. }), "{error}");
        }
    }
}
