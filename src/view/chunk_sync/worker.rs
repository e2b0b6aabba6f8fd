//! The work of a client beside the frames: it reads and writes the cache, decodes chunks, and assembles columns.

use super::packets::SentBody;
use crate::block::{BlockId, BlockRegistry, PLACEHOLDER};
use crate::chunk::{Chunk, Column, Renumbering, format};
use crate::chunk_sync::{ChunkCache, EditAnswer, SyncArea, SyncClient, SyncNews, SyncProgress, SyncWelcome};
use crate::coordinator::messages::ColumnUpdate;
use crate::entity_sync::{EntityClient, EntityNews};
use crate::light::{ColumnLight, LightTable};
use crate::object_store::ObjectStoreError;
use crate::simulation::{RegionLight, light_alone};
use crate::space::{BlockPos, ChunkPos, ColumnPos, HeightSet};
use bevy::log::{info, warn};
use bevy::utils::default;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use rustc_hash::{FxHashMap, FxHashSet};
use std::mem;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The cache is written after this time without news.
const QUIET: Duration = Duration::from_millis(500);

/// The number of news items between two checks for other work. The cache may contain many.
const NEWS_AT_ONCE: usize = 256;
/// The steps of light between two checks for other work, about a microsecond each.
const LIGHT_STEPS: usize = 5_000;
/// How long another worker may still be writing the cache.
const PATIENCE: Duration = Duration::from_secs(5);

/// A message from the client's entity to the worker.
#[derive(Debug)]
pub(super) enum ToWorker {
    Look(SyncArea),
    Message(Vec<u8>),
    Edit { number: u64, position: BlockPos, block: BlockId },
    Act { number: u64, bytes: Vec<u8> },
    Disconnected,
}

/// A message from the worker to the client's entity.
pub(super) enum FromWorker {
    /// A column was loaded, changed or unloaded.
    Column(ColumnPos, ColumnUpdate),
    /// A chunk of a loaded column changed.
    Chunk(ChunkPos, Arc<Chunk>),
    /// The light of a column.
    Light(ColumnLight),
    /// A message for the server.
    Message(Vec<u8>),
    /// A message from the server was malformed.
    Nonsense(String),
    /// An edit is decided. The chunks that were reported before include the decision.
    Edit(EditAnswer),
    /// News of the entity that acts for the client.
    Actor(Vec<u8>),
    /// News of an entity nearby.
    Entity(EntityNews),
    /// The client's own body, as the server has it.
    Body(SentBody),
    /// The connection was lost. No earlier message is for the next one.
    Disconnected,
    /// The progress with the chunks of an area.
    Progress { area: Option<SyncArea>, progress: SyncProgress, takes_edits: bool },
}

