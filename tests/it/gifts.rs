//! Entities dig, build, drop, fill chests, give and hit, while the process is killed and regions halt. Nothing of it is lost or there twice.
//!
//! What they have is counted in blocks: each dug block is in a bag, in an item on the ground, in a chest, or in a gift on its way.

use crate::disk::Disk;
use crate::faults::THERE;
use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::{Address, SplitMix64};
use bevy_terrane::view::RegionOrder;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use uuid::Uuid;

/// The blocks that a bot has.
#[derive(Component, Clone, Debug, Default, PartialEq, Serialize, Deserialize, TypePath)]
struct Bag(u32);

/// Blocks that lie on the ground or, if it is a chest, are kept there.
#[derive(Component, Clone, Debug, PartialEq, Serialize, Deserialize, TypePath)]
struct Pile {
    blocks: u32,
    is_chest: bool,
}

/// A block from a bot to another one, which may be in another region.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TypePath)]
struct Gift {
    from: Uuid,
}

/// Digs the block at this place, or builds with one from the bag.
#[derive(Serialize, Deserialize, TypePath)]
struct DigOrBuild(BlockPos);

impl Action for DigOrBuild {
    fn apply(&self, context: &mut ActionContext) -> Result<(), Refusal> {
        let stone = context.types().id("terrane:stone").unwrap();
        match context.block(self.0)? {
            BlockId::AIR => {
                let bag = context.get_mut::<Bag>()?;
                bag.0 = bag.0.checked_sub(1).ok_or(Refusal::because("the bag is empty"))?;
                context.set_block(self.0, stone)?;
            }
            _ => {
                context.set_block(self.0, BlockId::AIR)?;
                context.get_mut::<Bag>()?.0 += 1;
            }
        }
        Ok(())
    }
}

/// Puts a block from the bag on a pile, or on a new one. What lies there already is gathered by `gather`.
#[derive(Serialize, Deserialize, TypePath)]
struct Drop {
    is_chest: bool,
}

impl Action for Drop {
    fn apply(&self, context: &mut ActionContext) -> Result<(), Refusal> {
        let bag = context.get_mut::<Bag>()?;
        bag.0 = bag.0.checked_sub(1).ok_or(Refusal::because("the bag is empty"))?;
        Ok(())
    }

    fn effects(&self, done: &ActionDone, region: &mut World) {
        let place = *region.get::<Position>(done.actor).unwrap();
        let mut chests = region.query::<(&mut Pile, &Position)>();
        let chest =
            chests.iter_mut(region).find(|(pile, at)| pile.is_chest && self.is_chest && at.block == place.block);
        match chest {
            Some((mut chest, _)) => chest.blocks += 1,
            None => drop(region.spawn((place, Pile { blocks: 1, is_chest: self.is_chest }))),
        }
    }
}

/// Gives a block to another bot.
#[derive(Serialize, Deserialize, TypePath)]
struct Give(Uuid);

impl Action for Give {
    fn apply(&self, context: &mut ActionContext) -> Result<(), Refusal> {
        Action::apply(&Drop { is_chest: false }, context)
    }

    fn effects(&self, done: &ActionDone, region: &mut World) {
        let from = region.get::<StableId>(done.actor).unwrap().0;
        region.resource_mut::<Post>().send(Address::Entity(self.0), Gift { from });
    }
}

/// A hit, after which a block falls out of the bag.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TypePath)]
struct Blow;

/// Hits another bot.
#[derive(Serialize, Deserialize, TypePath)]
struct Hit(Uuid);

impl Action for Hit {
    fn apply(&self, _: &mut ActionContext) -> Result<(), Refusal> {
        Ok(())
    }

    fn effects(&self, _: &ActionDone, region: &mut World) {
        region.resource_mut::<Post>().send(Address::Entity(self.0), Blow);
    }
}

