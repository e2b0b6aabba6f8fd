//! The game: an arena is created once, then demolished and reverted, round after round.

use crate::arguments::Arguments;
use crate::coliseum::{AREA, ARENA, DIMENSION};
use crate::fight::{self, Bot, Random};
use crate::start::{self, fail};
use crate::tell::{Run, say};
use crate::watch::Watch;
use bevy_terrane::chunk::Column;
use bevy_terrane::prelude::*;
use bevy_terrane::view::{
    Arena, ArenaCreated, ArenaRefused, ArenaReverted, ArenaState, ArenaStatus, Jobs, PublishedColumns,
};
use serde::Serialize;
use std::fmt::{self, Display, Formatter};
use std::time::{Duration, Instant};
use terrane_dev::Pictures;
use terrane_render::ChunkMeshProgress;

/// The time between two explosions.
const FUSE: Duration = Duration::from_millis(25);
/// The pause for viewing the arena in a window.
const BREAK: Duration = Duration::from_secs(3);
/// The time limit of a step.
const PATIENCE: Duration = Duration::from_secs(300);

pub struct RoundsPlugin;

impl Plugin for RoundsPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<Round>()
            .add_systems(Update, (handle_answers, play).chain())
            .add_systems(Last, print_at_end.run_if(start::at_end));
    }
}

/// The current step of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    /// The ground is being generated or loaded.
    #[default]
    Ground,
    /// The arena is being created, or reverted for the first round.
    Opening,
    Before,
    Fight,
    Ruins,
    Revert,
    After,
}

#[derive(Resource, Default)]
struct Round {
    step: Step,
    watch: Watch,
    explosions: u32,
    /// The original blocks of the arena.
    before: Vec<Column>,
    /// The start of the first round.
    began: Option<Instant>,
    figures: Figures,
}

#[derive(Default, Serialize)]
struct Figures {
    rounds: u32,
    explosions: u32,
    columns_torn: usize,
    chunks_reverted: usize,
    revert_seconds: f64,
    /// Columns that differ from the original.
    columns_lost: usize,
}

impl Display for Figures {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { rounds, explosions, columns_torn, chunks_reverted, revert_seconds, columns_lost } = self;
        writeln!(f, "rounds: {rounds}; {explosions} explosions tore {columns_torn} columns")?;
        writeln!(f, "{chunks_reverted} chunks were reverted in {:.0} ms", revert_seconds * 1e3)?;
        write!(f, "{columns_lost} columns differ from before")
    }
}

impl Round {
    fn go_on(&mut self, step: Step) {
        (self.step, self.watch) = (step, Watch::default());
    }
}

/// Handles the results of arena orders.
fn handle_answers(
    mut round: ResMut<Round>,
    mut created: MessageReader<ArenaCreated>,
    mut reverted: MessageReader<ArenaReverted>,
    mut refused: MessageReader<ArenaRefused>,
    mut exit: MessageWriter<AppExit>,
) {
    for ArenaCreated { name, outcome } in created.read() {
        say(format_args!("arena {name} is captured and stored: {} columns", outcome.columns.len()));
        round.go_on(Step::Before);
    }
    for ArenaReverted { name, took, outcome, error } in reverted.read() {
        let chunks: usize = outcome.columns.iter().map(|column| column.changed.len()).sum();
        say(format_args!("arena {name} is reverted: {chunks} chunks in {:.0} ms", took.as_secs_f64() * 1e3));
        if let Some(error) = error {
            fail(error, &mut exit);
        }
        if round.step == Step::Opening {
            round.go_on(Step::Before);
        } else {
            round.figures.chunks_reverted += chunks;
            round.figures.revert_seconds += took.as_secs_f64();
            round.go_on(Step::After);
        }
    }
    for ArenaRefused { error, .. } in refused.read() {
        fail(error, &mut exit);
    }
}

fn play(
    mut commands: Commands,
    jobs: Res<Jobs>,
    mut round: ResMut<Round>,
    mut random: ResMut<Random>,
    dimensions: Res<Dimensions>,
    arenas: Query<(&Arena, &ArenaStatus)>,
    bots: Query<&Bot, With<Mirror>>,
    meshes: Res<ChunkMeshProgress>,
    columns: Res<PublishedColumns>,
    (arguments, run): (Res<Arguments>, Res<Run>),
    mut pictures: Option<ResMut<Pictures>>,
    mut exit: MessageWriter<AppExit>,
) {
    let dimension = dimensions.id(DIMENSION);
    let round = &mut *round;
    let elapsed = round.watch.elapsed();
    if elapsed > PATIENCE {
        fail(format_args!("{:?} takes too long", round.step), &mut exit);
    }
    let area = || AREA.columns().filter_map(|column| columns.column(dimension, column));
    let is_there = area().count() as u128 == AREA.column_area().columns();
    let is_calm = round.watch.is_calm(is_there && meshes.is_done());
    let is_over = round.began.is_some_and(|began| run.is_over(began.elapsed()));
    let changed = || area().zip(&round.before).filter(|(now, before)| now != before).count();
    match round.step {
        Step::Ground if is_calm => {
            match arenas.iter().find(|(arena, _)| arena.name == ARENA) {
                Some(_) => jobs.revert_arena(ARENA),
                None => {
                    fight::spawn_bots(&mut commands, dimension, &arguments);
                    jobs.create_arena(Arena::new(ARENA, dimension, AREA));
                }
            }
            round.go_on(Step::Opening);
        }
        Step::Before if is_calm && show(&mut pictures, "before", elapsed) => {
            round.before = area().cloned().collect();
            say(format_args!("{} bots run", bots.iter().count()));
            round.explosions = 0;
            round.began.get_or_insert_with(Instant::now);
            round.go_on(Step::Fight);
        }
        Step::Fight if elapsed >= FUSE * round.explosions => {
            fight::explode(&mut commands, dimension, &mut random);
            round.explosions += 1;
            if round.explosions == arguments.explosions || is_over {
                round.go_on(Step::Ruins);
            }
        }
        Step::Ruins if is_calm && show(&mut pictures, "ruins", elapsed) => {
            let (torn, left, explosions) = (changed(), bots.iter().count(), round.explosions);
            say(format_args!("{explosions} explosions: {torn} columns are torn, {left} bots are left"));
            // The previous revert may have ended only just now.
            if arenas.iter().any(|(arena, status)| arena.name == ARENA && status.state == ArenaState::Ready) {
                round.figures.rounds += 1;
                round.figures.explosions += explosions;
                round.figures.columns_torn += torn;
                jobs.revert_arena(ARENA);
                round.go_on(Step::Revert);
            }
        }
        Step::After if is_calm && show(&mut pictures, "after", elapsed) => {
            let changed = changed();
            say(format_args!("{changed} columns differ from before, {} bots run", bots.iter().count()));
            round.figures.columns_lost += changed;
            if pictures.is_some() && (is_over || run.seconds.is_none()) {
                exit.write(if round.figures.columns_lost == 0 { AppExit::Success } else { AppExit::error() });
            }
            round.go_on(Step::Before);
        }
        _ => {}
    }
}

/// Takes a picture without a window, or pauses for viewing with one. Returns `true` when that is done.
fn show(pictures: &mut Option<ResMut<Pictures>>, name: &str, elapsed: Duration) -> bool {
    match pictures {
        Some(pictures) => pictures.take(name),
        None => elapsed >= BREAK,
    }
}

fn print_at_end(round: Res<Round>, run: Res<Run>) {
    if round.began.is_some() {
        run.print(&round.figures);
    }
}
