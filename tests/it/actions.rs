//! What an entity does is one action: shown at once, done once, and saved with its effects.

mod clients;
mod moving;

use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::storage::MemoryStore;
use bevy_terrane::view::{ActionId, LogIn, PlayerLoggedIn, RegionOrder};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use uuid::Uuid;

/// The blocks that an entity has.
#[derive(Component, Clone, Debug, Default, PartialEq, Serialize, Deserialize, TypePath)]
pub struct Bag(pub u32);

/// An item on the ground.
#[derive(Component, Clone, Debug, Default, PartialEq, Serialize, Deserialize, TypePath)]
struct Item(u32);

/// Puts a block into the bag.
#[derive(Clone, Serialize, Deserialize, TypePath)]
pub struct Dig(pub BlockPos);

impl Action for Dig {
    fn apply(&self, context: &mut ActionContext) -> Result<(), Refusal> {
        if context.set_block(self.0, BlockId::AIR)? == BlockId::AIR {
            return Err(Refusal::because("there is nothing to dig"));
        }
        context.get_mut::<Bag>()?.0 += 1;
        Ok(())
    }
}

/// Builds with a block from the bag.
#[derive(Clone, Serialize, Deserialize, TypePath)]
struct Build(BlockPos);

impl Action for Build {
    fn apply(&self, context: &mut ActionContext) -> Result<(), Refusal> {
        let stone = context.types().id("terrane:stone").unwrap();
        context.get_mut::<Bag>()?.0 = context.get::<Bag>()?.0.checked_sub(1).ok_or(Refusal::because("it is empty"))?;
        match context.set_block(self.0, stone)? {
            BlockId::AIR => Ok(()),
            _ => Err(Refusal::because("there is a block already")),
        }
    }
}

/// Drops all blocks as an item.
#[derive(Clone, Serialize, Deserialize, TypePath)]
struct Drop {
    explodes: bool,
}

impl Action for Drop {
    fn apply(&self, context: &mut ActionContext) -> Result<(), Refusal> {
        context.get_mut::<Bag>().map(|bag| bag.0 = 0)
    }

    fn effects(&self, done: &ActionDone, region: &mut World) {
        let place = *region.get::<Position>(done.actor).unwrap();
        region.spawn((place, Item(1)));
        assert!(!self.explodes, "an item exploded");
    }
}

/// A block with a number of blocks in it, as a block component.
const CHEST: &str = "test:chest";
const IN_CHEST: &str = "test:in_chest";

/// Puts blocks from the bag into a chest.
#[derive(Clone, Serialize, Deserialize, TypePath)]
struct Fill(BlockPos, u32);

impl Action for Fill {
    fn apply(&self, context: &mut ActionContext) -> Result<(), Refusal> {
        let stored: u32 = context.component_as(self.0, IN_CHEST)?.unwrap_or_default();
        let left = context.get::<Bag>()?.0.checked_sub(self.1);
        context.set_component_as(self.0, IN_CHEST, &(stored + self.1))?;
        context.get_mut::<Bag>()?.0 = left.ok_or(Refusal::because("there are not as many"))?;
        Ok(())
    }
}

/// Sets another block and its component, looks at both in between, and puts the first one back.
#[derive(Clone, Serialize, Deserialize, TypePath)]
struct Swap(BlockPos);

impl Action for Swap {
    fn apply(&self, context: &mut ActionContext) -> Result<(), Refusal> {
        let chest = context.set_block(self.0, BlockId::AIR)?;
        assert_eq!(context.component(self.0, IN_CHEST)?, None);
        context.set_block(self.0, chest)?;
        assert_eq!(context.component_as(self.0, IN_CHEST)?, Some(0_u32));
        context.set_component_as(self.0, IN_CHEST, &7_u32)?;
        assert_eq!(context.component_as(self.0, IN_CHEST)?, Some(7_u32));
        assert!(
            context.component_as::<u64>(self.0, IN_CHEST).is_err() && context.component(self.0, "test:no")?.is_none()
        );
        Ok(())
    }
}

/// Is not registered.
#[derive(Serialize, Deserialize, TypePath)]
struct Unknown;

impl Action for Unknown {
    fn apply(&self, _: &mut ActionContext) -> Result<(), Refusal> {
        Ok(())
    }
}

const ANN: Uuid = Uuid::from_u128(0xa22);

