//! Sparse dimensions: of each column only the chunks are loaded that are near to viewers above and below, too.
//!
//! A column comes with the chunk heights that viewers want of it. As they move up and down, parts are generated or loaded
//! and added to it, and others are cut from it and saved, while the column stays with its region. What was generated is
//! what is stored, chunk by chunk, also air; so a part that was ordered and is not needed any more can be dropped.

use super::failed_columns::{OUTAGE_RETRY, wait_after};
use super::holders::ViewerState;
use super::orders::Orders;
use super::sparse_columns::{Part, PartChange, SparseColumns};
use crate::chunk::Column;
use crate::coordinator::deliver::save_part;
use crate::coordinator::dimension::column_state::{Failure, Order};
use crate::coordinator::dimension::{Dimension, Dimensions};
use crate::coordinator::events::ColumnFailed;
use crate::coordinator::publish::Publisher;
use crate::coordinator::saving::save::Saves;
use crate::coordinator::threads::ReadyColumn;
use crate::simulation::{ColumnError, Departed, LoadedColumn};
use crate::space::{ColumnPos, HeightSet};
use bevy::prelude::{Res, ResMut};
use std::mem;

/// How much further away, in chunks up and down, parts of columns are let go than they are loaded.
const SLACK: u32 = 4;

/// What is to be done with a column.
enum Change {
    Nothing,
    /// It failed a moment ago.
    Later,
    Extend(HeightSet),
    Cut(HeightSet),
}

impl Dimension {
    /// The chunk heights that are to be loaded of a column together; all of them if the dimension is not sparse.
    pub fn wanted_heights(&self, column: ColumnPos) -> HeightSet {
        let Some(sparse) = &self.sparse else { return HeightSet::from(self.chunk_heights()) };
        let mut wanted = self.viewed_heights(column, 0, 0);
        if wanted.is_empty() {
            // It is held on the rim, where nothing is asked for.
            wanted = self.viewed_heights(column, 2, 0);
        }
        if let Some(part) = sparse.parts.get(&column) {
            // A region fetched it: what else is stored of that is to come.
            wanted.insert_all(&part.loaded);
        }
        wanted
    }

    /// The chunk heights around those viewers that have the column in their load radius and `rim` columns more, `slack`
    /// chunks further up and down.
    fn viewed_heights(&self, column: ColumnPos, rim: u32, slack: u32) -> HeightSet {
        let ground = &self.home.ground;
        let mut heights = HeightSet::new();
        for ViewerState { center, height, radii, .. } in self.viewers.values() {
            if column.distance_squared(*center) <= u128::from(radii.load + rim).pow(2) {
                heights.insert_all(&ground.window(*height, radii.vertical + slack));
            }
        }
        heights
    }

    /// Around the height of the viewer that is nearest to the column.
    pub fn heights_to_generate(&self, column: ColumnPos) -> HeightSet {
        let nearest = self.viewers.values().min_by_key(|viewer| column.distance_squared(viewer.center));
        let around = |viewer: &ViewerState| self.home.ground.window(viewer.height, viewer.radii.vertical);
        nearest.map(around).unwrap_or_default()
    }

    fn next_change(&mut self, column: ColumnPos) -> Change {
        // It is looked at again when it is delivered, or kept.
        if self.owner(column).is_none() {
            return Change::Nothing;
        }
        if self.has_halted(column) || !self.is_held(column) || self.is_closing() {
            return Change::Nothing;
        }
        let Some(sparse) = &self.sparse else { return Change::Nothing };
        let nothing = Part::default();
        let part = sparse.parts.get(&column).unwrap_or(&nothing);
        let waits = match part.change {
            // The answer brings it here again.
            PartChange::Ordered(_) | PartChange::Leaving => return Change::Nothing,
            PartChange::Failed(failure) => failure.due > self.real_now,
            PartChange::None => false,
        };
        let mut missing = self.viewed_heights(column, 0, 0).difference(&part.loaded);
        missing.remove_all(&part.ungenerated);
        if !missing.is_empty() {
            return if waits { Change::Later } else { Change::Extend(missing) };
        }
        let surplus = part.loaded.difference(&self.viewed_heights(column, 2, SLACK));
        if surplus.is_empty() { Change::Nothing } else { Change::Cut(surplus) }
    }
}

/// Orders parts of columns that viewers want now, nearest first, and has regions let go of others.
pub fn revise_heights(mut dimensions: ResMut<Dimensions>, mut orders: ResMut<Orders>, saves: Res<Saves>) {
    let jobs = dimensions.in_flight_for_jobs();
    for dimension in dimensions.open.values_mut() {
        let has_room = dimension.has_room_for_parts(&orders, jobs, &saves);
        let Some(sparse) = &mut dimension.sparse else { continue };
        let mut columns = mem::take(&mut sparse.revised);
        if has_room {
            columns.append(&mut sparse.waiting);
        }
        let mut columns: Vec<_> = columns.into_iter().collect();
        columns.sort_by_cached_key(|column| {
            dimension.viewers.values().map(|viewer| column.distance_squared(viewer.center)).min()
        });
        for column in columns {
            match dimension.next_change(column) {
                Change::Nothing => {}
                Change::Extend(heights) if dimension.has_room_for_parts(&orders, jobs, &saves) => {
                    orders.order_part(dimension, column, heights);
                }
                Change::Cut(heights) => dimension.ask_to_cut(column, heights),
                Change::Extend(_) | Change::Later => {
                    if let Some(sparse) = &mut dimension.sparse {
                        sparse.waiting.insert(column);
                    }
                }
            }
        }
    }
}

