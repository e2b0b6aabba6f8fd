//! The log of region events.

use super::format::{count, list, time};
use super::state::Condition;
use super::widgets::region_color;
use crate::view::{Overlay, RegionKey, View};
use crate::widgets::{clickable_table, swatch};
use bevy::prelude::*;
use bevy_egui::egui::{TextStyle, Ui};
use bevy_terrane::region::RegionId;
use bevy_terrane::space::DimensionId;
use bevy_terrane::view::{
    RegionCreated, RegionDestroyed, RegionHalted, RegionHung, RegionMerged, RegionRestarted, RegionSplit,
    WorldStatistics,
};
use egui_extras::Column;
use std::collections::VecDeque;
use std::time::Duration;

/// The number of entries that are kept. The oldest is removed first.
const MAX_ENTRIES: usize = 512;

/// The recent events of regions, including those while the overlay was hidden.
#[derive(Resource, Default)]
pub(super) struct RegionLog {
    entries: VecDeque<Entry>,
}

#[derive(Debug)]
struct Entry {
    /// The time on the coordinator's clock, according to the newest statistics.
    at: Duration,
    dimension: DimensionId,
    /// The region of the event, and other regions that are involved.
    regions: Vec<RegionId>,
    /// The region's new condition, if the event is a fault or the end of one.
    fault: Option<Condition>,
    text: String,
}

/// The filter of the entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Filter {
    #[default]
    All,
    Faults,
    Selected,
}

