//! Begins rounds, and handles their answers.

use super::round::{Findings, Memory, Wishes, of_dimension};
use crate::coordinator::clock::Clock;
use crate::coordinator::dimension::{DimensionBook, OpenDimension};
use crate::coordinator::mail::directory::Directory;
use crate::coordinator::mail::queue::MailQueue;
use crate::coordinator::messages::events::{LetterLost, ServerDrained, ServerEnded};
use crate::coordinator::messages::faults::WorkError;
use crate::coordinator::messages::statistics::{DrainServer, ServerStatistics};
use crate::coordinator::publish::Publisher;
use crate::coordinator::saves::{Moment, Saves};
use crate::coordinator::schedule::deadlines::Deadlines;
use crate::coordinator::servers::players::Players;
use crate::coordinator::stream::orders::Orders;
use crate::coordinator::threads::Threads;
use crate::coordinator::threads::beside::hand_to;
use crate::simulation::{Address, Letter, LetterSender, Undeliverable};
use crate::space::{ColumnPos, DimensionId, TilePos};
use crate::storage::servers::{Crossing, CrossingId, Lease, Plot, Sign, TERM};
use crate::storage::{StoreError, WorldStore};
use bevy::platform::cell::SyncCell;
use bevy::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use uuid::Uuid;

/// The time between the beginnings of two rounds, while nothing is urgent.
const PERIOD: Duration = Duration::from_millis(250);
/// The time between two rounds while something is.
const URGENT_PERIOD: Duration = Duration::from_millis(50);
/// The number of plots of a dimension for which a round asks at most, so that it does not take long.
const ASKED_AT_ONCE: usize = 16;
/// The time between two looks at all plots, even if no join or handover has happened.
const LOOK_PERIOD: Duration = Duration::from_secs(5);
/// How long a plot is kept that nothing needs.
const IDLE: Duration = Duration::from_secs(10);

/// This server, if several servers share the world.
#[derive(Resource)]
pub struct Servers {
    /// The number of this incarnation.
    pub number: u64,
    memory: Arc<Mutex<Memory>>,
    lease: Lease,
    is_asking: bool,
    /// When the last round began.
    began_at: Duration,
    next_at: Duration,
    /// `true` if ground is about to come or to go.
    is_waiting: bool,
    look_at: Duration,
    signs: Vec<Sign>,
    /// The plots of each server.
    plots: BTreeMap<u64, Arc<[Plot]>>,
    /// Plots of dimensions that were closed.
    pub to_release: BTreeSet<Plot>,
    /// The server to which this one is drained.
    pub drain: Option<u64>,
    /// `true` if the game knows that it is drained. It takes no ground any more.
    has_drained: bool,
    /// `true` if another server has ended this one. It can save nothing any more.
    pub has_ended: bool,
    /// `true` if no heartbeat was confirmed in time.
    is_frozen: bool,
}

impl Servers {
    /// This server, at the beginning of the coordinator's clock.
    pub fn new(store: &WorldStore) -> Option<Self> {
        Some(Self {
            number: store.incarnation()?.number(),
            memory: Arc::default(),
            lease: Lease::new(TERM, Duration::ZERO),
            is_asking: false,
            began_at: Duration::ZERO,
            next_at: Duration::ZERO,
            is_waiting: false,
            look_at: Duration::ZERO,
            signs: Vec::new(),
            plots: BTreeMap::new(),
            to_release: BTreeSet::new(),
            drain: None,
            has_drained: false,
            has_ended: false,
            is_frozen: false,
        })
    }

    /// Returns `true` if regions may not tick, because another server may take over this one's ground.
    pub fn is_frozen(&self) -> bool {
        self.is_frozen || self.has_ended
    }

    /// Lets regions stand still while no heartbeat is confirmed in time.
    fn watch_lease(&mut self, now: Duration) {
        let is_frozen = !self.lease.holds(now);
        if is_frozen != mem::replace(&mut self.is_frozen, is_frozen) {
            match is_frozen {
                true => warn!("the database confirms no heartbeat: regions stand still until it does"),
                false => info!("the database confirms heartbeats again: regions go on"),
            }
        }
    }

