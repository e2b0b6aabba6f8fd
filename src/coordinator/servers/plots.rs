//! The plots of a dimension, and the ground that waits for them.

use super::leaving::Leaving;
use crate::coordinator::dimension::Dimension;
use crate::coordinator::saving::save::Saves;
use crate::coordinator::streaming::tickets::{Ticket, ViewerState};
use crate::coordinator::travel::letters::Post;
use crate::simulation::{Undeliverable, ViewerRadii};
use crate::space::{BatchPos, ColumnPos, TILE_BATCHES, TilePos};
use crate::storage::servers::{Crossing, Plot};
use crate::storage::{EntityRecord, PlotContents};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;
use std::time::Duration;

/// The wait before a plot is asked for again that has to wait for a join.
const ASKED_AGAIN: Duration = Duration::from_millis(100);
/// The wait before a plot of another server is asked for again.
const ELSEWHERE_RETRY: Duration = Duration::from_secs(2);

/// The plots of a dimension in a shared world. A plot without a state is neither owned nor needed here.
#[derive(Debug, Default)]
pub struct Plots {
    states: BTreeMap<TilePos, PlotState>,
    /// Plots that are being emptied, in groups that leave together.
    pub leaving: Vec<Leaving>,
    /// `true` if a round has something to do that it had not before.
    pub is_urgent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlotState {
    /// Something here needs it.
    Wanted {
        /// When a round asks for it, on the coordinator's clock.
        ask_at: Duration,
        /// The server that has it, or that ground around it, if that is known.
        server: Option<u64>,
    },
    Own {
        /// Since when nothing here needs it.
        idle_since: Option<Duration>,
    },
    Leaving,
}

impl Plots {
    /// Returns `true` if ground may be loaded and generated on the plot.
    pub fn is_open(&self, plot: TilePos) -> bool {
        matches!(self.states.get(&plot), Some(PlotState::Own { .. }))
    }

    /// Returns `true` if this server owns the plot, which may be leaving.
    pub fn is_own(&self, plot: TilePos) -> bool {
        matches!(self.states.get(&plot), Some(PlotState::Own { .. } | PlotState::Leaving))
    }

    /// The plots of this server.
    pub fn own(&self) -> impl Iterator<Item = TilePos> {
        self.states.keys().copied().filter(|plot| self.is_own(*plot))
    }

    /// Plots that are not leaving.
    pub fn open(&self) -> impl Iterator<Item = TilePos> {
        self.states.keys().copied().filter(|plot| self.is_open(*plot))
    }

    /// Notes that something here needs the plot.
    pub fn want(&mut self, plot: TilePos) {
        self.states.entry(plot).or_insert_with(|| {
            self.is_urgent = true;
            PlotState::Wanted { ask_at: Duration::ZERO, server: None }
        });
    }

    /// The server to which whatever needs the plot has to go, if it is known.
    pub fn server_of(&self, plot: TilePos) -> Option<u64> {
        match self.states.get(&plot) {
            Some(PlotState::Wanted { server, .. }) => *server,
            _ => None,
        }
    }

    /// The plots that a round should ask for now, those that have waited longest first.
    pub fn to_ask(&self, now: Duration) -> Vec<TilePos> {
        let due = |(plot, state): (&TilePos, &PlotState)| match state {
            PlotState::Wanted { ask_at, .. } if *ask_at <= now => Some((*ask_at, *plot)),
            _ => None,
        };
        let mut due: Vec<_> = self.states.iter().filter_map(due).collect();
        due.sort_unstable();
        due.into_iter().map(|(_, plot)| plot).collect()
    }

    /// Notes that a round asks for the plot, so that others have their turn in the next one.
    pub fn note_asked(&mut self, plot: TilePos, now: Duration) {
        if let Some(PlotState::Wanted { ask_at, .. }) = self.states.get_mut(&plot) {
            *ask_at = now.saturating_add(ASKED_AGAIN);
        }
    }

    /// Notes that another server has the plot or the ground around it.
    pub fn note_elsewhere(&mut self, plot: TilePos, of: u64, now: Duration) {
        if let Some(PlotState::Wanted { ask_at, server }) = self.states.get_mut(&plot) {
            *server = Some(of);
            *ask_at = now.saturating_add(ELSEWHERE_RETRY);
        }
    }

    fn set_own(&mut self, plot: TilePos) {
        self.states.insert(plot, PlotState::Own { idle_since: None });
    }

    /// Marks plots as leaving.
    pub fn set_leaving(&mut self, plots: &BTreeSet<TilePos>) {
        self.states.extend(plots.iter().map(|plot| (*plot, PlotState::Leaving)));
    }

    fn remove(&mut self, plot: TilePos) {
        self.states.remove(&plot);
    }

