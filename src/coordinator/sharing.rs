//! Small regions that share a world.
//!
//! A world with its schedule costs far more than the little that a small region does in a tick. So up to
//! [`TerranePlugin::regions_per_world`](super::TerranePlugin::regions_per_world) small and quick regions of a dimension share one.
//!
//! For the regionizer, such a region is in one long tick, in which it neither merges nor splits. If it should, or is no longer
//! small and quick, it leaves the world the way a part of a split does, and its long tick ends. The first region is the *host*:
//! tasks of the world run in its name. It leaves last, so the others leave with it.

use super::clocks::clock::Clock;
use super::clocks::coupling::Couplings;
use super::config::Settings;
use super::deadlines::{Deadlines, Running};
use super::dimension::{Dimension, Dimensions};
use super::region_slot::{Control, RegionSlot};
use super::saving::save::Saves;
use super::threads::Threads;
use crate::region::{RegionId, RegionPart, RegionState};
use crate::simulation::{Address, Letter, RegionNumbers};
use crate::space::{DimensionId, SectionPos};
use bevy::prelude::*;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::time::Duration;

/// A small region has at most this many columns.
const MAX_COLUMNS: usize = 256;
/// A small region has at most this many entities with a stable id.
const MAX_ENTITIES: usize = 64;
/// A region moves in with at most this share of either, so that it does not leave again at once.
const SPARE: f64 = 0.75;
/// A quick region's median tick takes at most this share of its period.
const QUICK: f64 = 1.0 / 256.0;
/// A shared world is slow if its median tick takes more than this share of its period. A world with half as much takes no guests.
const SLOW: f64 = 1.0 / 8.0;
/// A region must have ticked this often before it moves into a shared world.
const MIN_TICKS: u64 = 20;
/// How long a region stays alone after it had to leave a shared world. The time doubles with each exit for its own sake.
const ALONE: Duration = Duration::from_secs(5);
/// The number of times that this time doubles.
const MAX_DOUBLINGS: u32 = 6;
/// The time between two searches for regions that can share a world.
const PERIOD: Duration = Duration::from_millis(250);
/// The number of regions of a dimension that may move at a time.
const MAX_MOVES: usize = 256;

/// A world that several regions share.
struct SharedWorld {
    /// The slot of the host and of the world; `None` while the world is on a region thread.
    slot: Option<Box<RegionSlot>>,
    /// The other regions, ascending.
    guests: Vec<Guest>,
    /// The regionizer's revision at the last check; `None` if it must be checked anyway.
    checked: Option<u64>,
}

/// A region in the world of another one.
struct Guest {
    region: RegionId,
    /// The region's own state: its orders, and its ticks before it moved in.
    slot: Box<RegionSlot>,
    /// The ticks of the host when this region moved in.
    joined_at: u64,
}

/// The worlds of a dimension that several regions share.
#[derive(Default)]
pub struct SharedWorlds {
    /// By host.
    worlds: FxHashMap<RegionId, SharedWorld>,
    /// The host of each guest.
    hosts: FxHashMap<RegionId, RegionId>,
    /// Regions that must leave. With a host, all its guests do.
    leaving: BTreeSet<RegionId>,
    /// The next search.
    due: Duration,
}

impl SharedWorlds {
    /// The region in whose name the region's world runs: its host, or itself.
    pub fn host_of(&self, region: RegionId) -> RegionId {
        self.hosts.get(&region).copied().unwrap_or(region)
    }

    /// Returns `true` if the region is in the world of another one.
    pub fn is_guest(&self, region: RegionId) -> bool {
        self.hosts.contains_key(&region)
    }

    /// Returns `true` if the region shares its world, or its last guest is just leaving.
    pub fn contains(&self, region: RegionId) -> bool {
        self.is_guest(region) || self.worlds.contains_key(&region)
    }

    /// The slot of a host whose world is not away.
    pub fn idle_host(&self, host: RegionId) -> Option<&RegionSlot> {
        self.worlds.get(&host)?.slot.as_deref()
    }

    /// The slot of a host whose world is not away, for changes.
    pub fn idle_host_mut(&mut self, host: RegionId) -> Option<&mut RegionSlot> {
        self.worlds.get_mut(&host)?.slot.as_deref_mut()
    }

    /// A guest's own slot.
    pub fn guest(&self, region: RegionId) -> Option<&RegionSlot> {
        let guests = &self.worlds.get(self.hosts.get(&region)?)?.guests;
        guests.iter().find(|guest| guest.region == region).map(|guest| &*guest.slot)
    }

