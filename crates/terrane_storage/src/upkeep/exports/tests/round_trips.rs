//! Exports and imports of random worlds.

use super::*;
use crate::bytes::record;
use crate::space::ColumnArea;

/// The part of the contents in a box of chunks.
fn within(contents: &Contents, area: &BlockBox) -> Contents {
    let reaches = |(x, z): &(i64, i64)| area.reaches(ColumnPos::new(*x, *z));
    let chunk = |(x, y, z): &(i64, i64, i64)| area.contains(ChunkPos::new(*x, *y, *z).min_block());
    let mut part = contents.clone();
    part.columns.retain(reaches);
    part.new.retain(reaches);
    part.summaries.retain(|column, _| reaches(column));
    part.chunks.retain(|pos, _| chunk(pos));
    part.entities.retain(|_, entity| area.contains(entity.block));
    part.ticks.retain(|tick| area.contains(tick.block));
    part.kept.retain(|key, _| match name::Name::parse(key) {
        name::Name::Chunk(ChunkPos { x, y, z }, _) => chunk(&(x, y, z)),
        name::Name::Column(ColumnPos { x, z }, _) => reaches(&(x, z)),
        _ => true,
    });
    part
}

/// The contents moved to another place.
fn moved(contents: &Contents, [dx, dy, dz]: [i64; 3]) -> Contents {
    let block = |block: BlockPos| BlockPos::new(block.x + dx * 16, block.y + dy * 16, block.z + dz * 16);
    let column = |(x, z): (i64, i64)| (x + dx, z + dz);
    let entity = |mut entity: EntityRecord| {
        entity.block = block(entity.block);
        for (_, at, _) in entity.children.iter_mut().filter_map(|child| child.place.as_mut()) {
            *at = block(*at);
        }
        (entity.id, entity)
    };
    let cell = |cell: Option<(i64, String)>| cell.map(|(height, name)| (height + dy * 16, name));
    let key = |key: String| match name::Name::parse(&key) {
        name::Name::Chunk(at, rest) => format!("chunk/{},{},{}/{rest}", at.x + dx, at.y + dy, at.z + dz),
        name::Name::Column(at, rest) => format!("column/{},{}/{rest}", at.x + dx, at.z + dz),
        _ => key,
    };
    let Contents { columns, new, chunks, entities, ticks, summaries, kept } = contents.clone();
    Contents {
        columns: columns.into_iter().map(column).collect(),
        new: new.into_iter().map(column).collect(),
        chunks: chunks.into_iter().map(|((x, y, z), chunk)| ((x + dx, y + dy, z + dz), chunk)).collect(),
        entities: entities.into_values().map(entity).collect(),
        ticks: ticks.into_iter().map(|tick| StoredBlockTick { block: block(tick.block), ..tick }).collect(),
        summaries: summaries
            .into_iter()
            .map(|(at, cells)| (column(at), cells.into_iter().map(cell).collect()))
            .collect(),
        kept: kept.into_iter().map(|(of, object)| (key(of), object)).collect(),
    }
}

/// The number of batches before each file, determined from the keys of columns.
fn begins_of(files: &[BTreeMap<String, (u64, Vec<u8>)>]) -> Vec<u64> {
    let batches = |file: &BTreeMap<String, (u64, Vec<u8>)>| {
        let batches = file.keys().filter_map(|key| match name::Name::parse(key) {
            name::Name::Batch(batch) => Some(batch),
            name::Name::Column(column, name::CHUNKS | name::TICKS | name::ENTITIES | name::SUMMARY) => {
                Some(column.batch())
            }
            _ => None,
        });
        batches.collect::<BTreeSet<_>>().len() as u64
    };
    let sums = files.iter().map(batches).scan(0, |sum, count| Some(std::mem::replace(sum, *sum + count)));
    sums.collect()
}

fn starts(files: &[BTreeMap<String, (u64, Vec<u8>)>]) -> Vec<u64> {
    record::decode::<format::Files>(&files[0]["files"].1).unwrap().starts
}

