//! The game so far, with sheep that live in regions: they walk, eat and are saved, and the main world draws them.

use bevy_terrane::prelude::*;
use serde::{Deserialize, Serialize};

#[path = "shared/bodies.rs"]
pub mod bodies;
#[expect(dead_code, reason = "the `main` of the step before")]
#[path = "edit.rs"]
mod edit;

/// Lives in a region. It travels with its entity, is stored, and can be seen in the main world.
#[derive(Component, Clone, PartialEq, Serialize, Deserialize, TypePath)]
#[type_path = "game"] // its name in the store: game::Sheep
pub struct Sheep {
    /// The direction of its walk, in radians.
    heading: f32,
    /// Ticks since it last ate.
    hunger: u32,
}

/// Stays in the meadow, and is saved with it: the sheep have been there.
#[derive(Component, Clone, PartialEq, Serialize, Deserialize, TypePath)]
#[type_path = "game"]
struct Meadow;

const MEADOW: BlockPos = BlockPos::new(42, 0, 58);
const SHEEP: i64 = 24;

fn main() -> Result<AppExit> {
    Ok(build("mobs")?.run())
}

/// The game up to this step.
pub fn build(name: &str) -> Result<App> {
    let mut app = edit::build(name)?;
    app.add_plugins(bodies::PartsPlugin(body))
        .register_saved_component::<Sheep>() // travels between regions, and is saved
        .register_saved_component::<Meadow>()
        .mirror_region_component::<Sheep>() // is shown in the main world
        .add_region_plugins(|region| {
            // Runs for every region world that is made.
            region.add_systems(RegionTick, (walk, graze).chain());
        })
        .add_systems(Startup, start)
        .add_systems(Update, count);
    Ok(app)
}

fn start(mut commands: Commands, dimensions: Res<Dimensions>) {
    let overworld = dimensions.id("overworld");
    // Runs in the region that owns the meadow, once its ground and everything that lives there is loaded.
    commands.run_in_region(overworld, MEADOW, move |region: &mut World| {
        // A stored world has its sheep already. They may be far away by now, where nothing is loaded yet.
        if region.query::<&Meadow>().iter(region).next().is_some() {
            return;
        }
        region.spawn((Position::new(overworld, MEADOW), Meadow));
        for number in 0..SHEEP {
            let place = MEADOW.offset(number % 6 * 3 - 8, 0, number / 6 * 3 - 5);
            region.spawn((Position::new(overworld, place), Sheep { heading: number as f32, hunger: 0 }));
        }
    });
}

/// 20 times a second in each region, in parallel with other regions. A sheep that walks over a border travels to the next region.
fn walk(
    time: Res<Time>,
    blocks: RegionBlocks,
    mut random: ResMut<RegionRandom>,
    mut sheep: Query<(&mut Position, &mut Sheep)>,
) {
    for (mut position, mut sheep) in &mut sheep {
        if random.0.below(40) == 0 {
            sheep.heading = random.0.unit() * std::f32::consts::TAU;
        }
        let mut next = *position;
        next.translate(Vec3::new(sheep.heading.cos(), 0.0, sheep.heading.sin()) * time.delta_secs());
        // It stands on the ground, and does not walk where no ground is loaded.
        if let Some(ground) = blocks.surface(next.block.x, next.block.z) {
            next.block.y = ground.y + 1;
            next.offset.y = 0.0;
            *position = next;
        }
    }
}

/// A sheep on grass eats it.
fn graze(mut blocks: RegionBlocks, types: Res<BlockTypes>, mut sheep: Query<(&Position, &mut Sheep)>) -> Result {
    let (Some(grass), Some(dirt)) = (types.id("terrane:grass"), types.id("terrane:dirt")) else { return Ok(()) };
    for (position, mut sheep) in &mut sheep {
        sheep.hunger += 1;
        let ground = position.block.offset(0, -1, 0);
        if sheep.hunger > 60 && blocks.block(ground).is_ok_and(|block| block == grass) {
            blocks.set_block(ground, dirt)?;
            sheep.hunger = 0;
        }
    }
    Ok(())
}

/// The body of a sheep in the main world: legs and a trunk.
fn body(_: &Sheep) -> Vec<bodies::Part> {
    vec![
        (Vec3::new(0.5, 0.4, 0.7), Color::srgb(0.3, 0.27, 0.25)),
        (Vec3::new(0.9, 0.8, 1.3), Color::srgb(0.93, 0.91, 0.86)),
    ]
}

/// The main world sees mirrors of the sheep: entities with the newest `Sheep` and `Position`.
fn count(sheep: Query<&Sheep, With<Mirror>>, time: Res<Time>, mut last: Local<u64>) {
    let second = time.elapsed().as_secs();
    if second > *last {
        *last = second;
        info!(
            "{} sheep, {} of them hungry",
            sheep.iter().len(),
            sheep.iter().filter(|sheep| sheep.hunger > 60).count()
        );
    }
}
