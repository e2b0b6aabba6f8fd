//! Removes entities and their descendants by UUID.

use crate::entity::EntityRecord;
use uuid::Uuid;

/// Removes an entity, or a child of one, with all its descendants. Returns the removed UUIDs.
pub(super) fn remove_from(entities: &mut Vec<EntityRecord>, id: Uuid) -> Vec<Uuid> {
    if let Some(place) = entities.iter().position(|entity| entity.id == id) {
        return entities.remove(place).ids().collect();
    }
    entities.iter_mut().flat_map(|entity| remove_child(entity, id)).collect()
}

/// Removes a child with all its descendants. Returns the removed UUIDs.
pub(super) fn remove_child(entity: &mut EntityRecord, id: Uuid) -> Vec<Uuid> {
    let mut gone = Vec::new();
    // The new places by old place.
    let mut places: Vec<Option<u32>> = Vec::with_capacity(entity.children.len());
    let mut kept = 0;
    entity.children.retain_mut(|child| {
        let parent = child.parent.map(|parent| places.get(parent as usize).copied().flatten());
        let stays = child.id != Some(id) && parent != Some(None);
        places.push(stays.then_some(kept));
        if stays {
            child.parent = parent.flatten();
            kept += 1;
        } else {
            gone.extend(child.id);
        }
        stays
    });
    gone
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::tests::{child, entity};
    use crate::space::BlockPos;

    #[test]
    fn a_child_goes_with_all_below_it_and_the_others_keep_their_parents() {
        let id = Uuid::from_u128;
        let mut root = entity(0, BlockPos::default());
        root.children = vec![child(1, None), child(2, Some(0)), child(3, None), child(4, Some(1)), child(5, Some(2))];
        assert!(remove_child(&mut root, id(9)).is_empty());
        assert_eq!(remove_child(&mut root, id(1)), [id(1), id(2), id(4)]);
        assert_eq!(root.children, [child(3, None), child(5, Some(0))]);
        let mut all = vec![entity(7, BlockPos::default()), root];
        assert_eq!(remove_from(&mut all, id(5)), [id(5)]);
        assert_eq!(remove_from(&mut all, id(0)), [id(0), id(3)]);
        assert_eq!(all.len(), 1);
    }
}
