//! An entity as it is stored.

use super::{keys, record};
use crate::space::{BlockPos, ColumnPos, DimensionId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// An entity as it is stored, under its UUID.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EntityRecord {
    /// Who it is, in every session.
    pub id: Uuid,
    /// The dimension it is in.
    pub dimension: DimensionId,
    /// The block it is in.
    pub block: BlockPos,
    /// Where in that block.
    pub offset: [f32; 3],
    /// How far it holds ground loaded around it, in columns; `None` if it does not.
    pub viewer_radius: Option<u32>,
    /// How far it has ground generated around it, in columns, if that is further; 0 otherwise. Stored beside the rest.
    #[serde(skip)]
    pub generation_radius: u32,
    /// Its saved components: name and encoded value.
    pub components: Vec<(String, Vec<u8>)>,
    /// All below it that is saved, each after its parent and in the order of the parent's children. One list for the
    /// whole tree: however deep it is, nobody who reads it descends.
    pub children: Vec<ChildRecord>,
}

/// An entity that is stored with the one that it hangs on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildRecord {
    /// The parent's place in the list; `None` if it hangs on the entity that the list belongs to.
    pub parent: Option<u32>,
    /// Who it is, if it has a stable id.
    pub id: Option<Uuid>,
    /// Dimension, block and offset, if it has a position of its own.
    pub place: Option<(DimensionId, BlockPos, [f32; 3])>,
    /// How far it holds ground loaded around it, in columns; `None` if it does not.
    pub viewer_radius: Option<u32>,
    /// How far it has ground generated around it, in columns, if that is further; 0 otherwise. Stored beside the rest.
    #[serde(skip)]
    pub generation_radius: u32,
    /// Its saved components: name and encoded value.
    pub components: Vec<(String, Vec<u8>)>,
}

/// A record and the generation radii in it. What has none is stored in [`record::FORMAT`], as it was before there were
/// any.
const WITH_GENERATION_RADII: u8 = 2;

/// The generation radii of a record: 0 for the entity itself, 1 for its first child and so on, and the radius.
type GenerationRadii = Vec<(u32, u32)>;

impl EntityRecord {
    /// The column it is in.
    pub fn column(&self) -> ColumnPos {
        self.block.column()
    }

    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, String> {
        let radii = self.children.iter().map(|child| child.generation_radius);
        let radii = (0..).zip([self.generation_radius].into_iter().chain(radii));
        let radii: GenerationRadii = radii.filter(|(_, radius)| *radius > 0).collect();
        match radii.is_empty() {
            true => record::encode(self),
            false => record::encode_as(WITH_GENERATION_RADII, &(self, radii)),
        }
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        if bytes.first() != Some(&WITH_GENERATION_RADII) {
            return record::decode(bytes);
        }
        let (mut entity, radii): (Self, GenerationRadii) = record::decode_as(WITH_GENERATION_RADII, bytes)?;
        for (place, radius) in radii {
            let known = match place.checked_sub(1) {
                None => Some(&mut entity.generation_radius),
                Some(child) => entity.children.get_mut(child as usize).map(|child| &mut child.generation_radius),
            };
            *known.ok_or_else(|| format!("it has a radius of child {place}, which is not there"))? = radius;
        }
        Ok(entity)
    }

    /// Those of it and of its children that hold ground loaded: who, around which column, how far, and how far ground is
    /// generated for it.
    pub fn viewers(&self) -> impl Iterator<Item = (Uuid, ColumnPos, u32, u32)> {
        let own = self.viewer_radius.map(|radius| (self.id, self.column(), radius, self.generation_radius));
        let of_child = |child: &ChildRecord| {
            let place = child.place.filter(|(dimension, ..)| *dimension == self.dimension);
            let column = place.map_or(self.column(), |(_, block, _)| block.column());
            Some((child.id?, column, child.viewer_radius?, child.generation_radius))
        };
        own.into_iter().chain(self.children.iter().filter_map(of_child))
    }

    /// The keys in `meta` by which it is found: its place, and itself if it or a child is a viewer.
    pub(super) fn index_keys(&self) -> Vec<Vec<u8>> {
        let mut keys = vec![keys::place_key(self.dimension, self.column(), self.id)];
        if self.viewers().next().is_some() {
            keys.push(keys::viewer_key(self.dimension, self.id));
        }
        keys
    }

    /// What is wrong with the tree below it, if anything is.
    pub(super) fn check(&self) -> Result<(), String> {
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
        ChildRecord { parent, id: None, place: None, viewer_radius: None, generation_radius: 0, components: Vec::new() }
    }

    fn record(children: Vec<ChildRecord>) -> EntityRecord {
        EntityRecord {
            id: Uuid::nil(),
            dimension: DimensionId(1),
            block: BlockPos::default(),
            offset: [0.0; 3],
            viewer_radius: None,
            generation_radius: 0,
            components: Vec::new(),
            children,
        }
    }

    #[test]
    fn a_generation_radius_is_stored_and_records_without_one_stay_as_they_were() {
        let old = record(vec![child(None), child(None)]);
        let bytes = old.to_bytes().unwrap();
        assert_eq!(bytes, record::encode(&old).unwrap());
        assert_eq!(EntityRecord::from_bytes(&bytes), Ok(old.clone()));

        let mut new = EntityRecord { viewer_radius: Some(4), generation_radius: 64, ..old };
        new.children[1].generation_radius = 7;
        let bytes = new.to_bytes().unwrap();
        assert_eq!(EntityRecord::from_bytes(&bytes), Ok(new));
        (0..bytes.len()).for_each(|end| assert!(EntityRecord::from_bytes(&bytes[..end]).is_err()));
        let astray = record::encode_as(WITH_GENERATION_RADII, &(record(Vec::new()), vec![(1_u32, 9_u32)])).unwrap();
        assert!(EntityRecord::from_bytes(&astray).unwrap_err().contains("child 1"));
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
