//! [`Predictions`]: edits that are shown before the world has decided on them.

use super::Column;
use crate::block::{BlockComponentId, BlockId, BlockLayout};
use crate::space::{BlockPos, ChunkPos, ColumnPos, DimensionId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// The maximum number of predicted edits. More edits are shown when the world has made them.
const MAX_PREDICTIONS: usize = 4_096;

/// A column of a dimension.
type Place = (DimensionId, ColumnPos);

/// A change of the block at a place, in layer 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockChange {
    /// It becomes this block, with unset components.
    Block(BlockId),
    /// A component of it gets this value.
    Component(BlockComponentId, Vec<u8>),
}

/// Edits whose outcome is not known yet, over *confirmed* columns, which are those of the world. An edit changes one block or several.
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
    edits: BTreeMap<u64, Vec<(BlockPos, BlockChange)>>,
    /// The confirmed column with these edits; `None` while it is not loaded.
    shown: Option<Column>,
}

impl PredictedColumn {
    /// Shows the edits over a confirmed column.
    fn show(&mut self, confirmed: Option<&Column>, layout: &impl BlockLayout) {
        self.shown = confirmed.cloned();
        let Some(shown) = &mut self.shown else { return };
        for (position, change) in self.edits.values().flatten() {
            if shown.is_loaded(position.chunk().y) {
                apply(shown, *position, change, layout);
            }
        }
    }
}

