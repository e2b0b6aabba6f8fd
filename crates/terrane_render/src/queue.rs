//! The queue of chunks to mesh, nearest first.

use super::neighborhood::Near;
use bevy::prelude::*;
use bevy_terrane::block::BlockId;
use bevy_terrane::chunk::{Chunk, Column};
use bevy_terrane::light::{ChunkLight, ColumnLight};
use bevy_terrane::space::{CHUNK_SIZE, CHUNK_VOLUME, ChunkPos, ColumnPos, DimensionId, HeightSet, cell_position};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::time::Duration;

/// A column of one of the dimensions.
pub(super) type ColumnKey = (DimensionId, ColumnPos);

/// How long a column waits for its light. A halted region does not send any.
const LIGHT_WAIT: Duration = Duration::from_secs(1);

/// The chunks that need a new mesh. A column's turn comes when it and the eight columns around it have *arrived*: they are loaded,
/// and their light is known or was waited for. From then on the column is finished even if some of them go: a half meshed column
/// would be drawn both by its chunks and by the far view.
///
/// `Shown` is what a chunk's mesh consists of.
pub(super) struct MeshQueue<Shown> {
    columns: FxHashMap<ColumnKey, Tracked<Shown>>,
    /// Columns with chunks to mesh now.
    ready: FxHashSet<ColumnKey>,
    /// Columns that waited for their light when they were loaded, with the time of that, and with columns that are lit by now.
    unlit: VecDeque<(Duration, ColumnKey)>,
    /// Incremented when a column was drawn for the first time, and when a drawn column left.
    drawn_changes: u64,
}

impl<Shown> Default for MeshQueue<Shown> {
    fn default() -> Self {
        Self { columns: default(), ready: default(), unlit: default(), drawn_changes: 0 }
    }
}

struct Tracked<Shown> {
    /// The state at the last check, to find the cells that a change touches.
    seen: Column,
    /// `None` counts as open sky.
    light: Option<ColumnLight>,
    has_arrived: bool,
    /// The number of columns among the eight around it that have arrived.
    neighbors: usize,
    /// The heights of chunks whose mesh is outdated; `None` for all.
    stale: Option<BTreeSet<i64>>,
    running: BTreeSet<i64>,
    shown: BTreeMap<i64, Shown>,
    /// `true` once all of its meshes have been shown. Later changes do not reset it.
    is_drawn: bool,
}

const AROUND: [(i64, i64); 8] = [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)];

impl<Shown> MeshQueue<Shown> {
    /// Adds a column, or replaces its state. A new column without light waits for it if `waits_from` is the present time, and
    /// not if it is `None`.
    pub fn load(
        &mut self,
        dimension: DimensionId,
        column: &Column,
        light: Option<&ColumnLight>,
        waits_from: Option<Duration>,
    ) {
        let key = (dimension, column.pos());
        if let Some(tracked) = self.columns.get_mut(&key) {
            (tracked.seen, tracked.light, tracked.stale) = (column.clone(), light.cloned(), None);
        } else {
            let neighbors = around(key).filter(|key| self.columns.get(key).is_some_and(|beside| beside.has_arrived));
            let tracked = Tracked {
                seen: column.clone(),
                light: light.cloned(),
                has_arrived: false,
                neighbors: neighbors.count(),
                stale: None,
                running: default(),
                shown: default(),
                is_drawn: false,
            };
            self.columns.insert(key, tracked);
        }
        match waits_from {
            Some(now) if light.is_none() => self.unlit.push_back((now, key)),
            _ => self.arrive(key),
        }
        self.outdate_around(key);
        self.refresh(key);
    }

    /// Lets the columns around a column begin, as far as it is up to this one.
    fn arrive(&mut self, key: ColumnKey) {
        let Some(tracked) = self.columns.get_mut(&key).filter(|tracked| !tracked.has_arrived) else { return };
        tracked.has_arrived = true;
        for beside in around(key) {
            if let Some(tracked) = self.columns.get_mut(&beside) {
                tracked.neighbors += 1;
            }
            self.refresh(beside);
        }
        self.refresh(key);
    }

