//! The storage and lookup of entities.

use super::*;

#[test]
fn an_entity_is_in_exactly_one_place() {
    let store = TestStore::default();
    let world = store.world();
    let places =
        [BlockPos::new(0, 0, 0), BlockPos::new(-1, 0, 15), BlockPos::new(16, 500, -17), BlockPos::new(3, 1, 2)];
    let mut other = entity(2, BlockPos::new(5, 5, 5));
    other.dimension = NETHER;
    save_entity(&world, 2, Some(other.clone()));
    for place in places {
        let moved = entity(1, place);
        assert_eq!(save_entity(&world, 1, Some(moved.clone())).entities, 1);
        assert_eq!(save_entity(&world, 1, Some(moved.clone())).bytes, 0);
        for column in places.map(BlockPos::column) {
            let expected = if column == place.column() { vec![moved.clone()] } else { Vec::new() };
            assert_eq!(entities_in(&world, OVERWORLD, column), expected);
        }
    }
    assert_eq!(entities_in(&world, NETHER, ColumnPos::new(0, 0)), [other]);
    // Moves to another dimension, and then removes the entity.
    let mut moved = entity(1, places[0]);
    moved.dimension = NETHER;
    save_entity(&world, 1, Some(moved.clone()));
    assert!(entities_in(&world, OVERWORLD, places[0].column()).is_empty());
    assert_eq!(entities_in(&world, NETHER, places[0].column())[0], moved);
    assert_eq!(save_entity(&world, 1, None).entities, 1);
    assert_eq!(save_entity(&world, 2, None).entities, 1);
    assert_eq!(save_entity(&world, 2, None).entities, 0);
    assert!(entities_in(&world, NETHER, places[0].column()).is_empty());
    let header_only = store.contents();
    assert!(header_only.iter().all(|(_, (key, _))| key == keys::HEADER), "{header_only:?}");
}

#[test]
fn viewers_are_found_without_their_place() {
    let world = WorldStore::open(&StorageConfig::Memory).unwrap();
    let mut viewers: Vec<EntityRecord> = (0..3).map(|id| entity(id, BlockPos::new(id as i64 * 1000, 70, -5))).collect();
    viewers.iter_mut().for_each(|viewer| viewer.viewer = Some(ViewerRecord::default()));
    let mut batch = SaveBatch::default();
    viewers.iter().for_each(|viewer| _ = batch.entities.insert(viewer.id, Some(viewer.clone())));
    batch.entities.insert(Uuid::from_u128(9), Some(entity(9, BlockPos::new(0, 0, 0))));
    save(&world, batch);
    assert_eq!(world.viewers(OVERWORLD).unwrap(), viewers);
    assert!(world.viewers(NETHER).unwrap().is_empty());
    // The viewers are in their columns, too.
    assert_eq!(entities_in(&world, OVERWORLD, viewers[1].column()), viewers[1..2]);
    // One is no longer a viewer, one moves, and one changes its dimension.
    viewers[0].viewer = None;
    viewers[1].block.x += 100;
    viewers[2].dimension = NETHER;
    viewers.iter().zip(0..).for_each(|(viewer, id)| _ = save_entity(&world, id, Some(viewer.clone())));
    assert_eq!(world.viewers(OVERWORLD).unwrap(), viewers[1..2]);
    assert_eq!(world.viewers(NETHER).unwrap(), viewers[2..]);
    save_entity(&world, 1, None);
    assert!(world.viewers(OVERWORLD).unwrap().is_empty());
}

/// Promise, world format: An index key in `meta` that contradicts its entity's record is ignored.
#[test]
fn the_record_decides_where_an_entity_is() {
    let store = TestStore::default();
    let world = store.world();
    save_entity(&world, 1, Some(entity(1, BlockPos::new(0, 0, 0))));
    let mut batch = WriteBatch::default();
    let (elsewhere, id) = (ColumnPos::new(5, 5), Uuid::from_u128(1));
    batch.put(Family::Meta, keys::place_key(OVERWORLD, elsewhere, id), Vec::new());
    batch.put(Family::Meta, keys::place_key(NETHER, ColumnPos::new(0, 0), id), Vec::new());
    batch.put(Family::Meta, keys::place_key(OVERWORLD, elsewhere, Uuid::from_u128(7)), Vec::new());
    batch.put(Family::Meta, keys::viewer_key(OVERWORLD, id), Vec::new());
    store.write(batch, Durability::Process).unwrap();
    assert!(entities_in(&world, OVERWORLD, elsewhere).is_empty());
    assert!(entities_in(&world, NETHER, ColumnPos::new(0, 0)).is_empty());
    assert!(world.viewers(OVERWORLD).unwrap().is_empty());
    assert_eq!(entities_in(&world, OVERWORLD, ColumnPos::new(0, 0)).len(), 1);
}

#[test]
fn a_damaged_entity_is_named() {
    let store = TestStore::default();
    let world = store.world();
    let id = Uuid::from_u128(1);
    let load = || world.load_batch(OVERWORLD, BatchPos::new(0, 0), &[ColumnPos::new(0, 0)], HEIGHTS);
    for damage in [
        |value: &mut Vec<u8>| value[0] = 200,
        |value: &mut Vec<u8>| value.truncate(9),
        |value: &mut Vec<u8>| value[5] ^= 1,
    ] {
        save_entity(&world, 1, Some(entity(1, BlockPos::new(0, 0, 0))));
        store.tamper(Family::Entities, &keys::entity_key(id), damage);
        assert!(matches!(load(), Err(StoreError::Corrupt { what: StoredItem::Entity(of), .. }) if of == id));
        let report = save_entity(&world, 1, Some(entity(1, BlockPos::new(20, 0, 0))));
        assert_eq!(report.replaced.len(), 1);
        assert!(load().unwrap()[0].entities.is_empty());
        assert_eq!(entities_in(&world, OVERWORLD, ColumnPos::new(1, 0)).len(), 1);
    }
    let error = world.commit(
        &SaveBatch {
            entities: [(Uuid::from_u128(2), Some(entity(1, BlockPos::new(0, 0, 0))))].into(),
            ..SaveBatch::default()
        },
        Durability::Process,
    );
    assert!(matches!(error, Err(StoreError::Corrupt { what: StoredItem::Entity(_), .. })));
}

#[test]
fn an_entity_is_found_by_its_id_alone() {
    let store = TestStore::default();
    let world = store.world();
    let id = Uuid::from_u128(1);
    assert_eq!(world.entity(id), Ok(None));
    let mut record = entity(1, BlockPos::new(i64::MIN, 70, i64::MAX));
    save_entity(&world, 1, Some(record.clone()));
    save_entity(&world, 2, Some(entity(2, BlockPos::new(0, 0, 0))));
    assert_eq!(world.entity(id), Ok(Some(record.clone())));
    record.dimension = NETHER;
    save_entity(&world, 1, Some(record.clone()));
    assert_eq!(world.entity(id), Ok(Some(record)));
    store.tamper(Family::Entities, &keys::entity_key(id), |value| value[5] ^= 1);
    assert!(matches!(world.entity(id), Err(StoreError::Corrupt { what: StoredItem::Entity(of), .. }) if of == id));
    save_entity(&world, 1, None);
    assert_eq!(world.entity(id), Ok(None));
}
