//! The slabs of a sparse dimension's columns: only the slabs near to viewers above and below are loaded of each column.
//!
//! A column comes with the slabs that viewers need. As viewers climb and fall, more slabs are generated or loaded and added to
//! it, and others are cut from it and saved, while the column stays with its region. A column that lacks slabs counts as
//! missing in the resident [`DistanceGraph`](crate::generation::DistanceGraph), like an absent column. All generated chunks
//! are stored, even those of air, so slabs that were ordered and are not needed any more can be dropped.

use crate::chunk::Column;
use crate::coordinator::columns::{ColumnState, Heights, Rest};
use crate::coordinator::demand::tickets::ViewerState;
use crate::coordinator::dimension::OpenDimension;
use crate::coordinator::publish::Publisher;
use crate::coordinator::saves::Saves;
use crate::simulation::LoadedColumn;
use crate::space::{ColumnPos, HeightSet};
use std::mem;

/// How many chunks farther up and down slabs are evicted than they are loaded.
const SLACK: u32 = 4;

impl OpenDimension {
    /// The chunk heights to order of a column; all of them if the dimension is not sparse.
    pub fn slabs_to_order(&self, column: ColumnPos) -> HeightSet {
        if !self.is_sparse() {
            return HeightSet::from(self.chunk_heights());
        }
        if self.owner(column).is_some() {
            return self.lacking_slabs(column);
        }
        let mut wanted = self.viewed_slabs(column, 0, 0);
        if wanted.is_empty() {
            // It is held on the rim, where no slabs are requested.
            wanted = self.viewed_slabs(column, 2, 0);
        }
        if let Some(heights) = self.columns.heights(column) {
            // A region fetched these heights; the rest of the stored data of them is to come.
            wanted.insert_all(&heights.loaded);
        }
        wanted
    }

    /// The slabs around the viewers that have the column in their load radius plus `rim` columns, `slack` chunks farther up and
    /// down.
    fn viewed_slabs(&self, column: ColumnPos, rim: u32, slack: u32) -> HeightSet {
        let mut heights = HeightSet::new();
        for ViewerState { center, height, radii, .. } in self.demand.viewers.values() {
            if column.distance_squared(*center) <= u128::from(radii.load + rim).pow(2) {
                heights.insert_all(&self.ground.window(*height, radii.vertical + slack));
            }
        }
        heights
    }

    /// The slabs that viewers need and the column's region does not have.
    fn lacking_slabs(&self, column: ColumnPos) -> HeightSet {
        let mut lacking = self.viewed_slabs(column, 0, 0);
        if let Some(Heights { loaded, ungenerated }) = self.columns.heights(column) {
            lacking.remove_all(loaded);
            lacking.remove_all(ungenerated);
        }
        lacking
    }

    /// The slabs around the height of the viewer that is nearest to the column.
    pub fn slabs_to_generate(&self, column: ColumnPos) -> HeightSet {
        let nearest = self.demand.viewers.values().min_by_key(|viewer| column.distance_squared(viewer.center));
        let around = |viewer: &ViewerState| self.ground.window(viewer.height, viewer.radii.vertical);
        nearest.map(around).unwrap_or_default()
    }

    /// Marks columns that lack slabs as missing, if these may be generated, and asks regions to evict slabs that are not needed
    /// any more.
    pub fn revise_slabs(&mut self) {
        let may_extend =
            self.orders.generation.settings.paused || self.orders.generation.allowance(self.time.real_now) > 0;
        for column in mem::take(&mut self.orders.revised) {
            // A column in another state comes here again when that state ends.
            if !self.is_sparse() || !self.columns.may_lack_slabs(column) || self.has_halted(column) || self.is_closing()
            {
                continue;
            }
            let is_held = self.is_held(column);
            let lacks_slabs = is_held && !self.lacking_slabs(column).is_empty();
            if lacks_slabs && may_extend {
                if self.land.resident.is_completed(column) {
                    self.make_missing(column);
                }
                continue;
            }
            self.land.resident.mark_completed(column);
            if lacks_slabs {
                self.orders.revised.insert(column);
                continue;
            }
            self.columns.deliver(column);
            let (Some(heights), Some(region)) =
                (self.columns.heights(column), self.regions.regionizer.region_at(column))
            else {
                continue;
            };
            let surplus = heights.loaded.difference(&self.viewed_slabs(column, 2, SLACK));
            if is_held && !surplus.is_empty() {
                self.inbox(region).cut.push((column, surplus));
                self.columns.leave_in_part(column);
            }
        }
    }

