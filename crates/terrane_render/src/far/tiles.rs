//! Tiles of far columns, the summaries of their columns, and their meshes.

use super::super::queue::{ColumnKey, nearest};
use bevy::prelude::*;
use bevy_terrane::chunk::{ColumnSummary, Detail, SummaryCell};
use bevy_terrane::space::{CHUNK_SIZE, ColumnPos};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The tile of a column, a square of [`TILE`] columns a side that is identified by its lowest column.
pub(super) fn tile_of((dimension, column): ColumnKey) -> ColumnKey {
    (dimension, column.offset(-column.x.rem_euclid(TILE), -column.z.rem_euclid(TILE)))
}

/// A tile waits until it has not changed for so many frames..
const CALM: u64 = 3;
/// ..or until it has waited for so many.
const PATIENCE: u64 = 20;

/// The far columns, the tiles with a mesh, and the tiles that need a new one.
///
/// A tile without a loaded column has one mesh. A tile with loaded columns is split: each column has its own mesh, so
/// that it can be hidden in the frame in which its chunks are drawn, and shown in the frame in which they go.
#[derive(Default)]
pub(super) struct FarTiles {
    columns: FxHashMap<ColumnKey, Arc<ColumnSummary>>,
    /// Loaded columns, with or without a summary.
    loaded: FxHashSet<ColumnKey>,
    /// The tiles by their lowest columns.
    tiles: FxHashMap<ColumnKey, Tile>,
    stale: FxHashMap<ColumnKey, Stale>,
    frame: u64,
}

#[derive(Default)]
struct Tile {
    /// The number of its columns with a summary.
    columns: usize,
    loaded: usize,
    is_running: bool,
    shown: Vec<Entity>,
}

#[derive(Clone, Copy)]
struct Stale {
    since: u64,
    changed: u64,
}

impl FarTiles {
    /// Sets the summary of a column; `None` removes it.
    pub fn set(&mut self, key: ColumnKey, summary: Option<Arc<ColumnSummary>>) {
        let before = match summary {
            Some(summary) => self.columns.insert(key, summary),
            None => self.columns.remove(&key),
        };
        let is_known = self.columns.contains_key(&key);
        if before.is_none() && !is_known {
            return;
        }
        let tile = self.tiles.entry(tile_of(key)).or_default();
        tile.columns = tile.columns + usize::from(is_known) - usize::from(before.is_some());
        // Walls and shades of the columns around it depend on it too.
        let beside = (-1..=1).flat_map(|x| (-1..=1).map(move |z| tile_of((key.0, key.1.offset(x, z)))));
        beside.collect::<FxHashSet<_>>().into_iter().for_each(|tile| self.touch(tile));
    }

    /// Notes that a column was loaded or unloaded.
    pub fn set_loaded(&mut self, key: ColumnKey, is_loaded: bool) {
        let has_changed = if is_loaded { self.loaded.insert(key) } else { self.loaded.remove(&key) };
        if !has_changed {
            return;
        }
        let tile = self.tiles.entry(tile_of(key)).or_default();
        let before = tile.loaded;
        tile.loaded = if is_loaded { before + 1 } else { before - 1 };
        if (before == 0) != (tile.loaded == 0) {
            self.touch(tile_of(key));
        }
        self.drop_empty(tile_of(key));
    }

    fn touch(&mut self, key: ColumnKey) {
        if self.tiles.contains_key(&key) {
            let frame = self.frame;
            self.stale.entry(key).or_insert(Stale { since: frame, changed: frame }).changed = frame;
        }
    }

    /// Notes that the looks of blocks have changed.
    pub fn touch_all(&mut self) {
        let all: Vec<_> = self.tiles.keys().copied().collect();
        all.into_iter().for_each(|tile| self.touch(tile));
    }

    fn drop_empty(&mut self, key: ColumnKey) {
        let is_empty = |tile: &Tile| tile.columns + tile.loaded == 0 && tile.shown.is_empty() && !tile.is_running;
        if self.tiles.get(&key).is_some_and(is_empty) {
            self.tiles.remove(&key);
            self.stale.remove(&key);
        }
    }

    /// Begins a frame.
    pub fn next_frame(&mut self) {
        self.frame += 1;
    }

