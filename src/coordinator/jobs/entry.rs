//! One job: its turns, its progress, and its reports to the main world and the store.

use super::sweep::Sweep;
use crate::coordinator::dimension::{DimensionBook, OpenDimension};
use crate::coordinator::far_view::Listener;
use crate::coordinator::figures::totals::RecentRate;
use crate::coordinator::messages::jobs::{
    Job, JobId, JobKind, JobOrder, JobProgress, JobState, JobStatus, Pregeneration,
};
use crate::coordinator::messages::snapshots::{JobError, SnapshotOrder};
use crate::coordinator::saves::Saves;
use crate::coordinator::snapshots::records::Record;
use crate::coordinator::snapshots::transfer::Transfer;
use crate::coordinator::surroundings::Surroundings;
use crate::space::DimensionId;
use crate::storage::StoredPregeneration;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The time between two reports of a job to the main world, and between two of its saves.
const PROGRESS_PERIOD: Duration = Duration::from_millis(250);

pub struct Entry {
    pub job: Job,
    pub work: Work,
    is_paused: bool,
    is_cancelled: bool,
    progress: JobProgress,
    rate: RecentRate,
    last_pass: Option<Duration>,
    /// When the last report was sent to the main world; `None` to send one in this pass.
    told: Option<Duration>,
}

/// The work of a job, with the data that only this kind of work needs.
pub enum Work {
    /// A capture or a restore.
    Transfer(Box<Transfer>),
    /// A pre-generation.
    Sweep(Box<Sweep>),
    /// A far view.
    FarView(Box<Listener>),
}

impl Entry {
    fn new(id: JobId, kind: JobKind, work: Work) -> Self {
        let (is_paused, is_cancelled, progress, rate, last_pass, told) = Default::default();
        Self { job: Job { id, kind }, work, is_paused, is_cancelled, progress, rate, last_pass, told }
    }

    /// A capture, or a restore with its record if it is recorded on disk. If the record is written already, the job resumes an
    /// interrupted restore.
    pub fn transfer(id: JobId, order: SnapshotOrder, record: Option<Record>) -> Self {
        let transfer = Transfer::new(id, order, record);
        Self::new(id, transfer.kind(), Work::Transfer(Box::new(transfer)))
    }

    pub fn pregeneration(id: JobId, order: Pregeneration) -> Self {
        Self::new(id, JobKind::Pregeneration(order), Work::Sweep(Box::new(Sweep::new(order))))
    }

    pub fn far_view(id: JobId, listener: Listener) -> Self {
        Self::new(id, JobKind::FarView, Work::FarView(Box::new(listener)))
    }

    pub fn sweep(&self) -> Option<&Sweep> {
        match &self.work {
            Work::Sweep(sweep) => Some(sweep),
            Work::Transfer(_) | Work::FarView(_) => None,
        }
    }

    pub fn listener(&mut self) -> Option<&mut Listener> {
        match &mut self.work {
            Work::FarView(listener) => Some(listener),
            Work::Transfer(_) | Work::Sweep(_) => None,
        }
    }

    /// Takes over the state of the same job from before its dimension was closed.
    pub fn take_over(&mut self, before: &Self) {
        self.is_cancelled |= before.is_cancelled;
    }

    /// Returns `true` if the job restores something in this dimension.
    pub fn is_restore_in(&self, id: DimensionId) -> bool {
        matches!(self.job.kind, JobKind::Restore { dimension, .. } if dimension == id)
    }

    /// Begins a pre-generation in its dimension, which is now open, or continues a stored one.
    pub fn begin_sweep(&mut self, dimension: &OpenDimension, number: u64, stored: Option<StoredPregeneration>) {
        let Work::Sweep(sweep) = &mut self.work else { return };
        // Orders since then still count.
        self.is_paused |= sweep.place.is_none() && stored.is_some_and(|stored| stored.paused);
        self.progress.elapsed = stored.map_or(self.progress.elapsed, |stored| stored.elapsed);
        sweep.begin(dimension, number, stored.map(|stored| stored.cursor).unwrap_or_default());
        self.job.kind = JobKind::Pregeneration(sweep.order);
        self.told = None;
    }

    pub fn control(&mut self, order: JobOrder) {
        match order {
            JobOrder::Pause => self.is_paused = true,
            JobOrder::Resume => self.is_paused = false,
            JobOrder::Cancel => {
                self.is_cancelled = true;
                if let Work::Transfer(transfer) = &mut self.work {
                    // Work in flight is still answered.
                    transfer.task.outcome.error = Some(JobError::Cancelled);
                }
            }
        }
        self.told = None;
    }

    /// The job's place in line: jobs that have begun come first, then interrupted restores. Pre-generations are ordered by
    /// number.
    pub fn rank(&self) -> (bool, bool, u64) {
        match &self.work {
            Work::Transfer(transfer) => (!transfer.has_begun, !transfer.task.is_resumed, 0),
            Work::Sweep(sweep) => (false, false, sweep.place.map_or(u64::MAX, |(_, number)| number)),
            Work::FarView(_) => (false, false, 0),
        }
    }

    /// Returns `true` if the job may run now. `running` counts the running jobs: captures and restores under `None`, up to a
    /// limit, and pre-generations under their dimension, one in each. The others wait in line. Pre-generations and interrupted
    /// restores wait for their dimension; any other capture or restore fails if its dimension is not open.
    pub fn takes_turn(
        &self,
        is_open: impl Fn(DimensionId) -> bool,
        most_transfers: usize,
        running: &mut BTreeMap<Option<DimensionId>, usize>,
    ) -> bool {
        let (lane, most) = match &self.work {
            _ if self.is_paused => return false,
            Work::FarView(_) => return true,
            Work::Transfer(transfer) => {
                if transfer.task.is_resumed && !transfer.has_begun && !is_open(transfer.task.dimension) {
                    return false;
                }
                (None, most_transfers)
            }
            Work::Sweep(sweep) => match sweep.place {
                Some((id, _)) if is_open(id) => (Some(id), 1),
                _ => return false,
            },
        };
        let running = running.entry(lane).or_default();
        *running += 1;
        *running <= most
    }

