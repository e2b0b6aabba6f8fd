//! [`Predictions`]: edits that are shown before the world has decided on them.

use super::Column;
use crate::block::{BlockId, BlockLayout};
use crate::space::{BlockPos, ChunkPos, ColumnPos, DimensionId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// The maximum number of predicted edits. More edits are shown when the world has made them.
const MAX_PREDICTIONS: usize = 4_096;

/// A column of a dimension.
type Place = (DimensionId, ColumnPos);

/// Edits whose outcome is not known yet, over *confirmed* columns, which are those of the world.
///
/// A column is shown as it is confirmed, with the predicted edits in it made in the order of their numbers. A prediction ends
/// when the confirmed column includes the world's decision about it, whichever that is. So a block on which both sides agree
/// never reverts in between, however late the decision comes; and a refused block goes at once, because the confirmed column
/// never had it.
#[derive(Clone, Debug, Default)]
pub struct Predictions {
    columns: FxHashMap<Place, PredictedColumn>,
    /// The columns of the edits.
    places: FxHashMap<u64, Place>,
}

#[derive(Clone, Debug, Default)]
struct PredictedColumn {
    edits: BTreeMap<u64, (BlockPos, BlockId)>,
    /// The confirmed column with these edits; `None` while it is not loaded.
    shown: Option<Column>,
}

impl Predictions {
    /// Predicts an edit of a confirmed column. Its number is higher than those of all earlier edits. Returns `false` if it is
    /// not shown: there are too many, or its height is not loaded.
    pub fn predict(
        &mut self,
        number: u64,
        dimension: DimensionId,
        (position, block): (BlockPos, BlockId),
        confirmed: &Column,
        layout: &impl BlockLayout,
    ) -> bool {
        if self.places.len() >= MAX_PREDICTIONS || !confirmed.is_loaded(position.chunk().y) {
            return false;
        }
        let place = (dimension, position.column());
        let column = self.columns.entry(place).or_default();
        column.edits.insert(number, (position, block));
        set_block(column.shown.get_or_insert_with(|| confirmed.clone()), position, block, layout);
        self.places.insert(number, place);
        true
    }

    /// Follows the world: these confirmed columns have changed, and they include the decisions about these edits. Unknown
    /// numbers are ignored. Returns the chunks in which the world has decided otherwise than predicted.
    pub fn follow<'a>(
        &mut self,
        changed: impl IntoIterator<Item = Place>,
        decided: impl IntoIterator<Item = u64>,
        confirmed: impl Fn(Place) -> Option<&'a Column>,
        layout: &impl BlockLayout,
    ) -> FxHashSet<(DimensionId, ChunkPos)> {
        let mut outdated: FxHashSet<Place> =
            changed.into_iter().filter(|place| self.columns.contains_key(place)).collect();
        let mut ended = Vec::new();
        for number in decided {
            let Some(place) = self.places.remove(&number) else { continue };
            let Some(column) = self.columns.get_mut(&place) else { continue };
            let Some((position, _)) = column.edits.remove(&number) else { continue };
            ended.push((place, position, column.shown.as_ref().map(|shown| shown.block(position))));
            outdated.insert(place);
        }
        for place in outdated {
            let Some(column) = self.columns.get_mut(&place) else { continue };
            column.shown = confirmed(place).cloned();
            match &mut column.shown {
                _ if column.edits.is_empty() => drop(self.columns.remove(&place)),
                Some(shown) => {
                    let edits = column.edits.values().filter(|(position, _)| shown.is_loaded(position.chunk().y));
                    let edits: Vec<_> = edits.copied().collect();
                    edits.into_iter().for_each(|(position, block)| set_block(shown, position, block, layout));
                }
                None => {}
            }
        }
        let is_other = |(place, position, before): &(Place, BlockPos, Option<BlockId>)| {
            let shown = self.column(*place).or_else(|| confirmed(*place));
            shown.map(|shown| shown.block(*position)) != *before
        };
        ended.into_iter().filter(is_other).map(|((dimension, _), position, _)| (dimension, position.chunk())).collect()
    }

    /// Ends all predictions in a dimension that is gone.
    pub fn forget(&mut self, dimension: DimensionId) {
        self.columns.retain(|(of, _), _| *of != dimension);
        self.places.retain(|_, (of, _)| *of != dimension);
    }

    /// A column as it is shown, if there are predictions in it; otherwise the confirmed one is shown.
    pub fn column(&self, place: Place) -> Option<&Column> {
        self.columns.get(&place)?.shown.as_ref()
    }

    /// The columns with predictions that are loaded, as they are shown.
    pub fn columns(&self) -> impl Iterator<Item = (Place, &Column)> {
        self.columns.iter().filter_map(|(place, column)| Some((*place, column.shown.as_ref()?)))
    }

    /// Returns `true` if the shown block is predicted.
    pub fn is_predicted(&self, dimension: DimensionId, position: BlockPos) -> bool {
        let column = self.columns.get(&(dimension, position.column()));
        column.is_some_and(|column| column.edits.values().any(|(edited, _)| *edited == position))
    }

    /// The number of predicted edits.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns `true` if there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

/// Sets a block as a region does.
fn set_block(column: &mut Column, position: BlockPos, block: BlockId, layout: &impl BlockLayout) {
    match layout.components(block) {
        [] => _ = column.set_block(position, block),
        _ if column.block(position) == block => {}
        // Layer 0 always exists.
        _ => _ = column.chunk_mut(position.chunk().y).place_block(layout, position.in_chunk(), 0, block),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIMENSION: DimensionId = DimensionId(3);
    const HERE: BlockPos = BlockPos::new(5, 20, -3);
    const STONE: BlockId = BlockId::new(1);
    const DIRT: BlockId = BlockId::new(2);

    fn place() -> Place {
        (DIMENSION, HERE.column())
    }

    fn with(block: BlockId) -> Column {
        let mut column = Column::new(HERE.column());
        column.set_block(HERE, block);
        column
    }

    fn shown(predictions: &Predictions) -> Option<BlockId> {
        predictions.column(place()).map(|column| column.block(HERE))
    }

    #[test]
    fn a_later_prediction_stands_on_an_earlier_one() {
        let confirmed = with(BlockId::AIR);
        let mut predictions = Predictions::default();
        assert!(predictions.predict(1, DIMENSION, (HERE, STONE), &confirmed, &()));
        assert!(predictions.predict(2, DIMENSION, (HERE, DIRT), &confirmed, &()));
        assert_eq!(shown(&predictions), Some(DIRT));
        // The second is refused while the first is not decided.
        let other = predictions.follow([], [2], |_| Some(&confirmed), &());
        assert_eq!(other.into_iter().collect::<Vec<_>>(), [(DIMENSION, HERE.chunk())]);
        assert_eq!(shown(&predictions), Some(STONE));
        assert!(predictions.is_predicted(DIMENSION, HERE));
        let stone = with(STONE);
        assert!(predictions.follow([place()], [1], |_| Some(&stone), &()).is_empty(), "as predicted");
        assert!(predictions.is_empty() && shown(&predictions).is_none());
    }

    #[test]
    fn the_world_decides_otherwise() {
        let confirmed = with(BlockId::AIR);
        let mut predictions = Predictions::default();
        predictions.predict(1, DIMENSION, (HERE, STONE), &confirmed, &());
        let dirt = with(DIRT);
        assert!(predictions.follow([place()], [], |_| Some(&dirt), &()).is_empty());
        assert_eq!(shown(&predictions), Some(STONE), "it is not decided yet");
        assert_eq!(predictions.follow([], [1, 7], |_| Some(&dirt), &()).len(), 1);
        assert!(shown(&predictions).is_none());
    }

    #[test]
    fn a_column_that_goes_and_comes_keeps_its_predictions() {
        let confirmed = with(BlockId::AIR);
        let mut predictions = Predictions::default();
        predictions.predict(1, DIMENSION, (HERE, STONE), &confirmed, &());
        predictions.follow([place()], [], |_| None, &());
        assert!(shown(&predictions).is_none());
        predictions.follow([place()], [], |_| Some(&confirmed), &());
        assert_eq!(shown(&predictions), Some(STONE));
        predictions.forget(DIMENSION);
        assert!(predictions.is_empty() && shown(&predictions).is_none());
    }

    #[test]
    fn what_is_not_loaded_and_what_is_too_much_is_not_predicted() {
        let partial = Column::partial(HERE.column(), Default::default());
        let confirmed = with(STONE);
        let mut predictions = Predictions::default();
        assert!(!predictions.predict(1, DIMENSION, (HERE, STONE), &partial, &()));
        for number in 2..MAX_PREDICTIONS as u64 + 2 {
            assert!(predictions.predict(number, DIMENSION, (HERE, DIRT), &confirmed, &()));
        }
        assert!(!predictions.predict(u64::MAX, DIMENSION, (HERE, STONE), &confirmed, &()));
        assert_eq!((predictions.len(), shown(&predictions)), (MAX_PREDICTIONS, Some(DIRT)));
        predictions.follow([], 2..MAX_PREDICTIONS as u64 + 2, |_| Some(&confirmed), &());
        assert!(predictions.is_empty());
    }
}
