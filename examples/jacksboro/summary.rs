//! A summary at the end of the run.

use crate::arguments::Arguments;
use crate::landmarks::LandmarkChecks;
use crate::start::{self, fail};
use crate::tell::Run;
use bevy_terrane::prelude::*;
use bevy_terrane::view::WorldStatistics;
use serde::Serialize;
use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;
use std::time::Duration;
use terrane_dev::Pictures;

/// Collects figures while the demo runs, and prints them at the end.
pub struct SummaryPlugin;

impl Plugin for SummaryPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<Record>()
            .add_systems(Update, record)
            // Runs after everything is saved.
            .add_systems(Last, print_at_end.after(ViewSystems::Send).run_if(start::at_end));
    }
}

/// Samples of the statistics, one per second.
#[derive(Resource, Default)]
pub struct Record {
    stored_before: Option<u64>,
    last_sample: Duration,
    median_rates: Vec<f64>,
    worst_rate: Option<f64>,
    median_times: Vec<Duration>,
    worst_time: Duration,
    /// The final figures, once counting has ended.
    frozen: Option<Summary>,
}

/// The figures of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    seconds: f64,
    columns_stored_before: u64,
    columns_generated: u64,
    columns_loaded: u64,
    columns_now: usize,
    regions: usize,
    ticks: u64,
    tps_median: Option<f64>,
    tps_worst_region: Option<f64>,
    mspt_median: f64,
    mspt_worst: f64,
    merges: u64,
    splits: u64,
    saves: u64,
    bytes_stored: u64,
    save_seconds: f64,
    landmarks_built: usize,
    edits_expected: u64,
    edits_found: u64,
    pictures: Vec<PathBuf>,
}

impl Record {
    /// Stops counting: later events do not belong to the summary.
    pub fn freeze(&mut self, statistics: &WorldStatistics, checks: &LandmarkChecks) {
        self.frozen.get_or_insert(self.summary(statistics, checks));
    }

    fn summary(&self, statistics: &WorldStatistics, checks: &LandmarkChecks) -> Summary {
        let milliseconds = |time: Duration| time.as_secs_f64() * 1_000.0;
        Summary {
            seconds: statistics.clock.as_secs_f64(),
            columns_stored_before: self.stored_before.unwrap_or(0),
            columns_generated: statistics.generated,
            columns_loaded: statistics.loaded,
            columns_now: statistics.columns,
            regions: statistics.regions.len(),
            ticks: statistics.ticks,
            tps_median: median(&self.median_rates, f64::total_cmp),
            tps_worst_region: self.worst_rate,
            mspt_median: milliseconds(median(&self.median_times, Duration::cmp).unwrap_or_default()),
            mspt_worst: milliseconds(self.worst_time),
            merges: statistics.merges,
            splits: statistics.splits,
            saves: statistics.saves,
            bytes_stored: statistics.bytes_saved,
            save_seconds: statistics.save_time.as_secs_f64(),
            landmarks_built: checks.built(),
            edits_expected: checks.found() + checks.lost(),
            edits_found: checks.found(),
            pictures: Vec::new(),
        }
    }
}

fn median<T: Copy>(samples: &[T], compare: impl FnMut(&T, &T) -> std::cmp::Ordering) -> Option<T> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(compare);
    sorted.get(sorted.len() / 2).copied()
}

fn record(mut record: ResMut<Record>, mut opened: MessageReader<DimensionOpened>, statistics: Res<WorldStatistics>) {
    if let Some(opened) = opened.read().next() {
        record.stored_before = Some(opened.stored_columns);
    }
    if record.frozen.is_some() || statistics.clock < record.last_sample + Duration::from_secs(1) {
        return;
    }
    record.last_sample = statistics.clock;
    record.median_rates.extend(statistics.median_tps());
    let slowest = statistics.slowest_tps();
    record.worst_rate = record.worst_rate.into_iter().chain(slowest).min_by(f64::total_cmp);
    if statistics.ticks > 0 {
        record.median_times.push(statistics.tick_time_median);
    }
    record.worst_time = record.worst_time.max(statistics.tick_time_worst);
}

/// Prints the summary, and makes the demo fail if a block of an earlier run is missing.
fn print_at_end(
    record: Res<Record>,
    statistics: Res<WorldStatistics>,
    checks: Res<LandmarkChecks>,
    (arguments, run): (Res<Arguments>, Res<Run>),
    pictures: Option<Res<Pictures>>,
    mut exit: MessageWriter<AppExit>,
) {
    if record.stored_before.is_none() {
        return;
    }
    let mut summary = record.frozen.clone().unwrap_or_else(|| record.summary(&statistics, &checks));
    summary.pictures = pictures.map(|pictures| pictures.taken.clone()).unwrap_or_default();
    run.print(&summary);
    let places = checks.lost_places();
    if !places.is_empty() {
        let shown: Vec<_> = places.iter().take(5).map(BlockPos::to_string).collect();
        let (world, lost) = (arguments.world.display(), checks.lost());
        fail(format_args!("the world {world} lost {lost} blocks of earlier runs, at {}", shown.join(", ")), &mut exit);
    }
}

impl Display for Summary {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let number = |number: Option<f64>| number.map_or_else(|| "-".to_owned(), |number| format!("{number:.1}"));
        let mut rows = vec![
            ("simulated", format!("{:.1} s, {} ticks of regions", self.seconds, self.ticks)),
            (
                "columns",
                format!(
                    "{} generated, {} loaded, {} were stored before",
                    self.columns_generated, self.columns_loaded, self.columns_stored_before
                ),
            ),
            ("regions", format!("{} now, {} merges, {} splits", self.regions, self.merges, self.splits)),
            (
                "ticks a second",
                format!("{} median, {} worst region", number(self.tps_median), number(self.tps_worst_region)),
            ),
            ("time of a tick", format!("{:.2} ms median, {:.2} ms worst", self.mspt_median, self.mspt_worst)),
            (
                "stored",
                format!(
                    "{:.1} MB in {} saves, {:.2} s in all",
                    self.bytes_stored as f64 / 1e6,
                    self.saves,
                    self.save_seconds
                ),
            ),
            ("landmarks", format!("{} built in this run", self.landmarks_built)),
            ("edits of earlier runs", format!("found {} of {}", self.edits_found, self.edits_expected)),
        ];
        rows.extend(self.pictures.iter().map(|path| ("picture", path.display().to_string())));
        let lines: Vec<_> = rows.iter().map(|(name, text)| format!("{name:22} {text}")).collect();
        f.write_str(&lines.join("\n"))
    }
}
