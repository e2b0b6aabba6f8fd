//! The messages of clients and servers, their [`SyncArea`] and [`SyncError`]. A message is the number of the protocol, a byte for its kind,
//! then postcard; those of the server are compressed by zlib, except for changes.

use crate::block::{BlockComponentRecord, BlockRecord};
use crate::bytes::{self, put_value, up_to};
use crate::space::{BlockPos, ChunkPos, ColumnPos};
use flate2::Compression;
use flate2::bufread::ZlibEncoder;
use flate2::read::ZlibDecoder;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::io::{Cursor, Read};
use std::ops::Range;
use thiserror::Error;
use twox_hash::XxHash3_64;

/// The maximum number of chunks of a column that is always reported as a whole.
const WHOLE_COLUMN: u64 = 64;
/// The maximum number of questions in one message.
pub const MAX_QUESTIONS: usize = 1_024;
pub(super) const MAX_ANSWERS: usize = 1_024;
/// The maximum number of a server's block types, and of their components.
const MAX_TYPES: usize = 1 << 20;

/// The maximum number of edits or answers in one message, and of a client's unanswered edits.
pub(super) const MAX_EDITS: usize = 1_024;

/// The number of the protocol. It is the first byte of each message and changes with any message.
pub const PROTOCOL: u8 = 4;
/// The kinds of messages: about chunks, about edits, about actions, and changes of chunks.
const CHUNKS: u8 = 0;
const EDITS: u8 = 1;
const ACTIONS: u8 = 2;
pub(super) const CHANGES: u8 = 3;
/// The first bytes of messages of older protocols.
const OLDER: std::ops::RangeInclusive<u8> = 1..=3;
/// The maximum size of an action, in bytes.
pub const MAX_ACTION_BYTES: usize = 1_024;
/// The size of actions in one message, without the last of them.
pub(super) const ACTIONS_AT_ONCE: usize = 32 << 10;
/// The maximum size of a server's news of an actor, decompressed.
const MAX_ACTOR_BYTES: usize = 1 << 20;
/// The maximum size of a client's message. A question takes up to 46 bytes, an edit up to 61.
pub(super) const MAX_CLIENT_BYTES: usize = 64 << 10;
/// The maximum size of a server's decompressed message: more than the largest stored chunk with its components.
const MAX_SERVER_BYTES: usize = 64 << 20;

/// Identifies the content of a chunk: the 64-bit XXH3 of its bytes in the chunk format. In messages it has eight bytes, the lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkHash(#[serde(with = "postcard::fixint::le")] pub u64);

impl ChunkHash {
    /// The hash of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(XxHash3_64::oneshot(bytes))
    }

    /// The part of it that checks a change.
    pub fn short(self) -> u32 {
        self.0 as u32
    }
}

/// A client's message: its area and its questions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkQuestions {
    /// The client gets news of these chunks until it sends another area.
    pub area: SyncArea,
    /// The chunks to ask for, at most [`MAX_QUESTIONS`] and each within the area, with the hashes of those that the client has.
    #[serde(deserialize_with = "up_to::<_, _, MAX_QUESTIONS>")]
    pub questions: Vec<(ChunkPos, Option<ChunkHash>)>,
}

/// The server's news of a chunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChunkNews {
    /// The client's chunk, with this hash, is current.
    Current(ChunkHash),
    /// The chunk's content, in the chunk format.
    Chunk(#[serde(with = "serde_bytes")] Vec<u8>),
    /// The chunk does not exist, or has not been generated yet.
    Gone,
    /// The server cannot read the chunk. The client's may be current or not.
    Unreadable,
}

/// The information that a client needs before it can read chunks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncWelcome {
    /// The name of the dimension.
    pub dimension: String,
    /// The chunk heights of the dimension.
    pub chunk_heights: Range<i64>,
    /// The maximum radius of an area.
    pub radius: u32,
    /// The maximum vertical distance of an area.
    pub vertical: u32,
    /// The meaning of the block numbers in chunks.
    #[serde(deserialize_with = "up_to::<_, _, MAX_TYPES>")]
    pub blocks: Vec<BlockRecord>,
    /// The meaning of the block component numbers.
    #[serde(deserialize_with = "up_to::<_, _, MAX_TYPES>")]
    pub components: Vec<BlockComponentRecord>,
}

