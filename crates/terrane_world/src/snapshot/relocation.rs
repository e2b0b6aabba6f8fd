//! [`Relocation`]: a move with a turn.

use super::{PlaceError, Turn};
use crate::entity::EntityRecord;
use crate::space::{BlockBox, BlockPos};

/// A move of content, turned about the block `from`, which goes to the block `to`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Relocation {
    /// The turn.
    pub turn: Turn,
    /// The block to turn about.
    pub from: BlockPos,
    /// The destination of that block.
    pub to: BlockPos,
}

impl Relocation {
    /// The inverse move.
    pub const fn inverse(&self) -> Self {
        Self { turn: self.turn.inverse(), from: self.to, to: self.from }
    }

    /// The destination of a block, even beyond the edges of the grid.
    pub(super) fn exact(&self, block: BlockPos) -> [i128; 3] {
        let distance = |from: i64, to: i64| i128::from(to) - i128::from(from);
        let [x, z] = self.turn.vector(distance(self.from.x, block.x), distance(self.from.z, block.z));
        [i128::from(self.to.x) + x, i128::from(self.to.y) + distance(self.from.y, block.y), i128::from(self.to.z) + z]
    }

    /// The offset of the move, if it does not turn.
    pub(super) fn shift(&self) -> Option<[i128; 3]> {
        self.turn.is_none().then(|| self.exact(BlockPos::new(0, 0, 0)))
    }

    /// The destination of a block.
    pub fn block(&self, block: BlockPos) -> Result<BlockPos, PlaceError> {
        let [x, y, z] = self.exact(block).map(i64::try_from);
        match (x, y, z) {
            (Ok(x), Ok(y), Ok(z)) => Ok(BlockPos::new(x, y, z)),
            _ => Err(PlaceError::OutOfRange(block)),
        }
    }

    /// The destination of a box. An empty box stays empty.
    pub fn area(&self, area: &BlockBox) -> Result<BlockBox, PlaceError> {
        if area.is_empty() {
            return Ok(*area);
        }
        Ok(BlockBox::new(self.block(area.min)?, self.block(area.max)?))
    }

    /// The destination of a position within a block. It stays within its block.
    pub fn place(&self, block: BlockPos, offset: [f32; 3]) -> Result<(BlockPos, [f32; 3]), PlaceError> {
        Ok((self.block(block)?, self.turn.offset(offset)))
    }

    /// The entity at its destination, with its children in the same dimension. Components with a direction are not turned.
    pub fn entity(&self, entity: &EntityRecord) -> Result<EntityRecord, PlaceError> {
        let (block, offset) = self.place(entity.block, entity.offset)?;
        let mut moved = EntityRecord { block, offset, ..entity.clone() };
        for child in &mut moved.children {
            if let Some((dimension, block, offset)) = &mut child.place
                && *dimension == entity.dimension
            {
                (*block, *offset) = self.place(*block, *offset)?;
            }
        }
        Ok(moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::tests::{child, entity};
    use crate::space::DimensionId;
    use proptest::prelude::*;

    fn positions() -> impl Strategy<Value = BlockPos> {
        let coordinate = || prop_oneof![-40..40_i64, any::<i64>(), Just(i64::MIN), Just(i64::MAX)];
        (coordinate(), coordinate(), coordinate()).prop_map(|(x, y, z)| BlockPos::new(x, y, z))
    }

    #[test]
    fn nothing_leaves_the_grid() {
        let low = BlockPos::new(i64::MIN, 0, 0);
        let flip = |from| Relocation { turn: Turn::FLIP_X, from, to: from };
        assert_eq!(flip(BlockPos::default()).block(low), Err(PlaceError::OutOfRange(low)));
        assert_eq!(flip(BlockPos::default()).block(low.offset(1, 0, 0)), Ok(BlockPos::new(i64::MAX, 0, 0)));
        assert_eq!(flip(low).block(low), Ok(low));
        assert!(flip(BlockPos::default()).area(&BlockBox::ALL).is_err());
        assert_eq!(Relocation::default().area(&BlockBox::ALL), Ok(BlockBox::ALL));
    }

    #[test]
    fn children_with_a_place_of_their_own_go_along() {
        let mut rider = entity(1, BlockPos::new(2, 0, 0));
        rider.offset = [0.25, 0.0, 0.5];
        rider.children = vec![child(2, None); 3];
        rider.children[1].place = Some((rider.dimension, BlockPos::new(3, 1, 0), [0.25, 0.0, 0.5]));
        rider.children[2].place = Some((DimensionId(9), BlockPos::new(3, 1, 0), [0.25, 0.0, 0.5]));
        let quarter = Relocation { turn: Turn::quarters(1), ..Relocation::default() };
        let moved = quarter.entity(&rider).unwrap();
        assert_eq!((moved.block, moved.offset), (BlockPos::new(0, 0, 2), [0.5, 0.0, 0.25]));
        assert_eq!(moved.children[0], rider.children[0]);
        assert_eq!(moved.children[1].place, Some((rider.dimension, BlockPos::new(0, 1, 3), [0.5, 0.0, 0.25])));
        assert_eq!(moved.children[2], rider.children[2]);
    }

    proptest! {
        #[test]
        fn a_relocation_has_an_inverse(
            turn in prop::sample::select(Turn::all().collect::<Vec<_>>()), from in positions(), to in positions(),
            block in positions(), other in positions(),
        ) {
            let relocation = Relocation { turn, from, to };
            prop_assert_eq!(relocation.block(from), Ok(to));
            if let Ok(arrived) = relocation.block(block) {
                prop_assert_eq!(relocation.inverse().block(arrived), Ok(block));
                if let Ok(area) = relocation.area(&BlockBox::new(block, other)) {
                    prop_assert!(area.contains(arrived));
                    prop_assert_eq!(relocation.inverse().area(&area), Ok(BlockBox::new(block, other)));
                }
            }
        }
    }
}
