//! Running bots and explosions.

use crate::arguments::Arguments;
use crate::coliseum::AREA;
use bevy::math::DVec2;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::{RegionColumns, SplitMix64};
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// A bot that runs through the arena: an entity of its region, saved there, and mirrored in the main world.
#[derive(Component, Clone, Debug, PartialEq, Serialize, Deserialize, TypePath)]
#[type_path = "arena"]
pub struct Bot {
    pub number: u32,
    /// The direction in radians.
    heading: f64,
}

/// Speed in blocks per second.
const SPEED: f64 = 7.0;
/// The maximum distance of bots from the middle.
const COURT: f64 = 56.0;

/// Registers the bots and their movement.
pub struct FightPlugin;

impl Plugin for FightPlugin {
    fn build(&self, app: &mut App) {
        app.register_saved_component::<Bot>()
            .mirror_region_component::<Bot>()
            .add_region_plugins(|region| {
                region.add_systems(RegionTick, run);
            })
            .insert_resource(Random(SplitMix64::from_parts([7])));
    }
}

/// The random numbers for explosions.
#[derive(Resource)]
pub struct Random(SplitMix64);

pub fn spawn_bots(commands: &mut Commands, dimension: DimensionId, arguments: &Arguments) {
    for number in 0..arguments.bots {
        let around = DVec2::from_angle(TAU * f64::from(number) / f64::from(arguments.bots)) * 13.0;
        let start = BlockPos::new(around.x as i64, 1, around.y as i64);
        let bot = Bot { number, heading: TAU * 0.37 * f64::from(number) };
        commands.spawn_in_region(dimension, start, (bot, StableId::default()));
    }
}

/// Explodes a random place in the arena.
pub fn explode(commands: &mut Commands, dimension: DimensionId, random: &mut Random) {
    let mut between = |low: i64, count: u32| low + i64::from(random.0.below(count));
    let center = BlockPos::new(between(-52, 104), between(1, 25), between(-46, 92));
    let reach = between(3, 4);
    commands.run_in_region(dimension, center, move |region: &mut World| tear(region, center, reach));
}

/// Removes the blocks around a place, and the bots that stand there.
fn tear(region: &mut World, center: BlockPos, reach: i64) {
    let is_near = |block: BlockPos| {
        let away = [block.x - center.x, block.y - center.y, block.z - center.z];
        away.iter().map(|distance| distance * distance).sum::<i64>() <= reach * reach
    };
    let mut columns = region.resource_mut::<RegionColumns>();
    for x in -reach..=reach {
        for y in -reach..=reach {
            for z in -reach..=reach {
                let block = center.offset(x, y, z);
                // Blocks outside the region or the arena stay.
                if is_near(block) && AREA.contains(block) && block.y > AREA.min.y {
                    let _ = columns.set_block(block, BlockId::AIR);
                }
            }
        }
    }
    let mut bots = region.query_filtered::<(Entity, &Position), With<Bot>>();
    let hit: Vec<Entity> =
        bots.iter(region).filter(|(_, position)| is_near(position.block)).map(|(bot, _)| bot).collect();
    for bot in hit {
        region.despawn(bot);
    }
}

/// Moves bots straight on and up low steps, and turns them at walls, holes and the edge of the court.
fn run(
    time: Res<Time>,
    blocks: RegionBlocks,
    mut random: ResMut<RegionRandom>,
    mut bots: Query<(&mut Bot, &mut Position)>,
) {
    let seconds = time.delta_secs_f64().min(0.25);
    for (mut bot, mut position) in &mut bots {
        let step = DVec2::from_angle(bot.heading) * SPEED * seconds;
        let mut next = *position;
        next.translate(Vec3::new(step.x as f32, 0.0, step.y as f32));
        let away = DVec2::new(next.block.x as f64, next.block.z as f64).length();
        match footing(&blocks, next.block).filter(|_| away < COURT) {
            Some(feet) => {
                next.block.y = feet;
                next.offset.y = 0.0;
                *position = next;
            }
            None => bot.heading += 1.2 + f64::from(random.0.unit()) * 2.5,
        }
    }
}

/// The height of the feet of a bot that comes from this height, after a step up or down or a fall.
fn footing(blocks: &RegionBlocks, from: BlockPos) -> Option<i64> {
    let is_free = |y: i64| blocks.block(BlockPos { y, ..from }).is_ok_and(|block| block == BlockId::AIR);
    let feet = (AREA.min.y..=from.y + 1).rev().find(|y| !is_free(y - 1))?;
    (is_free(feet) && is_free(feet + 1)).then_some(feet)
}
