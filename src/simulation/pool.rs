//! Region worlds that nobody has used.

use super::template::RegionTemplate;
use super::world::RegionWorld;
use crossbeam_channel::{Receiver, Sender, bounded};

/// Region worlds that were made while a thread had nothing else to do. A world that has ticked never comes back here:
/// what it held cannot be told from what a game's plugin put there.
pub struct WorldPool {
    fresh: Receiver<Box<RegionWorld>>,
    refill: Sender<Box<RegionWorld>>,
}

impl WorldPool {
    /// A pool of so many worlds, empty at first.
    pub fn new(worlds: usize) -> Self {
        let (refill, fresh) = bounded(worlds);
        Self { fresh, refill }
    }

    /// A fresh world, if there is one.
    pub fn take(&self) -> Option<Box<RegionWorld>> {
        self.fresh.try_recv().ok()
    }

    /// Makes one more world, if there is room for it. Says whether it did.
    pub fn refill(&self, template: &RegionTemplate) -> bool {
        // The region that needs a world reports what is wrong with the template.
        !self.refill.is_full() && template.build().is_ok_and(|world| self.refill.try_send(Box::new(world)).is_ok())
    }
}
