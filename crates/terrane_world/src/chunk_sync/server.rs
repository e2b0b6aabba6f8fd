//! The server's side of one client.

use super::messages::MAX_ANSWERS;
use super::{Budget, ChunkNews, ChunkQuestions, KnownVersion, ServerMessage, SyncArea, SyncError, SyncWelcome};
use crate::block::{BlockComponentRecord, BlockRecord};
use crate::space::{ChunkPos, ColumnPos, disc_radius};
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
    /// The radius of its area at the most, in columns.
    pub radius: u32,
    /// How far above and below, in chunks, in a dimension of more than 64 chunks of height; otherwise columns are whole.
    pub vertical: u32,
    /// The most chunks that the server remembers for it, about 150 bytes each; less than 128 counts as 128. The radius and the
    /// reach up and down are made smaller where the area would have more than seven eighths as many chunks.
    pub chunks: usize,
    /// Bytes a second that it is sent at the most, on the average of a second.
    pub bytes_per_second: u64,
}

impl Default for SyncLimits {
    /// 32 columns around, 16 chunks above and below, 262,144 chunks, 1 MiB a second.
    fn default() -> Self {
        Self { radius: 32, vertical: 16, chunks: 1 << 18, bytes_per_second: 1 << 20 }
    }
}

impl SyncLimits {
    /// The same limits with an area whose chunks can all be remembered, in a dimension with these chunk heights.
    pub(super) fn fitting(self, chunk_heights: &Range<i64>, has_whole_columns: bool) -> Self {
        let chunks = self.chunks.max(128);
        // The rest is room for questions about another area, until the server forgets the chunks of the last one.
        let area = (chunks - chunks / 8) as u64;
        let vertical = self.vertical.min(u32::try_from((area - 1) / 2).unwrap_or(u32::MAX));
        let height = chunk_heights.end.abs_diff(chunk_heights.start).max(1);
        let height = if has_whole_columns { height } else { height.min(2 * u64::from(vertical) + 1) };
        let vertical = if has_whole_columns { WHOLE_COLUMN_REACH } else { vertical };
        Self { radius: self.radius.min(disc_radius(area / height)), vertical, chunks, ..self }
    }
}

/// The time between two looks at what a moving client has left behind, at least: that takes a while.
const TIDY: Duration = Duration::from_millis(250);
/// After this time the server looks again where it found nothing, or nothing that it could read.
const LOOK_AGAIN: Duration = Duration::from_secs(3);

/// What a server did for a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncServerProgress {
    /// Chunks that are still to be looked up or sent.
    pub waiting: usize,
    /// Chunks that the server remembers for it, at most [`SyncLimits::chunks`].
    pub chunks: usize,
    /// Chunks that were looked up.
    pub looked_up: u64,
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
    /// The client is told of nothing outside of this.
    sight: Option<SyncArea>,
    /// What is left behind is still there, or something came into sight.
    is_untidy: bool,
    tidied: Duration,
    looked_again: Duration,
    interests: FxHashMap<ChunkPos, Interest>,
    /// To be looked up, nearest first.
    queue: BTreeSet<(u128, u64, ChunkPos)>,
    /// Wanted, and not found yet.
    looked_up: usize,
    ready: VecDeque<(ChunkPos, ChunkNews)>,
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
    /// What the last look-up found: a version, nothing, or something that cannot be read.
    found: Option<Result<Option<KnownVersion>, ()>>,
}

impl Interest {
    /// There was no such chunk, or it could not be read.
    fn is_missing(&self) -> bool {
        matches!(self.found, Some(Ok(None) | Err(())))
    }

