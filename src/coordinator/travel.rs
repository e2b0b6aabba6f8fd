//! What is on its way between worlds: letters, entities whose ground is not there, and players.

pub(super) mod letter_limits;
pub(super) mod letters;
pub(super) mod log_in;
pub(super) mod players;
pub(super) mod transit;
