//! Advances the clocks, and starts the regions that are due, earliest deadline first.

use crate::coordinator::clock::Clock;
use crate::coordinator::dimension::DimensionBook;
use crate::coordinator::messages::settings::Settings;
use crate::coordinator::regions::Parked;
use crate::coordinator::saves::Saves;
use crate::coordinator::schedule::control::Couplings;
use crate::coordinator::schedule::deadlines::Deadlines;
use crate::coordinator::servers::tend::Servers;
use crate::coordinator::stream::orders::Orders;
use crate::coordinator::surroundings::Surroundings;
use crate::coordinator::threads::Threads;
use crate::coordinator::threads::exchange::Inbound;
use crate::simulation::{Inbox, Task};
use bevy::prelude::*;
use std::cmp::Reverse;
use std::mem;
use std::time::Duration;

/// The longest time between two looks at a region that waits for a coupled one.
const HELD_AGAIN: Duration = Duration::from_millis(5);

pub fn until_next_deadline(world: &mut World) -> Duration {
    let (deadlines, threads) = (world.resource::<Deadlines>(), world.resource::<Settings>().threads.regions);
    if deadlines.load >= deadlines.most_load(threads) {
        // A region that comes back wakes the coordinator.
        return Duration::MAX;
    }
    let is_frozen = world.get_resource::<Servers>().is_some_and(Servers::is_frozen);
    if is_frozen || world.resource::<Saves>().holds_ticks() {
        // So do the end of a commit and the answer of a round.
        return Duration::MAX;
    }
    let now = world.resource::<Clock>().began.elapsed();
    let Deadlines { heap, held, .. } = world.resource::<Deadlines>();
    let next = heap.peek().map_or(Duration::MAX, |Reverse((due, ..))| due.saturating_sub(now));
    if held.is_empty() { next } else { next.min(HELD_AGAIN) }
}

pub fn dispatch(
    config: Res<Settings>,
    clock: Res<Clock>,
    mut dimensions: ResMut<DimensionBook>,
    mut deadlines: ResMut<Deadlines>,
    mut saves: ResMut<Saves>,
    couplings: Res<Couplings>,
    servers: Option<Res<Servers>>,
    threads: Res<Threads>,
) {
    let (deadlines, dimensions) = (&mut *deadlines, &mut *dimensions);
    if saves.holds_ticks() || servers.is_some_and(|servers| servers.is_frozen()) {
        return deadlines.note_begun(false);
    }
    if config.tick_mode.is_lockstep() {
        // In lockstep every region is due.
        deadlines.heap.clear();
        for region in dimensions.regions() {
            deadlines.begin_group(dimensions, &couplings, &mut saves, true, region);
        }
        return deadlines.hand_over(&threads);
    }
    for (dimension, region) in mem::take(&mut deadlines.held) {
        if let Some(slot) = dimensions.idle(dimension, region) {
            deadlines.plan(slot.due, dimension, region);
        }
    }
    deadlines.adapt_load(config.threads.regions);
    let most = deadlines.most_load(config.threads.regions);
    while deadlines.load < most
        && let Some(region) = deadlines.next_due(dimensions, clock.now)
    {
        match deadlines.awaits_coupled(dimensions, &couplings, region) {
            true => deadlines.held.push(region),
            false => deadlines.begin_group(dimensions, &couplings, &mut saves, false, region),
        }
        if deadlines.is_ready_to_hand_over() {
            deadlines.hand_over(&threads);
        }
    }
    deadlines.note_begun(deadlines.load >= most);
    deadlines.hand_over(&threads);
}

/// Lets regions that do not tick for a while save, receive and evict columns all the same.
pub fn tend_idle(
    config: Res<Settings>,
    clock: Res<Clock>,
    mut dimensions: ResMut<DimensionBook>,
    mut deadlines: ResMut<Deadlines>,
    mut saves: ResMut<Saves>,
    threads: Res<Threads>,
) {
    let soon = clock.soon(config.tick_mode.is_lockstep());
    for (id, dimension) in &mut dimensions.open {
        if dimension.is_closing() || !dimension.may_be_idle() {
            continue;
        }
        dimension.regions.has_idle = false;
        for region in dimension.regions.regionizer.regions() {
            let known = deadlines.slot(dimension, region);
            dimension.regions.has_idle |= known.is_some_and(|slot| slot.may_be_idle(&dimension.time));
            let is_idle =
                dimension.regions.regionizer.data(region).is_some_and(|slot| slot.is_idle(&dimension.time, soon));
            let Some(slot) = dimension.regions.regionizer.data_mut(region).filter(|_| is_idle) else { continue };
            let Parked { worlds, inbox } = slot.parked.get();
            let brings_work =
                |inbox: &Inbox| !inbox.columns.is_empty() || !inbox.evict.is_empty() || !inbox.cut.is_empty();
            let has_work = worlds.len() > 1 || inbox.as_deref().is_some_and(brings_work);
            let has_world = !worlds.is_empty();
            let is_due = saves.is_due(&mut slot.save_due, (*id, region), clock.now);
            let is_asked = is_due || saves.wants(*id, region).is_some();
            if (slot.halted.is_none() || has_world) && (has_work || is_asked) {
                deadlines.begin_idle(dimension, region, Task::Save, &mut saves);
            }
        }
    }
    deadlines.hand_over(&threads);
}

/// In lockstep, waits until every started task has ended.
pub fn finish_lockstep(mut inbound: ResMut<Inbound>, mut world: Surroundings) {
    if !world.config.tick_mode.is_lockstep() {
        return;
    }
    loop {
        // Once all are back, they end in an order that is always the same.
        let begun = world.deadlines.running.values().filter(|running| !running.load.is_zero()).count();
        let done = inbound.tasks.get();
        world.threads.regions.wait_for(begun.saturating_sub(done.len()), done);
        if done.is_empty() {
            break;
        }
        world.finish_all(done);
        world.deadlines.hand_over(&world.threads);
    }
    if let Some(payload) = world.publisher.take_panic() {
        std::panic::resume_unwind(payload);
    }
}

/// Advances all clocks.
pub fn advance_clocks(
    mut clock: ResMut<Clock>,
    mut orders: ResMut<Orders>,
    mut dimensions: ResMut<DimensionBook>,
    config: Res<Settings>,
) {
    let before = clock.now;
    let is_lockstep = config.tick_mode.is_lockstep();
    orders.pass += 1;
    clock.now = if is_lockstep { before.saturating_add(config.clock.period()) } else { clock.began.elapsed() };
    let passed = clock.now.saturating_sub(before);
    for dimension in dimensions.open.values_mut() {
        dimension.time.advance(passed, is_lockstep);
        dimension.time.real_now = clock.now;
        dimension.columns.now = clock.now;
    }
}
