use super::{
    Budget, ChunkAnswer, ChunkNews, ChunkQuestions, KnownVersion, ServerMessage, SyncArea, SyncError, SyncWelcome,
};
use crate::block::{BlockRecord, ComponentRecord};
use crate::space::ChunkPos;
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, VecDeque};
use std::mem;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of chunks that are put into one message, before it is compressed; a larger chunk is alone in one.
const MESSAGE_BYTES: usize = 48 << 10;
/// Answers in one message at the most.
const MESSAGE_ANSWERS: usize = 1_024;
/// Found chunks that wait to be sent: with so many bytes of them no more are looked up.
const READY_BYTES: usize = 256 << 10;

/// From any chunk of a column that is told as a whole to any other, and a little more.
const WHOLE_COLUMN_REACH: u32 = 72;

/// What a client may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncLimits {
    /// The radius of its area at the most, in columns. About 60 bytes are kept of each chunk of the area.
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

/// A chunk as it is on the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundChunk {
    /// Its version.
    pub version: u64,
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
    area: Option<SyncArea>,
    interests: FxHashMap<ChunkPos, Interest>,
    /// To be looked up, nearest first.
    queue: BTreeSet<(u128, u64, ChunkPos)>,
    /// Wanted, and not found yet.
    looked_up: usize,
    ready: VecDeque<ChunkAnswer>,
    ready_bytes: usize,
    /// Messages that wait for bytes of the budget.
    held: VecDeque<Vec<u8>>,
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
        (blocks, components): (Vec<BlockRecord>, Vec<ComponentRecord>),
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
            area: None,
            interests: FxHashMap::default(),
            queue: BTreeSet::new(),
            looked_up: 0,
            ready: VecDeque::new(),
            ready_bytes: 0,
            held: VecDeque::from([ServerMessage::Welcome(welcome).encode()]),
            budget: None,
            progress: SyncServerProgress::default(),
        }
    }

    /// Takes in what the client sent. Questions for what is not in its area are left out.
    ///
    /// # Errors
    /// A message that is none; nothing changes then.
    pub fn receive(&mut self, message: &[u8]) -> Result<(), SyncError> {
        let ChunkQuestions { area, questions } = ChunkQuestions::decode(message)?;
        self.look(area);
        for question in questions {
            if !self.area.is_some_and(|area| area.contains(question.chunk)) {
                continue;
            }
            let fresh = Interest { client: None, stage: Stage::Told, is_asked: true };
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
        if self.area.replace(area) == Some(area) {
            return;
        }
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
            && self.held.is_empty()
            && self.looked_up < most
            && let Some((.., chunk)) = self.queue.pop_first()
        {
            if let Some(interest) = self.interests.get_mut(&chunk) {
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
        let news = match found {
            Ok(Some(FoundChunk { version, bytes })) => {
                let known = KnownVersion::of(version, &bytes);
                let before = interest.client.replace(known);
                match before {
                    Some(before) if before == known && !is_asked => None,
                    Some(before) if before.checksum == known.checksum => Some(ChunkNews::Current { version }),
                    _ => Some(ChunkNews::Chunk { version, bytes: bytes.to_vec() }),
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
        let budget = self.budget.get_or_insert_with(|| Budget::new(now));
        budget.refill(now, self.limits.bytes_per_second);
        let mut messages = Vec::new();
        loop {
            if self.held.is_empty() {
                let (mut answers, mut bytes) = (Vec::new(), 0);
                while answers.len() < MESSAGE_ANSWERS
                    && let Some(answer) = self.ready.pop_front()
                {
                    let more = answer_bytes(&answer);
                    if bytes + more > MESSAGE_BYTES && !answers.is_empty() {
                        self.ready.push_front(answer);
                        break;
                    }
                    match answer.news {
                        ChunkNews::Current { .. } => self.progress.current += 1,
                        ChunkNews::Chunk { .. } => self.progress.sent += 1,
                        ChunkNews::Gone | ChunkNews::Unreadable => {}
                    }
                    bytes += more;
                    answers.push(answer);
                }
                if answers.is_empty() {
                    return messages;
                }
                self.ready_bytes = self.ready_bytes.saturating_sub(bytes);
                self.held.push_back(ServerMessage::Answers(answers).encode());
            }
            let Some(message) = self.held.pop_front() else { return messages };
            if !budget.spend(message.len() as u64) {
                self.held.push_front(message);
                return messages;
            }
            self.progress.bytes += message.len() as u64;
            messages.push(message);
        }
    }

    /// What was done for the client.
    pub fn progress(&self) -> SyncServerProgress {
        let waiting = self.queue.len() + self.looked_up + self.ready.len();
        SyncServerProgress { waiting, ..self.progress }
    }
}

/// About what it takes in a message.
fn answer_bytes(answer: &ChunkAnswer) -> usize {
    let ChunkAnswer { news, .. } = answer;
    16 + if let ChunkNews::Chunk { bytes, .. } = news { bytes.len() } else { 0 }
}
