//! The plots of a dimension, and the ground that waits for them.

use crate::coordinator::demand::tickets::ViewerState;
use crate::coordinator::dimension::OpenDimension;
use crate::coordinator::messages::why::Ticket;
use crate::simulation::ViewerRadii;
use crate::space::{BatchPos, ColumnPos, TILE_BATCHES, TilePos};
use crate::storage::servers::Plot;
use crate::storage::{EntityRecord, PlotContents};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;
use std::time::Duration;

/// The smallest distance of a column from a plot, squared.
fn distance_squared(column: ColumnPos, plot: TilePos) -> u128 {
    let [low, high] =
        [0, TILE_BATCHES - 1].map(|place| plot.batch(place).map(|batch| batch.column(if place == 0 { 0 } else { 15 })));
    let (Some(low), Some(high)) = (low, high) else { return u128::MAX };
    column.distance_squared(ColumnPos::new(column.x.clamp(low.x, high.x), column.z.clamp(low.z, high.z)))
}

impl OpenDimension {
    /// Returns `true` if ground may be loaded and generated at this column: always, unless several servers share the world.
    pub fn may_have(&self, column: ColumnPos) -> bool {
        self.plots.as_ref().is_none_or(|plots| plots.is_open(column.tile()))
    }

    /// Returns `true` if what this server has of the column counts: always, unless several servers share the world.
    pub fn is_own(&self, column: ColumnPos) -> bool {
        self.plots.as_ref().is_none_or(|plots| plots.is_own(column.tile()))
    }

    /// Lets the ground of a batch wait until this server owns its plot: it is found again only then.
    pub fn await_plot(&mut self, batch: BatchPos, is_to_load: bool) {
        let center = batch.column(0);
        if !is_to_load {
            // A plot is not needed for what only lies ahead.
            self.land.stored.claim(batch, center);
            return;
        }
        self.land.resident.claim(batch, center);
        if let Some(plots) = &mut self.plots {
            plots.want(center.tile());
        }
    }

    /// Lets everything on a plot be found again that waited for it.
    fn end_wait(&mut self, plot: TilePos) {
        for batch in plot.batches() {
            let (resident, stored) =
                (self.land.resident.claimed_in_batch(batch), self.land.stored.claimed_in_batch(batch));
            for place in (0..u16::BITS).filter(|place| (resident | stored) >> place & 1 == 1) {
                let column = batch.column(place);
                if !self.columns.is_under_way(column) {
                    self.end_waiting(column);
                    self.release_generation(column);
                }
            }
        }
    }

    /// Takes over a plot that this server owns now.
    pub fn take_plot(&mut self, plot: TilePos, contents: PlotContents) {
        let PlotContents { stored, history, viewers } = contents;
        self.land.stored.restore_tile(plot, &stored);
        self.land.history.restore(plot, history);
        let Some(plots) = &mut self.plots else { return };
        plots.set_own(plot);
        self.tell_plots();
        self.end_wait(plot);
        for (viewer, block, radii) in viewers.iter().flat_map(EntityRecord::viewers) {
            self.hold(Ticket::Region(viewer), block.chunk(), ViewerRadii::from(radii));
        }
    }

    /// Forgets everything about a plot that this server no longer owns.
    pub fn forget_plot(&mut self, plot: TilePos) {
        let here = |viewer: &ViewerState| viewer.center.tile() == plot;
        let tickets =
            self.demand.viewers.iter().filter(|(ticket, viewer)| matches!(ticket, Ticket::Region(_)) && here(viewer));
        let tickets: Vec<Ticket> = tickets.map(|(ticket, _)| *ticket).collect();
        tickets.into_iter().for_each(|ticket| self.release(ticket));
        self.land.stored.restore_tile(plot, &[0; TILE_BATCHES]);
        self.land.history.restore(plot, Default::default());
        // Columns that could not be read count as completed until they are tried again.
        self.land.resident.restore_tile(plot, &[0; TILE_BATCHES]);
        let columns = plot.batches().flat_map(|batch| (0..16).map(move |place| batch.column(place)));
        columns.for_each(|column| _ = self.orders.generation.failures.forget(column));
        if let Some(plots) = &mut self.plots {
            plots.remove(plot);
        }
        self.end_wait(plot);
    }

    /// Ends the leaving of plots that were given up, or that could not be.
    pub fn end_leaving(&mut self, given_up: &[(BTreeSet<Plot>, Option<u64>)], kept: &BTreeMap<Plot, PlotContents>) {
        let id = self.id;
        let is_over = |plot: &TilePos| {
            kept.contains_key(&(id, *plot)) || given_up.iter().any(|(plots, _)| plots.contains(&(id, *plot)))
        };
        if let Some(plots) = &mut self.plots {
            plots.leaving.retain(|leaving| !leaving.plots.iter().any(is_over));
        }
    }

    /// Tells the regions on which plots they may fetch ground.
    pub fn tell_plots(&self) {
        if let (Some(plots), Some(open)) = (&self.plots, &self.ground.open_plots) {
            *open.write().unwrap_or_else(PoisonError::into_inner) = plots.open().collect();
        }
    }

    /// Forgets the plots that nothing needs, and returns those of this server that nothing has needed for `idle`. Messages are on their
    /// way to some.
    pub fn unneeded_plots(&mut self, with_messages: &BTreeSet<TilePos>, idle: Duration) -> BTreeSet<TilePos> {
        let Some(mut plots) = self.plots.take() else { return BTreeSet::new() };
        let mut used = with_messages.clone();
        used.extend(self.columns.iter().map(|(column, _)| column.tile()));
        used.extend(self.mail.letters.keys().map(|column| column.tile()));
        used.extend(self.mail.transit.iter().map(|traveller| traveller.position.column().tile()));
        used.extend(self.demand.sought.iter());
        let is_needed = |plot: TilePos| {
            let reaches =
                |(center, radius): (ColumnPos, u32)| distance_squared(center, plot) <= u128::from(radius).pow(2);
            used.contains(&plot)
                || self.demand.viewers.values().any(|viewer| reaches((viewer.center, viewer.radii.load)))
        };
        let (unwanted, left) = plots.sort_out(is_needed, self.time.real_now, idle);
        self.plots = Some(plots);
        unwanted.into_iter().for_each(|plot| self.end_wait(plot));
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_is_as_near_as_its_nearest_column() {
        let plot = TilePos::new(-1, 2);
        for (column, expected) in
            [((-32, 64), 0), ((-1, 95), 0), ((0, 64), 1), ((3, 100), 16 + 25), ((-40, 60), 64 + 16)]
        {
            assert_eq!(distance_squared(ColumnPos::new(column.0, column.1), plot), expected, "{column:?}");
        }
    }
}
