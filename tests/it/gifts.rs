//! Entities dig, build, drop, fill chests, give and hit, while the process is killed and regions halt. Nothing of it is lost or there twice.
//!
//! What they have is counted in blocks: each dug block is in a bag, in an item on the ground, in a chest, or in a gift on its way.

use crate::disk::Disk;
use crate::faults::THERE;
use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::{Address, SplitMix64};
use bevy_terrane::storage::StorageConfig;
use bevy_terrane::view::{DimensionClosed, LetterLost, RegionOrder};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// The blocks that a bot has.
#[derive(Component, Clone, Debug, Default, PartialEq, Serialize, Deserialize, TypePath)]
struct Bag(u32);

/// Blocks that lie on the ground.
#[derive(Component, Clone, Debug, PartialEq, Serialize, Deserialize, TypePath)]
struct Pile(u32);

/// A block with a number of blocks in it, as a block component.
const CHEST: &str = "test:chest";
const IN_CHEST: &str = "test:in_chest";

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
                take(context)?;
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

fn take(context: &mut ActionContext) -> Result<(), Refusal> {
    let bag = context.get_mut::<Bag>()?;
    bag.0 = bag.0.checked_sub(1).ok_or(Refusal::because("the bag is empty"))?;
    Ok(())
}

/// Drops a block from the bag. `gather` finds it.
#[derive(Serialize, Deserialize, TypePath)]
struct Drop;

impl Action for Drop {
    fn apply(&self, context: &mut ActionContext) -> Result<(), Refusal> {
        take(context)
    }

    fn effects(&self, done: &ActionDone, region: &mut World) {
        let place = *region.get::<Position>(done.actor).unwrap();
        region.spawn((place, Pile(1)));
    }
}

/// Puts a block from the bag into a chest, or takes one out of it.
#[derive(Serialize, Deserialize, TypePath)]
struct Fill {
    chest: BlockPos,
    takes: bool,
}

impl Action for Fill {
    fn apply(&self, context: &mut ActionContext) -> Result<(), Refusal> {
        let stored: u32 = context.component_as(self.chest, IN_CHEST)?.ok_or(Refusal::because("there is no chest"))?;
        let left = match self.takes {
            false => {
                take(context)?;
                stored + 1
            }
            true => {
                context.get_mut::<Bag>()?.0 += 1;
                stored.checked_sub(1).ok_or(Refusal::because("the chest is empty"))?
            }
        };
        context.set_component_as(self.chest, IN_CHEST, &left)
    }
}

/// Gives a block to another bot.
#[derive(Serialize, Deserialize, TypePath)]
struct Give(Uuid);

impl Action for Give {
    fn apply(&self, context: &mut ActionContext) -> Result<(), Refusal> {
        take(context)
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
            commands.spawn((*place, Pile(1)));
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
            None => {
                let home = if info.region.index() == 0 { HERE } else { THERE };
                commands.spawn((Position::new(info.dimension, home), Pile(1)));
            }
        }
    }
}

