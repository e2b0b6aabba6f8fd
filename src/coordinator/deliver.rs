//! Hands columns that are there to the regions that own their places.

use super::LOCKSTEP_LATENCY;
use super::desk::Desk;
use super::dimension::Dimension;
use super::dimension::column_state::ColumnState;
use super::events::{ColumnFailed, GroundRegenerated};
use super::streaming::failed_columns::{OUTAGE_PAUSE, OUTAGE_RETRY, Verdict, wait_after};
use super::threads::{ColumnsReady, ReadyColumn};
use crate::chunk::{Column, ColumnSummary};
use crate::simulation::{ColumnError, Departed, FetchedColumn};
use crate::space::{ColumnPos, DimensionId, HeightSet};
use crate::storage::SaveBatch;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

/// After so many failures of the store in a row, the fault is not that of one place on the disk.
const OUTAGE: u32 = 32;

pub(super) fn deliver(mut desk: Desk) {
    desk.tell_of_repairs();
    for ready in desk.take_ready() {
        let ColumnsReady { claim, dimension, generated, columns } = ready;
        desk.totals.claims.remove(&claim);
        desk.note_answered(dimension, columns.len(), generated);
        for (column, result) in columns {
            let sparse = desk.dimensions.open.get_mut(&dimension).and_then(|dimension| dimension.sparse.as_mut());
            let part = sparse.and_then(|sparse| sparse.end_order(column, claim));
            match (result, part) {
                (Ok(ready), Some(_)) => desk.deliver_part(dimension, ready),
                (Err(error), Some(order)) => desk.part_failed(dimension, column, order, error),
                (Ok(ready), None) => desk.deliver_column(dimension, claim, ready, generated),
                (Err(error), None) if generated => desk.generation_failed(dimension, claim, column, error),
                (Err(error), None) => desk.loading_failed(dimension, claim, column, error),
            }
        }
    }
}

