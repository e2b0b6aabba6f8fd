//! The first game with blocks of its own, a hand that places them and takes edits back, and a house that a region builds.

use bevy_terrane::block::BlockRegistryError;
use bevy_terrane::chunk::RayHit;
use bevy_terrane::prelude::*;
use terrane_dev::{DevPlugins, FlyCamera, SkyPlugin};
use terrane_render::{ChunkRenderPlugin, RenderOrigin};

#[path = "shared/outline.rs"]
mod outline;

/// The blocks that the number keys choose.
const CHOICE: [&str; 4] = ["game:brick", "game:beam[axis=y]", "terrane:stone", "terrane:sand"];
/// The middle of the house's floor, along x and z.
const HOUSE: (i64, i64) = (24, 56);

fn main() -> Result<AppExit> {
    Ok(build("edit")?.run())
}

/// The game up to this step. Each later step begins with it, and has a world of its own.
pub fn build(name: &str) -> Result<App> {
    let mut app = App::new();
    app.add_plugins((DevPlugins::new(name), SkyPlugin::default()))
        .add_plugins((TerranePlugin::at(format!("target/examples/{name}/world")), ChunkRenderPlugin::default()));
    register_blocks(&mut app)?;
    app.init_resource::<Hand>()
        .add_systems(Startup, start)
        .add_systems(Update, (choose, (aim, use_hand, undo).chain(), build_house, report_refusals));
    Ok(app)
}

/// A type can have states: `game:beam[axis=x]`, `game:beam[axis=y]` and `game:beam[axis=z]` are three blocks of one type.
fn register_blocks(app: &mut App) -> Result<(), BlockRegistryError> {
    app.register_block(BlockType::new("game:brick").with_color([158, 74, 58]))?;
    let beam = BlockType::new("game:beam").with_color([122, 92, 60]).with_tag("game:wood");
    app.register_block_states(BlockStates::new(beam).with_property("axis", ["x", "y", "z"]))?;
    Ok(())
}

/// The world of the first game, seen from above a meadow.
pub fn start(mut commands: Commands, dimensions: Res<Dimensions>) {
    commands.spawn(Dimension::new("overworld", Hills::seeded(42)));
    let viewer = Viewer::in_dimension(dimensions.id("overworld")).with_radius(12);
    let view = Transform::from_xyz(8.0, 36.0, 78.0).looking_at(Vec3::new(31.0, 20.0, 56.0), Vec3::Y);
    commands.spawn((FlyCamera::default(), viewer, view));
}

/// The chosen block, the block that the hand reaches, and what edits replaced, to be undone.
#[derive(Resource, Default)]
struct Hand {
    chosen: usize,
    aim: Option<(DimensionId, RayHit)>,
    replaced: Vec<SetBlock>,
}

fn choose(keys: Res<ButtonInput<KeyCode>>, mut hand: ResMut<Hand>) {
    let digits = [KeyCode::Digit1, KeyCode::Digit2, KeyCode::Digit3, KeyCode::Digit4];
    if let Some(chosen) = digits.iter().position(|digit| keys.just_pressed(*digit)) {
        hand.chosen = chosen;
        info!("{}", CHOICE[chosen]);
    }
}

/// The block in the middle of the view gets an outline.
fn aim(
    camera: Single<(&Transform, &Viewer)>,
    (blocks, types, origin): (PublishedBlocks, Res<BlockTypes>, Res<RenderOrigin>),
    mut hand: ResMut<Hand>,
    mut gizmos: Gizmos,
) {
    hand.aim = None;
    let Some(dimension) = camera.1.dimension() else { return };
    // The origin of what is drawn. Only `sparse_sky` moves it.
    let mut eye = Position { dimension, block: origin.0, offset: Vec3::ZERO };
    eye.translate(camera.0.translation);
    let Some(hit) = blocks.cast_ray(eye, camera.0.forward(), 100.0, |block| block != BlockId::AIR) else { return };
    hand.aim = Some((dimension, hit));
    let corner = Position { dimension, block: hit.block, offset: Vec3::ZERO }.relative_to(origin.0);
    let block = blocks.block(dimension, hit.block).unwrap_or_default();
    outline::draw(&mut gizmos, &types, block, corner);
}

