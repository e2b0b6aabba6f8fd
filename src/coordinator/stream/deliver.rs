//! Hands loaded columns to the regions that own their places.

use crate::chunk::{Column, ColumnSummary};
use crate::coordinator::columns::ColumnState;
use crate::coordinator::demand::failures::OUTAGE_PAUSE;
use crate::coordinator::dimension::{DimensionBook, OpenDimension};
use crate::coordinator::mail::directory::Directory;
use crate::coordinator::messages::events::{ColumnFailed, GroundRegenerated};
use crate::coordinator::messages::generation::FailedColumn;
use crate::coordinator::messages::settings::Settings;
use crate::coordinator::publish::Publisher;
use crate::coordinator::saves::Saves;
use crate::coordinator::stream::orders::Orders;
use crate::coordinator::threads::columns::ColumnsReady;
use crate::coordinator::threads::exchange::Inbound;
use crate::simulation::{ColumnError, FetchedColumn};
use crate::space::{ColumnPos, HeightSet};
use crate::storage::SaveBatch;
use bevy::prelude::*;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

/// The number of updates after which a column ordered in lockstep is delivered, however long it took.
pub const LOCKSTEP_LATENCY: u64 = 4;

/// After this many store failures in a row, the cause is not one bad place on the disk.
const OUTAGE: u32 = 32;

pub fn deliver(
    config: Res<Settings>,
    mut inbound: ResMut<Inbound>,
    mut dimensions: ResMut<DimensionBook>,
    mut orders: ResMut<Orders>,
    mut directory: ResMut<Directory>,
    mut saves: ResMut<Saves>,
    mut publisher: ResMut<Publisher>,
) {
    let (saves, publisher) = (&mut *saves, &mut *publisher);
    dimensions.open.values().for_each(|dimension| report_regenerated(dimension, publisher));
    let ready =
        if config.tick_mode.is_lockstep() { take_due(&mut inbound, &orders) } else { mem::take(&mut inbound.columns) };
    for ColumnsReady { claim, dimension, generated, columns } in ready {
        let mut dimension = dimensions.open.get_mut(&dimension);
        orders.note_answered(dimension.as_deref_mut(), claim, columns.len(), generated);
        let Some(dimension) = dimension else { continue };
        for (column, result) in columns {
            match result {
                Ok(ready) => dimension.deliver_ready(claim, ready, generated, &directory, saves, publisher),
                Err(error) if generated => dimension.generation_failed(claim, column, error, publisher),
                Err(error) => dimension.loading_failed(claim, column, error, publisher),
            }
        }
    }
    directory.forget_gone(orders.claims.keys().next().copied());
}

/// Reports damaged chunks that were generated again, also those that a region made within a tick.
fn report_regenerated(open: &OpenDimension, publisher: &mut Publisher) {
    let dimension = open.id;
    for (chunk, error) in open.ground.take_regenerated() {
        warn!("chunk {chunk} of {dimension} is generated again: {error}");
        publisher.event(GroundRegenerated { dimension, chunk, error });
    }
}

/// In lockstep, returns exactly the answers ordered a fixed number of passes ago, in the order of the claims.
fn take_due(inbound: &mut Inbound, orders: &Orders) -> Vec<ColumnsReady> {
    let due = |ordered: u64| ordered + LOCKSTEP_LATENCY <= orders.pass;
    let expected = orders.claims.values().filter(|ordered| due(**ordered)).count();
    loop {
        let is_due = |ready: &ColumnsReady| orders.claims.get(&ready.claim).is_some_and(|ordered| due(*ordered));
        if inbound.columns.iter().filter(|ready| is_due(ready)).count() == expected {
            let mut ready: Vec<_> = inbound.columns.extract_if(.., |ready| is_due(ready)).collect();
            ready.sort_unstable_by_key(|ready| ready.claim);
            return ready;
        }
        if !inbound.wait_until(None) {
            return Vec::new();
        }
    }
}

