//! What goes wrong while the demo runs: one clear line each.

use crate::rehearsal::Rehearsal;
use crate::tell::report;
use bevy_terrane::prelude::*;
use std::time::Duration;

/// Tells what the simulation complains about.
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
    for RegionHalted { region, reason, .. } in halted.read() {
        if !is_on_purpose {
            report(format_args!("{region} halted: {reason}"));
        }
    }
    for SaveFailed { error, .. } in saves.read() {
        report(format_args!("saving failed, it is tried again: {error}"));
    }
}

/// What is wrong with one column is wrong with many: a line a second at most.
fn report_columns(
    mut columns: MessageReader<ColumnFailed>,
    time: Res<Time<Real>>,
    mut failed: Local<Vec<String>>,
    mut due: Local<Duration>,
) {
    // Further tries fail as the first one did.
    let first_tries = columns.read().filter(|failed| failed.attempts == 1);
    failed.extend(first_tries.map(|failed| failed.error.to_string()));
    if failed.is_empty() || time.elapsed() < *due {
        return;
    }
    let more =
        if failed.len() > 1 { format!(" (and {} more columns failed)", failed.len() - 1) } else { String::new() };
    report(format_args!("{}{more}", failed[0]));
    failed.clear();
    *due = time.elapsed() + Duration::from_secs(1);
}
