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
use crate::simulation::RegionNumbers;
use crate::space::{DimensionId, SectionPos};
use bevy::prelude::*;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::time::Duration;

/// A small region has at most this many columns.
const MAX_COLUMNS: usize = 256;
/// A small region has at most this many entities with a stable id.
const MAX_ENTITIES: usize = 64;
/// A quick region's ticks take at most this share of their period.
const QUICK: f64 = 1.0 / 256.0;
/// A shared world is slow if its ticks take more than this share of their period.
const SLOW: f64 = 1.0 / 8.0;
/// A region must have ticked this often before it moves into a shared world.
const MIN_TICKS: u64 = 20;
/// How long a region stays alone after it had to leave a shared world. The time doubles with each further exit.
const ALONE: Duration = Duration::from_secs(5);
/// The number of times that this time doubles.
const MAX_DOUBLINGS: u32 = 8;
/// The time between two searches for regions that can share a world, and how many may move at a time.
const PERIOD: Duration = Duration::from_millis(250);
const MAX_MOVES: usize = 256;

/// A world that several regions share.
struct SharedWorld {
    /// The slot of the host and of the world; `None` while the world is on a region thread.
    slot: Option<Box<RegionSlot>>,
    /// The other regions, ascending.
    guests: Vec<Guest>,
    /// The regionizer's revision at the last check.
    checked: u64,
}

/// A region in the world of another one.
struct Guest {
    region: RegionId,
    /// What does not belong to the world: orders, and the ticks before.
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
    /// Guests that are to leave. If a host is to leave, all its guests are here.
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

    /// Returns `true` if the region shares its world.
    pub fn contains(&self, region: RegionId) -> bool {
        self.is_guest(region) || self.worlds.contains_key(&region)
    }

    /// The number of guests.
    pub fn guest_count(&self) -> usize {
        self.hosts.len()
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

    /// Takes back the slot of a host after a task. Returns it if the region is not a host.
    pub fn end(&mut self, host: RegionId, slot: Box<RegionSlot>) -> Option<Box<RegionSlot>> {
        let Some(world) = self.worlds.get_mut(&host) else { return Some(slot) };
        world.slot = Some(slot);
        None
    }

    /// Has the region leave the world that it shares, as soon as that is back.
    pub fn leave(&mut self, region: RegionId) {
        match self.worlds.get(&region) {
            Some(world) => self.leaving.extend(world.guests.iter().map(|guest| guest.region)),
            None if self.is_guest(region) => drop(self.leaving.insert(region)),
            None => {}
        }
    }

    /// Has all regions leave.
    fn leave_all(&mut self) {
        self.leaving.extend(self.hosts.keys());
    }

    /// Moves the contents of one region into the world of another, which may be shared already. Both are out of the regionizer.
    fn join(&mut self, host: RegionId, slot: Box<RegionSlot>, guest: (RegionId, Box<RegionSlot>)) {
        let world =
            self.worlds.entry(host).or_insert_with(|| SharedWorld { slot: None, guests: Vec::new(), checked: 0 });
        let (region, mut own) = guest;
        let slot = world.slot.insert(slot);
        let joined_at = slot.history.ticks();
        slot.take_contents(&mut own);
        let place = world.guests.partition_point(|guest| guest.region < region);
        world.guests.insert(place, Guest { region, slot: own, joined_at });
        // Checked at once: either of them may have changed since.
        world.checked = u64::MAX;
        self.hosts.insert(region, host);
    }

    /// Takes the leaving guests of a host whose slot is `world` out of its world, each with its own slot.
    fn take_leaving(&mut self, host: RegionId, world: &RegionSlot) -> Vec<(RegionId, Box<RegionSlot>)> {
        let Some(shared) = self.worlds.get_mut(&host) else { return Vec::new() };
        let leaving = shared.guests.extract_if(.., |guest| self.leaving.remove(&guest.region));
        let leave = |mut guest: Guest| {
            guest.slot.history = world.history.continued(guest.ticks(world.history.ticks()));
            (guest.region, guest.slot)
        };
        let left: Vec<_> = leaving.map(leave).collect();
        for (region, _) in &left {
            self.hosts.remove(region);
        }
        if shared.guests.is_empty() {
            self.worlds.remove(&host);
        }
        left
    }

    /// Takes all guests out of the world of a host.
    fn take_all(&mut self, host: RegionId, world: &RegionSlot) -> Vec<(RegionId, Box<RegionSlot>)> {
        self.leave(host);
        self.take_leaving(host, world)
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
        dimensions.open.get_mut(id).into_iter().for_each(|dimension| dimension.shared.leave(*region));
    }
    let mut moves = MAX_MOVES;
    for dimension in dimensions.open.values_mut() {
        if dimension.is_closing() {
            dimension.shared.leave_all();
        }
        dimension.part_worlds(&mut deadlines, &mut saves);
        if clock.now >= dimension.shared.due && !dimension.is_closing() {
            dimension.shared.due = clock.now.saturating_add(PERIOD);
            dimension.join_worlds(&config, &coupled, &mut deadlines, &mut saves, &mut moves);
        }
    }
    deadlines.hand_over(&threads);
}

impl Dimension {
    /// Begins the exits of all leaving regions whose world is back.
    fn part_worlds(&mut self, deadlines: &mut Deadlines, saves: &mut Saves) {
        let hosts: BTreeSet<_> = self.shared.leaving.iter().map(|region| self.shared.host_of(*region)).collect();
        for host in hosts {
            let Some(slot) = self.shared.begin(host) else { continue };
            self.part_world(host, slot, deadlines, saves);
        }
    }

