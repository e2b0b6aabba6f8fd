//! The systems that queue, make and show meshes in each frame.

use super::RenderMode;
use super::back_to_front::Blended;
use super::block_mesher::{MeshPart, Meshing};
use super::looks::LooksInUse;
use super::material::{self, ChunkExtension, ChunkMaterial, ChunkMaterials};
use super::mesher::{self, Meshed, Quads};
use super::neighborhood::Neighborhood;
use super::quad_memory::{QuadMemory, QuadRange};
use super::quads::PASSES;
use super::queue::{ColumnKey, MeshQueue};
use crate::chunk_meshes::{ChunkMesh, ChunkMeshProgress, RenderOrigin};
use bevy::ecs::system::SystemParam;
use bevy::light::NotShadowCaster;
use bevy::mesh::MeshTag;
use bevy::prelude::*;
use bevy::render::render_resource::BufferId;
use bevy::tasks::futures::check_ready;
use bevy::tasks::{AsyncComputeTaskPool, Task, TaskPool};
use bevy_terrane::simulation::{BlockTypes, Position, Viewer};
use bevy_terrane::space::{ChunkPos, ColumnPos, DimensionId, chunk_heights};
use bevy_terrane::view::{
    ChunkSyncClient, ColumnChange, ColumnChanged, Dimension, DimensionOpen, FollowedBodies, PublishedColumns,
};
use std::mem;
use std::ops::Range;

/// The number of columns that are checked in one frame, at most. Most of their chunks need no mesh, but finding that out
/// takes time.
const COLUMNS_A_FRAME: usize = 128;
/// The number of meshes that are made at a time, at most.
const TASKS: usize = 256;
/// The number of finished meshes that are shown in one frame, at most.
const MESHES_A_FRAME: usize = 128;

#[derive(Resource)]
pub(super) struct ChunkMesher {
    /// The names of the dimensions that get meshes; empty for all.
    dimensions: Vec<String>,
    pub queue: MeshQueue<Shown>,
    /// Meshes in the making, by column and height.
    running: Vec<((ColumnKey, i64), Task<Made>)>,
    /// The version of the looks that all meshes have.
    looks: u64,
}

/// The quads of a chunk, and what the game's meshers made of it.
type Made = Option<(Meshed, Vec<MeshPart>)>;

/// The visible parts of a chunk: one for each render mode, and the entities of the game's meshers.
#[derive(Default)]
pub(super) struct Shown([Option<Part>; PASSES], Vec<Entity>);

/// The chunk of an entity of the game's meshers.
#[derive(Component)]
pub(super) struct OtherPart(ChunkPos);

/// The entity that shows the quads of one mode.
struct Part {
    entity: Entity,
    #[expect(dead_code, reason = "held until it is dropped")]
    range: QuadRange,
}

impl ChunkMesher {
    pub fn new(dimensions: Vec<String>) -> Self {
        Self { dimensions, queue: default(), running: Vec::new(), looks: 0 }
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
    mut parts: Parts,
    time: Res<Time<Real>>,
) {
    let ChunkMesher { dimensions: wanted, queue, running, .. } = &mut *mesher;
    let is_wanted = |id: DimensionId| {
        let name = || with_id(&dimensions, id).map(Dimension::name);
        wanted.is_empty() || name().is_some_and(|name| wanted.iter().any(|it| it == name))
    };
    for &ColumnChanged { dimension, column: position, ref change } in changed.read() {
        // The published state counts, since newer changes may have come since.
        let Some(column) = published.column(dimension, position) else {
            queue.unload((dimension, position)).for_each(|shown| parts.remove(shown));
            continue;
        };
        match change {
            ColumnChange::Loaded if is_wanted(dimension) => {
                let waits_from = published.has_light().then(|| time.elapsed());
                queue.load(dimension, column, published.light(dimension, position), waits_from);
            }
            ColumnChange::Loaded | ColumnChange::Unloaded => {}
            ColumnChange::Heights(heights) => queue.resize(dimension, column, heights),
            ColumnChange::Chunk(y) if column.is_loaded(*y) => {
                // A chunk of only air may be left out, for example after a predicted block was taken back.
                let blocks = column.chunk(*y).cloned().unwrap_or_default();
                queue.change(dimension, position.chunk(*y), &blocks);
            }
            ColumnChange::Light(_) => queue.relight((dimension, position), published.light(dimension, position)),
            ColumnChange::Chunk(_) => {}
        }
    }
    queue.stop_waiting(time.elapsed());
    running.retain(|((key, _), _)| queue.contains(*key));
}

/// Shows and removes meshes.
#[derive(SystemParam)]
pub(super) struct Parts<'w, 's> {
    memory: ResMut<'w, QuadMemory>,
    meshes: ResMut<'w, Assets<Mesh>>,
    materials: Res<'w, ChunkMaterials>,
    origin: Res<'w, RenderOrigin>,
    commands: Commands<'w, 's>,
}

impl Parts<'_, '_> {
    fn remove(&mut self, Shown(parts, others): Shown) {
        others.into_iter().for_each(|entity| self.commands.entity(entity).try_despawn());
        parts.into_iter().flatten().for_each(|part| self.commands.entity(part.entity).try_despawn());
    }

