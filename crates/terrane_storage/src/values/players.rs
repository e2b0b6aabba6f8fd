//! Players, which are found by name and not by place.

use crate::{EntityRecord, Family, Read, StoreError, WorldStore, keys};
use std::collections::{BTreeMap, BTreeSet};

impl WorldStore {
    /// The records of the players with these names, by name, as far as they are stored. A record contains the player's place.
    ///
    /// # Errors
    /// The store cannot be read, or a record is damaged.
    pub fn players_named(&self, names: &BTreeSet<String>) -> Result<BTreeMap<String, EntityRecord>, StoreError> {
        let ranges = names.iter().map(|name| Read::Range(Family::Meta, keys::player_range(name), usize::MAX));
        let found = self.store.read(&ranges.collect::<Vec<_>>())?.into_iter().flatten();
        let ids = found.map(|(key, _)| Ok(self.parsed(Family::Meta, &key, keys::parse_player_key)?.1));
        let records = self.entity_records(&ids.collect::<Result<Vec<_>, StoreError>>()?)?;
        let mut players = BTreeMap::new();
        for record in records.into_iter().flatten() {
            if let Some(name) = record.player().filter(|name| names.contains(name)) {
                players.entry(name).or_insert(record);
            }
        }
        Ok(players)
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

    fn player(world: &WorldStore, name: &str) -> Option<EntityRecord> {
        world.players_named(&[name.to_owned()].into()).unwrap().remove(name)
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
            assert_eq!(player(&world, name), Some(record(number as u128, name)));
            let column = BlockPos::new(number as i64, 5, 0).column();
            let loaded = world.load_batch(DimensionId(1), column.batch(), &[column], 0..0).unwrap();
            assert!(loaded[0].entities.is_empty());
        }
        assert_eq!(player(&world, "b"), None);
        let wanted = ["bob", "b", "Zoë"].map(str::to_owned).into();
        let found = world.players_named(&wanted).unwrap();
        assert_eq!(found.into_keys().collect::<Vec<_>>(), ["Zoë", "bob"]);
        assert_eq!(world.viewers(DimensionId(1)), Ok(Vec::new()), "nobody holds ground before its log-in");
    }

    #[test]
    fn a_dead_player_frees_its_name() {
        let store = TestStore::default();
        save(&store, 1, Some(record(1, "bob")));
        save(&store, 1, None);
        assert_eq!(player(&store.world(), "bob"), None);
        save(&store, 2, Some(record(2, "bob")));
        assert_eq!(player(&store.world(), "bob"), Some(record(2, "bob")));
        assert_eq!(store.contents().iter().filter(|(_, (key, _))| key.starts_with(b"player:")).count(), 1);
    }
}
