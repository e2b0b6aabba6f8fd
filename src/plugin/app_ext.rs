//! [`TerraneAppExt`]: registrations while the app is built.

use super::setup::{Setup, fail};
use crate::block::{BlockComponent, BlockComponentId, BlockId, BlockRegistryError, BlockStates, BlockType, Schema};
use crate::simulation::{
    Action, Actor, BlockTypes, Intent, Received, RegionMessage, RegionResource, Returned, SavedComponent,
    SharedMessage, register_message,
};
use crate::space::DimensionId;
use crate::view::{Dimensions, expect_plugin};
use bevy::ecs::component::Mutable;
use bevy::ecs::relationship::Relationship;
use bevy::prelude::*;
use std::any::{TypeId, type_name};
use std::sync::Arc;

/// Registers a game's blocks and the contents of its regions while the app is built.
pub trait TerraneAppExt {
    /// Registers a block type and returns its id, which never changes in this world. Call it after
    /// [`TerranePlugin`](super::TerranePlugin) was added.
    ///
    /// # Errors
    /// Fails if the name is invalid or taken, or if the app runs already.
    fn register_block(&mut self, block: BlockType) -> Result<BlockId, BlockRegistryError>;

    /// Registers all states of a block type, and returns their ids, the default state first. Otherwise the same as
    /// [`register_block`](Self::register_block).
    fn register_block_states(&mut self, states: BlockStates) -> Result<Vec<BlockId>, BlockRegistryError>;

    /// Registers a block component, before the blocks that have it. Call it after
    /// [`TerranePlugin`](super::TerranePlugin) was added.
    ///
    /// # Errors
    /// Fails if the name is invalid or taken, or if the app runs already. A world with values in a version or of a size that the game cannot read is not
    /// opened: the app gets a [`WorldFailure`](super::WorldFailure) and ends at its first update.
    fn register_block_component(&mut self, component: BlockComponent) -> Result<BlockComponentId, BlockRegistryError>;

    /// The id of the dimension with this name, as [`Dimensions::id`] returns it. Ids are stored in the world, so call it after
    /// [`TerranePlugin`](super::TerranePlugin) was added.
    ///
    /// ```
    /// use bevy_terrane::prelude::*;
    ///
    /// #[derive(Resource, Clone, Copy)]
    /// struct Portal([DimensionId; 2]);
    ///
    /// let mut app = App::new();
    /// app.add_plugins((MinimalPlugins, TerranePlugin::in_memory()));
    /// let portal = Portal(["overworld", "moon"].map(|name| app.dimension_id(name)));
    /// app.add_region_plugins(move |region| {
    ///     region.insert_resource(portal);
    /// });
    /// ```
    ///
    /// # Panics
    /// If the app has no `TerranePlugin` yet.
    fn dimension_id(&self, name: &str) -> DimensionId;