fn suffer(mut blows: MessageReader<Received<Blow>>, mut bags: Query<(&mut Bag, &Position)>, mut commands: Commands) {
    for blow in blows.read() {
        let Some((mut bag, place)) = blow.entity.and_then(|entity| bags.get_mut(entity).ok()) else { continue };
        if let Some(left) = bag.0.checked_sub(1) {
            bag.0 = left;
            commands.spawn((*place, Pile { blocks: 1, is_chest: false }));
        }
    }
}

/// Puts gifts that come, or come back, into bags.
fn receive(
    mut gifts: MessageReader<Received<Gift>>,
    mut returned: MessageReader<Returned<Gift>>,
    index: Res<EntityIndex>,
    mut bags: Query<&mut Bag>,
    mut commands: Commands,
    info: Res<RegionInfo>,
) {
    let given = gifts.read().filter_map(|gift| gift.entity);
    let back: Vec<_> = returned.read().map(|gift| index.entity(gift.message.from)).collect();
    for entity in given.map(Some).chain(back) {
        match entity.and_then(|entity| bags.get_mut(entity).ok()) {
            Some(mut bag) => bag.0 += 1,
            // The giver is elsewhere: the gift lies where it came back.
            None => drop(commands.spawn((
                Position::new(info.dimension, if info.region.index() == 0 { HERE } else { THERE }),
                Pile { blocks: 1, is_chest: false },
            ))),
        }
    }
}

/// Picks up piles that are no chests, in some ticks.
fn gather(mut bags: Query<&mut Bag>, piles: Query<(Entity, &Pile)>, mut commands: Commands, info: Res<RegionInfo>) {
    if !info.ticks.is_multiple_of(5) {
        return;
    }
    let Some(mut bag) = bags.iter_mut().next() else { return };
    for (entity, pile) in piles.iter().filter(|(_, pile)| !pile.is_chest) {
        bag.0 += pile.blocks;
        commands.entity(entity).despawn();
    }
}

const BOTS: u64 = 100;
/// The groups of blocks that they dig and build, half of them at each home.
const GROUPS: u64 = 8;

fn bot(number: u64) -> Uuid {
    Uuid::from_u128(0xb07_0000 + u128::from(number))
}

/// The home of a bot: half of them live here, half of them there.
fn home(number: u64) -> BlockPos {
    [HERE, THERE][number as usize % 2]
}

/// The blocks that they dig and build.
fn site(group: u64, place: u64) -> BlockPos {
    let BlockPos { x, .. } = home(group);
    BlockPos::new(x + (group / 2 * 4 + place % 4) as i64 - 8, -1, (place / 4) as i64)
}

const SITES: u64 = 12;

fn world(plugin: TerranePlugin) -> (App, DimensionId) {
    let mut app = App::new();
    app.add_plugins((MinimalPlugins, plugin))
        .register_saved_component::<Bag>()
        .mirror_region_component::<Bag>()
        .register_saved_component::<Pile>()
        .mirror_region_component::<Pile>()
        .register_shared_message::<Gift>()
        .register_action::<DigOrBuild>()
        .register_action::<Drop>()
        .register_action::<Give>()
        .register_action::<Hit>()
        .register_shared_message::<Blow>()
        .add_region_plugins(|region| {
            region.add_systems(RegionTick, (receive, suffer, gather).chain());
        });
    listen::<WorldSaved>(&mut app);
    listen::<ActionAnswer>(&mut app);
    let dimension = flat(&mut app);
    for block in [HERE, THERE] {
        viewer(&mut app, dimension, block.x as f32, 0.0, 1);
    }
    start(&mut app);
    (app, dimension)
}

fn begin(app: &mut App, dimension: DimensionId) {
    for number in 0..BOTS {
        let bundle = (StableId(bot(number)), Actor::default(), Bag(5));
        app.world_mut().commands().spawn_in_region(dimension, home(number), bundle);
    }
    app.world_mut().flush();
}

