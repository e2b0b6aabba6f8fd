//! Starting an example: with a window if there is a display, and without one otherwise.

use super::tell::{self, Run};
use bevy::app::ScheduleRunnerPlugin;
use bevy::log::{Level, LogPlugin};
use bevy::render::RenderPlugin;
use bevy::render::settings::{Backends, WgpuSettings};
use bevy::window::ExitCondition;
use bevy::winit::WinitPlugin;
use bevy_terrane::prelude::*;
use clap::Parser;
use std::any::Any;
use std::env;
use std::error::Error;
use std::fmt::Display;
use std::mem;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// The log filter. Examples print the rest themselves.
const LOGGED: &str = "error,bevy_terrane::coordinator::collect=off,wgpu_hal::vulkan::instance=off,\
                      bevy_render::view::window::screenshot=off";

/// The body of `main` for examples that draw.
pub fn main<Arguments: Parser>(run: impl FnOnce(Arguments) -> Result<AppExit, Box<dyn Error>>) -> ExitCode {
    #[cfg(target_os = "linux")]
    silence_wayland();
    tell::end(run(tell::arguments()))
}

/// Mesa's Vulkan layer for choosing a graphics card looks for a Wayland display, and libwayland prints an error if this
/// variable names no folder. With a folder that does not exist, it silently finds no display. Changing the environment of a
/// running process is unsafe, so the process replaces itself with the same program in another environment.
#[cfg(target_os = "linux")]
fn silence_wayland() {
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    const VARIABLE: &str = "XDG_RUNTIME_DIR";
    if env::var_os(VARIABLE).is_none_or(|folder| !Path::new(&folder).is_absolute())
        && let Ok(program) = env::current_exe()
    {
        // Returns only on failure, which costs one more error message.
        let _ = Command::new(program).args(env::args_os().skip(1)).env(VARIABLE, "/nonexistent").exec();
    }
}

impl Run {
    /// Returns `true` if there is no window, because of `--headless` or because there is no display.
    pub fn is_headless(&self) -> bool {
        let is_set = |name: &&str| env::var_os(name).is_some_and(|value| !value.is_empty());
        self.headless || cfg!(target_os = "linux") && !["DISPLAY", "WAYLAND_DISPLAY"].iter().any(is_set)
    }
}

/// Fails if the world in this folder could not be opened. Ends the app later if a dimension cannot be opened.
pub fn check_world(app: &mut App, world: &Path) -> Result<(), String> {
    if let Some(failure) = app.world().get_resource::<WorldFailure>() {
        return Err(failure.to_string());
    }
    let world = world.display().to_string();
    app.add_systems(Update, move |mut failed: MessageReader<DimensionFailed>, mut exit: MessageWriter<AppExit>| {
        for DimensionFailed { error, .. } in failed.read() {
            let advice = "use the options that it was made with, or another --world";
            fail(format_args!("the world {world} cannot be continued: {error}; {advice}"), &mut exit);
        }
    });
    Ok(())
}

/// Prints the error, and ends the app with it.
pub fn fail(error: impl Display, exit: &mut MessageWriter<AppExit>) {
    tell::report(error);
    exit.write(AppExit::error());
}

pub fn end_in_time(time: Res<Time<Real>>, run: Res<Run>, mut exit: MessageWriter<AppExit>) {
    if run.is_over(time.elapsed()) {
        exit.write(AppExit::Success);
    }
}

/// The run condition of systems that run once at the end of the app.
pub fn at_end(mut exits: MessageReader<AppExit>, mut has_ended: Local<bool>) -> bool {
    exits.read().count() > 0 && !mem::replace(&mut *has_ended, true)
}

/// Adds Bevy's plugins, with a window of this title or without one. Fails if nothing can be drawn.
pub fn add_bevy(app: &mut App, title: &str, run: &Run) -> Result<(), String> {
    let headless = run.is_headless();
    let log = LogPlugin { level: Level::ERROR, filter: LOGGED.to_owned(), ..default() };
    // A single picture must not miss objects whose shaders are still being compiled.
    let mut render = RenderPlugin { synchronous_pipeline_compilation: headless, ..default() };
    let mut window =
        WindowPlugin { primary_window: Some(Window { title: title.to_owned(), ..default() }), ..default() };
    if headless {
        // OpenGL needs a display, and prints errors without one.
        let backends = Backends::from_env().or(Some(Backends::PRIMARY));
        render.render_creation = WgpuSettings { backends, ..default() }.into();
        window = WindowPlugin { primary_window: None, exit_condition: ExitCondition::DontExit, ..default() };
    }
    let plugins = DefaultPlugins.set(log).set(render).set(window);
    app.insert_resource(run.clone());
    let added = catch(|| match headless {
        true => app
            .add_plugins(plugins.disable::<WinitPlugin>())
            .add_plugins(ScheduleRunnerPlugin::run_loop(Duration::from_secs_f64(1.0 / 60.0))),
        false => app.add_plugins(plugins).add_systems(Update, end_in_time),
    });
    match added {
        Ok(_) => Ok(()),
        Err(reason) if reason.starts_with("Failed to build event loop") => {
            let display = env::var("DISPLAY").unwrap_or_default();
            Err(format!("no window can be opened: no X11 display answers (DISPLAY={display:?}); run with --headless"))
        }
        Err(reason) => {
            Err(format!("nothing can be drawn: {reason}; Mesa's software driver, lavapipe, is enough for this"))
        }
    }
}

/// Turns panics of Bevy's plugins, which happen without a display or graphics adapter, into errors.
fn catch<T>(run: impl FnOnce() -> T) -> Result<T, String> {
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
