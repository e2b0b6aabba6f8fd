//! A client: what its cache has is seen at once; the server sends the rest.

use crate::arguments::Join;
use crate::network::{self, CHUNKS, DEEDS, Deed, Unsent};
use crate::picture::{PicturePlugin, Pictures};
use crate::sky;
use crate::start::{self, fail};
use crate::watch::Watch;
use bevy_renet::netcode::NetcodeClientPlugin;
use bevy_renet::{RenetClient, RenetClientPlugin, RenetReceive, RenetSend};
use bevy_terrane::prelude::*;
use bevy_terrane::render::ChunkMeshProgress;
use std::error::Error;
use std::time::{Duration, Instant};

/// The number of the server's dimension here: an own world would begin at 0.
pub const OVERWORLD: DimensionId = DimensionId(1 << 32);
/// Bytes of the cache at the most.
const MAX_CACHED: u64 = 256 << 20;
/// Blocks of the tower.
const TOWER: i64 = 24;
/// How long a step may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// What everybody looks at.
const MIDDLE: Vec3 = Vec3::new(8.0, 12.0, 8.0);
/// From where, in blocks.
const AWAY: Vec3 = Vec3::new(70.0, 62.0, 100.0);

/// A client that has not connected yet.
pub fn build(arguments: Join) -> Result<App, Box<dyn Error>> {
    // A cache for each server.
    let cache = arguments.caches.join(format!("{} at {}", arguments.name, arguments.server).replace(':', " port "));
    let mut app = App::new();
    app.add_plugins(TerranePlugin::in_memory());
    start::add_bevy(&mut app, "Multiplayer", &arguments.screen)?;
    app.add_plugins((ChunkRenderPlugin::default(), sky::SkyPlugin { shadows: 320.0 }))
        .add_plugins((RenetClientPlugin, NetcodeClientPlugin))
        .init_resource::<Visit>()
        .add_systems(PreUpdate, receive.after(RenetReceive).run_if(resource_exists::<RenetClient>))
        .add_systems(Update, visit)
        .add_systems(PostUpdate, send.before(RenetSend).run_if(resource_exists::<RenetClient>));
    if arguments.screen.is_headless() {
        let folder = arguments.screen.pictures.clone();
        // A new cache is empty.
        app.add_plugins(PicturePlugin { folder, size: UVec2::new(1_280, 720), shows_land: false });
    }
    let view = ChunkSyncClient::new(OVERWORLD).with_radius(arguments.radius).with_cache(cache, MAX_CACHED);
    app.world_mut().spawn((view, Unsent::default(), Transform::from_translation(MIDDLE)));
    let place = Transform::from_translation(MIDDLE + AWAY).looking_at(MIDDLE, Vec3::Y);
    app.world_mut().spawn((sky::camera(250.0..1_000.0), place));
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

/// How far the visit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The cache is shown; nothing was sent yet.
    Cache,
    Connecting,
    /// The server answers.
    Sync,
    Building,
    /// All is there.
    There,
}

#[derive(Resource)]
struct Visit {
    step: Step,
    watch: Watch,
    began: Instant,
    /// When the first ground was seen.
    first_seen: Option<Duration>,
}

impl Default for Visit {
    fn default() -> Self {
        Self { step: Step::Cache, watch: Watch::default(), began: Instant::now(), first_seen: None }
    }
}

impl Visit {
    fn go_on(&mut self, step: Step) {
        (self.step, self.watch) = (step, Watch::default());
    }
}

/// In a window it goes on for ever; without one it ends when all is there.
fn visit(
    mut commands: Commands,
    mut visit: ResMut<Visit>,
    mut client: Option<ResMut<RenetClient>>,
    view: Single<&ChunkSyncClient>,
    meshes: Res<ChunkMeshProgress>,
    columns: Res<PublishedColumns>,
    arguments: Res<Join>,
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
    let is_there = match visit.step {
        Step::Cache => true,
        _ => view.is_complete(),
    };
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
            client.iter_mut().for_each(|client| client.send_message(DEEDS, Deed::Walk(here).encode()));
            visit.go_on(Step::Sync);
        }
        // Ground that nobody has seen yet is generated first, and told when it is there.
        Step::Sync if is_calm && columns.len() as f32 > 3.0 * (arguments.radius as f32).powi(2) => {
            if arguments.build {
                for block in tower(&columns) {
                    client.iter_mut().for_each(|client| client.send_message(DEEDS, Deed::Build(block).encode()));
                }
            }
            visit.go_on(Step::Building);
        }
        Step::Building if !arguments.build || stands(&columns) => visit.go_on(Step::There),
        Step::There if headless && is_calm && taken("in-the-end") => {
            println!("{}", summary(&arguments.name, visit.first_seen, &view));
            exit.write(AppExit::Success);
        }
        _ => {}
    }
}

/// A tower on the ground in the middle.
fn tower(columns: &PublishedColumns) -> Vec<BlockPos> {
    let ground = columns.column(OVERWORLD, ColumnPos::new(0, 0)).and_then(|column| column.surface(8, 8)).unwrap_or(0);
    (1..=TOWER)
        .flat_map(|up| (6..=10).flat_map(move |x| (6..=10).map(move |z| BlockPos::new(x, ground + up, z))))
        .filter(|block| (block.x - 8).abs() == 2 || (block.z - 8).abs() == 2)
        .collect()
}

/// Whether the tower is seen: its builder is told of it like everybody else.
fn stands(columns: &PublishedColumns) -> bool {
    let column = columns.column(OVERWORLD, ColumnPos::new(0, 0));
    let height = |x, z| column.and_then(|column| column.surface(x, z));
    height(6, 6).zip(height(8, 8)).is_some_and(|(wall, inside)| wall - inside >= TOWER)
}

/// A line that the rehearsal reads too.
fn summary(name: &str, first_seen: Option<Duration>, view: &ChunkSyncClient) -> String {
    let progress = view.progress();
    let kib = |bytes: u64| bytes.div_ceil(1 << 10);
    format!(
        "{name}: first ground after {:.2} s; {} chunks, {} of them from the cache; the server sent {} chunks in {} KiB of \
         messages, and the cache saved {} chunks of {} KiB",
        first_seen.unwrap_or_default().as_secs_f64(),
        progress.wanted,
        progress.cached,
        progress.received,
        kib(progress.message_bytes),
        progress.current,
        kib(progress.current_bytes),
    )
}
