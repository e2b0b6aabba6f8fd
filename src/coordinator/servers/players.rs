//! The players that are in the world, come or have gone.
//!
//! A name is looked up in the pending save, or else in the store, on a loading thread. A letter to the player's place
//! brings it in, so the ground is loaded, and the arrival follows merges and waits for a halted region like any letter.

use crate::coordinator::dimension::DimensionBook;
use crate::coordinator::mail::directory::Directory;
use crate::coordinator::mail::queue::MailQueue;
use crate::coordinator::messages::events::{LogInRefused, PlayerLoggedIn, PlayerLoggedOut, PlayerMoved, WorldEvent};
use crate::coordinator::messages::faults::WorkError;
use crate::coordinator::messages::players::{LONGEST_NAME, LogIn, LogInError, LogOut};
use crate::coordinator::publish::Publisher;
use crate::coordinator::saves::{Moment, Saves};
use crate::coordinator::servers::tend::Servers;
use crate::coordinator::threads::Threads;
use crate::coordinator::threads::beside::hand_to;
use crate::simulation::{Letter, LetterSender, LoggedOut, Player, Position, SplitMix64, Undeliverable};
use crate::space::{BlockPos, DimensionId};
use crate::storage::servers::Plot;
use crate::storage::{EntityRecord, StoreError, WorldStore};
use bevy::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use uuid::Uuid;

/// The players in the world or on their way into it, by name.
#[derive(Resource, Default)]
pub struct Players {
    present: BTreeMap<String, Presence>,
    /// `true` if players may have arrived that are not reported yet.
    has_arrivals: bool,
    /// The players that the store is asked for next, each with the moment of its question.
    to_read: Vec<(String, Moment)>,
    /// `true` while the store is asked.
    is_reading: bool,
    /// The number of new players since the app began.
    made: u64,
    /// `true` if several servers share the world. Each name is then also registered for one of them.
    is_shared: bool,
    /// `true` if the places of players may be on other servers.
    has_seekers: bool,
    /// Players who have left this server, and whose names are to be free for other servers.
    left: Vec<Left>,
    /// The players whose names a round is freeing.
    leaving: Vec<Left>,
}

/// A player who has left this server.
struct Left {
    name: String,
    /// The commit that stores the player.
    until: u64,
    /// What the game is told once the name is free: the server where the client must go, which then lets the player in.
    told: Option<WorldEvent>,
}

impl Left {
    /// Tells the game of a player under whose name somebody has logged in again. The answer to that log-in replaces an earlier one.
    fn tell_although_back(self, publisher: &mut Publisher) {
        if let Some(event @ WorldEvent::PlayerMoved(_)) = self.told {
            publisher.event(event);
        }
    }
}

