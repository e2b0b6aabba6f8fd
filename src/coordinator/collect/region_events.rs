//! Handles the events of the regionizer.

use crate::coordinator::dimension::{DimensionBook, OpenDimension};
use crate::coordinator::mail::directory::Directory;
use crate::coordinator::messages::events::{RegionCreated, RegionDestroyed, RegionMerged, RegionSplit};
use crate::coordinator::publish::Publisher;
use crate::coordinator::saves::Saves;
use crate::coordinator::schedule::deadlines::Deadlines;
use crate::region::RegionEvent;
use bevy::prelude::*;
use std::mem;

/// Handles the region events since columns came or went.
pub fn tell_region_events(
    mut dimensions: ResMut<DimensionBook>,
    mut deadlines: ResMut<Deadlines>,
    mut saves: ResMut<Saves>,
    directory: Res<Directory>,
    mut publisher: ResMut<Publisher>,
) {
    for dimension in dimensions.open.values_mut() {
        dimension.note_region_events(&mut deadlines, &mut saves, &directory, &mut publisher);
    }
}

impl OpenDimension {
    /// Reports the regionizer's events to the main world, and plans the first ticks of new regions.
    pub fn note_region_events(
        &mut self,
        deadlines: &mut Deadlines,
        saves: &mut Saves,
        directory: &Directory,
        publisher: &mut Publisher,
    ) {
        let (id, now) = (self.id, self.time.real_now);
        let events = self.regions.regionizer.drain_events();
        if !events.is_empty() {
            self.tell_owners();
        }
        for event in events {
            match event {
                RegionEvent::Created(region) => {
                    let steps = self.time.steps;
                    if let Some(slot) = self.regions.regionizer.data_mut(region) {
                        slot.made_steps.get_or_insert(steps);
                    }
                    publisher.event(RegionCreated { dimension: id, region });
                }
                RegionEvent::Merged { from, into } => {
                    publisher.totals.merges += 1;
                    self.regions.note_merge(from, into);
                    saves.merged(id, from, into);
                    publisher.event(RegionMerged { dimension: id, from, into });
                    let Some(slot) = self.regions.regionizer.data_mut(into) else { continue };
                    // It does not wait for the period of a slower region.
                    slot.hasten(&self.time, now);
                    deadlines.plan(slot.due, id, into);
                    if slot.halted.is_none() {
                        // It may have absorbed a halted region.
                        self.revive(into, |id| directory.knows(id));
                    } else {
                        // A halted region makes no edits, so those of a region that it absorbed are refused.
                        publisher.refuse_all(now, mem::take(&mut slot.parked.get().inbox().edits));
                    }
                }
                RegionEvent::Split { from, into } => {
                    publisher.totals.splits += 1;
                    saves.split(id, from, &into);
                    publisher.event(RegionSplit { dimension: id, from, into });
                }
                RegionEvent::Destroyed(region) => {
                    saves.gone(id, region);
                    publisher.event(RegionDestroyed { dimension: id, region });
                }
                RegionEvent::Ready(region) => {
                    if let Some(slot) = self.regions.regionizer.data_mut(region) {
                        slot.due = slot.due.max(now);
                        deadlines.plan(slot.due, id, region);
                    }
                }
                RegionEvent::Transient(_) => {}
            }
        }
    }
}
