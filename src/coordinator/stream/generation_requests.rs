//! The game's changes of how ground is generated.

use crate::coordinator::columns::ColumnState;
use crate::coordinator::dimension::DimensionBook;
use crate::coordinator::messages::generation::Pacing;
use crate::coordinator::messages::generation::{DimensionGeneration, RetryColumns};
use crate::coordinator::stream::orders::Orders;
use crate::space::DimensionId;
use bevy::prelude::*;

/// Sets how the ground of a dimension is generated.
pub(crate) fn set_generation(
    In((dimension, settings)): In<(DimensionId, DimensionGeneration)>,
    mut dimensions: ResMut<DimensionBook>,
) {
    let Some(dimension) = dimensions.open.get_mut(&dimension) else { return };
    dimension.orders.generation.settings = settings;
    if !settings.paused {
        dimension.orders.revised.extend(dimension.columns.resume());
    }
    // A pause takes back the orders that have not begun.
    dimension.demand.has_moved_viewers |= settings.paused;
}

pub(crate) fn set_pacing(In(pacing): In<Pacing>, mut orders: ResMut<Orders>) {
    orders.limit.settings = pacing;
}

/// Retries failed columns.
pub(crate) fn retry_columns(In(retry): In<RetryColumns>, mut dimensions: ResMut<DimensionBook>) {
    let Some(dimension) = dimensions.open.get_mut(&retry.dimension) else { return };
    let columns: Vec<_> = match retry.column {
        Some(column) => vec![column],
        None => {
            let failed = dimension.columns.failed().map(|(column, _)| column);
            failed.chain(dimension.orders.generation.failures.forget_all()).collect()
        }
    };
    for column in columns {
        let failed = matches!(dimension.columns.get(column), Some(ColumnState::Failed(_)));
        if failed {
            dimension.columns.forget(column);
        }
        if dimension.orders.generation.failures.forget(column) || failed || retry.column.is_none() {
            dimension.reopen(column);
        }
    }
}
