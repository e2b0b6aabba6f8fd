//! [`Client`]: one client of an [`EntityServer`](super::EntityServer).

use super::EntityLimits;
use super::cells::{CATCH_UP, Cells, Places, is_due, is_in_reach};
use super::entity::Entity;
use crate::chunk_sync::Budget;
use crate::entity_sync::PERIODS;
use crate::entity_sync::messages::{Event, PacketWriter, message};
use crate::space::ChunkPos;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::mem;
use std::time::Duration;
use uuid::Uuid;

/// The size of events that wait for a client at which it starts anew.
const MAX_WAITING: usize = 512 << 10;
/// The ticks from one plan to the next.
const PLAN_TICKS: u32 = 20;
/// The distances, in cells, up to which cells have the first, the second and the third rate. The first of these whose places fit into the
/// client's bytes is taken: the far ones give way first.
const REACHES: [[f32; 3]; 8] = [
    [1.5, 3.0, 5.0],
    [1.5, 2.5, 4.0],
    [1.5, 2.0, 3.0],
    [1.5, 1.5, 2.5],
    [1.0, 1.5, 2.0],
    [0.0, 1.0, 1.5],
    [-1.0, 0.0, 1.5],
    [-1.0, -1.0, 1.0],
];
/// The ticks per second.
const TICKS: f32 = 20.0;
/// About the bytes of a cell and of a place in a packet.
const CELL_BYTES: f32 = 8.0;
const PLACE_BYTES: f32 = 7.0;

#[derive(Debug)]
pub(super) struct Client {
    pub limits: EntityLimits,
    pub center: Option<ChunkPos>,
    /// The entity that the client knows from elsewhere.
    pub own: Option<Uuid>,
    /// `true` if the client takes in messages, and if it takes in packets.
    pub is_reading: bool,
    pub takes_packets: bool,
    /// `true` if the client has had no packets in some tick since.
    has_missed: bool,
    /// `true` if the client has to start anew: at first, and after too much has waited for it.
    pub is_lost: bool,
    pub is_planned: bool,
    events: Vec<u8>,
    /// The changed components that the client is owed, a bit each.
    owed: FxHashMap<u32, u64>,
    budget: Budget,
    /// The bytes of messages that were sent in advance.
    debt: u64,
    /// The reaches that fit into its bytes.
    reaches: [f32; 3],
    /// The cells in sight, nearest first, with their rates. Cells that are new since the last plan come last.
    cells: Vec<(ChunkPos, u8)>,
    /// Cells of which the client may have missed places, those that wait longest first.
    late: VecDeque<ChunkPos>,
}

impl Client {
    pub fn new(limits: EntityLimits) -> Self {
        Self {
            limits,
            center: None,
            own: None,
            is_reading: true,
            takes_packets: true,
            has_missed: false,
            is_lost: true,
            is_planned: false,
            events: Vec::new(),
            owed: FxHashMap::default(),
            budget: Budget::default(),
            debt: 0,
            reaches: REACHES[0],
            cells: Vec::new(),
            late: VecDeque::new(),
        }
    }

    /// Returns `true` if the client sees an entity in this cell.
    pub fn sees(&self, cell: ChunkPos, id: Uuid) -> bool {
        self.own != Some(id) && self.has_in_sight(cell)
    }

    /// Returns `true` if the client sees what is in this cell, except for its own entity.
    pub fn has_in_sight(&self, cell: ChunkPos) -> bool {
        self.center.is_some_and(|center| is_in_reach(center, self.limits.radius, cell))
    }

    /// Begins anew: the client forgets all entities.
    pub fn begin(&mut self, types: &[String]) {
        self.is_lost = false;
        self.owed.clear();
        self.events = message();
        Event::Reset { types: types.iter().map(String::as_str).collect() }.put(&mut self.events);
    }

    pub fn tell(&mut self, event: &Event<'_>) {
        if self.is_lost {
            return;
        }
        if self.events.is_empty() {
            self.events = message();
        }
        event.put(&mut self.events);
        if self.events.len() > MAX_WAITING && !self.is_reading {
            (self.events, self.owed) = Default::default();
            self.is_lost = true;
        }
    }

    pub fn leave(&mut self, net: u32) {
        self.owed.remove(&net);
        self.tell(&Event::Leave { net });
    }

    pub fn owe(&mut self, net: u32, components: u64) {
        if !self.is_lost {
            *self.owed.entry(net).or_default() |= components;
        }
    }

    /// The rate of a cell: the nearer, the higher.
    fn rate(&self, cell: ChunkPos) -> u8 {
        let Some(center) = self.center else { return 3 };
        rate_at(distance(center, cell), &self.reaches)
    }

    /// Takes in a cell that was not there when the rates were chosen.
    pub fn add_cell(&mut self, cell: ChunkPos) {
        if self.is_planned && !self.cells.iter().any(|(known, _)| *known == cell) {
            self.cells.push((cell, self.rate(cell)));
        }
    }

