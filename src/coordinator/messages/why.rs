//! Why a column or a region is as it is: the first cause, and the action that ends it.

use crate::coordinator::messages::clocks::DimensionClock;
use crate::coordinator::messages::faults::RegionFault;
use crate::coordinator::messages::settings::Backlog;
use crate::coordinator::messages::statistics::{RegionStatistics, TimeWindow, WorldStatistics};
use crate::region::{RegionId, RegionState};
use crate::space::{ChunkPos, ColumnPos, DimensionId, SectionPos};
use bevy::prelude::*;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// Asks what keeps a column loaded, or what it waits for. A [`ColumnAnswer`](crate::view::ColumnAnswer) with the same number answers
/// it. The question loads nothing.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskColumn {
    /// A number of the game's choice that identifies the answer.
    pub request: u64,
    /// The dimension.
    pub dimension: DimensionId,
    /// The column.
    pub column: ColumnPos,
}

/// What the coordinator knows about a column.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnReport {
    /// Where the column is in its life.
    pub phase: ColumnPhase,
    /// How long it has been with its region, on order, failed or lost, to the second; `None` if it is nowhere but in the store.
    pub since: Option<Duration>,
    /// The first cause of its state.
    pub cause: ColumnCause,
    /// The region of its place.
    pub region: Option<RegionId>,
    /// The tickets that hold it, at most 16, those with the nearest centers first.
    pub tickets: Vec<HeldBy>,
    /// The number of all tickets that hold it.
    pub holds: u32,
    /// The number of letters that wait for it. They hold it in turns.
    pub letters: usize,
    /// `true` if it was ever generated and is in the store, or on its way there.
    pub is_stored: bool,
    /// `true` if changes of it are on their way into the store. Changes that its region has not handed out do not count.
    pub is_being_saved: bool,
    /// The time since its region handed out everything unsaved; `None` if it has not yet, or is ticking just now.
    pub last_save: Option<Duration>,
    /// The time until it does so again; `None` as for `last_save`.
    pub next_save: Option<Duration>,
    /// The time that a thread took to generate it, or to make it from what was stored, and to light it; `None` if its region
    /// fetched it, or if it is not here any more.
    pub made_in: Option<Duration>,
}

/// Where a column is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColumnPhase {
    /// It is not loaded, and was never generated.
    Absent,
    /// It is only in the store.
    Stored,
    /// It is being loaded or generated.
    Ordered,
    /// It is being generated for the store only.
    ForStore,
    /// It could not be loaded or generated. It is tried again.
    Failed,
    /// It could not be generated, and is tried again only on demand.
    SetAside,
    /// Its region has it.
    Loaded,
    /// Its region is about to evict it, or parts of it.
    Leaving,
    /// It was lost with its halted region, and is in the store as that region saved it last.
    Halted,
    /// It was lost with a halted region, and is read again soon.
    Lost,
}

/// A ticket that keeps columns loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ticket {
    /// A viewer of the main world.
    Main(Entity),
    /// A viewer in a region, or on its way between two, by its stable id.
    Region(Uuid),
    /// A place that letters wait for. Captures and restores send letters too.
    Letters(ChunkPos),
}

/// A ticket that holds a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldBy {
    /// The ticket.
    pub ticket: Ticket,
    /// The column in the middle of what it holds.
    pub center: ColumnPos,
    /// Its radius in columns, with the margin within which loaded columns stay.
    pub radius: u32,
}

/// The first cause of a column's state.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnCause {
    /// This ticket, of those that hold the column, has the nearest center.
    Held(HeldBy),
    /// No ticket reaches it. Tickets do not load what lies in their margin.
    NoTicket,
    /// A system of its region read it within a tick, and no ticket holds it.
    Read,
    /// A pre-generation makes it.
    Pregeneration,
    /// It is within the generation radius of this viewer, which generates it for the store.
    GeneratedFor(HeldBy),
    /// It is held and would be generated, but the generation of its dimension is paused.
    GenerationPaused,
    /// The store cannot keep up, so nothing new is ordered.
    StoreBehind,
    /// The store could not be read, and is asked again after this time.
    StoreFails(Duration),
    /// As many columns are in flight as may be.
    AllInFlight {
        /// The columns in flight.
        in_flight: usize,
        /// The limit.
        limit: usize,
    },
    /// It has to wait because of a cap of columns per second: that of its dimension, or of the viewer.
    Capped,
    /// Ground that is nearer to a viewer comes first.
    NearerFirst,
    /// It could not be loaded or generated.
    Failed {
        /// The reason, if it is among the last 64 of the dimension.
        error: Option<String>,
        /// The number of tries.
        attempts: u32,
        /// The time until the next try; `None` if it is tried only on demand.
        retry: Option<Duration>,
    },
    /// Its region has halted.
    RegionHalted(Arc<RegionFault>),
    /// The store does not have the last changes of it yet.
    AwaitsSave,
    /// Another server has its ground; its incarnation is known if the ground was asked for.
    OtherServer(Option<u64>),
    /// Its dimension is being closed.
    Closing,
}

