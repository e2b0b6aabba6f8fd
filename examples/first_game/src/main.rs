use bevy::log::LogPlugin;
use bevy::time::common_conditions::on_timer;
use bevy_terrane::prelude::*;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Lives in a region, is stored, and can be seen in the main world.
#[derive(Component, Clone, PartialEq, Serialize, Deserialize, TypePath)]
#[type_path = "my_game"] // its name in the store: my_game::Sheep
struct Sheep {
    hunger: u32,
}

const MEADOW: BlockPos = BlockPos::new(0, 64, 0);

fn main() -> AppExit {
    App::new()
        .add_plugins((MinimalPlugins, LogPlugin::default())) // DefaultPlugins for a game with a window
        .add_plugins(TerranePlugin::default()) // the world is the folder `world`
        .register_saved_component::<Sheep>() // travels with its entity, and is saved
        .mirror_region_component::<Sheep>() // is shown in the main world
        .add_region_plugins(|region| {
            // Runs for every region world that is made.
            region.add_systems(RegionTick, graze);
        })
        .add_systems(Startup, start)
        .add_systems(Update, count_sheep.run_if(on_timer(Duration::from_secs(1))))
        .run()
}

fn start(mut commands: Commands) {
    let overworld = commands.spawn(Dimension::new("overworld", Hills::seeded(42)).with_height(-64..320)).id();
    commands.spawn((Viewer::in_dimension(overworld).with_radius(12), Transform::default()));
    // Runs in the region that owns the meadow, as soon as the ground and all who live there are loaded.
    commands.run_in_region(overworld, MEADOW, |region: &mut World| {
        // A stored world has its sheep already.
        if region.query::<&Sheep>().iter(region).next().is_none() {
            let dimension = region.resource::<RegionInfo>().dimension;
            region.spawn((Position::new(dimension, MEADOW), Sheep { hunger: 0 }));
        }
    });
}

/// An ordinary Bevy system: 20 times a second in each region, in parallel with the other regions.
fn graze(mut blocks: RegionBlocks, types: Res<BlockTypes>, mut sheep: Query<(&Position, &mut Sheep)>) -> Result {
    let (Some(grass), Some(dirt)) = (types.id("terrane:grass"), types.id("terrane:dirt")) else { return Ok(()) };
    for (position, mut sheep) in &mut sheep {
        sheep.hunger += 1;
        if let Some(ground) = blocks.surface(position.block.x, position.block.z)
            && blocks.block(ground)? == grass
        {
            blocks.set_block(ground, dirt)?;
            sheep.hunger = 0;
        }
    }
    Ok(())
}

/// Back in the main world: mirrors of what lives in the regions.
fn count_sheep(sheep: Query<&Sheep, With<Mirror>>) {
    let hungriest = sheep.iter().map(|sheep| sheep.hunger).max().unwrap_or_default();
    info!("{} sheep, the hungriest has not eaten for {hungriest} ticks", sheep.iter().len());
}
