//! What the main world asks for.

use crate::coordinator::clocks::clock::Clock;
use crate::coordinator::desk::Desk;
use crate::coordinator::dimension::column_state::ColumnState;
use crate::coordinator::dimension::{Dimension, DimensionError, DimensionSpec, Dimensions, Opening};
use crate::coordinator::events::{DimensionFailed, DimensionOpened};
use crate::coordinator::publish::Publisher;
use crate::coordinator::streaming::holders::Holder;
use crate::simulation::{BlockAccessError, SetBlock, ViewerRadii};
use crate::space::ChunkPos;
use crate::storage::{EntityRecord, StoredDimensionError};
use bevy::prelude::*;

/// Edits that wait for one region at most. In a tick it makes more than are sent in a frame; one that does not tick must
/// not gather them without end.
const MAX_EDITS: usize = 1 << 18;

/// Where a viewer of the main world is: its dimension's entity, the chunk and how far it reaches.
pub(crate) type ViewerPlace = (Entity, ChunkPos, ViewerRadii);

/// Viewers of the main world are somewhere else now, or are no more.
pub(crate) fn move_viewers(In(moves): In<Vec<(Entity, Option<ViewerPlace>)>>, mut dimensions: ResMut<Dimensions>) {
    for (viewer, place) in moves {
        let viewer = Holder::Main(viewer);
        let Some((entity, chunk, radii)) = place else {
            dimensions.open.values_mut().for_each(|dimension| dimension.release(viewer));
            continue;
        };
        let Some(id) = dimensions.by_entity(entity).filter(|open| !open.is_closing()).map(|open| open.id) else {
            continue;
        };
        // A viewer holds ground in one dimension only.
        for (other, dimension) in &mut dimensions.open {
            match *other == id {
                true => dimension.hold(viewer, chunk, radii),
                false => dimension.release(viewer),
            }
        }
    }
}

/// Edits go to the inboxes of the regions that own their places.
pub(crate) fn edit_blocks(
    In(edits): In<Vec<SetBlock>>,
    mut dimensions: ResMut<Dimensions>,
    mut publisher: ResMut<Publisher>,
    clock: Res<Clock>,
) {
    for request in edits {
        let SetBlock { dimension, position, .. } = request;
        let column = position.column();
        let inbox = dimensions.by_entity(dimension).and_then(|dimension| {
            let owned = matches!(dimension.columns.get(column), Some(ColumnState::Owned(_)));
            let region = dimension.regionizer.region_at(column).filter(|_| owned)?;
            let halted = dimension.regionizer.data(region).is_some_and(|slot| slot.halted.is_some());
            (!halted).then(|| dimension.inbox(region))
        });
        let error = match inbox {
            Some(inbox) if inbox.edits.len() < MAX_EDITS => {
                inbox.edits.push(request);
                continue;
            }
            Some(_) => BlockAccessError::TooManyEdits(position),
            None => BlockAccessError::OutsideRegion(position),
        };
        publisher.refuse(clock.now, request, error);
    }
}

pub(crate) fn open_dimension(In(spec): In<DimensionSpec>, mut desk: Desk) {
    desk.open_dimension(spec);
}

impl Desk<'_> {
    pub fn open_dimension(&mut self, spec: DimensionSpec) {
        let same_name = self.dimensions.open.values().find(|open| open.spec.name == spec.name);
        if same_name.is_some_and(Dimension::is_closing) || self.dimensions.is_busy(&spec.name) {
            self.dimensions.reopen.push(spec);
            return;
        }
        let opened = match same_name.is_some() {
            true => Err(DimensionError::AlreadyOpen { name: spec.name.clone() }),
            false => Dimension::open(spec.clone(), &self.store.0, &self.config, self.threads.blocks()),
        };
        match opened {
            Err(DimensionError::Store(StoredDimensionError::BeingRemoved { .. })) => {
                // The app ended in the middle of it.
                self.remove_dimension(spec.entity, spec.name.clone());
                self.dimensions.reopen.push(spec);
            }
            Ok(Opening::Lost(id)) => self.rebuild(id, spec),
            // What it opens with would lack whoever went there and is not stored yet.
            Ok(Opening::Open(dimension, _)) if self.saves.has_unwritten_entities(dimension.id) => {
                self.dimensions.late.push((spec, self.saves.stored_with()));
                self.saves.request_commit();
            }
            Ok(Opening::Open(dimension, viewers)) => self.begin_dimension(*dimension, &viewers),
            Err(error) => self.fail_dimension(spec.entity, error),
        }
    }

    /// A dimension that was opened is there from now on.
    fn begin_dimension(&mut self, mut dimension: Dimension, viewers: &[EntityRecord]) {
        let entity = dimension.spec.entity;
        self.publisher.event(DimensionOpened {
            entity,
            dimension: dimension.id,
            stored_columns: dimension.stored.completed_count(),
            viewers: viewers.iter().map(|record| record.viewers().count()).sum(),
        });
        // They held their ground when they were saved. Loading it brings them back.
        for (viewer, block, radii) in viewers.iter().flat_map(EntityRecord::viewers) {
            dimension.hold(Holder::Region(viewer), block.chunk(), ViewerRadii::from(radii));
        }
        self.forget_damaged_pregenerations(&mut dimension);
        self.dimensions.by_entity.insert(entity, dimension.id);
        self.dimensions.open.insert(dimension.id, dimension);
    }

    /// A dimension cannot be opened.
    pub fn fail_dimension(&mut self, entity: Entity, error: DimensionError) {
        error!("{error}");
        self.publisher.event(DimensionFailed { entity, error });
    }
}
