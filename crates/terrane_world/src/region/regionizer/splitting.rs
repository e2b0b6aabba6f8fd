//! Removes dead sections and splits distant parts off.

use super::{Region, Regionizer};
use crate::region::section_tile::{Part, SectionTilePos, reach, reach_along_x, reach_along_z};
use crate::region::{RegionData, RegionEvent, RegionId, RegionPart, RegionState};
use crate::space::{SectionPos, bits};

impl<D: RegionData> Regionizer<D> {
    pub(super) fn remove_dead_sections(&mut self, slot: u32) {
        let Region { ground, data, .. } = &mut self.regions[slot as usize];
        for place in (0..ground.tiles.len()).rev() {
            let number = ground.tiles[place];
            let tile = self.tiles.tile_mut(number);
            let dead = tile.mask_of(slot) & tile.dead;
            if let Some(data) = data
                && dead != 0
            {
                tile.pos.with_sections(dead, |sections| data.shrink(sections));
            }
            tile.exists &= !dead;
            tile.dead &= !dead;
            if tile.disown(slot, dead).is_some() {
                if tile.exists == 0 {
                    self.tiles.remove(number);
                }
                ground.forget(slot, place, &mut self.tiles);
            }
        }
        ground.sections -= ground.dead_sections;
        ground.dead_sections = 0;
    }

    /// Creates a region for each part of a region but the largest.
    pub(super) fn split(&mut self, slot: u32) -> Vec<RegionId> {
        let parts = self.smaller_parts(slot);
        if parts.is_empty() {
            return Vec::new();
        }
        let from = self.regions[slot as usize].id;
        let mut named = Vec::with_capacity(parts.len());
        for part in &parts {
            let mut sections: Vec<_> = self.sections_of(part).collect();
            sections.sort_unstable();
            named.push(RegionPart { id: self.next_id(), sections, section_shift: self.config.section_shift });
        }

        let mut data = Vec::new();
        if let Some(rest) = &mut self.regions[slot as usize].data {
            data = rest.split(&named);
            for surplus in data.drain(named.len().min(data.len())..) {
                rest.merge(from, surplus);
            }
        }
        let mut data = data.into_iter();
        let split_off: Vec<_> = named.iter().map(|part| part.id).collect();
        for (RegionPart { id, sections, .. }, part) in named.into_iter().zip(parts) {
            let data = data.next().unwrap_or_else(|| {
                let mut data = D::new(id);
                data.grow(&sections);
                data
            });
            let new = self.insert_region(id, RegionState::Ready, data);
            for (number, mask) in part {
                self.hand_over(slot, new, number, mask);
            }
        }
        self.events.push(RegionEvent::Split { from, into: split_off.clone() });
        self.events.extend(split_off.iter().map(|&id| RegionEvent::Ready(id)));
        split_off
    }

    /// Moves these sections of one tile, none of them dead, from one region to another.
    fn hand_over(&mut self, from: u32, to: u32, number: u32, mask: u64) {
        let tile = self.tiles.tile_mut(number);
        let sections = mask.count_ones() as usize;
        let vacated = tile.disown(from, mask);
        let new = &mut self.regions[to as usize].ground;
        new.claim(to, number, tile, mask);
        new.sections += sections;
        let old = &mut self.regions[from as usize].ground;
        old.sections -= sections;
        if let Some(place) = vacated {
            old.forget(from, place as usize, &mut self.tiles);
        }
    }
}

/// The search for parts to split off.
impl<D> Regionizer<D> {
    /// All parts of a region but the largest (among equals the one with the lowest section), ordered by their lowest
    /// section: each as its tiles with its sections in them.
    fn smaller_parts(&self, slot: u32) -> Vec<Vec<(u32, u64)>> {
        let tiles = &self.regions[slot as usize].ground.tiles;
        let mut unseen: Vec<u64> = tiles.iter().map(|&number| self.tiles.tile(number).mask_of(slot)).collect();
        let mut fresh = vec![0; tiles.len()];
        let mut parts = Vec::new();
        for place in 0..tiles.len() {
            while unseen[place] != 0 {
                parts.push(self.connected(slot, place, &mut unseen, &mut fresh));
            }
        }
        if parts.len() < 2 {
            return Vec::new();
        }
        parts.sort_by_cached_key(|part| self.sections_of(part).min());
        let sections = |part: &[(u32, u64)]| part.iter().map(|(_, mask)| mask.count_ones()).sum::<u32>();
        // `max_by_key` returns the last of equals, so the order is reversed.
        let largest = (0..parts.len()).rev().max_by_key(|&place| sections(&parts[place]));
        parts.remove(largest.unwrap_or_default());
        parts
    }

    /// Removes from `unseen` all sections that are connected to the first unseen section of a tile by steps of at most
    /// the creation radius. `fresh` is all zero before and after.
    fn connected(&self, slot: u32, place: usize, unseen: &mut [u64], fresh: &mut [u64]) -> Vec<(u32, u64)> {
        // At least the merge radius, so that split parts do not merge again at once.
        let radius = self.config().empty_section_creation_radius;
        let tiles = &self.regions[slot as usize].ground.tiles;
        let mut part = Vec::new();
        let mut found = vec![place];
        fresh[place] = unseen[place] & unseen[place].wrapping_neg();
        unseen[place] &= !fresh[place];
        while let Some(place) = found.pop() {
            let mut mask = std::mem::take(&mut fresh[place]);
            loop {
                let grown = reach(mask, radius, 0, 0) & unseen[place];
                if grown == 0 {
                    break;
                }
                mask |= grown;
                unseen[place] &= !grown;
            }
            part.push((tiles[place], mask));
            let here = self.tiles.tile(tiles[place]).pos;
            for x in -1..=1 {
                let reached_along_x = reach_along_x(mask, radius, x);
                for z in -1..=1 {
                    let reached = reach_along_z(reached_along_x, radius, z);
                    if (x, z) == (0, 0) || reached == 0 {
                        continue;
                    }
                    let Some(neighbour) = self.tiles.at(SectionTilePos { x: here.x + x, z: here.z + z }) else {
                        continue;
                    };
                    let Some(&Part { index, .. }) = neighbour.part(slot) else { continue };
                    let index = index as usize;
                    let hit = reached & unseen[index];
                    if hit != 0 {
                        unseen[index] &= !hit;
                        if fresh[index] == 0 {
                            found.push(index);
                        }
                        fresh[index] |= hit;
                    }
                }
            }
        }
        part
    }

    fn sections_of(&self, part: &[(u32, u64)]) -> impl Iterator<Item = SectionPos> {
        part.iter().flat_map(|&(number, mask)| {
            let pos = self.tiles.tile(number).pos;
            bits(mask).map(move |bit| pos.section(bit))
        })
    }
}
