//! The bytes of messages and packets.

use super::place::ShortPlace;
use super::{MESSAGE, PACKET};
use crate::bytes::{ReadError, Reader, put_number, put_signed};
use crate::chunk_sync::PROTOCOL;
use crate::space::ChunkPos;
use std::time::Duration;
use thiserror::Error;
use uuid::Uuid;

/// The size of a packet at which no more cells are added, in bytes. With the headers of the internet, it fits into any network's packets.
const PACKET_BYTES: usize = 1_100;
/// The unit of ages in packets, in milliseconds.
pub(super) const AGE_MILLIS: u64 = 20;
/// The maximum size of a message or a packet, and of a component.
pub(super) const MAX_MESSAGE_BYTES: usize = 8 << 20;
const MAX_PACKET_BYTES: usize = 64 << 10;

/// The error for an invalid message or packet about entities.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EntityMessageError {
    /// It is too long.
    #[error("the message about entities has more than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// It ends too early, or has a number that is too large.
    #[error("the message about entities cannot be read from byte {offset} on")]
    Malformed {
        /// Where it cannot be read.
        offset: usize,
    },
    /// It has more entities, components or types than a client keeps.
    #[error("the server has more than {limit} {what} around the client")]
    TooMany {
        /// The things that are too many.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}

impl From<ReadError> for EntityMessageError {
    fn from(error: ReadError) -> Self {
        let (ReadError::Truncated { offset } | ReadError::TooLong { offset }) = error;
        Self::Malformed { offset }
    }
}

/// An event in a message.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Event<'a> {
    /// Forget all entities. The types of components follow.
    Reset { types: Vec<&'a str> },
    /// An entity has come into sight.
    Appear { net: u32, id: Uuid, cell: ChunkPos, place: ShortPlace, millis: u64, components: Vec<(u16, &'a [u8])> },
    /// Components of an entity have changed; `None` for one that it does not have any more.
    Change { net: u32, components: Vec<(u16, Option<&'a [u8]>)> },
    /// An entity is out of sight, or gone.
    Leave { net: u32 },
}

const RESET: u8 = 0;
const APPEAR: u8 = 1;
const CHANGE: u8 = 2;
const LEAVE: u8 = 3;

pub(super) fn message() -> Vec<u8> {
    vec![PROTOCOL, MESSAGE]
}

fn put_bytes(into: &mut Vec<u8>, bytes: &[u8]) {
    put_number(into, bytes.len() as u64);
    into.extend_from_slice(bytes);
}

fn put_cell(into: &mut Vec<u8>, cell: ChunkPos) {
    [cell.x, cell.y, cell.z].into_iter().for_each(|coordinate| put_signed(into, coordinate));
}

impl Event<'_> {
    pub fn put(&self, into: &mut Vec<u8>) {
        match self {
            Self::Reset { types } => {
                into.push(RESET);
                put_number(into, types.len() as u64);
                types.iter().for_each(|path| put_bytes(into, path.as_bytes()));
            }
            Self::Appear { net, id, cell, place, millis, components } => {
                into.push(APPEAR);
                put_number(into, (*net).into());
                into.extend_from_slice(id.as_bytes());
                put_cell(into, *cell);
                place.put(0, into);
                put_number(into, *millis);
                put_number(into, components.len() as u64);
                for (number, value) in components {
                    put_number(into, (*number).into());
                    put_bytes(into, value);
                }
            }
            Self::Change { net, components } => {
                into.push(CHANGE);
                put_number(into, (*net).into());
                put_number(into, components.len() as u64);
                for (number, value) in components {
                    put_number(into, u64::from(*number) << 1 | u64::from(value.is_some()));
                    value.iter().for_each(|value| put_bytes(into, value));
                }
            }
            Self::Leave { net } => {
                into.push(LEAVE);
                put_number(into, (*net).into());
            }
        }
    }
}

fn small<T: TryFrom<u64>>(reader: &mut Reader) -> Result<T, EntityMessageError> {
    let offset = reader.offset();
    T::try_from(reader.number()?).map_err(|_| EntityMessageError::Malformed { offset })
}

fn read_bytes<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], EntityMessageError> {
    let length = small(reader)?;
    Ok(reader.slice(length)?)
}

fn read_cell(reader: &mut Reader) -> Result<ChunkPos, EntityMessageError> {
    Ok(ChunkPos::new(reader.signed()?, reader.signed()?, reader.signed()?))
}

/// Reads a list whose items have at least a byte each.
fn list<'a, T>(
    reader: &mut Reader<'a>,
    mut item: impl FnMut(&mut Reader<'a>) -> Result<T, EntityMessageError>,
) -> Result<Vec<T>, EntityMessageError> {
    let count: usize = small(reader)?;
    if count > reader.left() {
        return Err(EntityMessageError::Malformed { offset: reader.offset() });
    }
    (0..count).map(|_| item(reader)).collect()
}

/// The events of a message; `None` if it is not one about entities.
pub(super) fn read_message(message: &[u8]) -> Option<Result<Vec<Event<'_>>, EntityMessageError>> {
    let body = message.strip_prefix(&[PROTOCOL, MESSAGE])?;
    if body.len() > MAX_MESSAGE_BYTES {
        return Some(Err(EntityMessageError::TooLarge { limit: MAX_MESSAGE_BYTES }));
    }
    let mut reader = Reader::new(body);
    let mut events = Vec::new();
    while reader.left() > 0 {
        match read_event(&mut reader) {
            Ok(event) => events.push(event),
            Err(error) => return Some(Err(error)),
        }
    }
    Some(Ok(events))
}

fn read_event<'a>(reader: &mut Reader<'a>) -> Result<Event<'a>, EntityMessageError> {
    let offset = reader.offset();
    Ok(match reader.byte()? {
        RESET => {
            let text = |reader: &mut Reader<'a>| {
                let offset = reader.offset();
                std::str::from_utf8(read_bytes(reader)?).map_err(|_| EntityMessageError::Malformed { offset })
            };
            Event::Reset { types: list(reader, text)? }
        }
        APPEAR => {
            let net = small(reader)?;
            let mut id = [0; 16];
            id.copy_from_slice(reader.slice(16)?);
            let (cell, (place, _)) = (read_cell(reader)?, ShortPlace::read(reader)?);
            let millis = reader.number()?;
            let components = list(reader, |reader| Ok((small(reader)?, read_bytes(reader)?)))?;
            Event::Appear { net, id: Uuid::from_bytes(id), cell, place, millis, components }
        }
        CHANGE => {
            let net = small(reader)?;
            let components = list(reader, |reader| {
                let number: u32 = small(reader)?;
                let value = if number & 1 == 1 { Some(read_bytes(reader)?) } else { None };
                Ok(((number >> 1) as u16, value))
            })?;
            Event::Change { net, components }
        }
        LEAVE => Event::Leave { net: small(reader)? },
        _ => return Err(EntityMessageError::Malformed { offset }),
    })
}

