//! Clusters and blocks that cannot be read.

use super::*;

/// The chunks that cannot be read, each loaded separately.
fn unreadable(world: &WorldStore, model: &Model) -> BTreeSet<ChunkPos> {
    let mut unreadable = BTreeSet::new();
    for (pos, (block, _)) in model {
        match world.load_batch(DIMENSION, pos.column().batch(), &[pos.column()], pos.y..pos.y + 1) {
            Ok(loaded) => assert_eq!(block_of(loaded[0].column.chunk(pos.y).unwrap()), *block),
            Err(StoreError::Corrupt { what: StoredItem::Chunk(DIMENSION, named), .. }) => {
                assert_eq!(named, *pos);
                unreadable.insert(named);
            }
            Err(error) => panic!("{error}"),
        }
    }
    unreadable
}

/// Promise, tiers: A flipped bit in a warm or cold value damages at most one chunk group, and its chunks are named.
#[test]
fn a_flipped_bit_in_a_cluster_damages_the_chunks_of_one_group_and_names_them() {
    let store = TestStore::default();
    let model = filled(&store);
    let world = store.world();
    all_to(&world, &model, Tier::Cold);
    let near = group(ChunkPos::new(4, 0, 4));
    let whole = store.get(Family::ColdChunks, &group(ChunkPos::new(0, 0, 0)).cube_key()).unwrap().unwrap();
    // The two groups at the origin are in two cubes that differ in z.
    assert_ne!(near.cube_key(), group(ChunkPos::new(4, 0, -4)).cube_key());
    for at in 0..whole.len() {
        store.tamper(Family::ColdChunks, &group(ChunkPos::new(0, 0, 0)).cube_key(), |value| {
            *value = whole.clone();
            value[at] ^= 1 << (at % 8);
        });
        let damaged = unreadable(&world, &model);
        let groups: BTreeSet<_> = damaged.iter().map(|pos| group(*pos)).collect();
        assert!(groups.len() <= 1, "byte {at}");
        let expected = model.keys().filter(|pos| groups.contains(&group(**pos))).copied().collect();
        assert_eq!(damaged, expected, "byte {at}");
    }
}

/// Promise, tiers: Damaged chunks move between tiers unchanged, and becoming hot keeps their bytes.
/// Promise, world format: Damaged values are kept under their key, several per key if they differ.
#[test]
fn damaged_chunks_move_unchanged_and_a_save_over_them_is_whole() {
    for tier in [Tier::Warm, Tier::Cold] {
        let store = TestStore::default();
        let model = filled(&store);
        let world = store.world();
        all_to(&world, &model, tier);
        let bad = group(ChunkPos::new(0, 0, 0));
        let (family, key) = match tier {
            Tier::Warm => (Family::WarmChunks, bad.key()),
            _ => (Family::ColdChunks, bad.cube_key()),
        };
        store.tamper(family, &key, |value| {
            let middle = value.len() / 2;
            value[middle] ^= 4;
        });
        let damaged: BTreeSet<_> = model.keys().filter(|pos| group(**pos) == bad).copied().collect();
        assert_eq!(unreadable(&world, &model), damaged);
        // Damage is kept by moves between packed tiers.
        let other = if tier == Tier::Warm { Tier::Cold } else { Tier::Warm };
        all_to(&world, &model, other);
        assert_eq!(unreadable(&world, &model), damaged);
        // A damaged group that becomes hot leaves a copy of its bytes, and its chunks are still lost.
        let moves = all_to(&world, &model, Tier::Hot);
        assert_eq!(moves.damaged.len(), damaged.len());
        assert_eq!(unreadable(&world, &model), damaged);
        assert!(world.set_aside().unwrap().iter().any(|kept| kept.key == bad.key()));
        assert_eq!(world.tier(bad), Ok(Some(Tier::Hot)));
        // They stay lost when they are packed again.
        all_to(&world, &model, other);
        assert_eq!(unreadable(&world, &model), damaged);
        // A chunk in memory replaces one of them.
        let pos = *damaged.first().unwrap();
        let report = save(&world, [(pos, model[&pos].0)]);
        let named = |error: &StoreError| matches!(error, StoreError::Corrupt { what: StoredItem::Chunk(_, at), .. } if *at == pos);
        assert!(report.replaced.len() == 1 && named(&report.replaced[0]), "{:?}", report.replaced);
        let left: BTreeSet<_> = damaged.iter().skip(1).copied().collect();
        assert_eq!(unreadable(&world, &model), left);
        // Its version must differ from any older one, so it is one that was never used.
        let value = store.get(Family::Chunks, &keys::chunk_key(DIMENSION, pos)).unwrap().unwrap();
        assert!(envelope::open(&value).unwrap().0 >= 1 << 32);
    }
}

#[test]
fn a_save_over_a_damaged_group_replaces_its_chunks_and_keeps_the_others_listed() {
    let store = TestStore::default();
    let model = filled(&store);
    let world = store.world();
    all_to(&world, &model, Tier::Warm);
    let bad = group(ChunkPos::new(0, 0, 0));
    store.tamper(Family::WarmChunks, &bad.key(), |value| value[50] ^= 1);
    let damaged: BTreeSet<_> = model.keys().filter(|pos| group(**pos) == bad).copied().collect();
    assert_eq!(unreadable(&world, &model), damaged);
    let pos = *damaged.last().unwrap();
    assert_eq!(save(&world, [(pos, model[&pos].0)]).replaced.len(), 1);
    let left = damaged.iter().filter(|at| **at != pos).copied().collect();
    assert_eq!(unreadable(&world, &model), left);
    assert!(world.set_aside().unwrap().iter().any(|kept| kept.key == bad.key()));
}

