//! [`Regionizer`]: groups columns into regions.

mod questions;
mod splitting;

use super::section_tile::{SectionTile, SectionTilePos, SectionTiles, Window};
use super::{RegionData, RegionEvent, RegionId, RegionState, RegionizerConfig, RegionizerConfigError};
use crate::space::{ColumnPos, SectionPos};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::mem;
use thiserror::Error;

/// The ground of a region, separate from its identity, so that two merging regions can swap it.
#[derive(Default)]
pub(super) struct Holdings {
    /// The numbers of the tiles that contain its sections.
    pub tiles: Vec<u32>,
    pub sections: usize,
    pub dead_sections: usize,
}

impl Holdings {
    /// Returns `true` if the dead sections are to be removed even if nothing merges.
    pub fn is_purge_due(&self, config: &RegionizerConfig) -> bool {
        let Self { sections, dead_sections: dead, .. } = *self;
        let is_above_thresholds = sections >= config.recalculation_section_count
            && dead as f64 / sections as f64 >= config.max_dead_section_percent;
        dead > 0 && (dead == sections || is_above_thresholds)
    }

    /// Assigns unowned sections of a tile to the region in this slot.
    #[inline]
    fn claim(&mut self, slot: u32, number: u32, tile: &mut SectionTile, mask: u64) {
        if tile.claim(slot, mask, self.tiles.len() as u32) {
            self.tiles.push(number);
        }
    }

    /// Removes the tile at this place, in which the region in this slot has no sections left. The last tile moves to
    /// that place.
    fn forget(&mut self, slot: u32, place: usize, tiles: &mut SectionTiles) {
        self.tiles.swap_remove(place);
        if let Some(&moved) = self.tiles.get(place)
            && let Some(part) = tiles.tile_mut(moved).part_mut(slot)
        {
            part.index = place as u32;
        }
    }
}

pub(super) struct Region<D> {
    pub id: RegionId,
    /// Dead in a free slot.
    pub state: RegionState,
    /// `None` during a tick.
    pub data: Option<D>,
    /// The region's pending merges, if it waits for other regions.
    pub wait: Option<WaitId>,
    /// The pending merges into the region, which become due when its tick ends.
    pub awaited_by: BTreeSet<WaitId>,
    pub ground: Holdings,
}

/// The id of pending merges: the region that waited first.
pub(super) type WaitId = RegionId;

/// Pending merges of one region. They keep their id when the region is absorbed, so that passing a long list on costs
/// nothing.
pub(super) struct Wait {
    /// The region that currently waits.
    pub region: RegionId,
    /// The ticking regions to merge with; never empty.
    pub ticking: BTreeSet<RegionId>,
}

/// Groups existing columns into regions. See the [module](super).
pub struct Regionizer<D> {
    config: RegionizerConfig,
    pub(super) tiles: SectionTiles,
    pub(super) regions: Vec<Region<D>>,
    pub(super) free_regions: Vec<u32>,
    pub(super) slots: FxHashMap<RegionId, u32>,
    pub(super) waits: FxHashMap<WaitId, Wait>,
    next_id: RegionId,
    events: Vec<RegionEvent>,
    /// Tiles in reach of the column that is being added, their numbers if they exist, and the sections to create in them.
    reached: Vec<(SectionTilePos, Option<u32>, u64)>,
    owners: Vec<u32>,
}

/// The error for a call that a [`Regionizer`] rejected without a change.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RegionizerError {
    /// The column to add already exists.
    #[error("column {column} exists already, in {region}")]
    ColumnPresent {
        /// The column.
        column: ColumnPos,
        /// Its owner.
        region: RegionId,
    },
    /// The column to remove does not exist.
    #[error("column {column} does not exist")]
    ColumnAbsent {
        /// The column.
        column: ColumnPos,
    },
    /// The tick to end has not begun: the region is not ticking.
    #[error("{region} cannot end a tick: it is {state}, not ticking")]
    NotTicking {
        /// The region.
        region: RegionId,
        /// The region's state.
        state: RegionState,
    },
    /// The regionizer never assigned this id.
    #[error("there has never been a {region}")]
    UnknownRegion {
        /// The id.
        region: RegionId,
    },
}

