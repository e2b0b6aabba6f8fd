//! A client: it shows its player's surroundings, wherever that is.

use crate::arguments::Join;
use crate::connection::{Connection, ConnectionPlugin, Near};
use crate::network::{self, CHUNKS, Unsent, WALKS};
use crate::players::RADIUS;
use crate::protocol::{Ask, Body, Event, Order, Orders};
use crate::start::{self, fail};
use crate::tell::Run;
use crate::watch::Watch;
use bevy_egui::{EguiContexts, EguiPlugin, EguiPrimaryContextPass, PrimaryEguiContext, egui};
use bevy_renet::{RenetClient, RenetSend};
use bevy_terrane::prelude::*;
use bevy_terrane::view::ChunkSyncClient;
use std::error::Error;
use std::time::Duration;
use terrane_dev::{PicturePlugin, Pictures, SkyPlugin, haze};
use terrane_render::{ChunkMeshProgress, ChunkRenderPlugin};

/// The number of the realm's dimension on the client, whose own dimensions would start at 0.
const OVERWORLD: DimensionId = DimensionId(1 << 32);
/// The maximum size of the cache in bytes.
const MAX_CACHED: u64 = 256 << 20;
/// The position of the camera, seen from the player, in blocks.
const BEHIND: Vec3 = Vec3::new(15.0, 12.0, 19.0);
/// How far ahead a key sends the player, in blocks, and how often.
const AHEAD: i64 = 16;
const OFTEN: Duration = Duration::from_millis(200);
/// The time limit of a picture.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often the scenario hears of the player.
const REPORT: Duration = Duration::from_millis(500);

/// Builds a client that has not connected yet.
pub fn build(join: Join, run: &Run) -> Result<App, Box<dyn Error>> {
    let first = *join.servers.first().ok_or("name a server (--servers)")?;
    let mut app = App::new();
    app.add_plugins(TerranePlugin::in_memory());
    start::add_bevy(&mut app, "Realm", run)?;
    app.add_plugins((ChunkRenderPlugin::default(), SkyPlugin { shadows: 160.0 }, EguiPlugin::default()))
        .add_plugins(ConnectionPlugin)
        .insert_resource(Connection::to(first))
        .insert_resource(Orders::read())
        .add_systems(Update, (follow, show_bodies, obey, report))
        .add_systems(Last, print_at_end.run_if(start::at_end))
        .add_systems(EguiPrimaryContextPass, show_state)
        .add_systems(PostUpdate, send.before(RenetSend).run_if(resource_exists::<RenetClient>));
    if run.is_headless() {
        let folder = join.pictures.clone();
        app.add_plugins(PicturePlugin { folder, size: UVec2::new(960, 540), ..default() });
    } else {
        app.add_systems(Update, steer.run_if(resource_exists::<RenetClient>));
    }
    // All servers have the same world, so one cache is enough.
    let view = ChunkSyncClient::new(OVERWORLD).with_radius(RADIUS).with_cache(join.caches.join(&join.name), MAX_CACHED);
    app.world_mut().spawn((view, Unsent::default(), Transform::default()));
    app.world_mut().spawn((Camera3d::default(), haze(70.0..150.0), Transform::default(), PrimaryEguiContext));
    app.insert_resource(join);
    Ok(app)
}

fn send(mut client: ResMut<RenetClient>, view: Single<(&mut ChunkSyncClient, &mut Unsent)>, state: Res<Connection>) {
    if !state.is_playing() {
        return;
    }
    let (mut view, mut unsent) = view.into_inner();
    unsent.add(view.take_messages());
    while let Some(message) = unsent.next(|length| client.can_send_message(CHUNKS, length)) {
        client.send_message(CHUNKS, message);
    }
}

/// The middle of a block's lower side.
fn place(block: BlockPos) -> Vec3 {
    Vec3::new(block.x as f32 + 0.5, block.y as f32, block.z as f32 + 0.5)
}

/// View and camera follow the player.
fn follow(
    near: Res<Near>,
    mut view: Single<&mut Transform, With<ChunkSyncClient>>,
    mut camera: Single<&mut Transform, (With<Camera3d>, Without<ChunkSyncClient>)>,
) {
    if let Some(own) = near.0.first() {
        view.translation = place(own.block);
        let looked_at = view.translation + Vec3::Y * 2.0;
        **camera = Transform::from_translation(looked_at + BEHIND).looking_at(looked_at, Vec3::Y);
    }
}

#[derive(Component)]
struct Shown;