impl Desk<'_> {
    /// Also those that a region had made anew within a tick.
    fn tell_of_repairs(&mut self) {
        for (&dimension, open) in &self.dimensions.open {
            for (chunk, error) in open.home.ground.take_regenerated() {
                bevy::log::warn!("chunk {chunk} of {dimension} is generated anew: {error}");
                self.publisher.event(GroundRegenerated { dimension, chunk, error });
            }
        }
    }

    /// In lockstep, exactly what was ordered a fixed number of passes ago, in the order of the claims.
    fn take_ready(&mut self) -> Vec<ColumnsReady> {
        if !self.config.mode.is_lockstep() {
            return mem::take(&mut self.inbound.columns);
        }
        let pass = self.clock.pass;
        let due = |ordered: u64| ordered + LOCKSTEP_LATENCY <= pass;
        let expected = self.totals.claims.values().filter(|ordered| due(**ordered)).count();
        loop {
            let claims = &self.totals.claims;
            let is_due = |ready: &ColumnsReady| claims.get(&ready.claim).is_some_and(|ordered| due(*ordered));
            if self.inbound.columns.iter().filter(|ready| is_due(ready)).count() == expected {
                let mut ready: Vec<_> = self.inbound.columns.extract_if(.., |ready| is_due(ready)).collect();
                ready.sort_unstable_by_key(|ready| ready.claim);
                return ready;
            }
            let Ok(event) = self.threads.events.recv() else { return Vec::new() };
            self.inbound.push(event);
        }
    }

    fn deliver_column(&mut self, id: DimensionId, claim: u64, ready: ReadyColumn, generated: bool) {
        let ReadyColumn { loaded, made, left_out } = ready;
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        dimension.outages = 0;
        let column = loaded.column.pos();
        // Whoever has it from elsewhere meanwhile may have made something newer of it.
        let awaited = dimension.columns.awaits(column, claim);
        let saves_parts =
            dimension.sparse.is_some() && matches!(awaited, Some(ColumnState::Ordered(_) | ColumnState::Owned(_)));
        let is_new = self.take_in_ground(id, &loaded.column, &made, generated, saves_parts);
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        match awaited {
            Some(ColumnState::Ordered(_)) => {}
            Some(ColumnState::ForStore { .. }) => {
                dimension.columns.forget(column);
                if is_new {
                    self.saves.pending.unused.insert((id, column));
                    let until = self.saves.stored_with();
                    dimension.departed().insert(Departed { loaded, until });
                }
                return;
            }
            // The region has its blocks already; it takes only what else came with them.
            Some(_) => {
                let new = dimension.new_part(&loaded.column);
                dimension.deliver(loaded);
                if let Some(new) = new {
                    self.publisher.extended(id, new);
                }
                return;
            }
            // The answer to an older claim may be older than what has been done since.
            None => return,
        }
        if !dimension.is_held(column) {
            dimension.forget(column, &mut self.publisher);
            if generated {
                let until = self.saves.stored_with();
                dimension.departed().insert(Departed { loaded, until });
            }
            return;
        }
        if let Some(sparse) = &mut dimension.sparse {
            sparse.leave_out(column, &left_out);
        }
        let blocks = loaded.column.clone();
        if dimension.deliver(loaded) {
            self.publisher.loaded(id, blocks);
        }
    }

    /// New ground is saved and counted, and so are new parts of a sparse column, if they are to be. What was not made now
    /// counts as loaded. Says whether the column is new.
    fn take_in_ground(
        &mut self,
        id: DimensionId,
        column: &Column,
        made: &HeightSet,
        is_made: bool,
        saves_parts: bool,
    ) -> bool {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return false };
        let is_new = is_made && !dimension.stored.is_completed(column.pos());
        if is_new || saves_parts {
            dimension.save_generated(&mut self.saves.pending, column, made);
        }
        if is_new {
            self.totals.generated += 1;
            dimension.note_generated(column.pos());
        } else if !is_made {
            self.totals.loaded += 1;
        }
        is_new
    }

    /// A column that systems of a region loaded or generated within its tick. Its entities follow.
    pub fn take_fetched(&mut self, id: DimensionId, fetched: FetchedColumn) {
        let FetchedColumn { column: mut blocks, made, block_ticks: _ } = fetched;
        let column = blocks.pos();
        let Some(dimension) = self.dimensions.open.get(&id) else { return };
        let saves_parts = dimension.sparse.is_some();
        self.take_in_ground(id, &blocks, &made, !made.is_empty(), saves_parts);
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        dimension.end_waiting(column);
        let new = dimension.new_part(&blocks);
        dimension.note_loaded(&blocks);
        let before = dimension.columns.get(column);
        let is_there = before.is_some_and(|state| state.is_in_region() && !state.is_lost());
        if blocks.loaded().is_some() && is_there {
            if let Some(new) = new {
                self.publisher.extended(id, new);
            }
            return;
        }
        dimension.columns.fetch(column);
        if is_there {
            // It came to the region's inbox in the same moment, with its entities.
            return;
        }
        if matches!(before, None | Some(ColumnState::ForStore { .. } | ColumnState::Failed(_))) {
            if let Err(error) = dimension.regionizer.add_column(column) {
                bevy::log::error!("{id}: {error}");
            }
            dimension.resident.mark_completed(column);
            match dimension.departed().get(column) {
                Some(departed) => {
                    // In a sparse dimension it may be more than what was fetched.
                    blocks.extend(&departed.column);
                    dimension.deliver(departed);
                }
                None => self.order(id, column.batch(), vec![column]),
            }
        }
        self.note_region_events(id);
        self.publisher.loaded(id, blocks);
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        if !dimension.is_held(column) {
            dimension.unneeded.insert(column);
        }
    }

    /// A column could not be read: it is tried again for as long as somebody wants it.
    fn loading_failed(&mut self, id: DimensionId, claim: u64, column: ColumnPos, error: ColumnError) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        let Some(state @ (ColumnState::Ordered(_) | ColumnState::Owned(_))) = dimension.columns.awaits(column, claim)
        else {
            return;
        };
        let now = self.clock.now;
        let wait = |attempts| if error.is_outage() { OUTAGE_RETRY } else { wait_after(attempts) };
        let (attempts, wait) = dimension.columns.fail(column, now, wait);
        dimension.complaints.unread.note(now, format_args!("{id}: {error}; next try in {wait:?}"));
        dimension.note_outage(&error, now);
        if dimension.is_closing() {
            dimension.columns.end_failures();
        }
        // The region may have its blocks; then only what else is stored of it is still to come.
        if matches!(state, ColumnState::Owned(_)) {
            return;
        }
        dimension.take_out(column, &mut self.publisher);
        // Not missing until it is tried again, so that it does not block what lies behind it.
        dimension.resident.mark_completed(column);
        self.publisher.event(ColumnFailed { dimension: id, column, error, attempts, given_up: false });
    }

    /// A column could not be generated: nobody begins it again before its wait is over, or, if it is set aside, before
    /// somebody asks for that. Those who hold it wait for it, and for nothing else.
    fn generation_failed(&mut self, id: DimensionId, claim: u64, column: ColumnPos, error: ColumnError) {
        let now = self.clock.now;
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        let awaited = dimension.columns.awaits(column, claim);
        if matches!(awaited, Some(ColumnState::Owned(_))) {
            return self.loading_failed(id, claim, column, error);
        }
        let is_wanted = matches!(awaited, Some(ColumnState::Ordered(_)));
        let was_for_store = matches!(awaited, Some(ColumnState::ForStore { .. }));
        if is_wanted {
            dimension.forget(column, &mut self.publisher);
        } else if was_for_store {
            dimension.columns.forget(column);
        }
        if !is_wanted && !was_for_store {
            // Whoever wanted it wants it no more, or has it from elsewhere.
            if !dimension.columns.is_under_way(column) {
                dimension.release_generation(column);
            }
            return;
        }
        // A job decides by itself when it tries again.
        let is_of_job = dimension.pregenerations.note_failure(column, &error);
        if dimension.stored.is_completed(column) || (is_of_job && !is_wanted) {
            return;
        }
        dimension.claim_generation(column);
        dimension.note_outage(&error, now);
        let most = dimension.generation.settings.attempts;
        let (failures, reason) = (&mut dimension.generation.failures, error.to_string());
        let Verdict { attempts, retry_in } = match error.is_outage() {
            true => failures.note_outage(column, &reason, now),
            false => failures.note(column, &reason, now, most),
        };
        match retry_in {
            // Each further try fails as the first one did, until it is set aside.
            Some(wait) if attempts == 1 => {
                dimension.complaints.retried.note(now, format_args!("{id}: {error}; next try in {wait:?}"));
            }
            Some(_) => {}
            None => {
                dimension
                    .complaints
                    .set_aside
                    .note(now, format_args!("{id}: {error}; set aside after {attempts} tries"));
            }
        }
        let given_up = retry_in.is_none();
        self.publisher.event(ColumnFailed { dimension: id, column, error, attempts, given_up });
        self.note_region_events(id);
    }
}

