//! The connection between server and clients: renet, over UDP.
//!
//! Anyone may connect here, without encryption. A public server must give its players connect tokens
//! (`ServerAuthentication::Secure`).

use bevy::prelude::*;
use bevy_renet::netcode::{
    ClientAuthentication, NetcodeClientTransport, NetcodeServerTransport, ServerAuthentication, ServerConfig,
};
use bevy_renet::renet::{ConnectionConfig, DefaultChannel};
use bevy_renet::{RenetClient, RenetServer};
use serde::Serialize;
use serde::de::DeserializeOwned;
use socket2::SockRef;
use std::collections::VecDeque;
use std::error::Error;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, SystemTime};

/// The protocol version. Must change with each version of the protocol.
const PROTOCOL: u64 = 1;
/// The channel for chunks and edits: reliable and in order.
pub const CHUNKS: DefaultChannel = DefaultChannel::ReliableOrdered;
/// The channel for the game's messages: reliable, and never delayed by chunks.
pub const WALKS: DefaultChannel = DefaultChannel::ReliableUnordered;

/// The bytes of packets that may wait for a server's next frame, for each player. Linux counts 768 bytes for a small packet, and drops
/// those that do not fit; its default is 208 KiB.
const WAITING_BYTES: usize = 16 << 10;

/// The bytes of a message of the game, such as the new position of a player.
pub fn encode(message: &impl Serialize) -> Vec<u8> {
    postcard::to_extend(message, Vec::new()).unwrap_or_default()
}

/// `None` if these bytes are no such message.
pub fn decode<Message: DeserializeOwned>(bytes: &[u8]) -> Option<Message> {
    postcard::from_bytes(bytes).ok()
}

fn now() -> Result<Duration, Box<dyn Error>> {
    Ok(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?)
}

/// Opens the server socket for at most this many players. Also returns the address, because port 0 takes any free port.
pub fn listen(
    address: SocketAddr,
    players: usize,
) -> Result<(RenetServer, NetcodeServerTransport, SocketAddr), Box<dyn Error>> {
    let socket = UdpSocket::bind(address).map_err(|error| format!("cannot listen at {address}: {error}"))?;
    let address = socket.local_addr()?;
    // Some systems cut it to their maximum (`net.core.rmem_max` on Linux), and some refuse.
    if let Err(error) = SockRef::from(&socket).set_recv_buffer_size(players.max(16) * WAITING_BYTES) {
        warn!("the system's default for waiting packets stays: {error}");
    }
    let settings = ServerConfig {
        current_time: now()?,
        max_clients: players,
        protocol_id: PROTOCOL,
        public_addresses: vec![address],
        authentication: ServerAuthentication::Unsecure,
    };
    let transport = NetcodeServerTransport::new(settings, socket)?;
    Ok((RenetServer::new(ConnectionConfig::default()), transport, address))
}

pub fn connect(server: SocketAddr, name: &str) -> Result<(RenetClient, NetcodeClientTransport), Box<dyn Error>> {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let authentication = ClientAuthentication::Unsecure {
        protocol_id: PROTOCOL,
        client_id: hasher.finish(),
        server_addr: server,
        user_data: None,
    };
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let transport = NetcodeClientTransport::new(now()?, authentication, socket)?;
    Ok((RenetClient::new(ConnectionConfig::default()), transport))
}

/// Messages that wait for room in the channel: renet disconnects if a channel is full.
#[derive(Component, Default)]
pub struct Unsent(VecDeque<Vec<u8>>);

impl Unsent {
    /// Returns `true` if more messages may be added.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn add(&mut self, messages: Vec<Vec<u8>>) {
        self.0.extend(messages);
    }

    /// Removes the next message if `has_room` for its length.
    pub fn next(&mut self, has_room: impl Fn(usize) -> bool) -> Option<Vec<u8>> {
        self.0.pop_front_if(|message| has_room(message.len()))
    }
}
