//! [`Studio`]: an app that draws a made-up world into an image.

use bevy::asset::{AssetPlugin, RenderAssetUsages};
use bevy::camera::RenderTarget;
use bevy::core_pipeline::tonemapping::{DebandDither, Tonemapping};
use bevy::log::LogPlugin;
use bevy::prelude::*;
use bevy::render::RenderPlugin;
use bevy::render::pipelined_rendering::PipelinedRenderingPlugin;
use bevy::render::render_resource::{Extent3d, TextureDimension, TextureFormat};
use bevy::render::settings::{Backends, WgpuSettings};
use bevy::render::view::screenshot::{Screenshot, ScreenshotCaptured};
use bevy::window::ExitCondition;
use bevy::winit::WinitPlugin;
use bevy_terrane::chunk::Column;
use bevy_terrane::generation::{GenerateError, GenerateRequest, Generator, GeneratorIdentity};
use bevy_terrane::prelude::*;
use bevy_terrane::testing::{Patience, lockstep, spawn_dimension, start, update_until, update_until_within};
use bevy_terrane::view::WorldStatistics;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use terrane_gizmos::TerraneGizmosPlugin;
use terrane_render::{
    BlockLook, BlockLooks, ChunkLooks, ChunkMaterials, ChunkMeshProgress, ChunkRenderPlugin, FaceLook, RenderMode,
    RenderOrigin,
};

/// The color behind everything.
pub const NOTHING: [u8; 3] = [255, 0, 255];
/// The world: the columns with blocks up to so many from the origin, and the heights.
const RADIUS: u32 = 5;
const HEIGHTS: std::ops::Range<i64> = -32..64;

/// The block at a place, by its number in the list of blocks from 1 on; 0 is air.
pub type Scene = Arc<dyn Fn([i64; 3]) -> usize + Send + Sync>;

struct Painted {
    names: Vec<String>,
    scene: Scene,
}

impl Generator for Painted {
    fn identity(&self) -> GeneratorIdentity {
        GeneratorIdentity { name: "test:painted".into(), version: 1, seed: 0 }
    }

    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        let ids = self.names.iter().map(|name| request.block(name)).collect::<Result<Vec<_>, _>>()?;
        let mut column = Column::new(request.column);
        let corner = request.column.min_block(0);
        for (x, z) in (0..16).flat_map(|x| (0..16).map(move |z| (corner.x + x, corner.z + z))) {
            for y in HEIGHTS {
                let block = (self.scene)([x, y, z]);
                if block > 0 {
                    column.set_block(BlockPos::new(x, y, z), ids[block - 1]);
                }
            }
        }
        Ok(column)
    }
}

/// A block, the pixels of its square texture, and its mode.
pub struct Paint {
    pub block: BlockType,
    pub pixels: Vec<[u8; 4]>,
    pub mode: RenderMode,
    pub random_turn: bool,
}

impl Paint {
    pub fn new(block: BlockType, color: [u8; 4], mode: RenderMode) -> Self {
        Self { block, pixels: vec![color; 256], mode, random_turn: false }
    }
}

#[derive(Resource, Default)]
struct Shot(Option<Image>);

/// The camera sees the world without lights: each face in the color of its texture.
pub struct Studio {
    pub app: App,
    camera: Entity,
    target: Handle<Image>,
    name: &'static str,
    shots: AtomicU32,
    _assets: TempDir,
}

impl Studio {
    /// A world of these blocks. `camera` has the projection and the samples per pixel.
    pub fn new(
        name: &'static str,
        size: UVec2,
        (paints, scene): (Vec<Paint>, Scene),
        plugin: ChunkRenderPlugin,
        camera: impl Bundle,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<String> = paints.iter().map(|paint| paint.block.name().to_string()).collect();
        let mut app = app(&folder);
        app.add_plugins((lockstep(), plugin, TerraneGizmosPlugin));
        let mut looks = BlockLooks::default();
        for (number, paint) in paints.into_iter().enumerate() {
            let file = format!("{number}.png");
            save(&paint.pixels, &folder.path().join(&file));
            let look = FaceLook { random_turn: paint.random_turn, ..FaceLook::new(file) };
            looks.blocks.insert(names[number].clone(), BlockLook { all: Some(look), mode: paint.mode, ..default() });
            app.register_block(paint.block).unwrap();
        }
        let handle = app.world_mut().resource_mut::<Assets<BlockLooks>>().add(looks);
        app.world_mut().resource_mut::<ChunkLooks>().push(handle);
        let generator = Painted { names, scene };
        let dimension = spawn_dimension(&mut app, Dimension::new("test", generator).with_height(HEIGHTS));
        let viewer = (Viewer::in_dimension(dimension).with_radius(RADIUS), Transform::default());
        app.world_mut().spawn(viewer);
        let target = Image::new_target_texture(size.x, size.y, TextureFormat::Rgba8UnormSrgb, None);
        let target = app.world_mut().resource_mut::<Assets<Image>>().add(target);
        let [red, green, blue] = NOTHING;
        let view = (
            Camera { is_active: false, clear_color: Color::srgb_u8(red, green, blue).into(), ..default() },
            RenderTarget::from(target.clone()),
            (Tonemapping::None, DebandDither::Disabled),
        );
        let camera = app.world_mut().spawn((Camera3d::default(), view)).insert(camera).id();
        start(&mut app);
        let mut calm = 0;
        let patience = Patience { limit: Duration::from_secs(100), ..default() };
        update_until_within(&mut app, patience, "the world is drawn", |world| {
            let progress = world.resource::<ChunkMeshProgress>();
            let is_done =
                world.resource::<WorldStatistics>().remaining == 0 && progress.is_done() && progress.meshes > 0;
            calm = if is_done { calm + 1 } else { 0 };
            calm > 30
        });
        let handles = app.world().resource::<ChunkMaterials>().clone();
        let mut materials = app.world_mut().resource_mut::<Assets<terrane_render::ChunkMaterial>>();
        for handle in [handles.opaque, handles.cut_out, handles.blended] {
            materials.get_mut(&handle).expect("the graphics card is there").base.unlit = true;
        }
        let studio = Self { app, camera, target, name, shots: AtomicU32::new(0), _assets: folder };
        studio.warmed_up()
    }

