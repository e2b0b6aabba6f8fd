//! What the main world asks for.

use crate::coordinator::desk::Desk;
use crate::coordinator::dimension::column_state::ColumnState;
use crate::coordinator::dimension::{Dimension, DimensionError, DimensionSpec, Opening};
use crate::coordinator::events::{DimensionFailed, DimensionOpened};
use crate::coordinator::exchange::FromMain;
use crate::coordinator::saving::backup::SaveRequest;
use crate::coordinator::streaming::holders::Holder;
use crate::simulation::{BlockAccessError, SetBlock, ViewerRadii};
use crate::space::ChunkPos;
use crate::storage::{EntityRecord, StoredDimensionError};
use bevy::prelude::*;
use std::mem;

/// Edits that wait for one region at most. In a tick it makes more than are sent in a frame; one that does not tick must
/// not gather them without end.
const MAX_EDITS: usize = 1 << 18;

impl Desk<'_> {
    pub fn handle_requests(&mut self) {
        for request in mem::take(&mut self.inbound.main) {
            self.handle(request);
        }
        mem::take(&mut self.inbound.news).into_iter().for_each(|event| self.publisher.event(event));
    }

    fn handle(&mut self, request: FromMain) {
        match request {
            FromMain::OpenDimension(spec) => self.open_dimension(spec),
            FromMain::MoveViewer { viewer, dimension, chunk, radii } => {
                self.move_viewer(Holder::Main(viewer), dimension, chunk, radii);
            }
            FromMain::RemoveViewer(viewer) => {
                self.dimensions.open.values_mut().for_each(|dimension| dimension.release(Holder::Main(viewer)));
            }
            FromMain::Edit(request) => self.edit(request),
            FromMain::Post(letter) => self.accept(letter),
            FromMain::PostToPlace { dimension, block, letter } => self.post_to_place(dimension, block, letter),
            FromMain::SetClock { dimension, clock } => self.set_clock(dimension, clock),
            FromMain::SetGeneration { dimension, generation } => self.set_generation(dimension, generation),
            FromMain::SetPacing(pacing) => self.limit.settings = pacing,
            FromMain::Retry(retry) => self.retry_columns(retry),
            FromMain::Step(step) => self.step(step),
            FromMain::Control(control) => self.control(control),
            FromMain::Couple(entity, coupling) => drop(self.couplings.places.insert(entity, coupling)),
            FromMain::Uncouple(entity) => drop(self.couplings.places.remove(&entity)),
            FromMain::StartPregeneration { entity, dimension, area, is_paused } => {
                self.start_pregeneration(entity, dimension, area, is_paused);
            }
            FromMain::AdoptPregeneration { entity, dimension, number } => {
                self.adopt_pregeneration(entity, dimension, number);
            }
            FromMain::ControlPregeneration { entity, order } => self.control_pregeneration(entity, order),
            FromMain::CloseDimension { dimension, remove } => self.close_dimension(dimension, remove),
            FromMain::LogIn { name, first_place } => self.log_in(name, first_place),
            FromMain::LogOut { name } => self.log_out(&name),
            FromMain::Save(number) => self.saves.requested.push(SaveRequest::Message(number)),
            FromMain::BackUp(backup) => self.saves.requested.push(SaveRequest::Backup(backup.into())),
            FromMain::AskOpacity(ask, loaded) => self.ask_opacity(ask, loaded),
            FromMain::AskChunks(ask, published) => self.ask_chunks(ask, published),
            FromMain::SetFarView { listener, life, wish } => {
                self.far_views.set(listener, life, wish, &mut self.dimensions, self.clock.now);
            }
            FromMain::RemoveFarView(listener) => self.far_views.remove(listener, &mut self.dimensions),
            FromMain::FarViewTaken { listener, life, updates } => self.far_views.taken(listener, life, updates),
        }
    }

    /// A viewer holds ground in one dimension only.
    fn move_viewer(&mut self, viewer: Holder, dimension: Entity, chunk: ChunkPos, radii: ViewerRadii) {
        let Some(&id) = self.dimensions.by_entity.get(&dimension) else { return };
        if self.dimensions.open.get(&id).is_none_or(Dimension::is_closing) {
            return;
        }
        for (other, dimension) in &mut self.dimensions.open {
            match *other == id {
                true => dimension.hold(viewer, chunk, radii),
                false => dimension.release(viewer),
            }
        }
    }

    fn edit(&mut self, request: SetBlock) {
        let SetBlock { dimension, position, .. } = request;
        let column = position.column();
        let inbox = self.dimensions.by_entity(dimension).and_then(|dimension| {
            let owned = matches!(dimension.columns.get(column), Some(ColumnState::Owned(_)));
            let region = dimension.regionizer.region_at(column).filter(|_| owned)?;
            let halted = dimension.regionizer.data(region).is_some_and(|slot| slot.halted.is_some());
            (!halted).then(|| dimension.inbox(region))
        });
        let error = match inbox {
            Some(inbox) if inbox.edits.len() < MAX_EDITS => return inbox.edits.push(request),
            Some(_) => BlockAccessError::TooManyEdits(position),
            None => BlockAccessError::OutsideRegion(position),
        };
        self.publisher.refuse(self.clock.now, request, error);
    }

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
