//! Without a window: waits until everything is there, and takes a picture.

use crate::arguments::Arguments;
use bevy::camera::RenderTarget;
use bevy::render::render_resource::TextureFormat;
use bevy::render::view::screenshot::{Screenshot, ScreenshotCaptured};
use bevy_terrane::prelude::*;
use bevy_terrane::render::{FarMeshProgress, MeshProgress};
use std::time::{Duration, Instant};

const SIZE: UVec2 = UVec2::new(1_600, 900);
/// How long the land and a picture may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// Frames that nothing may change before the picture is taken.
const CALM: u32 = 20;

/// Takes the picture and ends the app.
pub struct PicturePlugin;

impl Plugin for PicturePlugin {
    fn build(&self, app: &mut App) {
        app.insert_resource(Stage { since: Instant::now(), calm: 0, told: Instant::now(), is_taking: false })
            .add_systems(Startup, prepare.after(crate::spawn_camera))
            .add_systems(Update, go_on);
    }
}

#[derive(Resource)]
struct Stage {
    since: Instant,
    calm: u32,
    told: Instant,
    is_taking: bool,
}

#[derive(Resource)]
struct Canvas(Handle<Image>);

/// Nothing is drawn before everything is there.
fn prepare(
    mut commands: Commands,
    mut images: ResMut<Assets<Image>>,
    mut camera: Single<(Entity, &mut Camera), With<Camera3d>>,
) {
    let canvas = images.add(Image::new_target_texture(SIZE.x, SIZE.y, TextureFormat::Rgba8UnormSrgb, None));
    camera.1.is_active = false;
    commands.entity(camera.0).insert(RenderTarget::from(canvas.clone()));
    commands.insert_resource(Canvas(canvas));
}

fn go_on(
    mut stage: ResMut<Stage>,
    mut commands: Commands,
    mut camera: Single<(Entity, &mut Camera), With<Camera3d>>,
    (near, far): (Res<MeshProgress>, Res<FarMeshProgress>),
    (columns, known): (Res<PublishedColumns>, Res<FarColumns>),
    arguments: Res<Arguments>,
    canvas: Res<Canvas>,
    mut exit: MessageWriter<AppExit>,
) {
    if stage.since.elapsed() > PATIENCE {
        eprintln!("error: it takes too long");
        exit.write(AppExit::error());
    }
    if stage.is_taking {
        return;
    }
    let (loaded, seen) = (columns.len(), known.len(camera.0));
    let has_all = loaded >= disc(arguments.radius) && seen >= disc(arguments.far_radius);
    if stage.told.elapsed() > Duration::from_secs(1) {
        eprintln!("{loaded} columns loaded, {} meshes; {seen} seen from afar, {} meshes", near.meshes, far.meshes);
        stage.told = Instant::now();
    }
    stage.calm = if has_all && near.is_done() && far.is_done() { stage.calm + 1 } else { 0 };
    if stage.calm < CALM {
        return;
    }
    eprintln!(
        "{loaded} columns loaded, {} meshes; {seen} seen from afar, {} meshes, after {:.1} s",
        near.meshes,
        far.meshes,
        stage.since.elapsed().as_secs_f32()
    );
    stage.is_taking = true;
    camera.1.is_active = true;
    let path = arguments.picture.clone();
    commands.spawn(Screenshot::image(canvas.0.clone())).observe(
        move |captured: On<ScreenshotCaptured>, mut exit: MessageWriter<AppExit>| {
            exit.write(match store(&captured, &path) {
                Ok(()) => AppExit::Success,
                Err(error) => {
                    eprintln!("error: cannot write {}: {error}", path.display());
                    AppExit::error()
                }
            });
        },
    );
}

fn disc(radius: u32) -> usize {
    let radius = i64::from(radius);
    let columns = (-radius..=radius).flat_map(|x| (-radius..=radius).map(move |z| (x, z)));
    columns.filter(|(x, z)| x * x + z * z <= radius * radius).count()
}

fn store(captured: &ScreenshotCaptured, path: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    captured.image.clone().try_into_dynamic()?.to_rgb8().save(path)?;
    eprintln!("picture: {}", path.display());
    Ok(())
}
