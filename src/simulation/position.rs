//! The positions of entities, and the viewing distances of viewers.

use crate::simulation::entities::StableId;
use crate::space::{BlockPos, BlockRay, ColumnPos, DimensionId};
use crate::storage::ViewerRecord;
use bevy::prelude::*;
use serde::{Deserialize, Serialize};

/// The position of an entity: a dimension, a block, and the offset within that block (0..1 on each axis).
///
/// A block position in `i64` and a small offset stay exact at any distance from the origin, unlike one `f32` per
/// coordinate. An entity whose position leaves its region's columns travels to the region that owns the new
/// place, together with its children.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, Reflect)]
#[type_path = "bevy_terrane"]
#[require(StableId)]
#[reflect(Component, Default, Clone)]
pub struct Position {
    /// The entity's dimension.
    pub dimension: DimensionId,
    /// The entity's block.
    pub block: BlockPos,
    /// The offset from that block's lowest corner, in blocks, 0..1 on each axis.
    pub offset: Vec3,
}

impl Position {
    /// The middle of the floor of `block`.
    pub fn new(dimension: DimensionId, block: BlockPos) -> Self {
        Self { dimension, block, offset: Vec3::new(0.5, 0.0, 0.5) }
    }

    /// The position of a point given in blocks from the world's origin.
    pub fn from_translation(dimension: DimensionId, translation: Vec3) -> Self {
        let mut position = Self { dimension, block: BlockPos::default(), offset: Vec3::ZERO };
        position.translate(translation);
        position
    }

    /// Moves by `blocks`. A vector that is not finite leaves the position unchanged.
    pub fn translate(&mut self, blocks: Vec3) {
        if !blocks.is_finite() {
            return;
        }
        let moved = self.offset + blocks;
        let whole = moved.floor();
        self.block = self.block.offset(whole.x as i64, whole.y as i64, whole.z as i64);
        // A tiny negative offset rounds up to 1.0, which would lie in the next block.
        self.offset = (moved - whole).min(Vec3::splat(1.0 - f32::EPSILON));
    }

    /// The blocks along a ray from this position.
    pub fn ray(&self, direction: Vec3) -> BlockRay {
        BlockRay::new(self.block, self.offset.as_dvec3().to_array(), direction.as_dvec3().to_array())
    }

    /// The column of the block.
    pub fn column(&self) -> ColumnPos {
        self.block.column()
    }

    /// The vector from the lowest corner of `origin` to this position, in blocks, for rendering with a camera near `origin`.
    pub fn relative_to(&self, origin: BlockPos) -> Vec3 {
        let axis = |to: i64, from: i64| (i128::from(to) - i128::from(from)) as f32;
        Vec3::new(axis(self.block.x, origin.x), axis(self.block.y, origin.y), axis(self.block.z, origin.z))
            + self.offset
    }
}

/// Keeps the columns around an entity (a camera, a player, a bot) loaded.
///
/// In the main world the entity also needs a `Transform` (one unit is one block), and the viewer names its dimension. In a
/// region world the entity's [`Position`] says where it is.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq, Reflect)]
#[type_path = "bevy_terrane"]
#[require(StableId)]
#[reflect(Component, Clone)]
pub struct Viewer {
    /// The distance within which columns are loaded, in columns (a disc). Columns are evicted two columns further out. With a
    /// radius of 4 or more, some of the columns in between are loaded along with others of their batch. Capped at
    /// [`MAX_RADIUS`](Self::MAX_RADIUS).
    pub radius: u32,
    /// The distance within which columns are generated and stored, in columns; columns beyond [`radius`](Self::radius) are not
    /// loaded. Values below `radius` count as `radius`, and values above
    /// [`MAX_GENERATION_RADIUS`](Self::MAX_GENERATION_RADIUS) as that. In a sparse dimension, a column beyond `radius` is skipped
    /// if any part of it is stored, at any height.
    pub generation_radius: u32,
    /// In a sparse dimension, the distance above and below within which chunks are generated and loaded, in chunks. Other
    /// dimensions load whole columns. Capped at [`MAX_RADIUS`](Self::MAX_RADIUS).
    pub vertical_radius: u32,
    dimension: Option<DimensionId>,
}

/// The radii of a [`Viewer`] in columns, within the limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ViewerRadii {
    /// The distance within which columns are loaded.
    pub load: u32,
    /// The distance within which columns are generated, at least `load`.
    pub generation: u32,
    /// The distance above and below within which chunks of a sparse dimension are generated and loaded, in chunks.
    pub vertical: u32,
}

impl ViewerRadii {
    /// These radii, clamped to the limits.
    pub fn new(load: u32, generation: u32, vertical: u32) -> Self {
        let load = load.min(Viewer::MAX_RADIUS);
        let generation = generation.min(Viewer::MAX_GENERATION_RADIUS).max(load);
        Self { load, generation, vertical: vertical.min(Viewer::MAX_RADIUS) }
    }
}