    /// Begins a split of the world of a host, whose leaving guests get worlds of their own.
    fn part_world(&mut self, host: RegionId, mut slot: Box<RegionSlot>, deadlines: &mut Deadlines, saves: &mut Saves) {
        let left = self.shared.take_leaving(host, &slot);
        let mut parts = Vec::new();
        for (region, mut own) in left {
            let mut sections: Vec<SectionPos> = self.regionizer.sections(region).collect();
            sections.sort_unstable();
            let part = RegionPart { id: region, sections, section_shift: self.regionizer.config().section_shift };
            slot.hand_part(&mut own, &part);
            own.stay_alone(self.real_now, !self.regionizer.is_end_awaited(region));
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
        moves: &mut usize,
    ) {
        let has_time = !config.tick_mode.is_lockstep();
        let mut fitting = Vec::new();
        for region in self.regionizer.regions() {
            let is_ready = self.regionizer.state(region) == Some(RegionState::Ready);
            let slot = self.regionizer.data_mut(region).filter(|_| is_ready && !coupled.contains(&(self.id, region)));
            if slot.is_some_and(|slot| slot.may_share(self.real_now, has_time))
                && !self.regionizer.is_end_awaited(region)
            {
                fitting.push(region);
            }
        }
        let has_room = |world: &SharedWorld| world.slot.is_some() && world.guests.len() + 1 < config.regions_per_world;
        let with_room = self.shared.worlds.iter().filter(|(_, world)| has_room(world)).map(|(host, _)| *host);
        let mut hosts: Vec<_> = with_room.collect();
        hosts.sort_unstable();
        let mut hosts = hosts.into_iter();
        let mut fitting = fitting.into_iter();
        let mut host = None;
        while *moves > 0 {
            let Some(into) = host.or_else(|| hosts.next()).or_else(|| fitting.next()) else { return };
            let Some(guest) = fitting.next() else { return };
            *moves -= 1;
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

    /// Checks after a task whether regions must leave the world of a host: for the regionizer, or because the ticks are slow.
    pub fn check_shared(&mut self, host: RegionId, tick_share: f64) {
        let (revision, shared) = (self.regionizer.revision(), &mut self.shared);
        let Some(world) = shared.worlds.get_mut(&host) else { return };
        let mut leaving = BTreeSet::new();
        if tick_share > SLOW {
            leaving.insert(host);
        }
        if world.checked != revision {
            world.checked = revision;
            let members = world.guests.iter().map(|guest| guest.region).chain([host]);
            leaving.extend(members.filter(|region| self.regionizer.is_end_awaited(*region)));
        }
        leaving.into_iter().for_each(|region| shared.leave(region));
    }

    /// Distributes the numbers of a shared world, which come by section, to its regions. Regions that have become large leave.
    pub fn share_numbers(&mut self, host: RegionId, slot: &mut RegionSlot, by_section: &[(SectionPos, RegionNumbers)]) {
        let Some(world) = self.shared.worlds.get(&host).filter(|_| !by_section.is_empty()) else { return };
        let mut numbers: FxHashMap<RegionId, RegionNumbers> = FxHashMap::default();
        for (section, found) in by_section {
            let owner = self.regionizer.region_at_section(*section).unwrap_or(host);
            *numbers.entry(owner).or_default() += *found;
        }
        slot.numbers = numbers.remove(&host).unwrap_or_default();
        let guests: Vec<_> = world.guests.iter().map(|guest| guest.region).collect();
        let mut large: Vec<_> = Some(host).filter(|_| !slot.numbers.is_small()).into_iter().collect();
        for region in guests {
            let Some(own) = self.shared.guest_mut(region) else { continue };
            own.numbers = numbers.remove(&region).unwrap_or_default();
            large.extend(Some(region).filter(|_| !own.numbers.is_small()));
        }
        large.into_iter().for_each(|region| self.shared.leave(region));
    }

    /// Ends the sharing of a world that is lost. Returns the guests, each with its own slot and everything on its way to it.
    pub fn break_shared(&mut self, host: RegionId, slot: &RegionSlot) -> Vec<(RegionId, Box<RegionSlot>)> {
        let mut guests = self.shared.take_all(host, slot);
        for (region, own) in &mut guests {
            own.parked.get().inbox().sections = self.regionizer.sections(*region).collect();
            let waiting = self.waiting.get();
            if let Some(inbox) = waiting.get_mut(&host) {
                let its = inbox.split_off(|column| self.regionizer.region_at(column) == Some(*region));
                waiting.insert(*region, its);
            }
            own.due = slot.due;
            own.never_share();
        }
        guests
    }
}

impl RegionNumbers {
    fn is_small(&self) -> bool {
        self.columns <= MAX_COLUMNS && self.entities <= MAX_ENTITIES
    }
}

/// When a region may share a world again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Solitude {
    until: Duration,
    exits: u32,
}

impl RegionSlot {
    /// Returns `true` if the region is small, quick and free to share a world.
    fn may_share(&mut self, now: Duration, has_time: bool) -> bool {
        self.halted.is_none()
            && self.control == Control::default()
            && self.numbers.is_small()
            && self.history.ticks() >= MIN_TICKS
            && self.solitude.until <= now
            // In lockstep nothing may depend on time.
            && (!has_time || self.tick_share() <= QUICK)
            && self.parked.get().worlds.len() == 1
    }

    /// Notes that the region left a shared world, by its own fault or only because others had to.
    fn stay_alone(&mut self, now: Duration, is_innocent: bool) {
        let wait = ALONE.saturating_mul(1 << self.solitude.exits.min(MAX_DOUBLINGS));
        self.solitude.until = now.saturating_add(if is_innocent { ALONE } else { wait });
        self.solitude.exits += u32::from(!is_innocent);
    }

    /// Notes that the region was in a world that a panic ended: a panic that comes again must not take others with it.
    pub fn never_share(&mut self) {
        self.solitude.until = Duration::MAX;
    }
}
