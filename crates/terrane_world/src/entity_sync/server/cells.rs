//! [`Cells`]: the entities by their cells, and the encoded places of each cell.

use super::entity::Entity;
use crate::entity_sync::PERIODS;
use crate::entity_sync::messages::PlacesWriter;
use crate::space::{ChunkPos, ColumnPos};
use rustc_hash::FxHashMap;

/// A place is sent this many times, in case packets are lost.
const REPEATS: u32 = 3;
/// All places in a cell are sent after this many ticks, whether they are new or not.
const ALL_AGAIN: u32 = 200;
/// In place of a rate: all places that are newer than [`ALL_AGAIN`], for a client that has missed some.
pub(super) const CATCH_UP: u8 = PERIODS.len() as u8;

#[derive(Debug, Default)]
pub(super) struct Cells {
    tick: u32,
    cells: FxHashMap<ChunkPos, Cell>,
    /// The heights of the cells in each column.
    columns: FxHashMap<ColumnPos, Vec<i64>>,
    pub encodings: u64,
}

#[derive(Debug, Default)]
struct Cell {
    /// The numbers of its entities, ascending.
    members: Vec<u32>,
    /// For each rate and for [`CATCH_UP`], the tick and the places that were encoded in it.
    encoded: [(u32, Places); PERIODS.len() + 1],
    /// The number of entities that have moved within a second, as of some tick.
    moving: (u32, usize),
}

/// The encoded places of a cell, and their time in milliseconds.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub bytes: Option<Box<[u8]>>,
    pub millis: u64,
}

/// Cells are sent at different ticks, so that not all are sent in the same.
fn phase(cell: ChunkPos) -> u32 {
    (cell.x.wrapping_mul(7) ^ cell.y.wrapping_mul(13) ^ cell.z.wrapping_mul(29)) as u32
}

/// Returns `true` if a cell is sent at this rate in a tick.
pub(super) fn is_due(cell: ChunkPos, rate: u8, tick: u32) -> bool {
    tick.wrapping_add(phase(cell)).is_multiple_of(PERIODS[usize::from(rate)])
}

impl Cells {
    pub fn begin_tick(&mut self, tick: u32) {
        self.tick = tick;
    }

    /// Returns `true` if there was no such cell.
    pub fn insert(&mut self, cell: ChunkPos, net: u32) -> bool {
        let mut is_new = false;
        let Cell { members, .. } = self.cells.entry(cell).or_insert_with(|| {
            self.columns.entry(cell.column()).or_default().push(cell.y);
            is_new = true;
            Cell::default()
        });
        members.insert(members.partition_point(|other| *other < net), net);
        is_new
    }

    pub fn remove(&mut self, cell: ChunkPos, net: u32) {
        let Some(known) = self.cells.get_mut(&cell) else { return };
        known.members.retain(|other| *other != net);
        if known.members.is_empty() {
            self.cells.remove(&cell);
            if let Some(heights) = self.columns.get_mut(&cell.column()) {
                heights.retain(|y| *y != cell.y);
                if heights.is_empty() {
                    self.columns.remove(&cell.column());
                }
            }
        }
    }

    pub fn members(&self, cell: ChunkPos) -> &[u32] {
        self.cells.get(&cell).map_or(&[], |cell| &cell.members)
    }

    /// The cells with entities around a center.
    pub fn around(&self, center: ChunkPos, radius: u32) -> Vec<ChunkPos> {
        let reach = i64::from(radius);
        let mut found = Vec::new();
        for x in center.x.saturating_sub(reach)..=center.x.saturating_add(reach) {
            for z in center.z.saturating_sub(reach)..=center.z.saturating_add(reach) {
                let column = ColumnPos::new(x, z);
                let cells = self.columns.get(&column).into_iter().flatten().map(|y| column.chunk(*y));
                found.extend(cells.filter(|cell| is_in_reach(center, radius, *cell)));
            }
        }
        found
    }

    /// About how many entities of a cell are moving.
    pub fn moving(&mut self, cell: ChunkPos, entities: &FxHashMap<u32, Entity>) -> usize {
        let tick = self.tick;
        let Some(Cell { members, moving: (counted, count), .. }) = self.cells.get_mut(&cell) else { return 0 };
        if tick.wrapping_sub(*counted) >= 10 || *counted == 0 {
            let is_moving = |net: &&u32| entities.get(net).is_some_and(|entity| tick.wrapping_sub(entity.moved) < 20);
            (*counted, *count) = (tick, members.iter().filter(is_moving).count());
        }
        *count
    }

    /// The places of a cell that are due at a rate, encoded once in each tick.
    pub fn places(&mut self, cell: ChunkPos, rate: u8, entities: &FxHashMap<u32, Entity>) -> Option<&Places> {
        let tick = self.tick;
        let known = self.cells.get_mut(&cell)?;
        let (encoded, places) = &mut known.encoded[usize::from(rate)];
        if *encoded != tick {
            *encoded = tick;
            self.encodings += 1;
            let (newer_than, is_all) = match PERIODS.get(usize::from(rate)) {
                None => (ALL_AGAIN, false),
                Some(period) => {
                    let turn = tick.wrapping_add(phase(cell)) / period;
                    (REPEATS * period, turn.is_multiple_of(ALL_AGAIN / period))
                }
            };
            let is_new = |entity: &&Entity| is_all || tick.wrapping_sub(entity.moved) < newer_than;
            let sent = |net: &u32| Some((*net, entities.get(net).filter(is_new)?));
            let sent: Vec<_> = known.members.iter().filter_map(sent).collect();
            let millis = sent.iter().map(|(_, entity)| entity.millis).max().unwrap_or_default();
            let mut writer = PlacesWriter::new();
            sent.iter().for_each(|(net, entity)| writer.put(*net, entity.place, millis - entity.millis));
            *places = Places { bytes: writer.finish(), millis };
        }
        Some(places)
    }
}

/// Returns `true` if a cell is within a radius, to the sides and up and down.
pub(super) fn is_in_reach(center: ChunkPos, radius: u32, cell: ChunkPos) -> bool {
    center.column().distance_squared(cell.column()) <= u128::from(radius).pow(2)
        && cell.y.abs_diff(center.y) <= radius.into()
}
