//! The ground of a region: what game systems read and write of it, and what becomes of that.

pub(super) mod block_data;
pub(super) mod block_ticks;
pub(super) mod blocks;
pub(super) mod column_source;
pub(super) mod column_work;
pub(super) mod damaged_ground;
pub(super) mod unsaved;
pub(super) mod work;
