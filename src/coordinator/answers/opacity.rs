//! Tells the main world which blocks are opaque, also where nothing is loaded.

use super::question::{AskError, AskOpacity};
use crate::block::BlockRegistry;
use crate::chunk::Column;
use crate::coordinator::dimension::Dimensions;
use crate::coordinator::events::OpacityAnswer;
use crate::coordinator::publish::Publisher;
use crate::coordinator::saving::save::Saves;
use crate::coordinator::threads::{Place, Threads, WorkError};
use crate::simulation::SavedChunks;
use crate::space::{BatchPos, ColumnPos, DimensionId};
use crate::storage::{BatchOpacity, WorldStore};
use bevy::prelude::*;
use std::sync::Arc;

/// A question, to be answered on another thread.
struct OpacityOrder {
    batch: BatchPos,
    dimension: DimensionId,
    /// What the store does not have yet.
    unwritten: Vec<(ColumnPos, SavedChunks)>,
    /// Columns as they were published last, which is newer still.
    loaded: Vec<Column>,
}

/// Columns that are published come along.
pub(crate) fn ask_opacity(
    In((ask, loaded)): In<(AskOpacity, Vec<Column>)>,
    dimensions: Res<Dimensions>,
    saves: Res<Saves>,
    mut threads: ResMut<Threads>,
    mut publisher: ResMut<Publisher>,
) {
    let AskOpacity { request, dimension: entity, batch } = ask;
    let Some(&dimension) = dimensions.by_entity.get(&entity) else {
        let opacity = Err(AskError::NotOpen);
        return publisher.event(OpacityAnswer { request, entity, batch, opacity });
    };
    let unwritten = batch.columns().map(|column| (column, saves.unwritten(dimension, column))).collect();
    let order = OpacityOrder { batch, dimension, unwritten, loaded };
    threads.ask(
        Place::Loading,
        move |store, blocks| order.read(store, blocks),
        move |world, read| {
            let opacity = read.flatten().map_err(AskError::from);
            world.resource_mut::<Publisher>().event(OpacityAnswer { request, entity, batch, opacity });
        },
    );
}

impl OpacityOrder {
    /// Answers the question.
    fn read(self, store: &WorldStore, blocks: &BlockRegistry) -> Result<Arc<BatchOpacity>, WorkError> {
        let mut opacity = store.opacity(self.dimension, self.batch)?;
        let is_opaque = |block| blocks.block(block).is_opaque();
        for (column, chunks) in &self.unwritten {
            chunks.iter().for_each(|(y, chunk)| opacity.set_chunk(*column, *y, chunk, is_opaque));
        }
        self.loaded.iter().for_each(|column| opacity.set_column(column, is_opaque));
        Ok(Arc::new(opacity))
    }
}