    /// Tells the client what it is owed of cells that are due.
    pub fn pay(&mut self, tick: u32, entities: &FxHashMap<u32, Entity>) {
        if self.owed.is_empty() {
            return;
        }
        let due = |net: &u32| entities.get(net).is_none_or(|entity| is_due(entity.cell, self.rate(entity.cell), tick));
        let mut due: Vec<u32> = self.owed.keys().copied().filter(due).collect();
        due.sort_unstable();
        for net in due {
            let (Some(changed), Some(entity)) = (self.owed.remove(&net), entities.get(&net)) else { continue };
            let is_changed = |number: u16| changed >> number.min(63) & 1 == 1;
            let components = &entity.components;
            let set = components.iter().filter(|(number, _)| is_changed(**number));
            let mut news: Vec<(u16, Option<&[u8]>)> = set.map(|(number, value)| (*number, Some(&value[..]))).collect();
            let gone = (0..64).filter(|number| is_changed(*number) && !components.contains_key(number));
            news.extend(gone.map(|number| (number, None)));
            self.tell(&Event::Change { net, components: news });
        }
    }

    pub fn take_message(&mut self) -> Option<Vec<u8>> {
        (!self.events.is_empty()).then(|| mem::take(&mut self.events))
    }

    /// Returns `true` if there may be packets after a message of this length.
    pub fn begin_packets(&mut self, now: Duration, length: usize) -> bool {
        self.budget.refill(now, self.limits.bytes_per_second.into());
        // Those who come into a crowd do not wait for long until it moves.
        self.debt = (self.debt + length as u64).min(u64::from(self.limits.bytes_per_second) / 2);
        if self.debt > 0 && self.budget.spend(self.debt) {
            self.debt = 0;
        }
        let may_send = self.debt == 0 && self.takes_packets && self.center.is_some();
        self.has_missed |= !may_send;
        may_send
    }

    /// Notes that the client has no packets in this tick.
    pub fn miss(&mut self) {
        self.has_missed = true;
    }

    /// Chooses the rates of the cells in sight, now and then.
    pub fn plan(&mut self, key: u32, tick: u32, cells: &mut Cells, entities: &FxHashMap<u32, Entity>) {
        let Some(center) = self.center else { return };
        if self.is_planned && !tick.wrapping_add(key).is_multiple_of(PLAN_TICKS) {
            return;
        }
        self.is_planned = true;
        let mut around: Vec<(f32, ChunkPos, f32)> = Vec::new();
        for cell in cells.around(center, self.limits.radius) {
            let moving = cells.moving(cell, entities);
            let bytes = if moving == 0 { 0.0 } else { CELL_BYTES + moving as f32 * PLACE_BYTES };
            around.push((distance(center, cell), cell, bytes));
        }
        around.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let bytes_at = |reaches: &[f32; 3]| -> f32 {
            let each = around
                .iter()
                .map(|(distance, _, bytes)| bytes * TICKS / PERIODS[usize::from(rate_at(*distance, reaches))] as f32);
            each.sum()
        };
        let most = self.limits.bytes_per_second as f32;
        let reaches =
            REACHES.into_iter().find(|reaches| bytes_at(reaches) <= most).unwrap_or(REACHES[REACHES.len() - 1]);
        self.reaches = reaches;
        let planned = around.into_iter().map(|(distance, cell, _)| (cell, rate_at(distance, &reaches))).collect();
        let before: FxHashMap<ChunkPos, u8> = mem::replace(&mut self.cells, planned).into_iter().collect();
        self.late.retain(|late| is_in_reach(center, self.limits.radius, *late));
        // At a higher rate, places are repeated for a shorter time: some may not have been sent yet.
        let faster = self.cells.iter().filter(|(cell, rate)| before.get(cell).is_some_and(|before| before > rate));
        let faster: Vec<ChunkPos> = faster.map(|(cell, _)| *cell).collect();
        for cell in faster {
            if !self.late.contains(&cell) {
                self.late.push_back(cell);
            }
        }
    }

    /// Adds the places of cells: first of those of which the client may have missed some, then of those that are due.
    pub fn send_places(
        &mut self,
        tick: u32,
        cells: &mut Cells,
        entities: &FxHashMap<u32, Entity>,
        packets: &mut PacketWriter,
    ) {
        let mut waited = mem::take(&mut self.late);
        let mut is_late: FxHashSet<ChunkPos> = waited.iter().copied().collect();
        if mem::take(&mut self.has_missed) {
            waited.extend(self.cells.iter().map(|(cell, _)| *cell).filter(|cell| is_late.insert(*cell)));
        }
        let due = self.cells.iter().filter(|(cell, rate)| is_due(*cell, *rate, tick) && !is_late.contains(cell));
        for (cell, rate) in waited.into_iter().map(|cell| (cell, CATCH_UP)).chain(due.copied()) {
            let Some(Places { bytes: Some(bytes), millis }) = cells.places(cell, rate, entities) else { continue };
            if self.late.is_empty() && self.budget.spend((bytes.len() as f32 + CELL_BYTES) as u64) {
                packets.put(cell, rate.min(CATCH_UP - 1), *millis, bytes);
            } else {
                self.late.push_back(cell);
            }
        }
    }
}

/// The distance from cell to cell, in cells.
fn distance(from: ChunkPos, to: ChunkPos) -> f32 {
    let up = to.y.abs_diff(from.y) as f32;
    (from.column().distance_squared(to.column()) as f32).sqrt().max(up)
}

fn rate_at(distance: f32, reaches: &[f32; 3]) -> u8 {
    reaches.iter().position(|reach| distance <= *reach).unwrap_or(reaches.len()) as u8
}
