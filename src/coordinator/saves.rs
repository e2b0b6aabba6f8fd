//! Saving: one pending save for all regions, committed as a whole.
//!
//! Regions hand out their unsaved state at the end of a tick, in turns (see `autosave`). Entities and columns that leave a
//! region in between bring its unsaved state along. So the pending save is consistent at any time, and since each commit
//! writes all of it, a crash never duplicates anything and loses nothing that was stored before. A save that the game
//! requests asks every region. It is answered when all regions have answered and their state survives a loss of power.
//!
//! An answer of the store may be older than a commit that is confirmed before the answer is handled. So a question is asked with a
//! [`Moment`]: until the question ends, [`Saves`] keeps what was not confirmed at that moment, and the answer is combined with that.
//!
//! A store that cannot keep up slows the world down before memory grows: first nothing new is ordered and the regions are
//! not asked, then they do not tick.

pub mod autosave;
pub mod received;

use crate::coordinator::messages::saving::{SaveError, SaveRequest};
use crate::coordinator::messages::settings::{Backlog, SaveDurability, Settings};
use crate::coordinator::saves::autosave::Autosave;
use crate::coordinator::saves::received::Received;
use crate::region::RegionId;
use crate::simulation::SavedChunks;
use crate::space::{ChunkPos, ColumnPos, DimensionId};
use crate::storage::servers::{Crossing, CrossingId, LOCAL, Plot};
use crate::storage::{Commit, Durability, EntityRecord, SaveBatch, StorageThread, StoreError};
use bevy::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;
use uuid::Uuid;

/// How long the state of the other regions waits for a hung one, at most.
const PATIENCE: Duration = Duration::from_secs(2);
/// The maximum number of ticks of regions whose actions wait for a synced commit.
const MOST_ACTIONS: usize = 1 << 16;
/// The wait after a failed commit.
const RETRY: Duration = Duration::from_secs(1);
/// The time within which commits are synced with [`SaveDurability::EachSecond`].
const SYNC_WITHIN: Duration = Duration::from_secs(1);

#[derive(Resource, Default)]
pub struct Saves {
    pub pending: SaveBatch,
    pub autosave: Autosave,
    durability: SaveDurability,
    /// The number of unwritten things at which the store counts as behind; at twice that number the regions do not tick.
    limit: usize,
    /// Saves that the game requested and that have not begun.
    pub requested: Vec<SaveRequest>,
    /// Unfinished rounds of asking the regions, oldest first.
    rounds: Vec<Round>,
    last_round: u64,
    is_commit_requested: bool,
    /// The number of the last commit that was handed to the storage thread.
    commits: u64,
    /// The number of the last commit that the store has confirmed.
    acknowledged: u64,
    /// The commit in flight, and whether it and all commits before it are synced.
    sent: Option<(Arc<SaveBatch>, bool)>,
    /// The entities of confirmed commits that open questions may have missed, oldest first, each with the number of its commit.
    confirmed: VecDeque<(u64, SaveBatch)>,
    /// The moments of open questions, oldest first.
    moments: Vec<Weak<u64>>,
    /// `true` if the store has commits that a loss of power may take back.
    is_unsynced: bool,
    /// Requests that the next synced commit answers.
    pub answers: Vec<SaveRequest>,
    /// Requests whose data is durable and that were not answered yet.
    pub to_answer: Vec<SaveRequest>,
    /// The incarnation of this server, if several servers share the world.
    pub server: Option<u64>,
    /// The crossings that have arrived, or are on their way from region to region, and are still in the store.
    pub received: Received,
    /// Actions that were done and are not durable, with the number of the commit that has them.
    actions: VecDeque<(u64, Vec<(u64, Uuid)>)>,
    /// The number of this opening of the world, which names its crossings if no other server shares the world.
    session: u64,
    /// The number of the last crossing.
    crossings: u64,
    /// `true` if another process or server has taken over, so that nothing can be saved any more.
    pub has_ended: bool,
    /// The records of restores whose changes could not be saved.
    pub unsaved_restores: Vec<PathBuf>,
    /// When the pending save is committed.
    commit_at: Duration,
    /// When unsynced commits are synced, with [`SaveDurability::EachSecond`].
    sync_at: Duration,
    retry_at: Duration,
    /// When the storage thread next looks for backup requests of other processes.
    pub next_look: Duration,
    pub bytes: u64,
    pub time: Duration,
    pub count: u64,
}

/// When a question to the store began. The entities of commits that were not confirmed then are kept until it is dropped.
#[derive(Clone)]
pub struct Moment(Arc<u64>);

