//! Far views, and the news for their listeners.

use crate::chunk::{ColumnSummary, Detail};
use crate::space::{ColumnPos, DimensionId};
use bevy::prelude::*;
use std::sync::Arc;
use uuid::Uuid;

/// How far beyond its radius a far view keeps its columns, in columns, so that a step back sends nothing again.
pub const LET_GO: u32 = 4;

/// Listens to summaries of generated columns, loaded or not: near to far, coarser with distance, and limited in bytes per
/// second.
///
/// A far view stands beside a [`Viewer`](crate::simulation::Viewer) of the main world, on any entity with a `Transform` or a
/// [`Position`](crate::simulation::Position) ([`in_dimension`](Self::in_dimension)), or follows a viewer that lives in
/// the regions ([`of_viewer`](Self::of_viewer)). Use one for a camera, or one for each connected player. All of its fields may
/// be changed at any time. Its results are [`FarColumnChanged`](crate::view::FarColumnChanged) messages;
/// [`FarColumns`](crate::view::FarColumns) holds the present columns.
///
/// Until it is removed, it is a [`Job`](crate::view::Job) without an end, with its
/// [`JobProgress`](crate::view::JobProgress) beside it. Cancelling the job removes it.
///
/// Each column is sent once, and again when it looks different, or finer when the listener comes near. A column that was sent
/// finer than necessary is not sent again coarser. A change is reported when it is handed out to be saved, with the autosave at
/// the latest. While the app does not take a listener's messages (because it stands still), the listener gets no more. A
/// game that cannot pass them on sets [`bytes_per_second`](Self::bytes_per_second) to 0 meanwhile.
///
/// ```
/// # use bevy_terrane::prelude::*;
/// # use bevy_terrane::view::FarView;
/// fn spawn(mut commands: Commands, dimensions: Res<Dimensions>) {
///     let near = Viewer::in_dimension(dimensions.id("overworld")).with_radius(12);
///     commands.spawn((near, FarView::new().with_radius(128), Transform::default()));
/// }
/// # bevy::ecs::system::assert_is_system(spawn);
/// ```
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Component, Clone)]
pub struct FarView {
    /// The radius of the disc within which columns are sent, in columns. They are reported as gone four columns further out. At
    /// most [`MAX_RADIUS`](Self::MAX_RADIUS) counts; 64 by default.
    pub radius: u32,
    /// The distance, in columns, within which a cell is one block wide. Each doubling of the distance doubles the cells, up
    /// to one for a whole column. 16 by default.
    pub detail_radius: u32,
    /// The cap, in bytes per second, on the binary form of each summary plus 16 bytes for its position; one mebibyte by default.
    /// 0 pauses the far view.
    pub bytes_per_second: u64,
    /// The centre.
    pub(crate) target: Target,
}

/// The centre of a far view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Reflect)]
#[type_path = "bevy_terrane"]
pub(crate) enum Target {
    /// The viewer on the same entity.
    #[default]
    Beside,
    /// The far view's own entity, in this dimension.
    Dimension(DimensionId),
    /// The viewer in the regions with this stable id.
    Viewer(Uuid),
}

impl FarView {
    /// The largest radius, in columns. Larger values are clamped.
    pub const MAX_RADIUS: u32 = 1024;

    const fn at(target: Target) -> Self {
        Self { radius: 64, detail_radius: 16, bytes_per_second: 1 << 20, target }
    }

    /// A far view for an entity with a [`Viewer`](crate::simulation::Viewer), in its dimension.
    pub const fn new() -> Self {
        Self::at(Target::Beside)
    }

    /// A far view for an entity with a `Transform` or a [`Position`](crate::simulation::Position), in this
    /// dimension.
    pub const fn in_dimension(dimension: DimensionId) -> Self {
        Self::at(Target::Dimension(dimension))
    }

