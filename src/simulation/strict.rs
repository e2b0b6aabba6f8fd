//! Strict mode, for development: every access outside of the own region is an error that says who owns the place.

use super::BlockAccessError;
use crate::region::RegionId;
use crate::space::{BlockPos, SectionPos};
use rustc_hash::FxHashMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Who owns each section of a dimension, kept by the coordinator.
#[derive(Debug, Default)]
pub struct SectionOwners(RwLock<FxHashMap<SectionPos, RegionId>>);

impl SectionOwners {
    /// Replaces what was known.
    pub fn set(&self, owners: FxHashMap<SectionPos, RegionId>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = owners;
    }

    fn owner(&self, section: SectionPos) -> Option<RegionId> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&section).copied()
    }
}

/// What a region world needs for strict mode.
#[derive(Debug)]
pub(super) struct StrictMode {
    owners: Arc<SectionOwners>,
    /// Accesses of this tick. A system may read blocks through a shared reference.
    violations: Mutex<Vec<BlockAccessError>>,
}

impl StrictMode {
    pub fn new(owners: Arc<SectionOwners>) -> Self {
        Self { owners, violations: Mutex::default() }
    }

    /// Notes an access to a block whose column is not in the region.
    pub fn note(&self, block: BlockPos, section: SectionPos) -> BlockAccessError {
        let error = match self.owners.owner(section) {
            Some(owner) => BlockAccessError::OwnedByOther { block, owner },
            None => BlockAccessError::OutsideRegion(block),
        };
        self.violations.lock().unwrap_or_else(PoisonError::into_inner).push(error);
        error
    }

    /// What systems did wrong since the last call.
    pub fn take(&self) -> Vec<BlockAccessError> {
        mem::take(&mut *self.violations.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
