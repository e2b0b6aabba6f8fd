//! The beginning of a task: receiving the inbox.

use crate::simulation::block_types::BlockTypes;
use crate::simulation::columns::blocks::RegionColumns;
use crate::simulation::columns::notices::{GroundSettings, RuleLoop};
use crate::simulation::components::RegionComponents;
use crate::simulation::components::resources::settle_resources;
use crate::simulation::components::stored_entities::spawn_stored;
use crate::simulation::entities::{EntityIndex, Moving};
use crate::simulation::info::RegionInfo;
use crate::simulation::letters::letter::{Content, Undeliverable};
use crate::simulation::letters::post::Post;
use crate::simulation::tick::act::act;
use crate::simulation::tick::assignment::Task;
use crate::simulation::travel::arrival::arrive_all;
use crate::simulation::work::new_columns::tell_of_new_columns;
use crate::simulation::world::RegionContents;
use crate::storage::EntityRecord;
use crate::storage::LoadedColumn;
use bevy::platform::cell::SyncCell;
use bevy::prelude::*;
use std::mem;
use std::time::Duration;

/// Receives columns with their entities, then entities on a journey, edits and letters, in this order, and delivers what is due
/// in the world. Data that is still in the inbox survives a panic of the game's hooks and observers.
pub fn receive(world: &mut World, contents: &mut RegionContents, task: &Task) {
    let mut owned = world.resource_mut::<RegionColumns>();
    owned.sections.extend(mem::take(&mut contents.inbox.sections));
    owned.receive_light(mem::take(&mut contents.inbox.light));
    let column = owned.columns().first().copied();
    if matches!(task, Task::Tick { .. }) && owned.awaits_ticks() {
        contents.schedules.note_messages();
        take_due(world);
    }
    let RegionInfo { dimension, region, .. } = *world.resource::<RegionInfo>();
    world.resource_mut::<Post>().set_sender(dimension, region, column);

    receive_columns(world, contents);
    let travellers = mem::take(&mut contents.inbox.travellers);
    let arrived = arrive_all(world, contents, travellers);
    let resources = mem::take(&mut contents.inbox.resources);
    settle_resources(world, resources, &arrived);
    make_edits(world, contents);
    if let Task::Tick { clock, .. } = *task {
        tell_of_new_columns(world, contents);
        draw_random_ticks(world, contents, clock);
    }
    let letters = mem::take(&mut contents.inbox.letters);
    contents.letters.receive(letters);
    // Evictions wait until the end of the tick, when the remaining entities are known.
}

/// Delivers the letters that are due.
pub fn deliver(world: &mut World, contents: &mut RegionContents, task: &Task) {
    // In a task without a tick, a delivered message could leave with its entity before any system reads it.
    match *task {
        Task::Tick { clock, .. } => hand_over(world, contents, clock),
        Task::Close => {
            // No tick follows that would read them. They come back; those of other servers are found in the store again.
            let reason = Undeliverable::DimensionNotOpen(world.resource::<RegionInfo>().dimension);
            let kept = contents.letters.take(|letter| letter.crossing.is_some() || letter.order().is_some());
            contents.outbox.undelivered.extend(kept.into_iter().map(|letter| (letter, reason)));
            hand_over(world, contents, Duration::ZERO);
        }
        Task::Save | Task::Split { .. } | Task::Leave => {}
    }
}

/// Delivers the scheduled ticks that are due.
fn take_due(world: &mut World) {
    let limit = world.resource::<GroundSettings>().updates_per_tick;
    let due = world.resource_mut::<RegionColumns>().take_due(limit);
    if let Some(RuleLoop { block, id }) = due.loops.first() {
        let (types, info) = (world.resource::<BlockTypes>(), world.resource::<RegionInfo>());
        let others = due.loops.len() - 1;
        warn!(
            "{} at {block} of {} is updated again and again, and {others} others: do two rules undo each other? Their updates are slowed down",
            types.block(*id).name(),
            info.dimension
        );
    }
    if !due.ticks.is_empty() {
        world.write_message_batch(due.ticks);
    }
    if !due.changed.is_empty() {
        world.write_message_batch(due.changed);
    }
    if !due.loops.is_empty() {
        world.write_message_batch(due.loops);
    }
}

