//! Everything in flight between worlds: letters, entities whose ground is not loaded, and players.

pub(super) mod letter_limits;
pub(super) mod letters;
pub(super) mod log_in;
pub(super) mod players;
pub(super) mod transit;
