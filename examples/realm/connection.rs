//! The client's connection. It finds the server that has the player, and another one if that dies.

use crate::arguments::Join;
use crate::network::{self, Unsent, WALKS};
use crate::protocol::{Ask, Body, Event, Tell};
use crate::start::fail;
use bevy_renet::netcode::{NetcodeClientPlugin, NetcodeClientTransport};
use bevy_renet::{RenetClient, RenetClientPlugin, RenetReceive};
use bevy_terrane::prelude::*;
use bevy_terrane::view::ChunkSyncClient;
use std::mem;
use std::net::SocketAddr;
use std::process;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// A server that sends nothing for this long is lost.
const SILENCE: Duration = Duration::from_secs(2);
/// Servers do not send players to a server that is lost for longer than this: the others have ended it by then.
const ENDED: Duration = Duration::from_secs(20);
/// The time before a refused log-in is tried again.
const AGAIN: Duration = Duration::from_millis(300);
/// The time before a log-in without an answer is tried again.
const UNANSWERED: Duration = Duration::from_secs(5);

pub struct ConnectionPlugin;

impl Plugin for ConnectionPlugin {
    fn build(&self, app: &mut App) {
        app.add_plugins((RenetClientPlugin, NetcodeClientPlugin))
            .init_resource::<Near>()
            .add_systems(PreUpdate, (receive.run_if(resource_exists::<RenetClient>), tend).chain().after(RenetReceive));
    }
}

/// The own player, and those around it.
#[derive(Resource, Default)]
pub struct Near(pub Vec<Body>);

#[derive(Clone, Copy, PartialEq)]
enum State {
    Apart,
    Connecting,
    /// The next log-in is due then.
    LoggingIn {
        due: Instant,
    },
    Playing(Uuid),
}

#[derive(Resource)]
pub struct Connection {
    server: SocketAddr,
    state: State,
    since: Instant,
    /// When the player was last in the world.
    played: Instant,
    /// The server that was lost last.
    lost: Option<(SocketAddr, Instant)>,
    attempts: u32,
}

impl Connection {
    pub fn to(server: SocketAddr) -> Self {
        let now = Instant::now();
        Self { server, state: State::Apart, since: now, played: now, lost: None, attempts: 0 }
    }

    pub fn server(&self) -> SocketAddr {
        self.server
    }

    pub fn is_playing(&self) -> bool {
        matches!(self.state, State::Playing(_))
    }

    fn go_on(&mut self, state: State) {
        if self.is_playing() {
            self.played = Instant::now();
        }
        (self.state, self.since) = (state, Instant::now());
    }

    fn log_in_again(&mut self) {
        self.go_on(State::LoggingIn { due: Instant::now() + AGAIN });
    }
}

fn receive(
    mut client: ResMut<RenetClient>,
    mut connection: ResMut<Connection>,
    mut near: ResMut<Near>,
    mut view: Single<&mut ChunkSyncClient>,
    mut exit: MessageWriter<AppExit>,
) {
    while let Some(message) = client.receive_message(network::CHUNKS) {
        view.receive(message);
    }
    while let Some(message) = client.receive_message(WALKS) {
        match network::decode(&message) {
            Some(Tell::In { id }) if connection.state != State::Playing(id) => {
                connection.go_on(State::Playing(id));
                let seconds = connection.played.elapsed().as_secs_f64();
                Event::Playing { server: connection.server, id, seconds }.print();
            }
            Some(Tell::Near(bodies)) => near.0 = bodies,
            Some(Tell::Elsewhere { address: Some(to) }) if to != connection.server => {
                if connection.lost.is_some_and(|(lost, at)| lost == to && at.elapsed() < ENDED) {
                    // The others do not know yet that it is dead.
                    connection.log_in_again();
                } else {
                    connection.server = to;
                    connection.go_on(State::Apart);
                    Event::Sent { to }.print();
                }
            }
            Some(Tell::Elsewhere { .. } | Tell::Later { .. }) => connection.log_in_again(),
            Some(Tell::Replaced) => {
                Event::Replaced.print();
                exit.write(AppExit::Success);
            }
            _ => {}
        }
    }
}

/// Connects, logs in, and tries the next server if this one says nothing.
fn tend(
    mut connection: ResMut<Connection>,
    client: Option<ResMut<RenetClient>>,
    mut transport: Option<ResMut<NetcodeClientTransport>>,
    view: Single<(&mut ChunkSyncClient, &mut Unsent)>,
    join: Res<Join>,
    mut commands: Commands,
    mut exit: MessageWriter<AppExit>,
) {
    let silence = match &transport {
        Some(transport) if connection.state != State::Connecting => transport.time_since_last_received_packet(),
        _ => connection.since.elapsed(),
    };
    let is_lost = client.as_ref().is_some_and(|client| client.is_disconnected()) || silence > SILENCE;
    if connection.state != State::Apart && is_lost {
        Event::Lost { server: connection.server }.print();
        connection.lost = Some((connection.server, Instant::now()));
        let at = join.servers.iter().position(|server| *server == connection.server).map_or(0, |at| at + 1);
        connection.server = join.servers[at % join.servers.len()];
        connection.go_on(State::Apart);
    }
    match (connection.state, client) {
        (State::Apart, Some(_)) => {
            if let Some(transport) = &mut transport {
                transport.disconnect();
            }
            let (mut view, mut unsent) = view.into_inner();
            // The ground stays in view. The next server sends only what has changed.
            view.disconnected();
            drop(mem::take(&mut *unsent));
            commands.remove_resource::<RenetClient>();
            commands.remove_resource::<NetcodeClientTransport>();
        }
        (State::Apart, None) => {
            connection.attempts += 1;
            // A server may still hold an earlier connection of this player.
            let number = format!("{} {} {}", join.name, process::id(), connection.attempts);
            match network::connect(connection.server, &number) {
                Ok((client, transport)) => {
                    commands.insert_resource(client);
                    commands.insert_resource(transport);
                    connection.go_on(State::Connecting);
                }
                Err(error) => fail(error, &mut exit),
            }
        }
        (State::Connecting, Some(client)) if client.is_connected() => {
            connection.go_on(State::LoggingIn { due: Instant::now() });
        }
        (State::LoggingIn { due }, Some(mut client)) if due <= Instant::now() => {
            connection.state = State::LoggingIn { due: Instant::now() + UNANSWERED };
            client.send_message(WALKS, network::encode(&Ask::LogIn { name: join.name.clone(), town: join.town }));
        }
        _ => {}
    }
}
