//! The input and the output of a region's tick.

use super::columns::blocks::BlockAccessError;
use super::columns::column_source::FetchedColumn;
use super::columns::column_work::Answer;
use super::columns::light::RegionLight;
use super::{Position, ViewerRadii};
use crate::block::BlockId;
use crate::chunk::Chunk;
use crate::light::ColumnLight;
use crate::region::{RegionId, RegionPart};
use crate::simulation::actions::{Action, ActionContext, DecidedAction, Refusal};
use crate::simulation::components::TakenComponent;
use crate::simulation::components::mirrored::MirroredChanges;
use crate::simulation::components::relationships::TakenRelationship;
use crate::simulation::components::resources::TakenResource;
use crate::simulation::entities::MoveCause;
use crate::simulation::letters::letter::{Letter, Undeliverable};
use crate::space::{BlockPos, ChunkPos, ColumnPos, DimensionId, HeightSet, SectionPos};
use crate::storage::{EntityRecord, LoadedColumn, SaveBatch};
use bevy::prelude::{Entity, Message, TypePath};
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, ops::AddAssign, sync::Arc, time::Duration};
use uuid::Uuid;

/// An entity between two region worlds, with its components and followers.
pub struct Traveller {
    /// Its stable id.
    pub id: Uuid,
    /// Its destination.
    pub position: Position,
    /// The viewers among the entity and its followers, each with its radii.
    pub viewers: Vec<(Uuid, ViewerRadii)>,
    /// The stored form while in transit, if it crosses and has a saved component. In a world that several servers share also
    /// those of its followers that are not children, which are stored with their parents.
    pub records: Vec<EntityRecord>,
    /// The commit that stored it, once that is known.
    pub stored_with: Option<u64>,
    /// The columns in which it and its followers are stored while in transit. A follower with a position of its own is stored
    /// at that position.
    pub stored_in: Vec<(DimensionId, ColumnPos)>,
    /// The letters that wait for it and its followers.
    pub letters: Vec<Letter>,
    /// The stable ids of it and its followers.
    pub ids: Vec<Uuid>,
    /// The same number for all travellers that left a world together, and only for those: references among them survive.
    pub(super) origin: u64,
    pub(super) cause: MoveCause,
    /// The entity itself comes first.
    pub(super) followers: Vec<Passenger>,
}

/// One entity of a traveller, between two worlds.
pub(super) struct Passenger {
    /// The entity in the world that it left.
    pub entity: Entity,
    pub components: Vec<TakenComponent>,
    /// The relationships that point to it.
    pub relationships: Vec<TakenRelationship>,
}

/// Changes a block from the main world. The region that owns it makes the edit before its next tick; in a dimension that a
/// [`ChunkSyncClient`](crate::view::ChunkSyncClient) shows, the server does.
///
/// The main world shows the new block at the end of the frame, as *predicted*
/// ([`PublishedColumns::is_predicted`](crate::view::PublishedColumns::is_predicted)), until the decision about the edit is
/// published. A failed edit is taken back, and returns as [`BlockRefused`](crate::view::BlockRefused).
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TypePath)]
#[type_path = "bevy_terrane"]
pub struct SetBlock {
    /// The dimension.
    pub dimension: DimensionId,
    /// The position of the block.
    pub position: BlockPos,
    /// The new block.
    pub block: BlockId,
}

/// Sets a block, wherever the entity is and whatever it has: for creative games.
impl Action for SetBlock {
    fn apply(&self, context: &mut ActionContext) -> Result<(), Refusal> {
        if context.position().dimension != self.dimension {
            return Err(Refusal::OutOfReach(self.position));
        }
        context.set_block(self.position, self.block).map(drop)
    }
}

/// A [`SetBlock`] on its way to a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockEdit {
    /// The request.
    pub request: SetBlock,
    /// The number under which the main world waits for the decision; `None` if it does not.
    pub number: Option<u64>,
}

