//! Rebuilds the stored graph of a dimension when it is lost or damaged.
//!
//! A rebuild reads everything that is stored of the dimension. So it runs on its own thread, and the dimension opens when it
//! is done, while others tick and are saved. Until then the dimension waits, as for a closing one of the same name.

use crate::coordinator::dimension::DimensionBook;
use crate::coordinator::messages::dimensions::DimensionError;
use crate::coordinator::messages::faults::WorkError;
use crate::coordinator::publish::Publisher;
use crate::coordinator::threads::Threads;
use crate::coordinator::threads::beside::hand_to;
use crate::space::DimensionId;
use crate::storage::{StoreError, WorldStore};
use crate::work::{Progress, Stop};
use bevy::prelude::*;
use std::time::{Duration, Instant};

/// The time between two log lines about a search.
const REPORT_PERIOD: Duration = Duration::from_secs(5);

/// Searches for the stored columns of a dimension; `None` if one of the `stops` ends it.
fn search(
    store: &WorldStore,
    dimension: DimensionId,
    name: &str,
    stops: &[Stop; 2],
) -> Result<Option<u64>, StoreError> {
    let began = Instant::now();
    let mut told = began;
    store.rebuild_tiles(dimension, |progress| {
        if told.elapsed() >= REPORT_PERIOD {
            told = Instant::now();
            info!("dimension {name:?}: searching for its columns: {}", report(progress, began.elapsed()));
        }
        stops.iter().try_for_each(Stop::go_on)
    })
}

/// The progress of a search, for the log.
fn report(progress: &Progress, elapsed: Duration) -> String {
    let entries = progress.done;
    let rate = entries as f64 / elapsed.as_secs_f64().max(f64::EPSILON);
    let left = progress
        .fraction
        .zip(progress.time_left(elapsed))
        .map(|(fraction, left)| format!(", about {:.0} % done, {:.0} s left", fraction * 100.0, left.as_secs_f64()));
    format!("{entries} entries read, {rate:.0} a second{}", left.unwrap_or_default())
}

/// Begins the rebuild of a dimension, which waits until it is done.
pub fn rebuild(dimension: DimensionId, name: &str, dimensions: &mut DimensionBook, threads: &mut Threads) {
    warn!("dimension {name:?}: the graph of its stored columns is lost or damaged, and is rebuilt from the columns");
    let (stop, name) = (Stop::default(), name.to_owned());
    let (searched, stops) = (name.clone(), [stop.clone(), threads.ending.clone()]);
    dimensions.rebuilding.insert(name.clone(), stop);
    threads.ask(
        Some("terrane rebuild"),
        move |store, _| search(store, dimension, &searched, &stops).map_err(WorkError::from),
        |world, columns| hand_to(world, end_rebuild, (name, columns.flatten())),
    );
}

impl DimensionBook {
    /// Stops the search when the waiting dimension is closed or removed, if no other dimension waits for it.
    pub fn stop_rebuild(&mut self, name: &str, is_removed: bool) {
        let is_wanted = self.unopened.iter().any(|waiting| waiting.spec.name == name);
        if let Some(stop) = self.rebuilding.get(name).filter(|_| is_removed || !is_wanted) {
            stop.stop();
        }
    }
}

/// Handles the result of a search; `None` if it was stopped.
fn end_rebuild(
    In((name, columns)): In<(String, Result<Option<u64>, WorkError>)>,
    mut dimensions: ResMut<DimensionBook>,
    mut publisher: ResMut<Publisher>,
) {
    dimensions.rebuilding.remove(&name);
    let waiting = || dimensions.unopened.iter().filter(|waiting| waiting.spec.name == name);
    if waiting().any(|waiting| waiting.is_removed) {
        return;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_shows_the_rate_and_the_time_left_if_known() {
        let report = |fraction| report(&Progress { done: 4_096, bytes: 0, fraction }, Duration::from_secs(8));
        assert_eq!(report(None), "4096 entries read, 512 a second");
        assert_eq!(report(Some(0.0)), report(None));
        assert_eq!(report(Some(0.25)), "4096 entries read, 512 a second, about 25 % done, 24 s left");
    }
}
