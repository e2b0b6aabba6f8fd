//! The classic: a player puts an item into a chest and walks into another region while the process is killed. In any order
//! of saves and halts, the item is there exactly once.

use crate::disk::Disk;
use crate::faults::THERE;
use crate::support::*;
use bevy_terrane::plugin::SaveDurability;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::SplitMix64;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The items of a player. It has two: one that it puts into a chest, and one that it lays beside it.
#[derive(Component, Clone, Debug, PartialEq, Serialize, Deserialize, TypePath)]
struct Inventory {
    coin: bool,
    apple: bool,
}

/// An item on the ground.
#[derive(Component, Clone, Debug, PartialEq, Serialize, Deserialize, TypePath)]
struct Item;

/// `true` if the player plays.
#[derive(Resource, Clone, Default)]
struct Plays(Arc<AtomicBool>);

/// The chest of each region: a block that shows whether it contains something.
fn chest(player: &Position) -> BlockPos {
    let BlockPos { x, y, z } = if player.block.x < 1_000 { HERE } else { THERE };
    BlockPos::new(x + 1, y, z)
}

/// In each tick the player puts down its items or takes those that it finds, and walks into the other region.
fn play(
    plays: Res<Plays>,
    types: Res<BlockTypes>,
    mut blocks: RegionBlocks,
    mut players: Query<(&mut Inventory, &mut Position), Without<Item>>,
    items: Query<Entity, With<Item>>,
    mut commands: Commands,
) {
    let id = |name| types.id(name).expect("a block of the game");
    if !plays.0.load(Ordering::SeqCst) {
        return;
    }
    for (mut inventory, mut position) in &mut players {
        let chest = chest(&position);
        let Ok(found) = blocks.block(chest) else { continue };
        if inventory.coin && inventory.apple {
            blocks.set_block(chest, id("game:full_chest")).expect("its own ground");
            commands.spawn((Position::new(position.dimension, chest), Item));
            *inventory = Inventory { coin: false, apple: false };
        } else if found == id("game:full_chest")
            && let Some(item) = items.iter().next()
        {
            blocks.set_block(chest, id("game:empty_chest")).expect("its own ground");
            commands.entity(item).despawn();
            *inventory = Inventory { coin: true, apple: true };
        }
        let other = if position.block.x < 1_000 { THERE } else { HERE };
        *position = Position::new(position.dimension, other);
    }
}

fn world(plugin: TerranePlugin) -> (App, DimensionId, Plays) {
    let mut app = App::new();
    app.add_plugins((MinimalPlugins, plugin))
        .register_saved_component::<Inventory>()
        .register_saved_component::<Item>()
        .mirror_region_component::<Inventory>()
        .mirror_region_component::<Item>();
    for name in ["game:empty_chest", "game:full_chest"] {
        app.register_block(BlockType::new(name)).unwrap();
    }
    let plays = Plays::default();
    let copy = plays.clone();
    app.add_region_plugins(move |region| {
        region.insert_resource(copy.clone()).add_systems(RegionTick, play);
    });
    let dimension = flat(&mut app);
    for block in [HERE, THERE] {
        viewer(&mut app, dimension, block.x as f32, 0.0, 0);
    }
    start(&mut app);
    (app, dimension, plays)
}

/// The number of coins and apples, if the player is there.
fn count(world: &mut World, dimension: DimensionId) -> Option<(usize, usize)> {
    let player = world.query_filtered::<&Inventory, With<Mirror>>().single(world).ok()?.clone();
    let full = world.resource::<BlockTypes>().id("game:full_chest")?;
    let mut coins = usize::from(player.coin);
    for block in [HERE, THERE] {
        let chest = BlockPos::new(block.x + 1, block.y, block.z);
        coins += usize::from(block_at(world, dimension, chest)? == full);
    }
    let apples = world.query_filtered::<&Item, With<Mirror>>().iter(world).count();
    Some((coins, usize::from(player.apple) + apples))
}

