//! The newest state of everything that changed, for the main world.

use crate::chunk::{Chunk, Column};
use crate::coordinator::messages::actions::ActionAnswer;
use crate::coordinator::messages::arenas::{Arena, ArenaStatus};
use crate::coordinator::messages::events::WorldEvent;
use crate::coordinator::messages::far_views::FarNews;
use crate::coordinator::messages::jobs::{JobId, JobStatus};
use crate::coordinator::messages::statistics::WorldStatistics;
use crate::light::ColumnLight;
use crate::simulation::{DecidedAction, Letter, MirrorUpdate};
use crate::space::{ChunkPos, ColumnPos, DimensionId, HeightSet};
use bevy::platform::cell::SyncCell;
use bevy::prelude::Resource;
use rustc_hash::FxHashMap;
use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// The current state of a published column.
#[derive(Clone, Debug)]
pub enum ColumnUpdate {
    /// The column is loaded.
    Loaded {
        /// Its blocks.
        blocks: Column,
        /// `true` if the main world does not know of the column, or received its unloading last.
        is_new: bool,
    },
    /// The column stays loaded, with other parts of it than before.
    Changed {
        /// The chunk heights that were unloaded, or reloaded since.
        lost: HeightSet,
        /// The part that was loaded.
        gained: Column,
    },
    /// The column is not loaded any more.
    Unloaded,
}

impl ColumnUpdate {
    /// Returns `true` if the update replaces everything known of the chunk at this height.
    fn replaces(&self, height: i64) -> bool {
        match self {
            Self::Loaded { .. } | Self::Unloaded => true,
            Self::Changed { lost, gained } => lost.contains(height) || gained.is_loaded(height),
        }
    }
}

/// The decision about an edit. It is in the column as published, with the changes that are published together with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecidedEdit {
    /// The number of the edit.
    pub number: u64,
    /// The dimension.
    pub dimension: DimensionId,
    /// The chunk of the block.
    pub chunk: ChunkPos,
    /// `true` if the edit was made.
    pub is_accepted: bool,
}

/// The changes since the main world looked last, as states and not as a stream. Things that came and went in between are
/// left out. So the waiting data is bounded however long the main world stalls: the newest state of everything loaded and
/// mirrored, one entry for each column and mirror that the main world must remove, and a queue of events. Events that do
/// not fit into the queue are dropped and counted. Letters are limited at their sender, and excess letters come back.
///
/// As a resource of the main world: the changes that it has fetched and not applied yet.
#[derive(Resource, Default)]
pub struct Published {
    /// Columns that were loaded, changed or unloaded.
    pub columns: BTreeMap<(DimensionId, ColumnPos), ColumnUpdate>,
    /// Chunks that changed within loaded columns; apply them after `columns`.
    pub chunks: BTreeMap<(DimensionId, ChunkPos), Arc<Chunk>>,
    /// The light of columns; apply it after `chunks`.
    pub light: BTreeMap<(DimensionId, ColumnPos), ColumnLight>,
    /// Decided edits; apply them after the columns and chunks that they are in. The main world bounds their number, because it
    /// waits for each of them.
    pub decided: Vec<DecidedEdit>,
    /// Decided actions, with the chunks that they changed. Those, and the mirrors of their entities, are applied with them.
    pub acted: Vec<DecidedAction>,
    /// Actions that are durable or lost, oldest first.
    pub settled: Vec<ActionAnswer>,
    /// Mirrored entities that changed.
    pub mirrors: FxHashMap<Uuid, MirrorUpdate>,
    /// Jobs that made progress.
    pub jobs: BTreeMap<JobId, JobStatus>,
    /// Arenas that changed, by name; `None` instead of a status for a removed arena.
    pub arenas: BTreeMap<String, (Arena, Option<ArenaStatus>)>,
    /// The events, oldest first.
    pub events: VecDeque<WorldEvent>,
    /// The number of events that were dropped because their queue was full.
    pub dropped_events: u64,
    /// Messages and closures for the main world, oldest first.
    pub letters: VecDeque<Letter>,
    /// News for listeners of far views, each with its job and dimension, oldest first. A listener gets no more until it has
    /// taken these.
    pub far_views: VecDeque<(JobId, DimensionId, FarNews)>,
    /// A region's panic that is to end the app.
    pub panic: Option<SyncCell<Box<dyn Any + Send>>>,
    /// The newest statistics.
    pub statistics: Option<WorldStatistics>,
    /// The clocks of dimensions with a time of day.
    pub clocks: FxHashMap<DimensionId, Duration>,
}

/// The maximum number of waiting events.
const MAX_EVENTS: usize = 65_536;