    fn show(&mut self, mesh: ChunkMesh, before: Option<Part>, quads: Quads) -> Option<Part> {
        let range = if quads.quads.is_empty() { None } else { self.memory.store(&quads.quads) };
        let Some(range) = range else {
            before.into_iter().for_each(|part| self.commands.entity(part.entity).try_despawn());
            return None;
        };
        let look = (
            Mesh3d(self.memory.mesh(&range, &mut self.meshes)),
            MeshTag(range.first),
            quads.aabb(),
            MeshMaterial3d(self.materials.of(mesh.mode).clone()),
        );
        // The game may have despawned the entity.
        let known = before.map(|part| part.entity).filter(|entity| self.commands.get_entity(*entity).is_ok());
        let entity = match known {
            Some(entity) => self.commands.entity(entity).try_insert(look).id(),
            None => self.commands.spawn((mesh, look, self.origin.place(mesh.chunk.min_block()))).id(),
        };
        if let Some(order) = quads.order {
            let blended = Blended::new(quads.quads, order, range.first);
            self.commands.entity(entity).try_insert((NotShadowCaster, blended));
        }
        Some(Part { entity, range })
    }
}

pub(super) fn apply(mut mesher: ResMut<ChunkMesher>, mut parts: Parts) {
    let ChunkMesher { queue, running, .. } = &mut *mesher;
    parts.memory.next_frame();
    show_finished(running, MESHES_A_FRAME, |(key, y), meshed| {
        queue.finish(key, y, |before| {
            let Some((meshed, others)) = meshed else {
                before.into_iter().for_each(|shown| parts.remove(shown));
                return None;
            };
            let Shown(before, outdated) = before.unwrap_or_default();
            outdated.into_iter().for_each(|entity| parts.commands.entity(entity).try_despawn());
            let place = parts.origin.place(key.1.chunk(y).min_block());
            let others = others.into_iter().map(|other| {
                let mut entity = parts.commands.spawn((place, Visibility::default(), OtherPart(key.1.chunk(y))));
                entity.queue(|mut entity: EntityWorldMut| other.insert(&mut entity));
                entity.id()
            });
            let others = others.collect();
            let mut before = before.into_iter();
            let shown = RenderMode::ALL.into_iter().zip(meshed).map(|(mode, quads)| {
                let mesh = ChunkMesh { dimension: key.0, chunk: key.1.chunk(y), mode };
                parts.show(mesh, before.next().flatten(), quads)
            });
            let shown: Vec<_> = shown.collect();
            let mut shown = shown.into_iter();
            Some(Shown(std::array::from_fn(|_| shown.next().flatten()), others))
        });
        1
    });
}

/// The dimension that the first camera sees: that of the body that the camera follows as a child, or else that of its [`Viewer`] or
/// [`ChunkSyncClient`].
#[derive(SystemParam)]
pub struct SeenDimension<'w, 's> {
    cameras: Query<'w, 's, (Entity, Option<&'static Viewer>, Option<&'static ChunkSyncClient>), With<Camera3d>>,
    bodies: FollowedBodies<'w, 's>,
}

impl SeenDimension<'_, '_> {
    /// The dimension; `None` if no camera follows a known body or has a viewer.
    pub fn id(&self) -> Option<DimensionId> {
        self.cameras.iter().find_map(|camera| self.of(camera))
    }

    /// The dimension that a camera sees. A camera without a viewer sees what the others see.
    pub fn by(&self, camera: Entity) -> Option<DimensionId> {
        self.cameras.get(camera).ok().and_then(|camera| self.of(camera)).or_else(|| self.id())
    }