    /// A guest's own slot, for changes.
    pub fn guest_mut(&mut self, region: RegionId) -> Option<&mut RegionSlot> {
        self.find(region).map(|guest| &mut *guest.slot)
    }

    fn find(&mut self, region: RegionId) -> Option<&mut Guest> {
        let guests = &mut self.worlds.get_mut(self.hosts.get(&region)?)?.guests;
        guests.iter_mut().find(|guest| guest.region == region)
    }

    /// The ticks of a guest, whose host has made this many.
    pub fn ticks_of(&mut self, guest: RegionId, host_ticks: u64) -> Option<u64> {
        self.find(guest).map(|guest| guest.ticks(host_ticks))
    }

    /// Takes a host's slot for a task.
    pub fn begin(&mut self, host: RegionId) -> Option<Box<RegionSlot>> {
        self.worlds.get_mut(&host)?.slot.take()
    }

    /// Takes back the slot of a host after a task. Returns it if the region is not a host, or no guest is left.
    pub fn end(&mut self, host: RegionId, slot: Box<RegionSlot>) -> Option<Box<RegionSlot>> {
        match self.worlds.get_mut(&host) {
            Some(world) if !world.guests.is_empty() => {
                world.slot = Some(slot);
                None
            }
            _ => {
                self.worlds.remove(&host);
                self.leaving.remove(&host);
                Some(slot)
            }
        }
    }

    /// Has the region leave the world that it shares, as soon as that is back.
    pub fn leave(&mut self, region: RegionId) {
        if self.contains(region) {
            self.leaving.insert(region);
        }
    }

    /// Returns `true` if the region has guests in its world.
    pub fn has_guests(&self, host: RegionId) -> bool {
        self.worlds.get(&host).is_some_and(|world| !world.guests.is_empty())
    }

    /// The host and its guests; only the region itself if it shares with none.
    pub fn members(&self, host: RegionId) -> impl Iterator<Item = RegionId> {
        let guests = self.worlds.get(&host).into_iter().flat_map(|world| &world.guests);
        guests.map(|guest| guest.region).chain([host])
    }

    /// Moves the contents of one region into the world of another, which may be shared already. Both are out of the regionizer.
    fn join(&mut self, host: RegionId, slot: Box<RegionSlot>, guest: (RegionId, Box<RegionSlot>)) {
        let world =
            self.worlds.entry(host).or_insert_with(|| SharedWorld { slot: None, guests: Vec::new(), checked: None });
        let (region, mut own) = guest;
        let slot = world.slot.insert(slot);
        let joined_at = slot.history.ticks();
        slot.take_contents(&mut own);
        let place = world.guests.partition_point(|guest| guest.region < region);
        world.guests.insert(place, Guest { region, slot: own, joined_at });
        world.checked = None;
        self.hosts.insert(region, host);
    }

    /// Takes the leaving guests of a host whose slot is `world` out of its world: each with its own slot, and whether it leaves
    /// for its own sake.
    fn take_leaving(&mut self, host: RegionId, world: &RegionSlot) -> Vec<(RegionId, Box<RegionSlot>, bool)> {
        let Self { worlds, hosts, leaving, .. } = self;
        let Some(shared) = worlds.get_mut(&host) else { return Vec::new() };
        let do_all = leaving.remove(&host);
        let mut left = Vec::new();
        let moving: Vec<_> = shared.guests.extract_if(.., |guest| do_all || leaving.contains(&guest.region)).collect();
        for mut guest in moving {
            guest.slot.history = world.history.continued(guest.ticks(world.history.ticks()));
            hosts.remove(&guest.region);
            left.push((guest.region, guest.slot, leaving.remove(&guest.region)));
        }
        left
    }
}

impl Guest {
    fn ticks(&self, host_ticks: u64) -> u64 {
        self.slot.history.ticks() + host_ticks.saturating_sub(self.joined_at)
    }
}

/// Lets regions leave the worlds that they share, and finds regions that can share one.
pub fn share_worlds(
    config: Res<Settings>,
    clock: Res<Clock>,
    mut dimensions: ResMut<Dimensions>,
    mut deadlines: ResMut<Deadlines>,
    mut saves: ResMut<Saves>,
    couplings: Res<Couplings>,
    threads: Res<Threads>,
) {
    if config.regions_per_world < 2 {
        return;
    }
    let coupled: BTreeSet<_> = couplings.groups(&dimensions).into_iter().flatten().collect();
    for (id, region) in &coupled {
        if let Some(dimension) = dimensions.open.get_mut(id) {
            dimension.shared.leave(*region);
        }
    }
    for dimension in dimensions.open.values_mut() {
        for host in dimension.shared.worlds.keys().copied().collect::<Vec<_>>() {
            if dimension.is_closing() {
                dimension.shared.leave(host);
            } else if dimension.may_be_idle() {
                // Worlds that do not tick are not checked after their ticks.
                dimension.check_shared(host);
            }
        }
        dimension.part_worlds(&mut deadlines, &mut saves);
        if clock.now >= dimension.shared.due && !dimension.is_closing() {
            dimension.shared.due = clock.now.saturating_add(PERIOD);
            dimension.join_worlds(&config, &coupled, &mut deadlines, &mut saves);
        }
    }
    deadlines.hand_over(&threads);
}