/// Starts or stops following an entity. While it is followed, each change of its place is told with an
/// [`EntityPlaced`](crate::view::EntityPlaced), the present one first. Each start needs its own stop.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowEntity {
    /// The stable id of the entity.
    pub id: Uuid,
    /// `true` to start, `false` to stop.
    pub follow: bool,
}

/// The whereabouts of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// In the world of this region, or of the one that absorbed it.
    Region(DimensionId, RegionId),
    /// On its way to this column: in its region's inbox, or waiting for the column.
    OnTheWay(DimensionId, ColumnPos),
}

/// The first cause of how a region ticks, from [`WorldStatistics::why`].
#[derive(Clone, Debug, PartialEq)]
pub enum RegionCause {
    /// Its tick panicked, or a system of it returned an error.
    Halted(Arc<RegionFault>),
    /// A task of this region has been running for too long.
    Hung {
        /// The region: the one that was asked about, or one that it waits for.
        region: RegionId,
        /// How long its task has been running.
        running_for: Duration,
        /// The last step that it passed, or the game's schedule that is running.
        step: String,
    },
    /// The database confirms no heartbeat of this server.
    Frozen,
    /// The store is so far behind that no region ticks.
    StoreBehind,
    /// The region is paused.
    Paused,
    /// Its dimension is paused.
    DimensionPaused,
    /// It waits for a ticking region beside it, which absorbs it.
    Merging,
    /// It ticks together with this region, which does not tick, or whose ticks are too long.
    Coupled(DimensionId, RegionId),
    /// It has not ticked for long enough to tell.
    New,
    /// Its ticks take longer than their period.
    LongTicks {
        /// The mean time of its ticks.
        mean: Duration,
        /// The time between two ticks.
        period: Duration,
    },
    /// It waits for a thread: other regions keep them busy.
    NoThread {
        /// The other region with the highest utilisation.
        busiest: Option<(DimensionId, RegionId)>,
    },
    /// It ticks as often as it should.
    OnTime,
}

impl Display for Ticket {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Main(entity) => write!(f, "viewer {entity}"),
            Self::Region(id) => write!(f, "viewer {id}"),
            Self::Letters(chunk) => write!(f, "letters to chunk {chunk}"),
        }
    }
}

impl Display for HeldBy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { ticket, center, radius } = self;
        match ticket {
            Ticket::Letters(_) => write!(f, "{ticket}"),
            _ => write!(f, "{ticket} at column {center}, radius {radius}"),
        }
    }
}

impl Display for ColumnPhase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Absent => "not generated",
            Self::Stored => "stored, not loaded",
            Self::Ordered => "being loaded",
            Self::ForStore => "being generated for the store",
            Self::Failed => "failed",
            Self::SetAside => "failed and set aside",
            Self::Loaded => "loaded",
            Self::Leaving => "leaving",
            Self::Halted => "lost with its halted region",
            Self::Lost => "to be read again",
        })
    }
}

