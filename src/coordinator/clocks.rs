//! How time passes: the clocks of dimensions, orders for one region, and regions that tick together.

pub(super) mod advance;
pub(super) mod clock;
pub(super) mod control;
pub(super) mod coupling;
pub(super) mod orders;
