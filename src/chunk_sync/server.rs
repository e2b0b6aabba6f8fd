//! The server's side of one client.

use super::messages::MAX_ANSWERS;
use super::{
    Budget, ChunkAnswer, ChunkNews, ChunkQuestions, KnownVersion, ServerMessage, SyncArea, SyncError, SyncWelcome,
};
use crate::block::{BlockComponentRecord, BlockRecord};
use crate::space::{ChunkPos, ColumnPos};
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, VecDeque};
use std::mem;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of chunks that are put into one message, before it is compressed; a larger chunk is alone in one.
const MESSAGE_BYTES: usize = 48 << 10;
/// Found chunks that wait to be sent: with so many bytes of them no more are looked up.
const READY_BYTES: usize = 256 << 10;

/// From any chunk of a column that is told as a whole to any other, and a little more.
const WHOLE_COLUMN_REACH: u32 = 72;

/// What a client may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncLimits {
    /// The radius of its area at the most, in columns. About a hundred bytes are kept of each chunk of the area.
    pub radius: u32,
    /// How far above and below, in chunks, in a dimension of more than 64 chunks of height; otherwise columns are whole.
    pub vertical: u32,
    /// Bytes a second that it is sent at the most, on the average of a second.
    pub bytes_per_second: u64,
}

impl Default for SyncLimits {
    /// 32 columns around, 16 chunks above and below, 1 MiB a second.
    fn default() -> Self {
        Self { radius: 32, vertical: 16, bytes_per_second: 1 << 20 }
    }
}

/// The time between two looks at what a moving client has left behind, at least: that takes a while.
const TIDY: Duration = Duration::from_millis(250);
/// After this time it is looked whether something is there by now where nothing was.
const LOOK_AGAIN: Duration = Duration::from_secs(3);

/// A chunk as it is on the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundChunk {
    /// Its version, and the checksum of its bytes.
    pub known: KnownVersion,
    /// Its bytes, in the chunk format.
    pub bytes: Arc<[u8]>,
}

/// What a server did for a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncServerProgress {
    /// Chunks that are still to be looked up or sent.
    pub waiting: usize,
    /// "Current" was said so often.
    pub current: u64,
    /// Chunks that were sent.
    pub sent: u64,
    /// Bytes of messages that were sent, as they are on the way.
    pub bytes: u64,
}

/// One client, as the server sees it. See the [module](super).
///
/// Each chunk that the client asks for is in turn [wanted](Self::wanted) and [found](Self::found), and told in one of the
/// [messages](Self::messages); from then on it is told again whenever it [changed](Self::changed), until it is out of the area.
#[derive(Debug)]
pub struct SyncServer {
    limits: SyncLimits,
    chunk_heights: Range<i64>,
    area: Option<SyncArea>,
    /// What is left behind is still there.
    is_untidy: bool,
    tidied: Duration,
    looked_again: Duration,
    interests: FxHashMap<ChunkPos, Interest>,
    /// To be looked up, nearest first.
    queue: BTreeSet<(u128, u64, ChunkPos)>,
    /// Wanted, and not found yet.
    looked_up: usize,
    ready: VecDeque<ChunkAnswer>,
    ready_bytes: usize,
    /// A message that waits for bytes of the budget, and the answers in it.
    held: Option<Vec<u8>>,
    held_answers: usize,
    budget: Option<Budget>,
    progress: SyncServerProgress,
}

#[derive(Debug)]
struct Interest {
    /// What the client has, once all that was told arrives.
    client: Option<KnownVersion>,
    stage: Stage,
    /// The client waits for an answer, whatever it is.
    is_asked: bool,
    /// There is no such chunk, as far as is known.
    is_gone: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Queued,
    LookedUp,
    /// It changed while it was looked up.
    Outdated,
    Told,
}

impl SyncServer {
    /// A client that has just come: the first message says what it must know of the dimension.
    pub fn new(
        dimension: &str,
        chunk_heights: Range<i64>,
        (blocks, components): (Vec<BlockRecord>, Vec<BlockComponentRecord>),
        limits: SyncLimits,
    ) -> Self {
        let SyncLimits { radius, vertical, .. } = limits;
        let dimension = dimension.to_owned();
        let mut welcome = SyncWelcome { dimension, chunk_heights, radius, vertical, blocks, components };
        if welcome.has_whole_columns() {
            welcome.vertical = WHOLE_COLUMN_REACH;
        }
        Self {
            limits: SyncLimits { vertical: welcome.vertical, ..limits },
            chunk_heights: welcome.chunk_heights.clone(),
            area: None,
            is_untidy: false,
            tidied: Duration::ZERO,
            looked_again: Duration::ZERO,
            interests: FxHashMap::default(),
            queue: BTreeSet::new(),
            looked_up: 0,
            ready: VecDeque::new(),
            ready_bytes: 0,
            held: Some(ServerMessage::Welcome(welcome).encode()),
            held_answers: 0,
            budget: None,
            progress: SyncServerProgress::default(),
        }
    }

