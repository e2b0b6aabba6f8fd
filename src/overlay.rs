//! The egui overlay: what the simulation does at this moment.
//!
//! A window with a summary, a map of the regions and a table of them. F3 shows and hides it, and so does the resource
//! [`Overlay`].
//!
//! ```no_run
//! use bevy_terrane::overlay::OverlayPlugin;
//! use bevy_terrane::prelude::*;
//!
//! # let mut app = App::new();
//! // After DefaultPlugins and TerranePlugin:
//! app.add_plugins(OverlayPlugin::default());
//! ```
//!
//! On the map, x points to the right and z down. Every square is a section in its region's color, a faint one a section
//! without columns, which keeps other regions at a distance. Dots are viewers, circles their radii.
//!
//! It is drawn by the primary egui context, which `bevy_egui` puts on the first camera.

mod color;
mod format;
mod map;
mod summary;
mod table;

use crate::coordinator::Statistics;
use crate::space::{DimensionId, SectionPos};
use crate::view::{Dimension, DimensionOpen, PublishedColumns, WorldStatistics};
use bevy::prelude::*;
use bevy::window::WindowPlugin;
use bevy_egui::{EguiContexts, EguiPlugin, EguiPrimaryContextPass, egui};
use map::Map;
use rustc_hash::{FxHashMap, FxHashSet};
use table::SortBy;

/// Adds the overlay, and `EguiPlugin` if the app does not have it. It is added after `DefaultPlugins`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OverlayPlugin {
    /// Whether it is shown from the start.
    pub visible: bool,
}

/// Whether the overlay is shown.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overlay {
    /// F3 switches it.
    pub visible: bool,
}

impl Plugin for OverlayPlugin {
    fn build(&self, app: &mut App) {
        if !app.world().contains_resource::<Overlay>() {
            app.insert_resource(Overlay { visible: self.visible });
        }
        if !app.is_plugin_added::<WindowPlugin>() {
            error!("there is no overlay: OverlayPlugin must be added after DefaultPlugins, in an app that has windows");
            return;
        }
        if !app.is_plugin_added::<EguiPlugin>() {
            app.add_plugins(EguiPlugin::default());
        }
        app.init_resource::<WorldStatistics>()
            .init_resource::<PublishedColumns>()
            .add_systems(Update, toggle.run_if(resource_exists::<ButtonInput<KeyCode>>))
            .add_systems(EguiPrimaryContextPass, show.run_if(|overlay: Res<Overlay>| overlay.visible));
    }
}

fn toggle(keys: Res<ButtonInput<KeyCode>>, mut overlay: ResMut<Overlay>) {
    if keys.just_pressed(KeyCode::F3) {
        overlay.visible = !overlay.visible;
    }
}

/// What the window remembers from frame to frame.
#[derive(Default)]
struct Remembered {
    map: Map,
    sort_by: SortBy,
    occupied: FxHashSet<(DimensionId, SectionPos)>,
    is_filled: bool,
}

fn show(
    mut contexts: EguiContexts,
    mut overlay: ResMut<Overlay>,
    statistics: Res<WorldStatistics>,
    columns: Res<PublishedColumns>,
    dimensions: Query<(&Dimension, &DimensionOpen)>,
    mut remembered: Local<Remembered>,
) -> Result {
    let context = contexts.ctx_mut()?;
    let Remembered { map, occupied, is_filled, .. } = &mut *remembered;
    if statistics.is_changed() || !*is_filled {
        *is_filled = true;
        occupied.clear();
        let shift = statistics.section_shift;
        occupied.extend(columns.iter().map(|(dimension, column)| (dimension, column.pos().section(shift))));
        map.update(&statistics, occupied);
    }
    let names: FxHashMap<_, _> =
        dimensions.iter().map(|(dimension, open)| (open.id, dimension.name().to_owned())).collect();
    let dimension_name = |id: DimensionId| names.get(&id).cloned().unwrap_or_else(|| id.0.to_string());

    // Only a click on the cross closes it: the resource is not to look changed in every frame.
    if !window(context, &statistics, &mut remembered, dimension_name) {
        overlay.visible = false;
    }
    Ok(())
}