/// A message of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServerMessage {
    /// The first message.
    Welcome(SyncWelcome),
    /// Answers to questions, and news of chunks that were asked for earlier, at most 1,024.
    Answers(#[serde(deserialize_with = "up_to::<_, _, MAX_ANSWERS>")] Vec<(ChunkPos, ChunkNews)>),
}

/// An edit of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncEdit {
    /// The client's number for the edit.
    pub id: u64,
    /// The position of the block.
    pub position: BlockPos,
    /// The new block, with the server's number.
    pub block: u32,
    /// The client's chunk, from the server or from its cache, without its own edits.
    pub base: Option<ChunkHash>,
}

/// A client's message with edits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditRequests {
    /// The edits, in order, at most 1,024.
    #[serde(deserialize_with = "up_to::<_, _, MAX_EDITS>")]
    pub edits: Vec<SyncEdit>,
}

/// An action of a client. The game chooses the form of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncAction {
    /// The client's number for the action. Edits and actions have numbers of their own, all different.
    pub id: u64,
    /// The action, at most [`MAX_ACTION_BYTES`].
    #[serde(with = "serde_bytes")]
    pub bytes: Vec<u8>,
}

/// A client's message with actions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionRequests {
    /// The actions, in order, at most 1,024.
    #[serde(deserialize_with = "up_to::<_, _, MAX_EDITS>")]
    pub actions: Vec<SyncAction>,
}

/// The server's news of the entity that acts for a client, in bytes of the app's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActorNews {
    /// The news.
    #[serde(with = "serde_bytes")]
    pub bytes: Vec<u8>,
}

/// The server's answer to an edit or an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditAnswer {
    /// The client's number for the edit or the action.
    pub id: u64,
    /// `true` if it was made. The server has sent the chunks with it before.
    pub is_accepted: bool,
}

/// A message of the server about edits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EditMessage {
    /// The server takes edits.
    Taken,
    /// Answers to edits, at most 1,024.
    Answers(#[serde(deserialize_with = "up_to::<_, _, MAX_EDITS>")] Vec<EditAnswer>),
}

/// Any message of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientMessage {
    /// About chunks.
    Questions(ChunkQuestions),
    /// Edits.
    Edits(EditRequests),
    /// Actions.
    Actions(ActionRequests),
}

impl ClientMessage {
    /// Decodes a message. The needed memory is a small multiple of its length.
    ///
    /// # Errors
    /// Fails if the bytes are not a message of a client, or too many.
    pub fn decode(message: &[u8]) -> Result<Self, SyncError> {
        if let Some(edits) = EditRequests::decode(message) {
            return edits.map(Self::Edits);
        }
        match ActionRequests::decode(message) {
            Some(actions) => actions.map(Self::Actions),
            None => ChunkQuestions::decode(message).map(Self::Questions),
        }
    }
}

impl EditRequests {
    /// Encodes the message.
    pub fn encode(&self) -> Vec<u8> {
        put_value(vec![PROTOCOL, EDITS], self)
    }

    /// Decodes a message; `None` if it is not about edits. The needed memory is a small multiple of its length.
    ///
    /// # Errors
    /// Fails if the bytes are not such a message, or too many.
    pub fn decode(message: &[u8]) -> Option<Result<Self, SyncError>> {
        let body = message.strip_prefix(&[PROTOCOL, EDITS])?;
        Some(if message.len() > MAX_CLIENT_BYTES {
            Err(SyncError::TooLarge { limit: MAX_CLIENT_BYTES })
        } else {
            parse(body)
        })
    }
}

impl ActionRequests {
    /// Encodes the message.
    pub fn encode(&self) -> Vec<u8> {
        put_value(vec![PROTOCOL, ACTIONS], self)
    }

    /// Decodes a message; `None` if it is not about actions. The needed memory is a small multiple of its length.
    ///
    /// # Errors
    /// Fails if the bytes are not such a message, or too many, or if an action has too many.
    pub fn decode(message: &[u8]) -> Option<Result<Self, SyncError>> {
        let body = message.strip_prefix(&[PROTOCOL, ACTIONS])?;
        if message.len() > MAX_CLIENT_BYTES {
            return Some(Err(SyncError::TooLarge { limit: MAX_CLIENT_BYTES }));
        }
        Some(parse(body).and_then(|requests: Self| {
            match requests.actions.iter().all(|action| action.bytes.len() <= MAX_ACTION_BYTES) {
                true => Ok(requests),
                false => Err(SyncError::TooLarge { limit: MAX_ACTION_BYTES }),
            }
        }))
    }
}

