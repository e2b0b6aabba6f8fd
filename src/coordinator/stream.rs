//! Finds and orders the nearest missing ground of viewers; finds ground that is no longer needed.

pub mod deliver;
pub mod nearest;
pub mod orders;
pub mod rebuild;

use super::dimension::{DimensionBook, OpenDimension};
use super::publish::Publisher;
use crate::coordinator::clock::Clock;
use crate::coordinator::columns::{ColumnState, Rest};
use crate::coordinator::mail::directory::Directory;
use crate::coordinator::mail::queue::MailQueue;
use crate::coordinator::messages::settings::Settings;
use crate::coordinator::messages::why::Ticket;
use crate::coordinator::saves::Saves;
use crate::coordinator::schedule::deadlines::Deadlines;
use crate::coordinator::stream::orders::Orders;
use crate::simulation::{Undeliverable, ViewerRadii};
use crate::space::{ColumnPos, DimensionId};
use crate::storage::EntityRecord;
use bevy::prelude::*;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use std::mem;
use std::time::Duration;

/// Refills the allowances of viewers and letters, and retries failed columns that are due.
pub fn renew(
    config: Res<Settings>,
    clock: Res<Clock>,
    mut dimensions: ResMut<DimensionBook>,
    mut deadlines: ResMut<Deadlines>,
    mut orders: ResMut<Orders>,
    mut saves: ResMut<Saves>,
    mut post: ResMut<MailQueue>,
) {
    orders.limit.note_tick(deadlines.take_slowest());
    let in_flight = orders.in_flight();
    orders.limit.update(clock.now, in_flight);
    for dimension in dimensions.open.values_mut() {
        // Letters that wait in a closing dimension come back.
        if !dimension.is_closing() {
            dimension.hold_for_letters(config.limits.letters.places);
        }
        dimension.refill_caps();
        dimension.retry_failed();
        dimension.reload(&mut saves, &mut post);
        dimension.revise_slabs();
        for column in mem::take(&mut dimension.orders.to_complete) {
            orders.order(dimension, column.batch(), vec![column]);
        }
    }
}

impl OpenDimension {
    /// Columns that failed are missing again when their wait is over.
    fn retry_failed(&mut self) {
        self.forget_left_failures();
        let (columns, rests) = self.columns.retry(self.time.real_now);
        columns.into_iter().for_each(|column| self.reopen(column));
        self.orders.to_complete.extend(rests);
    }

    /// Reads columns again that a live region took over from a halted one.
    fn reload(&mut self, saves: &mut Saves, post: &mut MailQueue) {
        self.settle_orphans(saves);
        let lost = self.columns.lost();
        if lost.is_empty() && !self.columns.is_reading_again() {
            // Entities that did not come back with the reloaded columns are gone.
            for letter in mem::take(&mut self.mail.recalled) {
                let gone = Undeliverable::DimensionNotOpen(self.id);
                let reason = letter.entity().map_or(gone, Undeliverable::NoSuchEntity);
                post.give_back(letter, reason);
            }
        }
        for (column, _) in lost.into_iter().filter(|(_, until)| saves.is_stored(*until)) {
            self.columns.read_again(column);
            self.orders.to_complete.push(column);
        }
    }

    /// Keeps a viewer whose region halted as a ticket if the store has it; removes it otherwise.
    fn settle_orphans(&mut self, saves: &Saves) {
        let due: Vec<_> = self.mail.orphans.extract_if(.., |(_, until)| saves.is_stored(*until)).collect();
        if due.is_empty() {
            return;
        }
        let stored = match self.store.viewers(self.id) {
            Ok(stored) => stored,
            Err(error) => {
                let id = self.id;
                error!("{id}: the ground of viewers that halted stays held until the next save: {error}");
                let until = saves.last_stored() + 1;
                return self.mail.orphans.extend(due.into_iter().map(|(viewer, _)| (viewer, until)));
            }
        };
        for (viewer, _) in due {
            let found = stored.iter().flat_map(EntityRecord::viewers).find(|(id, ..)| *id == viewer);
            match found.filter(|(_, block, _)| !self.is_closing() && self.may_have(block.column())) {
                Some((_, block, viewer_record)) => {
                    self.hold(Ticket::Region(viewer), block.chunk(), ViewerRadii::from(viewer_record));
                }
                None => self.release(Ticket::Region(viewer)),
            }
        }
    }

