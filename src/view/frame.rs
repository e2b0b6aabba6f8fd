//! The frame of the main world: its duration, the coordinator's pass in lockstep, and the end of the app.

use crate::coordinator::{CoordinatorHandle, MainLink};
use bevy::prelude::*;
use std::time::Instant;

/// When the current frame of the main world began.
#[derive(Resource, Default)]
pub(super) struct FrameBegan(Option<Instant>);

pub(super) fn build(app: &mut App) {
    app.init_resource::<FrameBegan>();
}

pub(super) fn begin(mut began: ResMut<FrameBegan>) {
    began.0 = Some(Instant::now());
}

pub(super) fn end(link: Res<MainLink>, mut began: ResMut<FrameBegan>) {
    if let Some(began) = began.0.take() {
        link.note_frame(began.elapsed());
    }
}

/// Exclusive, so that it waits on the main thread and not on a compute thread that a region may need.
pub(super) fn update_lockstep(world: &mut World) {
    world.resource_mut::<CoordinatorHandle>().update_inline();
}

/// Saves everything at the end of the app, since the process may end right after it.
pub(super) fn end_with_app(world: &mut World) {
    if !world.resource::<Messages<AppExit>>().is_empty() {
        world.resource_mut::<CoordinatorHandle>().shut_down();
    }
}