    /// Takes in what the client sent. Questions for what is not in its area, or not in the dimension, are left out.
    ///
    /// # Errors
    /// A message that is none; nothing changes then.
    pub fn receive(&mut self, message: &[u8]) -> Result<(), SyncError> {
        let ChunkQuestions { area, questions } = ChunkQuestions::decode(message)?;
        self.look(area);
        for question in questions {
            let is_near = self.area.is_some_and(|area| area.contains(question.chunk));
            if !is_near || !self.chunk_heights.contains(&question.chunk.y) {
                continue;
            }
            let fresh = Interest { client: None, stage: Stage::Told, is_asked: true, is_gone: false };
            let interest = self.interests.entry(question.chunk).or_insert(fresh);
            (interest.client, interest.is_asked) = (question.known, true);
            self.changed(question.chunk);
        }
        Ok(())
    }

    fn look(&mut self, area: SyncArea) {
        let SyncArea { center, radius, vertical } = area;
        let radius = radius.min(self.limits.radius);
        let area = SyncArea { center, radius, vertical: vertical.min(self.limits.vertical) };
        self.is_untidy |= self.area.replace(area) != Some(area);
    }

    /// Forgets what is not in the area any more.
    fn tidy(&mut self) {
        let Some(area) = self.area.filter(|_| mem::take(&mut self.is_untidy)) else { return };
        self.interests.retain(|chunk, _| area.contains(*chunk));
        let queue = mem::take(&mut self.queue);
        self.queue = queue.into_iter().filter(|(.., chunk)| area.contains(*chunk)).map(|of| area.order(of.2)).collect();
        self.ready.retain(|answer| area.contains(answer.chunk));
        self.ready_bytes = self.ready.iter().map(answer_bytes).sum();
    }

    /// Where the client looks.
    pub fn area(&self) -> Option<SyncArea> {
        self.area
    }

    /// A chunk may be another now. Those that the client did not ask for do not count.
    pub fn changed(&mut self, chunk: ChunkPos) {
        let (Some(area), Some(interest)) = (self.area, self.interests.get_mut(&chunk)) else { return };
        match interest.stage {
            Stage::Queued => {}
            Stage::LookedUp | Stage::Outdated => interest.stage = Stage::Outdated,
            Stage::Told => {
                interest.stage = Stage::Queued;
                self.queue.insert(area.order(chunk));
            }
        }
    }

    /// The next chunks to be looked up, nearest first, up to so many: none while enough waits to be sent. Each is to be
    /// [found](Self::found) then.
    pub fn wanted(&mut self, most: usize) -> Vec<ChunkPos> {
        let mut wanted = Vec::new();
        while self.ready_bytes < READY_BYTES
            && self.held.is_none()
            && self.looked_up < most
            && let Some((.., chunk)) = self.queue.pop_first()
        {
            if !self.area.is_some_and(|area| area.contains(chunk)) {
                self.interests.remove(&chunk);
            } else if let Some(interest) = self.interests.get_mut(&chunk) {
                interest.stage = Stage::LookedUp;
                self.looked_up += 1;
                wanted.push(chunk);
            }
        }
        wanted
    }

    /// What a chunk that was wanted is; `None` if there is none, an error if it cannot be read.
    pub fn found(&mut self, chunk: ChunkPos, found: Result<Option<FoundChunk>, ()>) {
        self.looked_up = self.looked_up.saturating_sub(1);
        let Some(interest) = self.interests.get_mut(&chunk) else { return };
        // It came back into the area meanwhile, and is looked up once more.
        if interest.stage == Stage::Queued {
            return;
        }
        let is_outdated = mem::replace(&mut interest.stage, Stage::Told) == Stage::Outdated;
        let is_asked = mem::take(&mut interest.is_asked);
        let was_gone = mem::replace(&mut interest.is_gone, found == Ok(None));
        let has_come = was_gone && !interest.is_gone;
        let news = match found {
            Ok(Some(FoundChunk { known, bytes })) => {
                let is_known = interest.client.replace(known) == Some(known);
                match is_known {
                    true if is_asked => Some(ChunkNews::Current(known)),
                    true => None,
                    false => Some(ChunkNews::Chunk { version: known.version, bytes: bytes.to_vec() }),
                }
            }
            Ok(None) if interest.client.take().is_some() || is_asked => Some(ChunkNews::Gone),
            Err(()) if is_asked => Some(ChunkNews::Unreadable),
            Ok(None) | Err(()) => None,
        };
        if let Some(news) = news {
            let answer = ChunkAnswer { chunk, news };
            self.ready_bytes += answer_bytes(&answer);
            self.ready.push_back(answer);
        }
        if is_outdated {
            self.changed(chunk);
        }
        if has_come {
            // With it, most often, its column.
            self.heights().filter(|y| *y != chunk.y).for_each(|y| self.changed(chunk.column().chunk(y)));
        }
    }