    /// Returns `true` if the job works in this pass. A cancelled job does so even without a turn.
    pub fn has_turn(&self) -> bool {
        self.progress.state == JobState::Running || self.is_cancelled
    }

    /// Counts the time since the last pass, and notes whether the job runs in this one.
    pub fn pass(&mut self, now: Duration, has_turn: bool) {
        let last = self.last_pass.replace(now).unwrap_or(now);
        if self.progress.state == JobState::Running {
            self.progress.elapsed += now.saturating_sub(last);
        }
        self.set_state(match has_turn {
            true => JobState::Running,
            false if self.is_paused => JobState::Paused,
            false => JobState::Waiting,
        });
    }

    fn set_state(&mut self, state: JobState) {
        if self.progress.state != state {
            self.progress.state = state;
            self.rate.clear();
            self.told = None;
        }
    }

    /// Returns `true` if the job orders columns for the store.
    pub fn takes_room(&self) -> bool {
        matches!(self.work, Work::Sweep(_)) && !self.is_cancelled
    }

    /// Orders the work that can be done now, and columns for the store only as far as there is room. Returns `true` at the end
    /// of the job.
    pub fn advance(&mut self, world: &mut Surroundings, room: &mut usize, share: usize) -> bool {
        let sweep = match &mut self.work {
            Work::Transfer(transfer) => return transfer.advance(world),
            Work::FarView(listener) => {
                // A far view has no end of its own.
                listener.serve(self.job.id, world);
                return self.is_cancelled;
            }
            Work::Sweep(sweep) => sweep,
        };
        let dimension = sweep.place.and_then(|(id, _)| world.dimensions.open.get_mut(&id));
        let Some(dimension) = dimension.filter(|_| !self.is_cancelled) else { return self.is_cancelled };
        *room = room.saturating_sub(sweep.order(dimension, share, &mut world.orders));
        sweep.is_finished(&dimension.land.stored)
    }

    /// Returns the job's status if a report to the main world is due, and adds the job to the pending save.
    pub fn tell(&mut self, world: &mut Surroundings) -> Option<JobStatus> {
        let now = world.clock.now;
        if let Work::Sweep(sweep) = &mut self.work
            && let Some(dimension) = sweep.place.and_then(|(id, _)| world.dimensions.open.get(&id))
            && !dimension.is_closing()
            && sweep.is_outdated(&dimension.land.stored)
            && self.told.is_none_or(|told| now >= told.saturating_add(PROGRESS_PERIOD))
        {
            sweep.recount(&dimension.land.stored);
            self.told = None;
        }
        let is_running = self.progress.state == JobState::Running;
        if self.told.is_some_and(|told| !is_running || now < told.saturating_add(PROGRESS_PERIOD)) {
            return None;
        }
        self.told = Some(now);
        self.save(&mut world.dimensions, &mut world.saves);
        Some(self.status())
    }

    fn status(&mut self) -> JobStatus {
        match &self.work {
            Work::Transfer(transfer) => transfer.task.measure(&mut self.progress),
            Work::Sweep(sweep) => sweep.measure(&mut self.progress),
            Work::FarView(listener) => listener.measure(&mut self.progress),
        }
        if self.progress.state == JobState::Running {
            self.rate.push(self.last_pass.unwrap_or_default(), self.progress.done);
        }
        self.progress.per_second = self.rate.per_second();
        JobStatus { job: self.job, progress: self.progress.clone(), outcome: None }
    }

    /// Adds the present state of the job to the pending save; a finished job is removed from the store. A dimension that closes
    /// waits for that save.
    pub fn save(&self, dimensions: &mut DimensionBook, saves: &mut Saves) {
        let Work::Sweep(sweep) = &self.work else { return };
        let Some((id, number)) = sweep.place else { return };
        let closing = dimensions.open.get_mut(&id).and_then(|dimension| dimension.closing.as_mut());
        if dimensions.removed.contains(&id) || closing.as_ref().is_some_and(|closing| closing.remove) {
            return;
        }
        closing.into_iter().for_each(|closing| closing.until = None);
        let is_over = self.is_cancelled || self.progress.state.is_over();
        let stored = (!is_over).then(|| sweep.to_stored(self.is_paused, self.progress.elapsed));
        saves.pending.pregenerations.insert((id, number), stored);
    }

    /// Ends the job, and returns its outcome.
    pub fn end(&mut self, dimensions: &mut DimensionBook, saves: &mut Saves) -> JobStatus {
        let (state, outcome) = match &mut self.work {
            Work::FarView(listener) => {
                listener.leave(dimensions);
                (JobState::Cancelled, Default::default())
            }
            Work::Transfer(transfer) => transfer.task.end(),
            Work::Sweep(sweep) => {
                if let Some(dimension) = sweep.place.and_then(|(id, _)| dimensions.open.get_mut(&id)) {
                    sweep.leave(dimension);
                    sweep.recount(&dimension.land.stored);
                }
                (if self.is_cancelled { JobState::Cancelled } else { JobState::Finished }, Default::default())
            }
        };
        self.set_state(state);
        self.save(dimensions, saves);
        JobStatus { outcome: Some(Arc::new(outcome)), ..self.status() }
    }
}