    /// All columns with a summary.
    pub fn columns(&self) -> impl Iterator<Item = ColumnKey> {
        self.columns.keys().copied()
    }

    /// The number of tiles that wait for a mesh.
    pub fn queued(&self) -> usize {
        self.stale.len()
    }

    /// The number of meshes, shown or hidden.
    pub fn meshes(&self) -> usize {
        self.tiles.values().map(|tile| tile.shown.len()).sum()
    }

    /// The tiles whose turn it is, nearest first, at most `most`.
    pub fn nearest(&self, most: usize, distance: impl Fn(ColumnPos) -> u128) -> Vec<ColumnKey> {
        let is_due = |(key, stale): &(&ColumnKey, &Stale)| {
            let has_waited = self.frame >= stale.changed + CALM || self.frame >= stale.since + PATIENCE;
            has_waited && self.tiles.get(*key).is_some_and(|tile| !tile.is_running)
        };
        let middle = |key: &ColumnKey| key.1.offset(TILE / 2, TILE / 2);
        let due = self.stale.iter().filter(is_due).map(|(key, _)| (distance(middle(key)), *key));
        nearest(due.collect(), most)
    }

    /// Begins the meshes of a tile. Returns its present summaries, and `true` if each column gets a mesh of its own.
    pub fn begin(&mut self, key: ColumnKey) -> Option<(FarGround, bool)> {
        self.stale.remove(&key);
        let tile = self.tiles.get_mut(&key)?;
        tile.is_running = true;
        let is_split = tile.loaded > 0;
        let ground = FarGround::from_fn(|x, z| self.columns.get(&(key.0, key.1.offset(x, z))).cloned());
        Some((ground, is_split))
    }

    /// Sets the meshes that [`begin`](Self::begin) announced. Returns those that they replace.
    pub fn finish(&mut self, key: ColumnKey, meshes: Vec<Entity>) -> Vec<Entity> {
        let Some(tile) = self.tiles.get_mut(&key) else { return meshes };
        tile.is_running = false;
        let before = std::mem::replace(&mut tile.shown, meshes);
        self.drop_empty(key);
        before
    }
}

/// The number of columns along a side of a tile.
pub(super) const TILE: i64 = 8;
/// The same with one more on each side.
const PADDED: usize = TILE as usize + 2;
const SIZE: i64 = CHUNK_SIZE as i64;

/// The summaries of the columns of a tile and those around it.
#[derive(Clone, Default)]
pub(super) struct FarGround {
    columns: [[Option<Arc<ColumnSummary>>; PADDED]; PADDED],
}

impl FarGround {
    /// `column` returns the columns by their offset from the tile's lowest one: -1 to 8.
    pub fn from_fn(mut column: impl FnMut(i64, i64) -> Option<Arc<ColumnSummary>>) -> Self {
        let columns = std::array::from_fn(|x| std::array::from_fn(|z| column(x as i64 - 1, z as i64 - 1)));
        Self { columns }
    }

    pub fn column(&self, x: i64, z: i64) -> Option<&ColumnSummary> {
        self.columns[(x + 1) as usize][(z + 1) as usize].as_deref()
    }

    /// The detail of the column with a block, relative to the tile's lowest block.
    pub fn detail(&self, x: i64, z: i64) -> Option<Detail> {
        Some(self.column(x.div_euclid(SIZE), z.div_euclid(SIZE))?.detail())
    }

    /// The visible cell at a block, relative to the tile's lowest block.
    pub fn surface(&self, x: i64, z: i64) -> Option<SummaryCell> {
        let column = self.column(x.div_euclid(SIZE), z.div_euclid(SIZE))?;
        let cell = |block: i64| block.rem_euclid(SIZE) as usize / column.detail().cell_size();
        column.surface(cell(x), cell(z))
    }

