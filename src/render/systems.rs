//! Each frame: what changed is queued, meshes are begun, and shown.

use super::looks::BlockLooks;
use super::queue::{ColumnKey, MeshQueue};
use super::{ChunkMaterial, ChunkMesh, ChunkMeshProgress, RenderOrigin, mesher};
use crate::simulation::{BlockTypes, Position, Viewer};
use crate::space::{ColumnPos, DimensionId, chunk_heights};
use crate::view::{
    ColumnChanged, ColumnHeightsChanged, ColumnLoaded, ColumnUnloaded, Dimension, DimensionOpen, PublishedColumns,
};
use bevy::ecs::system::SystemParam;
use bevy::prelude::*;
use bevy::tasks::futures::check_ready;
use bevy::tasks::{AsyncComputeTaskPool, Task, TaskPool};
use std::mem;
use std::ops::Range;
use std::sync::Arc;

/// Columns that are looked through in one frame at most: most of their chunks need no mesh, but that has to be found
/// out.
const COLUMNS_A_FRAME: usize = 128;
/// Meshes in the making at a time, at most.
const TASKS: usize = 256;
/// Finished meshes that are shown in one frame at most.
const MESHES_A_FRAME: usize = 128;

#[derive(Resource)]
pub(super) struct ChunkMesher {
    /// The names of those that get meshes; `None` for all.
    dimensions: Option<Vec<String>>,
    pub queue: MeshQueue,
    running: Vec<Running>,
    looks: Option<Arc<BlockLooks>>,
}

/// A mesh in the making.
struct Running {
    key: ColumnKey,
    y: i64,
    load: u64,
    task: Task<Option<Mesh>>,
}

impl ChunkMesher {
    pub fn new(dimensions: Option<Vec<String>>) -> Self {
        Self { dimensions, queue: default(), running: Vec::new(), looks: None }
    }
}

/// The open dimensions.
#[derive(SystemParam)]
pub(super) struct Dimensions<'w, 's> {
    open: Query<'w, 's, (&'static Dimension, &'static DimensionOpen)>,
}

impl Dimensions<'_, '_> {
    fn with_id(&self, id: DimensionId) -> Option<&Dimension> {
        self.open.iter().find(|(_, open)| open.id == id).map(|(dimension, _)| dimension)
    }

    fn is_wanted(&self, id: DimensionId, names: Option<&[String]>) -> bool {
        let Some(names) = names else { return true };
        self.with_id(id).is_some_and(|dimension| names.iter().any(|name| name == dimension.name()))
    }

    /// The chunk heights.
    fn heights(&self, id: DimensionId) -> Range<i64> {
        chunk_heights(&self.with_id(id).map_or(i64::MIN..i64::MAX, Dimension::heights))
    }
}

/// From where the main world is looked at.
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
    pub fn columns(&self) -> Vec<ColumnPos> {
        let column = |(position, transform): (Option<&Position>, Option<&GlobalTransform>)| match (position, transform)
        {
            (Some(position), _) => position.column(),
            (None, transform) => {
                let mut position = Position { dimension: default(), block: self.origin.0, offset: Vec3::ZERO };
                position.translate(transform.map_or(Vec3::ZERO, GlobalTransform::translation));
                position.column()
            }
        };
        self.eyes.iter().map(column).collect()
    }
}

pub(super) fn hear(
    mut mesher: ResMut<ChunkMesher>,
    published: Res<PublishedColumns>,
    dimensions: Dimensions,
    mut loaded: MessageReader<ColumnLoaded>,
    mut changed: MessageReader<ColumnChanged>,
    mut resized: MessageReader<ColumnHeightsChanged>,
    mut unloaded: MessageReader<ColumnUnloaded>,
    mut commands: Commands,
) {
    let ChunkMesher { dimensions: wanted, queue, .. } = &mut *mesher;
    let came = loaded.read().map(|message| (message.dimension, message.column));
    let went = unloaded.read().map(|message| (message.dimension, message.column));
    // What is published now counts, whatever the order of the messages.
    for (dimension, position) in came.chain(went) {
        match published.column(dimension, position) {
            Some(column) if dimensions.is_wanted(dimension, wanted.as_deref()) => queue.load(dimension, column),
            Some(_) => {}
            None => queue.unload((dimension, position)).for_each(|entity| commands.entity(entity).try_despawn()),
        }
    }
    for ColumnHeightsChanged { dimension, column, heights } in resized.read() {
        if let Some(column) = published.column(*dimension, *column) {
            queue.resize(*dimension, column, heights);
        }
    }
    for &ColumnChanged { dimension, chunk } in changed.read() {
        let column = published.column(dimension, chunk.column());
        if let Some(blocks) = column.and_then(|column| column.chunk(chunk.y)) {
            queue.change(dimension, chunk, blocks);
        }
    }
}

