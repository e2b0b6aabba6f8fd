//! Mapping entity references and change ticks between worlds.

use bevy::ecs::change_detection::{ComponentTicks, DetectChangesMut, Tick};
use bevy::ecs::entity::EntityMapper;
use bevy::prelude::*;
use rustc_hash::FxHashMap;
use std::any::Any;

/// A type-erased component on its way from one world to another.
pub type BoxedComponent = Box<dyn Any + Send + Sync>;

/// The new ids of entities that arrived together. Entities that left together have the same origin.
pub type Arrived = FxHashMap<(u64, Entity), Entity>;

/// Maps references from the departure's world to references of this world.
#[derive(Clone, Copy)]
pub struct Mapping<'a> {
    pub origin: u64,
    pub arrived: &'a Arrived,
}

impl Mapping<'_> {
    pub fn arrived(&self, left: Entity) -> Option<Entity> {
        self.arrived.get(&(self.origin, left)).copied()
    }
}

impl EntityMapper for Mapping<'_> {
    /// Entities that did not move along become the placeholder.
    fn get_mapped(&mut self, source: Entity) -> Entity {
        self.arrived(source).unwrap_or(Entity::PLACEHOLDER)
    }

    fn set_mapped(&mut self, _source: Entity, _target: Entity) {}
}

/// How long before the last tick of its world a change happened, in change ticks; `None` if it happened since.
type Age = Option<u32>;

/// The ages of a component's addition and last change, in a form that does not depend on the world.
pub type Ages = (Age, Age);
/// A component that was added just now.
pub const NEW: Ages = (None, None);

/// The reference points for reading and writing change ticks of one world.
#[derive(Clone, Copy, Debug)]
pub struct ChangeClock {
    /// The beginning of the last tick of the world's systems. They have seen all older changes.
    pub began: Option<Tick>,
    pub now: Tick,
}

impl ChangeClock {
    pub fn ages(self, ticks: ComponentTicks) -> Ages {
        (self.age(ticks.added), self.age(ticks.changed))
    }

    fn age(self, tick: Tick) -> Age {
        let began = self.began?;
        (!tick.is_newer_than(began, self.now)).then(|| began.get().wrapping_sub(tick.get()))
    }

    /// Converts an age: in this world, new changes are new to every system, and older changes keep their distance.
    fn tick(self, age: Age) -> Tick {
        let Some(age) = age else { return self.now };
        // The oldest possible tick never counts as new, not even for systems that never ran.
        let since = match self.began {
            Some(began) => self.now.get().wrapping_sub(began.get()).saturating_add(age).min(Tick::MAX.get()),
            None => Tick::MAX.get(),
        };
        Tick::new(self.now.get().wrapping_sub(since))
    }

    /// Sets the ages of a component that was inserted just now.
    pub fn apply(self, (added, changed): Ages, component: &mut impl DetectChangesMut) {
        // A change by an observer of the insertion already has a later tick and keeps it.
        let now = component.last_changed();
        let changed = if now == self.now { self.tick(changed) } else { now };
        // `set_last_added` sets both ticks.
        component.set_last_added(self.tick(added));
        component.set_last_changed(changed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(began: u32, now: u32) -> ChangeClock {
        ChangeClock { began: Some(Tick::new(began)), now: Tick::new(now) }
    }

    fn moved(from: ChangeClock, to: ChangeClock, tick: u32) -> u32 {
        to.tick(from.age(Tick::new(tick))).get()
    }

    #[test]
    fn the_starts_of_the_last_ticks_fall_together() {
        let (from, to) = (clock(100, 150), clock(7_000, 7_300));
        assert_eq!(moved(from, to, 100), 7_000);
        assert_eq!(moved(from, to, 60), 6_960);
        assert_eq!(moved(from, to, 101), 7_300);
        assert_eq!(moved(from, to, 150), 7_300);
    }

    #[test]
    fn wrapped_change_ticks_still_compare() {
        let (from, to) = (clock(u32::MAX - 1, 5), clock(3, 9));
        assert_eq!(moved(from, to, u32::MAX - 11), u32::MAX - 6);
        assert_eq!(moved(from, to, 0), 9);
        let last = Tick::new(3);
        assert!(!Tick::new(moved(from, to, u32::MAX - 1)).is_newer_than(last, to.now));
    }

    #[test]
    fn in_a_world_that_never_ticked_only_added_components_are_new() {
        let fresh = ChangeClock { began: None, now: Tick::new(50) };
        let never_ran = Tick::new(fresh.now.get().wrapping_sub(Tick::MAX.get()));
        let from = clock(100, 150);
        let old = Tick::new(moved(from, fresh, 99));
        assert!(!old.is_newer_than(never_ran, fresh.now));
        assert!(Tick::new(moved(from, fresh, 120)).is_newer_than(never_ran, fresh.now));
        assert_eq!(moved(fresh, from, 3), 150, "nobody has seen what is in a world that never ticked");
    }
}
