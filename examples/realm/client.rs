//! A client: it shows its player's surroundings, wherever that is.

use crate::arguments::Join;
use crate::bodies::{Part, PartsPlugin};
use crate::game::{Gems, Wish, register};
use crate::protocol::{Body, Event, Order, Orders};
use crate::server::RADIUS;
use crate::start::{self, fail};
use crate::tell::{Run, say};
use crate::watch::Watch;
use bevy_egui::{EguiContexts, EguiPlugin, EguiPrimaryContextPass, PrimaryEguiContext, egui};
use bevy_terrane::prelude::*;
use bevy_terrane::view::ChunkSyncClient;
use std::error::Error;
use std::time::{Duration, Instant};
use terrane_dev::{PicturePlugin, Pictures, SkyPlugin, haze};
use terrane_net::{ClientPlugin, ConnectionNews, ServerConnection, ToTheServer, Trust};
use terrane_render::{ChunkMeshProgress, ChunkRenderPlugin};

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
    let (first, others) = join.servers.split_first().ok_or("name a server (--servers)")?;
    let mut app = App::new();
    app.add_plugins(TerranePlugin::in_memory());
    start::add_bevy(&mut app, "Realm", run)?;
    app.add_plugins((ChunkRenderPlugin::default(), SkyPlugin { shadows: 160.0 }, EguiPlugin::default()))
        .add_plugins((ClientPlugin, PartsPlugin(body)))
        .insert_resource(Orders::read())
        .init_resource::<Near>()
        .insert_resource(Played { server: None, since: Instant::now() })
        .add_systems(PreUpdate, look_around)
        .add_systems(Update, (follow, hear, obey, report))
        .add_systems(Last, print_at_end.run_if(start::at_end))
        .add_systems(EguiPrimaryContextPass, show_state);
    register(&mut app);
    if run.is_headless() {
        let folder = join.pictures.clone();
        app.add_plugins(PicturePlugin { folder, size: UVec2::new(960, 540), ..default() });
    } else {
        app.add_systems(Update, steer);
    }
    // All servers have the same world, so their caches are the same.
    let trust = Trust::FirstUse(join.caches.join("known_servers"));
    let connection = ServerConnection::new(first.to_string(), &join.name, trust).with_radius(RADIUS);
    let connection = others.iter().fold(connection, |connection, other| connection.or(other.to_string()));
    app.world_mut().spawn(connection.with_secret([join.town]).with_caches(join.caches.join(&join.name), MAX_CACHED));
    app.world_mut().spawn((Camera3d::default(), haze(70.0..150.0), Transform::default(), PrimaryEguiContext));
    app.insert_resource(join);
    Ok(app)
}

/// The own player, if it is known, and the others in view.
#[derive(Resource, Default)]
struct Near {
    own: Option<Body>,
    others: Vec<Body>,
}

fn look_around(players: Query<(&Mirror, &Player, &Gems)>, own: Single<&ServerConnection>, mut near: ResMut<Near>) {
    *near = Near::default();
    for (mirror, player, gems) in &players {
        let body = Body { name: player.name().to_owned(), block: mirror.current.0.block, gems: gems.0.clone() };
        match own.player() == Some(mirror.id) {
            true => near.own = Some(body),
            false => near.others.push(body),
        }
    }
}

/// The camera follows the player.
fn follow(own: Single<&Position, With<ServerConnection>>, mut camera: Single<&mut Transform, With<Camera3d>>) {
    let looked_at = own.relative_to(BlockPos::default()) + Vec3::Y * 2.0;
    **camera = Transform::from_translation(looked_at + BEHIND).looking_at(looked_at, Vec3::Y);
}

/// Each player is a box with a head.
fn body(player: &Player) -> Vec<Part> {
    let hue = player.name().bytes().fold(0, |sum, byte| (31 * sum + u32::from(byte)) % 360);
    vec![(Vec3::new(0.9, 1.5, 0.6), Color::hsl(hue as f32, 0.75, 0.5)), (Vec3::splat(0.7), Color::WHITE)]
}

/// The server on which the player is, and when it was last in the world.
#[derive(Resource)]
struct Played {
    server: Option<String>,
    since: Instant,
}

