//! Worlds of several servers, through [`WorldStore`].

use super::{plot, set};
use crate::backends::test_store::TestStore;
use crate::block::{BlockComponentRecord, BlockId, BlockRecord, BlockRegistry, BlockType};
use crate::chunk::Chunk;
use crate::servers::{Crossing, CrossingId, Incarnation, LOCAL, TERM};
use crate::space::{BatchPos, BlockPos, ChunkPos, DimensionId, GeneratorIdentity};
use crate::{
    ChildRecord, Durability, EntityRecord, Family, KeyValue, KeyValueStore, MemoryStore, OpenWait, PlotContents,
    RegistryLists, SaveBatch, StorageConfig, StoreError, WorldOpenError, WorldStore, WriteBatch, mark_stored,
};
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use uuid::Uuid;

const STONE: BlockId = BlockId::new(1);

fn join(store: &Arc<MemoryStore>) -> WorldStore {
    let config = StorageConfig::Shared { store: store.clone(), address: b"here".to_vec() };
    let world = WorldStore::open(&config).unwrap();
    let mut blocks = BlockRegistry::new();
    blocks.register(BlockType::new("game:stone")).unwrap();
    world.set_blocks(Arc::new(blocks));
    world
}

fn commit(world: &WorldStore, batch: SaveBatch) -> Result<(), StoreError> {
    world.commit(&batch, Durability::Sync).map(drop)
}

/// A batch with a chunk of stone up to this height, which is stored as a column.
fn stone(dimension: DimensionId, pos: ChunkPos, top: usize, masks: &mut [u16; 64]) -> SaveBatch {
    mark_stored(masks, pos.column());
    let chunk = Chunk::from_fn(|[_, y, _]| if y <= top { STONE } else { BlockId::AIR });
    let mut batch = SaveBatch::default();
    batch.chunks.insert((dimension, pos), Arc::new(chunk));
    batch.tiles.insert((dimension, pos.column().tile()), *masks);
    batch
}

#[test]
fn a_server_ends_a_process_that_has_the_world_alone_but_no_other_server() {
    let store = Arc::new(MemoryStore::new());
    let alone = WorldStore::from_store(store.clone()).unwrap();
    let first = join(&store);
    let second = join(&store);
    let batch = |x| stone(DimensionId(0), ChunkPos::new(x, 0, 0), 3, &mut [0; 64]);
    assert!(matches!(commit(&alone, batch(0)), Err(StoreError::Superseded { .. })));
    commit(&first, batch(1)).unwrap();
    commit(&second, batch(2)).unwrap();
    assert_ne!(first.session(), second.session(), "ids are made from it");
    let refused = "a server of it";
    assert!(matches!(first.require_alone(refused), Err(StoreError::Shared { what, .. }) if what == refused));
    assert!(matches!(first.remove_dimension("end", |_| unreachable!()), Err(StoreError::Shared { .. })));
}

#[test]
fn a_process_has_the_world_alone_once_no_server_shows_life() {
    let store = Arc::new(MemoryStore::new());
    let [left, living, dead] = [0; 3].map(|_| join(&store));
    left.incarnation().unwrap().leave().unwrap();
    let show_life = |_: &str| {
        living.incarnation().unwrap().beat().unwrap();
        ControlFlow::Continue(())
    };
    let config = StorageConfig::Custom(store.clone());
    let refused = WorldStore::open_waiting(&config, &mut OpenWait::new(Duration::ZERO, show_life)).unwrap_err();
    assert!(matches!(refused, WorldOpenError::Shared { servers: 2, .. }), "{refused}");
    living.incarnation().unwrap().leave().unwrap();
    let begin = Instant::now();
    let alone = WorldStore::from_store(store).unwrap();
    assert!(begin.elapsed() >= TERM);
    assert!(matches!(dead.incarnation().unwrap().beat(), Err(StoreError::Superseded { .. })));
    commit(&alone, stone(DimensionId(0), ChunkPos::new(0, 0, 0), 3, &mut [0; 64])).unwrap();
}

