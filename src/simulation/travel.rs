//! Moving entities, and the region's other data, between region worlds and between region worlds and the store.

pub mod arrival;
pub mod departure;
pub mod leaving;
pub mod merge_split;
