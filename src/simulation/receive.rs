//! The beginning of a tick: what waits in the inbox is taken in.

use super::columns::block_ticks::BlockTicks;
use super::columns::blocks::RegionColumns;
use super::letter::Letter;
use super::post::Post;
use super::travel::arrival::arrive_all;
use super::travel::entities::Migration;
use super::travel::records::spawn_stored;
use super::world::RegionState;
use super::{Inbox, LoadedColumn, RegionInfo, Task};
use bevy::prelude::*;
use std::mem;
use std::time::Duration;

/// Takes in what waits, in this order: columns with their entities, entities on a journey, edits, letters.
pub(super) fn receive(world: &mut World) {
    // What is not taken out yet survives a panic of the game's hooks and observers.
    let (columns, sections) = (mem::take(&mut inbox(world).columns), mem::take(&mut inbox(world).sections));
    let state = world.resource::<RegionState>();
    let (components, task) = (state.components.clone(), state.task.clone());
    if let Task::Tick { clock, delta, .. } = task {
        let mut time = world.resource_mut::<Time>();
        // A pause moves the clock, but no system sees it as a long tick.
        for clock in [clock.saturating_sub(delta), clock] {
            let clock = clock.max(time.elapsed());
            time.advance_to(clock);
        }
        let due = world.resource_mut::<BlockTicks>().take_due();
        if !due.is_empty() {
            world.write_message_batch(due);
        }
    }
    let info = world.resource::<RegionInfo>().clone();
    let mut owned = world.resource_mut::<RegionColumns>();
    owned.sections.extend(sections);
    let column = owned.positions().first().copied();
    world.resource_mut::<Post>().set_sender(&info, column);

    if !columns.is_empty() {
        world.insert_resource(Migration);
        for LoadedColumn { column, entities, mut block_ticks } in columns {
            let mut owned = world.resource_mut::<RegionColumns>();
            owned.awaiting.remove(&column.pos());
            let is_part = column.loaded().is_some();
            // What is here of it may have been edited since, and its ticks may have come due.
            if let Some(new) = owned.take_in(column).filter(|_| is_part) {
                block_ticks.retain(|tick| new.contains(tick.block.chunk().y));
            }
            world.resource_mut::<BlockTicks>().take_in(block_ticks);
            for record in entities {
                spawn_stored(world, &components, record);
            }
        }
        world.remove_resource::<Migration>();
    }
    let travellers = mem::take(&mut inbox(world).travellers);
    let arrived = arrive_all(world, travellers);
    let resources = mem::take(&mut inbox(world).resources);
    resources.into_iter().for_each(|resource| resource.settle(world, &arrived));

    let edits = mem::take(&mut inbox(world).edits);
    let mut refused = Vec::new();
    if !edits.is_empty() {
        let mut owned = world.resource_mut::<RegionColumns>();
        for edit in &edits {
            if let Err(error) = owned.set_block(edit.position, edit.block) {
                refused.push((*edit, error));
            }
        }
    }
    world.resource_mut::<RegionState>().edits = edits;
    let letters = mem::take(&mut inbox(world).letters);
    take_in(world, letters);
    // What is handed over in a task without a tick could leave with its entity before anyone reads it.
    match task {
        Task::Tick { clock, .. } => hand_over(world, clock),
        Task::Close => hand_over(world, Duration::ZERO),
        Task::Save | Task::Split { .. } => {}
    }
    // What is to be given up stays until the end of the tick, when it is known who is still there.
    world.resource_mut::<RegionState>().outbox().refused = refused;
}

fn inbox(world: &mut World) -> &mut Inbox {
    world.resource_mut::<RegionState>().into_inner().inbox()
}

/// Keeps letters until their time.
pub(super) fn take_in(world: &mut World, letters: Vec<Letter>) {
    if letters.is_empty() {
        return;
    }
    let state = world.resource_mut::<RegionState>().into_inner();
    let (clock, period, waiting) = (state.clock, state.period, &mut state.waiting);
    for letter in letters {
        // Those without a delay stay in the order of their arrival, whatever the clock was.
        let due = match u32::try_from(letter.delay).unwrap_or(u32::MAX) {
            0 => Duration::ZERO,
            ticks => clock.saturating_add(period.saturating_mul(ticks)),
        };
        waiting.push(due, letter);
    }
}

fn hand_over(world: &mut World, clock: Duration) {
    let mut state = world.resource_mut::<RegionState>();
    if state.waiting.is_empty() {
        return;
    }
    state.waiting.come_due(clock);
    while let Some(letter) = world.resource_mut::<RegionState>().waiting.next_due() {
        if let Some(undelivered) = letter.hand_over(world) {
            world.resource_mut::<RegionState>().outbox().undelivered.push(undelivered);
        }
    }
}