/// The input of a region's next tick. A region without a world consists only of its inbox.
#[derive(Default)]
pub struct Inbox {
    /// Columns that were loaded or generated for it.
    pub columns: Vec<LoadedColumn>,
    /// The light of columns that come from another region.
    pub light: RegionLight,
    /// Entities that arrive.
    pub travellers: Vec<Traveller>,
    /// The resources that a split assigned to this region.
    pub resources: Vec<TakenResource>,
    /// Columns to evict.
    pub evict: Vec<ColumnPos>,
    /// Parts of columns to evict.
    pub cut: Vec<(ColumnPos, HeightSet)>,
    /// Blocks to change.
    pub edits: Vec<BlockEdit>,
    /// Messages and closures, in the order in which they were sent.
    pub letters: Vec<Letter>,
    /// Sections of a region that has no world yet. Its world takes them over as soon as it begins.
    pub sections: FxHashSet<SectionPos>,
}

impl Inbox {
    /// Moves the contents of `other` to the end of this inbox.
    pub fn append(&mut self, mut other: Self) {
        self.columns.append(&mut other.columns);
        self.light.append(other.light);
        self.travellers.append(&mut other.travellers);
        self.resources.append(&mut other.resources);
        self.evict.append(&mut other.evict);
        self.cut.append(&mut other.cut);
        self.edits.append(&mut other.edits);
        self.letters.append(&mut other.letters);
        self.sections.extend(other.sections);
    }

    /// Divides the waiting resources, for a region that splits before its first tick.
    pub fn split_resources(&mut self, part: &RegionPart) -> Vec<TakenResource> {
        self.resources.iter_mut().map(|(origin, resource)| (*origin, resource.divide(part))).collect()
    }

    /// Takes out everything that lies in columns for which `wanted` returns `true`. Letters to an entity stay with the entity.
    /// Resources are left: [`split_resources`](Self::split_resources) divides them.
    pub fn split_off(&mut self, wanted: impl Fn(ColumnPos) -> bool) -> Self {
        let mut travellers: Vec<_> =
            self.travellers.extract_if(.., |traveller| wanted(traveller.position.column())).collect();
        for traveller in &mut travellers {
            let Traveller { ids, letters, .. } = traveller;
            let is_theirs = |letter: &mut Letter| letter.entity().is_some_and(|id| ids.contains(&id));
            letters.extend(self.letters.extract_if(.., is_theirs));
        }
        Self {
            columns: self.columns.extract_if(.., |loaded| wanted(loaded.column.pos())).collect(),
            light: self.light.split_off(&wanted),
            travellers,
            evict: self.evict.extract_if(.., |column| wanted(*column)).collect(),
            cut: self.cut.extract_if(.., |(column, _)| wanted(*column)).collect(),
            edits: self.edits.extract_if(.., |edit| wanted(edit.request.position.column())).collect(),
            letters: self
                .letters
                .extract_if(.., |letter| letter.column().is_some_and(|(_, column)| wanted(column)))
                .collect(),
            ..Self::default()
        }
    }
}

/// The newest state of a mirrored entity.
pub struct MirrorUpdate {
    /// Its stable id.
    pub id: Uuid,
    /// `true` if the main world does not know the entity, or was told since that it is gone. Set only when published.
    pub is_new: bool,
    /// Its position, and the dimension's clock at that tick; `None` if the entity is gone.
    pub position: Option<(Position, Duration)>,
    /// The changed mirrored components.
    pub components: MirroredChanges,
}

impl MirrorUpdate {
    /// An update that removes the entity's mirror.
    pub fn gone(id: Uuid) -> Self {
        Self { id, is_new: false, position: None, components: MirroredChanges::default() }
    }
}

