//! Hands columns that are there to the regions that own their places.

use super::LOCKSTEP_LATENCY;
use super::collect::Desk;
use super::dimension::{Departed, Stage};
use super::events::ColumnFailed;
use super::threads::ColumnsReady;
use crate::generation::DistanceGraph;
use crate::simulation::LoadedColumn;
use crate::space::{ColumnPos, DimensionId};
use crate::storage::SaveBatch;
use std::mem;
use std::time::Duration;

pub(super) fn deliver(mut desk: Desk) {
    for ready in desk.take_ready() {
        let ColumnsReady { claim, dimension, generated, columns } = ready;
        desk.totals.claims.remove(&claim);
        for (column, result) in columns {
            desk.totals.in_flight = desk.totals.in_flight.saturating_sub(1);
            match result {
                Ok(loaded) => desk.deliver_column(dimension, loaded, generated),
                Err(error) => desk.column_failed(dimension, column, error),
            }
        }
    }
}

/// The first wait after a failure; it doubles each time.
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// The longest wait after a failure.
const LAST_RETRY: Duration = Duration::from_secs(60);

impl Desk<'_> {
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

    fn deliver_column(&mut self, id: DimensionId, loaded: LoadedColumn, generated: bool) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        let column = loaded.column.pos();
        match generated {
            true => {
                self.totals.generated += 1;
                save_generated(&mut self.saves.pending, &mut dimension.stored, id, &loaded);
            }
            false => self.totals.loaded += 1,
        }
        dimension.failed.remove(&column);
        if dimension.columns.get(&column) != Some(&Stage::Claimed) {
            return;
        }
        if !dimension.is_held(column) {
            dimension.forget(column);
            self.publisher.unloaded(id, column);
            if generated {
                let until = self.saves.durable_with();
                dimension.departed.get().insert(column, Departed { loaded, until });
            }
            return;
        }
        if let Some(column) = dimension.deliver(loaded) {
            self.publisher.loaded(id, column);
        }
    }

    fn column_failed(&mut self, id: DimensionId, column: ColumnPos, error: String) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        let (failures, _) = dimension.failed.get(&column).copied().unwrap_or_default();
        let wait = FIRST_RETRY.saturating_mul(1 << failures.min(10)).min(LAST_RETRY);
        bevy::log::error!("{id}, column {column}: {error}; next try in {wait:?}");
        dimension.forget(column);
        // Not missing until it is tried again, so that it does not block what lies behind it.
        dimension.resident.mark_completed(column);
        dimension.failed.insert(column, (failures + 1, self.clock.now + wait));
        self.publisher.unloaded(id, column);
        self.publisher.event(ColumnFailed { dimension: id, column, error });
    }
}

/// A new column joins the pending save together with the mark that says it is stored.
pub(super) fn save_generated(
    pending: &mut SaveBatch,
    stored: &mut DistanceGraph,
    id: DimensionId,
    loaded: &LoadedColumn,
) {
    let column = &loaded.column;
    for (y, chunk) in column.chunks() {
        pending.chunks.insert((id, column.pos().chunk(y)), chunk.clone());
    }
    stored.mark_completed(column.pos());
    let tile = column.pos().into();
    pending.tiles.insert((id, tile_key(tile)), stored.tile(tile));
}

fn tile_key(tile: crate::generation::TilePos) -> (i64, i64) {
    (tile.x, tile.z)
}