/// Promise, servers: A heartbeat of a dead server that was still on its way does not keep a process from having its world alone.
#[test]
fn a_late_heartbeat_and_a_server_that_leaves_are_no_signs_of_life() {
    let store = Arc::new(MemoryStore::new());
    drop(join(&store));
    let [killed, leaving] = [0; 2].map(|address| Incarnation::join(store.clone(), &[address]).unwrap());
    let (config, mut told) = (StorageConfig::Custom(store.clone()), Vec::new());
    let tell = |reason: &str| {
        // Both happen after the heartbeats were read for the first time.
        if told.is_empty() {
            killed.beat().unwrap();
            leaving.leave().unwrap();
        }
        told.push(reason.to_owned());
        ControlFlow::Continue(())
    };
    let mut wait = OpenWait::new(Duration::MAX, tell).with_term(Duration::from_millis(800));
    let alone = WorldStore::open_waiting(&config, &mut wait).unwrap();
    drop(wait);
    assert!(told[0].contains("2 servers did not leave"), "{told:?}");
    assert!(matches!(killed.beat(), Err(StoreError::Superseded { .. })));
    commit(&alone, stone(DimensionId(0), ChunkPos::new(0, 0, 0), 3, &mut [0; 64])).unwrap();
}

#[test]
fn an_opening_that_waits_for_heartbeats_can_be_stopped() {
    let store = Arc::new(MemoryStore::new());
    drop(join(&store));
    let _killed = Incarnation::join(store.clone(), b"here").unwrap();
    let mut wait = OpenWait::new(Duration::MAX, |_| ControlFlow::Break(()));
    let stopped = WorldStore::open_waiting(&StorageConfig::Custom(store), &mut wait).unwrap_err();
    assert!(matches!(stopped, WorldOpenError::Shared { servers: 1, .. }), "{stopped}");
}

#[test]
fn ground_that_goes_to_another_server_and_back_is_never_stale() {
    let store = Arc::new(MemoryStore::new());
    let [a, b] = [0; 2].map(|_| join(&store));
    let [server_a, server_b] = [&a, &b].map(|world| world.incarnation().unwrap());
    let (dimension, batch) = (DimensionId(1), BatchPos::new(0, 0));
    let edit = |world: &WorldStore, chunk: ChunkPos, top| {
        // A server reads the graph of a plot when it gets it.
        let PlotContents { stored: mut masks, .. } = world.plot_contents(plot(0, 0)).unwrap();
        commit(world, stone(dimension, chunk, top, &mut masks)).unwrap();
    };
    let ground = set(&[(0, 0)]);
    assert!(server_a.acquire(&ground).unwrap().is_empty());
    edit(&a, ChunkPos::new(0, 0, 0), 3);
    let row = server_a.own_row(plot(0, 0)).unwrap();
    assert!(row.is_some() && server_b.own_row(plot(0, 0)).unwrap().is_none());
    let old_map = a.opacity(dimension, batch).unwrap();
    assert!(server_a.hand_over(&ground, server_b.number()).unwrap());

    // A reads the new ground of B, but does not keep a map of it.
    edit(&b, ChunkPos::new(0, 0, 0), 7);
    edit(&b, ChunkPos::new(2, 0, 0), 5);
    let key = crate::keys::opacity_key(dimension, batch);
    assert_eq!(a.opacity(dimension, batch).unwrap().highest(0, 0), Some(7));
    assert_eq!(store.get(Family::Opacity, &key), Ok(None));
    assert_eq!(b.opacity(dimension, batch).unwrap().highest(0, 0), Some(7));
    assert!(store.get(Family::Opacity, &key).unwrap().is_some());

    assert!(server_b.hand_over(&ground, server_a.number()).unwrap());
    assert_ne!(server_a.own_row(plot(0, 0)).unwrap(), row, "the same owner has another row");
    let PlotContents { stored: masks, .. } = a.plot_contents(plot(0, 0)).unwrap();
    let stored = |x: i64| crate::values::tile_masks::is_marked(&masks, ChunkPos::new(x, 0, 0).column());
    assert!(stored(0) && stored(2) && !stored(1));
    edit(&a, ChunkPos::new(1, 0, 0), 9);
    let map = a.opacity(dimension, batch).unwrap();
    assert_eq!([0, 16, 32, 48].map(|x| map.highest(x, 0)), [Some(7), Some(9), Some(5), None]);
    assert_ne!(map, old_map);
}

