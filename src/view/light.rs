//! Light in the main world: as the regions published it, and around predicted edits.

use super::{ColumnChange, ColumnChanged, PublishedColumns};
use crate::chunk::{Chunk, Column, Predictions};
use crate::light::{ColumnLight, LightBlocks, LightMap, LightTable};
use crate::space::{ChunkPos, ColumnPos, DimensionId, HeightSet};
use bevy::prelude::*;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;

/// The most columns with predicted edits whose light is predicted too. The others are lit once their edits are decided.
const MAX_COLUMNS: usize = 64;
/// The most steps of light for all predictions of a dimension in one frame. Beyond this, their light is not predicted.
const MAX_STEPS: usize = 20_000;

type Place = (DimensionId, ColumnPos);

/// The light of the published columns.
#[derive(Clone, Debug, Default)]
pub(super) struct PublishedLight {
    /// As the regions published it.
    confirmed: FxHashMap<Place, ColumnLight>,
    /// With the predicted edits, where that differs.
    predicted: FxHashMap<Place, ColumnLight>,
    /// The effects of blocks on light; `None` if there is no light in this world.
    pub table: Option<Arc<LightTable>>,
    /// The predicted light must be computed again.
    pub is_outdated: bool,
}

impl PublishedLight {
    pub fn get(&self, place: Place) -> Option<&ColumnLight> {
        self.predicted.get(&place).or_else(|| self.confirmed.get(&place))
    }

    /// Takes the published light of a column. Returns the heights at which its shown light has changed.
    pub fn publish(&mut self, place: Place, light: ColumnLight) -> HeightSet {
        let heights = match self.predicted.contains_key(&place) {
            true => HeightSet::new(),
            false => differing(self.confirmed.get(&place), Some(&light)),
        };
        self.confirmed.insert(place, light);
        heights
    }

    pub fn remove(&mut self, place: Place) {
        self.confirmed.remove(&place);
        self.predicted.remove(&place);
    }

    /// Returns `true` if any light is predicted.
    pub fn is_predicted(&self) -> bool {
        !self.predicted.is_empty()
    }
}

/// Lights the predicted edits, so that no frame shows a new block in old light.
pub(super) fn light_predictions(mut published: ResMut<PublishedColumns>, mut changed: MessageWriter<ColumnChanged>) {
    if !published.bypass_change_detection().light.is_outdated {
        return;
    }
    published.light.is_outdated = false;
    let predicted = published.light.table.clone().map(|table| predict(&published, &table)).unwrap_or_default();
    let before = mem::replace(&mut published.light.predicted, predicted);
    let light = &published.light;
    let places: BTreeSet<Place> = before.keys().chain(light.predicted.keys()).copied().collect();
    for place in places {
        let shown = before.get(&place).or_else(|| light.confirmed.get(&place));
        let heights = differing(shown, light.get(place));
        if !heights.is_empty() {
            let change = ColumnChange::Light(heights);
            changed.write(ColumnChanged { dimension: place.0, column: place.1, change });
        }
    }
}

/// The light that the predicted edits change.
fn predict(published: &PublishedColumns, table: &LightTable) -> FxHashMap<Place, ColumnLight> {
    let mut predicted = FxHashMap::default();
    let mut places: Vec<_> = published.predictions.columns().map(|(place, _)| place).collect();
    places.sort_unstable();
    places.truncate(MAX_COLUMNS);
    for edited in places.chunk_by(|one, other| one.0 == other.0) {
        let dimension = edited[0].0;
        let around = edited.iter().flat_map(|(_, column)| {
            (-1..=1).flat_map(move |x| (-1..=1).map(move |z| (dimension, column.offset(x, z))))
        });
        // Light reaches 15 blocks, so these columns have all that changes.
        let around: BTreeSet<Place> = around.collect();
        let mut map = LightMap::of_settled(around.iter().filter_map(|place| published.light.confirmed.get(place)));
        for &(_, column) in edited {
            announce(&mut map, table, published.confirmed(dimension, column), published.column(dimension, column));
        }
        if map.advance(table, &Shown { published, dimension }, MAX_STEPS) {
            let changed: BTreeSet<ColumnPos> = map.drain_changed().map(|(chunk, _)| chunk.column()).collect();
            let lit = changed.into_iter().filter_map(|column| Some(((dimension, column), map.column(column)?)));
            predicted.extend(lit);
        }
    }
    predicted
}

/// Announces the predicted chunks of a column.
fn announce(map: &mut LightMap, table: &LightTable, confirmed: Option<&Column>, shown: Option<&Column>) {
    let (Some(confirmed), Some(shown)) = (confirmed, shown) else { return };
    for (y, chunk) in shown.chunks() {
        let before = confirmed.chunk(y);
        if before.is_none_or(|before| !Arc::ptr_eq(before, chunk)) {
            map.chunk_changed(table, shown.pos().chunk(y), before.map(AsRef::as_ref), Some(&**chunk));
        }
    }
}

/// The blocks that the main world shows in a dimension.
struct Shown<'a> {
    published: &'a PublishedColumns,
    dimension: DimensionId,
}

impl LightBlocks for Shown<'_> {
    fn chunk(&self, pos: ChunkPos) -> Option<&Chunk> {
        self.published.column(self.dimension, pos.column())?.chunk(pos.y).map(AsRef::as_ref)
    }
}

/// The heights of chunks whose light differs.
fn differing(before: Option<&ColumnLight>, after: Option<&ColumnLight>) -> HeightSet {
    let heights = |light: Option<&ColumnLight>| -> Vec<i64> {
        light.into_iter().flat_map(|light| light.chunks().map(|(y, _)| y)).collect()
    };
    let all: HeightSet = heights(before).into_iter().chain(heights(after)).collect();
    let of = |light: Option<&ColumnLight>, y| light.and_then(|light| light.chunk(y)).cloned();
    all.iter().filter(|y| of(before, *y) != of(after, *y)).collect()
}

/// Marks the predicted light as outdated.
pub(super) fn outdate(published: &mut PublishedColumns) {
    let has_any = |predictions: &Predictions| !predictions.is_empty();
    published.light.is_outdated |= has_any(&published.predictions) || published.light.is_predicted();
}
