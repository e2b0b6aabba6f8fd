//! The systems of a server: log-ins, and a peer for each client whose player is in the world.

use super::connected::{ConnectedClient, ForClient};
use super::{FromClient, LogInAttempt, NetServer, SecondLogIn, ServerPlugin};
use crate::game_messages::ClientMessages;
use crate::wire::{Hello, ToClient};
use bevy::prelude::*;
use bevy_terrane::prelude::*;
use bevy_terrane::view::{
    ChunkSyncPeer, DimensionOpen, LogIn, LogInError, LogInRefused, LogOut, MirrorIndex, PlayerLoggedIn,
    PlayerLoggedOut, PlayerMoved,
};
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::mpsc::Sender;

/// The time after which a log-in is tried again, such as while the player is still on its way out.
const AGAIN: Duration = Duration::from_millis(100);
/// The time after which it is refused.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often clients are told the time of day.
const CLOCK: Duration = Duration::from_secs(5);

#[derive(Resource)]
pub(super) struct Settings(pub ServerPlugin);

/// The entities of clients by the numbers of their connections.
#[derive(Resource, Default)]
struct Clients(HashMap<u64, Entity>);

pub(super) fn build(app: &mut App) {
    app.init_resource::<Clients>()
        .add_observer(leave)
        .add_systems(PreUpdate, (hear, log_in).chain().run_if(resource_exists::<NetServer>))
        .add_systems(Update, (answer_log_ins, send_elsewhere, meet, tell_time).chain());
}

/// Takes in what the tasks of connections tell.
fn hear(world: &mut World) {
    let heard: Vec<_> = world.resource::<NetServer>().heard.try_iter().collect();
    for (heard, _) in heard {
        match heard {
            FromClient::Hello(key, hello, connection, control) => greet(world, key, hello, connection, control),
            FromClient::Game(key, path, bytes) => {
                if let Some(client) = world.resource::<Clients>().0.get(&key).copied() {
                    ClientMessages::deliver(world, client, &path, &bytes);
                }
            }
            FromClient::Gone(key) => {
                if let Some(client) = world.resource_mut::<Clients>().0.remove(&key) {
                    world.despawn(client);
                }
            }
        }
    }
}

/// Asks the game about a client.
fn greet(world: &mut World, key: u64, hello: Hello, connection: quinn::Connection, control: Sender<ForClient>) {
    let Settings(ServerPlugin { first_place: (dimension, block), players, .. }) = world.resource::<Settings>();
    let (block, players) = (*block, *players);
    let first_place = Some((world.resource::<Dimensions>().id(dimension), block));
    let (Hello { name, secret, session, .. }, address) = (hello, connection.remote_address());
    let mut attempt = LogInAttempt { name, secret, address, first_place, refusal: None };
    world.trigger_ref(&mut attempt);
    // A client that comes back before its lost connection is noticed takes no other place.
    let mut others = world.query::<&ConnectedClient>();
    if others.iter(world).filter(|other| other.name() != attempt.name).count() >= players {
        attempt.refuse("the server is full");
    }
    let LogInAttempt { name, first_place, refusal, .. } = attempt;
    let asked = world.resource::<Time<Real>>().elapsed();
    let log_in = LogIn { name, first_place };
    let mut client =
        ConnectedClient { log_in, session, asked, due: Some(asked), player: None, stay: 0, control, connection };
    if let Some(reason) = refusal {
        return client.tell(ToClient::Refused(reason));
    }
    let mut others = world.query::<(Entity, &ConnectedClient)>();
    if let Some((other, old)) = others.iter(world).find(|(_, other)| other.name() == client.name()) {
        let is_refused = world.resource::<Settings>().0.second_log_in == SecondLogIn::IsRefused;
        // A client may come back before its lost connection is noticed.
        if is_refused && old.session != client.session {
            return client.tell(ToClient::Refused(format!("{} plays already", client.name())));
        }
        old.tell(ToClient::Refused("you have logged in elsewhere".to_owned()));
        world.despawn(other);
        // The log-out of the other one comes first.
        client.due = Some(asked + AGAIN);
    }
    let entity = world.spawn(client).id();
    world.resource_mut::<Clients>().0.insert(key, entity);
}

/// The player of a client that is gone leaves the world.
fn leave(
    gone: On<Remove, ConnectedClient>,
    clients: Query<&ConnectedClient>,
    mut known: ResMut<Clients>,
    mut log_outs: MessageWriter<LogOut>,
) {
    let Ok(client) = clients.get(gone.entity) else { return };
    known.0.retain(|_, entity| *entity != gone.entity);
    log_outs.write(LogOut { name: client.name().to_owned() });
}

fn log_in(mut clients: Query<&mut ConnectedClient>, time: Res<Time<Real>>, mut log_ins: MessageWriter<LogIn>) {
    for mut client in &mut clients {
        if client.due.is_some_and(|due| due <= time.elapsed()) {
            client.due = None;
            log_ins.write(client.log_in.clone());
        }
    }
}

