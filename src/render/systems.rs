//! The systems that queue, make and show meshes in each frame.

use super::looks::BlockLooks;
use super::queue::{ColumnKey, MeshQueue};
use super::{ChunkMaterial, ChunkMesh, ChunkMeshProgress, RenderOrigin, mesher};
use crate::simulation::{BlockTypes, Position, Viewer};
use crate::space::{ColumnPos, DimensionId, chunk_heights};
use crate::view::{ColumnChange, ColumnChanged, Dimension, DimensionOpen, PublishedColumns};
use bevy::ecs::system::SystemParam;
use bevy::prelude::*;
use bevy::tasks::futures::check_ready;
use bevy::tasks::{AsyncComputeTaskPool, Task, TaskPool};
use std::sync::Arc;

/// The number of columns that are checked in one frame, at most. Most of their chunks need no mesh, but finding that out
/// takes time.
const COLUMNS_A_FRAME: usize = 128;
/// The number of meshes that are made at a time, at most.
const TASKS: usize = 256;
/// The number of finished meshes that are shown in one frame, at most.
const MESHES_A_FRAME: usize = 128;

#[derive(Resource)]
pub(super) struct ChunkMesher {
    /// The names of the dimensions that get meshes; `None` for all.
    dimensions: Option<Vec<String>>,
    pub queue: MeshQueue,
    /// Meshes in the making, by column and height.
    running: Vec<((ColumnKey, i64), Task<Option<Mesh>>)>,
}

impl ChunkMesher {
    pub fn new(dimensions: Option<Vec<String>>) -> Self {
        Self { dimensions, queue: default(), running: Vec::new() }
    }
}

type Dimensions<'w, 's> = Query<'w, 's, (&'static Dimension, &'static DimensionOpen)>;

fn with_id<'a>(dimensions: &'a Dimensions, id: DimensionId) -> Option<&'a Dimension> {
    dimensions.iter().find(|(_, open)| open.id == id).map(|(dimension, _)| dimension)
}

/// The points from which the main world is seen.
#[derive(SystemParam)]
pub(super) struct Eyes<'w, 's> {
    eyes: Query<
        'w,
        's,
        (Option<&'static Position>, Option<&'static GlobalTransform>),
        (Or<(With<Camera3d>, With<Viewer>)>, Or<(With<Position>, With<GlobalTransform>)>),
    >,
    origin: Res<'w, RenderOrigin>,
}

impl Eyes<'_, '_> {
    /// Returns a function for the squared distance of a column from the nearest of them.
    pub fn distance(&self) -> impl Fn(ColumnPos) -> u128 + use<> {
        let column = |(position, transform): (Option<&Position>, Option<&GlobalTransform>)| match (position, transform)
        {
            (Some(position), _) => position.column(),
            (None, transform) => {
                let mut position = Position { dimension: default(), block: self.origin.0, offset: Vec3::ZERO };
                position.translate(transform.map_or(Vec3::ZERO, GlobalTransform::translation));
                position.column()
            }
        };
        let eyes: Vec<_> = self.eyes.iter().map(column).collect();
        move |column| eyes.iter().map(|eye| eye.distance_squared(column)).min().unwrap_or(0)
    }
}

pub(super) fn hear(
    mut mesher: ResMut<ChunkMesher>,
    published: Res<PublishedColumns>,
    dimensions: Dimensions,
    mut changed: MessageReader<ColumnChanged>,
    mut commands: Commands,
) {
    let ChunkMesher { dimensions: wanted, queue, running } = &mut *mesher;
    let is_wanted = |id: DimensionId| {
        let name = || with_id(&dimensions, id).map(Dimension::name);
        wanted.as_ref().is_none_or(|wanted| name().is_some_and(|name| wanted.iter().any(|it| it == name)))
    };
    for &ColumnChanged { dimension, column: position, ref change } in changed.read() {
        // The published state counts, since newer changes may have come since.
        let Some(column) = published.column(dimension, position) else {
            queue.unload((dimension, position)).for_each(|entity| commands.entity(entity).try_despawn());
            continue;
        };
        match change {
            ColumnChange::Loaded if is_wanted(dimension) => queue.load(dimension, column),
            ColumnChange::Loaded | ColumnChange::Unloaded => {}
            ColumnChange::Heights(heights) => queue.resize(dimension, column, heights),
            ColumnChange::Chunk(y) => {
                let blocks = column.chunk(*y);
                blocks.into_iter().for_each(|blocks| queue.change(dimension, position.chunk(*y), blocks));
            }
        }
    }
    running.retain(|((key, _), _)| queue.contains(*key));
}