impl From<ViewerRecord> for ViewerRadii {
    fn from(record: ViewerRecord) -> Self {
        Viewer::from(record).radii()
    }
}

impl From<ViewerRecord> for Viewer {
    fn from(ViewerRecord { radius, generation_radius, vertical_radius }: ViewerRecord) -> Self {
        Self { radius, generation_radius, vertical_radius, dimension: None }
    }
}

impl Viewer {
    /// The default radius, in columns.
    pub const DEFAULT_RADIUS: u32 = 8;
    /// The largest radius, in columns. Larger values are clamped.
    pub const MAX_RADIUS: u32 = 512;
    /// The largest generation radius, in columns. Larger values are clamped. It is 32 km in every direction and 13 million
    /// columns, which take hours of work and tens of gigabytes in the store: farther than any player sees, and as much as one
    /// mistyped component should be able to cause.
    pub const MAX_GENERATION_RADIUS: u32 = 2_048;

    /// The default vertical radius, in chunks.
    pub const DEFAULT_VERTICAL_RADIUS: u32 = 16;

    /// A viewer for an entity of a region world, at its [`Position`].
    pub const fn new() -> Self {
        let (radius, vertical_radius) = (Self::DEFAULT_RADIUS, Self::DEFAULT_VERTICAL_RADIUS);
        Self { radius, generation_radius: 0, vertical_radius, dimension: None }
    }

    /// A viewer for an entity of the main world, in this dimension.
    pub const fn in_dimension(dimension: DimensionId) -> Self {
        Self { dimension: Some(dimension), ..Self::new() }
    }

    /// The same viewer with another radius, in columns.
    pub const fn with_radius(mut self, radius: u32) -> Self {
        self.radius = radius;
        self
    }

    /// The same viewer with another generation radius, in columns.
    ///
    /// ```
    /// # use bevy_terrane::prelude::*;
    /// let viewer = Viewer::new().with_radius(12).with_generation_radius(64);
    /// ```
    pub const fn with_generation_radius(mut self, radius: u32) -> Self {
        self.generation_radius = radius;
        self
    }

    /// The same viewer with another vertical radius, in chunks.
    pub const fn with_vertical_radius(mut self, radius: u32) -> Self {
        self.vertical_radius = radius;
        self
    }

    pub(crate) fn radii(&self) -> ViewerRadii {
        ViewerRadii::new(self.radius, self.generation_radius, self.vertical_radius)
    }

    pub(super) fn record(&self) -> ViewerRecord {
        let Self { radius, generation_radius, vertical_radius, dimension: _ } = *self;
        ViewerRecord { radius, generation_radius, vertical_radius }
    }

    /// The dimension, if one was given.
    pub const fn dimension(&self) -> Option<DimensionId> {
        self.dimension
    }
}

impl Default for Viewer {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_stays_normal_when_it_moves() {
        let mut position = Position::new(DimensionId(1), BlockPos::new(0, 0, 0));
        position.translate(Vec3::new(-1.0, 0.25, 0.75));
        assert_eq!(position.block, BlockPos::new(-1, 0, 1));
        assert_eq!(position.offset, Vec3::new(0.5, 0.25, 0.25));

        position.translate(Vec3::new(-0.5 - 1e-12, 0.0, 0.0));
        assert!(position.offset.cmpge(Vec3::ZERO).all() && position.offset.cmplt(Vec3::ONE).all());
    }

    #[test]
    fn movement_that_is_no_number_changes_nothing() {
        let mut position = Position::new(DimensionId(1), BlockPos::new(5, 6, 7));
        let before = position;
        position.translate(Vec3::new(f32::NAN, 0.0, 0.0));
        position.translate(Vec3::new(f32::INFINITY, 0.0, 0.0));
        assert_eq!(position, before);
    }

    #[test]
    fn radii_count_within_their_limits_and_in_order() {
        let radii = |load, generation, vertical| ViewerRadii { load, generation, vertical };
        assert_eq!(Viewer::new().with_radius(12).radii(), radii(12, 12, 16));
        assert_eq!(ViewerRadii::new(12, 5, 3), radii(12, 12, 3));
        assert_eq!(ViewerRadii::new(u32::MAX, u32::MAX, u32::MAX), radii(512, 2_048, 512));
        assert_eq!(Viewer::new().with_generation_radius(64).with_vertical_radius(7).radii(), radii(8, 64, 7));
    }

    #[test]
    fn far_from_the_origin_nothing_is_rounded() {
        let far = BlockPos::new(1 << 50, 0, -(1 << 50));
        let mut position = Position::new(DimensionId(1), far);
        position.translate(Vec3::new(0.25, 0.0, 0.0));
        assert_eq!(position.relative_to(far), Vec3::new(0.75, 0.0, 0.5));
    }
}
