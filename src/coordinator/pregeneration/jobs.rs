//! The pre-generations of a dimension.

use super::job::Job;
use super::progress::PregenerationState;
use crate::generation::DistanceGraph;
use crate::simulation::ColumnError;
use crate::space::{ColumnArea, ColumnPos};
use crate::storage::PregenerationEntry;
use bevy::prelude::*;
use std::collections::BTreeMap;
use std::mem;

/// The jobs of a dimension.
#[derive(Default)]
pub struct Pregenerations {
    pub jobs: BTreeMap<u64, Job>,
    pub last_number: u64,
    /// Columns that failed since the jobs looked last, and why.
    pub failures: BTreeMap<ColumnPos, ColumnError>,
    /// The numbers of stored jobs that cannot be read.
    pub damaged: Vec<u64>,
}

impl Pregenerations {
    /// The jobs that the store remembers.
    pub fn restore(entries: Vec<PregenerationEntry>, stored: &DistanceGraph) -> Self {
        let mut restored = Self::default();
        for (number, entry) in entries {
            restored.last_number = restored.last_number.max(number);
            match entry {
                Ok(entry) => drop(restored.jobs.insert(number, Job::restore(entry, stored))),
                Err(error) => {
                    warn!("a pre-generation is forgotten, what it made is not: {error}");
                    restored.damaged.push(number);
                }
            }
        }
        restored
    }

    /// A column could not be made for the store; says whether a job had ordered it.
    pub fn note_failure(&mut self, column: ColumnPos, error: &ColumnError) -> bool {
        let is_of_job = self.jobs.values().any(|job| job.has_ordered(column));
        if is_of_job {
            self.failures.insert(column, error.clone());
        }
        is_of_job
    }

    /// Columns that the jobs have on order.
    pub fn in_flight(&self) -> usize {
        self.jobs.values().map(Job::in_flight).sum()
    }

    /// The number of the job that runs.
    pub fn running(&self) -> Option<u64> {
        let is_running = |(_, job): &(&u64, &Job)| job.state() == PregenerationState::Running;
        self.jobs.iter().find(is_running).map(|(number, _)| *number)
    }

    /// The first job that may run does.
    pub fn assign_states(&mut self) {
        let mut first = PregenerationState::Running;
        for job in self.jobs.values_mut() {
            let state = if job.is_paused {
                PregenerationState::Paused
            } else {
                mem::replace(&mut first, PregenerationState::Waiting)
            };
            job.set_state(state);
        }
    }

    /// The job of the entity, or one of the same area that the store remembers and nobody asked for yet.
    pub fn find(&mut self, entity: Entity, area: ColumnArea) -> Option<&mut Job> {
        let is_own = |job: &Job| job.entity == Some(entity);
        let number = self.jobs.iter().find(|(_, job)| is_own(job)).map(|(number, _)| *number).or_else(|| {
            let is_same = |job: &Job| job.entity.is_none() && job.area == area;
            self.jobs.iter().find(|(_, job)| is_same(job)).map(|(number, _)| *number)
        });
        self.jobs.get_mut(&number?)
    }
}
