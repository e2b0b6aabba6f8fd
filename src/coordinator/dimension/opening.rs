//! Opens dimensions as soon as nothing stands in the way.

use super::{Dimension, DimensionError, DimensionSpec, Dimensions, Opening, Store};
use crate::coordinator::CoordinatorConfig;
use crate::coordinator::clocks::clock::Clock;
use crate::coordinator::events::{DimensionFailed, DimensionOpened};
use crate::coordinator::publish::Publisher;
use crate::coordinator::saving::close::remove_stored;
use crate::coordinator::saving::save::Saves;
use crate::coordinator::streaming::holders::Holder;
use crate::coordinator::streaming::rebuild::rebuild;
use crate::coordinator::threads::Threads;
use crate::simulation::ViewerRadii;
use crate::storage::{EntityRecord, StoredDimensionError};
use bevy::prelude::*;
use std::mem;

/// A dimension was spawned in the main world.
pub(crate) fn open_dimension(
    In(spec): In<DimensionSpec>,
    config: Res<CoordinatorConfig>,
    clock: Res<Clock>,
    store: Res<Store>,
    mut dimensions: ResMut<Dimensions>,
    saves: ResMut<Saves>,
    threads: ResMut<Threads>,
    publisher: ResMut<Publisher>,
) {
    dimensions.waiting.push((spec, 0));
    open_waiting(config, clock, store, dimensions, saves, threads, publisher);
}

/// Opens the dimensions that wait, unless another of the same name is being closed or erased, or the store lacks something of it.
pub fn open_waiting(
    config: Res<CoordinatorConfig>,
    clock: Res<Clock>,
    store: Res<Store>,
    mut dimensions: ResMut<Dimensions>,
    mut saves: ResMut<Saves>,
    mut threads: ResMut<Threads>,
    mut publisher: ResMut<Publisher>,
) {
    let dimensions = &mut *dimensions;
    for (spec, until) in mem::take(&mut dimensions.waiting) {
        let same_name = dimensions.open.values().find(|open| open.spec.name == spec.name);
        let is_closing = same_name.is_some_and(Dimension::is_closing);
        if is_closing || dimensions.is_busy(&spec.name) || !saves.is_stored(until) {
            dimensions.waiting.push((spec, until));
            continue;
        }
        let is_rebuilt = dimensions.rebuilt.remove(&spec.name);
        let (entity, name) = (spec.entity, spec.name.clone());
        let opened = match same_name.is_some() {
            true => Err(DimensionError::AlreadyOpen { name }),
            false => Dimension::open(spec.clone(), &store.0, &config, threads.blocks()),
        };
        match opened {
            Err(DimensionError::Store(StoredDimensionError::BeingRemoved { .. })) => {
                // The app ended in the middle of it.
                remove_stored(entity, spec.name.clone(), dimensions, &mut threads);
                dimensions.waiting.push((spec, until));
            }
            Ok(Opening::Lost(_)) if is_rebuilt => {
                publisher.fail_dimension(entity, DimensionError::DamagedAgain { name: spec.name });
            }
            Ok(Opening::Lost(id)) => {
                rebuild(id, &spec.name, dimensions, &mut threads);
                dimensions.waiting.push((spec, until));
            }
            // What it opens with would lack whoever went there and is not stored yet.
            Ok(Opening::Open(dimension, _)) if saves.has_unwritten_entities(dimension.id) => {
                dimensions.waiting.push((spec, saves.stored_with()));
                saves.request_commit();
            }
            Ok(Opening::Open(mut dimension, viewers)) => {
                dimension.real_now = clock.now;
                dimensions.begin(*dimension, &viewers, &mut publisher);
            }
            Err(error) => publisher.fail_dimension(entity, error),
        }
    }
}

impl Dimensions {
    /// A dimension that was opened is there from now on.
    fn begin(&mut self, mut dimension: Dimension, viewers: &[EntityRecord], publisher: &mut Publisher) {
        let entity = dimension.spec.entity;
        publisher.event(DimensionOpened {
            entity,
            dimension: dimension.id,
            stored_columns: dimension.stored.completed_count(),
            viewers: viewers.iter().map(|record| record.viewers().count()).sum(),
        });
        // They held their ground when they were saved. Loading it brings them back.
        for (viewer, block, radii) in viewers.iter().flat_map(EntityRecord::viewers) {
            dimension.hold(Holder::Region(viewer), block.chunk(), ViewerRadii::from(radii));
        }
        self.by_entity.insert(entity, dimension.id);
        self.open.insert(dimension.id, dimension);
    }

    /// The dimensions that waited for this name are not opened. It would fail again and again: whoever wants it can ask
    /// again.
    pub fn fail_waiting(&mut self, name: &str, error: &DimensionError, publisher: &mut Publisher) {
        for (spec, _) in self.waiting.extract_if(.., |(spec, _)| spec.name == name) {
            publisher.fail_dimension(spec.entity, error.clone());
        }
    }
}

impl Publisher {
    fn fail_dimension(&mut self, entity: Entity, error: DimensionError) {
        error!("{error}");
        self.event(DimensionFailed { entity, error });
    }
}
