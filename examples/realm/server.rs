//! A server of the realm: the shared world, and a connection for each player.

use crate::FOLDER;
use crate::arguments::Serve;
use crate::game::{DIMENSION, GamePlugin, town};
use crate::protocol::{Event, Order, Orders};
use crate::start::{self, fail};
use crate::tell::Run;
use bevy::app::ScheduleRunnerPlugin;
use bevy::log::{Level, LogPlugin};
use bevy_egui::PrimaryEguiContext;
use bevy_terrane::plugin::{SaveSettings, ThreadSettings};
use bevy_terrane::prelude::*;
use bevy_terrane::storage::StorageConfig;
use bevy_terrane::view::{ServerEnded, WorldStatistics};
use std::error::Error;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;
use terrane_dev::{PicturePlugin, Pictures};
use terrane_net::{Identity, NetServer, ServerPlugin};
use terrane_overlay::{Overlay, OverlayPlugin};
use terrane_postgres::PostgresStore;

/// The radius in columns that is kept loaded around a player.
pub const RADIUS: u32 = 8;

/// Builds a listening server.
pub fn build(arguments: Serve, run: &Run) -> Result<App, Box<dyn Error>> {
    // The world names the port before the server listens at it. Another program could take it meanwhile; then this one ends with an error.
    let cannot = |error| format!("cannot listen at {}: {error}", arguments.listen);
    let address = UdpSocket::bind(arguments.listen).and_then(|socket| socket.local_addr()).map_err(cannot)?;
    let store = PostgresStore::open(&arguments.world).map_err(|error| format!("{error} (--world)"))?;
    let mut app = App::new();
    app.add_plugins(TerranePlugin {
        // Other servers tell players that they find this one here.
        storage: StorageConfig::Shared { store: Arc::new(store), address: address.to_string().into_bytes() },
        saving: SaveSettings::every(Duration::from_secs(1)),
        threads: ThreadSettings { regions: 2, generation: 1, ..default() },
        ..default()
    });
    start::check_world(&mut app, arguments.world.as_ref())?;
    if arguments.watch {
        watch(&mut app, &arguments, run)?;
    } else {
        let frames = ScheduleRunnerPlugin::run_loop(Duration::from_secs_f64(1.0 / 40.0));
        app.add_plugins(MinimalPlugins.set(frames)).add_plugins(LogPlugin { level: Level::ERROR, ..default() });
    }
    // Clients know all servers of the realm by one certificate.
    let identity = Identity::in_file(format!("{FOLDER}/identity.pem"))?;
    let mut net = ServerPlugin::new(address, DIMENSION, town(0)).with_identity(identity);
    (net.radius, net.log_ins) = (RADIUS, (300, 100));
    app.add_plugins((net, GamePlugin))
        .insert_resource(run.clone())
        .insert_resource(Orders::read())
        .add_systems(Update, (end, obey));
    app.world().get_resource::<NetServer>().ok_or("the server does not listen")?;
    Event::Listening(address).print();
    Ok(app)
}

/// Shows the overlay, which lists the servers and draws the ground of each.
fn watch(app: &mut App, arguments: &Serve, run: &Run) -> Result<(), String> {
    start::add_bevy(app, "Realm", run)?;
    app.add_plugins(OverlayPlugin).insert_resource(Overlay { visible: true, ..default() });
    if run.is_headless() {
        let folder = arguments.pictures.clone();
        app.add_plugins(PicturePlugin { folder, shows_land: false, ..default() }).add_systems(Update, select_region);
    }
    app.world_mut().spawn((Camera3d::default(), PrimaryEguiContext));
    Ok(())
}

/// The pictures have the details of a region.
fn select_region(mut overlay: ResMut<Overlay>, statistics: Res<WorldStatistics>) {
    if overlay.selected.is_none() {
        overlay.selected = statistics.regions.first().map(|region| (region.dimension, region.region));
    }
}

/// A server that the others have ended saves nothing more. Its game starts it again.
fn end(mut ended: MessageReader<ServerEnded>, time: Res<Time<Real>>, run: Res<Run>, mut exit: MessageWriter<AppExit>) {
    if ended.read().count() > 0 {
        fail("the other servers have ended this one, because it showed no life for too long", &mut exit);
    }
    if run.is_over(time.elapsed()) {
        exit.write(AppExit::Success);
    }
}

fn obey(
    mut orders: ResMut<Orders>,
    mut wanted: Local<Option<String>>,
    mut pictures: Option<ResMut<Pictures>>,
    mut exit: MessageWriter<AppExit>,
) {
    match orders.next() {
        Some(Order::Picture { name }) => *wanted = Some(name),
        Some(Order::Leave) => drop(exit.write(AppExit::Success)),
        _ => {}
    }
    if let Some((name, pictures)) = wanted.as_ref().zip(pictures.as_mut())
        && pictures.take(name)
    {
        pictures.taken.pop().into_iter().for_each(|picture| Event::Picture(picture).print());
        *wanted = None;
    }
}
