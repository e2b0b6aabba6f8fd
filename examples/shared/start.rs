//! How examples start: with a window where there is a display, and without one elsewhere.

use bevy::app::ScheduleRunnerPlugin;
use bevy::log::{Level, LogPlugin};
use bevy::prelude::*;
use bevy::render::RenderPlugin;
use bevy::render::settings::{Backends, WgpuSettings};
use bevy::window::ExitCondition;
use bevy::winit::WinitPlugin;
use std::time::Duration;

/// Whether there is nothing to open a window on.
pub fn lacks_display() -> bool {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    cfg!(target_os = "linux") && !["DISPLAY", "WAYLAND_DISPLAY"].iter().any(is_set)
}

/// Bevy's own plugins, with a window of this title or without one.
pub fn add_bevy(app: &mut App, title: &str, headless: bool) {
    let filter = "error,wgpu_hal::vulkan::instance=off".to_owned();
    let log = LogPlugin { level: Level::ERROR, filter, ..default() };
    // A picture that is taken once must not miss what is still being compiled.
    let mut render = RenderPlugin { synchronous_pipeline_compilation: headless, ..default() };
    if !headless {
        let window = Window { title: title.to_owned(), ..default() };
        app.add_plugins(
            DefaultPlugins.set(log).set(render).set(WindowPlugin { primary_window: Some(window), ..default() }),
        );
        return;
    }
    // OpenGL wants a display, and complains without one.
    let backends = Backends::from_env().or(Some(Backends::PRIMARY));
    render.render_creation = WgpuSettings { backends, ..default() }.into();
    let no_window = WindowPlugin { primary_window: None, exit_condition: ExitCondition::DontExit, ..default() };
    app.add_plugins(DefaultPlugins.set(log).set(render).set(no_window).disable::<WinitPlugin>())
        .add_plugins(ScheduleRunnerPlugin::run_loop(Duration::from_secs_f64(1.0 / 60.0)));
}
