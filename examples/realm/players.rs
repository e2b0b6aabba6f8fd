//! The players of a server: clients log in, are sent to other servers, and get the chunks around their players.

use crate::game::{DIMENSION, Gems, Wish, town};
use crate::network::{self, CHUNKS, Unsent, WALKS};
use crate::protocol::{Ask, Body, Tell};
use bevy::platform::collections::HashMap;
use bevy_renet::renet::{ClientId, ServerEvent};
use bevy_renet::{RenetReceive, RenetSend, RenetServer, RenetServerEvent};
use bevy_terrane::prelude::*;
use bevy_terrane::view::{
    ChunkSyncPeer, LogIn, LogInError, LogInRefused, LogOut, MirrorIndex, PlayerLoggedIn, PlayerLoggedOut, PlayerMoved,
};
use std::time::Duration;
use uuid::Uuid;

/// The radius in columns that is kept loaded around a player.
pub const RADIUS: u32 = 8;
/// How far a player sees others, in blocks.
const SIGHT: u64 = 160;
/// How often clients hear of the players around them.
const NEWS: Duration = Duration::from_millis(100);

pub struct PlayersPlugin;

impl Plugin for PlayersPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<Clients>()
            .add_observer(come_and_go)
            .add_systems(PreUpdate, receive.after(RenetReceive))
            .add_systems(Update, (answer_log_ins, send_away, meet).chain())
            .add_systems(PostUpdate, (tell_news, send).chain().before(RenetSend));
    }
}

/// The entities of connected clients.
#[derive(Resource, Default)]
struct Clients(HashMap<ClientId, Entity>);

/// A connected client.
#[derive(Component)]
struct Client {
    number: ClientId,
    /// The name under which it plays or wants to play.
    name: Option<String>,
    /// Its player, once that is in the world.
    player: Option<Uuid>,
}

fn come_and_go(
    event: On<RenetServerEvent>,
    mut commands: Commands,
    mut clients: ResMut<Clients>,
    connected: Query<&Client>,
    mut log_outs: MessageWriter<LogOut>,
) {
    match &event.0 {
        ServerEvent::ClientConnected { client_id } => {
            let client = Client { number: *client_id, name: None, player: None };
            clients.0.insert(*client_id, commands.spawn((client, Unsent::default())).id());
        }
        ServerEvent::ClientDisconnected { client_id, .. } => {
            let Some(entity) = clients.0.remove(client_id) else { return };
            if let Ok(Client { name: Some(name), player: Some(_), .. }) = connected.get(entity) {
                log_outs.write(LogOut { name: name.clone() });
            }
            commands.entity(entity).despawn();
        }
    }
}

fn tell(server: &mut RenetServer, client: &Client, message: &Tell) {
    server.send_message(client.number, WALKS, network::encode(message));
}

fn receive(
    mut server: ResMut<RenetServer>,
    mut clients: Query<(Entity, &mut Client, Option<&mut ChunkSyncPeer>)>,
    dimensions: Res<Dimensions>,
    mut log_ins: MessageWriter<LogIn>,
    mut commands: Commands,
) {
    let mut named = Vec::new();
    for (entity, mut client, peer) in &mut clients {
        let mut is_sound = true;
        while let Some(message) = server.receive_message(client.number, WALKS) {
            match (network::decode(&message), client.player) {
                // A client has one name.
                (Some(Ask::LogIn { name, town }), _) if client.name.as_ref().is_none_or(|known| *known == name) => {
                    client.name = Some(name);
                    named.push((entity, town));
                }
                (Some(Ask::LogIn { .. }), _) => is_sound = false,
                (Some(Ask::Go { x, z }), Some(player)) => drop(commands.send_to_entity(player, Wish::Go { x, z })),
                (Some(Ask::Give { to }), Some(player)) => drop(commands.send_to_entity(player, Wish::Give { to })),
                // Its player has just left for another server.
                (Some(_), None) => {}
                (None, _) => is_sound = false,
            }
        }
        if let Some(mut peer) = peer {
            while let Some(message) = server.receive_message(client.number, CHUNKS) {
                is_sound &= peer.receive(&message).is_ok();
            }
        }
        if !is_sound {
            server.disconnect(client.number);
        }
    }
    for (entity, number) in named {
        let Ok((_, client, _)) = clients.get(entity) else { continue };
        let Some(name) = client.name.clone() else { continue };
        // The last client of a name plays.
        let mut player = client.player;
        for (other, mut client, _) in &mut clients {
            if other != entity && client.name.as_ref() == Some(&name) {
                player = player.or_else(|| client.player.take());
                tell(&mut server, &client, &Tell::Replaced);
                client.name = None;
                commands.entity(other).remove::<ChunkSyncPeer>();
            }
        }
        let Ok((_, mut client, _)) = clients.get_mut(entity) else { continue };
        client.player = player;
        match player {
            Some(id) => tell(&mut server, &client, &Tell::In { id }),
            None => {
                let first_place = Some((dimensions.id(DIMENSION), town(number)));
                log_ins.write(LogIn { name, first_place });
            }
        }
    }
}

