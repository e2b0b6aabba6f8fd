//! Who is told of completed columns, and what each was told of already.

use super::disc::{Area, Disc};
use super::frontiers::{Changes, Search};
use super::search::Searched;
use super::tree::{Square, TILE, Tree};
use super::work::BatchColumns;
use crate::space::{BatchPos, ColumnPos};

/// Names one that [collects completed columns](super::DistanceGraph::collect_completed_in_range) from the graph that
/// gave the id. Ids are never given again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(u64);

#[derive(Clone, Debug)]
struct Listener {
    id: ListenerId,
    /// What it was given. A subset of what is completed, and as small in memory.
    given: Tree,
    search: Search,
}

/// All listeners of a graph.
#[derive(Clone, Debug, Default)]
pub(super) struct Listeners {
    /// By id.
    all: Vec<Listener>,
    next_id: u64,
    /// Batches in which a column is to be given that was not before.
    appeared: Changes,
}

impl Listeners {
    pub fn add(&mut self) -> ListenerId {
        let id = ListenerId(self.next_id);
        self.next_id += 1;
        self.all.push(Listener { id, given: Tree::default(), search: Search::new(ColumnPos::new(0, 0)) });
        id
    }

    fn place(&self, id: ListenerId) -> Option<usize> {
        self.all.binary_search_by_key(&id, |listener| listener.id).ok()
    }

    pub fn remove(&mut self, id: ListenerId) -> bool {
        self.place(id).map(|place| self.all.remove(place)).is_some()
    }

    #[inline]
    pub fn completed(&mut self, batch: BatchPos) {
        if !self.all.is_empty() {
            self.appeared.push(batch);
        }
    }

    pub fn completed_many(&mut self) {
        self.appeared.forget();
    }

    /// These columns are missing now: if they are completed again, they are given again.
    pub fn unmarked(&mut self, batch: BatchPos, mask: u16) {
        for listener in &mut self.all {
            listener.given.remove(batch, mask);
        }
    }

    /// This completed column is to be given again to whoever has it.
    pub fn edited(&mut self, batch: BatchPos, mask: u16) {
        self.unmarked(batch, mask);
        self.completed(batch);
    }

    /// The listener has these columns already, from elsewhere.
    pub fn note_given(&mut self, id: ListenerId, batch: BatchPos, mask: u16) -> Option<()> {
        let place = self.place(id)?;
        self.all[place].given.add(batch, mask);
        Some(())
    }

    /// The listener has these columns no more: they are to be given again.
    pub fn take_back(&mut self, id: ListenerId, batch: BatchPos, mask: u16) -> Option<()> {
        let place = self.place(id)?;
        self.all[place].given.remove(batch, mask);
        self.completed(batch);
        Some(())
    }

    /// Gives up to `max` columns, and answers how many.
    pub fn collect(
        &mut self,
        id: ListenerId,
        completed: &mut Tree,
        disc: Disc,
        max: usize,
        columns: &mut Vec<ColumnPos>,
    ) -> Option<usize> {
        let place = self.place(id)?;
        let Listener { given, search, .. } = &mut self.all[place];
        let mut left = max;
        while left > 0 {
            let mut ground = Ungiven { completed: &mut *completed, given: &mut *given };
            let nearest = search.nearest(&mut ground, &mut self.appeared, disc.center, disc.radius, None);
            let Some((batch, _)) = nearest else { break };
            let mask = disc.mask_of(batch, ground.wanted(batch));
            let mut in_range = BatchColumns::nearest_first(batch, mask, disc.center);
            let before = columns.len();
            columns.extend(in_range.by_ref().take(left));
            left -= columns.len() - before;
            given.add(batch, mask & !in_range.mask());
        }
        Some(max - left)
    }

    /// Bytes on the heap.
    pub fn memory(&self) -> usize {
        let each = |listener: &Listener| listener.given.memory() + listener.search.frontier.memory();
        self.all.capacity() * size_of::<Listener>() + self.all.iter().map(each).sum::<usize>() + self.appeared.memory()
    }
}

/// Completed columns that a listener was not given yet. In a pair of squares the first is of what is completed.
struct Ungiven<'a> {
    completed: &'a mut Tree,
    given: &'a mut Tree,
}

impl Searched for Ungiven<'_> {
    type Square = (Square, Square);

    fn roots(&self) -> Option<Vec<Area>> {
        Some(self.completed.roots().map(|(root, _)| root).collect())
    }

    fn root(&self, root: Area) -> Self::Square {
        (self.completed.square(root), self.given.square(root))
    }

    fn open(&self, level: u32, (completed, given): Self::Square) -> u64 {
        let completed = match completed {
            Square::Empty => 0,
            Square::Full => u64::MAX,
            Square::Node(tile) if level == TILE => self.completed.tile(tile).full | self.completed.tile(tile).partial,
            Square::Node(branch) => self.completed.branch(branch).full | self.completed.branch(branch).kept,
        };
        completed & !self.given.full_in(level, given)
    }

    fn child(&self, (completed, given): Self::Square, index: u32) -> Self::Square {
        (self.completed.child(completed, index), self.given.child(given, index))
    }

    fn mixed(&self, (completed, given): Self::Square) -> u64 {
        let given = if let Square::Node(tile) = given { self.given.tile(tile).partial } else { 0 };
        !self.completed.full_in(TILE, completed) | given
    }

    fn wanted_of(&self, (completed, given): Self::Square, index: u32) -> u16 {
        self.completed.completed_of(completed, index) & !self.given.completed_of(given, index)
    }

    fn wanted(&mut self, batch: BatchPos) -> u16 {
        self.completed.look(batch) & !self.given.look(batch)
    }
}
