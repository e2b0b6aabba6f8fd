//! Without a window: waits until everything is there, and takes a picture.

use crate::arguments::Arguments;
use crate::picture::Pictures;
use crate::start::fail;
use crate::watch::Watch;
use bevy_terrane::prelude::*;
use bevy_terrane::render::{ChunkMeshProgress, FarMeshProgress};
use std::time::Duration;

/// How long the land may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// The time between two lines that say how far it is.
const LINE_PERIOD: Duration = Duration::from_secs(1);

/// Takes the picture and ends the app.
pub fn visit(
    mut watch: Local<Watch>,
    mut last_line: Local<Duration>,
    mut was_calm: Local<bool>,
    mut pictures: ResMut<Pictures>,
    camera: Single<Entity, With<Camera3d>>,
    (near, far): (Res<ChunkMeshProgress>, Res<FarMeshProgress>),
    (columns, known): (Res<PublishedColumns>, Res<FarColumns>),
    arguments: Res<Arguments>,
    mut exit: MessageWriter<AppExit>,
) {
    let took = watch.elapsed();
    if took > PATIENCE {
        fail("the land takes too long", &mut exit);
    }
    let disc = |radius: u32| ColumnArea::Disc { center: ColumnPos::new(0, 0), radius }.columns();
    let (loaded, seen) = (columns.len(), known.len(*camera));
    let has_all = loaded as u128 >= disc(arguments.radius) && seen as u128 >= disc(arguments.far_radius);
    let is_calm = watch.is_calm(has_all && near.is_done() && far.is_done());
    if is_calm != *was_calm || !is_calm && took > *last_line + LINE_PERIOD {
        eprintln!(
            "{loaded} columns loaded, {} meshes; {seen} seen from afar, {} meshes, after {:.1} s",
            near.meshes,
            far.meshes,
            took.as_secs_f32()
        );
        (*last_line, *was_calm) = (took, is_calm);
    }
    if is_calm && pictures.take("horizon") {
        exit.write(AppExit::Success);
    }
}
