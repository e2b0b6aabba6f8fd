//! Answers the main world's questions about the ground, loaded or not.

pub(super) mod chunk_states;
pub(super) mod opacity;
pub(super) mod question;