impl Display for ColumnCause {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held(by) => write!(f, "held by {by}"),
            Self::NoTicket => f.write_str("no ticket reaches it"),
            Self::Read => f.write_str("a system of its region has read it; no ticket holds it"),
            Self::Pregeneration => f.write_str("a pre-generation makes it"),
            Self::GeneratedFor(by) => write!(f, "generated for {by}"),
            Self::GenerationPaused => f.write_str("generation is paused in its dimension"),
            Self::StoreBehind => f.write_str("the store cannot keep up, so nothing new is ordered"),
            Self::StoreFails(wait) => write!(f, "the store cannot be read; next try in {} s", wait.as_secs()),
            Self::AllInFlight { in_flight, limit } => {
                write!(f, "{in_flight} columns are in flight, of {limit} at most")
            }
            Self::Capped => f.write_str("a cap of columns per second holds it back"),
            Self::NearerFirst => f.write_str("nearer ground comes first"),
            Self::Failed { error, attempts, retry } => {
                let error = error.as_deref().unwrap_or("it failed; the reason is in the log");
                match retry {
                    Some(wait) => write!(f, "{error}; try {} follows in {} s", attempts + 1, wait.as_secs()),
                    None => write!(f, "{error}; given up after {attempts} tries"),
                }
            }
            Self::RegionHalted(fault) => write!(f, "its region has halted: {}", fault.reason),
            Self::AwaitsSave => f.write_str("its last changes are not in the store yet"),
            Self::OtherServer(Some(server)) => write!(f, "server {server} has its ground"),
            Self::OtherServer(None) => f.write_str("this server does not have its ground"),
            Self::Closing => f.write_str("its dimension is being closed"),
        }
    }
}

impl ColumnCause {
    /// What to do about it, in a sentence.
    pub fn action(&self) -> &'static str {
        match self {
            Self::Held(HeldBy { ticket: Ticket::Letters(_), .. }) => {
                "It is released once the letters are delivered, or come back."
            }
            Self::Held(_) => "Despawn or move the viewer, or lower its radius, to release it.",
            Self::NoTicket => "A Viewer whose radius reaches it loads it; a Pregeneration generates it for the store.",
            Self::Read => "It is evicted soon, unless the system reads it again.",
            Self::Pregeneration | Self::GeneratedFor(_) => "It is in the store when that is done.",
            Self::GenerationPaused => "Set DimensionGeneration::paused to false.",
            Self::StoreBehind => "Wait for the disk; if this lasts, look for what slows it down, or save less often.",
            Self::StoreFails(_) => "Look for the error of the store in the log, and at the disk.",
            Self::AllInFlight { .. } => "Wait; Pacing has the limit, which falls while frames or ticks are slow.",
            Self::Capped => "Raise DimensionGeneration::columns_per_second, or ViewerLimits.",
            Self::NearerFirst => "Wait; fewer viewers or smaller radii make it come sooner.",
            Self::Failed { .. } => "Mend the generator or the store, then send RetryColumns.",
            Self::RegionHalted(_) => "Restart the region with ControlRegion; the fault says which system failed.",
            Self::AwaitsSave => "Wait for the store; SaveFailed says if it cannot write.",
            Self::OtherServer(_) => "Ask that server, or let a player of this one go there.",
            Self::Closing => "Open the dimension again.",
        }
    }
}

impl Display for RegionCause {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Halted(fault) => {
                write!(f, "halted: {}", fault.reason)?;
                fault.system.iter().try_for_each(|system| write!(f, ", in {system}"))
            }
            Self::Hung { region, running_for, step } => {
                write!(f, "region {} has been in {step} for {} s", region.index(), running_for.as_secs())
            }
            Self::Frozen => f.write_str("the database confirms no heartbeat of this server"),
            Self::StoreBehind => f.write_str("the store is too far behind"),
            Self::Paused => f.write_str("it is paused"),
            Self::DimensionPaused => f.write_str("its dimension is paused"),
            Self::Merging => f.write_str("it waits for a region beside it, with which it merges"),
            Self::Coupled(dimension, region) => {
                write!(f, "it is coupled with region {} of {dimension}, which does not tick or is slow", region.index())
            }
            Self::New => f.write_str("it has not ticked for half a second yet"),
            Self::LongTicks { mean, period } => {
                let [mean, period] = [mean, period].map(|time| time.as_secs_f64() * 1e3);
                write!(f, "a tick takes {mean:.1} ms, of a period of {period:.1} ms")
            }
            Self::NoThread { busiest: None } => f.write_str("it waits for a thread"),
            Self::NoThread { busiest: Some((dimension, region)) } => {
                write!(f, "other regions keep the threads busy, most of all region {} of {dimension}", region.index())
            }
            Self::OnTime => f.write_str("it ticks as often as it should"),
        }
    }
}

