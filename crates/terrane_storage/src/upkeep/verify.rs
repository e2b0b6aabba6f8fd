//! Verification of a whole world.

use super::check::{self, Checker};
use super::{Listed, snapshot_check};
use crate::space::{ChunkPos, DimensionId};
use crate::walk::walk;
use crate::work::Progress;
use crate::{ChunkGroup, Family, StoreError, StoredItem, WorldStore};
use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use thiserror::Error;
use uuid::Uuid;

/// Damage in stored data.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Damage {
    /// A value that cannot be used, or a key of unknown form.
    #[error("{what} in {family}: {reason}")]
    Value {
        /// The family.
        family: Family,
        /// The damaged value.
        what: StoredItem,
        /// A description of the damage.
        reason: String,
    },
    /// Keys whose values the database cannot read.
    #[error("keys of {family} from {} to {} cannot be read: {reason}", hex(&keys.start), hex(&keys.end))]
    Unreadable {
        /// The family.
        family: Family,
        /// The unreadable keys. All keys before the range are readable, and the end of the range is readable again.
        keys: Range<Vec<u8>>,
        /// The store's message.
        reason: String,
    },
    /// A group of chunks that is stored twice. The copy in the hotter tier is used.
    #[error("{group} is stored in two tiers")]
    TwoTiers {
        /// The group.
        group: ChunkGroup,
    },
    /// A stored chunk that would be overwritten by the generator.
    #[error("chunk {chunk} of {dimension} is stored, but its column is not marked as stored")]
    Unmarked {
        /// The chunk's dimension.
        dimension: DimensionId,
        /// The chunk's position.
        chunk: ChunkPos,
    },
    /// A file of the world is missing or cannot be read.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// A description of the damage.
        reason: String,
    },
    /// A dimension whose record was lost and replaced.
    #[error("the record of {dimension} is lost; the dimension is now {name:?}, and its generator is unknown")]
    LostRecord {
        /// The dimension.
        dimension: DimensionId,
        /// The new name of the dimension.
        name: String,
    },
    /// An entity that is never loaded, because no key leads to it.
    #[error("entity {entity} is stored, but no key leads to it from its place")]
    Unindexed {
        /// The UUID of the entity.
        entity: Uuid,
    },
}

fn hex(key: &[u8]) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Damage {
    /// Returns `true` if the value itself is whole, but cannot be found or would be lost.
    pub(super) fn is_of_place(&self) -> bool {
        matches!(self, Self::TwoTiers { .. } | Self::Unmarked { .. } | Self::Unindexed { .. })
    }
}

/// The result of [`WorldStore::verify`] or a [salvage](super::salvage()).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VerifyReport {
    /// The amount of data that was read.
    pub read: Progress,
    /// The damage that was found.
    pub damage: Listed<Damage>,
    /// The number of keys that lead to an entity which is elsewhere or gone. They do no harm.
    pub stale: u64,
    /// The number of chunks that are marked as lost, by a salvage or by a game that found them damaged. A game refuses
    /// their columns or generates them again.
    pub marked_lost: u64,
    /// The number of damaged values of which a salvage kept only a [copy](WorldStore::set_aside).
    pub set_aside: u64,
    /// `true` if everything was checked.
    pub finished: bool,
}

impl WorldStore {
    /// Reads and checks everything in the world as a game would: the files of its snapshots, and then its database. Nothing is
    /// changed.
    ///
    /// # Errors
    /// Errors of the store. Damage is not an error but is listed in the report.
    pub fn verify(&self, mut progress: impl FnMut(&Progress) -> ControlFlow<()>) -> Result<VerifyReport, StoreError> {
        let mut report = VerifyReport::default();
        let mut add = |damage| report.damage.add(damage);
        let Some(snapshots) = snapshot_check::check_world(self, &mut progress, &mut add)? else { return Ok(report) };
        let mut checker = Checker::new(self)?;
        let progress = |rest: &Progress| progress(&snapshots.and(rest));
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
        (report.read, report.finished) = (snapshots.and(&read), finished);
        (report.stale, report.marked_lost) = (checker.stale, checker.marked_lost);
        if report.finished && self.store.get(Family::Meta, crate::keys::HEADER) == Ok(None) {
            let (family, what) = (Family::Meta, StoredItem::Header);
            report.damage.add(Damage::Value { family, what, reason: "it is missing".into() });
        }
        Ok(report)
    }
}