/// Picks up piles, in some ticks.
fn gather(mut bags: Query<&mut Bag>, piles: Query<(Entity, &Pile)>, mut commands: Commands, info: Res<RegionInfo>) {
    if !info.ticks.is_multiple_of(5) {
        return;
    }
    let Some(mut bag) = bags.iter_mut().next() else { return };
    for (entity, pile) in &piles {
        bag.0 += pile.0;
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

/// A chest at each home.
fn chests() -> [BlockPos; 2] {
    [HERE, THERE].map(|home| home.offset(0, 0, -2))
}

fn world(plugin: TerranePlugin) -> (App, DimensionId) {
    let mut app = App::new();
    app.add_plugins((MinimalPlugins, plugin));
    app.register_block_component(BlockComponent::fixed::<u32>(IN_CHEST)).unwrap();
    app.register_block(BlockType::new(CHEST).with_component(IN_CHEST)).unwrap();
    app.register_saved_component::<Bag>()
        .mirror_region_component::<Bag>()
        .register_saved_component::<Pile>()
        .mirror_region_component::<Pile>()
        .register_shared_message::<Gift>()
        .register_action::<DigOrBuild>()
        .register_action::<Drop>()
        .register_action::<Fill>()
        .register_action::<Give>()
        .register_action::<Hit>()
        .register_shared_message::<Blow>()
        .add_region_plugins(|region| {
            region.add_systems(RegionTick, (explode, receive, suffer, gather).chain());
        });
    listen::<ActionAnswer>(&mut app);
    listen::<LetterLost>(&mut app);
    listen::<Returned<Gift>>(&mut app);
    let dimension = flat(&mut app);
    for block in [HERE, THERE] {
        viewer(&mut app, dimension, block.x as f32, 0.0, 1);
    }
    start(&mut app);
    (app, dimension)
}

fn await_ground(app: &mut App, dimension: DimensionId) {
    update_until(app, "the ground is there", |world| {
        [HERE, THERE].iter().all(|home| block_at(world, dimension, *home).is_some())
    });
}

fn begin(app: &mut App, dimension: DimensionId) {
    for number in 0..BOTS {
        let bundle = (StableId(bot(number)), Actor::default(), Bag(5));
        app.world_mut().commands().spawn_in_region(dimension, home(number), bundle);
    }
    let block = id_of(app.world(), CHEST);
    chests()
        .into_iter()
        .for_each(|position| _ = app.world_mut().write_message(SetBlock { dimension, position, block }));
    app.world_mut().flush();
}

/// All that they dig with, and all that they have, as the main world knows it from the regions.
fn count(world: &mut World, dimension: DimensionId) -> Option<u64> {
    let bags: Vec<u32> = world.query_filtered::<&Bag, With<Mirror>>().iter(world).map(|bag| bag.0).collect();
    if bags.len() < BOTS as usize {
        return None;
    }
    let mut all: u64 = bags.into_iter().map(u64::from).sum();
    all += world.query_filtered::<&Pile, With<Mirror>>().iter(world).map(|pile| u64::from(pile.0)).sum::<u64>();
    let component = world.resource::<BlockTypes>().component(IN_CHEST)?;
    for chest in chests() {
        let chunk = world.resource::<PublishedColumns>().column(dimension, chest.column())?.chunk(chest.chunk().y)?;
        all += u64::from(chunk.component_as::<u32>(chest.in_chunk(), 0, component).unwrap()?);
    }
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
    match random.below(10) {
        0..4 => {
            let site = site(number % GROUPS, u64::from(random.below(SITES as u32)));
            act(app, actor, DigOrBuild(site));
        }
        4 => drop(act(app, actor, Drop)),
        8 => {
            let (chest, takes) = (chests()[number as usize % 2], random.below(2) == 0);
            act(app, actor, Fill { chest, takes });
        }
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

/// Settings for a server that shares the world of a disk with others.
fn shared(disk: &Disk, plugin: TerranePlugin) -> TerranePlugin {
    let storage = StorageConfig::Shared { store: Arc::new(disk.clone()), address: b"gifts".to_vec() };
    TerranePlugin { storage, ..plugin }
}

/// Checks that the present content of a disk is a consistent world, in which gifts that were on their way arrive once.
fn check(disk: &Disk, as_server: bool, when: &str) {
    let plugin = TerranePlugin { tick_mode: TickMode::Lockstep, ..disk.plugin() };
    let (mut app, dimension) = world(if as_server { shared(disk, plugin) } else { plugin });
    await_all(&mut app, dimension, when);
}

/// Updates until everything is there, and a little longer.
fn await_all(app: &mut App, dimension: DimensionId, when: &str) {
    let mut updates = 0;
    update_until(app, "the bots are there", |world| count(world, dimension).is_some());
    // Servers ask the store for what is on its way four times a second.
    while count(app.world_mut(), dimension) != Some(ALL) && updates < 1_000 {
        update(app, 1);
        updates += 1;
        std::thread::sleep(Duration::from_millis(1));
    }
    update(app, 16);
    let found = count(app.world_mut(), dimension);
    let (lost, back) = (heard::<LetterLost>(app), heard::<Returned<Gift>>(app));
    assert_eq!(found, Some(ALL), "{when}; lost: {lost:?}, in the main world: {back:?}");
}

/// Plays in lockstep, with other times of turns and commits for each seed. Sometimes a region halts and is restarted from the
/// store. The world is this process's, or shared with other servers. Returns the number of checked moments.
fn play_on(seed: u64, halts: bool, is_shared: bool) -> u64 {
    let disk = Disk::default();
    let plugin = disk.lockstep(seed);
    let (mut app, dimension) = world_with_bots(if is_shared { shared(&disk, plugin) } else { plugin });
    let step = |app: &mut App, random: &mut SplitMix64| (0..10).for_each(|_| play(app, random, dimension));
    let check_after = |disk: &Disk, update| {
        if is_shared {
            disk.end_servers();
        }
        check(disk, is_shared && update % 2 == 0, &format!("seed {seed}, after update {update}"));
    };
    let place = (dimension, [HERE, THERE]);
    let moments = disk.play(&mut app, place, (80, halts), &mut SplitMix64::new(seed), step, check_after);
    await_all(&mut app, dimension, &format!("seed {seed}, at the end"));
    let done = heard::<ActionAnswer>(&app).iter().filter(|answer| answer.outcome == ActionOutcome::Done).count();
    assert!(done > 40, "only {done} actions were done");
    drop(app);
    check(&disk, is_shared, &format!("seed {seed}, after the end"));
    moments + 1
}

/// Promise, actions: What an action does, its effects, and the registered letters that it sends are saved as one.
#[test]
fn after_a_crash_blocks_and_items_are_conserved_in_any_order_of_saves() {
    let moments: u64 = (0..rounds(4)).map(|seed| play_on(seed, false, false)).sum();
    assert!(moments > 10 * rounds(4), "only {moments} moments");
}

/// Promise, actions: What an action does, its effects, and the registered letters that it sends are saved as one.
#[test]
fn after_a_halt_blocks_and_items_are_conserved() {
    let moments: u64 = (0..rounds(4)).map(|seed| play_on(seed, true, false)).sum();
    assert!(moments > 5 * rounds(4), "only {moments} moments");
}

/// Promise, servers: Registered letters between regions of one of several servers are stored on their way too.
#[test]
fn after_a_crash_of_one_of_several_servers_blocks_and_items_are_conserved() {
    let moments: u64 = (0..rounds(4)).map(|seed| play_on(seed, seed % 2 == 1, true)).sum();
    assert!(moments > 10 * rounds(4), "only {moments} moments");
}

/// A region that gets a gift back while it has a fuse explodes.
#[derive(Resource)]
struct Fuse;

fn explode(returned: MessageReader<Returned<Gift>>, fuse: Option<Res<Fuse>>) {
    assert!(fuse.is_none() || returned.is_empty(), "a gift exploded");
}

/// A world with bots, everything saved.
fn world_with_bots(plugin: TerranePlugin) -> (App, DimensionId) {
    let (mut app, dimension) = world(plugin);
    await_ground(&mut app, dimension);
    begin(&mut app, dimension);
    update_until(&mut app, "all is there", |world| count(world, dimension) == Some(ALL));
    save(&mut app);
    (app, dimension)
}

/// Promise, actions: A registered letter that comes back into a region that halts is not lost: the main world gets it.
#[test]
fn a_gift_that_comes_back_into_a_region_that_panics_is_kept() {
    let (mut app, dimension) = world_with_bots(TerranePlugin::in_memory());
    in_region(&mut app, dimension, HERE, |world| world.insert_resource(Fuse));
    let nobody = Uuid::from_u128(1);
    act(&mut app, bot(0), Give(nobody));
    let column = HERE.column();
    update_until(&mut app, "the region halts", |world| {
        region_at(world, dimension, column).is_some_and(|region| region.halted)
    });
    order(&mut app, dimension, column, RegionOrder::Restart);
    update_until(&mut app, "the main world has it back", |world| {
        !world.resource::<Heard<Returned<Gift>>>().0.is_empty()
    });
    update_until(&mut app, "all others are there", |world| count(world, dimension) == Some(ALL - 1));
    save(&mut app);
    update(&mut app, 60);
    assert_eq!((count(app.world_mut(), dimension), heard::<Returned<Gift>>(&app).len()), (Some(ALL - 1), 1));
    assert_eq!(heard::<Returned<Gift>>(&app)[0].message, Gift { from: bot(0) });
}

/// Promise, actions: A dimension closes while registered letters are on their way, and nothing is lost or doubled when it opens again.
#[test]
fn a_dimension_with_gifts_on_their_way_closes_and_opens() {
    let (mut app, dimension) = world_with_bots(lockstep());
    listen::<DimensionClosed>(&mut app);
    let mut random = SplitMix64::new(3);
    for round in 0..4 {
        for _ in 0..60 {
            let [from, to] = [(); 2].map(|()| u64::from(random.below(BOTS as u32)));
            act(&mut app, bot(from), Give(bot(to)));
        }
        update(&mut app, round);
        despawn_dimension(&mut app, dimension);
        update_until(&mut app, "it is closed", |world| world.resource::<Heard<DimensionClosed>>().0.len() == round + 1);
        assert_eq!(flat(&mut app), dimension);
        await_all(&mut app, dimension, &format!("round {round}"));
    }
}

#[cfg(feature = "rocksdb")]
mod killed {
    use super::*;
    use crate::support::process::{here, kill_again_and_again};
    use bevy_terrane::plugin::SaveDurability;

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
            await_ground(&mut app, dimension);
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
        println!("\nfound {:?}", count(app.world_mut(), dimension));
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
        let expected = format!("found {:?}", Some(ALL));
        kill_again_and_again("gifts::killed::process_that_plays", rounds(20), &expected);
    }
}