/// The output of a region world after a tick or another task.
#[derive(Default)]
pub struct Outbox {
    /// The newest version of every changed chunk.
    pub changed: Vec<(ChunkPos, Arc<Chunk>)>,
    /// The light of columns that arrived, and of those whose light has changed.
    pub light: Vec<ColumnLight>,
    /// Entities that left the region's columns.
    pub travellers: Vec<Traveller>,
    /// Evicted columns.
    pub left: Vec<LoadedColumn>,
    /// Columns that were due for eviction but stay because a viewer stands in them.
    pub kept: Vec<ColumnPos>,
    /// Evicted parts of columns, without entities.
    pub cut: Vec<LoadedColumn>,
    /// The data to save: everything unsaved, if the task asked for it or if something left the region.
    pub save: SaveBatch,
    /// New columns that the game's systems were told of. What they placed there is in `save`, at the latest.
    pub told: BTreeSet<ColumnPos>,
    /// Mirrored entities that changed or are gone.
    pub mirrors: Vec<MirrorUpdate>,
    /// All viewers of the region by their stable ids, sorted, with position and radii; empty if each is in the same chunk as before.
    pub viewers: Vec<(Uuid, Position, ViewerRadii)>,
    /// Viewers that no longer exist.
    pub viewers_gone: Vec<Uuid>,
    /// Edits that the main world waits for and that were made.
    pub made: Vec<BlockEdit>,
    /// Edits that failed, with the reason.
    pub refused: Vec<(BlockEdit, BlockAccessError)>,
    /// Actions that were decided.
    pub acted: Vec<DecidedAction>,
    /// Actions that were done, now or earlier, and whose effects are in `save`, with their entities.
    pub saved_actions: Vec<(u64, Uuid)>,
    /// The stable ids that are new in this region since its last outbox, sorted: spawned, loaded, arrived, absorbed.
    pub appeared: Vec<Uuid>,
    /// The stable ids that have left or disappeared from the region for any reason, sorted.
    pub gone: Vec<Uuid>,
    /// The contents of the region, for the statistics.
    pub numbers: RegionNumbers,
    /// Columns that systems loaded or generated during the tick, as they were at that moment.
    pub fetched: Vec<FetchedColumn>,
    /// Letters from systems of the region, in order.
    pub letters: Vec<Letter>,
    /// Letters that reached the region and could not be delivered.
    pub undelivered: Vec<(Letter, Undeliverable)>,
    /// The contents of the parts of a split, by the part's region.
    pub parts: Vec<(RegionId, Inbox)>,
    /// Completed work on columns.
    pub worked: Vec<Answer>,
}

/// The contents of a region, for the statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionNumbers {
    /// Loaded columns.
    pub columns: usize,
    /// Entities with a stable id.
    pub entities: usize,
    /// Viewers.
    pub viewers: usize,
}

impl AddAssign for RegionNumbers {
    fn add_assign(&mut self, other: Self) {
        self.columns += other.columns;
        self.entities += other.entities;
        self.viewers += other.viewers;
    }
}

impl Outbox {
    /// Returns `true` if the task has nothing to report, apart from the numbers.
    pub fn is_empty(&self) -> bool {
        let Self {
            changed,
            light,
            travellers,
            left,
            kept,
            cut,
            save,
            told,
            mirrors,
            viewers,
            viewers_gone,
            made,
            refused,
            acted,
            saved_actions,
            appeared,
            gone,
            numbers: _,
            fetched,
            letters,
            undelivered,
            parts,
            worked,
        } = self;
        changed.is_empty()
            && light.is_empty()
            && travellers.is_empty()
            && left.is_empty()
            && kept.is_empty()
            && cut.is_empty()
            && save.is_empty()
            && told.is_empty()
            && mirrors.is_empty()
            && viewers.is_empty()
            && viewers_gone.is_empty()
            && made.is_empty()
            && refused.is_empty()
            && acted.is_empty()
            && saved_actions.is_empty()
            && appeared.is_empty()
            && gone.is_empty()
            && fetched.is_empty()
            && letters.is_empty()
            && undelivered.is_empty()
            && parts.is_empty()
            && worked.is_empty()
    }
}