/// Returns whether the window stays open.
fn window(
    context: &egui::Context,
    statistics: &Statistics,
    remembered: &mut Remembered,
    dimension_name: impl Fn(DimensionId) -> String,
) -> bool {
    let Remembered { map, sort_by, occupied, .. } = remembered;
    let mut is_open = true;
    egui::Window::new("Terrane")
        .default_pos([12.0, 12.0])
        .default_size([520.0, 640.0])
        .min_width(360.0)
        .min_height(320.0)
        .open(&mut is_open)
        .show(context, |ui| {
            summary::show(ui, statistics);
            ui.add_space(6.0);
            let available = ui.available_size();
            let size = egui::vec2(available.x, (available.y * 0.55).clamp(140.0, 420.0));
            if map.show(ui, size, statistics, &dimension_name) {
                map.update(statistics, occupied);
            }
            ui.add_space(6.0);
            table::show(ui, statistics, sort_by, |region| dimension_name(region.dimension));
        });
    is_open
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::RegionStatistics;
    use crate::coordinator::TickWindow;
    use crate::region::RegionId;
    use crate::space::ColumnPos;
    use bevy::input::InputPlugin;
    use std::time::Duration;

    fn statistics(regions: u64) -> Statistics {
        let region = |id: u64| {
            let (median, worst) = (Duration::from_micros(120 * id), Duration::from_millis(id));
            let recent = TickWindow { ticks_per_second: (id != 4).then_some(20.0), median, worst, ..default() };
            let sections = (0..5).flat_map(|x| (0..5).map(move |z| SectionPos::new(id as i64 * 9 + x, z)));
            RegionStatistics {
                halted: id == 3,
                paused: id == 2,
                columns: 1_234,
                entities: 56_789,
                viewers: 1,
                ticks: 100,
                windows: [recent, recent, recent],
                sections: sections.collect(),
                ..RegionStatistics::new(DimensionId(id % 2), RegionId::new(id))
            }
        };
        let viewers = (0..regions).map(|id| (DimensionId(id % 2), ColumnPos::new(id as i64 * 144 + 40, 40), 12));
        Statistics {
            regions: (0..regions).map(region).collect(),
            viewers: viewers.collect(),
            section_shift: 4,
            ..default()
        }
    }

    #[test]
    fn the_window_keeps_its_place_whatever_there_is_to_show() {
        for regions in [0, 1, 7, 500] {
            let context = egui::Context::default();
            let statistics = statistics(regions);
            let mut remembered = Remembered::default();
            remembered.map.update(&statistics, &remembered.occupied);
            let mut sizes = Vec::new();
            let mut shapes = 0;
            for _ in 0..6 {
                let screen = egui::Rect::from_min_size(egui::Pos2::ZERO, egui::vec2(1280.0, 720.0));
                let pointer = egui::Event::PointerMoved(egui::pos2(270.0, 300.0));
                let input = egui::RawInput { screen_rect: Some(screen), events: vec![pointer], ..default() };
                let output = context.run_ui(input, |ui| {
                    assert!(window(ui.ctx(), &statistics, &mut remembered, |id| format!("dimension_{}", id.0)));
                });
                shapes = output.shapes.len();
                sizes.push(context.memory(|memory| memory.area_rect(egui::Id::new("Terrane"))).unwrap());
            }
            assert!(shapes > 20, "{regions} regions give {shapes} shapes");
            let last = sizes[5];
            assert_eq!(sizes[4], last, "it does not grow by itself");
            assert!(last.width() < 580.0 && last.height() < 700.0, "{regions} regions: {last:?}");
        }
    }

    #[test]
    fn f3_switches_it() {
        let mut app = App::new();
        app.add_plugins((MinimalPlugins, InputPlugin)).init_resource::<Overlay>();
        app.update();
        for expected in [true, false] {
            app.world_mut().resource_mut::<ButtonInput<KeyCode>>().press(KeyCode::F3);
            app.world_mut().run_system_cached(toggle).unwrap();
            assert_eq!(app.world().resource::<Overlay>().visible, expected);
            app.world_mut().resource_mut::<ButtonInput<KeyCode>>().reset_all();
        }
    }

    #[test]
    fn an_app_without_windows_runs_on() {
        let mut app = App::new();
        app.add_plugins((MinimalPlugins, OverlayPlugin { visible: true }));
        app.finish();
        app.cleanup();
        app.update();
        assert!(app.world().resource::<Overlay>().visible);
        assert!(!app.is_plugin_added::<EguiPlugin>());
    }
}
