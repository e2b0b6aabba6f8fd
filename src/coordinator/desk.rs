//! The desk: what most of the coordinator's work needs at hand. Each file adds the part that it is about.

use super::CoordinatorConfig;
use super::clocks::clock::Clock;
use super::clocks::coupling::Couplings;
use super::dimension::{Dimensions, Store};
use super::dispatch::Deadlines;
use super::exchange::Inbound;
use super::far_view::FarViews;
use super::publish::Publisher;
use super::saving::save::Saves;
use super::snapshots::Sightings;
use super::statistics::Totals;
use super::streaming::pacing::InFlightLimit;
use super::threads::Threads;
use super::travel::letter_limits::LetterBacklog;
use super::travel::letters::Directory;
use super::travel::players::Players;
use bevy::ecs::system::SystemParam;
use bevy::prelude::*;

/// The resources of the coordinator.
#[derive(SystemParam)]
pub struct Desk<'w> {
    pub config: Res<'w, CoordinatorConfig>,
    pub threads: ResMut<'w, Threads>,
    pub store: Res<'w, Store>,
    pub dimensions: ResMut<'w, Dimensions>,
    pub inbound: ResMut<'w, Inbound>,
    pub clock: Res<'w, Clock>,
    pub deadlines: ResMut<'w, Deadlines>,
    pub saves: ResMut<'w, Saves>,
    pub publisher: ResMut<'w, Publisher>,
    pub totals: ResMut<'w, Totals>,
    pub couplings: ResMut<'w, Couplings>,
    pub directory: ResMut<'w, Directory>,
    pub letters: ResMut<'w, LetterBacklog>,
    pub players: ResMut<'w, Players>,
    pub far_views: ResMut<'w, FarViews>,
    pub limit: ResMut<'w, InFlightLimit>,
    pub sightings: ResMut<'w, Sightings>,
}
