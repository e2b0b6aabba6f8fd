//! Five common problems, each made by a key, to be found with the overlay: the guide's chapter *Finding out why*.
//!
//! F3 shows the overlay. 1 sends a scout far away, whose ground stays loaded. 2 builds mills that make a region slow. 3 drops a bomb that
//! halts a region. 4 sends the sheep Bess to the scout, and 5 dismisses the scout. Some ground beside the start never comes at all.

use bevy::app::PluginGroupBuilder;
use bevy::prelude::*;
use bevy_egui::input::egui_wants_any_keyboard_input;
use bevy_terrane::generation::{GenerateError, GenerateRequest, GeneratorIdentity};
use bevy_terrane::prelude::*;
use bevy_terrane::view::DimensionGeneration;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::time::{Duration, Instant};
use terrane_dev::{DevPlugins, FlyCamera, SkyPlugin};
use terrane_overlay::OverlayPlugin;
use terrane_render::ChunkRenderPlugin;
use uuid::Uuid;

/// The meadow.
pub const MEADOW: BlockPos = BlockPos::new(8, 80, 8);
/// Where the scout goes.
pub const OUTPOST: BlockPos = BlockPos::new(2_008, 80, 8);
/// The column that the generator cannot make.
pub const HOLE: ColumnPos = ColumnPos::new(1, 2);
/// The stable id of the sheep Bess.
pub const BESS: Uuid = Uuid::from_u128(0xbe55_5eed << 96);
/// The stable id of the scout.
pub const SCOUT: Uuid = Uuid::from_u128(0x5c07_5eed << 96);

const MILLS: usize = 12;
/// The time that a mill takes in each tick.
const WORK: Duration = Duration::from_millis(6);

/// A sheep, which can be shorn.
#[derive(Component, Clone, Debug, PartialEq, Reflect, Serialize, Deserialize)]
#[reflect(Component)]
pub struct Sheep {
    /// The amount of its wool.
    pub wool: u32,
}

/// A mill, which takes far too long.
#[derive(Component, Clone, Debug, PartialEq, Reflect, Serialize, Deserialize)]
#[reflect(Component)]
struct Mill;

/// A bomb, which panics.
#[derive(Component, Clone, Debug, PartialEq, Reflect, Serialize, Deserialize)]
#[reflect(Component)]
struct Bomb;

fn main() -> AppExit {
    build(DevPlugins::new("troubles").build()).run()
}

/// The game.
pub fn build(plugins: PluginGroupBuilder) -> App {
    let mut app = App::new();
    app.add_plugins((plugins, SkyPlugin::default()))
        .add_plugins((TerranePlugin::in_memory(), ChunkRenderPlugin::default(), OverlayPlugin))
        .register_type::<Sheep>()
        .register_type::<Mill>()
        .register_type::<Bomb>()
        .register_saved_component::<Sheep>()
        .register_saved_component::<Mill>()
        .register_saved_component::<Bomb>()
        .register_region_component::<Name>()
        .mirror_region_component::<Sheep>()
        .add_region_plugins(|region| {
            region.add_systems(RegionTick, (grind, explode));
        })
        .add_systems(Startup, start)
        // Digits may also be for a field of the overlay.
        .add_systems(Update, make_trouble.run_if(not(egui_wants_any_keyboard_input)));
    app
}

fn start(mut commands: Commands, dimensions: Res<Dimensions>) {
    let overworld = dimensions.id("overworld");
    // The fifth try is the last, as in any dimension, but here it comes soon.
    let generation = DimensionGeneration { attempts: 2, ..default() };
    commands.spawn((Dimension::new("overworld", Holey(Hills::seeded(3))), generation));
    let view = Transform::from_xyz(-20.0, 60.0, -30.0).looking_to(Vec3::new(0.6, -0.45, 1.0), Vec3::Y);
    commands.spawn((FlyCamera::default(), Viewer::in_dimension(overworld).with_radius(6), view));
    commands.spawn_in_region(overworld, MEADOW, (StableId(BESS), Name::new("Bess"), Sheep { wool: 7 }));
    commands.spawn_in_region(overworld, MEADOW, (Name::new("Rex"), Sheep { wool: 3 }));
}

fn make_trouble(mut commands: Commands, keys: Res<ButtonInput<KeyCode>>, dimensions: Res<Dimensions>) {
    let overworld = dimensions.id("overworld");
    if keys.just_pressed(KeyCode::Digit1) {
        let scout = (StableId(SCOUT), Name::new("scout"), Viewer::new().with_radius(2));
        commands.spawn_in_region(overworld, OUTPOST, scout);
    }
    if keys.just_pressed(KeyCode::Digit2) {
        for number in 0..MILLS {
            let place = MEADOW.offset(number as i64, 0, 4);
            commands.spawn_in_region(overworld, place, (Name::new(format!("mill {number}")), Mill));
        }
    }
    if keys.just_pressed(KeyCode::Digit3) {
        commands.spawn_in_region(overworld, MEADOW, Bomb);
    }
    if keys.just_pressed(KeyCode::Digit4) {
        let go = |mut bess: EntityWorldMut| {
            if let Some(mut position) = bess.get_mut::<Position>() {
                position.block = OUTPOST;
            }
        };
        commands.run_on_region_entity(BESS, 0, go, |_, _| {});
    }
    if keys.just_pressed(KeyCode::Digit5) {
        commands.despawn_in_region(SCOUT);
    }
}

/// Takes too long, because each mill looks for its grain anew.
fn grind(mills: Query<&Mill>) {
    for _ in &mills {
        let end = Instant::now() + WORK;
        while Instant::now() < end {
            black_box((0..1_000_u32).sum::<u32>());
        }
    }
}

fn explode(bombs: Query<&Bomb>) {
    assert!(bombs.is_empty(), "the fuse of a bomb was lit before it was laid");
}

/// Hills with a hole: one column cannot be generated.
struct Holey(Hills);

impl Generator for Holey {
    fn identity(&self) -> GeneratorIdentity {
        GeneratorIdentity::new("troubles:holey", 1, self.0.identity().seed)
    }

    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        match request.column {
            HOLE => Err(GenerateError::Failed { column: HOLE, reason: "the plan of the mine is missing".to_owned() }),
            _ => self.0.generate(request),
        }
    }
}
