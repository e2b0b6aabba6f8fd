//! Saving: one pending batch over all regions, committed as a whole.
//!
//! A save asks every region for what is unsaved at the end of its next tick, and commits when all have answered. What
//! leaves a region in between brings the region's unsaved state along, so the pending batch is consistent at any time
//! and may be committed early.

use super::backup::SaveRequest;
use super::collect::Desk;
use super::dimension::Dimensions;
use super::events::SaveFailed;
use crate::region::RegionId;
use crate::simulation::SavedChunks;
use crate::space::{ChunkPos, ColumnPos, DimensionId};
use crate::storage::{Commit, Durability, SaveBatch};
use bevy::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

/// A pending batch of this many things is committed before the regions are asked.
const EARLY_COMMIT: usize = 16_384;
/// With so much unsaved the store is too slow: nothing new is ordered.
const BEHIND: usize = 4 * EARLY_COMMIT;
/// An autosave does not wait longer for a region that hangs.
const PATIENCE: Duration = Duration::from_secs(2);
/// The wait after a failed commit.
const RETRY: Duration = Duration::from_secs(1);

#[derive(Resource, Default)]
pub(super) struct Saves {
    pub pending: SaveBatch,
    /// Saves that the game asked for and that have not begun.
    pub requested: Vec<SaveRequest>,
    /// Rounds of asking the regions that are not finished, oldest first.
    rounds: Vec<Round>,
    last_round: u64,
    /// The number of the last commit that was handed to the storage thread.
    commits: u64,
    /// The number of the last commit that is durable.
    acknowledged: u64,
    in_flight: bool,
    /// What is in flight.
    sent: Option<Arc<SaveBatch>>,
    /// Requests that the commit in flight answers.
    pub answers: Vec<SaveRequest>,
    began: Duration,
    retry_at: Duration,
    pub last_commit: Option<crate::storage::CommitReport>,
    pub bytes: u64,
    pub time: Duration,
    pub count: u64,
}

/// One round of asking every region for what is unsaved.
struct Round {
    number: u64,
    /// The regions that have not handed it out.
    wanted: BTreeSet<(DimensionId, RegionId)>,
    since: Duration,
    /// Nobody waits for it but those who asked for it.
    overdue: bool,
    requests: Vec<SaveRequest>,
}

impl Saves {
    /// The number of the commit with which everything that was handed out up to now is durable.
    pub fn durable_with(&self) -> u64 {
        if self.pending.is_empty() { self.commits } else { self.commits + 1 }
    }

    /// The last commit that is durable.
    pub fn last_durable(&self) -> u64 {
        self.acknowledged
    }

    /// Whether that commit is durable.
    pub fn is_durable(&self, commit: u64) -> bool {
        commit <= self.acknowledged
    }

    /// The chunks of a column that are on their way into the store.
    pub fn unwritten(&self, dimension: DimensionId, column: ColumnPos) -> SavedChunks {
        let mut newest = BTreeMap::new();
        // Chunks are sorted by x first: these are those of a row of columns.
        let [low, high] = [i64::MIN, i64::MAX].map(|end| (dimension, ChunkPos::new(column.x, end, end)));
        for batch in self.unwritten_batches() {
            let found = batch.chunks.range(low..=high).filter(|((_, chunk), _)| chunk.column() == column);
            for ((_, chunk), blocks) in found {
                newest.entry(chunk.y).or_insert_with(|| blocks.clone());
            }
        }
        newest.into_iter().collect()
    }

    /// What is on its way into the store, the newest first.
    pub fn unwritten_batches(&self) -> impl Iterator<Item = &SaveBatch> {
        [Some(&self.pending), self.sent.as_deref()].into_iter().flatten()
    }

    /// Whether entities are on their way into the store that are in this dimension.
    pub fn has_unwritten_entities(&self, dimension: DimensionId) -> bool {
        let mut records = self.unwritten_batches().flat_map(|batch| batch.entities.values().flatten());
        records.any(|record| record.dimension == dimension)
    }