    /// What the client is told without another look-up, if it has not changed since the last one.
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
    /// It waits until it comes into sight.
    Unseen,
    /// To be looked up.
    Queued,
    /// Queued since the client asked. It is looked up only if the last look-up does not answer the question.
    Asked,
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
        let limits = limits.fitting(&welcome.chunk_heights, welcome.has_whole_columns());
        (welcome.radius, welcome.vertical) = (limits.radius, limits.vertical);
        Self {
            limits,
            chunk_heights: welcome.chunk_heights.clone(),
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
            held: Some(ServerMessage::Welcome(welcome).encode()),
            held_answers: 0,
            budget: None,
            progress: SyncServerProgress::default(),
        }
    }

    /// Takes in what the client sent. Questions for what is not in its area, or not in the dimension, are left out; those for
    /// what is not in [sight](Self::see) wait until it is.
    ///
    /// # Errors
    /// A message that is none; nothing changes then.
    pub fn receive(&mut self, message: &[u8]) -> Result<(), SyncError> {
        let ChunkQuestions { area, questions } = ChunkQuestions::decode(message)?;
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
            let fresh = Interest { client: None, stage: Stage::Told, is_asked: true, found: None };
            let interest = self.interests.entry(chunk).or_insert(fresh);
            (interest.client, interest.is_asked) = (known, true);
            self.queue(chunk, Stage::Asked);
        }
        Ok(())
    }

    /// From now on the client is told of nothing outside of these chunks; what it asks for there waits. `None` for no such
    /// bound, as in the beginning.
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

    /// Forgets what is not in the area any more, and queues what came into sight.
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
        self.ready.retain(|(chunk, _)| area.contains(*chunk));
        self.ready_bytes = self.ready.iter().map(|(_, news)| answer_bytes(news)).sum();
    }

    /// Where the client looks.
    pub fn area(&self) -> Option<SyncArea> {
        self.area
    }

    /// A chunk may be another now. Those that the client did not ask for do not count.
    pub fn changed(&mut self, chunk: ChunkPos) {
        self.queue(chunk, Stage::Queued);
    }

    /// The client is to be told of a chunk, in its turn and once it is in sight, since it asks or since the chunk changed.
    fn queue(&mut self, chunk: ChunkPos, stage: Stage) {
        let is_seen = self.sees(chunk);
        let (Some(area), Some(interest)) = (self.area, self.interests.get_mut(&chunk)) else { return };
        match interest.stage {
            Stage::Unseen | Stage::Queued => {}
            // The answer to what is under way is the answer to the question too.
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

    /// The next chunks to be looked up, nearest first, up to so many: none while enough waits to be sent. Each is to be
    /// [found](Self::found) then.
    pub fn wanted(&mut self, most: usize) -> Vec<ChunkPos> {
        let mut wanted = Vec::new();
        while self.ready_bytes < READY_BYTES
            && self.held.is_none()
            && self.looked_up < most
            && let Some((.., chunk)) = self.queue.pop_first()
        {
            let is_seen = self.sees(chunk);
            if !self.area.is_some_and(|area| area.contains(chunk)) {
                self.interests.remove(&chunk);
                continue;
            }
            let Some(interest) = self.interests.get_mut(&chunk) else { continue };
            if !is_seen {
                interest.stage = Stage::Unseen;
            } else if let Some(news) = interest.answer().filter(|_| interest.stage == Stage::Asked) {
                (interest.stage, interest.is_asked) = (Stage::Told, false);
                if news == ChunkNews::Gone {
                    interest.client = None;
                }
                self.tell(chunk, news);
            } else {
                interest.stage = Stage::LookedUp;
                self.looked_up += 1;
                self.progress.looked_up += 1;
                wanted.push(chunk);
            }
        }
        wanted
    }

    fn tell(&mut self, chunk: ChunkPos, news: ChunkNews) {
        self.ready_bytes += answer_bytes(&news);
        self.ready.push_back((chunk, news));
    }

    /// What a chunk that was wanted is, and its bytes in the chunk format; `None` if there is none, an error if it cannot be read.
    pub fn found(&mut self, chunk: ChunkPos, found: Result<Option<(KnownVersion, Arc<[u8]>)>, ()>) {
        self.looked_up = self.looked_up.saturating_sub(1);
        let Some(interest) = self.interests.get_mut(&chunk) else { return };
        // It came back into the area meanwhile, and is looked up once more.
        if !matches!(interest.stage, Stage::LookedUp | Stage::Outdated) {
            return;
        }
        let is_outdated = mem::replace(&mut interest.stage, Stage::Told) == Stage::Outdated;
        let is_asked = mem::take(&mut interest.is_asked);
        let was_missing = interest.is_missing();
        interest.found = Some(match &found {
            Ok(found) => Ok(found.as_ref().map(|(known, _)| *known)),
            Err(()) => Err(()),
        });
        let has_come = was_missing && !interest.is_missing();
        let news = match found {
            Ok(Some((known, bytes))) => {
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
            self.tell(chunk, news);
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

    /// Where nothing was, something may have been generated without anybody near; what could not be read may be readable now.
    /// One chunk of each column tells.
    fn look_again(&mut self) {
        let mut columns = FxHashMap::default();
        let is_missing = |interest: &Interest| interest.is_missing() && interest.stage == Stage::Told;
        for (chunk, _) in self.interests.iter().filter(|(_, interest)| is_missing(interest)) {
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
            && let Some((_, news)) = self.ready.front()
        {
            let more = answer_bytes(news);
            if bytes + more > MESSAGE_BYTES && !answers.is_empty() {
                break;
            }
            match news {
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
        SyncServerProgress { waiting, chunks: self.interests.len(), ..self.progress }
    }
}

/// About what it takes in a message.
fn answer_bytes(news: &ChunkNews) -> usize {
    16 + if let ChunkNews::Chunk { bytes, .. } = news { bytes.len() } else { 0 }
}
