//! The work on single columns of a job, and whether an entity is alive: a restore never duplicates an entity.

use super::columns::{Piece, Turn};
use super::task::{StoredPlaces, Task};
use crate::coordinator::messages::snapshots::ColumnResult;
use crate::coordinator::messages::snapshots::{EntityRestore, SnapshotOrder};
use crate::coordinator::surroundings::Surroundings;
use crate::simulation::ColumnWork;
use crate::storage::EntityRecord;
use uuid::Uuid;

impl Task {
    pub fn capture(&mut self, piece: &Piece, world: &mut Surroundings) -> Turn {
        let Piece { column, .. } = *piece;
        if let SnapshotOrder::Capture(capture) = &*self.order
            && capture.leaves_ungenerated
            && !world.dimensions.open.get(&capture.dimension).is_some_and(|open| open.land.stored.is_completed(column))
        {
            self.end_column(column, ColumnResult::LeftOut);
            return Turn::Skip;
        }
        let entities = self.captured.parts().entities;
        Turn::Work(ColumnWork::Capture { column, area: self.area, entities })
    }

    pub fn restore(&mut self, piece: &Piece, _: &mut Surroundings) -> Turn {
        let (SnapshotOrder::Restore(restore), Some(snapshot)) = (&*self.order, self.snapshot.clone()) else {
            return Turn::Skip;
        };
        let mut area = self.area;
        area.min.y = area.min.y.max(piece.heights.start() << 4);
        area.max.y = area.max.y.min(piece.heights.end() << 4 | 15);
        Turn::Work(ColumnWork::Restore {
            column: piece.column,
            area,
            snapshot,
            filter: self.filter.clone(),
            removes_entities: restore.entities == EntityRestore::Replace,
        })
    }

    /// Adds the entities of a column, except players and entities that are alive.
    pub fn place_entities(&mut self, piece: &Piece, stored: Option<&StoredPlaces>, world: &mut Surroundings) -> Turn {
        let SnapshotOrder::Restore(restore) = &*self.order else { return Turn::Skip };
        let (Piece { column, .. }, area) = (piece, self.area);
        let (mut entities, mut alive) = (Vec::new(), 0);
        let snapshot = self.snapshot.as_ref().filter(|_| stored.is_some());
        let known = snapshot.and_then(|snapshot| snapshot.column(*column)).map_or(&[][..], |known| known.entities());
        for entity in known.iter().filter(|entity| area.contains(entity.block) && entity.player().is_none()) {
            match self.is_alive(entity.id, stored, world) {
                Some(false) => entities.push(EntityRecord { dimension: restore.dimension, ..entity.clone() }),
                None if piece.may_wait() => return Turn::Wait,
                Some(true) | None => alive += 1,
            }
        }
        self.outcome.alive_elsewhere += alive;
        Turn::Work(ColumnWork::PlaceEntities { column: *column, area, entities })
    }

    /// Returns `true` if the entity is alive: in a region, in transit, or stored in a column that is not loaded. An entity that
    /// is stored in a loaded column and was not reported by its region has died. `None` until a region has ended its tick.
    fn is_alive(&self, id: Uuid, stored: Option<&StoredPlaces>, world: &mut Surroundings) -> Option<bool> {
        if world.directory.knows(id) {
            return Some(true);
        }
        if self.removed.contains(&id) {
            return Some(false);
        }
        let place = stored.and_then(|stored| stored.place(id, &world.saves));
        let Some((dimension, column)) = place else { return Some(false) };
        match world.dimensions.open.get_mut(&dimension) {
            Some(open) => open.has_reported(column).map(|has_reported| !has_reported),
            None => Some(true),
        }
    }
}
