//! The systems that make and show the tiles in each frame.

use super::super::looks::{LookTable, LooksInUse};
use super::super::queue::ColumnKey;
use super::super::systems::{ChunkMesher, Eyes, show_finished};
use super::mesher::Geometry;
use super::tiles::{FarGround, FarTiles, TILE};
use super::{FarMaterial, FarMesh, FarMeshProgress, HiddenFarView, mesher};
use crate::chunk_meshes::{ChunkMeshProgress, RenderOrigin};
use bevy::prelude::*;
use bevy::tasks::{AsyncComputeTaskPool, Task, TaskPool};
use bevy_terrane::space::ColumnPos;
use bevy_terrane::view::{ColumnChange, ColumnChanged, FarColumnChanged, FarColumns, FarView, PublishedColumns};
use std::mem;

/// The number of tiles whose meshes are being made at a time, at most.
const TASKS: usize = 32;
/// The number of finished meshes that are shown in one frame; the last tile may exceed it.
const MESHES_A_FRAME: usize = 256;

#[derive(Resource, Default)]
pub(super) struct FarMesher {
    tiles: FarTiles,
    /// Tiles whose meshes are being made.
    running: Vec<(ColumnKey, Task<Vec<(FarMesh, Mesh)>>)>,
    /// The queue's `drawn_changes` when single columns were hidden last.
    drawn_changes: Option<u64>,
}

pub(super) fn hear(
    mut mesher: ResMut<FarMesher>,
    known: Res<FarColumns>,
    listeners: Query<Entity, (With<FarView>, Without<HiddenFarView>)>,
    published: Res<PublishedColumns>,
    mut seen: MessageReader<FarColumnChanged>,
    mut changed: MessageReader<ColumnChanged>,
    mut left: RemovedComponents<FarView>,
    mut revealed: RemovedComponents<HiddenFarView>,
    hidden: Query<(), Added<HiddenFarView>>,
) {
    let tiles = &mut mesher.tiles;
    tiles.next_frame();
    let mut columns: Vec<_> = seen.read().map(|message| (message.dimension, message.column)).collect();
    if left.read().count() + revealed.read().count() > 0 || !hidden.is_empty() {
        let seen = listeners.iter().flat_map(|listener| known.iter(listener));
        columns.extend(tiles.columns().chain(seen.map(|(dimension, column, _)| (dimension, column))));
    }
    for (dimension, column) in columns {
        let seen = listeners.iter().filter_map(|listener| known.column(listener, dimension, column));
        // The finest summary of all listeners.
        let summary = seen.min_by_key(|summary| summary.detail()).cloned();
        tiles.set((dimension, column), summary);
    }
    for ColumnChanged { dimension, column, change } in changed.read() {
        if let ColumnChange::Loaded | ColumnChange::Unloaded = change {
            // The published state counts, since newer changes may have come since.
            tiles.set_loaded((*dimension, *column), published.column(*dimension, *column).is_some());
        }
    }
}

pub(super) fn apply(
    mut mesher: ResMut<FarMesher>,
    mut meshes: ResMut<Assets<Mesh>>,
    chunks: Option<Res<ChunkMesher>>,
    material: Option<Res<FarMaterial>>,
    origin: Res<RenderOrigin>,
    mut commands: Commands,
) {
    let FarMesher { tiles, running, .. } = &mut *mesher;
    show_finished(running, MESHES_A_FRAME, |tile, made| {
        let shown = made.into_iter().map(|(far, mesh)| {
            let visibility = visibility(chunks.as_deref(), &far);
            let mut entity = commands.spawn((far, Mesh3d(meshes.add(mesh)), origin.place(far.corner), visibility));
            if let Some(material) = &material {
                entity.insert(MeshMaterial3d(material.0.clone()));
            }
            entity.id()
        });
        let shown: Vec<_> = shown.collect();
        let spent = shown.len();
        for replaced in tiles.finish(tile, shown) {
            commands.entity(replaced).try_despawn();
        }
        spent
    });
}

/// A column whose own chunks are drawn is hidden.
fn visibility(chunks: Option<&ChunkMesher>, far: &FarMesh) -> Visibility {
    let is_drawn = |column: ColumnPos| chunks.is_some_and(|chunks| chunks.queue.is_drawn((far.dimension, column)));
    if far.column.is_some_and(is_drawn) { Visibility::Hidden } else { Visibility::Inherited }
}

/// Hides the columns whose chunks are newly drawn, and shows those whose chunks are no longer drawn.
pub(super) fn hide_drawn(
    mut mesher: ResMut<FarMesher>,
    chunks: Option<Res<ChunkMesher>>,
    mut shown: Query<(&FarMesh, &mut Visibility)>,
) {
    let changes = chunks.as_ref().map(|chunks| chunks.queue.drawn_changes());
    if mem::replace(&mut mesher.drawn_changes, changes) != changes {
        for (far, mut shown) in shown.iter_mut().filter(|(far, _)| far.column.is_some()) {
            shown.set_if_neq(visibility(chunks.as_deref(), far));
        }
    }
}

pub(super) fn dispatch(
    mut mesher: ResMut<FarMesher>,
    eyes: Eyes,
    mut progress: ResMut<FarMeshProgress>,
    looks: Res<LooksInUse>,
    mut version: Local<u64>,
) {
    let FarMesher { tiles, running, .. } = &mut *mesher;
    let Some((looks, newest)) = looks.table() else { return };
    if mem::replace(&mut *version, newest) != newest {
        tiles.touch_all();
    }
    let pool = AsyncComputeTaskPool::get_or_init(TaskPool::default);
    let free = TASKS.saturating_sub(running.len());
    let due = if free > 0 { tiles.nearest(free, eyes.distance()) } else { Vec::new() };
    for tile in due {
        let Some((ground, is_split)) = tiles.begin(tile) else { continue };
        let looks = looks.clone();
        running.push((tile, pool.spawn(async move { make(tile, &ground, is_split, &looks) })));
    }
    let (queued, in_flight, meshes) = (tiles.queued(), running.len(), tiles.meshes());
    progress.set_if_neq(FarMeshProgress(ChunkMeshProgress { queued, in_flight, meshes }));
}

/// Makes one mesh for the tile, or one for each of its columns.
fn make((dimension, lowest): ColumnKey, ground: &FarGround, is_split: bool, looks: &LookTable) -> Vec<(FarMesh, Mesh)> {
    let Some(base) = ground.lowest() else { return Vec::new() };
    let corner = lowest.min_block(base);
    let columns = (0..TILE).flat_map(|x| (0..TILE).map(move |z| (x, z)));
    let mut meshes = Vec::new();
    let mut geometry = Geometry::default();
    for (number, (x, z)) in (1..).zip(columns) {
        mesher::add_column(&mut geometry, ground, (x, z), base, looks);
        let is_last = is_split || number == TILE * TILE;
        if is_last && !geometry.indices.is_empty() {
            let column = is_split.then(|| lowest.offset(x, z));
            let mesh = mem::take(&mut geometry).into_mesh();
            meshes.push((FarMesh { dimension, column, corner }, mesh));
        }
    }
    meshes
}

pub(super) fn move_meshes(origin: Res<RenderOrigin>, mut meshes: Query<(&FarMesh, &mut Transform)>) {
    for (mesh, mut transform) in &mut meshes {
        *transform = origin.place(mesh.corner);
    }
}