impl RegionCause {
    /// What to do about it, in a sentence.
    pub fn action(&self) -> &'static str {
        match self {
            Self::Halted(_) => "Mend the system, then restart the region with ControlRegion.",
            Self::Hung { .. } => "Look for an endless loop or a lock in that step; the region ticks on once it ends.",
            Self::Frozen => "Look at the database and the way to it; the regions tick on once it answers.",
            Self::StoreBehind => "Look at the disk; the regions tick on once the store has caught up.",
            Self::Paused => "Let it run with ControlRegion.",
            Self::DimensionPaused => "Set DimensionClock::paused to false, or step it with StepDimension.",
            Self::Merging => "Wait for the end of that region's tick.",
            Self::Coupled(..) => "Look at that region, or despawn the Coupling.",
            Self::New => "Wait.",
            Self::LongTicks { .. } => "Make a profile to see which system takes the time.",
            Self::NoThread { .. } => "Make a profile of the busiest region, or raise ThreadSettings::regions.",
            Self::OnTime => "There is nothing to do.",
        }
    }
}

/// The share of the wanted rate from which a region is on time.
const ON_TIME: f64 = 0.95;
/// The highest rate of a dimension's clock.
const MOST_RATE: f64 = 1e6;

impl WorldStatistics {
    /// Why a region ticks as it does, over the last five seconds; `None` if there is no such region.
    pub fn why(&self, dimension: DimensionId, region: RegionId) -> Option<RegionCause> {
        let of = self.region(dimension, region)?;
        let slow = || self.coupled_with(of).or_else(|| self.slow(of)).unwrap_or(RegionCause::OnTime);
        Some(self.stopped(of).unwrap_or_else(slow))
    }

    /// The clock of the region's dimension.
    fn clock_of(&self, of: &RegionStatistics) -> DimensionClock {
        let known = self.dimensions.iter().find(|known| known.dimension == of.dimension);
        known.map(|known| known.clock).unwrap_or_default()
    }

    /// The real time between two ticks of the region, as it should be.
    fn period(&self, of: &RegionStatistics) -> Duration {
        let clock = self.clock_of(of);
        let own = of.tick_rate.map_or(clock, |ticks_per_second| DimensionClock { ticks_per_second, ..clock });
        let rate = if clock.rate > 0.0 { clock.rate.min(MOST_RATE) } else { 1.0 };
        Duration::try_from_secs_f64(own.period().as_secs_f64() / rate).unwrap_or(Duration::MAX)
    }

    /// Why the region does not tick at all.
    fn stopped(&self, of: &RegionStatistics) -> Option<RegionCause> {
        let hung = |region: &RegionStatistics| {
            let running_for = region.hung?;
            let step = region.hung_in.clone().unwrap_or_else(|| "its task".to_owned());
            Some(RegionCause::Hung { region: region.region, running_for, step })
        };
        if of.halted {
            let fault = of.fault.clone().unwrap_or_else(|| Arc::new(RegionFault::new("the reason is in the log")));
            return Some(RegionCause::Halted(fault));
        }
        if let Some(hung) = hung(of) {
            return Some(hung);
        }
        if self.is_frozen {
            return Some(RegionCause::Frozen);
        }
        if self.backlog == Backlog::TicksWait {
            return Some(RegionCause::StoreBehind);
        }
        if of.paused_itself {
            return Some(RegionCause::Paused);
        }
        if of.paused || self.clock_of(of).paused {
            return Some(RegionCause::DimensionPaused);
        }
        if of.state == RegionState::Transient {
            let mut here =
                self.regions.iter().filter(|region| region.dimension == of.dimension && is_beside(region, of));
            return Some(here.find_map(hung).unwrap_or(RegionCause::Merging));
        }
        None
    }

    fn coupled_with(&self, of: &RegionStatistics) -> Option<RegionCause> {
        let mut others = of.coupled.iter().filter_map(|(dimension, region)| self.region(*dimension, *region));
        let is_long = |other| matches!(self.slow(other), Some(RegionCause::LongTicks { .. }));
        let holds = others.find(|other| self.stopped(other).is_some() || is_long(other))?;
        Some(RegionCause::Coupled(holds.dimension, holds.region))
    }

