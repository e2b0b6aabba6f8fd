//! Each frame: which tiles are made, and shown.

use super::super::looks::BlockLooks;
use super::super::mesher::Geometry;
use super::super::queue::ColumnKey;
use super::super::systems::{ChunkMesher, Eyes};
use super::super::{ChunkMaterial, ChunkMeshProgress, RenderOrigin};
use super::tiles::{FarTiles, Part, TileKey, TileWork};
use super::{FarMesh, FarMeshProgress, HiddenFarView, mesher};
use crate::chunk::ColumnSummary;
use crate::simulation::BlockTypes;
use crate::space::{BlockPos, ColumnPos, DimensionId};
use crate::view::{
    ColumnLoaded, ColumnUnloaded, FarColumnGone, FarColumnReceived, FarColumns, FarView, PublishedColumns,
};
use bevy::ecs::system::SystemParam;
use bevy::prelude::*;
use bevy::tasks::futures::check_ready;
use bevy::tasks::{AsyncComputeTaskPool, Task, TaskPool};
use std::mem;
use std::sync::Arc;

/// Tiles whose meshes are in the making at a time, at most.
const TASKS: usize = 32;
/// Finished meshes that are shown in one frame at most, up to those of one tile more.
const MESHES_A_FRAME: usize = 256;

#[derive(Resource, Default)]
pub(super) struct FarMesher {
    tiles: FarTiles,
    running: Vec<Running>,
    looks: Option<Arc<BlockLooks>>,
    /// What was drawn of chunks when single columns were hidden last.
    drawn_changes: Option<u64>,
}

/// The meshes of a tile in the making.
struct Running {
    tile: TileKey,
    task: Task<Made>,
}

/// The height that the meshes count from, and what there is to see.
struct Made {
    base: i64,
    meshes: Vec<(Option<ColumnPos>, Mesh)>,
}

/// What is known by those listeners whose far view is drawn.
#[derive(SystemParam)]
pub(super) struct Seen<'w, 's> {
    columns: Res<'w, FarColumns>,
    listeners: Query<'w, 's, Entity, (With<FarView>, Without<HiddenFarView>)>,
}

impl Seen<'_, '_> {
    /// The finest that is known of a column.
    fn summary(&self, (dimension, column): ColumnKey) -> Option<Arc<ColumnSummary>> {
        let known = self.listeners.iter().filter_map(|listener| self.columns.column(listener, dimension, column));
        known.min_by_key(|summary| summary.detail()).cloned()
    }

    fn all(&self) -> impl Iterator<Item = ColumnKey> {
        let known = self.listeners.iter().flat_map(|listener| self.columns.iter(listener));
        known.map(|(dimension, column, _)| (dimension, column))
    }
}

pub(super) fn hear(
    mut mesher: ResMut<FarMesher>,
    seen: Seen,
    published: Res<PublishedColumns>,
    mut received: MessageReader<FarColumnReceived>,
    mut gone: MessageReader<FarColumnGone>,
    mut loaded: MessageReader<ColumnLoaded>,
    mut unloaded: MessageReader<ColumnUnloaded>,
    mut left: RemovedComponents<FarView>,
    mut revealed: RemovedComponents<HiddenFarView>,
    hidden: Query<(), Added<HiddenFarView>>,
) {
    let tiles = &mut mesher.tiles;
    tiles.next_frame();
    let received = received.read().map(|message| (message.dimension, message.column));
    let gone = gone.read().map(|message| (message.dimension, message.column));
    let mut columns: Vec<_> = received.chain(gone).collect();
    if left.read().count() + revealed.read().count() > 0 || !hidden.is_empty() {
        columns.extend(tiles.columns().chain(seen.all()));
    }
    columns.into_iter().for_each(|key| tiles.set(key, seen.summary(key)));
    let loaded = loaded.read().map(|message| (message.dimension, message.column));
    let unloaded = unloaded.read().map(|message| (message.dimension, message.column));
    // What is published now counts, whatever the order of the messages.
    for key in loaded.chain(unloaded) {
        tiles.set_loaded(key, published.column(key.0, key.1).is_some());
    }
}