    /// Stays if the server to which this one is drained does not live.
    fn give_up_drain(&mut self) {
        let lives = |server: u64| server != self.number && self.signs.iter().any(|sign| sign.incarnation == server);
        if let Some(to) = self.drain.filter(|to| !self.has_drained && !lives(*to)) {
            self.drain = None;
            warn!("this server is not drained, since there is no other server {to}");
        }
    }

    /// Notes which server has which plots.
    fn note_owners(&mut self, owners: impl IntoIterator<Item = (Plot, u64)>) {
        let mut plots = BTreeMap::<u64, Vec<Plot>>::new();
        owners.into_iter().for_each(|(plot, owner)| plots.entry(owner).or_default().push(plot));
        self.plots = plots.into_iter().map(|(owner, plots)| (owner, plots.into())).collect();
    }

    /// Forgets plots that were given up.
    fn forget_plots(&mut self, given_up: &[(BTreeSet<Plot>, Option<u64>)], dimensions: &mut DimensionBook) {
        for (plots, to) in given_up {
            self.to_release = &self.to_release - plots;
            for (id, plot) in plots {
                if let Some(dimension) = dimensions.open.get_mut(id) {
                    dimension.forget_plot(*plot);
                }
            }
            if let Some(to) = to {
                info!("{} plots were handed over to server {to}", plots.len());
            }
        }
    }

    /// The address of a living server.
    pub fn address(&self, server: u64) -> Option<Vec<u8>> {
        self.signs.iter().find(|sign| sign.incarnation == server).map(|sign| sign.address.clone())
    }

    /// All living servers.
    pub fn statistics(&self) -> Vec<ServerStatistics> {
        let of = |sign: &Sign| ServerStatistics {
            incarnation: sign.incarnation,
            address: sign.address.clone(),
            is_this: sign.incarnation == self.number,
            plots: self.plots.get(&sign.incarnation).cloned().unwrap_or_default(),
        };
        self.signs.iter().map(of).collect()
    }
}

pub fn drain_server(In(DrainServer { to }): In<DrainServer>, servers: Option<ResMut<Servers>>) {
    match servers {
        Some(mut servers) => servers.drain = Some(to),
        None => warn!("this world is not shared, so its server cannot be drained"),
    }
}

/// Begins the next round if it is due.
pub fn tend(
    clock: Res<Clock>,
    servers: Option<ResMut<Servers>>,
    mut dimensions: ResMut<DimensionBook>,
    deadlines: Res<Deadlines>,
    mut orders: ResMut<Orders>,
    mut threads: ResMut<Threads>,
    mut saves: ResMut<Saves>,
    mut players: ResMut<Players>,
    mut publisher: ResMut<Publisher>,
) {
    let Some(mut servers) = servers else { return };
    let servers = &mut *servers;
    if saves.has_ended {
        servers.end(&mut saves, &mut publisher);
    }
    servers.watch_lease(clock.began.elapsed());
    let is_urgent = dimensions.open.values().filter_map(|open| open.plots.as_ref()).any(|plots| plots.is_urgent);
    let due =
        if is_urgent || servers.is_waiting { servers.began_at.saturating_add(URGENT_PERIOD) } else { servers.next_at };
    if servers.is_asking || servers.has_ended || clock.now < due {
        return;
    }
    servers.began_at = clock.now;
    servers.give_up_drain();
    let confirmed = saves.last_stored();
    let with_local = saves.received.forgotten().iter().map(|id| id.plot).collect();
    let mut wishes = Wishes { release: servers.to_release.clone(), confirmed, with_local, ..Wishes::default() };
    for dimension in dimensions.open.values_mut() {
        let unneeded = dimension.unneeded_plots(&saves.received.plots(dimension.id), IDLE);
        if !unneeded.is_empty() {
            dimension.begin_leaving(unneeded, None, &deadlines, &mut orders, &mut publisher);
        }
        if let Some(to) = servers.drain {
            dimension.drain(to, &deadlines, &mut orders, &mut publisher);
        }
        dimension.wish(&mut wishes, servers.drain.is_none(), clock.now);
    }
    wishes.log_out = players.begin_log_outs(&mut saves, &mut publisher);
    wishes.looks_around = clock.now >= servers.look_at;
    if wishes.looks_around {
        servers.look_at = clock.now.saturating_add(LOOK_PERIOD);
    }
    servers.next_at = clock.now.saturating_add(PERIOD);
    servers.is_asking = true;
    let (memory, began) = (servers.memory.clone(), clock.began);
    let ask = move |store: &WorldStore, _: &_| {
        let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
        let found = memory.run(store, &wishes, began);
        (wishes, found)
    };
    threads.ask(Some("terrane servers"), ask, move |world, answer| {
        hand_to(world, end_round, answer);
    });
}

