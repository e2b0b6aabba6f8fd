//! Takes back what was ordered and not begun, when viewers have gone elsewhere.

use crate::coordinator::desk::Desk;
use crate::coordinator::dimension::column_state::ColumnState;
use crate::coordinator::threads::ColumnOrder;
use crate::space::DimensionId;
use std::mem;

impl Desk<'_> {
    /// If viewers moved: orders that no thread has begun are in the order of the new distances, and those that are much
    /// further now than they were are taken back, so that nearer ones take their place in this pass.
    pub fn recall(&mut self, id: DimensionId) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        // In lockstep it would depend on the threads what is taken back.
        if !mem::take(&mut dimension.has_moved_viewers) || self.config.mode.is_lockstep() {
            return;
        }
        let is_paused = dimension.generation.settings.paused;
        let distance = |order: &ColumnOrder| match is_paused && order.generates {
            true => f64::INFINITY,
            false => order.columns.first().map_or(0.0, |column| dimension.distance(*column)),
        };
        let far = self.threads.revise(id, distance);
        let has_any = !far.is_empty();
        far.into_iter().for_each(|order| self.undo(order));
        if has_any {
            self.note_region_events(id);
        }
    }

    /// As if it had never been ordered.
    fn undo(&mut self, order: ColumnOrder) {
        let id = order.dimension();
        let ColumnOrder { claim, columns, generates, .. } = order;
        self.totals.claims.remove(&claim);
        self.note_answered(id, columns.len(), generates);
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        if generates {
            dimension.generation.bucket.give_back(columns.len());
        }
        let mut rests = Vec::new();
        for column in columns {
            if dimension.sparse.as_mut().is_some_and(|sparse| sparse.end_order(column, claim).is_some()) {
                continue;
            }
            match dimension.columns.awaits(column, claim) {
                Some(ColumnState::Ordered(_)) => dimension.forget(column, &mut self.publisher),
                Some(ColumnState::ForStore { .. }) => dimension.columns.forget(column),
                // A region fetched its blocks meanwhile, and waits for the rest.
                Some(_) => rests.push(column),
                None => {}
            }
            if generates {
                dimension.release_generation(column);
            }
        }
        rests.into_iter().for_each(|column| self.order(id, column.batch(), vec![column]));
    }
}
