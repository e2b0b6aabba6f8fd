//! Stored snapshots: intact, damaged and truncated ones.

mod damage;
mod hostile_index;

use super::*;
use crate::entity::EntityRecord;
use crate::snapshot::schematic::nbt::{Compound, Nbt};
use crate::snapshot::tests::{BLOCKS, cells, child, edit, edits, entity, part_of, positions, world};
use crate::snapshot::translation::SCHEMATIC_ENTITY;
use crate::snapshot::{EditHistory, Recorded};
use crate::space::{BlockPos, HeightSet};
use proptest::prelude::*;
use std::collections::BTreeSet;
use tempfile::TempDir;
use uuid::Uuid;

const HERE: DimensionId = DimensionId(1);
const QUICK: StoreOptions = StoreOptions { level: 1, sync: false };

fn go_on(_: &Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn store(folder: &Path, snapshot: &Snapshot) -> Result<StoredSnapshot> {
    StoredSnapshot::create(folder, (HERE, snapshot), &BLOCKS, &QUICK, BTreeMap::new(), &mut go_on)
}

fn read(stored: &StoredSnapshot) -> Snapshot {
    let (snapshot, report) = stored.read(&BLOCKS, &mut go_on).unwrap();
    assert_eq!(TranslationReport { placeholders: 0, ..report }, TranslationReport::default());
    snapshot
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

/// Six columns of stone and chests, an entity, and one column that is partly missing.
fn small() -> Snapshot {
    let mut columns = world();
    let mut snapshot = Snapshot::new(BlockBox::new(BlockPos::new(-20, -4, 3), BlockPos::new(20, 40, 30)));
    for (number, (pos, column)) in columns.iter_mut().enumerate() {
        column.set_block(BlockPos::new(pos.x * 16 + 3, 20, pos.z * 16 + 4), BLOCKS.id("game:stone").unwrap());
        let chunk = column.chunk_mut(0);
        chunk.place_block(&*BLOCKS, [1, 2, 3], 0, BLOCKS.id("game:chest").unwrap()).unwrap();
        let guard = entity(number as u128, BlockPos::new(pos.x * 16 + 3, 21, pos.z * 16 + 4));
        match number % 5 {
            0 => {}
            1 => drop(snapshot.add_column(&part_of(column, HeightSet::from(0..2)), 3, vec![guard])),
            _ => drop(snapshot.add_column(column, number as u64, vec![guard])),
        }
    }
    assert!(snapshot.columns().len() > 3 && !snapshot.is_complete());
    snapshot
}

fn same(a: &Snapshot, b: &Snapshot) {
    assert_eq!(a.area(), b.area());
    assert_eq!(cells(a), cells(b));
    let sorted = |snapshot: &Snapshot| {
        let by_id: BTreeMap<_, _> = snapshot.entities().map(|entity| (entity.id, entity.clone())).collect();
        let columns = snapshot.columns().map(|(pos, column)| (pos, column.tick(), column.heights().cloned()));
        (by_id, columns.collect::<Vec<_>>())
    };
    assert_eq!(sorted(a), sorted(b));
}

/// Promise, snapshot files: The index of a stored snapshot keeps its owner's data in `owner` lines, with escapes.
#[test]
fn a_stored_snapshot_is_listed_and_read_back() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("arenas").join("the hall");
    let snapshot = small();
    let owner: BTreeMap<_, _> = [("name", "the hall\n\\ 7"), ("", " ")].map(|(a, b)| (a.into(), b.into())).into();
    let mut told = Vec::new();
    let options = StoreOptions { level: 9, sync: true };
    let stored = StoredSnapshot::create(&path, (HERE, &snapshot), &BLOCKS, &options, owner.clone(), &mut |progress| {
        told.push(*progress);
        ControlFlow::Continue(())
    });
    let stored = stored.unwrap();
    let count = snapshot.columns().len() as u64;
    assert_eq!(told, (1..=count).map(|done| Progress::of(done, count)).collect::<Vec<_>>());
    let opened = StoredSnapshot::open(&path).unwrap();
    assert_eq!(opened, stored);
    assert_eq!((opened.area(), opened.dimension(), opened.owner_data()), (snapshot.area(), HERE, &owner));
    assert!(opened.columns().eq(snapshot.columns().map(|(pos, _)| pos)));
    let on_disk = files(&path);
    let schematics = on_disk.iter().filter(|(name, _)| name.ends_with(".schem"));
    assert_eq!(opened.bytes(), schematics.map(|(_, bytes)| bytes.len() as u64).sum::<u64>());
    assert_eq!(on_disk.len() as u64, count + 1);
    opened.verify(&mut go_on).unwrap();
    same(&read(&opened), &snapshot);
    let elsewhere = ColumnPos::new(99, 0);
    assert_eq!(
        opened.read_column(elsewhere, &BLOCKS).unwrap_err(),
        StoredSnapshotError::NoSuchColumn { column: elsewhere }
    );
    opened.remove().unwrap();
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 0);
    assert_eq!(StoredSnapshot::open(&path).unwrap_err(), StoredSnapshotError::NotASnapshot { path });
}

