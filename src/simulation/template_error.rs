//! What can be wrong with the region worlds as the game wants them.

/// Why the region worlds cannot be made as the game wants them, or lose something that it did not register.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegionTemplateError {
    /// A region has a clock of its own, the dimension's.
    #[error(
        "TimePlugin was added to the region worlds: leave it out, `Res<Time>` in a region is the dimension's clock \
         and advances by one tick"
    )]
    TimePlugin,
    /// A relationship has two ends, which must be on the way together.
    #[error(
        "component {0} was registered as a region component, but is a relationship or the target of one: call \
         register_region_relationship for the relationship instead (ChildOf is built in)"
    )]
    Relationship(&'static str),
    /// Of two types with one path, nobody could tell the stored values apart.
    #[error(
        "two saved components have the type path {0}: give one of them another, by #[type_path = \"...\"] or #[type_name = \
         \"...\"] beside its derive of TypePath or Reflect"
    )]
    SavedTwice(&'static str),
    /// A region ticks on any of the region threads, and its data goes from one to the next.
    #[error(
        "{0} is NonSend, and was added to the region worlds, which go from thread to thread: keep it in the main world, or \
         make it a Resource that is Send and Sync"
    )]
    NonSend(String),
    /// A region ticks on any of the region threads.
    #[error(
        "the system {0} of the region worlds wants to run on the main thread (NonSend, NonSendMut or NonSendMarker), and \
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
    /// Components, by the full paths of their types, are on entities that can travel, and nobody said what becomes of them on a
    /// journey. The region's error handler gets it.
    #[error(
        "{} would be lost as soon as its entity moves to another region: call register_region_component or \
         register_saved_component for it (register_region_relationship, if it is a relationship), or \
         leave_region_component_behind with this path if it is to stay behind",
        .0.join(", ")
    )]
    UnregisteredComponents(Vec<String>),
    /// A message of this type was sent, and nobody could read it. The region's error handler gets it.
    #[error("{0} cannot be sent: call register_region_message::<{0}>() on the app")]
    UnregisteredMessage(&'static str),
}
