//! What clients and servers say: a byte for the format, then postcard; what a server says is compressed by zlib.

use super::{SyncArea, SyncError};
use crate::block::{BlockComponentRecord, BlockRecord};
use crate::bytes::{self, put_value, up_to};
use crate::space::ChunkPos;
use flate2::Compression;
use flate2::read::{ZlibDecoder, ZlibEncoder};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::ops::Range;

/// Chunks of a column that is always told as a whole.
const WHOLE_COLUMN: u64 = 64;
/// Questions in one message at the most.
pub const MAX_QUESTIONS: usize = 1_024;
/// Answers in one message at the most.
pub(super) const MAX_ANSWERS: usize = 1_024;
/// Types of blocks that a server may have, and of their components.
const MAX_TYPES: usize = 1 << 20;

const FORMAT: u8 = 1;
/// Of a client's message. A question takes up to 46 bytes.
const MAX_CLIENT_BYTES: usize = 64 << 10;
/// Of a server's message, decompressed: more than the largest chunk with its components that is stored.
const MAX_SERVER_BYTES: usize = 64 << 20;

/// A state of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownVersion {
    /// How often the chunk was saved changed.
    pub version: u64,
    /// The CRC-32 (that of zlib) of its bytes: two histories of a world may have the same version of a chunk.
    pub checksum: u32,
}

impl KnownVersion {
    /// Of these bytes.
    pub fn of(version: u64, bytes: &[u8]) -> Self {
        Self { version, checksum: crc32fast::hash(bytes) }
    }
}

/// All that a client says: where it looks, and what it asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkQuestions {
    /// It is told of these chunks until it looks elsewhere.
    pub area: SyncArea,
    /// The chunks that it asks for, at most [`MAX_QUESTIONS`], each within the area, and what it has of them.
    #[serde(deserialize_with = "up_to::<_, _, MAX_QUESTIONS>")]
    pub questions: Vec<(ChunkPos, Option<KnownVersion>)>,
}

/// What became of a chunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChunkNews {
    /// What the client said that it has is right.
    Current(KnownVersion),
    /// Here it is.
    Chunk {
        /// Its version. Of changes that are not saved yet it is the one that they will have.
        version: u64,
        /// Its bytes, in the chunk format.
        bytes: Vec<u8>,
    },
    /// There is no such chunk, or not yet: nothing was generated there.
    Gone,
    /// The server cannot read it. What the client has may be right or not.
    Unreadable,
}

/// What a client must know before it can read chunks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncWelcome {
    /// The name of the dimension.
    pub dimension: String,
    /// The chunk heights that it has.
    pub chunk_heights: Range<i64>,
    /// The radius of an area at the most.
    pub radius: u32,
    /// The same, up and down.
    pub vertical: u32,
    /// What the numbers of blocks in chunks mean.
    #[serde(deserialize_with = "up_to::<_, _, MAX_TYPES>")]
    pub blocks: Vec<BlockRecord>,
    /// What the numbers of block components mean.
    #[serde(deserialize_with = "up_to::<_, _, MAX_TYPES>")]
    pub components: Vec<BlockComponentRecord>,
}

/// All that a server says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServerMessage {
    /// The first one.
    Welcome(SyncWelcome),
    /// Answers to questions, and news of chunks that were asked for before: what became of each, at most 1,024.
    Answers(#[serde(deserialize_with = "up_to::<_, _, MAX_ANSWERS>")] Vec<(ChunkPos, ChunkNews)>),
}

impl SyncWelcome {
    /// Whether columns have so few chunks, at most 64, that a client is always told of all of them.
    pub fn has_whole_columns(&self) -> bool {
        self.chunk_heights.end.abs_diff(self.chunk_heights.start) <= WHOLE_COLUMN
    }
}

impl ChunkQuestions {
    /// The message.
    pub fn encode(&self) -> Vec<u8> {
        put_value(vec![FORMAT], self)
    }

    /// Reads a message. It needs no more memory than some times its length.
    ///
    /// # Errors
    /// Bytes that are no such message, or too many.
    pub fn decode(message: &[u8]) -> Result<Self, SyncError> {
        if message.len() > MAX_CLIENT_BYTES {
            return Err(SyncError::TooLarge { limit: MAX_CLIENT_BYTES });
        }
        parse(body(message)?)
    }
}

impl ServerMessage {
    /// The message.
    pub fn encode(&self) -> Vec<u8> {
        let plain = put_value(Vec::new(), self);
        let mut message = vec![FORMAT];
        // Neither memory to read from nor memory to write to can fail.
        let _ = ZlibEncoder::new(&plain[..], Compression::fast()).read_to_end(&mut message);
        message
    }

    /// Reads a message. Not more than 64 MiB are decompressed.
    ///
    /// # Errors
    /// Bytes that are no such message, or too many.
    pub fn decode(message: &[u8]) -> Result<Self, SyncError> {
        let limit = MAX_SERVER_BYTES;
        let mut plain = Vec::new();
        let mut decoder = ZlibDecoder::new(body(message)?).take(limit as u64 + 1);
        decoder.read_to_end(&mut plain).map_err(|error| SyncError::Malformed { reason: error.to_string() })?;
        if plain.len() > limit {
            return Err(SyncError::TooLarge { limit });
        }
        match parse(&plain)? {
            Self::Welcome(SyncWelcome { chunk_heights, .. }) if chunk_heights.is_empty() => {
                Err(SyncError::Malformed { reason: "its dimension has no heights".into() })
            }
            read => Ok(read),
        }
    }
}

fn body(message: &[u8]) -> Result<&[u8], SyncError> {
    match message.split_first() {
        None => Err(SyncError::Malformed { reason: "it is empty".into() }),
        Some((&FORMAT, body)) => Ok(body),
        Some((&found, _)) => Err(SyncError::Format { found, known: FORMAT }),
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, SyncError> {
    bytes::value(bytes).map_err(|reason| SyncError::Malformed { reason })
}
