//! Starting an example: with a window if there is a display, and without one otherwise.

use super::tell::{self, Run};
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
use terrane_dev::{DevPlugins, has_display};

/// The log filter. Examples print the rest themselves.
const LOGGED: &str = "error,terrane_dev=info,wgpu_hal::vulkan::instance=off,bevy_render::view::window::screenshot=off";

/// The body of `main` for examples that draw.
pub fn main<Arguments: Parser>(run: impl FnOnce(Arguments) -> Result<AppExit, Box<dyn Error>>) -> ExitCode {
    tell::end(run(tell::arguments()))
}

impl Run {
    /// Returns `true` if there is no window, because of `--headless` or because there is no display.
    pub fn is_headless(&self) -> bool {
        self.headless || !has_display()
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
            fail(format_args!("the world {world} cannot be continued: {error} (--world)"), &mut exit);
        }
    });
    Ok(())
}

/// Prints the error, and ends the app with it.
pub fn fail(error: impl Display, exit: &mut MessageWriter<AppExit>) {
    tell::report(error);
    exit.write(AppExit::error());
}

/// The run condition of systems that run once at the end of the app.
pub fn at_end(mut exits: MessageReader<AppExit>, mut has_ended: Local<bool>) -> bool {
    exits.read().count() > 0 && !mem::replace(&mut *has_ended, true)
}

/// Adds Bevy's plugins, with a window of this title or without one. Fails if nothing can be drawn.
pub fn add_bevy(app: &mut App, title: &str, run: &Run) -> Result<(), String> {
    let headless = run.is_headless();
    // Examples end by themselves without a window.
    let run_for = run.seconds.filter(|_| !headless).map(Duration::from_secs);
    let plugins = DevPlugins {
        headless,
        run_for,
        pictures: None,
        log_filter: LOGGED.to_owned(),
        crosshair: false,
        ..DevPlugins::named(title)
    };
    app.insert_resource(run.clone());
    match catch(|| app.add_plugins(plugins)) {
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
