//! Bodies of the physics engine avian on the ground of bevy_terrane. The crate knows no physics engine: all of this stands on its
//! hook for meshers.

pub mod ground;
