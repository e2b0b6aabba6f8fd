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

/// Edits whose outcome is not known yet, over *confirmed* columns, which are those of the world. An edit sets one block or several.
///
/// A column is shown as it is confirmed, with the predicted edits in it made in the order of their numbers. A prediction ends
/// when the confirmed columns include the world's decision about it, whichever that is. So a block on which both sides agree
/// never reverts in between, however late the decision comes; and a refused block goes at once, because the confirmed column
/// never had it.
#[derive(Clone, Debug, Default)]
pub struct Predictions {
    columns: FxHashMap<Place, PredictedColumn>,
    /// The columns of the edits.
    places: FxHashMap<u64, Vec<Place>>,
}

#[derive(Clone, Debug, Default)]
struct PredictedColumn {
    edits: BTreeMap<u64, Vec<(BlockPos, BlockId)>>,
    /// The confirmed column with these edits; `None` while it is not loaded.
    shown: Option<Column>,
}

impl PredictedColumn {
    /// Shows the edits over a confirmed column.
    fn show(&mut self, confirmed: Option<&Column>, layout: &impl BlockLayout) {
        self.shown = confirmed.cloned();
        let Some(shown) = &mut self.shown else { return };
        for (position, block) in self.edits.values().flatten() {
            if shown.is_loaded(position.chunk().y) {
                set_block(shown, *position, *block, layout);
            }
        }
    }
}

