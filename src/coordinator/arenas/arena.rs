//! What an arena is, and how it is.

use crate::coordinator::jobs::job::JobId;
use crate::coordinator::snapshots::error::JobError;
use crate::coordinator::snapshots::order::{AfterCrash, EntityRestore};
use crate::snapshot::{RestoreSequence, StoredSnapshotError};
use crate::space::{BlockBox, DimensionId};
use bevy::prelude::*;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use thiserror::Error;

/// A box of a dimension with a name and a snapshot on disk, to which it can be reverted again and again. The main world has an
/// entity for each, with its [`ArenaStatus`]: a query lists them.
#[derive(Component, Clone, Debug, PartialEq)]
#[component(immutable)]
#[require(ArenaStatus)]
pub struct Arena {
    /// Its name: 3 to 32 letters, digits, `-` and `_` of ASCII. Names that differ only in case are the same.
    pub name: String,
    /// The dimension.
    pub dimension: DimensionId,
    /// The box, which no other arena reaches into.
    pub area: BlockBox,
    /// How it is reverted.
    pub settings: ArenaSettings,
}

impl Arena {
    /// An arena that is reverted as the default says.
    pub fn new(name: impl Into<String>, dimension: DimensionId, area: BlockBox) -> Self {
        Self { name: name.into(), dimension, area, settings: ArenaSettings::default() }
    }
}

/// How an arena is reverted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArenaSettings {
    /// In which sequence; `None` for all columns as soon as may be.
    pub sequence: Option<RestoreSequence>,
    /// What becomes of entities.
    pub entities: EntityRestore,
    /// What becomes of a revert that the end of the process cuts short.
    pub after_crash: AfterCrash,
    /// After a revert the next one has to wait so long.
    pub cooldown: Duration,
    /// A revert that takes longer is cancelled.
    pub timeout: Duration,
}

impl Default for ArenaSettings {
    /// All columns at once; entities are replaced; a revert goes on after a crash; 5 s of cooldown, 30 s of timeout.
    fn default() -> Self {
        Self {
            sequence: None,
            entities: EntityRestore::default(),
            after_crash: AfterCrash::default(),
            cooldown: Duration::from_secs(5),
            timeout: Duration::from_secs(30),
        }
    }
}

/// What an arena does at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Reflect)]
#[type_path = "bevy_terrane"]
pub enum ArenaState {
    /// It is being captured and stored.
    #[default]
    Creating,
    /// It can be reverted.
    Ready,
    /// It is being reverted.
    Reverting,
    /// It was reverted a moment ago.
    CoolingDown,
    /// It is being removed.
    Removing,
}

/// How an arena is, as it was told last.
#[derive(Component, Clone, Debug, Default, PartialEq, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Component, Clone, Default)]
pub struct ArenaStatus {
    /// What it does.
    pub state: ArenaState,
    /// The job that creates or reverts it.
    pub job: Option<JobId>,
    /// Columns of its snapshot.
    pub columns: usize,
    /// Bytes that its snapshot takes on disk.
    pub bytes: u64,
    /// How often it was reverted since the world was opened.
    pub reverts: u64,
}

/// What was asked of an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Reflect)]
#[type_path = "bevy_terrane"]
pub enum ArenaOrder {
    /// To create it.
    Create,
    /// To revert it.
    Revert,
    /// To remove it.
    Remove,
}

/// Why something that was asked of an arena is not done.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ArenaError {
    /// The world is not on disk, and no other folder for snapshots is set.
    #[error("arenas need a folder: the world is in memory, and `SnapshotConfig::folder` is not set")]
    NoFolder,
    /// The name cannot be one of an arena.
    #[error("{name:?} is no name of an arena: expected 3 to 32 letters, digits, `-` and `_`")]
    Name {
        /// The name.
        name: String,
    },
    /// There is one of this name.
    #[error("there is an arena {name} already")]
    Exists {
        /// The name.
        name: String,
    },
    /// There is none of this name.
    #[error("there is no arena {name}")]
    Unknown {
        /// The name.
        name: String,
    },
    /// The box is empty, or too long.
    #[error("the box of arena {name} is {side} blocks long, expected 1 to {limit}")]
    Size {
        /// The name.
        name: String,
        /// Blocks along its longest side; 0 if it is empty.
        side: u128,
        /// The most that is possible.
        limit: u64,
    },
    /// It would reach into another one.
    #[error("arena {name} would reach into arena {other}")]
    Overlap {
        /// The name.
        name: String,
        /// That of the other one.
        other: String,
    },
    /// Something else is done with it.
    #[error("arena {name} is busy: {state:?}")]
    Busy {
        /// The name.
        name: String,
        /// What is done with it.
        state: ArenaState,
    },
    /// It was reverted a moment ago.
    #[error("arena {name} can be reverted again in {left:?}")]
    CoolingDown {
        /// The name.
        name: String,
        /// How long it has to wait.
        left: Duration,
    },
    /// What is stored of it cannot be used.
    #[error("arena {name} is damaged: {source}")]
    Damaged {
        /// The name.
        name: String,
        /// What is wrong.
        source: Box<StoredSnapshotError>,
    },
    /// It took longer than it may.
    #[error("arena {name} was not reverted within {timeout:?}")]
    TimedOut {
        /// The name.
        name: String,
        /// How long it may take.
        timeout: Duration,
    },
    /// It was tried, and failed.
    #[error("arena {name}: {source}")]
    Failed {
        /// The name.
        name: String,
        /// Why.
        source: Box<JobError>,
    },
}
