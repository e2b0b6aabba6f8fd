//! The players that are in the world, come or have gone.
//!
//! A name is looked up in the pending save, or else in the store, on a loading thread. A letter to the player's place
//! brings it in, so the ground is loaded, and the arrival follows merges and waits for a halted region like any letter.

use super::letters::{Directory, Post};
use super::log_in::{LONGEST_NAME, LogIn, LogInError, LogOut};
use crate::coordinator::dimension::Dimensions;
use crate::coordinator::events::{LogInRefused, PlayerLoggedIn, PlayerLoggedOut};
use crate::coordinator::publish::Publisher;
use crate::coordinator::saving::save::Saves;
use crate::coordinator::threads::Threads;
use crate::coordinator::threads::beside::hand_to;
use crate::coordinator::threads::work_error::WorkError;
use crate::simulation::{Letter, LetterSender, LoggedOut, Player, Position, SplitMix64, Undeliverable};
use crate::space::{BlockPos, DimensionId};
use crate::storage::{EntityRecord, StoredDimension, WorldStore};
use bevy::prelude::*;
use std::collections::BTreeMap;
use std::mem;
use uuid::Uuid;

/// The players in the world or on their way into it, by name.
#[derive(Resource, Default)]
pub struct Players {
    present: BTreeMap<String, Presence>,
    /// `true` if players may have arrived that are not reported yet.
    has_arrivals: bool,
    /// The number of new players since the app began.
    made: u64,
}