/// Changes of columns, and ticks.
impl<D: RegionData> Regionizer<D> {
    /// A regionizer without columns.
    pub fn new(config: RegionizerConfig) -> Result<Self, RegionizerConfigError> {
        config.validate()?;
        Ok(Self {
            config,
            tiles: SectionTiles::default(),
            regions: Vec::new(),
            free_regions: Vec::new(),
            slots: FxHashMap::default(),
            waits: FxHashMap::default(),
            next_id: RegionId(0),
            events: Vec::new(),
            reached: Vec::new(),
            owners: Vec::new(),
        })
    }

    /// Adds a column and returns its owner, which may be ticking if the section already existed.
    ///
    /// The largest region in reach that is not ticking gets the new sections; among equals, the oldest. All others
    /// that are not ticking are merged into it at once. Merges with ticking regions become pending.
    pub fn add_column(&mut self, column: ColumnPos) -> Result<RegionId, RegionizerError> {
        let section = column.section(self.config.section_shift);
        let (pos, bit) = SectionTilePos::of(section);
        let mut owner = None;
        if let Some(number) = self.tiles.number_cached(pos) {
            let tile = self.tiles.tile_mut(number);
            owner = tile.owner(bit);
            if let Some(owner) = owner
                && tile.nonempty >> bit & 1 == 1
            {
                let region = self.regions[owner as usize].id;
                if !tile.add_column(column, self.config.section_shift) {
                    return Err(RegionizerError::ColumnPresent { column, region });
                }
                return Ok(region);
            }
        }
        Ok(self.add_first_column(column, section, owner))
    }

    /// Removes a column and returns its owner, which continues to own the section.
    ///
    /// No region changes its state, not even if this was its last column: dead sections are removed when a tick ends.
    pub fn remove_column(&mut self, column: ColumnPos) -> Result<RegionId, RegionizerError> {
        let shift = self.config.section_shift;
        let section = column.section(shift);
        let (pos, bit) = SectionTilePos::of(section);
        let absent = RegionizerError::ColumnAbsent { column };
        let Some(number) = self.tiles.number_cached(pos) else { return Err(absent) };
        let tile = self.tiles.tile_mut(number);
        let Some(owner) = tile.owner(bit) else { return Err(absent) };
        let Some(is_empty) = tile.remove_column(column, bit, shift) else { return Err(absent) };
        if is_empty {
            tile.nonempty &= !(1 << bit);
            self.mark_newly_dead(section);
        }
        Ok(self.regions[owner as usize].id)
    }

    /// Marks the dead sections around a section that has become empty.
    fn mark_newly_dead(&mut self, section: SectionPos) {
        let RegionizerConfig { section_shift, empty_section_creation_radius, .. } = self.config;
        let regions = &mut self.regions;
        self.tiles.visit_newly_dead(section, empty_section_creation_radius, section_shift, |tile, dead| {
            tile.dead |= dead;
            for part in tile.parts() {
                regions[part.region as usize].ground.dead_sections += (part.mask & dead).count_ones() as usize;
            }
        });
    }

    /// Begins a tick and returns the region's data; `None` if the region is not ready.
    pub fn try_begin_tick(&mut self, id: RegionId) -> Option<D> {
        let region = &mut self.regions[*self.slots.get(&id)? as usize];
        if region.state != RegionState::Ready {
            return None;
        }
        region.state = RegionState::Ticking;
        region.data.take()
    }

