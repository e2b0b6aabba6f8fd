//! Looking for entities in all columns of a region at once.

use super::standing;
use crate::simulation::columns::blocks::RegionColumns;
use crate::space::{BlockBox, ColumnPos};
use crate::storage::EntityRecord;
use bevy::prelude::*;
use rustc_hash::FxHashSet;
use std::sync::Arc;
use uuid::Uuid;

/// Who is to be looked for.
#[derive(Clone, Debug)]
pub struct LookForEntities {
    /// The box; what the region has of it counts.
    pub area: BlockBox,
    /// Who is known already.
    pub known: Arc<FxHashSet<Uuid>>,
}

/// Who was seen at the end of a tick.
#[derive(Debug)]
pub struct SeenEntities {
    /// The region's columns that the box reaches, ascending.
    pub columns: Vec<ColumnPos>,
    /// Who stands in the box and was not known, but for players.
    pub entities: Vec<EntityRecord>,
}

pub(super) fn look(world: &World, order: &LookForEntities) -> SeenEntities {
    let LookForEntities { area, known } = order;
    let owned = world.resource::<RegionColumns>().positions();
    // Also who has just walked out of the region: from the next tick on the coordinator has them.
    let seen = standing(world, |position| area.contains(position.block), |id| !known.contains(&id));
    SeenEntities {
        columns: owned.iter().copied().filter(|column| area.reaches(*column)).collect(),
        entities: seen.into_iter().map(|(_, record)| record).collect(),
    }
}
