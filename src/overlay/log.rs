//! What happened to regions.

use super::color::region_color;
use super::format::{count, time};
use super::table::{cell, swatch_at};
use super::wish::RegionKey;
use super::{DimensionNames, Overlay};
use crate::region::RegionId;
use crate::view::{
    RegionCreated, RegionDestroyed, RegionHalted, RegionHung, RegionMerged, RegionRestarted, RegionSplit,
    WorldStatistics,
};
use bevy::prelude::*;
use bevy_egui::egui::{self, Align, Sense, Ui};
use std::collections::VecDeque;
use std::time::Duration;

/// Entries that are kept; the oldest goes first.
const MAX_ENTRIES: usize = 512;

/// What happened to regions lately, also while the overlay was hidden.
#[derive(Resource, Default)]
pub(super) struct RegionLog {
    entries: VecDeque<Entry>,
}

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    /// On the coordinator's clock, as the newest statistics know it.
    at: Duration,
    region: RegionKey,
    what: Happening,
}

#[derive(Clone, Debug, PartialEq)]
enum Happening {
    Created,
    Merged { into: RegionId },
    Split { into: Vec<RegionId> },
    Halted { reason: String },
    Restarted,
    Hung { step: String, running_for: Duration },
    Destroyed,
}

/// Which entries are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Filter {
    #[default]
    All,
    Faults,
    Selected,
}

impl Happening {
    fn is_fault(&self) -> bool {
        matches!(self, Self::Halted { .. } | Self::Restarted | Self::Hung { .. })
    }

    fn text(&self) -> String {
        match self {
            Self::Created => "created".to_owned(),
            Self::Merged { into } => format!("merged into {}", into.index()),
            Self::Split { into } => {
                const MOST: usize = 6;
                let mut parts: Vec<_> = into.iter().take(MOST).map(|region| region.index().to_string()).collect();
                if into.len() > MOST {
                    parts.push(format!("{} more", into.len() - MOST));
                }
                format!("split: {} left it", parts.join(", "))
            }
            Self::Halted { reason } => format!("halted: {reason}"),
            Self::Restarted => "restarted from the store".to_owned(),
            Self::Hung { step, running_for } => format!("hung for {} s in {step}", running_for.as_secs()),
            Self::Destroyed => "destroyed".to_owned(),
        }
    }
}

impl RegionLog {
    fn push(&mut self, at: Duration, region: RegionKey, what: Happening) {
        // The watchdog tells again and again of the same tick.
        if let Happening::Hung { .. } = what
            && let Some(known) = self.entries.iter_mut().rev().find(|entry| entry.region == region)
            && let Happening::Hung { .. } = known.what
        {
            known.what = what;
            return;
        }
        if self.entries.len() == MAX_ENTRIES {
            self.entries.pop_front();
        }
        self.entries.push_back(Entry { at, region, what });
    }

    /// The newest first.
    fn filtered(&self, filter: Filter, selected: Option<RegionKey>) -> Vec<&Entry> {
        let is_shown = |entry: &&Entry| match filter {
            Filter::All => true,
            Filter::Faults => entry.what.is_fault(),
            Filter::Selected => selected.is_some_and(|region| entry.concerns(region)),
        };
        self.entries.iter().rev().filter(is_shown).collect()
    }
}

impl Entry {
    fn concerns(&self, region: RegionKey) -> bool {
        let is_other = |other: &RegionId| (self.region.0, *other) == region;
        self.region == region
            || match &self.what {
                Happening::Merged { into } => is_other(into),
                Happening::Split { into } => into.iter().any(is_other),
                _ => false,
            }
    }
}

/// Writes down what the simulation told in this frame. What is selected in the overlay follows a merge.
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
    let mut push = |region, what| log.push(statistics.clock, region, what);
    for RegionCreated { dimension, region } in created.read() {
        push((*dimension, *region), Happening::Created);
    }
    for RegionSplit { dimension, from, into } in split.read() {
        push((*dimension, *from), Happening::Split { into: into.clone() });
    }
    for RegionMerged { dimension, from, into } in merged.read() {
        push((*dimension, *from), Happening::Merged { into: *into });
        if overlay.selected == Some((*dimension, *from)) {
            overlay.selected = Some((*dimension, *into));
        }
    }
    for RegionHung { dimension, region, step, running_for, .. } in hung.read() {
        push((*dimension, *region), Happening::Hung { step: step.clone(), running_for: *running_for });
    }
    for RegionHalted { dimension, region, reason, .. } in halted.read() {
        push((*dimension, *region), Happening::Halted { reason: reason.clone() });
    }
    for RegionRestarted { dimension, region } in restarted.read() {
        push((*dimension, *region), Happening::Restarted);
    }
    for RegionDestroyed { dimension, region } in destroyed.read() {
        push((*dimension, *region), Happening::Destroyed);
    }
}