impl PartialEq for Moment {
    /// Returns `true` for clones: each question has a moment of its own.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// A commit that the store has confirmed.
#[must_use]
pub struct Stored {
    pub number: u64,
    pub batch: Arc<SaveBatch>,
}

/// The ends of commits.
#[must_use]
#[derive(Default)]
pub struct Committed {
    /// The commits that the store has confirmed.
    pub stored: Vec<Stored>,
    /// The errors, each with the requests that fail by it.
    pub failed: Vec<(SaveError, Vec<SaveRequest>)>,
    /// The actions that are durable now, with their entities.
    pub durable: Vec<(u64, Uuid)>,
}

/// One round of asking every region for its unsaved state.
struct Round {
    number: u64,
    /// The regions that have not answered.
    wanted: BTreeSet<(DimensionId, RegionId)>,
    since: Duration,
    /// `true` if only the round's own requests still wait for it.
    overdue: bool,
    requests: Vec<SaveRequest>,
}

impl Saves {
    pub fn new(config: &Settings, server: Option<u64>, session: u64) -> Self {
        let autosave = Autosave::new(config.saving.autosave_period);
        let commit_at = autosave.commit_within;
        let (durability, limit) = (config.saving.durability, config.saving.unsaved_limit.max(1));
        Self { autosave, durability, limit, commit_at, server, session, ..Self::default() }
    }

    /// Notes actions whose effects are in the pending save.
    pub fn note_actions(&mut self, actions: Vec<(u64, Uuid)>) {
        if !actions.is_empty() {
            self.actions.push_back((self.stored_with(), actions));
            // Without syncs, nobody is told of the oldest.
            if self.actions.len() > MOST_ACTIONS {
                self.actions.pop_front();
            }
        }
    }

    /// Sends something to a plot of another server, with the next commit.
    pub fn send_to(&mut self, plot: Plot, crossing: Crossing) {
        if let Some(sender) = self.server {
            self.crossings += 1;
            self.pending.sent.insert(CrossingId { plot, sender, number: self.crossings }, crossing);
        }
    }

    /// Stores a message on its way from region to region with the next commit, in a row for a plot of this server. It is underway at once.
    pub fn send_here(&mut self, plot: Plot, message: Crossing) -> CrossingId {
        self.crossings += 1;
        // Numbers of openings and of servers are not confused.
        let sender = self.server.map_or(LOCAL << 1 | self.session, |server| LOCAL | server);
        let id = CrossingId { plot, sender, number: self.crossings };
        self.pending.sent.insert(id, message);
        self.received.deliver(id);
        id
    }

    /// Sends a message on to a plot of another server. If it came from another server, it goes on from here with the next commit.
    pub fn send_on(&mut self, from: Option<CrossingId>, plot: Plot, message: Crossing) {
        self.pending.received.extend(from);
        self.note_removed(from);
        self.send_to(plot, message);
    }

    /// Notes that a message that is stored on its way did not reach its region. It is found in the store again, once it is there.
    pub fn forget(&mut self, id: CrossingId) {
        self.received.forget(id);
        self.is_commit_requested |= self.pending.sent.contains_key(&id);
    }

    /// Notes that the pending save removes these crossings from the store.
    pub fn note_removed(&mut self, ids: impl IntoIterator<Item = CrossingId>) {
        self.received.remove(ids, self.commits + 1);
    }

    /// Where an entity is that is on its way into the store, or to another server with it: `None` if nothing is known here, and
    /// `None` within if it is gone.
    pub fn missed_place(&self, moment: &Moment, id: Uuid) -> Option<Option<(DimensionId, ColumnPos)>> {
        let place = |record: &EntityRecord| (record.dimension, record.column());
        self.missed_by(moment).find_map(|batch| {
            // An entity that leaves for another server is removed in the same batch. If it has a record there, it has come back since.
            let here = batch.entities.get(&id).map(|record| record.as_ref().map(place));
            let sent = batch.sent.iter().filter_map(|(crossing, contents)| match contents {
                Crossing::Entities(records) => Some((crossing.number, records)),
                Crossing::Message { .. } | Crossing::MessageAway { .. } => None,
            });
            let sent = sent.filter_map(|(number, records)| {
                Some((number, records.iter().find(|record| record.ids().any(|of| of == id))?))
            });
            let sent = || sent.max_by_key(|(number, _)| *number).map(|(_, record)| Some(place(record)));
            here.filter(Option::is_some).or_else(sent).or(here)
        })
    }

    /// The number of the commit with which everything handed out so far is stored.
    pub fn stored_with(&self) -> u64 {
        if self.pending.is_empty() { self.commits } else { self.commits + 1 }
    }

