//! Pictures without a window.

use bevy::camera::RenderTarget;
use bevy::prelude::*;
use bevy::render::render_resource::TextureFormat;
use bevy::render::view::screenshot::{Screenshot, ScreenshotCaptured};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Takes pictures of this size with the camera, and puts them into a folder.
pub struct PicturePlugin {
    pub folder: PathBuf,
    pub size: UVec2,
}

impl Plugin for PicturePlugin {
    fn build(&self, app: &mut App) {
        app.insert_resource(Pictures { folder: self.folder.clone(), size: self.size, ..default() })
            // By then there is a camera.
            .add_systems(PostStartup, prepare)
            .add_systems(Update, take);
    }
}

/// The pictures that are wanted and those that are there, by name.
#[derive(Resource, Default)]
pub struct Pictures {
    folder: PathBuf,
    size: UVec2,
    wanted: Option<String>,
    is_taking: bool,
    taken: BTreeSet<String>,
}

impl Pictures {
    /// Asks for a picture; says whether it is there.
    pub fn take(&mut self, name: &str) -> bool {
        if self.taken.contains(name) {
            return true;
        }
        self.wanted.get_or_insert_with(|| name.to_owned());
        false
    }
}

#[derive(Resource)]
struct Canvas(Handle<Image>);

/// Nothing is drawn before a picture is wanted.
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

fn take(
    mut commands: Commands,
    mut pictures: ResMut<Pictures>,
    mut camera: Single<&mut Camera, With<Camera3d>>,
    canvas: Res<Canvas>,
) {
    camera.is_active = pictures.wanted.is_some();
    let Some(name) = pictures.wanted.clone().filter(|_| !pictures.is_taking) else { return };
    pictures.is_taking = true;
    let path = pictures.folder.join(format!("{name}.png"));
    commands.spawn(Screenshot::image(canvas.0.clone())).observe(
        move |captured: On<ScreenshotCaptured>, mut pictures: ResMut<Pictures>, mut exit: MessageWriter<AppExit>| {
            (pictures.wanted, pictures.is_taking) = (None, false);
            pictures.taken.insert(name.clone());
            match store(&captured, &path) {
                Ok(()) => eprintln!("picture: {}", path.display()),
                Err(error) => {
                    eprintln!("error: cannot write {}: {error}", path.display());
                    exit.write(AppExit::error());
                }
            }
        },
    );
}

fn store(captured: &ScreenshotCaptured, path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    captured.image.clone().try_into_dynamic()?.to_rgb8().save(path)?;
    Ok(())
}
