//! Answers the main world's questions about the ground, loaded or not.

pub mod chunk_states;
pub mod opacity;