impl Dimension {
    /// Begins the exits of all leaving regions whose world is back.
    fn part_worlds(&mut self, deadlines: &mut Deadlines, saves: &mut Saves) {
        let hosts: BTreeSet<_> = self.shared.leaving.iter().map(|region| self.shared.host_of(*region)).collect();
        for host in hosts {
            match self.shared.begin(host) {
                Some(slot) => self.part_world(host, slot, deadlines, saves),
                // A region that shares no world any more.
                None if !self.shared.contains(host) => drop(self.shared.leaving.remove(&host)),
                None => {}
            }
        }
    }

    /// Begins a split of the world of a host, whose leaving guests get worlds of their own.
    fn part_world(&mut self, host: RegionId, mut slot: Box<RegionSlot>, deadlines: &mut Deadlines, saves: &mut Saves) {
        let does_host_leave = self.shared.leaving.contains(&host);
        slot.stay_alone(self.real_now, does_host_leave);
        // Each region that is a region when such a letter is sent gets one.
        let letters = slot.parked.get().inbox.iter().flat_map(|inbox| &inbox.letters);
        let to_all = letters.filter(|letter| matches!(letter.to, Address::Regions(_)));
        let to_all: Vec<_> = to_all.filter_map(Letter::copy).collect();
        let mut parts = Vec::new();
        for (region, mut own, is_cause) in self.shared.take_leaving(host, &slot) {
            let mut sections: Vec<SectionPos> = self.regionizer.sections(region).collect();
            sections.sort_unstable();
            let part = RegionPart { id: region, sections, section_shift: self.regionizer.config().section_shift };
            slot.hand_part(&mut own, &part);
            own.parked.get().inbox().letters = to_all.iter().filter_map(Letter::copy).collect();
            own.stay_alone(self.real_now, is_cause);
            deadlines.running.insert((self.id, region), Running::waiting(own));
            parts.push(part);
        }
        let regions: Vec<_> = parts.iter().map(|part| part.id).collect();
        saves.split(self.id, host, &regions);
        deadlines.begin_split(self, host, Running { parts: regions, ..Running::waiting(slot) }, parts, saves);
    }

    /// Moves small, quick regions into shared worlds.
    fn join_worlds(
        &mut self,
        config: &Settings,
        coupled: &BTreeSet<(DimensionId, RegionId)>,
        deadlines: &mut Deadlines,
        saves: &mut Saves,
    ) {
        // In lockstep nothing may depend on time.
        let period = (!config.tick_mode.is_lockstep()).then(|| self.time.real_period(None));
        let mut fitting = Vec::new();
        for region in self.regionizer.regions() {
            let is_ready = self.regionizer.state(region) == Some(RegionState::Ready);
            let slot = self.regionizer.data_mut(region).filter(|_| is_ready && !coupled.contains(&(self.id, region)));
            let is_free = slot.is_some_and(|slot| slot.may_share(region, self.real_now, period));
            if is_free && !self.regionizer.is_end_awaited(region) {
                fitting.push(region);
            }
        }
        let has_room = |world: &SharedWorld| {
            let has_time = |slot: &RegionSlot| period.is_none_or(|period| slot.ticks_take(period) <= SLOW / 2.0);
            world.guests.len() + 1 < config.regions_per_world && world.slot.as_deref().is_some_and(has_time)
        };
        let with_room = self.shared.worlds.iter().filter(|(_, world)| has_room(world)).map(|(host, _)| *host);
        let mut hosts: Vec<_> = with_room.collect();
        hosts.sort_unstable();
        let mut hosts = hosts.into_iter();
        let mut fitting = fitting.into_iter();
        let mut host = None;
        for _ in 0..MAX_MOVES {
            let Some(into) = host.or_else(|| hosts.next()).or_else(|| fitting.next()) else { return };
            let Some(guest) = fitting.next() else { return };
            let Some(slot) = self.begin_task(into) else { continue };
            let Some(own) = self.regionizer.try_begin_tick(guest) else {
                self.end_task(into, slot);
                continue;
            };
            saves.merged(self.id, guest, into);
            self.shared.join(into, slot, (guest, own));
            let world = &self.shared.worlds[&into];
            deadlines.plan(world.slot.as_ref().map_or(self.real_now, |slot| slot.due), self.id, into);
            host = Some(into).filter(|_| has_room(world));
        }
    }