    fn outdate_around(&mut self, key: ColumnKey) {
        for beside in around(key) {
            if let Some(tracked) = self.columns.get_mut(&beside) {
                tracked.stale = None;
            }
            self.refresh(beside);
        }
    }

    /// Lets columns that have waited for their light for long enough begin without it.
    pub fn stop_waiting(&mut self, now: Duration) {
        while let Some((_, key)) = self.unlit.pop_front_if(|(since, _)| now.saturating_sub(*since) >= LIGHT_WAIT) {
            self.arrive(key);
        }
    }

    /// Updates the light of a column. The chunks that contain or touch a cell whose light has changed need a new mesh.
    pub fn relight(&mut self, key: ColumnKey, light: Option<&ColumnLight>) {
        let Some(tracked) = self.columns.get_mut(&key) else { return };
        let before = std::mem::replace(&mut tracked.light, light.cloned());
        let heights: BTreeSet<i64> =
            [before.as_ref(), light].into_iter().flatten().flat_map(|light| light.chunks().map(|(y, _)| y)).collect();
        for y in heights {
            if let Some(cells) = light_at(before.as_ref(), y).differing_cells(&light_at(light, y)) {
                self.touch_around(key.0, key.1.chunk(y), cells);
            }
        }
        if light.is_some() {
            self.arrive(key);
        }
    }

    /// Removes a column. Returns its meshes.
    pub fn unload(&mut self, key: ColumnKey) -> impl Iterator<Item = Shown> + use<Shown> {
        let gone = self.columns.remove(&key);
        if let Some(gone) = &gone {
            self.ready.remove(&key);
            self.drawn_changes += u64::from(gone.is_drawn);
            for beside in around(key) {
                if let Some(tracked) = self.columns.get_mut(&beside) {
                    tracked.neighbors -= usize::from(gone.has_arrived);
                    self.refresh(beside);
                }
            }
        }
        gone.into_iter().flat_map(|tracked| tracked.shown.into_values())
    }

    /// Updates a column of which these chunk heights were loaded or unloaded.
    pub fn resize(&mut self, dimension: DimensionId, column: &Column, heights: &HeightSet) {
        let key = (dimension, column.pos());
        let Some(tracked) = self.columns.get_mut(&key) else { return };
        tracked.seen = column.clone();
        let touched = || heights.ranges().flat_map(|range| range.start.saturating_sub(1)..range.end.saturating_add(1));
        around(key).chain([key]).for_each(|key| self.touch(key, touched()));
    }

    /// Updates a chunk. It needs a new mesh, and so do the chunks around it that touch the change.
    pub fn change(&mut self, dimension: DimensionId, position: ChunkPos, chunk: &Arc<Chunk>) {
        let Some(tracked) = self.columns.get_mut(&(dimension, position.column())) else { return };
        let before = tracked.seen.set_chunk(position.y, chunk.clone()).unwrap_or_default();
        let Some(changed) = changed_cells(&before, chunk) else { return };
        self.touch_around(dimension, position, changed);
    }

    /// Marks the meshes of the chunks that contain or touch some of these cells of a chunk as outdated.
    fn touch_around(&mut self, dimension: DimensionId, position: ChunkPos, cells: [RangeInclusive<usize>; 3]) {
        let [xs, ys, zs] = cells.map(touched_offsets);
        for (dx, dz) in xs.flat_map(|dx| zs.clone().map(move |dz| (dx, dz))) {
            let key = (dimension, position.column().offset(dx, dz));
            self.touch(key, ys.clone().map(|dy| position.y.saturating_add(dy)));
        }
    }

    /// Marks all meshes as outdated: the looks of blocks have changed.
    pub fn change_looks(&mut self) {
        let all: Vec<_> = self.columns.keys().copied().collect();
        for key in all {
            if let Some(tracked) = self.columns.get_mut(&key) {
                tracked.stale = None;
            }
            self.refresh(key);
        }
    }