/// Promise, snapshot files: The index of a stored snapshot lists the omitted parts in `parts` and `about`.
#[test]
fn excluded_parts_and_covered_entities_survive_storing() {
    let folder = TempDir::new().unwrap();
    let parts = SnapshotParts { layers: false, entities: false, ..SnapshotParts::ALL };
    let mut without = Snapshot::of_parts(*small().area(), parts);
    small().columns().for_each(|(pos, column)| assert!(without.insert_column(pos, column.clone())));
    let stored = store(&folder.path().join("parts"), &without).unwrap();
    assert_eq!(StoredSnapshot::open(stored.folder()).unwrap().parts(), parts);
    let again = read(&stored);
    assert_eq!((again.parts(), again.entities().count(), again.covers_entity(Uuid::nil())), (parts, 0, false));

    // One entity dies, another one stays.
    let mut after = small();
    let witness = after.entities().next().unwrap().id;
    let victim = after.entities().last().unwrap().clone();
    after.remove_column(victim.column());
    let mut column = small().column(victim.column()).unwrap().clone();
    column.entities.clear();
    after.insert_column(victim.column(), column);
    let mut history = EditHistory::new(usize::MAX);
    assert_eq!(history.record(&small(), &after), Recorded::Kept);
    for (name, snapshot) in [("undo", history.undo().unwrap()), ("redo", history.redo().unwrap())] {
        let again = read(&store(&folder.path().join(name), &snapshot).unwrap());
        same(&again, &snapshot);
        assert!(again.covers_entity(victim.id) && !again.covers_entity(witness));
    }
}

/// Promise, snapshot files: The files of a stored snapshot are named `X_Z_Y.schem`, and are as high as their contents.
#[test]
fn a_very_high_box_costs_only_its_contents() {
    let folder = TempDir::new().unwrap();
    let area = BlockBox::new(BlockPos::new(0, i64::MIN, 0), BlockPos::new(15, i64::MAX, 15));
    let mut column = crate::chunk::Column::new(ColumnPos::new(0, 0));
    let stone = BLOCKS.id("game:stone").unwrap();
    let heights = [i64::MIN >> 4, -4_096, 0, 4_094, 4_095, i64::MAX >> 4];
    for y in heights {
        column.chunk_mut(y).set_block([1, 2, 3], stone);
    }
    let mut snapshot = Snapshot::new(area);
    snapshot.add_column(&column, 1, vec![entity(3, BlockPos::new(4, 1 << 40, 4))]);
    let stored = store(&folder.path().join("high"), &snapshot).unwrap();
    let again = read(&stored);
    let column = again.column(ColumnPos::new(0, 0)).unwrap();
    assert!(column.chunks().map(|(y, _)| y).eq(heights));
    let lowest = format!("0_0_{}.schem", i64::MIN);
    assert!(files(&folder.path().join("high")).contains_key(&lowest), "a file is named X_Z_Y.schem");
    assert_eq!(Some(column), snapshot.column(ColumnPos::new(0, 0)));
    assert_eq!(files(&folder.path().join("high")).len(), 1 + 6);
}

/// Promise, snapshot files: Any program that opens schematics opens the files of a stored snapshot.
#[test]
fn another_decoder_reads_every_file() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("hall");
    store(&path, &small()).unwrap();
    let schematics = files(&path).into_iter().filter(|(name, _)| name.ends_with(".schem"));
    for (name, bytes) in schematics {
        let mut plain = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut plain).unwrap();
        let root: fastnbt::Value = fastnbt::from_bytes(&plain).unwrap();
        let fastnbt::Value::Compound(root) = root else { panic!("{name}: no compound") };
        let fastnbt::Value::Compound(schematic) = &root["Schematic"] else { panic!("{name}: no schematic") };
        assert_eq!(schematic["Version"], fastnbt::Value::Int(3), "{name}");
        assert_eq!(
            (&schematic["Width"], &schematic["Length"]),
            (&fastnbt::Value::Short(16), &fastnbt::Value::Short(16))
        );
        let fastnbt::Value::Compound(blocks) = &schematic["Blocks"] else { panic!("{name}: no blocks") };
        let fastnbt::Value::Compound(palette) = &blocks["Palette"] else { panic!("{name}: no palette") };
        assert!(palette.contains_key("minecraft:air") && palette.len() < 5, "{name}: {palette:?}");
    }
}

