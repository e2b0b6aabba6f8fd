//! How much ground a viewer may have loaded and generated, however fast it moves: a limit per second, and one in total.
//!
//! Each viewer has two leaky buckets, one for its loaded and one for its generated columns. They drain at the allowed rates.
//! A bucket has room for twice the viewer's disc and for a second's worth, so that a new player and one who teleports at once
//! need not wait. A viewer with a full bucket gets no turn. Orders of other tickets for the same ground do not count. So a
//! viewer slows down only itself.

use crate::coordinator::messages::settings::ViewerLimits;
use crate::coordinator::messages::why::Ticket;
use crate::simulation::ViewerRadii;
use std::collections::BTreeMap;
use std::time::Duration;

/// The shortest time between two refills, each of which visits all viewers.
const REFILL_PERIOD: Duration = Duration::from_millis(10);

/// The number of columns in a disc, or slightly more.
fn columns(radius: u32) -> f64 {
    // The same formula as `disc_radius`.
    std::f64::consts::PI * (f64::from(radius) + std::f64::consts::FRAC_1_SQRT_2).powi(2)
}

/// The columns recently loaded and generated for a viewer, and all that were ever generated for it.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    loaded: f64,
    generated: f64,
    total: u64,
    is_logged: bool,
}

/// The remaining allowances of a dimension's viewers. A plain data structure: it receives times and measures none.
#[derive(Debug, Default)]
pub struct ViewerCaps {
    pub limits: ViewerLimits,
    now: Duration,
    spent: BTreeMap<Ticket, Spent>,
}

