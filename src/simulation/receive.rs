//! The beginning of a tick: what waits in the inbox is taken in.

use super::columns::block_ticks::BlockTicks;
use super::columns::blocks::RegionColumns;
use super::letter::Letter;
use super::post::{Post, due_after};
use super::travel::arrival::arrive_all;
use super::travel::entities::Moving;
use super::travel::stored_entities::spawn_stored;
use super::world::RegionContents;
use super::{Inbox, LoadedColumn, RegionInfo, Task};
use bevy::prelude::*;
use std::mem;
use std::time::Duration;

/// Takes in what waits, in this order: columns with their entities, entities on a journey, edits, letters. What is not
/// taken out of the inbox yet survives a panic of the game's hooks and observers.
pub(super) fn receive(world: &mut World) {
    let task = world.resource::<RegionContents>().task.clone();
    if let Task::Tick { clock, delta, .. } = task {
        advance_time(world, clock, delta);
    }
    let sections = mem::take(&mut inbox(world).sections);
    let info = world.resource::<RegionInfo>().clone();
    let mut owned = world.resource_mut::<RegionColumns>();
    owned.sections.extend(sections);
    let column = owned.positions().first().copied();
    world.resource_mut::<Post>().set_sender(&info, column);

    take_in_columns(world);
    let travellers = mem::take(&mut inbox(world).travellers);
    let arrived = arrive_all(world, travellers);
    let resources = mem::take(&mut inbox(world).resources);
    resources.into_iter().for_each(|resource| resource.settle(world, &arrived));
    make_edits(world);
    let letters = mem::take(&mut inbox(world).letters);
    take_in_letters(world, letters);
    // What is handed over in a task without a tick could leave with its entity before anyone reads it.
    match task {
        Task::Tick { clock, .. } => hand_over(world, clock),
        Task::Close => hand_over(world, Duration::ZERO),
        Task::Save | Task::Split { .. } => {}
    }
    // What is to be given up stays until the end of the tick, when it is known who is still there.
}

fn inbox(world: &mut World) -> &mut Inbox {
    world.resource_mut::<RegionContents>().into_inner().inbox.get()
}

/// Brings the world's time to the dimension's clock, and tells of the block ticks that are due.
fn advance_time(world: &mut World, clock: Duration, delta: Duration) {
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

fn take_in_columns(world: &mut World) {
    let columns = mem::take(&mut inbox(world).columns);
    if columns.is_empty() {
        return;
    }
    let components = world.resource::<RegionContents>().components.clone();
    world.insert_resource(Moving);
    for LoadedColumn { column, entities, mut block_ticks } in columns {
        let mut owned = world.resource_mut::<RegionColumns>();
        owned.awaiting.remove(&column.pos());
        let is_part = column.loaded().is_some();
        // What is here of it may have been edited since, and its ticks may have come due.
        if let Some(new) = owned.take_in(column).filter(|_| is_part) {
            block_ticks.retain(|tick| new.contains(tick.block.chunk().y));
        }
        world.resource_mut::<BlockTicks>().take_in(block_ticks);
        entities.into_iter().for_each(|record| spawn_stored(world, &components, record));
    }
    world.remove_resource::<Moving>();
}

fn make_edits(world: &mut World) {
    let edits = mem::take(&mut inbox(world).edits);
    if edits.is_empty() {
        return;
    }
    let mut owned = world.resource_mut::<RegionColumns>();
    let refused = edits.iter().filter_map(|edit| Some((*edit, owned.set_block(edit.position, edit.block).err()?)));
    let refused = refused.collect();
    let mut contents = world.resource_mut::<RegionContents>();
    contents.outbox.get().refused = refused;
    contents.edits = edits;
}

/// Keeps letters until their time.
pub(super) fn take_in_letters(world: &mut World, letters: Vec<Letter>) {
    if letters.is_empty() {
        return;
    }
    let mut contents = world.resource_mut::<RegionContents>();
    let (clock, period) = (contents.clock, contents.period);
    for letter in letters {
        // Those without a delay stay in the order of their arrival, whatever the clock was.
        let due = if letter.delay == 0 { Duration::ZERO } else { due_after(letter.delay, clock, period) };
        contents.waiting.push(due, letter);
    }
}

fn hand_over(world: &mut World, clock: Duration) {
    let mut contents = world.resource_mut::<RegionContents>();
    if contents.waiting.is_empty() {
        return;
    }
    contents.waiting.come_due(clock);
    while let Some(letter) = world.resource_mut::<RegionContents>().waiting.next_due() {
        if let Some(undelivered) = letter.hand_over(world) {
            world.resource_mut::<RegionContents>().outbox.get().undelivered.push(undelivered);
        }
    }
}
