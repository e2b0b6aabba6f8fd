//! The effects of outboxes do not depend on the order in which regions come back.

use super::*;
use crate::block::{BlockId, BlockType};
use crate::chunk::Chunk;
use crate::coordinator::mail::queue::MailQueue;
use crate::coordinator::messages::why::Whereabouts;
use crate::coordinator::passes::dispatch::{advance_clocks, dispatch};
use crate::coordinator::passes::letters::sort_letters;
use crate::coordinator::surroundings::Surroundings;
use crate::simulation::{Address, EntityIndex, Letter, LetterSender, Post, RegionBlocks, StableId};
use crate::space::BlockPos;
use crate::storage::EntityRecord;
use bevy::ecs::system::{RunSystemOnce, SystemState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The places of three regions, in blocks along x.
const PLACES: [i64; 3] = [0, 1_600_000, 3_200_000];

#[derive(Component, Clone, PartialEq, Serialize, Deserialize, TypePath)]
#[type_path = "bevy_terrane"]
struct Mark(usize);

type Log = Arc<Mutex<Vec<String>>>;

/// All that is left of a run.
#[derive(Debug, PartialEq)]
struct Ended {
    /// The entities and the chunks of the pending save.
    entities: BTreeMap<Uuid, Option<EntityRecord>>,
    chunks: BTreeMap<(DimensionId, ChunkPos), Arc<Chunk>>,
    whereabouts: Vec<Option<Whereabouts>>,
    /// The notes of the letters that arrived, sorted.
    log: Vec<String>,
}

/// The entity of a region that goes to the next region, and the one that goes to ground that is not loaded.
fn walker(region: usize) -> Uuid {
    Uuid::from_u128(1 + region as u128)
}

fn wanderer(region: usize) -> Uuid {
    Uuid::from_u128(11 + region as u128)
}

fn place(x: i64) -> Position {
    Position::new(DimensionId(0), BlockPos::new(x, 10, 0))
}

/// In one tick, everything that a region can hand out: an edit, an entity for each of two places, and letters to a place and to
/// an entity that is leaving its region at the same moment.
fn act(world: &mut World, region: usize, stone: BlockId, log: &Log) {
    let (here, next) = (PLACES[region], PLACES[(region + 1) % 3]);
    let edit = move |mut blocks: RegionBlocks| blocks.set_block(BlockPos::new(here, 20, 0), stone).is_ok();
    assert!(world.run_system_once(edit).unwrap());
    for (id, x) in [(walker(region), next), (wanderer(region), here + 16 * 500)] {
        let entity = world.resource::<EntityIndex>().entity(id).unwrap();
        *world.get_mut::<Position>(entity).unwrap() = place(x);
    }
    let mut post = world.resource_mut::<Post>();
    let (to_place, to_walker, lost) = (log.clone(), log.clone(), log.clone());
    let note = move |log: &Log, text: &str| log.lock().unwrap().push(format!("{text} from {region}"));
    post.run_at(BlockPos::new(next, 10, 0), 0, move |_| note(&to_place, "to a place"));
    let (found, retired) =
        (move |_: EntityWorldMut| note(&to_walker, "to a walker"), move |_: &mut World, _| note(&lost, "lost"));
    post.run_on(walker((region + 1) % 3), 0, found, retired);
}

/// Checks that entities on their way are in the pending save, with the chunks that their regions have changed in the same tick. Returns
/// the number of published chunks.
fn check(world: &mut Surroundings, link: &MainLink) -> usize {
    world.publisher.hand_over();
    let pending = &world.saves.pending;
    let published = link.take_published().unwrap_or_default();
    for (at, chunk) in &published.chunks {
        assert_eq!(pending.chunks.get(at), Some(chunk), "a chunk at {at:?} was published before it is to be saved");
    }
    for id in (0..3).flat_map(|region| [walker(region), wanderer(region)]) {
        if let Some(Whereabouts::OnTheWay(dimension, column)) = world.directory.whereabouts(id) {
            let record = pending.entities.get(&id).and_then(Option::as_ref);
            assert_eq!(record.map(|record| (record.dimension, record.column())), Some((dimension, column)), "{id}");
        }
    }
    published.chunks.len()
}

/// Runs a tick of all regions, whose outboxes come back in this order. Returns the number of published chunks.
fn tick(unwatched: &mut Unwatched, order: [usize; 3]) -> usize {
    let link = &unwatched.link;
    let world = unwatched.app.world_mut();
    world.run_system_once(advance_clocks).unwrap();
    world.run_system_once(dispatch).unwrap();
    let mut state = SystemState::<Surroundings>::new(world);
    let mut parts = state.get_mut(world).unwrap();
    let mut done = Vec::new();
    parts.threads.regions.wait_for(parts.deadlines.running.len(), &mut done);
    done.sort_by_key(|done| done.region);
    let mut done: Vec<_> = done.into_iter().map(Some).collect();
    assert_eq!(done.len(), 3);
    let mut published = 0;
    for place in order {
        parts.finish(done[place].take().unwrap());
        published += check(&mut parts, link);
    }
    world.run_system_once(sort_letters).unwrap();
    published
}

fn run(orders: [[usize; 3]; 4]) -> Ended {
    let mut blocks = BlockRegistry::new();
    let stone = blocks.register(BlockType::new("test:stone")).unwrap();
    let mut components = RegionComponents::with_builtin();
    components.register_saved_with::<Mark>(default());
    components.mirrored.mirror::<Mark>();
    let saving = SaveSettings::every(Duration::from_secs(1_000_000));
    let mut unwatched = Unwatched::of(TerranePlugin { saving, ..default() }, components, blocks);
    for (number, x) in (3..).zip(&PLACES[1..]) {
        let viewer = Entity::from_raw_u32(number).unwrap();
        let ground = (DimensionId(0), place(*x).block.chunk(), ViewerRadii::new(2, 0, 0));
        unwatched.link.request(move_viewers, vec![(viewer, Some(ground))]);
    }
    unwatched.pass(20);
    let log = Log::default();
    let post = |unwatched: &mut Unwatched, region: usize, run: Box<dyn FnOnce(&mut World) + Send>| {
        let to = Address::Place(DimensionId(0), place(PLACES[region]).block);
        let mut post = unwatched.app.world_mut().resource_mut::<MailQueue>();
        post.accept(Letter::run(to, LetterSender::Main, run));
    };
    for (region, x) in PLACES.into_iter().enumerate() {
        let spawn = move |world: &mut World| {
            for id in [walker(region), wanderer(region)] {
                world.spawn((StableId(id), Mark(region), place(x)));
            }
        };
        post(&mut unwatched, region, Box::new(spawn));
    }
    unwatched.pass(4);
    for region in 0..3 {
        let log = log.clone();
        post(&mut unwatched, region, Box::new(move |world: &mut World| act(world, region, stone, &log)));
    }
    unwatched.app.world_mut().run_system_once(sort_letters).unwrap();
    unwatched.link.take_published();
    let published: usize = orders.into_iter().map(|order| tick(&mut unwatched, order)).sum();
    assert_eq!(published, 3, "the edited chunk of each region");

    let world = unwatched.app.world_mut();
    let mut state = SystemState::<Surroundings>::new(world);
    let parts = state.get_mut(world).unwrap();
    let ids = (0..3).flat_map(|region| [walker(region), wanderer(region)]);
    let whereabouts = ids.map(|id| parts.directory.whereabouts(id)).collect();
    let (entities, chunks) = (parts.saves.pending.entities.clone(), parts.saves.pending.chunks.clone());
    let mut log = log.lock().unwrap().clone();
    log.sort();
    Ended { entities, chunks, whereabouts, log }
}

/// Promise, crate: The outboxes of one tick have the same effects in any order, and an entity that leaves its region takes the
/// region's unsaved changes along into the pending save.
#[test]
fn outboxes_have_the_same_effects_in_any_order() {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let first = run([orders[0]; 4]);
    for (region, x) in PLACES.into_iter().enumerate() {
        let of = |id: Uuid| first.entities[&id].as_ref().unwrap().block.x;
        assert_eq!((of(walker(region)), of(wanderer(region))), (PLACES[(region + 1) % 3], x + 16 * 500));
        assert!(matches!(first.whereabouts[2 * region], Some(Whereabouts::Region(..))), "it has arrived");
        assert!(matches!(first.whereabouts[2 * region + 1], Some(Whereabouts::OnTheWay(..))), "no ground is there");
    }
    assert_eq!(first.chunks.len(), 3);
    let expected = ["to a place", "to a walker"].map(|text| (0..3).map(move |region| format!("{text} from {region}")));
    assert_eq!(first.log, expected.into_iter().flatten().collect::<Vec<_>>());
    for turn in 1..orders.len() {
        // Each tick in another order.
        assert_eq!(run([0, 1, 2, 3].map(|tick| orders[(turn + tick) % orders.len()])), first, "{:?}", orders[turn]);
    }
}
