//! A store that cannot write for a while loses nothing: what was to be saved is saved later.

use crate::support::gate::Gate;
use bevy_terrane::block::BlockRegistry;
use bevy_terrane::coordinator::{
    CoordinatorConfig, CoordinatorHandle, DimensionSpec, FromMain, MainLink, WorldEvent, coordinator_app,
};
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::{RegionTemplate, ViewerRadii};
use bevy_terrane::space::TilePos;
use bevy_terrane::storage::{
    Durability, Family, KeyValue, KeyValueStore, MemoryStore, Operation, StoreError, WorldStore, WriteBatch,
};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A disk that is full, or stands still, whenever the switch says so.
#[derive(Default)]
pub struct FullDisk {
    pub store: MemoryStore,
    pub is_full: Arc<AtomicBool>,
    /// Ranges of what it holds cannot be read; single keys can, as a commit does.
    pub is_unreadable: Arc<AtomicBool>,
    /// Whoever writes waits at it.
    pub gate: Gate,
}

impl KeyValueStore for FullDisk {
    fn path(&self) -> &Path {
        self.store.path()
    }

    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.get(family, key)
    }

    fn multi_get(&self, family: Family, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.store.multi_get(family, keys)
    }

    fn scan(&self, family: Family, range: Range<&[u8]>, limit: usize) -> Result<Vec<KeyValue>, StoreError> {
        if self.is_unreadable.load(Ordering::SeqCst) {
            let (path, reason) = (self.path().to_owned(), "a bad sector".to_owned());
            return Err(StoreError::Backend { operation: Operation::Scan, family: None, path, reason });
        }
        self.store.scan(family, range, limit)
    }

    fn write(&self, batch: WriteBatch, durability: Durability) -> Result<(), StoreError> {
        if self.is_full.load(Ordering::SeqCst) {
            let (path, reason) = (self.path().to_owned(), "no space left on device".to_owned());
            return Err(StoreError::Backend { operation: Operation::Write, family: None, path, reason });
        }
        self.gate.pass();
        self.store.write(batch, durability)
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.store.sync()
    }

    fn approximate_bytes(&self) -> Result<u64, StoreError> {
        self.store.approximate_bytes()
    }
}

/// Runs passes of a coordinator in lockstep, and gives what happened in them.
fn run(coordinator: &mut CoordinatorHandle, link: &MainLink, passes: usize) -> Vec<WorldEvent> {
    let mut events = Vec::new();
    for _ in 0..passes {
        coordinator.update_inline();
        events.extend(link.take_published().into_iter().flat_map(|published| published.events));
    }
    events
}

fn failures(events: &[WorldEvent]) -> usize {
    events.iter().filter(|event| matches!(event, WorldEvent::SaveFailed(_))).count()
}

#[test]
fn what_could_not_be_written_is_written_when_there_is_room_again() {
    let is_full = Arc::<AtomicBool>::default();
    let disk = FullDisk { is_full: is_full.clone(), ..default() };
    let store = Arc::new(WorldStore::from_store(Box::new(disk)).unwrap());
    let mut blocks = BlockRegistry::new();
    blocks.register_basic_blocks();
    let stone = blocks.id("terrane:stone").unwrap();
    let template = RegionTemplate::new(Arc::new(blocks));
    let config = CoordinatorConfig {
        mode: TickMode::Lockstep,
        region_threads: 1,
        generation_threads: 1,
        pacing: Pacing::fixed(64),
        autosave_period: Duration::from_millis(500),
        shutdown_patience: Duration::from_secs(1),
        ..default()
    };
    let (app, link) = coordinator_app(config, template, store.clone()).unwrap();
    let mut coordinator = CoordinatorHandle::start(app, link.clone()).unwrap();
    let (dimension, viewer) = (Entity::from_raw_u32(1).unwrap(), Entity::from_raw_u32(2).unwrap());
    let name = "overworld".to_owned();
    let generator = Arc::new(Flat::new());
    link.send(FromMain::OpenDimension(DimensionSpec {
        entity: dimension,
        name,
        heights: -64..64,
        generator,
        clock: None,
        generation: None,
    }));
    let column = ColumnPos::new(0, 0);
    let chunk = column.chunk(0);
    link.send(FromMain::MoveViewer { viewer, dimension, chunk, radii: ViewerRadii::new(1, 1, 0) });

    // The ground is generated while nothing can be written.
    is_full.store(true, Ordering::SeqCst);
    let events = run(&mut coordinator, &link, 60);
    let id = events.iter().find_map(|event| match event {
        WorldEvent::DimensionOpened(opened) => Some(opened.dimension),
        _ => None,
    });
    // The dimension's number could not be stored, so it is not open.
    assert_eq!(id, None);
    is_full.store(false, Ordering::SeqCst);
    let (name, generator) = ("overworld".to_owned(), Arc::new(Flat::new()));
    link.send(FromMain::OpenDimension(DimensionSpec {
        entity: dimension,
        name,
        heights: -64..64,
        generator,
        clock: None,
        generation: None,
    }));
    run(&mut coordinator, &link, 1);
    link.send(FromMain::MoveViewer { viewer, dimension, chunk, radii: ViewerRadii::new(1, 1, 0) });
    is_full.store(true, Ordering::SeqCst);
    let events = run(&mut coordinator, &link, 60);
    assert!(failures(&events) >= 2, "it is tried again, and fails again: {events:?}");

    let position = BlockPos::new(3, 20, 3);
    link.send(FromMain::Edit(SetBlock { dimension, position, block: stone }));
    link.send(FromMain::Save(7));
    // Far away, so that what nobody holds any more is given up before it could be written; then back again.
    link.send(FromMain::MoveViewer {
        viewer,
        dimension,
        chunk: ChunkPos::new(500, 0, 0),
        radii: ViewerRadii::new(1, 1, 0),
    });
    let mut events = run(&mut coordinator, &link, 30);
    link.send(FromMain::MoveViewer { viewer, dimension, chunk, radii: ViewerRadii::new(1, 1, 0) });
    events.extend(run(&mut coordinator, &link, 30));
    let is_answer = |event: &WorldEvent| matches!(event, WorldEvent::WorldSaved(saved) if saved.request == 7);
    assert!(!events.iter().any(is_answer), "nothing is durable yet");

    is_full.store(false, Ordering::SeqCst);
    let events = run(&mut coordinator, &link, 60);
    assert_eq!(events.iter().filter(|event| is_answer(event)).count(), 1);
    assert_eq!(failures(&events), 0);
    let stored = store.load_batch(DimensionId(0), column.batch(), &[column], -4..4).unwrap();
    assert_eq!(stored[0].column.block(position), stone);
    let marks = store.stored_tiles(DimensionId(0)).unwrap();
    assert!(
        marks.iter().any(|(tile, masks)| *tile == TilePos::new(0, 0) && masks[0] & 1 == 1),
        "and is known to be stored"
    );
    coordinator.shut_down();
}