impl ViewerCaps {
    pub fn new(limits: ViewerLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Drains the buckets. The bucket of a viewer that went is kept until it is empty, so that a viewer gains nothing by leaving
    /// and coming back.
    pub fn refill(&mut self, now: Duration, is_here: impl Fn(&Ticket) -> bool) {
        let elapsed = now.saturating_sub(self.now);
        if elapsed < REFILL_PERIOD {
            return;
        }
        self.now = now;
        let elapsed = elapsed.as_secs_f64();
        let run_out = |level: f64, rate: f64| if rate > 0.0 { (level - rate * elapsed).max(0.0) } else { level };
        let ViewerLimits { loaded_per_second, generated_per_second, .. } = self.limits;
        self.spent.retain(|ticket, spent| {
            spent.loaded = run_out(spent.loaded, loaded_per_second);
            spent.generated = run_out(spent.generated, generated_per_second);
            is_here(ticket) || spent.loaded + spent.generated > 0.0
        });
    }

    /// Returns `true` if columns may be loaded for it now.
    pub fn may_load(&self, ticket: Ticket, radii: ViewerRadii) -> bool {
        let spent = self.spent.get(&ticket).map_or(0.0, |spent| spent.loaded);
        spent < at_once(radii.load, self.limits.loaded_per_second)
    }

    /// Returns `true` if columns may be generated for it now.
    pub fn may_generate(&self, ticket: Ticket, radii: ViewerRadii) -> bool {
        let Spent { generated, total, .. } = self.spent.get(&ticket).copied().unwrap_or_default();
        total < self.limits.generated && generated < at_once(radii.generation, self.limits.generated_per_second)
    }

    /// Notes that columns are loaded for it.
    pub fn note_loaded(&mut self, ticket: Ticket, columns: usize) {
        if let Some(spent) = self.spent_by(ticket) {
            spent.loaded += columns as f64;
        }
    }

    /// Notes that columns are generated for it.
    pub fn note_generated(&mut self, ticket: Ticket, columns: usize) {
        let most = self.limits.generated;
        let Some(spent) = self.spent_by(ticket) else { return };
        spent.generated += columns as f64;
        spent.total += columns as u64;
        if spent.total >= most && !std::mem::replace(&mut spent.is_logged, true) {
            bevy::log::warn!(
                "{} columns were generated for {ticket:?}, as many as ViewerLimits::generated allows: it gets no new ones",
                spent.total
            );
        }
    }

    /// Letters have limits at their sender.
    fn spent_by(&mut self, ticket: Ticket) -> Option<&mut Spent> {
        let is_viewer = !matches!(ticket, Ticket::Letters(_));
        is_viewer.then(|| self.spent.entry(ticket).or_default())
    }
}

/// The number of columns at once for a viewer with this radius.
fn at_once(radius: u32, per_second: f64) -> f64 {
    2.0 * columns(radius) + if per_second > 0.0 { per_second } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::ChunkPos;
    use uuid::Uuid;

    const VIEWER: Ticket = Ticket::Region(Uuid::nil());

    fn radii(radius: u32) -> ViewerRadii {
        ViewerRadii::new(radius, radius, 0)
    }

    /// Counts the columns generated in so many seconds for a viewer that always wants more, in batches.
    fn greedy(caps: &mut ViewerCaps, radii: ViewerRadii, from: u64, seconds: u64, is_here: bool) -> usize {
        let mut generated = 0;
        for step in from * 1_000..(from + seconds) * 1_000 {
            caps.refill(Duration::from_millis(step), |_| is_here);
            while caps.may_generate(VIEWER, radii) {
                caps.note_generated(VIEWER, 16);
                generated += 16;
            }
        }
        generated
    }

    /// Promise, worlds: A viewer that jumps around stays within its limits, and starves no other viewer.
    #[test]
    fn a_greedy_viewer_gets_its_rate_and_twice_its_visible_columns() {
        let limits = ViewerLimits { generated_per_second: 100.0, ..ViewerLimits::default() };
        let mut caps = ViewerCaps::new(limits);
        let first = greedy(&mut caps, radii(12), 1, 60, true);
        assert!((6_000 + 2 * 441..6_000 + 2 * 500 + 150).contains(&first), "{first}");
        // Leaving and coming back gains nothing.
        caps.refill(Duration::from_secs(61), |_| false);
        let again = greedy(&mut caps, radii(12), 61, 10, true);
        assert!((960..1_050).contains(&again), "{again}");
        assert!(caps.may_load(VIEWER, radii(12)), "it loads as before");
        // After a while without orders, all buckets are empty.
        caps.refill(Duration::from_secs(600), |_| false);
        assert!(caps.spent.is_empty());
    }

    #[test]
    fn a_total_is_never_refilled_as_long_as_the_viewer_is_there() {
        let mut caps = ViewerCaps::new(ViewerLimits { generated: 1_000, ..ViewerLimits::default() });
        assert_eq!(greedy(&mut caps, radii(8), 0, 10, true), 1_008, "the last batch is not cut");
        caps.refill(Duration::from_secs(100_000), |_| true);
        assert!(!caps.may_generate(VIEWER, radii(8)) && caps.may_load(VIEWER, radii(8)));
    }

    #[test]
    fn with_invalid_rates_only_the_burst_passes_and_letters_are_not_counted() {
        for rate in [0.0, -1.0, f64::NAN] {
            let mut caps = ViewerCaps::new(ViewerLimits { generated_per_second: rate, ..ViewerLimits::default() });
            let generated = greedy(&mut caps, radii(2), 0, 100, true);
            assert!((26..80).contains(&generated), "{generated} at {rate}");
        }
        let mut caps = ViewerCaps::new(ViewerLimits { loaded_per_second: f64::INFINITY, ..ViewerLimits::default() });
        caps.note_loaded(VIEWER, usize::MAX);
        caps.refill(Duration::from_secs(1), |_| true);
        assert!(caps.may_load(VIEWER, radii(0)));
        let letters = Ticket::Letters(ChunkPos::default());
        caps.note_generated(letters, usize::MAX);
        assert!(caps.may_generate(letters, radii(0)));
    }

    #[test]
    fn a_radius_is_cut_to_the_loadable_columns() {
        let limits = ViewerLimits { loaded: 1_000, ..ViewerLimits::default() };
        let cut = limits.cut(ViewerRadii::new(400, 500, 3));
        assert_eq!(cut, ViewerRadii { load: 17, generation: 500, vertical: 3 });
        assert_eq!(limits.cut(radii(17)), radii(17));
        assert_eq!(ViewerLimits { loaded: 0, ..limits }.cut(radii(9)).load, 0);
        let far = ViewerRadii::new(u32::MAX, u32::MAX, u32::MAX);
        assert_eq!(ViewerLimits::default().cut(far), far, "the defaults cut nothing");
    }
}
