//! Arenas, their settings, their status and their errors.

use crate::coordinator::messages::jobs::JobId;
use crate::coordinator::messages::snapshots::JobError;
use crate::coordinator::messages::snapshots::{AfterCrash, EntityRestore};
use crate::snapshot::{RestoreSequence, StoredSnapshotError};
use crate::space::{BlockBox, DimensionId};
use bevy::prelude::*;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use thiserror::Error;

/// A box of a dimension with a name and a snapshot on disk, to which it can be reverted again and again. The main world has an
/// entity for each arena, with its [`ArenaStatus`], so a query lists them.
#[derive(Component, Clone, Debug, PartialEq, Reflect)]
#[type_path = "bevy_terrane"]
#[component(immutable)]
#[require(ArenaStatus)]
#[reflect(Component, Clone)]
pub struct Arena {
    /// The name: 3 to 32 ASCII letters, digits, `-` and `_`. Case is ignored when names are compared.
    pub name: String,
    /// The dimension.
    pub dimension: DimensionId,
    /// The box, which must not overlap another arena.
    pub area: BlockBox,
    /// How the arena is reverted.
    pub settings: ArenaSettings,
}

impl Arena {
    /// An arena with the default settings.
    pub fn new(name: impl Into<String>, dimension: DimensionId, area: BlockBox) -> Self {
        Self { name: name.into(), dimension, area, settings: ArenaSettings::default() }
    }
}

/// How an arena is reverted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, Reflect)]
#[type_path = "bevy_terrane"]
pub struct ArenaSettings {
    /// The sequence of the restore; `None` for all columns as soon as possible.
    pub sequence: Option<RestoreSequence>,
    /// How entities are treated.
    pub entities: EntityRestore,
    /// How a revert is handled if the end of the process interrupts it.
    pub after_crash: AfterCrash,
    /// The time after a revert before the next one is allowed.
    pub cooldown: Duration,
    /// The time after which a revert is cancelled.
    pub timeout: Duration,
}

impl Default for ArenaSettings {
    /// All columns at once; entities are replaced; an interrupted revert continues; 5 s of cooldown, 30 s of timeout.
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

/// The state of an arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Reflect)]
#[type_path = "bevy_terrane"]
pub enum ArenaState {
    /// The arena is being captured and stored.
    #[default]
    Creating,
    /// The arena can be reverted.
    Ready,
    /// The arena is being reverted.
    Reverting,
    /// The arena was reverted a moment ago.
    CoolingDown,
    /// The arena is being removed.
    Removing,
}

/// The latest published status of an arena.
#[derive(Component, Clone, Debug, Default, PartialEq, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Component, Clone, Default)]
pub struct ArenaStatus {
    /// The state.
    pub state: ArenaState,
    /// The job that creates or reverts the arena.
    pub job: Option<JobId>,
    /// The number of columns in the snapshot.
    pub columns: usize,
    /// The size of the snapshot on disk, in bytes.
    pub bytes: u64,
    /// The number of reverts since the world was opened.
    pub reverts: u64,
}

/// An action on an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Reflect)]
#[type_path = "bevy_terrane"]
pub enum ArenaOrder {
    /// Create the arena.
    Create,
    /// Revert the arena.
    Revert,
    /// Remove the arena.
    Remove,
}

/// Why an order for an arena was refused or failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ArenaError {
    /// The world is in memory, and no other folder for snapshots is set.
    #[error("arenas need a folder: the world is in memory, and `SnapshotConfig::folder` is not set")]
    NoFolder,
    /// Servers share the world, and snapshots are files of one machine.
    #[error("arenas: not possible in a world that several servers share")]
    Shared,
    /// The name is not valid for an arena.
    #[error("{name:?} is not a valid arena name: expected 3 to 32 letters, digits, `-` and `_`")]
    Name {
        /// The name.
        name: String,
    },
    /// An arena of this name exists.
    #[error("arena {name} already exists")]
    Exists {
        /// The name.
        name: String,
    },
    /// No arena has this name.
    #[error("there is no arena {name}")]
    Unknown {
        /// The name.
        name: String,
    },
    /// The box is empty or too long.
    #[error("the box of arena {name} is {side} blocks long, expected 1 to {limit}")]
    Size {
        /// The name.
        name: String,
        /// The length of the longest side in blocks; 0 if the box is empty.
        side: u128,
        /// The limit.
        limit: u64,
    },
    /// The box overlaps another arena.
    #[error("arena {name} would overlap arena {other}")]
    Overlap {
        /// The name.
        name: String,
        /// The name of the other arena.
        other: String,
    },
    /// Another action on the arena is still running.
    #[error("arena {name} is busy: {state:?}")]
    Busy {
        /// The name.
        name: String,
        /// The state of the arena.
        state: ArenaState,
    },
    /// The arena was reverted a moment ago.
    #[error("arena {name} can be reverted again in {left:?}")]
    CoolingDown {
        /// The name.
        name: String,
        /// The rest of the cooldown.
        left: Duration,
    },
    /// The stored snapshot of the arena cannot be used.
    #[error("arena {name} is damaged: {source}")]
    Damaged {
        /// The name.
        name: String,
        /// The error.
        source: Box<StoredSnapshotError>,
    },
    /// The revert took longer than allowed.
    #[error("arena {name} was not reverted within {timeout:?}")]
    TimedOut {
        /// The name.
        name: String,
        /// The allowed time.
        timeout: Duration,
    },
    /// The job failed.
    #[error("arena {name}: {source}")]
    Failed {
        /// The name.
        name: String,
        /// The error.
        source: Box<JobError>,
    },
}
