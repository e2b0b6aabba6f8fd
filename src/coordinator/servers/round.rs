//! A round of questions to the database, on a thread beside the coordinator.

use crate::space::{DimensionId, TilePos};
use crate::storage::servers::{Crossing, CrossingId, Incarnation, Join, Plot, Sign, TERM, Watch};
use crate::storage::{PlotContents, StoreError, WorldStore};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// What this server wants to know and to have done. All times are the coordinator's.
#[derive(Debug, Default)]
pub struct Wishes {
    /// The plots of this server, for which crossings are read.
    pub own: BTreeSet<Plot>,
    /// Plots to acquire.
    pub acquire: BTreeSet<Plot>,
    /// Plots to release.
    pub release: BTreeSet<Plot>,
    /// Plots to hand over, each group with the server that gets it.
    pub hand_over: Vec<(BTreeSet<Plot>, u64)>,
    /// Players who have left this server.
    pub log_out: BTreeSet<String>,
    /// The open dimensions with their clocks and times of day.
    pub clocks: BTreeMap<DimensionId, (Duration, Option<f64>)>,
    /// The last commit that the store had confirmed when the round began.
    pub confirmed: u64,
    /// Plots of which crossings from region to region are read again, since some did not reach their region.
    pub with_local: BTreeSet<Plot>,
    /// `true` if the owners of all plots are read even if no join or handover has happened.
    pub looks_around: bool,
}

/// The answers.
#[derive(Debug, Default)]
pub struct Findings {
    /// When the confirmed heartbeat was sent.
    pub beaten: Duration,
    /// The living servers.
    pub signs: Vec<Sign>,
    /// The plots that this server owns now, besides those that it knew, and those that could not be handed over.
    pub acquired: BTreeMap<Plot, PlotContents>,
    /// Wanted plots that another server has, or whose surroundings it has.
    pub elsewhere: BTreeMap<Plot, u64>,
    /// `true` if ground of this server has to wait for that of others, which is about to come or to go.
    pub is_waiting: bool,
    /// Groups of plots that were given up, with the server that has got them.
    pub given_up: Vec<(BTreeSet<Plot>, Option<u64>)>,
    /// The owners of all plots in the open dimensions, if they were read.
    pub owners: Option<BTreeMap<Plot, u64>>,
    /// Territories of this server that a join gives to another one.
    pub leaving: Vec<(BTreeSet<Plot>, u64)>,
    /// The crossings to plots of this server.
    pub crossings: Vec<(CrossingId, Crossing)>,
    /// The clocks on which all servers agree.
    pub clocks: BTreeMap<DimensionId, Duration>,
}

/// What a server remembers from round to round.
pub struct Memory {
    watch: Watch,
    /// The numbers of joins when the owners were last read.
    joins: Option<BTreeMap<DimensionId, u64>>,
    /// `true` if ground of this server has to wait for that of others.
    is_waiting: bool,
    /// The crossings behind which the next round reads long queues. Some that cannot be received do not stop those behind them.
    read_to: BTreeMap<Plot, CrossingId>,
    /// The plots of which all crossings from region to region have been read since this server got them.
    settled: BTreeSet<Plot>,
}

impl Default for Memory {
    fn default() -> Self {
        let (read_to, settled) = Default::default();
        Self { watch: Watch::new(TERM), joins: None, is_waiting: false, read_to, settled }
    }
}

impl Memory {
    /// Has a round done. `began` is the beginning of the coordinator's clock.
    pub fn run(&mut self, store: &WorldStore, wishes: &Wishes, began: Instant) -> Result<Findings, StoreError> {
        let Some(server) = store.incarnation() else { return Ok(Findings::default()) };
        let found = self.try_run(store, server, wishes, began);
        if found.is_err() {
            self.watch.failed();
        }
        found
    }

