//! [`SyncClient`]: the client's side.

mod edits;

use super::cache::CachedChunk;
use super::{
    ActorNews, ChunkCache, ChunkChanges, ChunkHash, ChunkNews, ChunkQuestions, EditAnswer, EditMessage,
    MAX_ACTION_BYTES, MAX_QUESTIONS, ServerMessage, SyncAction, SyncArea, SyncEdit, SyncError, SyncWelcome, SyncWish,
};
use crate::block::{BlockId, BlockRegistry};
use crate::space::{BlockPos, ChunkPos};
use edits::OwnEdits;
use rustc_hash::FxHashMap;
use std::cell::OnceCell;
use std::collections::VecDeque;
use std::mem;
use std::ops::Range;
use std::time::Duration;
use terrane_objects::ObjectStoreError;

/// The maximum number of unanswered questions, so that chunks that become near later need not wait long.
const MAX_UNANSWERED: usize = 4 * MAX_QUESTIONS;
/// The distance in chunks beyond the radius at which chunks are dropped, if the server allows it.
const MARGIN: u32 = 2;

/// News for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyncNews {
    /// The meaning of the numbers in chunks, and the chunk heights: first from the cache, then from the server.
    Welcome(SyncWelcome),
    /// The content of a chunk. It replaces earlier content.
    Chunk {
        /// The chunk.
        chunk: ChunkPos,
        /// Its bytes, in the chunk format.
        bytes: Vec<u8>,
        /// `true` if the chunk is from the cache, and the server has not confirmed it as current.
        is_cached: bool,
    },
    /// The server confirmed the last content of this chunk.
    Current(ChunkPos),
    /// The chunk does not exist, or not yet.
    Gone(ChunkPos),
    /// The server cannot read this chunk. Its last content may be current or not.
    Unreadable(ChunkPos),
    /// The chunk is too far away: there will be no more news of it.
    Left(ChunkPos),
    /// An edit is decided. The content of its chunk, as of the news before, includes the decision. An edit that cannot be
    /// made, or whose answer does not come, counts as refused.
    Edit(EditAnswer),
    /// News of the entity that acts for the client.
    Actor(Vec<u8>),
    /// The server has another world than the cache: all earlier news is invalid.
    AnotherWorld,
}

/// The progress of a client, and the savings of its cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncProgress {
    /// The number of wanted chunks.
    pub wanted: usize,
    /// The number of wanted chunks that the server has answered.
    pub answered: usize,
    /// The number of chunks found in the cache.
    pub cached: u64,
    /// The number of chunks that the server confirmed as current and did not send.
    pub current: u64,
    /// Their size in the chunk format in bytes.
    pub current_bytes: u64,
    /// The number of chunks that were sent.
    pub received: u64,
    /// Their size in the chunk format in bytes.
    pub received_bytes: u64,
    /// The number of changes of chunks that were sent.
    pub changes: u64,
    /// The size of all messages from the server in bytes, as received.
    pub message_bytes: u64,
}

/// A client's view of one dimension of a server. See the [module](super).
#[derive(Debug)]
pub struct SyncClient {
    cache: Option<ChunkCache>,
    cache_error: Option<ObjectStoreError>,
    welcome: Option<SyncWelcome>,
    /// The types of the server, once a change needs them; `None` if they are invalid.
    types: OnceCell<Option<BlockRegistry>>,
    is_connected: bool,
    /// The requested area, and the area within the server's limits.
    wish: Option<SyncArea>,
    area: Option<SyncArea>,
    /// The distance in chunks beyond the area within which chunks are kept.
    margin: u32,
    is_area_sent: bool,
    chunks: FxHashMap<ChunkPos, Held>,
    /// Chunks to look up in the cache and then to ask for, nearest first.
    unread: VecDeque<ChunkPos>,
    unasked: VecDeque<ChunkPos>,
    unanswered: usize,
    edits: OwnEdits,
    news: VecDeque<SyncNews>,
    progress: SyncProgress,
}

#[derive(Debug, Default)]
struct Held {
    /// The content and its hash.
    known: Option<(ChunkHash, Vec<u8>)>,
    is_asked: bool,
    is_answered: bool,
}

impl Held {
    fn hash(&self) -> Option<ChunkHash> {
        self.known.as_ref().map(|(hash, _)| *hash)
    }
}

