//! Takes what came in: requests of the main world, ended tasks of regions.

mod outbox;
pub(super) mod requests;
mod tasks;

use super::desk::Desk;

pub fn collect(mut desk: Desk) {
    desk.inbound.receive();
    desk.letters.settle();
    desk.finish_tasks();
    desk.end_rebuilds();
}