    /// A far view for any entity: around the viewer in the regions with this [stable id](crate::simulation::StableId), in its
    /// dimension. While there is no such viewer, the far view stays at its last place.
    pub const fn of_viewer(id: Uuid) -> Self {
        Self::at(Target::Viewer(id))
    }

    /// Sets the radius, in columns.
    pub const fn with_radius(mut self, radius: u32) -> Self {
        self.radius = radius;
        self
    }

    /// Sets the detail radius, in columns.
    pub const fn with_detail_radius(mut self, radius: u32) -> Self {
        self.detail_radius = radius;
        self
    }

    /// Sets the cap, in bytes per second.
    pub const fn with_bytes_per_second(mut self, bytes: u64) -> Self {
        self.bytes_per_second = bytes;
        self
    }
}

impl Default for FarView {
    fn default() -> Self {
        Self::new()
    }
}

/// Which columns are sent, and which are kept.
impl FarView {
    pub(in crate::coordinator) fn reach(self) -> u32 {
        self.radius.min(Self::MAX_RADIUS)
    }

    /// The details in use, finest first, each with the radius within which columns are sent at least that fine.
    pub(in crate::coordinator) fn rings(self) -> impl Iterator<Item = (Detail, u32)> {
        let radius = self.reach();
        let mut is_whole = false;
        (0..=Detail::COARSEST.level()).map_while(move |level| {
            let ring = match level == Detail::COARSEST.level() {
                true => radius,
                false => self.detail_radius.saturating_mul(1 << level).min(radius),
            };
            (!std::mem::replace(&mut is_whole, ring == radius)).then_some((Detail::new(level), ring))
        })
    }

    /// Returns `true` if the column is to be sent.
    pub(in crate::coordinator) fn contains(self, center: ColumnPos, column: ColumnPos) -> bool {
        center.distance_squared(column) <= u128::from(self.reach()).pow(2)
    }

    /// The radius beyond which a column is reported as gone.
    pub(in crate::coordinator) fn keeps_within(self) -> u32 {
        self.reach() + LET_GO
    }

    /// Returns `true` if a listener may keep the column.
    pub(in crate::coordinator) fn keeps(self, center: ColumnPos, column: ColumnPos) -> bool {
        center.distance_squared(column) <= u128::from(self.keeps_within()).pow(2)
    }
}

/// A message to a listener.
#[derive(Clone, Debug)]
pub enum FarNews {
    /// The summary of a column. It replaces the one that was sent before.
    Column {
        /// The column.
        column: ColumnPos,
        /// The summary.
        summary: Arc<ColumnSummary>,
        /// The number of bytes that it used of the cap.
        bytes: u64,
    },
    /// The column changed or is too far away. The listener gets no further changes of it.
    Gone(ColumnPos),
    /// All columns of the dimension are gone: the listener left it, or it closes.
    AllGone,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rings(radius: u32, detail_radius: u32) -> Vec<(u8, u32)> {
        FarView::new()
            .with_radius(radius)
            .with_detail_radius(detail_radius)
            .rings()
            .map(|(detail, radius)| (detail.level(), radius))
            .collect()
    }

    /// Promise, far view: A far view gets each column once, near to far, at a coarser LOD with each doubling of the distance.
    #[test]
    fn each_doubling_of_the_distance_halves_the_detail_and_the_last_ring_ends_at_the_radius() {
        assert_eq!(rings(128, 16), [(0, 16), (1, 32), (2, 64), (3, 128)]);
        assert_eq!(rings(200, 10), [(0, 10), (1, 20), (2, 40), (3, 80), (4, 200)]);
        assert_eq!(rings(20, 16), [(0, 16), (1, 20)]);
        assert_eq!(rings(5, 16), [(0, 5)]);
        assert_eq!(rings(0, 0), [(0, 0)]);
        assert_eq!(rings(9, 0), [(0, 0), (1, 0), (2, 0), (3, 0), (4, 9)]);
        assert_eq!(rings(u32::MAX, u32::MAX), [(0, FarView::MAX_RADIUS)]);
    }
}
