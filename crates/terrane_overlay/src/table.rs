//! The table of regions.

use super::format::{UNKNOWN, count, milliseconds, percent, rate};
use super::state::{Condition, text};
use super::widgets::region_color;
use crate::view::{RegionKey, View};
use crate::widgets::{clickable_table, swatch};
use bevy_egui::egui::{Align, Layout, RichText, TextStyle, Ui};
use bevy_terrane::view::{RegionStatistics, TimeWindow, WorldStatistics};
use egui_extras::{Column, TableRow};
use std::cmp::Ordering;

/// The column by which the table is sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SortBy {
    Region,
    Dimension,
    State,
    Columns,
    Entities,
    Viewers,
    Rate,
    #[default]
    Median,
    Ninety,
    Worst,
    Busy,
}

/// The title, the meaning and the width in points of each column. A width of 0 takes the remaining space.
const COLUMNS: [(SortBy, &str, &str, f32); 11] = [
    (SortBy::Region, "region", "the region's number", 52.0),
    (SortBy::Dimension, "dimension", "the dimension that it lies in", 60.0),
    (SortBy::State, "state", "what it does; what needs attention first", 0.0),
    (SortBy::Columns, "columns", "loaded columns", 46.0),
    (SortBy::Entities, "entities", "entities that can travel", 48.0),
    (SortBy::Viewers, "viewers", "viewers in it", 42.0),
    (SortBy::Rate, "TPS", "ticks a second; the slowest first", 36.0),
    (SortBy::Median, "ms/tick", "median time of a tick, in ms", 44.0),
    (SortBy::Ninety, "95 %", "95 of 100 ticks take no longer, in ms", 40.0),
    (SortBy::Worst, "worst", "the longest tick, in ms", 40.0),
    (SortBy::Busy, "busy", "utilisation: the share of the time spent ticking", 38.0),
];

/// The state of the table.
pub(super) struct Table {
    pub sort_by: SortBy,
    pub is_reversed: bool,
    pub window: TimeWindow,
    /// The indices of the regions in the statistics, in the order of the rows.
    order: Vec<usize>,
}

impl Default for Table {
    fn default() -> Self {
        Self { sort_by: SortBy::default(), is_reversed: false, window: TimeWindow::FiveSeconds, order: Vec::new() }
    }
}

impl SortBy {
    /// The most urgent first: the large, the slow.
    fn compare(self, window: TimeWindow, a: &RegionStatistics, b: &RegionStatistics) -> Ordering {
        let rate = |region: &RegionStatistics| region.window(window).ticks_per_second.unwrap_or(f64::INFINITY);
        let (ticks_of_a, ticks_of_b) = (a.window(window), b.window(window));
        match self {
            Self::Region => a.region.cmp(&b.region),
            Self::Dimension => a.dimension.cmp(&b.dimension),
            Self::State => Condition::of(a).cmp(&Condition::of(b)),
            Self::Columns => b.columns.cmp(&a.columns),
            Self::Entities => b.entities.cmp(&a.entities),
            Self::Viewers => b.viewers.cmp(&a.viewers),
            Self::Rate => rate(a).total_cmp(&rate(b)),
            Self::Median => ticks_of_b.median.cmp(&ticks_of_a.median),
            Self::Ninety => ticks_of_b.p95.cmp(&ticks_of_a.p95),
            Self::Worst => ticks_of_b.worst.cmp(&ticks_of_a.worst),
            Self::Busy => ticks_of_b.utilisation.total_cmp(&ticks_of_a.utilisation),
        }
    }
}

impl Table {
    /// Applies new statistics. The rows are sorted only then.
    pub fn update(&mut self, statistics: &WorldStatistics) {
        let regions = &statistics.regions;
        self.order.clear();
        self.order.extend(0..regions.len());
        let Self { sort_by, is_reversed, window, .. } = *self;
        self.order.sort_unstable_by(|a, b| {
            let order = sort_by.compare(window, &regions[*a], &regions[*b]);
            // The statistics are ordered by dimension and id.
            (if is_reversed { order.reverse() } else { order }).then(a.cmp(b))
        });
    }

    /// Shows the buttons that choose the time window.
    pub fn windows(&mut self, ui: &mut Ui, statistics: &WorldStatistics) {
        let before = self.window;
        for (window, name) in TimeWindow::ALL.into_iter().zip(WINDOW_NAMES).rev() {
            ui.selectable_value(&mut self.window, window, name);
        }
        if before != self.window {
            self.update(statistics);
        }
    }

    /// Shows the regions, one per row. A click on a title sorts by it, a second one reverses the order; a click on a row
    /// selects its region.
    pub fn show(&mut self, ui: &mut Ui, view: &View, selected: &mut Option<RegionKey>) {
        let height = ui.text_style_height(&TextStyle::Body);
        ui.spacing_mut().item_spacing.x = 4.0;
        let shown = COLUMNS.into_iter().filter(|(by, ..)| view.has_dimensions() || *by != SortBy::Dimension);
        let mut table = clickable_table(ui, "regions").striped(true);
        for (.., width) in shown.clone() {
            let column = if width > 0.0 { Column::exact(width) } else { Column::remainder().at_least(60.0) };
            table = table.column(column.clip(true));
        }
        let table = table.header(height, |mut row| {
            shown.clone().for_each(|(by, title, hint, _)| self.title(&mut row, by, title, hint, &view.statistics));
        });
        let rows = self.order.len();
        table.body(|body| {
            body.rows(height, rows, |mut row| {
                let region = self.order.get(row.index()).and_then(|index| view.statistics.regions.get(*index));
                let Some(region) = region else { return };
                let key = (region.dimension, region.region);
                row.set_selected(*selected == Some(key));
                shown.clone().for_each(|(by, ..)| self.cell(&mut row, by, region, view));
                if row.response().clicked() {
                    *selected = Some(key);
                }
            });
        });
    }