/// Spawns a player with both items in a new world.
fn begin(app: &mut App, dimension: DimensionId) {
    let player = (Inventory { coin: true, apple: true }, Viewer::new().with_radius(0));
    app.world_mut().commands().spawn_in_region(dimension, HERE, player);
    app.world_mut().flush();
}

/// Checks that the present content of a disk is a consistent world.
fn check(disk: &Disk, when: &str) {
    let (mut app, dimension, _) = world(TerranePlugin { tick_mode: TickMode::Lockstep, ..disk.plugin() });
    update(&mut app, 16);
    assert_eq!(count(app.world_mut(), dimension), Some((1, 1)), "{when}");
}

/// Plays in lockstep, with other times of turns and commits for each seed. Sometimes a region halts and is restarted from the
/// store. Returns the number of checked moments.
fn play_on(seed: u64, halts: bool) -> u64 {
    let disk = Disk::default();
    let (mut app, dimension, plays) = world(disk.lockstep(seed));
    update(&mut app, 10);
    begin(&mut app, dimension);
    update(&mut app, 3);
    save(&mut app);
    plays.0.store(true, Ordering::SeqCst);
    let place = (dimension, [HERE, THERE]);
    let check_after = |disk: &Disk, update| check(disk, &format!("seed {seed}, after update {update}"));
    let moments = disk.play(&mut app, place, (60, halts), &mut SplitMix64::new(seed), |_, _| {}, check_after);
    plays.0.store(false, Ordering::SeqCst);
    update(&mut app, 20);
    assert_eq!(count(app.world_mut(), dimension), Some((1, 1)), "seed {seed}, at the end");
    drop(app);
    check(&disk, &format!("seed {seed}, after the end"));
    moments + 1
}

/// Promise, crashes: A crash neither loses nor duplicates anything that moves between regions.
#[test]
fn after_a_crash_each_item_exists_once_in_any_order_of_saves() {
    let moments: u64 = (0..rounds(4)).map(|seed| play_on(seed, false)).sum();
    assert!(moments > 10 * rounds(4), "only {moments} moments");
}

#[test]
fn a_region_that_halts_and_is_restarted_from_the_store_has_each_item_once() {
    let moments: u64 = (0..rounds(4)).map(|seed| play_on(seed, true)).sum();
    assert!(moments > 5 * rounds(4), "only {moments} moments");
}

#[cfg(feature = "rocksdb")]
mod killed {
    use super::*;
    use crate::support::process::{here, kill_again_and_again};

    /// Runs only in the process that `a_player_that_walks_between_regions_is_killed_and_each_item_is_there_once` starts and
    /// kills; otherwise it does nothing.
    #[test]
    fn process_that_plays() {
        let Some(path) = here() else { return };
        let is_new = !path.exists();
        // Regions are saved often and in turns: sometimes the giving region is first, sometimes the receiving one.
        let saving =
            SaveSettings { durability: SaveDurability::AtShutdown, ..SaveSettings::every(Duration::from_millis(40)) };
        let (mut app, dimension, plays) = world(TerranePlugin {
            clock: DimensionClock { ticks_per_second: 200.0, ..default() },
            saving,
            ..TerranePlugin::at(&path)
        });
        if is_new {
            begin(&mut app, dimension);
        }
        update_until(&mut app, "the player is there", |world| count(world, dimension).is_some());
        if is_new {
            save(&mut app);
        }
        // A duplicate would have arrived by then.
        let ticks = app.world().resource::<WorldStatistics>().ticks;
        update_until(&mut app, "all regions ticked", |world| world.resource::<WorldStatistics>().ticks > ticks + 10);
        let (coins, apples) = count(app.world_mut(), dimension).expect("the player is there");
        println!("\nfound {coins} {apples}");
        plays.0.store(true, Ordering::SeqCst);
        loop {
            app.update();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// `TERRANE_ROUNDS=10` kills 500 times.
    ///
    /// Promise, crashes: Whenever the process is killed, each item is there exactly once.
    #[test]
    fn a_player_that_walks_between_regions_is_killed_and_each_item_is_there_once() {
        kill_again_and_again("items::killed::process_that_plays", rounds(50), "found 1 1");
    }
}