    /// The heights of the area that the dimension has.
    fn heights(&self) -> Range<i64> {
        let Some(SyncArea { center, vertical, .. }) = self.area else { return 0..0 };
        let [low, high] =
            [center.y.saturating_sub_unsigned(vertical.into()), center.y.saturating_add_unsigned(vertical.into())];
        low.max(self.chunk_heights.start)..high.saturating_add(1).min(self.chunk_heights.end)
    }

    /// A column may be another now.
    pub fn column_changed(&mut self, column: ColumnPos) {
        if self.area.is_some_and(|area| area.contains_column(column)) {
            self.heights().for_each(|y| self.changed(column.chunk(y)));
        }
    }

    /// Where nothing was, something may have been generated without anybody near: one chunk of each column tells.
    fn look_again(&mut self) {
        let mut columns = FxHashMap::default();
        let gone = self.interests.iter().filter(|(_, interest)| interest.is_gone && interest.stage == Stage::Told);
        for (chunk, _) in gone {
            let lowest = columns.entry(chunk.column()).or_insert(*chunk);
            *lowest = (*lowest).min(*chunk);
        }
        columns.into_values().for_each(|chunk| self.changed(chunk));
    }

    /// What was wanted and is not found yet will not be: it is wanted again.
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

    /// What is to be sent now, in this order: as many bytes as are allowed. `now` is the time since any fixed moment.
    pub fn messages(&mut self, now: Duration) -> Vec<Vec<u8>> {
        if now >= self.tidied + TIDY {
            self.tidied = now;
            self.tidy();
        }
        if now >= self.looked_again + LOOK_AGAIN {
            self.looked_again = now;
            self.look_again();
        }
        self.budget.get_or_insert_with(|| Budget::new(now)).refill(now, self.limits.bytes_per_second);
        let mut messages = Vec::new();
        while let Some(message) = self.held.take().or_else(|| self.next_answers()) {
            let bytes = message.len() as u64;
            if !self.budget.as_mut().is_some_and(|budget| budget.spend(bytes)) {
                self.held = Some(message);
                break;
            }
            self.progress.bytes += bytes;
            self.held_answers = 0;
            messages.push(message);
        }
        messages
    }

    /// A message of the next answers, if there are any.
    fn next_answers(&mut self) -> Option<Vec<u8>> {
        let (mut answers, mut bytes) = (Vec::new(), 0);
        while answers.len() < MAX_ANSWERS
            && let Some(answer) = self.ready.front()
        {
            let more = answer_bytes(answer);
            if bytes + more > MESSAGE_BYTES && !answers.is_empty() {
                break;
            }
            match answer.news {
                ChunkNews::Current(_) => self.progress.current += 1,
                ChunkNews::Chunk { .. } => self.progress.sent += 1,
                ChunkNews::Gone | ChunkNews::Unreadable => {}
            }
            bytes += more;
            answers.extend(self.ready.pop_front());
        }
        if answers.is_empty() {
            return None;
        }
        self.ready_bytes = self.ready_bytes.saturating_sub(bytes);
        self.held_answers = answers.len();
        Some(ServerMessage::Answers(answers).encode())
    }

    /// What was done for the client.
    pub fn progress(&self) -> SyncServerProgress {
        let waiting = self.queue.len() + self.looked_up + self.ready.len() + self.held_answers;
        SyncServerProgress { waiting, ..self.progress }
    }
}

/// About what it takes in a message.
fn answer_bytes(answer: &ChunkAnswer) -> usize {
    let ChunkAnswer { news, .. } = answer;
    16 + if let ChunkNews::Chunk { bytes, .. } = news { bytes.len() } else { 0 }
}
