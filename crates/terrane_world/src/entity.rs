//! Stored entities.

use crate::bytes::{put_value, record};
use crate::space::{BlockPos, ColumnPos, DimensionId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A stored entity with its UUID.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EntityRecord {
    /// The entity's stable id, which is the same in every session.
    pub id: Uuid,
    /// The dimension of the entity.
    pub dimension: DimensionId,
    /// The block that contains the entity.
    pub block: BlockPos,
    /// The position within that block.
    pub offset: [f32; 3],
    /// The distances within which the entity keeps columns loaded; `None` if it is not a viewer.
    pub viewer: Option<ViewerRecord>,
    /// The saved components as pairs of name and encoded value.
    pub components: Vec<(String, Vec<u8>)>,
    /// All saved descendants, each after its parent and in the order of the parent's children. One list holds the
    /// whole tree, so that reading a deep tree needs no recursion.
    pub children: Vec<ChildRecord>,
}

/// An entity that is stored with its ancestor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildRecord {
    /// The parent's place in the list; `None` if the parent is the entity that the list belongs to.
    pub parent: Option<u32>,
    /// The stable id, if the entity has one.
    pub id: Option<Uuid>,
    /// Dimension, block and offset, if the entity has a position of its own.
    pub place: Option<(DimensionId, BlockPos, [f32; 3])>,
    /// The distances within which the entity keeps columns loaded; `None` if it is not a viewer.
    pub viewer: Option<ViewerRecord>,
    /// The saved components as pairs of name and encoded value.
    pub components: Vec<(String, Vec<u8>)>,
}

/// The stored distances within which an entity keeps columns loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ViewerRecord {
    /// The load radius in columns.
    pub radius: u32,
    /// The generation radius in columns, if it is larger than the load radius.
    pub generation_radius: u32,
    /// The vertical radius in chunks, for sparse dimensions.
    pub vertical_radius: u32,
}

/// The name of the saved component that makes an entity a player.
const COMPONENT: &str = "bevy_terrane::Player";

/// The name of that component in older worlds.
#[doc(hidden)]
pub const FORMER_PLAYER_COMPONENT: &str = "bevy_terrane::simulation::player::Player";

/// The saved component of a player with this name.
#[doc(hidden)]
pub fn player_component(name: &str) -> (String, Vec<u8>) {
    (COMPONENT.to_owned(), put_value(Vec::new(), name))
}

/// The format of a record. Formats 1 and 2 were never released.
const FORMAT: u8 = 3;

#[doc(hidden)]
impl EntityRecord {
    /// The stable ids in the entity's tree: its own and those of its descendants that have one.
    pub fn ids(&self) -> impl Iterator<Item = Uuid> {
        [self.id].into_iter().chain(self.children.iter().filter_map(|child| child.id))
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        record::encode_as(FORMAT, self)
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let entity: Self = record::decode_as(FORMAT, bytes)?;
        entity.check().map(|()| entity)
    }
}

impl EntityRecord {
    /// The column that contains the entity.
    pub fn column(&self) -> ColumnPos {
        self.block.column()
    }

    /// The viewers in the entity's tree: UUID, block and distances.
    pub fn viewers(&self) -> impl Iterator<Item = (Uuid, BlockPos, ViewerRecord)> {
        let own = self.viewer.map(|viewer| (self.id, self.block, viewer));
        let of_child = |child: &ChildRecord| {
            let place = child.place.filter(|(dimension, ..)| *dimension == self.dimension);
            Some((child.id?, place.map_or(self.block, |(_, block, _)| block), child.viewer?))
        };
        own.into_iter().chain(self.children.iter().filter_map(of_child))
    }

    /// The player's name, if the entity is a player.
    pub fn player(&self) -> Option<String> {
        let is_player = |name: &str| [COMPONENT, FORMER_PLAYER_COMPONENT].contains(&name);
        let (_, bytes) = self.components.iter().find(|(name, _)| is_player(name))?;
        postcard::from_bytes(bytes).ok()
    }

    fn check(&self) -> Result<(), String> {
        let astray =
            |(place, child): (usize, &ChildRecord)| child.parent.is_some_and(|parent| parent as usize >= place);
        match self.children.iter().enumerate().position(astray) {
            Some(place) => Err(format!("its child {place} does not follow its own parent")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(parent: Option<u32>) -> ChildRecord {
        ChildRecord { parent, id: None, place: None, viewer: None, components: Vec::new() }
    }

    fn record(children: Vec<ChildRecord>) -> EntityRecord {
        EntityRecord {
            id: Uuid::nil(),
            dimension: DimensionId(1),
            block: BlockPos::new(16, 2, 3),
            offset: [0.0; 3],
            viewer: None,
            components: Vec::new(),
            children,
        }
    }

    #[test]
    fn viewers_are_found_where_they_are() {
        let [near, far] = [4, 64].map(|radius| ViewerRecord { radius, ..ViewerRecord::default() });
        let mut record = record((0..4).map(|_| child(None)).collect());
        assert_eq!(record.viewers().next(), None);
        record.viewer = Some(near);
        for (place, child) in record.children.iter_mut().enumerate() {
            child.id = (place > 0).then(|| Uuid::from_u128(place as u128));
            child.viewer = Some(far);
        }
        let there = BlockPos::new(500, 0, 0);
        record.children[2].place = Some((DimensionId(1), there, [0.0; 3]));
        record.children[3].place = Some((DimensionId(2), there, [0.0; 3]));
        let id = Uuid::from_u128;
        let here = record.block;
        let expected = [(Uuid::nil(), here, near), (id(1), here, far), (id(2), there, far), (id(3), here, far)];
        assert!(record.viewers().eq(expected));
        assert_eq!(EntityRecord::from_bytes(&record.to_bytes()), Ok(record));
    }

    #[test]
    fn a_child_that_does_not_follow_its_parent_is_refused() {
        let record = |parents: &[Option<u32>]| record(parents.iter().copied().map(child).collect());
        assert_eq!(record(&[None, Some(0), Some(1), None, Some(0)]).check(), Ok(()));
        for astray in [&[Some(0)][..], &[None, Some(2), None], &[None, Some(u32::MAX)]] {
            assert!(record(astray).check().unwrap_err().contains("child"), "{astray:?}");
        }
    }
}
