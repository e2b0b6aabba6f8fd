//! The game changes how ground is generated.

use super::generation_control::{DimensionGeneration, RetryColumns};
use super::orders::Orders;
use super::pacing::Pacing;
use crate::coordinator::dimension::{Dimension, Dimensions};
use bevy::prelude::*;

/// How the ground of the dimension with this entity is generated from now on.
pub(crate) fn set_generation(
    In((dimension, settings)): In<(Entity, DimensionGeneration)>,
    mut dimensions: ResMut<Dimensions>,
) {
    let Some(dimension) = dimensions.by_entity(dimension) else { return };
    dimension.generation.settings = settings;
    if !settings.paused {
        dimension.revised.extend(dimension.columns.resume());
    }
    // What is not begun is taken back if it is paused.
    dimension.has_moved_viewers |= settings.paused;
}

pub(crate) fn set_pacing(In(pacing): In<Pacing>, mut orders: ResMut<Orders>) {
    orders.limit.settings = pacing;
}

/// Columns that failed are tried again.
pub(crate) fn retry_columns(In(retry): In<RetryColumns>, mut dimensions: ResMut<Dimensions>) {
    let Some(dimension) = dimensions.by_entity(retry.dimension) else { return };
    let failures = &mut dimension.generation.failures;
    let columns = match retry.column {
        None => failures.retry_all(),
        Some(column) => failures.retry(column).then_some(column).into_iter().collect(),
    };
    columns.into_iter().for_each(|column| dimension.release_generation(column));
}

impl Dimension {
    /// Columns that failed are missing again when their wait is over.
    pub fn retry_generation(&mut self) {
        self.forget_left_failures();
        for column in self.generation.failures.take_due(self.real_now) {
            self.release_generation(column);
        }
    }
}
