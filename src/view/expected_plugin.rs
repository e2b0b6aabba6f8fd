//! Reports an app that uses this crate without [`TerranePlugin`](crate::plugin::TerranePlugin).

use super::PublishedColumns;
use bevy::prelude::*;

/// Marks that the check for the plugin is scheduled or done.
#[derive(Resource)]
struct Expected;

/// Logs an error at the app's first update if the plugin is missing by then.
pub(crate) fn expect_plugin(world: &mut World) {
    if world.contains_resource::<PublishedColumns>() || world.contains_resource::<Expected>() {
        return;
    }
    if let Some(mut schedules) = world.get_resource_mut::<Schedules>() {
        schedules.add_systems(First, log_missing_plugin.run_if(run_once));
        world.insert_resource(Expected);
    }
}

fn log_missing_plugin(published: Option<Res<PublishedColumns>>) {
    if published.is_none() {
        error!(
            "TerranePlugin is missing, so dimensions and registrations for regions have no effect: add it with \
             app.add_plugins(TerranePlugin::default())"
        );
    }
}