pub(super) fn apply(
    mut mesher: ResMut<ChunkMesher>,
    mut meshes: ResMut<Assets<Mesh>>,
    material: Option<Res<ChunkMaterial>>,
    origin: Res<RenderOrigin>,
    mut commands: Commands,
) {
    let ChunkMesher { queue, running, .. } = &mut *mesher;
    let mut budget = MESHES_A_FRAME;
    for mut run in mem::take(running) {
        let finished = if budget > 0 { check_ready(&mut run.task) } else { None };
        let Some(mesh) = finished else {
            running.push(run);
            continue;
        };
        let Running { key, y, load, .. } = run;
        let Some(entities) = queue.finish(key, y, load) else { continue };
        budget -= 1;
        let Some(mesh) = mesh else {
            if let Some(entity) = entities.remove(&y) {
                commands.entity(entity).try_despawn();
            }
            continue;
        };
        let mesh = Mesh3d(meshes.add(mesh));
        let known = entities.get(&y).copied();
        // The game may have despawned it.
        if let Some(mut entity) = known.and_then(|entity| commands.get_entity(entity).ok()) {
            entity.try_insert(mesh);
            continue;
        }
        let chunk = ChunkMesh { dimension: key.0, chunk: key.1.chunk(y) };
        let mut entity = commands.spawn((chunk, mesh, origin.place(chunk)));
        if let Some(material) = &material {
            entity.insert(MeshMaterial3d(material.0.clone()));
        }
        entities.insert(y, entity.id());
    }
}

pub(super) fn dispatch(
    mut mesher: ResMut<ChunkMesher>,
    blocks: Option<Res<BlockTypes>>,
    dimensions: Dimensions,
    eyes: Eyes,
    mut progress: ResMut<ChunkMeshProgress>,
    mut commands: Commands,
) {
    let ChunkMesher { queue, running, looks, .. } = &mut *mesher;
    let Some(blocks) = blocks else { return };
    let looks = looks.get_or_insert_with(|| Arc::new(BlockLooks::new(&blocks)));
    let eyes = eyes.columns();
    let distance = |column: ColumnPos| eyes.iter().map(|eye| eye.distance_squared(column)).min().unwrap_or(0);
    let pool = AsyncComputeTaskPool::get_or_init(TaskPool::default);

    let columns = if running.len() < TASKS { queue.nearest(COLUMNS_A_FRAME, distance) } else { Vec::new() };
    'columns: for key in columns {
        let heights = dimensions.heights(key.0);
        for y in queue.waiting(key) {
            if running.len() >= TASKS {
                break 'columns;
            }
            let neighborhood = queue.neighborhood(key, y, &heights);
            let load = queue.begin(key, y);
            if neighborhood.shows_nothing(looks) {
                let entity = queue.finish(key, y, load).and_then(|entities| entities.remove(&y));
                if let Some(entity) = entity {
                    commands.entity(entity).try_despawn();
                }
                continue;
            }
            let looks = looks.clone();
            let task = pool.spawn(async move {
                let geometry = mesher::geometry(&neighborhood, &looks);
                geometry.map(mesher::Geometry::into_mesh)
            });
            running.push(Running { key, y, load, task });
        }
    }
    progress.set_if_neq(ChunkMeshProgress { queued: queue.queued(), in_flight: running.len(), meshes: queue.meshes() });
}

pub(super) fn move_meshes(origin: Res<RenderOrigin>, mut meshes: Query<(&ChunkMesh, &mut Transform)>) {
    for (mesh, mut transform) in &mut meshes {
        *transform = origin.place(*mesh);
    }
}
