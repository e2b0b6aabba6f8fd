//! [`TerraneAppExt`]: what a game registers while its app is built.

use super::setup::{Setup, fail};
use crate::block::{BlockComponent, BlockComponentId, BlockId, BlockRegistryError, BlockStates, BlockType, Schema};
use crate::simulation::{Received, RegionMessage, RegionResource, Returned, SavedComponent, register_message};
use crate::view::expect_plugin;
use bevy::ecs::component::Mutable;
use bevy::ecs::relationship::Relationship;
use bevy::prelude::*;
use std::sync::Arc;

/// What a game says of its regions and blocks, while its app is built.
pub trait TerraneAppExt {
    /// Registers a block type and gives its id, which never changes in this world. Call it after
    /// [`TerranePlugin`](super::TerranePlugin) was added.
    ///
    /// # Errors
    /// An invalid or a taken name, and a call when the app runs already.
    fn register_block(&mut self, block: BlockType) -> Result<BlockId, BlockRegistryError>;

    /// Registers all states of a block type, and gives their ids, the default's first. As
    /// [`register_block`](Self::register_block) otherwise.
    fn register_block_states(&mut self, states: BlockStates) -> Result<Vec<BlockId>, BlockRegistryError>;

    /// Registers a block component, before the blocks that have it. Call it after
    /// [`TerranePlugin`](super::TerranePlugin) was added.
    ///
    /// # Errors
    /// An invalid or a taken name. If the world has values in a version or of a size that the game cannot read, the world is
    /// not opened either: the app gets a [`WorldFailure`](super::WorldFailure) and ends at its first update.
    fn register_block_component(&mut self, component: BlockComponent) -> Result<BlockComponentId, BlockRegistryError>;

    /// `template` runs once for every region world that is made: add systems, plugins, resources, messages, observers.
    fn add_region_plugins(&mut self, template: impl Fn(&mut SubApp) + Send + Sync + 'static) -> &mut Self;

    /// Entities take their `T` along when they move from one region to another.
    ///
    /// Every component on an entity that can travel (one with a `Position`, and whatever hangs on it) must be registered
    /// or left behind by [`leave_region_component_behind`](Self::leave_region_component_behind): otherwise the region's
    /// error handler is told at the end of the tick in which it first appears.
    ///
    /// References to entities (`#[entities]`) point to the same entities afterwards if these moved along, and are
    /// `Entity::PLACEHOLDER` otherwise: keep a [`StableId`](crate::simulation::StableId) to find an entity again that may
    /// part. What changed since its region's last tick began counts as changed where it arrives, what is older does not;
    /// a component that cannot change counts as added.
    fn register_region_component<T: Component>(&mut self) -> &mut Self;

    /// Relationships `R` stay between entities that move together, in the order in which their target has them. One to
    /// an entity that stays behind ends. If the target takes its sources along into death (`linked_spawn`), these also
    /// follow it wherever it goes. `ChildOf` is built in.
    fn register_region_relationship<R: Relationship>(&mut self) -> &mut Self;

    /// Regions join their `R` when they merge, and divide it when they split. Of any other resource the larger region's
    /// stays, and the smaller one's is dropped.
    fn register_region_resource<R: RegionResource>(&mut self) -> &mut Self;

    /// The component of the type with this full path (as `std::any::type_name` gives it) stays behind when its entity
    /// moves from one region to another, and nobody complains.
    fn leave_region_component_behind(&mut self, type_path: &str) -> &mut Self;

    /// Entities take their `T` along, and it is stored with them, under its
    /// [`TypePath`](SavedComponent). An entity is stored if it has at least one such component.
    ///
    /// A stored value that cannot be read is named in the log, and stays in the store as it is. References to entities are
    /// `Entity::PLACEHOLDER` after loading: what must be found again, a [`StableId`](crate::simulation::StableId) names.
    fn register_saved_component<T: SavedComponent>(&mut self) -> &mut Self;

    /// The same for a `T` whose stored form has a version, or whose type path was another before
    /// ([`Schema::formerly`]). Stored values of older versions are migrated; if there is no
    /// migration from a version that the world has, the world is not opened: the app gets a
    /// [`WorldFailure`](super::WorldFailure). The bytes are postcard's.
    fn register_saved_component_with<T: SavedComponent>(&mut self, schema: Schema) -> &mut Self;

    /// `T` can be read on the entity's [`Mirror`](crate::view::Mirror) in the main world.
    fn mirror_region_component<T: Component<Mutability = Mutable> + Clone + PartialEq>(&mut self) -> &mut Self;

    /// `M` can be sent with [`Post`](crate::simulation::Post), and read as [`Received<M>`] in the regions and in the main world.
    fn register_region_message<M: RegionMessage>(&mut self) -> &mut Self;
}

fn setup(app: &mut App) -> Mut<'_, Setup> {
    expect_plugin(app.world_mut());
    app.world_mut().get_resource_or_init::<Setup>()
}

impl TerraneAppExt for App {
    fn register_block(&mut self, block: BlockType) -> Result<BlockId, BlockRegistryError> {
        let mut setup = setup(self);
        setup.registered.push(block.clone());
        setup.blocks.register(block)
    }

    fn register_block_states(&mut self, states: BlockStates) -> Result<Vec<BlockId>, BlockRegistryError> {
        let mut setup = setup(self);
        let ids = setup.blocks.register_states(states)?;
        let types: Vec<_> = ids.iter().map(|id| setup.blocks.block(*id).clone()).collect();
        setup.registered.extend(types);
        Ok(ids)
    }

    fn register_block_component(&mut self, component: BlockComponent) -> Result<BlockComponentId, BlockRegistryError> {
        let mut setup = setup(self);
        setup.registered_components.push(component.clone());
        let registered = setup.blocks.register_component(component);
        if let Err(error) = &registered
            && error.is_schema_mismatch()
        {
            // Nothing may be read or written: the world is closed again.
            setup.store = None;
            fail(self, error.clone().into());
        }
        registered
    }

    fn add_region_plugins(&mut self, template: impl Fn(&mut SubApp) + Send + Sync + 'static) -> &mut Self {
        setup(self).plugins.push(Arc::new(template));
        self
    }

    fn register_region_component<T: Component>(&mut self) -> &mut Self {
        setup(self).components.register::<T>();
        self
    }

    fn register_region_relationship<R: Relationship>(&mut self) -> &mut Self {
        setup(self).components.register_relationship::<R>();
        self
    }

    fn register_region_resource<R: RegionResource>(&mut self) -> &mut Self {
        setup(self).components.register_resource::<R>();
        self
    }

    fn leave_region_component_behind(&mut self, type_path: &str) -> &mut Self {
        setup(self).components.leave_behind(type_path);
        self
    }

    fn register_saved_component<T: SavedComponent>(&mut self) -> &mut Self {
        self.register_saved_component_with::<T>(Schema::default())
    }

    fn register_saved_component_with<T: SavedComponent>(&mut self, schema: Schema) -> &mut Self {
        setup(self).components.register_saved_with::<T>(schema);
        self
    }

    fn mirror_region_component<T: Component<Mutability = Mutable> + Clone + PartialEq>(&mut self) -> &mut Self {
        setup(self).components.mirror::<T>();
        self
    }

    fn register_region_message<M: RegionMessage>(&mut self) -> &mut Self {
        self.add_message::<Received<M>>().add_message::<Returned<M>>();
        self.add_region_plugins(register_message::<M>)
    }
}
