//! The workload M3: from the update with a `SetBlock` to the frame that shows it, in the main world and on a client of a server.
//! `cargo bench --all-features --bench edits` prints each figure; an argument names the ones to run.

#[path = "shared/choose.rs"]
mod choose;
#[path = "shared/report.rs"]
mod report;

use bevy::asset::AssetPlugin;
use bevy::prelude::*;
use bevy_terrane::chunk_sync::SyncLimits;
use bevy_terrane::prelude::*;
use bevy_terrane::testing::{block_at, headless, id_of, spawn_dimension, start};
use bevy_terrane::view::{ChunkSyncClient, ChunkSyncPeer, PublishedColumns};
use report::report;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use terrane_render::{ChunkMesh, ChunkRenderPlugin};

const FRAME: Duration = Duration::from_micros(16_667);
const EDITS: i64 = 200;
/// The number of the server's dimension on the client.
const REMOTE: DimensionId = DimensionId(1 << 32);

fn main() {
    choose::run(&[("M3", own_world), ("M3c", client)]);
}

/// What the updates of an edit showed, counted from the one that sent it, which is number 0.
#[derive(Default)]
struct Seen {
    block: Option<usize>,
    mesh: Option<usize>,
    decided: Option<usize>,
}

/// The place of an edit: in the air, each in a chunk without a mesh.
fn place(number: i64) -> BlockPos {
    BlockPos::new(number % 5 * 16 - 32 + number % 13, 40, number / 5 % 5 * 16 - 32 + number % 11)
}

fn look(
    world: &mut World,
    dimension: DimensionId,
    (position, block): (BlockPos, BlockId),
    seen: &mut Seen,
    update: usize,
) {
    if block_at(world, dimension, position) == Some(block) {
        seen.block.get_or_insert(update);
    }
    let mut meshes = world.query::<&ChunkMesh>();
    if meshes.iter(world).any(|mesh| mesh.chunk == position.chunk()) == (block != BlockId::AIR) {
        seen.mesh.get_or_insert(update);
    }
    if !world.resource::<PublishedColumns>().is_predicted(dimension, position) {
        seen.decided.get_or_insert(update);
    }
}

/// Makes one edit after the other, and removes each again. `update` is one frame of everything.
fn measure<T>(
    apps: &mut T,
    dimension: DimensionId,
    world: impl Fn(&mut T) -> &mut World,
    mut update: impl FnMut(&mut T),
) -> Vec<Seen> {
    let stone = id_of(world(apps), "terrane:stone");
    let mut all = Vec::new();
    for number in 0..EDITS {
        let (position, block) = (place(number / 2), if number % 2 == 0 { stone } else { BlockId::AIR });
        world(apps).write_message(SetBlock { dimension, position, block });
        let mut seen = Seen::default();
        for count in 0..600 {
            frame(|| update(apps));
            look(world(apps), dimension, (position, block), &mut seen, count);
            if seen.block.is_some() && seen.mesh.is_some() && seen.decided.is_some() {
                break;
            }
        }
        // The next edit comes at another moment between two ticks.
        (0..number % 4).for_each(|_| frame(|| update(apps)));
        all.push(seen);
    }
    all
}

fn frame(update: impl FnOnce()) {
    let began = Instant::now();
    update();
    std::thread::sleep(FRAME.saturating_sub(began.elapsed()));
}

fn tell(name: &str, seen: &[Seen]) {
    let figures = |of: fn(&Seen) -> Option<usize>| {
        let mut updates: Vec<usize> = seen.iter().map(|seen| of(seen).unwrap_or(usize::MAX)).collect();
        updates.sort_unstable();
        format!("{} / {}", updates[updates.len() / 2], updates[updates.len() * 99 / 100])
    };
    let ours = format!(
        "block {}, mesh {}, decided {} frames, p50 / p99",
        figures(|seen| seen.block),
        figures(|seen| seen.mesh),
        figures(|seen| seen.decided)
    );
    report(name, ours, "2 frames");
}

fn with_meshes(mut app: App) -> App {
    app.add_plugins((AssetPlugin::default(), ChunkRenderPlugin::default()));
    app.init_asset::<Mesh>().init_asset::<StandardMaterial>();
    app
}

fn ground(app: &mut App) -> DimensionId {
    spawn_dimension(app, Dimension::new("ground", Flat::new()).with_height(-64..64))
}

/// Frames until the ground is there and meshed.
fn settle<T>(apps: &mut T, mut update: impl FnMut(&mut T)) {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(8) {
        frame(|| update(apps));
    }
}

fn own_world() {
    let mut app = with_meshes(headless(TerranePlugin::in_memory()));
    let dimension = ground(&mut app);
    app.world_mut().spawn((Viewer::in_dimension(dimension).with_radius(6), Transform::default()));
    start(&mut app);
    settle(&mut app, App::update);
    let seen = measure(&mut app, dimension, |app| app.world_mut(), App::update);
    tell("M3 own world", &seen);
}

struct Session {
    server: App,
    client: App,
    peer: Entity,
    view: Entity,
    up: VecDeque<(Instant, Vec<u8>)>,
    down: VecDeque<(Instant, Vec<u8>)>,
}

/// Half of the delay there and back.
const WAY: Duration = Duration::from_millis(100);

fn arrived(messages: &mut VecDeque<(Instant, Vec<u8>)>) -> Vec<Vec<u8>> {
    let count = messages.iter().take_while(|(sent, _)| sent.elapsed() >= WAY).count();
    messages.drain(..count).map(|(_, message)| message).collect()
}

impl Session {
    fn update(&mut self) {
        let now = Instant::now();
        if let Some(mut peer) = self.server.world_mut().get_mut::<ChunkSyncPeer>(self.peer) {
            for message in arrived(&mut self.up) {
                peer.receive(&message).expect("a message of our client");
            }
            self.down.extend(peer.take_messages().into_iter().map(|message| (now, message)));
        }
        self.server.update();
        if let Some(mut view) = self.client.world_mut().get_mut::<ChunkSyncClient>(self.view) {
            arrived(&mut self.down).into_iter().for_each(|message| view.receive(message));
            self.up.extend(view.take_messages().into_iter().map(|message| (now, message)));
        }
        self.client.update();
    }
}

fn client() {
    let mut server = headless(TerranePlugin::in_memory());
    let dimension = ground(&mut server);
    let limits = SyncLimits { edits_per_second: 100, edit_reach: 100, ..default() };
    let peer = ChunkSyncPeer::new(dimension).with_limits(limits);
    let viewer = Viewer::in_dimension(dimension).with_radius(6);
    let peer = server.world_mut().spawn((peer, viewer, Transform::from_xyz(0.0, 40.0, 0.0))).id();
    start(&mut server);
    let mut client = with_meshes(headless(TerranePlugin::in_memory()));
    let view = ChunkSyncClient::new(REMOTE).with_radius(5);
    let view = client.world_mut().spawn((view, Transform::from_xyz(0.0, 40.0, 0.0))).id();
    start(&mut client);
    let (up, down) = Default::default();
    let mut session = Session { server, client, peer, view, up, down };
    settle(&mut session, Session::update);
    let seen = measure(&mut session, REMOTE, |session| session.client.world_mut(), Session::update);
    tell("M3c client, 200 ms there and back", &seen);
}