    /// Whether the store cannot keep up.
    pub fn is_behind(&self) -> bool {
        self.pending.len() > BEHIND
    }

    /// What is pending is written as soon as it may be; nobody is asked for more.
    pub fn request_commit(&mut self, now: Duration) {
        if self.rounds.iter().any(|round| round.number == 0) {
            return;
        }
        let (wanted, requests) = (BTreeSet::new(), Vec::new());
        self.rounds.push(Round { number: 0, wanted, since: now, overdue: false, requests });
    }

    /// The newest round for which the region is to hand out what is unsaved, if there is one.
    pub fn wants(&self, dimension: DimensionId, region: RegionId) -> Option<u64> {
        let wanted = |round: &&Round| round.wanted.contains(&(dimension, region));
        self.rounds.iter().rev().find(wanted).map(|round| round.number)
    }

    /// The region has handed out what was unsaved, in a task that began in round `until`: older ones have it too.
    pub fn answered(&mut self, dimension: DimensionId, region: RegionId, until: u64) {
        for round in self.rounds.iter_mut().filter(|round| round.number <= until) {
            round.wanted.remove(&(dimension, region));
        }
    }

    /// The region has nothing any more.
    pub fn gone(&mut self, dimension: DimensionId, region: RegionId) {
        self.answered(dimension, region, u64::MAX);
    }

    /// The region's unsaved state is lost. Gives the requests of the game that were to save it: they have failed.
    pub fn halted(&mut self, dimension: DimensionId, region: RegionId) -> Vec<SaveRequest> {
        let mut failed = Vec::new();
        for round in &mut self.rounds {
            if round.wanted.remove(&(dimension, region)) {
                failed.append(&mut round.requests);
            }
        }
        // Nobody was asked for these yet, so the region cannot have handed anything out for them.
        failed.append(&mut self.requested);
        failed
    }

    /// What `from` did not hand out is with `into` now.
    pub fn merged(&mut self, dimension: DimensionId, from: RegionId, into: RegionId) {
        for round in &mut self.rounds {
            if round.wanted.remove(&(dimension, from)) {
                round.wanted.insert((dimension, into));
            }
        }
    }

    /// What `from` did not hand out is with its parts too.
    pub fn split(&mut self, dimension: DimensionId, from: RegionId, into: &[RegionId]) {
        for round in &mut self.rounds {
            if round.wanted.contains(&(dimension, from)) {
                round.wanted.extend(into.iter().map(|part| (dimension, *part)));
            }
        }
    }
}

/// Decides whether to ask the regions for what is unsaved.
pub(super) fn begin_save(mut saves: ResMut<Saves>, mut desk: SaveDesk) {
    let now = desk.clock.now;
    let due = now.saturating_sub(saves.began) >= desk.config.autosave_period;
    let wanted = due || !saves.requested.is_empty();
    if saves.rounds.iter().any(|round| !round.overdue && round.number != 0) || !wanted {
        return;
    }
    let mut wanted = BTreeSet::new();
    for (id, dimension) in &mut desk.dimensions.open {
        for region in dimension.regionizer.regions() {
            // A world that a halted region holds is as it was.
            let slot = dimension.regionizer.data_mut(region);
            if slot.is_none_or(|slot| slot.halted.is_none() || slot.parked.get().world.is_some()) {
                wanted.insert((*id, region));
            }
        }
    }
    let requests = mem::take(&mut saves.requested);
    saves.last_round += 1;
    let number = saves.last_round;
    saves.rounds.push(Round { number, wanted, since: now, overdue: false, requests });
    saves.began = now;
}

#[derive(bevy::ecs::system::SystemParam)]
pub(super) struct SaveDesk<'w> {
    config: Res<'w, super::CoordinatorConfig>,
    clock: Res<'w, super::clock::Clock>,
    dimensions: ResMut<'w, Dimensions>,
}

