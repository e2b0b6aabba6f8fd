//! How far it is: a bar in a terminal, lines elsewhere.

use bevy_terrane::prelude::*;
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use std::fmt::Display as Text;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The time between two lines where there is no terminal.
const LINE_PERIOD: Duration = Duration::from_secs(5);
/// The time between two looks at the memory and the size of the world.
const MEASURE_PERIOD: Duration = Duration::from_secs(1);
/// Complaints that are shown; the rest is counted in the summary.
const MOST_COMPLAINTS: u32 = 20;

/// Shows the progress on the standard error.
#[derive(Resource)]
pub struct Display {
    bar: ProgressBar,
    world: PathBuf,
    last_line: Instant,
    measured: Option<Instant>,
    memory: u64,
    peak_memory: u64,
    complaints: u32,
}

impl Display {
    pub fn new(world: &Path) -> Self {
        let bar = ProgressBar::new(0);
        let style = ProgressStyle::with_template("[{wide_bar}] {percent:>3} % {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        let world = world.to_path_buf();
        let last_line = Instant::now();
        Self { bar, world, last_line, measured: None, memory: 0, peak_memory: 0, complaints: 0 }
    }

    /// A line of its own.
    pub fn say(&self, message: impl Text) {
        self.bar.suspend(|| eprintln!("{message}"));
    }

    /// A line that says what is wrong, unless there were many.
    pub fn complain(&mut self, message: impl Text) {
        self.complaints += 1;
        match self.complaints {
            ..MOST_COMPLAINTS => self.say(format_args!("warning: {message}")),
            MOST_COMPLAINTS => self.say("warning: more of that is only counted"),
            _ => {}
        }
    }

    /// The newest progress.
    pub fn show(&mut self, progress: &PregenerationProgress) {
        self.measure();
        let line_is_due = self.bar.is_hidden() && self.last_line.elapsed() >= LINE_PERIOD;
        if self.bar.is_hidden() && !line_is_due {
            return;
        }
        let rate = progress.columns_per_second.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}"));
        let left = match progress.time_left() {
            Some(left) => format!("{} left", HumanDuration(left)),
            None => "time left unknown".to_owned(),
        };
        let failed = if progress.failed > 0 { format!(", {} failed", progress.failed) } else { String::new() };
        let text = format!(
            "{}/{} columns{failed}, {rate}/s, {left}, memory {:.0} MB, stored {:.0} MB",
            progress.done,
            progress.total,
            megabytes(self.memory),
            megabytes(self.stored_bytes()),
        );
        if line_is_due {
            self.last_line = Instant::now();
            eprintln!("{:5.1} % {text}", progress.fraction() * 100.0);
            return;
        }
        self.bar.set_length(u64::try_from(progress.total).unwrap_or(u64::MAX));
        self.bar.set_position(progress.done);
        self.bar.set_message(text);
    }

    /// Leaves the bar as it is.
    pub fn end(&mut self) {
        self.bar.abandon();
        self.measured = None;
        self.measure();
    }

    /// The most memory that was in use, in bytes; 0 where that cannot be told.
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

/// In millions of bytes.
pub fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// What the process has in memory, as Linux tells it.
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
        // A file of the database that is gone again.
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}
