//! What goes into a region world with its tick, and what comes out.

use super::columns::blocks::BlockAccessError;
use super::columns::column_source::FetchedColumn;
use super::columns::column_work::Answer;
use super::letter::{Letter, Undeliverable};
use super::travel::components::TakenComponent;
use super::travel::entities::MoveCause;
use super::travel::mapping::BoxedComponent;
use super::travel::relationships::TakenRelationship;
use super::travel::resources::TakenResource;
use super::{Position, ViewerRadii};
use crate::block::BlockId;
use crate::chunk::Chunk;
use crate::region::{RegionId, RegionPart};
use crate::space::{BlockPos, ChunkPos, ColumnPos, DimensionId, HeightSet, SectionPos};
use crate::storage::{EntityRecord, LoadedColumn, SaveBatch};
use bevy::prelude::{Entity, Message};
use rustc_hash::{FxHashMap, FxHashSet};
use std::{sync::Arc, time::Duration};
use uuid::Uuid;

/// An entity between two region worlds: its components taken off, all that follows it with it.
pub struct Traveller {
    /// Its stable id.
    pub id: Uuid,
    /// Where it goes.
    pub position: Position,
    /// The viewers among it and what follows it, each with its radii.
    pub viewers: Vec<(Uuid, ViewerRadii)>,
    /// How it is stored while it is on its way, if it crosses and has a saved component.
    pub record: Option<EntityRecord>,
    /// The commit with which the store has it, once that is known.
    pub stored_with: Option<u64>,
    /// Where it and what follows it are stored while they are on their way: a follower with a position of its own is stored
    /// there.
    pub stored_in: Vec<(DimensionId, ColumnPos)>,
    /// What waits for it and for all that follows it.
    pub letters: Vec<Letter>,
    /// The stable ids of it and of all that follows it.
    pub ids: Vec<Uuid>,
    /// The same for all that left a world together, and for no others: references among them survive.
    pub(super) origin: u64,
    pub(super) cause: MoveCause,
    /// Itself first.
    pub(super) followers: Vec<Passenger>,
}

/// One entity of a traveller, between two worlds.
pub(super) struct Passenger {
    /// Who it was in the world that it left.
    pub entity: Entity,
    pub components: Vec<TakenComponent>,
    /// What leads to it.
    pub relationships: Vec<TakenRelationship>,
}

/// Changes a block of a region from the main world. It is applied before the region's next tick, and can be read when
/// that is published; `BlockRefused` comes back if it cannot be.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetBlock {
    /// The dimension's entity.
    pub dimension: Entity,
    /// Where.
    pub position: BlockPos,
    /// What is to be there.
    pub block: BlockId,
}

/// What waits for a region: taken in before its next tick. A region without a world is nothing else.
#[derive(Default)]
pub struct Inbox {
    /// Columns that were loaded or generated for it.
    pub columns: Vec<LoadedColumn>,
    /// Entities that walked in.
    pub travellers: Vec<Traveller>,
    /// What a split gave this region of the resources of the one that it was a part of.
    pub resources: Vec<TakenResource>,
    /// Columns that nobody needs any more.
    pub give_up: Vec<ColumnPos>,
    /// Parts of columns that nobody needs any more.
    pub cut: Vec<(ColumnPos, HeightSet)>,
    /// Blocks to change.
    pub edits: Vec<SetBlock>,
    /// Messages and closures, in the order in which they were sent.
    pub letters: Vec<Letter>,
    /// Sections of a region that has no world yet: that world's own from its begin.
    pub sections: FxHashSet<SectionPos>,
}

impl Inbox {
    /// Takes over all that waits in `other`.
    pub fn append(&mut self, mut other: Self) {
        self.columns.append(&mut other.columns);
        self.travellers.append(&mut other.travellers);
        self.resources.append(&mut other.resources);
        self.give_up.append(&mut other.give_up);
        self.cut.append(&mut other.cut);
        self.edits.append(&mut other.edits);
        self.letters.append(&mut other.letters);
        self.sections.extend(other.sections);
    }

    /// Divides the resources that wait: for a region that splits before it ever ticked.
    pub fn split_resources(&mut self, part: &RegionPart) -> Vec<TakenResource> {
        self.resources.iter_mut().map(|(origin, resource)| (*origin, resource.divide(part))).collect()
    }

    /// Takes out what lies in columns that `wanted` names; letters to entities go along with these. Resources stay:
    /// [`split_resources`](Self::split_resources) divides them.
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
            travellers,
            give_up: self.give_up.extract_if(.., |column| wanted(*column)).collect(),
            cut: self.cut.extract_if(.., |(column, _)| wanted(*column)).collect(),
            edits: self.edits.extract_if(.., |edit| wanted(edit.position.column())).collect(),
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
    /// The main world was never told of it, or that it was gone since: known only where it is published.
    pub is_new: bool,
    /// Where it is, and the dimension's clock at that tick; `None` if it is gone.
    pub position: Option<(Position, Duration)>,
    /// Changed mirrored components, by the number of their registration.
    pub components: FxHashMap<usize, BoxedComponent>,
}

impl MirrorUpdate {
    /// The entity is not to be seen any more.
    pub fn gone(id: Uuid) -> Self {
        Self { id, is_new: false, position: None, components: FxHashMap::default() }
    }
}

/// What a region world sends after a tick or another task.
#[derive(Default)]
pub struct Outbox {
    /// The newest chunks of all that changed.
    pub changed: Vec<(ChunkPos, Arc<Chunk>)>,
    /// Entities that left the region's columns.
    pub travellers: Vec<Traveller>,
    /// Columns that were given up.
    pub left: Vec<LoadedColumn>,
    /// Columns that were to be given up and stay, since a viewer stands in them.
    pub kept: Vec<ColumnPos>,
    /// Parts of columns that were given up, without entities.
    pub cut: Vec<LoadedColumn>,
    /// What is to be saved: everything unsaved, if the task asked for it or if something left the region.
    pub save: SaveBatch,
    /// Mirrored entities that changed or are gone.
    pub mirrors: Vec<MirrorUpdate>,
    /// All viewers of the region by their stable ids, sorted: where each is, and how far it reaches.
    pub viewers: Vec<(Uuid, Position, ViewerRadii)>,
    /// Viewers that are no more.
    pub viewers_gone: Vec<Uuid>,
    /// Edits that could not be made, with the reason.
    pub refused: Vec<(SetBlock, BlockAccessError)>,
    /// The stable ids that are new in this region since its last outbox, sorted: spawned, loaded, arrived, absorbed.
    pub appeared: Vec<Uuid>,
    /// The stable ids that are here no longer, for whatever reason, sorted.
    pub gone: Vec<Uuid>,
    /// Columns that the region has loaded, for the statistics.
    pub columns: usize,
    /// Entities in the region, for the statistics.
    pub entities: usize,
    /// Columns that systems loaded or generated within the tick, as they were then.
    pub fetched: Vec<FetchedColumn>,
    /// What systems of the region sent, in order.
    pub letters: Vec<Letter>,
    /// What reached the region and could not be handed over.
    pub undelivered: Vec<(Letter, Undeliverable)>,
    /// What the parts of a split take with them, by the part's region.
    pub parts: Vec<(RegionId, Inbox)>,
    /// Work on columns that was done.
    pub worked: Vec<Answer>,
}
