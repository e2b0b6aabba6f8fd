//! Plots that leave: everything on them is saved and dropped before they are given up.

use super::tend::Servers;
use crate::coordinator::columns::{ColumnState, Rest};
use crate::coordinator::dimension::{DimensionBook, OpenDimension};
use crate::coordinator::mail::directory::Directory;
use crate::coordinator::mail::queue::MailQueue;
use crate::coordinator::messages::why::Ticket;
use crate::coordinator::plots::Leaving;
use crate::coordinator::publish::Publisher;
use crate::coordinator::saves::Saves;
use crate::coordinator::schedule::deadlines::Deadlines;
use crate::coordinator::servers::players::Players;
use crate::coordinator::stream::orders::Orders;
use crate::coordinator::threads::Threads;
use crate::simulation::{Letter, Task, Undeliverable};
use crate::space::{ColumnPos, TilePos};
use crate::storage::servers::{Crossing, CrossingId, Plot};
use bevy::prelude::*;
use std::collections::BTreeSet;
use std::mem;

/// Empties the plots that leave.
pub fn leave_plots(
    servers: Option<Res<Servers>>,
    mut dimensions: ResMut<DimensionBook>,
    mut deadlines: ResMut<Deadlines>,
    mut saves: ResMut<Saves>,
    mut directory: ResMut<Directory>,
    mut post: ResMut<MailQueue>,
    mut players: ResMut<Players>,
    threads: Res<Threads>,
    mut publisher: ResMut<Publisher>,
) {
    if servers.is_none() {
        return;
    }
    let mut stuck: BTreeSet<Plot> = BTreeSet::new();
    for dimension in dimensions.open.values_mut().filter(|open| !open.is_closing()) {
        let mut groups = match &mut dimension.plots {
            Some(plots) => mem::take(&mut plots.leaving),
            None => continue,
        };
        let ready = groups.iter().filter(|leaving| leaving.is_ready).count();
        for leaving in groups.iter_mut().filter(|leaving| !leaving.is_ready) {
            let (saves, directory) = (&mut *saves, &mut *directory);
            for region in dimension.regions.regionizer.regions() {
                if let Some(column) = dimension.regions.regionizer.columns(region).find(|column| leaving.has(*column)) {
                    let plot = (dimension.id, column.tile());
                    players.leave_with(plot, |id| directory.is_in(id, dimension.id, region));
                }
            }
            let has = |column: ColumnPos| leaving.has(column);
            dimension.drop_failures(has);
            dimension.empty_regions(has, || Task::Leave, &mut deadlines, saves, directory, &mut post, &mut publisher);
            dimension.return_arrivals(has, &mut post);
            for traveller in dimension.mail.transit.take_if(has) {
                publisher.mirrors(post.drop_traveller(traveller, Undeliverable::NoSuchEntity, directory));
            }
            leaving.awaited.retain(|region| deadlines.running.contains_key(&(dimension.id, *region)));
            let has_columns = dimension.columns.iter().any(|(column, _)| leaving.has(column));
            let has_messages = !saves.received.plots(dimension.id).is_disjoint(&leaving.plots);
            if has_messages {
                stuck.extend(leaving.plots.iter().map(|plot| (dimension.id, *plot)));
            }
            if has_columns || has_messages || !leaving.awaited.is_empty() {
                leaving.until = None;
                continue;
            }
            let until = *leaving.until.get_or_insert_with(|| saves.stored_with());
            leaving.is_ready = saves.is_stored(until);
            if !leaving.is_ready {
                saves.request_commit();
            }
        }
        if let Some(plots) = &mut dimension.plots {
            plots.is_urgent |= groups.iter().filter(|leaving| leaving.is_ready).count() > ready;
            plots.leaving = groups;
        }
    }
    // A region may be paused or halted, and ground may never come. The next owners of the plots find the messages in the store.
    if !stuck.is_empty() {
        return_stored(&mut dimensions, |crossing| stuck.contains(&crossing.plot), &mut post);
    }
    deadlines.hand_over(&threads);
}

/// Takes back stored letters like these that wait for ground, or for the next tick of their region.
pub fn return_stored(dimensions: &mut DimensionBook, is_to_go: impl Fn(CrossingId) -> bool, post: &mut MailQueue) {
    let is_to_go = |letter: &Letter| letter.crossing.is_some_and(&is_to_go);
    for dimension in dimensions.open.values_mut() {
        let waiting = dimension.take_waiting(|_, letter| is_to_go(letter));
        post.returned.extend(waiting.into_iter().filter_map(|(_, letter)| letter.crossing));
        let regionizer = &mut dimension.regions.regionizer;
        for region in regionizer.regions() {
            let inbox = regionizer.data_mut(region).and_then(|slot| slot.parked.get().inbox.as_mut());
            let letters = inbox.into_iter().flat_map(|inbox| inbox.letters.extract_if(.., |letter| is_to_go(letter)));
            post.returned.extend(letters.filter_map(|letter| letter.crossing));
        }
    }
}

