//! An entity as it is stored.

use super::keys;
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
    /// Its saved components: name and encoded value.
    pub components: Vec<(String, Vec<u8>)>,
}

impl EntityRecord {
    /// The column it is in.
    pub fn column(&self) -> ColumnPos {
        self.block.column()
    }

    /// The keys in `meta` by which it is found: its place, and itself as a viewer if it is one.
    pub(super) fn index_keys(&self) -> Vec<Vec<u8>> {
        let mut keys = vec![keys::place_key(self.dimension, self.column(), self.id)];
        if self.viewer_radius.is_some() {
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
        ChildRecord { parent, id: None, place: None, viewer_radius: None, components: Vec::new() }
    }

    #[test]
    fn a_child_that_does_not_follow_its_parent_is_refused() {
        let record = |parents: &[Option<u32>]| EntityRecord {
            id: Uuid::nil(),
            dimension: DimensionId(1),
            block: BlockPos::default(),
            offset: [0.0; 3],
            viewer_radius: None,
            components: Vec::new(),
            children: parents.iter().copied().map(child).collect(),
        };
        assert_eq!(record(&[None, Some(0), Some(1), None, Some(0)]).check(), Ok(()));
        for astray in [&[Some(0)][..], &[None, Some(2), None], &[None, Some(u32::MAX)]] {
            assert!(record(astray).check().unwrap_err().contains("child"), "{astray:?}");
        }
    }
}
