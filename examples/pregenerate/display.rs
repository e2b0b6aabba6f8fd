//! The progress, and the memory and disk space in use.

use super::progress::Progress;
use super::tell::{self, say};
use bevy_terrane::prelude::*;
use bevy_terrane::view::JobProgress;
use indicatif::HumanDuration;
use std::fmt::Display as Text;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The time between two measurements of the memory and the size of the world.
const MEASURE_PERIOD: Duration = Duration::from_secs(1);
/// The maximum number of error messages that are shown. The summary counts the rest.
const MAX_COMPLAINTS: u32 = 20;

/// Shows the progress on the standard error.
#[derive(Resource)]
pub struct Display {
    progress: Progress,
    world: PathBuf,
    measured: Option<Instant>,
    memory: u64,
    peak_memory: u64,
    complaints: u32,
}

impl Display {
    pub fn new(world: &Path) -> Self {
        let progress = Progress::new("[{wide_bar}] {msg}");
        Self { progress, world: world.to_path_buf(), measured: None, memory: 0, peak_memory: 0, complaints: 0 }
    }

    /// Shows an error message, unless there were many.
    pub fn complain(&mut self, message: impl Text) {
        self.complaints += 1;
        match self.complaints {
            ..MAX_COMPLAINTS => say(format_args!("warning: {message}")),
            MAX_COMPLAINTS => say("warning: more of that is only counted"),
            _ => {}
        }
    }

    pub fn show(&mut self, progress: &JobProgress) {
        self.measure();
        if !self.progress.is_due() {
            return;
        }
        let rate = progress.per_second.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}"));
        let left = match progress.time_left() {
            Some(left) => format!("{} left", HumanDuration(left)),
            None => "time left unknown".to_owned(),
        };
        let failed = if progress.failed > 0 { format!(", {} failed", progress.failed) } else { String::new() };
        let text = format!(
            "{:5.1} % {}/{} columns{failed}, {rate}/s, {left}, memory {:.0} MB, stored {:.0} MB",
            progress.fraction() * 100.0,
            progress.done,
            progress.total,
            megabytes(self.memory),
            megabytes(self.stored_bytes()),
        );
        self.progress.show(progress.done, u64::try_from(progress.total).unwrap_or(u64::MAX), text);
    }

    /// Clears the line for the summary.
    pub fn end(&mut self) {
        tell::clear();
        self.measured = None;
        self.measure();
    }

    /// The peak memory use in bytes; 0 where it is unknown.
    pub fn peak_memory(&self) -> u64 {
        self.peak_memory
    }

    /// The size of the world's folder in bytes.
    pub fn stored_bytes(&self) -> u64 {
        folder_size(&self.world)
    }

    fn measure(&mut self) {
        if self.measured.is_some_and(|measured| measured.elapsed() < MEASURE_PERIOD) {
            return;
        }
        self.measured = Some(Instant::now());
        self.memory = resident_memory().unwrap_or(0);
        self.peak_memory = self.peak_memory.max(self.memory);
    }
}

pub fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// The resident memory of the process, on Linux.
fn resident_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

fn folder_size(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => folder_size(&entry.path()),
        Ok(metadata) => metadata.len(),
        // A file that the database has just removed.
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}
