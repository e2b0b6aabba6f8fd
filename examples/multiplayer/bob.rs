//! Bob, who plays by himself, and the run with all in one process.

use crate::{Chat, FOLDER, Say, client, connect, register, server};
use bevy::app::ScheduleRunnerPlugin;
use bevy_egui::PrimaryEguiContext;
use bevy_terrane::prelude::*;
use bevy_terrane::view::ChunkSyncClient;
use std::f32::consts::PI;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use terrane_dev::{DevPlugins, FirstPerson, PicturePlugin, Pictures};
use terrane_net::{ClientPlugin, ToTheServer};
use terrane_render::ChunkMeshProgress;

/// The longest wait for a picture.
const PATIENCE: Duration = Duration::from_secs(180);

/// Runs a server and Bob beside Ada's window. Without a window, a picture is taken of what Ada sees, and she leaves.
pub fn play(window: DevPlugins) -> Result<AppExit> {
    // A port that is free.
    let address = UdpSocket::bind("127.0.0.1:0")?.local_addr()?.to_string();
    let over = Arc::new(AtomicBool::new(false));
    let run = |build: fn(&str) -> Result<App>| {
        let (over, address) = (over.clone(), address.clone());
        thread::spawn(move || {
            let end = move |mut exit: MessageWriter<AppExit>| {
                if over.load(Ordering::Relaxed) {
                    exit.write(AppExit::Success);
                }
            };
            build(&address).map(|mut app| app.add_systems(Update, end).run()).map_err(|error| error.to_string())
        })
    };
    let threads = [run(server), run(bob)];
    let headless = window.headless;
    let mut ada = client(&address, "Ada", DevPlugins { pictures: None, ..window });
    if headless {
        ada.add_plugins(PicturePlugin { folder: FOLDER.into(), ..default() }).add_systems(Update, take_picture);
        ada.add_observer(|camera: On<Add, Camera3d>, mut commands: Commands| {
            commands.entity(camera.entity).insert(PrimaryEguiContext);
        });
    }
    let exit = ada.run();
    over.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().map_err(|_| "a thread has panicked")??;
    }
    Ok(exit)
}

/// A client without a window.
fn bob(address: &str) -> Result<App> {
    let mut app = App::new();
    let frames = ScheduleRunnerPlugin::run_loop(Duration::from_millis(25));
    app.add_plugins((MinimalPlugins.set(frames), TerranePlugin::in_memory(), BodyPlugin, ClientPlugin));
    app.add_systems(Update, play_by_itself);
    register(&mut app);
    app.world_mut().spawn(connect(address, "Bob").with_radius(3));
    Ok(app)
}

/// Bob walks in circles, never far from another player. Now and then, he builds a column beside him, or digs one away, and says so.
fn play_by_itself(
    mut bob: Single<(&OwnBody, &Position, &mut Intent)>,
    players: Query<&Mirror, With<Player>>,
    (time, types, blocks): (Res<Time>, Res<BlockTypes>, PublishedBlocks),
    mut edits: MessageWriter<SetBlock>,
    mut say: MessageWriter<ToTheServer<Say>>,
    mut next: Local<Duration>,
) {
    let (body, at, intent) = &mut *bob;
    let place = at.block.offset(3, 0, 0);
    let Some(ground) = blocks.surface(at.dimension, place.x, place.z).filter(|_| body.state().is_some()) else {
        return;
    };
    let ways = players.iter().filter(|mirror| mirror.id != body.id()).map(|mirror| way(at, mirror));
    match ways.min_by(|one, other| one.length().total_cmp(&other.length())) {
        Some(way) if way.length() > 6.0 => intent.look.x = yaw(way),
        _ => intent.look.x -= time.delta_secs(),
    }
    intent.walk(1.0, 0.0);
    intent.jumps = true;
    if time.elapsed() < *next {
        return;
    }
    *next = time.elapsed() + Duration::from_secs(4);
    let stone = types.id("terrane:stone").unwrap_or_default();
    let builds = blocks.block(at.dimension, ground) != Some(stone);
    let heights = if builds { 1..=3 } else { -2..=0 };
    let block = if builds { stone } else { BlockId::AIR };
    edits.write_batch(heights.map(|up| SetBlock { dimension: at.dimension, position: ground.offset(0, up, 0), block }));
    let text = if builds { "I have built a column" } else { "I have dug one away" }.to_owned();
    say.write(ToTheServer(Say { name: String::new(), text }));
}

/// The way to another player, in blocks.
fn way(from: &Position, to: &Mirror) -> Vec3 {
    to.current.0.relative_to(from.block) - from.relative_to(from.block)
}

/// The look in this direction.
fn yaw(way: Vec3) -> f32 {
    f32::atan2(way.x, way.z) + PI
}

/// Once Bob is there and has said something, Ada looks at him, and leaves.
fn take_picture(
    mut ada: Single<(&ChunkSyncClient, &Position, &mut Intent), With<FirstPerson>>,
    bobs: Query<(&Mirror, &Player)>,
    (chat, meshes): (Res<Chat>, Res<ChunkMeshProgress>),
    (mut pictures, time): (ResMut<Pictures>, Res<Time<Real>>),
    mut calm: Local<u32>,
    mut exit: MessageWriter<AppExit>,
) {
    let (view, place, look) = &mut *ada;
    if time.elapsed() > PATIENCE {
        error!("Bob did not come within {PATIENCE:?}");
        exit.write(AppExit::error());
    }
    let bob = bobs.iter().find(|(_, player)| player.name() == "Bob");
    let Some((bob, _)) = bob.filter(|_| view.is_complete() && meshes.is_done()) else { return };
    let has_spoken = chat.lines.iter().any(|line| line.starts_with("Bob: "));
    let way = way(place, bob);
    if *calm < 20 {
        look.look = Vec2::new(yaw(way), -0.2);
        *calm += u32::from(has_spoken && (3.0..9.0).contains(&way.length()));
    } else if pictures.take("multiplayer") {
        let progress = view.progress();
        println!("{} chunks were sent, and {} were in the cache", progress.received, progress.current);
        exit.write(AppExit::Success);
    }
}
