//! Handles requests of the main world and ended tasks of regions.

pub mod fault;
mod outbox;
pub mod region_events;
pub mod tasks;

use crate::coordinator::clock::Clock;
use crate::coordinator::columns::ColumnState;
use crate::coordinator::dimension::DimensionBook;
use crate::coordinator::mail::queue::MailQueue;
use crate::coordinator::messages::why::Ticket;
use crate::coordinator::publish::Publisher;
use crate::coordinator::threads::exchange::Inbound;
use crate::simulation::{BlockAccessError, BlockEdit, SetBlock, ViewerRadii};
use crate::space::{ChunkPos, DimensionId};
use bevy::prelude::*;

pub fn collect(mut inbound: ResMut<Inbound>, mut post: ResMut<MailQueue>) {
    inbound.receive();
    post.backlog.settle();
}

/// The maximum number of waiting edits per region. A tick makes more edits than a frame sends, but a region that does not tick
/// must not gather them without end.
const MAX_EDITS: usize = 1 << 18;

/// The place of a viewer of the main world: its dimension, its chunk and its radii.
pub(crate) type ViewerPlace = (DimensionId, ChunkPos, ViewerRadii);

/// Moves or removes viewers of the main world.
pub(crate) fn move_viewers(In(moves): In<Vec<(Entity, Option<ViewerPlace>)>>, mut dimensions: ResMut<DimensionBook>) {
    for (viewer, place) in moves {
        let viewer = Ticket::Main(viewer);
        let Some((id, chunk, radii)) = place else {
            dimensions.open.values_mut().for_each(|dimension| dimension.release(viewer));
            continue;
        };
        if dimensions.open.get(&id).is_none_or(|open| open.is_closing()) {
            continue;
        }
        // A viewer holds ground in only one dimension.
        for (other, dimension) in &mut dimensions.open {
            match *other == id {
                true => dimension.hold(viewer, chunk, radii),
                false => dimension.release(viewer),
            }
        }
    }
}

/// Hands edits to the inboxes of the regions that own their places.
pub(crate) fn edit_blocks(
    In(edits): In<Vec<BlockEdit>>,
    mut dimensions: ResMut<DimensionBook>,
    mut publisher: ResMut<Publisher>,
    clock: Res<Clock>,
) {
    for edit in edits {
        let SetBlock { dimension, position, .. } = edit.request;
        let column = position.column();
        let inbox = dimensions.open.get_mut(&dimension).and_then(|dimension| {
            let state = dimension.columns.get(column);
            let owned = matches!(state, Some(ColumnState::Fetched(_) | ColumnState::Owned(_)));
            let region = dimension.regions.regionizer.region_at(column).filter(|_| owned)?;
            let halted = dimension.regions.regionizer.data(region).is_some_and(|slot| slot.halted.is_some());
            (!halted).then(|| dimension.inbox(region))
        });
        let error = match inbox {
            Some(inbox) if inbox.edits.len() < MAX_EDITS => {
                inbox.edits.push(edit);
                continue;
            }
            Some(_) => BlockAccessError::TooManyEdits(position),
            None => BlockAccessError::OutsideRegion(position),
        };
        publisher.refuse(clock.now, edit, error);
    }
}
