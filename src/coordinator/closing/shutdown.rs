//! The shutdown. It saves everything that a region holds.

use crate::chunk::ColumnSummary;
use crate::coordinator::clock::Clock;
use crate::coordinator::dimension::{DimensionBook, OpenDimension};
use crate::coordinator::jobs::{JobBook, keep_jobs};
use crate::coordinator::mail::queue::MailQueue;
use crate::coordinator::messages::saving::SaveError;
use crate::coordinator::passes::letters::sort_letters;
use crate::coordinator::passes::publish::tell_complaints;
use crate::coordinator::passes::save::wait_for_commit;
use crate::coordinator::publish::Publisher;
use crate::coordinator::regions::Parked;
use crate::coordinator::saves::Saves;
use crate::coordinator::schedule::deadlines::Deadlines;
use crate::coordinator::stream::orders::Orders;
use crate::coordinator::surroundings::Surroundings;
use crate::coordinator::threads::Threads;
use crate::coordinator::threads::columns::ColumnsReady;
use crate::coordinator::threads::exchange::{Inbound, do_work};
use crate::coordinator::threads::regions::Fault;
use crate::coordinator::tiers::note_resident;
use crate::simulation::{Assignment, BlockAccessError, BlockEdit, ColumnError, Inbox, Salvage, SetBlock, Task};
use crate::space::{ColumnPos, DimensionId};
use bevy::ecs::schedule::SingleThreadedExecutor;
use bevy::prelude::*;
use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Attempts of the last commit before it is reported as failed.
const LAST_COMMIT_TRIES: u32 = 5;
/// The wait after the first attempt. It grows, and all waits together are longer than it takes to reopen a disk.
const LAST_COMMIT_WAIT: Duration = Duration::from_millis(200);

/// How often the regions can still answer each other.
const LAST_ROUNDS: u32 = 8;

/// Ends the simulation: waits for ticking regions, takes the unsaved state of all, commits it, and ends the threads. Returns `true` if
/// everything was saved.
pub fn shut_down(world: &mut World) -> bool {
    // Orders that were sent before the end are carried out.
    world.resource_mut::<Inbound>().receive();
    do_work(world);
    let mut last = Schedule::default();
    last.set_executor(SingleThreadedExecutor::new()).add_systems(
        (
            sort_letters,
            wait_for_regions,
            keep_generated,
            keep_edits,
            keep_jobs,
            note_resident,
            save_regions,
            save_clocks,
            last_commit,
            fail_last_saves,
            end_threads,
        )
            .chain(),
    );
    last.run(world);
    // Handles the last answers of other threads: another process may be waiting for its backup.
    world.resource_mut::<Inbound>().receive();
    do_work(world);
    let saves = world.resource::<Saves>();
    !saves.has_ended && saves.is_all_synced() && world.resource::<Deadlines>().running.is_empty()
}

fn wait_for_regions(mut inbound: ResMut<Inbound>, mut world: Surroundings) {
    // A patience beyond the clock's range is endless.
    let until = Instant::now().checked_add(world.config.saving.shutdown_patience);
    loop {
        world.finish_all(inbound.tasks.get());
        world.deadlines.hand_over(&world.threads);
        if world.deadlines.running.is_empty() {
            return;
        }
        if !inbound.wait_until(until) {
            break;
        }
    }
    for (id, region) in world.deadlines.away() {
        error!("{region} of {id} is still ticking: its changes since the last save are lost");
    }
}

/// Saves generated columns that were not delivered yet, so that they need not be generated again.
fn keep_generated(mut inbound: ResMut<Inbound>, mut dimensions: ResMut<DimensionBook>, mut saves: ResMut<Saves>) {
    inbound.receive();
    for ColumnsReady { dimension: id, generated, columns, .. } in mem::take(&mut inbound.columns) {
        let Some(dimension) = dimensions.open.get_mut(&id).filter(|_| generated) else { continue };
        for (column, ready) in columns.into_iter().filter_map(|(column, result)| Some((column, result.ok()?))) {
            // A region may have fetched the column meanwhile, and its state is newer.
            if dimension.land.stored.is_completed(column) || !dimension.is_own(column) {
                continue;
            }
            dimension.save_generated(&mut saves.pending, &ready.loaded.column, &ready.made);
        }
    }
}