fn register_chest(app: &mut App) {
    app.register_block_component(BlockComponent::fixed::<u32>(IN_CHEST)).unwrap();
    app.register_block(BlockType::new(CHEST).with_component(IN_CHEST)).unwrap();
    app.register_action::<Fill>().register_action::<Swap>();
}

/// The number of blocks in a chest, as it is shown.
fn in_chest(world: &World, dimension: DimensionId, chest: BlockPos) -> Option<u32> {
    let component = world.resource::<BlockTypes>().component(IN_CHEST)?;
    let chunk = world.resource::<PublishedColumns>().column(dimension, chest.column())?.chunk(chest.chunk().y)?;
    chunk.component_as(chest.in_chunk(), 0, component).unwrap()
}

fn world(plugin: TerranePlugin) -> (App, DimensionId) {
    let mut app = game(plugin);
    register_chest(&mut app);
    app.register_saved_component::<Bag>()
        .replicate_region_component_to_owner::<Bag>()
        .register_saved_component::<Item>()
        .register_action::<Dig>()
        .register_action::<Build>()
        .register_action::<Drop>()
        .register_action::<SetBlock>();
    listen::<ActionAnswer>(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 2);
    start(&mut app);
    update_until(&mut app, "a region is published", |world| {
        region_at(world, dimension, HERE.column()).is_some_and(|region| region.columns > 10)
    });
    (app, dimension)
}

/// A world with an entity that can act.
fn world_with_ann(plugin: TerranePlugin) -> (App, DimensionId) {
    let (mut app, dimension) = world(plugin);
    spawn_in_region(&mut app, dimension, HERE, (StableId(ANN), Actor::default(), Bag(0)));
    update_until(&mut app, "Ann is mirrored", |world| mirror(world, ANN).is_some());
    (app, dimension)
}

fn mirror(world: &World, id: Uuid) -> Option<EntityRef<'_>> {
    Some(world.entity(world.resource::<MirrorIndex>().entity(id)?))
}

fn bag(app: &App) -> u32 {
    mirror(app.world(), ANN).unwrap().get::<Bag>().unwrap().0
}

fn in_region_bag(app: &mut App, dimension: DimensionId) -> u32 {
    ask_region(app, dimension, HERE, |bags: Query<&Bag>| bags.iter().map(|bag| bag.0).sum::<u32>())
}

fn outcomes(app: &App, action: ActionId) -> Vec<ActionOutcome> {
    let answers = heard::<ActionAnswer>(app).iter().filter(|answer| answer.action == action);
    answers.map(|answer| answer.outcome.clone()).collect()
}

fn outcome_of(app: &mut App, action: ActionId) -> ActionOutcome {
    update_until(app, "the action is decided", |world| {
        world.resource::<Heard<ActionAnswer>>().0.iter().any(|answer| answer.action == action)
    });
    outcomes(app, action)[0].clone()
}