impl Dimension {
    /// Whether more may be ordered. What is stored is loaded also while generation is paused.
    fn has_room_for_parts(&mut self, orders: &Orders, jobs: usize, saves: &Saves) -> bool {
        let room = orders.room(jobs);
        let may_begin = match self.generation.settings.paused {
            true => room.load > 0,
            false => room.generate > 0 && self.generation.allowance(self.real_now) > 0,
        };
        may_begin && !saves.is_behind()
    }

    fn ask_to_cut(&mut self, column: ColumnPos, heights: HeightSet) {
        let Some(region) = self.regionizer.region_at(column) else { return };
        self.inbox(region).cut.push((column, heights));
        if let Some(sparse) = &mut self.sparse {
            sparse.part(column).change = PartChange::Leaving;
        }
    }

    /// A part of a column is there: its region gets it, if it still has the column.
    pub fn deliver_part(
        &mut self,
        ReadyColumn { loaded, made, left_out }: ReadyColumn,
        saves: &mut Saves,
        publisher: &mut Publisher,
    ) {
        let column = loaded.column.pos();
        let Some(sparse) = &mut self.sparse else { return };
        sparse.leave_out(column, &left_out);
        // A region may have fetched it meanwhile, and what it made of it is newer.
        let made = sparse.unloaded(column, &made);
        save_part(&mut saves.pending, self.id, &loaded.column, &made);
        let Some(region) = self.owner(column) else { return };
        if self.has_halted(column) {
            return;
        }
        let new = self.new_part(&loaded.column);
        self.note_loaded(&loaded.column);
        let letters = self.take_letters(column);
        let inbox = self.inbox(region);
        // Those that are stored in the column came with it.
        inbox.columns.push(LoadedColumn { entities: Vec::new(), ..loaded });
        inbox.letters.extend(letters);
        if let Some(new) = new {
            publisher.extended(self.id, new);
        }
    }

    /// A part of a column could not be had: it is tried again for as long as somebody wants it.
    pub fn part_failed(&mut self, column: ColumnPos, order: Order, error: ColumnError, publisher: &mut Publisher) {
        let (id, now) = (self.id, self.real_now);
        let attempts = order.attempts + 1;
        let wait = if error.is_outage() { OUTAGE_RETRY } else { wait_after(attempts) };
        if let Some(sparse) = &mut self.sparse {
            sparse.part(column).change =
                PartChange::Failed(Failure { attempts, again: false, due: now.saturating_add(wait) });
        }
        self.complaints.unread.note(now, format_args!("{id}: {error}; next try in {wait:?}"));
        publisher.event(ColumnFailed { dimension: id, column, error, attempts, given_up: false });
    }

    /// Parts of columns that a region let go of.
    pub fn take_cut(&mut self, cut: Vec<LoadedColumn>, saves: &Saves, publisher: &mut Publisher) {
        let until = saves.stored_with();
        for loaded in cut {
            let column = loaded.column.pos();
            let heights = loaded.column.loaded().cloned().unwrap_or_default();
            heights.ranges().for_each(|heights| self.store.note_access(self.id, column.batch(), heights));
            if let Some(sparse) = &mut self.sparse {
                if let Some(part) = sparse.parts.get_mut(&column) {
                    part.change = PartChange::None;
                    part.loaded.remove_all(&heights);
                }
                sparse.revise(column);
            }
            if !saves.is_stored(until) {
                self.departed().insert_part(Departed { loaded, until });
            }
            publisher.cut(self.id, column, &heights);
        }
    }

    /// Whether the chunk height of a loaded column is loaded too; one that the dimension does not have counts as that.
    pub fn has_height(&self, column: ColumnPos, height: i64) -> bool {
        let is_there =
            |sparse: &SparseColumns| sparse.unloaded(column, &HeightSet::from(height..height + 1)).is_empty();
        !self.chunk_heights().contains(&height) || self.sparse.as_ref().is_none_or(is_there)
    }

    /// What of a part of a column is not loaded yet, if there is something.
    pub fn new_part(&self, part: &Column) -> Option<Column> {
        let new = self.sparse.as_ref()?.unloaded(part.pos(), part.loaded()?);
        (!new.is_empty()).then(|| part.clone().cut(&new))
    }

    /// The region of these columns lives again, or has others than before: something may have been missed meanwhile.
    pub fn revise_all(&mut self) {
        if let Some(sparse) = &mut self.sparse {
            self.columns.iter().for_each(|(column, _)| sparse.revise(column));
        }
    }

    /// A column or a part of one is with its region.
    pub fn note_loaded(&mut self, part: &Column) {
        if let (Some(sparse), Some(heights)) = (&mut self.sparse, part.loaded()) {
            sparse.note_loaded(part.pos(), heights);
        }
    }
}
