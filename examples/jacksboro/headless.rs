//! A run without a window: simulate, save, take three pictures, exit.

use crate::arguments::Arguments;
use crate::landmarks::LandmarkChecks;
use crate::rehearsal::{Rehearsal, Rehearsing};
use crate::summary::Record;
use crate::tell::{Run, say};
use crate::view::{self, Viewpoints};
use bevy_egui::PrimaryEguiContext;
use bevy_terrane::prelude::*;
use bevy_terrane::space::ColumnArea;
use bevy_terrane::view::{SaveWorld, WorldSaved, WorldStatistics};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use terrane_dev::{PicturePlugin, Pictures};
use terrane_overlay::{Overlay, OverlayTab};
use terrane_render::ChunkMeshProgress;

/// The default duration of the simulation.
pub const SECONDS: u64 = 30;
/// The time limit for columns, a save and meshes.
const PATIENCE: Duration = Duration::from_secs(180);
/// The delay of statistics, and the time in which restarted regions come back to life.
const MOMENT: Duration = Duration::from_millis(500);

/// Runs the phases, and saves pictures in this folder.
pub struct HeadlessPlugin(pub PathBuf);

impl Plugin for HeadlessPlugin {
    fn build(&self, app: &mut App) {
        app.add_plugins(PicturePlugin { folder: self.0.clone(), size: UVec2::new(1_600, 900), shows_land: true })
            .add_systems(Startup, spawn_camera)
            .add_systems(Update, (glide, go_on))
            .init_resource::<Rehearsal>()
            .insert_resource(Stage { phase: Phase::Opening, since: Instant::now() });
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// The dimension is being opened.
    Opening,
    /// Regions tick; no frame is drawn, which would take time from them.
    Simulating,
    /// Waits until everything around the camera is published.
    Completing,
    /// Waits until everything is stored.
    Saving,
    /// Waits until the statistics include that save.
    Counting,
    /// Waits until everything that is published has a mesh.
    Meshing,
    /// The picture of the land is taken.
    Land,
    /// The picture of the overlay is taken.
    Overlay,
    /// Regions halt, restart and pause.
    Rehearsing,
    /// The picture of those regions is taken.
    Halted,
    /// Waits until the regions run again.
    Leaving,
}

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

/// The viewer that flies over the land, while the camera stays where the pictures are taken.
#[derive(Component)]
struct Glider;

fn spawn_camera(
    mut commands: Commands,
    dimensions: Res<Dimensions>,
    arguments: Res<Arguments>,
    viewpoints: Res<Viewpoints>,
) {
    let (dimension, radius) = (dimensions.id(view::DIMENSION), arguments.radius);
    commands.spawn((Glider, Viewer::in_dimension(dimension).with_radius(radius), glider_at(0.0)));
    // The camera stands at the edge of the loaded land and looks across it.
    commands.spawn((view::camera(radius as f32 * 16.0 * 1.95), viewpoints.over_the_lake, PrimaryEguiContext));
}

/// The viewer's position, from the south-east to the middle of the pictures.
fn glider_at(part: f32) -> Transform {
    let end = view::CENTRE.as_vec2();
    let place = end + Vec2::new(160.0, 120.0) * (1.0 - part.clamp(0.0, 1.0));
    Transform::from_xyz(place.x, 100.0, place.y)
}

/// Moves the viewer. It arrives after two thirds of the time.
fn glide(stage: Res<Stage>, run: Res<Run>, mut glider: Single<&mut Transform, With<Glider>>) {
    let part = match stage.phase {
        Phase::Opening => 0.0,
        Phase::Simulating => stage.since.elapsed().as_secs_f32() / run.seconds.unwrap_or_default() as f32 * 1.5,
        _ => 1.0,
    };
    glider.set_if_neq(glider_at(part));
}

fn go_on(
    mut stage: ResMut<Stage>,
    (mut opened, mut saved): (MessageReader<DimensionOpened>, MessageReader<WorldSaved>),
    (mut save, mut exit): (MessageWriter<SaveWorld>, MessageWriter<AppExit>),
    (arguments, run, viewpoints): (Res<Arguments>, Res<Run>, Res<Viewpoints>),
    (blocks, meshes): (PublishedBlocks, Res<ChunkMeshProgress>),
    (statistics, checks, mut record): (Res<WorldStatistics>, Res<LandmarkChecks>, ResMut<Record>),
    mut rehearsing: Rehearsing,
    mut overlay: ResMut<Overlay>,
    mut pictures: ResMut<Pictures>,
    dimensions: Res<Dimensions>,
    mut camera: Single<&mut Transform, With<Camera3d>>,
) {
    let elapsed = stage.since.elapsed();
    let is_late = elapsed > PATIENCE;
    let is_saved = saved.read().next().is_some();
    let dimension = dimensions.id(view::DIMENSION);
    let centre = BlockPos::new(view::CENTRE.x, 0, view::CENTRE.y);
    match stage.phase {
        Phase::Opening if opened.read().next().is_some() => stage.go_to(Phase::Simulating),
        Phase::Simulating if run.is_over(elapsed) => stage.go_to(Phase::Completing),
        Phase::Completing if is_late || is_complete(&blocks, dimension, centre, arguments.radius) => {
            save.write(SaveWorld { request: 1 });
            stage.go_to(Phase::Saving);
        }
        Phase::Saving if is_late || is_saved => stage.go_to(Phase::Counting),
        Phase::Counting if elapsed > MOMENT => {
            record.freeze(&statistics, &checks);
            say("taking pictures ...");
            stage.go_to(Phase::Meshing);
        }
        // Bots keep loading distant land, so a few meshes may always be in flight.
        Phase::Meshing if is_late || meshes.queued + meshes.in_flight < 16 => stage.go_to(Phase::Land),
        Phase::Land if pictures.take("jacksboro") => {
            **camera = viewpoints.from_above;
            overlay.visible = true;
            overlay.selected = rehearsing.region_at(dimension, centre);
            stage.go_to(Phase::Overlay);
        }
        Phase::Overlay if pictures.take("overlay") => stage.go_to(Phase::Rehearsing),
        Phase::Rehearsing if rehearsing.is_set(dimension, centre) => {
            overlay.selected = rehearsing.halted();
            overlay.tab = OverlayTab::Log;
            stage.go_to(Phase::Halted);
        }
        Phase::Halted if pictures.take("halted") => {
            rehearsing.end();
            stage.go_to(Phase::Leaving);
        }
        Phase::Leaving if elapsed > MOMENT => {
            exit.write(AppExit::Success);
        }
        _ => {}
    }
}

/// Returns `true` if all columns around the camera are published.
fn is_complete(blocks: &PublishedBlocks, dimension: DimensionId, centre: BlockPos, radius: u32) -> bool {
    let disc = ColumnArea::Disc { center: centre.column(), radius };
    let mut columns = disc.batches().flat_map(|(batch, _)| batch.columns()).filter(|column| disc.contains(*column));
    columns.all(|column| blocks.column(dimension, column).is_some())
}
