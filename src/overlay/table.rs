//! The table of regions.

use super::color::region_color;
use super::format::{UNKNOWN, count, milliseconds, percent, rate};
use super::state::{Condition, text};
use super::{RegionKey, View};
use crate::coordinator::{RegionStatistics, Statistics, TimeWindow};
use bevy_egui::egui::text::{LayoutJob, TextWrapping};
use bevy_egui::egui::{
    Align, Color32, Rect, Response, ScrollArea, Sense, Shape, Stroke, TextStyle, Ui, Vec2, pos2, vec2,
};
use std::cmp::Ordering;

/// What the rows are sorted by: the columns of the table.
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

/// One column: its title, what that means, and its width in points. A width of 0 takes what the others leave.
struct Column {
    by: SortBy,
    title: &'static str,
    hint: &'static str,
    width: f32,
}

static COLUMNS: [Column; 11] = [
    Column { by: SortBy::Region, title: "region", hint: "the region's number", width: 52.0 },
    Column { by: SortBy::Dimension, title: "dimension", hint: "the dimension that it lies in", width: 60.0 },
    Column { by: SortBy::State, title: "state", hint: "what it does; what needs attention first", width: 0.0 },
    Column { by: SortBy::Columns, title: "columns", hint: "loaded columns", width: 46.0 },
    Column { by: SortBy::Entities, title: "entities", hint: "entities that can travel", width: 48.0 },
    Column { by: SortBy::Viewers, title: "viewers", hint: "viewers in it", width: 42.0 },
    Column { by: SortBy::Rate, title: "TPS", hint: "ticks a second; the slowest first", width: 36.0 },
    Column { by: SortBy::Median, title: "ms/tick", hint: "median time of a tick, in ms", width: 44.0 },
    Column { by: SortBy::Ninety, title: "95 %", hint: "95 of 100 ticks take no longer, in ms", width: 40.0 },
    Column { by: SortBy::Worst, title: "worst", hint: "the longest tick, in ms", width: 40.0 },
    Column { by: SortBy::Busy, title: "busy", hint: "utilisation: the share of the time spent ticking", width: 38.0 },
];

/// Points between two columns.
const GAP: f32 = 6.0;
/// What the scroll bar needs.
const SCROLL_BAR: f32 = 10.0;

/// What the table remembers.
pub(super) struct Table {
    pub sort_by: SortBy,
    pub is_reversed: bool,
    pub window: TimeWindow,
    /// The regions' places in the statistics, in the order of the rows.
    order: Vec<usize>,
}

impl Default for Table {
    fn default() -> Self {
        Self { sort_by: SortBy::default(), is_reversed: false, window: TimeWindow::FiveSeconds, order: Vec::new() }
    }
}

impl SortBy {
    /// What asks for attention comes first: the large, the slow.
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
    /// Takes in new statistics: only then are the rows sorted.
    pub fn update(&mut self, statistics: &Statistics) {
        let regions = &statistics.regions;
        self.order.clear();
        self.order.extend(0..regions.len());
        let Self { sort_by, is_reversed, window, .. } = *self;
        self.order.sort_unstable_by(|a, b| {
            let order = sort_by.compare(window, &regions[*a], &regions[*b]);
            // The statistics list them by dimension and id.
            (if is_reversed { order.reverse() } else { order }).then(a.cmp(b))
        });
    }

    /// The buttons that choose how far back the times look.
    pub fn windows(&mut self, ui: &mut Ui, statistics: &Statistics) {
        let before = self.window;
        for (window, name) in TimeWindow::ALL.into_iter().zip(WINDOW_NAMES).rev() {
            ui.selectable_value(&mut self.window, window, name);
        }
        if before != self.window {
            self.update(statistics);
        }
    }