/// The buttons that choose what is shown.
pub(super) fn filters(ui: &mut Ui, filter: &mut Filter) {
    // From right to left.
    ui.selectable_value(filter, Filter::Selected, "selected region");
    ui.selectable_value(filter, Filter::Faults, "faults");
    ui.selectable_value(filter, Filter::All, "all");
}

/// The log, the newest entry on top. A click on one selects its region.
pub(super) fn show(
    ui: &mut Ui,
    log: &RegionLog,
    filter: Filter,
    names: &DimensionNames,
    selected: &mut Option<RegionKey>,
) {
    let entries = log.filtered(filter, *selected);
    if entries.is_empty() {
        ui.weak("nothing happened");
        return;
    }
    let height = ui.text_style_height(&egui::TextStyle::Body);
    egui::ScrollArea::vertical().id_salt("log").auto_shrink(false).show_rows(ui, height, entries.len(), |ui, rows| {
        for entry in &entries[rows] {
            if row(ui, height, entry, names) {
                *selected = Some(entry.region);
            }
        }
    });
}

/// Where what happened begins: after the time and the region.
const TIME_WIDTH: f32 = 54.0;

/// Returns whether it was clicked.
fn row(ui: &mut Ui, height: f32, entry: &Entry, names: &DimensionNames) -> bool {
    let (rect, response) = ui.allocate_exact_size(egui::vec2(ui.available_width(), height), Sense::click());
    let visuals = ui.visuals();
    let (weak, plain) = (visuals.weak_text_color(), visuals.text_color());
    let color = match entry.what {
        Happening::Halted { .. } => visuals.error_fg_color,
        Happening::Hung { .. } => visuals.warn_fg_color,
        _ => plain,
    };
    if response.hovered() {
        ui.painter().rect_filled(rect, 2.0, visuals.widgets.hovered.weak_bg_fill);
    }
    let part = |from: f32, to: f32| egui::Rect::from_x_y_ranges(rect.left() + from..=rect.left() + to, rect.y_range());
    cell(ui, part(0.0, TIME_WIDTH - 12.0), time(entry.at), weak, Align::Max);
    swatch_at(ui, part(TIME_WIDTH, TIME_WIDTH + 10.0), region_color(entry.region.1));
    let of = if names.len() > 1 { format!(" of {}", names.name(entry.region.0)) } else { String::new() };
    let text = format!("{}{of} {}", count(entry.region.1.index()), entry.what.text());
    let is_cut = cell(ui, part(TIME_WIDTH + 16.0, rect.width()), text.clone(), color, Align::Min);
    let response = if is_cut { response.on_hover_text(text) } else { response };
    response.clicked()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::DimensionId;

    const HERE: DimensionId = DimensionId(0);

    fn app() -> App {
        let mut app = App::new();
        super::super::add_log(&mut app);
        app.init_resource::<WorldStatistics>().init_resource::<Overlay>();
        app
    }

    fn texts(app: &App, filter: Filter, selected: Option<u64>) -> Vec<String> {
        let selected = selected.map(|region| (HERE, RegionId::new(region)));
        let entries = app.world().resource::<RegionLog>().filtered(filter, selected);
        entries.iter().map(|entry| format!("{} {}", entry.region.1.index(), entry.what.text())).collect()
    }

    fn merged(from: u64, into: u64) -> RegionMerged {
        RegionMerged { dimension: HERE, from: RegionId::new(from), into: RegionId::new(into) }
    }

    #[test]
    fn the_log_says_who_became_whom() {
        let mut app = app();
        let region = RegionId::new(7);
        app.world_mut().write_message(RegionCreated { dimension: HERE, region });
        let into = vec![RegionId::new(8), RegionId::new(9)];
        app.world_mut().write_message(RegionSplit { dimension: HERE, from: region, into });
        app.update();
        app.world_mut().write_message(merged(9, 4));
        let (column, location, system) = (None, None, None);
        let reason = "a bomb went off".to_owned();
        app.world_mut().write_message(RegionHalted { dimension: HERE, region, column, reason, location, system });
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
