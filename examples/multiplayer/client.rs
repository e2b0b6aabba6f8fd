//! A client: cached chunks are visible at once, and the server sends the rest.

use crate::arguments::Join;
use crate::network::{self, CHUNKS, Unsent, WALKS};
use crate::start::{self, fail};
use crate::tell::Run;
use crate::watch::Watch;
use bevy_renet::netcode::NetcodeClientPlugin;
use bevy_renet::{RenetClient, RenetClientPlugin, RenetReceive, RenetSend};
use bevy_terrane::prelude::*;
use bevy_terrane::view::{ChunkSyncClient, PublishedColumns};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::time::{Duration, Instant};
use terrane_dev::{PicturePlugin, Pictures, SkyPlugin, haze};
use terrane_render::{ChunkMeshProgress, ChunkRenderPlugin};

/// The number of the server's dimension on the client, whose own dimensions would start at 0.
pub const OVERWORLD: DimensionId = DimensionId(1 << 32);
/// The maximum size of the cache in bytes.
const MAX_CACHED: u64 = 256 << 20;
/// The height of the tower in blocks.
const TOWER: i64 = 24;
/// The time limit of a step.
const PATIENCE: Duration = Duration::from_secs(120);
/// The point that all cameras look at.
const MIDDLE: Vec3 = Vec3::new(8.0, 12.0, 8.0);
/// The position of the camera, in blocks.
const AWAY: Vec3 = Vec3::new(70.0, 62.0, 100.0);

/// Builds a client that has not connected yet.
pub fn build(arguments: Join, run: &Run) -> Result<App, Box<dyn Error>> {
    // One cache per server.
    let cache = arguments.caches.join(format!("{} at {}", arguments.name, arguments.server).replace(':', " port "));
    let mut app = App::new();
    app.add_plugins(TerranePlugin::in_memory());
    start::add_bevy(&mut app, "Multiplayer", run)?;
    app.add_plugins((ChunkRenderPlugin::default(), SkyPlugin { shadows: 320.0 }))
        .add_plugins((RenetClientPlugin, NetcodeClientPlugin))
        .init_resource::<Visit>()
        .add_systems(PreUpdate, receive.after(RenetReceive).run_if(resource_exists::<RenetClient>))
        .add_systems(Update, visit)
        .add_systems(PostUpdate, send.before(RenetSend).run_if(resource_exists::<RenetClient>))
        .add_systems(Last, print_at_end.run_if(start::at_end));
    if run.is_headless() {
        let folder = arguments.pictures.clone();
        // A new cache shows no land.
        app.add_plugins(PicturePlugin { folder, shows_land: false, ..default() });
    }
    let view = ChunkSyncClient::new(OVERWORLD).with_radius(arguments.radius).with_cache(cache, MAX_CACHED);
    app.world_mut().spawn((view, Unsent::default(), Transform::from_translation(MIDDLE)));
    let place = Transform::from_translation(MIDDLE + AWAY).looking_at(MIDDLE, Vec3::Y);
    app.world_mut().spawn((Camera3d::default(), haze(250.0..1_000.0), place));
    app.insert_resource(arguments);
    Ok(app)
}

fn receive(mut client: ResMut<RenetClient>, mut view: Single<&mut ChunkSyncClient>) {
    while let Some(message) = client.receive_message(CHUNKS) {
        view.receive(message);
    }
}

