//! The end: nothing that a region holds is lost.

use crate::chunk::ColumnSummary;
use crate::coordinator::SaveError;
use crate::coordinator::desk::Desk;
use crate::coordinator::exchange::{Inbound, do_work};
use crate::coordinator::region_slot::Parked;
use crate::coordinator::snapshots::Snapshots;
use crate::coordinator::threads::{ColumnsReady, Fault};
use crate::simulation::{Assignment, BlockAccessError, ColumnError, Inbox, Salvage, SetBlock, Task};
use crate::space::{ColumnPos, DimensionId};
use bevy::ecs::system::SystemState;
use bevy::prelude::*;
use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Tries of the last commit, before it is reported as failed.
const LAST_COMMIT_TRIES: u32 = 5;
/// The wait after the first of them, which grows: all together they last longer than a disk takes to be opened again.
const LAST_COMMIT_WAIT: Duration = Duration::from_millis(200);

/// How often the regions can still answer each other.
const LAST_ROUNDS: u32 = 8;

/// Ends the simulation: waits for ticking regions, takes what is unsaved from all, commits it, ends the threads.
pub fn shut_down(world: &mut World) {
    // What was sent before the end is done.
    world.resource_mut::<Inbound>().receive();
    do_work(world);
    let mut state = SystemState::<(Desk, ResMut<Snapshots>)>::new(world);
    match state.get_mut(world) {
        Ok((mut desk, mut snapshots)) => {
            desk.wait_for_regions();
            desk.keep_generated();
            desk.keep_edits();
            desk.keep_pregenerations();
            desk.note_resident();
            desk.save_regions();
            desk.save_clocks();
            desk.saves.requested.extend(snapshots.take_done());
            desk.last_commit();
            desk.fail_last_saves();
            desk.save_notes();
            desk.tell_complaints(Duration::MAX);
            desk.threads.join();
        }
        Err(error) => error!("the coordinator's world lacks what it began with, nothing could be saved: {error}"),
    }
}

