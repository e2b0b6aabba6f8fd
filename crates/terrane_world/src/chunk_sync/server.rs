//! [`SyncServer`]: the server's side of one client.

mod edits;

use super::messages::{MAX_ANSWERS, MAX_EDITS};
use super::{
    ActionRequests, ActorNews, Budget, ChunkChange, ChunkHash, ChunkNews, ChunkQuestions, ClientMessage, EditAnswer,
    EditMessage, EditRequests, ServerMessage, SyncAction, SyncArea, SyncEdit, SyncError, SyncWelcome,
};
use crate::block::{BlockComponentRecord, BlockRecord};
use crate::space::{ChunkPos, ColumnPos, disc_radius};
use edits::EditBook;
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, VecDeque};
use std::mem;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The size of chunks in one message, before compression. A larger chunk gets a message of its own.
const MESSAGE_BYTES: usize = 48 << 10;
/// The size of chunks waiting to be sent at which no more chunks are looked up.
const READY_BYTES: usize = 256 << 10;
/// The size of changes waiting to be sent at which further changed chunks are looked up instead.
const CHANGE_BYTES: usize = 16 << 10;

/// The distance between any two chunks of a column that is reported as a whole, and a little more.
const WHOLE_COLUMN_REACH: u32 = 72;

/// The limits of a client's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncLimits {
    /// The maximum radius of the client's area, in columns.
    pub radius: u32,
    /// The maximum vertical distance in chunks, for dimensions of more than 64 chunks of height. In others, columns
    /// are whole.
    pub vertical: u32,
    /// The maximum number of chunks that the server tracks for the client; at least 128. Each takes about 150 bytes of memory once
    /// the client knows it, and up to 400 while it waits for its answer. So a client that asks and never reads holds up to 105 MB
    /// with the default limit.
    /// The radius and the vertical distance are reduced until the area has at most seven eighths as many chunks.
    pub chunks: usize,
    /// The maximum number of bytes per second that the client gets, averaged over a second.
    pub bytes_per_second: u64,
    /// The number of edits that the client may make per second, and the number that it may make at once; 0 if it may make
    /// none.
    pub edits_per_second: u32,
    /// The distance from the client's viewer within which it may edit blocks, in blocks. A client without a viewer may edit
    /// all blocks that it sees.
    pub edit_reach: u32,
    /// The radius within which the client sees entities, in chunks, also up and down.
    pub entity_radius: u32,
    /// The number of bytes about entities that the client gets per second.
    pub entity_bytes_per_second: u32,
}

impl Default for SyncLimits {
    /// A radius of 32 columns, 16 chunks above and below, 262,144 chunks, 1 MiB per second, and no edits; their reach is 8
    /// blocks. Entities within 6 chunks, in 12 KiB per second.
    fn default() -> Self {
        Self {
            radius: 32,
            vertical: 16,
            chunks: 1 << 18,
            bytes_per_second: 1 << 20,
            edits_per_second: 0,
            edit_reach: 8,
            entity_radius: 6,
            entity_bytes_per_second: 12 << 10,
        }
    }
}

impl SyncLimits {
    /// The same limits, reduced to an area whose chunks can all be tracked in a dimension with these chunk heights.
    pub(super) fn fitting(self, chunk_heights: &Range<i64>, has_whole_columns: bool) -> Self {
        let chunks = self.chunks.max(128);
        // The rest is for questions about a new area, until the server drops the chunks of the previous one.
        let area = (chunks - chunks / 8) as u64;
        let vertical = self.vertical.min(u32::try_from((area - 1) / 2).unwrap_or(u32::MAX));
        let height = chunk_heights.end.abs_diff(chunk_heights.start).max(1);
        let height = if has_whole_columns { height } else { height.min(2 * u64::from(vertical) + 1) };
        let vertical = if has_whole_columns { WHOLE_COLUMN_REACH } else { vertical };
        Self { radius: self.radius.min(disc_radius(area / height)), vertical, chunks, ..self }
    }
}

/// The minimum time between two cleanups behind a moving client, because a cleanup takes a while.
const TIDY: Duration = Duration::from_millis(250);
/// The time after which the server looks up missing and unreadable chunks again.
const LOOK_AGAIN: Duration = Duration::from_secs(3);

