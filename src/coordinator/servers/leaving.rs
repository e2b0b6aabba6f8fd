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
use crate::storage::servers::Crossing;
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
            let has_messages = saves.received.has_messages(dimension.id, |plot| leaving.plots.contains(&plot));
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
    deadlines.hand_over(&threads);
}

impl OpenDimension {
    /// Returns the letters of entities that wait to arrive in columns like these, and those that are stored. The next owner of
    /// the ground finds both in the store, and a letter that waited for the ground would bring them a second time.
    fn return_arrivals(&mut self, is_to_go: impl Fn(ColumnPos) -> bool, post: &mut MailQueue) {
        let columns: Vec<ColumnPos> = self.mail.letters.keys().copied().filter(|column| is_to_go(*column)).collect();
        for column in columns {
            let Some(letters) = self.mail.letters.get_mut(&column) else { continue };
            let arrivals: Vec<Letter> =
                letters.extract_if(.., |letter| letter.brings().is_some() || letter.crossing.is_some()).collect();
            if letters.is_empty() {
                self.mail.letters.remove(&column);
            }
            for letter in arrivals {
                let place = self.letter_place(column, &letter);
                if !self.mail.letters.contains_key(&column) {
                    self.release(Ticket::Letters(place));
                    self.mail.letter_places.end(place);
                }
                match letter.crossing {
                    Some(crossing) => post.returned.push(crossing),
                    None => post.give_back(letter, Undeliverable::OtherServer(column)),
                }
            }
        }
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
                    // The other server finds it in the store.
                    _ if letter.crossing.is_some() => post.returned.extend(letter.crossing),
                    (Some((kind, bytes)), Some(block)) => {
                        saves.send_to((id, plot), Crossing::Message { block, entity: None, kind, bytes });
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