/// Draws each player as a box with a head.
fn show_bodies(
    near: Res<Near>,
    shown: Query<Entity, With<Shown>>,
    mut commands: Commands,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) {
    if !near.is_changed() {
        return;
    }
    shown.iter().for_each(|body| commands.entity(body).despawn());
    for body in &near.0 {
        let hue = body.name.bytes().fold(0, |sum, byte| (31 * sum + u32::from(byte)) % 360);
        let color = Color::hsl(hue as f32, 0.75, 0.5);
        for (size, up, color) in [(Vec3::new(0.9, 1.5, 0.6), 0.75, color), (Vec3::splat(0.7), 1.85, Color::WHITE)] {
            commands.spawn((
                Shown,
                Mesh3d(meshes.add(Cuboid::from_size(size))),
                MeshMaterial3d(materials.add(StandardMaterial::from(color))),
                Transform::from_translation(place(body.block) + Vec3::Y * up),
            ));
        }
    }
}

/// Shows who plays where, and what it has.
fn show_state(mut contexts: EguiContexts, connection: Res<Connection>, near: Res<Near>, join: Res<Join>) -> Result {
    let server = connection.server();
    egui::Window::new("realm").title_bar(false).anchor(egui::Align2::LEFT_TOP, [12.0, 12.0]).resizable(false).show(
        contexts.ctx_mut()?,
        |ui| {
            let state = if connection.is_playing() { "plays on" } else { "goes to" };
            ui.heading(format!("{} {state} {server}", join.name));
            for body in &near.0 {
                let BlockPos { x, z, .. } = body.block;
                ui.label(format!("{} at {x}, {z}: {}", body.name, body.gems.join(", ")));
            }
        },
    );
    Ok(())
}

/// W, A, S and D ride, and G gives a gem to the nearest player.
fn steer(
    keys: Res<ButtonInput<KeyCode>>,
    near: Res<Near>,
    time: Res<Time>,
    mut last: Local<Duration>,
    mut client: ResMut<RenetClient>,
) {
    let Some(own) = near.0.first() else { return };
    let ways = [(KeyCode::KeyW, 0, -1), (KeyCode::KeyS, 0, 1), (KeyCode::KeyA, -1, 0), (KeyCode::KeyD, 1, 0)];
    let pressed = ways.iter().filter(|(key, ..)| keys.pressed(*key));
    let (x, z) = pressed.fold((0, 0), |(x, z), (_, along_x, along_z)| (x + along_x, z + along_z));
    if (x, z) != (0, 0) && time.elapsed() > *last + OFTEN {
        *last = time.elapsed();
        let ask = Ask::Go { x: own.block.x + x * AHEAD, z: own.block.z + z * AHEAD };
        client.send_message(WALKS, network::encode(&ask));
    }
    let distance = |body: &&Body| body.block.x.abs_diff(own.block.x).max(body.block.z.abs_diff(own.block.z));
    if keys.just_pressed(KeyCode::KeyG)
        && let Some(nearest) = near.0[1..].iter().min_by_key(distance)
    {
        client.send_message(WALKS, network::encode(&Ask::Give { to: nearest.name.clone() }));
    }
}

/// Does what the scenario says.
fn obey(
    mut orders: ResMut<Orders>,
    mut wanted: Local<Option<(String, Watch)>>,
    client: Option<ResMut<RenetClient>>,
    view: Single<&ChunkSyncClient>,
    meshes: Res<ChunkMeshProgress>,
    mut pictures: Option<ResMut<Pictures>>,
    (run, time): (Res<Run>, Res<Time<Real>>),
    mut exit: MessageWriter<AppExit>,
) {
    let ask = |ask: Ask| {
        if let Some(mut client) = client {
            client.send_message(WALKS, network::encode(&ask));
        }
    };
    match orders.next() {
        Some(Order::Go { x, z }) => ask(Ask::Go { x, z }),
        Some(Order::Give { to }) => ask(Ask::Give { to }),
        Some(Order::Picture { name }) => *wanted = Some((name, Watch::default())),
        Some(Order::Leave) => drop(exit.write(AppExit::Success)),
        None => {}
    }
    if wanted.as_ref().is_some_and(|(_, watch)| watch.elapsed() > PATIENCE) {
        fail("the picture takes too long", &mut exit);
    }
    if let Some((name, watch)) = &mut *wanted
        && watch.is_calm(view.is_complete() && meshes.is_done())
        && let Some(pictures) = &mut pictures
        && pictures.take(name)
    {
        pictures.taken.pop().into_iter().for_each(|picture| Event::Picture(picture).print());
        *wanted = None;
    }
    if run.is_headless() && run.is_over(time.elapsed()) {
        exit.write(AppExit::Success);
    }
}

fn print_at_end(view: Single<&ChunkSyncClient>) {
    let progress = view.progress();
    Event::Chunks { sent: progress.received, bytes: progress.message_bytes, saved: progress.current }.print();
}

fn report(near: Res<Near>, state: Res<Connection>, time: Res<Time<Real>>, mut last: Local<Duration>) {
    if state.is_playing() && near.is_changed() && time.elapsed() > *last + REPORT {
        *last = time.elapsed();
        near.0.first().cloned().into_iter().for_each(|own| Event::Own(own).print());
    }
}
