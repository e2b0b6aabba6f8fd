//! Without a window: simulate, save, take three pictures, end.

use crate::arguments::Arguments;
use crate::landmarks::LandmarkChecks;
use crate::summary::Record;
use crate::{failure, progress, rehearsal, scene, view};
use bevy::camera::RenderTarget;
use bevy::render::render_resource::TextureFormat;
use bevy::render::view::screenshot::{Screenshot, ScreenshotCaptured};
use bevy_egui::PrimaryEguiContext;
use bevy_terrane::overlay::{Overlay, OverlayList};
use bevy_terrane::prelude::*;
use bevy_terrane::render::MeshProgress;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const SIZE: UVec2 = UVec2::new(1_600, 900);
const FOLDER: &str = "target/demo";
/// How long columns, a save, meshes and a picture may take.
const PATIENCE: Duration = Duration::from_secs(180);
/// Frames drawn before a picture is taken, for shaders to arrive and the overlay to find its size.
const WARM_UP: u32 = 3;

/// Goes through the phases.
pub struct HeadlessPlugin;

impl Plugin for HeadlessPlugin {
    fn build(&self, app: &mut App) {
        app.add_systems(Startup, spawn_camera)
            .add_systems(Update, (glide, go_on))
            .init_resource::<rehearsal::Rehearsal>()
            .insert_resource(Stage { phase: Phase::Opening, since: Instant::now() });
    }
}

/// What the demo does at the moment.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// The dimension is being opened.
    Opening,
    /// Regions tick; no frame is drawn that would take their time.
    Simulating,
    /// Everything around the camera is to be there.
    Completing,
    /// Everything is to be stored.
    Saving,
    /// The statistics are to tell of that save.
    Counting,
    /// Everything that is published is to have a mesh.
    Meshing,
    /// Frames that cost little are drawn before the picture with this number.
    WarmingUp { picture: usize, frames: u32 },
    /// The picture with this number comes back from the graphics card.
    Capturing { picture: usize },
    /// Regions halt, restart and pause, for the last picture.
    Rehearsing,
    /// They live again.
    Leaving,
}

/// The pictures' files, in the order in which they are taken: the land, the overlay, and regions that do not tick in it.
const PICTURES: [&str; 3] = ["jacksboro.png", "overlay.png", "halted.png"];

#[derive(Resource)]
struct Stage {
    phase: Phase,
    since: Instant,
}

impl Stage {
    fn go_to(&mut self, phase: Phase) {
        *self = Self { phase, since: Instant::now() };
    }
}

/// The viewer flies over the land; the camera stays where the pictures are taken from.
#[derive(Component)]
struct Glider;

#[derive(Resource)]
struct Canvas(Handle<Image>);

fn spawn_camera(
    mut commands: Commands,
    mut images: ResMut<Assets<Image>>,
    dimension: Single<Entity, With<Dimension>>,
    arguments: Res<Arguments>,
) {
    let radius = arguments.radius;
    commands.spawn((Glider, Viewer::in_dimension(*dimension).with_radius(radius), glider_at(0.0)));
    let canvas = images.add(Image::new_target_texture(SIZE.x, SIZE.y, TextureFormat::Rgba8UnormSrgb, None));
    // The camera stands at the rim of what is loaded and looks to the other side.
    commands.spawn((
        scene::camera(radius as f32 * 16.0 * 1.95),
        Camera { is_active: false, ..default() },
        RenderTarget::from(canvas.clone()),
        PrimaryEguiContext,
    ));
    commands.insert_resource(Canvas(canvas));
}

/// From the south-east to the middle of the pictures.
fn glider_at(part: f32) -> Transform {
    let end = view::CENTRE.as_vec2();
    let place = end + Vec2::new(160.0, 120.0) * (1.0 - part.clamp(0.0, 1.0));
    Transform::from_xyz(place.x, 100.0, place.y)
}

fn seconds(arguments: &Arguments) -> Duration {
    Duration::from_secs(arguments.seconds.unwrap_or(30))
}

/// It arrives when two thirds of the time are over.
fn glide(stage: Res<Stage>, arguments: Res<Arguments>, mut glider: Single<&mut Transform, With<Glider>>) {
    let part = match stage.phase {
        Phase::Opening => 0.0,
        Phase::Simulating => stage.since.elapsed().as_secs_f32() / seconds(&arguments).as_secs_f32() * 1.5,
        _ => 1.0,
    };
    glider.set_if_neq(glider_at(part));
}

#[derive(bevy::ecs::system::SystemParam)]
struct Desk<'w, 's> {
    commands: Commands<'w, 's>,
    arguments: Res<'w, Arguments>,
    statistics: Res<'w, WorldStatistics>,
    checks: Res<'w, LandmarkChecks>,
    record: ResMut<'w, Record>,
    canvas: Res<'w, Canvas>,
    viewpoints: Res<'w, view::Viewpoints>,
    overlay: ResMut<'w, Overlay>,
    camera: Single<'w, 's, (&'static mut Camera, &'static mut Transform), (With<Camera3d>, Without<Glider>)>,
    rehearsal: rehearsal::Stage<'w, 's>,
    dimension: Single<'w, 's, Entity, With<Dimension>>,
    exit: MessageWriter<'w, AppExit>,
}

