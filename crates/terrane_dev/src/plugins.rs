//! Bevy's plugins, for a window or for a machine without a display.

use super::fly_camera::{add_crosshair, fly};
use super::{FirstPerson, FirstPersonPlugin, FlyCamera, FlySystems, PicturePlugin, Pictures};
use bevy::app::{PluginGroupBuilder, ScheduleRunnerPlugin};
use bevy::asset::AssetPlugin;
use bevy::asset::io::file::FileAssetReader;
use bevy::log::LogPlugin;
use bevy::prelude::*;
use bevy::render::RenderPlugin;
use bevy::render::settings::{Backends, WgpuSettings};
use bevy::window::ExitCondition;
use bevy::winit::WinitPlugin;
use bevy_terrane::view::{DimensionFailed, OwnBody, WorldStatistics};
use std::env;
use std::fs;
use std::path::PathBuf;
use std::process;
use std::time::Duration;
use terrane_render::{ChunkMeshProgress, FarMeshProgress};

/// Messages of drivers and of Bevy that say nothing to the author of a game.
const LOG_FILTER: &str = "info,bevy_app=warn,bevy_diagnostic=warn,bevy_egui=error,bevy_pbr=warn,bevy_render=error,bevy_window=warn,\
                          bevy_winit=error,naga=error,wgpu=error,wgpu_hal::vulkan::instance=off,\
                          bevy_render::view::window::screenshot=off";
/// The number of frames without a change after which the picture is taken.
const CALM_FRAMES: u32 = 20;

/// Bevy's `DefaultPlugins` for a program in development, with the systems that move [`FlyCamera`](super::FlyCamera)s and
/// [`FirstPerson`](super::FirstPerson)s.
///
/// With a display the program has a window. Otherwise, or with [`headless`](Self::headless), it draws into an image: once
/// a camera is there and all land around the viewers is loaded and has meshes, it saves a picture and ends.
#[derive(Clone, Debug, PartialEq)]
pub struct DevPlugins {
    /// The name of the program: the title of the window, and the name of the picture.
    pub name: String,
    /// `true` if the program opens no window; by default without a display.
    pub headless: bool,
    /// The program ends after this time. Without a window it takes its picture then, ready or not.
    pub run_for: Option<Duration>,
    /// The folder of the picture; `target/examples/NAME` by default. With `None`, the program takes its own pictures, with
    /// [`PicturePlugin`], and ends by itself.
    pub pictures: Option<PathBuf>,
    /// The messages that are logged; see `LogPlugin::filter`.
    pub log_filter: String,
    /// `true`, the default, if a window marks the middle of the view of a [`FlyCamera`] or a [`FirstPerson`], where a game aims.
    pub crosshair: bool,
}

/// Returns `true` if a window can be opened: on Linux, if `DISPLAY` is set. This crate builds Bevy for X11, which a Wayland
/// desktop offers through Xwayland.
pub fn has_display() -> bool {
    !cfg!(target_os = "linux") || env::var_os("DISPLAY").is_some_and(|display| !display.is_empty())
}

impl DevPlugins {
    /// The plugins for a program of this name. They take `--headless` and `--seconds N` from the command line, and print a help text
    /// for `--help`.
    pub fn new(name: &str) -> Self {
        let mut plugins = Self::named(name);
        if let Err(problem) = plugins.read(env::args().skip(1)) {
            eprintln!("error: {problem}; --help lists all arguments");
            process::exit(2);
        }
        plugins
    }

    /// The plugins for a program of this name, without reading the command line.
    pub fn named(name: &str) -> Self {
        name_a_runtime_folder();
        Self {
            name: name.to_owned(),
            headless: !has_display(),
            run_for: None,
            pictures: Some(PathBuf::from("target/examples").join(name)),
            log_filter: LOG_FILTER.to_owned(),
            crosshair: true,
        }
    }

    fn read(&mut self, arguments: impl IntoIterator<Item = String>) -> Result<(), String> {
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--headless" => self.headless = true,
                "--seconds" => {
                    let seconds = arguments.next().and_then(|text| text.parse().ok()).filter(|seconds| *seconds > 0);
                    let seconds = seconds.ok_or("--seconds needs a number of 1 or more")?;
                    self.run_for = Some(Duration::from_secs(seconds));
                }
                "--help" | "-h" => {
                    print!("{}", self.help());
                    process::exit(0);
                }
                other => return Err(format!("unknown argument {other:?}")),
            }
        }
        Ok(())
    }

    fn help(&self) -> String {
        let pictures = self.pictures.clone().unwrap_or_default();
        format!(
            "{}: a program made with bevy_terrane\n\n\
             W A S D fly or walk, Space and Shift move up and down or jump and sneak, Ctrl is faster.\n\
             The right mouse button turns a flying view. A click holds the mouse of a player, and Esc frees it.\n\n\
             --headless   open no window: save a picture in {}, and end\n\
             --seconds N  end after N seconds at the latest\n\
             --help       print this\n",
            self.name,
            pictures.display()
        )
    }
}

