//! What generated columns look like from afar, in the main world.

use super::Dimension;
use super::viewers::Place;
use crate::chunk::ColumnSummary;
use crate::coordinator::{FarCenter, FarNews, FarRadii, FarUpdate, FarWish, MAX_FAR_RADIUS, MainLink, requests};
use crate::simulation::Viewer;
use crate::space::{ColumnPos, DimensionId};
use bevy::prelude::*;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use uuid::Uuid;

/// Listens to what generated columns look like from afar, loaded or not: near to far, coarser with distance, and no more
/// than so many bytes a second.
///
/// It stands beside a [`Viewer`] of the main world, on any entity with a `Transform` or a
/// [`Position`](crate::simulation::Position) ([`in_dimension`](Self::in_dimension)), or follows a viewer that lives in
/// the regions ([`of_viewer`](Self::of_viewer)): one for a camera, one for each connected player. All of its fields may
/// be changed at any time. What it gets are [`FarColumnChanged`]s; [`FarColumns`] has what is there now.
///
/// Each column comes once, and again when it looks different, or finer when the listener comes near; what was sent finer
/// than it has to be is not sent coarser. A change is told of when it is handed out to be saved, with the autosave at the
/// latest. A listener whose messages nobody takes in (the app stands still) gets no more until they are; a game that cannot
/// pass them on sets [`bytes_per_second`](Self::bytes_per_second) to 0 meanwhile.
///
/// ```
/// # use bevy_terrane::prelude::*;
/// fn spawn(mut commands: Commands, dimension: Single<Entity, With<Dimension>>) {
///     let near = Viewer::in_dimension(*dimension).with_radius(12);
///     commands.spawn((near, FarView::new().with_radius(128), Transform::default()));
/// }
/// # bevy::ecs::system::assert_is_system(spawn);
/// ```
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Component, Clone)]
pub struct FarView {
    /// Columns are sent within this distance, in columns (a disc), and told of as gone four columns further out. At
    /// most [`MAX_RADIUS`](Self::MAX_RADIUS) counts; 64 by default.
    pub radius: u32,
    /// Within this distance, in columns, a cell is one block wide; each doubling of the distance doubles the cells, up
    /// to one for a whole column. 16 by default.
    pub detail_radius: u32,
    /// What may be sent, in bytes a second: the binary form of a summary, and 16 bytes for its place; a mebibyte by default.
    /// 0 pauses it.
    pub bytes_per_second: u64,
    // Stable ids are reflected only with some of Bevy's features.
    #[reflect(ignore)]
    target: Target,
}

/// Where the middle of a far view is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Target {
    /// Where the viewer is that it stands beside.
    #[default]
    Beside,
    /// Where its entity is, in that dimension.
    Dimension(Entity),
    /// Where the viewer with this stable id is, in the regions.
    Viewer(Uuid),
}

impl FarView {
    /// The largest radius, in columns: what is asked for beyond it is cut.
    pub const MAX_RADIUS: u32 = MAX_FAR_RADIUS;

    const fn at(target: Target) -> Self {
        Self { radius: 64, detail_radius: 16, bytes_per_second: 1 << 20, target }
    }

    /// For an entity with a [`Viewer`]: in its dimension.
    pub const fn new() -> Self {
        Self::at(Target::Beside)
    }

    /// For an entity with a `Transform` or a [`Position`](crate::simulation::Position), in the dimension of the entity
    /// `dimension`.
    pub const fn in_dimension(dimension: Entity) -> Self {
        Self::at(Target::Dimension(dimension))
    }

    /// For any entity: around the viewer in the regions with this [stable id](crate::simulation::StableId), in whatever
    /// dimension that is. While there is none, it stays where it was.
    pub const fn of_viewer(id: Uuid) -> Self {
        Self::at(Target::Viewer(id))
    }

    /// The same with another radius, in columns.
    pub const fn with_radius(mut self, radius: u32) -> Self {
        self.radius = radius;
        self
    }

    /// The same with another detail radius, in columns.
    pub const fn with_detail_radius(mut self, radius: u32) -> Self {
        self.detail_radius = radius;
        self
    }

    /// The same with another cap, in bytes a second.
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

/// A listener is told what a column looks like, which replaces what it was told before, or that what it knows of the column does
/// not hold any more: it is too far away, the listener is in another dimension, or the dimension closes. Of a column that
/// changed just beyond the radius it is told so too. A listener that is despawned is not told.
#[derive(Message, Clone, Debug)]
pub struct FarColumnChanged {
    /// The entity with the [`FarView`].
    pub listener: Entity,
    /// The column's dimension.
    pub dimension: DimensionId,
    /// The column.
    pub column: ColumnPos,
    /// What it looks like; `None` if it is gone.
    pub summary: Option<Arc<ColumnSummary>>,
    /// What it took of the listener's cap, in bytes.
    pub bytes: u64,
}

/// What each listener knows now.
#[derive(Resource, Debug, Default)]
pub struct FarColumns {
    listeners: BTreeMap<Entity, Known>,
    lives: u64,
}

#[derive(Debug)]
struct Known {
    life: u64,
    sent: Option<FarWish>,
    columns: FxHashMap<(DimensionId, ColumnPos), Arc<ColumnSummary>>,
}

impl FarColumns {
    /// What the listener with this entity knows of a column.
    pub fn column(&self, listener: Entity, dimension: DimensionId, column: ColumnPos) -> Option<&Arc<ColumnSummary>> {
        self.listeners.get(&listener)?.columns.get(&(dimension, column))
    }

