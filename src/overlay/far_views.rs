//! The list of far views.

use super::format::{bytes, count};
use crate::generation::DistanceGraph;
use crate::space::{ColumnArea, ColumnPos};
use crate::view::{FarColumnReceived, FarView};
use bevy::prelude::*;
use bevy_egui::egui::{Grid, RichText, ScrollArea, Ui};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::time::Duration;

/// What a listener got is told over this time.
const WINDOW: Duration = Duration::from_secs(5);

/// A far view, as the overlay shows it.
pub(super) struct Listener {
    /// The name of its entity, or else its number.
    pub name: String,
    pub view: FarView,
    /// Columns that it knows.
    pub columns: u64,
    pub bytes_per_second: u64,
}

impl Listener {
    /// `3,211 of up to 12,853 columns`.
    fn columns(&self) -> String {
        let disc = ColumnArea::Disc { center: ColumnPos::new(0, 0), radius: self.view.radius.min(FarView::MAX_RADIUS) };
        let most = u64::try_from(DistanceGraph::columns_of(&disc)).unwrap_or(u64::MAX);
        format!("{} of up to {} columns", count(self.columns), count(most))
    }

    /// `12.3 KiB/s of 1.0 MiB/s`.
    fn traffic(&self) -> String {
        match self.view.bytes_per_second {
            0 => "held".to_owned(),
            cap => format!("{}/s of {}/s", bytes(self.bytes_per_second), bytes(cap)),
        }
    }

    fn radii(&self) -> String {
        format!("radius {}, detail {}", self.view.radius, self.view.detail_radius)
    }
}

/// What each listener got of late; noted while the overlay is hidden too.
#[derive(Resource, Default)]
pub(super) struct Traffic {
    received: VecDeque<(Duration, Entity, u64)>,
    now: Duration,
}

impl Traffic {
    fn note(&mut self, now: Duration, received: impl Iterator<Item = (Entity, u64)>) {
        self.now = now;
        // One entry for each listener and frame.
        let mut sums = FxHashMap::default();
        received.for_each(|(listener, bytes)| *sums.entry(listener).or_default() += bytes);
        self.received.extend(sums.into_iter().map(|(listener, bytes)| (now, listener, bytes)));
        while self.received.front().is_some_and(|(at, ..)| *at + WINDOW < now) {
            self.received.pop_front();
        }
    }

    pub fn bytes_per_second(&self, listener: Entity) -> u64 {
        let bytes: u64 = self.received.iter().filter(|(_, of, _)| *of == listener).map(|(.., bytes)| bytes).sum();
        let seconds = WINDOW.min(self.now).as_secs_f64().max(1.0);
        (bytes as f64 / seconds) as u64
    }
}

pub(super) fn note(
    mut received: MessageReader<FarColumnReceived>,
    time: Res<Time<Real>>,
    mut traffic: ResMut<Traffic>,
) {
    traffic.note(time.elapsed(), received.read().map(|column| (column.listener, column.bytes)));
}

/// The far views, one a row.
pub(super) fn show(ui: &mut Ui, listeners: &[Listener]) {
    if listeners.is_empty() {
        ui.weak("Nobody listens to a far view.");
        return;
    }
    ScrollArea::both().id_salt("far views").auto_shrink([false, false]).show(ui, |ui| {
        Grid::new("far views").num_columns(4).striped(true).spacing([10.0, 3.0]).show(ui, |ui| {
            for listener in listeners {
                ui.label(RichText::new(&listener.name).strong());
                ui.label(listener.columns()).on_hover_text("what it was told of, of what its disc holds");
                ui.label(listener.traffic()).on_hover_text("over five seconds, and its cap");
                ui.weak(listener.radii());
                ui.end_row();
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_knows_and_gets_is_told_beside_what_it_may() {
        let view = FarView::new().with_radius(1);
        let listener = Listener { name: "camera".to_owned(), view, columns: 4, bytes_per_second: 512 };
        assert_eq!(listener.columns(), "4 of up to 5 columns");
        assert_eq!(listener.traffic(), "512 B/s of 1.0 MiB/s");
        let held = Listener { view: view.with_bytes_per_second(0), ..listener };
        assert_eq!(held.traffic(), "held");
    }

    #[test]
    fn traffic_is_that_of_the_last_five_seconds() {
        let [one, other] = [1, 2].map(|number| Entity::from_raw_u32(number).unwrap());
        let mut traffic = Traffic::default();
        for second in 1..=20 {
            let bytes = if second <= 10 { 500 } else { 100 };
            traffic.note(Duration::from_secs(second), [(one, bytes), (one, bytes)].into_iter());
        }
        assert!((200..=240).contains(&traffic.bytes_per_second(one)), "{}", traffic.bytes_per_second(one));
        assert_eq!(traffic.bytes_per_second(other), 0);
        traffic.note(Duration::from_secs(60), std::iter::empty());
        assert_eq!(traffic.bytes_per_second(one), 0);
    }
}