/// The places in a cell, the same for all clients.
pub(super) struct PlacesWriter {
    bytes: Vec<u8>,
    count: u64,
    last: u32,
}

impl PlacesWriter {
    pub fn new() -> Self {
        Self { bytes: Vec::new(), count: 0, last: 0 }
    }

    /// Adds an entity. Their numbers must rise.
    pub fn put(&mut self, net: u32, place: ShortPlace, age_millis: u64) {
        put_number(&mut self.bytes, (net - self.last).into());
        place.put((age_millis / AGE_MILLIS).min(u8::MAX.into()) as u8, &mut self.bytes);
        (self.last, self.count) = (net, self.count + 1);
    }

    /// The bytes; `None` without entities.
    pub fn finish(self) -> Option<Box<[u8]>> {
        if self.count == 0 {
            return None;
        }
        let mut bytes = Vec::with_capacity(self.bytes.len() + 2);
        put_number(&mut bytes, self.count);
        bytes.extend_from_slice(&self.bytes);
        Some(bytes.into())
    }
}

/// Packets for one client: the time, and cells relative to each other.
pub(super) struct PacketWriter {
    millis: u64,
    last: ChunkPos,
    packets: Vec<Vec<u8>>,
}

impl PacketWriter {
    pub fn new(millis: u64) -> Self {
        Self { millis, last: ChunkPos::default(), packets: Vec::new() }
    }

    /// Adds the places of a cell at a rate, as of some milliseconds.
    pub fn put(&mut self, cell: ChunkPos, rate: u8, millis: u64, places: &[u8]) {
        let is_full = |packet: &Vec<u8>| packet.len() + places.len() + 12 > PACKET_BYTES;
        if self.packets.last().is_none_or(is_full) {
            let mut packet = vec![PROTOCOL, PACKET];
            put_number(&mut packet, self.millis);
            self.packets.push(packet);
            self.last = ChunkPos::default();
        }
        let Some(packet) = self.packets.last_mut() else { return };
        let along = |to: i64, from: i64| to.wrapping_sub(from);
        let ChunkPos { x, y, z } = self.last;
        put_cell(packet, ChunkPos::new(along(cell.x, x), along(cell.y, y), along(cell.z, z)));
        packet.push(rate);
        put_number(packet, self.millis.saturating_sub(millis));
        packet.extend_from_slice(places);
        self.last = cell;
    }

    pub fn finish(self) -> Vec<Vec<u8>> {
        self.packets
    }
}

/// Calls `each` with each place in a packet: the entity's number, its cell, the rate, and its place at some time. Returns `None` if it is
/// not a packet of places.
pub(super) fn read_packet(
    packet: &[u8],
    mut each: impl FnMut(u32, ChunkPos, u8, ShortPlace, Duration),
) -> Option<Result<(), EntityMessageError>> {
    let body = packet.strip_prefix(&[PROTOCOL, PACKET])?;
    if body.len() > MAX_PACKET_BYTES {
        return Some(Err(EntityMessageError::TooLarge { limit: MAX_PACKET_BYTES }));
    }
    let mut read = || {
        let mut reader = Reader::new(body);
        let millis = reader.number()?;
        let mut cell = ChunkPos::default();
        while reader.left() > 0 {
            let way = read_cell(&mut reader)?;
            let along = |from: i64, way: i64| from.wrapping_add(way);
            cell = ChunkPos::new(along(cell.x, way.x), along(cell.y, way.y), along(cell.z, way.z));
            let rate = reader.byte()?;
            let at = millis.saturating_sub(reader.number()?);
            let mut net = 0_u32;
            for _ in 0..reader.number()? {
                let offset = reader.offset();
                let next = net.checked_add(small(&mut reader)?);
                net = next.ok_or(EntityMessageError::Malformed { offset })?;
                let (place, age) = ShortPlace::read(&mut reader)?;
                let at = at.saturating_sub(u64::from(age) * AGE_MILLIS);
                each(net, cell, rate, place, Duration::from_millis(at));
            }
        }
        Ok(())
    };
    Some(read())
}
