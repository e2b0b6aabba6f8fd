//! Integration tests, through the public API: one binary, a module a behaviour.

mod architecture;
mod asking;
mod block_ticks;
mod blocks;
mod clock;
mod completions;
mod coupling;
mod crossing;
mod dimensions;
mod entities;
mod failing_store;
mod failures;
mod faults;
mod fetching;
mod generation;
mod halting;
mod independence;
mod lockstep;
mod overlay;
mod plugins;
mod regions;
mod render;
mod saving;
mod support;
mod talk;
mod travel;