impl OpenDimension {
    fn deliver_ready(
        &mut self,
        claim: u64,
        ready: FetchedColumn,
        generated: bool,
        directory: &Directory,
        saves: &mut Saves,
        publisher: &mut Publisher,
    ) {
        let FetchedColumn { mut loaded, made, left_out, extended, made_in } = ready;
        self.orders.outages = 0;
        let column = loaded.column.pos();
        if !self.is_own(column) {
            // Its plot was given up, so this was ordered before that and awaited by nothing.
            return;
        }
        // If the column came from elsewhere in the meantime, a newer version of it may exist.
        let awaited = self.columns.awaits(column, claim);
        let saves_slabs = self.is_sparse() && !matches!(awaited, None | Some(ColumnState::ForStore(_)));
        let is_new = self.record_delivered(&loaded.column, &made, generated, saves_slabs, saves, publisher);
        match awaited {
            Some(ColumnState::Ordered(_)) => self.columns.note_made(column, made_in),
            Some(ColumnState::ForStore(_)) => {
                self.columns.forget(column);
                if is_new {
                    saves.pending.unused.insert((self.id, column));
                    self.departed().keep(loaded, saves.stored_with());
                }
                return;
            }
            // The region has blocks of it already, and takes only its other parts.
            Some(_) => {
                let new = self.new_slabs(&loaded.column);
                // Its systems may have seen entities there, which have gone on since the column was read.
                loaded.entities.retain(|record| !directory.has_seen(record.id, claim));
                self.deliver(loaded);
                self.leave_out(column, &left_out);
                if let Some(new) = new {
                    publisher.extended(self.id, new);
                }
                return;
            }
            // The answer to an older claim may be outdated.
            None => return,
        }
        self.save_extended(&mut saves.pending, &loaded.column, &extended);
        if !self.is_held(column) {
            self.forget(column, publisher);
            if generated || !extended.is_empty() {
                self.departed().keep(loaded, saves.stored_with());
            }
            return;
        }
        let blocks = loaded.column.clone();
        if self.deliver(loaded) {
            publisher.loaded(self.id, blocks);
        }
        self.leave_out(column, &left_out);
    }

    /// Saves and counts new ground; new slabs of a column only if `saves_slabs`. Ground that was not made now counts as
    /// loaded. Returns `true` if the column is new.
    fn record_delivered(
        &mut self,
        column: &Column,
        made: &HeightSet,
        is_made: bool,
        saves_slabs: bool,
        saves: &mut Saves,
        publisher: &mut Publisher,
    ) -> bool {
        let is_new = is_made && !self.land.stored.is_completed(column.pos());
        if is_new || saves_slabs {
            self.save_generated(&mut saves.pending, column, made);
        }
        if is_new {
            publisher.totals.generated += 1;
            self.note_generated(column.pos());
        } else if !is_made {
            publisher.totals.loaded += 1;
        }
        is_new
    }

    /// Takes a column that systems of a region loaded or generated within its tick. Its entities follow.
    pub fn take_fetched(&mut self, fetched: FetchedColumn, saves: &mut Saves, publisher: &mut Publisher) {
        let FetchedColumn { loaded, made, extended, .. } = fetched;
        let mut blocks = loaded.column;
        let column = blocks.pos();
        self.save_extended(&mut saves.pending, &blocks, &extended);
        self.record_delivered(&blocks, &made, !made.is_empty(), self.is_sparse(), saves, publisher);
        self.end_waiting(column);
        let new = self.new_slabs(&blocks);
        let before = self.columns.get(column);
        let is_there = before.is_some_and(|state| state.is_in_region() && !state.is_lost());
        if blocks.loaded().is_some() && is_there {
            self.note_loaded(&blocks);
            if let Some(region) = self.owner(column) {
                let letters = self.take_letters(column);
                self.inbox(region).letters.extend(letters);
            }
            if let Some(new) = new {
                publisher.extended(self.id, new);
            }
            return;
        }
        self.columns.fetch(column);
        self.note_loaded(&blocks);
        if is_there {
            // The column came to the region's inbox at the same moment, with its entities.
            return;
        }
        if matches!(before, None | Some(ColumnState::ForStore(_) | ColumnState::Failed(_))) {
            if let Err(error) = self.regions.regionizer.add_column(column) {
                error!("{}: {error}", self.id);
            }
            self.land.resident.mark_completed(column);
            match self.departed().get(column) {
                Some(departed) => {
                    // In a sparse dimension the departed column may hold more than the fetched one.
                    blocks.extend(&departed.column);
                    self.deliver(departed);
                }
                None => self.orders.to_complete.push(column),
            }
        }
        publisher.loaded(self.id, blocks);
        if !self.is_held(column) {
            self.demand.unneeded.insert(column);
        }
    }

    /// Handles a column that could not be read. It is tried again for as long as it has a ticket.
    fn loading_failed(&mut self, claim: u64, column: ColumnPos, error: ColumnError, publisher: &mut Publisher) {
        let Some(state) = self.columns.awaits(column, claim) else { return };
        let (id, now) = (self.id, self.time.real_now);
        let (attempts, wait) = self.columns.fail(column, now, error.is_outage());
        self.orders.complaints.unread.note(now, format_args!("{id}: {error}; next try in {wait:?}"));
        self.note_failure(column, &error, now);
        // Its region may have blocks of it; then only its other parts are missing.
        if !state.is_in_region() {
            self.take_out(column, publisher);
            // The column counts as completed until the next try, so that it does not block ground behind it.
            self.land.resident.mark_completed(column);
        }
        publisher.event(ColumnFailed { dimension: id, column, error, attempts, set_aside: false });
    }

