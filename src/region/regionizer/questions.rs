//! What a regionizer can be asked. Nothing is changed by it.

#[cfg(test)]
use super::Wait;
use super::{Region, Regionizer};
use crate::region::section_tile::{SectionTile, SectionTilePos};
use crate::region::{RegionId, RegionState, RegionizerConfig};
use crate::space::{ColumnPos, SectionPos, bits};

impl<D> Regionizer<D> {
    /// The configuration.
    pub fn config(&self) -> &RegionizerConfig {
        &self.config
    }

    /// Who owns the section of this column, whether or not the column exists.
    pub fn region_at(&self, column: ColumnPos) -> Option<RegionId> {
        self.region_at_section(column.section(self.config.section_shift))
    }

    /// Who owns this section.
    pub fn region_at_section(&self, section: SectionPos) -> Option<RegionId> {
        let (pos, bit) = SectionTilePos::of(section);
        let owner = self.tiles.at(pos)?.owner(bit)?;
        Some(self.regions[owner as usize].id)
    }

    /// Whether this column exists.
    pub fn contains_column(&self, column: ColumnPos) -> bool {
        let (pos, _) = SectionTilePos::of(column.section(self.config.section_shift));
        self.tiles.at(pos).is_some_and(|tile| tile.has_column(column, self.config.section_shift))
    }

    /// The state of a region; dead for one that is gone, none for an id that was never given out.
    pub fn state(&self, id: RegionId) -> Option<RegionState> {
        match self.region(id) {
            Some(region) => Some(region.state),
            None => (id < self.next_id).then_some(RegionState::Dead),
        }
    }

    /// The data of a region; none while it ticks.
    pub fn data(&self, id: RegionId) -> Option<&D> {
        self.region(id)?.data.as_ref()
    }

    /// The data of a region; none while it ticks.
    pub fn data_mut(&mut self, id: RegionId) -> Option<&mut D> {
        self.regions[*self.slots.get(&id)? as usize].data.as_mut()
    }

    /// All regions that are not dead, ascending.
    pub fn regions(&self) -> Vec<RegionId> {
        let mut ids: Vec<_> = self.slots.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// How many regions are not dead.
    pub fn region_count(&self) -> usize {
        self.slots.len()
    }

    /// The sections of a region, dead ones included, in an order that the history of calls determines.
    pub fn sections(&self, id: RegionId) -> impl Iterator<Item = SectionPos> {
        self.parts(id).flat_map(|(tile, mask)| bits(mask).map(|bit| tile.pos.section(bit)))
    }

    /// The sections of a region that its next removal of dead sections removes, if nothing changes until then.
    #[cfg(test)]
    pub fn dead_sections(&self, id: RegionId) -> impl Iterator<Item = SectionPos> {
        self.parts(id).flat_map(|(tile, mask)| bits(mask & tile.dead).map(|bit| tile.pos.section(bit)))
    }

    /// The columns that exist in a region, in an order that the history of calls determines.
    pub fn columns(&self, id: RegionId) -> impl Iterator<Item = ColumnPos> {
        self.parts(id).flat_map(|(tile, mask)| tile.columns(mask, self.config.section_shift))
    }

    /// How many columns a region has; 0 if it is dead.
    pub fn column_count(&self, id: RegionId) -> usize {
        self.region(id).map_or(0, |region| region.ground.columns)
    }

    /// How many sections a region has, dead ones included; 0 if it is dead.
    pub fn section_count(&self, id: RegionId) -> usize {
        self.region(id).map_or(0, |region| region.ground.sections)
    }

    /// How many dead sections a region has.
    #[cfg(test)]
    pub fn dead_section_count(&self, id: RegionId) -> usize {
        self.region(id).map_or(0, |region| region.ground.dead_sections)
    }

    /// The lowest and the highest coordinates of a region's sections, at a cost of its tiles; none if it is dead.
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

    /// The transient regions that a ticking region absorbs when its tick ends, ascending.
    pub fn awaited_by(&self, id: RegionId) -> Vec<RegionId> {
        let waits = self.region(id).into_iter().flat_map(|region| &region.awaited_by);
        let mut waiting: Vec<_> = waits.filter_map(|wait| Some(self.waits.get(wait)?.region)).collect();
        waiting.sort_unstable();
        waiting
    }

    /// All merges that are pending, as (transient, ticking), ascending.
    #[cfg(test)]
    pub fn pending_merges(&self) -> Vec<(RegionId, RegionId)> {
        let of_one = |wait: &Wait| wait.ticking.iter().map(|&ticking| (wait.region, ticking)).collect::<Vec<_>>();
        let mut pending: Vec<_> = self.waits.values().flat_map(of_one).collect();
        pending.sort_unstable();
        pending
    }

    fn region(&self, id: RegionId) -> Option<&Region<D>> {
        self.slots.get(&id).map(|&slot| &self.regions[slot as usize])
    }

    /// The tiles of a region, with the sections there that are its own.
    fn parts(&self, id: RegionId) -> impl Iterator<Item = (&SectionTile, u64)> {
        self.slots.get(&id).into_iter().flat_map(move |&slot| {
            self.regions[slot as usize].ground.tiles.iter().map(move |&number| {
                let tile = self.tiles.tile(number);
                (tile, tile.mask_of(slot))
            })
        })
    }
}