    /// Ends a tick and takes the region's data back. Absorbs the regions that wait for this one. Then either makes the
    /// region wait itself, or makes it ready, removes dead sections and splits distant parts off. Returns the regions
    /// that split off, which are ready like the region itself; usually there are none.
    ///
    /// The data is dropped if the region dies, and on an error.
    pub fn end_tick(&mut self, id: RegionId, data: D) -> Result<Vec<RegionId>, RegionizerError> {
        let mut slot = match (self.slots.get(&id), self.state(id)) {
            (Some(&slot), Some(RegionState::Ticking)) => slot,
            (_, Some(state)) => return Err(RegionizerError::NotTicking { region: id, state }),
            (_, None) => return Err(RegionizerError::UnknownRegion { region: id }),
        };
        let region = &mut self.regions[slot as usize];
        region.data = Some(data);
        let due = mem::take(&mut region.awaited_by);
        let mut merging: Vec<_> = due.iter().filter_map(|wait| Some(self.waits.get(wait)?.region)).collect();
        merging.sort_unstable();
        for waiting in &merging {
            if let Some(&waiting) = self.slots.get(waiting) {
                slot = self.absorb(waiting, slot);
            }
        }
        let region = &mut self.regions[slot as usize];
        if region.wait.is_some() {
            region.state = RegionState::Transient;
            self.events.push(RegionEvent::Transient(id));
            return Ok(Vec::new());
        }
        region.state = RegionState::Ready;
        let Holdings { sections, dead_sections: dead, .. } = region.ground;
        let is_purge_due = region.ground.is_purge_due(&self.config);
        if dead == 0 || (merging.is_empty() && !is_purge_due) {
            return Ok(Vec::new());
        }
        self.remove_dead_sections(slot);
        if dead == sections {
            self.free(slot);
            self.events.push(RegionEvent::Destroyed(id));
            return Ok(Vec::new());
        }
        Ok(self.split(slot))
    }

    /// Returns all events since the last call, in order. Events accumulate until then, so call this regularly.
    pub fn drain_events(&mut self) -> Vec<RegionEvent> {
        mem::take(&mut self.events)
    }

    /// Adds a column to a section that is empty and has this owner, or does not exist.
    fn add_first_column(&mut self, column: ColumnPos, section: SectionPos, owner: Option<u32>) -> RegionId {
        let any_missing = self.reach(section);
        let owner = match owner {
            Some(owner) if !any_missing => owner,
            owner => {
                let target = self.make_missing_sections();
                // A ticking owner stays. Any other owner is the target, or has just been merged into it.
                let ticking = |owner: &u32| self.regions[*owner as usize].state == RegionState::Ticking;
                owner.filter(ticking).unwrap_or(target)
            }
        };
        let (home, bit) = SectionTilePos::of(section);
        let number = self.tiles.number_cached(home).unwrap_or_else(|| self.tiles.insert(home));
        let tile = self.tiles.tile_mut(number);
        tile.nonempty |= 1 << bit;
        tile.add_column(column, self.config.section_shift);
        self.regions[owner as usize].id
    }

    /// Assigns the missing sections to the largest idle region in reach, or to a new one, and merges it with all
    /// others in reach. Returns its slot.
    fn make_missing_sections(&mut self) -> u32 {
        let mut created = false;
        let mut target = self.largest_idle_owner().unwrap_or_else(|| {
            let id = self.next_id();
            created = true;
            self.insert_region(id, RegionState::Transient, D::new(id))
        });
        self.grow(target);
        // Absorbing may change the target's slot, but not the slots of regions that are still in the list.
        let mut owners = mem::take(&mut self.owners);
        owners.retain(|&owner| owner != target);
        for &owner in &owners {
            match self.regions[owner as usize].state {
                RegionState::Ticking => self.wait(target, owner),
                _ => target = self.absorb(owner, target),
            }
        }
        self.owners = owners;
        let region = &mut self.regions[target as usize];
        let before = region.state;
        // A waiting region never becomes ready here: it keeps its pending merges.
        region.state = if region.wait.is_none() { RegionState::Ready } else { RegionState::Transient };
        match region.state {
            RegionState::Ready if created => self.events.push(RegionEvent::Ready(region.id)),
            RegionState::Transient if created || before == RegionState::Ready => {
                self.events.push(RegionEvent::Transient(region.id));
            }
            _ => {}
        }
        target
    }

