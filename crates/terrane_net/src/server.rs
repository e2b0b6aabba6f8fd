//! [`ServerPlugin`]: clients connect, log in, and play.

mod accept;
pub(crate) mod connected;
mod play;

use crate::game_messages::ClientMessages;
use crate::identity::{Identity, IdentityError};
use crate::socket;
use crate::wire::{Hello, Taken};
use accept::{Accept, AtTheDoor};
use bevy::prelude::*;
use bevy_terrane::chunk_sync::SyncLimits;
use bevy_terrane::prelude::*;
use connected::ForClient;
use crossbeam_channel::Receiver;
use quinn::Connection;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::Sender;

/// Lets clients play in the world of this app.
///
/// The app says which components clients see, with `replicate_region_component`; the names of players are among them. A client that logs
/// in gets a player at its stored place, or at the [first place](Self::first_place). The player has a [`Viewer`] in its region, and the
/// client acts for it.
///
/// ```no_run
/// use bevy::prelude::*;
/// use bevy_terrane::prelude::*;
/// use terrane_net::ServerPlugin;
///
/// fn main() -> AppExit {
///     App::new()
///         .add_plugins((MinimalPlugins, TerranePlugin::at("world"), BodyPlugin))
///         .add_plugins(ServerPlugin::new(([0, 0, 0, 0], 5700), "overworld", BlockPos::new(8, 80, 8)))
///         .add_systems(Startup, |mut commands: Commands| {
///             commands.spawn(Dimension::new("overworld", Hills::seeded(12)));
///         })
///         .run()
/// }
/// ```
#[derive(Clone, Debug)]
pub struct ServerPlugin {
    /// The address to listen at. With port 0, [`NetServer::address`] has the port.
    pub listen: SocketAddr,
    /// The certificate; by default, one that is lost with the process.
    pub identity: Option<Arc<Identity>>,
    /// Where new players begin: the name of the dimension, and the block.
    pub first_place: (String, BlockPos),
    /// The radius that is kept loaded around a player, in columns.
    pub radius: u32,
    /// The limits of what a client is sent and may do.
    pub limits: SyncLimits,
    /// The most clients that play at a time.
    pub players: usize,
    /// The connection that goes on if a name logs in a second time.
    pub second_log_in: SecondLogIn,
    /// The connections that one network address may begin per minute, and all together per second. Others are refused before they cost
    /// anything.
    pub log_ins: (u32, u32),
    /// The threads of sockets and encryption.
    pub threads: usize,
}

impl ServerPlugin {
    /// A server at this address. New players begin in this dimension, at this block.
    pub fn new(listen: impl Into<SocketAddr>, dimension: impl Into<String>, first_place: BlockPos) -> Self {
        Self {
            listen: listen.into(),
            identity: None,
            first_place: (dimension.into(), first_place),
            radius: 12,
            limits: SyncLimits { edits_per_second: 20, ..SyncLimits::default() },
            players: 1_000,
            second_log_in: SecondLogIn::default(),
            log_ins: (30, 100),
            threads: 1,
        }
    }

    /// Sets the certificate that clients know the server by.
    pub fn with_identity(mut self, identity: Identity) -> Self {
        self.identity = Some(Arc::new(identity));
        self
    }
}

/// The connection that goes on if a name that plays already logs in again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SecondLogIn {
    /// The new connection. The old one is ended.
    #[default]
    Replaces,
    /// The old connection. The new one is refused, unless it is the same client's, which has lost the old one.
    IsRefused,
}