impl OpenDimension {
    /// Returns the letters of entities that wait to arrive in columns like these, and those that are stored. The next owner of
    /// the ground finds both in the store, and a letter that waited for the ground would bring them a second time.
    fn return_arrivals(&mut self, is_to_go: impl Fn(ColumnPos) -> bool, post: &mut MailQueue) {
        let is_stored = |letter: &Letter| letter.brings().is_some() || letter.crossing.is_some();
        for (column, letter) in self.take_waiting(|column, letter| is_to_go(column) && is_stored(letter)) {
            match letter.crossing {
                Some(crossing) => post.returned.push(crossing),
                None => post.give_back(letter, Undeliverable::OtherServer(column)),
            }
        }
    }

    /// Takes letters like these that wait for ground.
    fn take_waiting(&mut self, is_to_go: impl Fn(ColumnPos, &Letter) -> bool) -> Vec<(ColumnPos, Letter)> {
        let mut taken = Vec::new();
        for column in self.mail.letters.keys().copied().collect::<Vec<_>>() {
            let Some(letters) = self.mail.letters.get_mut(&column) else { continue };
            let before = taken.len();
            taken.extend(letters.extract_if(.., |letter| is_to_go(column, letter)).map(|letter| (column, letter)));
            if letters.is_empty() {
                self.mail.letters.remove(&column);
            }
            for (_, letter) in &taken[before..] {
                let place = self.letter_place(column, letter);
                if !self.mail.letters.contains_key(&column) {
                    self.release(Ticket::Letters(place));
                    self.mail.letter_places.end(place);
                }
            }
        }
        taken
    }

    /// Notes that another server has a plot or the ground around it. Letters that wait for it go there, or come back.
    pub fn note_elsewhere(&mut self, plot: TilePos, other: u64, saves: &mut Saves, post: &mut MailQueue) {
        let (id, now) = (self.id, self.time.real_now);
        let Some(plots) = &mut self.plots else { return };
        plots.note_elsewhere(plot, other, now);
        for (column, letters) in self.mail.letters.extract_if(.., |column, _| column.tile() == plot).collect::<Vec<_>>()
        {
            for letter in letters {
                let place = self.letter_place(column, &letter);
                self.release(Ticket::Letters(place));
                self.mail.letter_places.end(place);
                match (post.share(&letter), letter.block()) {
                    // It is found in the store, by the other server or by this one.
                    _ if letter
                        .crossing
                        .is_some_and(|crossing| crossing.plot == (id, plot) || letter.entity().is_some()) =>
                    {
                        post.returned.extend(letter.crossing);
                    }
                    (Some((kind, bytes)), Some(block)) => {
                        let message = Crossing::Message { block, entity: None, kind, bytes };
                        saves.send_on(letter.crossing, (id, plot), message);
                    }
                    _ => post.give_back(letter, Undeliverable::OtherServer(column)),
                }
            }
        }
    }

    /// Begins to empty plots. They are given to a server, or become free.
    pub fn begin_leaving(
        &mut self,
        plots: BTreeSet<TilePos>,
        to: Option<u64>,
        deadlines: &Deadlines,
        orders: &mut Orders,
        publisher: &mut Publisher,
    ) {
        let Some(states) = &mut self.plots else { return };
        states.set_leaving(&plots);
        let away = deadlines.running.keys().filter(|(of, _)| *of == self.id).map(|(_, region)| *region);
        states.leaving.push(Leaving {
            plots: plots.clone(),
            to,
            awaited: away.collect(),
            until: None,
            is_ready: false,
        });
        self.tell_plots();
        let is_here = |column: ColumnPos| plots.contains(&column.tile());
        let held = self
            .demand
            .viewers
            .iter()
            .filter(|(ticket, viewer)| matches!(ticket, Ticket::Region(_)) && is_here(viewer.center));
        let held: Vec<Ticket> = held.map(|(ticket, _)| *ticket).collect();
        held.into_iter().for_each(|ticket| self.release(ticket));
        orders.take_back(self, is_here, publisher);
    }

    /// Drops the failures of columns like these. They would be tried again, and never succeed.
    fn drop_failures(&mut self, is_to_go: impl Fn(ColumnPos) -> bool) {
        let here: Vec<_> = self.columns.iter().filter(|(column, _)| is_to_go(*column)).collect();
        for (column, state) in here {
            match state {
                ColumnState::Failed(_) => {
                    self.columns.forget(column);
                    self.make_missing(column);
                }
                // Its region has the rest of it.
                ColumnState::Fetched(Rest::Failed(_)) | ColumnState::Owned(Rest::Failed(_)) => {
                    self.columns.deliver(column);
                }
                _ => {}
            }
        }
    }
}
