//! One line in the terminal that says how it goes.

use bevy_terrane::prelude::*;
use std::io::{IsTerminal, Write, stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Whether the cursor stands behind a line that is to be rewritten.
static LINE_OPEN: AtomicBool = AtomicBool::new(false);

/// Shows the progress on the standard error.
pub struct ProgressPlugin;

impl Plugin for ProgressPlugin {
    fn build(&self, app: &mut App) {
        app.add_systems(Update, (tell_beginning, show));
    }
}

fn tell_beginning(mut opened: MessageReader<DimensionOpened>, arguments: Res<crate::arguments::Arguments>) {
    for DimensionOpened { stored_columns, viewers, .. } in opened.read() {
        let world = arguments.world.display();
        match stored_columns {
            0 => say(format_args!("new world in {world}, seed {}", arguments.seed)),
            _ => say(format_args!("continuing {world}: {stored_columns} columns stored, {viewers} bots")),
        }
    }
}

/// A line of its own, beside the one that is rewritten.
pub fn say(message: impl std::fmt::Display) {
    end_line();
    eprintln!("{message}");
}

/// Leaves the line that is rewritten as it is, and goes to the next.
pub fn end_line() {
    if LINE_OPEN.swap(false, Ordering::Relaxed) {
        eprintln!();
    }
}

/// The last look at the counters, to tell the speed by.
struct LastLook {
    at: Instant,
    columns: u64,
}

fn show(
    mut last: Local<Option<LastLook>>,
    statistics: Res<WorldStatistics>,
    bots: Query<(), (With<crate::bots::Bot>, With<Mirror>)>,
) {
    let rewrites = stderr().is_terminal();
    let period = Duration::from_secs(if rewrites { 1 } else { 5 });
    let done = statistics.generated + statistics.loaded;
    let Some(before) = &mut *last else {
        *last = Some(LastLook { at: Instant::now(), columns: done });
        return;
    };
    if before.at.elapsed() < period {
        return;
    }
    let speed = (done - before.columns) as f64 / before.at.elapsed().as_secs_f64();
    *before = LastLook { at: Instant::now(), columns: done };
    let remaining = statistics.remaining;
    let eta = match remaining {
        0 => String::new(),
        _ if speed < 0.5 => ", waiting".to_owned(),
        _ => format!(", {:.0} s left", (remaining as f64 / speed).ceil()),
    };
    let slowest = statistics.slowest_tps().map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}"));
    let line = format!(
        "{:4.0} s | columns: {done} done, {speed:.0}/s, {remaining} to go{eta} | regions: {}, slowest {slowest} TPS | \
         bots: {}",
        statistics.clock.as_secs_f64(),
        statistics.regions.len(),
        bots.iter().len(),
    );
    if rewrites {
        // Back to the beginning, and clear what a longer line left.
        eprint!("\r{line}\x1b[K");
        let _ = stderr().flush();
        LINE_OPEN.store(true, Ordering::Relaxed);
    } else {
        eprintln!("{line}");
    }
}
