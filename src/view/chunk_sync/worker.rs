//! What a client of a server does beside the frames: it reads and writes the cache, decodes chunks, and puts columns together.

use super::SyncCache;
use crate::block::{BlockId, BlockRegistry, PLACEHOLDER};
use crate::chunk::{Chunk, Column, Renumbering, format};
use crate::chunk_sync::{ChunkCache, SyncArea, SyncClient, SyncError, SyncNews, SyncProgress, SyncWelcome};
use crate::coordinator::ColumnUpdate;
use crate::space::{ChunkPos, ColumnPos, HeightSet};
use bevy::log::{info, warn};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use std::time::Duration;

/// After so long without news the cache is written.
const QUIET: Duration = Duration::from_millis(500);

/// What the client's entity tells the worker.
#[derive(Debug)]
pub(super) enum ToWorker {
    Look(SyncArea),
    Message(Vec<u8>),
    Disconnected,
}

/// What the worker tells the client's entity.
pub(super) enum FromWorker {
    /// A column came, changed or went.
    Column(ColumnPos, ColumnUpdate),
    /// A chunk of a column that is there changed.
    Chunk(ChunkPos, Arc<Chunk>),
    /// To be sent to the server.
    Message(Vec<u8>),
    /// Something the server sent is no message.
    Nonsense(SyncError),
    /// How far it is with these chunks.
    Progress(Option<SyncArea>, SyncProgress),
}

