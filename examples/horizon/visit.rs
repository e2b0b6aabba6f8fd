//! Without a window: waits until everything is loaded, and takes a picture. Every run ends with figures about the land.

use crate::arguments::Arguments;
use crate::start::fail;
use crate::tell::{Run, say};
use crate::watch::Watch;
use bevy::ecs::system::SystemParam;
use bevy_terrane::prelude::*;
use bevy_terrane::space::ColumnArea;
use bevy_terrane::view::{FarColumns, PublishedColumns};
use serde::Serialize;
use std::fmt::{self, Display, Formatter};
use std::time::Duration;
use terrane_dev::Pictures;
use terrane_render::{ChunkMeshProgress, FarMeshProgress};

/// The time limit for the land.
const PATIENCE: Duration = Duration::from_secs(600);
/// The time between two lines of progress.
const LINE_PERIOD: Duration = Duration::from_secs(1);

/// The visible land.
#[derive(SystemParam)]
pub struct Sight<'w, 's> {
    camera: Single<'w, 's, Entity, With<Camera3d>>,
    columns: Res<'w, PublishedColumns>,
    near: Res<'w, ChunkMeshProgress>,
    far_columns: Res<'w, FarColumns>,
    far: Res<'w, FarMeshProgress>,
    time: Res<'w, Time<Real>>,
}

/// Figures about the visible land.
#[derive(Serialize)]
struct Figures {
    columns_loaded: usize,
    meshes: usize,
    columns_seen: usize,
    far_meshes: usize,
    seconds: f64,
}

impl Sight<'_, '_> {
    fn figures(&self) -> Figures {
        Figures {
            columns_loaded: self.columns.len(),
            meshes: self.near.meshes,
            columns_seen: self.far_columns.len(*self.camera),
            far_meshes: self.far.meshes,
            seconds: self.time.elapsed_secs_f64(),
        }
    }
}

impl Display for Figures {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { columns_loaded, meshes, columns_seen, far_meshes, seconds } = self;
        write!(
            f,
            "{columns_loaded} columns loaded, {meshes} meshes; {columns_seen} seen from afar, {far_meshes} meshes, after \
             {seconds:.1} s"
        )
    }
}

/// Takes the picture and ends the app.
pub fn visit(
    mut watch: Local<Watch>,
    mut last_line: Local<Duration>,
    mut was_calm: Local<bool>,
    mut pictures: ResMut<Pictures>,
    sight: Sight,
    (arguments, run): (Res<Arguments>, Res<Run>),
    mut exit: MessageWriter<AppExit>,
) {
    let took = watch.elapsed();
    let is_over = run.is_over(took);
    if took > PATIENCE && run.seconds.is_none() {
        fail("the land takes too long", &mut exit);
    }
    let figures = sight.figures();
    let disc = |radius: u32| ColumnArea::Disc { center: ColumnPos::new(0, 0), radius }.columns();
    let has_all = figures.columns_loaded as u128 >= disc(arguments.radius)
        && figures.columns_seen as u128 >= disc(arguments.far_radius);
    let is_calm = watch.is_calm(has_all && sight.near.is_done() && sight.far.is_done());
    if is_calm != *was_calm || !is_calm && took > *last_line + LINE_PERIOD {
        say(&figures);
        (*last_line, *was_calm) = (took, is_calm);
    }
    if (is_calm || is_over) && pictures.take("horizon") {
        exit.write(AppExit::Success);
    }
}

pub fn print_at_end(sight: Sight, run: Res<Run>) {
    if !sight.columns.is_empty() {
        run.print(&sight.figures());
    }
}
