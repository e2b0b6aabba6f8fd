//! What the main world asks of ground, loaded or not.

pub(super) mod chunk_states;
pub(super) mod opacity;
pub(super) mod question;