#[test]
fn the_end_comes_also_when_a_commit_ends_while_it_waits_for_a_region() {
    let [ticks, writes] = [(); 2].map(|()| Gate::default());
    let has_ticked = Arc::<AtomicBool>::default();
    let disk = FullDisk { gate: writes.clone(), ..default() };
    let store = Arc::new(WorldStore::from_store(Box::new(disk)).unwrap());
    let mut blocks = BlockRegistry::new();
    blocks.register_basic_blocks();
    let [stone, grass] = ["terrane:stone", "terrane:grass"].map(|name| blocks.id(name).unwrap());
    let (gate, ticked) = (ticks.clone(), has_ticked.clone());
    let dawdle = move |region: &mut SubApp| {
        let (gate, ticked) = (gate.clone(), ticked.clone());
        region.add_systems(RegionTick, move || {
            ticked.store(true, Ordering::SeqCst);
            gate.pass();
        });
    };
    let template = RegionTemplate { plugins: vec![Arc::new(dawdle)], ..RegionTemplate::new(Arc::new(blocks)) };
    let config = CoordinatorConfig { autosave_period: Duration::from_millis(1), ..default() };
    let (app, link) = coordinator_app(config, template, store).unwrap();
    let mut coordinator = CoordinatorHandle::start(app, link.clone()).unwrap();
    let (dimension, viewer) = (Entity::from_raw_u32(1).unwrap(), Entity::from_raw_u32(2).unwrap());
    let (name, generator) = ("overworld".to_owned(), Arc::new(Flat::new()));
    let spec = DimensionSpec { entity: dimension, name, heights: -64..64, generator, clock: None, generation: None };
    link.send(FromMain::OpenDimension(spec));
    link.send(FromMain::MoveViewer {
        viewer,
        dimension,
        chunk: ChunkPos::new(0, 0, 0),
        radii: ViewerRadii::new(0, 0, 0),
    });
    wait_until("the region ticks", || has_ticked.load(Ordering::SeqCst));
    writes.close();
    let mut blocks = [stone, grass].into_iter().cycle();
    wait_until("something is written", || {
        let block = blocks.next().unwrap();
        link.send(FromMain::Edit(SetBlock { dimension, position: BlockPos::new(3, 20, 3), block }));
        writes.waiting() > 0
    });
    ticks.close();
    wait_until("the region is in a tick", || ticks.waiting() > 0);
    let (sender, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        coordinator.shut_down();
        sender.send(()).unwrap();
    });
    // Both are waited for: first the commit ends, then the tick.
    for gate in [writes, ticks] {
        assert!(ended.recv_timeout(Duration::from_millis(200)).is_err(), "it does not wait");
        gate.open();
    }
    assert_eq!(ended.recv_timeout(Duration::from_secs(20)), Ok(()), "the end hangs");
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let patience = Instant::now() + Duration::from_secs(30);
    while !done() {
        assert!(Instant::now() < patience, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
