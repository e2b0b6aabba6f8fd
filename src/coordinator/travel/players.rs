//! Players: who is in the world, who comes, who has gone.
//!
//! A name is found in the pending save or else in the store, read on a loading thread. What brings the player in is a
//! letter to its place: the ground is loaded for it, and it follows merges and waits for a region that halted like any
//! other letter.

use crate::coordinator::desk::Desk;
use crate::coordinator::events::{LogInRefused, PlayerLoggedIn, PlayerLoggedOut};
use crate::coordinator::exchange::Event;
use crate::coordinator::threads::{Place, WorkError};
use crate::simulation::{Letter, LetterSender, LoggedOut, Player, Position, SplitMix64, Undeliverable};
use crate::space::{BlockPos, DimensionId};
use crate::storage::{EntityRecord, StoredDimension, WorldStore};
use bevy::prelude::*;
use std::collections::BTreeMap;
use std::mem;
use thiserror::Error;
use uuid::Uuid;

/// Names are at most so long, in bytes.
const LONGEST_NAME: usize = 255;

/// Why a player cannot come into the world.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LogInError {
    /// Nobody of this name has been in the world, and it was not said where a new player begins.
    #[error("no player of this name is known, and no place is given for a new one")]
    UnknownName,
    /// The name is empty or too long.
    #[error("a name has 1 to {LONGEST_NAME} bytes, and this one {0}")]
    InvalidName(usize),
    /// The player is in the world, or on its way into it.
    #[error("the player is in the world already")]
    AlreadyThere,
    /// The dimension that the player is in is not open.
    #[error("the player is in {0}, which is not open")]
    DimensionNotOpen(DimensionId),
    /// The place for a new player is in no open dimension.
    #[error("{0} is no open dimension")]
    NotADimension(Entity),
    /// Nobody could look for the player, the store cannot be read, or the player's record is damaged.
    #[error(transparent)]
    Work(#[from] WorkError),
    /// The player did not arrive; what is stored of it is as it was.
    #[error("the player did not arrive: {0}")]
    Lost(#[source] Undeliverable),
}

/// What the store says of a name.
pub(in crate::coordinator) struct PlayerRead {
    pub name: String,
    pub found: Result<Option<EntityRecord>, WorkError>,
    /// The dimension where it was is removed.
    pub is_homeless: bool,
}

/// Who is in the world or on the way into it, by name.
#[derive(Resource, Default)]
pub(in crate::coordinator) struct Players {
    present: BTreeMap<String, Presence>,
    /// Some may be there whom nobody was told of.
    is_somebody_coming: bool,
    /// New ones since the app began.
    made: u64,
}

enum Presence {
    /// The store is asked; a new one would begin there.
    Asked {
        first_place: Option<(Entity, BlockPos)>,
    },
    Coming {
        id: Uuid,
        place: (DimensionId, BlockPos),
        is_new: bool,
        logs_out: bool,
    },
    There {
        id: Uuid,
    },
}

impl Desk<'_> {
    pub fn log_in(&mut self, name: String, first_place: Option<(Entity, BlockPos)>) {
        if !(1..=LONGEST_NAME).contains(&name.len()) {
            let reason = LogInError::InvalidName(name.len());
            return self.refuse_log_in(name, reason);
        }
        if self.players.present.contains_key(&name) {
            return self.publisher.event(LogInRefused { name, reason: LogInError::AlreadyThere });
        }
        self.players.present.insert(name.clone(), Presence::Asked { first_place });
        match self.unwritten_player(&name) {
            Some(record) => self.admit(name, record, false),
            None => self.read_player(name),
        }
    }

    /// Has the player of this name looked for in the store; an event tells what was found.
    fn read_player(&mut self, name: String) {
        let wanted = name.clone();
        let read = move |store: &WorldStore, _: &_| {
            let found = store.player(&wanted);
            let is_homeless = found.as_ref().is_ok_and(|found| {
                let home = found.as_ref().map(|record| record.dimension);
                let is_home = |known: &StoredDimension| Some(known.id) == home && !known.being_removed;
                home.is_some() && store.dimensions().is_ok_and(|known| !known.iter().any(is_home))
            });
            (found, is_homeless)
        };
        self.threads.ask(Place::Loading, read, |read| {
            let (found, is_homeless) = match read {
                Ok((found, is_homeless)) => (found.map_err(WorkError::from), is_homeless),
                Err(error) => (Err(error), false),
            };
            Some(Event::PlayerRead(PlayerRead { name, found, is_homeless }))
        });
    }

    /// The player of this name as it is pending.
    fn unwritten_player(&self, name: &str) -> Option<EntityRecord> {
        let records = self.saves.unwritten_batches().flat_map(|batch| batch.entities.values().flatten());
        let found = records.into_iter().find(|record| record.player().as_deref() == Some(name))?;
        // Of the newest of its records, which may say that it is no more.
        self.saves.unwritten_entity(found.id).cloned().flatten()
    }

    fn end_reading(&mut self, read: PlayerRead) {
        let PlayerRead { name, found, is_homeless } = read;
        let Some(&Presence::Asked { first_place }) = self.players.present.get(&name) else { return };
        let record = match found {
            Ok(record) => record,
            Err(error) => return self.refuse_log_in(name, error.into()),
        };
        // It may be dead, and the store not know of it yet.
        let known = record.filter(|record| self.saves.unwritten_entity(record.id).is_none_or(Option::is_some));
        let Some((entity, block)) = first_place.filter(|_| known.is_none() || is_homeless) else {
            return match known {
                Some(record) => self.admit(name, record, false),
                None => self.refuse_log_in(name, LogInError::UnknownName),
            };
        };
        let Some(&dimension) = self.dimensions.by_entity.get(&entity) else {
            return self.refuse_log_in(name, LogInError::NotADimension(entity));
        };
        match known {
            Some(record) => {
                // It begins again where a new one would, with all that it had.
                let offset = Position::new(dimension, block).offset.to_array();
                let record = EntityRecord { dimension, block, offset, ..record };
                self.saves.pending.entities.insert(record.id, Some(record.clone()));
                self.admit(name, record, false);
            }
            None => {
                let record = Player::new_record(self.new_player_id(), &name, Position::new(dimension, block));
                self.admit(name, record, true);
            }
        }
    }

    fn new_player_id(&mut self) -> Uuid {
        self.players.made += 1;
        let mut random =
            SplitMix64::from_parts([self.threads.seed(), u64::from_be_bytes(*b" player "), self.players.made]);
        let bits = (u128::from(random.next_u64()) << 64) | u128::from(random.next_u64());
        uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
    }

    /// Brings the player to its place.
    fn admit(&mut self, name: String, record: EntityRecord, is_new: bool) {
        let (id, place) = (record.id, (record.dimension, record.block));
        if self.dimensions.open.get(&record.dimension).is_none_or(|dimension| dimension.is_closing()) {
            return self.refuse_log_in(name, LogInError::DimensionNotOpen(record.dimension));
        }
        if is_new {
            self.saves.pending.entities.insert(id, Some(record.clone()));
        }
        self.players.present.insert(name, Presence::Coming { id, place, is_new, logs_out: false });
        self.players.is_somebody_coming = true;
        self.post(Letter::player(record));
    }

    fn refuse_log_in(&mut self, name: String, reason: LogInError) {
        self.players.present.remove(&name);
        self.publisher.event(LogInRefused { name, reason });
    }

    /// What was to bring a player in did not reach its place.
    pub fn lose_arrival(&mut self, lost: Uuid, reason: Undeliverable) {
        let is_lost = |presence: &Presence| matches!(presence, Presence::Coming { id, .. } if *id == lost);
        let name = self.players.present.iter().find(|(_, presence)| is_lost(presence)).map(|(name, _)| name.clone());
        if let Some(name) = name {
            self.refuse_log_in(name, LogInError::Lost(reason));
        }
    }

    pub fn log_out(&mut self, name: &str) {
        match self.players.present.get_mut(name) {
            Some(Presence::Coming { logs_out, .. }) => *logs_out = true,
            Some(Presence::There { id }) => {
                let id = *id;
                self.send_out(id);
            }
            Some(Presence::Asked { .. }) => drop(self.players.present.remove(name)),
            None => {}
        }
    }

    fn send_out(&mut self, id: Uuid) {
        let leave = |mut player: EntityWorldMut| {
            player.insert(LoggedOut);
        };
        self.post(Letter::run_on(id, LetterSender::Main, Box::new(leave), None));
    }
}

