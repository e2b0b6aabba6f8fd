//! What becomes of actions.

use crate::simulation::Refusal;
use bevy::prelude::*;
use uuid::Uuid;

/// The number of an action, unique in this run of the app. A later action has a higher number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionId(pub(crate) u64);

/// Tells what has become of an action: each is done or refused and, if it was done, durable or lost later.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct ActionAnswer {
    /// The number of the action, from [`Actions::act`](crate::view::Actions::act).
    pub action: ActionId,
    /// The stable id of the entity.
    pub actor: Uuid,
    /// What has become of it.
    pub outcome: ActionOutcome,
}

/// What has become of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionOutcome {
    /// Its region has done it.
    Done,
    /// It was not done, for this reason.
    Refused(Refusal),
    /// What it did is in the store, and survives a loss of power.
    Durable,
    /// It was done, but its region halted before it was saved, so what it did is undone.
    Lost,
}
