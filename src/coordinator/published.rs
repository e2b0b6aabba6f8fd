//! What the main world is told: the newest state of what changed.

use super::events::WorldEvent;
use super::far_view::news::FarNews;
use super::jobs::job::{JobId, JobStatus};
use super::statistics::WorldStatistics;
use crate::chunk::{Chunk, Column};
use crate::coordinator::arenas::arena::{Arena, ArenaStatus};
use crate::simulation::{Letter, MirrorUpdate};
use crate::space::{ChunkPos, ColumnPos, DimensionId, HeightSet};
use bevy::platform::cell::SyncCell;
use bevy::prelude::Resource;
use rustc_hash::FxHashMap;
use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use uuid::Uuid;

/// A published column as it is now.
#[derive(Clone, Debug)]
pub enum ColumnUpdate {
    /// It is loaded.
    Loaded {
        /// Its blocks.
        blocks: Column,
        /// The main world was never told of it, or that it was unloaded since.
        is_new: bool,
    },
    /// It is loaded, and other parts of it than before.
    Changed {
        /// The chunk heights that are not loaded any more, or have come anew since.
        lost: HeightSet,
        /// The part that has come.
        gained: Column,
    },
    /// It is not loaded any more.
    Unloaded,
}

impl ColumnUpdate {
    /// Whether what is known of the chunk at this height from before counts no more.
    fn replaces(&self, height: i64) -> bool {
        match self {
            Self::Loaded { .. } | Self::Unloaded => true,
            Self::Changed { lost, gained } => lost.contains(height) || gained.is_loaded(height),
        }
    }
}

/// What changed since the main world looked last: state, not a stream. What came and went since then is not told at all.
/// So however long the main world stalls, what waits for it is bounded: the newest state of what is loaded and mirrored
/// now, a word for each column and mirror that it still has and that is gone, and for the events a queue. Events that do not fit
/// in it are dropped and counted. Letters are bounded where they are sent, and what is too much comes back.
///
/// As a resource of the main world: what that has taken and not applied yet.
#[derive(Resource, Default)]
pub struct Published {
    /// Columns that came or went.
    pub columns: BTreeMap<(DimensionId, ColumnPos), ColumnUpdate>,
    /// Chunks that changed within loaded columns; apply after `columns`.
    pub chunks: BTreeMap<(DimensionId, ChunkPos), Arc<Chunk>>,
    /// Mirrored entities that changed.
    pub mirrors: FxHashMap<Uuid, MirrorUpdate>,
    /// Jobs that came on.
    pub jobs: BTreeMap<JobId, JobStatus>,
    /// Arenas that changed, by name; without a status those that are gone.
    pub arenas: BTreeMap<String, (Arena, Option<ArenaStatus>)>,
    /// What happened, oldest first.
    pub events: VecDeque<WorldEvent>,
    /// Events that were dropped since their queue was full.
    pub dropped_events: u64,
    /// Messages and closures for the main world, oldest first.
    pub letters: VecDeque<Letter>,
    /// What listeners of far views are told, each with its job and the dimension, oldest first: a listener gets no more before it
    /// took what is here.
    pub far_views: VecDeque<(JobId, DimensionId, FarNews)>,
    /// What a region panicked with, if that is to end the app.
    pub panic: Option<SyncCell<Box<dyn Any + Send>>>,
    /// The newest statistics.
    pub statistics: Option<WorldStatistics>,
}

/// Events that wait at most for the main world.
const MAX_EVENTS: usize = 65_536;

impl Published {
    /// Refusals and losses fill at most half of the queue, so that a flood of them leaves all other events their places.
    pub(super) fn push_event(&mut self, event: WorldEvent) {
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

    /// What comes and goes before anyone looks leaves nothing behind.
    pub(super) fn push_column(&mut self, column: (DimensionId, ColumnPos), mut update: ColumnUpdate) {
        match (self.columns.get_mut(&column), &mut update) {
            (Some(ColumnUpdate::Loaded { blocks, .. }), ColumnUpdate::Changed { lost, gained }) => {
                blocks.cut(lost);
                blocks.extend(gained);
                return;
            }
            (Some(ColumnUpdate::Changed { lost, gained }), ColumnUpdate::Changed { lost: cut, gained: added }) => {
                // What came and went before anyone looked was never there.
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

    /// A column came, changed or went: older changes of it are part of that.
    pub fn update_column(&mut self, column: (DimensionId, ColumnPos), update: ColumnUpdate) {
        self.chunks.retain(|(of, chunk), _| (*of, chunk.column()) != column || !update.replaces(chunk.y));
        self.push_column(column, update);
    }

    pub(super) fn push_mirror(&mut self, update: MirrorUpdate) {
        match (self.mirrors.get_mut(&update.id), &update.position) {
            (Some(known), None) if known.is_new => drop(self.mirrors.remove(&update.id)),
            (Some(known), Some(_)) => {
                known.position = update.position;
                known.components.extend(update.components);
            }
            (Some(_) | None, _) => drop(self.mirrors.insert(update.id, update)),
        }
    }

    /// Takes over what `newer` has to say.
    pub fn append(&mut self, newer: Self) {
        // Older changes of a column are part of its newer state, or it is gone.
        if !newer.columns.is_empty() && !self.chunks.is_empty() {
            self.chunks.retain(|(dimension, chunk), _| {
                let update = newer.columns.get(&(*dimension, chunk.column()));
                update.is_none_or(|update| !update.replaces(chunk.y))
            });
        }
        newer.columns.into_iter().for_each(|(column, update)| self.push_column(column, update));
        self.chunks.extend(newer.chunks);
        newer.mirrors.into_values().for_each(|update| self.push_mirror(update));
        self.jobs.extend(newer.jobs);
        self.arenas.extend(newer.arenas);
        newer.events.into_iter().for_each(|event| self.push_event(event));
        self.letters.extend(newer.letters);
        self.far_views.extend(newer.far_views);
        self.panic = self.panic.take().or(newer.panic);
        self.dropped_events += newer.dropped_events;
        self.statistics = newer.statistics.or(self.statistics.take());
    }

    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
            && self.chunks.is_empty()
            && self.mirrors.is_empty()
            && self.jobs.is_empty()
            && self.arenas.is_empty()
            && self.events.is_empty()
            && self.letters.is_empty()
            && self.far_views.is_empty()
            && self.panic.is_none()
            && self.statistics.is_none()
    }
}
