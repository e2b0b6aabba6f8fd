//! The plots of a dimension in a world that several servers share. A plain data structure.

use crate::region::RegionId;
use crate::space::{ColumnPos, TilePos};
use bevy::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Plots that leave together.
#[derive(Clone, Debug)]
pub struct Leaving {
    pub plots: BTreeSet<TilePos>,
    /// The server that gets them; `None` if they become free.
    pub to: Option<u64>,
    /// Regions whose last task began before the plots were closed. They may still report ground that they fetched there.
    pub awaited: BTreeSet<RegionId>,
    /// The commit that stores everything on the plots, once they are empty.
    pub until: Option<u64>,
    /// `true` if nothing of them is left here. A round may give them up.
    pub is_ready: bool,
}

impl Leaving {
    pub fn has(&self, column: ColumnPos) -> bool {
        self.plots.contains(&column.tile())
    }
}

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

    pub fn set_own(&mut self, plot: TilePos) {
        self.states.insert(plot, PlotState::Own { idle_since: None });
    }

    /// Marks plots as leaving.
    pub fn set_leaving(&mut self, plots: &BTreeSet<TilePos>) {
        self.states.extend(plots.iter().map(|plot| (*plot, PlotState::Leaving)));
    }

    pub fn remove(&mut self, plot: TilePos) {
        self.states.remove(&plot);
    }

    /// Forgets wanted plots that nothing needs any more, and returns them. Returns the own plots that nothing has needed for
    /// this long, too.
    pub fn sort_out(
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

#[cfg(test)]
mod tests {
    use super::*;

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
