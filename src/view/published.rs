//! The published columns: the blocks that the main world sees.

use super::light::{PublishedLight, outdate};
use crate::block::{BlockId, BlockRegistry};
use crate::chunk::{BlockChange, Column, Predictions, RayHit, cast_ray};
use crate::light::{ColumnLight, Light, LightTable};
use crate::simulation::SetBlock;
use crate::simulation::{BlockTypes, Position};
use crate::space::{BlockPos, ChunkPos, ColumnPos, DimensionId, HeightSet};
use bevy::ecs::system::SystemParam;
use bevy::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The columns as the regions published them last, and in them the *predicted* blocks: those of each
/// [`SetBlock`](super::SetBlock) that is not decided yet. Their chunks are shared with the regions until either side changes
/// them.
#[derive(Resource, Clone, Debug, Default, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(opaque)]
#[reflect(Resource, Clone, Default)]
pub struct PublishedColumns {
    /// The columns without predictions.
    pub(super) confirmed: FxHashMap<(DimensionId, ColumnPos), Column>,
    pub(super) light: PublishedLight,
    /// The daylight of the dimensions, from 0 to 1.
    pub(super) daylight: FxHashMap<DimensionId, f32>,
    pub(super) predictions: Predictions,
}

impl PublishedColumns {
    /// A published column.
    pub fn column(&self, dimension: DimensionId, column: ColumnPos) -> Option<&Column> {
        self.predictions.column((dimension, column)).or_else(|| self.confirmed(dimension, column))
    }

    /// The light of a published column; `None` if it is not known yet.
    pub fn light(&self, dimension: DimensionId, column: ColumnPos) -> Option<&ColumnLight> {
        self.light.get((dimension, column))
    }

    /// The daylight of a dimension, from 0 at night to 1 by day. Without a [`TimeOfDay`](crate::simulation::TimeOfDay) it is 1.
    pub fn daylight(&self, dimension: DimensionId) -> f32 {
        self.daylight.get(&dimension).copied().unwrap_or(1.0)
    }

    /// Returns `true` if light is computed in this world.
    pub fn has_light(&self) -> bool {
        self.light.table.is_some()
    }

    /// Lets light be shown.
    pub(crate) fn set_light(&mut self, table: LightTable) {
        self.light.table = Some(Arc::new(table));
    }

    pub(super) fn light_table(&self) -> Option<Arc<LightTable>> {
        self.light.table.clone()
    }

    /// A column as its region published it last, without predictions.
    pub(super) fn confirmed(&self, dimension: DimensionId, column: ColumnPos) -> Option<&Column> {
        self.confirmed.get(&(dimension, column))
    }

    /// Returns `true` if the block is predicted: it shows a [`SetBlock`](super::SetBlock) that the region, or the server, has
    /// not decided on.
    pub fn is_predicted(&self, dimension: DimensionId, position: BlockPos) -> bool {
        self.predictions.is_predicted(dimension, position)
    }

    /// Shows an edit before it is decided. Returns `false` if it is not shown, because its column is not published or too many
    /// edits are predicted.
    pub(super) fn predict(&mut self, number: u64, edit: SetBlock, blocks: &BlockRegistry) -> bool {
        let SetBlock { dimension, position, block } = edit;
        blocks.contains(block)
            && self.predict_changes(number, dimension, &[(position, BlockChange::Block(block))], blocks)
    }

    /// Shows changes of blocks before they are decided, as [`predict`](Self::predict) does.
    pub(super) fn predict_changes(
        &mut self,
        number: u64,
        dimension: DimensionId,
        changes: &[(BlockPos, BlockChange)],
        types: &BlockRegistry,
    ) -> bool {
        let confirmed = |place| self.confirmed.get(&place);
        let is_shown = self.predictions.predict(number, dimension, changes, confirmed, types);
        self.light.is_outdated |= is_shown;
        is_shown
    }

    /// Changes what an undecided edit shows. Returns the chunks that look different.
    pub(super) fn replace_predicted(
        &mut self,
        number: u64,
        dimension: DimensionId,
        changes: &[(BlockPos, BlockChange)],
        types: &BlockRegistry,
    ) -> FxHashSet<(DimensionId, ChunkPos)> {
        let confirmed = |place| self.confirmed.get(&place);
        let other = self.predictions.replace(number, dimension, changes, confirmed, types);
        self.light.is_outdated |= !other.is_empty();
        other
    }

    /// Shows columns as they changed, which include the decisions about these edits. Returns the chunks that change because an
    /// edit was decided otherwise than predicted.
    pub(super) fn follow(
        &mut self,
        changed: impl IntoIterator<Item = (DimensionId, ColumnPos)>,
        decided: impl IntoIterator<Item = u64>,
        blocks: &BlockRegistry,
    ) -> FxHashSet<(DimensionId, ChunkPos)> {
        outdate(self);
        self.predictions.follow(changed, decided, |place| self.confirmed.get(&place), blocks)
    }

    /// Ends the predictions in a dimension that is gone.
    pub(super) fn forget_predictions(&mut self, dimension: DimensionId) {
        outdate(self);
        self.predictions.forget(dimension);
    }

