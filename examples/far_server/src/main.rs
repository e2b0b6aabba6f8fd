//! A server without a window or a renderer: it generates land around two players, and sends each of them what is seen from afar.

use bevy::app::ScheduleRunnerPlugin;
use bevy::log::LogPlugin;
use bevy_terrane::prelude::*;
use bevy_terrane::view::{FarColumnChanged, FarColumns, FarView};
use std::process::ExitCode;
use std::time::Duration;

const HELP: &str = "far_server: a server of bevy_terrane without a renderer\n\n\
                    --seconds N  end after N seconds; otherwise Ctrl-C saves the world and ends\n\
                    --headless   accepted, and always so\n\
                    --json       print the figures of each second as JSON, one line per player\n\
                    --help       print this\n";
/// How far the players see, in columns.
const RADIUS: u32 = 32;

fn main() -> ExitCode {
    let (mut run_for, mut json) = (None, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--headless" => {}
            "--json" => json = true,
            "--seconds" => match arguments.next().and_then(|text| text.parse().ok()) {
                Some(seconds) if seconds > 0 => run_for = Some(Duration::from_secs(seconds)),
                _ => {
                    eprintln!("error: --seconds needs a number of 1 or more; --help lists all arguments");
                    return ExitCode::from(2);
                }
            },
            "--help" | "-h" => {
                print!("{HELP}");
                return ExitCode::SUCCESS;
            }
            other => {
                eprintln!("error: unknown argument {other:?}; --help lists all arguments");
                return ExitCode::from(2);
            }
        }
    }
    let frame = Duration::from_secs_f64(1.0 / 20.0);
    let mut app = App::new();
    app.add_plugins((MinimalPlugins.set(ScheduleRunnerPlugin::run_loop(frame)), LogPlugin::default()))
        .add_plugins(TerranePlugin::at("target/examples/far_server/world"))
        .insert_resource(Arguments { run_for, json })
        .add_systems(Startup, start)
        .add_systems(Update, (send, report, end));
    match app.run() {
        AppExit::Success => ExitCode::SUCCESS,
        AppExit::Error(code) => ExitCode::from(code.get()),
    }
}

#[derive(Resource)]
struct Arguments {
    run_for: Option<Duration>,
    json: bool,
}

/// A player of a real server would come with a connection.
fn start(mut commands: Commands, dimensions: Res<Dimensions>) {
    commands.spawn(Dimension::new("overworld", Hills::seeded(12)));
    for x in [0.0, 1_500.0] {
        commands.spawn((
            Name::new(format!("player at {x}")),
            // Only the nearest columns are loaded and tick. The land beyond is generated, and kept in the store.
            Viewer::in_dimension(dimensions.id("overworld")).with_radius(4).with_generation_radius(RADIUS),
            FarView::new().with_radius(RADIUS).with_bytes_per_second(64 << 10),
            Transform::from_xyz(x, 80.0, 0.0),
        ));
    }
}

/// The bytes that each player was sent. A real server writes the summaries to the player's connection.
#[derive(Component, Default)]
struct Sent(u64);

fn send(mut commands: Commands, mut changed: MessageReader<FarColumnChanged>, mut sent: Query<&mut Sent>) {
    for change in changed.read() {
        match sent.get_mut(change.listener) {
            Ok(mut sent) => sent.0 += change.bytes,
            Err(_) => drop(commands.entity(change.listener).try_insert(Sent(change.bytes))),
        }
    }
}

fn report(
    players: Query<(Entity, &Name, &Sent)>,
    far: Res<FarColumns>,
    arguments: Res<Arguments>,
    time: Res<Time>,
    mut last: Local<u64>,
) {
    let second = time.elapsed().as_secs();
    if second > *last {
        *last = second;
        for (player, name, sent) in &players {
            let (columns, bytes) = (far.len(player), sent.0);
            match arguments.json {
                true => println!(r#"{{"second":{second},"player":"{name}","columns":{columns},"bytes":{bytes}}}"#),
                false => info!("{name} sees {columns} columns, sent in {} KiB", bytes / 1024),
            }
        }
    }
}

fn end(time: Res<Time<Real>>, arguments: Res<Arguments>, mut exit: MessageWriter<AppExit>) {
    if arguments.run_for.is_some_and(|limit| time.elapsed() >= limit) {
        exit.write(AppExit::Success);
    }
}