    /// The first frames load shaders.
    fn warmed_up(mut self) -> Self {
        self.app.world_mut().get_mut::<Camera>(self.camera).unwrap().is_active = true;
        (0..5).for_each(|_| self.app.update());
        self
    }

    /// Draws a few frames from a place without a picture, since Bevy shows new gizmos a frame late.
    pub fn look(&mut self, place: Transform) {
        let world = self.app.world_mut();
        *world.get_mut::<Transform>(self.camera).unwrap() = place;
        world.get_mut::<Camera>(self.camera).unwrap().is_active = true;
        (0..3).for_each(|_| self.app.update());
    }

    /// Moves the origin of the main world's space.
    pub fn set_origin(&mut self, origin: BlockPos) {
        self.app.insert_resource(RenderOrigin(origin));
    }

    /// The picture from a place: four bytes a pixel, row by row.
    pub fn shoot(&mut self, place: Transform) -> Vec<u8> {
        let world = self.app.world_mut();
        *world.get_mut::<Transform>(self.camera).unwrap() = place;
        world.get_mut::<Camera>(self.camera).unwrap().is_active = true;
        world.insert_resource(Shot::default());
        let keep = |captured: On<ScreenshotCaptured>, mut shot: ResMut<Shot>| shot.0 = Some(captured.image.clone());
        world.spawn(Screenshot::image(self.target.clone())).observe(keep);
        self.app.update();
        self.app.world_mut().get_mut::<Camera>(self.camera).unwrap().is_active = false;
        update_until(&mut self.app, "there is a picture", |world| world.resource::<Shot>().0.is_some());
        let image = self.app.world_mut().resource_mut::<Shot>().0.take().unwrap();
        let number = self.shots.fetch_add(1, Ordering::Relaxed);
        if let Some(folder) = std::env::var_os("TERRANE_PICTURES") {
            let path = std::path::Path::new(&folder).join(format!("{}-{number}.png", self.name));
            image.clone().try_into_dynamic().unwrap().to_rgb8().save(path).unwrap();
        }
        image.data.unwrap()
    }
}

/// Bevy without a window, and without frames beside those that are asked for.
fn app(assets: &TempDir) -> App {
    let backends = Backends::from_env().or(Some(Backends::PRIMARY));
    let render = RenderPlugin {
        synchronous_pipeline_compilation: true,
        render_creation: WgpuSettings { backends, ..default() }.into(),
        ..default()
    };
    let window = WindowPlugin { primary_window: None, exit_condition: ExitCondition::DontExit, ..default() };
    let file_path = assets.path().display().to_string();
    let assets = AssetPlugin { file_path, watch_for_changes_override: Some(false), ..default() };
    let plugins = DefaultPlugins.build().set(render).set(window).set(assets);
    let mut app = App::new();
    app.add_plugins(plugins.disable::<WinitPlugin>().disable::<PipelinedRenderingPlugin>().disable::<LogPlugin>());
    app
}

fn save(pixels: &[[u8; 4]], path: &std::path::Path) {
    let side = pixels.len().isqrt() as u32;
    let size = Extent3d { width: side, height: side, depth_or_array_layers: 1 };
    let (data, format) = (pixels.concat(), TextureFormat::Rgba8UnormSrgb);
    let image = Image::new(size, TextureDimension::D2, data, format, RenderAssetUsages::MAIN_WORLD);
    image.try_into_dynamic().unwrap().save(path).unwrap();
}