    fn title(&mut self, row: &mut TableRow, by: SortBy, title: &str, hint: &str, statistics: &WorldStatistics) {
        let is_chosen = self.sort_by == by;
        let text = RichText::new(title).small();
        let text = if is_chosen { text.strong() } else { text };
        let (_, response) = row.col(|ui| aligned(ui, by, |ui| drop(ui.label(text))));
        let order = if is_chosen && self.is_reversed { "; the other way round" } else { "" };
        if response.on_hover_text(format!("{hint}{order}")).clicked() {
            self.is_reversed = is_chosen && !self.is_reversed;
            self.sort_by = by;
            self.update(statistics);
        }
    }

    fn cell(&self, row: &mut TableRow, by: SortBy, region: &RegionStatistics, view: &View) {
        let value = self.value(by, region, view);
        row.col(|ui| {
            aligned(ui, by, |ui| match by {
                SortBy::Region => {
                    swatch(ui, region_color(region.region));
                    ui.label(value);
                }
                SortBy::State => drop(ui.colored_label(Condition::of(region).color(ui), value)),
                _ => drop(ui.label(value)),
            });
        });
    }

    fn value(&self, by: SortBy, region: &RegionStatistics, view: &View) -> String {
        let ticks = region.window(self.window);
        let time = |time| if ticks.ticks == 0 { UNKNOWN.to_owned() } else { milliseconds(time) };
        match by {
            SortBy::Region => region.region.index().to_string(),
            SortBy::Dimension => view.name(region.dimension),
            SortBy::State => text(region),
            SortBy::Columns => count(region.columns as u64),
            SortBy::Entities => count(region.entities as u64),
            SortBy::Viewers => count(region.viewers as u64),
            SortBy::Rate => rate(ticks.ticks_per_second),
            SortBy::Median => time(ticks.median),
            SortBy::Ninety => time(ticks.p95),
            SortBy::Worst => time(ticks.worst),
            SortBy::Busy => percent(ticks.utilisation),
        }
    }
}

/// The names in the order of [`TimeWindow::ALL`].
pub(super) const WINDOW_NAMES: [&str; 3] = ["5 s", "15 s", "1 min"];

/// Aligns words to the left and numbers to the right.
fn aligned(ui: &mut Ui, by: SortBy, contents: impl FnOnce(&mut Ui)) {
    match by {
        SortBy::Region | SortBy::Dimension | SortBy::State => contents(ui),
        _ => drop(ui.with_layout(Layout::right_to_left(Align::Center), contents)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bevy::utils::default;
    use bevy_terrane::region::RegionId;
    use bevy_terrane::space::DimensionId;
    use bevy_terrane::view::TickWindow;
    use std::time::Duration;

    fn region(id: u64, columns: usize, rate: Option<f64>, median: u64) -> RegionStatistics {
        let median = Duration::from_millis(median);
        let recent = TickWindow { ticks_per_second: rate, median, worst: median, ..default() };
        // A minute ago it was the other way round.
        let before = TickWindow { median: Duration::from_millis(10) - median, ..recent };
        let windows = [recent, recent, before];
        RegionStatistics { columns, windows, ..RegionStatistics::new(DimensionId(0), RegionId::new(id)) }
    }

    fn ids(table: &Table, statistics: &WorldStatistics) -> Vec<u64> {
        table.order.iter().map(|index| statistics.regions[*index].region.index()).collect()
    }

    /// Promise, clocks and faults: The overlay's table of regions sorts by every column, over 5 s, 15 s or a minute.
    #[test]
    fn rows_are_sorted_both_ways_and_over_each_window() {
        let paused = RegionStatistics { paused: true, ..region(2, 20, Some(19.0), 5) };
        let regions = vec![region(1, 30, Some(20.0), 2), paused, region(3, 30, Some(12.5), 9), region(4, 10, None, 0)];
        let statistics = WorldStatistics { regions, ..default() };
        let sorted = |sort_by, is_reversed, window| {
            let mut table = Table { sort_by, is_reversed, window, ..default() };
            table.update(&statistics);
            ids(&table, &statistics)
        };
        let five = TimeWindow::FiveSeconds;
        assert_eq!(sorted(SortBy::Region, false, five), [1, 2, 3, 4]);
        assert_eq!(sorted(SortBy::Region, true, five), [4, 3, 2, 1]);
        assert_eq!(sorted(SortBy::Columns, false, five), [1, 3, 2, 4]);
        assert_eq!(sorted(SortBy::Columns, true, five), [4, 2, 1, 3]);
        assert_eq!(sorted(SortBy::Rate, false, five), [3, 2, 1, 4]);
        assert_eq!(sorted(SortBy::State, false, five), [2, 1, 3, 4]);
        assert_eq!(sorted(SortBy::Median, false, five), [3, 2, 1, 4]);
        assert_eq!(sorted(SortBy::Median, false, TimeWindow::OneMinute), [4, 1, 2, 3]);
    }
}
