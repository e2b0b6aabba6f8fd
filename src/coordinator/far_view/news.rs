//! What a listener of a far view asks for, and what it is told.

use super::reach::FarRadii;
use crate::chunk::ColumnSummary;
use crate::space::{ColumnPos, DimensionId};
use bevy::prelude::*;
use std::sync::Arc;
use uuid::Uuid;

/// What a listener of a far view asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FarWish {
    /// Around what.
    pub center: FarCenter,
    /// How far, and how fine.
    pub reach: FarRadii,
    /// The cap, in bytes a second; nothing is sent at 0.
    pub bytes_per_second: u64,
}

/// The middle of a far view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarCenter {
    /// A column.
    Column {
        /// The dimension's entity in the main world.
        dimension: Entity,
        /// The column.
        column: ColumnPos,
    },
    /// A viewer that lives in the regions, by its stable id, in whatever dimension it is.
    Viewer(Uuid),
}

/// Something that a listener is told.
#[derive(Clone, Debug)]
pub struct FarUpdate {
    /// The listener's entity in the main world.
    pub listener: Entity,
    /// Which far view of that entity, if it had several one after the other.
    pub life: u64,
    /// The dimension.
    pub dimension: DimensionId,
    /// What.
    pub news: FarNews,
}

/// What a listener is told.
#[derive(Clone, Debug)]
pub enum FarNews {
    /// What a column looks like; it replaces what was sent before.
    Column {
        /// The column.
        column: ColumnPos,
        /// What it looks like.
        summary: Arc<ColumnSummary>,
        /// The bytes of the cap that it took.
        bytes: u64,
    },
    /// The column changed or is too far away: the listener is told nothing more of it.
    Gone(ColumnPos),
    /// That holds for all columns of the dimension: the listener left it, or it closes.
    AllGone,
}