impl OpenDimension {
    /// Adds what the dimension asks of the next round.
    fn wish(&mut self, wishes: &mut Wishes, acquires: bool, now: Duration) {
        let (id, Some(plots)) = (self.id, &mut self.plots) else { return };
        plots.is_urgent = false;
        let of = |plots: &BTreeSet<_>| plots.iter().map(|plot| (id, *plot)).collect::<BTreeSet<Plot>>();
        wishes.own.extend(plots.own().map(|plot| (id, plot)));
        if acquires {
            let asked: Vec<TilePos> = plots.to_ask(now).into_iter().take(ASKED_AT_ONCE).collect();
            asked.iter().for_each(|plot| plots.note_asked(*plot, now));
            wishes.acquire.extend(asked.into_iter().map(|plot| (id, plot)));
        }
        for leaving in plots.leaving.iter().filter(|leaving| leaving.is_ready) {
            match leaving.to {
                None => wishes.release.extend(of(&leaving.plots)),
                Some(to) => wishes.hand_over.push((of(&leaving.plots), to)),
            }
        }
        wishes.clocks.insert(id, (self.time.now, self.time.days()));
    }
}

type Answer = Result<(Wishes, Result<Findings, StoreError>), WorkError>;

/// Handles the answer of a round.
// It is this long because the order of the steps is the point: plots that were given up are forgotten before new ones are taken, and
// crossings are received once their plots are open.
fn end_round(
    In(answer): In<Answer>,
    mut servers: ResMut<Servers>,
    mut dimensions: ResMut<DimensionBook>,
    deadlines: Res<Deadlines>,
    mut orders: ResMut<Orders>,
    mut saves: ResMut<Saves>,
    mut post: ResMut<MailQueue>,
    mut players: ResMut<Players>,
    mut publisher: ResMut<Publisher>,
) {
    let servers = &mut *servers;
    servers.is_asking = false;
    let (wishes, found) = match answer {
        Ok((wishes, Ok(found))) => (wishes, found),
        Ok((_, Err(error))) => {
            players.repeat_log_outs(&mut saves);
            if matches!(error, StoreError::Superseded { .. }) {
                return servers.end(&mut saves, &mut publisher);
            }
            return warn!("the database did not answer a round of questions, which is repeated: {error}");
        }
        Err(error) => return error!("a round of questions to the database could not begin: {error}"),
    };
    servers.lease.beaten(found.beaten);
    servers.signs = found.signs;
    servers.is_waiting = found.is_waiting;
    saves.received.forget_removed(wishes.confirmed);
    servers.forget_plots(&found.given_up, &mut dimensions);
    for dimension in dimensions.open.values_mut() {
        dimension.end_leaving(&found.given_up, &found.acquired);
    }
    let kept: BTreeSet<Plot> = found.acquired.keys().copied().collect();
    for ((id, plot), contents) in found.acquired {
        match dimensions.open.get_mut(&id).filter(|open| !open.is_closing()) {
            Some(dimension) => dimension.take_plot(plot, contents),
            None => drop(servers.to_release.insert((id, plot))),
        }
    }
    for ((id, plot), other) in &found.elsewhere {
        if let Some(dimension) = dimensions.open.get_mut(id) {
            dimension.note_elsewhere(*plot, *other, &mut saves, &mut post);
        }
    }
    for (id, agreed) in found.clocks {
        if let Some(dimension) = dimensions.open.get_mut(&id) {
            dimension.time.now = dimension.time.now.max(agreed);
        }
    }
    for (territory, to) in found.leaving {
        let Some(dimension) = territory.first().and_then(|(id, _)| dimensions.open.get_mut(id)) else { continue };
        let plots = of_dimension(&territory, dimension.id);
        if !dimension.leave_territory(&plots, to, &deadlines, &mut orders, &mut publisher) {
            // A part of it is about to be released. The next round finds what is left of it.
            servers.look_at = Duration::ZERO;
        }
    }
    receive_all(found.crossings, &dimensions, &mut saves, &mut post);
    let is_own = |open: &OpenDimension, plot| open.plots.as_ref().is_some_and(|plots| plots.is_own(plot));
    saves.received.leave(|(id, plot)| dimensions.open.get(&id).is_none_or(|open| !is_own(open, plot)));
    if let Some(owners) = found.owners {
        servers.note_owners(owners);
    }
    players.end_log_outs(&mut saves, &mut publisher);
    players.follow_ground(&found.given_up, &kept, servers, &mut saves);
    let owns = |open: &OpenDimension| open.plots.iter().any(|plots| plots.own().next().is_some());
    let has_ground = !wishes.own.is_empty() || dimensions.open.values().any(owns);
    if let Some(to) = servers.drain.filter(|_| !servers.has_drained && !players.are_leaving() && !has_ground) {
        servers.has_drained = true;
        publisher.event(ServerDrained { to });
    }
}