    /// Marks the meshes at these heights as outdated.
    fn touch(&mut self, key: ColumnKey, heights: impl Iterator<Item = i64>) {
        let Some(tracked) = self.columns.get_mut(&key) else { return };
        let Tracked { seen, stale, running, shown, .. } = tracked;
        if let Some(stale) = stale {
            // Without blocks, there is nothing to draw.
            let is_empty = |y| seen.chunk(y).is_none() && !shown.contains_key(&y) && !running.contains(&y);
            stale.extend(heights.filter(|y| !is_empty(*y)));
        }
        self.refresh(key);
    }

    /// The number of waiting chunks in columns whose turn has come, or that wait for their light.
    pub fn queued(&self) -> usize {
        let unlit = self.unlit.iter().map(|(_, key)| key).filter(|key| !self.has_arrived(**key));
        let waiting: FxHashSet<_> = self.ready.iter().chain(unlit).collect();
        waiting.into_iter().filter_map(|key| self.columns.get(key)).map(Tracked::stale_count).sum()
    }

    fn has_arrived(&self, key: ColumnKey) -> bool {
        self.columns.get(&key).is_none_or(|tracked| tracked.has_arrived)
    }

    /// The number of meshes that are shown.
    pub fn meshes(&self) -> usize {
        self.columns.values().map(|tracked| tracked.shown.len()).sum()
    }

    /// The columns with chunks to mesh, nearest first, at most `most`.
    pub fn nearest(&self, most: usize, distance: impl Fn(ColumnPos) -> u128) -> Vec<ColumnKey> {
        nearest(self.ready.iter().map(|key| (distance(key.1), *key)).collect(), most)
    }

    /// The chunks of a column that need a mesh and for which none is being made, from the top down.
    pub fn waiting(&mut self, key: ColumnKey) -> Vec<i64> {
        let Some(tracked) = self.columns.get_mut(&key) else { return Vec::new() };
        let stale = tracked.stale.get_or_insert_with(|| {
            let heights = tracked.seen.chunks().map(|(y, _)| y);
            heights.chain(tracked.shown.keys().copied()).collect()
        });
        let waiting = stale.iter().rev().filter(|y| !tracked.running.contains(y)).copied().collect();
        self.refresh(key);
        waiting
    }

    /// A chunk and its present surroundings. The space below the chunk heights of the dimension, and places around the chunk that
    /// are not loaded, are solid.
    pub fn blocks_around(
        &self,
        (dimension, column): ColumnKey,
        y: i64,
        heights: &Range<i64>,
    ) -> impl Fn([i64; 3]) -> Near {
        let columns: [[Option<&Column>; 3]; 3] = [-1, 0, 1].map(|dx| {
            [-1, 0, 1].map(|dz| self.columns.get(&(dimension, column.offset(dx, dz))).map(|tracked| &tracked.seen))
        });
        move |[dx, dy, dz]| {
            let height = y.saturating_add(dy);
            if height < heights.start {
                return Near::Solid;
            }
            let beside = columns[(dx + 1) as usize][(dz + 1) as usize];
            if heights.contains(&height) && beside.is_some_and(|column| !column.is_loaded(height)) {
                // A chunk that is not loaded itself is not drawn.
                return if [dx, dy, dz] == [0; 3] { Near::Air } else { Near::Solid };
            }
            beside.and_then(|column| column.chunk(height)).map_or(Near::Air, |chunk| Near::Chunk(chunk.clone()))
        }
    }

    /// The light of a chunk and of its surroundings, by offset.
    pub fn light_around(&self, (dimension, column): ColumnKey, y: i64) -> impl Fn([i64; 3]) -> ChunkLight {
        let columns = [-1, 0, 1].map(|dx| {
            [-1, 0, 1].map(|dz| self.columns.get(&(dimension, column.offset(dx, dz))).and_then(|it| it.light.as_ref()))
        });
        move |[dx, dy, dz]| light_at(columns[(dx + 1) as usize][(dz + 1) as usize], y.saturating_add(dy))
    }

