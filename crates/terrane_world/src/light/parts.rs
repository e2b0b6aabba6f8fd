//! [`ColumnLight`]: the light of one column, and light maps that merge, split, and begin with light that is up to date.

use super::map::{LitColumn, NONE, SIDES, Slot, beyond};
use super::{ChunkLight, LightMap};
use crate::chunk::Column;
use crate::light::LightTable;
use crate::space::{BlockPos, ColumnPos, Face, HeightSet};
use rustc_hash::FxHashMap;
use std::mem;

/// From this number on, slots without a chunk are given back if they are four times as many as the others.
const LEAST_FREED: usize = 16;

impl LightMap {
    /// A map of columns whose light is up to date with each other, as [`column`](Self::column) has returned it from one map.
    ///
    /// The light of columns around them stays where it is. A change is worked off exactly if it is at least 16 blocks away from
    /// missing neighbors that the other map has.
    pub fn of_settled<'a>(columns: impl IntoIterator<Item = &'a ColumnLight>) -> Self {
        let mut map = Self::new();
        for ColumnLight { pos, open_from, chunks, .. } in columns {
            map.column_entry(*pos, *open_from);
            for (y, light) in chunks {
                map.insert_chunk(pos.chunk(*y), light.clone());
            }
        }
        for slot in 0..map.slots.len() as u32 {
            for face in [Face::East, Face::South, Face::Top] {
                let other = beyond(map.slots[slot as usize].pos, face).and_then(|pos| map.slot(pos));
                map.connect(slot, face, other.unwrap_or(NONE));
            }
        }
        map
    }

    /// Adds all columns of another map, with the work that is left in them. They replace those that are here already. Light
    /// flows over the seams in the next [`advance`](Self::advance).
    pub fn append(&mut self, mut other: Self) {
        if other.columns.is_empty() {
            return;
        }
        other.columns.keys().for_each(|pos| self.remove(*pos));
        if self.columns.is_empty() {
            return *self = other;
        }
        let first = self.slots.len() as u32;
        let moved = |slot: u32| if slot == NONE { NONE } else { slot + first };
        let slots = other.slots.into_iter();
        self.slots.extend(slots.map(|slot| Slot { neighbors: slot.neighbors.map(moved), ..slot }));
        self.free.extend(other.free.into_iter().map(moved));
        self.active.extend(other.active.into_iter().map(moved));
        self.changed.extend(other.changed.into_iter().map(moved));
        let mut new = Vec::new();
        for column in other.columns.values_mut() {
            column.slots.values_mut().for_each(|slot| *slot = moved(*slot));
            new.extend(column.slots.values().copied());
        }
        self.columns.extend(other.columns);
        for slot in new {
            let Slot { pos, neighbors, .. } = self.slots[slot as usize];
            for face in SIDES.into_iter().filter(|face| neighbors[*face as usize] == NONE) {
                if let Some(other) = beyond(pos, face).and_then(|pos| self.slot(pos)) {
                    self.connect(slot, face, other);
                    self.meet(slot, face, other);
                }
            }
        }
    }

    /// Moves the columns for which `wanted` returns `true` to a map of their own, with the work that is left in them. In the
    /// next [`advance`](Self::advance), each side loses the light of the other.
    pub fn split_off(&mut self, wanted: impl Fn(ColumnPos) -> bool) -> Self {
        let part = self.take_part(wanted);
        self.compact();
        part
    }

    /// Gives back the memory of slots without a chunk, if there are many.
    pub(super) fn compact(&mut self) {
        let used = self.slots.len().saturating_sub(self.free.len());
        if self.free.len() >= LEAST_FREED && self.free.len() / 4 >= used {
            *self = self.take_part(|_| true);
        }
    }

    fn take_part(&mut self, wanted: impl Fn(ColumnPos) -> bool) -> Self {
        let mut part = Self::new();
        let mut columns: Vec<_> = self.columns.extract_if(|pos, _| wanted(*pos)).collect();
        columns.sort_unstable_by_key(|(pos, _)| *pos);
        let mut places = FxHashMap::default();
        for (pos, LitColumn { open_from, mut slots }) in columns {
            for slot in slots.values_mut() {
                let place = part.slots.len() as u32;
                let free = Slot::new(pos.chunk(0), ChunkLight::default(), false);
                part.slots.push(mem::replace(&mut self.slots[*slot as usize], free));
                self.free.push(*slot);
                places.insert(*slot, place);
                *slot = place;
            }
            part.columns.insert(pos, LitColumn { open_from, slots });
        }
        if places.is_empty() {
            return part;
        }
        let take = |list: &mut Vec<u32>| -> Vec<u32> {
            list.extract_if(.., |slot| places.contains_key(slot)).map(|slot| places[&slot]).collect()
        };
        (part.active, part.changed) = (take(&mut self.active), take(&mut self.changed));
        for place in 0..part.slots.len() as u32 {
            for face in Face::ALL {
                let neighbor = &mut part.slots[place as usize].neighbors[face as usize];
                match places.get(neighbor) {
                    Some(moved) => *neighbor = *moved,
                    None if *neighbor == NONE => {}
                    None => {
                        let left = mem::replace(neighbor, NONE);
                        self.slots[left as usize].neighbors[face.opposite() as usize] = NONE;
                        self.lose(left, face.opposite());
                        part.lose(place, face);
                    }
                }
            }
        }
        part
    }

    /// Lets a chunk lose the light that came through a face.
    fn lose(&mut self, slot: u32, face: Face) {
        if self.slots[slot as usize].distrust(face) {
            self.activate(slot);
        }
    }
}

