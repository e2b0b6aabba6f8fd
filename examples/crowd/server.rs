//! The server: each player is an entity of a region, and gets the chunks around its mirror.

use crate::arguments::{Options, Place};
use crate::network::{self, CHUNKS, Unsent, WALKS};
use crate::swarm::SEED;
use crate::tell::Run;
use bevy::app::{AppExit, ScheduleRunnerPlugin};
use bevy::log::{Level, LogPlugin};
use bevy::platform::collections::HashMap;
use bevy_renet::RenetServer;
use bevy_renet::netcode::NetcodeServerTransport;
use bevy_renet::renet::{ClientId, ServerEvent};
use bevy_terrane::chunk_sync::SyncLimits;
use bevy_terrane::prelude::*;
use bevy_terrane::view::{ChunkSyncPeer, ClientEdit, MirrorIndex, WorldStatistics};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::io::Write;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// The period of the server's frames.
const FRAME: Duration = Duration::from_millis(50);
/// The distance in blocks over which a player may dig.
const REACH: u32 = 6;
/// The longest wait until all players are there, and the wait after that.
const PATIENCE: Duration = Duration::from_secs(600);
const CALM: Duration = Duration::from_secs(6);

/// A player in a region.
#[derive(Component, Clone, PartialEq)]
struct Player;

/// A player that has moved, as a message to its entity.
#[derive(Clone)]
struct Moved(BlockPos);

/// Runs in each region.
fn walk(mut moves: MessageReader<Received<Moved>>, mut players: Query<&mut Position, With<Player>>) {
    for moved in moves.read() {
        if let Some(mut position) = moved.entity.and_then(|entity| players.get_mut(entity).ok()) {
            *position = Position::new(position.dimension, moved.message.0);
        }
    }
}

/// Builds a listening server. It ends when its figures are taken.
pub fn build(options: &Options, run: Run) -> Result<App, Box<dyn Error>> {
    let mut app = App::new();
    app.add_plugins(MinimalPlugins.set(ScheduleRunnerPlugin::run_loop(FRAME)))
        .add_plugins(LogPlugin { level: Level::WARN, ..default() })
        .add_plugins(TerranePlugin::in_memory())
        .register_region_component::<Player>()
        .mirror_region_component::<Player>()
        .register_region_message::<Moved>()
        .add_region_plugins(|region| {
            region.add_systems(RegionTick, walk);
        });
    let mut halls = Vec::new();
    for hall in 0..options.transports() {
        let any_port = "127.0.0.1:0".parse()?;
        let (server, transport, address) = network::listen(any_port, options.bots_of(hall).len())?;
        println!("listening at {address}");
        halls.push(Hall { server, transport });
    }
    std::io::stdout().flush()?;
    app.insert_resource(Halls(halls))
        .init_resource::<Players>()
        .init_resource::<Measured>()
        .insert_resource(options.clone())
        .insert_resource(Run { seconds: run.seconds.or(Some(20)), ..run })
        .add_observer(|_: On<ClientEdit>, mut measured: ResMut<Measured>| measured.edits += 1)
        .add_systems(First, begin_frame)
        .add_systems(PreUpdate, (receive, meet).chain())
        .add_systems(PostUpdate, send)
        .add_systems(Last, measure);
    app.world_mut().spawn(Dimension::new("overworld", Hills::seeded(SEED)));
    Ok(app)
}

/// One port with its players. renetcode has room for 1,024 clients at each.
struct Hall {
    server: RenetServer,
    transport: NetcodeServerTransport,
}

#[derive(Resource)]
struct Halls(Vec<Hall>);

impl Halls {
    /// The packets for which the sockets had no room so far; 0 where `/proc` is missing.
    fn packets_lost(&self) -> u64 {
        let ports: Vec<u16> =
            self.0.iter().flat_map(|hall| hall.transport.addresses()).map(|address| address.port()).collect();
        let sockets = std::fs::read_to_string("/proc/self/net/udp").unwrap_or_default();
        let lost = |line: &str| {
            let mut fields = line.split_whitespace();
            let (_, port) = fields.nth(1)?.split_once(':')?;
            ports.contains(&u16::from_str_radix(port, 16).ok()?).then(|| fields.next_back()?.parse::<u64>().ok())?
        };
        sockets.lines().filter_map(lost).sum()
    }
}

/// The connected players by hall and id.
#[derive(Resource, Default)]
struct Players(HashMap<(usize, ClientId), Entity>);

#[derive(Component)]
struct Connection {
    hall: usize,
    client: ClientId,
    /// The entity in a region; `None` before the first step.
    body: Option<Uuid>,
}

