//! Salvaging the world of a panicked task before it is dropped.

use crate::region::RegionId;
use crate::simulation::columns::blocks::RegionColumns;
use crate::simulation::inbox_outbox::{Inbox, Outbox};
use crate::simulation::letters::letter::{Letter, Undeliverable};
use crate::simulation::world::RegionWorld;
use crate::space::ColumnPos;
use rustc_hash::FxHashSet;
use std::mem;
use uuid::Uuid;

/// The remains of a panicked task. The contents of the world are lost, but nothing that was only in transit.
#[derive(Default)]
pub struct Salvage {
    /// Intact worlds that were waiting to be absorbed.
    pub worlds: Vec<RegionWorld>,
    /// Input that the world had not received completely: letters that wait for their delay and entities that had not
    /// arrived. Also all edits of this task, applied or not, because the panic undoes them. Columns are not included,
    /// since the store may have newer ones.
    pub inbox: Inbox,
    /// Letters that could not be delivered, and those delivered in this task, whose effects are undone.
    pub undelivered: Vec<(Letter, Undeliverable)>,
    /// Actions that earlier tasks have done, and whose effects are lost.
    pub lost_actions: Vec<(u64, Uuid)>,
    /// The columns that the world had loaded.
    pub columns: FxHashSet<ColumnPos>,
    /// The viewers that the coordinator expects in the world.
    pub viewers: Vec<Uuid>,
    /// The outbox, if it was complete before the panic.
    pub outbox: Option<Box<Outbox>>,
}

impl Salvage {
    /// Adds the remains of another world that goes down with this one.
    pub fn append(&mut self, other: Self) {
        self.worlds.extend(other.worlds);
        self.inbox.append(other.inbox);
        self.undelivered.extend(other.undelivered);
        self.lost_actions.extend(other.lost_actions);
        self.columns.extend(other.columns);
        self.viewers.extend(other.viewers);
    }
}

impl RegionWorld {
    /// Collects the remains of this region's world, during a task or between two. The region's own data survives a panic; values
    /// that a system had taken out of the world do not.
    pub fn salvage(&mut self, region: RegionId) -> Salvage {
        let Self { app, contents, .. } = self;
        let mut salvage = Salvage::default();
        if let Some(columns) = app.world().get_resource::<RegionColumns>() {
            salvage.columns.extend(columns.columns());
        }
        salvage.columns.extend(mem::take(&mut contents.unfinished.absorbing));
        salvage.viewers = mem::take(&mut contents.viewers.expected).into_iter().collect();
        salvage.viewers.sort_unstable();
        salvage.lost_actions = mem::take(&mut contents.actions.unsaved);
        let mut letters = contents.letters.take(|_| true);
        let (inbox, outbox) = (mem::take(&mut contents.inbox), mem::take(&mut contents.outbox));
        if contents.unfinished.is_handed_out {
            // The outbox contains the results of the whole task.
            salvage.inbox.letters = letters;
            salvage.outbox = Some(outbox);
            return salvage;
        }
        // The actions of this task come back with their letters.
        salvage.lost_actions.extend(outbox.saved_actions);
        salvage.lost_actions.retain(|(id, _)| outbox.acted.iter().all(|acted| acted.id != *id));
        for traveller in outbox.travellers {
            salvage.viewers.extend(traveller.viewers.into_iter().map(|(viewer, _)| viewer));
            letters.extend(traveller.letters);
        }
        salvage.viewers.sort_unstable();
        salvage.undelivered = outbox.undelivered;
        let halted = Undeliverable::Halted(region);
        let handed_over = mem::take(&mut contents.unfinished.handed_over).into_iter();
        salvage.undelivered.extend(handed_over.map(|letter| (letter.recover(app.world()), halted)));
        let Inbox { travellers, resources, edits: later_edits, letters: later_letters, .. } = inbox;
        letters.extend(later_letters);
        let mut edits = mem::take(&mut contents.unfinished.edits);
        edits.extend(later_edits);
        salvage.inbox = Inbox { travellers, resources, edits, letters, ..Inbox::default() };
        salvage
    }
}
