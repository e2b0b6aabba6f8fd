//! The data that the overlay shows, and its visibility.

use crate::history::History;
use crate::jobs::Traffic;
use crate::log::RegionLog;
use bevy::ecs::system::SystemParam;
use bevy::prelude::*;
use bevy_terrane::region::RegionId;
use bevy_terrane::space::{ColumnPos, DimensionId};
use bevy_terrane::view::{
    Arena, ArenaStatus, Dimension, DimensionClock, DimensionOpen, FarColumns, FarView, Job, JobProgress, Jobs,
    Pregeneration, PublishedColumns, WorldStatistics,
};
use uuid::Uuid;

pub(super) type RegionKey = (DimensionId, RegionId);
pub(super) type ColumnKey = (DimensionId, ColumnPos);

/// The visibility of the overlay, and what is selected in it.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq, Reflect)]
#[type_path = "terrane_overlay"]
#[reflect(Resource, Clone, Default)]
pub struct Overlay {
    /// `true` if the overlay is shown. F3 toggles it.
    pub visible: bool,
    /// What the window shows.
    pub tab: OverlayTab,
    /// The region that the map highlights, and whose details are shown. A click selects it, and it follows a merge.
    pub selected: Option<(DimensionId, RegionId)>,
    /// The column whose details are shown. A click on the map or, with `picks`, into the world selects it.
    pub column: Option<(DimensionId, ColumnPos)>,
    /// The entity whose details are shown, by its stable id. It is followed from region to region.
    pub entity: Option<Uuid>,
    /// `true` if a click into the world selects what the pointer hits: the entity of a [`Mirror`](bevy_terrane::view::Mirror), or the region
    /// of a block. Bevy's picking tells what that is, with `MeshPickingPlugin` and `BlockPickingPlugin`, for example.
    pub picks: bool,
}

/// What the overlay's window shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Reflect)]
#[type_path = "terrane_overlay"]
pub enum OverlayTab {
    /// The figures of the whole simulation, and the clocks and the generation of the dimensions.
    World,
    /// The regions, as a map and as a table, and the servers of a shared world.
    #[default]
    Regions,
    /// The entities of the selected region.
    Entities,
    /// Figures of the last ten minutes, as plots.
    Plots,
    /// The store: tiers, saves and backups.
    Storage,
    /// Arenas and snapshots.
    Arenas,
    /// The pre-generations, captures and restores.
    Jobs,
    /// The far views and their traffic.
    FarViews,
    /// The events of regions, newest first.
    Log,
}

/// The data that the overlay shows.
#[derive(SystemParam)]
pub(super) struct View<'w, 's> {
    pub statistics: Res<'w, WorldStatistics>,
    pub published: Res<'w, PublishedColumns>,
    pub log: Res<'w, RegionLog>,
    pub dimensions:
        Query<'w, 's, (Entity, &'static Dimension, Option<&'static DimensionOpen>, Option<&'static DimensionClock>)>,
    pub jobs: Query<
        'w,
        's,
        (Entity, Option<&'static Job>, Option<&'static Pregeneration>, &'static JobProgress, Option<&'static Name>),
        Without<FarView>,
    >,
    pub far_views: Query<'w, 's, (Entity, &'static FarView, Option<&'static Name>)>,
    pub far_columns: Res<'w, FarColumns>,
    pub traffic: Res<'w, Traffic>,
    pub arenas: Query<'w, 's, (&'static Arena, &'static ArenaStatus)>,
    pub job_orders: Option<Res<'w, Jobs>>,
    pub history: Res<'w, History>,
    pub types: Res<'w, AppTypeRegistry>,
}

impl View<'_, '_> {
    /// The entity and the name of an open dimension, and the clock that the game gave it. A dimension that is closing no longer
    /// has an entity.
    pub fn dimension(&self, id: DimensionId) -> Option<(Entity, &str, Option<DimensionClock>)> {
        let mut dimensions = self.dimensions.iter();
        let (entity, dimension, _, clock) =
            dimensions.find(|(_, _, open, _)| open.is_some_and(|open| open.id == id))?;
        Some((entity, dimension.name(), clock.copied()))
    }

    pub fn name(&self, id: DimensionId) -> String {
        self.dimension(id).map_or_else(|| id.0.to_string(), |(_, name, _)| name.to_owned())
    }

    /// Returns `true` if texts must name the dimension.
    pub fn has_dimensions(&self) -> bool {
        self.statistics.dimensions.len() > 1
    }
}
