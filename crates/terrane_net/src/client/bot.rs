//! [`Bot`]: a client without an app.

use super::connect::{self, FromServer, Link, Order};
use super::{MOST_ORDERS, hello_of, threads};
use crate::game_messages::NetMessage;
use crate::identity::Trust;
use crate::wire::{ToClient, ToServer, encode};
use bevy_terrane::chunk_sync::{ChunkChanges, SyncClient};
use bevy_terrane::entity_sync::EntityClient;
use std::fmt::Display;
use thiserror::Error;
use tokio::sync::mpsc::{channel, unbounded_channel};
use uuid::Uuid;

/// A client without an app, for load tests: thousands of them fit into a process. It is sent what a
/// [`ServerConnection`](crate::ServerConnection) is sent; the program decides what it does.
#[derive(Debug)]
pub struct Bot {
    /// The chunks that it knows, and its edits.
    pub chunks: SyncClient,
    /// The entities around it.
    pub entities: EntityClient,
    /// `false` for a bot that leaves changed blocks out, which is most of a bot's work. It is sent them all the same. Where it has missed
    /// changes, its edits are not [current](bevy_terrane::view::ClientEdit::is_current).
    pub takes_changes: bool,
    /// The error with which the connection has ended.
    link: Result<Link, BotError>,
    player: Option<Uuid>,
    stay: u32,
}

/// The end of a [`Bot`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BotError {
    /// The server refuses it.
    #[error("the server refuses the bot: {0}")]
    Refused(String),
    /// The connection is lost, or does not come about.
    #[error("{0}")]
    Lost(String),
    /// The server has sent an invalid message.
    #[error("an invalid message of the server: {0}")]
    Invalid(String),
    /// There are no threads for sockets.
    #[error("there are no threads for sockets")]
    NoThreads,
}

impl Bot {
    /// Begins to connect to the server at this address.
    ///
    /// # Errors
    /// Fails if there are no threads for sockets.
    pub fn connect(
        address: impl Into<String>,
        name: impl Into<String>,
        secret: impl Into<Vec<u8>>,
        trust: Trust,
    ) -> Result<Self, BotError> {
        let (orders, to_do) = channel(MOST_ORDERS);
        let (tell, heard) = unbounded_channel();
        let hello = hello_of(name.into(), secret.into());
        let task = connect::stay_connected(vec![address.into()], hello, trust, to_do, tell);
        threads().ok_or(BotError::NoThreads)?.spawn(task);
        let (chunks, entities) = (SyncClient::new(None), EntityClient::default());
        Ok(Self { chunks, entities, takes_changes: true, link: Ok(Link { orders, heard }), player: None, stay: 0 })
    }

    /// The stable id of its player; `None` until the player is in the world.
    pub fn player(&self) -> Option<Uuid> {
        self.player
    }

    /// Takes in what the server has sent, and sends what the bot has for it. Messages of the game are passed over.
    ///
    /// # Errors
    /// Fails if the connection has ended, each time.
    pub fn update(&mut self) -> Result<(), BotError> {
        let result = self.exchange();
        if let Err(error) = &result {
            self.link = Err(error.clone());
        }
        result
    }

    fn exchange(&mut self) -> Result<(), BotError> {
        let link = self.link.as_mut().map_err(|error| error.clone())?;
        while let Ok((heard, _room)) = link.heard.try_recv() {
            match heard {
                FromServer::Control(ToClient::Plays { player, stay, .. }, _) => {
                    (self.player, self.stay) = (Some(player), stay);
                }
                FromServer::Control(ToClient::Refused(reason), _) => return Err(BotError::Refused(reason)),
                FromServer::Sync(stay, message)
                    if stay == self.stay as u8 && (self.takes_changes || ChunkChanges::decode(&message).is_none()) =>
                {
                    let is_known = self.entities.receive(&message).map_err(invalid)?;
                    if !is_known {
                        self.chunks.receive(&message).map_err(invalid)?;
                    }
                }
                FromServer::Control(..) | FromServer::Sync(..) => {}
                FromServer::Moves(_) => {
                    self.chunks.disconnected();
                    self.entities.disconnected();
                }
                FromServer::Lost(reason) => return Err(BotError::Lost(reason)),
            }
        }
        if let Ok(permit) = link.orders.try_reserve() {
            let messages: Vec<Vec<u8>> = std::iter::from_fn(|| self.chunks.next_message()).collect();
            if !messages.is_empty() {
                permit.send(Order::Sync(self.stay, messages));
            }
        }
        Ok(())
    }

    /// Sends a message of the game.
    pub fn tell<M: NetMessage>(&self, message: &M) {
        let sent = ToServer::Game(M::type_path().to_owned(), encode(message));
        // What finds no room is lost.
        let _ = self.link.as_ref().map(|link| link.orders.try_send(Order::Tell(sent)));
    }
}

fn invalid(error: impl Display) -> BotError {
    BotError::Invalid(error.to_string())
}