/// Applies edits that wait for regions which are still ticking to the columns as they were saved last.
fn keep_edits(mut dimensions: ResMut<DimensionBook>, mut deadlines: ResMut<Deadlines>, mut saves: ResMut<Saves>) {
    let mut edits: BTreeMap<(DimensionId, ColumnPos), Vec<BlockEdit>> = BTreeMap::new();
    for (&(id, region), running) in &mut deadlines.running {
        let Some(dimension) = dimensions.open.get_mut(&id) else { continue };
        let beside = dimension.regions.waiting.get().get_mut(&region).map(|inbox| mem::take(&mut inbox.edits));
        // Edits that wait in a part of a region that is being split.
        let own = running.slot.parked.get().inbox.as_mut().map(|inbox| mem::take(&mut inbox.edits));
        for edit in own.into_iter().chain(beside).flatten() {
            edits.entry((id, edit.request.position.column())).or_default().push(edit);
        }
    }
    for ((id, column), edits) in edits {
        let Some(dimension) = dimensions.open.get(&id) else { continue };
        let count = edits.len();
        match edit_stored(dimension, column, edits, &mut saves) {
            Ok(()) => warn!("{id}, column {column}: {count} edits are applied to the ground of the last save"),
            Err(error) => error!("{id}, column {column}: {count} edits are lost: {error}"),
        }
    }
}

fn edit_stored(
    dimension: &OpenDimension,
    column: ColumnPos,
    edits: Vec<BlockEdit>,
    saves: &mut Saves,
) -> Result<(), ColumnError> {
    let id = dimension.id;
    let is_there = |edit: &SetBlock| dimension.spec.heights.contains(&edit.position.y);
    let edits: Vec<_> = edits.into_iter().map(|edit| edit.request).filter(is_there).collect();
    let heights = edits.iter().map(|edit| edit.position.chunk().y).collect();
    let mut ground = dimension.ground.stored(column, &heights)?;
    for (height, chunk) in saves.unwritten(id, column) {
        ground.set_chunk(height, chunk);
    }
    for SetBlock { position, block, .. } in edits {
        let chunk = position.chunk();
        if !ground.is_loaded(chunk.y) {
            warn!("{id}: {}", BlockAccessError::UnloadedHeight(position));
            continue;
        }
        if !dimension.ground.blocks.contains(block) {
            warn!("{id}: {}", BlockAccessError::Unregistered { block: position, id: block });
            continue;
        }
        ground.set_block(position, block);
        if let Some(changed) = ground.chunk(chunk.y) {
            saves.pending.chunks.insert((id, chunk), changed.clone());
        }
    }
    if ground.loaded().is_none() {
        saves.pending.summaries.insert((id, column), Arc::new(ColumnSummary::new(&ground)));
    }
    Ok(())
}

/// Makes every region hand out everything. Messages that the regions send each other meanwhile are delivered too, up to
/// [`LAST_ROUNDS`] times.
fn save_regions(mut world: Surroundings) {
    for round in 0..LAST_ROUNDS {
        let has_closed = world.close_regions(round == 0);
        let now = world.clock.now;
        world.post.sort(&mut world.dimensions, &world.directory, &mut world.publisher, now);
        if !has_closed {
            break;
        }
    }
    let waiting = letters_left(&mut world.dimensions);
    if waiting > 0 {
        warn!("{waiting} messages and closures were still waiting for their place or their time, and end with the app");
    }
    world.publisher.hand_over();
}

