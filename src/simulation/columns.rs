//! A region's ground: how game systems read and edit it, and how changes are saved.

pub(super) mod block_data;
pub(super) mod block_ticks;
pub(super) mod blocks;
pub(super) mod column_source;
pub(super) mod column_work;
pub(super) mod damaged_ground;
pub(super) mod extension;
pub(super) mod light;
pub(super) mod notices;
pub(super) mod random_ticks;