    /// Columns for which letters wait in idle regions. If they were evicted before the next tick, these letters would make them
    /// load again, over and over.
    fn columns_with_letters(&mut self, deadlines: &Deadlines, soon: Duration) -> FxHashSet<ColumnPos> {
        let mut found = FxHashSet::default();
        if self.demand.unneeded.is_empty() || !self.may_be_idle() {
            return found;
        }
        for region in self.regions.regionizer.regions() {
            if deadlines.slot(self, region).is_some_and(|slot| slot.is_idle(&self.time, soon)) {
                let letters = self.inbox(region).letters.iter();
                found.extend(letters.filter_map(|letter| Some(letter.column()?.1)));
            }
        }
        found
    }
}

/// Asks the owning regions to evict columns without a ticket.
pub fn evict_unneeded(
    config: Res<Settings>,
    clock: Res<Clock>,
    mut dimensions: ResMut<DimensionBook>,
    deadlines: Res<Deadlines>,
    mut saves: ResMut<Saves>,
    mut directory: ResMut<Directory>,
    mut post: ResMut<MailQueue>,
    mut publisher: ResMut<Publisher>,
) {
    let soon = clock.soon(config.tick_mode.is_lockstep());
    for dimension in dimensions.open.values_mut() {
        let lettered = dimension.columns_with_letters(&deadlines, soon);
        let mut later = BTreeSet::new();
        for column in mem::take(&mut dimension.demand.unneeded) {
            match dimension.columns.get(column) {
                Some(ColumnState::Owned(_) | ColumnState::Halted { .. }) if dimension.has_halted(column) => {
                    let Some(region) = dimension.regions.regionizer.region_at(column) else { continue };
                    let (saves, directory) = (&mut saves, &mut directory);
                    if !dimension.release_halted(region, column, saves, directory, &mut post, &mut publisher) {
                        later.insert(column);
                    }
                }
                Some(ColumnState::Owned(Rest::None | Rest::Failed(_))) if !lettered.contains(&column) => {
                    let Some(region) = dimension.regions.regionizer.region_at(column) else { continue };
                    dimension.inbox(region).evict.push(column);
                    dimension.columns.leave(column);
                }
                // Part of it has not arrived yet, or letters wait for it.
                Some(
                    ColumnState::Fetched(_)
                    | ColumnState::Owned(_)
                    | ColumnState::Ordered(_)
                    | ColumnState::Halted { .. }
                    | ColumnState::Lost { .. },
                ) => {
                    later.insert(column);
                }
                Some(ColumnState::ForStore(_) | ColumnState::Failed(_) | ColumnState::Leaving) | None => {}
            }
        }
        dimension.demand.unneeded.append(&mut later);
    }
}

impl OpenDimension {
    /// Returns `true` if the store alone decides what the next request for the column gets.
    fn is_away(&self, column: ColumnPos) -> bool {
        !self.columns.is_under_way(column) && !self.departed().contains(column)
    }
}

/// Leaves entities that wait for unloaded ground to the store, once it has them.
pub fn leave_to_store(
    mut dimensions: ResMut<DimensionBook>,
    saves: Res<Saves>,
    mut post: ResMut<MailQueue>,
    mut directory: ResMut<Directory>,
    mut publisher: ResMut<Publisher>,
) {
    for (id, dimension) in &mut dimensions.open {
        let mut transit = mem::take(&mut dimension.mail.transit);
        let is_away = |(of, column): &(DimensionId, ColumnPos)| of == id && dimension.is_away(*column);
        let stored = transit.take_stored(saves.last_stored(), saves.stored_with(), is_away);
        dimension.mail.transit = transit;
        for traveller in stored {
            publisher.mirrors(post.drop_traveller(traveller, Undeliverable::NoSuchEntity, &mut directory));
        }
    }
}