    /// Looks around a section that is about to become non-empty: fills `owners` with the regions in reach, by id, and
    /// `reached` with the missing sections, and revives dead ones. Returns `true` if any section is missing.
    fn reach(&mut self, section: SectionPos) -> bool {
        let RegionizerConfig { section_shift, empty_section_creation_radius, section_merge_radius, .. } = self.config;
        let near = Window::around(section, empty_section_creation_radius, section_shift);
        let far = Window::around(section, empty_section_creation_radius + section_merge_radius, section_shift);
        self.owners.clear();
        self.reached.clear();
        let (far_x, far_z) = far.tiles();
        for z in far_z {
            for x in far_x.clone() {
                let pos = SectionTilePos { x, z };
                self.reach_tile(pos, near.mask(pos), far.mask(pos));
            }
        }
        self.owners.sort_unstable_by_key(|&owner| self.regions[owner as usize].id);
        !self.reached.is_empty()
    }

    /// [`reach`](Self::reach) in one tile: `near` are the sections that must exist there, `far` those in reach.
    #[inline]
    fn reach_tile(&mut self, pos: SectionTilePos, near: u64, far: u64) {
        let Some(number) = self.tiles.number(pos) else {
            if near != 0 {
                self.reached.push((pos, None, near));
            }
            return;
        };
        let tile = self.tiles.tile_mut(number);
        if near & !tile.exists != 0 {
            self.reached.push((pos, Some(number), near & !tile.exists));
        }
        let woken = near & tile.dead;
        tile.dead &= !woken;
        for part in tile.parts() {
            if part.mask & woken != 0 {
                let ground = &mut self.regions[part.region as usize].ground;
                ground.dead_sections -= (part.mask & woken).count_ones() as usize;
            }
            if part.mask & far != 0 && !self.owners.contains(&part.region) {
                self.owners.push(part.region);
            }
        }
    }

    fn largest_idle_owner(&self) -> Option<u32> {
        let idle = self.owners.iter().filter(|&&owner| self.regions[owner as usize].state != RegionState::Ticking);
        // `max_by_key` returns the last of equals, and the oldest comes first, so the order is reversed.
        idle.rev().max_by_key(|&&owner| self.regions[owner as usize].ground.sections).copied()
    }

    fn grow(&mut self, slot: u32) {
        let Region { ground, data, .. } = &mut self.regions[slot as usize];
        for (pos, tile, missing) in self.reached.drain(..) {
            let number = tile.unwrap_or_else(|| self.tiles.insert(pos));
            let tile = self.tiles.tile_mut(number);
            tile.exists |= missing;
            ground.sections += missing.count_ones() as usize;
            ground.claim(slot, number, tile, missing);
            if let Some(data) = data {
                pos.with_sections(missing, |sections| data.grow(sections));
            }
        }
    }

    fn next_id(&mut self) -> RegionId {
        let id = self.next_id;
        self.next_id = RegionId(id.0 + 1);
        id
    }

    fn insert_region(&mut self, id: RegionId, state: RegionState, data: D) -> u32 {
        let slot = match self.free_regions.pop() {
            Some(slot) => {
                let region = &mut self.regions[slot as usize];
                (region.id, region.state, region.data) = (id, state, Some(data));
                slot
            }
            None => {
                self.regions.push(Region {
                    id,
                    state,
                    data: Some(data),
                    wait: None,
                    awaited_by: BTreeSet::new(),
                    ground: Holdings::default(),
                });
                self.regions.len() as u32 - 1
            }
        };
        self.slots.insert(id, slot);
        self.events.push(RegionEvent::Created(id));
        slot
    }