impl Desk<'_> {
    fn wait_for_regions(&mut self) {
        // A patience beyond what a clock can tell is for ever.
        let until = Instant::now().checked_add(self.config.shutdown_patience);
        loop {
            self.finish_tasks();
            if self.deadlines.running.is_empty() {
                return;
            }
            if !self.inbound.wait_until(until) {
                break;
            }
        }
        for (id, region) in self.deadlines.running.keys() {
            error!("{region} of {id} is still ticking: what it changed since its last save is lost");
        }
    }

    /// What was generated and not delivered yet need not be generated again.
    fn keep_generated(&mut self) {
        self.inbound.receive();
        for ColumnsReady { dimension: id, generated, columns, .. } in mem::take(&mut self.inbound.columns) {
            let Some(dimension) = self.dimensions.open.get_mut(&id).filter(|_| generated) else { continue };
            for (column, ready) in columns.into_iter().filter_map(|(column, result)| Some((column, result.ok()?))) {
                // A region may have fetched it meanwhile, and what it made of it is newer.
                if dimension.stored.is_completed(column) {
                    continue;
                }
                dimension.save_generated(&mut self.saves.pending, &ready.loaded.column, &ready.made);
            }
        }
    }

    /// Edits that wait for regions which are still ticking are made in the ground as it was saved last.
    fn keep_edits(&mut self) {
        let mut edits: BTreeMap<(DimensionId, ColumnPos), Vec<SetBlock>> = BTreeMap::new();
        for (&(id, region), running) in &mut self.deadlines.running {
            let Some(dimension) = self.dimensions.open.get_mut(&id) else { continue };
            let beside = dimension.waiting.get().get_mut(&region).map(|inbox| mem::take(&mut inbox.edits));
            // What waits in a part of a region that is being split.
            let own = mem::take(&mut running.slot.parked.get().inbox.edits);
            for edit in own.into_iter().chain(beside.unwrap_or_default()) {
                edits.entry((id, edit.position.column())).or_default().push(edit);
            }
        }
        for ((id, column), edits) in edits {
            let count = edits.len();
            match self.edit_stored(id, column, edits) {
                Ok(()) => warn!("{id}, column {column}: {count} edits are made in the ground as it was saved last"),
                Err(error) => error!("{id}, column {column}: {count} edits are lost: {error}"),
            }
        }
    }

    fn edit_stored(&mut self, id: DimensionId, column: ColumnPos, edits: Vec<SetBlock>) -> Result<(), ColumnError> {
        let Some(dimension) = self.dimensions.open.get(&id) else { return Ok(()) };
        let is_there = |edit: &SetBlock| dimension.spec.heights.contains(&edit.position.y);
        let edits: Vec<_> = edits.into_iter().filter(is_there).collect();
        let heights = edits.iter().map(|edit| edit.position.chunk().y).collect();
        let mut ground = dimension.home.ground.stored(column, &heights)?;
        for (height, chunk) in self.saves.unwritten(id, column) {
            ground.set_chunk(height, chunk);
        }
        let pending = &mut self.saves.pending;
        for SetBlock { position, block, .. } in edits {
            let chunk = position.chunk();
            if !ground.is_loaded(chunk.y) {
                warn!("{id}: {}", BlockAccessError::UnloadedHeight(position));
                continue;
            }
            if !dimension.home.ground.blocks.contains(block) {
                warn!("{id}: {}", BlockAccessError::Unregistered { block: position, id: block });
                continue;
            }
            ground.set_block(position, block);
            if let Some(changed) = ground.chunk(chunk.y) {
                pending.chunks.insert((id, chunk), changed.clone());
            }
        }
        if ground.loaded().is_none() {
            pending.summaries.insert((id, column), Arc::new(ColumnSummary::new(&ground)));
        }
        Ok(())
    }

    /// The next session goes on where this one ends.
    fn keep_pregenerations(&mut self) {
        let ids: Vec<_> =
            self.dimensions.open.iter().filter(|(_, open)| !open.is_closing()).map(|(id, _)| *id).collect();
        ids.into_iter().for_each(|id| self.save_pregenerations(id));
    }

    /// Every region hands out all that it has. What they send to each other with that is handed over too, unless they
    /// never come to an end with it.
    fn save_regions(&mut self) {
        for round in 0..LAST_ROUNDS {
            if !self.close_regions(round == 0) {
                break;
            }
        }
        let waiting = self.letters_left();
        if waiting > 0 {
            warn!("{waiting} messages and closures still waited for their place or their time: they end with the app");
        }
        self.publisher.hand_over();
    }

    /// The last task of each region that has something to do. Says whether there was one.
    fn close_regions(&mut self, is_first: bool) -> bool {
        let mut has_closed = false;
        let open: Vec<_> = self.dimensions.open.iter().collect();
        let open = open
            .into_iter()
            .flat_map(|(id, dimension)| dimension.regionizer.regions().into_iter().map(|region| (*id, region)));
        for (id, region) in open.collect::<Vec<_>>() {
            let Some(dimension) = self.dimensions.open.get_mut(&id) else { continue };
            let home = dimension.home.clone();
            let time = dimension.time.clone();
            let Some(slot) = dimension.regionizer.data_mut(region) else { continue };
            let parked = mem::take(slot.parked.get());
            let is_halted = slot.halted.is_some();
            let progress = slot.progress.clone();
            let clock = (time.now, time.period(slot.control.ticks_per_second));
            let Inbox { edits, letters, .. } = &parked.inbox;
            let has_work = !is_halted && (!edits.is_empty() || !letters.is_empty());
            if !has_work && (parked.world.is_none() || !is_first) {
                // Its columns are in the store or pending, its entities have records.
                *slot.parked.get() = parked;
                continue;
            }
            has_closed = true;
            let number = self.deadlines.next_assignment();
            let Parked { world, inbox } = parked;
            let assignment = Assignment { region, home, world, inbox, task: Task::Close, number, clock, progress };
            match self.threads.regions.run_here(assignment).outcome {
                Ok((world, outbox)) => {
                    let _ = self.route(id, region, outbox);
                    let dimension = self.dimensions.open.get_mut(&id);
                    if let Some(slot) = dimension.and_then(|dimension| dimension.regionizer.data_mut(region)) {
                        slot.parked.get().world = world;
                    }
                }
                Err(Fault { panic, salvage }) => {
                    error!("{region} of {id} could not be saved: {}", panic.reason);
                    let Salvage { inbox, handed_over, undelivered, .. } = *salvage;
                    let lost = inbox.letters.len() + handed_over.len() + undelivered.len();
                    if lost > 0 {
                        warn!("{lost} messages and closures end with {region} of {id}");
                    }
                }
            }
        }
        has_closed
    }

    fn letters_left(&mut self) -> usize {
        let mut left = 0;
        for dimension in self.dimensions.open.values_mut() {
            left += dimension.letters.values().map(Vec::len).sum::<usize>();
            left += dimension.recalled.len();
            left += dimension.transit.iter().map(|traveller| traveller.letters.len()).sum::<usize>();
            for region in dimension.regionizer.regions() {
                left += dimension.inbox(region).letters.len();
            }
        }
        left
    }

    /// Also if nothing else is saved any more. What is saved is synced after it.
    fn save_clocks(&self) {
        if let Err(error) = self.store.0.save_clocks(&self.dimensions.clocks().collect()) {
            warn!("the time that has passed in dimensions is not saved: {error}");
        }
    }

    /// What is written along with saves or later, if nothing else is saved.
    fn save_notes(&self) {
        if let Err(error) = self.store.0.save_heat() {
            warn!("when chunks were in use last is not saved: {error}");
        }
        if let Err(error) = self.store.0.save_opacity() {
            warn!("what is opaque is made anew next time, as it could not be saved: {error}");
        }
    }

    /// A save or a backup that was asked for and that the last commit did not answer has failed.
    fn fail_last_saves(&mut self) {
        let requests = self.saves.take_requests();
        if !requests.is_empty() {
            self.fail_saves(requests, SaveError::Ended);
        }
    }

    fn last_commit(&mut self) {
        // One that is on its way already; what it could not write comes back.
        self.wait_for_commit();
        self.saves.answers = self.saves.take_requests();
        for attempt in 1..=LAST_COMMIT_TRIES {
            self.submit(true);
            self.wait_for_commit();
            if self.is_all_synced() && self.saves.answers.is_empty() {
                return;
            }
            std::thread::sleep(LAST_COMMIT_WAIT * attempt);
        }
        match self.saves.pending.len() {
            0 => error!("what was saved last could not be synced: a loss of power may take it back"),
            unsaved => error!("{unsaved} things could not be saved: the store holds the state before them"),
        }
    }
}