/// Clients whose player has come in play, and others are sent where it is.
fn answer_log_ins(
    mut server: ResMut<RenetServer>,
    mut clients: Query<&mut Client>,
    mut logged_in: MessageReader<PlayerLoggedIn>,
    mut refused: MessageReader<LogInRefused>,
    mut log_outs: MessageWriter<LogOut>,
    mut commands: Commands,
) {
    for PlayerLoggedIn { name, id, .. } in logged_in.read() {
        let Some(mut client) = clients.iter_mut().find(|client| client.name.as_ref() == Some(name)) else {
            // The client has left meanwhile.
            log_outs.write(LogOut { name: name.clone() });
            continue;
        };
        client.player = Some(*id);
        tell(&mut server, &client, &Tell::In { id: *id });
        let name = name.clone();
        let equip = move |mut player: EntityWorldMut| {
            if !player.contains::<Gems>() {
                player.insert(Gems::of(&name));
            }
            player.insert(Viewer::new().with_radius(RADIUS));
        };
        // If the player is gone again, there is nobody to equip.
        commands.run_on_region_entity(*id, 0, equip, |_, _| {});
    }
    for LogInRefused { name, reason } in refused.read() {
        let Some(client) = clients.iter().find(|client| client.name.as_ref() == Some(name)) else { continue };
        let answer = match reason {
            LogInError::Elsewhere { address, .. } => Tell::Elsewhere { address: parse(address) },
            reason => Tell::Later { reason: reason.to_string() },
        };
        tell(&mut server, client, &answer);
    }
}

/// The address that a server gave when it joined.
fn parse(address: &[u8]) -> Option<std::net::SocketAddr> {
    std::str::from_utf8(address).ok()?.parse().ok()
}

/// Clients whose player has gone to the ground of another server follow it.
fn send_away(
    mut server: ResMut<RenetServer>,
    mut clients: Query<(Entity, &mut Client)>,
    mut moved: MessageReader<PlayerMoved>,
    mut logged_out: MessageReader<PlayerLoggedOut>,
    mut commands: Commands,
) {
    let moved = moved.read().map(|moved| (&moved.name, Tell::Elsewhere { address: parse(&moved.address) }));
    let left = logged_out.read().map(|left| (&left.name, Tell::Later { reason: "the player has left".to_owned() }));
    for (name, message) in moved.chain(left) {
        if let Some((entity, mut client)) = clients.iter_mut().find(|(_, client)| client.name.as_ref() == Some(name)) {
            client.player = None;
            tell(&mut server, &client, &message);
            commands.entity(entity).remove::<ChunkSyncPeer>();
        }
    }
}

/// Clients get chunks once their player's mirror is there.
fn meet(
    new: Query<(Entity, &Client), Without<ChunkSyncPeer>>,
    mirrors: Res<MirrorIndex>,
    dimensions: Res<Dimensions>,
    mut commands: Commands,
) {
    for (entity, client) in &new {
        if let Some(mirror) = client.player.and_then(|player| mirrors.entity(player)) {
            commands.entity(entity).insert(ChunkSyncPeer::new(dimensions.id(DIMENSION)).with_viewer(mirror));
        }
    }
}

/// Tells clients of their player and of those around it.
fn tell_news(
    mut server: ResMut<RenetServer>,
    clients: Query<&Client>,
    mirrors: Res<MirrorIndex>,
    players: Query<(Entity, &Player, &Gems, &Mirror)>,
    time: Res<Time<Real>>,
    mut told: Local<Duration>,
) {
    if time.elapsed() < *told + NEWS {
        return;
    }
    *told = time.elapsed();
    let bodies: Vec<(Entity, Body)> = players
        .iter()
        .map(|(entity, player, gems, mirror)| {
            let body = Body { name: player.name().to_owned(), block: mirror.current.0.block, gems: gems.0.clone() };
            (entity, body)
        })
        .collect();
    for client in &clients {
        let own = client.player.and_then(|player| mirrors.entity(player));
        let Some((_, own)) = bodies.iter().find(|(entity, _)| Some(*entity) == own) else { continue };
        let is_near = |body: &Body| {
            body.name != own.name && body.block.x.abs_diff(own.block.x).max(body.block.z.abs_diff(own.block.z)) < SIGHT
        };
        let others = bodies.iter().map(|(_, body)| body).filter(|body| is_near(body));
        let near = [own].into_iter().chain(others).cloned().collect();
        tell(&mut server, client, &Tell::Near(near));
    }
}

fn send(mut server: ResMut<RenetServer>, mut clients: Query<(&Client, &mut ChunkSyncPeer, &mut Unsent)>) {
    for (client, mut peer, mut unsent) in &mut clients {
        if unsent.is_empty() {
            unsent.add(peer.take_messages());
        }
        while let Some(message) = unsent.next(|length| server.can_send_message(client.number, CHUNKS, length)) {
            server.send_message(client.number, CHUNKS, message);
        }
    }
}
