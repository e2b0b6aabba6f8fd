//! Maintains stored worlds from the command line.
//!
//! `terrane --help` lists the commands. `terrane_storage::upkeep` does the work; this program adds arguments, progress
//! and messages.
//!
//! | file | content |
//! |---|---|
//! | `main.rs` | exit codes |
//! | `arguments.rs` | the command line |
//! | `display.rs` | progress as a bar, or as lines |
//! | `storage.rs` | worlds in folders and in databases |
//! | `outcome.rs`, `figures.rs` | the output at the end |
//! | `info.rs`, `inspect.rs`, `verify.rs`, `copy.rs`, `backup.rs`, `prune.rs`, `export.rs` | the commands |
//! | `schematic.rs`, `schematic_world.rs` | showing schematics; importing and exporting them |

mod arguments;
mod backup;
mod copy;
mod display;
mod export;
mod figures;
mod info;
mod inspect;
mod outcome;
mod prune;
mod schematic;
mod schematic_world;
mod storage;
mod verify;

use clap::Parser;
use outcome::End;
use std::process::ExitCode;
use std::time::Duration;
use storage::Opening;
use terrane_objects::work::Stop;

pub use arguments::{Arguments, Command, SchematicCommand};
pub use outcome::{Outcome, Result};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // The libraries log what they wait for.
    tracing_subscriber::fmt().with_writer(std::io::stderr).without_time().with_target(false).init();
    let stop = Stop::default();
    if let Err(error) = ctrlc::set_handler(interruption(stop.clone(), arguments.command.only_looks())) {
        eprintln!("warning: Ctrl-C will stop this at once: {error}");
    }
    match run(&arguments, &stop) {
        Ok(outcome) => outcome.print(arguments.json),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.code())
        }
    }
}

/// The handler of Ctrl-C. Some commands cannot check `stop` all the time: a database is backed up, restored and compacted in
/// long steps.
fn interruption(stop: Stop, at_once: bool) -> impl FnMut() {
    move || {
        if stop.is_stopped() {
            eprintln!("stopped with unfinished work: run the same command again to finish or repeat it");
        } else if !at_once {
            stop.stop();
            eprintln!("stopping at the next safe moment; Ctrl-C again stops at once");
            return;
        }
        end_at_once(End::Stopped.code().into());
    }
}

/// Exits without `std::process::exit`, which waits until the database's threads have ended.
#[cfg(unix)]
fn end_at_once(code: i32) -> ! {
    signal_hook::low_level::exit(code)
}

#[cfg(not(unix))]
fn end_at_once(code: i32) -> ! {
    std::process::exit(code)
}

/// Runs the program, without the command line and the exit code. It ends at the next safe moment once `stop` is set.
pub fn run(arguments: &Arguments, stop: &Stop) -> Result<Outcome> {
    let opening = &Opening { longest: Duration::from_secs(arguments.wait), stop };
    match run_command(&arguments.command, opening) {
        // It may have waited for a world.
        Err(error) if stop.is_stopped() => Ok(Outcome::stopped(&error.to_string())),
        done => done,
    }
}

fn run_command(command: &Command, opening: &Opening<'_>) -> Result<Outcome> {
    match command {
        Command::Info { world } => info::run(world, opening),
        Command::Inspect { world, what } => inspect::run(world, what, opening),
        Command::Verify { world } => verify::run(world, opening),
        Command::Salvage { world, new } => copy::salvage(world, new, opening.stop),
        Command::Copy { world, new } => copy::copy(world, new, opening),
        Command::Backup { world, folder, keep } => backup::back_up(world, folder, *keep, opening),
        Command::Restore { folder, world, number, list } => match (world, list) {
            (Some(world), false) => backup::restore(folder, world, *number, opening.stop),
            _ => backup::list(folder),
        },
        Command::Prune(arguments) => prune::run(arguments, opening),
        Command::Compact { world } => prune::compact(world, opening),
        Command::Export(arguments) => export::export(arguments, opening),
        Command::Import(arguments) => export::import(arguments, opening),
        Command::Schematic { what } => match what {
            SchematicCommand::Info { file } => schematic::info(file, opening.stop),
            SchematicCommand::Export(arguments) => schematic_world::export(arguments, opening),
            SchematicCommand::Import(arguments) => schematic_world::import(arguments, opening),
        },
    }
}
