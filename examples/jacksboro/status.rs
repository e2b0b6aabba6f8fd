//! A status line in the terminal.

use crate::arguments::Arguments;
use crate::bots::Bot;
use crate::progress::Progress;
use crate::tell::say;
use bevy_terrane::prelude::*;
use bevy_terrane::view::WorldStatistics;

/// Shows the status on the standard error.
pub struct StatusPlugin;

impl Plugin for StatusPlugin {
    fn build(&self, app: &mut App) {
        app.insert_resource(Progress::new("{wide_msg}")).add_systems(Update, (tell_beginning, show));
    }
}

fn tell_beginning(mut opened: MessageReader<DimensionOpened>, arguments: Res<Arguments>) {
    for DimensionOpened { stored_columns, viewers, .. } in opened.read() {
        let world = arguments.world.display();
        match stored_columns {
            0 => say(format_args!("new world in {world}, seed {}", arguments.seed)),
            _ => say(format_args!("continuing {world}: {stored_columns} columns stored, {viewers} bots")),
        }
    }
}

fn show(
    mut before: Local<(f64, u64)>,
    mut progress: ResMut<Progress>,
    time: Res<Time<Real>>,
    statistics: Res<WorldStatistics>,
    bots: Query<(), (With<Bot>, With<Mirror>)>,
) {
    if !progress.is_due() {
        return;
    }
    let (now, done) = (time.elapsed_secs_f64(), statistics.generated + statistics.loaded);
    let speed = (done - before.1) as f64 / (now - before.0);
    *before = (now, done);
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
    progress.show(done, done + remaining as u64, line);
}