/// Receives the crossings to plots that are open here, each once.
fn receive_all(
    crossings: Vec<(CrossingId, Crossing)>,
    dimensions: &DimensionBook,
    saves: &mut Saves,
    post: &mut MailQueue,
) {
    for (id, crossing) in crossings {
        let is_here = |open: &OpenDimension| {
            !open.is_closing() && open.plots.as_ref().is_some_and(|plots| plots.is_open(id.plot.1))
        };
        if !saves.received.has(id) && dimensions.open.get(&id.plot.0).is_some_and(is_here) {
            receive(id, crossing, saves, post);
        }
    }
}

/// Looks in the store for entities to which letters are sent and which are not here. Shared messages go to the plots of their
/// places; other letters come back. While one search is under way, letters wait for the next: a region may send some in each tick.
pub fn send_astray(
    clock: Res<Clock>,
    mut post: ResMut<MailQueue>,
    mut saves: ResMut<Saves>,
    mut threads: ResMut<Threads>,
) {
    mem::take(&mut post.returned).into_iter().for_each(|crossing| saves.forget(crossing));
    if !post.is_shared() && clock.now >= post.read_again && !saves.received.forgotten().is_empty() {
        post.read_again = clock.now.saturating_add(PERIOD);
        let dimensions: BTreeSet<DimensionId> = saves.received.forgotten().iter().map(|id| id.plot.0).collect();
        let read = move |store: &WorldStore, _: &_| {
            dimensions.into_iter().map(|id| Ok((id, store.crossings(id)?))).collect::<Result<Vec<_>, StoreError>>()
        };
        threads.ask(None, read, move |world, found| match found.map_err(|error| error.to_string()) {
            Ok(Ok(found)) => hand_to(world, receive_again, found),
            Ok(Err(error)) => warn!("letters that were on their way are read again later: {error}"),
            Err(error) => warn!("letters that were on their way are read again later: {error}"),
        });
    }
    if post.for_elsewhere.is_empty() || post.next_search.is_none_or(|next| clock.now < next) {
        return;
    }
    post.next_search = None;
    let letters = mem::take(&mut post.for_elsewhere);
    let ids: Vec<Uuid> = letters.iter().filter_map(Letter::entity).collect();
    let (letters, moment) = (SyncCell::new(letters), saves.begin_question());
    let find = move |store: &WorldStore, _: &_| store.entity_places(&ids);
    threads.ask(None, find, move |world, places| {
        let places =
            places.map_err(|error| error.to_string()).and_then(|places| places.map_err(|error| error.to_string()));
        hand_to(world, end_search, (letters, moment, places));
    });
}