/// The light of a column's chunks: [without its neighbors](Self::new), or [as a `LightMap` has it](LightMap::column). In a sparse
/// dimension, the light of the loaded heights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnLight {
    pub(super) pos: ColumnPos,
    pub(super) open_from: i64,
    /// By chunk height, ascending.
    pub(super) chunks: Vec<(i64, ChunkLight)>,
    /// Known to be the light that these chunks have without any neighbor.
    pub(super) is_alone: bool,
}

impl ColumnLight {
    /// Computes the light of the column's chunks at these heights, from scratch and without the columns around it. A missing
    /// chunk among them is air.
    ///
    /// Chunks above these heights are open sky from the chunk height `open_from` on, and dark below it. In a dense dimension,
    /// the heights are its height range and `open_from` is the range's end. In a sparse one, `i64::MIN` lets the sky shine
    /// on whatever is loaded, and `i64::MAX` on nothing.
    ///
    /// Costs about 100 us for a column of 24 chunks of hills.
    pub fn new(table: &LightTable, column: &Column, heights: &HeightSet, open_from: i64) -> Self {
        let mut map = LightMap::new();
        map.insert_dark(table, column, heights, open_from);
        map.advance(table, column, usize::MAX);
        let chunks = map.take_chunks();
        Self { pos: column.pos(), open_from, chunks, is_alone: true }
    }

    /// The position of the column.
    pub const fn pos(&self) -> ColumnPos {
        self.pos
    }

    /// The chunk height from which missing chunks are open sky.
    pub const fn open_from(&self) -> i64 {
        self.open_from
    }

    /// The light of the chunk at the chunk height `y`.
    pub fn chunk(&self, y: i64) -> Option<&ChunkLight> {
        let place = self.chunks.binary_search_by_key(&y, |(y, _)| *y).ok()?;
        self.chunks.get(place).map(|(_, light)| light)
    }

    /// The levels of sky light and of block light at a position in this column; `None` if its chunk has no light.
    pub fn levels(&self, pos: BlockPos) -> Option<[u8; 2]> {
        debug_assert_eq!(pos.column(), self.pos, "{pos} is in another column");
        Some(self.chunk(pos.chunk().y)?.levels(pos.in_chunk()))
    }

    /// The light of all chunks with their chunk heights, in ascending order.
    pub fn chunks(&self) -> impl DoubleEndedIterator<Item = (i64, &ChunkLight)> + ExactSizeIterator {
        self.chunks.iter().map(|(y, light)| (*y, light))
    }

    /// The heap memory in bytes, including shared memory. The size of the map is an estimate.
    pub fn heap_bytes(&self) -> usize {
        let entry = size_of::<(i64, ChunkLight)>();
        self.chunks.iter().map(|(_, light)| entry + light.heap_bytes()).sum()
    }
}