fn of_name<'a>(
    clients: &'a mut Query<(Entity, &mut ConnectedClient)>,
    name: &str,
) -> Option<(Entity, Mut<'a, ConnectedClient>)> {
    clients.iter_mut().find(|(_, client)| client.name() == name)
}

/// A player that is in the world gets a viewer. The client of one that is on another server goes there.
fn answer_log_ins(
    mut clients: Query<(Entity, &mut ConnectedClient)>,
    mut logged_in: MessageReader<PlayerLoggedIn>,
    mut refused: MessageReader<LogInRefused>,
    settings: Res<Settings>,
    time: Res<Time<Real>>,
    mut commands: Commands,
) {
    for PlayerLoggedIn { name, id, .. } in logged_in.read() {
        // While the client's log-in waits, this is the answer to an earlier client.
        let client = of_name(&mut clients, name).filter(|(_, client)| client.due.is_none());
        let Some((_, mut client)) = client else { continue };
        client.player = Some(*id);
        let viewer = Viewer::new().with_radius(settings.0.radius);
        // A player that is gone again needs none.
        commands.run_on_region_entity(*id, 0, move |mut player: EntityWorldMut| _ = player.insert(viewer), |_, _| {});
    }
    for LogInRefused { name, reason } in refused.read() {
        let Some((_, mut client)) = of_name(&mut clients, name) else { continue };
        match reason {
            LogInError::Elsewhere { address, .. } => client.tell(elsewhere(address)),
            reason
                if matches!(reason, LogInError::UnknownName | LogInError::InvalidName(_))
                    || time.elapsed() > client.asked + PATIENCE =>
            {
                client.tell(ToClient::Refused(reason.to_string()));
            }
            _ => client.due = Some(time.elapsed() + AGAIN),
        }
    }
}

/// The message for a client whose player is on the server at this address.
fn elsewhere(address: &[u8]) -> ToClient {
    ToClient::Elsewhere(String::from_utf8_lossy(address).into_owned())
}

/// The client of a player that has gone to the ground of another server follows it.
fn send_elsewhere(
    mut clients: Query<(Entity, &mut ConnectedClient)>,
    mut moved: MessageReader<PlayerMoved>,
    mut logged_out: MessageReader<PlayerLoggedOut>,
    mut commands: Commands,
) {
    for PlayerMoved { name, address, .. } in moved.read() {
        if let Some((entity, mut client)) = of_name(&mut clients, name) {
            client.player = None;
            client.tell(elsewhere(address));
            commands.entity(entity).remove::<ChunkSyncPeer>();
        }
    }
    for PlayerLoggedOut { name, .. } in logged_out.read() {
        if let Some((entity, client)) = of_name(&mut clients, name)
            && client.player.is_some()
        {
            client.tell(ToClient::Refused("your player has left the world".to_owned()));
            commands.entity(entity).despawn();
        }
    }
}

/// A client gets a peer once its player has a mirror, and another one in each dimension.
fn meet(
    mut clients: Query<(Entity, &mut ConnectedClient, Option<&ChunkSyncPeer>)>,
    mirrors: Res<MirrorIndex>,
    places: Query<&Mirror>,
    dimensions: Query<(&Dimension, &DimensionOpen)>,
    settings: Res<Settings>,
    mut commands: Commands,
) {
    for (entity, mut client, peer) in &mut clients {
        let Some(player) = client.player else { continue };
        let Some(viewer) = mirrors.entity(player) else { continue };
        let Ok(Position { dimension: id, block: place, .. }) = places.get(viewer).map(|mirror| mirror.current.0) else {
            continue;
        };
        if peer.is_some_and(|peer| peer.dimension() == id) {
            continue;
        }
        let Some((dimension, _)) = dimensions.iter().find(|(_, open)| open.id == id) else { continue };
        let peer = ChunkSyncPeer::new(id).with_limits(settings.0.limits).with_viewer(viewer).with_actor(player);
        client.stay += 1;
        let stay = client.stay;
        client.tell(ToClient::Plays { player, place, dimension: dimension.name().to_owned(), stay });
        client.order(ForClient::Stay(stay, peer.port().clone()));
        commands.entity(entity).insert(peer);
    }
}

/// Clients are told the time of day of the dimension in which they are.
fn tell_time(
    clients: Query<(&ConnectedClient, Ref<ChunkSyncPeer>)>,
    times: Query<(&DimensionOpen, Ref<TimeOfDay>)>,
    time: Res<Time<Real>>,
    mut told: Local<Duration>,
) {
    let is_due = time.elapsed() >= *told + CLOCK;
    if is_due {
        *told = time.elapsed();
    }
    for (client, peer) in &clients {
        let Some((_, of_day)) = times.iter().find(|(open, _)| open.id == peer.dimension()) else { continue };
        if is_due || peer.is_added() || of_day.is_changed() {
            client.tell(ToClient::Time { days: of_day.days, seconds_per_day: of_day.seconds_per_day });
        }
    }
}
