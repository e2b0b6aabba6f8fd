//! [`TerranePlugin`]: assembles the modules.

mod app_ext;
mod bodies;
mod diagnostics;
mod ground;
mod reflection;
mod setup;
mod signals;

pub use crate::coordinator::messages::settings::{
    FaultSettings, LetterLimits, Limits, RegionFaults, SaveDurability, SaveSettings, TerranePlugin, ThreadSettings,
    TickMode, ViewerLimits,
};
pub use crate::coordinator::{CoordinatorApp, CoordinatorMain, CoordinatorSystems};
pub use app_ext::TerraneAppExt;
pub use bodies::{BodyPlugin, WalkPlugin};
pub use diagnostics::WorldDiagnosticsPlugin;
pub use ground::{FallingBlocksPlugin, GrowthPlugin, LiquidsPlugin};
pub use setup::WorldFailure;

use crate::coordinator::jobs::Jobs;
use crate::coordinator::{CoordinatorHandle, MainLink};
use crate::view;
use bevy::prelude::*;
use setup::{exit_on_failure, fail};

impl Plugin for TerranePlugin {
    /// `build` refuses a second one itself, because Bevy's message does not say what to do.
    fn is_unique(&self) -> bool {
        false
    }

    fn build(&self, app: &mut App) {
        assert!(
            !app.is_plugin_added::<Self>(),
            "TerranePlugin was added twice, and an app has one world: add it once, with all settings in its fields, and spawn a \
             Dimension for each part of the world"
        );
        view::build(app);
        reflection::register(app);
        app.insert_resource(self.pacing);
        let is_lockstep = self.tick_mode == TickMode::Lockstep;
        app.insert_resource(view::MainTicks { clock: self.clock, is_lockstep });
        app.add_systems(
            First,
            exit_on_failure.run_if(resource_exists::<WorldFailure>).before(view::ViewSystems::Receive),
        );
        if let Err(failure) = self.open(app) {
            fail(app, failure);
        }
    }

    fn finish(&self, app: &mut App) {
        if let Err(failure) = self.prepare(app) {
            fail(app, failure);
        }
        signals::handle(app);
    }

    fn cleanup(&self, app: &mut App) {
        if let Some(mut coordinator) = app.remove_sub_app(CoordinatorApp)
            && let Some(link) = coordinator.world_mut().remove_resource::<MainLink>()
        {
            let life = coordinator.world_mut().remove_resource::<setup::Life>();
            let started = CoordinatorHandle::start(coordinator, link.clone());
            life.into_iter().for_each(|life| life.0.stop());
            match started {
                Ok(handle) => {
                    app.insert_resource(handle).insert_resource(link.jobs()).insert_resource(link);
                }
                Err(error) => fail(app, error.into()),
            }
        }
        if !app.world().contains_resource::<Jobs>() {
            // Without a world no job begins. The game's systems run once more until the app ends.
            app.insert_resource(MainLink::to_nowhere().jobs());
        }
        // Only now the log exists, and all plugins have added their systems.
        setup::log_misplaced_systems(app);
        setup::end_if_failed(app);
    }
}
