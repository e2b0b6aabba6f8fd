//! Handles requests of the main world and ended tasks of regions.

mod outbox;
pub(super) mod region_events;
pub(super) mod requests;
pub(super) mod tasks;

use super::exchange::Inbound;
use super::travel::letters::Post;
use bevy::prelude::*;

pub fn collect(mut inbound: ResMut<Inbound>, mut post: ResMut<Post>) {
    inbound.receive();
    post.backlog.settle();
}