    /// All published columns, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (DimensionId, &Column)> {
        self.confirmed.iter().map(|(place, column)| (place.0, self.predictions.column(*place).unwrap_or(column)))
    }

    /// The number of published columns.
    pub fn len(&self) -> usize {
        self.confirmed.len()
    }

    /// Returns `true` if no column is published.
    pub fn is_empty(&self) -> bool {
        self.confirmed.is_empty()
    }
}

/// Reads published blocks in the main world. It never waits for a region.
///
/// ```
/// use bevy_terrane::prelude::*;
///
/// fn what_is_below(blocks: PublishedBlocks, dimensions: Res<Dimensions>) {
///     if let Some(block) = blocks.block(dimensions.id("overworld"), BlockPos::new(0, -1, 0)) {
///         info!("{block}");
///     }
/// }
/// # bevy::ecs::system::assert_is_system(what_is_below);
/// ```
#[derive(SystemParam)]
pub struct PublishedBlocks<'w> {
    #[system_param(
        validation_message = "there are no PublishedBlocks here: they are for the main world of an app with \
        TerranePlugin; systems of regions have RegionBlocks"
    )]
    columns: Res<'w, PublishedColumns>,
    types: Res<'w, BlockTypes>,
}

impl PublishedBlocks<'_> {
    /// The block at `position` in a dimension, [predicted](Self::is_predicted) or published; `None` if it is not loaded.
    pub fn block(&self, dimension: DimensionId, position: BlockPos) -> Option<BlockId> {
        let column = self.column(dimension, position.column())?;
        column.is_loaded(position.chunk().y).then(|| column.block(position))
    }

    /// Returns `true` if the block is predicted: it shows a [`SetBlock`](super::SetBlock) that the region, or the server, has
    /// not decided on.
    pub fn is_predicted(&self, dimension: DimensionId, position: BlockPos) -> bool {
        self.columns.is_predicted(dimension, position)
    }

    /// The highest block at `x`, `z` that is not air; `None` if the column is not loaded.
    pub fn surface(&self, dimension: DimensionId, x: i64, z: i64) -> Option<BlockPos> {
        let place = BlockPos::new(x, 0, z);
        let [in_x, _, in_z] = place.in_chunk();
        let y = self.column(dimension, place.column())?.surface(in_x, in_z)?;
        Some(BlockPos::new(x, y, z))
    }

    /// The first wanted block whose [shape](crate::block::BlockShape::boxes) a ray hits, up to `reach` blocks away, from any block
    /// position with the same accuracy. Columns that are not published have no blocks. See [`cast_ray`](crate::chunk::cast_ray).
    ///
    /// ```
    /// use bevy_terrane::prelude::*;
    ///
    /// /// Removes the block in the middle of the view.
    /// fn dig(camera: Single<(&Transform, &Viewer)>, blocks: PublishedBlocks, mut edits: MessageWriter<SetBlock>) {
    ///     let (camera, viewer) = *camera;
    ///     let Some(dimension) = viewer.dimension() else { return };
    ///     let eye = Position::from_translation(dimension, camera.translation);
    ///     if let Some(hit) = blocks.cast_ray(eye, camera.forward(), 8.0, |block| block != BlockId::AIR) {
    ///         edits.write(SetBlock { dimension, position: hit.block, block: BlockId::AIR });
    ///     }
    /// }
    /// # bevy::ecs::system::assert_is_system(dig);
    /// ```
    pub fn cast_ray(
        &self,
        from: Position,
        direction: impl Into<Vec3>,
        reach: f64,
        is_wanted: impl Fn(BlockId) -> bool,
    ) -> Option<RayHit> {
        let chunk = |pos: ChunkPos| Some(&**self.column(from.dimension, pos.column())?.chunk(pos.y)?);
        cast_ray(from.ray(direction.into()), reach, &self.types.0, chunk, is_wanted)
    }

    /// The light at `position`; `None` if it is not known yet. Opaque blocks are dark inside: ask for the block in front.
    pub fn light(&self, dimension: DimensionId, position: BlockPos) -> Option<Light> {
        let levels = self.columns.light(dimension, position.column())?.levels(position)?;
        Some(Light::new(levels, self.columns.daylight(dimension)))
    }

    /// Returns `true` if the block is known to be opaque.
    pub fn is_opaque(&self, dimension: DimensionId, position: BlockPos) -> bool {
        self.block(dimension, position).is_some_and(|block| self.types.block(block).is_opaque())
    }

    /// A column of a dimension.
    pub fn column(&self, dimension: DimensionId, column: ColumnPos) -> Option<&Column> {
        self.columns.column(dimension, column)
    }
}

/// A published column has changed, or predicted blocks of it. [`PublishedColumns`] has its present state, which may be newer
/// than this message.
#[derive(Message, Clone, Debug)]
pub struct ColumnChanged {
    /// The column's dimension.
    pub dimension: DimensionId,
    /// The column.
    pub column: ColumnPos,
    /// The change.
    pub change: ColumnChange,
}

/// A change of a column in the main world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnChange {
    /// The column was loaded.
    Loaded,
    /// The chunk at this height changed. The column may have none there now, which means air.
    Chunk(i64),
    /// In a sparse dimension: the chunks at these heights were loaded or unloaded;
    /// [`Column::is_loaded`](crate::chunk::Column::is_loaded) tells which.
    Heights(HeightSet),
    /// The light of the chunks at these heights changed.
    Light(HeightSet),
    /// The column was unloaded.
    Unloaded,
}
