//! An app without a window that runs pre-generations until they end.

use super::arguments::Arguments;
use super::display::Display;
use super::ground;
use super::summary::{Record, Summary};
use super::tell::say;
use bevy::app::ScheduleRunnerPlugin;
use bevy_terrane::prelude::*;
use bevy_terrane::view::{ControlJob, JobOrder, JobProgress, JobState, Pregeneration, SaveFailed, WorldStatistics};
use std::time::Duration;

/// The time between two checks of the progress.
const FRAME: Duration = Duration::from_millis(50);

/// The error that ends the run, if any.
#[derive(Resource, Default)]
struct Trouble(Option<String>);

/// Opens the world, generates, and returns when everything is saved.
pub fn run(arguments: &Arguments) -> Result<Summary, String> {
    if arguments.area().is_none() && !arguments.world.exists() {
        return Err(nothing_to_do(arguments));
    }
    let dimension = ground::dimension(arguments)?;
    let record = Record::default();
    let mut app = App::new();
    let mut plugin = TerranePlugin::at(&arguments.world);
    if let Some(threads) = arguments.threads {
        plugin.threads.generation = threads.into();
    }
    app.add_plugins((MinimalPlugins.set(ScheduleRunnerPlugin::run_loop(FRAME)), plugin));
    if let Some(failure) = app.world().get_resource::<WorldFailure>() {
        return Err(failure.to_string());
    }
    app.world_mut().spawn(dimension);
    if let Some(area) = arguments.area() {
        let dimension = app.dimension_id(&arguments.dimension);
        app.world_mut().spawn(Pregeneration { dimension, area });
    }
    app.insert_resource(record.clone())
        .insert_resource(arguments.clone())
        .insert_resource(Display::new(&arguments.world))
        .init_resource::<Trouble>()
        .add_systems(Update, (begin, fail, show, complain, end).chain())
        // Runs after everything is saved.
        .add_systems(Last, sum_up.after(ViewSystems::Send).run_if(on_message::<AppExit>));
    let _ = app.run();
    record.take()
}

fn nothing_to_do(arguments: &Arguments) -> String {
    let world = arguments.world.display();
    format!("the world {world} has no pre-generation to continue; give a --radius, or --from and --to")
}

/// Starts the job. Without an area there must be an unfinished one.
fn begin(
    mut opened: MessageReader<DimensionOpened>,
    jobs: Query<&Pregeneration>,
    arguments: Res<Arguments>,
    mut trouble: ResMut<Trouble>,
) {
    for DimensionOpened { stored_columns, .. } in opened.read() {
        let world = arguments.world.display();
        say(format_args!("{world}: {stored_columns} columns are stored"));
        for job in &jobs {
            say(format_args!("generating a {}", job.area));
        }
        if jobs.is_empty() {
            trouble.0 = Some(nothing_to_do(&arguments));
        }
    }
}

fn fail(mut failed: MessageReader<DimensionFailed>, arguments: Res<Arguments>, mut trouble: ResMut<Trouble>) {
    for DimensionFailed { error, .. } in failed.read() {
        trouble.0 = Some(format!("the world {} cannot be continued: {error}", arguments.world.display()));
    }
}

fn show(jobs: Query<(&Pregeneration, &JobProgress)>, mut display: ResMut<Display>) {
    let current = jobs.iter().find(|(_, progress)| progress.state == JobState::Running);
    if let Some((_, progress)) = current.or_else(|| jobs.iter().last()) {
        display.show(progress);
    }
}

fn complain(
    mut columns: MessageReader<ColumnFailed>,
    mut saves: MessageReader<SaveFailed>,
    mut display: ResMut<Display>,
) {
    for ColumnFailed { error, .. } in columns.read() {
        display.complain(format_args!("left out: {error}"));
    }
    for SaveFailed { error, .. } in saves.read() {
        display.complain(format_args!("saving failed and will be retried: {error}"));
    }
}

/// Resumes a job that was paused when the world was closed, since that is the purpose of the tool.
fn end(
    jobs: Query<(Entity, &JobProgress), With<Pregeneration>>,
    mut orders: MessageWriter<ControlJob>,
    statistics: Res<WorldStatistics>,
    (trouble, arguments): (Res<Trouble>, Res<Arguments>),
    mut over_at: Local<Option<Duration>>,
    mut exit: MessageWriter<AppExit>,
) {
    for (pregeneration, progress) in &jobs {
        if progress.state == JobState::Paused {
            orders.write(ControlJob { entity: pregeneration, order: JobOrder::Resume });
        }
    }
    if trouble.0.is_some() {
        exit.write(AppExit::error());
    } else if !jobs.is_empty() && jobs.iter().all(|(_, progress)| progress.state.is_over()) {
        // The next statistics count everything.
        if statistics.clock > *over_at.get_or_insert(statistics.clock) {
            exit.write(AppExit::Success);
        }
    } else if arguments.run.is_over(statistics.clock) {
        exit.write(AppExit::Success);
    }
}

fn sum_up(
    jobs: Query<(&Pregeneration, &JobProgress)>,
    statistics: Res<WorldStatistics>,
    (trouble, arguments): (Res<Trouble>, Res<Arguments>),
    record: Res<Record>,
    mut display: ResMut<Display>,
) {
    display.end();
    record.set(match &trouble.0 {
        Some(trouble) => Err(trouble.clone()),
        None => Ok(Summary::new(jobs.iter(), &statistics, &display, &arguments.run)),
    });
}