/// A client asks to play. Observers check who it is; without an observer, anybody plays under any name.
///
/// ```
/// use bevy::prelude::*;
/// use terrane_net::LogInAttempt;
///
/// /// Add it with `app.add_observer(check)`.
/// fn check(mut attempt: On<LogInAttempt>) {
///     if attempt.secret != b"open sesame" {
///         attempt.refuse("that is not the word");
///     }
/// }
/// # App::new().add_observer(check);
/// ```
#[derive(Event, Clone, Debug)]
pub struct LogInAttempt {
    /// The name under which the client wants to play. An observer may replace it by the one that the secret proves.
    pub name: String,
    /// The client's proof of who it is, in a form of the game's, at most 32 KiB.
    pub secret: Vec<u8>,
    /// The client's network address.
    pub address: SocketAddr,
    /// Where the player begins if its name is new; `None` refuses new names.
    pub first_place: Option<(DimensionId, BlockPos)>,
    refusal: Option<String>,
}

impl LogInAttempt {
    /// Refuses the client, for a reason that its player reads.
    pub fn refuse(&mut self, reason: impl Into<String>) {
        self.refusal.get_or_insert(reason.into());
    }
}

/// From the tasks of connections.
#[derive(Debug)]
enum FromClient {
    Hello(u64, Hello, Connection, Sender<ForClient>),
    Game(u64, String, Vec<u8>),
    Gone(u64),
}

/// The server's sockets.
#[derive(Resource)]
pub struct NetServer {
    address: SocketAddr,
    identity: Arc<Identity>,
    door: Arc<AtTheDoor>,
    heard: Receiver<(FromClient, Taken)>,
    endpoint: quinn::Endpoint,
    runtime: Option<Runtime>,
}

impl NetServer {
    /// The address at which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The fingerprint of the server's certificate, for [`Trust::Pinned`](crate::Trust::Pinned).
    pub fn fingerprint(&self) -> crate::Fingerprint {
        self.identity.fingerprint()
    }

    /// The connections that were refused before they cost anything.
    pub fn turned_away(&self) -> u64 {
        self.door.turned_away()
    }
}

impl Drop for NetServer {
    fn drop(&mut self) {
        self.endpoint.close(0_u32.into(), b"the server ends");
        if let Some(runtime) = self.runtime.take() {
            // The tasks send what they have, and end with the endpoint.
            runtime.shutdown_timeout(Duration::from_millis(500));
        }
    }
}

/// The error of a server that cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The certificate cannot be made.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The address cannot be used.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error.
        error: std::io::Error,
    },
}

/// The server could not listen. The app goes on without clients.
#[derive(Message, Debug)]
pub struct ServerFailed(pub ServerError);

impl Plugin for ServerPlugin {
    fn build(&self, app: &mut App) {
        app.add_message::<ServerFailed>()
            .init_resource::<ClientMessages>()
            .replicate_region_component::<Player>()
            .mirror_region_component::<Viewer>();
        match self.start() {
            Ok(server) => {
                info!("listening at {}, with the certificate {}", server.address(), server.fingerprint());
                app.insert_resource(server);
            }
            Err(error) => {
                error!("no client can connect: {error}");
                app.world_mut().write_message(ServerFailed(error));
            }
        }
        app.insert_resource(play::Settings(self.clone()));
        play::build(app);
    }
}

impl ServerPlugin {
    fn start(&self) -> Result<NetServer, ServerError> {
        let identity = match &self.identity {
            Some(identity) => identity.clone(),
            None => Arc::new(Identity::generate()?),
        };
        let failed = |error| ServerError::Listen { address: self.listen, error };
        let runtime = socket::runtime(self.threads).map_err(failed)?;
        let endpoint = {
            let _entered = runtime.enter();
            socket::listen(self.listen, &identity).map_err(failed)?
        };
        let address = endpoint.local_addr().map_err(failed)?;
        let (tell, heard) = crossbeam_channel::unbounded();
        let door = Arc::new(AtTheDoor::new(self.log_ins, self.players));
        runtime.spawn(Accept { endpoint: endpoint.clone(), door: door.clone(), tell }.run());
        Ok(NetServer { address, identity, door, heard, endpoint, runtime: Some(runtime) })
    }
}

/// The part of an address by which log-ins are counted: one network of version 6 has many addresses.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            let mut segments = address.segments();
            segments[4..].fill(0);
            IpAddr::V6(segments.into())
        }
    }
}
