//! What is on its way between worlds: letters, entities whose ground is not there, and players.

pub(super) mod players;
pub(super) mod post;
pub(super) mod transit;