/// Handles finished commits and starts the next one.
pub(super) fn commit(mut desk: Desk) {
    desk.finish_commits();
    let now = desk.clock.now;
    let saves = &mut *desk.saves;
    if saves.in_flight || now < saves.retry_at {
        return;
    }
    let mut submit = saves.pending.len() >= EARLY_COMMIT;
    for round in saves.rounds.extract_if(.., |round| round.wanted.is_empty()) {
        saves.answers.extend(round.requests);
        submit = true;
    }
    for round in saves.rounds.iter_mut().filter(|round| !round.overdue && now >= round.since.saturating_add(PATIENCE)) {
        let hanging: Vec<_> = round.wanted.iter().map(|(_, region)| region.to_string()).collect();
        warn!("saved without {}, which did not end a tick within {PATIENCE:?}", hanging.join(", "));
        round.overdue = true;
        submit = true;
    }
    saves.rounds.retain(|round| !round.overdue || !round.requests.is_empty());
    if !submit {
        return;
    }
    desk.submit();
    if desk.config.mode.is_lockstep() {
        desk.wait_for_commit();
    }
}

impl Desk<'_> {
    /// Hands what is pending to the storage thread.
    pub fn submit(&mut self) {
        let saves = &mut *self.saves;
        if saves.pending.is_empty() {
            return self.answer_saves();
        }
        let batch = Arc::new(mem::take(&mut saves.pending));
        match self.threads.storage.try_submit(batch.clone(), Durability::Sync, saves.commits + 1) {
            Ok(()) => {
                saves.commits += 1;
                saves.in_flight = true;
                saves.sent = Some(batch);
            }
            // Only one commit is under way at a time, so this means that the thread has ended.
            Err(_) => saves.pending = Arc::unwrap_or_clone(batch),
        }
    }

    pub fn wait_for_commit(&mut self) {
        // It may have come in already, with other events, and not be handled yet.
        self.finish_commits();
        while self.saves.in_flight {
            let Ok(event) = self.threads.events.recv() else { return };
            self.inbound.push(event);
            self.finish_commits();
        }
    }

    /// What sparse ground looks like from afar is made of all that is stored of it, and so it is known only now.
    fn note_new_sparse_ground(&mut self, durable: Option<&SaveBatch>) {
        let is_sparse = |id: &DimensionId| self.dimensions.open.get(id).is_some_and(|open| open.sparse.is_some());
        let chunks = durable.into_iter().flat_map(|batch| batch.chunks.keys()).filter(|(id, _)| is_sparse(id));
        let columns: BTreeSet<_> = chunks.map(|(id, chunk)| (*id, chunk.column())).collect();
        for (id, column) in columns {
            if let Some(dimension) = self.dimensions.open.get_mut(&id) {
                self.far_views.edited(dimension, column);
            }
        }
    }

    fn finish_commits(&mut self) {
        for Commit { ticket, result } in mem::take(&mut self.inbound.commits) {
            self.saves.in_flight = false;
            let sent = self.saves.sent.take();
            match result {
                Ok(report) => {
                    self.note_new_sparse_ground(sent.as_deref());
                    self.saves.count += 1;
                    self.saves.bytes += report.bytes;
                    self.saves.time += report.duration;
                    for damaged in &report.replaced {
                        warn!("a damaged value was replaced by the saved one: {damaged}");
                    }
                    self.saves.last_commit = Some(report);
                    self.saves.acknowledged = ticket;
                    for dimension in self.dimensions.open.values_mut() {
                        dimension.departed.forget_until(ticket);
                    }
                    self.answer_saves();
                }
                Err(failed) => {
                    error!("saving failed, it is tried again: {}", failed.error);
                    self.publisher.event(SaveFailed { error: failed.error.to_string(), requests: Vec::new() });
                    // What changed since is newer.
                    let newer = mem::replace(&mut self.saves.pending, Arc::unwrap_or_clone(failed.batch));
                    self.saves.pending.merge(newer);
                    self.threads.storage.resume();
                    self.saves.retry_at = self.clock.now.saturating_add(RETRY);
                    let now = self.clock.now;
                    self.saves.request_commit(now);
                }
            }
        }
    }
}