/// Runs until the client is gone.
pub(super) fn run(
    cache: Option<(PathBuf, u64)>,
    (blocks, table): (Arc<BlockRegistry>, Option<Arc<LightTable>>),
    (orders, unread): (&Receiver<ToWorker>, &AtomicUsize),
    told: &Sender<FromWorker>,
) {
    let cache = cache.and_then(|(path, most_bytes)| open(&path, most_bytes, PATIENCE));
    let (mut client, mut entities) = (SyncClient::new(cache), EntityClient::default());
    let mut ground = ShownColumns::new(blocks, table);
    let (mut is_written, mut is_busy) = (true, false);
    let began = Instant::now();
    loop {
        let order = match orders.recv_timeout(if is_busy { Duration::ZERO } else { QUIET }) {
            Ok(order) => Some(order),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if order.is_none() && !is_written && !is_busy {
            client.flush();
            is_written = true;
        }
        for order in order.into_iter().chain(orders.try_iter()) {
            is_written = false;
            if let ToWorker::Message(message) = &order {
                unread.fetch_sub(message.len(), Ordering::Relaxed);
            }
            follow((&mut client, &mut entities), order, &ground, began.elapsed(), told);
        }
        while let Some(news) = entities.next_news() {
            let _ = told.send(FromWorker::Entity(news));
        }
        client.expire(began.elapsed());
        is_busy = true;
        for _ in 0..NEWS_AT_ONCE {
            let Some(news) = client.next_news() else {
                is_busy = false;
                break;
            };
            ground.apply(news, told);
        }
        is_busy |= !ground.advance_light(told);
        while let Some(message) = client.next_message() {
            let _ = told.send(FromWorker::Message(message));
        }
        if let Some(error) = client.take_cache_error() {
            warn!("chunks are no longer cached: {error}");
        }
        let (area, progress, takes_edits) = (client.wish(), client.progress(), client.takes_edits());
        if told.send(FromWorker::Progress { area, progress, takes_edits }).is_err() {
            break;
        }
    }
    client.flush();
}

fn follow(
    (client, entities): (&mut SyncClient, &mut EntityClient),
    order: ToWorker,
    ground: &ShownColumns,
    now: Duration,
    told: &Sender<FromWorker>,
) {
    match order {
        ToWorker::Look(area) => client.look(area),
        ToWorker::Disconnected => {
            client.disconnected();
            entities.disconnected();
            let _ = told.send(FromWorker::Disconnected);
        }
        ToWorker::Edit { number, position, block } => match ground.number_on_server(block) {
            Some(block) => client.edit(now, number, position, block),
            None => client.refuse([number]),
        },
        ToWorker::Act { number, bytes } => client.act(now, number, bytes),
        ToWorker::Message(message) => {
            if let Err(error) = take_message(client, entities, &message, told) {
                let _ = told.send(FromWorker::Nonsense(error));
            }
        }
    }
}

fn take_message(
    client: &mut SyncClient,
    entities: &mut EntityClient,
    message: &[u8],
    told: &Sender<FromWorker>,
) -> Result<(), String> {
    if entities.receive(message).map_err(|error| error.to_string())? {
        return Ok(());
    }
    match SentBody::read(message) {
        Some(body) => _ = told.send(FromWorker::Body(body.map_err(|error| error.to_string())?)),
        None => client.receive(message).map_err(|error| error.to_string())?,
    }
    Ok(())
}

fn open(path: &Path, most_bytes: u64, patience: Duration) -> Option<ChunkCache> {
    let began = Instant::now();
    loop {
        match ChunkCache::open(path, most_bytes) {
            Err(ObjectStoreError::Locked { .. }) if began.elapsed() < patience => std::thread::sleep(patience / 100),
            opened => return opened.map_err(|error| warn!("chunks are not cached: {error}")).ok(),
        }
    }
}

/// The columns that the game sees.
struct ShownColumns {
    /// The blocks of the game.
    blocks: Arc<BlockRegistry>,
    server: Option<Numbers>,
    /// The known chunks of columns, by height; `None` where there is no chunk.
    known: FxHashMap<ColumnPos, FxHashMap<i64, Option<Arc<Chunk>>>>,
    /// The columns that were reported to the game.
    shown: FxHashSet<ColumnPos>,
    has_named_unknown: bool,
    lit: Option<LitColumns>,
}

/// The columns that the game sees, with their light, which the client computes from their blocks.
struct LitColumns {
    table: Arc<LightTable>,
    columns: FxHashMap<ColumnPos, Column>,
    light: RegionLight,
}

impl LitColumns {
    fn apply(&mut self, column: ColumnPos, update: &ColumnUpdate, heights: &Range<i64>, open_from: i64) {
        if !matches!(update, ColumnUpdate::Changed { .. }) {
            self.columns.remove(&column);
            self.light.remove(column);
        }
        let gained = match update {
            ColumnUpdate::Loaded { blocks, .. } => blocks,
            ColumnUpdate::Changed { lost, gained } => {
                if let Some(known) = self.columns.get_mut(&column) {
                    known.cut(lost);
                    self.light.cut(column, lost);
                }
                gained
            }
            ColumnUpdate::Unloaded => return,
        };
        self.light.insert(gained, || Some(light_alone(&self.table, gained, heights, open_from)));
        match self.columns.get_mut(&column) {
            Some(known) => _ = known.extend(gained),
            None => _ = self.columns.insert(column, gained.clone()),
        }
    }

    fn change(&mut self, pos: ChunkPos, chunk: &Arc<Chunk>) {
        let Some(column) = self.columns.get_mut(&pos.column()) else { return };
        let old = column.set_chunk(pos.y, chunk.clone());
        self.light.chunk_changed(&self.table, pos, old.as_deref(), Some(chunk));
    }
}

/// The meaning of the server's numbers.
struct Numbers {
    welcome: SyncWelcome,
    registry: BlockRegistry,
    renumbering: Renumbering,
}

impl ShownColumns {
    fn new(blocks: Arc<BlockRegistry>, table: Option<Arc<LightTable>>) -> Self {
        let (known, shown) = Default::default();
        let lit = table.map(|table| LitColumns { table, columns: default(), light: default() });
        Self { blocks, server: None, known, shown, has_named_unknown: false, lit }
    }

    /// Works off changes of light. Returns `true` if nothing is left.
    fn advance_light(&mut self, told: &Sender<FromWorker>) -> bool {
        let Some(LitColumns { table, columns, light }) = &mut self.lit else { return true };
        for light in light.advance(table, columns, LIGHT_STEPS) {
            let _ = told.send(FromWorker::Light(light));
        }
        light.is_settled()
    }

    fn show(&mut self, column: ColumnPos, update: ColumnUpdate, told: &Sender<FromWorker>) {
        if let Some(lit) = &mut self.lit {
            let heights = self.server.as_ref().map_or(0..0, |server| server.welcome.chunk_heights.clone());
            // Whether the sky is open above a part of a column is not known here.
            let open_from = match &self.server {
                Some(server) if server.welcome.has_whole_columns() => heights.end,
                _ => i64::MIN,
            };
            lit.apply(column, &update, &heights, open_from);
        }
        let _ = told.send(FromWorker::Column(column, update));
    }

    fn apply(&mut self, news: SyncNews, told: &Sender<FromWorker>) {
        match news {
            SyncNews::Welcome(welcome) => self.meet(welcome),
            SyncNews::Chunk { chunk, bytes, .. } => match self.decode(&bytes) {
                Ok(blocks) => self.put(chunk, Some(blocks), told),
                Err(reason) => warn!("chunk {chunk} cannot be shown: {reason}"),
            },
            SyncNews::Gone(chunk) => self.put(chunk, None, told),
            // A chunk that was never known counts as missing; a known one stays.
            SyncNews::Unreadable(chunk) => {
                if !self.knows(chunk) {
                    self.put(chunk, None, told);
                }
            }
            SyncNews::Left(chunk) => self.release(chunk, told),
            SyncNews::AnotherWorld => {
                self.known.clear();
                for column in mem::take(&mut self.shown) {
                    self.show(column, ColumnUpdate::Unloaded, told);
                }
            }
            SyncNews::Edit(answer) => {
                // So that no frame shows the block in the light from before.
                self.advance_light(told);
                let _ = told.send(FromWorker::Edit(answer));
            }
            SyncNews::Actor(message) => _ = told.send(FromWorker::Actor(message)),
            SyncNews::Current(_) => {}
        }
    }

    /// The server's number for a block of the game; `None` if the server does not know the block.
    fn number_on_server(&self, block: BlockId) -> Option<BlockId> {
        let Numbers { registry, .. } = self.server.as_ref()?;
        self.blocks.contains(block).then(|| registry.id(self.blocks.block(block).name())).flatten()
    }

    fn meet(&mut self, welcome: SyncWelcome) {
        self.server = None;
        let registry = BlockRegistry::from_records(welcome.blocks.clone(), welcome.components.clone());
        let registry = match registry {
            Ok(registry) => registry,
            Err(error) => return warn!("the server's list of blocks is invalid: {error}"),
        };
        let unknown = self.blocks.id(PLACEHOLDER).unwrap_or(BlockId::AIR);
        let renumbering = Renumbering::new(&registry, &self.blocks, unknown);
        if !renumbering.unknown().is_empty() && !mem::replace(&mut self.has_named_unknown, true) {
            info!("the server has blocks that this game does not know: {}", renumbering.unknown().join(", "));
        }
        self.server = Some(Numbers { welcome, registry, renumbering });
    }

    fn decode(&self, bytes: &[u8]) -> Result<Arc<Chunk>, String> {
        let Some(Numbers { registry, renumbering, .. }) = &self.server else {
            return Err("the server has not said what its numbers mean".into());
        };
        let (chunk, _) = format::decode(registry, bytes).map_err(|error| error.to_string())?;
        Ok(Arc::new(renumbering.chunk(chunk, &self.blocks)))
    }

    fn knows(&self, chunk: ChunkPos) -> bool {
        self.known.get(&chunk.column()).is_some_and(|known| known.contains_key(&chunk.y))
    }

    /// Sets the present state of a chunk; `None` if there is none.
    fn put(&mut self, chunk: ChunkPos, blocks: Option<Arc<Chunk>>, told: &Sender<FromWorker>) {
        let Some(Numbers { welcome, .. }) = &self.server else { return };
        let column = chunk.column();
        let known = self.known.entry(column).or_default();
        let before = known.insert(chunk.y, blocks.clone());
        let is_shown = self.shown.contains(&column);
        let height = HeightSet::from(chunk.y..chunk.y.saturating_add(1));
        let update = match (before.flatten(), blocks) {
            (None, None) => None,
            (Some(_), Some(blocks)) if is_shown => {
                if let Some(lit) = &mut self.lit {
                    lit.change(chunk, &blocks);
                }
                let _ = told.send(FromWorker::Chunk(chunk, blocks));
                return;
            }
            // A whole column is reported only when all of it is known.
            _ if welcome.has_whole_columns() => {
                let is_known = known.len() as u64 >= welcome.chunk_heights.end.abs_diff(welcome.chunk_heights.start);
                is_known.then(|| whole(column, known)).flatten()
            }
            (_, Some(blocks)) => Some(part(column, height, blocks, is_shown)),
            (Some(_), None) if known.values().any(Option::is_some) => {
                Some(ColumnUpdate::Changed { lost: height, gained: Column::partial(column, HeightSet::new()) })
            }
            (Some(_), None) => None,
        };
        let is_there = known.values().any(Option::is_some);
        if let Some(update) = update {
            self.shown.insert(column);
            self.show(column, update, told);
        } else if is_shown && !is_there && self.shown.remove(&column) {
            self.show(column, ColumnUpdate::Unloaded, told);
        }
    }

    /// Removes a chunk that is too far away.
    fn release(&mut self, chunk: ChunkPos, told: &Sender<FromWorker>) {
        let column = chunk.column();
        let is_whole = self.server.as_ref().is_none_or(|server| server.welcome.has_whole_columns());
        if !is_whole {
            self.put(chunk, None, told);
        }
        let Some(known) = self.known.get_mut(&column) else { return };
        known.remove(&chunk.y);
        if is_whole || known.is_empty() {
            self.known.remove(&column);
            if self.shown.remove(&column) {
                self.show(column, ColumnUpdate::Unloaded, told);
            }
        }
    }
}

/// A column that is completely known, with the heights that have a chunk; `None` if none has.
fn whole(column: ColumnPos, known: &FxHashMap<i64, Option<Arc<Chunk>>>) -> Option<ColumnUpdate> {
    let mut blocks = match known.values().all(Option::is_some) {
        true => Column::new(column),
        false => Column::partial(column, known.iter().filter(|(_, chunk)| chunk.is_some()).map(|(y, _)| *y).collect()),
    };
    for (y, chunk) in known.iter().filter_map(|(y, chunk)| Some((*y, chunk.as_ref()?))) {
        if chunk.uniform_block() != Some(BlockId::AIR) {
            blocks.set_chunk(y, chunk.clone());
        }
    }
    let is_there = known.values().any(Option::is_some);
    is_there.then_some(ColumnUpdate::Loaded { blocks, is_new: false })
}

/// An update for one more height of a column.
fn part(column: ColumnPos, height: HeightSet, blocks: Arc<Chunk>, is_shown: bool) -> ColumnUpdate {
    let mut gained = Column::partial(column, height.clone());
    height.iter().for_each(|y| _ = gained.set_chunk(y, blocks.clone()));
    match is_shown {
        true => ColumnUpdate::Changed { lost: height, gained },
        false => ColumnUpdate::Loaded { blocks: gained, is_new: false },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{BlockRecord, BlockType};
    use crossbeam_channel::unbounded;

    const COLUMN: ColumnPos = ColumnPos::new(3, 4);

    /// The columns of a dimension with these heights, and the messages to the game.
    struct Seen {
        ground: ShownColumns,
        told: Sender<FromWorker>,
        hears: Receiver<FromWorker>,
        column: Option<Column>,
    }

    fn seen(chunk_heights: Range<i64>) -> Seen {
        let mut registry = BlockRegistry::new();
        registry.register(BlockType::new("game:stone")).unwrap();
        let blocks: Vec<BlockRecord> = registry.block_records().collect();
        let dimension = "overworld".into();
        let mut ground = ShownColumns::new(Arc::new(registry), None);
        ground.meet(SyncWelcome { dimension, chunk_heights, radius: 9, vertical: 9, blocks, components: Vec::new() });
        let (told, hears) = unbounded();
        Seen { ground, told, hears, column: None }
    }

    impl Seen {
        fn apply(&mut self, news: SyncNews) {
            self.ground.apply(news, &self.told);
            for told in self.hears.try_iter() {
                match told {
                    FromWorker::Column(_, ColumnUpdate::Loaded { blocks, .. }) => self.column = Some(blocks),
                    FromWorker::Column(_, ColumnUpdate::Unloaded) => self.column = None,
                    FromWorker::Column(_, ColumnUpdate::Changed { lost, gained }) => {
                        let column = self.column.as_mut().expect("a column that is there");
                        column.cut(&lost);
                        column.extend(&gained);
                    }
                    FromWorker::Chunk(chunk, blocks) => {
                        let column = self.column.as_mut().expect("a column that is there");
                        assert!(column.is_loaded(chunk.y));
                        column.set_chunk(chunk.y, blocks);
                    }
                    _ => unreachable!("the ground tells nothing else"),
                }
            }
        }

        fn chunk(&mut self, y: i64, block: u32) {
            let mut bytes = Vec::new();
            format::encode(&(), &Chunk::uniform(BlockId::new(block)), &[], &mut bytes).unwrap();
            self.apply(SyncNews::Chunk { chunk: COLUMN.chunk(y), bytes, is_cached: false });
        }

        /// The blocks of the chunks at these heights; `None` for a missing chunk.
        fn found(&self, heights: Range<i64>) -> Vec<Option<u32>> {
            let block = |y| {
                let column = self.column.as_ref().filter(|column| column.is_loaded(y))?;
                Some(column.block(COLUMN.chunk(y).min_block()).index())
            };
            heights.map(block).collect()
        }
    }

    /// Promise, chunk sync: A client asks for whole columns in a dimension of up to 64 chunks of height.
    #[test]
    fn a_whole_column_is_seen_when_all_of_it_is_known() {
        let mut seen = seen(0..3);
        seen.chunk(0, 1);
        seen.chunk(2, 1);
        assert!(seen.column.is_none());
        seen.chunk(1, 0);
        assert_eq!(seen.found(-1..4), [0, 1, 0, 1, 0].map(Some));
        seen.chunk(1, 1);
        assert_eq!(seen.found(0..3), [Some(1); 3]);
        seen.apply(SyncNews::Left(COLUMN.chunk(2)));
        assert!(seen.column.is_none());
    }

    #[test]
    fn a_column_with_a_temporarily_missing_chunk_becomes_whole_again() {
        let mut seen = seen(0..3);
        (0..3).for_each(|y| seen.chunk(y, 1));
        seen.apply(SyncNews::Gone(COLUMN.chunk(1)));
        seen.apply(SyncNews::Current(COLUMN.chunk(2)));
        assert_eq!(seen.found(-1..4), [None, Some(1), None, Some(1), None]);
        seen.chunk(1, 1);
        assert_eq!(seen.found(-1..4), [0, 1, 1, 1, 0].map(Some));
        (0..3).for_each(|y| seen.apply(SyncNews::Gone(COLUMN.chunk(y))));
        assert!(seen.column.is_none());
        (0..3).for_each(|y| seen.chunk(y, 1));
        assert_eq!(seen.found(0..3), [Some(1); 3]);
    }

    #[test]
    fn an_unreadable_chunk_is_a_hole_or_keeps_its_old_blocks() {
        let mut seen = seen(0..3);
        seen.chunk(0, 1);
        seen.apply(SyncNews::Unreadable(COLUMN.chunk(1)));
        seen.chunk(2, 1);
        assert_eq!(seen.found(0..3), [Some(1), None, Some(1)]);
        seen.apply(SyncNews::Unreadable(COLUMN.chunk(2)));
        assert_eq!(seen.found(0..3), [Some(1), None, Some(1)]);
    }

    #[test]
    fn of_a_tall_dimension_parts_of_columns_come_and_go() {
        let mut seen = seen(-1_000..1_000);
        seen.apply(SyncNews::Gone(COLUMN.chunk(6)));
        assert!(seen.column.is_none());
        seen.chunk(5, 1);
        seen.chunk(7, 0);
        assert_eq!(seen.found(4..9), [None, Some(1), None, Some(0), None]);
        seen.chunk(7, 1);
        seen.chunk(6, 1);
        seen.apply(SyncNews::Left(COLUMN.chunk(5)));
        assert_eq!(seen.found(4..9), [None, None, Some(1), Some(1), None]);
        seen.apply(SyncNews::Gone(COLUMN.chunk(6)));
        seen.apply(SyncNews::Left(COLUMN.chunk(6)));
        seen.apply(SyncNews::Left(COLUMN.chunk(7)));
        assert!(seen.column.is_none() && seen.ground.known.is_empty());
    }
}