impl RegionLog {
    fn push(&mut self, entry: Entry) {
        // The watchdog reports the same tick again and again.
        if entry.fault == Some(Condition::Hung)
            && let Some(known) = self.entries.iter_mut().rev().find(|known| known.key() == entry.key())
            && known.fault == entry.fault
        {
            known.text = entry.text;
            return;
        }
        if self.entries.len() == MAX_ENTRIES {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
    }

    /// Returns `true` if the region merged into the other, as far as the entries go back.
    pub fn has_merged(&self, from: RegionKey, into: RegionId) -> bool {
        let mut of = self.entries.iter().filter(|entry| entry.key() == from);
        of.any(|entry| entry.regions.get(1) == Some(&into) && entry.text.starts_with("merged"))
    }

    /// The matching entries, newest first.
    fn filtered(&self, filter: Filter, selected: Option<RegionKey>) -> Vec<&Entry> {
        let is_shown = |entry: &&Entry| match filter {
            Filter::All => true,
            Filter::Faults => entry.fault.is_some(),
            Filter::Selected => selected
                .is_some_and(|(dimension, region)| entry.dimension == dimension && entry.regions.contains(&region)),
        };
        self.entries.iter().rev().filter(is_shown).collect()
    }
}

impl Entry {
    fn key(&self) -> RegionKey {
        (self.dimension, self.regions[0])
    }
}

/// Logs the events of this frame. The overlay's selection follows a merge.
pub(super) fn note(
    mut log: ResMut<RegionLog>,
    mut overlay: ResMut<Overlay>,
    statistics: Res<WorldStatistics>,
    mut created: MessageReader<RegionCreated>,
    mut split: MessageReader<RegionSplit>,
    mut merged: MessageReader<RegionMerged>,
    mut halted: MessageReader<RegionHalted>,
    mut hung: MessageReader<RegionHung>,
    mut restarted: MessageReader<RegionRestarted>,
    mut destroyed: MessageReader<RegionDestroyed>,
) {
    let mut push = |dimension: &DimensionId, regions: Vec<RegionId>, fault: Option<Condition>, text: String| {
        log.push(Entry { at: statistics.clock, dimension: *dimension, regions, fault, text });
    };
    for RegionCreated { dimension, region } in created.read() {
        push(dimension, vec![*region], None, "created".to_owned());
    }
    for RegionSplit { dimension, from, into } in split.read() {
        let text = format!("split: {} left it", list(into, |part| part.index().to_string()));
        push(dimension, [&[*from], into.as_slice()].concat(), None, text);
    }
    for RegionMerged { dimension, from, into } in merged.read() {
        push(dimension, vec![*from, *into], None, format!("merged into {}", into.index()));
        if overlay.selected == Some((*dimension, *from)) {
            overlay.selected = Some((*dimension, *into));
        }
    }
    for RegionHung { dimension, region, step, running_for, .. } in hung.read() {
        let text = format!("hung for {} s in {step}", running_for.as_secs());
        push(dimension, vec![*region], Some(Condition::Hung), text);
    }
    for RegionHalted { dimension, region, fault } in halted.read() {
        push(dimension, vec![*region], Some(Condition::Halted), format!("halted: {}", fault.reason));
    }
    for RegionRestarted { dimension, region } in restarted.read() {
        push(dimension, vec![*region], Some(Condition::Alive), "restarted from the store".to_owned());
    }
    for RegionDestroyed { dimension, region } in destroyed.read() {
        push(dimension, vec![*region], None, "destroyed".to_owned());
    }
}

/// Shows the filter buttons.
pub(super) fn filters(ui: &mut Ui, filter: &mut Filter) {
    // From right to left.
    ui.selectable_value(filter, Filter::Selected, "selected region");
    ui.selectable_value(filter, Filter::Faults, "faults");
    ui.selectable_value(filter, Filter::All, "all");
}

/// Shows the log, newest entry first. A click on an entry selects its region.
pub(super) fn show(ui: &mut Ui, view: &View, filter: Filter, selected: &mut Option<RegionKey>) {
    let entries = view.log.filtered(filter, *selected);
    if entries.is_empty() {
        ui.weak("nothing happened");
        return;
    }
    let height = ui.text_style_height(&TextStyle::Body);
    let table = clickable_table(ui, "log").column(Column::exact(42.0)).column(Column::exact(10.0));
    table.column(Column::remainder().clip(true)).body(|body| {
        body.rows(height, entries.len(), |mut row| {
            let entry = entries[row.index()];
            let (dimension, region) = entry.key();
            row.col(|ui| drop(ui.weak(time(entry.at))));
            row.col(|ui| drop(swatch(ui, region_color(region))));
            let of = if view.has_dimensions() { format!(" of {}", view.name(dimension)) } else { String::new() };
            let text = format!("{}{of} {}", count(region.index()), entry.text);
            row.col(|ui| drop(ui.colored_label(entry.fault.unwrap_or(Condition::Alive).color(ui), text)));
            if row.response().clicked() {
                *selected = Some(entry.key());
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use bevy_terrane::view::RegionFault;
    use std::sync::Arc;

    const HERE: DimensionId = DimensionId(0);

    fn app() -> App {
        let mut app = App::new();
        app.init_resource::<RegionLog>()
            .init_resource::<WorldStatistics>()
            .init_resource::<Overlay>()
            .add_message::<RegionCreated>()
            .add_message::<RegionSplit>()
            .add_message::<RegionMerged>()
            .add_message::<RegionHalted>()
            .add_message::<RegionHung>()
            .add_message::<RegionRestarted>()
            .add_message::<RegionDestroyed>()
            .add_systems(Update, note);
        app
    }

    fn texts(app: &App, filter: Filter, selected: Option<u64>) -> Vec<String> {
        let selected = selected.map(|region| (HERE, RegionId::new(region)));
        let entries = app.world().resource::<RegionLog>().filtered(filter, selected);
        entries.iter().map(|entry| format!("{} {}", entry.regions[0].index(), entry.text)).collect()
    }

    fn merged(from: u64, into: u64) -> RegionMerged {
        RegionMerged { dimension: HERE, from: RegionId::new(from), into: RegionId::new(into) }
    }

    /// Promise, clocks and faults: The overlay has a log of merged, split, halted and destroyed regions.
    #[test]
    fn the_log_names_merged_and_split_regions() {
        let mut app = app();
        let region = RegionId::new(7);
        app.world_mut().write_message(RegionCreated { dimension: HERE, region });
        let into = vec![RegionId::new(8), RegionId::new(9)];
        app.world_mut().write_message(RegionSplit { dimension: HERE, from: region, into });
        app.update();
        app.world_mut().write_message(merged(9, 4));
        let (reason, location, system, column) = ("a bomb went off".to_owned(), None, None, None);
        let fault = Arc::new(RegionFault { reason, location, system, column });
        app.world_mut().write_message(RegionHalted { dimension: HERE, region, fault });
        app.update();
        let all = ["7 halted: a bomb went off", "9 merged into 4", "7 split: 8, 9 left it", "7 created"];
        assert_eq!(texts(&app, Filter::All, None), all);
        assert_eq!(texts(&app, Filter::Faults, None), all[..1]);
        assert_eq!(texts(&app, Filter::Selected, Some(9)), all[1..3]);
        assert_eq!(texts(&app, Filter::Selected, None), [""; 0]);
    }

    #[test]
    fn the_log_is_bounded_and_forgets_the_oldest() {
        let mut app = app();
        for round in 0..5 {
            for region in 0..MAX_ENTRIES as u64 / 4 {
                let region = RegionId::new(round * 1_000 + region);
                app.world_mut().write_message(RegionCreated { dimension: HERE, region });
            }
            app.update();
        }
        let texts = texts(&app, Filter::All, None);
        assert_eq!(texts.len(), MAX_ENTRIES);
        assert_eq!(texts[0], "4127 created");
        assert_eq!(texts[MAX_ENTRIES - 1], "1000 created");
    }

    #[test]
    fn a_region_that_hangs_on_has_one_entry() {
        let mut app = app();
        let region = RegionId::new(3);
        for seconds in [5, 10, 15] {
            let running_for = Duration::from_secs(seconds);
            let step = "RegionTick".to_owned();
            let waiting = Vec::new();
            let hung = RegionHung { dimension: HERE, region, column: None, running_for, step, waiting };
            app.world_mut().write_message(hung);
            app.update();
        }
        assert_eq!(texts(&app, Filter::All, None), ["3 hung for 15 s in RegionTick"]);
    }

    #[test]
    fn the_selection_follows_a_merge() {
        let mut app = app();
        app.world_mut().resource_mut::<Overlay>().selected = Some((HERE, RegionId::new(9)));
        app.world_mut().write_message(merged(9, 4));
        app.world_mut().write_message(merged(4, 2));
        app.update();
        assert_eq!(app.world().resource::<Overlay>().selected, Some((HERE, RegionId::new(2))));
    }
}
