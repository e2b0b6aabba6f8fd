//! Handles requests of the main world and ended tasks of regions.

pub mod fault;
mod outbox;
pub mod region_events;
pub mod requests;
pub mod tasks;

use crate::coordinator::mail::queue::MailQueue;
use crate::coordinator::threads::exchange::Inbound;
use bevy::prelude::*;

pub fn collect(mut inbound: ResMut<Inbound>, mut post: ResMut<MailQueue>) {
    inbound.receive();
    post.backlog.settle();
}
