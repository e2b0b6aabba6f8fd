//! What goes wrong while the demo runs: one clear line each.

use crate::rehearsal::Rehearsal;
use crate::tell::report;
use bevy_terrane::prelude::*;

/// Tells what the simulation complains about.
pub struct FailurePlugin;

impl Plugin for FailurePlugin {
    fn build(&self, app: &mut App) {
        app.add_systems(Update, report_trouble);
    }
}

fn report_trouble(
    mut halted: MessageReader<RegionHalted>,
    mut columns: MessageReader<ColumnFailed>,
    mut saves: MessageReader<SaveFailed>,
    rehearsal: Option<Res<Rehearsal>>,
) {
    let is_on_purpose = rehearsal.is_some_and(|rehearsal| rehearsal.is_on());
    for RegionHalted { region, reason, .. } in halted.read() {
        if !is_on_purpose {
            report(format_args!("{region} halted: {reason}"));
        }
    }
    for ColumnFailed { error, .. } in columns.read() {
        report(format_args!("{error}"));
    }
    for SaveFailed { error, .. } in saves.read() {
        report(format_args!("saving failed, it is tried again: {error}"));
    }
}
