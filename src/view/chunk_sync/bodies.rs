//! The steps of own bodies, on their way to the regions of this app or to a server.

use super::ChunkSyncClient;
use crate::view::mirror::MirrorIndex;
use crate::view::own_body::OwnStep;
use crate::view::region_commands::RegionCommands;
use bevy::prelude::*;

/// Sends the steps of bodies to their regions, or to the server that has them.
pub(crate) fn send_own_steps(
    mut commands: Commands,
    mut steps: MessageReader<OwnStep>,
    mut clients: Query<&mut ChunkSyncClient>,
    index: Res<MirrorIndex>,
) {
    for OwnStep { id, step } in steps.read() {
        if let Some(mut client) = clients.iter_mut().find(|client| client.actor() == Some(*id)) {
            client.step(*step);
        } else if index.entity(*id).is_some() {
            commands.send_to_entity(*id, *step);
        }
    }
}