#[test]
fn a_cluster_of_another_version_is_an_error_that_names_it_and_stays() {
    let store = TestStore::default();
    let model = filled(&store);
    let world = store.world();
    all_to(&world, &model, Tier::Cold);
    let bad = group(ChunkPos::new(0, 0, 0));
    store.tamper(Family::ColdChunks, &bad.cube_key(), |value| {
        let end = value.len();
        let table = end - 8 - u32::from_le_bytes(*value[end - 8..].first_chunk().unwrap()) as usize;
        [0, table, end - 4].into_iter().for_each(|at| value[at] = 9);
    });
    let before = store.contents();
    let error = world.load_batch(DIMENSION, BatchPos::new(0, 0), &[ColumnPos::new(0, 0)], 0..4).unwrap_err();
    let text = error.to_string();
    for said in ["the cold cluster from chunk [0, 0, 0] on of dimension 3", "version 9"] {
        assert!(text.contains(said), "{text}");
    }
    assert!(matches!(error, StoreError::Corrupt { what: StoredItem::Cluster(Tier::Cold, DIMENSION, _), .. }));
    // Groups cannot be moved out of or into the damaged cluster.
    let (moves, _) = world.move_groups(&[(bad, Tier::Hot)]).unwrap();
    assert_eq!((moves.groups, moves.left, moves.damaged.len()), ([0; 3], 1, 1));
    assert!(store.contents() == before);
}

#[test]
fn a_save_into_a_group_with_an_unreadable_cluster_neither_hides_nor_destroys_it() {
    for tier in [Tier::Warm, Tier::Cold] {
        let store = TestStore::default();
        let world = store.world();
        let (old, new) = (ChunkPos::new(0, 0, 0), ChunkPos::new(1, 0, 1));
        let of = group(old);
        let mut graph = BTreeMap::new();
        tile_masks::insert(&mut graph, old.column());
        let tiles = graph.into_iter().map(|(tile, masks)| ((DIMENSION, tile), masks)).collect();
        let chunks = [((DIMENSION, old), chunk(5))].into();
        world.commit(&SaveBatch { chunks, tiles, ..SaveBatch::default() }, Durability::Process).unwrap();
        world.move_groups(&[(of, tier)]).unwrap();
        let (family, key) =
            if tier == Tier::Warm { (Family::WarmChunks, of.key()) } else { (Family::ColdChunks, of.cube_key()) };
        let whole = store.get(family, &key).unwrap();
        store.tamper(family, &key, |value| value.fill(9));
        let damaged = store.get(family, &key).unwrap();

        assert_eq!(save(&world, [(new, 6)]).replaced.len(), 1);
        // Only this group of the cube is read.
        let load = |chunk: ChunkPos| {
            let loaded = world.load_batch(DIMENSION, chunk.column().batch(), &[chunk.column()], 0..1)?;
            Ok(loaded[0].column.chunk(chunk.y).map(|chunk| block_of(chunk)))
        };
        assert_eq!(load(new), Ok(Some(6)));
        let refused = load(old).unwrap_err();
        assert!(
            matches!(refused, StoreError::Corrupt { what: StoredItem::Chunk(DIMENSION, chunk), .. } if chunk == old)
        );
        // The group stays hot and the cluster unchanged, for every requested move.
        for to in [Tier::Warm, Tier::Cold] {
            let (moves, _) = world.move_groups(&[(of, to)]).unwrap();
            assert_eq!((moves.groups, moves.left), ([0; 3], 1), "{tier} to {to}");
        }
        assert_eq!(store.get(family, &key).unwrap(), damaged);
        assert_eq!(save(&world, [(new, 7), (old, 8)]).chunks, 2);
        assert_eq!((load(new), load(old)), (Ok(Some(7)), Ok(Some(8))));
        assert_ne!(damaged, whole);
    }
}

/// Promise, tiers: A chunk is looked up in the hot tier first, then in the warm and the cold one.
#[test]
fn damage_in_a_former_tier_hides_no_group() {
    for tier in [Tier::Warm, Tier::Cold] {
        let store = TestStore::default();
        let world = store.world();
        let (one, other) = (ChunkPos::new(0, 0, 0), ChunkPos::new(1, 0, 1));
        let hot = [one, other].map(|pos| keys::chunk_key(DIMENSION, pos));
        save(&world, [(one, 5), (other, 6)]);
        world.move_groups(&[(group(one), tier)]).unwrap();
        store.damage_block(Family::Chunks, &hot.each_ref().map(|key| &key[..]));
        assert_eq!(load(&world, one.column())[&one], 5);
        save(&world, [(one, 7)]);
        assert_eq!((load(&world, one.column())[&one], load(&world, other.column())[&other]), (7, 6));
    }
}

#[test]
fn a_damaged_block_does_not_keep_other_groups_from_moving() {
    let store = TestStore::default();
    let world = store.world();
    let (bad, good) = (ChunkPos::new(0, 0, 0), ChunkPos::new(4, 0, 0));
    save(&world, [(bad, 5), (good, 6)]);
    store.damage_block(Family::Chunks, &[&keys::chunk_key(DIMENSION, bad)]);
    let (moves, left) = world.move_groups(&[(group(bad), Tier::Warm), (group(good), Tier::Warm)]).unwrap();
    assert_eq!((moves.groups, moves.left, moves.damaged.len(), left), ([0, 1, 0], 1, 1, 0));
    assert_eq!(world.adopt_groups(10), Ok(true));
}
