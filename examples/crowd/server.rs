//! The server: each player is an entity of a region, and gets the chunks and the entities around its mirror.

use crate::arguments::{Options, Place};
use crate::game::{Home, Walk};
use crate::swarm::{Latencies, SEED};
use crate::tell::Run;
use bevy::app::{AppExit, ScheduleRunnerPlugin};
use bevy::log::{Level, LogPlugin};
use bevy_terrane::chunk_sync::SyncLimits;
use bevy_terrane::prelude::*;
use bevy_terrane::view::{ChunkSyncPeer, ClientEdit, WorldStatistics};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::time::{Duration, Instant};
use terrane_net::{ConnectedClient, FromAClient, LogInAttempt, NetAppExt, NetServer, ServerPlugin};

/// The period of the server's frames.
const FRAME: Duration = Duration::from_millis(25);
/// The distance in blocks over which a player may dig.
const REACH: u32 = 6;
/// The longest wait until all players are there, and the wait after that.
const PATIENCE: Duration = Duration::from_secs(600);
const CALM: Duration = Duration::from_secs(6);

/// Runs in each region.
fn walk(mut walks: MessageReader<Received<Walk>>, mut players: Query<&mut Position, With<Player>>) {
    for walk in walks.read() {
        if let Some(mut position) = walk.entity.and_then(|entity| players.get_mut(entity).ok()) {
            *position = Position::new(position.dimension, walk.message.0);
        }
    }
}

/// Builds a listening server. It ends when its figures are taken.
pub fn build(options: &Options, run: Run) -> Result<App, Box<dyn Error>> {
    let mut app = App::new();
    let mut net = ServerPlugin::new(([127, 0, 0, 1], 0), "overworld", BlockPos::default());
    (net.radius, net.players, net.log_ins) = (options.radius, options.bots, (u32::MAX, u32::MAX));
    net.limits = SyncLimits { edits_per_second: 20, edit_reach: REACH, ..default() };
    app.add_plugins(MinimalPlugins.set(ScheduleRunnerPlugin::run_loop(FRAME)))
        .add_plugins(LogPlugin { level: Level::WARN, ..default() })
        .add_plugins((TerranePlugin::in_memory(), net))
        .register_net_message::<Walk>()
        .register_region_message::<Walk>()
        .add_region_plugins(|region| {
            region.add_systems(RegionTick, walk);
        })
        .init_resource::<Measured>()
        .insert_resource(options.clone())
        .insert_resource(Run { seconds: run.seconds.or(Some(20)), ..run })
        .add_observer(|_: On<ClientEdit>, mut measured: ResMut<Measured>| measured.edits += 1)
        .add_observer(begin_at_home)
        .add_systems(First, begin_frame)
        .add_systems(Update, pass_on)
        .add_systems(Last, measure);
    app.world_mut().spawn(Dimension::new("overworld", Hills::seeded(SEED)));
    let listening = app.world().get_resource::<NetServer>().ok_or("the server does not listen")?;
    println!("listening at {} {}", listening.address(), listening.fingerprint());
    Ok(app)
}

fn begin_at_home(mut attempt: On<LogInAttempt>) {
    match Home::decode(&attempt.secret) {
        Some(Home(place)) => attempt.first_place = attempt.first_place.map(|(dimension, _)| (dimension, place)),
        None => attempt.refuse("a bot has no home"),
    }
}

/// A real game checks here that the player can be there.
fn pass_on(mut walks: MessageReader<FromAClient<Walk>>, clients: Query<&ConnectedClient>, mut commands: Commands) {
    for FromAClient { client, message } in walks.read() {
        if let Some(player) = clients.get(*client).ok().and_then(ConnectedClient::player) {
            commands.send_to_entity(player, message.clone());
        }
    }
}

/// The measurements of this round so far.
#[derive(Resource, Default)]
struct Measured {
    /// When the last player had everything, and the state when the measurement began.
    ready: Option<Instant>,
    start: Option<Usage>,
    frame: Option<Instant>,
    frames: Vec<Duration>,
    edits: u64,
}

/// The time, and what the process had used by then.
#[derive(Clone, Copy)]
struct Usage {
    at: Instant,
    cpu: f64,
    memory_mib: f64,
    bytes: u64,
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
    /// The frame of the main world, in milliseconds: median and 99th percentile.
    frame_ms: (f64, f64),
    /// The coordinator's pass, in milliseconds: median and 99th percentile.
    pass_ms: (f64, f64),
    bytes_per_player_and_second: f64,
    edits_per_second: f64,
    /// How long bots wait until they see what others do.
    pub latencies: Latencies,
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
            "  {:.2} cores; frame {:.1} ms, p99 {:.1} ms; pass {:.1} ms, p99 {:.1} ms",
            self.cores, frame.0, frame.1, pass.0, pass.1
        )?;
        let (bytes, edits) = (self.bytes_per_player_and_second, self.edits_per_second);
        writeln!(f, "  {bytes:.0} bytes a player and second, {edits:.0} edits a second")?;
        let Latencies { edits_ms, steps_ms } = &self.latencies;
        writeln!(
            f,
            "  seen by another: edits after {:.0} ms, p99 {:.0} ms ({}); steps after {:.0} ms, p99 {:.0} ms ({})",
            edits_ms.0, edits_ms.1, edits_ms.2, steps_ms.0, steps_ms.1, steps_ms.2
        )?;
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
    clients: Query<(&ConnectedClient, &ChunkSyncPeer)>,
    statistics: Res<WorldStatistics>,
    time: Res<Time<Real>>,
    mut exit: MessageWriter<AppExit>,
) {
    let frame = measured.frame.take().map(|began| began.elapsed());
    measured.frames.extend(frame);
    let players = clients.iter().count();
    if measured.ready.is_none() && (players == options.bots && statistics.remaining == 0 || time.elapsed() > PATIENCE) {
        measured.ready = Some(Instant::now());
    }
    let Some(ready) = measured.ready.filter(|ready| ready.elapsed() > CALM) else { return };
    let now = || Usage {
        at: Instant::now(),
        cpu: cpu_seconds(),
        memory_mib: memory_mib(),
        bytes: clients.iter().map(|(client, _)| client.bytes_sent()).sum(),
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
        pass_ms: (millis(statistics.pass_times.0), millis(statistics.pass_times.1)),
        bytes_per_player_and_second: end.bytes.saturating_sub(start.bytes) as f64 / seconds / players.max(1) as f64,
        edits_per_second: measured.edits as f64 / seconds,
        // The bots have them.
        latencies: Latencies::default(),
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
