//! What can be had of a world whose task panicked, before it is dropped.

use super::columns::blocks::RegionColumns;
use super::inbox_outbox::{Inbox, Outbox};
use super::letter::{Letter, Undeliverable};
use super::world::RegionWorld;
use crate::region::RegionId;
use crate::space::ColumnPos;
use rustc_hash::FxHashSet;
use std::mem;
use uuid::Uuid;

/// What is left of a task that panicked. What the world held is gone with it, but nothing that was only on its way.
#[derive(Default)]
pub struct Salvage {
    /// Worlds that were to be absorbed and are whole.
    pub worlds: Vec<RegionWorld>,
    /// What the world had not made its own: letters that wait for their time, and entities that had not arrived; and edits
    /// that had been made in this task, or were to be: they are undone. Columns are not among it, since the store may have
    /// newer ones.
    pub inbox: Inbox,
    /// What could not be handed over, and what was handed over in this task: what it did is undone.
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
        self.worlds.extend(other.worlds);
        self.inbox.append(other.inbox);
        self.undelivered.extend(other.undelivered);
        self.columns.extend(other.columns);
        self.viewers.extend(other.viewers);
    }
}

impl RegionWorld {
    /// Takes it out of the world of this region, in the middle of a task or between two. What the region holds survives a panic; what a system
    /// had in its hands does not.
    pub fn salvage(&mut self, region: RegionId) -> Salvage {
        let Self { app, contents, .. } = self;
        let mut salvage = Salvage::default();
        if let Some(columns) = app.world().get_resource::<RegionColumns>() {
            salvage.columns.extend(columns.columns());
        }
        salvage.columns.extend(mem::take(&mut contents.absorbing));
        salvage.viewers = mem::take(&mut contents.viewers).into_iter().collect();
        salvage.viewers.sort_unstable();
        let mut letters = contents.take_waiting(|_| true);
        let (inbox, outbox) = (mem::take(&mut contents.inbox), mem::take(&mut contents.outbox));
        if contents.is_handed_out {
            // All that was done in the task is in it.
            salvage.inbox.letters = letters;
            salvage.outbox = Some(outbox);
            return salvage;
        }
        for traveller in outbox.travellers {
            salvage.viewers.extend(traveller.viewers.into_iter().map(|(viewer, _)| viewer));
            letters.extend(traveller.letters);
        }
        salvage.viewers.sort_unstable();
        salvage.undelivered = outbox.undelivered;
        let halted = Undeliverable::Halted(region);
        let handed_over = mem::take(&mut contents.handed_over).into_iter();
        salvage.undelivered.extend(handed_over.map(|letter| (letter.recover(app.world()), halted)));
        let Inbox { travellers, resources, edits: later_edits, letters: later_letters, .. } = inbox;
        letters.extend(later_letters);
        let mut edits = mem::take(&mut contents.edits);
        edits.extend(later_edits);
        salvage.inbox = Inbox { travellers, resources, edits, letters, ..Inbox::default() };
        salvage
    }
}
