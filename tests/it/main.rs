//! Integration tests, through the public API: one binary, a module a behaviour.

mod architecture;
mod blocks;
mod dimensions;
mod entities;
mod failing_store;
mod failures;
mod independence;
mod lockstep;
mod plugins;
mod regions;
mod render;
mod saving;
mod support;
mod travel;
