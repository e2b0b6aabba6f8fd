//! [`ClientPlugin`]: the client's side of a connection.

mod bot;
mod connect;

pub use bot::{Bot, BotError};

use crate::game_messages::ServerMessages;
use crate::identity::Trust;
use crate::socket;
use crate::wire::{Hello, PROTOCOL, Taken, ToClient, ToServer};
use bevy::prelude::*;
use bevy_terrane::chunk_sync;
use bevy_terrane::prelude::*;
use bevy_terrane::view::{ChunkSyncClient, MirrorIndex};
use connect::{FromServer, Link, Order};
use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};
use std::iter;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{channel, unbounded_channel};
use uuid::Uuid;

/// The number of the first dimension of a server in the app of a client, whose own dimensions begin with 0.
static NEXT_DIMENSION: AtomicU64 = AtomicU64::new(1 << 32);
/// The dimensions of a server that a client knows, at most.
const MOST_DIMENSIONS: usize = 1 << 12;
/// The orders of the frames that may wait for a connection.
const MOST_ORDERS: usize = 256;

/// Lets this app connect to servers: spawn a [`ServerConnection`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientPlugin;

/// A connection to a server, on an entity of a client's app. It lasts, over lost connections and over redirections from server to server,
/// until the entity is despawned or the server refuses the client.
///
/// Once the player is in the world, the entity is its [`OwnBody`] and has its [`Position`]. A [`ChunkSyncClient`] on it shows the ground and
/// the entities around. With `FirstPerson` of `terrane_dev` on the entity, keys and mouse move the player, and a camera sees with its eyes.
///
/// ```
/// use bevy::prelude::*;
/// use terrane_net::{ConnectionNews, ServerConnection, Trust};
///
/// fn join(mut commands: Commands) {
///     commands.spawn(ServerConnection::new("example.org:5700", "Ada", Trust::FirstUse("known_servers".into())));
/// }
///
/// fn tell(mut news: MessageReader<ConnectionNews>) {
///     for news in news.read() {
///         info!("{news}");
///     }
/// }
/// # bevy::ecs::system::assert_is_system(join);
/// # bevy::ecs::system::assert_is_system(tell);
/// ```
#[derive(Component, Debug)]
pub struct ServerConnection {
    addresses: Vec<String>,
    hello: Hello,
    trust: Trust,
    cache: Option<(PathBuf, u64)>,
    radius: u32,
    link: Option<Link>,
    player: Option<Uuid>,
    /// The numbers of the server's dimensions here.
    dimensions: HashMap<String, DimensionId>,
    stay: u32,
}

/// News of a connection. Displayed, it is a sentence for the player.
#[derive(Message, Clone, Debug, PartialEq)]
pub enum ConnectionNews {
    /// The player is in the world, in this dimension of this app. It comes again in another dimension, and on another server.
    Plays {
        /// The entity of the connection.
        connection: Entity,
        /// The stable id of the player's entity.
        player: Uuid,
        /// The dimension.
        dimension: DimensionId,
        /// The server's address.
        server: String,
    },
    /// The player is on another server of the world, and the client goes there.
    Moves {
        /// The entity of the connection.
        connection: Entity,
        /// The address of the other server.
        to: String,
    },
    /// The server refuses the client, for this reason. The connection is over.
    Refused {
        /// The entity of the connection.
        connection: Entity,
        /// The reason, for the player to read.
        reason: String,
    },
    /// The connection is lost, or a server does not answer. The client goes on trying.
    Lost {
        /// The entity of the connection.
        connection: Entity,
        /// The reason.
        reason: String,
    },
}

impl Display for ConnectionNews {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plays { server, .. } => write!(f, "playing on {server}"),
            Self::Moves { to, .. } => write!(f, "going to {to}"),
            Self::Refused { reason, .. } => f.write_str(reason),
            Self::Lost { reason, .. } => write!(f, "{reason}; trying again"),
        }
    }
}

impl ServerConnection {
    /// A connection to the server at this address, `host:port`, for the player of this name.
    pub fn new(address: impl Into<String>, name: impl Into<String>, trust: Trust) -> Self {
        Self {
            addresses: vec![address.into()],
            hello: hello_of(name.into(), Vec::new()),
            trust,
            cache: None,
            radius: 12,
            link: None,
            player: None,
            dimensions: HashMap::new(),
            stay: 0,
        }
    }

    /// Adds the address of another server of the same world, which the client tries if the others do not answer.
    pub fn or(mut self, address: impl Into<String>) -> Self {
        self.addresses.push(address.into());
        self
    }

