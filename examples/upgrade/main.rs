//! Upgrades a game's own objects in an export: all keys with one ending get another ending and new values.
//!
//! ```sh
//! cargo run --example upgrade                    # makes a file to show it with
//! cargo run --example upgrade -- world.objects   # the first file of an export, and those that belong to it
//! ```
//!
//! The format of a value is part of its key, so both formats can be in one file and are easy to tell apart. The upgrade can be
//! killed at any time. The next run continues, because upgraded keys already have the new ending.
//!
//! | file | what it shows |
//! |---|---|
//! | `main.rs` | the files of an export, and exit codes |
//! | `arguments.rs` | the command line |
//! | `claims.rs` | the upgrade of this game's values |
//! | `keys.rs` | the upgrade of any keys, in atomic batches |
//! | `rehearsal.rs` | a sample file |
//! | `../shared/progress.rs` | progress as a bar or as lines |
//! | `../shared/tell.rs` | the common arguments, error messages and figures |

mod arguments;
mod claims;
mod keys;
#[path = "../shared/progress.rs"]
mod progress;
mod rehearsal;
#[path = "../shared/tell.rs"]
mod tell;

use bevy_terrane::object_store::{ObjectStore, ObjectStoreError, ObjectStoreOptions};
use bevy_terrane::storage::upkeep::export_file;
use progress::Progress;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

pub use arguments::Arguments;
pub use keys::{Endings, Outcome, upgrade};

/// The maximum number of unchanged objects that are listed. Further ones are only counted.
const MAX_NAMED: usize = 20;

fn main() -> ExitCode {
    let arguments: Arguments = tell::arguments();
    tell::end(run(&arguments).map(|outcome| {
        for (key, reason) in outcome.left.iter().take(MAX_NAMED) {
            tell::say(format_args!("warning: {key} stays as it is: {reason}"));
        }
        arguments.run.print(&outcome);
        match outcome {
            Outcome { stopped: true, .. } => ExitCode::from(124),
            Outcome { left, .. } if !left.is_empty() => ExitCode::from(3),
            _ => ExitCode::SUCCESS,
        }
    }))
}

/// Runs the tool, without the command line and the exit code.
pub fn run(arguments: &Arguments) -> Result<Outcome, String> {
    let endings = Endings::new(&arguments.from, &arguments.to)?;
    let began = Instant::now();
    let is_over = || arguments.run.is_over(began.elapsed());
    let outcome = match &arguments.file {
        Some(file) => upgrade_all(file, endings, is_over),
        None => rehearsal::rehearse(endings, is_over),
    };
    outcome.map_err(|error| error.to_string())
}

/// Upgrades all files of an export.
fn upgrade_all(first: &Path, endings: Endings<'_>, is_over: impl Fn() -> bool) -> Result<Outcome, ObjectStoreError> {
    let (mut all, mut of_first) = (Outcome::default(), None);
    // The first file must exist.
    for path in (1..).map(|number| export_file(first, number)).take_while(|path| path == first || path.exists()) {
        if of_first.is_some() && is_over() {
            all.stopped = true;
            break;
        }
        // Accepts any kind of object store.
        let signature = ObjectStore::signature_of(&path)?;
        let mut store = ObjectStore::open(&path, &signature, ObjectStoreOptions::default())?;
        let export = store.read("export")?.map(|object| object.data);
        if *of_first.get_or_insert_with(|| export.clone()) != export {
            tell::say(format_args!("warning: {} is of another export, and stays as it is", path.display()));
            break;
        }
        let mut progress = Progress::new("[{wide_bar}] {msg}, {eta} left");
        let Outcome { upgraded, left, stopped } = upgrade(&mut store, endings, claims::claim_of, |done, all| {
            if progress.is_due() {
                progress.show(done as u64, all as u64, format!("{done} of {all} objects"));
            }
            if is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        store.close()?;
        tell::clear();
        all.upgraded += upgraded;
        all.left.extend(left);
        all.stopped = stopped;
        if stopped {
            break;
        }
    }
    Ok(all)
}