/// The server's progress for a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncServerProgress {
    /// The number of chunks that are still to be looked up or sent.
    pub waiting: usize,
    /// The number of chunks that the server tracks, at most [`SyncLimits::chunks`].
    pub chunks: usize,
    /// The number of chunks that were looked up.
    pub looked_up: u64,
    /// The number of chunks that were reported as current.
    pub current: u64,
    /// The number of chunks that were sent.
    pub sent: u64,
    /// The number of changes that were sent, instead of a chunk.
    pub changes: u64,
    /// The size of sent messages in bytes, compressed.
    pub bytes: u64,
}

/// An edit or an action that a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyncWish {
    /// An edit of a block.
    Edit(SyncEdit),
    /// An action of the game.
    Action(SyncAction),
}

impl SyncWish {
    /// The client's number for it.
    pub fn id(&self) -> u64 {
        match self {
            Self::Edit(edit) => edit.id,
            Self::Action(action) => action.id,
        }
    }
}

/// One client on the server. See the [module](super).
///
/// Each chunk that the client asks for is first [wanted](Self::wanted), then [found](Self::found), and then sent in one of
/// the [messages](Self::messages). After that, the client is told of each [change](Self::take_change) until the chunk leaves the area. If
/// the change is not known, or the client is slow, the chunk [is looked up](Self::changed) and sent again.
#[derive(Debug)]
pub struct SyncServer {
    limits: SyncLimits,
    chunk_heights: Range<i64>,
    area: Option<SyncArea>,
    /// The client only gets news within this area.
    sight: Option<SyncArea>,
    /// `true` if chunks that are left behind are still tracked, or chunks came into sight.
    is_untidy: bool,
    tidied: Duration,
    looked_again: Duration,
    interests: FxHashMap<ChunkPos, Interest>,
    /// Chunks to look up, nearest first.
    queue: BTreeSet<(u128, u64, ChunkPos)>,
    /// The number of chunks that are wanted but not found yet.
    looked_up: usize,
    ready: VecDeque<(ChunkPos, Ready)>,
    ready_bytes: usize,
    /// Changes of chunks that the client has, which come before all that is ready.
    changes: Vec<Arc<ChunkChange>>,
    change_bytes: usize,
    /// The first message of a client, or one that tells it other limits.
    greeting: Option<Vec<u8>>,
    /// A message that waits for budget, and the number of chunks and the edits that it answers.
    held: Option<Vec<u8>>,
    held_answers: usize,
    held_edits: Vec<EditAnswer>,
    edits: EditBook,
    /// `true` if the client may act.
    takes_actions: bool,
    /// News of the client's actor, which come before everything else.
    actor_news: VecDeque<Vec<u8>>,
    budget: Option<Budget>,
    progress: SyncServerProgress,
}

/// Something for the next message.
#[derive(Debug)]
enum Ready {
    Chunk(ChunkNews),
    /// A change of a chunk, whose message all clients share.
    Change(Arc<FoundChunk>),
    Edit(EditAnswer),
}

/// A chunk that was looked up, for one client or many. If it has changed, it is encoded and compressed once for all of them.
#[derive(Debug)]
pub struct FoundChunk {
    chunk: ChunkPos,
    hash: ChunkHash,
    bytes: Arc<[u8]>,
    /// The message about this chunk alone, once a client needs it.
    pub(super) message: OnceLock<Vec<u8>>,
}

impl FoundChunk {
    /// A chunk with its bytes in the chunk format.
    pub fn new(chunk: ChunkPos, bytes: Arc<[u8]>) -> Arc<Self> {
        Arc::new(Self { chunk, hash: ChunkHash::of(&bytes), bytes, message: OnceLock::new() })
    }

    fn news(&self) -> ChunkNews {
        ChunkNews::Chunk(self.bytes.to_vec())
    }

    fn message(&self) -> &[u8] {
        self.message.get_or_init(|| ServerMessage::Answers(vec![(self.chunk, self.news())]).encode())
    }
}

