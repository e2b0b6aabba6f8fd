//! The rules of the game. They need no window, so tests can run them.

pub mod menu;
pub mod player;

use bevy_terrane::prelude::*;

/// The dimension of the game.
pub const OVERWORLD: &str = "overworld";
/// A sapling grows into a tree.
pub const SAPLING: &str = "my_game:sapling";
/// The ticks until a sapling has grown: ten seconds.
pub const GROWTH: u64 = 200;

/// Adds blocks and rules. Add it after `TerranePlugin`.
pub struct RulesPlugin;

impl Plugin for RulesPlugin {
    fn build(&self, app: &mut App) {
        if let Err(error) = app.register_block(BlockType::new(SAPLING).with_color([96, 160, 60]).non_solid()) {
            error!("{error}");
        }
        app.add_region_plugins(|region| {
            region.add_systems(RegionTick, grow);
        })
        .add_systems(Startup, |mut commands: Commands| {
            commands.spawn(Dimension::new(OVERWORLD, Hills::seeded(42)));
        });
    }
}

/// Plants a sapling, and schedules its growth. The schedule is saved with the world.
pub fn plant(commands: &mut Commands, dimension: DimensionId, place: BlockPos) {
    commands.run_in_region(dimension, place, move |region: &mut World| {
        if let Err(error) = region.run_system_cached_with::<_, (), _, _>(plant_here, place) {
            error!("no sapling at {place}: {error}");
        }
    });
}

fn plant_here(In(place): In<BlockPos>, mut blocks: RegionBlocks, types: Res<BlockTypes>) -> Result {
    let sapling = types.id(SAPLING).ok_or("the sapling is not registered")?;
    blocks.set_block(place, sapling)?;
    blocks.schedule_tick(place, "grow", GROWTH)?;
    Ok(())
}

/// Turns saplings whose time has come into trees.
fn grow(mut due: MessageReader<BlockTick>, mut blocks: RegionBlocks, types: Res<BlockTypes>) -> Result {
    let [sapling, wood, leaves] = [SAPLING, "terrane:wood", "terrane:leaves"].map(|name| types.id(name));
    let (Some(wood), Some(leaves)) = (wood, leaves) else { return Ok(()) };
    for tick in due.read().filter(|tick| &*tick.kind == "grow") {
        // The player may have removed it.
        if Some(blocks.block(tick.block)?) != sapling {
            continue;
        }
        for (x, y, z) in crown() {
            let place = tick.block.offset(x, y, z);
            // A crown does not break through other blocks, and stays away from ground that is not loaded.
            if blocks.block(place).is_ok_and(|block| block == BlockId::AIR) {
                blocks.set_block(place, leaves)?;
            }
        }
        for y in 0..5 {
            blocks.set_block(tick.block.offset(0, y, 0), wood)?;
        }
    }
    Ok(())
}

/// The places of leaves around a sapling.
fn crown() -> impl Iterator<Item = (i64, i64, i64)> {
    let cube = (-2..=2_i64).flat_map(|x| (3..=6).flat_map(move |y| (-2..=2_i64).map(move |z| (x, y, z))));
    cube.filter(|(x, y, z)| x * x + z * z + (y - 4) * (y - 4) <= 6)
}
