//! Which sections of a region are near each other: the search for what may split off.

use super::regionizer::Regionizer;
use super::section_tile::{Part, SectionTilePos, reach, reach_along_x, reach_along_z};
use crate::space::{SectionPos, bits};

/// Sections of a region that are within the creation radius of each other, directly or through others of them.
#[derive(Default)]
pub(super) struct ConnectedPart {
    /// Tiles, and the sections in them.
    pub masks: Vec<(u32, u64)>,
    sections: u32,
}

impl<D> Regionizer<D> {
    /// All parts of a region but the largest (of equals the one with the lowest section), by their lowest section.
    pub(super) fn smaller_parts(&self, slot: u32) -> Vec<ConnectedPart> {
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
        parts.sort_by_cached_key(|part| self.lowest_section(part));
        let mut largest = 0;
        for (place, part) in parts.iter().enumerate() {
            if part.sections > parts[largest].sections {
                largest = place;
            }
        }
        parts.remove(largest);
        parts
    }

    /// Takes everything that is connected to the first unseen section of a tile out of `unseen`. `fresh` is all zero
    /// before and after.
    fn connected(&self, slot: u32, place: usize, unseen: &mut [u64], fresh: &mut [u64]) -> ConnectedPart {
        // At least the merge radius, so that whatever splits does not merge again at once.
        let radius = self.config().empty_section_creation_radius;
        let tiles = &self.regions[slot as usize].ground.tiles;
        let mut part = ConnectedPart::default();
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
            part.masks.push((tiles[place], mask));
            part.sections += mask.count_ones();
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

    fn lowest_section(&self, part: &ConnectedPart) -> Option<SectionPos> {
        let sections = part.masks.iter().filter_map(|&(number, mask)| {
            let pos = self.tiles.tile(number).pos;
            bits(mask).map(|bit| pos.section(bit)).min()
        });
        sections.min()
    }
}