    /// Forgets wanted plots that nothing needs any more, and returns them. Returns the own plots that nothing has needed for
    /// this long, too.
    fn sort_out(
        &mut self,
        is_needed: impl Fn(TilePos) -> bool,
        now: Duration,
        idle: Duration,
    ) -> (Vec<TilePos>, BTreeSet<TilePos>) {
        let (mut unwanted, mut left) = (Vec::new(), BTreeSet::new());
        for (plot, state) in &mut self.states {
            match state {
                PlotState::Wanted { .. } if !is_needed(*plot) => unwanted.push(*plot),
                PlotState::Own { idle_since } if is_needed(*plot) => *idle_since = None,
                PlotState::Own { idle_since } => {
                    if now.saturating_sub(*idle_since.get_or_insert(now)) >= idle {
                        left.insert(*plot);
                    }
                }
                PlotState::Wanted { .. } | PlotState::Leaving => {}
            }
        }
        unwanted.iter().for_each(|plot| self.remove(*plot));
        (unwanted, left)
    }
}

/// The smallest distance of a column from a plot, squared.
fn distance_squared(column: ColumnPos, plot: TilePos) -> u128 {
    let [low, high] =
        [0, TILE_BATCHES - 1].map(|place| plot.batch(place).map(|batch| batch.column(if place == 0 { 0 } else { 15 })));
    let (Some(low), Some(high)) = (low, high) else { return u128::MAX };
    column.distance_squared(ColumnPos::new(column.x.clamp(low.x, high.x), column.z.clamp(low.z, high.z)))
}

impl Dimension {
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
            self.stored.claim(batch, center);
            return;
        }
        self.resident.claim(batch, center);
        if let Some(plots) = &mut self.plots {
            plots.want(center.tile());
        }
    }

    /// Lets everything on a plot be found again that waited for it.
    fn end_wait(&mut self, plot: TilePos) {
        for batch in plot.batches() {
            let (resident, stored) = (self.resident.claimed_in_batch(batch), self.stored.claimed_in_batch(batch));
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
        self.stored.restore_tile(plot, &stored);
        self.history.restore(plot, history);
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
            self.viewers.iter().filter(|(ticket, viewer)| matches!(ticket, Ticket::Region(_)) && here(viewer));
        let tickets: Vec<Ticket> = tickets.map(|(ticket, _)| *ticket).collect();
        tickets.into_iter().for_each(|ticket| self.release(ticket));
        self.stored.restore_tile(plot, &[0; TILE_BATCHES]);
        self.history.restore(plot, Default::default());
        // Columns that could not be read count as completed until they are tried again.
        self.resident.restore_tile(plot, &[0; TILE_BATCHES]);
        let columns = plot.batches().flat_map(|batch| (0..16).map(move |place| batch.column(place)));
        columns.for_each(|column| _ = self.generation.failures.forget(column));
        if let Some(plots) = &mut self.plots {
            plots.remove(plot);
        }
        self.end_wait(plot);
    }

    /// Notes that another server has a plot or the ground around it. Letters that wait for it go there, or come back.
    pub fn note_elsewhere(&mut self, plot: TilePos, other: u64, saves: &mut Saves, post: &mut Post) {
        let (id, now) = (self.id, self.real_now);
        let Some(plots) = &mut self.plots else { return };
        plots.note_elsewhere(plot, other, now);
        for (column, letters) in self.letters.extract_if(.., |column, _| column.tile() == plot).collect::<Vec<_>>() {
            for letter in letters {
                let place = self.letter_place(column, &letter);
                self.release(Ticket::Letters(place));
                self.letter_places.end(place);
                match (post.share(&letter), letter.block()) {
                    (Some((kind, bytes)), Some(block)) => {
                        saves.send_to((id, plot), Crossing::Message { block, entity: None, kind, bytes });
                    }
                    _ => post.give_back(letter, Undeliverable::OtherServer(column)),
                }
            }
        }
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

    /// Forgets the plots that nothing needs, and returns those of this server that nothing has needed for `idle`.
    pub fn unneeded_plots(&mut self, idle: Duration) -> BTreeSet<TilePos> {
        let Some(mut plots) = self.plots.take() else { return BTreeSet::new() };
        let mut used: BTreeSet<TilePos> = self.columns.iter().map(|(column, _)| column.tile()).collect();
        used.extend(self.letters.keys().map(|column| column.tile()));
        used.extend(self.transit.iter().map(|traveller| traveller.position.column().tile()));
        used.extend(self.sought.iter());
        let is_needed = |plot: TilePos| {
            let reaches =
                |(center, radius): (ColumnPos, u32)| distance_squared(center, plot) <= u128::from(radius).pow(2);
            used.contains(&plot) || self.viewers.values().any(|viewer| reaches((viewer.center, viewer.radii.load)))
        };
        let (unwanted, left) = plots.sort_out(is_needed, self.real_now, idle);
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

    #[test]
    fn a_plot_is_given_up_after_a_while_and_a_wish_at_once() {
        let (at, idle) = (Duration::from_secs, Duration::from_secs(10));
        let [own, wanted, needed] = [0, 1, 2].map(|x| TilePos::new(x, 0));
        let mut plots = Plots::default();
        plots.set_own(own);
        plots.want(wanted);
        plots.want(needed);
        assert_eq!(plots.to_ask(at(0)), [wanted, needed]);
        plots.note_asked(wanted, at(0));
        assert_eq!((plots.to_ask(at(0)), plots.to_ask(at(1))), (vec![needed], vec![needed, wanted]));
        plots.note_elsewhere(needed, 7, at(0));
        assert_eq!((plots.to_ask(at(1)), plots.to_ask(at(2))), (vec![wanted], vec![wanted, needed]));
        assert_eq!((plots.server_of(needed), plots.server_of(wanted)), (Some(7), None));
        assert_eq!(plots.sort_out(|plot| plot == needed, at(5), idle), (vec![wanted], BTreeSet::new()));
        assert_eq!(plots.sort_out(|_| true, at(14), idle), (vec![], BTreeSet::new()));
        assert_eq!(plots.sort_out(|plot| plot == needed, at(15), idle), (vec![], BTreeSet::new()));
        assert_eq!(plots.sort_out(|plot| plot == needed, at(25), idle), (vec![], [own].into()));
        plots.set_leaving(&[own].into());
        assert!(plots.is_own(own) && !plots.is_open(own) && plots.open().count() == 0);
    }
}