impl ActorNews {
    /// Encodes the message.
    pub fn encode(&self) -> Vec<u8> {
        compressed(ACTIONS, self)
    }

    /// Decodes a message; `None` if it is not about an actor.
    ///
    /// # Errors
    /// Fails if the bytes are not such a message, or too many.
    pub fn decode(message: &[u8]) -> Option<Result<Self, SyncError>> {
        let body = message.strip_prefix(&[PROTOCOL, ACTIONS])?;
        Some(decompressed(body, MAX_ACTOR_BYTES).and_then(|plain| parse(&plain)))
    }
}

impl EditMessage {
    /// Encodes the message.
    pub fn encode(&self) -> Vec<u8> {
        compressed(EDITS, self)
    }

    /// Decodes a message; `None` if it is not about edits.
    ///
    /// # Errors
    /// Fails if the bytes are not such a message, or too many.
    pub fn decode(message: &[u8]) -> Option<Result<Self, SyncError>> {
        let body = message.strip_prefix(&[PROTOCOL, EDITS])?;
        Some(decompressed(body, MAX_CLIENT_BYTES).and_then(|plain| parse(&plain)))
    }
}

impl SyncWelcome {
    /// Returns `true` if columns have at most 64 chunks, so that clients always get news of whole columns.
    pub fn has_whole_columns(&self) -> bool {
        self.chunk_heights.end.abs_diff(self.chunk_heights.start) <= WHOLE_COLUMN
    }
}

impl ChunkQuestions {
    /// Encodes the message.
    pub fn encode(&self) -> Vec<u8> {
        put_value(vec![PROTOCOL, CHUNKS], self)
    }

    /// Decodes a message. The needed memory is a small multiple of its length.
    ///
    /// # Errors
    /// Fails if the bytes are not such a message, or too many.
    pub fn decode(message: &[u8]) -> Result<Self, SyncError> {
        if message.len() > MAX_CLIENT_BYTES {
            return Err(SyncError::TooLarge { limit: MAX_CLIENT_BYTES });
        }
        parse(body(message)?)
    }
}

impl ServerMessage {
    /// Encodes the message.
    pub fn encode(&self) -> Vec<u8> {
        compressed(CHUNKS, self)
    }

    /// Decodes a message. Decompresses at most 64 MiB.
    ///
    /// # Errors
    /// Fails if the bytes are not such a message, or too many.
    pub fn decode(message: &[u8]) -> Result<Self, SyncError> {
        Self::decompress(body(message)?)
    }

    /// Decodes the first message as it is in a cache, where it may be of an older protocol.
    pub(super) fn decode_cached(message: &[u8]) -> Result<Self, SyncError> {
        match message {
            [format, body @ ..] if OLDER.contains(format) => Self::decompress(body),
            _ => Self::decode(message),
        }
    }

    fn decompress(body: &[u8]) -> Result<Self, SyncError> {
        match parse(&decompressed(body, MAX_SERVER_BYTES)?)? {
            Self::Welcome(SyncWelcome { chunk_heights, .. }) if chunk_heights.is_empty() => {
                Err(SyncError::Malformed { reason: "its dimension has no heights".into() })
            }
            read => Ok(read),
        }
    }
}

fn compressed(kind: u8, value: &impl Serialize) -> Vec<u8> {
    let plain = put_value(Vec::new(), value);
    let mut message = vec![PROTOCOL, kind];
    ENCODER.with_borrow_mut(|encoder| {
        encoder.reset(Cursor::new(plain));
        // Reading from and writing to memory cannot fail.
        let _ = encoder.read_to_end(&mut message);
        *encoder.get_mut() = Cursor::default();
    });
    message
}

thread_local! {
    /// Used again: the memory of a new one costs more than most messages.
    static ENCODER: RefCell<ZlibEncoder<Cursor<Vec<u8>>>> =
        RefCell::new(ZlibEncoder::new(Cursor::default(), Compression::fast()));
}

fn decompressed(body: &[u8], limit: usize) -> Result<Vec<u8>, SyncError> {
    let mut plain = Vec::new();
    let mut decoder = ZlibDecoder::new(body).take(limit as u64 + 1);
    decoder.read_to_end(&mut plain).map_err(|error| SyncError::Malformed { reason: error.to_string() })?;
    if plain.len() > limit { Err(SyncError::TooLarge { limit }) } else { Ok(plain) }
}