#[test]
fn servers_that_open_dimensions_at_once_agree_on_their_ids() {
    let store = Arc::new(MemoryStore::new());
    let origin = GeneratorIdentity { name: "flat".into(), version: 1, seed: 0 };
    let worlds: Vec<WorldStore> = (0..4).map(|_| join(&store)).collect();
    let ids: Vec<[DimensionId; 3]> = std::thread::scope(|scope| {
        let open = |(place, world): (usize, &WorldStore)| {
            let mut names = ["overworld", "nether", "end"];
            names.rotate_left(place % 3);
            let open = |name: &str| world.open_dimension(name, &origin).unwrap();
            names.into_iter().for_each(|name| assert!(open(name).0 > 0));
            ["overworld", "nether", "end"].map(open)
        };
        let threads: Vec<_> = worlds.iter().enumerate().map(|server| scope.spawn(move || open(server))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let [first, second, third] = ids[0];
    assert!(first != second && second != third && first != third);
    assert!(ids.iter().all(|of| *of == ids[0]), "{ids:?}");
    // They agree before anything is stored.
    let names = [&worlds[0], &worlds[1]].map(|world| world.dimension_names().id("aether"));
    assert_eq!(names[0], names[1]);
    assert_eq!(join(&store).dimension_names().id("end"), third);
}

#[test]
fn servers_agree_on_the_types_of_a_world() {
    let lists = |names: &[&str]| RegistryLists {
        blocks: names.iter().map(|name| BlockRecord { name: (*name).into(), components: vec![] }).collect(),
        ..RegistryLists::default()
    };
    let store = Arc::new(MemoryStore::new());
    let [first, second] = [0; 2].map(|_| join(&store));
    // Both found a new world, and one of them is first.
    first.save_registry_lists(&lists(&["terrane:air", "game:stone"])).unwrap();
    second.save_registry_lists(&lists(&["terrane:air", "game:stone"])).unwrap();
    let more = lists(&["terrane:air", "game:stone", "game:ore"]);
    // The first one shows life meanwhile.
    let refused = std::thread::scope(|scope| {
        let saved = scope.spawn(|| second.save_registry_lists(&more));
        while !saved.is_finished() {
            first.incarnation().unwrap().beat().unwrap();
            std::thread::sleep(Duration::from_millis(50));
        }
        saved.join().unwrap().unwrap_err()
    });
    assert!(matches!(refused, StoreError::NewTypes { servers: 1, .. }), "{refused}");
    first.incarnation().unwrap().leave().unwrap();
    second.save_registry_lists(&more).unwrap();
    assert_eq!(join(&store).registry_lists(), Ok(more));
}

/// Promise, servers: Servers of one game that begin a world at the same moment all open it.
#[test]
fn servers_that_begin_a_world_at_once_agree_on_its_types() {
    let lists = RegistryLists {
        blocks: vec![BlockRecord { name: "terrane:air".into(), components: vec![] }],
        components: vec![BlockComponentRecord { name: "game:lock".into(), version: 1, size: Some(8) }],
        entity_types: vec!["game::Mob".into()],
    };
    for answer in 0..12 {
        let store = Arc::new(Lossy::default());
        let [a, b] = [0; 2].map(|_| Arc::new(WorldStore::join(store.clone(), b"").unwrap()));
        let (first, its) = (a.clone(), lists.clone());
        store.before_answer(answer, move || first.save_registry_lists(&its).unwrap());
        // The first one shows life meanwhile.
        std::thread::scope(|scope| {
            let saved = scope.spawn(|| b.save_registry_lists(&lists));
            while !saved.is_finished() {
                a.incarnation().unwrap().beat().unwrap();
                std::thread::sleep(Duration::from_millis(50));
            }
            saved.join().unwrap().unwrap();
        });
        assert_eq!(b.registry_lists().as_ref(), Ok(&lists), "before answer {answer}");
        store.meanwhile.lock().unwrap().clear();
    }
}

#[test]
fn a_game_that_registers_blocks_in_another_order_reads_the_same_ground() {
    let store = Arc::new(MemoryStore::new());
    let open = |names: [&'static str; 2]| {
        let world = join(&store);
        let RegistryLists { blocks, components, .. } = world.registry_lists().unwrap();
        let mut registry = match blocks.is_empty() {
            true => BlockRegistry::new(),
            false => BlockRegistry::from_records(blocks, components).unwrap(),
        };
        let ids = names.map(|name| registry.register(BlockType::new(name)).unwrap());
        let lists = RegistryLists { blocks: registry.block_records().collect(), ..RegistryLists::default() };
        world.save_registry_lists(&lists).unwrap();
        world.set_blocks(Arc::new(registry));
        (world, ids)
    };
    let (first, [ore, sand]) = open(["game:ore", "game:sand"]);
    let (second, [other_sand, other_ore]) = open(["game:sand", "game:ore"]);
    assert_eq!((ore, sand), (other_ore, other_sand));
    let (dimension, pos) = (DimensionId(1), ChunkPos::new(0, 0, 0));
    let mut batch = SaveBatch::default();
    batch.chunks.insert((dimension, pos), Arc::new(Chunk::uniform(ore)));
    commit(&first, batch).unwrap();
    let column = pos.column();
    let loaded = second.load_batch(dimension, column.batch(), &[column], 0..1).unwrap();
    assert_eq!(loaded[0].column.block(BlockPos::new(1, 2, 3)), other_ore);
}

fn record(number: u128) -> EntityRecord {
    EntityRecord {
        id: Uuid::from_u128(number),
        dimension: DimensionId(1),
        block: BlockPos::new(600, 5, 0),
        offset: [0.5; 3],
        viewer: None,
        components: vec![("game::Gold".into(), vec![7])],
        children: Vec::new(),
    }
}

#[test]
fn an_entity_that_crosses_is_stored_once_at_any_time() {
    let store = Arc::new(MemoryStore::new());
    let [a, b] = [0; 2].map(|_| join(&store));
    let [server_a, server_b] = [&a, &b].map(|world| world.incarnation().unwrap());
    server_b.acquire(&set(&[(1, 0)])).unwrap();
    let mut here = SaveBatch::default();
    here.entities.insert(record(7).id, Some(record(7)));
    commit(&a, here).unwrap();
    let stored = |world: &WorldStore| {
        let rows = world.crossings(DimensionId(1)).unwrap().len();
        (usize::from(world.entity(record(7).id).unwrap().is_some()), rows)
    };
    assert_eq!(stored(&a), (1, 0));
    let id = CrossingId { plot: plot(1, 0), sender: server_a.number(), number: 1 };
    let mut leaves = SaveBatch::default();
    leaves.entities.insert(record(7).id, None);
    leaves.sent.insert(id, Crossing::Entities(vec![record(7)]));
    commit(&a, leaves).unwrap();
    assert_eq!(stored(&a), (0, 1));

    let crossings = |plots| server_b.crossings(&set(plots), &set(&[]), &BTreeMap::new());
    assert_eq!(crossings(&[(0, 0), (2, 0)]), Ok((Vec::new(), BTreeMap::new())));
    assert_eq!(crossings(&[(1, 0)]), Ok((vec![(id, Crossing::Entities(vec![record(7)]))], BTreeMap::new())));
    let mut arrives = SaveBatch::default();
    arrives.entities.insert(record(7).id, Some(record(7)));
    arrives.received.insert(id);
    commit(&b, arrives.clone()).unwrap();
    assert_eq!(stored(&b), (1, 0));
    // A second removal would be a second effect.
    let error = commit(&b, arrives).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains("crossing 1 of server 1 to plot [1, 0] of dimension 1"), "{error}");
}

fn message(number: u64, x: i64, sender: u64) -> (CrossingId, Crossing) {
    let block = BlockPos::new(x << 9, 5, 0);
    let message = Crossing::Message { block, entity: None, kind: "game::Greeting".into(), bytes: vec![1] };
    (CrossingId { plot: plot(x, 0), sender, number }, message)
}

#[test]
fn a_long_queue_is_read_in_parts_even_if_some_of_it_is_damaged() {
    let store = Arc::new(MemoryStore::new());
    let world = join(&store);
    let server = world.incarnation().unwrap();
    let sent = (1..=600).map(|number| message(number, 1, server.number())).collect();
    commit(&world, SaveBatch { sent, ..SaveBatch::default() }).unwrap();
    let (damaged, _) = message(9, 1, server.number());
    let mut writes = WriteBatch::default();
    writes.put(Family::Meta, damaged.key(), vec![0xff]);
    store.write(writes, Durability::Sync).unwrap();
    let (mut after, mut numbers, mut parts) = (BTreeMap::new(), Vec::new(), 0);
    loop {
        let (found, last) = server.crossings(&set(&[(0, 0), (1, 0)]), &set(&[]), &after).unwrap();
        numbers.extend(found.into_iter().map(|(id, _)| id.number));
        (after, parts) = (last, parts + 1);
        if after.is_empty() {
            break;
        }
    }
    assert_eq!((numbers, parts), ((1..=600).filter(|number| *number != 9).collect(), 3));
}

/// Crossings from region to region delay no crossing of another server, and are read only if a server asks for them.
#[test]
fn local_crossings_are_read_only_when_they_are_asked_for() {
    let store = Arc::new(MemoryStore::new());
    let world = join(&store);
    let server = world.incarnation().unwrap();
    let local = |number| message(number, 1, LOCAL | server.number());
    let sent = (1..=300).map(local).chain([message(301, 1, server.number())]).collect();
    commit(&world, SaveBatch { sent, ..SaveBatch::default() }).unwrap();
    let own = set(&[(1, 0)]);
    let (found, last) = server.crossings(&own, &set(&[]), &BTreeMap::new()).unwrap();
    assert_eq!((found.len(), found[0].0.number, last.len()), (1, 301, 0));
    let (found, last) = server.crossings(&own, &own, &BTreeMap::new()).unwrap();
    assert_eq!((found.len(), found[0].0.number, found[1].0.is_local(), last.len()), (256, 301, true, 1));
    assert_eq!(server.crossings(&own, &own, &last).unwrap().0.len(), 45);
    // A commit removes what arrives in it, and never stores what is sent and arrives in the same one.
    let (new, message) = local(400);
    let received = (1..=300).map(|number| local(number).0).chain([new]).collect();
    let sent = [(new, message)].into();
    commit(&world, SaveBatch { sent, received, ..SaveBatch::default() }).unwrap();
    assert_eq!(server.crossings(&own, &own, &BTreeMap::new()).unwrap().0.len(), 1);
}

#[test]
fn an_entity_on_its_way_has_the_place_where_it_goes() {
    let store = Arc::new(MemoryStore::new());
    let [a, b] = [0; 2].map(|_| join(&store));
    let (child, other) = (Uuid::from_u128(8), EntityRecord { block: BlockPos::new(-70, 5, 40), ..record(9) });
    let children = vec![ChildRecord { parent: None, id: Some(child), place: None, viewer: None, components: vec![] }];
    let rider = EntityRecord { children, ..record(7) };
    let stays = EntityRecord { block: BlockPos::new(3, 5, 0), ..record(10) };
    commit(&a, SaveBatch { entities: [(stays.id, Some(stays.clone()))].into(), ..SaveBatch::default() }).unwrap();
    let id = CrossingId { plot: plot(1, 0), sender: a.incarnation().unwrap().number(), number: 1 };
    let mut leaves = SaveBatch::default();
    leaves.sent.insert(id, Crossing::Entities(vec![rider.clone(), other.clone()]));
    leaves.sent.extend([message(2, 1, id.sender)]);
    commit(&a, leaves).unwrap();
    let place = |record: &EntityRecord| (record.dimension, record.column());
    let wanted = [rider.id, child, other.id, stays.id, Uuid::from_u128(11)];
    let mut expected: BTreeMap<_, _> = [&rider, &other, &stays].map(|record| (record.id, place(record))).into();
    expected.insert(child, place(&rider));
    assert_eq!(a.entity_places(&wanted), Ok(expected.clone()));
    assert_eq!(b.entity_places(&wanted), Ok(expected));
    assert_eq!(b.entity_places(&[Uuid::from_u128(11)]), Ok(BTreeMap::new()));
}

/// In the middle of the search the entity arrives, and then goes on to where the search has already been.
#[test]
fn an_entity_is_found_wherever_it_goes_during_the_search() {
    for (arrival, departure) in (0..20).flat_map(|arrival| (arrival..20).map(move |departure| (arrival, departure))) {
        let store = Arc::new(Lossy::default());
        let [a, b] = [0; 2].map(|_| Arc::new(WorldStore::join(store.clone(), b"").unwrap()));
        let [server_a, server_b] = [&a, &b].map(|world| world.incarnation().unwrap().number());
        // More than one page.
        let mut sent: BTreeMap<_, _> = (2..1_100).map(|number| message(number, number as i64, server_a)).collect();
        let first = CrossingId { plot: plot(5_000, 0), sender: server_a, number: 1 };
        sent.insert(first, Crossing::Entities(vec![record(7)]));
        commit(&a, SaveBatch { sent, ..SaveBatch::default() }).unwrap();
        let (mut arrives, mut departs) = (SaveBatch::default(), SaveBatch::default());
        arrives.entities.insert(record(7).id, Some(record(7)));
        arrives.received.insert(first);
        departs.entities.insert(record(7).id, None);
        let second = CrossingId { plot: plot(1, 0), sender: server_b, number: 1 };
        departs.sent.insert(second, Crossing::Entities(vec![record(7)]));
        for (before, batch) in [(arrival, arrives), (departure, departs)] {
            let b = b.clone();
            store.before_answer(before, move || commit(&b, batch).unwrap());
        }
        let found = a.entity_places(&[record(7).id]).unwrap();
        assert!(found.contains_key(&record(7).id), "it arrives before answer {arrival} and departs before {departure}");
        // The hooks hold the world, which holds the store.
        store.meanwhile.lock().unwrap().clear();
    }
}

#[test]
fn a_damaged_chunk_is_replaced_by_the_owner_of_its_ground_alone() {
    let store = TestStore::default();
    let [a, b] = [0; 2].map(|_| Arc::new(WorldStore::join(Arc::new(store.clone()), b"").unwrap()));
    a.incarnation().unwrap().acquire(&set(&[(0, 0)])).unwrap();
    let (dimension, pos) = (DimensionId(1), ChunkPos::new(0, 0, 0));
    commit(&a, stone(dimension, pos, 3, &mut [0; 64])).unwrap();
    let key = crate::keys::chunk_key(dimension, pos);
    store.tamper(Family::Chunks, &key, |value| value.truncate(3));
    let damaged = store.contents();
    let made = || Arc::new(Chunk::uniform(STONE));
    assert_eq!(b.replace_damaged(dimension, pos, made()), Ok(false));
    assert!(store.contents() == damaged);
    // The ground goes to the other server while the chunk is looked at.
    let (from, to) = (a.clone(), b.incarnation().unwrap().number());
    store.after_landing(move || assert!(from.incarnation().unwrap().hand_over(&set(&[(0, 0)]), to).unwrap()));
    assert_eq!(a.replace_damaged(dimension, pos, made()), Ok(false));
    assert_eq!(store.get(Family::Chunks, &key).unwrap().unwrap().len(), 3);
    assert_eq!((b.replace_damaged(dimension, pos, made()), b.set_aside().unwrap().len()), (Ok(true), 1));
    let loaded = a.load_batch(dimension, pos.column().batch(), &[pos.column()], 0..1).unwrap();
    assert_eq!(loaded[0].column.chunk(0), Some(&made()));
}

/// A store whose answers to writes can be lost.
#[derive(Default)]
struct Lossy {
    store: MemoryStore,
    loses_answers: AtomicBool,
    /// Actions of other servers, each with the number of reads that are answered before it.
    meanwhile: Mutex<Vec<(usize, Box<dyn FnOnce() + Send>)>>,
}

impl Lossy {
    /// Sets what others do before this one of the next answers to reads.
    fn before_answer(&self, answer: usize, act: impl FnOnce() + Send + 'static) {
        self.meanwhile.lock().unwrap().push((answer, Box::new(act)));
    }

    fn act(&self) {
        // The reads of these actions are not counted.
        let mut waiting = mem::take(&mut *self.meanwhile.lock().unwrap());
        for (_, act) in waiting.extract_if(.., |(answer, _)| *answer == 0) {
            act();
        }
        waiting.iter_mut().for_each(|(answer, _)| *answer -= 1);
        *self.meanwhile.lock().unwrap() = waiting;
    }
}

impl KeyValueStore for Lossy {
    fn path(&self) -> &Path {
        self.store.path()
    }

    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.act();
        self.store.get(family, key)
    }

    fn multi_get(&self, family: Family, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.act();
        self.store.multi_get(family, keys)
    }

    fn scan(&self, family: Family, range: Range<&[u8]>, limit: usize) -> Result<Vec<KeyValue>, StoreError> {
        self.act();
        self.store.scan(family, range, limit)
    }

    fn write(&self, batch: WriteBatch, durability: Durability) -> Result<(), StoreError> {
        self.store.write(batch, durability)?;
        match self.loses_answers.load(Ordering::Relaxed) {
            true => Err(StoreError::backend("write", None, self.path(), "the connection is lost")),
            false => Ok(()),
        }
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.store.sync()
    }
}

#[test]
fn a_commit_whose_answer_was_lost_can_be_repeated_whatever_is_written_meanwhile() {
    let store = Arc::new(Lossy::default());
    let world = WorldStore::join(store.clone(), b"").unwrap();
    let id = CrossingId { plot: plot(1, 0), sender: 9, number: 1 };
    let mut sent = SaveBatch::default();
    sent.sent.insert(id, Crossing::Entities(vec![record(7)]));
    commit(&world, sent).unwrap();
    let mut arrives = SaveBatch::default();
    arrives.entities.insert(record(7).id, Some(record(7)));
    arrives.received.insert(id);
    store.loses_answers.store(true, Ordering::Relaxed);
    assert!(commit(&world, arrives.clone()).unwrap_err().is_outage());
    store.loses_answers.store(false, Ordering::Relaxed);
    // A heartbeat, the clock and a repaired chunk are written before the commit is repeated.
    world.incarnation().unwrap().beat().unwrap();
    world.agree_on_clock(DimensionId(1), Duration::from_secs(1), None).unwrap();
    world.incarnation().unwrap().acquire(&set(&[(0, 0)])).unwrap();
    let (pos, mut damaged) = (ChunkPos::new(0, 0, 0), WriteBatch::default());
    damaged.put(Family::Chunks, crate::keys::chunk_key(DimensionId(1), pos), vec![0]);
    store.write(damaged, Durability::Sync).unwrap();
    assert_eq!(world.replace_damaged(DimensionId(1), pos, Arc::new(Chunk::uniform(BlockId::AIR))), Ok(true));
    commit(&world, arrives.clone()).unwrap();
    assert_eq!(
        (world.entity(record(7).id).unwrap(), world.crossings(DimensionId(1)).unwrap()),
        (Some(record(7)), vec![])
    );
    assert!(matches!(commit(&world, arrives), Err(StoreError::Corrupt { .. })), "this one would be a second effect");
}

#[test]
fn what_was_sent_is_not_sent_again_when_its_commit_is_repeated() {
    let store = Arc::new(Lossy::default());
    let [a, b] = [0; 2].map(|_| WorldStore::join(store.clone(), b"").unwrap());
    let crossing = |number| CrossingId { plot: plot(1, 0), sender: a.incarnation().unwrap().number(), number };
    let mut leaves = SaveBatch::default();
    leaves.entities.insert(record(7).id, None);
    leaves.sent.insert(crossing(1), Crossing::Entities(vec![record(7)]));
    store.loses_answers.store(true, Ordering::Relaxed);
    assert!(commit(&a, leaves.clone()).unwrap_err().is_outage());
    store.loses_answers.store(false, Ordering::Relaxed);
    // It arrives before the commit is repeated, together with something new.
    let mut arrives = SaveBatch::default();
    arrives.entities.insert(record(7).id, Some(record(7)));
    arrives.received.insert(crossing(1));
    commit(&b, arrives).unwrap();
    leaves.sent.insert(crossing(2), Crossing::Entities(vec![record(8)]));
    commit(&a, leaves).unwrap();
    let waiting: Vec<_> = a.crossings(DimensionId(1)).unwrap().into_iter().map(|(id, _)| id).collect();
    assert_eq!((b.entity(record(7).id).unwrap(), waiting), (Some(record(7)), vec![crossing(2)]));
    assert_eq!(a.verify(|_| ControlFlow::Continue(())).unwrap().damage.count(), 0);
}

#[test]
fn a_player_is_on_one_server() {
    let store = Arc::new(MemoryStore::new());
    let [a, b] = [0; 2].map(|_| join(&store));
    let [server_a, server_b] = [&a, &b].map(|world| world.incarnation().unwrap());
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let none = || Ok(BTreeMap::new());
    let on_a = |names: &[&str]| Ok(names.iter().map(|name| ((*name).to_owned(), 1)).collect());
    assert_eq!(server_a.log_in(&names(&["Ada", "Zoë"])), none());
    assert_eq!(server_a.log_in(&names(&["Zoë"])), none());
    assert_eq!(server_b.log_in(&names(&["Ada", "Bob", "Zoë"])), on_a(&["Ada", "Zoë"]));
    server_b.log_out(&names(&["Bob", "Zoë"])).unwrap();
    assert_eq!(server_b.log_in(&names(&["Zoë"])), on_a(&["Zoë"]), "only its server lets it go");
    server_a.log_out(&names(&["Bob", "Zoë"])).unwrap();
    assert_eq!(server_b.log_in(&names(&["Ada", "Zoë"])), on_a(&["Ada"]));
    server_b.leave().unwrap();
    assert_eq!(server_a.log_in(&names(&["Zoë"])), none(), "its server has ended");
    let damage = a.verify(|_| ControlFlow::Continue(())).unwrap().damage.count();
    assert_eq!(damage, 0);
}

/// A server notes a name while another one reads it: the player is on the first of them.
#[test]
fn players_who_log_in_on_two_servers_at_once_are_on_one() {
    let names: BTreeSet<String> = ["Ada", "Bob", "Zoë"].map(str::to_owned).into();
    // Before the rows of the names are read, and between that and the write.
    for answer in 0..2 {
        let store = Arc::new(Lossy::default());
        let [a, b, gone] = [0; 3].map(|_| Arc::new(WorldStore::join(store.clone(), b"").unwrap()));
        let server = |world: &Arc<WorldStore>| world.incarnation().unwrap().number();
        // Its row has a reader look for its server.
        gone.incarnation().unwrap().log_in(&["Zoë".to_owned()].into()).unwrap();
        gone.incarnation().unwrap().leave().unwrap();
        let first = a.clone();
        store.before_answer(answer, move || {
            assert_eq!(first.incarnation().unwrap().log_in(&["Bob".to_owned()].into()), Ok(BTreeMap::new()));
        });
        let found = b.incarnation().unwrap().log_in(&names);
        assert!(store.meanwhile.lock().unwrap().is_empty());
        assert_eq!(found, Ok([("Bob".to_owned(), server(&a))].into()), "before answer {answer}");
        let on_b = ["Ada", "Zoë"].map(|name| (name.to_owned(), server(&b)));
        assert_eq!(a.incarnation().unwrap().log_in(&names), Ok(on_b.into()), "before answer {answer}");
    }
}

#[test]
fn clocks_never_go_back() {
    let store = Arc::new(MemoryStore::new());
    let [a, b] = [0; 2].map(|_| join(&store));
    let (dimension, seconds) = (DimensionId(1), Duration::from_secs);
    assert_eq!(a.agree_on_clock(dimension, seconds(5), Some(0.25)), Ok(seconds(5)));
    assert_eq!(b.agree_on_clock(dimension, seconds(3), Some(0.5)), Ok(seconds(5)));
    assert_eq!(b.agree_on_clock(dimension, seconds(7), None), Ok(seconds(7)));
    let mut older = SaveBatch::default();
    older.clocks.insert(dimension, seconds(1));
    older.entities.insert(record(1).id, Some(record(1)));
    commit(&a, older).unwrap();
    assert_eq!((a.clock(dimension), a.days(dimension)), (Ok(Some(seconds(7))), Ok(Some(0.25))));
}
