//! The main world's side: the requests and the view of the game.
//!
//! Once a frame, requests go to the coordinator ([`ViewSystems::Send`], in `Last`), and its published state is applied
//! ([`ViewSystems::Receive`], in `First`). Neither waits for the simulation.
//!
//! There is one way to ask for each thing:
//!
//! | to ask for | use |
//! |---|---|
//! | something that lasts: a [`Dimension`], a viewer, a [`Coupling`], a [`Pregeneration`], a [`FarView`] | an entity; despawning it ends it |
//! | something that is done once, and may be refused: [`SetBlock`], [`SaveWorld`], [`LogIn`], [`ControlRegion`], [`ControlJob`], .. | a message; the answer is a message too |
//! | work in a region | [`RegionCommands`] on `Commands` |
//! | something that other threads ask for as well: snapshots, restores and arenas; the ids of dimensions and their removal | a resource that can be cloned: [`Jobs`], [`Dimensions`] |
//!
//! Each world has its own way for the same thing: the main world sends [`LogOut`] and has [`Regions`], a region inserts
//! [`LoggedOut`](crate::simulation::LoggedOut) and has [`RegionInfo`](crate::simulation::RegionInfo).

mod actions;
mod arenas;
mod chunk_sync;
mod dimension;
mod edit_queue;
mod expected_plugin;
mod far_view;
mod frame;
mod frame_news;
mod jobs;
mod light;
mod mirror;
mod own_body;
mod published;
mod receive;
mod region_commands;
mod requests;
mod viewers;

pub use crate::coordinator::jobs::Jobs;
pub use crate::coordinator::messages::*;
pub use crate::simulation::SetBlock;
pub use actions::Actions;
pub(crate) use actions::KnownActions;
pub(crate) use chunk_sync::send_own_steps;
pub use chunk_sync::{ChunkSyncClient, ChunkSyncPeer, ClientEdit, ClientPort, ForTransport};
pub use dimension::{Dimension, DimensionOpen, Dimensions};
pub(crate) use expected_plugin::expect_plugin;
pub use far_view::{FarColumnChanged, FarColumns};
pub use jobs::{ControlJob, JobEnded};
pub(crate) use mirror::Components;
pub use mirror::{Mirror, MirrorIndex};
pub use own_body::{FollowedBodies, OwnBody, OwnStep};
pub(crate) use own_body::{MainTicks, know_own_bodies, move_own_bodies};
pub use published::{ColumnChange, ColumnChanged, PublishedBlocks, PublishedColumns};
pub use region_commands::{RegionCommands, Regions};

use crate::coordinator::messages::{Published, WorldEvent};
use crate::coordinator::{CoordinatorHandle, MainLink};
use bevy::prelude::*;

/// The system sets of the exchange between the main world and the coordinator.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ViewSystems {
    /// Applies the published state. In `First`.
    Receive,
    /// Sends viewers, edits and other requests. In `Last`; in lockstep every region ticks here.
    Send,
}

/// Adds the main world's side of a simulation, which is connected by `link`.
pub(crate) fn build(app: &mut App) {
    app.init_resource::<PublishedColumns>()
        .init_resource::<frame_news::FrameNews>()
        .init_resource::<WorldStatistics>()
        .init_resource::<MirrorIndex>()
        .init_resource::<actions::ActionPredictions>()
        .init_resource::<Published>()
        .add_message::<ColumnChanged>()
        .add_message::<ActionAnswer>();
    chunk_sync::build(app);
    dimension::build(app);
    far_view::build(app);
    frame::build(app);
    jobs::build(app);
    region_commands::build(app);
    requests::build(app);
    WorldEvent::register(app);
    exchange_each_frame(app);
}

fn exchange_each_frame(app: &mut App) {
    app.configure_sets(First, ViewSystems::Receive.after(bevy::ecs::message::MessageUpdateSystems))
        .add_systems(
            First,
            (
                frame::begin,
                chunk_sync::apply_results,
                receive::receive,
                (
                    chunk_sync::apply_answers,
                    chunk_sync::tell_of_actors,
                    chunk_sync::apply_changes,
                    chunk_sync::tell_of_settled,
                )
                    .chain(),
                light::light_predictions,
                dimension::follow_clocks,
            )
                .chain()
                .in_set(ViewSystems::Receive)
                .run_if(resource_exists::<MainLink>),
        )
        .add_systems(
            Last,
            (
                // Before its dimension is opened, so that the wanted ones among the stored jobs are known.
                jobs::send,
                dimension::open,
                (viewers::send_viewers, viewers::log_missing_viewers),
                far_view::send_far_views,
                requests::send_orders,
                requests::send_generation,
                region_commands::send_letters,
                requests::send_players,
                requests::send_drains,
                (
                    // An edit of the frame has a higher number than its actions.
                    requests::send_actions,
                    requests::predict_edits,
                    light::light_predictions,
                    chunk_sync::judge_edits,
                    requests::send_edits,
                )
                    .chain(),
                requests::send_saves,
                requests::send_questions,
                (
                    chunk_sync::start_hub,
                    chunk_sync::send,
                    chunk_sync::ask,
                    chunk_sync::start_clients,
                    chunk_sync::follow_clients,
                )
                    .chain(),
                requests::send_closings,
                frame::end,
                chunk_sync::end_clients,
                frame::update_lockstep,
                frame::end_with_app,
            )
                .chain()
                .in_set(ViewSystems::Send)
                .run_if(resource_exists::<MainLink>.and_then(resource_exists::<CoordinatorHandle>)),
        );
}
