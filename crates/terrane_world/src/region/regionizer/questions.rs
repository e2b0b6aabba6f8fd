//! Read access to a regionizer, and to the data of its regions.

use super::{Region, Regionizer};
use crate::region::section_tile::{SectionTile, SectionTilePos};
use crate::region::{RegionId, RegionState, RegionizerConfig};
use crate::space::{ColumnPos, SectionPos, bits};

impl<D> Regionizer<D> {
    /// The configuration.
    pub fn config(&self) -> &RegionizerConfig {
        &self.config
    }

    /// The region that owns the section of this column, whether or not the column exists.
    pub fn region_at(&self, column: ColumnPos) -> Option<RegionId> {
        self.region_at_section(column.section(self.config.section_shift))
    }

    /// The region that owns this section.
    pub fn region_at_section(&self, section: SectionPos) -> Option<RegionId> {
        let (pos, bit) = SectionTilePos::of(section);
        let owner = self.tiles.at(pos)?.owner(bit)?;
        Some(self.regions[owner as usize].id)
    }

    /// The state of a region; dead if the region has ended, `None` for an id that was never assigned.
    pub fn state(&self, id: RegionId) -> Option<RegionState> {
        match self.region(id) {
            Some(region) => Some(region.state),
            None => (id < self.next_id).then_some(RegionState::Dead),
        }
    }

    /// The data of a region; `None` during a tick.
    pub fn data(&self, id: RegionId) -> Option<&D> {
        self.region(id)?.data.as_ref()
    }

    /// The data of a region; `None` during a tick.
    pub fn data_mut(&mut self, id: RegionId) -> Option<&mut D> {
        self.regions[*self.slots.get(&id)? as usize].data.as_mut()
    }

    /// All regions that are not dead, ascending.
    pub fn regions(&self) -> Vec<RegionId> {
        let mut ids: Vec<_> = self.slots.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// The number of regions that are not dead.
    pub fn region_count(&self) -> usize {
        self.slots.len()
    }

    /// The sections of a region, including dead ones, in an order that depends on the history of calls.
    pub fn sections(&self, id: RegionId) -> impl Iterator<Item = SectionPos> {
        self.parts(id).flat_map(|(tile, mask)| bits(mask).map(|bit| tile.pos.section(bit)))
    }

    /// The columns of a region, in an order that depends on the history of calls.
    pub fn columns(&self, id: RegionId) -> impl Iterator<Item = ColumnPos> {
        self.parts(id).flat_map(|(tile, mask)| tile.columns(mask, self.config.section_shift))
    }

    /// The number of sections of a region, including dead ones; 0 if the region is dead.
    pub fn section_count(&self, id: RegionId) -> usize {
        self.region(id).map_or(0, |region| region.ground.sections)
    }

    /// The transient regions that a ticking region absorbs when its tick ends, ascending.
    pub fn awaited_by(&self, id: RegionId) -> Vec<RegionId> {
        let waits = self.region(id).into_iter().flat_map(|region| &region.awaited_by);
        let mut waiting: Vec<_> = waits.filter_map(|wait| Some(self.waits.get(wait)?.region)).collect();
        waiting.sort_unstable();
        waiting
    }

    pub(in crate::region) fn region(&self, id: RegionId) -> Option<&Region<D>> {
        self.slots.get(&id).map(|&slot| &self.regions[slot as usize])
    }

    /// The tiles of a region, each with the region's sections there.
    pub(in crate::region) fn parts(&self, id: RegionId) -> impl Iterator<Item = (&SectionTile, u64)> {
        self.slots.get(&id).into_iter().flat_map(move |&slot| {
            self.regions[slot as usize].ground.tiles.iter().map(move |&number| {
                let tile = self.tiles.tile(number);
                (tile, tile.mask_of(slot))
            })
        })
    }
}