/// Sets `XDG_RUNTIME_DIR` on Linux if it is not set. Mesa's Vulkan layer for choosing a graphics card looks for a Wayland display, and
/// libwayland prints an error without this variable. With a folder that does not exist it silently finds no display.
///
/// A program with other threads keeps its environment, and the error.
fn name_a_runtime_folder() {
    let is_missing = cfg!(target_os = "linux") && env::var_os("XDG_RUNTIME_DIR").is_none();
    if is_missing && fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1) {
        // SAFETY: No other thread reads or writes the environment at the same time, since this is the only thread of the process.
        unsafe { env::set_var("XDG_RUNTIME_DIR", "/nonexistent") };
    }
}

impl PluginGroup for DevPlugins {
    fn build(self) -> PluginGroupBuilder {
        let log = LogPlugin { filter: self.log_filter.clone(), ..default() };
        // A single picture must not miss objects whose shaders are still being compiled.
        let mut render = RenderPlugin { synchronous_pipeline_compilation: self.headless, ..default() };
        let mut window =
            WindowPlugin { primary_window: Some(Window { title: self.name.clone(), ..default() }), ..default() };
        if self.headless {
            // OpenGL needs a display, and prints errors without one.
            let backends = Backends::from_env().or(Some(Backends::PRIMARY));
            render.render_creation = WgpuSettings { backends, ..default() }.into();
            window = WindowPlugin { primary_window: None, exit_condition: ExitCondition::DontExit, ..default() };
        }
        // Without the folder there is nothing to watch, and Bevy warns.
        let has_assets = FileAssetReader::get_base_path().join("assets").is_dir();
        let assets = AssetPlugin { watch_for_changes_override: Some(has_assets), ..default() };
        let mut plugins = DefaultPlugins.build().set(assets).set(log).set(render).set(window);
        if self.headless {
            // Nobody sees these frames.
            let frame = Duration::from_secs_f64(1.0 / 30.0);
            plugins = plugins.disable::<WinitPlugin>().add(ScheduleRunnerPlugin::run_loop(frame));
        }
        plugins.add(DevPlugin(self))
    }
}

struct DevPlugin(DevPlugins);

impl Plugin for DevPlugin {
    fn build(&self, app: &mut App) {
        let DevPlugins { name, headless, run_for, pictures, crosshair, .. } = self.0.clone();
        app.add_plugins(FirstPersonPlugin)
            .register_type::<FlyCamera>()
            .add_systems(Update, (fly.in_set(FlySystems), end_without_a_dimension));
        if crosshair && !headless {
            app.add_systems(Update, add_crosshair);
        }
        match pictures {
            Some(folder) if headless => {
                // Not all games have land in view.
                let pictures = PicturePlugin { folder, shows_land: false, ..default() };
                app.add_plugins(pictures).add_systems(Update, take_one(name, run_for));
            }
            _ => {
                app.add_systems(Update, move |time: Res<Time<Real>>, mut exit: MessageWriter<AppExit>| {
                    if run_for.is_some_and(|limit| time.elapsed() >= limit) {
                        exit.write(AppExit::Success);
                    }
                });
            }
        }
    }
}

/// A dimension that cannot be opened is logged already. A program in development has nothing to show without it.
fn end_without_a_dimension(mut failed: MessageReader<DimensionFailed>, mut exit: MessageWriter<AppExit>) {
    if failed.read().count() > 0 {
        exit.write(AppExit::error());
    }
}

/// A system that takes a picture of this name once nothing changes any more, or after the time, and ends the app.
fn take_one(name: String, run_for: Option<Duration>) -> impl System<In = (), Out = ()> {
    let mut calm_frames = 0;
    let take = move |time: Res<Time<Real>>,
                     cameras: Query<(), With<Camera3d>>,
                     (bodies, arriving): (Query<&OwnBody>, Query<(), (With<FirstPerson>, Without<OwnBody>)>),
                     world: Option<Res<WorldStatistics>>,
                     near: Option<Res<ChunkMeshProgress>>,
                     far: Option<Res<FarMeshProgress>>,
                     mut pictures: ResMut<Pictures>,
                     mut exit: MessageWriter<AppExit>| {
        let is_loaded = world.is_none_or(|world| world.columns > 0 && world.remaining == 0);
        let is_drawn = near.is_none_or(|near| near.is_done() && near.meshes > 0) && far.is_none_or(|far| far.is_done());
        let is_there = arriving.is_empty() && bodies.iter().all(|own| own.state().is_some());
        calm_frames = if is_loaded && is_drawn && is_there && !cameras.is_empty() { calm_frames + 1 } else { 0 };
        let is_over = run_for.is_some_and(|limit| time.elapsed() >= limit);
        if (calm_frames >= CALM_FRAMES || is_over) && pictures.take(&name) {
            exit.write(AppExit::Success);
        }
    };
    IntoSystem::into_system(take)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<DevPlugins, String> {
        let mut plugins = DevPlugins::named("game");
        plugins.read(arguments.iter().map(ToString::to_string)).map(|()| plugins)
    }

    #[test]
    fn arguments_choose_the_window_and_the_time() {
        let plugins = read(&["--seconds", "3", "--headless"]).unwrap();
        assert_eq!((plugins.headless, plugins.run_for), (true, Some(Duration::from_secs(3))));
        assert_eq!(read(&[]).unwrap().headless, !has_display());
        for wrong in [&["--second", "3"][..], &["--seconds"], &["--seconds", "0"], &["--seconds", "-1"], &["world"]] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
