//! Which chunks are meshed next: the nearest first.

use super::neighborhood::{Near, Neighborhood};
use crate::block::BlockId;
use crate::chunk::{Chunk, Column};
use crate::space::{CHUNK_SIZE, CHUNK_VOLUME, ChunkPos, ColumnPos, DimensionId, HeightSet, cell_position};
use bevy::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

/// A column of one of the dimensions.
pub(super) type ColumnKey = (DimensionId, ColumnPos);

/// Knows which chunks need a new mesh. A column's turn comes when the eight around it are there. Once it has come, the column is
/// finished though some of them go: half a column would be drawn both by its chunks and from afar.
#[derive(Default)]
pub(super) struct MeshQueue {
    columns: FxHashMap<ColumnKey, Tracked>,
    /// Columns with something to do now.
    ready: FxHashSet<ColumnKey>,
    /// Columns whose meshes are all shown, but for changes since.
    drawn: FxHashSet<ColumnKey>,
    /// Counts the changes of `drawn`.
    drawn_changes: u64,
    loads: u64,
}

struct Tracked {
    /// Tells this stay from an earlier one of the same column.
    load: u64,
    /// As it was when it was last looked at: to find out what a change touches.
    seen: Column,
    /// How many of the eight around it are there.
    neighbors: usize,
    stale: Stale,
    running: BTreeSet<i64>,
    /// Some of its meshes were begun: it is finished, whatever goes from beside it.
    is_begun: bool,
    entities: BTreeMap<i64, Entity>,
}

/// Chunks, by height, whose mesh is not that of the newest blocks.
enum Stale {
    All,
    Some(BTreeSet<i64>),
}

const AROUND: [(i64, i64); 8] = [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)];

impl MeshQueue {
    /// A column is there, or is another one than before.
    pub fn load(&mut self, dimension: DimensionId, column: &Column) {
        let key = (dimension, column.pos());
        let mut neighbors = 0;
        let is_new = !self.columns.contains_key(&key);
        for beside in around(key) {
            let Some(tracked) = self.columns.get_mut(&beside) else { continue };
            neighbors += 1;
            tracked.neighbors += usize::from(is_new);
            tracked.stale = Stale::All;
            self.refresh(beside);
        }
        match self.columns.get_mut(&key) {
            Some(tracked) => {
                tracked.seen = column.clone();
                tracked.stale = Stale::All;
            }
            None => {
                self.loads += 1;
                let tracked = Tracked {
                    load: self.loads,
                    seen: column.clone(),
                    neighbors,
                    stale: Stale::All,
                    running: default(),
                    is_begun: false,
                    entities: default(),
                };
                self.columns.insert(key, tracked);
            }
        }
        self.refresh(key);
    }

    /// A column is gone. Returns the entities of its meshes.
    pub fn unload(&mut self, key: ColumnKey) -> impl Iterator<Item = Entity> + use<> {
        let gone = self.columns.remove(&key);
        if gone.is_some() {
            self.ready.remove(&key);
            self.drawn_changes += u64::from(self.drawn.remove(&key));
            for beside in around(key) {
                if let Some(tracked) = self.columns.get_mut(&beside) {
                    tracked.neighbors -= 1;
                    self.refresh(beside);
                }
            }
        }
        gone.into_iter().flat_map(|tracked| tracked.entities.into_values())
    }

    /// A part of a column came or went at these chunk heights.
    pub fn resize(&mut self, dimension: DimensionId, column: &Column, heights: &HeightSet) {
        let key = (dimension, column.pos());
        let Some(tracked) = self.columns.get_mut(&key) else { return };
        tracked.seen = column.clone();
        let touched = || heights.ranges().flat_map(|range| range.start.saturating_sub(1)..range.end.saturating_add(1));
        for key in around(key).chain([key]) {
            let Some(tracked) = self.columns.get_mut(&key) else { continue };
            if let Stale::Some(stale) = &mut tracked.stale {
                stale.extend(touched());
            }
            self.refresh(key);
        }
    }

    /// A chunk is another one than before: it needs a new mesh, and so do those around that touch what changed.
    pub fn change(&mut self, dimension: DimensionId, position: ChunkPos, chunk: &Arc<Chunk>) {
        let Some(tracked) = self.columns.get_mut(&(dimension, position.column())) else { return };
        let before = tracked.seen.set_chunk(position.y, chunk.clone()).unwrap_or_default();
        let Some(changed) = changed_cells(&before, chunk) else { return };
        let [xs, ys, zs] = changed.map(touched_offsets);
        for dx in xs {
            for dz in zs.clone() {
                let key = (dimension, position.column().offset(dx, dz));
                let Some(tracked) = self.columns.get_mut(&key) else { continue };
                if let Stale::Some(stale) = &mut tracked.stale {
                    stale.extend(ys.clone().map(|dy| position.y.saturating_add(dy)));
                }
                self.refresh(key);
            }
        }
    }