    /// All that the listener with this entity knows, in no particular order.
    pub fn iter(&self, listener: Entity) -> impl Iterator<Item = (DimensionId, ColumnPos, &Arc<ColumnSummary>)> {
        let columns = self.listeners.get(&listener).into_iter().flat_map(|known| &known.columns);
        columns.map(|((dimension, column), summary)| (*dimension, *column, summary))
    }

    /// How many columns the listener with this entity knows.
    pub fn len(&self, listener: Entity) -> usize {
        self.listeners.get(&listener).map_or(0, |known| known.columns.len())
    }

    /// Whether the listener with this entity knows nothing.
    pub fn is_empty(&self, listener: Entity) -> bool {
        self.len(listener) == 0
    }
}

pub(super) fn build(app: &mut App) {
    app.register_type::<FarView>().init_resource::<FarColumns>().add_message::<FarColumnChanged>();
}

pub(super) fn send_far_views(
    link: Res<MainLink>,
    listeners: Query<(Entity, &FarView, Option<&Viewer>, Place)>,
    dimensions: Query<(), With<Dimension>>,
    mut removed: RemovedComponents<FarView>,
    mut known: ResMut<FarColumns>,
) {
    for listener in removed.read() {
        if known.listeners.remove(&listener).is_some() {
            link.request(requests::remove_far_view, listener);
        }
    }
    for (entity, view, viewer, place) in &listeners {
        let FarView { radius, detail_radius, bytes_per_second, target } = *view;
        let dimension = match target {
            Target::Beside => viewer.and_then(Viewer::dimension),
            Target::Dimension(dimension) => Some(dimension),
            Target::Viewer(_) => None,
        };
        let column = place.position().map(|position| position.column());
        let center = match (target, dimension.filter(|dimension| dimensions.contains(*dimension)), column) {
            (Target::Viewer(id), ..) => FarCenter::Viewer(id),
            (_, Some(dimension), Some(column)) => FarCenter::Column { dimension, column },
            (_, None, _) => continue,
            (_, _, None) => {
                warn_once!("{entity} has a FarView without a Transform or a Position: it sees nothing");
                continue;
            }
        };
        let wish = FarWish { center, reach: FarRadii { radius, detail_radius }, bytes_per_second };
        known.ask(&link, entity, wish);
    }
}

impl FarColumns {
    fn ask(&mut self, link: &MainLink, listener: Entity, wish: FarWish) {
        let known = self.listeners.entry(listener).or_insert_with(|| {
            self.lives += 1;
            Known { life: self.lives, sent: None, columns: FxHashMap::default() }
        });
        if known.sent.replace(wish) != Some(wish) {
            link.request(requests::set_far_view, (listener, known.life, wish));
        }
    }

    /// Takes in what one listener is told, and appends what became of its columns.
    fn take(&mut self, update: FarUpdate, told: &mut Vec<FarColumnChanged>) {
        let FarUpdate { listener, life, dimension, news } = update;
        let Some(known) = self.listeners.get_mut(&listener).filter(|known| known.life == life) else { return };
        let gone = |column| FarColumnChanged { listener, dimension, column, summary: None, bytes: 0 };
        match news {
            FarNews::Column { column, summary, bytes } => {
                known.columns.insert((dimension, column), summary.clone());
                told.push(FarColumnChanged { listener, dimension, column, summary: Some(summary), bytes });
            }
            FarNews::Gone(column) => {
                known.columns.remove(&(dimension, column));
                told.push(gone(column));
            }
            FarNews::AllGone => {
                let all = known.columns.extract_if(|(of, _), _| *of == dimension).map(|((_, column), _)| column);
                let mut all: Vec<_> = all.collect();
                // Not in the order of a hash map.
                all.sort_unstable();
                told.extend(all.into_iter().map(gone));
            }
        }
    }
}

/// Takes in what listeners are told, and says so: then they are told more.
pub(super) fn apply(world: &mut World, updates: &mut VecDeque<FarUpdate>) {
    if updates.is_empty() {
        return;
    }
    let mut told = Vec::new();
    let mut taken = BTreeMap::new();
    let mut known = world.resource_mut::<FarColumns>();
    for update in updates.drain(..) {
        *taken.entry((update.listener, update.life)).or_default() += 1;
        known.take(update, &mut told);
    }
    world.write_message_batch(told);
    let link = world.resource::<MainLink>();
    for ((listener, life), updates) in taken {
        link.request(requests::note_taken, (listener, life, updates));
    }
}
