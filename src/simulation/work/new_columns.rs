//! New columns: the game's systems are told of each column once, so that they can place animals there.

use crate::simulation::columns::blocks::RegionColumns;
use crate::simulation::world::RegionContents;
use crate::space::ColumnPos;
use bevy::prelude::*;
use std::mem;

/// A column is new to the world: it was generated, and no region was told of it before. A region's systems get this message for
/// each of its columns once, in a tick in which the column is there with its stored entities.
///
/// That the region was told is saved together with its next unsaved data, and thus with everything that the systems did in this
/// tick. So after a crash, either the column is new again and nothing was placed there, or it is not new and everything is there.
/// Whatever belongs on new ground must be placed in this tick, and not in a later one.
///
/// ```
/// use bevy_terrane::prelude::*;
/// # use serde::{Deserialize, Serialize};
///
/// /// Registered with `register_saved_component`.
/// #[derive(Component, Serialize, Deserialize, TypePath)]
/// struct Sheep;
///
/// fn place_sheep(mut new: MessageReader<NewColumn>, blocks: RegionBlocks, info: Res<RegionInfo>, mut commands: Commands) {
///     for NewColumn { column } in new.read() {
///         let corner = column.min_block(0);
///         if let Some(ground) = blocks.surface(corner.x + 8, corner.z + 8) {
///             commands.spawn((Sheep, Position::new(info.dimension, ground.offset(0, 1, 0))));
///         }
///     }
/// }
/// # App::new().add_systems(RegionTick, place_sheep);
/// ```
///
/// | | |
/// |---|---|
/// | columns that a [`Pregeneration`](crate::view::Pregeneration) or a viewer's generation radius made | new when a region first gets them |
/// | columns of older worlds, which were stored before worlds knew of new columns | never new |
/// | the column is evicted before its region ticks, or goes to another server | new there |
/// | the region halts before its unsaved data was handed out | new again, without what was placed |
/// | a snapshot is restored there | as before |
/// | imported columns | as they were in the exported world |
/// | a sparse dimension | each column is new once, with its first part |
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewColumn {
    /// The column.
    pub column: ColumnPos,
}

/// Tells the game's systems of new columns, in a tick. In a task without a tick, they could be saved as told before a system has
/// read of them.
pub fn tell_of_new_columns(world: &mut World, contents: &mut RegionContents) {
    let owned = world.resource_mut::<RegionColumns>().into_inner();
    let new = mem::take(&mut owned.new);
    if !new.is_empty() {
        owned.told.extend(&new);
        contents.schedules.note_messages();
        world.write_message_batch(new.into_iter().map(|column| NewColumn { column }));
    }
}
