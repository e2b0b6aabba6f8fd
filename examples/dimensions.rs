//! The game so far, with a moon that has a clock of its own, and a portal through which wisps go there.

use bevy_terrane::generation::GroundCover;
use bevy_terrane::prelude::*;
use bevy_terrane::view::{Coupling, DimensionClock};
use hud::mobs::bodies::PartsPlugin;
use serde::{Deserialize, Serialize};
use terrane_dev::FlyCamera;
use terrane_render::{ChunkMesh, SeenDimension};

#[expect(dead_code, reason = "the `main` of the step before")]
#[path = "hud.rs"]
mod hud;

/// The place of the portal in both dimensions, along x and z.
const PORTAL: BlockPos = BlockPos::new(44, 0, 68);
const DIMENSIONS: [&str; 2] = ["overworld", "moon"];

/// A creature that walks in circles, and through the portal.
#[derive(Component, Clone, PartialEq, Serialize, Deserialize, TypePath)]
#[type_path = "game"]
struct Wisp {
    angle: f32,
    /// Ticks until it may go through the portal again.
    rest: u32,
}

/// The dimensions that the portal connects, in every region.
#[derive(Resource, Clone, Copy)]
struct Portal([DimensionId; 2]);

impl Portal {
    fn other_end(self, here: DimensionId) -> DimensionId {
        let [first, second] = self.0;
        if here == first { second } else { first }
    }
}

fn main() -> Result<AppExit> {
    let mut app = hud::build("dimensions")?;
    // Names have their ids as soon as the plugin is there.
    let portal = Portal(DIMENSIONS.map(|name| app.dimension_id(name)));
    app.add_plugins(PartsPlugin(|_: &Wisp| vec![(Vec3::new(0.8, 1.4, 0.8), Color::srgb(0.95, 0.75, 0.2))]))
        .register_saved_component::<Wisp>()
        .mirror_region_component::<Wisp>()
        .add_region_plugins(move |region| {
            region.insert_resource(portal).add_systems(RegionTick, circle);
        })
        .add_systems(Startup, start)
        .add_systems(Update, (build_portal, (travel, show_one_dimension).chain(), control_time));
    Ok(app.run())
}

fn start(mut commands: Commands, dimensions: Res<Dimensions>) {
    let snow = GroundCover::new("terrane:snow", "terrane:stone");
    let moon = Layers::new(Hills::seeded(43).with_amplitude(14.0)).with(snow);
    // Time passes on the moon at half the speed: its regions tick ten times a second.
    commands.spawn((Dimension::new("moon", moon), DimensionClock { rate: 0.5, ..default() }));

    let [overworld, moon] = DIMENSIONS.map(|name| dimensions.id(name));
    // The far side of the portal is loaded too, so no wisp arrives in a void.
    commands
        .spawn((Viewer::in_dimension(moon).with_radius(4), Transform::from_xyz(PORTAL.x as f32, 0.0, PORTAL.z as f32)));
    // The regions at both ends tick one after the other, so that a journey takes no extra tick.
    commands.spawn(Coupling { ends: [(overworld, PORTAL), (moon, PORTAL)] });
}

/// A ring of snow in both dimensions, and wisps in the first, unless an earlier run has left some.
fn build_portal(mut commands: Commands, mut opened: MessageReader<DimensionOpened>, dimensions: Res<Dimensions>) {
    for opened in opened.read() {
        let (here, is_first) = (opened.dimension, opened.dimension == dimensions.id(DIMENSIONS[0]));
        commands.run_in_region(here, PORTAL, move |region: &mut World| {
            if let Err(error) = region.run_system_cached::<(), _, _>(ring) {
                error!("the portal cannot be built: {error}");
            }
            if is_first && region.query::<&Wisp>().iter(region).next().is_none() {
                for number in 0..6 {
                    let wisp = Wisp { angle: number as f32, rest: 40 * number };
                    region.spawn((Position::new(here, PORTAL), wisp));
                }
            }
        });
    }
}

fn ring(mut blocks: RegionBlocks, types: Res<BlockTypes>) -> Result {
    let (Some(snow), Some(ground)) = (types.id("terrane:snow"), blocks.surface(PORTAL.x, PORTAL.z)) else {
        return Ok(());
    };
    if blocks.block(ground)? == snow && blocks.block(ground.offset(0, 0, 1))? == snow {
        return Ok(()); // The ring of an earlier run: its top is the surface.
    }
    for (dz, dy) in (-4..=4).flat_map(|dz| (0..=8).map(move |dy| (dz, dy))) {
        let out = f64::hypot(dz as f64, dy as f64 - 4.0);
        if (3.4..4.6).contains(&out) {
            blocks.set_block(ground.offset(0, dy, dz), snow)?;
        }
    }
    Ok(())
}

/// Wisps walk in circles through the portal. One whose `Position` names the other dimension travels there with all its components.
fn circle(
    time: Res<Time>,
    info: Res<RegionInfo>,
    portal: Res<Portal>,
    blocks: RegionBlocks,
    mut wisps: Query<(&mut Position, &mut Wisp)>,
) {
    for (mut position, mut wisp) in &mut wisps {
        wisp.angle += time.delta_secs() * 0.7;
        wisp.rest = wisp.rest.saturating_sub(1);
        let (x, z) = (wisp.angle.sin() * 6.0, wisp.angle.cos() * 6.0 + 6.0);
        let mut next = Position::new(info.dimension, PORTAL);
        next.translate(Vec3::new(x, 0.0, z));
        let Some(ground) = blocks.surface(next.block.x, next.block.z) else { continue };
        next.block.y = ground.y + 1;
        if z < 0.5 && wisp.rest == 0 {
            wisp.rest = 100;
            next.dimension = portal.other_end(info.dimension);
        }
        *position = next;
    }
}

/// Tab takes the camera to the other dimension.
fn travel(
    keys: Res<ButtonInput<KeyCode>>,
    dimensions: Res<Dimensions>,
    mut viewer: Single<&mut Viewer, With<FlyCamera>>,
) {
    if keys.just_pressed(KeyCode::Tab) {
        let [overworld, moon] = DIMENSIONS.map(|name| dimensions.id(name));
        let other = if viewer.dimension() == Some(overworld) { moon } else { overworld };
        **viewer = Viewer::in_dimension(other).with_radius(12);
    }
}

/// Chunks and creatures of both dimensions are in the main world, at the same places. Only those around the camera are shown.
fn show_one_dimension(
    seen: SeenDimension,
    mut chunks: Query<(&ChunkMesh, &mut Visibility), Without<Mirror>>,
    mut bodies: Query<(&Mirror, &mut Visibility)>,
) {
    let here = seen.id();
    let visible = |is_here| if is_here { Visibility::Inherited } else { Visibility::Hidden };
    for (chunk, mut visibility) in &mut chunks {
        visibility.set_if_neq(visible(Some(chunk.dimension) == here));
    }
    for (mirror, mut visibility) in &mut bodies {
        visibility.set_if_neq(visible(Some(mirror.current.0.dimension) == here));
    }
}

/// P stops time on the moon, and starts it again.
fn control_time(keys: Res<ButtonInput<KeyCode>>, mut clock: Single<&mut DimensionClock>) {
    if keys.just_pressed(KeyCode::KeyP) {
        clock.paused = !clock.paused;
    }
}