    /// Runs `template` once for every new region world, to add systems, plugins, resources, messages and observers.
    fn add_region_plugins(&mut self, template: impl Fn(&mut SubApp) + Send + Sync + 'static) -> &mut Self;

    /// Registers a component that entities keep when they move from one region to another.
    ///
    /// Every component on an entity that can travel (one with a `Position`) and on its followers must be registered or left
    /// behind by [`leave_region_component_behind`](Self::leave_region_component_behind). Otherwise the region's error handler is
    /// called at the end of the tick in which the component first appears.
    ///
    /// References to entities (`#[entities]`) still point to the same entities if these moved too, and are
    /// `Entity::PLACEHOLDER` otherwise. Keep a [`StableId`](crate::simulation::StableId) of an entity that may be in another
    /// region. Changes since the old region's last tick began count as changes in the new region, and older ones do not; an
    /// immutable component counts as added.
    fn register_region_component<T: Component>(&mut self) -> &mut Self;

    /// Keeps relationships `R` between entities that move together, in the order of their target. A relationship to an
    /// entity that stays behind ends. If despawning the target also despawns its sources (`linked_spawn`), the sources follow
    /// the target wherever it goes. `ChildOf` is built in.
    fn register_region_relationship<R: Relationship>(&mut self) -> &mut Self;

    /// Registers a resource that regions combine when they merge, and divide when they split. Of any other resource the larger
    /// region's value stays, and the smaller region's is dropped.
    fn register_region_resource<R: RegionResource>(&mut self) -> &mut Self;

    /// Leaves the component of the type with this full path (as in `std::any::type_name`) behind when its entity moves from
    /// one region to another, without an error.
    fn leave_region_component_behind(&mut self, type_path: &str) -> &mut Self;

    /// Registers a component that travels with its entities and is stored with them, under its
    /// [`TypePath`](SavedComponent). An entity is stored if it has at least one such component.
    ///
    /// A stored value that cannot be read is logged, and stays in the store unchanged. References to entities are
    /// `Entity::PLACEHOLDER` after loading; use a [`StableId`](crate::simulation::StableId) to find an entity again.
    fn register_saved_component<T: SavedComponent>(&mut self) -> &mut Self;

    /// Registers a saved component whose stored form has a version, or whose type path was different before
    /// ([`Schema::formerly`]). Stored values of older versions are migrated. If the world has a version without a migration,
    /// it is not opened: the app gets a [`WorldFailure`](super::WorldFailure). The stored bytes are postcard.
    fn register_saved_component_with<T: SavedComponent>(&mut self, schema: Schema) -> &mut Self;

    /// Mirrors a component on the entity's [`Mirror`](crate::view::Mirror) in the main world.
    fn mirror_region_component<T: Component<Mutability = Mutable> + Clone + PartialEq>(&mut self) -> &mut Self;

    /// Mirrors a component in the main world, as [`mirror_region_component`](Self::mirror_region_component) does, and on all clients that
    /// see the entity. Client and server both call this. The component is sent in postcard, under its type path.
    fn replicate_region_component<T: SavedComponent + Component<Mutability = Mutable> + Clone + PartialEq>(
        &mut self,
    ) -> &mut Self;

    /// The same as [`replicate_region_component`](Self::replicate_region_component), but only for the client that acts for the entity:
    /// for what others must not know, such as an inventory.
    fn replicate_region_component_to_owner<T: SavedComponent + Component<Mutability = Mutable> + Clone + PartialEq>(
        &mut self,
    ) -> &mut Self;

    /// Registers an action. Its entities need an [`Actor`](crate::simulation::Actor), which is saved and replicated to its owner from then
    /// on, and so should be the components that the action changes: call
    /// [`register_saved_component`](Self::register_saved_component), and
    /// [`mirror_region_component`](Self::mirror_region_component) or, for clients,
    /// [`replicate_region_component_to_owner`](Self::replicate_region_component_to_owner) for them.
    fn register_action<A: Action>(&mut self) -> &mut Self;

    /// Registers a message for [`Post`](crate::simulation::Post), read as [`Received<M>`] in the regions and in the main world.
    fn register_region_message<M: RegionMessage>(&mut self) -> &mut Self;

    /// The same as [`register_region_message`](Self::register_region_message), for a message that survives a crash on its way from
    /// region to region, and that also reaches places and entities on other servers of a shared world. It is stored in postcard on its
    /// way, and arrives exactly once, whenever a process is killed. One that cannot be delivered returns once, to its region or, after a
    /// restart, to the main world of a process that has the world alone. Servers of a shared world report it as
    /// [`LetterLost`](crate::view::LetterLost) then.
    fn register_shared_message<M: SharedMessage>(&mut self) -> &mut Self;
}

/// The registrations. If the app runs already, they have no effect, which is logged with the name of `what` was registered.
fn setup<'a>(app: &'a mut App, what: &str) -> Mut<'a, Setup> {
    if app.world().contains_resource::<BlockTypes>() {
        error!(
            "{what} was registered while the app runs, which has no effect: register it while the app is built, before App::run"
        );
    }
    expect_plugin(app.world_mut());
    app.world_mut().get_resource_or_init::<Setup>()
}

/// The registrations, to which a block or a block component of this name is added.
fn setup_for_block<'a>(app: &'a mut App, name: &str) -> Result<Mut<'a, Setup>, BlockRegistryError> {
    match app.world().contains_resource::<BlockTypes>() {
        true => Err(BlockRegistryError::TooLate { name: name.to_owned() }),
        false => Ok(setup(app, name)),
    }
}