    /// Why a region that ticks is slow, if it is.
    fn slow(&self, of: &RegionStatistics) -> Option<RegionCause> {
        let (window, period) = (of.window(TimeWindow::FiveSeconds), self.period(of));
        let Some(rate) = window.ticks_per_second else { return Some(RegionCause::New) };
        let length =
            if rate > 0.0 { f64::from(window.ticks) / rate } else { TimeWindow::FiveSeconds.length().as_secs_f64() };
        // The next tick may be due just after the window.
        if f64::from(window.ticks + 1) * period.as_secs_f64() >= length * ON_TIME {
            return None;
        }
        let mean = Duration::from_secs_f64(window.utilisation / rate.max(0.01));
        if window.utilisation >= ON_TIME || mean.as_secs_f64() >= period.as_secs_f64() * ON_TIME {
            return Some(RegionCause::LongTicks { mean, period });
        }
        let others = self.regions.iter().filter(|other| (other.dimension, other.region) != (of.dimension, of.region));
        let utilisation = |region: &RegionStatistics| region.window(TimeWindow::FiveSeconds).utilisation;
        let busiest = others.max_by(|a, b| utilisation(a).total_cmp(&utilisation(b)));
        let busiest = busiest.filter(|busiest| utilisation(busiest) > 0.0);
        Some(RegionCause::NoThread { busiest: busiest.map(|region| (region.dimension, region.region)) })
    }
}

/// Returns `true` if a section of one region adjoins one of the other.
fn is_beside(one: &RegionStatistics, other: &RegionStatistics) -> bool {
    let around = |section: &SectionPos| {
        let section = *section;
        (-1..=1).flat_map(move |x| {
            (-1..=1).map(move |z| SectionPos::new(section.x.saturating_add(x), section.z.saturating_add(z)))
        })
    };
    one.sections.iter().flat_map(around).any(|section| other.contains(section))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::messages::statistics::{DimensionStatistics, TickWindow};

    fn region(id: u64, ticks: u32, ticks_per_second: f64, utilisation: f64) -> RegionStatistics {
        let window =
            TickWindow { ticks, ticks_per_second: Some(ticks_per_second), utilisation, ..TickWindow::default() };
        RegionStatistics { windows: [window; 3], ..RegionStatistics::new(DimensionId(1), RegionId::new(id)) }
    }

    fn why(clock: DimensionClock, regions: Vec<RegionStatistics>) -> RegionCause {
        let dimension = DimensionStatistics { dimension: DimensionId(1), clock, ..default() };
        let statistics = WorldStatistics { dimensions: vec![dimension], regions, ..default() };
        statistics.why(DimensionId(1), RegionId::new(1)).unwrap()
    }

    #[test]
    fn clocks_of_any_rate_have_a_cause() {
        for rate in [f64::NAN, -1.0, 0.0, f64::MIN_POSITIVE, 1e-21, 0.001, 1.0, 1e9, f64::INFINITY] {
            for ticks_per_second in [f64::NAN, 0.0, 1e-300, 0.1, 20.0, 1e300] {
                let clock = DimensionClock { rate, ticks_per_second, paused: false };
                for (ticks, rate) in [(0, 0.0), (1, 0.2), (100, 20.0)] {
                    assert!(!why(clock, vec![region(1, ticks, rate, 0.5)]).to_string().is_empty());
                }
            }
        }
    }

    #[test]
    fn slow_clocks_are_on_time() {
        // A tick a second: four or five of them end in the window.
        let clock = DimensionClock { ticks_per_second: 1.0, ..default() };
        assert_eq!(why(clock, vec![region(1, 4, 0.8, 0.01)]), RegionCause::OnTime);
        // A tick in ten seconds: none or one does.
        let clock = DimensionClock { ticks_per_second: 0.1, ..default() };
        assert_eq!(why(clock, vec![region(1, 0, 0.0, 0.0)]), RegionCause::OnTime);
    }

    #[test]
    fn a_region_is_not_held_up_by_itself() {
        let clock = DimensionClock::default();
        assert_eq!(why(clock, vec![region(1, 50, 10.0, 0.3)]), RegionCause::NoThread { busiest: None });
        let busiest = Some((DimensionId(1), RegionId::new(2)));
        let regions = vec![region(1, 50, 10.0, 0.3), region(2, 100, 20.0, 0.2), region(3, 100, 20.0, 0.1)];
        assert_eq!(why(clock, regions), RegionCause::NoThread { busiest });
        // Half of its ticks are short, and it is busy all of the time.
        let mean = Duration::from_millis(98);
        let cause = why(clock, vec![region(1, 50, 10.0, 0.98)]);
        assert_eq!(cause, RegionCause::LongTicks { mean, period: Duration::from_millis(50) });
    }
}