enum Presence {
    /// The store is asked. A new player would begin at `first_place`.
    Asked {
        first_place: Option<(DimensionId, BlockPos)>,
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

pub(crate) fn log_in(
    In(LogIn { name, first_place }): In<LogIn>,
    mut players: ResMut<Players>,
    dimensions: Res<Dimensions>,
    mut saves: ResMut<Saves>,
    mut post: ResMut<Post>,
    mut threads: ResMut<Threads>,
    mut publisher: ResMut<Publisher>,
) {
    if !(1..=LONGEST_NAME).contains(&name.len()) {
        let reason = LogInError::InvalidName(name.len());
        return players.refuse(name, reason, &mut publisher);
    }
    if players.present.contains_key(&name) {
        return publisher.event(LogInRefused { name, reason: LogInError::AlreadyThere });
    }
    players.present.insert(name.clone(), Presence::Asked { first_place });
    match unwritten_player(&saves, &name) {
        Some(record) => {
            let admitted = players.admit(&name, record, false, &dimensions, &mut saves, &mut post);
            admitted.unwrap_or_else(|reason| players.refuse(name, reason, &mut publisher));
        }
        None => read_player(name, &mut threads),
    }
}

pub(crate) fn log_out(In(LogOut { name }): In<LogOut>, mut players: ResMut<Players>, mut post: ResMut<Post>) {
    match players.present.get_mut(&name) {
        Some(Presence::Coming { logs_out, .. }) => *logs_out = true,
        Some(Presence::There { id }) => send_out(*id, &mut post),
        Some(Presence::Asked { .. }) => drop(players.present.remove(&name)),
        None => {}
    }
}

fn send_out(id: Uuid, post: &mut Post) {
    let leave = |mut player: EntityWorldMut| {
        player.insert(LoggedOut);
    };
    post.send(Letter::run_on(id, LetterSender::Main, Box::new(leave), None));
}

/// Looks for the player in the store.
fn read_player(name: String, threads: &mut Threads) {
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
    threads.ask(None, read, |world, read| {
        let (found, is_homeless) = match read {
            Ok((found, is_homeless)) => (found.map_err(WorkError::from), is_homeless),
            Err(error) => (Err(error), false),
        };
        hand_to(world, end_reading, (name, found, is_homeless));
    });
}

/// The player of this name in the pending save.
fn unwritten_player(saves: &Saves, name: &str) -> Option<EntityRecord> {
    let records = saves.unwritten_batches().flat_map(|batch| batch.entities.values().flatten());
    let found = records.into_iter().find(|record| record.player().as_deref() == Some(name))?;
    // The newest record of its id counts; it may say that the player is gone.
    saves.unwritten_entity(found.id).cloned().flatten()
}

/// Handles the store's answer about a name. `is_homeless`: the dimension where the player was is removed.
fn end_reading(
    In((name, found, is_homeless)): In<(String, Result<Option<EntityRecord>, WorkError>, bool)>,
    mut players: ResMut<Players>,
    dimensions: Res<Dimensions>,
    mut saves: ResMut<Saves>,
    mut post: ResMut<Post>,
    threads: Res<Threads>,
    mut publisher: ResMut<Publisher>,
) {
    let Some(&Presence::Asked { first_place }) = players.present.get(&name) else { return };
    let find = || {
        let record = found?;
        // The player may be dead without the store knowing it yet.
        let known = record.filter(|record| saves.unwritten_entity(record.id).is_none_or(Option::is_some));
        let Some((dimension, block)) = first_place.filter(|_| known.is_none() || is_homeless) else {
            return known.map(|record| (record, false)).ok_or(LogInError::UnknownName);
        };
        if dimensions.open.get(&dimension).is_none_or(|open| open.is_closing()) {
            return Err(LogInError::DimensionNotOpen(dimension));
        }
        let place = Position::new(dimension, block);
        let Some(record) = known else {
            return Ok((Player::new_record(players.new_id(threads.template.seed), &name, place), true));
        };
        // A homeless player begins where a new one would, with everything that it had.
        let record = EntityRecord { dimension, block, offset: place.offset.to_array(), ..record };
        saves.pending.entities.insert(record.id, Some(record.clone()));
        Ok((record, false))
    };
    let admitted =
        find().and_then(|(record, is_new)| players.admit(&name, record, is_new, &dimensions, &mut saves, &mut post));
    admitted.unwrap_or_else(|reason| players.refuse(name, reason, &mut publisher));
}

impl Players {
    fn new_id(&mut self, seed: u64) -> Uuid {
        self.made += 1;
        let mut random = SplitMix64::from_parts([seed, u64::from_be_bytes(*b" player "), self.made]);
        let bits = (u128::from(random.next_u64()) << 64) | u128::from(random.next_u64());
        uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
    }

    /// Sends the player to its place.
    fn admit(
        &mut self,
        name: &str,
        record: EntityRecord,
        is_new: bool,
        dimensions: &Dimensions,
        saves: &mut Saves,
        post: &mut Post,
    ) -> Result<(), LogInError> {
        let (id, place) = (record.id, (record.dimension, record.block));
        if dimensions.open.get(&record.dimension).is_none_or(|dimension| dimension.is_closing()) {
            return Err(LogInError::DimensionNotOpen(record.dimension));
        }
        if is_new {
            saves.pending.entities.insert(id, Some(record.clone()));
        }
        self.present.insert(name.to_owned(), Presence::Coming { id, place, is_new, logs_out: false });
        self.has_arrivals = true;
        post.send(Letter::player(record));
        Ok(())
    }

    fn refuse(&mut self, name: String, reason: LogInError, publisher: &mut Publisher) {
        self.present.remove(&name);
        publisher.event(LogInRefused { name, reason });
    }

    /// Reports that a player did not reach its place.
    fn lose_arrival(&mut self, lost: Uuid, reason: Undeliverable, publisher: &mut Publisher) {
        let is_lost = |presence: &Presence| matches!(presence, Presence::Coming { id, .. } if *id == lost);
        let name = self.present.iter().find(|(_, presence)| is_lost(presence)).map(|(name, _)| name.clone());
        if let Some(name) = name {
            self.refuse(name, LogInError::Lost(reason), publisher);
        }
    }
}

/// Reports the players that arrived and those that left.
pub fn tend_players(
    mut players: ResMut<Players>,
    mut directory: ResMut<Directory>,
    mut post: ResMut<Post>,
    mut publisher: ResMut<Publisher>,
) {
    for (lost, reason) in mem::take(&mut post.lost_arrivals) {
        players.lose_arrival(lost, reason, &mut publisher);
    }
    let left = mem::take(&mut directory.left);
    if !mem::take(&mut directory.has_lost) && !players.has_arrivals {
        return;
    }
    let Players { present, has_arrivals, .. } = &mut *players;
    *has_arrivals = false;
    present.retain(|name, presence| match *presence {
        Presence::Asked { .. } => true,
        Presence::Coming { id, place: (dimension, block), is_new, logs_out } => {
            let has_come = directory.knows(id);
            if !has_come && left.contains(&id) {
                // It died on arrival.
                let reason = LogInError::Lost(Undeliverable::NoSuchEntity(id));
                publisher.event(LogInRefused { name: name.clone(), reason });
                return false;
            }
            *has_arrivals |= !has_come;
            if has_come {
                *presence = Presence::There { id };
                publisher.event(PlayerLoggedIn { name: name.clone(), id, dimension, block, new: is_new });
                if logs_out {
                    send_out(id, &mut post);
                }
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
}
