//! Messages of the game's own between clients and the server, such as chat.

use crate::client::ServerConnection;
use crate::server::connected::ConnectedClient;
use crate::wire::{ToClient, ToServer, encode};
use bevy::platform::collections::HashMap;
use bevy::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A message of a game, such as a line of a chat. All types with these traits are messages.
pub trait NetMessage: Serialize + DeserializeOwned + TypePath + Send + Sync + 'static {}
impl<M: Serialize + DeserializeOwned + TypePath + Send + Sync + 'static> NetMessage for M {}

/// Registers messages of the game.
pub trait NetAppExt {
    /// Registers a message. Client and server both do so. A client writes [`ToTheServer<M>`] and reads [`FromTheServer<M>`]; the server reads
    /// [`FromAClient<M>`] and writes [`ToClients<M>`]. Messages arrive in order; one is at most 32 KiB long.
    fn register_net_message<M: NetMessage>(&mut self) -> &mut Self;
}

/// A message for the server.
#[derive(Message, Clone, Debug)]
pub struct ToTheServer<M: NetMessage>(pub M);

/// A message of the server.
#[derive(Message, Clone, Debug)]
pub struct FromTheServer<M: NetMessage>(pub M);

/// A message of a client.
#[derive(Message, Clone, Debug)]
pub struct FromAClient<M: NetMessage> {
    /// The entity with the [`ConnectedClient`].
    pub client: Entity,
    /// The message.
    pub message: M,
}

/// A message for one client, or for all that play.
#[derive(Message, Clone, Debug)]
pub struct ToClients<M: NetMessage> {
    /// The entity with the [`ConnectedClient`]; `None` for all.
    pub client: Option<Entity>,
    /// The message.
    pub message: M,
}

type Deliver = fn(&mut World, Entity, &[u8]) -> bool;

/// The messages that a server takes from clients.
#[derive(Resource, Default)]
pub(crate) struct ClientMessages(HashMap<&'static str, Deliver>);

/// The messages that a client takes from the server.
#[derive(Resource, Default)]
pub(crate) struct ServerMessages(HashMap<&'static str, Deliver>);

impl ClientMessages {
    /// Hands a message to the game. A client that sends something else is gone.
    pub fn deliver(world: &mut World, client: Entity, path: &str, bytes: &[u8]) {
        let deliver = world.resource::<Self>().0.get(path).copied();
        if !deliver.is_some_and(|deliver| deliver(world, client, bytes)) {
            // The text is the client's.
            warn!(
                "a client has sent an invalid message and is disconnected: {:?}",
                path.chars().take(80).collect::<String>()
            );
            world.despawn(client);
        }
    }
}

impl ServerMessages {
    pub fn deliver(world: &mut World, path: &str, bytes: &[u8]) {
        let deliver = world.get_resource::<Self>().and_then(|known| known.0.get(path).copied());
        if !deliver.is_some_and(|deliver| deliver(world, Entity::PLACEHOLDER, bytes)) {
            warn_once!("the server has sent an invalid message: {:?}", path.chars().take(80).collect::<String>());
        }
    }
}

impl NetAppExt for App {
    fn register_net_message<M: NetMessage>(&mut self) -> &mut Self {
        self.add_message::<ToTheServer<M>>()
            .add_message::<FromTheServer<M>>()
            .add_message::<FromAClient<M>>()
            .add_message::<ToClients<M>>()
            .add_systems(PostUpdate, (send_to_clients::<M>, send_to_server::<M>));
        let world = self.world_mut();
        world.get_resource_or_init::<ClientMessages>().0.insert(M::type_path(), |world, client, bytes| {
            let message = postcard::from_bytes(bytes).map(|message| FromAClient::<M> { client, message });
            message.map(|message| world.write_message(message)).is_ok()
        });
        world.get_resource_or_init::<ServerMessages>().0.insert(M::type_path(), |world, _, bytes| {
            postcard::from_bytes(bytes).map(|message| world.write_message(FromTheServer::<M>(message))).is_ok()
        });
        self
    }
}

fn send_to_clients<M: NetMessage>(mut messages: MessageReader<ToClients<M>>, clients: Query<&ConnectedClient>) {
    for ToClients { client, message } in messages.read() {
        let sent = ToClient::Game(M::type_path().to_owned(), encode(message));
        match client {
            Some(client) => clients.get(*client).into_iter().for_each(|client| client.tell(sent.clone())),
            None => {
                clients.iter().filter(|client| client.player().is_some()).for_each(|client| client.tell(sent.clone()))
            }
        }
    }
}

fn send_to_server<M: NetMessage>(mut messages: MessageReader<ToTheServer<M>>, connections: Query<&ServerConnection>) {
    for ToTheServer(message) in messages.read() {
        let sent = ToServer::Game(M::type_path().to_owned(), encode(message));
        connections.iter().for_each(|connection| connection.tell(sent.clone()));
    }
}
