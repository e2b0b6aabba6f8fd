//! What the game did wrong, noticed at the end of a tick.

use bevy::ecs::error::{BevyError, ErrorContext};
use bevy::prelude::*;
use bevy::utils::prelude::DebugName;

/// Hands an error to the region's error handler, as if a system of the game had returned it. By default that panics,
/// and the region halts.
pub(super) fn raise(world: &mut World, error: impl Into<BevyError>) {
    let handler = world.fallback_error_handler();
    let context =
        ErrorContext::System { name: DebugName::borrowed("the region's tick"), last_run: world.change_tick() };
    handler(error.into(), context);
}
