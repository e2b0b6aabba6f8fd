//! The errors that clients are told.

/// The codes of errors.
pub mod code {
    /// The text is not JSON.
    pub const PARSE: i16 = -32700;
    /// The JSON is not a request.
    pub const REQUEST: i16 = -32600;
    /// There is no such method.
    pub const METHOD: i16 = -32601;
    /// The parameters are not those of the method.
    pub const PARAMS: i16 = -32602;
    /// A mistake in this crate or in the game.
    pub const INTERNAL: i16 = -32603;

    // Of Bevy's remote protocol.
    /// No such entity is loaded.
    pub const NO_ENTITY: i16 = -23401;
    /// The value or the type of a component does not fit, or the component must not be changed.
    pub const COMPONENT: i16 = -23402;
    /// The entity has no such component.
    pub const NO_COMPONENT: i16 = -23403;

    // Of this crate.
    /// There is no such dimension or region, or its ground is not loaded.
    pub const NO_PLACE: i16 = -23601;
    /// The region is halted.
    pub const HALTED: i16 = -23602;
    /// No region has answered.
    pub const NO_ANSWER: i16 = -23603;
    /// Too many requests are under way.
    pub const BUSY: i16 = -23604;
    /// Clients may not change the world, or not in this way.
    pub const FORBIDDEN: i16 = -23605;
    /// The answer is too large.
    pub const TOO_LARGE: i16 = -23606;
}

/// An error that the client is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcError {
    /// One of the [codes](code).
    pub code: i16,
    /// What is wrong.
    pub message: String,
}

impl RpcError {
    pub fn new(code: i16, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// No region has answered in time.
pub fn no_answer() -> RpcError {
    RpcError::new(
        code::NO_ANSWER,
        "no region has answered in time: it is paused or halted, it hangs, or the app stands still. A change may still be made",
    )
}