pub(super) fn apply(
    mut mesher: ResMut<ChunkMesher>,
    mut meshes: ResMut<Assets<Mesh>>,
    material: Option<Res<ChunkMaterial>>,
    origin: Res<RenderOrigin>,
    mut commands: Commands,
) {
    let ChunkMesher { queue, running, .. } = &mut *mesher;
    show_finished(running, MESHES_A_FRAME, |(key, y), mesh| {
        queue.finish(key, y, |before| {
            // The game may have despawned the entity.
            let before = before.filter(|entity| commands.get_entity(*entity).is_ok());
            let Some(mesh) = mesh else {
                before.into_iter().for_each(|entity| commands.entity(entity).try_despawn());
                return None;
            };
            let mesh = Mesh3d(meshes.add(mesh));
            if let Some(entity) = before {
                commands.entity(entity).try_insert(mesh);
                return before;
            }
            let chunk = ChunkMesh { dimension: key.0, chunk: key.1.chunk(y) };
            let mut entity = commands.spawn((chunk, mesh, origin.place(chunk.chunk.min_block())));
            if let Some(material) = &material {
                entity.insert(MeshMaterial3d(material.0.clone()));
            }
            Some(entity.id())
        });
        1
    });
}

/// Removes finished tasks until `budget` is used up by the costs that `show` returns.
pub(super) fn show_finished<Key: Copy, Made>(
    running: &mut Vec<(Key, Task<Made>)>,
    budget: usize,
    mut show: impl FnMut(Key, Made) -> usize,
) {
    let mut spent = 0;
    running.retain_mut(|(key, task)| match (spent < budget).then(|| check_ready(task)).flatten() {
        Some(made) => {
            spent += show(*key, made);
            false
        }
        None => true,
    });
}

pub(super) fn dispatch(
    mut mesher: ResMut<ChunkMesher>,
    blocks: Option<Res<BlockTypes>>,
    dimensions: Dimensions,
    eyes: Eyes,
    mut progress: ResMut<ChunkMeshProgress>,
    mut looks: Local<Option<Arc<BlockLooks>>>,
    mut commands: Commands,
) {
    let ChunkMesher { queue, running, .. } = &mut *mesher;
    let Some(blocks) = blocks else { return };
    let looks = looks.get_or_insert_with(|| Arc::new(BlockLooks::new(&blocks)));
    let pool = AsyncComputeTaskPool::get_or_init(TaskPool::default);

    let columns = if running.len() < TASKS { queue.nearest(COLUMNS_A_FRAME, eyes.distance()) } else { Vec::new() };
    'columns: for key in columns {
        let heights = with_id(&dimensions, key.0).map_or(i64::MIN..i64::MAX, Dimension::heights);
        let heights = chunk_heights(&heights);
        for y in queue.waiting(key) {
            if running.len() >= TASKS {
                break 'columns;
            }
            let neighborhood = queue.neighborhood(key, y, &heights);
            queue.begin(key, y);
            if neighborhood.shows_nothing(looks) {
                queue.finish(key, y, |before| {
                    before.into_iter().for_each(|entity| commands.entity(entity).try_despawn());
                    None
                });
                continue;
            }
            let looks = looks.clone();
            let task = pool.spawn(async move {
                let geometry = mesher::geometry(&neighborhood, &looks);
                geometry.map(mesher::Geometry::into_mesh)
            });
            running.push(((key, y), task));
        }
    }
    progress.set_if_neq(ChunkMeshProgress { queued: queue.queued(), in_flight: running.len(), meshes: queue.meshes() });
}

pub(super) fn move_meshes(origin: Res<RenderOrigin>, mut meshes: Query<(&ChunkMesh, &mut Transform)>) {
    for (mesh, mut transform) in &mut meshes {
        *transform = origin.place(mesh.chunk.min_block());
    }
}