    /// Begins a mesh of the newest blocks of a chunk.
    pub fn begin(&mut self, key: ColumnKey, y: i64) {
        let Some(tracked) = self.columns.get_mut(&key) else { return };
        if let Some(stale) = &mut tracked.stale {
            stale.remove(&y);
        }
        tracked.running.insert(y);
        self.refresh(key);
    }

    /// Finishes the mesh that [`begin`](Self::begin) announced. `show` gets the old mesh, and returns
    /// the new one, or `None` if nothing is visible. If the chunk changed meanwhile, it still waits for its turn.
    pub fn finish(&mut self, key: ColumnKey, y: i64, show: impl FnOnce(Option<Shown>) -> Option<Shown>) {
        let Some(tracked) = self.columns.get_mut(&key) else { return };
        tracked.running.remove(&y);
        if let Some(shown) = show(tracked.shown.remove(&y)) {
            tracked.shown.insert(y, shown);
        }
        self.refresh(key);
    }

    /// Returns `true` if the column is loaded. A column that left has no mesh in the making.
    pub fn contains(&self, key: ColumnKey) -> bool {
        self.columns.contains_key(&key)
    }

    /// Returns `true` if all of a column is shown, in its present state or, just after a change, the one before.
    pub fn is_drawn(&self, key: ColumnKey) -> bool {
        self.columns.get(&key).is_some_and(|tracked| tracked.is_drawn)
    }

    /// A number that changes whenever [`is_drawn`](Self::is_drawn) may have changed.
    pub fn drawn_changes(&self) -> u64 {
        self.drawn_changes
    }

    fn refresh(&mut self, key: ColumnKey) {
        let Some(tracked) = self.columns.get_mut(&key) else { return };
        if !tracked.is_drawn && tracked.is_settled() {
            tracked.is_drawn = true;
            self.drawn_changes += 1;
        }
        if tracked.is_ready() {
            self.ready.insert(key);
        } else {
            self.ready.remove(&key);
        }
    }
}

impl<Shown> Tracked<Shown> {
    /// Returns `true` if every mesh is up to date.
    fn is_settled(&self) -> bool {
        self.running.is_empty() && self.stale.as_ref().is_some_and(BTreeSet::is_empty)
    }

    /// Returns `true` if a mesh is to be begun now.
    fn is_ready(&self) -> bool {
        let is_begun = !self.running.is_empty() || !self.shown.is_empty();
        (self.has_arrived && self.neighbors == AROUND.len() || is_begun && !self.is_drawn)
            && self.stale.as_ref().is_none_or(|stale| stale.difference(&self.running).next().is_some())
    }

    fn stale_count(&self) -> usize {
        self.stale.as_ref().map_or_else(|| self.seen.chunks().len(), BTreeSet::len)
    }
}

/// The nearest of these places, at most `most`.
pub(super) fn nearest(mut places: Vec<(u128, ColumnKey)>, most: usize) -> Vec<ColumnKey> {
    if places.len() > most {
        places.select_nth_unstable(most);
        places.truncate(most);
    }
    places.sort_unstable();
    places.into_iter().map(|(_, key)| key).collect()
}

fn around((dimension, column): ColumnKey) -> impl Iterator<Item = ColumnKey> {
    AROUND.into_iter().map(move |(x, z)| (dimension, column.offset(x, z)))
}

/// The light of a chunk of a column.
fn light_at(column: Option<&ColumnLight>, y: i64) -> ChunkLight {
    let Some(column) = column else { return ChunkLight::open_sky() };
    let missing = || if y >= column.open_from() { ChunkLight::open_sky() } else { ChunkLight::default() };
    column.chunk(y).cloned().unwrap_or_else(missing)
}

/// The box around all cells that differ; `None` if there are none.
fn changed_cells(before: &Chunk, after: &Chunk) -> Option<[RangeInclusive<usize>; 3]> {
    let (mut old, mut new) = ([BlockId::AIR; CHUNK_VOLUME], [BlockId::AIR; CHUNK_VOLUME]);
    before.copy_into(&mut old);
    after.copy_into(&mut new);
    let mut low = [usize::MAX; 3];
    let mut high = [0; 3];
    for cell in (0..CHUNK_VOLUME).filter(|cell| old[*cell] != new[*cell]) {
        let position = cell_position(cell);
        for axis in 0..3 {
            low[axis] = low[axis].min(position[axis]);
            high[axis] = high[axis].max(position[axis]);
        }
    }
    (low[0] != usize::MAX).then(|| [0, 1, 2].map(|axis| low[axis]..=high[axis]))
}

