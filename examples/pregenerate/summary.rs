//! A summary at the end of the run.

use super::display::{Display, megabytes};
use super::tell::Run;
use bevy_terrane::prelude::*;
use bevy_terrane::view::{JobProgress, JobState, Pregeneration, WorldStatistics};
use serde::Serialize;
use std::fmt::{self, Formatter};
use std::mem;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

/// The exit code after Ctrl-C, as in shells.
const INTERRUPTED: u8 = 130;
/// The exit code after `--seconds`, as for the command `timeout`.
const STOPPED: u8 = 124;

/// The figures of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// `finished`, `interrupted` by Ctrl-C, `stopped` by `--seconds`, or `incomplete`, if columns failed.
    pub outcome: &'static str,
    pub areas: Vec<String>,
    pub columns: u128,
    /// Stored columns, including earlier runs.
    pub done: u64,
    pub failed: u64,
    /// Columns generated in this run.
    pub generated: u64,
    /// The duration of this run, and the generation time of all runs together.
    pub seconds: f64,
    pub seconds_in_all: f64,
    /// The average of this run.
    pub columns_per_second: f64,
    pub peak_memory_bytes: u64,
    pub stored_bytes: u64,
}

impl Summary {
    pub fn new<'a>(
        jobs: impl Iterator<Item = (&'a Pregeneration, &'a JobProgress)>,
        statistics: &WorldStatistics,
        display: &Display,
        run: &Run,
    ) -> Self {
        let jobs: Vec<_> = jobs.collect();
        let progress = || jobs.iter().map(|(_, progress)| progress);
        let failed = progress().map(|progress| progress.failed).sum();
        let outcome = match !jobs.is_empty() && progress().all(|progress| progress.state == JobState::Finished) {
            false if run.is_over(statistics.clock) => "stopped",
            false => "interrupted",
            true if failed > 0 => "incomplete",
            true => "finished",
        };
        let seconds = statistics.clock.as_secs_f64();
        Self {
            outcome,
            areas: jobs.iter().map(|(job, _)| job.area.to_string()).collect(),
            columns: progress().fold(0, |sum, progress| sum.saturating_add(progress.total)),
            done: progress().map(|progress| progress.done).sum(),
            failed,
            generated: statistics.generated,
            seconds,
            seconds_in_all: progress().map(|progress| progress.elapsed.as_secs_f64()).sum(),
            columns_per_second: if seconds > 0.0 { statistics.generated as f64 / seconds } else { 0.0 },
            peak_memory_bytes: display.peak_memory(),
            stored_bytes: display.stored_bytes(),
        }
    }

    pub fn exit_code(&self) -> ExitCode {
        match self.outcome {
            "finished" => ExitCode::SUCCESS,
            "incomplete" => ExitCode::from(3),
            "stopped" => ExitCode::from(STOPPED),
            _ => ExitCode::from(INTERRUPTED),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { outcome, columns, done, failed, generated, seconds, seconds_in_all, .. } = self;
        writeln!(f, "{outcome}: {done} of {columns} columns are stored, {failed} failed")?;
        writeln!(
            f,
            "{generated} generated in {seconds:.1} s, {:.0}/s; {seconds_in_all:.1} s in all runs",
            self.columns_per_second
        )?;
        let (memory, stored) = (megabytes(self.peak_memory_bytes), megabytes(self.stored_bytes));
        write!(f, "{memory:.0} MB of memory at most, {stored:.1} MB stored")
    }
}

/// Transfers the summary out of the app.
#[derive(Resource, Clone, Default)]
pub struct Record(Arc<Mutex<Option<Result<Summary, String>>>>);

impl Record {
    pub fn set(&self, summary: Result<Summary, String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(summary);
    }

    pub fn take(&self) -> Result<Summary, String> {
        let summary = mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        summary.unwrap_or_else(|| Err("the world could not be opened".to_owned()))
    }
}
