//! The letters of a pass, in order.

use crate::coordinator::mail::backlog::LetterBacklog;
use crate::coordinator::mail::directory::Directory;
use crate::coordinator::messages::settings::LetterLimits;
use crate::simulation::{Address, Letter, MirrorUpdate, SharedMessages, Traveller, Undeliverable};
use crate::storage::EntityRecord;
use crate::storage::servers::CrossingId;
use bevy::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// The letters to be sorted. `passes::letters` sorts them.
#[derive(Resource)]
pub struct MailQueue {
    queue: VecDeque<Mail>,
    pub backlog: LetterBacklog,
    /// Entities that were to enter the world and did not reach their place.
    pub lost_arrivals: Vec<(Uuid, Undeliverable)>,
    /// Players that left this server's ground on their own.
    pub straggling_players: Vec<EntityRecord>,
    /// The messages that other servers can get.
    messages: Arc<SharedMessages>,
    /// `true` if several servers share the world.
    is_shared: bool,
    /// Letters to entities that are not here. They may be on another server.
    pub for_elsewhere: Vec<Letter>,
    /// When the store may be asked for their places next; `None` while it is asked.
    pub next_search: Option<Duration>,
    /// The numbers of letters that are stored on their way and did not reach their region.
    pub returned: Vec<CrossingId>,
    /// When they may be read from the store again, in a world that this process has alone.
    pub read_again: Duration,
}

/// A letter in the queue.
pub enum Mail {
    /// A new letter of the game.
    New(Letter),
    /// A letter in flight.
    Underway(Letter),
    /// A letter on its way back to its sender.
    Undeliverable(Letter, Undeliverable),
}

impl MailQueue {
    /// An empty queue. `messages` are those that other servers can get, `is_shared` if there are others.
    pub fn new(limits: LetterLimits, messages: Arc<SharedMessages>, is_shared: bool) -> Self {
        let (queue, backlog) = (VecDeque::new(), LetterBacklog::new(limits));
        let (lost_arrivals, straggling_players, for_elsewhere, returned) = Default::default();
        let next_search = Some(Duration::ZERO);
        Self {
            queue,
            backlog,
            lost_arrivals,
            straggling_players,
            messages,
            is_shared,
            for_elsewhere,
            next_search,
            returned,
            read_again: Duration::ZERO,
        }
    }

    /// Returns `true` if several servers share the world.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// The letter in the form in which another server gets it, if it is a message of a shared type.
    pub fn share(&self, letter: &Letter) -> Option<(String, Vec<u8>)> {
        if self.is_shared { letter.shared(&self.messages) } else { None }
    }

    /// A letter of a region in the form in which it is stored on its way, if its type is shared.
    pub fn stored_form(&self, letter: &Letter) -> Option<(String, Vec<u8>)> {
        letter.shared(&self.messages)
    }

    /// Takes a message that was stored on its way. The error is the reason why it cannot be read.
    pub fn receive(&mut self, id: CrossingId, to: Address, kind: &str, bytes: &[u8]) -> Result<(), String> {
        let letter = Letter::from_server(id, to, &self.messages, kind, bytes)?;
        self.queue.push_back(Mail::Underway(letter));
        Ok(())
    }

    /// Takes a letter of the game. It comes back if there are too many.
    pub fn accept(&mut self, letter: Letter) {
        self.queue.push_back(Mail::New(letter));
    }

    /// Takes a letter of the crate, or one that was accepted before.
    pub fn send(&mut self, letter: Letter) {
        self.queue.push_back(Mail::Underway(letter));
    }

    /// Takes an undeliverable letter. It goes back to its sender, or is reported as lost.
    pub fn give_back(&mut self, letter: Letter, reason: Undeliverable) {
        self.queue.push_back(Mail::Undeliverable(letter, reason));
    }

    /// Ends an entity's journey: its stored data stays, and its letters come back. Returns the mirrors that go.
    #[must_use]
    pub fn drop_traveller(
        &mut self,
        traveller: Traveller,
        reason: impl Fn(Uuid) -> Undeliverable,
        directory: &mut Directory,
    ) -> Vec<MirrorUpdate> {
        directory.forget_journey(&traveller);
        let gone = traveller.ids.iter().copied().map(MirrorUpdate::gone).collect();
        for letter in traveller.letters {
            let reason = reason(letter.entity().unwrap_or(traveller.id));
            self.give_back(letter, reason);
        }
        gone
    }

    /// The next letter of the queue.
    pub fn next(&mut self) -> Option<Mail> {
        self.queue.pop_front()
    }
}