/// The chunks that contain or border on some of these cells, as offsets along one axis.
fn touched_offsets(cells: RangeInclusive<usize>) -> RangeInclusive<i64> {
    -i64::from(*cells.start() == 0)..=i64::from(*cells.end() == CHUNK_SIZE - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bevy_terrane::block::{BlockRegistry, BlockType};
    use bevy_terrane::light::LightTable;

    const DIMENSION: DimensionId = DimensionId(0);
    const STONE: BlockId = BlockId::new(1);

    fn key(x: i64, z: i64) -> ColumnKey {
        (DIMENSION, ColumnPos::new(x, z))
    }

    fn column(x: i64, z: i64) -> Column {
        let mut column = Column::new(ColumnPos::new(x, z));
        for y in -1..=1 {
            column.set_chunk(y, Arc::new(Chunk::uniform(STONE)));
        }
        column
    }

    fn loaded(size: i64) -> MeshQueue<Entity> {
        let mut queue = MeshQueue::default();
        for x in 0..size {
            for z in 0..size {
                queue.load(DIMENSION, &column(x, z), None, None);
            }
        }
        queue
    }

    /// Begins and finishes everything that waits. Returns the chunks that were meshed.
    fn settle(queue: &mut MeshQueue<Entity>) -> BTreeSet<(ColumnKey, i64)> {
        let mut done = BTreeSet::new();
        loop {
            let ready = queue.nearest(4, |_| 0);
            if ready.is_empty() {
                return done;
            }
            for key in ready {
                for y in queue.waiting(key) {
                    queue.begin(key, y);
                    queue.finish(key, y, |_| None);
                    assert!(done.insert((key, y)), "{key:?} {y} was done twice");
                }
            }
        }
    }

    #[test]
    fn a_column_waits_for_the_eight_around_it() {
        let mut queue = loaded(4);
        assert_eq!(queue.queued(), 4 * 3);
        let done = settle(&mut queue);
        let columns: BTreeSet<_> = done.iter().map(|(key, _)| *key).collect();
        assert_eq!(columns, BTreeSet::from([key(1, 1), key(1, 2), key(2, 1), key(2, 2)]));
        assert_eq!(queue.queued(), 0);

        assert_eq!(queue.unload(key(0, 0)).count(), 0);
        assert!(settle(&mut queue).is_empty());
        queue.load(DIMENSION, &column(0, 0), None, None);
        let done = settle(&mut queue);
        assert!(done.iter().all(|(done, _)| *done == key(1, 1)) && done.len() == 3, "it may be another one now");
    }

    #[test]
    fn a_column_is_drawn_from_its_last_mesh_until_it_leaves() {
        let mut queue = loaded(3);
        let [first, second, third] = queue.waiting(key(1, 1))[..] else { panic!("three chunks") };
        for y in [first, second] {
            queue.begin(key(1, 1), y);
            queue.finish(key(1, 1), y, |_| None);
        }
        queue.begin(key(1, 1), third);
        assert!(!queue.is_drawn(key(1, 1)) && queue.drawn_changes() == 0);
        queue.finish(key(1, 1), third, |_| None);
        assert!(queue.is_drawn(key(1, 1)) && !queue.is_drawn(key(0, 1)));

        let mut chunk = Chunk::uniform(STONE);
        chunk.set_block([5; 3], BlockId::AIR);
        queue.change(DIMENSION, ChunkPos::new(1, 0, 1), &Arc::new(chunk));
        queue.unload(key(0, 0)).for_each(drop);
        assert!(queue.is_drawn(key(1, 1)), "it shows what was");
        let before = queue.drawn_changes();
        queue.unload(key(1, 1)).for_each(drop);
        assert!(!queue.is_drawn(key(1, 1)) && queue.drawn_changes() != before);
    }

    #[test]
    fn a_column_that_was_begun_is_finished_though_one_beside_it_goes() {
        let mut queue = loaded(3);
        let [first, ..] = queue.waiting(key(1, 1))[..] else { panic!("three chunks") };
        queue.begin(key(1, 1), first);
        queue.unload(key(0, 0)).for_each(drop);
        queue.finish(key(1, 1), first, |_| Entity::from_raw_u32(7));
        assert!(!queue.is_drawn(key(1, 1)));
        assert_eq!(settle(&mut queue).len(), 2);
        assert!(queue.is_drawn(key(1, 1)));
    }

    #[test]
    fn the_nearest_come_first() {
        let queue = loaded(7);
        let from = ColumnPos::new(5, 1);
        let all = queue.nearest(usize::MAX, |column| column.distance_squared(from));
        assert_eq!(all.len(), 25);
        assert!(all.is_sorted_by_key(|(_, column)| column.distance_squared(from)));
        assert_eq!(queue.nearest(3, |column| column.distance_squared(from)), all[..3]);
    }

    #[test]
    fn a_change_reaches_the_chunks_that_touch_it() {
        let edits = [([5, 5, 5], 1), ([0, 5, 5], 2), ([5, 15, 5], 2), ([15, 0, 5], 4), ([15, 15, 0], 8)];
        for (cell, expected) in edits {
            let mut queue = loaded(5);
            settle(&mut queue);
            let mut chunk = Chunk::uniform(STONE);
            queue.change(DIMENSION, ChunkPos::new(2, 0, 2), &Arc::new(chunk.clone()));
            assert!(settle(&mut queue).is_empty(), "nothing changed");
            chunk.set_block(cell, BlockId::AIR);
            queue.change(DIMENSION, ChunkPos::new(2, 0, 2), &Arc::new(chunk));
            let done = settle(&mut queue);
            assert_eq!(done.len(), expected, "{cell:?}: {done:?}");
            assert!(done.contains(&(key(2, 2), 0)));
        }
    }

    #[test]
    fn a_chunk_that_changes_while_it_is_meshed_is_meshed_again() {
        let mut queue = loaded(3);
        settle(&mut queue);
        let mut chunk = Chunk::uniform(STONE);
        chunk.set_block([5; 3], BlockId::AIR);
        queue.change(DIMENSION, ChunkPos::new(1, 0, 1), &Arc::new(chunk.clone()));
        queue.begin(key(1, 1), 0);
        chunk.set_block([6; 3], BlockId::AIR);
        queue.change(DIMENSION, ChunkPos::new(1, 0, 1), &Arc::new(chunk));
        assert!(queue.nearest(9, |_| 0).is_empty(), "one mesh of a chunk at a time");
        queue.finish(key(1, 1), 0, |_| None);
        assert_eq!(settle(&mut queue), BTreeSet::from([(key(1, 1), 0)]));
    }

    #[test]
    fn a_mesh_of_a_column_that_left_is_not_shown() {
        let mut queue = loaded(3);
        let begun = queue.waiting(key(1, 1));
        assert_eq!(begun, [1, 0, -1]);
        queue.begin(key(1, 1), 0);
        queue.unload(key(1, 1)).for_each(drop);
        assert!(!queue.contains(key(1, 1)));
        queue.finish(key(1, 1), 0, |_| panic!("it is shown"));
    }

    #[test]
    fn the_entities_go_with_their_column() {
        let mut queue = loaded(3);
        queue.begin(key(1, 1), 0);
        let entity = Entity::from_raw_u32(7).unwrap();
        queue.finish(key(1, 1), 0, |before| before.or(Some(entity)));
        assert_eq!(queue.meshes(), 1);
        assert!(queue.unload(key(1, 1)).eq([entity]));
        assert_eq!(queue.meshes(), 0);
    }
    /// Darkness in the chunks of [`column`], but for one cell of level 1.
    fn light(x: i64, z: i64, bright: Option<(i64, [usize; 3])>) -> ColumnLight {
        let mut blocks = BlockRegistry::new();
        let lamp = blocks.register(BlockType::new("test:lamp").with_light(1)).unwrap();
        let mut column = Column::new(ColumnPos::new(x, z));
        for y in -1..=1 {
            column.set_chunk(y, Arc::new(Chunk::uniform(BlockId::AIR)));
        }
        if let Some((y, cell)) = bright {
            let mut chunk = Chunk::uniform(BlockId::AIR);
            chunk.set_block(cell, lamp);
            column.set_chunk(y, Arc::new(chunk));
        }
        ColumnLight::new(&LightTable::new(&blocks), &column, &(-1..=1).collect(), i64::MAX)
    }

    /// Columns that wait for their light from the time 0 on.
    fn unlit(size: i64) -> MeshQueue<Entity> {
        let mut queue = MeshQueue::default();
        for (x, z) in (0..size).flat_map(|x| (0..size).map(move |z| (x, z))) {
            queue.load(DIMENSION, &column(x, z), None, Some(Duration::ZERO));
        }
        queue
    }

    #[test]
    fn a_column_waits_for_its_light_and_for_that_of_the_eight_around_it() {
        let mut queue = unlit(3);
        assert!(settle(&mut queue).is_empty());
        assert_eq!(queue.queued(), 9 * 3, "the view is not complete");
        for (x, z) in (0..3).flat_map(|x| (0..3).map(move |z| (x, z))).filter(|place| *place != (0, 2)) {
            queue.relight(key(x, z), Some(&light(x, z, None)));
        }
        assert!(settle(&mut queue).is_empty());
        queue.relight(key(0, 2), Some(&light(0, 2, None)));
        assert_eq!(settle(&mut queue).len(), 3, "each chunk is meshed once");
        assert_eq!(queue.queued(), 0);
    }

    #[test]
    fn a_column_whose_light_does_not_come_is_meshed_without_and_again_when_it_comes() {
        let mut queue = unlit(3);
        queue.stop_waiting(LIGHT_WAIT - Duration::from_millis(1));
        assert!(settle(&mut queue).is_empty());
        queue.stop_waiting(LIGHT_WAIT);
        assert_eq!(settle(&mut queue).len(), 3);
        assert_eq!(queue.light_around(key(1, 1), 0)([0; 3]), ChunkLight::open_sky());
        queue.relight(key(1, 1), Some(&light(1, 1, None)));
        assert_eq!(settle(&mut queue).len(), 3);
        assert_eq!(queue.light_around(key(1, 1), 0)([0; 3]), ChunkLight::default());
    }

    #[test]
    fn a_change_of_light_reaches_the_chunks_that_touch_it() {
        let cells = [([5, 5, 5], 1), ([0, 5, 5], 2), ([15, 1, 0], 4), ([5, 15, 5], 2)];
        for (cell, expected) in cells {
            let mut queue = unlit(5);
            for (x, z) in (0..5).flat_map(|x| (0..5).map(move |z| (x, z))) {
                queue.relight(key(x, z), Some(&light(x, z, None)));
            }
            settle(&mut queue);
            queue.relight(key(2, 2), Some(&light(2, 2, None)));
            assert!(settle(&mut queue).is_empty(), "nothing changed");
            queue.relight(key(2, 2), Some(&light(2, 2, Some((0, cell)))));
            let done = settle(&mut queue);
            assert_eq!(done.len(), expected, "{cell:?}: {done:?}");
            assert!(done.contains(&(key(2, 2), 0)));
        }
    }

    #[test]
    fn a_column_that_leaves_before_it_is_lit_is_not_counted() {
        let mut queue = unlit(3);
        queue.unload(key(0, 0)).for_each(drop);
        queue.stop_waiting(LIGHT_WAIT);
        assert!(settle(&mut queue).is_empty());
        queue.load(DIMENSION, &column(0, 0), Some(&light(0, 0, None)), Some(LIGHT_WAIT));
        assert_eq!(settle(&mut queue).len(), 3);
    }
}