    /// Takes slabs that a region evicted.
    pub fn take_cut(&mut self, cut: Vec<LoadedColumn>, saves: &Saves, publisher: &mut Publisher) {
        let until = saves.stored_with();
        for loaded in cut {
            let column = loaded.column.pos();
            let heights = loaded.column.loaded().cloned().unwrap_or_default();
            heights.ranges().for_each(|heights| self.store.note_access(self.id, column.batch(), heights));
            if let Some(known) = self.columns.heights_mut(column) {
                known.loaded.remove_all(&heights);
            }
            if self.columns.get(column) == Some(ColumnState::Owned(Rest::Leaving)) {
                self.keep(column);
            }
            self.orders.revised.insert(column);
            if !saves.is_stored(until) {
                self.departed().keep_part(loaded, until);
            }
            publisher.cut(self.id, column, &heights);
        }
    }

    /// Returns `true` if the chunk height of a loaded column is loaded, or if the dimension does not have this height.
    pub fn has_height(&self, column: ColumnPos, height: i64) -> bool {
        let is_there = |known: &Heights| known.loaded.contains(height);
        !self.is_sparse()
            || !self.chunk_heights().contains(&height)
            || self.columns.heights(column).is_some_and(is_there)
    }

    /// The heights out of these that the column's region does not have.
    pub fn unloaded(&self, column: ColumnPos, heights: &HeightSet) -> HeightSet {
        self.columns.heights(column).map_or_else(|| heights.clone(), |known| heights.difference(&known.loaded))
    }

    /// The part of these slabs of a column that is not loaded yet, if any.
    pub fn new_slabs(&self, slabs: &Column) -> Option<Column> {
        let new = self.unloaded(slabs.pos(), slabs.loaded()?);
        (!new.is_empty()).then(|| slabs.clone().cut(&new))
    }

    /// Notes that a column, or some slabs of one, are with its region.
    pub fn note_loaded(&mut self, slabs: &Column) {
        if let (true, Some(heights)) = (self.is_sparse(), slabs.loaded())
            && let Some(known) = self.columns.heights_mut(slabs.pos())
        {
            known.loaded.insert_all(heights);
            known.ungenerated.remove_all(heights);
            self.orders.revised.insert(slabs.pos());
        }
    }

    /// Sets the slabs that the region has to exactly those of the column.
    pub fn correct_slabs(&mut self, column: &Column) {
        if let (Some(heights), Some(known)) = (column.loaded(), self.columns.heights_mut(column.pos())) {
            known.loaded = heights.clone();
            self.orders.revised.insert(column.pos());
        }
    }

    /// Notes heights that are neither stored nor missing while generation is paused.
    pub fn leave_out(&mut self, column: ColumnPos, heights: &HeightSet) {
        let is_left_out = self.orders.generation.settings.paused && !heights.is_empty();
        if let Some(known) = self.columns.heights_mut(column).filter(|_| is_left_out) {
            known.ungenerated.insert_all(heights);
        }
    }

    /// Examines all columns again after a region was revived or its columns changed, as changes may have been missed.
    pub fn revise_all(&mut self) {
        if self.is_sparse() {
            self.orders.revised.extend(self.columns.iter().map(|(column, _)| column));
        }
    }
}