/// All that they dig with, and all that they have, as the main world knows it from the regions.
fn count(world: &mut World, dimension: DimensionId) -> Option<u64> {
    let bags: Vec<u32> = world.query_filtered::<&Bag, With<Mirror>>().iter(world).map(|bag| bag.0).collect();
    if bags.len() < BOTS as usize {
        return None;
    }
    let mut all: u64 = bags.into_iter().map(u64::from).sum();
    all += world.query_filtered::<&Pile, With<Mirror>>().iter(world).map(|pile| u64::from(pile.blocks)).sum::<u64>();
    for group in 0..GROUPS {
        for place in 0..SITES {
            all += u64::from(block_at(world, dimension, site(group, place))? != BlockId::AIR);
        }
    }
    Some(all)
}

const ALL: u64 = BOTS * 5 + GROUPS * SITES;

/// Lets a bot do something.
fn play(app: &mut App, random: &mut SplitMix64, dimension: DimensionId) {
    let number = u64::from(random.below(BOTS as u32));
    let actor = bot(number);
    match random.below(9) {
        0..4 => {
            let site = site(number % GROUPS, u64::from(random.below(SITES as u32)));
            act(app, actor, DigOrBuild(site));
        }
        4 => drop(act(app, actor, Drop { is_chest: random.below(2) == 0 })),
        5 | 6 => drop(act(app, actor, Give(bot(u64::from(random.below(BOTS as u32)))))),
        7 => drop(act(app, actor, Hit(bot(u64::from(random.below(BOTS as u32)))))),
        // It goes to the other region, or back, which changes its reach.
        _ => {
            let to = [HERE, THERE][random.below(2) as usize];
            app.world_mut().commands().run_on_region_entity(
                actor,
                0,
                move |mut entity| {
                    entity.insert(Position::new(dimension, to));
                },
                |_, _| {},
            );
            app.world_mut().flush();
        }
    }
}

/// Checks that the present content of a disk is a consistent world, in which gifts that were on their way arrive.
fn check(disk: &Disk, when: &str) {
    let (mut app, dimension) = world(TerranePlugin { tick_mode: TickMode::Lockstep, ..disk.plugin() });
    update(&mut app, 16);
    assert_eq!(count(app.world_mut(), dimension), Some(ALL), "{when}");
}

/// Plays in lockstep, with other times of turns and commits for each seed. Sometimes a region halts and is restarted from the
/// store. Returns the number of checked moments.
fn play_on(seed: u64, halts: bool) -> u64 {
    let disk = Disk::default();
    let mut random = SplitMix64::new(seed);
    let period = Duration::from_millis([100, 350, 900, 3_600_000][seed as usize % 4]);
    let plugin =
        TerranePlugin { tick_mode: TickMode::Lockstep, saving: SaveSettings::every(period), seed, ..disk.plugin() };
    let (mut app, dimension) = world(plugin);
    update(&mut app, 10);
    begin(&mut app, dimension);
    update(&mut app, 3);
    save(&mut app);
    assert_eq!(count(app.world_mut(), dimension), Some(ALL));
    disk.keep_copies();
    let mut moments = 0;
    let mut halted: Option<(ColumnPos, u64)> = None;
    for tick in 0..80 {
        if random.below(9) == 0 {
            app.world_mut().write_message(SaveWorld { request: tick + 1 });
        }
        match halted {
            None if halts && random.below(10) == 0 => {
                let column = [HERE, THERE][random.below(2) as usize].column();
                order(&mut app, dimension, column, RegionOrder::Halt);
                halted = Some((column, tick + 6 + u64::from(random.below(6))));
            }
            Some((column, until)) if until <= tick => {
                order(&mut app, dimension, column, RegionOrder::Restart);
                halted = None;
            }
            _ => {}
        }
        (0..10).for_each(|_| play(&mut app, &mut random, dimension));
        app.update();
        for copy in disk.take_copies() {
            check(&copy, &format!("seed {seed}, after tick {tick}"));
            moments += 1;
        }
    }
    if let Some((column, _)) = halted {
        order(&mut app, dimension, column, RegionOrder::Restart);
    }
    update(&mut app, 20);
    assert_eq!(count(app.world_mut(), dimension), Some(ALL), "seed {seed}, at the end");
    let done = heard::<ActionAnswer>(&app).iter().filter(|answer| answer.outcome == ActionOutcome::Done).count();
    assert!(done > 40, "only {done} actions were done");
    drop(app);
    check(&disk, &format!("seed {seed}, after the end"));
    moments + 1
}

