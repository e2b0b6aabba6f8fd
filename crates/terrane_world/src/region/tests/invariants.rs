//! Checks the invariants of a regionizer from scratch, and adds methods for tests.

use crate::region::regionizer::{Regionizer, Wait};
use crate::region::section_tile::SectionTilePos;
use crate::region::{RegionId, RegionState};
use crate::space::{ColumnPos, SectionPos, bits};
use rustc_hash::{FxHashMap, FxHashSet};

/// A section during the check.
struct Section {
    region: RegionId,
    nonempty: bool,
    dead: bool,
}

impl<D> Regionizer<D> {
    /// Checks the invariants of the [module](super), and all counts and links, from scratch. The error describes the
    /// fault and its place.
    pub fn check_invariants(&self) -> Result<(), String> {
        self.check_regions()?;
        let sections = self.checked_sections()?;
        self.check_neighbourhoods(&sections)
    }

    /// States and pending merges.
    fn check_regions(&self) -> Result<(), String> {
        for (slot, region) in (0u32..).zip(&self.regions) {
            let id = region.id;
            let listed = self.slots.get(&id) == Some(&slot);
            let alive = region.state != RegionState::Dead;
            ensure(listed == alive, || format!("{id} is {} but its slot {slot} is listed: {listed}", region.state))?;
            ensure(alive != self.free_regions.contains(&slot), || format!("slot {slot} of {id} is free and in use"))?;
            let has_data = matches!(region.state, RegionState::Ready | RegionState::Transient);
            ensure(region.data.is_some() == has_data, || format!("{id} is {}, data: {}", region.state, !has_data))?;
            ensure(region.wait.is_some() == (region.state == RegionState::Transient), || {
                format!("{id} is {} and has pending merges {:?}", region.state, region.wait)
            })?;
            ensure(region.awaited_by.is_empty() || region.state == RegionState::Ticking, || {
                format!("{id} is {} and awaited by {:?}", region.state, region.awaited_by)
            })?;
            for wait in region.awaited_by.iter().filter_map(|wait| self.waits.get(wait)) {
                ensure(wait.ticking.contains(&id), || format!("{id} is awaited by {}, one way only", wait.region))?;
            }
            let lost = region.awaited_by.iter().find(|wait| !self.waits.contains_key(wait));
            ensure(lost.is_none(), || format!("{id} is awaited by {lost:?}, which is not listed"))?;
            ensure(!alive || region.ground.sections > 0, || format!("{id} has no sections"))?;
        }
        for (name, wait) in &self.waits {
            let waiting = self.slots.get(&wait.region).map(|&slot| &self.regions[slot as usize]);
            let known = waiting.is_some_and(|region| region.wait == Some(*name)) && !wait.ticking.is_empty();
            ensure(known, || format!("pending merges of {} are not its own, or none", wait.region))?;
            let slots = wait.ticking.iter().map(|id| self.slots.get(id));
            let listed =
                |slot: Option<&u32>| slot.is_some_and(|&at| self.regions[at as usize].awaited_by.contains(name));
            ensure(slots.into_iter().all(listed), || format!("{} waits one way only", wait.region))?;
        }
        ensure(self.slots.len() + self.free_regions.len() == self.regions.len(), || "a slot is lost".to_owned())
    }

    /// All sections, if tiles and regions agree on them.
    fn checked_sections(&self) -> Result<FxHashMap<SectionPos, Section>, String> {
        let mut sections = FxHashMap::default();
        let mut columns: FxHashSet<ColumnPos> = FxHashSet::default();
        let mut parts = 0;
        let shift = self.config().section_shift;
        for (number, tile) in (0..).zip(&self.tiles.tiles).filter(|(_, tile)| tile.exists != 0) {
            ensure(self.tiles.number(tile.pos) == Some(number), || format!("tile at {:?} cannot be found", tile.pos))?;
            let mut owned = 0;
            for part in tile.parts() {
                let region = &self.regions[part.region as usize];
                ensure(owned & part.mask == 0, || format!("two owners in tile {:?}", tile.pos))?;
                owned |= part.mask;
                parts += 1;
                ensure(region.ground.tiles.get(part.index as usize) == Some(&number), || {
                    format!("{} does not list tile {:?}", region.id, tile.pos)
                })?;
                sections.extend(bits(part.mask).map(|bit| {
                    let (nonempty, dead) = (tile.nonempty >> bit & 1 == 1, tile.dead >> bit & 1 == 1);
                    (tile.pos.section(bit), Section { region: region.id, nonempty, dead })
                }));
            }
            ensure(owned == tile.exists, || format!("sections without owner in tile {:?}", tile.pos))?;
            ensure((tile.nonempty | tile.dead) & !tile.exists == 0, || format!("marks beside tile {:?}", tile.pos))?;
            for bit in 0..64 {
                let nonempty = tile.nonempty >> bit & 1 == 1;
                let section = tile.pos.section(bit);
                ensure(nonempty != tile.section_is_empty(bit, shift), || format!("{section} nonempty: {nonempty}"))?;
            }
            columns.extend(tile.columns(tile.exists, shift));
        }
        for column in columns {
            let section = column.section(shift);
            ensure(sections.get(&section).is_some_and(|section: &Section| section.nonempty), || {
                format!("column {column} lies in no section")
            })?;
        }
        let listed: usize = self.regions.iter().map(|region| region.ground.tiles.len()).sum();
        ensure(listed == parts, || format!("{listed} parts of tiles are listed, {parts} exist"))?;
        let mut counts: FxHashMap<RegionId, [usize; 2]> = FxHashMap::default();
        for section in sections.values() {
            let count = counts.entry(section.region).or_default();
            count[0] += 1;
            count[1] += usize::from(section.dead);
        }
        for region in &self.regions {
            let counted =
                counts.get(&region.id).copied().filter(|_| region.state != RegionState::Dead).unwrap_or_default();
            let noted = [region.ground.sections, region.ground.dead_sections];
            ensure(noted == counted, || format!("{} notes {noted:?} and has {counted:?}", region.id))?;
        }
        Ok(sections)
    }

