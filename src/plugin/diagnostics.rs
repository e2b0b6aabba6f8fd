//! [`WorldDiagnosticsPlugin`]: the figures of the world among Bevy's diagnostics.

use crate::view::WorldStatistics;
use bevy::diagnostic::{Diagnostic, DiagnosticPath, Diagnostics, RegisterDiagnostic};
use bevy::prelude::*;
use std::time::Duration;

/// Adds the figures of the world to Bevy's diagnostics, where overlays and `LogDiagnosticsPlugin` find them. They are measured
/// four times a second. [`WorldStatistics`] has more of them, and those of single regions.
///
/// ```
/// use bevy::diagnostic::DiagnosticsStore;
/// use bevy_terrane::plugin::WorldDiagnosticsPlugin;
/// use bevy_terrane::prelude::*;
///
/// fn warn_if_slow(diagnostics: Res<DiagnosticsStore>) {
///     let rate = diagnostics.get(&WorldDiagnosticsPlugin::SLOWEST_TPS).and_then(|rate| rate.smoothed());
///     if rate.is_some_and(|rate| rate < 19.0) {
///         warn!("a region falls behind");
///     }
/// }
/// # bevy::ecs::system::assert_is_system(warn_if_slow);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct WorldDiagnosticsPlugin;

impl WorldDiagnosticsPlugin {
    /// The lowest tick rate of all regions that are neither halted nor paused, per second.
    pub const SLOWEST_TPS: DiagnosticPath = DiagnosticPath::const_new("terrane/slowest_tps");
    /// The median of the tick rates of all regions, per second.
    pub const MEDIAN_TPS: DiagnosticPath = DiagnosticPath::const_new("terrane/median_tps");
    /// The longest tick of the last five seconds, in milliseconds.
    pub const WORST_TICK: DiagnosticPath = DiagnosticPath::const_new("terrane/worst_tick");
    /// The median tick of the last five seconds, in milliseconds.
    pub const MEDIAN_TICK: DiagnosticPath = DiagnosticPath::const_new("terrane/median_tick");
    /// The 99th percentile of the coordinator's passes, in milliseconds.
    pub const PASS: DiagnosticPath = DiagnosticPath::const_new("terrane/pass");
    /// The number of regions.
    pub const REGIONS: DiagnosticPath = DiagnosticPath::const_new("terrane/regions");
    /// The number of columns in regions.
    pub const COLUMNS: DiagnosticPath = DiagnosticPath::const_new("terrane/columns");
    /// The number of columns within the viewers' radii that are not loaded yet.
    pub const REMAINING: DiagnosticPath = DiagnosticPath::const_new("terrane/remaining");
    /// The number of columns that are being generated or loaded.
    pub const IN_FLIGHT: DiagnosticPath = DiagnosticPath::const_new("terrane/in_flight");
    /// The number of changes that wait for the store.
    pub const UNSAVED: DiagnosticPath = DiagnosticPath::const_new("terrane/unsaved");
}

type Value = fn(&WorldStatistics) -> Option<f64>;

/// All figures, with their units.
const FIGURES: [(DiagnosticPath, &str, Value); 10] = [
    (WorldDiagnosticsPlugin::SLOWEST_TPS, "/s", WorldStatistics::slowest_tps),
    (WorldDiagnosticsPlugin::MEDIAN_TPS, "/s", WorldStatistics::median_tps),
    (WorldDiagnosticsPlugin::WORST_TICK, "ms", |world| milliseconds(world.tick_time_worst)),
    (WorldDiagnosticsPlugin::MEDIAN_TICK, "ms", |world| milliseconds(world.tick_time_median)),
    (WorldDiagnosticsPlugin::PASS, "ms", |world| milliseconds(world.pass_times.1)),
    (WorldDiagnosticsPlugin::REGIONS, "", |world| Some(world.regions.len() as f64)),
    (WorldDiagnosticsPlugin::COLUMNS, "", |world| Some(world.columns as f64)),
    (WorldDiagnosticsPlugin::REMAINING, "", |world| Some(world.remaining as f64)),
    (WorldDiagnosticsPlugin::IN_FLIGHT, "", |world| Some(world.in_flight as f64)),
    (WorldDiagnosticsPlugin::UNSAVED, "", |world| Some(world.unsaved as f64)),
];

impl Plugin for WorldDiagnosticsPlugin {
    fn build(&self, app: &mut App) {
        for (path, unit, _) in FIGURES {
            app.register_diagnostic(Diagnostic::new(path).with_suffix(unit));
        }
        app.add_systems(Update, measure.run_if(resource_exists_and_changed::<WorldStatistics>));
    }
}

fn measure(statistics: Res<WorldStatistics>, mut diagnostics: Diagnostics) {
    for (path, _, value) in FIGURES {
        if let Some(value) = value(&statistics) {
            diagnostics.add_measurement(&path, || value);
        }
    }
}

fn milliseconds(time: Duration) -> Option<f64> {
    Some(time.as_secs_f64() * 1e3)
}