/// Promise, actions: What an action does, its effects, and the registered letters that it sends are saved as one.
#[test]
fn after_a_crash_blocks_and_items_are_conserved_in_any_order_of_saves() {
    let moments: u64 = (0..rounds(4)).map(|seed| play_on(seed, false)).sum();
    assert!(moments > 10 * rounds(4), "only {moments} moments");
}

/// Promise, actions: What an action does, its effects, and the registered letters that it sends are saved as one.
#[test]
fn after_a_halt_blocks_and_items_are_conserved() {
    let moments: u64 = (0..rounds(4)).map(|seed| play_on(seed, true)).sum();
    assert!(moments > 5 * rounds(4), "only {moments} moments");
}

#[cfg(feature = "rocksdb")]
mod killed {
    use super::*;
    use crate::support::process::{here, kill, process};
    use bevy_terrane::plugin::SaveDurability;

    /// The prefix of the line that the process writes after counting, with the result.
    const FOUND: &str = "found";

    /// Runs only in the process that the test below starts and kills; otherwise it does nothing.
    #[test]
    fn process_that_plays() {
        let Some(path) = here() else { return };
        let is_new = !path.exists();
        let saving =
            SaveSettings { durability: SaveDurability::AtShutdown, ..SaveSettings::every(Duration::from_millis(40)) };
        let clock = DimensionClock { ticks_per_second: 200.0, ..default() };
        let (mut app, dimension) = world(TerranePlugin { clock, saving, ..TerranePlugin::at(&path) });
        if is_new {
            begin(&mut app, dimension);
        }
        update_until(&mut app, "all is there", |world| count(world, dimension).is_some());
        if is_new {
            save(&mut app);
        }
        // Gifts that were on their way arrive, and duplicates would arrive too.
        let ticks = app.world().resource::<WorldStatistics>().ticks;
        update_until(&mut app, "all regions ticked", |world| world.resource::<WorldStatistics>().ticks > ticks + 40);
        let began = std::time::Instant::now();
        update_until(&mut app, "all gifts have arrived", |world| {
            count(world, dimension) == Some(ALL) || began.elapsed() > Duration::from_secs(10)
        });
        println!("\n{FOUND} {:?}", count(app.world_mut(), dimension));
        let mut random = SplitMix64::new(std::process::id().into());
        loop {
            (0..4).for_each(|_| play(&mut app, &mut random, dimension));
            app.update();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// `TERRANE_ROUNDS=50` kills 1,000 times.
    ///
    /// Promise, crashes: Whenever the process is killed, blocks and items are conserved, with letters of registered types between regions.
    #[test]
    fn bots_that_dig_build_and_give_are_killed_and_everything_is_there_once() {
        let mut random = SplitMix64::new(rounds(20));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("world");
        let expected = format!("{FOUND} {:?}", Some(ALL));
        for round in 0..=rounds(20) {
            let (mut process, mut lines) = process("gifts::killed::process_that_plays", &path);
            let found = lines.find(|line| line.starts_with(FOUND));
            std::thread::sleep(Duration::from_micros(random.below(120_000).into()));
            kill(&mut process);
            assert_eq!(found.as_deref(), Some(&*expected), "after {round} kills");
        }
    }
}