    /// Checks the sections around non-empty ones, dead sections, and that neighbours share a region.
    fn check_neighbourhoods(&self, sections: &FxHashMap<SectionPos, Section>) -> Result<(), String> {
        let config = self.config();
        let bridged = self.bridged();
        let bridge = |id: RegionId| bridged.get(&id).copied().unwrap_or(id);
        for (&pos, section) in sections {
            let mut alive = section.nonempty;
            for there in self.around(pos, config.empty_section_creation_radius) {
                let Some(other) = sections.get(&there) else {
                    ensure(!section.nonempty, || format!("{pos} has columns, but {there} does not exist"))?;
                    continue;
                };
                alive |= other.nonempty;
                ensure(!section.nonempty || bridge(section.region) == bridge(other.region), || {
                    format!("{pos} of {} has columns, but {there} is of {}", section.region, other.region)
                })?;
            }
            ensure(alive != section.dead, || format!("{pos} is marked dead: {}", section.dead))?;
            for there in self.around(pos, config.section_merge_radius) {
                let Some(other) = sections.get(&there) else { continue };
                let waits = |one, other| self.waits_for(one).any(|awaited| awaited == other);
                let pending = waits(section.region, other.region) || waits(other.region, section.region);
                ensure(section.region == other.region || pending, || {
                    format!("{pos} of {} and {there} of {} are near", section.region, other.region)
                })?;
            }
        }
        Ok(())
    }

    /// For each region with pending merges, a common name of all regions that these will unite.
    fn bridged(&self) -> FxHashMap<RegionId, RegionId> {
        let mut names: FxHashMap<RegionId, RegionId> = FxHashMap::default();
        for start in self.regions() {
            let mut found = vec![start];
            while let Some(id) = found.pop() {
                if names.contains_key(&id) {
                    continue;
                }
                names.insert(id, start);
                found.extend(self.waits_for(id).chain(self.awaited_by(id)));
            }
        }
        names
    }

    /// The sections within a radius that can hold a column, without the one in the middle.
    fn around(&self, center: SectionPos, radius: u32) -> impl Iterator<Item = SectionPos> {
        let shift = self.config().section_shift;
        let valid = i64::MIN >> shift..=i64::MAX >> shift;
        let radius = i64::from(radius);
        (-radius..=radius).flat_map(move |z| (-radius..=radius).map(move |x| (x, z))).filter_map(move |(x, z)| {
            let (there_x, there_z) = (center.x.checked_add(x)?, center.z.checked_add(z)?);
            let inside = (x, z) != (0, 0) && valid.contains(&there_x) && valid.contains(&there_z);
            inside.then_some(SectionPos::new(there_x, there_z))
        })
    }
}

/// Read access for tests.
impl<D> Regionizer<D> {
    /// Returns `true` if the column exists.
    pub fn contains_column(&self, column: ColumnPos) -> bool {
        let (pos, bit) = SectionTilePos::of(column.section(self.config().section_shift));
        let mut columns =
            self.tiles.at(pos).into_iter().flat_map(|tile| tile.columns(1 << bit, self.config().section_shift));
        columns.any(|there| there == column)
    }

    /// The sections of a region that the next removal of dead sections would remove.
    pub fn dead_sections(&self, id: RegionId) -> impl Iterator<Item = SectionPos> {
        self.parts(id).flat_map(|(tile, mask)| bits(mask & tile.dead).map(|bit| tile.pos.section(bit)))
    }

    /// The number of columns of a region; 0 if it is dead.
    pub fn column_count(&self, id: RegionId) -> usize {
        self.columns(id).count()
    }

    /// The number of dead sections of a region.
    pub fn dead_section_count(&self, id: RegionId) -> usize {
        self.region(id).map_or(0, |region| region.ground.dead_sections)
    }

    /// The lowest and the highest coordinates of a region's sections, at the cost of its tiles; `None` if it is dead.
    pub fn bounds(&self, id: RegionId) -> Option<(SectionPos, SectionPos)> {
        let corners = self.parts(id).filter(|(_, mask)| *mask != 0).map(|(tile, mask)| {
            let columns = (0..64).step_by(8).fold(0, |all, row| all | (mask >> row & 0xff));
            let low = columns.trailing_zeros() | mask.trailing_zeros() & !7;
            let high = (columns.ilog2()) | mask.ilog2() & !7;
            (tile.pos.section(low), tile.pos.section(high))
        });
        corners.reduce(|(low, high), (next_low, next_high)| {
            (
                SectionPos::new(low.x.min(next_low.x), low.z.min(next_low.z)),
                SectionPos::new(high.x.max(next_high.x), high.z.max(next_high.z)),
            )
        })
    }

    /// The ticking regions that a transient region waits for, ascending.
    pub fn waits_for(&self, id: RegionId) -> impl Iterator<Item = RegionId> {
        let wait = self.region(id).and_then(|region| self.waits.get(&region.wait?));
        wait.into_iter().flat_map(|wait| wait.ticking.iter().copied())
    }

    /// All pending merges as (transient, ticking), ascending.
    pub fn pending_merges(&self) -> Vec<(RegionId, RegionId)> {
        let of_one = |wait: &Wait| wait.ticking.iter().map(|&ticking| (wait.region, ticking)).collect::<Vec<_>>();
        let mut pending: Vec<_> = self.waits.values().flat_map(of_one).collect();
        pending.sort_unstable();
        pending
    }
}

fn ensure(condition: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(message()) }
}