/// Promise, exports: In a packed export, a separate object overrides the packed one.
#[test]
fn a_separate_object_overrides_a_packed_one() {
    let folder = tempfile::tempdir().unwrap();
    let [packed, single] = ["packed", "single"].map(|name| folder.path().join(name));
    let (store, dimension) = small_world();
    let clusters = ExportOptions { packs: Some(true), ..ExportOptions::default() };
    export(&store, &packed, &clusters);
    // A later version of the same chunk, from an export that stores each chunk on its own.
    let at = ChunkPos::new(0, 0, 0);
    let mut save = SaveBatch::default();
    save.chunks.insert((dimension, at), Arc::new(Chunk::uniform(BlockId::new(2))));
    store.world().commit(&save, Durability::Process).unwrap();
    export(&store, &single, &ExportOptions { packs: Some(false), ..ExportOptions::default() });
    let (version, bytes) = objects(&single)[0]["chunk/0,0,0/blocks"].clone();
    let mut file = ObjectStore::open(&packed, EXPORT_SIGNATURE, Default::default()).unwrap();
    file.write("chunk/0,0,0/blocks", version, &bytes).unwrap();
    file.close().unwrap();

    let new = TestStore::default();
    import(&new, &packed, &ImportOptions::default()).unwrap();
    let expected = contents(&store, NAME);
    assert_eq!(contents(&new, NAME).chunks, expected.chunks);
    assert!(expected.chunks[&(0, 0, 0)].1.values().flatten().all(|(name, _)| name == "game:water"));
}

/// Promise, exports: An export has no packs of more than 64 MiB.
#[test]
fn packs_of_more_than_64_mib_are_not_made() {
    let put = |bytes: usize| {
        let objects = [0, 1].map(|x| (format!("chunk/{x},0,0/blocks"), 0, vec![0; bytes / 2]));
        let mut made = Vec::new();
        ground::put(objects.into(), true, &mut made);
        made.len()
    };
    assert_eq!((put(1_000), put((64 << 20) + 2)), (1, 2));
}

