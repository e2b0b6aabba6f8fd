//! Tests of the regionizer: its invariants, a model, scenarios, and the standard workloads.

mod invariants;
mod model;
mod scenarios;
mod workloads;
