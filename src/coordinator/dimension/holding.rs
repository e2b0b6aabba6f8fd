//! Viewers and letters hold and release columns.

use crate::coordinator::columns::ColumnState;
use crate::coordinator::demand::outlook::Outlook;
use crate::coordinator::demand::tickets::{HOLD_MARGIN, ViewerState, disc_difference};
use crate::coordinator::dimension::OpenDimension;
use crate::coordinator::messages::why::Ticket;
use crate::simulation::ViewerRadii;
use crate::space::{ChunkPos, ColumnArea, ColumnPos};
use bevy::prelude::*;

/// Larger radii are worth a warning, in columns.
const LARGE_RADIUS: u32 = 80;
const LARGE_GENERATION_RADIUS: u32 = 560;

/// Warns of a radius that costs much, before it does. The figures are those of hills: see docs/performance.md.
fn log_large_radii(viewer: Ticket, radii: ViewerRadii) {
    let columns = |radius| ColumnArea::Disc { center: ColumnPos::default(), radius }.columns();
    if radii.load > LARGE_RADIUS {
        let loaded = columns(radii.load);
        warn_once!(
            "{viewer} is a Viewer with a radius of {} columns, which loads {loaded} columns: about {} MB of memory without \
             meshes; a radius of 8 to 32 is usual, and a FarView shows land beyond it",
            radii.load,
            loaded * 5 / 1024
        );
    }
    if radii.generation > LARGE_GENERATION_RADIUS {
        let generated = columns(radii.generation);
        warn_once!(
            "{viewer} is a Viewer with a generation radius of {} columns, which generates and stores {generated} columns: about \
             {} minutes of work for a core",
            radii.generation,
            generated / 2_000 / 60
        );
    }
}

impl OpenDimension {
    /// Makes the ticket hold the columns around `center`, and none that it held before.
    pub fn hold(&mut self, ticket: Ticket, place: ChunkPos, radii: ViewerRadii) {
        let (center, height) = (place.column(), if self.is_sparse() { place.y } else { 0 });
        let radii = self.demand.caps.limits.cut(radii);
        let known = self.demand.viewers.get(&ticket);
        if known.is_some_and(|viewer| (viewer.center, viewer.height, viewer.radii) == (center, height, radii)) {
            return;
        }
        if known.is_none_or(|viewer| viewer.radii != radii) {
            log_large_radii(ticket, radii);
        }
        let mut heading = known.map(|viewer| viewer.heading).unwrap_or_default();
        let to_load = known.map_or_else(|| Outlook::new(center, radii.load), |it| it.to_load.moved(center, radii.load));
        let to_generate = known.map_or_else(
            || Outlook::new(center, radii.generation),
            |viewer| viewer.to_generate.moved(center, radii.generation),
        );
        // A new viewer comes first, because all others were served before.
        let served = known.map_or(0, |viewer| viewer.served);
        let before = known.map(|viewer| (viewer.center, viewer.radii.load));
        heading.note(before.map_or(center, |(before, _)| before), center, self.time.real_now);
        let radius = radii.load;
        let disc = |(center, radius): (ColumnPos, u32)| (center, i64::from(radius + HOLD_MARGIN));
        for column in disc_difference(disc((center, radius)), before.map(disc)) {
            let holds = self.demand.holds.entry(column).or_insert(0);
            *holds += 1;
            if *holds == 1 {
                self.demand.unneeded.remove(&column);
            }
        }
        if let Some(before) = before {
            self.release_disc(disc(before), Some(disc((center, radius))));
        }
        let state = ViewerState { center, height, radii, heading, to_load, to_generate, served };
        self.demand.viewers.insert(ticket, state);
        self.revise_disc(disc((center, radius)));
        self.note_moved_viewers();
    }

    fn note_moved_viewers(&mut self) {
        self.demand.has_moved_viewers = true;
        self.demand.wanting = None;
        self.demand.coverage = None;
    }

    /// Refills the viewers' allowances.
    pub fn refill_caps(&mut self) {
        self.demand.caps.refill(self.time.real_now, |ticket| self.demand.viewers.contains_key(ticket));
    }

    /// Releases everything that the ticket holds.
    pub fn release(&mut self, ticket: Ticket) {
        if let Some(viewer) = self.demand.viewers.remove(&ticket) {
            let disc = (viewer.center, i64::from(viewer.radii.load + HOLD_MARGIN));
            self.release_disc(disc, None);
            self.revise_disc(disc);
            self.note_moved_viewers();
        }
    }

    /// Notes that the wanted slabs of this disc may have changed.
    fn revise_disc(&mut self, disc: (ColumnPos, i64)) {
        if self.is_sparse() {
            let columns = disc_difference(disc, None).filter(|column| self.columns.is_under_way(*column));
            self.orders.revised.extend(columns);
        }
    }

    fn release_disc(&mut self, old: (ColumnPos, i64), new: Option<(ColumnPos, i64)>) {
        for column in disc_difference(old, new) {
            if self.ground.is_sparse {
                self.orders.revised.insert(column);
            }
            if let Some(holds) = self.demand.holds.get_mut(&column) {
                *holds -= 1;
                if *holds == 0 {
                    self.demand.holds.remove(&column);
                    self.land.resident.release(column);
                    match self.columns.get(column) {
                        Some(ColumnState::Failed(_)) => self.orders.left_failures.push(column),
                        Some(_) => drop(self.demand.unneeded.insert(column)),
                        None => {}
                    }
                }
            }
        }
    }

    /// The distance of the column from the nearest viewer, in columns.
    pub fn distance(&self, column: ColumnPos) -> f64 {
        let squared = self.demand.viewers.values().map(|viewer| column.distance_squared(viewer.center)).min();
        squared.map_or(f64::INFINITY, |squared| (squared as f64).sqrt())
    }

    /// The viewers, without places that letters wait for.
    pub fn real_viewers(&self) -> impl Iterator<Item = &ViewerState> {
        let viewers = self.demand.viewers.iter().filter(|(ticket, _)| !matches!(ticket, Ticket::Letters(_)));
        viewers.map(|(_, viewer)| viewer)
    }

    pub fn is_held(&self, column: ColumnPos) -> bool {
        self.demand.holds.contains_key(&column)
    }
}
