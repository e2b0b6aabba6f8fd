//! Is everything in a world what was written?

use super::Listed;
use super::check::{self, Checker};
use crate::space::{ChunkPos, DimensionId};
use crate::walk::walk;
use crate::work::Progress;
use crate::{ChunkGroup, Family, StoreError, StoredItem, WorldStore};
use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use thiserror::Error;
use uuid::Uuid;

/// Something stored that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Damage {
    /// A value that nobody can use, or a key of an unknown form.
    #[error("{what} in {family}: {reason}")]
    Value {
        /// In which family.
        family: Family,
        /// Which value.
        what: StoredItem,
        /// What is wrong with it.
        reason: String,
    },
    /// Keys whose values the database cannot read.
    #[error("keys of {family} from {} to {} cannot be read: {reason}", hex(&keys.start), hex(&keys.end))]
    Unreadable {
        /// In which family.
        family: Family,
        /// From the first key on, all before which can be read, to the one from which on can be read.
        keys: Range<Vec<u8>>,
        /// What the store said.
        reason: String,
    },
    /// A group of chunks that is stored twice; the hotter one counts.
    #[error("{group} is stored in two tiers")]
    TwoTiers {
        /// The group.
        group: ChunkGroup,
    },
    /// A chunk that would be generated anew, over what is stored.
    #[error("chunk {chunk} of {dimension} is stored, but its column is not marked as stored")]
    Unmarked {
        /// Its dimension.
        dimension: DimensionId,
        /// Where it is.
        chunk: ChunkPos,
    },
    /// A file of the world that is missing or cannot be read.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A dimension whose record is lost, and that gets a new one.
    #[error("the record of {dimension} is lost; the dimension is now {name:?}, and nothing is known of its generator")]
    LostRecord {
        /// The dimension.
        dimension: DimensionId,
        /// The name that it has now.
        name: String,
    },
    /// An entity that is never loaded, because nothing says where it is.
    #[error("entity {entity} is stored, but no key leads to it from its place")]
    Unindexed {
        /// Its id.
        entity: Uuid,
    },
}

fn hex(key: &[u8]) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Damage {
    /// Whether a value is whole that cannot be found, or would be lost.
    pub(super) fn is_of_place(&self) -> bool {
        matches!(self, Self::TwoTiers { .. } | Self::Unmarked { .. } | Self::Unindexed { .. })
    }
}

/// What [`WorldStore::verify`] or a [salvage](super::salvage()) found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VerifyReport {
    /// What was read.
    pub read: Progress,
    /// What is damaged.
    pub damage: Listed<Damage>,
    /// Keys that lead to an entity which is somewhere else or gone. They do no harm.
    pub stale: u64,
    /// Chunks that are marked as lost, by a salvage or a game that found them damaged: a game refuses their columns, or
    /// generates them anew.
    pub marked_lost: u64,
    /// Damaged values of which a salvage kept only a [copy](WorldStore::set_aside).
    pub set_aside: u64,
    /// Whether all was looked at.
    pub finished: bool,
}

impl WorldStore {
    /// Reads everything in the world and checks it as whoever needs it would. Nothing is changed.
    ///
    /// # Errors
    /// Those of the store, but not what is damaged in it: that is in the report.
    pub fn verify(&self, progress: impl FnMut(&Progress) -> ControlFlow<()>) -> Result<VerifyReport, StoreError> {
        let mut report = VerifyReport::default();
        let mut checker = Checker::new(self)?;
        let (read, finished) = walk(&*self.store, check::ranges(), progress, |family, found| {
            match found {
                Ok(page) => {
                    for (key, value) in page {
                        checker.check(family, key, value)?.into_iter().for_each(|damage| report.damage.add(damage));
                    }
                }
                Err((keys, reason)) => {
                    checker.miss(family);
                    report.damage.add(Damage::Unreadable { family, keys, reason });
                }
            }
            Ok::<_, StoreError>(())
        })?;
        (report.read, report.finished) = (read, finished);
        (report.stale, report.marked_lost) = (checker.stale, checker.marked_lost);
        if report.finished && self.store.get(Family::Meta, crate::keys::HEADER) == Ok(None) {
            let (family, what) = (Family::Meta, StoredItem::Header);
            report.damage.add(Damage::Value { family, what, reason: "it is missing".into() });
        }
        Ok(report)
    }
}
