//! Pictures without a window.

use bevy::camera::{CameraUpdateSystems, RenderTarget};
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
/// The time without a camera after which the log says so.
const WITHOUT_CAMERA: Duration = Duration::from_secs(5);

/// Lets the app's 3D cameras draw into an image instead of the window, and saves [`Pictures`] of it as PNG files.
///
/// A picture waits for a camera, which may be spawned at any time. Frames are drawn only while a picture is taken. If no picture can be
/// taken within three minutes, the app ends with an error that says why.
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
        let pictures = Pictures { folder, size, shows_land, canvas: None, wanted: None, taken: Vec::new() };
        app.register_type::<Pictures>()
            .insert_resource(pictures)
            .add_systems(Update, draw)
            .add_systems(PostUpdate, redirect.before(CameraUpdateSystems));
    }
}

/// Takes pictures, one after the other. [`PicturePlugin`] adds this resource.
#[derive(Resource, Debug, Reflect)]
#[type_path = "terrane_dev"]
#[reflect(Resource, Debug)]
pub struct Pictures {
    folder: PathBuf,
    size: UVec2,
    shows_land: bool,
    /// What the cameras draw into; `None` before the first camera is there.
    canvas: Option<Handle<Image>>,
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
}

impl Pictures {
    /// Requests a picture of this name from the cameras' current positions. Returns `true` once it is saved.
    pub fn take(&mut self, name: &str) -> bool {
        let path = self.folder.join(format!("{name}.png"));
        if self.taken.contains(&path) {
            return true;
        }
        let wanted = || Wanted { path, since: Instant::now(), frames: 0 };
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

/// A camera that draws into the picture.
#[derive(Component, Default)]
struct OnCanvas {
    /// Its place, while it looks at the sky.
    place: Option<Transform>,
}

/// Redirects new cameras to an image, and turns them off until a picture is requested.
fn redirect(
    mut commands: Commands,
    mut images: ResMut<Assets<Image>>,
    mut pictures: ResMut<Pictures>,
    mut new: Query<(Entity, &mut Camera, &RenderTarget), (With<Camera3d>, Without<OnCanvas>)>,
) {
    let to_window = new.iter_mut().filter(|(_, camera, to)| camera.is_active && matches!(to, RenderTarget::Window(_)));
    for (entity, mut camera, _) in to_window {
        let UVec2 { x, y } = pictures.size;
        let image = || images.add(Image::new_target_texture(x, y, TextureFormat::Rgba8UnormSrgb, None));
        let canvas = pictures.canvas.get_or_insert_with(image).clone();
        camera.is_active = false;
        commands.entity(entity).insert((OnCanvas::default(), RenderTarget::from(canvas)));
    }
}

/// Draws only the frames needed for a picture, and only the sky before that: without a graphics card, a frame takes
/// seconds.
fn draw(
    mut commands: Commands,
    mut pictures: ResMut<Pictures>,
    mut cameras: Query<(&mut Camera, &mut Transform, &mut OnCanvas)>,
    mut exit: MessageWriter<AppExit>,
) {
    let Pictures { canvas, wanted, .. } = &mut *pictures;
    let is_drawn = wanted.as_ref().is_some_and(|wanted| wanted.frames <= WARM_UP);
    for (mut camera, ..) in &mut cameras {
        camera.is_active = is_drawn;
    }
    let Some(wanted) = wanted else { return };
    let canvas = canvas.as_ref().filter(|_| !cameras.is_empty());
    if wanted.since.elapsed() > PATIENCE {
        let reason = if canvas.is_some() { "the graphics adapter draws nothing" } else { "no entity has a Camera3d" };
        error!("the picture {} could not be taken: {reason}", wanted.path.display());
        exit.write(AppExit::error());
    }
    let Some(canvas) = canvas else {
        if wanted.since.elapsed() > WITHOUT_CAMERA {
            warn_once!("the picture {} waits for a camera: spawn an entity with a Camera3d", wanted.path.display());
        }
        return;
    };
    for (_, mut transform, mut camera) in &mut cameras {
        match wanted.frames {
            0 => {
                camera.place = Some(*transform);
                transform.look_to(Vec3::Y, Vec3::Z);
            }
            WARM_UP => *transform = camera.place.take().unwrap_or(*transform),
            _ => {}
        }
    }
    if wanted.frames == WARM_UP {
        commands.spawn(Screenshot::image(canvas.clone())).observe(keep);
    }
    wanted.frames += 1;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Promise, commands: A picture waits for a camera that is spawned later.
    #[test]
    fn a_picture_waits_for_a_camera() {
        let mut app = App::new();
        app.add_plugins((MinimalPlugins, AssetPlugin::default(), PicturePlugin::default())).init_asset::<Image>();
        let ask = |app: &mut App| {
            assert!(!app.world_mut().resource_mut::<Pictures>().take("later"));
            app.update();
        };
        let screenshots = |app: &mut App| app.world_mut().query::<&Screenshot>().iter(app.world()).count();
        (0..10).for_each(|_| ask(&mut app));
        assert_eq!((screenshots(&mut app), app.should_exit()), (0, None));

        let place = Transform::from_xyz(1.0, 2.0, 3.0);
        let camera = app.world_mut().spawn((Camera3d::default(), place)).id();
        (0..2 + WARM_UP).for_each(|_| ask(&mut app));
        assert_eq!(screenshots(&mut app), 1);
        let camera = app.world().entity(camera);
        assert!(matches!(camera.get::<RenderTarget>(), Some(RenderTarget::Image(_))), "it draws into the picture");
        assert_eq!(camera.get::<Transform>(), Some(&place), "it is back where it was");
        assert!(camera.get::<Camera>().unwrap().is_active);
    }
}