/// Receives messages that did not reach their region, in a world that this process has alone.
fn receive_again(
    In(found): In<Vec<(DimensionId, Vec<(CrossingId, Crossing)>)>>,
    dimensions: Res<DimensionBook>,
    mut saves: ResMut<Saves>,
    mut post: ResMut<MailQueue>,
) {
    for (dimension, crossings) in found {
        if dimensions.open.get(&dimension).is_none_or(|open| open.is_closing()) {
            saves.received.leave(|plot| plot.0 == dimension);
            continue;
        }
        for (id, crossing) in crossings {
            if saves.received.forgotten().contains(&id) {
                receive(id, crossing, &mut saves, &mut post);
            }
        }
    }
}

type Places = BTreeMap<Uuid, (DimensionId, ColumnPos)>;

fn end_search(
    In((letters, moment, places)): In<(SyncCell<Vec<Letter>>, Moment, Result<Places, String>)>,
    clock: Res<Clock>,
    mut dimensions: ResMut<DimensionBook>,
    directory: Res<Directory>,
    mut saves: ResMut<Saves>,
    mut post: ResMut<MailQueue>,
    mut publisher: ResMut<Publisher>,
) {
    let is_known = places.is_ok();
    post.next_search = Some(if is_known { clock.now } else { clock.now.saturating_add(PERIOD) });
    let places = places.unwrap_or_else(|error| {
        warn!("entities to which letters are sent cannot be found, and are looked for again: {error}");
        Places::new()
    });
    for letter in SyncCell::to_inner(letters) {
        let Some(id) = letter.entity() else { continue };
        if directory.knows(id) {
            // It has come meanwhile.
            post.send(letter);
            continue;
        }
        let stored = || places.get(&id).copied();
        let place = saves.missed_place(&moment, id).unwrap_or_else(stored);
        let open = place.and_then(|(dimension, column)| {
            let open = dimensions.open.get_mut(&dimension).filter(|open| !open.is_closing())?;
            Some((open, column))
        });
        match (place, open, letter.crossing) {
            // A later round finds the letter again.
            (None, _, Some(crossing)) if !is_known => saves.forget(crossing),
            (None, _, None) if !is_known => post.for_elsewhere.push(letter),
            (Some(_), Some((open, column)), _) if open.may_have(column) && open.owner(column).is_none() => {
                open.send_letter(column, letter);
            }
            // The entity is about to arrive.
            (Some(_), Some((open, column)), Some(crossing)) if open.may_have(column) => saves.forget(crossing),
            (Some((dimension, _)), None, Some(_)) if !post.is_shared() => {
                post.give_back(letter, Undeliverable::DimensionNotOpen(dimension));
            }
            (Some((dimension, column)), _, crossing) => {
                let block = column.chunk(0).min_block();
                match post.share(&letter) {
                    Some((kind, bytes)) => {
                        let message = Crossing::Message { block, entity: Some(id), kind, bytes };
                        saves.send_on(crossing, (dimension, column.tile()), message);
                    }
                    None => post.give_back(letter, Undeliverable::NoSuchEntity(id)),
                }
            }
            (_, _, Some(crossing)) if letter.from == LetterSender::Server => {
                // Nobody can get it any more.
                saves.pending.received.insert(crossing);
                saves.note_removed([crossing]);
                let reason = Undeliverable::NoSuchEntity(id);
                if !post.is_shared() {
                    // Its sender is not known any more, so the main world has it back.
                    let mut letter = letter;
                    letter.returned = Some(reason);
                    publisher.letter(letter);
                    continue;
                }
                warn!("{} to {} is lost: {reason}", letter.name(), letter.to);
                publisher.event(LetterLost { what: letter.name(), to: letter.to, reason });
            }
            _ => post.give_back(letter, Undeliverable::NoSuchEntity(id)),
        }
    }
}