    /// Sets the proof of who the client is, at most 32 KiB: the [`LogInAttempt::secret`](crate::LogInAttempt::secret) on the server.
    pub fn with_secret(mut self, secret: impl Into<Vec<u8>>) -> Self {
        self.hello.secret = secret.into();
        self
    }

    /// Keeps chunks in a folder of the world for the next visit, of at most this many bytes for each dimension.
    pub fn with_caches(mut self, folder: impl Into<PathBuf>, most_bytes: u64) -> Self {
        self.cache = Some((folder.into(), most_bytes));
        self
    }

    /// Sets the radius of the ground that is shown, in columns.
    pub fn with_radius(mut self, radius: u32) -> Self {
        self.radius = radius;
        self
    }

    /// The stable id of the client's player, once it has been in the world.
    pub fn player(&self) -> Option<Uuid> {
        self.player
    }

    pub(crate) fn tell(&self, message: ToServer) {
        // Messages that are not sent before the connection is lost are lost with it.
        if self.link.as_ref().is_some_and(|link| link.orders.try_send(Order::Tell(message)).is_err()) {
            warn_once!("the server takes in nothing: messages for it are lost");
        }
    }

    /// The number of a dimension of the server in this app.
    fn dimension(&mut self, name: &str) -> DimensionId {
        if self.dimensions.len() >= MOST_DIMENSIONS {
            self.dimensions.clear();
        }
        let next = || DimensionId(NEXT_DIMENSION.fetch_add(1, Ordering::Relaxed));
        *self.dimensions.entry(name.to_owned()).or_insert_with(next)
    }
}

fn hello_of(name: String, secret: Vec<u8>) -> Hello {
    Hello { protocol: PROTOCOL, sync: chunk_sync::PROTOCOL, name, secret, session: Uuid::new_v4() }
}

/// The threads of all connections of this process.
fn threads() -> Option<&'static Runtime> {
    static THREADS: OnceLock<Option<Runtime>> = OnceLock::new();
    let start = || socket::runtime(1).map_err(|error| error!("no server can be reached: {error}")).ok();
    THREADS.get_or_init(start).as_ref()
}

impl Plugin for ClientPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<ServerMessages>()
            .add_message::<ConnectionNews>()
            .replicate_region_component::<Player>()
            .add_systems(PreUpdate, (start, hear).chain())
            .add_systems(Update, follow)
            .add_systems(PostUpdate, send);
    }
}

fn start(mut connections: Query<&mut ServerConnection, Added<ServerConnection>>) {
    for mut connection in &mut connections {
        let Some(threads) = threads() else { continue };
        let ServerConnection { addresses, hello, trust, .. } = &*connection;
        let (orders, to_do) = channel(MOST_ORDERS);
        let (tell, heard) = unbounded_channel();
        threads.spawn(connect::stay_connected(addresses.clone(), hello.clone(), trust.clone(), to_do, tell));
        connection.link = Some(Link { orders, heard });
    }
}

/// Takes in what servers have sent.
fn hear(world: &mut World, connections: &mut QueryState<(Entity, &mut ServerConnection, Option<&ChunkSyncClient>)>) {
    let mut all: Vec<(Entity, Vec<(FromServer, Taken)>)> = Vec::new();
    for (entity, mut connection, view) in connections.iter_mut(world) {
        let Some(link) = &mut connection.bypass_change_detection().link else { continue };
        // While the view has enough to do, the server has to wait.
        if view.is_none_or(|view| !view.is_full()) {
            all.push((entity, iter::from_fn(|| link.heard.try_recv().ok()).collect()));
        }
    }
    for (entity, heard) in all {
        heard.into_iter().for_each(|(heard, _)| take(world, entity, heard));
    }
}