    fn try_run(
        &mut self,
        store: &WorldStore,
        server: &Incarnation,
        wishes: &Wishes,
        began: Instant,
    ) -> Result<Findings, StoreError> {
        let mut found = Findings { beaten: began.elapsed(), ..Findings::default() };
        server.beat()?;
        for (&dimension, &(clock, days)) in &wishes.clocks {
            found.clocks.insert(dimension, store.agree_on_clock(dimension, clock, days)?);
        }
        found.signs = self.tend_servers(server, began)?;
        if !wishes.release.is_empty() {
            server.release(&wishes.release)?;
            found.given_up.push((wishes.release.clone(), None));
        }
        for (plots, to) in &wishes.hand_over {
            match server.hand_over(plots, *to)? {
                true => found.given_up.push((plots.clone(), Some(*to))),
                // The answer to an earlier attempt may have been lost.
                false if server.own_of(plots)?.is_empty() => found.given_up.push((plots.clone(), Some(*to))),
                false => match plots.iter().map(|plot| Ok((*plot, store.plot_contents(*plot)?))).collect() {
                    Ok(contents) => found.acquired.extend::<BTreeMap<_, _>>(contents),
                    // Everything on them is stored, so they can be free. A plot that cannot be read must not stop the server.
                    Err(error) if StoreError::is_damage(&error) => {
                        bevy::log::error!("plots that could not be handed over become free: {error}");
                        server.release(plots)?;
                        found.given_up.push((plots.clone(), None));
                    }
                    Err(error) => return Err(error),
                },
            }
        }
        if !wishes.log_out.is_empty() {
            server.log_out(&wishes.log_out)?;
        }
        let acquired = self.acquire(server, wishes, &mut found)?;
        let mut own = &(&wishes.own | &acquired) - &wishes.release;
        found.given_up.iter().for_each(|(plots, _)| own = &own - plots);
        own.extend(self.look_around(server, wishes, &mut found)?);
        for plot in own.difference(&wishes.own) {
            match store.plot_contents(*plot) {
                // It stays unloaded, and is tried again.
                Err(error) if error.is_damage() => bevy::log::error_once!("a plot cannot be used: {error}"),
                contents => drop(found.acquired.insert(*plot, contents?)),
            }
        }
        let with_local = &(&own - &self.settled) | &(&own & &wishes.with_local);
        (found.crossings, self.read_to) = server.crossings(&own, &with_local, &self.read_to)?;
        self.settled = own.into_iter().filter(|plot| !self.read_to.contains_key(plot)).collect();
        found.is_waiting = self.is_waiting;
        Ok(found)
    }

    /// Ends servers that show no sign of life, and returns the living ones.
    fn tend_servers(&mut self, server: &Incarnation, began: Instant) -> Result<Vec<Sign>, StoreError> {
        let asked = began.elapsed();
        let signs = server.signs()?;
        for silent in self.watch.read(asked, began.elapsed(), &signs) {
            if server.end(&silent)? {
                bevy::log::warn!("server {} showed no sign of life for {TERM:?}, and was ended", silent.incarnation);
            }
        }
        Ok(signs)
    }

    /// Acquires the wanted plots that are free, and asks for joins around the others. Returns the acquired ones.
    fn acquire(
        &mut self,
        server: &Incarnation,
        wishes: &Wishes,
        found: &mut Findings,
    ) -> Result<BTreeSet<Plot>, StoreError> {
        self.is_waiting = false;
        if wishes.acquire.is_empty() {
            return Ok(BTreeSet::new());
        }
        let taken = server.acquire(&wishes.acquire)?;
        if taken.is_empty() {
            return Ok(wishes.acquire.clone());
        }
        let is_beside = |(dimension, plot): &Plot, (of, other): &Plot| {
            dimension == of && plot.x.abs_diff(other.x) <= 1 && plot.z.abs_diff(other.z) <= 1
        };
        let is_free = |plot: &&Plot| !taken.keys().any(|other| is_beside(plot, other));
        let mut acquired: BTreeSet<Plot> = wishes.acquire.iter().filter(is_free).copied().collect();
        if !acquired.is_empty() && !server.acquire(&acquired)?.is_empty() {
            // Another server was quicker. The next round asks again.
            acquired.clear();
            self.is_waiting = true;
        }
        for plot in wishes.acquire.iter().filter(|plot| !is_free(plot)) {
            match server.ask_to_join(*plot)? {
                Join::Free => self.is_waiting = true,
                Join::Belongs(other) => drop(found.elsewhere.insert(*plot, other)),
                // Its ground comes to this server, or that of this server goes there.
                Join::Root(_) => self.is_waiting = true,
            }
        }
        Ok(acquired)
    }

    /// Reads the owners of all plots if they may have changed. Returns the plots of this server.
    fn look_around(
        &mut self,
        server: &Incarnation,
        wishes: &Wishes,
        found: &mut Findings,
    ) -> Result<Vec<Plot>, StoreError> {
        let dimensions: Vec<DimensionId> = wishes.clocks.keys().copied().collect();
        let joins = server.join_counts(&dimensions)?;
        if !wishes.looks_around && !self.is_waiting && self.joins.as_ref() == Some(&joins) {
            return Ok(Vec::new());
        }
        let mut owners: BTreeMap<Plot, u64> = BTreeMap::new();
        for dimension in dimensions {
            found.leaving.extend(server.leaving_territories(dimension)?);
            owners.extend(server.owners(dimension)?);
        }
        self.joins = Some(joins);
        let own = owners.iter().filter(|(_, owner)| **owner == server.number()).map(|(plot, _)| *plot).collect();
        found.owners = Some(owners);
        Ok(own)
    }
}

/// The plots of one dimension.
pub fn of_dimension(plots: &BTreeSet<Plot>, dimension: DimensionId) -> BTreeSet<TilePos> {
    plots.iter().filter(|(of, _)| *of == dimension).map(|(_, plot)| *plot).collect()
}