    /// The last commit that the store has confirmed.
    pub fn last_stored(&self) -> u64 {
        self.acknowledged
    }

    /// Returns `true` if the store has that commit. Unless they are synced, a loss of power may take back the last commits.
    pub fn is_stored(&self, commit: u64) -> bool {
        commit <= self.acknowledged
    }

    /// The chunks of a column that are on their way into the store.
    pub fn unwritten(&self, dimension: DimensionId, column: ColumnPos) -> SavedChunks {
        let mut newest = BTreeMap::new();
        // Chunks are sorted by x first, so this range holds a row of columns.
        let [low, high] = [i64::MIN, i64::MAX].map(|end| (dimension, ChunkPos::new(column.x, end, end)));
        for batch in self.unwritten_batches() {
            let found = batch.chunks.range(low..=high).filter(|((_, chunk), _)| chunk.column() == column);
            for ((_, chunk), blocks) in found {
                newest.entry(chunk.y).or_insert_with(|| blocks.clone());
            }
        }
        newest.into_iter().collect()
    }

    /// The batches on their way into the store, newest first.
    pub fn unwritten_batches(&self) -> impl Iterator<Item = &SaveBatch> {
        [Some(&self.pending), self.sent.as_ref().map(|(batch, _)| &**batch)].into_iter().flatten()
    }

    /// The moment of a question that begins now.
    pub fn begin_question(&mut self) -> Moment {
        let moment = Arc::new(self.acknowledged);
        self.moments.push(Arc::downgrade(&moment));
        Moment(moment)
    }

    /// The batches that a question may have missed in the store, newest first. Confirmed ones have only entities.
    pub fn missed_by(&self, moment: &Moment) -> impl Iterator<Item = &SaveBatch> {
        let confirmed = self.confirmed.iter().rev().take_while(|(number, _)| *number > *moment.0);
        self.unwritten_batches().chain(confirmed.map(|(_, batch)| batch))
    }

    /// The newest state of an entity that a question may have missed: its record, or `None` within if it was removed.
    pub fn missed_entity(&self, moment: &Moment, id: Uuid) -> Option<&Option<EntityRecord>> {
        self.missed_by(moment).find_map(|batch| batch.entities.get(&id))
    }

    /// The places of entities in commits that were confirmed since the question began, oldest first; `None` if an entity was removed.
    /// From then on, the question is as new as if it began now.
    pub fn renew(&mut self, moment: &mut Moment) -> Vec<(Uuid, Option<(DimensionId, ColumnPos)>)> {
        let missed = self.confirmed.iter().filter(|(number, _)| *number > *moment.0);
        let place = |record: &EntityRecord| (record.dimension, record.column());
        let entities = missed.flat_map(|(_, batch)| &batch.entities);
        let places: Vec<_> = entities.map(|(id, record)| (*id, record.as_ref().map(place))).collect();
        if *moment.0 < self.acknowledged {
            *moment = self.begin_question();
        }
        places
    }

    /// Drops confirmed commits that no open question needs.
    pub fn forget_confirmed(&mut self) {
        self.moments.retain(|moment| moment.strong_count() > 0);
        let oldest = self.moments.first().and_then(Weak::upgrade).map_or(u64::MAX, |moment| *moment);
        while self.confirmed.front().is_some_and(|(number, _)| *number <= oldest) {
            self.confirmed.pop_front();
        }
    }

    /// Returns `true` if the clock, entities or pre-generations of this dimension are on their way into the store.
    pub fn has_unwritten(&self, dimension: DimensionId) -> bool {
        let is_of = |batch: &SaveBatch| {
            let mut records = batch.entities.values().flatten();
            let mut jobs = batch.pregenerations.keys();
            batch.clocks.contains_key(&dimension)
                || records.any(|record| record.dimension == dimension)
                || jobs.any(|(of, _)| *of == dimension)
        };
        self.unwritten_batches().any(is_of)
    }

    /// The number of things on their way into the store.
    pub fn unwritten_len(&self) -> usize {
        self.unwritten_batches().map(SaveBatch::len).sum()
    }

    /// How far the store is behind.
    pub fn backlog(&self) -> Backlog {
        match self.unwritten_len() {
            len if len > self.limit.saturating_mul(2) => Backlog::TicksWait,
            len if len > self.limit => Backlog::OrdersWait,
            _ => Backlog::None,
        }
    }

    /// Returns `true` if the store cannot keep up. Nothing new is ordered then.
    pub fn is_behind(&self) -> bool {
        self.backlog() != Backlog::None
    }

