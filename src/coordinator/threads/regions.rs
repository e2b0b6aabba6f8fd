//! Region threads: they take jobs in the order of handover, and ended tasks wait for the coordinator.

use crate::coordinator::exchange::{Event, Notifier};
use crate::coordinator::fault::{panic, region_fault::RegionFault};
use crate::region::RegionId;
use crate::simulation::{Assignment, Outbox, RegionTemplate, RegionWorld, Salvage};
use crate::space::DimensionId;
use bevy::prelude::*;
use crossbeam_channel::{Receiver, Sender, TryRecvError, unbounded};
use std::any::Any;
use std::collections::VecDeque;
use std::io;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Tasks of coupled regions that a region thread runs one after the other; usually a single one. Letters from one of the regions
/// to a later one arrive before that one begins.
pub type RegionJob = VecDeque<Assignment>;

/// Ended tasks that the coordinator has not seen. Only the first of them wakes it.
#[derive(Default)]
pub struct FinishedTasks {
    /// The tasks, and the number of tasks that a waiting thread needs.
    waiting: Mutex<(Vec<TaskDone>, usize)>,
    all: Condvar,
}

impl FinishedTasks {
    fn waiting(&self) -> MutexGuard<'_, (Vec<TaskDone>, usize)> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn take(&self) -> Vec<TaskDone> {
        mem::take(&mut self.waiting().0)
    }

    /// Waits for this many tasks, and takes them.
    fn take_all(&self, tasks: usize) -> Vec<TaskDone> {
        let mut waiting = self.waiting();
        waiting.1 = tasks;
        while waiting.0.len() < tasks {
            waiting = self.all.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        waiting.1 = 0;
        mem::take(&mut waiting.0)
    }

    fn push(self: &Arc<Self>, done: TaskDone, wake: &Notifier) {
        let mut waiting = self.waiting();
        let (tasks, wanted) = &mut *waiting;
        tasks.push(done);
        if tasks.len() == *wanted {
            self.all.notify_all();
        } else if tasks.len() == 1 && *wanted == 0 {
            wake.send(Event::TasksDone(self.clone()));
        }
    }
}

/// A region's task that has ended.
pub struct TaskDone {
    pub dimension: DimensionId,
    pub region: RegionId,
    pub took: Duration,
    pub outcome: Result<(Vec<RegionWorld>, Box<Outbox>), Fault>,
}

/// A task that panicked, and its remains.
pub struct Fault {
    pub fault: RegionFault,
    /// The payload to resume the panic; `None` if the halt was ordered.
    pub payload: Option<Box<dyn Any + Send>>,
    pub salvage: Box<Salvage>,
}

pub struct RegionThreads {
    jobs: Option<Sender<RegionJob>>,
    finished: Arc<FinishedTasks>,
    threads: Vec<JoinHandle<()>>,
    template: RegionTemplate,
    wake: Notifier,
}

impl RegionThreads {
    pub(super) fn start(threads: usize, template: &RegionTemplate, wake: &Notifier) -> io::Result<Self> {
        let (jobs, waiting) = unbounded::<RegionJob>();
        let finished = Arc::<FinishedTasks>::default();
        let start = |number| {
            let (waiting, wake) = (waiting.clone(), wake.clone());
            let (template, finished) = (template.clone(), finished.clone());
            let run = move || {
                while let Some(job) = next_job(&waiting, &template) {
                    run_job(job, &template, |done| finished.push(done, &wake));
                }
            };
            Builder::new().name(format!("terrane region {number}")).spawn(run)
        };
        let threads = (0..threads.max(1)).map(start).collect::<io::Result<_>>()?;
        Ok(Self { jobs: Some(jobs), finished, threads, template: template.clone(), wake: wake.clone() })
    }

    /// Hands tasks to the threads.
    pub fn run(&self, job: impl Into<RegionJob>) {
        if let Some(jobs) = &self.jobs
            && let Err(refused) = jobs.send(job.into())
        {
            // No thread could be started: better late than never.
            let push = |done| self.finished.push(done, &self.wake);
            run_job(refused.into_inner(), &self.template, push);
        }
    }

    /// Waits until this many tasks have ended, and takes them.
    pub fn wait_for(&self, tasks: usize) -> Vec<TaskDone> {
        self.finished.take_all(tasks)
    }

    /// Runs a region on the current thread.
    pub fn run_here(&self, task: Assignment) -> TaskDone {
        run_task(task, &self.template)
    }

    /// Joins the threads that have ended. Hung threads are left alone.
    pub(super) fn join(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..).filter(JoinHandle::is_finished) {
            // A region thread catches the panics of the game.
            let _ = thread.join();
        }
    }
}

/// The next job. Makes fresh worlds while there is none.
fn next_job(jobs: &Receiver<RegionJob>, template: &RegionTemplate) -> Option<RegionJob> {
    loop {
        match jobs.try_recv() {
            Ok(job) => return Some(job),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => {}
        }
        if !panic::catch(|| template.refill()).unwrap_or(false) {
            return jobs.recv().ok();
        }
    }
}

fn run_job(mut tasks: RegionJob, template: &RegionTemplate, mut push: impl FnMut(TaskDone)) {
    while let Some(task) = tasks.pop_front() {
        let mut ended = run_task(task, template);
        if let Ok((_, outbox)) = &mut ended.outcome
            && !tasks.is_empty()
        {
            pass_letters(outbox, &mut tasks);
        }
        push(ended);
    }
}

/// Hands letters to the regions that tick next on this thread. Other letters go through the coordinator.
fn pass_letters(outbox: &mut Outbox, tasks: &mut RegionJob) {
    for letter in mem::take(&mut outbox.letters) {
        let has_target = |task: &&mut Assignment| task.worlds.first().is_some_and(|world| world.has_target(&letter));
        match tasks.iter_mut().find(has_target) {
            Some(task) => task.inbox.letters.push(letter),
            None => outbox.letters.push(letter),
        }
    }
}

fn run_task(mut assignment: Assignment, template: &RegionTemplate) -> TaskDone {
    let (dimension, region) = (assignment.ground.dimension, assignment.region);
    let _span = debug_span!("region", %dimension, %region).entered();
    let started = Instant::now();
    let ended = panic::catch(|| assignment.run(template)).and_then(|made| {
        made.map_err(|error| {
            let payload: Box<dyn Any + Send> = Box::new(error.to_string());
            (RegionFault::new(error.to_string()), payload)
        })
    });
    let outcome = match ended {
        Ok(outbox) => Ok((assignment.worlds, outbox)),
        Err((fault, payload)) => Err(Fault { fault, payload: Some(payload), salvage: salvage(assignment) }),
    };
    TaskDone { dimension, region, took: started.elapsed(), outcome }
}

/// The remains of a task that panicked. Dropping its contents may panic again.
fn salvage(mut assignment: Assignment) -> Box<Salvage> {
    let salvaged = panic::catch(|| assignment.salvage()).map(Box::new);
    let dropped = panic::catch(|| drop(assignment));
    if let Err((fault, _)) = dropped {
        warn!("a region's world panicked once more as it was dropped: {}", fault.reason);
    }
    salvaged.unwrap_or_else(|(fault, _)| {
        error!("everything on its way into a region that panicked is lost: {}", fault.reason);
        Box::default()
    })
}
