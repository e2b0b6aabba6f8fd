//! Errors of the game's region worlds.

use super::ground::GroundError;

/// The reason why the region worlds cannot be built, or why they would lose an unregistered component or message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegionTemplateError {
    /// `TimePlugin` was added, but a region has its own clock, that of the dimension.
    #[error(
        "TimePlugin was added to the region worlds: leave it out, `Res<Time>` in a region is the dimension's clock \
         and advances by one tick"
    )]
    TimePlugin,
    /// Rules of ground that lives do not fit the registered blocks.
    #[error(transparent)]
    Ground(#[from] GroundError),
    /// A relationship was registered as a region component, but its two ends must travel together.
    #[error(
        "component {0} was registered as a region component, but is a relationship or the target of one: call \
         register_region_relationship for the relationship instead (ChildOf is built in)"
    )]
    Relationship(&'static str),
    /// Two types have one path, so their stored values cannot be distinguished.
    #[error(
        "two saved components have the type path {0}: give one of them another, by #[type_path = \"...\"] or #[type_name = \
         \"...\"] beside its derive of TypePath or Reflect"
    )]
    SavedTwice(&'static str),
    /// A NonSend resource was added. A region ticks on any of the region threads, and its data moves between them.
    #[error(
        "{0} is NonSend, and was added to the region worlds, which go from thread to thread: keep it in the main world, or \
         make it a Resource that is Send and Sync"
    )]
    NonSend(String),
    /// A system must run on the main thread. A region ticks on any of the region threads.
    #[error(
        "the system {0} of the region worlds must run on the main thread (NonSend, NonSendMut or NonSendMarker), and \
         regions tick on threads of their own: add it to the main app"
    )]
    NonSendSystem(String),
    /// The world has values of a saved component in a version that the game cannot read.
    #[error(
        "the world has values of the saved component {path} in version {stored}, but the game's has version {declared} and \
         no migration from that"
    )]
    SavedVersion {
        /// The component's type.
        path: String,
        /// The version in the world.
        stored: u32,
        /// The version of the game.
        declared: u32,
    },
    /// Unregistered components, by the full paths of their types, are on entities that can travel. The region's error handler
    /// gets this error.
    #[error(
        "{} is not registered, and would be lost as soon as its entity moves to another region: call register_region_component or \
         register_saved_component for it (register_region_relationship, if it is a relationship), or \
         leave_region_component_behind with this path if it is to stay behind",
        .0.join(", ")
    )]
    UnregisteredComponents(Vec<String>),
    /// An unregistered message of this type was sent, which no system could read. The region's error handler gets this error.
    #[error("{0} cannot be sent: call register_region_message::<{0}>() on the app")]
    UnregisteredMessage(&'static str),
}