fn receive(
    mut halls: ResMut<Halls>,
    mut players: ResMut<Players>,
    mut connections: Query<(&mut Connection, Option<&mut ChunkSyncPeer>)>,
    dimensions: Res<Dimensions>,
    options: Res<Options>,
    time: Res<Time<Real>>,
    mut commands: Commands,
) {
    for (number, Hall { server, transport }) in halls.0.iter_mut().enumerate() {
        server.update(time.delta());
        if let Err(error) = transport.update(time.delta(), server) {
            error!("{error}");
        }
        while let Some(event) = server.get_event() {
            match event {
                ServerEvent::ClientConnected { client_id: client } => {
                    let connection = Connection { hall: number, client, body: None };
                    players.0.insert((number, client), commands.spawn((connection, Unsent::default())).id());
                }
                ServerEvent::ClientDisconnected { client_id, reason } => {
                    crate::tell::say(format_args!("player {client_id} has left: {reason}"));
                    if let Some(player) = players.0.remove(&(number, client_id)) {
                        commands.entity(player).despawn();
                    }
                }
            }
        }
    }
    let dimension = dimensions.id("overworld");
    for (mut connection, peer) in &mut connections {
        let Connection { hall, client, body } = &mut *connection;
        let server = &mut halls.0[*hall].server;
        let mut is_sound = true;
        while let Some(message) = server.receive_message(*client, WALKS) {
            match (network::decode(&message), *body) {
                // A real game checks here that the player can be there.
                (Some(place), Some(body)) => drop(commands.send_to_entity(body, Moved(place))),
                (Some(place), None) => {
                    let id = Uuid::from_u64_pair(*hall as u64 + 1, *client);
                    let viewer = Viewer::new().with_radius(options.radius);
                    commands.spawn_in_region(dimension, place, (StableId(id), Player, viewer));
                    *body = Some(id);
                }
                (None, _) => is_sound = false,
            }
        }
        if let Some(mut peer) = peer {
            while let Some(message) = server.receive_message(*client, CHUNKS) {
                is_sound &= peer.receive(&message).is_ok();
            }
        }
        if !is_sound {
            server.disconnect(*client);
        }
    }
}

/// Players get a peer once their mirror is there.
fn meet(
    new: Query<(Entity, &Connection), Without<ChunkSyncPeer>>,
    mirrors: Res<MirrorIndex>,
    dimensions: Res<Dimensions>,
    mut commands: Commands,
) {
    for (player, connection) in &new {
        if let Some(mirror) = connection.body.and_then(|body| mirrors.entity(body)) {
            let limits = SyncLimits { edits_per_second: 10, edit_reach: REACH, ..default() };
            let peer = ChunkSyncPeer::new(dimensions.id("overworld")).with_limits(limits).with_viewer(mirror);
            commands.entity(player).insert(peer);
        }
    }
}

fn send(
    mut halls: ResMut<Halls>,
    mut players: Query<(&Connection, &mut ChunkSyncPeer, &mut Unsent)>,
    mut measured: ResMut<Measured>,
) {
    for (Connection { hall, client, .. }, mut peer, mut unsent) in &mut players {
        if unsent.is_empty() {
            unsent.add(peer.take_messages());
        }
        let server = &mut halls.0[*hall].server;
        while let Some(message) = unsent.next(|length| server.can_send_message(*client, CHUNKS, length)) {
            measured.bytes += message.len() as u64;
            server.send_message(*client, CHUNKS, message);
        }
    }
    let began = Instant::now();
    for Hall { server, transport } in &mut halls.0 {
        transport.send_packets(server);
    }
    measured.sending += began.elapsed();
}

/// The measurements of this round so far.
#[derive(Resource, Default)]
struct Measured {
    /// When the last player had everything, and the state when the measurement began.
    ready: Option<Instant>,
    start: Option<Usage>,
    frame: Option<Instant>,
    frames: Vec<Duration>,
    bytes: u64,
    edits: u64,
    sending: Duration,
}

/// The time, and what the process had used by then.
#[derive(Clone, Copy)]
struct Usage {
    at: Instant,
    cpu: f64,
    memory_mib: f64,
    packets_lost: u64,
}