impl Published {
    /// Refusals and losses fill at most half of the queue, so that a flood of them leaves room for all other events.
    pub fn push_event(&mut self, event: WorldEvent) {
        let is_of_many = matches!(event, WorldEvent::BlockRefused(_) | WorldEvent::LetterLost(_));
        if is_of_many && self.events.len() >= MAX_EVENTS / 2 {
            self.dropped_events += 1;
            return;
        }
        if self.events.len() == MAX_EVENTS {
            self.events.pop_front();
            self.dropped_events += 1;
        }
        self.events.push_back(event);
    }

    /// A column that comes and goes unseen leaves nothing behind.
    pub(in crate::coordinator) fn push_column(&mut self, column: (DimensionId, ColumnPos), mut update: ColumnUpdate) {
        match (self.columns.get_mut(&column), &mut update) {
            (Some(ColumnUpdate::Loaded { blocks, .. }), ColumnUpdate::Changed { lost, gained }) => {
                blocks.cut(lost);
                blocks.extend(gained);
                return;
            }
            (Some(ColumnUpdate::Changed { lost, gained }), ColumnUpdate::Changed { lost: cut, gained: added }) => {
                // Heights that came and went unseen were never there.
                let unseen = gained.cut(cut);
                gained.extend(added);
                lost.insert_all(&unseen.loaded().map_or_else(|| cut.clone(), |unseen| cut.difference(unseen)));
                return;
            }
            (Some(ColumnUpdate::Loaded { is_new: true, .. }), ColumnUpdate::Unloaded) => {
                self.columns.remove(&column);
                return;
            }
            (Some(ColumnUpdate::Loaded { is_new: was_new, .. }), ColumnUpdate::Loaded { is_new, .. }) => {
                *is_new = *was_new;
            }
            (Some(ColumnUpdate::Unloaded), ColumnUpdate::Loaded { is_new, .. }) => *is_new = false,
            (Some(_) | None, _) => {}
        }
        self.columns.insert(column, update);
    }

    /// Records that a column was loaded, changed or unloaded, and drops the older changes that this replaces.
    pub fn update_column(&mut self, column: (DimensionId, ColumnPos), update: ColumnUpdate) {
        self.chunks.retain(|(of, chunk), _| (*of, chunk.column()) != column || !update.replaces(chunk.y));
        if !matches!(update, ColumnUpdate::Changed { .. }) {
            self.light.remove(&column);
        }
        self.push_column(column, update);
    }

    pub(crate) fn push_mirror(&mut self, update: MirrorUpdate) {
        match (self.mirrors.get_mut(&update.id), &update.position) {
            (Some(known), None) if known.is_new => drop(self.mirrors.remove(&update.id)),
            (Some(known), Some(_)) => {
                known.position = update.position;
                known.components.extend(update.components);
            }
            (Some(_) | None, _) => drop(self.mirrors.insert(update.id, update)),
        }
    }

    /// Applies newer changes on top.
    pub fn append(&mut self, newer: Self) {
        // Older changes of a column are part of its newer state, or the column is gone.
        if !newer.columns.is_empty() && !self.chunks.is_empty() {
            self.chunks.retain(|(dimension, chunk), _| {
                let update = newer.columns.get(&(*dimension, chunk.column()));
                update.is_none_or(|update| !update.replaces(chunk.y))
            });
        }
        for (column, update) in newer.columns {
            if !matches!(update, ColumnUpdate::Changed { .. }) {
                self.light.remove(&column);
            }
            self.push_column(column, update);
        }
        self.chunks.extend(newer.chunks);
        self.light.extend(newer.light);
        self.decided.extend(newer.decided);
        self.acted.extend(newer.acted);
        self.settled.extend(newer.settled);
        newer.mirrors.into_values().for_each(|update| self.push_mirror(update));
        self.jobs.extend(newer.jobs);
        self.arenas.extend(newer.arenas);
        newer.events.into_iter().for_each(|event| self.push_event(event));
        self.letters.extend(newer.letters);
        self.far_views.extend(newer.far_views);
        self.panic = self.panic.take().or(newer.panic);
        self.dropped_events += newer.dropped_events;
        self.statistics = newer.statistics.or(self.statistics.take());
        if !newer.clocks.is_empty() {
            self.clocks = newer.clocks;
        }
    }

    /// Returns `true` if there are no changes.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
            && self.chunks.is_empty()
            && self.light.is_empty()
            && self.decided.is_empty()
            && self.acted.is_empty()
            && self.settled.is_empty()
            && self.mirrors.is_empty()
            && self.jobs.is_empty()
            && self.arenas.is_empty()
            && self.events.is_empty()
            && self.letters.is_empty()
            && self.far_views.is_empty()
            && self.panic.is_none()
            && self.statistics.is_none()
            && self.clocks.is_empty()
    }
}