    /// Chunks that wait, in columns whose turn has come.
    pub fn queued(&self) -> usize {
        self.ready.iter().filter_map(|key| self.columns.get(key)).map(Tracked::stale_count).sum()
    }

    /// Meshes that are shown.
    pub fn meshes(&self) -> usize {
        self.columns.values().map(|tracked| tracked.entities.len()).sum()
    }

    /// The columns with something to do, nearest first, at most this many.
    pub fn nearest(&self, most: usize, distance: impl Fn(ColumnPos) -> u128) -> Vec<ColumnKey> {
        let mut ready: Vec<_> = self.ready.iter().map(|key| (distance(key.1), *key)).collect();
        if ready.len() > most {
            ready.select_nth_unstable(most);
            ready.truncate(most);
        }
        ready.sort_unstable();
        ready.into_iter().map(|(_, key)| key).collect()
    }

    /// The chunks of a column that need a mesh and for which none is being made, from the top down.
    pub fn waiting(&mut self, key: ColumnKey) -> Vec<i64> {
        let Some(tracked) = self.columns.get_mut(&key) else { return Vec::new() };
        if let Stale::All = tracked.stale {
            let heights = tracked.seen.chunks().map(|(y, _)| y).chain(tracked.entities.keys().copied());
            tracked.stale = Stale::Some(heights.collect());
            self.refresh(key);
        }
        match self.columns.get(&key) {
            Some(Tracked { stale: Stale::Some(stale), running, .. }) => {
                stale.iter().rev().filter(|y| !running.contains(y)).copied().collect()
            }
            _ => Vec::new(),
        }
    }

    /// A chunk and what is around it now; below the chunk heights of the dimension, and where something around it is not
    /// loaded, everything is solid.
    pub fn neighborhood(&self, (dimension, column): ColumnKey, y: i64, heights: &Range<i64>) -> Neighborhood {
        let columns: [[Option<&Column>; 3]; 3] = [-1, 0, 1].map(|dx| {
            [-1, 0, 1].map(|dz| self.columns.get(&(dimension, column.offset(dx, dz))).map(|tracked| &tracked.seen))
        });
        Neighborhood::from_fn(|[dx, dy, dz]| {
            let height = y.saturating_add(dy);
            if height < heights.start {
                return Near::Solid;
            }
            let beside = columns[(dx + 1) as usize][(dz + 1) as usize];
            if heights.contains(&height) && beside.is_some_and(|column| !column.is_loaded(height)) {
                // Of what is not loaded itself nothing is drawn.
                return if [dx, dy, dz] == [0; 3] { Near::Air } else { Near::Solid };
            }
            beside.and_then(|column| column.chunk(height)).map_or(Near::Air, |chunk| Near::Chunk(chunk.clone()))
        })
    }

    /// A mesh of the newest blocks of a chunk is being made. Returns the number to hand to [`finish`](Self::finish).
    pub fn begin(&mut self, key: ColumnKey, y: i64) -> u64 {
        let Some(tracked) = self.columns.get_mut(&key) else { return 0 };
        if let Stale::Some(stale) = &mut tracked.stale {
            stale.remove(&y);
        }
        tracked.running.insert(y);
        tracked.is_begun = true;
        let load = tracked.load;
        self.refresh(key);
        load
    }

    /// The mesh that [`begin`](Self::begin) announced is there. Returns the place of its entity, `None` if the column
    /// left meanwhile. If the chunk changed meanwhile it still waits for its turn.
    pub fn finish(&mut self, key: ColumnKey, y: i64, load: u64) -> Option<&mut BTreeMap<i64, Entity>> {
        let tracked = self.columns.get_mut(&key).filter(|tracked| tracked.load == load)?;
        tracked.running.remove(&y);
        self.refresh(key);
        self.columns.get_mut(&key).map(|tracked| &mut tracked.entities)
    }

    /// Whether all of a column is shown, as it is or, if it changed a moment ago, as it was.
    pub fn is_drawn(&self, key: ColumnKey) -> bool {
        self.drawn.contains(&key)
    }

    /// Another number than before if [`is_drawn`](Self::is_drawn) may say something else.
    pub fn drawn_changes(&self) -> u64 {
        self.drawn_changes
    }