impl SyncClient {
    /// A client with a cache, or without one.
    pub fn new(cache: Option<ChunkCache>) -> Self {
        let mut client = Self {
            cache,
            cache_error: None,
            welcome: None,
            types: OnceCell::new(),
            is_connected: false,
            wish: None,
            area: None,
            margin: 0,
            is_area_sent: false,
            chunks: FxHashMap::default(),
            unread: VecDeque::new(),
            unasked: VecDeque::new(),
            unanswered: 0,
            edits: OwnEdits::default(),
            news: VecDeque::new(),
            progress: SyncProgress::default(),
        };
        let about = client.with_cache(|cache| cache.about()).flatten();
        if let Some(Ok(ServerMessage::Welcome(welcome))) = about.map(|about| ServerMessage::decode_cached(&about)) {
            client.news.push_back(SyncNews::Welcome(welcome.clone()));
            client.welcome = Some(welcome);
        }
        client
    }

    /// The requested area.
    pub fn wish(&self) -> Option<SyncArea> {
        self.wish
    }

    /// Requests this area from now on.
    pub fn look(&mut self, wish: SyncArea) {
        self.wish = Some(wish);
        let Some(welcome) = &self.welcome else { return };
        let SyncArea { mut center, radius, mut vertical } = wish;
        let Range { start, end } = welcome.chunk_heights.clone();
        if welcome.has_whole_columns() {
            center.y = center.y.clamp(start, end.max(start.saturating_add(1)) - 1);
            vertical = u32::MAX;
        }
        // Chunks that are kept beyond the radius must lie within the server's radius.
        self.margin = MARGIN.min(welcome.radius).min(welcome.vertical);
        let reach = |wished: u32, most: u32| wished.min(most - self.margin);
        let area =
            SyncArea { center, radius: reach(radius, welcome.radius), vertical: reach(vertical, welcome.vertical) };
        if self.area.replace(area) == Some(area) {
            return;
        }
        let kept = area.grown(self.margin);
        for (chunk, held) in self.chunks.extract_if(|chunk, _| !kept.contains(*chunk)) {
            self.unanswered -= usize::from(held.is_asked && !held.is_answered);
            self.progress.answered -= usize::from(held.is_answered);
            self.news.push_back(SyncNews::Left(chunk));
        }
        let reach = i64::from(area.vertical);
        let low = center.y.saturating_sub(reach).max(start);
        let high = center.y.saturating_add(reach).min(end.saturating_sub(1));
        for column in area.columns() {
            for chunk in (low..=high).map(|y| column.chunk(y)) {
                self.chunks.entry(chunk).or_insert_with(|| {
                    self.unread.push_back(chunk);
                    Held::default()
                });
            }
        }
        self.is_area_sent = false;
        self.progress.wanted = self.chunks.len();
        for chunks in [&mut self.unread, &mut self.unasked] {
            chunks.retain(|chunk| self.chunks.contains_key(chunk));
            chunks.make_contiguous().sort_by_cached_key(|chunk| area.order(*chunk));
        }
    }

    /// The next news. If there is none, the next chunk from the cache; `None` after all near chunks in the cache.
    pub fn next_news(&mut self) -> Option<SyncNews> {
        while self.news.is_empty() {
            self.read_next()?;
        }
        self.news.pop_front()
    }

    fn read_next(&mut self) -> Option<()> {
        let chunk = self.unread.pop_front()?;
        let cached = self.with_cache(|cache| Ok(cache.chunk(chunk)?.cloned())).flatten();
        let held = self.chunks.get_mut(&chunk)?;
        self.unasked.push_back(chunk);
        // Chunks that the server sent in the meantime are newer.
        if let Some(CachedChunk { bytes, .. }) = cached
            && held.known.is_none()
            && !held.is_answered
        {
            held.known = Some((ChunkHash::of(&bytes), bytes.clone()));
            self.progress.cached += 1;
            self.news.push_back(SyncNews::Chunk { chunk, bytes, is_cached: true });
        }
        Some(())
    }

    /// Returns `true` if the server takes edits.
    pub fn takes_edits(&self) -> bool {
        self.edits.are_taken
    }

    /// Asks the server for an edit, with the server's number of the block. [`SyncNews::Edit`] answers it. `id` is a number
    /// that was not used before, `now` the time since any fixed moment.
    pub fn edit(&mut self, now: Duration, id: u64, position: BlockPos, block: BlockId) {
        let held = self.chunks.get(&position.chunk());
        let edit = held.map(|held| SyncEdit { id, position, block: block.index(), base: held.hash() });
        if !edit.is_some_and(|edit| self.edits.make(now, SyncWish::Edit(edit))) {
            self.refuse([id]);
        }
    }

    /// Asks the server for an action. [`SyncNews::Edit`] answers it. `id` and `now` are as for an [`edit`](Self::edit).
    pub fn act(&mut self, now: Duration, id: u64, bytes: Vec<u8>) {
        let fits = bytes.len() <= MAX_ACTION_BYTES;
        if !fits || !self.edits.make(now, SyncWish::Action(SyncAction { id, bytes })) {
            self.refuse([id]);
        }
    }

