//! What can be had of a world whose task panicked, before it is dropped.

use super::columns::blocks::RegionColumns;
use super::world::RegionContents;
use super::{Inbox, Letter, Outbox, Undeliverable};
use crate::space::ColumnPos;
use bevy::prelude::*;
use rustc_hash::FxHashSet;
use std::mem;
use uuid::Uuid;

/// What is left of a task that panicked. What the world held is gone with it, but nothing that was only on its way.
#[derive(Default)]
pub struct Salvage {
    /// What the world had not made its own: letters that wait for their time, and entities that had not arrived; and edits
    /// that had been made in this task, or were to be: they are undone. Columns are not among it, since the store may have
    /// newer ones.
    pub inbox: Inbox,
    /// What was handed over in this task. What it did is undone.
    pub handed_over: Vec<Letter>,
    /// What could not be handed over.
    pub undelivered: Vec<(Letter, Undeliverable)>,
    /// The columns that the world had.
    pub columns: FxHashSet<ColumnPos>,
    /// The viewers that the coordinator believes to be in the world.
    pub viewers: Vec<Uuid>,
    /// What the world had handed out before the panic, if it came so late that this is whole.
    pub outbox: Option<Box<Outbox>>,
}

impl Salvage {
    /// Takes over what is left of another world that goes with this one.
    pub fn append(&mut self, other: Self) {
        self.inbox.append(other.inbox);
        self.handed_over.extend(other.handed_over);
        self.undelivered.extend(other.undelivered);
        self.columns.extend(other.columns);
        self.viewers.extend(other.viewers);
    }
}

/// Takes it out of the world. What lies in resources survives a panic; what a system had in its hands does not.
pub(super) fn salvage(world: &mut World) -> Salvage {
    let mut salvage = Salvage::default();
    if let Some(columns) = world.get_resource::<RegionColumns>() {
        salvage.columns.extend(columns.positions());
    }
    let Some(mut contents) = world.get_resource_mut::<RegionContents>() else { return salvage };
    let is_handed_out = contents.is_handed_out;
    let mut edits = mem::take(&mut contents.edits);
    salvage.viewers = mem::take(&mut contents.viewers).into_iter().collect();
    salvage.viewers.sort_unstable();
    let handed = contents.waiting.take_handed();
    let mut letters: Vec<Letter> = std::iter::from_fn(|| contents.waiting.next_due()).collect();
    letters.extend(contents.take_waiting(|_| true));
    let (inbox, outbox) = (mem::take(contents.inbox.get()), mem::take(contents.outbox.get()));
    salvage.handed_over = handed.into_iter().filter_map(|handed| handed.into_letter(world)).collect();
    if is_handed_out {
        // All that was done in the task is in it.
        salvage.handed_over.clear();
        salvage.inbox.letters = letters;
        salvage.outbox = Some(Box::new(outbox));
        return salvage;
    }
    letters.extend(outbox.travellers.into_iter().flat_map(|traveller| traveller.letters));
    salvage.undelivered = outbox.undelivered;
    let Inbox { travellers, resources, edits: later_edits, letters: later_letters, .. } = inbox;
    letters.extend(later_letters);
    edits.extend(later_edits);
    salvage.inbox = Inbox { travellers, resources, edits, letters, ..Inbox::default() };
    salvage
}
