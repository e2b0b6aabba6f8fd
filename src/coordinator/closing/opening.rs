//! Opens dimensions once nothing blocks them.

use crate::coordinator::clock::Clock;
use crate::coordinator::closing::close::remove_stored;
use crate::coordinator::dimension::{DimensionBook, OpenDimension, Opening, Unopened};
use crate::coordinator::mail::queue::MailQueue;
use crate::coordinator::messages::dimensions::{DimensionError, DimensionSpec};
use crate::coordinator::messages::events::{DimensionFailed, DimensionOpened};
use crate::coordinator::messages::settings::Settings;
use crate::coordinator::messages::why::Ticket;
use crate::coordinator::publish::Publisher;
use crate::coordinator::saves::Saves;
use crate::coordinator::servers::tend::receive;
use crate::coordinator::stream::rebuild::rebuild;
use crate::coordinator::threads::Threads;
use crate::simulation::ViewerRadii;
use crate::space::DimensionId;
use crate::storage::{EntityRecord, StoreError, WorldStore};
use bevy::prelude::*;
use std::mem;

/// Opens a dimension that was spawned in the main world.
pub(crate) fn open_dimension(
    In(spec): In<DimensionSpec>,
    config: Res<Settings>,
    clock: Res<Clock>,
    mut dimensions: ResMut<DimensionBook>,
    saves: ResMut<Saves>,
    post: ResMut<MailQueue>,
    threads: ResMut<Threads>,
    publisher: ResMut<Publisher>,
) {
    dimensions.unopened.push(Unopened { spec, until: 0, is_removed: false });
    open_waiting(config, clock, dimensions, saves, post, threads, publisher);
}

/// Opens the waiting dimensions, unless one of the same name is being closed or erased, or the store lacks data of it. Erases
/// the stored data of those that were removed in the meantime.
pub fn open_waiting(
    config: Res<Settings>,
    clock: Res<Clock>,
    mut dimensions: ResMut<DimensionBook>,
    mut saves: ResMut<Saves>,
    mut post: ResMut<MailQueue>,
    mut threads: ResMut<Threads>,
    mut publisher: ResMut<Publisher>,
) {
    let dimensions = &mut *dimensions;
    for waiting in mem::take(&mut dimensions.unopened) {
        let name = waiting.spec.name.clone();
        let same_name = dimensions.open.values().find(|open| open.spec.name == name);
        let is_closing = same_name.is_some_and(OpenDimension::is_closing);
        if is_closing || dimensions.is_busy(&name) || !saves.is_stored(waiting.until) {
            dimensions.unopened.push(waiting);
            continue;
        }
        let is_rebuilt = dimensions.rebuilt.remove(&name);
        let entity = waiting.spec.entity;
        let opened = match same_name.is_some() {
            true => Err(DimensionError::AlreadyOpen { name: name.clone() }),
            false if waiting.is_removed => {
                remove_stored(entity, name, dimensions, &mut threads);
                continue;
            }
            false => OpenDimension::open(waiting.spec.clone(), &threads.store, &config, &threads.template.blocks),
        };
        match opened {
            Err(DimensionError::Store(StoreError::BeingRemoved { .. })) => {
                // The app ended in the middle of erasing it.
                remove_stored(entity, name, dimensions, &mut threads);
                dimensions.unopened.push(waiting);
            }
            Ok(Opening::Lost(_)) if is_rebuilt => {
                publisher.fail_dimension(entity, DimensionError::DamagedAgain { name });
            }
            Ok(Opening::Lost(id)) => {
                rebuild(id, &name, dimensions, &mut threads);
                dimensions.unopened.push(waiting);
            }
            // The opened dimension would lack entities that went there and are not stored yet, and have jobs that have ended.
            Ok(Opening::Open(dimension, _)) if saves.has_unwritten(dimension.id) => {
                dimensions.unopened.push(Unopened { until: saves.stored_with(), ..waiting });
                saves.request_commit();
            }
            Ok(Opening::Open(mut dimension, viewers)) => {
                dimension.time.real_now = clock.now;
                dimension.columns.now = clock.now;
                let id = dimension.id;
                dimensions.begin(*dimension, &viewers, &mut publisher);
                receive_crossings(id, &threads.store, &mut saves, &mut post);
            }
            Err(error) => publisher.fail_dimension(entity, error),
        }
    }
}

/// Receives what servers left on its way to others, for a process that has the world alone.
fn receive_crossings(id: DimensionId, store: &WorldStore, saves: &mut Saves, post: &mut MailQueue) {
    if store.incarnation().is_some() {
        return;
    }
    match store.crossings(id) {
        Ok(crossings) => {
            let new = crossings.into_iter().filter(|(id, _)| !saves.received.has(*id)).collect::<Vec<_>>();
            new.into_iter().for_each(|(id, crossing)| receive(id, crossing, saves, post));
        }
        Err(error) => error!("what was on its way between servers in {id} stays in the store: {error}"),
    }
}

impl DimensionBook {
    /// Adds an opened dimension.
    fn begin(&mut self, mut dimension: OpenDimension, viewers: &[EntityRecord], publisher: &mut Publisher) {
        let entity = dimension.spec.entity;
        publisher.event(DimensionOpened {
            entity,
            dimension: dimension.id,
            stored_columns: dimension.land.stored.completed_count(),
            stored_days: dimension.time.stored_days,
            viewers: viewers.iter().map(|record| record.viewers().count()).sum(),
        });
        // These viewers held ground when they were saved. Loading that ground brings them back.
        for (viewer, block, radii) in viewers.iter().flat_map(EntityRecord::viewers) {
            dimension.hold(Ticket::Region(viewer), block.chunk(), ViewerRadii::from(radii));
        }
        self.open.insert(dimension.id, dimension);
    }

    /// Fails the dimensions that waited for this name, because they would fail again and again. The game can ask again.
    pub fn fail_waiting(&mut self, name: &str, error: &DimensionError, publisher: &mut Publisher) {
        for waiting in self.unopened.extract_if(.., |waiting| waiting.spec.name == name) {
            publisher.fail_dimension(waiting.spec.entity, error.clone());
        }
    }
}

impl Publisher {
    fn fail_dimension(&mut self, entity: Entity, error: DimensionError) {
        error!("{error}");
        self.event(DimensionFailed { entity, error });
    }
}