    fn refresh(&mut self, key: ColumnKey) {
        if self.columns.get(&key).is_some_and(Tracked::is_settled) {
            self.drawn_changes += u64::from(self.drawn.insert(key));
        }
        let is_drawn = self.drawn.contains(&key);
        let is_ready = self.columns.get(&key).is_some_and(|tracked| {
            (tracked.neighbors == AROUND.len() || tracked.is_begun && !is_drawn)
                && match &tracked.stale {
                    Stale::All => true,
                    Stale::Some(stale) => stale.difference(&tracked.running).next().is_some(),
                }
        });
        if is_ready {
            self.ready.insert(key);
        } else {
            self.ready.remove(&key);
        }
    }
}

impl Tracked {
    /// Whether every mesh is that of the newest blocks.
    fn is_settled(&self) -> bool {
        let is_new = matches!(&self.stale, Stale::Some(stale) if stale.is_empty());
        is_new && self.running.is_empty()
    }

    fn stale_count(&self) -> usize {
        match &self.stale {
            Stale::All => self.seen.chunks().len(),
            Stale::Some(stale) => stale.len(),
        }
    }
}

fn around((dimension, column): ColumnKey) -> impl Iterator<Item = ColumnKey> {
    AROUND.into_iter().map(move |(x, z)| (dimension, column.offset(x, z)))
}

/// The box around all cells that differ, `None` if none does.
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

/// The chunks, as offsets along one axis, whose own blocks or borders hold some of these cells.
fn touched_offsets(cells: RangeInclusive<usize>) -> RangeInclusive<i64> {
    -i64::from(*cells.start() == 0)..=i64::from(*cells.end() == CHUNK_SIZE - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn loaded(size: i64) -> MeshQueue {
        let mut queue = MeshQueue::default();
        for x in 0..size {
            for z in 0..size {
                queue.load(DIMENSION, &column(x, z));
            }
        }
        queue
    }

    /// Begins and finishes everything that waits; what it did.
    fn settle(queue: &mut MeshQueue) -> BTreeSet<(ColumnKey, i64)> {
        let mut done = BTreeSet::new();
        loop {
            let ready = queue.nearest(4, |_| 0);
            if ready.is_empty() {
                return done;
            }
            for key in ready {
                for y in queue.waiting(key) {
                    let load = queue.begin(key, y);
                    assert!(queue.finish(key, y, load).is_some());
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
        queue.load(DIMENSION, &column(0, 0));
        let done = settle(&mut queue);
        assert!(done.iter().all(|(done, _)| *done == key(1, 1)) && done.len() == 3, "it may be another one now");
    }

    #[test]
    fn a_column_is_drawn_from_its_last_mesh_until_it_leaves() {
        let mut queue = loaded(3);
        let [first, second, third] = queue.waiting(key(1, 1))[..] else { panic!("three chunks") };
        for y in [first, second] {
            let load = queue.begin(key(1, 1), y);
            queue.finish(key(1, 1), y, load);
        }
        let load = queue.begin(key(1, 1), third);
        assert!(!queue.is_drawn(key(1, 1)) && queue.drawn_changes() == 0);
        queue.finish(key(1, 1), third, load);
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
        let load = queue.begin(key(1, 1), first);
        queue.unload(key(0, 0)).for_each(drop);
        queue.finish(key(1, 1), first, load);
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
        let load = queue.begin(key(1, 1), 0);
        chunk.set_block([6; 3], BlockId::AIR);
        queue.change(DIMENSION, ChunkPos::new(1, 0, 1), &Arc::new(chunk));
        assert!(queue.nearest(9, |_| 0).is_empty(), "one mesh of a chunk at a time");
        assert!(queue.finish(key(1, 1), 0, load).is_some());
        assert_eq!(settle(&mut queue), BTreeSet::from([(key(1, 1), 0)]));
    }

    #[test]
    fn a_mesh_of_a_column_that_left_is_thrown_away() {
        let mut queue = loaded(3);
        let begun = queue.waiting(key(1, 1));
        assert_eq!(begun, [1, 0, -1]);
        let load = queue.begin(key(1, 1), 0);
        queue.unload(key(1, 1)).for_each(drop);
        assert!(queue.finish(key(1, 1), 0, load).is_none());
        queue.load(DIMENSION, &column(1, 1));
        assert!(queue.finish(key(1, 1), 0, load).is_none(), "it is of an earlier stay");
    }

    #[test]
    fn the_entities_go_with_their_column() {
        let mut queue = loaded(3);
        let load = queue.begin(key(1, 1), 0);
        let entity = Entity::from_raw_u32(7).unwrap();
        queue.finish(key(1, 1), 0, load).unwrap().insert(0, entity);
        assert_eq!(queue.meshes(), 1);
        assert!(queue.unload(key(1, 1)).eq([entity]));
        assert_eq!(queue.meshes(), 0);
    }
}