/// The rest of a message about chunks.
fn body(message: &[u8]) -> Result<&[u8], SyncError> {
    match message {
        [PROTOCOL, CHUNKS, body @ ..] => Ok(body),
        [] | [PROTOCOL, ..] => Err(SyncError::Malformed { reason: "it is of no known kind".into() }),
        [found, ..] => Err(SyncError::Protocol { found: *found }),
    }
}

pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, SyncError> {
    bytes::value(bytes).map_err(|reason| SyncError::Malformed { reason })
}

/// The error for an invalid message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SyncError {
    /// The other side is of another version of the game.
    #[error("the other side speaks protocol {found} and this one {PROTOCOL}: update the older of the two")]
    Protocol {
        /// The other side's number.
        found: u8,
    },
    /// The bytes of the message are invalid.
    #[error("the message cannot be read: {reason}")]
    Malformed {
        /// The reason.
        reason: String,
    },
    /// The message is too large, before or after decompression.
    #[error("the message has more than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// A client sent a message before it got the server's first one.
    #[error("the message arrived before the server's first one")]
    Early,
    /// A client sends faster than the server reads.
    #[error("the client sends too much")]
    Flood,
}

/// The chunks that a client wants to have: a disc of columns, limited in height.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncArea {
    /// The chunk in the middle.
    pub center: ChunkPos,
    /// The radius in columns.
    pub radius: u32,
    /// The distance above and below the center, in chunks.
    pub vertical: u32,
}

impl SyncArea {
    /// Returns `true` if the area contains the column.
    pub fn contains_column(&self, column: ColumnPos) -> bool {
        self.center.column().distance_squared(column) <= u128::from(self.radius).pow(2)
    }

    /// Returns `true` if the area contains the chunk.
    pub fn contains(&self, chunk: ChunkPos) -> bool {
        self.contains_column(chunk.column()) && chunk.y.abs_diff(self.center.y) <= self.vertical.into()
    }

    /// A key that sorts nearest first: by the distance of columns, then by height.
    pub(super) fn order(&self, chunk: ChunkPos) -> (u128, u64, ChunkPos) {
        (chunk.column().distance_squared(self.center.column()), chunk.y.abs_diff(self.center.y), chunk)
    }

    pub(super) fn columns(&self) -> Vec<ColumnPos> {
        let reach = i64::from(self.radius);
        let around = |center: i64| center.saturating_sub(reach)..=center.saturating_add(reach);
        let rows = around(self.center.x).flat_map(|x| around(self.center.z).map(move |z| ColumnPos::new(x, z)));
        let mut columns: Vec<ColumnPos> = rows.filter(|column| self.contains_column(*column)).collect();
        columns.sort_by_cached_key(|column| self.order(column.chunk(self.center.y)));
        columns
    }

    /// The area, extended by this many chunks in each direction.
    #[doc(hidden)]
    pub fn grown(self, chunks: u32) -> Self {
        let Self { center, radius, vertical } = self;
        Self { center, radius: radius.saturating_add(chunks), vertical: vertical.saturating_add(chunks) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_columns_of_the_disc_come_first() {
        let area = SyncArea { center: ChunkPos::new(10, 3, -5), radius: 2, vertical: 1 };
        let columns = area.columns();
        assert_eq!((columns.len(), columns[0]), (13, ColumnPos::new(10, -5)));
        let distance = |column: &ColumnPos| (column.x - 10).pow(2) + (column.z + 5).pow(2);
        assert!(columns.is_sorted_by_key(distance));
        assert!(columns.iter().all(|column| distance(column) <= 4));
        assert!(area.contains(ChunkPos::new(12, 4, -5)) && !area.contains(ChunkPos::new(10, 5, -5)));
    }

    #[test]
    fn the_end_of_the_world_is_no_end_of_the_program() {
        let area = SyncArea { center: ChunkPos::new(i64::MAX, i64::MIN, i64::MAX), radius: 1, vertical: u32::MAX };
        assert_eq!(area.columns().len(), 3);
        assert!(!area.contains(ChunkPos::new(i64::MIN, i64::MIN, i64::MIN)));
        assert_eq!(area.grown(u32::MAX).radius, u32::MAX);
    }
}