/// Reports where the player is.
fn hear(mut played: ResMut<Played>, mut news: MessageReader<ConnectionNews>, mut exit: MessageWriter<AppExit>) {
    let Played { server: on, since } = &mut *played;
    for news in news.read() {
        if on.is_some() {
            *since = Instant::now();
        }
        match news {
            ConnectionNews::Plays { player, server, .. } => {
                *on = Some(server.clone());
                if let Ok(server) = server.parse() {
                    Event::Playing { server, id: *player, seconds: since.elapsed().as_secs_f64() }.print();
                }
            }
            ConnectionNews::Moves { to, .. } => {
                *on = None;
                to.parse().into_iter().for_each(|to| Event::Sent { to }.print());
            }
            ConnectionNews::Lost { reason, .. } => {
                *on = None;
                Event::Lost(reason.clone()).print();
            }
            ConnectionNews::Refused { reason, .. } => {
                Event::Refused(reason.clone()).print();
                say(reason);
                exit.write(AppExit::error());
            }
        }
    }
}

/// Shows who plays where, and what it has.
fn show_state(mut contexts: EguiContexts, played: Res<Played>, near: Res<Near>, join: Res<Join>) -> Result {
    egui::Window::new("realm").title_bar(false).anchor(egui::Align2::LEFT_TOP, [12.0, 12.0]).resizable(false).show(
        contexts.ctx_mut()?,
        |ui| {
            ui.heading(match &played.server {
                Some(server) => format!("{} plays on {server}", join.name),
                None => format!("{} looks for its server", join.name),
            });
            for Body { name, block, gems } in near.own.iter().chain(&near.others) {
                ui.label(format!("{name} at {}, {}: {}", block.x, block.z, gems.join(", ")));
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
    mut wishes: MessageWriter<ToTheServer<Wish>>,
) {
    let Some(own) = &near.own else { return };
    let ways = [(KeyCode::KeyW, 0, -1), (KeyCode::KeyS, 0, 1), (KeyCode::KeyA, -1, 0), (KeyCode::KeyD, 1, 0)];
    let pressed = ways.iter().filter(|(key, ..)| keys.pressed(*key));
    let (x, z) = pressed.fold((0, 0), |(x, z), (_, along_x, along_z)| (x + along_x, z + along_z));
    if (x, z) != (0, 0) && time.elapsed() > *last + OFTEN {
        *last = time.elapsed();
        wishes.write(ToTheServer(Wish::Go { x: own.block.x + x * AHEAD, z: own.block.z + z * AHEAD }));
    }
    let distance = |body: &&Body| body.block.x.abs_diff(own.block.x).max(body.block.z.abs_diff(own.block.z));
    if keys.just_pressed(KeyCode::KeyG)
        && let Some(nearest) = near.others.iter().min_by_key(distance)
    {
        wishes.write(ToTheServer(Wish::Give { to: nearest.name.clone() }));
    }
}

/// Does what the scenario says.
fn obey(
    mut orders: ResMut<Orders>,
    mut wanted: Local<Option<(String, Watch)>>,
    mut wishes: MessageWriter<ToTheServer<Wish>>,
    view: Option<Single<&ChunkSyncClient>>,
    meshes: Res<ChunkMeshProgress>,
    mut pictures: Option<ResMut<Pictures>>,
    (run, time): (Res<Run>, Res<Time<Real>>),
    mut exit: MessageWriter<AppExit>,
) {
    match orders.next() {
        Some(Order::Wish(wish)) => drop(wishes.write(ToTheServer(wish))),
        Some(Order::Picture { name }) => *wanted = Some((name, Watch::default())),
        Some(Order::Leave) => drop(exit.write(AppExit::Success)),
        None => {}
    }
    if wanted.as_ref().is_some_and(|(_, watch)| watch.elapsed() > PATIENCE) {
        fail("the picture takes too long", &mut exit);
    }
    if let Some((name, watch)) = &mut *wanted
        && watch.is_calm(view.is_some_and(|view| view.is_complete()) && meshes.is_done())
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

fn report(near: Res<Near>, played: Res<Played>, time: Res<Time<Real>>, mut last: Local<Duration>) {
    if let Some(own) = near.own.clone().filter(|_| played.server.is_some() && time.elapsed() > *last + REPORT) {
        *last = time.elapsed();
        Event::Own(own).print();
    }
}