/// The figures of one round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    place: Place,
    bots: usize,
    /// Players that were connected and had their ground.
    players: usize,
    /// Columns that were still to come; 0 if all of the ground was there.
    columns_missing: usize,
    columns: usize,
    regions: usize,
    /// Ticks per second: the slowest region and the median.
    tps: (f64, f64),
    /// The processor cores that the server used.
    cores: f64,
    /// The frame of the main world, in milliseconds: median and 99th percentile, and how much of it renet's sending takes.
    frame_ms: (f64, f64),
    sending_ms: f64,
    /// The coordinator's pass, in milliseconds: median and 99th percentile.
    pass_ms: (f64, f64),
    bytes_per_player_and_second: f64,
    edits_per_second: f64,
    /// Packets of players for which the server's sockets had no room.
    packets_lost: u64,
    /// At the beginning and at the end of the measurement.
    memory_mib: (f64, f64),
}

impl Display for Figures {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { place, bots, players, columns_missing, columns, regions, .. } = self;
        writeln!(f, "{place:?}: {players} of {bots} players, {columns} columns ({columns_missing} missing)")?;
        writeln!(f, "  {regions} regions: slowest {:.1} TPS, median {:.1}", self.tps.0, self.tps.1)?;
        let (frame, pass) = (self.frame_ms, self.pass_ms);
        writeln!(
            f,
            "  {:.2} cores; frame {:.1} ms, p99 {:.1} ms, of it renet {:.1} ms; pass {:.1} ms, p99 {:.1} ms",
            self.cores, frame.0, frame.1, self.sending_ms, pass.0, pass.1
        )?;
        let (bytes, edits, lost) = (self.bytes_per_player_and_second, self.edits_per_second, self.packets_lost);
        writeln!(f, "  {bytes:.0} bytes a player and second, {edits:.0} edits a second, {lost} packets lost")?;
        write!(f, "  {:.0} MiB at first, {:.0} MiB at the end", self.memory_mib.0, self.memory_mib.1)
    }
}

fn begin_frame(mut measured: ResMut<Measured>) {
    measured.frame = Some(Instant::now());
}

fn measure(
    mut measured: ResMut<Measured>,
    options: Res<Options>,
    run: Res<Run>,
    players: Query<&ChunkSyncPeer>,
    statistics: Res<WorldStatistics>,
    halls: Res<Halls>,
    time: Res<Time<Real>>,
    mut exit: MessageWriter<AppExit>,
) {
    let frame = measured.frame.take().map(|began| began.elapsed());
    measured.frames.extend(frame);
    let players = players.iter().count();
    if measured.ready.is_none() && (players == options.bots && statistics.remaining == 0 || time.elapsed() > PATIENCE) {
        measured.ready = Some(Instant::now());
    }
    let Some(ready) = measured.ready.filter(|ready| ready.elapsed() > CALM) else { return };
    let now = || Usage {
        at: Instant::now(),
        cpu: cpu_seconds(),
        memory_mib: memory_mib(),
        packets_lost: halls.packets_lost(),
    };
    let Some(start) = measured.start else {
        *measured = Measured { ready: Some(ready), start: Some(now()), ..default() };
        return;
    };
    if !run.is_over(start.at.elapsed()) {
        return;
    }
    let (end, seconds) = (now(), start.at.elapsed().as_secs_f64());
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    measured.frames.sort_unstable();
    let frames = &measured.frames;
    let frame = |share: usize| frames.get(frames.len() * share / 100).copied().unwrap_or_default();
    let figures = Figures {
        place: options.place.unwrap_or(Place::Land),
        bots: options.bots,
        players,
        columns_missing: statistics.remaining,
        columns: statistics.columns,
        regions: statistics.regions.len(),
        tps: (statistics.slowest_tps().unwrap_or_default(), statistics.median_tps().unwrap_or_default()),
        cores: (end.cpu - start.cpu) / seconds,
        frame_ms: (millis(frame(50)), millis(frame(99))),
        sending_ms: millis(measured.sending) / frames.len().max(1) as f64,
        pass_ms: (millis(statistics.pass_times.0), millis(statistics.pass_times.1)),
        bytes_per_player_and_second: measured.bytes as f64 / seconds / players.max(1) as f64,
        edits_per_second: measured.edits as f64 / seconds,
        packets_lost: end.packets_lost.saturating_sub(start.packets_lost),
        memory_mib: (start.memory_mib, end.memory_mib),
    };
    match serde_json::to_string(&figures) {
        Ok(line) => println!("{line}"),
        Err(error) => crate::tell::report(error),
    }
    exit.write(AppExit::Success);
}

/// The CPU time of this process so far; 0 where `/proc` is missing.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok()).unwrap_or_default();
    // User and system time, in hundredths of a second.
    (ticks(11) + ticks(12)) / 100.0
}

/// The resident memory of this process; 0 where `/proc` is missing.
fn memory_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib: f64 = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or_default();
    kib / 1_024.0
}