/// One block at a time: a `SetBlock` message. The region that owns the block applies it in its next tick.
fn use_hand(
    mouse: Res<ButtonInput<MouseButton>>,
    (blocks, types): (PublishedBlocks, Res<BlockTypes>),
    mut hand: ResMut<Hand>,
    mut edits: MessageWriter<SetBlock>,
) {
    let (breaks, places) = (mouse.just_pressed(MouseButton::Left), mouse.just_pressed(MouseButton::Middle));
    let Some((dimension, hit)) = hand.aim.filter(|_| breaks || places) else { return };
    let (position, block) = match breaks {
        true => (hit.block, BlockId::AIR),
        false => (hit.before(), types.id(CHOICE[hand.chosen]).unwrap_or_default()),
    };
    let before = blocks.block(dimension, position).unwrap_or_default();
    hand.replaced.push(SetBlock { dimension, position, block: before });
    edits.write(SetBlock { dimension, position, block });
}

/// Backspace puts the last replaced block back.
fn undo(keys: Res<ButtonInput<KeyCode>>, mut hand: ResMut<Hand>, mut edits: MessageWriter<SetBlock>) {
    if keys.just_pressed(KeyCode::Backspace) {
        edits.write_batch(hand.replaced.pop());
    }
}

/// Many blocks at once: a closure that runs in the region, between two of its ticks. It sees the newest blocks, and other systems
/// see all of its changes or none.
fn build_house(mut commands: Commands, mut opened: MessageReader<DimensionOpened>, dimensions: Res<Dimensions>) {
    let overworld = dimensions.id("overworld");
    if opened.read().any(|opened| opened.dimension == overworld) {
        let (x, z) = HOUSE;
        commands.run_in_region(overworld, BlockPos::new(x, 0, z), move |region: &mut World| {
            if let Err(error) = region.run_system_cached::<(), _, _>(house) {
                error!("the house cannot be built: {error}");
            }
        });
    }
}

/// A house of bricks with beams in its corners.
fn house(mut blocks: RegionBlocks, types: Res<BlockTypes>) -> Result {
    let id = |name: &str| types.id(name).ok_or_else(|| format!("{name} is not registered"));
    let (brick, beam, sand) = (id("game:brick")?, id("game:beam[axis=y]")?, id("terrane:sand")?);
    let (x, z) = HOUSE;
    // The house of an earlier run is still there.
    let Some(ground) = blocks.surface(x, z) else { return Ok(()) };
    if blocks.block(ground)? == sand {
        return Ok(());
    }
    let half = 4_i64;
    for (dx, dz) in (-half..=half).flat_map(|dx| (-half..=half).map(move |dz| (dx, dz))) {
        let (at_x, at_z) = (dx.abs() == half, dz.abs() == half);
        for dy in -3..=7 {
            let is_door = dx == -half && dz.abs() < 2 && (1..4).contains(&dy);
            let block = match dy {
                ..=0 => sand, // The ground slopes.
                _ if is_door => BlockId::AIR,
                1..=5 if at_x && at_z => beam,
                1..=5 if at_x || at_z => brick,
                6..=7 if dx.abs().max(dz.abs()) <= half + 6 - dy => beam,
                _ => BlockId::AIR,
            };
            blocks.set_block(ground.offset(dx, dy, dz), block)?;
        }
    }
    Ok(())
}

/// An edit that cannot be made comes back with its reason, for example because its column is not loaded.
fn report_refusals(mut refused: MessageReader<BlockRefused>) {
    for BlockRefused { error, .. } in refused.read() {
        warn!("{error}");
    }
}