    /// The regions, one a row. A click on a title sorts by it, a second one turns the order round; a click on a row
    /// selects its region.
    pub fn show(&mut self, ui: &mut Ui, view: &View, selected: &mut Option<RegionKey>) {
        let places = places(ui.available_width(), view.has_dimensions());
        self.titles(ui, &view.statistics, &places);
        let height = ui.text_style_height(&TextStyle::Body);
        let rows = self.order.len();
        ScrollArea::vertical().id_salt("regions").auto_shrink(false).show_rows(ui, height, rows, |ui, range| {
            for number in range {
                let region = self.order.get(number).and_then(|index| view.statistics.regions.get(*index));
                let Some(region) = region else { continue };
                let key = (region.dimension, region.region);
                let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), height), Sense::click());
                let fill = match (*selected == Some(key), response.hovered(), number % 2) {
                    (true, ..) => ui.visuals().selection.bg_fill,
                    (_, true, _) => ui.visuals().widgets.hovered.weak_bg_fill,
                    (.., 1) => ui.visuals().faint_bg_color,
                    _ => Color32::TRANSPARENT,
                };
                ui.painter().rect_filled(rect.expand2(vec2(2.0, 1.0)), 2.0, fill);
                if self.row(ui, rect, response, &places, region, *selected == Some(key), view).clicked() {
                    *selected = Some(key);
                }
            }
        });
    }

    fn titles(&mut self, ui: &mut Ui, statistics: &Statistics, places: &[Place]) {
        let height = ui.text_style_height(&TextStyle::Small) + 6.0;
        let (row, _) = ui.allocate_exact_size(vec2(ui.available_width(), height), Sense::hover());
        for (column, left, width) in places {
            let rect = part(row, *left, *width);
            let response = ui.interact(rect, ui.id().with(column.title), Sense::click()).on_hover_text(column.hint);
            let is_chosen = self.sort_by == column.by;
            let visuals = ui.style().interact_selectable(&response, is_chosen);
            if is_chosen || response.hovered() {
                ui.painter().rect_filled(rect.expand2(vec2(GAP / 2.0 - 1.0, 0.0)), 2.0, visuals.weak_bg_fill);
            }
            let (title, color) = (column.title.to_owned(), visuals.text_color());
            cell(ui, rect, title, color, column.align(), TextStyle::Small);
            if is_chosen {
                arrow(ui, rect, color, self.is_reversed);
            }
            if response.clicked() {
                self.is_reversed = is_chosen && !self.is_reversed;
                self.sort_by = column.by;
                self.update(statistics);
            }
        }
    }

    fn row(
        &self,
        ui: &Ui,
        row: Rect,
        mut response: Response,
        places: &[Place],
        region: &RegionStatistics,
        is_selected: bool,
        view: &View,
    ) -> Response {
        let visuals = ui.visuals();
        let text_color = if is_selected { visuals.strong_text_color() } else { visuals.text_color() };
        let condition = Condition::of(region);
        for (column, left, width) in places {
            let mut rect = part(row, *left, *width);
            if column.by == SortBy::Region {
                swatch_at(ui, rect, region_color(region.region));
                rect.min.x += 15.0;
            }
            let color = match column.by {
                SortBy::State if !is_selected || condition < Condition::Paused => condition.color(ui),
                _ => text_color,
            };
            let value = self.value(column.by, region, view);
            if cell(ui, rect, value.clone(), color, column.align(), TextStyle::Body) {
                response = response.on_hover_text(value);
            }
        }
        response
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

/// In the order of [`TimeWindow::ALL`].
pub(super) const WINDOW_NAMES: [&str; 3] = ["5 s", "15 s", "1 min"];

/// A column, where it begins in its row, and its width.
type Place = (&'static Column, f32, f32);

impl Column {
    /// Words to the left, numbers to the right.
    fn align(&self) -> Align {
        match self.by {
            SortBy::Region | SortBy::Dimension | SortBy::State => Align::Min,
            _ => Align::Max,
        }
    }
}

/// All columns side by side, or all but the dimension.
fn places(width: f32, has_dimensions: bool) -> Vec<Place> {
    let shown = || COLUMNS.iter().filter(|column| has_dimensions || column.by != SortBy::Dimension);
    let fixed: f32 = shown().map(|column| column.width + GAP).sum();
    let rest = (width - SCROLL_BAR - fixed).max(60.0);
    let mut left = 2.0;
    let place = |column: &'static Column| {
        let width = if column.width > 0.0 { column.width } else { rest };
        left += width + GAP;
        (column, left - width - GAP, width)
    };
    shown().map(place).collect()
}

/// A part of a row.
pub(super) fn part(row: Rect, left: f32, width: f32) -> Rect {
    Rect::from_min_size(pos2(row.left() + left, row.top()), vec2(width, row.height()))
}

/// Text in one line, cut where its place ends. Returns whether it was cut.
pub(super) fn cell(ui: &Ui, rect: Rect, text: String, color: Color32, align: Align, style: TextStyle) -> bool {
    let mut job = LayoutJob::simple_singleline(text, style.resolve(ui.style()), color);
    job.wrap = TextWrapping::truncate_at_width(rect.width());
    let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
    let left = if align == Align::Max { rect.right() - galley.size().x } else { rect.left() };
    let is_cut = galley.elided;
    ui.painter().galley(pos2(left, rect.center().y - galley.size().y / 2.0), galley, color);
    is_cut
}

/// Says which way the rows are sorted: above the title's end.
fn arrow(ui: &Ui, title: Rect, color: Color32, is_reversed: bool) {
    let (tip, base) = if is_reversed { (-2.0, 0.5) } else { (0.5, -2.0) };
    let center = pos2(title.center().x, title.top() + 2.0);
    let points = vec![center + vec2(-3.0, base), center + vec2(3.0, base), center + vec2(0.0, tip)];
    ui.painter().add(Shape::convex_polygon(points, color, Stroke::NONE));
}

/// A small square of a region's color.
pub(super) fn swatch(ui: &mut Ui, color: Color32) -> Response {
    let (rect, response) = ui.allocate_exact_size(Vec2::splat(10.0), Sense::hover());
    ui.painter().rect_filled(rect, 2.0, color);
    response
}

/// The same at the left of a place.
pub(super) fn swatch_at(ui: &Ui, rect: Rect, color: Color32) {
    let center = pos2(rect.left() + 5.0, rect.center().y);
    ui.painter().rect_filled(Rect::from_center_size(center, Vec2::splat(10.0)), 2.0, color);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::TickWindow;
    use crate::region::RegionId;
    use crate::space::DimensionId;
    use bevy::utils::default;
    use std::time::Duration;

    fn region(id: u64, columns: usize, rate: Option<f64>, median: u64) -> RegionStatistics {
        let median = Duration::from_millis(median);
        let recent = TickWindow { ticks_per_second: rate, median, worst: median, ..default() };
        // A minute ago it was the other way round.
        let before = TickWindow { median: Duration::from_millis(10) - median, ..recent };
        let windows = [recent, recent, before];
        RegionStatistics { columns, windows, ..RegionStatistics::new(DimensionId(0), RegionId::new(id)) }
    }

    fn ids(table: &Table, statistics: &Statistics) -> Vec<u64> {
        table.order.iter().map(|index| statistics.regions[*index].region.index()).collect()
    }

    #[test]
    fn rows_are_sorted_both_ways_and_over_each_window() {
        let paused = RegionStatistics { paused: true, ..region(2, 20, Some(19.0), 5) };
        let regions = vec![region(1, 30, Some(20.0), 2), paused, region(3, 30, Some(12.5), 9), region(4, 10, None, 0)];
        let statistics = Statistics { regions, ..default() };
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

    #[test]
    fn columns_lie_side_by_side_within_the_row() {
        for has_dimensions in [false, true] {
            let places = places(608.0, has_dimensions);
            assert_eq!(places.len(), COLUMNS.len() - usize::from(!has_dimensions));
            assert!(places.is_sorted_by(|(_, left, width), (_, next, _)| left + width <= *next));
            assert!(places.iter().all(|(_, left, width)| left + width <= 608.0 && *width >= 36.0));
        }
    }
}