/// Promise, exports: Players are not in an export.
#[test]
fn players_are_not_in_an_export() {
    let spec = Spec {
        is_sparse: false,
        columns: BTreeSet::from([(0, 0)]),
        edits: Vec::new(),
        later: Vec::new(),
        entities: vec![[1, 2, 3]],
        ticks: Vec::new(),
        tiers: vec![0],
        kept: Vec::new(),
    };
    let (store, dimension) = spec.make(&[0, 1, 2, 3, 4]);
    let mut player = entity(2, dimension, [4, 5, 6]);
    player.components.push(crate::player_component("bob"));
    let mut save = SaveBatch::default();
    save.entities.insert(player.id, Some(player));
    store.world().commit(&save, Durability::Process).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world.objects");
    assert_eq!(export(&store, &path, &ExportOptions::default()).entities, 1);
    let new = TestStore::default();
    import(&new, &path, &ImportOptions::default()).unwrap();
    assert_eq!(contents(&new, NAME).entities.into_keys().collect::<Vec<_>>(), [Uuid::from_u128(1)]);
    assert!(new.world().players_named(&["bob".to_owned()].into()).unwrap().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Promise, upkeep: An export has entities, block ticks, summaries and lists of types, in one file or several.
    /// Promise, exports: The objects of an export have the documented keys, in the documented files.
    /// Promise, exports: All objects of a batch are in one file of an export, in a fixed order, and `files` counts the batches.
    /// Promise, exports: An import registers the unknown block types that it uses.
    #[test]
    fn a_dimension_is_the_same_by_names_in_a_new_world_and_in_one_with_other_numbers(
        spec in specs(),
        is_clustered: bool,
        objects_per_file in prop_oneof![1..60_usize, Just(100_000)],
    ) {
        let (store, _) = spec.make(&[0, 1, 2, 3, 4]);
        let expected = contents(&store, NAME);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("world.objects");
        let packs = Some(is_clustered);
        let options = ExportOptions { packs, objects_per_file, ..ExportOptions::default() };
        let report = export(&store, &path, &options);
        let files = objects(&path);
        prop_assert_eq!(report.files as usize, files.len());
        prop_assert_eq!(begins_of(&files), starts(&files));
        prop_assert_eq!(report.columns as usize, expected.columns.len());
        prop_assert_eq!(report.chunks as usize, expected.chunks.len());
        prop_assert_eq!(report.objects as usize, expected.kept.len());
        let cells = expected.chunks.values().flat_map(|(_, cells)| cells.values().flatten());
        let used: BTreeSet<&str> = cells.map(|(name, _)| name.as_str()).filter(|name| *name != "terrane:air").collect();
        for (number, new) in [TestStore::default(), empty_world(&[2, 4, 1], spec.is_sparse).0].into_iter().enumerate() {
            let before = new.world().registry_lists().unwrap().blocks;
            let report = import(&new, &path, &ImportOptions::default()).unwrap();
            prop_assert_eq!(report.entities as usize, expected.entities.len());
            prop_assert_eq!(&contents(&new, NAME), &expected);
            let unknown = used.iter().filter(|name| !before.iter().any(|known| known.name == **name));
            prop_assert_eq!(report.new_types as usize, unknown.count());
            let world = new.world();
            prop_assert_eq!(world.verify(go_on).unwrap().damage.count(), 0);
            let types = world.registry_lists().unwrap().entity_types;
            let brought: &[&str] = if expected.entities.is_empty() { &[] } else { &["game::Cow"] };
            prop_assert_eq!(types, if before.is_empty() { brought } else { &["game::Cow", "game::Pig@9"][..] });
            // An export of the new world has the same contents.
            let again = folder.path().join(format!("again {number}"));
            export(&new, &again, &options);
            let third = TestStore::default();
            import(&third, &again, &ImportOptions::default()).unwrap();
            prop_assert_eq!(&contents(&third, NAME), &expected);
        }
    }

    /// Promise, exports: An import changes only whole chunks, and makes a missing column only if the export has all its
    /// heights.
    /// Promise, exports: An import never lowers the version of a chunk.
    #[test]
    fn importing_a_box_replaces_its_blocks_and_nothing_around_it(
        spec in specs(),
        other in specs(),
        (a, b) in (place(), place()),
        by in (-3..3_i64, -2..2_i64, -3..3_i64),
    ) {
        let (store, _) = Spec { is_sparse: false, ..spec }.make(&[0, 1, 2, 3, 4]);
        let other = Spec { is_sparse: false, entities: Vec::new(), kept: Vec::new(), ..other };
        let (target, _) = other.make(&[2, 3, 0, 1, 4]);
        let corner = |[x, y, z]: [i64; 3]| BlockPos::new(x, y, z);
        let area = BlockBox::new(corner(a), corner(b));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("box.objects");
        export(&store, &path, &ExportOptions { area, ..ExportOptions::default() });
        let moved_by = [by.0, by.1, by.2];
        let whole = format::whole_chunks(&area);
        let part = moved(&within(&contents(&store, NAME), &whole), moved_by);
        let before = contents(&target, NAME);
        let options = ImportOptions { moved_by, ..ImportOptions::default() };
        if !part.columns.is_empty() {
            // Without options, existing and ungenerated ground is an error.
            let refused = import(&target, &path, &options).unwrap_err();
            let is_refused = matches!(refused, UpkeepError::Occupied { .. } | UpkeepError::Ungenerated { .. });
            prop_assert!(is_refused, "{}", refused);
            prop_assert_eq!(&contents(&target, NAME), &before);
        }
        let replaces = ImportOptions { existing: ExistingGround::Replace, leaves_ungenerated: true, ..options.clone() };
        let report = import(&target, &path, &replaces).unwrap();
        let after = contents(&target, NAME);
        prop_assert_eq!(&after.columns, &before.columns);
        // An import does not change which columns count as new.
        prop_assert_eq!(&after.new, &before.new);
        let arrived: BTreeSet<_> = part.columns.intersection(&before.columns).copied().collect();
        prop_assert_eq!(report.columns as usize, arrived.len());
        prop_assert_eq!(report.ungenerated as usize, part.columns.len() - arrived.len());
        let heights = whole.min.y / 16 + by.1..=(whole.max.y - 15) / 16 + by.1;
        let is_listed = |(x, y, z): &(i64, i64, i64)| arrived.contains(&(*x, *z)) && heights.contains(y);
        let blocks = |contents: &Contents, pos: &(i64, i64, i64)| {
            contents.chunks.get(pos).map(|(_, cells)| cells.clone()).unwrap_or_default()
        };
        let all: BTreeSet<_> = [&before, &after, &part].into_iter().flat_map(|of| of.chunks.keys()).copied().collect();
        for pos in all {
            let expected = if is_listed(&pos) { &part } else { &before };
            prop_assert_eq!(blocks(&after, &pos), blocks(expected, &pos), "{:?}", pos);
            let version = |of: &Contents| of.chunks.get(&pos).map(|(version, _)| *version);
            prop_assert!(version(&after) >= version(&before), "{:?}", pos);
        }
        let place = |tick: &StoredBlockTick| {
            let ChunkPos { x, y, z } = tick.block.chunk();
            (x, y, z)
        };
        let untouched = before.ticks.iter().filter(|tick| !is_listed(&place(tick)));
        let ticks: BTreeSet<_> =
            untouched.chain(part.ticks.iter().filter(|tick| is_listed(&place(tick)))).cloned().collect();
        prop_assert_eq!(&after.ticks, &ticks);
        let mut kept = part.kept.clone();
        kept.retain(|key, _| {
            let column = name::Name::parse(key).column().map(|column| (column.x, column.z));
            column.is_none_or(|column| !part.columns.contains(&column) || arrived.contains(&column))
        });
        prop_assert_eq!(report.left_objects as usize, part.kept.len() - kept.len());
        prop_assert_eq!(&after.kept, &kept);
        // Summaries match the resulting ground.
        let world = target.world();
        let dimension = world.dimensions().unwrap().into_iter().find(|found| found.name == NAME).unwrap().id;
        for (x, z) in &arrived {
            let pos = ColumnPos::new(*x, *z);
            let column = world.load_batch(dimension, pos.batch(), &[pos], -99..99).unwrap().remove(0).column;
            prop_assert_eq!(world.summaries(dimension, &[pos]).unwrap(), [Some(ColumnSummary::new(&column))]);
        }
        // Repeating the import changes nothing.
        import(&target, &path, &replaces).unwrap();
        prop_assert_eq!(contents(&target, NAME), after);
    }
}

/// Promise, exports: An import skips entities that already live in the world.
#[test]
fn an_entity_that_lives_elsewhere_is_not_duplicated() {
    let (store, _) = small_world();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world.objects");
    export(&store, &path, &ExportOptions::default());
    let (target, dimension) = empty_world(&[], false);
    let [known, child] = [1, 2].map(|id| entity(id, dimension, [900, 0, 900]));
    let child = EntityRecord { id: Uuid::from_u128(2 << 64), ..child };
    let entities = [&known, &child].map(|entity| (entity.id, Some(entity.clone()))).into();
    target.world().commit(&SaveBatch { entities, ..SaveBatch::default() }, Durability::Process).unwrap();
    let report = import(&target, &path, &ImportOptions::default()).unwrap();
    assert_eq!((report.entities, report.known_entities), (1, 2));
    assert_eq!(target.world().entity(known.id).unwrap(), Some(known));
}

/// Promise, exports: An import that skips a column also skips the kept objects there.
#[test]
fn existing_columns_stay_by_an_option() {
    let (store, _) = small_world();
    let (target, _) = small_world();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world.objects");
    let moved_by = [3, 0, 0];
    export(&store, &path, &ExportOptions::default());
    let before = contents(&target, NAME);
    let options = ImportOptions { moved_by, existing: ExistingGround::Keep, ..ImportOptions::default() };
    let report = import(&target, &path, &options).unwrap();
    let (after, arriving) = (contents(&target, NAME), moved(&before, moved_by));
    let all: BTreeSet<_> = before.columns.union(&arriving.columns).copied().collect();
    assert_eq!(after.columns, all);
    let arrived = arriving.new.iter().filter(|column| !before.columns.contains(column));
    assert_eq!(after.new, before.new.iter().chain(arrived).copied().collect());
    assert_eq!(report.left as usize, before.columns.len() + arriving.columns.len() - all.len());
    // Kept objects of ground that is left out are left out too.
    let column = |key: &str| name::Name::parse(key).column().map(|column| (column.x, column.z));
    let is_left =
        |key: &str| column(key).is_some_and(|at| before.columns.contains(&at) && arriving.columns.contains(&at));
    let left = arriving.kept.keys().filter(|key| is_left(key)).count();
    assert!(left > 0 && left == report.left_objects as usize, "{left}, {report:?}");
    for key in arriving.kept.keys().filter(|key| is_left(key)) {
        assert_eq!(after.kept.get(key), before.kept.get(key), "{key}");
    }
    for (pos @ (x, _, z), chunk) in &after.chunks {
        let of = if before.columns.contains(&(*x, *z)) { &before } else { &arriving };
        assert_eq!(Some(chunk), of.chunks.get(pos));
    }
}

/// Promise, exports: A column takes along for which heights it was generated, also if it moves.
#[test]
fn columns_take_their_heights_along() {
    let (store, dimension) = small_world();
    let [usual, higher] = [(0, 0), (1, 0)].map(|(x, z)| ColumnPos::new(x, z));
    let mut save = SaveBatch { heights: [(dimension, -64..64)].into(), ..SaveBatch::default() };
    let world = store.world();
    let history = world.history_in(&mut save, dimension, higher.tile()).unwrap();
    history.set_heights(higher, Some((-64..160).into()));
    world.commit(&save, Durability::Process).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world.objects");
    export(&store, &path, &ExportOptions::default());

    let heights = |target: &TestStore, dimension, column: ColumnPos| {
        target.world().history(dimension, column.tile()).unwrap().heights(column).cloned()
    };
    let options = ImportOptions { moved_by: [32, 2, -32], ..ImportOptions::default() };
    let [usual, higher] = [usual, higher].map(|column| ColumnPos::new(column.x + 32, column.z - 32));
    for first in [None, Some(0..16), Some(-32..96)] {
        let (target, dimension) = empty_world(&[0, 1, 2, 3, 4], false);
        let heights_of_target = first.clone().map(|first| (dimension, first)).into_iter().collect();
        let save = SaveBatch { heights: heights_of_target, ..SaveBatch::default() };
        target.world().commit(&save, Durability::Process).unwrap();
        import(&target, &path, &options).unwrap();
        // Where they are the first heights of the dimension, nothing is noted.
        let expected = (first != Some(-32..96)).then(|| (-32..96).into());
        assert_eq!(heights(&target, dimension, usual), expected, "{first:?}");
        assert_eq!(heights(&target, dimension, higher), Some((-32..192).into()), "{first:?}");
    }
}

#[test]
fn chunks_of_a_sparse_dimension_come_to_the_heights_that_were_not_generated() {
    let columns = BTreeSet::from([(0, 0), (1, 0)]);
    let block = |y, kind| ([3, y, 3], 0, kind, vec![0; 4]);
    let (entities, ticks, tiers, kept) = (vec![[3, 5, 3]], vec![[3, 5, 3]], vec![2], Vec::new());
    let spec = Spec {
        is_sparse: true,
        columns,
        edits: vec![block(5, 0), block(20, 1)],
        later: Vec::new(),
        entities,
        ticks,
        tiers,
        kept,
    };
    let there =
        Spec { edits: vec![block(25, 3), block(60, 3)], entities: Vec::new(), ticks: Vec::new(), ..spec.clone() };
    let (store, _) = spec.make(&[0, 1, 2, 3, 4]);
    let (target, _) = there.make(&[4, 3, 2, 1, 0]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world.objects");
    export(&store, &path, &ExportOptions::default());
    let refused = import(&target, &path, &ImportOptions::default()).unwrap_err();
    assert_eq!(refused, UpkeepError::Occupied { count: 1, first: ColumnPos::new(0, 0) });
    let before = contents(&target, NAME);
    let keeps = ImportOptions { existing: ExistingGround::Keep, ..ImportOptions::default() };
    let report = import(&target, &path, &keeps).unwrap();
    assert_eq!((report.left, report.chunks, report.entities), (1, 1, 1));
    let (after, of_export) = (contents(&target, NAME), contents(&store, NAME));
    assert_eq!(after.chunks.keys().copied().collect::<Vec<_>>(), [(0, 0, 0), (0, 1, 0), (0, 3, 0)]);
    assert_eq!(after.chunks[&(0, 0, 0)], of_export.chunks[&(0, 0, 0)]);
    assert_eq!(after.chunks[&(0, 1, 0)], before.chunks[&(0, 1, 0)]);
    let replaces = ImportOptions { existing: ExistingGround::Replace, ..ImportOptions::default() };
    import(&target, &path, &replaces).unwrap();
    let after = contents(&target, NAME);
    assert_eq!(after.chunks[&(0, 1, 0)].1, of_export.chunks[&(0, 1, 0)].1);
    assert_eq!(after.chunks[&(0, 3, 0)], before.chunks[&(0, 3, 0)]);
}

/// Promise, upkeep: An import finds blocks by their names, and keeps unknown keys for later exports.
/// Promise, exports: An export's unknown keys are kept as they are, exported again, and move with their place.
#[test]
fn objects_of_a_game_and_of_other_programs_come_along() {
    let (store, dimension) = small_world();
    for key in ["columns/1,2", "chunk/1,2,3/blocks", "weather", &format!("game:{}", "x".repeat(512))] {
        let error = store.world().keep_object(dimension, key, 0, b"").unwrap_err();
        assert_eq!(error, UpkeepError::Key { key: key.to_owned() });
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world.objects");
    let options = ExportOptions { objects_per_file: 100, ..ExportOptions::default() };
    assert!(export(&store, &path, &options).files > 1);
    assert!(objects(&path).iter().all(|file| (10..=101).contains(&file.len())));
    let mut file = ObjectStore::open(&export_file(&path, 2), EXPORT_SIGNATURE, Default::default()).unwrap();
    file.write("chunk/9,9,9/light", 8, b"bright").unwrap();
    file.write("preview", 1, b"a picture").unwrap();
    file.close().unwrap();
    let new = TestStore::default();
    let report = import(&new, &path, &ImportOptions { moved_by: [1, 0, 0], ..ImportOptions::default() }).unwrap();
    assert_eq!((report.objects, report.known_objects), (6, 0));
    let kept = contents(&new, NAME).kept;
    assert_eq!(kept["chunk/10,9,9/light"], (8, b"bright".to_vec()));
    assert_eq!(kept["preview"], (1, b"a picture".to_vec()));
    assert_eq!(kept["column/2,0/game:owner"], (2, b"of 17".to_vec()));
    let again = folder.path().join("again.objects");
    export(&new, &again, &ExportOptions::default());
    assert!(objects(&again)[0].contains_key("chunk/10,9,9/light"));
    let id = new.world().dimensions().unwrap()[0].id;
    assert!(new.world().remove_kept_object(id, "preview").unwrap());
    assert!(!new.world().remove_kept_object(id, "preview").unwrap());
}

#[test]
fn a_component_that_has_another_size_in_the_world_is_refused() {
    let (store, _) = small_world();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world.objects");
    export(&store, &path, &ExportOptions::default());
    let (target, _) = empty_world(&[0], false);
    let mut changed = target.world().registry_lists().unwrap();
    changed.components.iter_mut().find(|component| component.name == "game:heat").unwrap().size = Some(8);
    target.world().save_registry_lists(&changed).unwrap();
    let error = import(&target, &path, &ImportOptions::default()).unwrap_err();
    assert_eq!(error, UpkeepError::Component { name: "game:heat".into(), version: 0 });
}

#[test]
fn kept_objects_go_with_their_ground() {
    let (store, dimension) = small_world();
    let world = store.world();
    let keys = || world.kept_objects(dimension).unwrap().into_iter().map(|(key, _)| key).collect::<Vec<_>>();
    let all = ["game:weather/1", "game:weather/5", "chunk/-4,0,3/game:claim", "column/1,0/game:owner"];
    assert_eq!(keys(), all);
    let keep = ColumnArea::Box { min: ColumnPos::new(0, 0), max: ColumnPos::new(4, 4) };
    assert!(world.prune(dimension, &keep, false, go_on).unwrap().finished);
    assert_eq!(keys(), [all[0], all[1], all[3]]);
    assert!(world.remove_dimension(NAME, |_| ControlFlow::Continue(())).unwrap().is_some());
    assert_eq!(keys(), [""; 0]);
}

#[test]
fn a_box_that_is_moved_beyond_the_highest_blocks_makes_no_air_below() {
    let (store, _) = small_world();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box.objects");
    // There are no chunks at these heights, so the box is all air.
    let area = BlockBox::new(BlockPos::new(-80, 320, -80), BlockPos::new(80, 335, 80));
    export(&store, &path, &ExportOptions { area, ..ExportOptions::default() });
    let block = |y| ([3, y, 3], 0, 0, vec![0; 4]);
    let spec = Spec {
        is_sparse: false,
        columns: BTreeSet::from([(0, 0)]),
        edits: vec![block(5)],
        later: Vec::new(),
        entities: Vec::new(),
        ticks: Vec::new(),
        tiers: vec![0],
        kept: Vec::new(),
    };
    let (target, dimension) = spec.make(&[0, 1, 2, 3, 4]);
    let mut chunk = Chunk::default();
    chunk.place_block(&game(&[0, 1, 2, 3, 4]), [1, 1, 1], 0, BlockId::new(1)).unwrap();
    for (height, by) in [(i64::MAX >> 4, i64::MAX >> 4), (i64::MIN >> 4, i64::MIN >> 4)] {
        let at = ChunkPos::new(0, height, 0);
        let chunks = [((dimension, at), Arc::new(chunk.clone()))].into();
        target.world().commit(&SaveBatch { chunks, ..SaveBatch::default() }, Durability::Process).unwrap();
        // When moving down, the lowest chunks must still be in the grid.
        let by = if by < 0 { by - 40 } else { by };
        let moved_by = [0, by, 0];
        let only = ImportOptions {
            moved_by,
            existing: ExistingGround::Replace,
            leaves_ungenerated: true,
            ..ImportOptions::default()
        };
        import(&target, &path, &only).unwrap();
        let is_there = target.world().chunk_value(dimension, at).unwrap();
        let known = target.world().known_blocks().unwrap();
        let found = target.world().decode_chunk(&known, (dimension, at), &is_there.unwrap().1).unwrap();
        assert_eq!(found.blocks().filter(|block| *block != BlockId::AIR).count(), 1, "{height}");
    }
}

/// Promise, exports: An import never lowers the version of a chunk.
#[test]
fn an_identical_chunk_gets_the_higher_version_of_the_export() {
    let (store, dimension) = small_world();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world.objects");
    export(&store, &path, &ExportOptions::default());
    let mut file = ObjectStore::open(&path, EXPORT_SIGNATURE, Default::default()).unwrap();
    let key = file.with_prefix("").map(|(key, _)| key.to_owned()).find(|key| key.ends_with("/blocks")).unwrap();
    let object = file.read(&key).unwrap().unwrap();
    file.write(&key, object.version + 40, &object.data).unwrap();
    file.close().unwrap();
    let name::Name::Chunk(chunk, _) = name::Name::parse(&key) else { panic!("{key}") };
    let version = || envelope::open(&store.world().chunk_value(dimension, chunk).unwrap().unwrap().1).unwrap().0;
    let before = version();
    let replaces = ImportOptions { existing: ExistingGround::Replace, ..ImportOptions::default() };
    for _ in 0..2 {
        import(&store, &path, &replaces).unwrap();
        assert_eq!((before, version()), (object.version, object.version + 40));
    }
}

/// Promise, exports: A sparse dimension accepts a box with its air, and refuses a box that is higher than 4,096 chunks.
#[test]
fn air_in_a_box_is_imported_into_ungenerated_columns() {
    let block = |y, kind| ([3, y, 3], 0, kind, vec![0; 4]);
    let of = |is_sparse, edits: Vec<Edit>| Spec {
        is_sparse,
        columns: BTreeSet::from([(0, 0)]),
        edits,
        later: Vec::new(),
        entities: Vec::new(),
        ticks: Vec::new(),
        tiers: vec![0],
        kept: Vec::new(),
    };
    let (store, _) = of(false, vec![block(5, 0), block(37, 1)]).make(&[0, 1, 2, 3, 4]);
    let folder = tempfile::tempdir().unwrap();
    let (path, all) = (folder.path().join("box.objects"), folder.path().join("all.objects"));
    let area = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(15, 79, 15));
    export(&store, &path, &ExportOptions { area, ..ExportOptions::default() });
    export(&store, &all, &ExportOptions::default());
    for (existing, expected) in [(ExistingGround::Keep, 1), (ExistingGround::Replace, 0)] {
        let (target, _) = of(true, vec![block(20, 3), block(90, 3)]).make(&[0, 1, 2, 3, 4]);
        let before = contents(&target, NAME);
        let options = ImportOptions { existing, ..ImportOptions::default() };
        let error = import(&target, &all, &options).unwrap_err();
        assert!(matches!(error, UpkeepError::TooHigh { .. }), "{error}");
        assert_eq!(contents(&target, NAME), before);
        import(&target, &path, &options).unwrap();
        let after = contents(&target, NAME).chunks;
        let heights: Vec<_> = after.keys().map(|(_, y, _)| *y).collect();
        assert_eq!(heights, [0, 1, 2, 3, 4, 5]);
        let blocks = [0, 1, 2, 3, 4, 5].map(|y| after[&(0, y, 0)].1.len());
        assert_eq!(blocks, [1, expected, 1, 0, 0, 1]);
    }
}
