use super::looks::BlockLooks;
use super::queue::{ColumnKey, MeshQueue};
use super::{ChunkMaterial, ChunkMesh, ChunkRenderPlugin, MeshProgress, RenderOrigin, mesher};
use crate::simulation::{BlockTypes, Position, Viewer};
use crate::space::{ColumnPos, DimensionId};
use crate::view::{ColumnChanged, ColumnLoaded, ColumnUnloaded, Dimension, DimensionOpen, PublishedColumns};
use bevy::ecs::system::SystemParam;
use bevy::prelude::*;
use bevy::tasks::futures::check_ready;
use bevy::tasks::{AsyncComputeTaskPool, Task, TaskPool};
use std::mem;
use std::sync::Arc;

/// Columns that are looked through in one frame at most: most of their chunks need no mesh, but that has to be found
/// out.
const COLUMNS_A_FRAME: usize = 128;

#[derive(Resource)]
pub(super) struct ChunkMesher {
    settings: ChunkRenderPlugin,
    queue: MeshQueue,
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
    pub fn new(settings: ChunkRenderPlugin) -> Self {
        Self { settings, queue: default(), running: Vec::new(), looks: None }
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

    fn is_wanted(&self, id: DimensionId, settings: &ChunkRenderPlugin) -> bool {
        let Some(names) = &settings.dimensions else { return true };
        self.with_id(id).is_some_and(|dimension| names.iter().any(|name| name == dimension.name()))
    }

    /// The height of the lowest chunks.
    fn lowest(&self, id: DimensionId) -> i64 {
        self.with_id(id).map_or(i64::MIN, |dimension| dimension.heights().start >> 4)
    }
}

pub(super) fn hear(
    mut mesher: ResMut<ChunkMesher>,
    published: Res<PublishedColumns>,
    dimensions: Dimensions,
    mut loaded: MessageReader<ColumnLoaded>,
    mut changed: MessageReader<ColumnChanged>,
    mut unloaded: MessageReader<ColumnUnloaded>,
    mut commands: Commands,
) {
    let ChunkMesher { settings, queue, .. } = &mut *mesher;
    let came = loaded.read().map(|message| (message.dimension, message.column));
    let went = unloaded.read().map(|message| (message.dimension, message.column));
    // What is published now counts, whatever the order of the messages.
    for (dimension, position) in came.chain(went) {
        match published.column(dimension, position) {
            Some(column) if dimensions.is_wanted(dimension, settings) => queue.load(dimension, column),
            Some(_) => {}
            None => queue.unload((dimension, position)).for_each(|entity| commands.entity(entity).try_despawn()),
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
    let ChunkMesher { settings, queue, running, .. } = &mut *mesher;
    let mut budget = settings.meshes_a_frame;
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
    eyes: Query<
        (Option<&Position>, Option<&GlobalTransform>),
        (Or<(With<Camera3d>, With<Viewer>)>, Or<(With<Position>, With<GlobalTransform>)>),
    >,
    origin: Res<RenderOrigin>,
    mut progress: ResMut<MeshProgress>,
    mut commands: Commands,
) {
    let ChunkMesher { settings, queue, running, looks } = &mut *mesher;
    let Some(blocks) = blocks else { return };
    let looks = looks.get_or_insert_with(|| Arc::new(BlockLooks::new(&blocks)));
    let eyes: Vec<ColumnPos> = eyes
        .iter()
        .map(|(position, transform)| match (position, transform) {
            (Some(position), _) => position.column(),
            (None, transform) => {
                let mut position = Position { dimension: default(), block: origin.0, offset: Vec3::ZERO };
                position.translate(transform.map_or(Vec3::ZERO, GlobalTransform::translation));
                position.column()
            }
        })
        .collect();
    let distance = |column: ColumnPos| eyes.iter().map(|eye| eye.distance_squared(column)).min().unwrap_or(0);
    let pool = AsyncComputeTaskPool::get_or_init(TaskPool::default);

    let columns = if running.len() < settings.tasks { queue.nearest(COLUMNS_A_FRAME, distance) } else { Vec::new() };
    'columns: for key in columns {
        let lowest = dimensions.lowest(key.0);
        for y in queue.waiting(key) {
            if running.len() >= settings.tasks {
                break 'columns;
            }
            let neighborhood = queue.neighborhood(key, y, lowest);
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
    progress.set_if_neq(MeshProgress { queued: queue.queued(), in_flight: running.len(), meshes: queue.meshes() });
}

pub(super) fn move_meshes(origin: Res<RenderOrigin>, mut meshes: Query<(&ChunkMesh, &mut Transform)>) {
    for (mesh, mut transform) in &mut meshes {
        *transform = origin.place(*mesh);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BlockId;
    use crate::coordinator::TickMode;
    use crate::generation::Flat;
    use crate::plugin::TerranePlugin;
    use crate::space::BlockPos;
    use crate::view::SetBlock;
    use std::collections::BTreeSet;
    use std::time::{Duration, Instant};

    fn app(plugin: ChunkRenderPlugin, has_assets: bool) -> (App, Entity, Entity) {
        let mut app = App::new();
        app.add_plugins((
            MinimalPlugins,
            AssetPlugin::default(),
            TerranePlugin::in_memory().with_tick_mode(TickMode::Lockstep),
            plugin,
        ));
        if has_assets {
            app.init_asset::<Mesh>().init_asset::<StandardMaterial>();
        }
        app.finish();
        app.cleanup();
        let dimension = app.world_mut().spawn(Dimension::new("test", Flat::new()).with_height(-64..64)).id();
        let viewer = app.world_mut().spawn((Viewer::in_dimension(dimension).with_radius(3), Transform::default())).id();
        (app, dimension, viewer)
    }

    fn update_until(app: &mut App, mut done: impl FnMut(&mut World) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !done(app.world_mut()) {
            assert!(Instant::now() < deadline, "this takes too long: {:?}", app.world().get_resource::<MeshProgress>());
            app.update();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn chunks(world: &mut World) -> BTreeSet<(i64, i64, i64)> {
        let mut meshes = world.query::<&ChunkMesh>();
        meshes.iter(world).map(|mesh| (mesh.chunk.x, mesh.chunk.y, mesh.chunk.z)).collect()
    }

    fn has_meshes(world: &World, meshes: usize) -> bool {
        let progress = *world.resource::<MeshProgress>();
        progress.is_done() && progress.meshes == meshes
    }

    fn published(world: &World) -> BTreeSet<(i64, i64)> {
        world.resource::<PublishedColumns>().iter().map(|(_, column)| (column.pos().x, column.pos().z)).collect()
    }

    /// The columns that have all eight around them, by a look at every one that is published.
    fn inner(world: &World) -> BTreeSet<(i64, i64)> {
        let published = published(world);
        let is_inner =
            |(x, z): &(i64, i64)| (-1..=1).all(|dx| (-1..=1).all(|dz| published.contains(&(x + dx, z + dz))));
        published.iter().copied().filter(is_inner).collect()
    }

    /// Waits until all that the viewer asks for is there and meshed, and returns the columns that are meshed.
    fn settle(app: &mut App) -> BTreeSet<(i64, i64)> {
        let disc = (-3i64..=3).flat_map(|x| (-3i64..=3).map(move |z| (x, z))).filter(|(x, z)| x * x + z * z <= 9);
        let disc: BTreeSet<_> = disc.collect();
        update_until(app, |world| disc.is_subset(&published(world)) && has_meshes(world, inner(world).len()));
        inner(app.world())
    }

    #[test]
    fn meshes_come_follow_edits_and_go() {
        let (mut app, dimension, viewer) = app(ChunkRenderPlugin::default(), true);
        let inner = settle(&mut app);
        assert!(inner.len() >= 9);
        // The ground's top is at y = 0; nothing of it shows below, at the sides or beyond.
        let surface: BTreeSet<_> = inner.iter().map(|(x, z)| (*x, 0, *z)).collect();
        assert_eq!(chunks(app.world_mut()), surface);
        let world = app.world_mut();
        let mut meshes = world.query::<(&ChunkMesh, &Transform, &Mesh3d, &MeshMaterial3d<StandardMaterial>)>();
        let material = world.resource::<ChunkMaterial>().0.clone();
        for (mesh, transform, handle, shared) in meshes.iter(world) {
            assert_eq!(transform.translation, (IVec3::new(mesh.chunk.x as i32, 0, mesh.chunk.z as i32) * 16).as_vec3());
            assert_eq!(world.resource::<Assets<Mesh>>().get(&handle.0).unwrap().count_vertices(), 4);
            assert_eq!(shared.0, material);
        }

        // A block in the air beside, at the corner of four columns.
        let stone = world.resource::<BlockTypes>().id("terrane:stone").unwrap();
        world.write_message(SetBlock { dimension, position: BlockPos::new(0, 40, 0), block: stone });
        update_until(&mut app, |world| chunks(world).contains(&(0, 2, 0)));
        update_until(&mut app, |world| has_meshes(world, inner.len() + 1));
        app.world_mut().write_message(SetBlock { dimension, position: BlockPos::new(0, 40, 0), block: BlockId::AIR });
        update_until(&mut app, |world| !chunks(world).contains(&(0, 2, 0)));

        app.world_mut().insert_resource(RenderOrigin(BlockPos::new(16, 0, 0)));
        app.update();
        let world = app.world_mut();
        for (mesh, transform) in world.query::<(&ChunkMesh, &Transform)>().iter(world) {
            assert_eq!(transform.translation.x, (mesh.chunk.x * 16 - 16) as f32);
        }

        app.world_mut().despawn(viewer);
        update_until(&mut app, |world| has_meshes(world, 0) && chunks(world).is_empty());
        update_until(&mut app, |world| world.resource::<Assets<Mesh>>().is_empty());
    }

    #[test]
    fn a_hole_on_a_border_shows_the_next_chunk() {
        let (mut app, dimension, _) = app(ChunkRenderPlugin::default(), true);
        let inner = settle(&mut app);
        // From the chunk below the surface to the one below that.
        app.world_mut().write_message(SetBlock { dimension, position: BlockPos::new(0, -16, 5), block: BlockId::AIR });
        update_until(&mut app, |world| chunks(world).contains(&(0, -1, 0)));
        update_until(&mut app, |world| world.resource::<MeshProgress>().is_done());
        let expected = [(0, -1, 0), (0, -2, 0), (-1, -1, 0)];
        let found = chunks(app.world_mut());
        assert!(expected.iter().all(|chunk| found.contains(chunk)), "{found:?}");
        assert_eq!(found.len(), inner.len() + expected.len());
    }

    #[test]
    fn other_dimensions_get_no_meshes() {
        let (mut app, _, _) = app(ChunkRenderPlugin::default().with_dimensions(["nether"]), true);
        update_until(&mut app, |world| world.resource::<PublishedColumns>().len() >= 29);
        for _ in 0..5 {
            app.update();
        }
        assert_eq!(*app.world().resource::<MeshProgress>(), MeshProgress::default());
    }

    #[test]
    fn an_app_without_meshes_runs_on() {
        let (mut app, _, _) = app(ChunkRenderPlugin::default(), false);
        update_until(&mut app, |world| world.resource::<PublishedColumns>().len() >= 29);
        assert!(chunks(app.world_mut()).is_empty());
    }
}
