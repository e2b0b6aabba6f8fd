//! How far a pre-generation is.

use crate::space::ColumnArea;
use bevy::prelude::*;
use std::collections::VecDeque;
use std::time::Duration;

/// What a pre-generation does at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Reflect)]
#[type_path = "bevy_terrane"]
pub enum PregenerationState {
    /// Its dimension is not open, or another pre-generation of it comes first.
    #[default]
    Waiting,
    /// Columns are generated.
    Running,
    /// It was told to pause.
    Paused,
    /// Every column is stored, or failed for good.
    Finished,
    /// It was told to stop, or its dimension was removed.
    Cancelled,
}

impl PregenerationState {
    /// Whether it has come to its end.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Finished | Self::Cancelled)
    }
}

/// How far a pre-generation is, as it was told last: four times a second, and when its state changes.
#[derive(Component, Clone, Debug, Default, PartialEq, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Component, Clone, Default)]
pub struct PregenerationProgress {
    /// What it does.
    pub state: PregenerationState,
    /// Columns of its area that are stored, whoever generated them; the save that is under way is included.
    pub done: u64,
    /// Columns of its area.
    pub total: u128,
    /// Columns that were tried several times and failed each time.
    pub failed: u64,
    /// Columns of its area that were stored in a second, over the last ten seconds; `None` before there is enough to
    /// count, and while it does not run.
    pub columns_per_second: Option<f64>,
    /// How long it has been running, earlier sessions included.
    pub elapsed: Duration,
}

impl PregenerationProgress {
    /// Columns that are neither stored nor failed.
    pub fn remaining(&self) -> u128 {
        self.total.saturating_sub(self.done.into()).saturating_sub(self.failed.into())
    }

    /// The part of its columns that is stored, from 0 to 1.
    pub fn fraction(&self) -> f64 {
        if self.total == 0 { 1.0 } else { self.done as f64 / self.total as f64 }
    }

    /// How much longer it takes if it goes on as fast; `None` if nobody can tell.
    pub fn time_left(&self) -> Option<Duration> {
        if self.remaining() == 0 {
            return Some(Duration::ZERO);
        }
        let rate = self.columns_per_second.filter(|rate| *rate > 0.0)?;
        Duration::try_from_secs_f64(self.remaining() as f64 / rate).ok()
    }
}

/// How far back the rate looks.
const WINDOW: Duration = Duration::from_secs(10);

/// How many columns were done when.
#[derive(Clone, Debug, Default)]
pub struct Samples(VecDeque<(Duration, u64)>);

impl Samples {
    pub fn push(&mut self, now: Duration, done: u64) {
        self.0.push_back((now, done));
        // The one at the far edge of the window stays.
        while self.0.get(1).is_some_and(|(at, _)| *at + WINDOW <= now) {
            self.0.pop_front();
        }
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Columns a second over the window.
    pub fn rate(&self) -> Option<f64> {
        let ((first, before), (last, done)) = (self.0.front()?, self.0.back()?);
        let seconds = last.saturating_sub(*first).as_secs_f64();
        (seconds > 0.0).then(|| done.saturating_sub(*before) as f64 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_ten_seconds() {
        let mut samples = Samples::default();
        assert_eq!(samples.rate(), None);
        samples.push(Duration::ZERO, 100);
        assert_eq!(samples.rate(), None);
        (1..=40).for_each(|second| samples.push(Duration::from_secs(second), 100 + second * 5));
        assert_eq!(samples.rate(), Some(5.0));
        (41..=50).for_each(|second| samples.push(Duration::from_secs(second), 300 + (second - 40) * 20));
        assert_eq!(samples.rate(), Some(20.0));
        assert!(samples.0.len() <= 12);
    }

    #[test]
    fn what_is_left_follows_from_the_rate() {
        let progress = PregenerationProgress { done: 30, total: 100, failed: 10, ..default() };
        assert_eq!((progress.remaining(), progress.fraction(), progress.time_left()), (60, 0.3, None));
        let running = PregenerationProgress { columns_per_second: Some(20.0), ..progress.clone() };
        assert_eq!(running.time_left(), Some(Duration::from_secs(3)));
        // It is over in more time than there is.
        let slow = PregenerationProgress { columns_per_second: Some(1e-300), ..progress.clone() };
        assert_eq!(slow.time_left(), None);
        assert_eq!(PregenerationProgress { done: 90, ..progress }.time_left(), Some(Duration::ZERO));
    }
}

/// What a pre-generation can be told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PregenerationOrder {
    /// Order nothing more until it is resumed. What is on its way is still stored.
    Pause,
    /// Go on.
    Resume,
    /// Stop, and be forgotten. What is stored stays.
    Cancel,
}

/// A pre-generation as the coordinator knows it.
#[derive(Clone, Debug)]
pub struct PregenerationStatus {
    /// Its entity in the main world; `None` if it was found in the store and has none yet.
    pub entity: Option<Entity>,
    /// The entity of its dimension.
    pub dimension: Entity,
    /// What it generates.
    pub area: ColumnArea,
    /// How far it is.
    pub progress: PregenerationProgress,
}

/// The time between two looks at a job by the main world, and between two of its saves.
pub const PROGRESS_PERIOD: Duration = Duration::from_millis(250);
