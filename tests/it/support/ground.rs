//! A generator that can be watched.

use bevy_terrane::generation::{GenerateError, GenerateRequest, GeneratorIdentity};
use bevy_terrane::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Level terrain that records its requests, fails on demand, and waits at a gate.
#[derive(Clone, Default)]
pub struct Watched(Arc<Inner>);

#[derive(Default)]
struct Inner {
    asked: Mutex<Vec<ColumnPos>>,
    failing: Mutex<BTreeSet<ColumnPos>>,
    fails_everywhere: AtomicBool,
    /// The number of columns that may still pass; `None` for all.
    gate: Mutex<Option<usize>>,
    opened: Condvar,
}

impl Watched {
    pub fn asked(&self) -> Vec<ColumnPos> {
        self.0.asked.lock().unwrap().clone()
    }

    /// The number of requests for each column since the last call.
    pub fn take_calls(&self) -> BTreeMap<ColumnPos, usize> {
        let mut calls = BTreeMap::new();
        for column in std::mem::take(&mut *self.0.asked.lock().unwrap()) {
            *calls.entry(column).or_insert(0) += 1;
        }
        calls
    }

    pub fn fail(&self, columns: &[ColumnPos]) {
        *self.0.failing.lock().unwrap() = columns.iter().copied().collect();
    }

    pub fn fail_everywhere(&self) {
        self.0.fails_everywhere.store(true, Ordering::SeqCst);
    }

    pub fn close_gate_after(&self, columns: usize) {
        *self.0.gate.lock().unwrap() = Some(columns);
    }

    pub fn open_gate(&self) {
        *self.0.gate.lock().unwrap() = None;
        self.0.opened.notify_all();
    }

    pub fn dimension(&self, name: &str) -> Dimension {
        Dimension::new(name, self.clone())
    }
}

impl Generator for Watched {
    fn identity(&self) -> GeneratorIdentity {
        GeneratorIdentity { name: "watched".into(), version: 1, seed: 0 }
    }

    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        let column = request.column;
        self.0.asked.lock().unwrap().push(column);
        let closed = |gate: &mut Option<usize>| *gate == Some(0);
        // A failed test may leave the gate closed.
        let wait = self.0.opened.wait_timeout_while(self.0.gate.lock().unwrap(), Duration::from_secs(120), closed);
        let (mut gate, _) = wait.unwrap();
        if let Some(left) = &mut *gate {
            *left = left.saturating_sub(1);
        }
        drop(gate);
        let fails = self.0.fails_everywhere.load(Ordering::SeqCst);
        if fails || self.0.failing.lock().unwrap().contains(&column) {
            assert!(column.x % 2 == 0, "an odd column makes it panic");
            return Err(GenerateError::Failed { column, reason: "no ground here".into() });
        }
        Flat::new().generate(request)
    }
}

/// The columns within the radius, computed from the definition.
pub fn disc(center: ColumnPos, radius: i64) -> BTreeSet<ColumnPos> {
    let square = (-radius..=radius).flat_map(|z| (-radius..=radius).map(move |x| (x, z)));
    let inside = square.filter(|(x, z)| x * x + z * z <= radius * radius);
    inside.map(|(x, z)| ColumnPos::new(center.x + x, center.z + z)).collect()
}