fn draw_random_ticks(world: &mut World, contents: &mut RegionContents, clock: Duration) {
    let (dimension, share) =
        (world.resource::<RegionInfo>().dimension, world.resource::<GroundSettings>().random_ticks);
    let drawn = world.resource_mut::<RegionColumns>().draw_random_ticks(contents.seed, dimension, clock, share);
    if !drawn.is_empty() {
        contents.schedules.note_messages();
        world.write_message_batch(drawn);
    }
}

fn receive_columns(world: &mut World, contents: &mut RegionContents) {
    let columns = mem::take(&mut contents.inbox.columns);
    if columns.is_empty() {
        return;
    }
    world.insert_resource(Moving);
    for LoadedColumn { column, entities, mut block_ticks, light, is_new } in columns {
        let owned = world.resource_mut::<RegionColumns>().into_inner();
        owned.awaiting.remove(&column.pos());
        owned.new.extend(is_new.then_some(column.pos()));
        let is_part = column.loaded().is_some();
        // The part that is already loaded may have been edited since, and its ticks may have come due.
        if let Some(new) = owned.insert(column, light).filter(|_| is_part) {
            block_ticks.retain(|tick| new.contains(tick.block.chunk().y));
        }
        owned.ticks.insert(block_ticks);
        entities.into_iter().for_each(|record| spawn_stored(world, &contents.components, record));
    }
    world.remove_resource::<Moving>();
}

fn make_edits(world: &mut World, contents: &mut RegionContents) {
    contents.unfinished.edits = mem::take(&mut contents.inbox.edits);
    if contents.unfinished.edits.is_empty() {
        return;
    }
    let mut owned = world.resource_mut::<RegionColumns>();
    for edit in &contents.unfinished.edits {
        match owned.set_block(edit.request.position, edit.request.block) {
            Ok(_) if edit.number.is_some() => contents.outbox.made.push(*edit),
            Ok(_) => {}
            Err(error) => contents.outbox.refused.push((*edit, error)),
        }
    }
}

fn hand_over(world: &mut World, contents: &mut RegionContents, clock: Duration) {
    while let Some(mut letter) = contents.letters.next_due(clock) {
        let target = letter.entity();
        let entity = target.and_then(|id| world.resource::<EntityIndex>().entity(id));
        if let (Some(id), None) = (target, entity) {
            contents.outbox.undelivered.push((letter, Undeliverable::NoSuchEntity(id)));
            continue;
        }
        contents.schedules.note_messages();
        // Noted first, because the delivery may panic.
        contents.unfinished.handed_over.extend(letter.trace());
        contents.unfinished.received.extend(letter.crossing);
        match letter.content {
            Content::Action(order) => {
                let Some(entity) = entity else { continue };
                let result = act(world, &contents.components, contents.actions.per_second, entity, &order);
                if result.is_ok() {
                    contents.actions.unsaved.push((order.id, order.actor));
                }
                contents.outbox.acted.push(order.decided(result));
            }
            Content::Work(work) => contents.unfinished.column_work.push(*SyncCell::to_inner(work)),
            Content::Arrival(record) => log_in(world, &contents.components, *record),
            _ => {
                let written = letter.hand_over(world, entity);
                if let (Some(written), Some(trace)) = (written, contents.unfinished.handed_over.last_mut()) {
                    trace.note_written(written);
                }
            }
        }
    }
}

fn log_in(world: &mut World, components: &RegionComponents, record: EntityRecord) {
    world.insert_resource(Moving);
    spawn_stored(world, components, record);
    world.remove_resource::<Moving>();
}
