//! What ends the demo early: one clear line, and the exit status 1.

use crate::arguments::Arguments;
use bevy_terrane::prelude::*;
use std::any::Any;
use std::panic::{self, AssertUnwindSafe};

/// Prints the one line that says what went wrong.
pub fn report(message: impl std::fmt::Display) {
    crate::progress::end_line();
    eprintln!("error: {message}");
}

/// Some of Bevy's plugins panic where there is no display or no graphics adapter: this makes it an error.
pub fn catch<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let result = panic::catch_unwind(AssertUnwindSafe(run));
    panic::set_hook(hook);
    result.map_err(|payload| text(&*payload).lines().next().unwrap_or("unknown reason").to_owned())
}

fn text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or_default()
}

/// Ends the demo when there is nothing to show, and tells what the simulation complains about.
pub struct FailurePlugin;

impl Plugin for FailurePlugin {
    fn build(&self, app: &mut App) {
        app.add_systems(Update, (end_without_dimension, report_trouble));
    }
}

fn end_without_dimension(
    mut failures: MessageReader<DimensionFailed>,
    arguments: Res<Arguments>,
    mut exit: MessageWriter<AppExit>,
) {
    for DimensionFailed { error, .. } in failures.read() {
        let world = arguments.world.display();
        report(format_args!(
            "the world {world} cannot be continued: {error}. Use the --seed and --heightmap that it was made with, or \
             another --world"
        ));
        exit.write(AppExit::error());
    }
}

fn report_trouble(
    mut halted: MessageReader<RegionHalted>,
    mut columns: MessageReader<ColumnFailed>,
    mut saves: MessageReader<SaveFailed>,
    rehearsal: Option<Res<crate::rehearsal::Rehearsal>>,
) {
    let is_on_purpose = rehearsal.is_some_and(|rehearsal| rehearsal.is_on());
    for RegionHalted { region, reason, .. } in halted.read() {
        if !is_on_purpose {
            report(format_args!("{region} halted: {reason}"));
        }
    }
    for ColumnFailed { column, error, .. } in columns.read() {
        report(format_args!("column {column}: {error}"));
    }
    for SaveFailed { error, .. } in saves.read() {
        report(format_args!("saving failed, it is tried again: {error}"));
    }
}