    fn of(&self, (camera, viewer, client): (Entity, Option<&Viewer>, Option<&ChunkSyncClient>)) -> Option<DimensionId> {
        let body = self.bodies.position(camera).map(|body| body.dimension);
        body.or_else(|| viewer.and_then(Viewer::dimension)).or_else(|| client.map(ChunkSyncClient::dimension))
    }
}

/// The daylight of a dimension, in steps that are hardly visible; 1 without a dimension.
pub(super) fn daylight(published: &PublishedColumns, dimension: Option<DimensionId>) -> f32 {
    const STEPS: f32 = 256.0;
    dimension.map_or(1.0, |dimension| (published.daylight(dimension) * STEPS).round() / STEPS)
}

/// Makes and updates the materials when the graphics card is there, and when quads or looks have moved to other buffers or the
/// daylight has changed.
pub(super) fn update_materials(
    (memory, looks): (Res<QuadMemory>, Res<LooksInUse>),
    handles: Res<ChunkMaterials>,
    materials: Option<ResMut<Assets<ChunkMaterial>>>,
    published: Res<PublishedColumns>,
    seen: SeenDimension,
    mut last: Local<Option<(BufferId, BufferId, f32)>>,
) {
    let (Some(quads), Some((faces, textures)), Some(mut materials)) = (memory.buffer(), looks.gpu(), materials) else {
        return;
    };
    let daylight = daylight(&published, seen.id());
    let now = Some((quads.id(), faces.id(), daylight));
    if mem::replace(&mut *last, now) == now {
        return;
    }
    for mode in RenderMode::ALL {
        let (quads, faces, textures) = (quads.clone(), faces.clone(), textures.clone());
        let extension = ChunkExtension { quads, faces, textures, daylight: Vec4::splat(daylight) };
        let id = handles.of(mode).id();
        let base = materials.get(id).map_or_else(|| material::base(mode), |material| material.base.clone());
        if let Err(error) = materials.insert(id, ChunkMaterial { base, extension }) {
            error!("the material of {mode:?} chunks was dropped: {error}");
        }
    }
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
    dimensions: Dimensions,
    eyes: Eyes,
    mut progress: ResMut<ChunkMeshProgress>,
    (looks, meshing, types): (Res<LooksInUse>, Res<Meshing>, Option<Res<BlockTypes>>),
    mut parts: Parts,
) {
    let ChunkMesher { queue, running, looks: meshed, .. } = &mut *mesher;
    let (Some((looks, version)), Some(types)) = (looks.table(), types) else { return };
    if mem::replace(meshed, version) != version {
        queue.change_looks();
    }
    let pool = AsyncComputeTaskPool::get_or_init(TaskPool::default);

    let columns = if running.len() < TASKS { queue.nearest(COLUMNS_A_FRAME, eyes.distance()) } else { Vec::new() };
    'columns: for key in columns {
        let heights = with_id(&dimensions, key.0).map_or(i64::MIN..i64::MAX, Dimension::heights);
        let heights = chunk_heights(&heights);
        for y in queue.waiting(key) {
            if running.len() >= TASKS {
                break 'columns;
            }
            let neighborhood = Neighborhood::with_faces(queue.blocks_around(key, y, &heights), looks);
            queue.begin(key, y);
            let Some(neighborhood) = neighborhood else {
                queue.finish(key, y, |before| {
                    before.into_iter().for_each(|shown| parts.remove(shown));
                    None
                });
                continue;
            };
            let neighborhood = neighborhood.with_light(queue.light_around(key, y));
            let (chunk, looks, types, meshing) = (key.1.chunk(y), looks.clone(), types.clone(), meshing.clone());
            let mesh = async move {
                let _span = debug_span!("mesh", %chunk).entered();
                mesher::mesh(chunk, &neighborhood, (&looks, &types), &meshing)
            };
            running.push(((key, y), pool.spawn(mesh)));
        }
    }
    progress.set_if_neq(ChunkMeshProgress { queued: queue.queued(), in_flight: running.len(), meshes: queue.meshes() });
}

/// The number of quads of these chunks, by [`RenderMode`], for tests and benches. They are made anew on this thread, as
/// `ChunkRenderPlugin` makes them, from the blocks that it has seen.
///
/// # Panics
/// If the dimension is not open.
pub fn chunk_quads(
    world: &World,
    dimension: DimensionId,
    chunks: impl IntoIterator<Item = ChunkPos>,
) -> Vec<[usize; 3]> {
    let mut dimensions = world.try_query::<(&Dimension, &DimensionOpen)>();
    let opened = dimensions.as_mut().and_then(|all| all.iter(world).find(|(_, open)| open.id == dimension));
    let (of, _) = opened.unwrap_or_else(|| panic!("{dimension} is not open"));
    let heights = chunk_heights(&of.heights());
    chunks.into_iter().map(|chunk| quads_of(world, (dimension, &heights), chunk).unwrap_or_default()).collect()
}

fn quads_of(
    world: &World,
    (dimension, heights): (DimensionId, &Range<i64>),
    chunk: ChunkPos,
) -> Option<[usize; PASSES]> {
    let mesher = world.resource::<ChunkMesher>();
    let (looks, _) = world.resource::<LooksInUse>().table()?;
    let key = (dimension, chunk.column());
    let neighborhood = Neighborhood::with_faces(mesher.queue.blocks_around(key, chunk.y, heights), looks)?;
    let neighborhood = neighborhood.with_light(mesher.queue.light_around(key, chunk.y));
    let types = world.resource::<BlockTypes>();
    let (quads, _) = mesher::mesh(chunk, &neighborhood, (looks, types), world.resource::<Meshing>())?;
    Some(quads.map(|of_mode| of_mode.quads.len()))
}

pub(super) fn move_meshes(
    origin: Res<RenderOrigin>,
    mut meshes: Query<(AnyOf<(&ChunkMesh, &OtherPart)>, &mut Transform)>,
) {
    for ((mesh, other), mut transform) in &mut meshes {
        if let Some(chunk) = mesh.map(|mesh| mesh.chunk).or(other.map(|other| other.0)) {
            *transform = origin.place(chunk.min_block());
        }
    }
}