pub(super) fn apply(
    mut mesher: ResMut<FarMesher>,
    mut meshes: ResMut<Assets<Mesh>>,
    chunks: Option<Res<ChunkMesher>>,
    material: Option<Res<ChunkMaterial>>,
    origin: Res<RenderOrigin>,
    mut commands: Commands,
) {
    let FarMesher { tiles, running, .. } = &mut *mesher;
    let mut budget = MESHES_A_FRAME;
    for mut run in mem::take(running) {
        let finished = if budget > 0 { check_ready(&mut run.task) } else { None };
        let Some(Made { base, meshes: made }) = finished else {
            running.push(run);
            continue;
        };
        budget = budget.saturating_sub(made.len());
        let parts = made.into_iter().map(|(column, mesh)| {
            let far = FarMesh { dimension: run.tile.dimension, column, corner: corner(run.tile, base) };
            let shown = visibility(chunks.as_deref(), run.tile.dimension, column);
            let place = origin.place_block(far.dimension, far.corner);
            let mut entity = commands.spawn((far, Mesh3d(meshes.add(mesh)), place, shown));
            if let Some(material) = &material {
                entity.insert(MeshMaterial3d(material.0.clone()));
            }
            Part { column, entity: entity.id() }
        });
        let parts = parts.collect();
        for part in tiles.finish(run.tile, parts) {
            commands.entity(part.entity).try_despawn();
        }
    }
}

/// The block that the positions of a tile's meshes count from.
fn corner(tile: TileKey, base: i64) -> BlockPos {
    tile.column(0, 0).min_block(base)
}

/// A column whose own chunks are drawn is not seen from afar.
fn visibility(chunks: Option<&ChunkMesher>, dimension: DimensionId, column: Option<ColumnPos>) -> Visibility {
    let is_drawn = |column: ColumnPos| chunks.is_some_and(|chunks| chunks.queue.is_drawn((dimension, column)));
    if column.is_some_and(is_drawn) { Visibility::Hidden } else { Visibility::Inherited }
}

/// Hides the columns whose chunks are drawn since this frame, and shows those whose chunks are not any more.
pub(super) fn hide_drawn(
    mut mesher: ResMut<FarMesher>,
    chunks: Option<Res<ChunkMesher>>,
    mut shown: Query<&mut Visibility, With<FarMesh>>,
) {
    let changes = chunks.as_ref().map(|chunks| chunks.queue.drawn_changes());
    if mem::replace(&mut mesher.drawn_changes, changes) == changes {
        return;
    }
    for ((dimension, column), entity) in mesher.tiles.parts() {
        if let Ok(mut part) = shown.get_mut(entity) {
            part.set_if_neq(visibility(chunks.as_deref(), dimension, Some(column)));
        }
    }
}

pub(super) fn dispatch(
    mut mesher: ResMut<FarMesher>,
    blocks: Option<Res<BlockTypes>>,
    eyes: Eyes,
    mut progress: ResMut<FarMeshProgress>,
) {
    let FarMesher { tiles, running, looks, .. } = &mut *mesher;
    let Some(blocks) = blocks else { return };
    let looks = looks.get_or_insert_with(|| Arc::new(BlockLooks::new(&blocks)));
    let eyes = eyes.columns();
    let distance = |tile: TileKey| eyes.iter().map(|eye| tile.distance_squared(*eye)).min().unwrap_or(0);
    let pool = AsyncComputeTaskPool::get_or_init(TaskPool::default);
    let free = TASKS.saturating_sub(running.len());
    let due = if free > 0 { tiles.nearest(free, distance) } else { Vec::new() };
    for tile in due {
        let Some(work) = tiles.begin(tile) else { continue };
        let looks = looks.clone();
        running.push(Running { tile, task: pool.spawn(async move { make(tile, &work, &looks) }) });
    }
    let (queued, in_flight, meshes) = (tiles.queued(), running.len(), tiles.meshes());
    progress.set_if_neq(FarMeshProgress(ChunkMeshProgress { queued, in_flight, meshes }));
}

fn make(tile: TileKey, TileWork { ground, is_split }: &TileWork, looks: &BlockLooks) -> Made {
    let Some(base) = ground.lowest() else { return Made { base: 0, meshes: Vec::new() } };
    let mut meshes = Vec::new();
    let mut push = |column: Option<ColumnPos>, geometry: Geometry| {
        if !geometry.indices.is_empty() {
            meshes.push((column, geometry.into_mesh()));
        }
    };
    if !is_split {
        let mut geometry = Geometry::default();
        mesher::add_tile(&mut geometry, ground, base, looks);
        push(None, geometry);
        return Made { base, meshes };
    }
    for column in tile.columns() {
        let lowest = tile.column(0, 0);
        let mut geometry = Geometry::default();
        mesher::add_column(&mut geometry, ground, (column.x - lowest.x, column.z - lowest.z), base, looks);
        push(Some(column), geometry);
    }
    Made { base, meshes }
}

pub(super) fn move_meshes(origin: Res<RenderOrigin>, mut meshes: Query<(&FarMesh, &mut Transform)>) {
    for (mesh, mut transform) in &mut meshes {
        *transform = origin.place_block(mesh.dimension, mesh.corner);
    }
}