impl Dimension {
    /// While the store does not work, no more is asked of it for a moment: it would fail column by column.
    fn note_outage(&mut self, error: &ColumnError, now: Duration) {
        if error.is_outage() {
            self.outages = self.outages.saturating_add(1);
            if self.outages >= OUTAGE {
                self.orders_rest_until = now.saturating_add(OUTAGE_PAUSE);
            }
        }
    }

    /// A new column joins the pending save together with its summary and the mark that says it is stored; in a sparse
    /// dimension the chunks at the heights that are new, unless a region has them from elsewhere meanwhile.
    pub fn save_generated(&mut self, pending: &mut SaveBatch, column: &Column, made: &HeightSet) {
        match &self.sparse {
            Some(sparse) => save_part(pending, self.id, column, &sparse.unloaded(column.pos(), made)),
            None => {
                let chunks = column.chunks().map(|(y, chunk)| ((self.id, column.pos().chunk(y)), chunk.clone()));
                pending.chunks.extend(chunks);
                pending.summaries.insert((self.id, column.pos()), Arc::new(ColumnSummary::new(column)));
            }
        }
        if !self.stored.is_completed(column.pos()) {
            self.stored.mark_completed(column.pos());
            let tile = column.pos().tile();
            pending.tiles.insert((self.id, tile), self.stored.tile(tile));
        }
    }

    /// A new column is stored, and whoever waits for it can have it.
    fn note_generated(&mut self, column: ColumnPos) {
        self.generation.generated.count(self.real_now);
        self.generation.failures.forget(column);
        self.end_waiting(column);
    }
}

/// New chunks of a sparse dimension, also those of air: what is not stored was not generated.
pub(super) fn save_part(pending: &mut SaveBatch, id: DimensionId, column: &Column, made: &HeightSet) {
    let chunk = |y| ((id, column.pos().chunk(y)), column.chunk(y).cloned().unwrap_or_default());
    pending.chunks.extend(made.iter().map(chunk));
}