fn refusal_of(app: &mut App, action: ActionId) -> Refusal {
    match outcome_of(app, action) {
        ActionOutcome::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

fn top(x: i64, z: i64) -> BlockPos {
    BlockPos::new(x, -1, z)
}

/// Promise, actions: An action is shown at once, done in its region, answered, and answered again once it is durable.
#[test]
fn an_action_is_shown_at_once_done_once_and_then_durable() {
    let plugin = TerranePlugin { saving: SaveSettings::every(std::time::Duration::from_secs(3_600)), ..lockstep() };
    let (mut app, dimension) = world_with_ann(plugin);
    let ground = block_at(app.world(), dimension, top(2, 2)).unwrap();
    assert_ne!(ground, BlockId::AIR);
    let dig = act(&mut app, ANN, Dig(top(2, 2)));
    app.update();
    assert_eq!((block_at(app.world(), dimension, top(2, 2)), bag(&app)), (Some(BlockId::AIR), 1));
    assert_eq!(outcome_of(&mut app, dig), ActionOutcome::Done);
    assert!(!app.world().resource::<PublishedColumns>().is_predicted(dimension, top(2, 2)));
    let build = act(&mut app, ANN, Build(top(2, 2)));
    assert!(build > dig);
    assert_eq!(outcome_of(&mut app, build), ActionOutcome::Done);
    assert_eq!((bag(&app), in_region_bag(&mut app, dimension)), (0, 0));
    update(&mut app, 10);
    assert_eq!(outcomes(&app, dig), [ActionOutcome::Done], "not saved yet");
    save(&mut app);
    update(&mut app, 2);
    for action in [dig, build] {
        assert_eq!(outcomes(&app, action), [ActionOutcome::Done, ActionOutcome::Durable]);
    }
}

/// Promise, actions: The actions of an entity are done in the order in which they were made.
#[test]
fn actions_are_done_in_order() {
    let (mut app, dimension) = world_with_ann(lockstep());
    let stone = id_of(app.world(), "terrane:stone");
    let mut made = Vec::new();
    for round in 0..5 {
        made.push(act(&mut app, ANN, Dig(top(round, 3))));
        made.push(act(&mut app, ANN, Build(top(round, 3))));
        made.push(act(&mut app, ANN, SetBlock { dimension, position: top(round, 3), block: BlockId::AIR }));
        made.push(act(&mut app, ANN, SetBlock { dimension, position: top(round, 4), block: stone }));
        made.push(act(&mut app, ANN, Dig(top(round, 4))));
    }
    let last = *made.last().unwrap();
    assert_eq!(outcome_of(&mut app, last), ActionOutcome::Done);
    assert!(made.iter().all(|action| outcomes(&app, *action) == [ActionOutcome::Done]));
    let order: Vec<_> = heard::<ActionAnswer>(&app).iter().map(|answer| answer.action).collect();
    assert_eq!(order, made);
    assert_eq!((bag(&app), in_region_bag(&mut app, dimension)), (5, 5));
}

/// Promise, actions: A refused action changes nothing, and what was shown of it is taken back.
#[test]
fn refused_actions_are_taken_back() {
    let (mut app, dimension) = world_with_ann(lockstep());
    in_region(&mut app, dimension, HERE, |world| {
        world.add_observer(|mut attempt: On<ActionAttempt>| {
            let is_sacred = attempt.blocks().iter().any(|changed| changed.position.x == 7);
            if is_sacred && attempt.action::<Dig>().is_some() {
                attempt.refuse(Refusal::because("holy ground"));
            }
        });
    });
    update(&mut app, 2);
    let before = block_at(app.world(), dimension, top(7, 0));
    let dig = act(&mut app, ANN, Dig(top(7, 0)));
    app.update();
    assert_eq!((block_at(app.world(), dimension, top(7, 0)), bag(&app)), (Some(BlockId::AIR), 1), "shown");
    assert_eq!(refusal_of(&mut app, dig), Refusal::because("holy ground"));
    assert_eq!((block_at(app.world(), dimension, top(7, 0)), bag(&app)), (before, 0), "taken back");
    assert_eq!(in_region_bag(&mut app, dimension), 0);

    let far = top(40, 0);
    let cases = [
        (act(&mut app, ANN, Dig(far)), Refusal::OutOfReach(far)),
        (act(&mut app, ANN, Dig(BlockPos::new(0, 9, 0))), Refusal::because("there is nothing to dig")),
        (act(&mut app, ANN, Build(BlockPos::new(0, 9, 0))), Refusal::because("it is empty")),
        (act(&mut app, ANN, Unknown), Refusal::Unregistered(Unknown::type_path().to_owned())),
        (act(&mut app, Uuid::from_u128(77), Dig(top(0, 0))), Refusal::NotHere),
    ];
    for (action, refusal) in cases {
        assert_eq!(refusal_of(&mut app, action), refusal);
    }
    let bob = Uuid::from_u128(0xb0b);
    spawn_in_region(&mut app, dimension, HERE, (StableId(bob), Bag(0)));
    update_until(&mut app, "Bob is mirrored", |world| mirror(world, bob).is_some());
    let dig = act(&mut app, bob, Dig(top(0, 0)));
    assert_eq!(refusal_of(&mut app, dig), Refusal::NotAnActor);
}

/// Promise, actions: An action changes blocks, block components and components of its entity as one.
#[test]
fn chests_are_filled_at_once_and_as_one_with_the_bag() {
    let (mut app, dimension) = world_with_ann(lockstep());
    in_region(&mut app, dimension, HERE, |world| {
        world.add_observer(|mut attempt: On<ActionAttempt>| {
            if attempt.blocks().iter().any(|changed| changed.position.x == 7) {
                attempt.refuse(Refusal::because("not your chest"));
            }
        });
    });
    let [chest, other] = [1, 7].map(|x| BlockPos::new(x, 0, 1));
    let block = id_of(app.world(), CHEST);
    for position in [chest, other] {
        let set = SetBlock { dimension, position, block };
        app.world_mut().write_message(set);
    }
    update_until(&mut app, "the chests are there", |world| {
        [chest, other].iter().all(|chest| in_chest(world, dimension, *chest) == Some(0))
    });
    (0..5).for_each(|x| _ = act(&mut app, ANN, Dig(top(x, 3))));
    let fill = act(&mut app, ANN, Fill(chest, 2));
    app.update();
    let shown = |app: &App, chest| (in_chest(app.world(), dimension, chest), bag(app));
    assert_eq!(shown(&app, chest), (Some(2), 3), "shown at once");
    assert!(app.world().resource::<PublishedColumns>().is_predicted(dimension, chest));
    assert_eq!(outcome_of(&mut app, fill), ActionOutcome::Done);
    assert_eq!(shown(&app, chest), (Some(2), 3));

    // One after the other, each shown over the one before.
    let fills = [1, 1, 9].map(|number| act(&mut app, ANN, Fill(chest, number)));
    app.update();
    assert_eq!(shown(&app, chest), (Some(4), 1));
    assert_eq!(refusal_of(&mut app, fills[2]), Refusal::because("there are not as many"));
    assert_eq!(shown(&app, chest), (Some(4), 1));
    let refused = act(&mut app, ANN, Fill(other, 1));
    app.update();
    assert_eq!(shown(&app, other), (Some(1), 0), "shown");
    assert_eq!(refusal_of(&mut app, refused), Refusal::because("not your chest"), "an observer sees it");
    assert_eq!(shown(&app, other), (Some(0), 1), "taken back");
    let stone = act(&mut app, ANN, Fill(top(0, 5), 1));
    assert_eq!(refusal_of(&mut app, stone), Refusal::NoBlockComponent(top(0, 5), IN_CHEST.to_owned()));

    let swap = act(&mut app, ANN, Swap(chest));
    app.update();
    assert_eq!(in_chest(app.world(), dimension, chest), Some(7));
    assert_eq!(outcome_of(&mut app, swap), ActionOutcome::Done);
    update(&mut app, 2);
    assert_eq!((shown(&app, chest), in_region_bag(&mut app, dimension)), ((Some(7), 1), 1));
    let stored = ask_region(&mut app, dimension, HERE, move |blocks: RegionBlocks, types: Res<BlockTypes>| {
        blocks.component_as::<u32>(chest, 0, types.component(IN_CHEST).unwrap()).unwrap()
    });
    assert_eq!(stored, Some(7));
}

/// Promise, actions: An entity can act only so often.
#[test]
fn too_many_actions_are_refused() {
    let limits = Limits { actions_per_second: 10, ..default() };
    let (mut app, _) = world_with_ann(TerranePlugin { limits, ..lockstep() });
    let made: Vec<_> = (0..12).map(|x| act(&mut app, ANN, Dig(top(x, 1)))).collect();
    outcome_of(&mut app, made[11]);
    let done = made.iter().filter(|action| outcomes(&app, **action)[0] == ActionOutcome::Done).count();
    assert_eq!((done, outcomes(&app, made[10])), (10, vec![ActionOutcome::Refused(Refusal::TooMany)]));
    // At 20 ticks a second, five actions.
    update(&mut app, 10);
    let made: Vec<_> = (0..12).map(|x| act(&mut app, ANN, Dig(top(x, 2)))).collect();
    outcome_of(&mut app, made[11]);
    let done = made.iter().filter(|action| outcomes(&app, **action)[0] == ActionOutcome::Done).count();
    assert!((5..=6).contains(&done), "{done}");
}

/// Promise, actions: An action that panics is not done again, and actions that were not saved are lost together with their effects.
#[test]
fn an_action_that_panics_is_not_done_again() {
    let saving = SaveSettings::every(std::time::Duration::from_secs(3_600));
    let (mut app, dimension) = world_with_ann(TerranePlugin { saving, ..TerranePlugin::in_memory() });
    save(&mut app);
    let kept = act(&mut app, ANN, Dig(top(1, 1)));
    assert_eq!(outcome_of(&mut app, kept), ActionOutcome::Done);
    save(&mut app);
    let undone = act(&mut app, ANN, Dig(top(2, 1)));
    assert_eq!(outcome_of(&mut app, undone), ActionOutcome::Done);
    let panics = act(&mut app, ANN, Drop { explodes: true });
    assert_eq!(refusal_of(&mut app, panics), Refusal::Halted);
    update_until(&mut app, "the region halts", |world| {
        region_at(world, dimension, HERE.column()).is_some_and(|region| region.halted)
    });
    assert_eq!(outcomes(&app, kept), [ActionOutcome::Done, ActionOutcome::Durable]);
    assert_eq!(outcomes(&app, undone), [ActionOutcome::Done, ActionOutcome::Lost]);
    let waits = act(&mut app, ANN, Dig(top(3, 1)));
    assert_eq!(refusal_of(&mut app, waits), Refusal::NotHere, "nobody acts in a halted region");
    order(&mut app, dimension, HERE.column(), RegionOrder::Restart);
    update_until(&mut app, "Ann is back", |world| mirror(world, ANN).is_some());
    let items = |app: &mut App| ask_region(app, dimension, HERE, |items: Query<&Item>| items.iter().count());
    assert_eq!((in_region_bag(&mut app, dimension), items(&mut app)), (1, 0));
    assert_eq!(block_at(app.world(), dimension, top(1, 1)), Some(BlockId::AIR));
    assert_ne!(block_at(app.world(), dimension, top(2, 1)), Some(BlockId::AIR));
    let drop = act(&mut app, ANN, Drop { explodes: false });
    assert_eq!(outcome_of(&mut app, drop), ActionOutcome::Done);
    assert_eq!((in_region_bag(&mut app, dimension), items(&mut app)), (0, 1));
}

/// Promise, actions: What is shown of undecided actions never flickers: in each frame, blocks and components fit together.
#[test]
fn shown_blocks_and_components_fit_together_in_each_frame() {
    let (mut app, dimension) = world_with_ann(TerranePlugin::in_memory());
    let mut random = noise(7);
    let places: Vec<BlockPos> = (0..6).flat_map(|x| (0..4).map(move |z| top(x, z))).collect();
    let stones = |app: &App| {
        let shown = places.iter().filter(|place| block_at(app.world(), dimension, **place) != Some(BlockId::AIR));
        shown.count() as u32
    };
    let mut made = Vec::new();
    for frame in 0..400 {
        // In the end all of them are decided.
        if frame < 300 && frame % 2 == 0 {
            let place = places[(random() % places.len() as u64) as usize];
            made.push(match random() % 2 {
                0 => act(&mut app, ANN, Dig(place)),
                _ => act(&mut app, ANN, Build(place)),
            });
        }
        app.update();
        assert_eq!(stones(&app) + bag(&app), places.len() as u32, "frame {frame}");
        std::thread::sleep(std::time::Duration::from_millis(3));
    }
    let last = *made.last().unwrap();
    outcome_of(&mut app, last);
    update(&mut app, 2);
    let done = made.iter().filter(|action| outcomes(&app, **action)[0] == ActionOutcome::Done).count();
    assert!(made.len() == 150 && (30..150).contains(&done), "{done} of {}", made.len());
    assert_eq!(in_region_bag(&mut app, dimension), bag(&app));
    assert_eq!(stones(&app) + bag(&app), places.len() as u32);
}

/// Promise, actions: A player acts from its first log-in on, and in each session, also in a world that was made before there were actions.
#[test]
fn players_act_in_each_session() {
    let store = Arc::new(MemoryStore::new());
    let (mut expected, mut sessions) = (0, Vec::new());
    for session in 1..=3 {
        let (mut app, dimension) = world(lockstep_on(&store));
        listen::<PlayerLoggedIn>(&mut app);
        app.world_mut().write_message(LogIn { name: "Ann".to_owned(), first_place: Some((dimension, HERE)) });
        update_until(&mut app, "Ann is in", |world| !world.resource::<Heard<PlayerLoggedIn>>().0.is_empty());
        let ann = heard::<PlayerLoggedIn>(&app)[0].id;
        if session == 1 {
            in_region(&mut app, dimension, HERE, move |world| {
                let entity = world.resource::<EntityIndex>().entity(ann).unwrap();
                world.entity_mut(entity).insert(Bag(0));
            });
        }
        update_until(&mut app, "she has a bag", |world| {
            mirror(world, ann).is_some_and(|mirror| mirror.contains::<Bag>())
        });
        for x in 0..3 {
            let dig = act(&mut app, ann, Dig(top(x, session)));
            assert_eq!(outcome_of(&mut app, dig), ActionOutcome::Done, "session {session}");
            expected += 1;
        }
        let (last, _) = mirror(app.world(), ann).unwrap().get::<Actor>().unwrap().last();
        sessions.push(last);
        assert_eq!(in_region_bag(&mut app, dimension), expected);
    }
    assert!(sessions.is_sorted_by(|one, other| one < other), "{sessions:?}");
}
