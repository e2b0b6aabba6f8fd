//! Tells the main world which blocks are opaque, loaded or not.

use crate::chunk::Column;
use crate::coordinator::dimension::DimensionBook;
use crate::coordinator::messages::events::OpacityAnswer;
use crate::coordinator::messages::questions::{AskError, AskOpacity};
use crate::coordinator::publish::Publisher;
use crate::coordinator::saves::Saves;
use crate::coordinator::threads::Threads;
use bevy::prelude::*;
use std::sync::Arc;

/// Answers the question. Published columns are passed along.
pub(crate) fn ask_opacity(
    In((ask, loaded)): In<(AskOpacity, Vec<Column>)>,
    dimensions: Res<DimensionBook>,
    saves: Res<Saves>,
    mut threads: ResMut<Threads>,
    mut publisher: ResMut<Publisher>,
) {
    let AskOpacity { request, dimension, batch } = ask;
    if !dimensions.open.contains_key(&dimension) {
        let opacity = Err(AskError::NotOpen);
        return publisher.event(OpacityAnswer { request, dimension, batch, opacity });
    }
    // Unsaved columns are newer than the store, and published columns are newer still.
    let unwritten: Vec<_> = batch.columns().map(|column| (column, saves.unwritten(dimension, column))).collect();
    threads.ask(
        None,
        move |store, blocks| {
            let mut opacity = store.opacity(dimension, batch)?;
            let is_opaque = |block| blocks.block(block).is_opaque();
            for (column, chunks) in &unwritten {
                chunks.iter().for_each(|(y, chunk)| opacity.set_chunk(*column, *y, chunk, is_opaque));
            }
            loaded.iter().for_each(|column| opacity.set_column(column, is_opaque));
            Ok(Arc::new(opacity))
        },
        move |world, read| {
            let opacity = read.flatten().map_err(AskError::from);
            world.resource_mut::<Publisher>().event(OpacityAnswer { request, dimension, batch, opacity });
        },
    );
}
