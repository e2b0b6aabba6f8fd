//! Asks the regions for their unsaved state, commits the pending save, and tells how commits ended.

use crate::coordinator::clock::Clock;
use crate::coordinator::dimension::DimensionBook;
use crate::coordinator::messages::actions::ActionOutcome;
use crate::coordinator::messages::saving::SaveError;
use crate::coordinator::messages::settings::Settings;
use crate::coordinator::publish::Publisher;
use crate::coordinator::saves::{Committed, Saves, Stored};
use crate::coordinator::threads::Threads;
use crate::coordinator::threads::exchange::Inbound;
use crate::space::DimensionId;
use crate::storage::SaveBatch;
use bevy::prelude::*;
use std::collections::BTreeSet;
use std::mem;
use std::time::Duration;

/// Asks the regions for their unsaved state if the game requested a save.
pub fn begin_save(clock: Res<Clock>, mut saves: ResMut<Saves>, mut dimensions: ResMut<DimensionBook>) {
    if !saves.may_ask() {
        return;
    }
    let mut wanted = BTreeSet::new();
    for (id, dimension) in &mut dimensions.open {
        for region in dimension.regions.regionizer.regions() {
            // A halted region may still hold its worlds, which are intact.
            let slot = dimension.regions.regionizer.data_mut(region);
            if slot.is_none_or(|slot| slot.halted.is_none() || !slot.parked.get().worlds.is_empty()) {
                wanted.insert((*id, region));
            }
        }
    }
    saves.ask(wanted, clock.now);
}

/// Handles finished commits and starts the next one.
pub fn commit(
    config: Res<Settings>,
    clock: Res<Clock>,
    mut saves: ResMut<Saves>,
    mut inbound: ResMut<Inbound>,
    mut dimensions: ResMut<DimensionBook>,
    mut threads: ResMut<Threads>,
    mut publisher: ResMut<Publisher>,
) {
    let now = clock.now;
    finish_commits(&mut saves, &mut inbound, &mut dimensions, &mut publisher, now);
    if saves.has_ended {
        let requests = saves.drop_unsaved();
        if !requests.is_empty() {
            saves.fail(requests, SaveError::Ended, &mut publisher);
        }
    } else if saves.is_commit_due(now) {
        saves.submit(false, |batch| dimensions.complete_save(batch), &threads.storage, now);
        if config.tick_mode.is_lockstep() {
            wait_for_commit(&mut saves, &mut inbound, &mut dimensions, &mut publisher, now);
        }
    }
    saves.forget_confirmed();
    saves.answer(&mut threads, &mut publisher);
}

/// Tells the main world and the dimensions of the ends of commits.
fn finish_commits(
    saves: &mut Saves,
    inbound: &mut Inbound,
    dimensions: &mut DimensionBook,
    publisher: &mut Publisher,
    now: Duration,
) {
    let Committed { stored, failed, durable } = saves.finish_commits(mem::take(&mut inbound.commits), now);
    failed.into_iter().for_each(|(error, requests)| saves.fail(requests, error, publisher));
    publisher.settled(durable, &ActionOutcome::Durable);
    dimensions.note_stored(&stored);
}

/// Waits for the commit in flight.
pub fn wait_for_commit(
    saves: &mut Saves,
    inbound: &mut Inbound,
    dimensions: &mut DimensionBook,
    publisher: &mut Publisher,
    now: Duration,
) {
    // The confirmation may have arrived with other events and not be handled yet.
    finish_commits(saves, inbound, dimensions, publisher, now);
    while saves.is_committing() && inbound.wait_until(None) {
        finish_commits(saves, inbound, dimensions, publisher, now);
    }
}

impl DimensionBook {
    /// Adds to a save what each save has: the clocks and, unless there is nothing else in it, the first heights.
    pub fn complete_save(&self, batch: &mut SaveBatch) {
        self.save_clocks(batch);
        // The ground of a save that has only clocks is unchanged.
        let items = batch.len();
        if items > 0 {
            self.save_heights(batch);
        }
    }

    /// Notes commits that the store has confirmed.
    pub fn note_stored(&mut self, stored: &[Stored]) {
        for Stored { number, batch } in stored {
            self.note_new_sparse_ground(batch);
            self.note_saved_heights(batch);
            for dimension in self.open.values_mut() {
                dimension.departed().forget_until(*number);
            }
        }
    }

    /// Notes new sparse columns. Their summaries are computed from everything that is stored of them, so they are known only now.
    fn note_new_sparse_ground(&mut self, stored: &SaveBatch) {
        let is_sparse = |id: &DimensionId| self.open.get(id).is_some_and(|open| open.is_sparse());
        let chunks = stored.chunks.keys().filter(|(id, _)| is_sparse(id));
        let columns: BTreeSet<_> = chunks.map(|(id, chunk)| (*id, chunk.column())).collect();
        for (id, column) in columns {
            if let Some(dimension) = self.open.get_mut(&id) {
                dimension.land.edited.push(column);
            }
        }
    }
}
