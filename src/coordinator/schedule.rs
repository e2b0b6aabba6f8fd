//! When regions tick: deadlines, orders for clocks and regions, and regions that tick together.

pub mod control;
pub mod deadlines;