    /// Has the regions of a world leave whose tick the regionizer must end.
    pub fn check_shared(&mut self, host: RegionId) {
        let revision = Some(self.regionizer.revision());
        let Some(world) = self.shared.worlds.get_mut(&host).filter(|world| world.checked != revision) else { return };
        world.checked = revision;
        let members = self.shared.members(host).filter(|region| self.regionizer.is_end_awaited(*region));
        members.collect::<Vec<_>>().into_iter().for_each(|region| self.shared.leave(region));
    }

    /// Distributes the numbers of a shared world, which come by section, to its regions. Regions that have become large leave.
    pub fn share_numbers(&mut self, host: RegionId, slot: &mut RegionSlot, by_section: &[(SectionPos, RegionNumbers)]) {
        if by_section.is_empty() {
            return;
        }
        let mut numbers: FxHashMap<RegionId, RegionNumbers> = FxHashMap::default();
        for (section, found) in by_section {
            let owner = self.regionizer.region_at_section(*section).unwrap_or(host);
            *numbers.entry(owner).or_default() += *found;
        }
        for region in self.shared.members(host).collect::<Vec<_>>() {
            let found = numbers.remove(&region).unwrap_or_default();
            match self.shared.guest_mut(region) {
                Some(own) => own.numbers = found,
                None => slot.numbers = found,
            }
            if !found.is_small(1.0) {
                self.shared.leave(region);
            }
        }
    }

    /// Takes the guests out of a shared world that is lost. Each comes with its own slot; what is on its way to it waits for it.
    pub fn evacuate(&mut self, host: RegionId, slot: &RegionSlot) -> Vec<(RegionId, Box<RegionSlot>)> {
        self.shared.leave(host);
        let mut guests = Vec::new();
        for (region, mut own, _) in self.shared.take_leaving(host, slot) {
            own.parked.get().inbox().sections = self.regionizer.sections(region).collect();
            own.follow(slot);
            let waiting = self.waiting.get();
            if let Some(inbox) = waiting.get_mut(&host) {
                let its = inbox.split_off(|column| self.regionizer.region_at(column) == Some(region));
                waiting.insert(region, its);
            }
            guests.push((region, own));
        }
        guests
    }
}

impl RegionNumbers {
    /// Returns `true` if these are the numbers of a small region, which has at most this share of what it may have.
    fn is_small(&self, share: f64) -> bool {
        let within = |number: usize, most: usize| number as f64 <= most as f64 * share;
        within(self.columns, MAX_COLUMNS) && within(self.entities, MAX_ENTITIES)
    }
}

/// Until when a region shares no world, and how often it left one for its own sake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Solitude {
    until: Duration,
    exits: u32,
}

impl RegionSlot {
    /// Returns `true` if the region is small, quick and free to share a world. Without a period its time does not count.
    fn may_share(&mut self, region: RegionId, now: Duration, period: Option<Duration>) -> bool {
        self.halted.is_none()
            && self.control == Control::default()
            && self.numbers.is_small(SPARE)
            && self.history.ticks() >= MIN_TICKS
            && self.solitude.until <= now
            && period.is_none_or(|period| self.ticks_take(period) <= QUICK)
            // Its world has already run in its name.
            && matches!(self.parked.get().worlds.as_slice(), [world] if world.region() == region)
    }

    /// The part of its period that its median tick takes. A tick that had to wait for a processor does not count.
    fn ticks_take(&self, period: Duration) -> f64 {
        self.history.windows()[0].median.as_secs_f64() / period.as_secs_f64().max(1e-9)
    }

    /// Returns `true` if its world is too slow to be shared.
    pub fn is_slow_to_share(&self, period: Duration) -> bool {
        self.ticks_take(period) > SLOW
    }

    /// Notes that the region left a shared world, and whether for its own sake.
    fn stay_alone(&mut self, now: Duration, is_cause: bool) {
        let doublings = if is_cause { self.solitude.exits.min(MAX_DOUBLINGS) } else { 0 };
        self.solitude.until = self.solitude.until.max(now.saturating_add(ALONE * (1 << doublings)));
        self.solitude.exits += u32::from(is_cause);
    }

    /// Notes that the region was in a world that a panic ended: a panic that comes again must not take others with it.
    pub fn never_share(&mut self) {
        self.solitude.until = Duration::MAX;
    }
}
