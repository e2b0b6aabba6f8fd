//! Region threads: they take jobs in the order of handover, and ended tasks wait for the coordinator.

use crate::coordinator::messages::faults::RegionFault;
use crate::coordinator::threads::exchange::{Event, Notifier};
use crate::coordinator::threads::panic;
use crate::region::RegionId;
use crate::simulation::{Assignment, Outbox, RegionTemplate, RegionWorld, Salvage};
use crate::space::DimensionId;
use bevy::prelude::*;
use std::any::Any;
use std::collections::VecDeque;
use std::io;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// A task for a region thread, and those of the regions that are coupled with it, which run after it on the same thread.
/// Letters from one of the regions to a later one arrive before that one begins.
pub struct RegionJob {
    pub first: Assignment,
    pub coupled: Vec<Assignment>,
}

impl From<Assignment> for RegionJob {
    fn from(first: Assignment) -> Self {
        Self { first, coupled: Vec::new() }
    }
}

/// Jobs that wait for a region thread, in the order of handover. In contrast to a channel, it takes many at a time, and allocates
/// nothing in the long run.
#[derive(Default)]
struct JobQueue {
    /// The jobs; `None` once no more will come.
    waiting: Mutex<Option<VecDeque<RegionJob>>>,
    more: Condvar,
}

impl JobQueue {
    fn new() -> Self {
        Self { waiting: Mutex::new(Some(VecDeque::new())), more: Condvar::new() }
    }

    fn waiting(&self) -> MutexGuard<'_, Option<VecDeque<RegionJob>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the jobs into the queue. After its end they stay in the list.
    fn append(&self, jobs: &mut VecDeque<RegionJob>) {
        let count = jobs.len();
        if let Some(waiting) = &mut *self.waiting() {
            waiting.append(jobs);
        }
        match count {
            1 => self.more.notify_one(),
            _ => self.more.notify_all(),
        }
    }

    fn end(&self) {
        let left = self.waiting().take();
        self.more.notify_all();
        if let Err((fault, _)) = panic::catch(|| drop(left)) {
            warn!("a region's world panicked as it was dropped: {}", fault.reason);
        }
    }

    /// The next job; `None` once no more will come. Makes fresh worlds while there is none.
    fn next(&self, template: &RegionTemplate) -> Option<RegionJob> {
        let mut may_refill = true;
        loop {
            let mut waiting = self.waiting();
            if let Some(job) = waiting.as_mut()?.pop_front() {
                return Some(job);
            }
            if may_refill {
                drop(waiting);
                may_refill = panic::catch(|| template.refill()).unwrap_or(false);
            } else {
                drop(self.more.wait(waiting).unwrap_or_else(PoisonError::into_inner));
                may_refill = true;
            }
        }
    }
}

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

    /// Moves the tasks into the list.
    pub fn take(&self, into: &mut Vec<TaskDone>) {
        take(&mut self.waiting().0, into);
    }

    /// Waits for this many tasks, and moves them into the list.
    fn take_all(&self, tasks: usize, into: &mut Vec<TaskDone>) {
        let mut waiting = self.waiting();
        waiting.1 = tasks;
        while waiting.0.len() < tasks {
            waiting = self.all.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        waiting.1 = 0;
        take(&mut waiting.0, into);
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

/// Moves the tasks into the list. Both lists keep their memory.
fn take(tasks: &mut Vec<TaskDone>, into: &mut Vec<TaskDone>) {
    match into.is_empty() {
        true => mem::swap(into, tasks),
        false => into.append(tasks),
    }
}

/// A region's task that has ended.
pub struct TaskDone {
    pub dimension: DimensionId,
    pub region: RegionId,
    pub took: Duration,
    /// The region's world, and its outbox if there is something to report.
    pub outcome: Result<(Vec<RegionWorld>, Option<Box<Outbox>>), Box<Fault>>,
}

/// A task that panicked, and its remains.
pub struct Fault {
    pub fault: RegionFault,
    /// The payload to resume the panic; `None` if the halt was ordered.
    pub payload: Option<Box<dyn Any + Send>>,
    pub salvage: Box<Salvage>,
}

pub struct RegionThreads {
    jobs: Arc<JobQueue>,
    finished: Arc<FinishedTasks>,
    threads: Vec<JoinHandle<()>>,
    template: RegionTemplate,
}

impl RegionThreads {
    pub(super) fn start(threads: usize, template: &RegionTemplate, wake: &Notifier) -> io::Result<Self> {
        let jobs = Arc::new(JobQueue::new());
        let finished = Arc::<FinishedTasks>::default();
        let start = |number| {
            let (jobs, wake) = (jobs.clone(), wake.clone());
            let (template, finished) = (template.clone(), finished.clone());
            let run = move || {
                while let Some(job) = jobs.next(&template) {
                    run_job(job, &template, |done| finished.push(done, &wake));
                }
            };
            Builder::new().name(format!("terrane region {number}")).spawn(run)
        };
        let threads = (0..threads.max(1)).map(start).collect::<io::Result<_>>();
        if threads.is_err() {
            jobs.end();
        }
        Ok(Self { jobs, finished, threads: threads?, template: template.clone() })
    }

    /// Hands jobs to the threads.
    pub fn run(&self, jobs: &mut VecDeque<RegionJob>) {
        self.jobs.append(jobs);
    }

    /// Waits until this many tasks have ended, and moves them into the list.
    pub fn wait_for(&self, tasks: usize, into: &mut Vec<TaskDone>) {
        self.finished.take_all(tasks, into);
    }

    /// Runs a region on the current thread.
    pub fn run_here(&self, task: Assignment) -> TaskDone {
        run_task(task, &self.template)
    }

    /// Joins the threads that have ended. Hung threads are left alone.
    pub(super) fn join(&mut self) {
        self.jobs.end();
        for thread in self.threads.drain(..).filter(JoinHandle::is_finished) {
            // A region thread catches the panics of the game.
            let _ = thread.join();
        }
    }
}

fn run_job(job: RegionJob, template: &RegionTemplate, mut push: impl FnMut(TaskDone)) {
    let RegionJob { first, coupled } = job;
    let mut coupled = VecDeque::from(coupled);
    let mut next = Some(first);
    while let Some(task) = next {
        let mut ended = run_task(task, template);
        if let Ok((_, Some(outbox))) = &mut ended.outcome
            && !coupled.is_empty()
        {
            pass_letters(outbox, &mut coupled);
        }
        push(ended);
        next = coupled.pop_front();
    }
}

/// Hands letters to the regions that tick next on this thread. Other letters go through the coordinator.
fn pass_letters(outbox: &mut Outbox, tasks: &mut VecDeque<Assignment>) {
    for letter in mem::take(&mut outbox.letters) {
        let has_target = |task: &&mut Assignment| task.worlds.first().is_some_and(|world| world.has_target(&letter));
        match tasks.iter_mut().find(has_target) {
            Some(task) => task.inbox.get_or_insert_default().letters.push(letter),
            None => outbox.letters.push(letter),
        }
    }
}

fn run_task(mut assignment: Assignment, template: &RegionTemplate) -> TaskDone {
    let (dimension, region) = (assignment.dimension, assignment.region);
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
        Err((fault, payload)) => Err(Box::new(Fault { fault, payload: Some(payload), salvage: salvage(assignment) })),
    };
    TaskDone { dimension, region, took: started.elapsed(), outcome }
}

impl Drop for RegionThreads {
    fn drop(&mut self) {
        self.jobs.end();
    }
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
