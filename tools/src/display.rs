//! Progress on the standard error: a bar in a terminal, lines elsewhere.

use super::outcome::Result;
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};
use terrane_objects::work::{Progress, Stop, Tell};
use terrane_storage::{StoredDimension, WorldStore};

/// The time between two lines without a terminal.
const LINE_PERIOD: Duration = Duration::from_secs(5);
/// The hint for a damaged world.
pub const SALVAGE: &str = "; `terrane salvage` makes a new world of what can still be read";
/// The length of the bar.
const WHOLE: u64 = 1_000;

/// Shows progress, and stops the work that reports it.
struct Display<'a> {
    bar: ProgressBar,
    what: &'static str,
    unit: &'static str,
    began: Instant,
    /// The time and the value of the first report with a fraction. Resumed work does not start at 0.
    first: Option<(Instant, f64)>,
    last_line: Instant,
    stop: &'a Stop,
}

impl<'a> Display<'a> {
    fn new(what: &'static str, unit: &'static str, stop: &'a Stop) -> Self {
        let bar = ProgressBar::new(WHOLE);
        let style = ProgressStyle::with_template("[{wide_bar}] {percent:>3} % {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        let began = Instant::now();
        Self { bar, what, unit, began, first: None, last_line: began, stop }
    }

    /// Shows the newest progress. Returns `Break` if the work is to stop.
    fn show(&mut self, progress: &Progress) -> ControlFlow<()> {
        self.first = self.first.or(progress.fraction.map(|fraction| (Instant::now(), fraction)));
        if !self.bar.is_hidden() || self.last_line.elapsed() >= LINE_PERIOD {
            self.last_line = Instant::now();
            let text = self.text(progress);
            if self.bar.is_hidden() {
                eprintln!("{text}");
            } else {
                self.bar.set_position((progress.fraction.unwrap_or(0.0) * WHOLE as f64) as u64);
                self.bar.set_message(text);
            }
        }
        self.stop.go_on()
    }

    fn text(&self, progress: &Progress) -> String {
        let seconds = self.began.elapsed().as_secs_f64().max(1e-3);
        let (what, unit, done) = (self.what, self.unit, progress.done);
        let mut text = format!("{what}: {done} {unit}, {:.0}/s", done as f64 / seconds);
        if let (Some(fraction), Some((since, first))) = (progress.fraction, self.first)
            && fraction > first
        {
            let of_rest = Progress { fraction: Some((fraction - first) / (1.0 - first)), ..*progress };
            let left = of_rest.time_left(since.elapsed()).unwrap_or(Duration::MAX);
            text += &format!(", about {:.0} %, {} left", fraction * 100.0, HumanDuration(left));
        }
        text
    }
}

/// Does long work and shows its progress. `what` is the work and `unit` what it counts.
pub fn with_progress<T>(what: &'static str, unit: &'static str, stop: &Stop, work: impl FnOnce(Tell<'_>) -> T) -> T {
    let mut display = Display::new(what, unit, stop);
    work(&mut |progress| display.show(progress))
}

impl Drop for Display<'_> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The dimension with this name, including one whose removal was interrupted.
pub fn dimension(store: &WorldStore, name: &str) -> Result<StoredDimension> {
    let dimensions = store.dimensions()?;
    let names: Vec<String> = dimensions.iter().map(|dimension| format!("{:?}", dimension.name)).collect();
    let found = dimensions.into_iter().find(|dimension| dimension.name == name);
    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Ok(found.ok_or_else(|| format!("the world has no dimension {name:?}; it has {known}"))?)
}

/// The size of a world on disk.
pub fn folder_bytes(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => folder_bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        // A file that the database has just removed.
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}
