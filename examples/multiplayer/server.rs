//! The server: no window, a world on disk, and a peer for each connected player.

use crate::arguments::Serve;
use crate::network::{self, CHUNKS, Unsent, WALKS};
use crate::start;
use crate::tell::Run;
use bevy::app::ScheduleRunnerPlugin;
use bevy::log::{Level, LogPlugin};
use bevy::platform::collections::HashMap;
use bevy_renet::netcode::NetcodeServerPlugin;
use bevy_renet::renet::{ClientId, ServerEvent};
use bevy_renet::{RenetReceive, RenetSend, RenetServer, RenetServerEvent, RenetServerPlugin};
use bevy_terrane::chunk_sync::SyncLimits;
use bevy_terrane::prelude::*;
use bevy_terrane::view::{ChunkSyncPeer, ClientEdit};
use std::error::Error;
use std::io::Write;
use std::time::Duration;

/// The radius in columns that is kept loaded, and therefore generated, around a player.
const LOADED: u32 = 12;

/// The maximum number of connected players.
const MAX_PLAYERS: usize = 16;
/// The distance in blocks over which a player may build.
const REACH: u32 = 40;
/// The height up to which players may build.
const CEILING: i64 = 200;

/// Builds a listening server.
pub fn build(arguments: Serve, run: Run) -> Result<App, Box<dyn Error>> {
    let mut app = App::new();
    app.add_plugins(MinimalPlugins.set(ScheduleRunnerPlugin::run_loop(Duration::from_secs_f64(1.0 / 60.0))))
        .add_plugins(LogPlugin { level: Level::WARN, ..default() })
        .add_plugins(TerranePlugin::at(&arguments.world));
    start::check_world(&mut app, &arguments.world)?;
    let (server, transport, address) = network::listen(arguments.listen, MAX_PLAYERS)?;
    println!("listening at {address}");
    std::io::stdout().flush()?;
    app.insert_resource(server).insert_resource(transport);
    app.add_plugins((RenetServerPlugin, NetcodeServerPlugin))
        .init_resource::<Players>()
        .add_observer(come_and_go)
        .add_observer(check)
        .add_systems(PreUpdate, receive.after(RenetReceive))
        .add_systems(Update, end_in_time)
        .add_systems(PostUpdate, send.before(RenetSend));
    app.world_mut().spawn(Dimension::new(DIMENSION, Hills::seeded(12)));
    app.insert_resource(arguments).insert_resource(run);
    Ok(app)
}

/// The name of the dimension.
const DIMENSION: &str = "overworld";

/// The connected players.
#[derive(Resource, Default)]
struct Players {
    entities: HashMap<ClientId, Entity>,
    visits: usize,
}

#[derive(Component)]
struct PlayerId(ClientId);

fn come_and_go(
    event: On<RenetServerEvent>,
    mut commands: Commands,
    mut players: ResMut<Players>,
    dimensions: Res<Dimensions>,
    arguments: Res<Serve>,
    mut exit: MessageWriter<AppExit>,
) {
    match &event.0 {
        ServerEvent::ClientConnected { client_id } => {
            let dimension = dimensions.id(DIMENSION);
            let limits = SyncLimits {
                bytes_per_second: arguments.bytes_per_second,
                edits_per_second: 500,
                edit_reach: REACH,
                ..default()
            };
            let player = commands.spawn((
                PlayerId(*client_id),
                ChunkSyncPeer::new(dimension).with_limits(limits),
                Unsent::default(),
                Viewer::in_dimension(dimension).with_radius(LOADED),
                Transform::default(),
            ));
            players.entities.insert(*client_id, player.id());
        }
        ServerEvent::ClientDisconnected { client_id, .. } => {
            if let Some(player) = players.entities.remove(client_id) {
                commands.entity(player).despawn();
            }
            players.visits += 1;
            if arguments.visits.is_some_and(|visits| players.visits >= visits) {
                exit.write(AppExit::Success);
            }
        }
    }
}

/// The rules of the game for edits.
fn check(mut edit: On<ClientEdit>) {
    if edit.request.position.y > CEILING {
        edit.refuse();
    }
}

fn receive(mut server: ResMut<RenetServer>, mut players: Query<(&PlayerId, &mut ChunkSyncPeer, &mut Transform)>) {
    for (PlayerId(player), mut peer, mut place) in &mut players {
        let mut is_sound = true;
        while let Some(message) = server.receive_message(*player, CHUNKS) {
            is_sound &= peer.receive(&message).is_ok();
        }
        while let Some(message) = server.receive_message(*player, WALKS) {
            match network::decode(&message) {
                // A real game checks here that the player can be at this position.
                Some(BlockPos { x, y, z }) => place.translation = Vec3::new(x as f32, y as f32, z as f32),
                None => is_sound = false,
            }
        }
        if !is_sound {
            warn!("player {player} sent an invalid message and was disconnected");
            server.disconnect(*player);
        }
    }
}

fn send(mut server: ResMut<RenetServer>, mut players: Query<(&PlayerId, &mut ChunkSyncPeer, &mut Unsent)>) {
    for (PlayerId(player), mut peer, mut unsent) in &mut players {
        if unsent.is_empty() {
            unsent.add(peer.take_messages());
        }
        while let Some(message) = unsent.next(|length| server.can_send_message(*player, CHUNKS, length)) {
            server.send_message(*player, CHUNKS, message);
        }
    }
}

fn end_in_time(time: Res<Time<Real>>, run: Res<Run>, mut exit: MessageWriter<AppExit>) {
    if run.is_over(time.elapsed()) {
        exit.write(AppExit::Success);
    }
}