    /// Gives up edits whose answers did not come in 10 seconds. Call this now and then.
    pub fn expire(&mut self, now: Duration) {
        let late = self.edits.expire(now);
        self.refuse(late);
    }

    /// Answers an edit that the server does not answer, such as one of a block that the server does not know.
    pub fn refuse(&mut self, edits: impl IntoIterator<Item = u64>) {
        let refused = |id| SyncNews::Edit(EditAnswer { id, is_accepted: false });
        self.news.extend(edits.into_iter().map(refused));
    }

    /// The next message for the server, if there is one.
    pub fn next_message(&mut self) -> Option<Vec<u8>> {
        if let Some(message) = self.edits.message() {
            return Some(message);
        }
        let area = self.area.filter(|_| self.is_connected)?;
        let mut questions = Vec::new();
        while questions.len() < MAX_QUESTIONS
            && self.unanswered < MAX_UNANSWERED
            && let Some(chunk) = self.unasked.pop_front()
        {
            if let Some(held) = self.chunks.get_mut(&chunk).filter(|held| !held.is_asked) {
                held.is_asked = true;
                self.unanswered += usize::from(!held.is_answered);
                questions.push((chunk, held.hash()));
            }
        }
        if questions.is_empty() && mem::replace(&mut self.is_area_sent, true) {
            return None;
        }
        self.is_area_sent = true;
        Some(ChunkQuestions { area: area.grown(self.margin), questions }.encode())
    }

    /// Handles a message of the server. [`next_news`](Self::next_news) returns its content.
    ///
    /// # Errors
    /// Fails, without any change, if the message is invalid.
    pub fn receive(&mut self, message: &[u8]) -> Result<(), SyncError> {
        if let Some(read) = EditMessage::decode(message) {
            self.take_edit_message(read?);
            self.progress.message_bytes += message.len() as u64;
            return Ok(());
        }
        if let Some(read) = ActorNews::decode(message) {
            self.news.push_back(SyncNews::Actor(read?.bytes));
            self.progress.message_bytes += message.len() as u64;
            return Ok(());
        }
        if let Some(read) = ChunkChanges::decode(message) {
            let changes = read?;
            self.progress.message_bytes += message.len() as u64;
            changes.make(|chunk, change| self.take_change(chunk, change));
            return Ok(());
        }
        let read = ServerMessage::decode(message)?;
        self.progress.message_bytes += message.len() as u64;
        match read {
            ServerMessage::Welcome(welcome) => self.take_welcome(welcome, message),
            ServerMessage::Answers(answers) => {
                answers.into_iter().for_each(|(chunk, news)| self.take_answer(chunk, news))
            }
        }
        Ok(())
    }

    fn take_change(&mut self, chunk: ChunkPos, change: &dyn Fn(&[u8], &BlockRegistry) -> Option<Vec<u8>>) {
        let Some(held) = self.chunks.get_mut(&chunk) else { return };
        self.progress.changes += 1;
        let types = self.types.get_or_init(|| {
            let SyncWelcome { blocks, components, .. } = self.welcome.clone()?;
            BlockRegistry::from_records(blocks, components).ok()
        });
        let known = held.known.as_ref();
        match known.zip(types.as_ref()).and_then(|((_, bytes), types)| change(bytes, types)) {
            Some(bytes) => self.put(chunk, bytes),
            // The answer to an open question is newer. Without one, the whole chunk is sent instead.
            None if held.is_answered => {
                (held.is_asked, held.is_answered) = (false, false);
                self.progress.answered -= 1;
                self.unasked.push_front(chunk);
            }
            None => {}
        }
    }

    /// Takes in the content of a chunk from the server.
    fn put(&mut self, chunk: ChunkPos, bytes: Vec<u8>) {
        let Some(held) = self.chunks.get_mut(&chunk) else { return };
        held.known = Some((ChunkHash::of(&bytes), bytes.clone()));
        self.with_cache(|cache| cache.put(chunk, CachedChunk { version: 0, bytes: bytes.clone() }));
        self.news.push_back(SyncNews::Chunk { chunk, bytes, is_cached: false });
    }

    fn take_edit_message(&mut self, message: EditMessage) {
        match message {
            EditMessage::Taken => self.edits.are_taken = self.is_connected,
            EditMessage::Answers(answers) => {
                let answers = answers.into_iter().filter(|answer| self.edits.answer(*answer));
                self.news.extend(answers.map(SyncNews::Edit));
            }
        }
    }

