//! What jobs have to do with in the world.

use crate::coordinator::clocks::clock::Clock;
use crate::coordinator::config::CoordinatorConfig;
use crate::coordinator::dimension::Dimensions;
use crate::coordinator::publish::Publisher;
use crate::coordinator::saving::save::Saves;
use crate::coordinator::streaming::orders::Orders;
use crate::coordinator::threads::Threads;
use crate::coordinator::travel::letters::{Directory, Post};
use bevy::ecs::system::SystemParam;
use bevy::prelude::*;

/// What jobs need of the coordinator's world.
#[derive(SystemParam)]
pub struct Surroundings<'w> {
    pub config: Res<'w, CoordinatorConfig>,
    pub clock: Res<'w, Clock>,
    pub threads: ResMut<'w, Threads>,
    pub dimensions: ResMut<'w, Dimensions>,
    pub directory: ResMut<'w, Directory>,
    pub saves: ResMut<'w, Saves>,
    pub post: ResMut<'w, Post>,
    pub orders: ResMut<'w, Orders>,
    pub publisher: ResMut<'w, Publisher>,
}
