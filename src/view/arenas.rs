//! Arenas in the main world: an entity each, and commands.

use crate::coordinator::{Arena, ArenaStatus, Jobs};
use bevy::prelude::*;

/// Commands for arenas, in the main world and in regions. Messages in the main world tell what came of them:
/// [`ArenaCreated`](super::ArenaCreated), [`ArenaReverted`](super::ArenaReverted), [`ArenaRemoved`](super::ArenaRemoved), and
/// [`ArenaRefused`](super::ArenaRefused) for what is not done.
///
/// ```
/// use bevy_terrane::prelude::*;
///
/// fn open_arena(mut commands: Commands, dimension: Single<&DimensionOpen, Added<DimensionOpen>>) {
///     let area = BlockBox::new(BlockPos::new(-64, 0, -64), BlockPos::new(63, 95, 63));
///     commands.create_arena(Arena::new("spleef", dimension.id, area));
/// }
///
/// fn next_round(mut commands: Commands, arenas: Query<(&Arena, &ArenaStatus)>) {
///     for (arena, status) in &arenas {
///         if status.state == ArenaState::Ready {
///             commands.revert_arena(&arena.name);
///         }
///     }
/// }
/// # bevy::ecs::system::assert_is_system(open_arena);
/// # bevy::ecs::system::assert_is_system(next_round);
/// ```
pub trait ArenaCommands {
    /// Captures the arena as it is then, and stores it.
    fn create_arena(&mut self, arena: Arena);

    /// Makes the arena of this name what it was when it was created.
    fn revert_arena(&mut self, name: impl Into<String>);

    /// Forgets the arena of this name and its snapshot. The ground stays as it is.
    fn remove_arena(&mut self, name: impl Into<String>);
}

impl ArenaCommands for Commands<'_, '_> {
    fn create_arena(&mut self, arena: Arena) {
        self.queue(|world: &mut World| order(world, |jobs| jobs.create_arena(arena)));
    }

    fn revert_arena(&mut self, name: impl Into<String>) {
        let name = name.into();
        self.queue(|world: &mut World| order(world, |jobs| jobs.revert_arena(name)));
    }

    fn remove_arena(&mut self, name: impl Into<String>) {
        let name = name.into();
        self.queue(|world: &mut World| order(world, |jobs| jobs.remove_arena(name)));
    }
}

pub(super) fn build(app: &mut App) {
    app.register_type::<ArenaStatus>();
}

fn order(world: &World, order: impl FnOnce(&Jobs)) {
    match world.get_resource::<Jobs>() {
        Some(jobs) => order(jobs),
        None => warn!("nothing can be done with arenas before the simulation has begun"),
    }
}

/// Takes in how an arena is; without a status it is gone.
pub(super) fn apply(world: &mut World, arena: Arena, status: Option<ArenaStatus>) {
    let mut known = world.query::<(Entity, &Arena)>();
    let known = known.iter(world).find(|(_, known)| known.name == arena.name).map(|(entity, _)| entity);
    match (known, status) {
        (Some(entity), Some(status)) => drop(world.entity_mut(entity).insert(status)),
        (None, Some(status)) => drop(world.spawn((arena, status))),
        (Some(entity), None) => drop(world.despawn(entity)),
        (None, None) => {}
    }
}