fn take(world: &mut World, entity: Entity, heard: FromServer) {
    let Some(mut connection) = world.get_mut::<ServerConnection>(entity) else { return };
    let connection = connection.bypass_change_detection();
    let news = match heard {
        FromServer::Sync(stay, message) => {
            if stay == connection.stay as u8
                && let Some(mut view) = world.get_mut::<ChunkSyncClient>(entity)
            {
                view.receive(message);
            }
            return;
        }
        FromServer::Control(ToClient::Plays { player, place, dimension: name, stay }, server) => {
            let dimension = connection.dimension(&name);
            (connection.player, connection.stay) = (Some(player), stay);
            let place = Position::new(dimension, place);
            let mut view = ChunkSyncClient::new(dimension).with_radius(connection.radius);
            if let Some((folder, most_bytes)) = &connection.cache {
                view = view.with_cache(folder.join(file_name(&name)), *most_bytes);
            }
            let radius = connection.radius;
            let mut entity_mut = world.entity_mut(entity);
            // A body that is near goes on from where the client shows it. Otherwise the first ground that the client asks for would be
            // that around the old place.
            let body = entity_mut.get::<OwnBody>().filter(|body| body.id() == player).and_then(OwnBody::state);
            if body.is_none_or(|body| !is_near(&body.position, &place, radius)) {
                entity_mut.insert((OwnBody::new(player), place));
            }
            if entity_mut.get::<ChunkSyncClient>().is_none_or(|view| view.dimension() != dimension) {
                entity_mut.insert(view).remove::<TimeOfDay>();
            }
            ConnectionNews::Plays { connection: entity, player, dimension, server }
        }
        FromServer::Control(ToClient::Time { days, seconds_per_day }, _) => {
            world.entity_mut(entity).insert(TimeOfDay { days, seconds_per_day });
            return;
        }
        FromServer::Control(ToClient::Game(path, bytes), _) => return ServerMessages::deliver(world, &path, &bytes),
        FromServer::Control(ToClient::Refused(reason), _) => {
            disconnect(world, entity);
            ConnectionNews::Refused { connection: entity, reason }
        }
        // The task never hands it on.
        FromServer::Control(ToClient::Elsewhere(_), _) => return,
        FromServer::Moves(to) => {
            disconnect(world, entity);
            let Some(to) = to else { return };
            ConnectionNews::Moves { connection: entity, to }
        }
        FromServer::Lost(reason) => {
            disconnect(world, entity);
            ConnectionNews::Lost { connection: entity, reason }
        }
    };
    world.write_message(news);
}

/// Returns `true` if one place is in the ground that is shown around the other.
fn is_near(one: &Position, other: &Position, radius: u32) -> bool {
    let (here, there) = (one.block.chunk().column(), other.block.chunk().column());
    one.dimension == other.dimension && here.x.abs_diff(there.x).max(here.z.abs_diff(there.z)) <= radius.into()
}

/// The ground and the entities stay in view until the next server has told what has changed.
fn disconnect(world: &mut World, entity: Entity) {
    if let Some(mut view) = world.get_mut::<ChunkSyncClient>(entity) {
        view.disconnected();
    }
}

/// A dimension's name as a file's: other characters are written as their numbers.
fn file_name(dimension: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | ' ');
    let written = |letter| if plain(letter) { String::from(letter) } else { format!("%{:x}", u32::from(letter)) };
    // File systems have a limit. A cache of another dimension is emptied, so two with such names do no harm.
    let name: String = dimension.chars().take(32).map(written).collect();
    format!("{name}.chunks")
}

/// While a player's body is not known, the view is where the player's mirror is.
fn follow(
    mut connections: Query<(&OwnBody, &ChunkSyncClient, &mut Position), With<ServerConnection>>,
    mirrors: Query<&Mirror>,
    index: Res<MirrorIndex>,
) {
    for (body, view, mut place) in &mut connections {
        if body.state().is_none()
            && let Some(mirror) = index.entity(body.id()).and_then(|mirror| mirrors.get(mirror).ok())
            // It may still be the mirror of the last dimension.
            && mirror.current.0.dimension == view.dimension()
        {
            place.set_if_neq(mirror.current.0);
        }
    }
}

/// Sends what the views have for the servers.
fn send(mut connections: Query<(&ServerConnection, &mut ChunkSyncClient)>) {
    for (connection, mut view) in &mut connections {
        // Messages without room wait in the view.
        let room = connection.link.as_ref().and_then(|link| link.orders.try_reserve_many(2).ok());
        let Some(mut room) = room else { continue };
        let messages = view.take_messages();
        if !messages.is_empty()
            && let Some(permit) = room.next()
        {
            permit.send(Order::Sync(connection.stay, messages));
        }
        if let Some(packet) = view.take_packet()
            && let Some(permit) = room.next()
        {
            permit.send(Order::Packet(connection.stay, packet));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_dimensions_are_names_of_files() {
        assert_eq!(file_name("overworld 2"), "overworld 2.chunks");
        assert_eq!(file_name("../é"), "%2e%2e%2f%e9.chunks");
        assert!(file_name(&"\u{10ffff}".repeat(300)).len() < 255);
        assert_eq!(file_name(""), ".chunks");
    }
}
