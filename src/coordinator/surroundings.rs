//! The coordinator's data that the ends of tasks and jobs use.

use super::clocks::clock::Clock;
use super::config::Settings;
use super::deadlines::Deadlines;
use super::dimension::Dimensions;
use super::publish::Publisher;
use super::saving::save::Saves;
use super::streaming::orders::Orders;
use super::threads::Threads;
use super::travel::letters::{Directory, Post};

use bevy::ecs::system::SystemParam;
use bevy::prelude::*;

/// The coordinator's data that the end of a task or a job may change.
#[derive(SystemParam)]
pub struct Surroundings<'w> {
    pub config: Res<'w, Settings>,
    pub clock: Res<'w, Clock>,
    pub threads: ResMut<'w, Threads>,
    pub dimensions: ResMut<'w, Dimensions>,
    pub deadlines: ResMut<'w, Deadlines>,
    pub directory: ResMut<'w, Directory>,
    pub saves: ResMut<'w, Saves>,
    pub post: ResMut<'w, Post>,
    pub orders: ResMut<'w, Orders>,
    pub publisher: ResMut<'w, Publisher>,
}
