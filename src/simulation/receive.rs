use super::arrival::arrive_all;
use super::blocks::RegionColumns;
use super::entities::Migration;
use super::records::spawn_stored;
use super::world::{Mailbox, RegionState};
use super::{Inbox, LoadedColumn, Task};
use bevy::prelude::*;
use std::mem;

/// Takes in what waits, in this order: columns with their entities, entities on a journey, edits, mail.
pub(super) fn receive(world: &mut World) {
    let inbox = mem::take(&mut world.resource_mut::<Mailbox>().0.get().0);
    let Inbox { absorbed: _, columns, travellers, resources, give_up, edits, mail } = inbox;
    let state = world.resource::<RegionState>();
    let (components, task) = (state.components.clone(), state.task.clone());
    if let Task::Tick { clock, period, .. } = task {
        let mut time = world.resource_mut::<Time>();
        if time.elapsed().is_zero() {
            time.advance_to(clock.saturating_sub(period));
        }
        let clock = clock.max(time.elapsed());
        time.advance_to(clock);
    }

    if !columns.is_empty() {
        world.insert_resource(Migration);
        for LoadedColumn { column, entities } in columns {
            world.resource_mut::<RegionColumns>().insert(column);
            for record in entities {
                spawn_stored(world, &components, record);
            }
        }
        world.remove_resource::<Migration>();
    }
    let arrived = arrive_all(world, travellers);
    resources.into_iter().for_each(|resource| resource.settle(world, &arrived));

    let mut refused = Vec::new();
    let mut owned = world.resource_mut::<RegionColumns>();
    for edit in edits {
        if let Err(error) = owned.set_block(edit.block, edit.to) {
            refused.push((edit, error));
        }
    }
    for (_, run) in mail {
        run(world);
        world.flush();
    }
    // Given up at the end of the tick, when it is known who is still there.
    let (inbox, outbox) = world.resource_mut::<Mailbox>().into_inner().0.get();
    inbox.give_up = give_up;
    outbox.refused = refused;
}