impl Predictions {
    /// Predicts an edit of blocks, whose changes are made in this order. Its number is higher than those of all earlier edits. Returns `false` if
    /// it is not shown: there are too many, or a block is not loaded.
    pub fn predict<'a>(
        &mut self,
        number: u64,
        dimension: DimensionId,
        changes: &[(BlockPos, BlockChange)],
        confirmed: impl Fn(Place) -> Option<&'a Column>,
        layout: &impl BlockLayout,
    ) -> bool {
        let is_loaded = |(position, _): &(BlockPos, BlockChange)| {
            confirmed((dimension, position.column())).is_some_and(|column| column.is_loaded(position.chunk().y))
        };
        if self.places.len() >= MAX_PREDICTIONS || changes.is_empty() || !changes.iter().all(is_loaded) {
            return false;
        }
        for (position, change) in changes {
            let place = (dimension, position.column());
            let column = self.columns.entry(place).or_default();
            if column.shown.is_none() {
                column.shown = confirmed(place).cloned();
            }
            if let Some(shown) = &mut column.shown {
                apply(shown, *position, change, layout);
            }
            column.edits.entry(number).or_default().push((*position, change.clone()));
            let places = self.places.entry(number).or_default();
            if !places.contains(&place) {
                places.push(place);
            }
        }
        true
    }

    /// Changes what an edit does, since the world is other than it was predicted on. It may also change nothing at all. Returns the chunks
    /// that look different now.
    pub fn replace<'a>(
        &mut self,
        number: u64,
        dimension: DimensionId,
        changes: &[(BlockPos, BlockChange)],
        confirmed: impl Fn(Place) -> Option<&'a Column>,
        layout: &impl BlockLayout,
    ) -> FxHashSet<(DimensionId, ChunkPos)> {
        let mut concerned: BTreeMap<Place, Option<Column>> = BTreeMap::new();
        let old = self.places.remove(&number).unwrap_or_default();
        let new = changes.iter().map(|(position, _)| (dimension, position.column()));
        for place in old.iter().copied().chain(new) {
            let before = || self.columns.get(&place).and_then(|column| column.shown.clone());
            concerned.entry(place).or_insert_with(|| before().or_else(|| confirmed(place).cloned()));
            if let Some(column) = self.columns.get_mut(&place) {
                column.edits.remove(&number);
            }
        }
        for (position, change) in changes {
            let place = (dimension, position.column());
            let edits = &mut self.columns.entry(place).or_default().edits;
            edits.entry(number).or_default().push((*position, change.clone()));
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
                let changes = column.edits.remove(&number).unwrap_or_default();
                let shown = column.shown.clone();
                ended.extend(changes.into_iter().map(|(position, _)| (place, position, shown.clone())));
                outdated.insert(place);
            }
        }
        outdated.into_iter().for_each(|place| self.refresh(place, confirmed(place), layout));
        let is_other = |(place, position, before): &(Place, BlockPos, Option<Column>)| {
            let shown = self.column(*place).or_else(|| confirmed(*place));
            match (before, shown) {
                (Some(before), Some(shown)) => !is_same(before, shown, *position),
                (before, shown) => before.is_some() || shown.is_some(),
            }
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
        self.changes_before(number, dimension, position).find_map(|change| match change {
            BlockChange::Block(block) => Some(*block),
            BlockChange::Component(..) => None,
        })
    }

    /// The component that a block has after the edits before this number, if one of them changes it; `Some(None)` if they make it a
    /// block without the component.
    pub fn component_before(
        &self,
        number: u64,
        dimension: DimensionId,
        position: BlockPos,
        component: BlockComponentId,
        layout: &impl BlockLayout,
    ) -> Option<Option<Vec<u8>>> {
        self.changes_before(number, dimension, position).find_map(|change| match change {
            BlockChange::Component(of, value) if *of == component => Some(Some(value.clone())),
            BlockChange::Component(..) => None,
            BlockChange::Block(block) => Some(layout.component_layout(*block, component).map(|layout| layout.unset())),
        })
    }

    /// The changes of a block by edits before this number, the last one first.
    fn changes_before(
        &self,
        number: u64,
        dimension: DimensionId,
        position: BlockPos,
    ) -> impl Iterator<Item = &BlockChange> {
        let column = self.columns.get(&(dimension, position.column()));
        let edits = column.into_iter().flat_map(move |column| column.edits.range(..number).rev());
        let changes = edits.flat_map(|(_, changes)| changes.iter().rev());
        changes.filter(move |(of, _)| *of == position).map(|(_, change)| change)
    }

    /// The columns with predictions that are loaded, as they are shown.
    pub fn columns(&self) -> impl Iterator<Item = (Place, &Column)> {
        self.columns.iter().filter_map(|(place, column)| Some((*place, column.shown.as_ref()?)))
    }

    /// Returns `true` if the shown block is predicted.
    pub fn is_predicted(&self, dimension: DimensionId, position: BlockPos) -> bool {
        self.changes_before(u64::MAX, dimension, position).next().is_some()
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

/// Changes a block as a region does.
fn apply(column: &mut Column, position: BlockPos, change: &BlockChange, layout: &impl BlockLayout) {
    match change {
        BlockChange::Block(block) => match layout.components(*block) {
            [] => _ = column.set_block(position, *block),
            _ if column.block(position) == *block => {}
            // Layer 0 always exists.
            _ => _ = column.chunk_mut(position.chunk().y).place_block(layout, position.in_chunk(), 0, *block),
        },
        // The world may have another block there by now, without the component.
        BlockChange::Component(component, value) => {
            _ = column.chunk_mut(position.chunk().y).set_component(layout, position.in_chunk(), 0, *component, value);
        }
    }
}

/// Returns `true` if a block is the same in both columns, with its components.
fn is_same(one: &Column, other: &Column, position: BlockPos) -> bool {
    let components = |column: &'_ Column| -> Vec<(BlockComponentId, Vec<u8>)> {
        let chunk = column.chunk(position.chunk().y).filter(|chunk| chunk.has_components());
        let components = chunk.iter().flat_map(|chunk| chunk.components(position.in_chunk(), 0));
        components.map(|(component, value)| (component, value.to_vec())).collect()
    };
    one.block(position) == other.block(position) && components(one) == components(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BlockComponentLayout;

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

    fn set(position: BlockPos, block: BlockId) -> (BlockPos, BlockChange) {
        (position, BlockChange::Block(block))
    }

    fn shown(predictions: &Predictions) -> Option<BlockId> {
        predictions.column(place()).map(|column| column.block(HERE))
    }

    #[test]
    fn a_later_prediction_stands_on_an_earlier_one() {
        let confirmed = with(BlockId::AIR);
        let mut predictions = Predictions::default();
        assert!(predictions.predict(1, DIMENSION, &[set(HERE, STONE)], |_| Some(&confirmed), &()));
        assert!(predictions.predict(2, DIMENSION, &[set(HERE, DIRT)], |_| Some(&confirmed), &()));
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
        predictions.predict(1, DIMENSION, &[set(HERE, STONE)], |_| Some(&confirmed), &());
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
        predictions.predict(1, DIMENSION, &[set(HERE, STONE)], |_| Some(&confirmed), &());
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
        assert!(!predictions.predict(1, DIMENSION, &[set(HERE, STONE)], |_| Some(&partial), &()));
        for number in 2..MAX_PREDICTIONS as u64 + 2 {
            assert!(predictions.predict(number, DIMENSION, &[set(HERE, DIRT)], |_| Some(&confirmed), &()));
        }
        assert!(!predictions.predict(u64::MAX, DIMENSION, &[set(HERE, STONE)], |_| Some(&confirmed), &()));
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
        assert!(predictions.predict(1, DIMENSION, &[set(HERE, STONE), set(beside, STONE)], column, &()));
        assert!(predictions.predict(2, DIMENSION, &[set(HERE, DIRT)], column, &()));
        assert_eq!((predictions.len(), shown(&predictions)), (2, Some(DIRT)));
        assert_eq!(predictions.block_before(2, DIMENSION, HERE), Some(STONE));
        assert_eq!(predictions.block_before(1, DIMENSION, HERE), None);
        // The first becomes an edit of one block, and the second sees that.
        let other = predictions.replace(1, DIMENSION, &[set(HERE, STONE)], column, &());
        assert_eq!(other.into_iter().collect::<Vec<_>>(), [(DIMENSION, beside.chunk())]);
        assert!(!predictions.is_predicted(DIMENSION, beside));
        assert!(
            predictions.replace(2, DIMENSION, &[set(HERE, DIRT)], column, &()).is_empty(),
            "nothing looks different"
        );
        assert_eq!(predictions.replace(2, DIMENSION, &[], column, &()).len(), 1);
        assert_eq!((predictions.len(), shown(&predictions)), (1, Some(STONE)));
        predictions.follow([], [1, 2], column, &());
        assert!(predictions.is_empty() && shown(&predictions).is_none());
    }

    /// Promise, predictions: Components of blocks are predicted as blocks are.
    #[test]
    fn components_of_blocks_are_predicted() {
        let fuel = BlockComponentId::new(4);
        let layout = vec![BlockComponentLayout { id: fuel, size: Some(1) }];
        let burning = |value: u8| (HERE, BlockChange::Component(fuel, vec![value]));
        let with_fuel = |value: u8| {
            let mut column = with(STONE);
            let chunk = column.chunk_mut(HERE.chunk().y);
            chunk.set_component(&layout, HERE.in_chunk(), 0, fuel, &[value]).unwrap();
            column
        };
        let fuel_of =
            |column: &Column| column.chunk(HERE.chunk().y)?.component(HERE.in_chunk(), 0, fuel)?.first().copied();
        let confirmed = with_fuel(5);
        let mut predictions = Predictions::default();
        assert!(predictions.predict(1, DIMENSION, &[burning(4)], |_| Some(&confirmed), &layout));
        assert_eq!(predictions.column(place()).and_then(fuel_of), Some(4));
        assert!(predictions.is_predicted(DIMENSION, HERE));
        assert_eq!(predictions.block_before(2, DIMENSION, HERE), None, "it is the same block");
        assert_eq!(predictions.component_before(1, DIMENSION, HERE, fuel, &layout), None);
        assert_eq!(predictions.component_before(2, DIMENSION, HERE, fuel, &layout), Some(Some(vec![4])));
        // Another block begins with an unset component.
        assert!(predictions.predict(2, DIMENSION, &[set(HERE, DIRT)], |_| Some(&confirmed), &layout));
        assert_eq!(predictions.component_before(3, DIMENSION, HERE, fuel, &layout), Some(Some(vec![0])));
        assert_eq!(predictions.component_before(3, DIMENSION, HERE, fuel, &()), Some(None));
        assert_eq!(predictions.column(place()).and_then(fuel_of), Some(0));
        assert_eq!(predictions.replace(2, DIMENSION, &[], |_| Some(&confirmed), &layout).len(), 1);
        predictions.follow([], [2], |_| Some(&confirmed), &layout);
        // The world had another amount, or another block without fuel.
        let [less, same] = [3, 4].map(with_fuel);
        assert_eq!(predictions.clone().follow([place()], [1], |_| Some(&less), &layout).len(), 1);
        assert!(predictions.clone().follow([place()], [1], |_| Some(&same), &layout).is_empty(), "as predicted");
        let air = with(BlockId::AIR);
        predictions.follow([place()], [], |_| Some(&air), &());
        assert_eq!(predictions.column(place()).and_then(fuel_of), None);
        assert_eq!(predictions.follow([], [1], |_| Some(&air), &()).len(), 0, "nothing of it was shown");
    }
}
