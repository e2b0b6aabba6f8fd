//! The coordinator's data that the ends of tasks and jobs use.

use super::dimension::DimensionBook;
use super::publish::Publisher;
use super::threads::Threads;
use crate::coordinator::clock::Clock;
use crate::coordinator::mail::directory::Directory;
use crate::coordinator::mail::queue::MailQueue;
use crate::coordinator::messages::settings::Settings;
use crate::coordinator::saves::Saves;
use crate::coordinator::schedule::deadlines::Deadlines;
use crate::coordinator::stream::orders::Orders;

use bevy::ecs::system::SystemParam;
use bevy::prelude::*;

/// The coordinator's data that the end of a task or a job may change.
#[derive(SystemParam)]
pub struct Surroundings<'w> {
    pub config: Res<'w, Settings>,
    pub clock: Res<'w, Clock>,
    pub threads: ResMut<'w, Threads>,
    pub dimensions: ResMut<'w, DimensionBook>,
    pub deadlines: ResMut<'w, Deadlines>,
    pub directory: ResMut<'w, Directory>,
    pub saves: ResMut<'w, Saves>,
    pub post: ResMut<'w, MailQueue>,
    pub orders: ResMut<'w, Orders>,
    pub publisher: ResMut<'w, Publisher>,
}
