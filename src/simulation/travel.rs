//! Moving entities, and the region's other data, between region worlds and between region worlds and the store.

pub(super) mod arrival;
pub(super) mod components;
pub(super) mod departure;
pub(super) mod entities;
pub(super) mod followers;
pub(super) mod leaving;
pub(super) mod mapping;
pub(super) mod merge_split;
pub(super) mod messages;
pub(super) mod relationships;
pub(super) mod resources;
pub(super) mod saved_type;
pub(super) mod stored_entities;
pub(super) mod ticks;
pub(super) mod unregistered;