fn go_on(
    mut stage: ResMut<Stage>,
    mut desk: Desk,
    mut opened: MessageReader<DimensionOpened>,
    mut saved: MessageReader<WorldSaved>,
    mut save: MessageWriter<SaveWorld>,
    dimension: Single<Entity, With<Dimension>>,
    blocks: PublishedBlocks,
    meshes: Res<MeshProgress>,
) {
    let elapsed = stage.since.elapsed();
    let is_late = elapsed > PATIENCE;
    let is_saved = saved.read().next().is_some();
    match stage.phase {
        Phase::Opening if opened.read().next().is_some() => stage.go_to(Phase::Simulating),
        Phase::Simulating if elapsed >= seconds(&desk.arguments) => stage.go_to(Phase::Completing),
        Phase::Completing if is_late || is_complete(&blocks, *dimension, desk.arguments.radius) => {
            save.write(SaveWorld { request: 1 });
            stage.go_to(Phase::Saving);
        }
        Phase::Saving if is_late || is_saved => stage.go_to(Phase::Counting),
        Phase::Counting if elapsed > Duration::from_millis(500) => {
            desk.record.freeze(&desk.statistics, &desk.checks);
            progress::say("taking pictures ...");
            stage.go_to(Phase::Meshing);
        }
        // Bots go on loading land far away, so there may always be some mesh under way.
        Phase::Meshing if is_late || meshes.queued + meshes.in_flight < 16 => desk.begin_picture(&mut stage, 0),
        Phase::WarmingUp { .. } | Phase::Capturing { .. } if is_late => {
            failure::report("no picture could be taken: the graphics adapter draws nothing");
            desk.exit.write(AppExit::error());
        }
        Phase::WarmingUp { picture, frames: WARM_UP } => desk.capture(&mut stage, picture),
        Phase::WarmingUp { picture, frames } => stage.phase = Phase::WarmingUp { picture, frames: frames + 1 },
        // One frame is enough: it is drawn in seconds where a processor does the work of a graphics card.
        Phase::Capturing { .. } => desk.camera.0.is_active = false,
        Phase::Rehearsing => {
            desk.camera.0.is_active = false;
            if desk.rehearsal.is_set(*dimension, centre()) {
                desk.begin_picture(&mut stage, 2);
            }
        }
        Phase::Leaving if elapsed > Duration::from_millis(500) => drop(desk.exit.write(AppExit::Success)),
        Phase::Leaving => desk.camera.0.is_active = false,
        _ => {}
    }
}

/// The block in the middle of what the camera keeps loaded.
fn centre() -> BlockPos {
    BlockPos::new(view::CENTRE.x, 0, view::CENTRE.y)
}

/// Whether all columns around the camera are published.
fn is_complete(blocks: &PublishedBlocks, dimension: Entity, radius: u32) -> bool {
    let centre = centre().column();
    let radius = i64::from(radius);
    let disc = (-radius..=radius).flat_map(|x| (-radius..=radius).map(move |z| (x, z)));
    let mut disc = disc.filter(|(x, z)| x * x + z * z <= radius * radius);
    disc.all(|(x, z)| blocks.column(dimension, centre.offset(x, z)).is_some())
}

impl Desk<'_, '_> {
    fn begin_picture(&mut self, stage: &mut Stage, picture: usize) {
        self.look(self.viewpoints.to_the_ground);
        self.overlay.visible = picture > 0;
        self.overlay.selected = match picture {
            1 => self.rehearsal.region_at(*self.dimension, centre()),
            _ => self.rehearsal.halted(),
        };
        self.overlay.list = if picture == 2 { OverlayList::Log } else { OverlayList::Regions };
        stage.go_to(Phase::WarmingUp { picture, frames: 0 });
    }

    fn look(&mut self, from: Transform) {
        let (camera, transform) = &mut *self.camera;
        camera.is_active = true;
        **transform = from;
    }

    fn capture(&mut self, stage: &mut Stage, picture: usize) {
        self.look(if picture == 0 { self.viewpoints.over_the_lake } else { self.viewpoints.from_above });
        stage.phase = Phase::Capturing { picture };
        self.commands.spawn(Screenshot::image(self.canvas.0.clone())).observe(
            move |captured: On<ScreenshotCaptured>, mut stage: ResMut<Stage>, mut desk: Desk| match store(
                &captured, picture,
            ) {
                Ok(Some(path)) => {
                    desk.record.add_picture(path);
                    match picture {
                        0 => desk.begin_picture(&mut stage, 1),
                        1 => stage.go_to(Phase::Rehearsing),
                        _ => {
                            desk.rehearsal.end();
                            stage.go_to(Phase::Leaving);
                        }
                    }
                }
                // Drawn again, until the patience is over.
                Ok(None) => {
                    desk.look(desk.viewpoints.to_the_ground);
                    stage.phase = Phase::WarmingUp { picture, frames: 0 };
                }
                Err(error) => {
                    failure::report(error);
                    desk.exit.write(AppExit::error());
                }
            },
        );
    }
}

/// Writes the picture to its file; `None` if nothing can be seen on it yet.
fn store(captured: &ScreenshotCaptured, picture: usize) -> Result<Option<PathBuf>, String> {
    let path = PathBuf::from(FOLDER).join(PICTURES[picture]);
    let failed = |error: &dyn std::fmt::Display| format!("cannot write {}: {error}", path.display());
    let image = captured.image.clone().try_into_dynamic().map_err(|error| failed(&error))?.to_rgb8();
    // Sky alone has few colours below the middle.
    let mut colors: Vec<[u8; 3]> = image.pixels().skip(image.len() / 6).step_by(997).map(|pixel| pixel.0).collect();
    colors.sort_unstable();
    colors.dedup();
    if colors.len() < 60 {
        return Ok(None);
    }
    std::fs::create_dir_all(FOLDER).map_err(|error| failed(&error))?;
    image.save(&path).map_err(|error| failed(&error))?;
    Ok(Some(path))
}