/// Runs until nobody listens any more.
pub(super) fn run(
    cache: Option<SyncCache>,
    blocks: Arc<BlockRegistry>,
    orders: &Receiver<ToWorker>,
    told: &Sender<FromWorker>,
) {
    let cache = cache.and_then(|SyncCache { path, most_bytes }| {
        let opened = ChunkCache::open(&path, most_bytes);
        opened.map_err(|error| warn!("chunks are not cached: {error}")).ok()
    });
    let mut client = SyncClient::new(cache);
    let mut ground = Ground::new(blocks);
    let mut is_written = true;
    loop {
        let order = match orders.recv_timeout(QUIET) {
            Ok(order) => Some(order),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if order.is_none() && !is_written {
            client.flush();
            is_written = true;
        }
        for order in order.into_iter().chain(orders.try_iter()) {
            is_written = false;
            match order {
                ToWorker::Look(area) => client.look(area),
                ToWorker::Disconnected => client.disconnected(),
                ToWorker::Message(message) => {
                    if let Err(error) = client.receive(&message) {
                        let _ = told.send(FromWorker::Nonsense(error));
                    }
                }
            }
        }
        while let Some(news) = client.next_news() {
            ground.take_in(news, told);
        }
        while let Some(message) = client.next_message() {
            let _ = told.send(FromWorker::Message(message));
        }
        if let Some(error) = client.take_cache_error() {
            warn!("chunks are not cached any more: {error}");
        }
        if told.send(FromWorker::Progress(client.wish(), client.progress())).is_err() {
            break;
        }
    }
    client.flush();
}

/// The columns as the game sees them.
struct Ground {
    /// Those of the game.
    blocks: Arc<BlockRegistry>,
    server: Option<Numbers>,
    /// What is known of whole columns that are not complete, and the heights that are there of others.
    incomplete: FxHashMap<ColumnPos, FxHashMap<i64, Option<Arc<Chunk>>>>,
    /// Columns that the game was told of.
    shown: FxHashSet<ColumnPos>,
    has_named_unknown: bool,
}

/// What the server's numbers mean.
struct Numbers {
    welcome: SyncWelcome,
    registry: BlockRegistry,
    renumbering: Renumbering,
}

impl Ground {
    fn new(blocks: Arc<BlockRegistry>) -> Self {
        let (incomplete, shown) = Default::default();
        Self { blocks, server: None, incomplete, shown, has_named_unknown: false }
    }

    fn take_in(&mut self, news: SyncNews, told: &Sender<FromWorker>) {
        match news {
            SyncNews::Welcome(welcome) => self.meet(welcome),
            SyncNews::Chunk { chunk, bytes, .. } => match self.decode(&bytes) {
                Ok(blocks) => self.put(chunk, Some(blocks), told),
                Err(reason) => warn!("chunk {chunk} cannot be shown: {reason}"),
            },
            SyncNews::Gone(chunk) => self.put(chunk, None, told),
            // In place of ground that nobody knows there is nothing; what is known stays.
            SyncNews::Unreadable(chunk) => {
                if !self.knows(chunk) {
                    self.put(chunk, None, told);
                }
            }
            SyncNews::Left(chunk) => self.let_go(chunk, told),
            SyncNews::AnotherWorld => {
                self.incomplete.clear();
                for column in self.shown.drain() {
                    let _ = told.send(FromWorker::Column(column, ColumnUpdate::Unloaded));
                }
            }
            SyncNews::Current(_) => {}
        }
    }

    fn meet(&mut self, welcome: SyncWelcome) {
        let registry = BlockRegistry::from_records(welcome.blocks.clone(), welcome.components.clone());
        let registry = match registry {
            Ok(registry) => registry,
            Err(error) => return warn!("the blocks of the server make no sense: {error}"),
        };
        let unknown = self.blocks.id(PLACEHOLDER).unwrap_or(BlockId::AIR);
        let renumbering = Renumbering::new(&registry, &self.blocks, unknown);
        if !renumbering.unknown().is_empty() && !std::mem::replace(&mut self.has_named_unknown, true) {
            info!("the server has blocks that this game does not know: {}", renumbering.unknown().join(", "));
        }
        self.server = Some(Numbers { welcome, registry, renumbering });
    }

    fn decode(&self, bytes: &[u8]) -> Result<Arc<Chunk>, String> {
        let Some(Numbers { registry, renumbering, .. }) = &self.server else {
            return Err("the server has not said what its numbers mean".into());
        };
        let decoded = format::decode_with(registry, bytes).map_err(|error| error.to_string())?;
        Ok(Arc::new(renumbering.chunk(decoded.chunk, &self.blocks)))
    }

    fn knows(&self, chunk: ChunkPos) -> bool {
        let column = chunk.column();
        self.shown.contains(&column) || self.incomplete.get(&column).is_some_and(|known| known.contains_key(&chunk.y))
    }

    /// A chunk as it is now; `None` if there is none.
    fn put(&mut self, chunk: ChunkPos, blocks: Option<Arc<Chunk>>, told: &Sender<FromWorker>) {
        let Some(Numbers { welcome, .. }) = &self.server else { return };
        let column = chunk.column();
        if !welcome.has_whole_columns() {
            return self.put_part(chunk, blocks, told);
        }
        if self.shown.contains(&column) {
            let _ = match blocks {
                Some(blocks) => told.send(FromWorker::Chunk(chunk, blocks)),
                // Nothing is generated there any more.
                None => {
                    self.shown.remove(&column);
                    told.send(FromWorker::Column(column, ColumnUpdate::Unloaded))
                }
            };
            return;
        }
        let known = self.incomplete.entry(column).or_default();
        known.insert(chunk.y, blocks);
        let heights = welcome.chunk_heights.end.abs_diff(welcome.chunk_heights.start);
        if (known.len() as u64) < heights || known.values().any(Option::is_none) {
            return;
        }
        let mut blocks = Column::new(column);
        for (y, chunk) in self.incomplete.remove(&column).unwrap_or_default() {
            if let Some(chunk) = chunk.filter(|chunk| chunk.uniform_block() != Some(BlockId::AIR)) {
                blocks.set_chunk(y, chunk);
            }
        }
        let is_new = self.shown.insert(column);
        let _ = told.send(FromWorker::Column(column, ColumnUpdate::Loaded { blocks, is_new }));
    }

    /// The same in a dimension so tall that of a column only parts are known.
    fn put_part(&mut self, chunk: ChunkPos, blocks: Option<Arc<Chunk>>, told: &Sender<FromWorker>) {
        let column = chunk.column();
        let parts = self.incomplete.entry(column).or_default();
        let was_there = match &blocks {
            Some(_) => parts.insert(chunk.y, None).is_some(),
            None => parts.remove(&chunk.y).is_some(),
        };
        if parts.is_empty() {
            self.incomplete.remove(&column);
            if self.shown.remove(&column) {
                let _ = told.send(FromWorker::Column(column, ColumnUpdate::Unloaded));
            }
            return;
        }
        let mut gained = Column::partial(column, HeightSet::new());
        if let Some(blocks) = blocks {
            if was_there {
                let _ = told.send(FromWorker::Chunk(chunk, blocks));
                return;
            }
            gained.set_chunk(chunk.y, blocks);
        }
        let update = match self.shown.insert(column) {
            true => ColumnUpdate::Loaded { blocks: gained, is_new: true },
            false => ColumnUpdate::Changed { lost: HeightSet::from(chunk.y..chunk.y.saturating_add(1)), gained },
        };
        let _ = told.send(FromWorker::Column(column, update));
    }

    fn let_go(&mut self, chunk: ChunkPos, told: &Sender<FromWorker>) {
        let column = chunk.column();
        let is_whole = self.server.as_ref().is_none_or(|server| server.welcome.has_whole_columns());
        if !is_whole {
            return self.put_part(chunk, None, told);
        }
        self.incomplete.remove(&column);
        if self.shown.remove(&column) {
            let _ = told.send(FromWorker::Column(column, ColumnUpdate::Unloaded));
        }
    }
}
