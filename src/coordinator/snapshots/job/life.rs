//! Who is alive: a restore makes nobody a second time.

use super::phase::{Phase, Piece};
use super::{Job, StoredPlaces, Surroundings};
use crate::coordinator::snapshots::{EntityRestore, SnapshotOrder};
use crate::coordinator::threads::WorkError;
use crate::snapshot::Snapshot;
use crate::space::ColumnPos;
use crate::storage::EntityRecord;
use uuid::Uuid;

/// What is known of somebody's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Alive,
    Dead,
    /// A region has to end its tick first.
    Unknown,
}

impl Job {
    /// The entities of a column that come into the world: nobody who is alive.
    pub(super) fn coming(
        &mut self,
        snapshot: &Snapshot,
        column: ColumnPos,
        mode: EntityRestore,
        world: &mut Surroundings,
    ) -> Vec<EntityRecord> {
        if mode == EntityRestore::Keep {
            return Vec::new();
        }
        let area = self.task.area();
        let dimension = self.dimension();
        let found = snapshot.column(column).map_or(&[][..], |column| column.entities());
        let (coming, alive): (Vec<_>, Vec<_>) = found
            .iter()
            .filter(|entity| area.contains(entity.block) && entity.player().is_none())
            .partition(|entity| self.life(entity.id, world) == Life::Dead);
        self.alive_elsewhere += alive.len();
        coming.into_iter().map(|entity| EntityRecord { dimension, ..entity.clone() }).collect()
    }

    /// Whether somebody is alive: in a region, on a journey, or stored where nothing is loaded. Who is stored where the column is
    /// loaded, and was not reported by its region, has died.
    fn life(&self, id: Uuid, world: &mut Surroundings) -> Life {
        if world.directory.knows(id) {
            return Life::Alive;
        }
        if self.removed.contains(&id) {
            return Life::Dead;
        }
        let stored = match world.saves.unwritten_entity(id) {
            Some(record) => record.as_ref().map(|record| (record.dimension, record.column())),
            None => self.stored.as_ref().and_then(|stored| stored.get(&id).copied()),
        };
        let Some((dimension, column)) = stored else { return Life::Dead };
        match world.dimensions.open.get_mut(&dimension).map(|open| open.has_reported(column)) {
            Some(Some(true)) => Life::Dead,
            Some(None) => Life::Unknown,
            _ => Life::Alive,
        }
    }

    /// Whether it has to be waited for until it is known who of the entities of a piece is alive.
    pub(super) fn is_unclear(&self, piece: &Piece, world: &mut Surroundings) -> bool {
        let (SnapshotOrder::Restore(restore), Some(Phase::Entities(_))) = (&self.task, &self.phase) else {
            return false;
        };
        let snapshot = restore.snapshot.held().filter(|_| restore.entities != EntityRestore::Keep);
        let column = snapshot.and_then(|snapshot| snapshot.column(piece.column));
        let entities = column.into_iter().flat_map(|column| column.entities());
        entities.map(|entity| entity.id).any(|id| self.life(id, world) == Life::Unknown)
    }

    pub(super) fn entities(&self) -> impl Iterator<Item = &EntityRecord> {
        let snapshot = match &self.task {
            SnapshotOrder::Restore(restore) if restore.entities != EntityRestore::Keep => restore.snapshot.held(),
            _ => None,
        };
        snapshot.into_iter().flat_map(|snapshot| snapshot.entities())
    }

    /// Where the entities of the snapshot are stored.
    pub fn take_stored(&mut self, stored: Result<StoredPlaces, WorkError>) {
        match stored {
            Ok(stored) => self.stored = Some(stored),
            Err(error) => self.fail(error),
        }
    }
}
