//! What has no effect without [`TerranePlugin`](crate::plugin::TerranePlugin) says so, if nobody adds that.

use super::PublishedColumns;
use bevy::ecs::{lifecycle::HookContext, world::DeferredWorld};
use bevy::prelude::*;

/// It was looked once whether there is the plugin, or will be.
#[derive(Resource)]
struct Expected;

/// At the app's first update there has to be the plugin.
pub(crate) fn expect_plugin(world: &mut World) {
    if world.contains_resource::<PublishedColumns>() || world.contains_resource::<Expected>() {
        return;
    }
    if let Some(mut schedules) = world.get_resource_mut::<Schedules>() {
        schedules.add_systems(First, tell_of_missing_plugin);
        world.insert_resource(Expected);
    }
}

/// As [`expect_plugin`], for what is spawned.
pub(super) fn expect_plugin_hook(mut world: DeferredWorld, _: HookContext) {
    if !world.contains_resource::<PublishedColumns>() {
        world.commands().queue(expect_plugin);
    }
}

fn tell_of_missing_plugin(published: Option<Res<PublishedColumns>>, mut is_told: Local<bool>) {
    if published.is_none() && !*is_told {
        *is_told = true;
        error!(
            "there is no TerranePlugin, so nothing comes of dimensions and of what was registered for regions: add it by \
             app.add_plugins(TerranePlugin::default())"
        );
    }
}
