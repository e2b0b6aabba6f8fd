//! [`BodyPlugin`]: bodies in regions and in the main world; [`WalkPlugin`]: those that walk along paths.

use super::TerraneAppExt;
use crate::body::BodyTable;
use crate::simulation::{
    BlockBody, BlockTypes, BodySystems, BodyTypes, BodyVelocity, CharacterController, GroundSystems, Grounded, Intent,
    PathPlugin, PathSystems, PathTo, RegionTick, Steer, Steering, Walk, move_bodies, receive_steps, walk,
};
use crate::view::{OwnStep, know_own_bodies, move_own_bodies, send_own_steps};
use bevy::prelude::*;
use std::sync::{Arc, OnceLock};

/// Moves each [`BlockBody`] in its region, and each [`OwnBody`](crate::view::OwnBody) in the main world. Add it after
/// [`TerranePlugin`](super::TerranePlugin).
#[derive(Clone, Copy, Debug, Default)]
pub struct BodyPlugin;

impl Plugin for BodyPlugin {
    fn build(&self, app: &mut App) {
        app.register_saved_component::<BlockBody>()
            .register_saved_component::<BodyVelocity>()
            .register_saved_component::<CharacterController>()
            .register_saved_component::<Intent>()
            .register_region_component::<Grounded>()
            .register_region_component::<Steering>()
            .mirror_region_component::<Steering>()
            // An own body follows the mirror of its entity, whatever else the game mirrors.
            .mirror_region_component::<CharacterController>()
            .register_region_message::<Steer>()
            .add_message::<OwnStep>();
        let table = Arc::new(OnceLock::new());
        app.add_region_plugins(move |region| {
            let types = region.world().get_resource::<BlockTypes>().cloned();
            let made = || types.map(|types| Arc::new(BodyTable::new(&types))).unwrap_or_default();
            region.insert_resource(BodyTypes(table.get_or_init(made).clone()));
            let bodies = (receive_steps, move_bodies).chain().in_set(BodySystems);
            region.add_systems(
                RegionTick,
                bodies.after(GroundSystems::Grow).after(PathSystems::Find).after(PathSystems::Follow),
            );
        });
        let bodies = (know_own_bodies, move_own_bodies, send_own_steps).chain().in_set(BodySystems);
        app.add_systems(Update, bodies);
    }

    fn finish(&self, app: &mut App) {
        // The plugin of the world has its block types only once all plugins are built.
        app.add_systems(PreStartup, |types: Option<Res<BlockTypes>>, mut commands: Commands| {
            if let Some(types) = types {
                commands.insert_resource(BodyTypes(Arc::new(BodyTable::new(&types))));
            }
        });
    }
}

/// Finds paths for characters in regions, and lets those with a [`Walk`] walk along them. Add it after [`BodyPlugin`].
#[derive(Clone, Copy, Debug, Default)]
pub struct WalkPlugin {
    /// The plugin that finds the paths. It is added to the regions, unless the game has added one to them before.
    pub paths: PathPlugin,
}

impl Plugin for WalkPlugin {
    fn build(&self, app: &mut App) {
        app.register_saved_component::<Walk>().register_saved_component::<PathTo>();
        let paths = self.paths;
        app.add_region_plugins(move |region| {
            if !region.is_plugin_added::<PathPlugin>() {
                region.add_plugins(paths);
            }
            region.add_systems(RegionTick, walk.in_set(PathSystems::Follow));
        });
    }
}