impl Servers {
    fn end(&mut self, saves: &mut Saves, publisher: &mut Publisher) {
        // Nothing is tried again that can no longer be saved.
        saves.has_ended = true;
        if !self.has_ended {
            self.has_ended = true;
            error!("another server has ended this one, which showed no sign of life: unsaved changes are lost");
            publisher.event(ServerEnded { incarnation: self.number });
        }
    }
}

/// Puts what was on its way on this server's ground. It is removed from the store with the commit that has its effect.
pub fn receive(id: CrossingId, crossing: Crossing, saves: &mut Saves, post: &mut MailQueue) {
    match crossing {
        Crossing::Entities(records) => {
            for record in records {
                saves.pending.entities.insert(record.id, Some(record.clone()));
                post.send(Letter::arrival(record));
            }
            saves.pending.received.insert(id);
            saves.note_removed([id]);
        }
        Crossing::MessageAway { dimension, block, kind, bytes } if post.is_shared() => {
            let message = Crossing::Message { block, entity: None, kind, bytes };
            saves.send_on(Some(id), (dimension, block.column().tile()), message);
        }
        Crossing::Message { block, entity, kind, bytes } => {
            let to = entity.map_or(Address::Place(id.plot.0, block), Address::Entity);
            deliver(id, to, &kind, &bytes, saves, post);
        }
        Crossing::MessageAway { dimension, block, kind, bytes } => {
            deliver(id, Address::Place(dimension, block), &kind, &bytes, saves, post);
        }
    }
}

fn deliver(id: CrossingId, to: Address, kind: &str, bytes: &[u8], saves: &mut Saves, post: &mut MailQueue) {
    match post.receive(id, to, kind, bytes) {
        Ok(()) => saves.received.deliver(id),
        // The game may be able to read it after an update.
        Err(error) => error_once!("a message that was on its way stays in the store: {error}"),
    }
}

impl OpenDimension {
    /// Gives a territory to another server, unless it leaves already. Returns `false` if only a part of it does.
    fn leave_territory(
        &mut self,
        territory: &BTreeSet<TilePos>,
        to: u64,
        deadlines: &Deadlines,
        orders: &mut Orders,
        publisher: &mut Publisher,
    ) -> bool {
        let Some(plots) = &mut self.plots else { return false };
        let open = territory.iter().filter(|plot| plots.is_open(**plot)).count();
        if open == territory.len() && open > 0 {
            info!("{} plots of {} go to server {to}", territory.len(), self.id);
            self.begin_leaving(territory.clone(), Some(to), deadlines, orders, publisher);
            return true;
        }
        // A drain may have sent it elsewhere, but a join decides.
        plots
            .leaving
            .iter_mut()
            .filter(|leaving| leaving.plots == *territory)
            .for_each(|leaving| leaving.to = Some(to));
        open == 0
    }

    /// Gives all ground to another server.
    fn drain(&mut self, to: u64, deadlines: &Deadlines, orders: &mut Orders, publisher: &mut Publisher) {
        let Some(plots) = &self.plots else { return };
        let mut open: BTreeSet<_> = plots.open().collect();
        while let Some(first) = open.pop_first() {
            let (mut territory, mut next) = (BTreeSet::from([first]), vec![first]);
            while let Some(plot) = next.pop() {
                let is_near = |near: &TilePos| near.x.abs_diff(plot.x) <= 1 && near.z.abs_diff(plot.z) <= 1;
                let near: Vec<TilePos> = open.extract_if(.., is_near).collect();
                territory.extend(&near);
                next.extend(near);
            }
            self.leave_territory(&territory, to, deadlines, orders, publisher);
        }
    }
}
