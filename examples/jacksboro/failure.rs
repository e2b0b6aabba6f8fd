//! Errors while the demo runs, in one clear line each.

use crate::rehearsal::Rehearsal;
use crate::tell::report;
use bevy_terrane::prelude::*;
use bevy_terrane::view::SaveFailed;
use std::time::Duration;

/// Reports errors of the simulation.
pub struct FailurePlugin;

impl Plugin for FailurePlugin {
    fn build(&self, app: &mut App) {
        app.add_systems(Update, (report_trouble, report_columns));
    }
}

fn report_trouble(
    mut halted: MessageReader<RegionHalted>,
    mut saves: MessageReader<SaveFailed>,
    rehearsal: Option<Res<Rehearsal>>,
) {
    let is_on_purpose = rehearsal.is_some_and(|rehearsal| rehearsal.is_on());
    for RegionHalted { region, fault, .. } in halted.read() {
        if !is_on_purpose {
            report(format_args!("{region} halted: {}", fault.reason));
        }
    }
    for SaveFailed { error, .. } in saves.read() {
        report(format_args!("saving failed and will be retried: {error}"));
    }
}

/// Reports failed columns in at most one line per second, because many columns fail with the same error.
fn report_columns(
    mut columns: MessageReader<ColumnFailed>,
    time: Res<Time<Real>>,
    mut first: Local<Option<String>>,
    mut others: Local<u32>,
    mut due: Local<Duration>,
) {
    // Retries fail like the first attempt.
    for failed in columns.read().filter(|failed| failed.attempts == 1) {
        if first.is_some() {
            *others += 1;
        } else {
            *first = Some(failed.error.to_string());
        }
    }
    if time.elapsed() < *due {
        return;
    }
    let Some(first) = first.take() else { return };
    let more = match std::mem::take(&mut *others) {
        0 => String::new(),
        others => format!(" (and {others} more columns failed)"),
    };
    report(format_args!("{first}{more}"));
    *due = time.elapsed() + Duration::from_secs(1);
}
