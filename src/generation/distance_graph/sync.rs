//! The lock of [`Completions`](super::Completions), in one place so that a model checker can put its own there.

pub(super) use std::sync::Mutex;
