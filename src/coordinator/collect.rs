//! Takes what came in: requests of the main world, ended tasks of regions.

mod outbox;
mod requests;
mod tasks;

use super::desk::Desk;

pub(super) fn collect(mut desk: Desk) {
    for event in desk.threads.events.try_iter() {
        desk.inbound.push(event);
    }
    desk.letters.settle();
    desk.finish_tasks();
    desk.end_rebuilds();
    desk.handle_requests();
}