    /// Ends a region without sections. The memory of its lists stays for the next region in this slot.
    fn free(&mut self, slot: u32) {
        let region = &mut self.regions[slot as usize];
        region.state = RegionState::Dead;
        region.data = None;
        region.wait = None;
        region.awaited_by.clear();
        region.ground.tiles.clear();
        (region.ground.sections, region.ground.dead_sections) = (0, 0);
        self.slots.remove(&region.id);
        self.free_regions.push(slot);
    }

    /// Makes the merge of `waiting`, which is not ticking, into `ticking` pending.
    fn wait(&mut self, waiting: u32, ticking: u32) {
        let region = &mut self.regions[waiting as usize];
        let id = *region.wait.get_or_insert(region.id);
        let wait = self.waits.entry(id).or_insert(Wait { region: region.id, ticking: BTreeSet::new() });
        let ticking = &mut self.regions[ticking as usize];
        wait.ticking.insert(ticking.id);
        ticking.awaited_by.insert(id);
    }

    /// Hands pending merges over to the region in slot `target`, which absorbed the waiting one. The shorter of its
    /// own list and this one joins the longer. A merge with itself is removed.
    fn inherit_wait(&mut self, inherited: WaitId, target: u32) {
        let into = &mut self.regions[target as usize];
        let (id, own) = (into.id, into.wait.take());
        let count = |wait| self.waits.get(&wait).map_or(0, |wait| wait.ticking.len());
        let (longer, shorter) = match own {
            Some(own) if count(own) > count(inherited) => (own, Some(inherited)),
            own => (inherited, own),
        };
        let joining = shorter.and_then(|name| Some((name, self.waits.remove(&name)?.ticking)));
        let Some(wait) = self.waits.get_mut(&longer) else { return };
        if let Some((was, joining)) = joining {
            for ticking in joining.into_iter().filter(|&ticking| ticking != id) {
                if let Some(&slot) = self.slots.get(&ticking) {
                    let awaited_by = &mut self.regions[slot as usize].awaited_by;
                    awaited_by.remove(&was);
                    awaited_by.insert(longer);
                }
                wait.ticking.insert(ticking);
            }
        }
        wait.ticking.remove(&id);
        wait.region = id;
        if wait.ticking.is_empty() {
            self.waits.remove(&longer);
        } else {
            self.regions[target as usize].wait = Some(longer);
        }
    }

    /// Merges `source`, which is not ticking, into `target`, at the cost of the smaller region's tiles. Returns the
    /// target's slot, which may change.
    fn absorb(&mut self, mut source: u32, mut target: u32) -> u32 {
        let tiles = |slot: u32| self.regions[slot as usize].ground.tiles.len();
        if tiles(source) > tiles(target) {
            // The regions keep their identities but swap slots, so that the larger one need not be relabelled.
            self.regions.swap(source as usize, target as usize);
            mem::swap(&mut source, &mut target);
            self.slots.insert(self.regions[target as usize].id, target);
            self.slots.insert(self.regions[source as usize].id, source);
            if let Ok([first, second]) = self.regions.get_disjoint_mut([source as usize, target as usize]) {
                mem::swap(&mut first.ground, &mut second.ground);
            }
        }
        let from = &mut self.regions[source as usize];
        let (from_id, data) = (from.id, from.data.take());
        let moved = mem::take(&mut from.ground);
        let wait = from.wait.take();

        let into = &mut self.regions[target as usize];
        let into_id = into.id;
        let ground = &mut into.ground;
        for &number in &moved.tiles {
            let tile = self.tiles.tile_mut(number);
            let mask = tile.mask_of(source);
            tile.disown(source, mask);
            ground.claim(target, number, tile, mask);
        }
        ground.sections += moved.sections;
        ground.dead_sections += moved.dead_sections;
        if let (Some(into), Some(data)) = (&mut into.data, data) {
            into.merge(from_id, data);
        }

        if let Some(wait) = wait {
            self.inherit_wait(wait, target);
        }
        self.regions[source as usize].ground = moved;
        self.free(source);
        self.events.push(RegionEvent::Merged { from: from_id, into: into_id });
        target
    }
}