/// Promise, snapshot files: A stored snapshot keeps entities of other programs unchanged.
#[test]
fn entities_of_other_programs_keep_their_ids() {
    let folder = TempDir::new().unwrap();
    let mut snapshot = small();
    let mut cow = entity(77, BlockPos::new(1, 21, 20));
    let mut compound = Compound::new();
    compound.set("Id", Nbt::String("b:cow".into()));
    compound.set("Offset", Nbt::List(crate::snapshot::schematic::nbt::NbtKind::Double, vec![Nbt::Double(0.5); 3]));
    compound.set("Data", Nbt::Compound(Compound::new()));
    cow.components = vec![("a".into(), vec![1]), (SCHEMATIC_ENTITY.into(), compound.to_bytes().unwrap())];
    let alone = EntityRecord { components: cow.components[1..].to_vec(), ..entity(78, cow.block) };
    let mut rider = EntityRecord { offset: [0.25; 3], ..entity(79, cow.block) };
    rider.components = alone.components.clone();
    rider.children = vec![child(80, None)];
    for entity in [cow, alone, rider] {
        snapshot.add_entity(entity.column(), entity);
    }
    same(&read(&store(&folder.path().join("farm"), &snapshot).unwrap()), &snapshot);
}

#[test]
fn storing_can_be_cancelled_and_leaves_no_files() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("hall");
    let snapshot = small();
    let mut stop =
        |progress: &Progress| if progress.done == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let created = StoredSnapshot::create(&path, (HERE, &snapshot), &BLOCKS, &QUICK, BTreeMap::new(), &mut stop);
    assert_eq!(created.unwrap_err(), StoredSnapshotError::Cancelled);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let stored = store(&path, &snapshot).unwrap();
    assert_eq!(stored.verify(&mut stop).unwrap_err(), StoredSnapshotError::Cancelled);
    assert_eq!(stored.read(&BLOCKS, &mut stop).unwrap_err(), StoredSnapshotError::Cancelled);
}

#[test]
fn blocks_of_another_registry_cannot_be_stored_and_unknown_names_become_placeholders() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("hall");
    let snapshot = small();
    let few = BlockRegistry::new();
    let created = StoredSnapshot::create(&path, (HERE, &snapshot), &few, &QUICK, BTreeMap::new(), &mut go_on);
    assert!(matches!(created.unwrap_err(), StoredSnapshotError::Translation { .. }));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let stored = store(&path, &snapshot).unwrap();
    let mut other = BlockRegistry::new();
    other.register_schematic_blocks();
    let (read, report) = stored.read(&other, &mut go_on).unwrap();
    let solid = |snapshot: &Snapshot| {
        let cells = cells(snapshot).into_iter();
        cells.filter(|(_, cell)| cell[0].0 != crate::block::BlockId::AIR).map(|(pos, _)| pos).collect::<BTreeSet<_>>()
    };
    assert_eq!(solid(&read), solid(&snapshot));
    assert_eq!(report.placeholders as usize, solid(&snapshot).len());
    assert!(matches!(
        stored.read(&BlockRegistry::new(), &mut go_on).unwrap_err(),
        StoredSnapshotError::Translation { .. }
    ));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    /// Promise, snapshot files: In a stored snapshot, cells outside of the box are ignored.
    #[test]
    fn any_snapshot_survives_storing(
        changes in edits(80), (from, to) in (positions(), positions()), missing in 0..12_usize, low in -3..3_i64,
        places in prop::collection::vec(positions(), 0..5),
    ) {
        let mut columns = world();
        edit(&mut columns, &changes);
        // Storing sets all unset components.
        for column in columns.values_mut() {
            let whole: Vec<_> = column.chunks().filter_map(|(y, chunk)| Some((y, chunk.with_all_components(&*BLOCKS).unwrap()?))).collect();
            whole.into_iter().for_each(|(y, chunk)| drop(column.set_chunk(y, chunk.into())));
        }
        let mut snapshot = Snapshot::new(BlockBox::new(from, to));
        let entities: Vec<_> = (0..).zip(places).map(|(id, place)| entity(id, place)).collect();
        for (number, column) in columns.values().enumerate() {
            let inside = entities.iter().filter(|entity| entity.column() == column.pos()).cloned().collect();
            match (number + missing) % 12 {
                0 => {}
                1 => drop(snapshot.add_column(&part_of(column, HeightSet::from(low..2)), 9, inside)),
                _ => drop(snapshot.add_column(column, number as u64, inside)),
            }
        }
        let folder = TempDir::new().unwrap();
        let stored = store(&folder.path().join("it"), &snapshot).unwrap();
        prop_assert_eq!(&StoredSnapshot::open(stored.folder()).unwrap(), &stored);
        stored.verify(&mut go_on).unwrap();
        same(&read(&stored), &snapshot);
    }
}