impl Predictions {
    /// Predicts an edit of blocks, each with what it becomes. Its number is higher than those of all earlier edits. Returns `false` if
    /// it is not shown: there are too many, or a block is not loaded.
    pub fn predict<'a>(
        &mut self,
        number: u64,
        dimension: DimensionId,
        blocks: &[(BlockPos, BlockId)],
        confirmed: impl Fn(Place) -> Option<&'a Column>,
        layout: &impl BlockLayout,
    ) -> bool {
        let is_loaded = |(position, _): &(BlockPos, BlockId)| {
            confirmed((dimension, position.column())).is_some_and(|column| column.is_loaded(position.chunk().y))
        };
        if self.places.len() >= MAX_PREDICTIONS || blocks.is_empty() || !blocks.iter().all(is_loaded) {
            return false;
        }
        for &(position, block) in blocks {
            let place = (dimension, position.column());
            let column = self.columns.entry(place).or_default();
            if column.shown.is_none() {
                column.shown = confirmed(place).cloned();
            }
            column.edits.entry(number).or_default().push((position, block));
            if let Some(shown) = &mut column.shown {
                set_block(shown, position, block, layout);
            }
            let places = self.places.entry(number).or_default();
            if !places.contains(&place) {
                places.push(place);
            }
        }
        true
    }

    /// Changes what an edit does, since the world is other than it was predicted on. It may also set no block at all. Returns the chunks
    /// that look different now.
    pub fn replace<'a>(
        &mut self,
        number: u64,
        dimension: DimensionId,
        blocks: &[(BlockPos, BlockId)],
        confirmed: impl Fn(Place) -> Option<&'a Column>,
        layout: &impl BlockLayout,
    ) -> FxHashSet<(DimensionId, ChunkPos)> {
        let mut concerned: BTreeMap<Place, Option<Column>> = BTreeMap::new();
        let old = self.places.remove(&number).unwrap_or_default();
        let new = blocks.iter().map(|(position, _)| (dimension, position.column()));
        for place in old.iter().copied().chain(new) {
            let before = || self.columns.get(&place).and_then(|column| column.shown.clone());
            concerned.entry(place).or_insert_with(|| before().or_else(|| confirmed(place).cloned()));
            if let Some(column) = self.columns.get_mut(&place) {
                column.edits.remove(&number);
            }
        }
        for &(position, block) in blocks {
            let place = (dimension, position.column());
            self.columns.entry(place).or_default().edits.entry(number).or_default().push((position, block));
            let places = self.places.entry(number).or_default();
            if !places.contains(&place) {
                places.push(place);
            }
        }
        let mut other = FxHashSet::default();
        for (place, before) in concerned {
            self.refresh(place, confirmed(place), layout);
            let after = self.column(place).or_else(|| confirmed(place));
            let Some((before, after)) = before.as_ref().zip(after) else { continue };
            let heights = before.chunks().chain(after.chunks()).map(|(y, _)| y);
            other.extend(heights.filter(|y| before.chunk(*y) != after.chunk(*y)).map(|y| (place.0, place.1.chunk(y))));
        }
        other
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
            for place in self.places.remove(&number).unwrap_or_default() {
                let Some(column) = self.columns.get_mut(&place) else { continue };
                let blocks = column.edits.remove(&number).unwrap_or_default();
                let shown = column.shown.as_ref();
                ended.extend(
                    blocks.into_iter().map(|(position, _)| (place, position, shown.map(|it| it.block(position)))),
                );
                outdated.insert(place);
            }
        }
        outdated.into_iter().for_each(|place| self.refresh(place, confirmed(place), layout));
        let is_other = |(place, position, before): &(Place, BlockPos, Option<BlockId>)| {
            let shown = self.column(*place).or_else(|| confirmed(*place));
            shown.map(|shown| shown.block(*position)) != *before
        };
        ended.into_iter().filter(is_other).map(|((dimension, _), position, _)| (dimension, position.chunk())).collect()
    }

    /// Shows a column anew, or forgets it if no edit is left in it.
    fn refresh(&mut self, place: Place, confirmed: Option<&Column>, layout: &impl BlockLayout) {
        match self.columns.get_mut(&place) {
            Some(column) if column.edits.is_empty() => drop(self.columns.remove(&place)),
            Some(column) => column.show(confirmed, layout),
            None => {}
        }
    }

    /// Ends all predictions in a dimension that is gone.
    pub fn forget(&mut self, dimension: DimensionId) {
        self.columns.retain(|(of, _), _| *of != dimension);
        self.places.retain(|_, places| places.iter().all(|(of, _)| *of != dimension));
    }

    /// A column as it is shown, if there are predictions in it; otherwise the confirmed one is shown.
    pub fn column(&self, place: Place) -> Option<&Column> {
        self.columns.get(&place)?.shown.as_ref()
    }

    /// The block that the edits before this number set at a place, if one does.
    pub fn block_before(&self, number: u64, dimension: DimensionId, position: BlockPos) -> Option<BlockId> {
        let column = self.columns.get(&(dimension, position.column()))?;
        let mut blocks = column.edits.range(..number).rev().flat_map(|(_, blocks)| blocks.iter().rev());
        blocks.find(|(of, _)| *of == position).map(|(_, block)| *block)
    }

    /// The columns with predictions that are loaded, as they are shown.
    pub fn columns(&self) -> impl Iterator<Item = (Place, &Column)> {
        self.columns.iter().filter_map(|(place, column)| Some((*place, column.shown.as_ref()?)))
    }

    /// Returns `true` if the shown block is predicted.
    pub fn is_predicted(&self, dimension: DimensionId, position: BlockPos) -> bool {
        self.block_before(u64::MAX, dimension, position).is_some()
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
        assert!(predictions.predict(1, DIMENSION, &[(HERE, STONE)], |_| Some(&confirmed), &()));
        assert!(predictions.predict(2, DIMENSION, &[(HERE, DIRT)], |_| Some(&confirmed), &()));
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
        predictions.predict(1, DIMENSION, &[(HERE, STONE)], |_| Some(&confirmed), &());
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
        predictions.predict(1, DIMENSION, &[(HERE, STONE)], |_| Some(&confirmed), &());
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
        assert!(!predictions.predict(1, DIMENSION, &[(HERE, STONE)], |_| Some(&partial), &()));
        for number in 2..MAX_PREDICTIONS as u64 + 2 {
            assert!(predictions.predict(number, DIMENSION, &[(HERE, DIRT)], |_| Some(&confirmed), &()));
        }
        assert!(!predictions.predict(u64::MAX, DIMENSION, &[(HERE, STONE)], |_| Some(&confirmed), &()));
        assert_eq!((predictions.len(), shown(&predictions)), (MAX_PREDICTIONS, Some(DIRT)));
        predictions.follow([], 2..MAX_PREDICTIONS as u64 + 2, |_| Some(&confirmed), &());
        assert!(predictions.is_empty());
    }

    #[test]
    fn an_edit_of_several_blocks_ends_as_one_and_may_become_another() {
        let beside = BlockPos::new(HERE.x + 16, HERE.y, HERE.z);
        let confirmed = [HERE, beside].map(|position| Column::new(position.column()));
        let column = |place: Place| confirmed.iter().find(|column| column.pos() == place.1);
        let mut predictions = Predictions::default();
        assert!(predictions.predict(1, DIMENSION, &[(HERE, STONE), (beside, STONE)], column, &()));
        assert!(predictions.predict(2, DIMENSION, &[(HERE, DIRT)], column, &()));
        assert_eq!((predictions.len(), shown(&predictions)), (2, Some(DIRT)));
        assert_eq!(predictions.block_before(2, DIMENSION, HERE), Some(STONE));
        assert_eq!(predictions.block_before(1, DIMENSION, HERE), None);
        // The first becomes an edit of one block, and the second sees that.
        let other = predictions.replace(1, DIMENSION, &[(HERE, STONE)], column, &());
        assert_eq!(other.into_iter().collect::<Vec<_>>(), [(DIMENSION, beside.chunk())]);
        assert!(!predictions.is_predicted(DIMENSION, beside));
        assert!(predictions.replace(2, DIMENSION, &[(HERE, DIRT)], column, &()).is_empty(), "nothing looks different");
        assert_eq!(predictions.replace(2, DIMENSION, &[], column, &()).len(), 1);
        assert_eq!((predictions.len(), shown(&predictions)), (1, Some(STONE)));
        predictions.follow([], [1, 2], column, &());
        assert!(predictions.is_empty() && shown(&predictions).is_none());
    }
}
