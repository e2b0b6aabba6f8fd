//! Without a window: waits until everything is there, and takes a picture.

use crate::arguments::Arguments;
use crate::picture::Pictures;
use bevy_terrane::prelude::*;
use bevy_terrane::render::{FarMeshProgress, MeshProgress};
use std::time::{Duration, Instant};

/// The picture's name.
pub const PICTURE: &str = "horizon";
/// How long the land and a picture may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// Frames that nothing may change before the picture is taken.
const CALM: u32 = 20;

/// Takes the picture and ends the app.
pub struct VisitPlugin;

impl Plugin for VisitPlugin {
    fn build(&self, app: &mut App) {
        app.insert_resource(Visit { since: Instant::now(), calm: 0, told: Instant::now() }).add_systems(Update, go_on);
    }
}

#[derive(Resource)]
struct Visit {
    since: Instant,
    calm: u32,
    told: Instant,
}

fn go_on(
    mut visit: ResMut<Visit>,
    mut pictures: ResMut<Pictures>,
    camera: Single<Entity, With<Camera3d>>,
    (near, far): (Res<MeshProgress>, Res<FarMeshProgress>),
    (columns, known): (Res<PublishedColumns>, Res<FarColumns>),
    arguments: Res<Arguments>,
    mut exit: MessageWriter<AppExit>,
) {
    if visit.since.elapsed() > PATIENCE {
        eprintln!("error: it takes too long");
        exit.write(AppExit::error());
    }
    let (loaded, seen) = (columns.len(), known.len(*camera));
    let has_all = loaded >= disc(arguments.radius) && seen >= disc(arguments.far_radius);
    visit.calm = if has_all && near.is_done() && far.is_done() { visit.calm + 1 } else { 0 };
    if visit.calm == CALM || visit.calm == 0 && visit.told.elapsed() > Duration::from_secs(1) {
        eprintln!(
            "{loaded} columns loaded, {} meshes; {seen} seen from afar, {} meshes, after {:.1} s",
            near.meshes,
            far.meshes,
            visit.since.elapsed().as_secs_f32()
        );
        visit.told = Instant::now();
    }
    if visit.calm >= CALM && pictures.take(PICTURE) {
        exit.write(AppExit::Success);
    }
}

fn disc(radius: u32) -> usize {
    let radius = i64::from(radius);
    let columns = (-radius..=radius).flat_map(|x| (-radius..=radius).map(move |z| (x, z)));
    columns.filter(|(x, z)| x * x + z * z <= radius * radius).count()
}
