//! Publishes changes for the main world.

use crate::chunk::{Chunk, Column};
use crate::coordinator::figures::tally::Tally;
use crate::coordinator::figures::totals::Totals;
use crate::coordinator::messages::actions::{ActionAnswer, ActionId, ActionOutcome};
use crate::coordinator::messages::arenas::{Arena, ArenaStatus};
use crate::coordinator::messages::events::{BlockRefused, WorldEvent};
use crate::coordinator::messages::far_views::FarNews;
use crate::coordinator::messages::jobs::{JobId, JobStatus};
use crate::coordinator::messages::published::{ColumnUpdate, DecidedEdit, Published};
use crate::coordinator::messages::statistics::WorldStatistics;
use crate::light::ColumnLight;
use crate::simulation::{BlockAccessError, BlockEdit, DecidedAction, Letter, MirrorUpdate, SetBlock};
use crate::space::{ChunkPos, ColumnPos, DimensionId, HeightSet};
use bevy::platform::cell::SyncCell;
use bevy::prelude::*;
use rustc_hash::FxHashSet;
use std::any::Any;
use std::mem;
use std::sync::{Arc, Mutex, TryLockError};
use std::time::Duration;
use uuid::Uuid;

/// The changes since the last successful handover to the main world.
#[derive(Resource)]
pub struct Publisher {
    news: Published,
    shared: Arc<Mutex<Published>>,
    /// The columns and the mirrors that the main world knows.
    columns: FxHashSet<(DimensionId, ColumnPos)>,
    mirrors: FxHashSet<Uuid>,
    /// Refused edits, for the log, since the game may not listen.
    pub refused: Tally,
    /// The counts over the whole run.
    pub totals: Totals,
}

impl Publisher {
    pub fn new(shared: Arc<Mutex<Published>>) -> Self {
        let (news, columns, mirrors, refused, totals) = Default::default();
        Self { news, shared, columns, mirrors, refused, totals }
    }

    pub fn event(&mut self, event: impl Into<WorldEvent>) {
        self.news.push_event(event.into());
    }

    pub fn statistics(&mut self, statistics: WorldStatistics) {
        self.news.statistics = Some(statistics);
    }

    /// Publishes the clocks of the dimensions that have a time of day.
    pub fn clocks(&mut self, clocks: impl Iterator<Item = (DimensionId, Duration)>) {
        self.news.clocks = clocks.collect();
    }

    pub fn letter(&mut self, letter: Letter) {
        self.news.letters.push_back(letter);
    }

    pub fn far_view(&mut self, update: (JobId, DimensionId, FarNews)) {
        self.news.far_views.push_back(update);
    }

    /// Ends the app with a region's panic.
    pub fn panic(&mut self, payload: Box<dyn Any + Send>) {
        self.news.panic.get_or_insert_with(|| SyncCell::new(payload));
    }

    pub fn take_panic(&mut self) -> Option<Box<dyn Any + Send>> {
        self.news.panic.take().map(SyncCell::to_inner)
    }

    /// Refuses edits of columns that no region owns any more.
    pub fn refuse_all(&mut self, now: Duration, edits: impl IntoIterator<Item = BlockEdit>) {
        for edit in edits {
            self.refuse(now, edit, BlockAccessError::OutsideRegion(edit.request.position));
        }
    }

    /// Refuses an edit.
    pub fn refuse(&mut self, now: Duration, edit: BlockEdit, error: BlockAccessError) {
        self.refused.note(now, error);
        self.event(BlockRefused { request: edit.request, error });
        self.decided(edit, false);
    }

    /// Tells the main world the decision about an edit that it waits for. The changed chunk is published with it or before.
    pub fn decided(&mut self, BlockEdit { request, number }: BlockEdit, is_accepted: bool) {
        let SetBlock { dimension, position, .. } = request;
        let decided = |number| DecidedEdit { number, dimension, chunk: position.chunk(), is_accepted };
        self.news.decided.extend(number.map(decided));
    }

    /// Tells the main world the decisions about actions. The changed chunks and mirrors are published with them or before.
    pub fn acted(&mut self, decided: impl IntoIterator<Item = DecidedAction>) {
        self.news.acted.extend(decided);
    }

    /// Tells the main world that actions are durable or lost.
    pub fn settled(&mut self, actions: impl IntoIterator<Item = (u64, Uuid)>, outcome: &ActionOutcome) {
        let answer = |(id, actor)| ActionAnswer { action: ActionId(id), actor, outcome: outcome.clone() };
        self.news.settled.extend(actions.into_iter().map(answer));
    }

    pub fn job(&mut self, status: JobStatus) {
        self.news.jobs.insert(status.job.id, status);
    }

    /// Publishes the status of an arena; `None` means that it was removed.
    pub fn arena(&mut self, arena: Arena, status: Option<ArenaStatus>) {
        self.news.arenas.insert(arena.name.clone(), (arena, status));
    }

    pub fn loaded(&mut self, dimension: DimensionId, blocks: Column) {
        let column = blocks.pos();
        let is_new = self.columns.insert((dimension, column));
        self.news.update_column((dimension, column), ColumnUpdate::Loaded { blocks, is_new });
    }

    pub fn unloaded(&mut self, dimension: DimensionId, column: ColumnPos) {
        if self.columns.remove(&(dimension, column)) {
            self.news.update_column((dimension, column), ColumnUpdate::Unloaded);
        }
    }

    /// A part is added to a column.
    pub fn extended(&mut self, dimension: DimensionId, part: Column) {
        self.news
            .update_column((dimension, part.pos()), ColumnUpdate::Changed { lost: HeightSet::new(), gained: part });
    }

    /// A part is cut from a column.
    pub fn cut(&mut self, dimension: DimensionId, column: ColumnPos, lost: &HeightSet) {
        let gained = Column::partial(column, HeightSet::new());
        self.news.update_column((dimension, column), ColumnUpdate::Changed { lost: lost.clone(), gained });
    }

    pub fn chunks(&mut self, dimension: DimensionId, changed: Vec<(ChunkPos, Arc<Chunk>)>) {
        let changed = changed.into_iter().map(|(position, chunk)| ((dimension, position), chunk));
        let is_shown = |((of, chunk), _): &((DimensionId, ChunkPos), _)| self.columns.contains(&(*of, chunk.column()));
        self.news.chunks.extend(changed.filter(is_shown));
    }

    /// The light of columns, up to date with their published blocks or newer.
    pub fn light(&mut self, dimension: DimensionId, light: Vec<ColumnLight>) {
        let light = light.into_iter().map(|light| ((dimension, light.pos()), light));
        self.news.light.extend(light.filter(|(column, _)| self.columns.contains(column)));
    }

    pub fn mirrors(&mut self, updates: Vec<MirrorUpdate>) {
        for update in updates {
            let was_known = match update.position {
                Some(_) => !self.mirrors.insert(update.id),
                None => self.mirrors.remove(&update.id),
            };
            if was_known || update.position.is_some() {
                self.news.push_mirror(MirrorUpdate { is_new: !was_known, ..update });
            }
        }
    }

    /// Hands over the changes without waiting: if that is not possible now, the next pass does it.
    pub fn hand_over(&mut self) {
        if self.news.is_empty() {
            return;
        }
        let mut shared = match self.shared.try_lock() {
            Ok(shared) => shared,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        shared.append(mem::take(&mut self.news));
    }
}