impl TerraneAppExt for App {
    fn register_block(&mut self, block: BlockType) -> Result<BlockId, BlockRegistryError> {
        let mut setup = setup_for_block(self, block.name())?;
        setup.registered.push(block.clone());
        setup.blocks.register(block)
    }

    fn register_block_states(&mut self, states: BlockStates) -> Result<Vec<BlockId>, BlockRegistryError> {
        let mut setup = setup_for_block(self, states.name())?;
        let ids = setup.blocks.register_states(states)?;
        let types: Vec<_> = ids.iter().map(|id| setup.blocks.block(*id).clone()).collect();
        setup.registered.extend(types);
        Ok(ids)
    }

    fn register_block_component(&mut self, component: BlockComponent) -> Result<BlockComponentId, BlockRegistryError> {
        let mut setup = setup_for_block(self, component.name())?;
        setup.registered_components.push(component.clone());
        let registered = setup.blocks.register_component(component);
        if let Err(error) = &registered
            && error.is_schema_mismatch()
        {
            // A failed world must not be read or written, so it is closed again.
            setup.store = None;
            fail(self, error.clone().into());
        }
        registered
    }

    fn dimension_id(&self, name: &str) -> DimensionId {
        match self.world().get_resource::<Dimensions>() {
            Some(dimensions) => dimensions.id(name),
            None => panic!(
                "the id of the dimension {name:?} is not known before TerranePlugin was added, since it is stored in the world: add \
                 TerranePlugin first, and then the plugins that ask for ids"
            ),
        }
    }

    fn add_region_plugins(&mut self, template: impl Fn(&mut SubApp) + Send + Sync + 'static) -> &mut Self {
        setup(self, "a closure for add_region_plugins").plugins.push(Arc::new(template));
        self
    }

    fn register_region_component<T: Component>(&mut self) -> &mut Self {
        setup(self, type_name::<T>()).components.register::<T>();
        self
    }

    fn register_region_relationship<R: Relationship>(&mut self) -> &mut Self {
        setup(self, type_name::<R>()).components.register_relationship::<R>();
        self
    }

    fn register_region_resource<R: RegionResource>(&mut self) -> &mut Self {
        setup(self, type_name::<R>()).components.register_resource::<R>();
        self
    }

    fn leave_region_component_behind(&mut self, type_path: &str) -> &mut Self {
        setup(self, type_path).components.leave_behind(type_path);
        self
    }

    fn register_saved_component<T: SavedComponent>(&mut self) -> &mut Self {
        self.register_saved_component_with::<T>(Schema::default())
    }

    fn register_saved_component_with<T: SavedComponent>(&mut self, schema: Schema) -> &mut Self {
        setup(self, type_name::<T>()).components.register_saved_with::<T>(schema);
        self
    }

    fn mirror_region_component<T: Component<Mutability = Mutable> + Clone + PartialEq>(&mut self) -> &mut Self {
        setup(self, type_name::<T>()).components.mirrored.mirror::<T>();
        self
    }

    fn replicate_region_component<T: SavedComponent + Component<Mutability = Mutable> + Clone + PartialEq>(
        &mut self,
    ) -> &mut Self {
        let mirrored = &mut setup(self, type_name::<T>()).components.mirrored;
        match TypeId::of::<T>() == TypeId::of::<Intent>() {
            true => mirrored.replicate_look::<Intent>(),
            false => mirrored.replicate::<T>(true),
        }
        self
    }

    fn replicate_region_component_to_owner<T: SavedComponent + Component<Mutability = Mutable> + Clone + PartialEq>(
        &mut self,
    ) -> &mut Self {
        setup(self, type_name::<T>()).components.mirrored.replicate::<T>(false);
        self
    }

    fn register_action<A: Action>(&mut self) -> &mut Self {
        setup(self, type_name::<A>()).actions.register::<A>();
        self.register_saved_component::<Actor>().replicate_region_component_to_owner::<Actor>()
    }

    fn register_region_message<M: RegionMessage>(&mut self) -> &mut Self {
        self.add_message::<Received<M>>().add_message::<Returned<M>>();
        setup(self, type_name::<M>()).plugins.push(Arc::new(register_message::<M>));
        self
    }

    fn register_shared_message<M: SharedMessage>(&mut self) -> &mut Self {
        setup(self, type_name::<M>()).messages.register::<M>();
        self.register_region_message::<M>()
    }
}
