//! Players, which are found by name and not by place.

use crate::{EntityRecord, Family, StoreError, WorldStore, keys};

impl WorldStore {
    /// The record of the player with this name; `None` if it is not stored. The record contains the player's place.
    ///
    /// # Errors
    /// The store cannot be read, or the record is damaged.
    pub fn player(&self, name: &str) -> Result<Option<EntityRecord>, StoreError> {
        let id = |key: &[u8]| Ok(Some(self.parsed(Family::Meta, key, keys::parse_player_key)?.1));
        let ids = self.list_meta(keys::player_range(name), |key, _| id(key))?;
        let records = self.entity_records(&ids)?.into_iter().flatten();
        Ok(records.into_iter().find(|record| record.player().as_deref() == Some(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::{BlockPos, DimensionId};
    use crate::{Durability, SaveBatch, backends::test_store::TestStore, player_component};
    use uuid::Uuid;

    fn record(number: u128, name: &str) -> EntityRecord {
        EntityRecord {
            id: Uuid::from_u128(number),
            dimension: DimensionId(1),
            block: BlockPos::new(number as i64, 5, 0),
            offset: [0.5; 3],
            viewer: Some(Default::default()),
            components: vec![player_component(name)],
            children: Vec::new(),
        }
    }

    fn save(store: &TestStore, id: u128, record: Option<EntityRecord>) {
        let mut batch = SaveBatch::default();
        batch.entities.insert(Uuid::from_u128(id), record);
        store.world().commit(&batch, Durability::Sync).unwrap();
    }

    #[test]
    fn a_player_is_found_by_its_name_and_not_in_its_column() {
        let store = TestStore::default();
        let names = ["bob", "bo", "bobby", "", "bob\0", "Zoë"];
        for (number, name) in names.into_iter().enumerate() {
            save(&store, number as u128, Some(record(number as u128, name)));
        }
        let world = store.world();
        for (number, name) in names.into_iter().enumerate() {
            assert_eq!(world.player(name), Ok(Some(record(number as u128, name))));
            let column = BlockPos::new(number as i64, 5, 0).column();
            let loaded = world.load_batch(DimensionId(1), column.batch(), &[column], 0..0).unwrap();
            assert!(loaded[0].entities.is_empty());
        }
        assert_eq!(world.player("b"), Ok(None));
        assert_eq!(world.viewers(DimensionId(1)), Ok(Vec::new()), "nobody holds ground before its log-in");
    }

    #[test]
    fn a_dead_player_frees_its_name() {
        let store = TestStore::default();
        save(&store, 1, Some(record(1, "bob")));
        save(&store, 1, None);
        assert_eq!(store.world().player("bob"), Ok(None));
        save(&store, 2, Some(record(2, "bob")));
        assert_eq!(store.world().player("bob"), Ok(Some(record(2, "bob"))));
        assert_eq!(store.contents().iter().filter(|(_, (key, _))| key.starts_with(b"player:")).count(), 1);
    }
}
