//! The edits and actions of a frame, and their numbers.

use crate::coordinator::messages::ActionId;
use crate::simulation::{BlockEdit, ErasedAction, SetBlock};
use bevy::prelude::*;
use std::mem;
use std::sync::Arc;
use uuid::Uuid;

/// The edits and actions of this frame, for the regions.
#[derive(Resource, Default)]
pub struct EditQueue {
    pub(super) edits: Vec<BlockEdit>,
    actions: Vec<(ActionId, Uuid, Arc<dyn ErasedAction>)>,
    /// The number of the last edit or action.
    last: u64,
}

impl EditQueue {
    /// A number for an edit or an action, never used twice and higher than all earlier ones.
    pub(super) fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Adds an action of an entity.
    pub(super) fn push_action(&mut self, actor: Uuid, action: Arc<dyn ErasedAction>) -> ActionId {
        let id = ActionId(self.number());
        self.actions.push((id, actor, action));
        id
    }

    pub(super) fn take_actions(&mut self) -> Vec<(ActionId, Uuid, Arc<dyn ErasedAction>)> {
        mem::take(&mut self.actions)
    }

    /// Adds an edit of a client, and returns its number.
    pub(super) fn push_of_client(&mut self, request: SetBlock) -> u64 {
        let number = self.number();
        self.edits.push(BlockEdit { request, number: Some(number) });
        number
    }
}