/// Tells of those who came and of those who went.
pub(in crate::coordinator) fn tend_players(mut desk: Desk) {
    for read in mem::take(&mut desk.inbound.players) {
        desk.end_reading(read);
    }
    let left = mem::take(&mut desk.directory.left);
    if !mem::take(&mut desk.directory.has_lost) && !desk.players.is_somebody_coming {
        return;
    }
    desk.players.is_somebody_coming = false;
    let mut leaving = Vec::new();
    let desk = &mut desk;
    let (players, directory, publisher) = (&mut *desk.players, &*desk.directory, &mut *desk.publisher);
    let Players { present, is_somebody_coming, .. } = players;
    present.retain(|name, presence| match *presence {
        Presence::Asked { .. } => true,
        Presence::Coming { id, place: (dimension, block), is_new, logs_out } => {
            let has_come = directory.knows(id);
            if !has_come && left.contains(&id) {
                // It died as it came.
                let reason = LogInError::Lost(Undeliverable::NoSuchEntity(id));
                publisher.event(LogInRefused { name: name.clone(), reason });
                return false;
            }
            *is_somebody_coming |= !has_come;
            if has_come {
                *presence = Presence::There { id };
                publisher.event(PlayerLoggedIn { name: name.clone(), id, dimension, block, is_new });
                leaving.extend(logs_out.then_some(id));
            }
            true
        }
        Presence::There { id } => {
            if !directory.knows(id) {
                publisher.event(PlayerLoggedOut { name: name.clone(), id });
            }
            directory.knows(id)
        }
    });
    leaving.into_iter().for_each(|id| desk.send_out(id));
}