impl Surroundings<'_> {
    /// Runs the last task of each region that has something to do. Returns `true` if there was one.
    fn close_regions(&mut self, is_first: bool) -> bool {
        let mut has_closed = false;
        for (id, region) in self.dimensions.regions() {
            let Some(dimension) = self.dimensions.open.get_mut(&id) else { continue };
            let ground = Some(dimension.ground.clone());
            let time = dimension.time.clone();
            let Some(slot) = dimension.regions.regionizer.data_mut(region) else { continue };
            let parked = mem::take(slot.parked.get());
            let is_halted = slot.halted.is_some();
            let progress = slot.progress.clone();
            let clock = (time.now, time.period(slot.control.ticks_per_second));
            let brings_work = |inbox: &Inbox| !inbox.edits.is_empty() || !inbox.letters.is_empty();
            let has_work = !is_halted && parked.inbox.as_deref().is_some_and(brings_work);
            if !has_work && (parked.worlds.is_empty() || !is_first) {
                // Its columns are in the store or pending, and its entities have records.
                *slot.parked.get() = parked;
                continue;
            }
            has_closed = true;
            let number = self.deadlines.next_assignment();
            let Parked { worlds, inbox } = parked;
            let (task, time_of_day) = (Task::Close, time.time_of_day);
            let assignment =
                Assignment { dimension: id, region, ground, worlds, inbox, task, number, clock, time_of_day, progress };
            match self.threads.regions.run_here(assignment).outcome {
                Ok((worlds, outbox)) => {
                    if let Some(outbox) = outbox {
                        let _ = self.route(id, region, outbox);
                    }
                    let dimension = self.dimensions.open.get_mut(&id);
                    if let Some(slot) = dimension.and_then(|dimension| dimension.regions.regionizer.data_mut(region)) {
                        slot.parked.get().worlds = worlds;
                    }
                }
                Err(fallen) => {
                    let Fault { fault, salvage, .. } = *fallen;
                    error!("{region} of {id} could not be saved: {}", fault.reason);
                    let Salvage { inbox, undelivered, .. } = *salvage;
                    let lost = inbox.letters.len() + undelivered.len();
                    if lost > 0 {
                        warn!("{lost} messages and closures end with {region} of {id}");
                    }
                }
            }
        }
        has_closed
    }
}

fn letters_left(dimensions: &mut DimensionBook) -> usize {
    let mut left = 0;
    for dimension in dimensions.open.values_mut() {
        left += dimension.mail.letters.values().map(Vec::len).sum::<usize>();
        left += dimension.mail.recalled.len();
        left += dimension.mail.transit.iter().map(|traveller| traveller.letters.len()).sum::<usize>();
        for region in dimension.regions.regionizer.regions() {
            left += dimension.inbox(region).letters.len();
        }
    }
    left
}

/// Has the last commit save the clocks and the last access times of chunks, even if nothing else is left to save.
fn save_clocks(dimensions: Res<DimensionBook>, mut saves: ResMut<Saves>) {
    dimensions.save_clocks(&mut saves.pending);
}

fn last_commit(
    clock: Res<Clock>,
    mut inbound: ResMut<Inbound>,
    mut dimensions: ResMut<DimensionBook>,
    mut jobs: ResMut<JobBook>,
    mut saves: ResMut<Saves>,
    mut threads: ResMut<Threads>,
    mut publisher: ResMut<Publisher>,
) {
    let now = clock.now;
    if saves.has_ended {
        // Another server has taken over. Nothing can be saved any more.
        return;
    }
    jobs.done.append(&mut saves.unsaved_restores);
    saves.requested.extend(jobs.take_done());
    // A commit that is in flight already; its data comes back if it fails.
    wait_for_commit(&mut saves, &mut inbound, &mut dimensions, &mut publisher, now);
    saves.answers = saves.take_requests();
    for attempt in 1..=LAST_COMMIT_TRIES {
        if saves.has_ended {
            return;
        }
        saves.submit(true, |batch| dimensions.complete_save(batch), &threads.storage, now);
        wait_for_commit(&mut saves, &mut inbound, &mut dimensions, &mut publisher, now);
        saves.answer(&mut threads, &mut publisher);
        if saves.is_all_synced() && saves.answers.is_empty() {
            return;
        }
        std::thread::sleep(LAST_COMMIT_WAIT * attempt);
    }
    match saves.pending.len() {
        0 => error!("the last saves could not be synced: a power loss may undo them"),
        unsaved => error!("{unsaved} changes could not be saved: the store holds the state before them"),
    }
}

/// Fails the requested saves and backups that the last commit did not answer.
fn fail_last_saves(mut saves: ResMut<Saves>, mut publisher: ResMut<Publisher>) {
    let requests = saves.take_requests();
    if !requests.is_empty() {
        saves.fail(requests, SaveError::Ended, &mut publisher);
    }
}

fn end_threads(
    mut dimensions: ResMut<DimensionBook>,
    mut post: ResMut<MailQueue>,
    mut publisher: ResMut<Publisher>,
    orders: Res<Orders>,
    mut threads: ResMut<Threads>,
) {
    tell_complaints(&mut dimensions, &mut post, &mut publisher, Duration::MAX);
    orders.threads.clear();
    threads.join();
}