    /// Handles a column that could not be generated. It is not tried again before its wait is over or, if it is set aside, before
    /// a request for it. Its tickets wait only for this.
    fn generation_failed(&mut self, claim: u64, column: ColumnPos, error: ColumnError, publisher: &mut Publisher) {
        let (id, now) = (self.id, self.time.real_now);
        let state = match self.columns.awaits(column, claim) {
            Some(state) if state.is_in_region() => return self.loading_failed(claim, column, error, publisher),
            Some(state) => state,
            None => {
                // The column is no longer wanted, or came from elsewhere.
                if !self.columns.is_under_way(column) {
                    self.release_generation(column);
                }
                return;
            }
        };
        let is_wanted = matches!(state, ColumnState::Ordered(_));
        if is_wanted {
            self.take_out(column, publisher);
        }
        // A job decides by itself when it tries again.
        let of_job = self.orders.for_jobs.get_mut(&column);
        let is_of_job = of_job.map(|failure| *failure = Some(error.clone())).is_some();
        if self.land.stored.is_completed(column) || (is_of_job && !is_wanted) {
            self.columns.forget(column);
            // A viewer may have claimed it in the meantime, or before.
            if !self.orders.generation.failures.has(column) {
                self.release_generation(column);
            }
            return;
        }
        self.claim_generation(column);
        let (attempts, wait) = self.columns.fail(column, now, error.is_outage());
        let is_last = attempts >= self.orders.generation.settings.attempts || !self.columns.has_room_for_failures();
        let set_aside = is_last && !error.is_outage();
        if set_aside {
            self.columns.forget(column);
            let told = format_args!("{id}: {error}; set aside after attempt {attempts}: RetryColumns tries it again");
            self.orders.complaints.set_aside.note(now, told);
        } else if attempts == 1 {
            // Further failures are logged like the first one, until the column is set aside.
            self.orders.complaints.retried.note(now, format_args!("{id}: {error}; next try in {wait:?}"));
        }
        self.note_failure(column, &error, now);
        self.orders.generation.failures.note(FailedColumn { column, attempts, error: error.to_string(), set_aside });
        publisher.event(ColumnFailed { dimension: id, column, error, attempts, set_aside });
    }

    /// Pauses all orders for a moment during a store outage, because they would fail column by column. A column without a ticket
    /// is not tried again, nor is any column of a closing dimension.
    fn note_failure(&mut self, column: ColumnPos, error: &ColumnError, now: Duration) {
        if !self.is_held(column) {
            self.orders.left_failures.push(column);
        }
        if self.is_closing() {
            self.columns.end_failures();
        }
        if error.is_outage() {
            self.orders.outages = self.orders.outages.saturating_add(1);
            if self.orders.outages >= OUTAGE {
                self.orders.rest_until = now.saturating_add(OUTAGE_PAUSE);
            }
        }
    }

    /// Adds a new column to the pending save, with its summary and the mark that it is stored. In a sparse dimension, adds the
    /// new chunks, except those that a region has from elsewhere.
    pub fn save_generated(&mut self, pending: &mut SaveBatch, column: &Column, made: &HeightSet) {
        match self.is_sparse() {
            // Chunks of air too, because an unstored chunk counts as not generated.
            true => {
                let chunk = |y| ((self.id, column.pos().chunk(y)), column.chunk(y).cloned().unwrap_or_default());
                pending.chunks.extend(self.unloaded(column.pos(), made).iter().map(chunk));
            }
            false => {
                let chunks = column.chunks().map(|(y, chunk)| ((self.id, column.pos().chunk(y)), chunk.clone()));
                pending.chunks.extend(chunks);
                pending.summaries.insert((self.id, column.pos()), Arc::new(ColumnSummary::new(column)));
            }
        }
        if !self.land.stored.is_completed(column.pos()) {
            self.land.stored.mark_completed(column.pos());
            let tile = column.pos().tile();
            pending.tiles.insert((self.id, tile), self.land.stored.tile(tile));
            self.begin_history(column.pos(), pending);
        }
    }

    /// Adds the new part of a stored column to the pending save: the chunks at these block heights, unless they are known already.
    fn save_extended(&mut self, pending: &mut SaveBatch, column: &Column, extended: &HeightSet) {
        if self.missing(column.pos()).intersection(extended).is_empty() {
            return;
        }
        let is_extended = |y: i64| !extended.intersection(&HeightSet::from(y << 4..(y + 1) << 4)).is_empty();
        let chunks = column.chunks().filter(|(y, _)| is_extended(*y));
        pending.chunks.extend(chunks.map(|(y, chunk)| ((self.id, column.pos().chunk(y)), chunk.clone())));
        pending.summaries.insert((self.id, column.pos()), Arc::new(ColumnSummary::new(column)));
        self.land.edited.push(column.pos());
        self.note_extended(column.pos(), extended, pending);
    }

    /// Notes that a new column is stored, and lets its tickets have it.
    fn note_generated(&mut self, column: ColumnPos) {
        self.orders.generation.generated += 1;
        self.orders.generation.failures.forget(column);
        self.end_waiting(column);
    }
}