    /// Returns `true` if the store is so far behind that regions do not tick.
    pub fn holds_ticks(&self) -> bool {
        self.backlog() == Backlog::TicksWait
    }

    /// Takes all unanswered requests, when nothing more will be saved.
    pub fn take_requests(&mut self) -> Vec<SaveRequest> {
        let asked = self.rounds.drain(..).flat_map(|round| round.requests);
        self.answers.drain(..).chain(asked).chain(self.requested.drain(..)).collect()
    }

    /// Returns `true` if the region is due to hand out its unsaved state for an autosave.
    pub fn is_due(&self, due: &mut Option<Duration>, region: (DimensionId, RegionId), now: Duration) -> bool {
        // Unsaved state costs nothing while the region holds it.
        self.autosave.is_due(due, region, now) && !self.is_behind()
    }

    /// Commits the pending save as soon as possible, without asking the regions.
    pub fn request_commit(&mut self) {
        self.is_commit_requested = true;
    }

    /// The newest round that waits for the region.
    pub fn wants(&self, dimension: DimensionId, region: RegionId) -> Option<u64> {
        let wanted = |round: &&Round| round.wanted.contains(&(dimension, region));
        self.rounds.iter().rev().find(wanted).map(|round| round.number)
    }

    /// Notes that the region handed out its unsaved state in a task that began in round `until`. That answers older rounds too.
    pub fn note_handed_out(&mut self, dimension: DimensionId, region: RegionId, until: u64) {
        for round in self.rounds.iter_mut().filter(|round| round.number <= until) {
            round.wanted.remove(&(dimension, region));
        }
    }

    /// Removes a region that has nothing left from all rounds.
    pub fn gone(&mut self, dimension: DimensionId, region: RegionId) {
        self.note_handed_out(dimension, region, u64::MAX);
    }

    /// Handles a region whose unsaved state is lost. Returns the game's requests for it, which have failed.
    pub fn halted(&mut self, dimension: DimensionId, region: RegionId) -> Vec<SaveRequest> {
        let mut failed = Vec::new();
        for round in &mut self.rounds {
            if round.wanted.remove(&(dimension, region)) {
                failed.append(&mut round.requests);
            }
        }
        // No region was asked for these requests yet, so this one cannot have handed out anything for them.
        failed.append(&mut self.requested);
        failed
    }

    /// Notes that `into` now holds the unsaved state of `from`.
    pub fn merged(&mut self, dimension: DimensionId, from: RegionId, into: RegionId) {
        for round in &mut self.rounds {
            if round.wanted.remove(&(dimension, from)) {
                round.wanted.insert((dimension, into));
            }
        }
    }

    /// Notes that the parts of `from` now hold its unsaved state too.
    pub fn split(&mut self, dimension: DimensionId, from: RegionId, into: &[RegionId]) {
        for round in &mut self.rounds {
            if round.wanted.contains(&(dimension, from)) {
                round.wanted.extend(into.iter().map(|part| (dimension, *part)));
            }
        }
    }
}

impl Saves {
    /// Returns `true` if the game has requested saves and the regions may be asked for their unsaved state.
    pub fn may_ask(&self) -> bool {
        !self.requested.is_empty() && self.rounds.iter().all(|round| round.overdue)
    }

    /// Asks these regions for their unsaved state, for all requested saves.
    pub fn ask(&mut self, wanted: BTreeSet<(DimensionId, RegionId)>, now: Duration) {
        let requests = mem::take(&mut self.requested);
        self.last_round += 1;
        self.rounds.push(Round { number: self.last_round, wanted, since: now, overdue: false, requests });
    }

    /// Returns `true` if the pending save is to be committed now.
    pub fn is_commit_due(&mut self, now: Duration) -> bool {
        if self.sent.is_some() || now < self.retry_at {
            return false;
        }
        let is_long = self.pending.len() >= self.limit / 4;
        let mut submit = mem::take(&mut self.is_commit_requested);
        submit |= !self.pending.is_empty() && (is_long || now >= self.commit_at);
        submit |= self.is_unsynced && self.durability == SaveDurability::EachSecond && now >= self.sync_at;
        for round in self.rounds.extract_if(.., |round| round.wanted.is_empty()) {
            self.answers.extend(round.requests);
            submit = true;
        }
        let is_late = |round: &&mut Round| !round.overdue && now >= round.since.saturating_add(PATIENCE);
        for round in self.rounds.iter_mut().filter(is_late) {
            let hanging: Vec<_> = round.wanted.iter().map(|(_, region)| region.to_string()).collect();
            warn!("saved without {}, which did not end a tick within {PATIENCE:?}", hanging.join(", "));
            round.overdue = true;
            submit = true;
        }
        self.rounds.retain(|round| !round.overdue || !round.requests.is_empty());
        submit
    }

