//! Both sides together, without a network.

mod changing;
mod editing;
mod exchange;
mod fixtures;
mod golden;
mod hostile;
mod keeping;
mod predicting;

use super::*;
use crate::block::{BlockRecord, BlockRegistry};
use crate::space::ChunkPos;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const CACHE_BYTES: u64 = 64 << 20;

fn records(names: &[&str]) -> Vec<BlockRecord> {
    let air = BlockRegistry::new().block_records().next();
    let record = |name: &&str| BlockRecord { name: (*name).into(), components: Vec::new() };
    air.into_iter().chain(names.iter().map(record)).collect()
}

fn server(limits: SyncLimits) -> SyncServer {
    SyncServer::new("overworld", -2..3, (records(&["game:stone"]), Vec::new()), limits)
}

/// Returns the first message; a budget begins empty.
fn welcome_of(server: &mut SyncServer) -> Vec<u8> {
    assert_eq!(server.messages(Duration::ZERO), Vec::<Vec<u8>>::new());
    server.messages(Duration::from_secs(9)).remove(0)
}

fn client(cache: &Path) -> SyncClient {
    SyncClient::new(Some(ChunkCache::open(cache, CACHE_BYTES).unwrap()))
}

fn found(chunk: ChunkPos, bytes: &[u8]) -> Arc<FoundChunk> {
    FoundChunk::new(chunk, bytes.into())
}

fn area(x: i64, z: i64, radius: u32) -> SyncArea {
    SyncArea { center: ChunkPos::new(x, 0, z), radius, vertical: 8 }
}

/// The bytes of the chunks of the server's world.
type World = BTreeMap<ChunkPos, Arc<[u8]>>;

/// A server, a client, and a connection with latency between them.
struct Wire {
    server: SyncServer,
    client: SyncClient,
    world: World,
    now: Duration,
    /// The latency of messages in steps.
    latency: usize,
    up: VecDeque<Vec<Vec<u8>>>,
    down: VecDeque<Vec<Vec<u8>>>,
    looked_up: VecDeque<Vec<ChunkPos>>,
    /// The current chunks of the client, and whether the server has confirmed them.
    told: FxHashMap<ChunkPos, (Vec<u8>, bool)>,
    /// The order of the client's news of chunks.
    order: Vec<ChunkPos>,
}

impl Wire {
    fn new(limits: SyncLimits, cache: &Path, world: World) -> Self {
        let (server, client) = (server(limits), client(cache));
        let (up, down, looked_up, told, order) = Default::default();
        Self { server, client, world, now: Duration::ZERO, latency: 0, up, down, looked_up, told, order }
    }

    /// Loses the connection with all messages in flight, and reconnects.
    fn reconnect(&mut self, limits: SyncLimits) {
        self.server = server(limits);
        self.up.clear();
        self.down.clear();
        self.looked_up.clear();
    }

    fn take_news(&mut self) {
        while let Some(news) = self.client.next_news() {
            match news {
                SyncNews::Chunk { chunk, bytes, is_cached } => {
                    self.order.push(chunk);
                    self.told.insert(chunk, (bytes, !is_cached));
                }
                SyncNews::Current(chunk) => self.told.get_mut(&chunk).unwrap().1 = true,
                SyncNews::Gone(chunk) | SyncNews::Left(chunk) => _ = self.told.remove(&chunk),
                SyncNews::AnotherWorld => self.told.clear(),
                SyncNews::Welcome(_) | SyncNews::Edit(_) | SyncNews::Actor(_) => {}
                SyncNews::Unreadable(chunk) => panic!("{chunk} can be read"),
            }
        }
    }

    fn step(&mut self) {
        self.now += Duration::from_millis(100);
        self.take_news();
        self.up.push_back(std::iter::from_fn(|| self.client.next_message()).collect());
        while self.up.len() > self.latency {
            self.up.pop_front().unwrap().iter().for_each(|message| self.server.receive(message).unwrap());
        }
        self.looked_up.push_back(self.server.wanted(64));
        while self.looked_up.len() > self.latency {
            for chunk in self.looked_up.pop_front().unwrap() {
                self.server.found(chunk, Ok(self.world.get(&chunk).map(|bytes| found(chunk, bytes))));
            }
        }
        self.down.push_back(self.server.messages(self.now));
        while self.down.len() > self.latency {
            self.down.pop_front().unwrap().iter().for_each(|message| self.client.receive(message).unwrap());
        }
        self.take_news();
    }

    fn is_idle(&self) -> bool {
        let progress = self.client.progress();
        self.server.progress().waiting == 0
            && [&self.up, &self.down].iter().all(|wire| wire.iter().all(Vec::is_empty))
            && progress.wanted > 0
            && progress.answered == progress.wanted
    }

    fn settle(&mut self) {
        let mut idle = 0;
        for _ in 0..10_000 {
            self.step();
            idle = if self.is_idle() { idle + 1 } else { 0 };
            if idle > self.latency {
                return;
            }
        }
        panic!("it never ends: {:?}, {:?}", self.client.progress(), self.server.progress());
    }

    fn edit(&mut self, chunk: ChunkPos, bytes: &[u8]) {
        self.world.insert(chunk, bytes.into());
        self.server.changed(chunk);
    }

    /// Checks that the client has exactly the chunks of the area as they are in the world.
    fn assert_right(&self, area: SyncArea) {
        for (chunk, bytes) in self.world.iter().filter(|(chunk, _)| area.contains(**chunk)) {
            assert_eq!(self.told.get(chunk), Some(&(bytes.to_vec(), true)), "{chunk}");
        }
        for chunk in self.told.keys() {
            assert!(self.world.contains_key(chunk), "{chunk} is not in the world");
        }
    }
}

/// Lets a client see this area of a world and leave. Returns the world.
fn visit(cache: &Path, world: World, area: SyncArea) -> World {
    let mut wire = Wire::new(SyncLimits::default(), cache, world);
    wire.client.look(area);
    wire.settle();
    wire.assert_right(area);
    wire.client.flush();
    wire.world
}

/// A world of some columns with different bytes in each chunk.
fn world(radius: i64) -> World {
    let mut world = World::new();
    for (x, z) in (-radius..=radius).flat_map(|x| (-radius..=radius).map(move |z| (x, z))) {
        for y in -2..3 {
            world.insert(ChunkPos::new(x, y, z), format!("{x} {y} {z}").into_bytes().into());
        }
    }
    world
}