fn send(mut client: ResMut<RenetClient>, view: Single<(&mut ChunkSyncClient, &mut Unsent)>) {
    if !client.is_connected() {
        return;
    }
    let (mut view, mut unsent) = view.into_inner();
    unsent.add(view.take_messages());
    while let Some(message) = unsent.next(|length| client.can_send_message(CHUNKS, length)) {
        client.send_message(CHUNKS, message);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The cache is shown. The server has not sent anything yet.
    Cache,
    Connecting,
    /// The server answers.
    Sync,
    Building,
    There,
}

#[derive(Resource)]
struct Visit {
    step: Step,
    watch: Watch,
    began: Instant,
    connected: Option<Instant>,
    /// The time at which ground was first visible.
    first_seen: Option<Duration>,
}

impl Default for Visit {
    fn default() -> Self {
        Self { step: Step::Cache, watch: Watch::default(), began: Instant::now(), connected: None, first_seen: None }
    }
}

impl Visit {
    fn go_on(&mut self, step: Step) {
        (self.step, self.watch) = (step, Watch::default());
    }
}

/// Runs the steps of a visit. Without a window it exits when everything is there.
fn visit(
    mut commands: Commands,
    mut visit: ResMut<Visit>,
    mut client: Option<ResMut<RenetClient>>,
    view: Single<&ChunkSyncClient>,
    meshes: Res<ChunkMeshProgress>,
    columns: Res<PublishedColumns>,
    (arguments, run, blocks): (Res<Join>, Res<Run>, Res<BlockTypes>),
    mut edits: MessageWriter<SetBlock>,
    mut pictures: Option<ResMut<Pictures>>,
    mut exit: MessageWriter<AppExit>,
) {
    let headless = pictures.is_some();
    let progress = view.progress();
    if !columns.is_empty() && visit.first_seen.is_none() {
        visit.first_seen = Some(visit.began.elapsed());
    }
    if client.as_ref().is_some_and(|client| client.is_disconnected()) {
        fail(format_args!("the server at {} does not answer", arguments.server), &mut exit);
    }
    if headless && visit.watch.elapsed() > PATIENCE {
        fail(format_args!("{:?} takes too long: {progress:?}", visit.step), &mut exit);
    }
    let is_over = visit.connected.is_some_and(|connected| run.is_over(connected.elapsed()));
    let is_there = visit.step == Step::Cache || view.is_complete();
    let is_calm = visit.watch.is_calm(is_there && meshes.is_done());
    let mut taken = |name: &str| {
        pictures.as_mut().is_none_or(|pictures| pictures.take(&format!("{}-{name}", arguments.name.to_lowercase())))
    };
    match visit.step {
        Step::Cache if !headless || is_calm && taken("from-the-cache") => {
            match network::connect(arguments.server, &arguments.name) {
                Ok((client, transport)) => {
                    commands.insert_resource(client);
                    commands.insert_resource(transport);
                }
                Err(error) => fail(error, &mut exit),
            }
            visit.go_on(Step::Connecting);
        }
        Step::Connecting if client.as_ref().is_some_and(|client| client.is_connected()) => {
            let Vec3 { x, y, z } = MIDDLE;
            let here = BlockPos::new(x as i64, y as i64, z as i64);
            client.iter_mut().for_each(|client| client.send_message(WALKS, network::encode(&here)));
            visit.connected = Some(Instant::now());
            visit.go_on(Step::Sync);
        }
        Step::Sync | Step::Building if is_over => visit.go_on(Step::There),
        // New ground must be generated first, and is announced when it is ready.
        Step::Sync if is_calm && columns.len() as f32 > 3.0 * (arguments.radius as f32).powi(2) => {
            if arguments.build {
                // The builder sees the tower at once, and everyone else through the server.
                let block = blocks.id("terrane:stone").unwrap_or_default();
                let stone = |position| SetBlock { dimension: OVERWORLD, position, block };
                edits.write_batch(tower(&columns).into_iter().map(stone));
            }
            visit.go_on(Step::Building);
        }
        Step::Building if !arguments.build || stands(&columns) => visit.go_on(Step::There),
        Step::There if headless && (is_calm || is_over) && taken("in-the-end") => {
            exit.write(AppExit::Success);
        }
        _ => {}
    }
}

/// The blocks of a tower on the ground in the middle.
fn tower(columns: &PublishedColumns) -> Vec<BlockPos> {
    let ground = columns.column(OVERWORLD, ColumnPos::new(0, 0)).and_then(|column| column.surface(8, 8)).unwrap_or(0);
    (1..=TOWER)
        .flat_map(|up| (6..=10).flat_map(move |x| (6..=10).map(move |z| BlockPos::new(x, ground + up, z))))
        .filter(|block| (block.x - 8).abs() == 2 || (block.z - 8).abs() == 2)
        .collect()
}

/// Returns `true` if the tower is visible, and the server has made it.
fn stands(columns: &PublishedColumns) -> bool {
    let column = columns.column(OVERWORLD, ColumnPos::new(0, 0));
    let height = |x, z| column.and_then(|column| column.surface(x, z));
    let heights = height(6, 6).zip(height(8, 8));
    heights.is_some_and(|(wall, inside)| {
        let is_made = |y| !columns.is_predicted(OVERWORLD, BlockPos::new(6, y, 6));
        wall - inside >= TOWER && (inside + 1..=wall).all(is_made)
    })
}

/// The figures of a visit, which the rehearsal reads too.
#[derive(Serialize, Deserialize)]
pub struct Figures {
    name: String,
    /// The time until ground was first visible.
    seconds: f64,
    chunks: usize,
    chunks_cached: u64,
    pub chunks_sent: u64,
    pub bytes_sent: u64,
    /// Cached chunks that were not sent, because the server confirmed that they are current.
    chunks_saved: u64,
    bytes_saved: u64,
}

fn print_at_end(visit: Res<Visit>, view: Single<&ChunkSyncClient>, arguments: Res<Join>, run: Res<Run>) {
    if visit.connected.is_none() {
        return;
    }
    let progress = view.progress();
    run.print(&Figures {
        name: arguments.name.clone(),
        seconds: visit.first_seen.unwrap_or_default().as_secs_f64(),
        chunks: progress.wanted,
        chunks_cached: progress.cached,
        chunks_sent: progress.received,
        bytes_sent: progress.message_bytes,
        chunks_saved: progress.current,
        bytes_saved: progress.current_bytes,
    });
}

impl Display for Figures {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { name, seconds, chunks, chunks_cached, chunks_sent, bytes_sent, chunks_saved, bytes_saved } = self;
        let [sent, saved] = [bytes_sent, bytes_saved].map(|bytes| bytes.div_ceil(1 << 10));
        write!(
            f,
            "{name}: first ground after {seconds:.2} s; {chunks} chunks, {chunks_cached} of them from the cache; the server \
             sent {chunks_sent} chunks in {sent} KiB of messages, and the cache saved {chunks_saved} chunks of {saved} KiB"
        )
    }
}