    fn take_welcome(&mut self, welcome: SyncWelcome, message: &[u8]) {
        // This may be a new connection without a call of `disconnected`, or the old one, whose edits are still answered.
        self.ask_again();
        // A world only appends types.
        let is_same = |known: &SyncWelcome| {
            let SyncWelcome { blocks, components, .. } = &welcome;
            known.dimension == welcome.dimension
                && known.chunk_heights == welcome.chunk_heights
                && blocks.starts_with(&known.blocks)
                && components.starts_with(&known.components)
        };
        if self.welcome.as_ref().is_some_and(|known| !is_same(known)) {
            self.with_cache(|cache| cache.clear());
            self.chunks.clear();
            self.unread.clear();
            self.unasked.clear();
            (self.unanswered, self.area) = (0, None);
            self.progress = SyncProgress { message_bytes: self.progress.message_bytes, ..SyncProgress::default() };
            // Their blocks and places are those of the other world.
            let lost = self.edits.withdraw();
            self.refuse(lost);
            // Answers about edits count in any world.
            self.news.retain(|news| matches!(news, SyncNews::Edit(_) | SyncNews::Actor(_)));
            self.news.push_back(SyncNews::AnotherWorld);
        }
        self.with_cache(|cache| cache.set_about(message));
        self.news.push_back(SyncNews::Welcome(welcome.clone()));
        (self.welcome, self.is_connected) = (Some(welcome), true);
        self.types = OnceCell::new();
        // The limits may have changed.
        if let Some(wish) = self.wish {
            self.area = None;
            self.look(wish);
        }
    }

    fn take_answer(&mut self, chunk: ChunkPos, news: ChunkNews) {
        let Some(held) = self.chunks.get_mut(&chunk) else { return };
        if let ChunkNews::Current(known) = news
            && held.hash() != Some(known)
        {
            // This answers a question from before a newer state arrived.
            if mem::take(&mut held.is_asked) {
                self.unanswered -= usize::from(!held.is_answered);
                self.unasked.push_front(chunk);
            }
            return;
        }
        let is_first = !held.is_answered;
        if !mem::replace(&mut held.is_answered, true) {
            self.progress.answered += 1;
            self.unanswered -= usize::from(held.is_asked);
        }
        match news {
            ChunkNews::Current(_) => {
                if is_first {
                    self.progress.current += 1;
                    self.progress.current_bytes += held.known.as_ref().map_or(0, |(_, bytes)| bytes.len() as u64);
                }
                self.news.push_back(SyncNews::Current(chunk));
            }
            ChunkNews::Chunk(bytes) => {
                self.progress.received += 1;
                self.progress.received_bytes += bytes.len() as u64;
                self.put(chunk, bytes);
            }
            ChunkNews::Gone => {
                held.known = None;
                self.with_cache(|cache| cache.remove(chunk));
                self.news.push_back(SyncNews::Gone(chunk));
            }
            ChunkNews::Unreadable => self.news.push_back(SyncNews::Unreadable(chunk)),
        }
    }

    /// Handles a lost connection. With the next one, all near chunks are asked for again. Unanswered edits count as refused.
    pub fn disconnected(&mut self) {
        self.ask_again();
        let lost = self.edits.withdraw();
        self.refuse(lost);
    }

    fn ask_again(&mut self) {
        (self.is_connected, self.edits.are_taken) = (false, false);
        (self.unanswered, self.progress.answered) = (0, 0);
        for (chunk, held) in &mut self.chunks {
            held.is_answered = false;
            if mem::take(&mut held.is_asked) {
                self.unasked.push_back(*chunk);
            }
        }
        if let Some(area) = self.area {
            self.unasked.make_contiguous().sort_by_cached_key(|chunk| area.order(*chunk));
        }
    }

    /// Writes unwritten chunks of the cache. Call this when idle, and at the end.
    pub fn flush(&mut self) {
        let center = self.area.map_or_else(ChunkPos::default, |area| area.center);
        self.with_cache(|cache| cache.flush(center));
    }

    /// The error that ended the use of the cache, returned once. The client works without it.
    pub fn take_cache_error(&mut self) -> Option<ObjectStoreError> {
        self.cache_error.take()
    }

    /// The progress.
    pub fn progress(&self) -> SyncProgress {
        self.progress
    }

    /// Uses the cache, and drops it on an error.
    fn with_cache<T>(&mut self, work: impl FnOnce(&mut ChunkCache) -> Result<T, ObjectStoreError>) -> Option<T> {
        match work(self.cache.as_mut()?) {
            Ok(done) => Some(done),
            Err(error) => {
                self.cache = None;
                self.cache_error = Some(error);
                None
            }
        }
    }
}
