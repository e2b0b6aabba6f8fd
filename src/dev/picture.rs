//! Pictures without a window.

use bevy::camera::RenderTarget;
use bevy::prelude::*;
use bevy::render::render_resource::TextureFormat;
use bevy::render::view::screenshot::{Screenshot, ScreenshotCaptured};
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The number of frames before a picture is taken, so that shaders load and an overlay finds its size.
const WARM_UP: u32 = 3;
/// The time limit of a picture.
const PATIENCE: Duration = Duration::from_secs(180);

/// Lets the app's only 3D camera draw into an image instead of a window, and saves [`Pictures`] of it as PNG files.
///
/// Frames are drawn only while a picture is taken. If no picture can be taken within three minutes, the app ends with an error.
#[derive(Clone, Debug, PartialEq)]
pub struct PicturePlugin {
    /// The folder of the pictures; created if missing.
    pub folder: PathBuf,
    /// The width and height of a picture, in pixels; 1280 x 720 by default.
    pub size: UVec2,
    /// With `true`, the default, a picture that shows only sky is taken again.
    pub shows_land: bool,
}

impl Default for PicturePlugin {
    fn default() -> Self {
        Self { folder: PathBuf::from("target"), size: UVec2::new(1_280, 720), shows_land: true }
    }
}

impl Plugin for PicturePlugin {
    fn build(&self, app: &mut App) {
        let Self { size, shows_land, .. } = *self;
        let folder = self.folder.clone();
        let pictures = Pictures { folder, size, shows_land, wanted: None, taken: Vec::new() };
        // The camera exists after `Startup`.
        app.register_type::<Pictures>()
            .insert_resource(pictures)
            .add_systems(PostStartup, prepare)
            .add_systems(Update, draw);
    }
}

/// Takes pictures, one after the other. [`PicturePlugin`] adds this resource.
#[derive(Resource, Debug, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Resource, Debug)]
pub struct Pictures {
    folder: PathBuf,
    size: UVec2,
    shows_land: bool,
    #[reflect(ignore)]
    wanted: Option<Wanted>,
    /// The pictures in the order in which they were taken.
    pub taken: Vec<PathBuf>,
}

#[derive(Debug)]
struct Wanted {
    path: PathBuf,
    since: Instant,
    frames: u32,
    /// The position of the camera.
    place: Transform,
}

impl Pictures {
    /// Requests a picture of this name from the camera's current position. Returns `true` once it is saved.
    pub fn take(&mut self, name: &str) -> bool {
        let path = self.folder.join(format!("{name}.png"));
        if self.taken.contains(&path) {
            return true;
        }
        let wanted = || Wanted { path, since: Instant::now(), frames: 0, place: default() };
        self.wanted.get_or_insert_with(wanted);
        false
    }

    /// Saves the picture unless no land is visible on it yet. Returns `true` if it was saved.
    fn store(&mut self, captured: &ScreenshotCaptured) -> Result<bool, Box<dyn Error>> {
        let image = captured.image.clone().try_into_dynamic()?.to_rgb8();
        // Below the middle, sky alone has few colours.
        let mut colors: Vec<_> = image.pixels().skip(image.len() / 6).step_by(997).map(|pixel| pixel.0).collect();
        colors.sort_unstable();
        colors.dedup();
        if self.shows_land && colors.len() < 60 {
            return Ok(false);
        }
        fs::create_dir_all(&self.folder)?;
        if let Some(wanted) = &self.wanted {
            image.save(&wanted.path)?;
        }
        Ok(true)
    }
}

#[derive(Resource)]
struct Canvas(Handle<Image>);

/// Redirects the camera to an image, and turns it off until a picture is requested.
fn prepare(
    mut commands: Commands,
    mut images: ResMut<Assets<Image>>,
    pictures: Res<Pictures>,
    mut camera: Single<(Entity, &mut Camera), With<Camera3d>>,
) {
    let UVec2 { x, y } = pictures.size;
    let canvas = images.add(Image::new_target_texture(x, y, TextureFormat::Rgba8UnormSrgb, None));
    camera.1.is_active = false;
    commands.entity(camera.0).insert(RenderTarget::from(canvas.clone()));
    commands.insert_resource(Canvas(canvas));
}

/// Draws only the frames needed for a picture, and only the sky before that: without a graphics card, a frame takes
/// seconds.
fn draw(
    mut commands: Commands,
    mut pictures: ResMut<Pictures>,
    camera: Single<(&mut Camera, &mut Transform), With<Camera3d>>,
    canvas: Res<Canvas>,
    mut exit: MessageWriter<AppExit>,
) {
    let (mut camera, mut transform) = camera.into_inner();
    camera.is_active = pictures.wanted.as_ref().is_some_and(|wanted| wanted.frames <= WARM_UP);
    let Some(wanted) = &mut pictures.wanted else { return };
    match wanted.frames {
        0 => {
            wanted.place = *transform;
            transform.look_to(Vec3::Y, Vec3::Z);
        }
        WARM_UP => {
            *transform = wanted.place;
            commands.spawn(Screenshot::image(canvas.0.clone())).observe(keep);
        }
        _ => {}
    }
    wanted.frames += 1;
    if wanted.since.elapsed() > PATIENCE {
        error!("no picture could be taken: the graphics adapter draws nothing");
        exit.write(AppExit::error());
    }
}

fn keep(captured: On<ScreenshotCaptured>, mut pictures: ResMut<Pictures>, mut exit: MessageWriter<AppExit>) {
    let stored = pictures.store(&captured);
    let Some(mut wanted) = pictures.wanted.take() else { return };
    match stored {
        Ok(true) => {
            info!("picture: {}", wanted.path.display());
            pictures.taken.push(wanted.path);
        }
        Ok(false) => {
            wanted.frames = 0;
            pictures.wanted = Some(wanted);
        }
        Err(error) => {
            error!("cannot write {}: {error}", wanted.path.display());
            exit.write(AppExit::error());
        }
    }
}