enum Presence {
    /// The store is asked, or will be once a round has freed the name: then `question` is `None`. A new player would begin at
    /// `first_place`.
    Asked {
        first_place: Option<(DimensionId, BlockPos)>,
        question: Option<Moment>,
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
    /// Its place is not on this server's ground, but may come to be. `was_here` if it went there on its own.
    Seeking {
        record: Box<EntityRecord>,
        is_new: bool,
        was_here: bool,
    },
    /// The ground where it stood is leaving this server, and the player with it.
    Leaving {
        id: Uuid,
        plot: Plot,
    },
}

pub(crate) fn log_in(
    In(LogIn { name, first_place }): In<LogIn>,
    mut players: ResMut<Players>,
    dimensions: Res<DimensionBook>,
    mut saves: ResMut<Saves>,
    mut post: ResMut<MailQueue>,
    servers: Option<Res<Servers>>,
    mut publisher: ResMut<Publisher>,
) {
    if !(1..=LONGEST_NAME).contains(&name.len()) {
        let reason = LogInError::InvalidName(name.len());
        return players.refuse(name, reason, saves.stored_with(), &mut publisher);
    }
    let is_frozen = servers.as_ref().is_some_and(|servers| servers.has_ended);
    if players.present.contains_key(&name) || is_frozen {
        return publisher.event(LogInRefused { name, reason: LogInError::AlreadyThere });
    }
    players.present.insert(name.clone(), Presence::Asked { first_place, question: None });
    if players.leaving.iter().any(|left| left.name == name) {
        // The end of the round in which its name becomes free asks for it.
        return;
    }
    let moment = saves.begin_question();
    match unwritten_player(&saves, &moment, &name).filter(|_| !players.is_shared) {
        Some(record) => {
            let admitted = players.admit(&name, record, false, &dimensions, &mut saves, &mut post);
            admitted.unwrap_or_else(|reason| players.refuse(name, reason, saves.stored_with(), &mut publisher));
        }
        None => players.read(name, moment),
    }
}

pub(crate) fn log_out(
    In(LogOut { name }): In<LogOut>,
    mut players: ResMut<Players>,
    saves: Res<Saves>,
    mut post: ResMut<MailQueue>,
) {
    match players.present.get_mut(&name) {
        Some(Presence::Coming { logs_out, .. }) => *logs_out = true,
        Some(Presence::There { id }) => send_out(*id, &mut post),
        Some(Presence::Asked { .. } | Presence::Seeking { .. }) => {
            players.present.remove(&name);
            players.note_left(&name, saves.stored_with(), None);
        }
        // It leaves anyway.
        Some(Presence::Leaving { .. }) | None => {}
    }
}

fn send_out(id: Uuid, post: &mut MailQueue) {
    let leave = |mut player: EntityWorldMut| {
        player.insert(LoggedOut);
    };
    post.send(Letter::run_on(id, LetterSender::Main, Box::new(leave), None));
}

/// The player of this name in what a question may have missed in the store.
fn unwritten_player(saves: &Saves, moment: &Moment, name: &str) -> Option<EntityRecord> {
    let records = saves.missed_by(moment).flat_map(|batch| batch.entities.values().flatten());
    let found = records.into_iter().find(|record| record.player().as_deref() == Some(name))?;
    // The newest record of its id counts; it may say that the player is gone.
    saves.missed_entity(moment, found.id).cloned().flatten()
}

/// The most players that the store is asked for at once.
const READ_AT_ONCE: usize = 256;

/// The record of a player, or the other server that has it.
type Found = Result<Option<EntityRecord>, u64>;

/// Asks the store for the players who log in. Those who come before its answer are asked for together, since a distant store takes a
/// while for each answer.
pub fn read_players(mut players: ResMut<Players>, mut threads: ResMut<Threads>) {
    if players.is_reading || players.to_read.is_empty() {
        return;
    }
    players.is_reading = true;
    let later = players.to_read.len().min(READ_AT_ONCE);
    let later = players.to_read.split_off(later);
    let asked = mem::replace(&mut players.to_read, later);
    let names: BTreeSet<String> = asked.iter().map(|(name, _)| name.clone()).collect();
    threads.ask(
        None,
        move |store, _| find_players(store, &names),
        |world, found| {
            world.resource_mut::<Players>().is_reading = false;
            for (name, moment) in asked {
                let (found, is_homeless) = match &found {
                    // No answer must not look like an unknown player, who would be made anew.
                    Ok(found) => found.get(&name).cloned().unwrap_or((Err(WorkError::NoThread), false)),
                    Err(error) => (Err(error.clone()), false),
                };
                hand_to(world, end_reading, (name, moment, found, is_homeless));
            }
        },
    );
}

/// What the store says of players, by name; and `true` if the dimension where a player was is removed.
type FoundPlayers = BTreeMap<String, (Result<Found, WorkError>, bool)>;

fn find_players(store: &WorldStore, names: &BTreeSet<String>) -> FoundPlayers {
    let find = || -> Result<FoundPlayers, StoreError> {
        // The names are registered first, so that no other server changes the players from here on.
        let elsewhere = store.incarnation().map(|server| server.log_in(names)).transpose()?.unwrap_or_default();
        let mut records =
            store.players_named(&names.iter().filter(|name| !elsewhere.contains_key(*name)).cloned().collect())?;
        let homes: BTreeSet<_> = records.values().map(|record| record.dimension).collect();
        let removed: BTreeSet<_> = homes.into_iter().filter(|home| store.has_dimension(*home) == Ok(false)).collect();
        let found = names.iter().map(|name| {
            let record = records.remove(name);
            let is_homeless = record.as_ref().is_some_and(|record| removed.contains(&record.dimension));
            let found = elsewhere.get(name).map_or(Ok(record), |server| Err(*server));
            (name.clone(), (Ok(found), is_homeless))
        });
        Ok(found.collect())
    };
    match find() {
        Ok(found) => found,
        // What is damaged of one player holds up no other.
        Err(error) if error.is_damage() && names.len() > 1 => {
            names.iter().flat_map(|name| find_players(store, &[name.clone()].into())).collect()
        }
        Err(error) => names.iter().map(|name| (name.clone(), (Err(error.clone().into()), false))).collect(),
    }
}

/// Handles the store's answer about a name. `is_homeless`: the dimension where the player was is removed.
fn end_reading(
    In((name, moment, found, is_homeless)): In<(String, Moment, Result<Found, WorkError>, bool)>,
    mut players: ResMut<Players>,
    dimensions: Res<DimensionBook>,
    mut saves: ResMut<Saves>,
    mut post: ResMut<MailQueue>,
    threads: Res<Threads>,
    servers: Option<Res<Servers>>,
    mut publisher: ResMut<Publisher>,
) {
    let first_place = match players.present.get(&name) {
        Some(Presence::Asked { first_place, question: Some(question) }) if *question == moment => *first_place,
        // This is the answer to a log-in that was taken back, and the name belongs to a later one.
        Some(_) => return,
        // Likewise; the answer has registered the name again.
        None => return players.note_left(&name, saves.stored_with(), None),
    };
    if let Ok(Err(server)) = found {
        players.present.remove(&name);
        let address = servers.and_then(|servers| servers.address(server)).unwrap_or_default();
        return publisher.event(LogInRefused { name, reason: LogInError::Elsewhere { server, address } });
    }
    let find = || {
        let record = found?.unwrap_or_default();
        let unwritten = unwritten_player(&saves, &moment, &name);
        let is_homeless = is_homeless && unwritten.is_none();
        let record = unwritten.or(record);
        // The player may be dead without the store knowing it yet.
        let known = record.filter(|record| saves.missed_entity(&moment, record.id).is_none_or(Option::is_some));
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
    admitted.unwrap_or_else(|reason| players.refuse(name, reason, saves.stored_with(), &mut publisher));
}

impl Players {
    pub fn new(is_shared: bool) -> Self {
        Self { is_shared, ..Self::default() }
    }

    fn new_id(&mut self, seed: u64) -> Uuid {
        self.made += 1;
        let mut random = SplitMix64::from_parts([seed, u64::from_be_bytes(*b" player "), self.made]);
        let bits = (u128::from(random.next_u64()) << 64) | u128::from(random.next_u64());
        uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
    }

    /// Looks for a player in the store. An earlier question about the same name no longer counts.
    fn read(&mut self, name: String, moment: Moment) {
        if let Some(Presence::Asked { question, .. }) = self.present.get_mut(&name) {
            *question = Some(moment.clone());
        }
        self.to_read.push((name, moment));
    }

    /// Sends the player to its place.
    fn admit(
        &mut self,
        name: &str,
        record: EntityRecord,
        is_new: bool,
        dimensions: &DimensionBook,
        saves: &mut Saves,
        post: &mut MailQueue,
    ) -> Result<(), LogInError> {
        let (id, place) = (record.id, (record.dimension, record.block));
        if dimensions.open.get(&record.dimension).is_none_or(|dimension| dimension.is_closing()) {
            return Err(LogInError::DimensionNotOpen(record.dimension));
        }
        if dimensions.open.get(&record.dimension).is_some_and(|open| !open.may_have(record.column())) {
            self.has_seekers = true;
            let seeking = Presence::Seeking { record: Box::new(record), is_new, was_here: false };
            self.present.insert(name.to_owned(), seeking);
            return Ok(());
        }
        if is_new {
            saves.pending.entities.insert(id, Some(record.clone()));
        }
        self.present.insert(name.to_owned(), Presence::Coming { id, place, is_new, logs_out: false });
        self.has_arrivals = true;
        post.send(Letter::arrival(record));
        Ok(())
    }

    fn refuse(&mut self, name: String, reason: LogInError, until: u64, publisher: &mut Publisher) {
        self.present.remove(&name);
        self.note_left(&name, until, None);
        publisher.event(LogInRefused { name, reason });
    }

    /// Notes that a log-in is refused, because another server has the player's ground.
    fn send_elsewhere(&mut self, name: &str, server: u64, until: u64, servers: &Servers) {
        let reason = LogInError::Elsewhere { server, address: servers.address(server).unwrap_or_default() };
        self.note_left(name, until, Some(LogInRefused { name: name.to_owned(), reason }.into()));
    }

    /// Notes that a player has gone to another server on its own, or with its ground.
    fn send_after(&mut self, name: &str, id: Uuid, server: u64, until: u64, servers: &Servers) {
        let address = servers.address(server).unwrap_or_default();
        self.note_left(name, until, Some(PlayerMoved { name: name.to_owned(), id, server, address }.into()));
    }

    /// Notes that a player is no longer on this server, once this commit is stored.
    fn note_left(&mut self, name: &str, until: u64, told: Option<WorldEvent>) {
        if self.is_shared {
            self.left.push(Left { name: name.to_owned(), until, told });
        }
    }

    /// The names of players who have left and are stored, for a round to free them.
    pub fn begin_log_outs(&mut self, saves: &mut Saves, publisher: &mut Publisher) -> BTreeSet<String> {
        for left in self.left.extract_if(.., |left| self.present.contains_key(&left.name)) {
            left.tell_although_back(publisher);
        }
        // A name is free only when the last of its log-outs is stored.
        let unstored = self.left.iter().filter(|left| !saves.is_stored(left.until));
        let unstored: BTreeSet<String> = unstored.map(|left| left.name.clone()).collect();
        self.leaving.extend(self.left.extract_if(.., |left| !unstored.contains(&left.name)));
        if self.left.iter().any(|left| left.told.is_some()) {
            // A client waits for it.
            saves.request_commit();
        }
        self.leaving.iter().map(|left| left.name.clone()).collect()
    }

    /// Notes that the round failed that was to free names. Players who log in again meanwhile keep theirs.
    pub fn repeat_log_outs(&mut self, saves: &mut Saves) {
        for left in mem::take(&mut self.leaving) {
            match self.present.get(&left.name) {
                Some(Presence::Asked { .. }) => self.read(left.name, saves.begin_question()),
                _ => self.left.push(left),
            }
        }
    }

    /// Returns `true` if players have left or are leaving whose names are not free yet, or if log-ins have no answer yet.
    pub fn are_leaving(&self) -> bool {
        let is_leaving = |presence: &Presence| !matches!(presence, Presence::Coming { .. } | Presence::There { .. });
        !self.left.is_empty() || !self.leaving.is_empty() || self.present.values().any(is_leaving)
    }

    /// Notes that the round has freed its names. Only now are clients sent to other servers, since these let the players in.
    pub fn end_log_outs(&mut self, saves: &mut Saves, publisher: &mut Publisher) {
        for left in mem::take(&mut self.leaving) {
            if matches!(self.present.get(&left.name), Some(Presence::Asked { .. })) {
                self.read(left.name.clone(), saves.begin_question());
                left.tell_although_back(publisher);
            } else if let Some(event) = left.told {
                publisher.event(event);
            }
        }
    }

    /// Notes that players leave with the ground of a plot.
    pub fn leave_with(&mut self, plot: Plot, is_there: impl Fn(Uuid) -> bool) {
        for presence in self.present.values_mut() {
            if let Presence::There { id } = *presence
                && is_there(id)
            {
                *presence = Presence::Leaving { id, plot };
            }
        }
    }

    /// Sends players after the ground that was given up. Players of ground that stays come back.
    pub fn follow_ground(
        &mut self,
        given_up: &[(BTreeSet<Plot>, Option<u64>)],
        kept: &BTreeSet<Plot>,
        servers: &Servers,
        saves: &mut Saves,
    ) {
        let leaving = self.present.iter().filter_map(|(name, presence)| match presence {
            Presence::Leaving { id, plot } => Some((name.clone(), *id, *plot)),
            _ => None,
        });
        for (name, id, plot) in leaving.collect::<Vec<_>>() {
            if let Some((_, to)) = given_up.iter().find(|(plots, _)| plots.contains(&plot)) {
                self.present.remove(&name);
                // Its ground was stored before it was given up, and the player with it.
                match *to {
                    Some(to) => self.send_after(&name, id, to, 0, servers),
                    None => self.note_left(&name, 0, None),
                }
            } else if kept.contains(&plot) {
                self.present.insert(name.clone(), Presence::Asked { first_place: None, question: None });
                self.read(name, saves.begin_question());
            }
        }
    }

    /// Reports that a player did not reach its place.
    fn lose_arrival(&mut self, lost: Uuid, reason: Undeliverable, until: u64, publisher: &mut Publisher) {
        let is_lost = |presence: &Presence| matches!(presence, Presence::Coming { id, .. } if *id == lost);
        let name = self.present.iter().find(|(_, presence)| is_lost(presence)).map(|(name, _)| name.clone());
        if let Some(name) = name {
            self.refuse(name, LogInError::Lost(reason), until, publisher);
        }
    }
}

impl Players {
    /// Lets players in whose places have come to be on this server's ground, and sends those away whose places are on others'.
    fn seek(
        &mut self,
        servers: &Servers,
        dimensions: &mut DimensionBook,
        saves: &mut Saves,
        post: &mut MailQueue,
        publisher: &mut Publisher,
    ) {
        for record in mem::take(&mut post.straggling_players) {
            let known = |presence: &Presence| matches!(presence, Presence::There { id } if *id == record.id);
            if let Some(presence) = self.present.values_mut().find(|presence| known(presence)) {
                *presence = Presence::Seeking { record: Box::new(record), is_new: false, was_here: true };
                self.has_seekers = true;
            }
        }
        if !mem::take(&mut self.has_seekers) {
            return;
        }
        dimensions.open.values_mut().for_each(|open| open.demand.sought.clear());
        let is_seeker = |presence: &mut Presence| matches!(presence, Presence::Seeking { .. });
        let seekers: Vec<_> = self.present.extract_if(.., |_, presence| is_seeker(presence)).collect();
        for (name, presence) in seekers {
            let Presence::Seeking { record, is_new, was_here } = presence else { continue };
            let plot = record.column().tile();
            let open = dimensions.open.get_mut(&record.dimension).filter(|open| !open.is_closing());
            let Some(open) = open else {
                if was_here {
                    publisher.event(PlayerLoggedOut { name: name.clone(), id: record.id });
                    self.note_left(&name, saves.stored_with(), None);
                } else {
                    let reason = LogInError::DimensionNotOpen(record.dimension);
                    self.refuse(name, reason, saves.stored_with(), publisher);
                }
                continue;
            };
            let known = open.plots.as_ref().and_then(|plots| plots.server_of(plot));
            let other = known.or(servers.drain);
            if open.may_have(record.column()) {
                let admitted = self.admit(&name, *record, is_new, dimensions, saves, post);
                admitted.unwrap_or_else(|reason| self.refuse(name, reason, saves.stored_with(), publisher));
            } else if let Some(server) = other {
                match was_here {
                    true => self.send_after(&name, record.id, server, saves.stored_with(), servers),
                    false => self.send_elsewhere(&name, server, saves.stored_with(), servers),
                }
            } else {
                open.demand.sought.insert(plot);
                open.plots.iter_mut().for_each(|plots| plots.want(plot));
                self.has_seekers = true;
                self.present.insert(name, Presence::Seeking { record, is_new, was_here });
            }
        }
    }
}

/// Reports the players that arrived and those that left.
pub fn tend_players(
    mut players: ResMut<Players>,
    mut directory: ResMut<Directory>,
    mut dimensions: ResMut<DimensionBook>,
    mut saves: ResMut<Saves>,
    mut post: ResMut<MailQueue>,
    servers: Option<Res<Servers>>,
    mut publisher: ResMut<Publisher>,
) {
    if let Some(servers) = servers {
        players.seek(&servers, &mut dimensions, &mut saves, &mut post, &mut publisher);
    }
    for (lost, reason) in mem::take(&mut post.lost_arrivals) {
        players.lose_arrival(lost, reason, saves.stored_with(), &mut publisher);
    }
    let left = mem::take(&mut directory.left);
    if !mem::take(&mut directory.has_lost) && !players.has_arrivals {
        return;
    }
    let Players { present, has_arrivals, left: gone, is_shared, .. } = &mut *players;
    *has_arrivals = false;
    let mut leave = |name: &String| {
        if *is_shared {
            gone.push(Left { name: name.clone(), until: saves.stored_with(), told: None });
        }
    };
    present.retain(|name, presence| match *presence {
        Presence::Asked { .. } | Presence::Seeking { .. } | Presence::Leaving { .. } => true,
        Presence::Coming { id, place: (dimension, block), is_new, logs_out } => {
            let has_come = directory.knows(id);
            if !has_come && left.contains(&id) {
                // It died on arrival.
                let reason = LogInError::Lost(Undeliverable::NoSuchEntity(id));
                publisher.event(LogInRefused { name: name.clone(), reason });
                leave(name);
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
                leave(name);
            }
            directory.knows(id)
        }
    });
}