    /// Hands the pending save to the storage thread, and has it synced if that is necessary or `sync` is set. `complete` adds
    /// what each save has.
    pub fn submit(&mut self, sync: bool, complete: impl FnOnce(&mut SaveBatch), thread: &StorageThread, now: Duration) {
        // A save request is answered only when the store has confirmed a synced commit.
        let is_asked = !self.answers.is_empty();
        let sync = sync || is_asked || self.durability.is_sync_due(now >= self.sync_at);
        if self.pending.is_empty() && !is_asked && !(sync && self.is_unsynced) {
            return;
        }
        complete(&mut self.pending);
        let batch = Arc::new(mem::take(&mut self.pending));
        let durability = if sync { Durability::Sync } else { Durability::Process };
        match thread.try_submit(batch.clone(), durability, self.commits + 1) {
            Ok(()) => {
                self.commits += 1;
                self.sent = Some((batch, sync));
                self.commit_at = now.saturating_add(self.autosave.commit_within);
                if sync {
                    self.sync_at = now.saturating_add(SYNC_WITHIN);
                }
            }
            // Only one commit is in flight at a time, so a refusal means that the thread has ended.
            Err(refused) => {
                // Dropped so that the batch has one owner and is not copied.
                drop(batch);
                self.pending = Arc::unwrap_or_clone(refused);
            }
        }
    }

    /// Drops what can no longer be saved, since another server has ended this one. Returns the requests for it.
    #[must_use]
    pub fn drop_unsaved(&mut self) -> Vec<SaveRequest> {
        self.pending = SaveBatch::default();
        self.take_requests()
    }

    /// Returns `true` if a commit is in flight.
    pub fn is_committing(&self) -> bool {
        self.sent.is_some()
    }

    /// Returns `true` if everything handed out is in the store and survives a loss of power.
    pub fn is_all_synced(&self) -> bool {
        self.pending.is_empty() && self.sent.is_none() && !self.is_unsynced
    }

    /// Handles the ends of commits.
    pub fn finish_commits(&mut self, commits: Vec<Commit>, now: Duration) -> Committed {
        let mut ended = Committed::default();
        for Commit { number, batch, result } in commits {
            let sent = self.sent.take();
            match result {
                Ok(report) => {
                    self.count += 1;
                    self.bytes += report.bytes;
                    self.time += report.duration;
                    for damaged in &report.replaced {
                        warn!("a damaged value was replaced by the saved one: {damaged}");
                    }
                    self.acknowledged = number;
                    if self.server.is_none() {
                        // Others may be reading the store for crossings meanwhile.
                        self.received.forget_removed(number);
                    }
                    if self.moments.iter().any(|moment| moment.strong_count() > 0) {
                        let (entities, sent) = (batch.entities.clone(), batch.sent.clone());
                        self.confirmed.push_back((number, SaveBatch { entities, sent, ..SaveBatch::default() }));
                    }
                    ended.stored.push(Stored { number, batch: batch.clone() });
                    self.is_unsynced = !sent.is_some_and(|(_, is_synced)| is_synced);
                    if !self.is_unsynced {
                        let is_durable = |(commit, _): &mut (u64, Vec<_>)| *commit <= number;
                        while let Some((_, actions)) = self.actions.pop_front_if(is_durable) {
                            ended.durable.extend(actions);
                        }
                        self.to_answer.append(&mut self.answers);
                    }
                }
                Err(error) => {
                    // Dropped so that the batch has one owner and is not copied.
                    drop(sent);
                    let is_superseded = matches!(error, StoreError::Superseded { .. });
                    self.has_ended |= self.server.is_some() && is_superseded;
                    if self.has_ended {
                        error!("saving failed for good, and what was not saved is dropped: {error}");
                        ended.failed.push((error.into(), self.take_requests()));
                        continue;
                    }
                    match is_superseded {
                        true => error!("saving failed: {error}"),
                        false => error!("saving failed and will be retried: {error}"),
                    }
                    ended.failed.push((error.into(), Vec::new()));
                    // Later changes are newer.
                    let newer = mem::replace(&mut self.pending, Arc::unwrap_or_clone(batch));
                    self.pending.merge(newer);
                    self.retry_at = now.saturating_add(RETRY);
                    self.request_commit();
                }
            }
        }
        ended
    }
}