    /// The lowest height in the tile's own columns.
    pub fn lowest(&self) -> Option<i64> {
        let own = (0..TILE).flat_map(|x| (0..TILE).map(move |z| (x, z)));
        own.filter_map(|(x, z)| Some(self.column(x, z)?.heights()?.0)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bevy_terrane::chunk::Column;
    use bevy_terrane::space::DimensionId;

    const DIMENSION: DimensionId = DimensionId(0);

    fn key(x: i64, z: i64) -> ColumnKey {
        (DIMENSION, ColumnPos::new(x, z))
    }

    fn summary() -> Option<Arc<ColumnSummary>> {
        Some(Arc::new(ColumnSummary::new(&Column::new(ColumnPos::new(0, 0)))))
    }

    fn tile(x: i64, z: i64) -> ColumnKey {
        key(x * TILE, z * TILE)
    }

    fn mesh(number: u32) -> Entity {
        Entity::from_raw_u32(number).unwrap()
    }

    fn due(tiles: &FarTiles) -> Vec<ColumnKey> {
        tiles.nearest(usize::MAX, |middle| middle.distance_squared(ColumnPos::new(0, 0)))
    }

    #[test]
    fn a_tile_is_named_by_its_lowest_column() {
        for (x, z, lowest) in [(0, 7, (0, 0)), (8, -1, (8, -8)), (-8, -9, (-8, -16))] {
            assert_eq!(tile_of(key(x, z)), key(lowest.0, lowest.1));
        }
    }

    fn wait(tiles: &mut FarTiles) {
        (0..CALM).for_each(|_| tiles.next_frame());
    }

    #[test]
    fn a_tile_waits_until_it_is_calm_but_not_for_ever() {
        let mut tiles = FarTiles::default();
        tiles.set(key(3, 3), summary());
        assert!(due(&tiles).is_empty() && tiles.queued() == 1);
        wait(&mut tiles);
        assert_eq!(due(&tiles), [tile(0, 0)]);
        for _ in CALM..PATIENCE {
            tiles.set(key(3, 3), summary());
            assert!(due(&tiles).is_empty());
            tiles.next_frame();
        }
        assert_eq!(due(&tiles), [tile(0, 0)]);
    }

    #[test]
    fn a_column_on_a_border_touches_the_tiles_beside_it() {
        let mut tiles = FarTiles::default();
        for (x, z) in [(-3, 3), (12, 3), (3, 3)] {
            tiles.set(key(x, z), summary());
        }
        wait(&mut tiles);
        for tile in due(&tiles) {
            tiles.begin(tile);
            assert!(tiles.finish(tile, vec![mesh(1)]).is_empty());
        }
        tiles.set(key(7, 3), summary());
        wait(&mut tiles);
        assert_eq!(due(&tiles), [tile(0, 0), tile(1, 0)]);
    }

    #[test]
    fn a_tile_is_split_while_one_of_its_columns_is_loaded() {
        let mut tiles = FarTiles::default();
        tiles.set(key(3, 3), summary());
        tiles.set_loaded(key(4, 4), true);
        wait(&mut tiles);
        assert!(tiles.begin(tile(0, 0)).unwrap().1);
        tiles.finish(tile(0, 0), vec![mesh(1)]);
        tiles.set_loaded(key(5, 4), true);
        tiles.set_loaded(key(4, 4), false);
        assert_eq!(tiles.queued(), 0);
        tiles.set_loaded(key(5, 4), false);
        wait(&mut tiles);
        assert_eq!(due(&tiles), [tile(0, 0)]);
        assert!(!tiles.begin(tile(0, 0)).unwrap().1);
        assert_eq!(tiles.finish(tile(0, 0), vec![mesh(2)]), [mesh(1)]);
    }

    #[test]
    fn what_is_gone_leaves_nothing_behind() {
        let mut tiles = FarTiles::default();
        tiles.set(key(3, 3), summary());
        tiles.set_loaded(key(3, 3), true);
        tiles.begin(tile(0, 0));
        tiles.set(key(3, 3), None);
        tiles.set(key(3, 3), None);
        tiles.set_loaded(key(3, 3), false);
        tiles.finish(tile(0, 0), vec![mesh(1)]);
        wait(&mut tiles);
        assert_eq!(due(&tiles), [tile(0, 0)], "what was made of it is to go");
        tiles.begin(tile(0, 0));
        assert_eq!(tiles.finish(tile(0, 0), Vec::new()), [mesh(1)]);
        assert!(
            tiles.tiles.is_empty() && tiles.columns.is_empty() && tiles.loaded.is_empty() && tiles.stale.is_empty()
        );
    }
}
