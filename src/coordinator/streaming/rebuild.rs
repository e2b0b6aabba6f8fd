//! Finds out which columns the store has of a dimension, when what it says of that is lost or damaged.
//!
//! That takes as long as it takes to read all that is stored of the dimension. So it is done on a thread of its own, and
//! the dimension is opened when that is done; others tick and are saved meanwhile. Until then the dimension waits as one
//! does whose name is taken by another that is being closed.

use crate::coordinator::dimension::Dimensions;
use crate::coordinator::dimension::spec::DimensionError;
use crate::coordinator::publish::Publisher;
use crate::coordinator::threads::Threads;
use crate::coordinator::threads::beside::Place;
use crate::coordinator::threads::work_error::WorkError;
use crate::space::DimensionId;
use crate::storage::{StoreError, WorldStore};
use crate::work::{Progress, Stop};
use bevy::prelude::*;
use std::fmt;
use std::mem;
use std::time::{Duration, Instant};

/// The time between two lines in the log about a search.
const REPORT_PERIOD: Duration = Duration::from_secs(5);

/// The search for the stored columns of a dimension.
struct Search {
    name: String,
    dimension: DimensionId,
    stop: Stop,
}

impl Search {
    /// The stored columns; `None` if it was stopped.
    fn run(self, store: &WorldStore, is_app_ending: &Stop) -> Result<Option<u64>, StoreError> {
        let Self { name, dimension, stop } = self;
        let began = Instant::now();
        let mut told = began;
        store.rebuild_tiles(dimension, |progress| {
            if told.elapsed() >= REPORT_PERIOD {
                told = Instant::now();
                info!(
                    "dimension {name:?}: searching for its columns: {}",
                    Report { progress: *progress, elapsed: began.elapsed() }
                );
            }
            stop.go_on()?;
            is_app_ending.go_on()
        })
    }
}

/// How far a search is, as the log tells it.
struct Report {
    progress: Progress,
    elapsed: Duration,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Progress { done: entries, fraction, .. } = self.progress;
        let rate = entries as f64 / self.elapsed.as_secs_f64().max(f64::EPSILON);
        write!(f, "{entries} entries read, {rate:.0} a second")?;
        if let (Some(fraction), Some(left)) = (fraction, self.progress.time_left(self.elapsed)) {
            write!(f, ", about {:.0} % done, {:.0} s left", fraction * 100.0, left.as_secs_f64())?;
        }
        Ok(())
    }
}

/// Begins to search for the columns of a dimension, which waits until that is done.
pub fn rebuild(dimension: DimensionId, name: &str, dimensions: &mut Dimensions, threads: &mut Threads) {
    warn!("dimension {name:?}: the graph of its stored columns is lost or damaged, and is made anew from the columns");
    let (stop, ending, name) = (Stop::default(), threads.ending(), name.to_owned());
    let search = Search { name: name.clone(), dimension, stop: stop.clone() };
    dimensions.rebuilding.insert(name.clone(), stop);
    threads.ask(
        Place::Beside("terrane rebuild"),
        move |store, _| search.run(store, &ending).map_err(WorkError::from),
        |world, columns| {
            world.resource_mut::<Dimensions>().ended_rebuilds.push((name, columns.flatten()));
        },
    );
}

impl Dimensions {
    /// One that waited for the search is closed or removed before: nobody else may want to know.
    pub fn stop_rebuild(&mut self, name: &str, is_removed: bool) {
        let is_wanted = self.unopened.iter().any(|waiting| waiting.spec.name == name);
        if let Some(stop) = self.rebuilding.get(name).filter(|_| is_removed || !is_wanted) {
            stop.stop();
        }
    }
}

/// Takes in what searches have found.
pub fn end_rebuilds(mut dimensions: ResMut<Dimensions>, mut publisher: ResMut<Publisher>) {
    for (name, columns) in mem::take(&mut dimensions.ended_rebuilds) {
        dimensions.rebuilding.remove(&name);
        let waiting = || dimensions.unopened.iter().filter(|waiting| waiting.spec.name == name);
        if waiting().any(|waiting| waiting.is_removed) {
            continue;
        }
        match columns {
            Ok(Some(columns)) => {
                info!("dimension {name:?}: found {columns} stored columns");
                if waiting().next().is_some() {
                    dimensions.rebuilt.insert(name);
                }
            }
            Ok(None) => {}
            Err(source) => {
                let error = DimensionError::NotRebuilt { name: name.clone(), source };
                dimensions.fail_waiting(&name, &error, &mut publisher);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_tells_the_rate_and_what_is_left_if_the_store_can_tell() {
        let report = |fraction| {
            let progress = Progress { done: 4_096, bytes: 0, fraction };
            Report { progress, elapsed: Duration::from_secs(8) }.to_string()
        };
        assert_eq!(report(None), "4096 entries read, 512 a second");
        assert_eq!(report(Some(0.0)), report(None));
        assert_eq!(report(Some(0.25)), "4096 entries read, 512 a second, about 25 % done, 24 s left");
    }
}