#[derive(Debug)]
struct Interest {
    /// The client's chunk after all news that was created has arrived.
    client: Option<ChunkHash>,
    stage: Stage,
    /// The number of news of the chunk that are ready and not sent. Changes would overtake them.
    unsent: u16,
    /// `true` if the client waits for an answer.
    is_asked: bool,
    /// The last known state: a chunk, nothing, or an unreadable chunk.
    found: Option<Result<Option<ChunkHash>, ()>>,
}

impl Interest {
    /// Returns `true` if the chunk did not exist or could not be read.
    fn is_missing(&self) -> bool {
        matches!(self.found, Some(Ok(None) | Err(())))
    }

    /// The answer without another look-up, valid if the chunk has not changed since the last one.
    fn answer(&self) -> Option<ChunkNews> {
        match self.found? {
            Ok(None) => Some(ChunkNews::Gone),
            Ok(found) if found == self.client => found.map(ChunkNews::Current),
            Ok(_) => None,
            Err(()) => Some(ChunkNews::Unreadable),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Waiting to come into sight.
    Unseen,
    Queued,
    /// Queued since the client asked. Only looked up if the last look-up does not answer the question.
    Asked,
    LookedUp,
    Outdated,
    Told,
}

impl SyncServer {
    /// A new client. The first message has the information that it needs about the dimension.
    pub fn new(
        dimension: &str,
        chunk_heights: Range<i64>,
        records: (Vec<BlockRecord>, Vec<BlockComponentRecord>),
        limits: SyncLimits,
    ) -> Self {
        let mut server = Self {
            limits,
            chunk_heights: 0..0,
            area: None,
            sight: None,
            is_untidy: false,
            tidied: Duration::ZERO,
            looked_again: Duration::ZERO,
            interests: FxHashMap::default(),
            queue: BTreeSet::new(),
            looked_up: 0,
            ready: VecDeque::new(),
            ready_bytes: 0,
            changes: Vec::new(),
            change_bytes: 0,
            greeting: None,
            held: None,
            held_answers: 0,
            held_edits: Vec::new(),
            edits: EditBook::default(),
            takes_actions: false,
            actor_news: VecDeque::new(),
            budget: None,
            progress: SyncServerProgress::default(),
        };
        server.greet(dimension, chunk_heights, records, limits);
        server
    }

    /// Sends the client another first message, when its limits have changed or its dimension was opened again. The client asks
    /// for everything again. Its edits stay.
    pub fn greet(
        &mut self,
        dimension: &str,
        chunk_heights: Range<i64>,
        (blocks, components): (Vec<BlockRecord>, Vec<BlockComponentRecord>),
        limits: SyncLimits,
    ) {
        let SyncLimits { radius, vertical, .. } = limits;
        let dimension = dimension.to_owned();
        let mut welcome = SyncWelcome { dimension, chunk_heights, radius, vertical, blocks, components };
        self.limits = limits.fitting(&welcome.chunk_heights, welcome.has_whole_columns());
        (welcome.radius, welcome.vertical) = (self.limits.radius, self.limits.vertical);
        self.chunk_heights = welcome.chunk_heights.clone();
        self.greeting = Some(ServerMessage::Welcome(welcome).encode());
        self.area.into_iter().for_each(|area| self.look(area));
    }

    /// Handles a message of the client. Questions outside of its area or of the dimension are ignored. Questions out
    /// of [sight](Self::see) wait.
    ///
    /// # Errors
    /// Fails, without any change, if the message is invalid.
    pub fn receive(&mut self, message: &[u8]) -> Result<(), SyncError> {
        self.take(ClientMessage::decode(message)?);
        Ok(())
    }

    /// The same as [`receive`](Self::receive), for a message that was decoded.
    pub fn take(&mut self, message: ClientMessage) {
        let ChunkQuestions { area, questions } = match message {
            ClientMessage::Edits(EditRequests { edits }) => {
                return edits.into_iter().for_each(|edit| self.take_edit(edit));
            }
            ClientMessage::Actions(ActionRequests { actions }) => {
                let takes_actions = self.takes_actions;
                let actions = actions.into_iter().filter(|_| takes_actions);
                return actions.for_each(|action| self.edits.take_in_action(action));
            }
            ClientMessage::Questions(questions) => questions,
        };
        self.look(area);
        for (chunk, known) in questions {
            let is_near = self.area.is_some_and(|area| area.contains(chunk));
            if !is_near || !self.chunk_heights.contains(&chunk.y) {
                continue;
            }
            if self.interests.len() >= self.limits.chunks && !self.interests.contains_key(&chunk) {
                // The area has fewer chunks than the limit, so this makes room.
                self.is_untidy = true;
                self.tidy();
            }
            let fresh = Interest { client: None, stage: Stage::Told, unsent: 0, is_asked: true, found: None };
            let interest = self.interests.entry(chunk).or_insert(fresh);
            // If the client was told another state, it asked before that arrived, and is sent the whole chunk again.
            let is_late = interest.found.is_some() && interest.client != known;
            (interest.client, interest.is_asked) = (known.filter(|_| !is_late), true);
            self.queue(chunk, Stage::Asked);
        }
    }

    /// Restricts news to these chunks. Questions about other chunks wait. `None`, the initial value, removes the restriction.
    pub fn see(&mut self, sight: Option<SyncArea>) {
        self.is_untidy |= mem::replace(&mut self.sight, sight) != sight;
    }

    fn sees(&self, chunk: ChunkPos) -> bool {
        self.sight.is_none_or(|sight| sight.contains(chunk))
    }

    fn look(&mut self, area: SyncArea) {
        let SyncArea { center, radius, vertical } = area;
        let radius = radius.min(self.limits.radius);
        let area = SyncArea { center, radius, vertical: vertical.min(self.limits.vertical) };
        self.is_untidy |= self.area.replace(area) != Some(area);
    }

    /// Drops chunks outside of the area, and queues chunks that came into sight.
    fn tidy(&mut self) {
        let Some(area) = self.area.filter(|_| mem::take(&mut self.is_untidy)) else { return };
        self.interests.retain(|chunk, _| area.contains(*chunk));
        let queue = mem::take(&mut self.queue);
        self.queue = queue.into_iter().filter(|(.., chunk)| area.contains(*chunk)).map(|of| area.order(of.2)).collect();
        let sight = self.sight;
        let is_seen = |chunk: &ChunkPos| sight.is_none_or(|sight| sight.contains(*chunk));
        for (chunk, interest) in self.interests.iter_mut().filter(|(chunk, _)| is_seen(chunk)) {
            if interest.stage == Stage::Unseen {
                interest.stage = Stage::Queued;
                self.queue.insert(area.order(*chunk));
            }
        }
        self.ready.retain(|(chunk, ready)| area.contains(*chunk) || matches!(ready, Ready::Edit(_)));
        self.count_ready();
        for (chunk, ids) in self.edits.leave(|chunk| !area.contains(chunk)) {
            self.accept(chunk, ids);
        }
    }

    fn take_edit(&mut self, edit: SyncEdit) {
        let chunk = edit.position.chunk();
        let is_near = self.interests.contains_key(&chunk) && self.sees(chunk);
        if self.edits.take_in(edit, is_near) == Some(false) {
            self.refuse(chunk, edit.id);
        }
    }

    /// Lets the client act. Its actions are ignored before.
    pub fn take_actions(&mut self) {
        self.takes_actions = true;
    }

    /// Sends the client news of its actor, before everything else.
    pub fn tell_of_actor(&mut self, bytes: Vec<u8>) {
        self.actor_news.push_back(ActorNews { bytes }.encode());
    }

    /// The number of news of the actor that wait to be sent.
    pub fn waiting_actor_news(&self) -> usize {
        self.actor_news.len()
    }

    /// The client's edits and actions that are to be decided, in their order. Report each decision with
    /// [`edit_decided`](Self::edit_decided) or [`action_decided`](Self::action_decided).
    pub fn take_wishes(&mut self) -> Vec<SyncWish> {
        self.edits.take_incoming()
    }

    /// The client's numbers of actions beyond 256 in a second, which are to be refused. Report that with
    /// [`action_decided`](Self::action_decided).
    pub fn take_excess(&mut self) -> Vec<u64> {
        mem::take(&mut self.edits.excess)
    }

    /// Returns `true` if the client had the newest state of a chunk, as far as the server has told it anything, when it made
    /// an edit.
    pub fn is_current(&self, edit: &SyncEdit) -> bool {
        let interest = self.interests.get(&edit.position.chunk());
        interest.is_some_and(|interest| interest.stage == Stage::Told && interest.found == Some(Ok(edit.base)))
    }

    /// Reports the decision about an edit in this chunk. If the chunk has changed with it, call [`changed`](Self::changed)
    /// before. The answer to an accepted edit waits until the chunk with it is sent.
    pub fn edit_decided(&mut self, id: u64, chunk: ChunkPos, is_accepted: bool) {
        if !self.edits.is_open(id) {
            return;
        }
        if !is_accepted {
            return self.refuse(chunk, id);
        }
        self.wait_for(id, chunk);
    }

    /// Reports the decision about an action: the chunks that it has changed, or `None` if it is refused. Call [`changed`](Self::changed)
    /// before for each chunk. The answer waits until all of them are sent.
    pub fn action_decided(&mut self, id: u64, chunks: Option<&[ChunkPos]>) {
        if !self.edits.is_open(id) {
            return;
        }
        let Some(chunks) = chunks else { return self.refuse(ChunkPos::default(), id) };
        self.edits.divide(id, chunks);
        chunks.iter().for_each(|chunk| self.wait_for(id, *chunk));
        if chunks.is_empty() {
            let answer = EditAnswer { id, is_accepted: true };
            self.ready.push_front((ChunkPos::default(), Ready::Edit(answer)));
        }
    }

    fn wait_for(&mut self, id: u64, chunk: ChunkPos) {
        match self.interests.get(&chunk).map(|interest| interest.stage) {
            // The client does not see the chunk, or was told of it.
            None | Some(Stage::Unseen | Stage::Told) => self.accept(chunk, vec![id]),
            // The running look-up may have begun before the edit was made.
            Some(Stage::LookedUp | Stage::Outdated) => self.edits.wait(chunk, id, 2),
            Some(Stage::Queued | Stage::Asked) => self.edits.wait(chunk, id, 1),
        }
    }

    /// Answers edits of a chunk. After refusals, the newest news of the chunk and then the answers to its edits, in their order,
    /// come before everything else.
    fn accept(&mut self, chunk: ChunkPos, mut ids: Vec<u64>) {
        let mut chunks = vec![chunk];
        self.edits.complete(&mut ids, &mut chunks);
        let (mut first, mut newest, mut answers, mut others) = (VecDeque::new(), Vec::new(), Vec::new(), Vec::new());
        for (of, ready) in mem::take(&mut self.ready) {
            match ready {
                Ready::Edit(EditAnswer { is_accepted: false, .. }) => first.push_back((of, ready)),
                Ready::Chunk(_) | Ready::Change(_) if chunks.contains(&of) => {
                    // Only the newest news of a chunk counts.
                    newest.retain(|(other, _)| *other != of);
                    newest.push((of, ready));
                    self.interests.entry(of).and_modify(|interest| interest.unsent = 1);
                }
                Ready::Edit(_) if chunks.contains(&of) => answers.push((of, ready)),
                _ => others.push((of, ready)),
            }
        }
        answers.extend(ids.into_iter().map(|id| (chunk, Ready::Edit(EditAnswer { id, is_accepted: true }))));
        first.extend(newest.into_iter().chain(answers).chain(others));
        self.ready = first;
        self.count_ready();
    }

    /// A refusal need not wait for anything. It must come before the answers to later edits of the same block.
    fn refuse(&mut self, chunk: ChunkPos, id: u64) {
        self.ready.push_front((chunk, Ready::Edit(EditAnswer { id, is_accepted: false })));
    }

    /// Answers the edits that a look-up of their chunk included; after the last look-up all of them.
    fn answer_edits(&mut self, chunk: ChunkPos, is_last: bool) {
        let ids = self.edits.looked_up(chunk, is_last);
        if !ids.is_empty() {
            self.accept(chunk, ids);
        }
    }

    fn count_ready(&mut self) {
        self.ready_bytes = self.ready.iter().map(|(_, ready)| ready.bytes()).sum();
    }

    /// The client's area.
    pub fn area(&self) -> Option<SyncArea> {
        self.area
    }

    /// Reports a change of a chunk that is also the newest state of it. Chunks that the client did not ask for are ignored.
    pub fn take_change(&mut self, change: &Arc<ChunkChange>) {
        let chunk = change.chunk;
        let (is_seen, is_slow) = (self.sees(chunk), self.change_bytes >= CHANGE_BYTES);
        let Some(interest) = self.interests.get_mut(&chunk) else { return };
        let has_chunk = interest.stage == Stage::Told && interest.unsent == 0 && interest.client.is_some();
        if !has_chunk || !is_seen || is_slow {
            return self.changed(chunk);
        }
        (interest.client, interest.found) = (Some(change.hash), Some(Ok(Some(change.hash))));
        self.change_bytes += change.bytes();
        self.changes.push(change.clone());
    }

    /// Reports a possible change of a chunk. Chunks that the client did not ask for are ignored.
    pub fn changed(&mut self, chunk: ChunkPos) {
        self.queue(chunk, Stage::Queued);
    }

    /// Queues news of a chunk, as soon as it is in sight, because the client asked or the chunk changed.
    fn queue(&mut self, chunk: ChunkPos, stage: Stage) {
        let is_seen = self.sees(chunk);
        let (Some(area), Some(interest)) = (self.area, self.interests.get_mut(&chunk)) else { return };
        match interest.stage {
            Stage::Unseen | Stage::Queued => {}
            // The result of the running look-up also answers the question.
            Stage::LookedUp | Stage::Outdated if stage == Stage::Asked => {}
            Stage::LookedUp | Stage::Outdated => interest.stage = Stage::Outdated,
            Stage::Asked => interest.stage = stage,
            Stage::Told if is_seen => {
                interest.stage = stage;
                self.queue.insert(area.order(chunk));
            }
            Stage::Told => interest.stage = Stage::Unseen,
        }
    }

    /// The next chunks to look up, at most `most`, nearest first; none while enough chunks wait to be sent. Report
    /// each result with [`found`](Self::found).
    pub fn wanted(&mut self, most: usize) -> Vec<ChunkPos> {
        let mut wanted = Vec::new();
        // The chunks of edits come first, and need not wait until others are sent.
        let area = self.area;
        let queued = |chunk: &ChunkPos| area.is_some_and(|area| self.queue.contains(&area.order(*chunk)));
        let mut edited: Vec<ChunkPos> = self.edits.waiting().filter(queued).collect();
        while self.looked_up < most
            && let Some(chunk) = self.next_wanted(&mut edited)
        {
            let is_seen = self.sees(chunk);
            if !self.area.is_some_and(|area| area.contains(chunk)) {
                self.interests.remove(&chunk);
                continue;
            }
            let Some(interest) = self.interests.get_mut(&chunk) else { continue };
            if !is_seen {
                interest.stage = Stage::Unseen;
                self.answer_edits(chunk, true);
            } else if let Some(news) = interest.answer().filter(|_| interest.stage == Stage::Asked) {
                (interest.stage, interest.is_asked) = (Stage::Told, false);
                if news == ChunkNews::Gone {
                    interest.client = None;
                }
                self.tell(chunk, Ready::Chunk(news));
                self.answer_edits(chunk, true);
            } else {
                interest.stage = Stage::LookedUp;
                self.looked_up += 1;
                self.progress.looked_up += 1;
                wanted.push(chunk);
            }
        }
        wanted
    }

    /// Takes a chunk from the queue: first those of edits, then the nearest; `None` while enough wait to be sent.
    fn next_wanted(&mut self, edited: &mut Vec<ChunkPos>) -> Option<ChunkPos> {
        let area = self.area?;
        if self.ready_bytes < 2 * READY_BYTES
            && let Some(chunk) = edited.pop()
        {
            return self.queue.take(&area.order(chunk)).map(|(.., chunk)| chunk);
        }
        let is_idle = self.ready_bytes < READY_BYTES && self.held.is_none() && self.greeting.is_none();
        is_idle.then(|| self.queue.pop_first()).flatten().map(|(.., chunk)| chunk)
    }

    fn tell(&mut self, chunk: ChunkPos, ready: Ready) {
        self.ready_bytes += ready.bytes();
        self.interests.entry(chunk).and_modify(|interest| interest.unsent = interest.unsent.saturating_add(1));
        self.ready.push_back((chunk, ready));
    }

    /// Reports the state of a wanted chunk; `None` if it does not exist, an error if it cannot be read.
    pub fn found(&mut self, chunk: ChunkPos, found: Result<Option<Arc<FoundChunk>>, ()>) {
        self.looked_up = self.looked_up.saturating_sub(1);
        let Some(interest) = self.interests.get_mut(&chunk) else { return };
        // The chunk came back into the area in the meantime, and is looked up again.
        if !matches!(interest.stage, Stage::LookedUp | Stage::Outdated) {
            return;
        }
        let is_outdated = mem::replace(&mut interest.stage, Stage::Told) == Stage::Outdated;
        let is_asked = mem::take(&mut interest.is_asked);
        let was_missing = interest.is_missing();
        interest.found = Some(match &found {
            Ok(found) => Ok(found.as_ref().map(|found| found.hash)),
            Err(()) => Err(()),
        });
        let has_come = was_missing && !interest.is_missing();
        let news = match found {
            Ok(Some(found)) => {
                match interest.client.replace(found.hash) {
                    Some(hash) if hash == found.hash => is_asked.then_some(Ready::Chunk(ChunkNews::Current(hash))),
                    Some(_) if !is_asked => Some(Ready::Change(found)),
                    // Chunks that a client does not have yet are smaller together.
                    _ => Some(Ready::Chunk(found.news())),
                }
            }
            Ok(None) if interest.client.take().is_some() || is_asked => Some(Ready::Chunk(ChunkNews::Gone)),
            Err(()) if is_asked => Some(Ready::Chunk(ChunkNews::Unreadable)),
            Ok(None) | Err(()) => None,
        };
        if let Some(news) = news {
            self.tell(chunk, news);
        }
        self.answer_edits(chunk, !is_outdated);
        if is_outdated {
            self.changed(chunk);
        }
        if has_come {
            // Usually the whole column appears with it.
            self.heights().filter(|y| *y != chunk.y).for_each(|y| self.changed(chunk.column().chunk(y)));
        }
    }

    fn heights(&self) -> Range<i64> {
        let Some(SyncArea { center, vertical, .. }) = self.area else { return 0..0 };
        let [low, high] =
            [center.y.saturating_sub_unsigned(vertical.into()), center.y.saturating_add_unsigned(vertical.into())];
        low.max(self.chunk_heights.start)..high.saturating_add(1).min(self.chunk_heights.end)
    }

    /// Reports a possible change of a column.
    pub fn column_changed(&mut self, column: ColumnPos) {
        if self.area.is_some_and(|area| area.contains_column(column)) {
            self.heights().for_each(|y| self.changed(column.chunk(y)));
        }
    }

    /// Looks up missing chunks again, which may have been generated without a client nearby, and unreadable ones,
    /// which may be readable now. One chunk of each column suffices.
    fn look_again(&mut self) {
        let mut columns = FxHashMap::default();
        let is_missing = |interest: &Interest| interest.is_missing() && interest.stage == Stage::Told;
        for (chunk, _) in self.interests.iter().filter(|(_, interest)| is_missing(interest)) {
            let lowest = columns.entry(chunk.column()).or_insert(*chunk);
            *lowest = (*lowest).min(*chunk);
        }
        columns.into_values().for_each(|chunk| self.changed(chunk));
    }

    /// Reports that running look-ups are lost. Their chunks are wanted again.
    pub fn lost(&mut self) {
        self.looked_up = 0;
        let Some(area) = self.area else { return };
        for (chunk, interest) in &mut self.interests {
            if matches!(interest.stage, Stage::LookedUp | Stage::Outdated) {
                interest.stage = Stage::Queued;
                self.queue.insert(area.order(*chunk));
            }
        }
    }

    /// The messages to send now, in this order, as far as the budget allows. `now` is the time since any fixed moment.
    pub fn messages(&mut self, now: Duration) -> Vec<Vec<u8>> {
        if now >= self.tidied + TIDY {
            self.tidied = now;
            self.tidy();
        }
        if now >= self.looked_again + LOOK_AGAIN {
            self.looked_again = now;
            self.look_again();
        }
        self.edits.refill(now, self.limits.edits_per_second);
        self.budget.get_or_insert_with(|| Budget::new(now)).refill(now, self.limits.bytes_per_second);
        let mut messages = Vec::new();
        while let Some(message) = self.held.take().or_else(|| self.next()) {
            let bytes = message.len() as u64;
            if !self.budget.as_mut().is_some_and(|budget| budget.spend(bytes)) {
                self.held = Some(message);
                break;
            }
            self.progress.bytes += bytes;
            self.held_answers = 0;
            self.edits.answered(self.held_edits.drain(..));
            messages.push(message);
        }
        messages
    }

    /// The next message, if there is something to tell.
    fn next(&mut self) -> Option<Vec<u8>> {
        if let Some(greeting) = self.greeting.take() {
            self.edits.is_announced = false;
            return Some(greeting);
        }
        let takes_any = self.limits.edits_per_second > 0 || self.takes_actions;
        if takes_any && !mem::replace(&mut self.edits.is_announced, true) {
            return Some(EditMessage::Taken.encode());
        }
        if let Some(news) = self.actor_news.pop_front() {
            return Some(news);
        }
        if !self.changes.is_empty() {
            let changes = mem::take(&mut self.changes);
            self.change_bytes = 0;
            self.progress.changes += changes.len() as u64;
            return Some(ChunkChange::message(changes));
        }
        match self.ready.front()? {
            (_, Ready::Chunk(_)) => self.next_answers(),
            (_, Ready::Change(found)) => {
                let (message, bytes, chunk) = (found.message().to_vec(), change_bytes(found), found.chunk);
                self.ready.pop_front();
                self.note_sent(chunk);
                self.ready_bytes = self.ready_bytes.saturating_sub(bytes);
                self.progress.sent += 1;
                self.held_answers = 1;
                Some(message)
            }
            (_, Ready::Edit(_)) => {
                while self.held_edits.len() < MAX_EDITS
                    && let Some((_, Ready::Edit(answer))) = self.ready.front()
                {
                    self.held_edits.push(*answer);
                    self.ready.pop_front();
                }
                Some(EditMessage::Answers(self.held_edits.clone()).encode())
            }
        }
    }

    fn next_answers(&mut self) -> Option<Vec<u8>> {
        let (mut answers, mut bytes) = (Vec::new(), 0);
        while answers.len() < MAX_ANSWERS
            && let Some((_, Ready::Chunk(news))) = self.ready.front()
        {
            let more = answer_bytes(news);
            if bytes + more > MESSAGE_BYTES && !answers.is_empty() {
                break;
            }
            match news {
                ChunkNews::Current(_) => self.progress.current += 1,
                ChunkNews::Chunk(_) => self.progress.sent += 1,
                ChunkNews::Gone | ChunkNews::Unreadable => {}
            }
            bytes += more;
            if let Some((chunk, Ready::Chunk(news))) = self.ready.pop_front() {
                self.note_sent(chunk);
                answers.push((chunk, news));
            }
        }
        if answers.is_empty() {
            return None;
        }
        self.ready_bytes = self.ready_bytes.saturating_sub(bytes);
        self.held_answers = answers.len();
        Some(ServerMessage::Answers(answers).encode())
    }

    fn note_sent(&mut self, chunk: ChunkPos) {
        self.interests.entry(chunk).and_modify(|interest| interest.unsent = interest.unsent.saturating_sub(1));
    }

    /// The progress for the client.
    pub fn progress(&self) -> SyncServerProgress {
        let waiting = self.queue.len() + self.looked_up + self.changes.len() + self.ready.len() + self.held_answers;
        SyncServerProgress { waiting, chunks: self.interests.len(), ..self.progress }
    }
}

impl Ready {
    /// The approximate size in a message.
    fn bytes(&self) -> usize {
        match self {
            Self::Chunk(news) => answer_bytes(news),
            Self::Change(found) => change_bytes(found),
            Self::Edit(_) => 0,
        }
    }
}

fn change_bytes(found: &FoundChunk) -> usize {
    16 + found.bytes.len()
}

/// The approximate size of an answer in a message.
fn answer_bytes(news: &ChunkNews) -> usize {
    16 + if let ChunkNews::Chunk(bytes) = news { bytes.len() } else { 0 }
}
