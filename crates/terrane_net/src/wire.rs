//! The messages of a connection, besides those of chunks and entities.
//!
//! A connection has these streams of QUIC:
//!
//! * the *control* stream, which the client opens, both ways: first a [`Hello`], then [`ToClient`] and [`ToServer`];
//! * a *sync* stream each way for each dimension in which the client plays, with the messages of
//!   [`ClientPort`](bevy_terrane::view::ClientPort). It begins with the number of the *stay* in that dimension;
//! * datagrams, with the packets of the port. They begin with the last byte of that number.
//!
//! On a stream, a message begins with its length as four bytes, the lowest first.

use bevy_terrane::prelude::BlockPos;
use quinn::{Connection, ReadExactError, RecvStream, SendStream, WriteError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

/// The number of this protocol. It changes with any of the messages here.
pub(crate) const PROTOCOL: u16 = 3;
/// All versions offer this in the handshake.
pub(crate) const ALPN: &[u8] = b"terrane";
/// The longest message of the control stream.
pub(crate) const MAX_CONTROL: usize = 64 << 10;
/// The longest message of a client on a sync stream, and of a server.
pub(crate) const MAX_SYNC_OF_CLIENT: usize = 64 << 10;
pub(crate) const MAX_SYNC_OF_SERVER: usize = 64 << 20;

/// The first message of a client. All versions of the protocol can read its first two fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub protocol: u16,
    /// The number of the protocol of chunks and entities.
    pub sync: u8,
    pub name: String,
    /// The proof of who the client is, in a form of the game's.
    #[serde(with = "bytes")]
    pub secret: Vec<u8>,
    /// A random number of the client's connection, which is the same when the client comes back after it has lost its server.
    pub session: Uuid,
}

/// A message of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum ToClient {
    /// The client cannot play, for this reason. The connection ends.
    Refused(String),
    /// The player is on the server at this address.
    Elsewhere(String),
    /// The client's player is in the world, at this place. Its stay in this dimension has this number.
    Plays { player: Uuid, place: BlockPos, dimension: String, stay: u32 },
    /// The time of day in the dimension: days, and seconds of a day.
    Time { days: f64, seconds_per_day: f64 },
    /// A message of the game: its type path, and its fields.
    Game(String, #[serde(with = "bytes")] Vec<u8>),
}

/// A message of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum ToServer {
    /// A message of the game: its type path, and its fields.
    Game(String, #[serde(with = "bytes")] Vec<u8>),
}

/// The error of a stream.
#[derive(Debug, Error)]
pub(crate) enum WireError {
    #[error("a message has more than {0} bytes")]
    TooLong(usize),
    #[error("a message cannot be read")]
    Malformed,
    #[error("the connection is lost")]
    Read(#[from] ReadExactError),
    #[error("the connection is lost")]
    Write(#[from] WriteError),
    #[error("the other side said nothing for {0:?}")]
    Silent(Duration),
}

/// Reads a message; `None` at the end of the stream.
pub(crate) async fn read_bytes(stream: &mut RecvStream, most: usize) -> Result<Option<Vec<u8>>, WireError> {
    let mut length = [0; 4];
    match stream.read_exact(&mut length).await {
        Err(ReadExactError::FinishedEarly(0)) => return Ok(None),
        read => read?,
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > most {
        return Err(WireError::TooLong(most));
    }
    // Memory is taken as the bytes arrive.
    let mut bytes = Vec::new();
    while bytes.len() < length {
        let part = (length - bytes.len()).min(16 << 10);
        let start = bytes.len();
        bytes.resize(start + part, 0);
        stream.read_exact(&mut bytes[start..]).await?;
    }
    Ok(Some(bytes))
}

pub(crate) async fn read<T: DeserializeOwned>(stream: &mut RecvStream) -> Result<Option<T>, WireError> {
    let Some(bytes) = read_bytes(stream, MAX_CONTROL).await? else { return Ok(None) };
    postcard::from_bytes(&bytes).map(Some).map_err(|_| WireError::Malformed)
}

pub(crate) async fn write_bytes(stream: &mut SendStream, bytes: &[u8]) -> Result<(), WireError> {
    let length = u32::try_from(bytes.len()).map_err(|_| WireError::TooLong(u32::MAX as usize))?;
    stream.write_all(&length.to_le_bytes()).await?;
    Ok(stream.write_all(bytes).await?)
}

pub(crate) async fn write(stream: &mut SendStream, message: &impl Serialize) -> Result<(), WireError> {
    write_bytes(stream, &encode(message)).await
}

/// Sends a packet of a stay. One that is too large for the path is as good as lost.
pub(crate) fn send_packet(connection: &Connection, stay: u32, packet: &[u8]) {
    let _ = connection.send_datagram([&[stay as u8], packet].concat().into());
}

pub(crate) fn encode(message: &impl Serialize) -> Vec<u8> {
    // These types have no form that postcard lacks.
    postcard::to_extend(message, Vec::new()).unwrap_or_default()
}

/// Bounds the bytes that a connection has read and the frames have not taken in. While there is no room, the connection is not read, so
/// that the other side has to wait.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    permits: Arc<Semaphore>,
    most: u32,
}

/// The room of a message. It is free again when this is dropped.
pub(crate) type Taken = Option<OwnedSemaphorePermit>;

impl Room {
    pub fn of(bytes: u32) -> Self {
        Self { permits: Arc::new(Semaphore::new(bytes as usize)), most: bytes }
    }

    fn needed(&self, bytes: usize) -> u32 {
        // A message that is larger than all room takes all of it. A short one counts for its allocation.
        u32::try_from(bytes).unwrap_or(u32::MAX).saturating_add(64).min(self.most)
    }

    /// Waits until there is room.
    pub async fn take(&self, bytes: usize) -> Taken {
        self.permits.clone().acquire_many_owned(self.needed(bytes)).await.ok()
    }

    /// `None` if there is no room.
    pub fn try_take(&self, bytes: usize) -> Taken {
        self.permits.clone().try_acquire_many_owned(self.needed(bytes)).ok()
    }
}

/// Waits for at most this long.
pub(crate) async fn in_time<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, WireError>>,
) -> Result<T, WireError> {
    tokio::time::timeout(limit, work).await.unwrap_or(Err(WireError::Silent(limit)))
}

/// Bytes in one piece, instead of one by one.
mod bytes {
    use serde::de::{Error, Visitor};
    use serde::{Deserializer, Serializer};
    use std::fmt::{self, Formatter};

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytes)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Vec<u8>;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
                Ok(bytes.to_vec())
            }
        }
        deserializer.deserialize_byte_buf(Bytes)
    }
}
