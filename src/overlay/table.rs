use super::color::region_color;
use super::format::{count, milliseconds, rate};
use crate::coordinator::{RegionStatistics, Statistics};
use crate::region::RegionState;
use bevy_egui::egui::{Align, Color32, Grid, Layout, Response, RichText, ScrollArea, Sense, Ui, Vec2};
use std::cmp::Ordering;

/// Rows that are shown at most.
const MOST_ROWS: usize = 30;

/// What the rows are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SortBy {
    Region,
    Columns,
    Entities,
    Viewers,
    Rate,
    #[default]
    Median,
    Worst,
    Sections,
}

impl SortBy {
    /// What asks for attention comes first: the large, the slow.
    fn compare(self, a: &RegionStatistics, b: &RegionStatistics) -> Ordering {
        let by_id = (a.dimension, a.region).cmp(&(b.dimension, b.region));
        let rate = |region: &RegionStatistics| region.ticks_per_second().unwrap_or(f64::INFINITY);
        let order = match self {
            Self::Region => Ordering::Equal,
            Self::Columns => b.columns.cmp(&a.columns),
            Self::Entities => b.entities.cmp(&a.entities),
            Self::Viewers => b.viewers.cmp(&a.viewers),
            Self::Rate => rate(a).total_cmp(&rate(b)),
            Self::Median => b.windows[0].median.cmp(&a.windows[0].median),
            Self::Worst => b.windows[0].worst.cmp(&a.windows[0].worst),
            Self::Sections => b.sections.len().cmp(&a.sections.len()),
        };
        order.then(by_id)
    }
}

/// The first rows of all regions in this order.
fn first_rows(regions: &[RegionStatistics], sort_by: SortBy, most: usize) -> Vec<&RegionStatistics> {
    let mut rows: Vec<_> = regions.iter().collect();
    if rows.len() > most && most > 0 {
        rows.select_nth_unstable_by(most - 1, |a, b| sort_by.compare(a, b));
    }
    rows.truncate(most);
    rows.sort_unstable_by(|a, b| sort_by.compare(a, b));
    rows
}

/// The regions, one a row. A click on a title sorts by it.
pub(super) fn show(
    ui: &mut Ui,
    statistics: &Statistics,
    sort_by: &mut SortBy,
    dimension_name: impl Fn(&RegionStatistics) -> String,
) {
    let rows = first_rows(&statistics.regions, *sort_by, MOST_ROWS);
    ScrollArea::both().id_salt("regions").auto_shrink(false).show(ui, |ui| {
        Grid::new("regions").striped(true).num_columns(10).spacing([12.0, 3.0]).min_col_width(28.0).show(ui, |ui| {
            titles(ui, sort_by);
            for region in &rows {
                row(ui, region, dimension_name(region));
            }
        });
        let hidden = statistics.regions.len() - rows.len();
        if hidden > 0 {
            ui.weak(format!("and {} more", count(hidden as u64)));
        }
    });
}

fn titles(ui: &mut Ui, sort_by: &mut SortBy) {
    let mut title = |ui: &mut Ui, text: &str, by: SortBy, hint: &str| {
        let text = RichText::new(text).small().strong();
        ui.selectable_value(sort_by, by, text).on_hover_text(hint);
    };
    let plain = |ui: &mut Ui, text: &str| ui.label(RichText::new(text).small().strong());
    title(ui, "region", SortBy::Region, "sort by id");
    plain(ui, "dimension");
    plain(ui, "state");
    right(ui, |ui| title(ui, "columns", SortBy::Columns, "sort by columns"));
    right(ui, |ui| title(ui, "entities", SortBy::Entities, "sort by entities"));
    right(ui, |ui| title(ui, "viewers", SortBy::Viewers, "sort by viewers"));
    right(ui, |ui| title(ui, "TPS", SortBy::Rate, "ticks a second, over five seconds; the slowest first"));
    right(ui, |ui| title(ui, "ms/tick", SortBy::Median, "median time of a tick, over five seconds"));
    right(ui, |ui| title(ui, "worst", SortBy::Worst, "longest tick of the last five seconds, in ms"));
    right(ui, |ui| title(ui, "sections", SortBy::Sections, "sort by sections"));
    ui.end_row();
}

fn row(ui: &mut Ui, region: &RegionStatistics, dimension: String) {
    ui.horizontal(|ui| {
        swatch(ui, region_color(region.region));
        ui.label(region.region.index().to_string());
    });
    ui.label(dimension);
    if region.halted {
        ui.colored_label(ui.visuals().error_fg_color, "halted");
    } else if let Some(running_for) = region.hung {
        ui.colored_label(ui.visuals().warn_fg_color, format!("hung for {} s", running_for.as_secs()));
    } else if region.paused {
        ui.weak("paused");
    } else if region.state == RegionState::Transient {
        ui.weak(region.state.to_string());
    } else {
        ui.label(region.state.to_string());
    }
    let number = |ui: &mut Ui, text: String| right(ui, |ui| ui.label(text));
    number(ui, count(region.columns as u64));
    number(ui, count(region.entities as u64));
    number(ui, count(region.viewers as u64));
    number(ui, rate(region.ticks_per_second()));
    if region.ticks_per_second().is_some() {
        number(ui, milliseconds(region.windows[0].median));
        number(ui, milliseconds(region.windows[0].worst));
    } else {
        number(ui, super::format::UNKNOWN.to_owned());
        number(ui, super::format::UNKNOWN.to_owned());
    }
    number(ui, count(region.sections.len() as u64));
    ui.end_row();
}

fn right<R>(ui: &mut Ui, contents: impl FnOnce(&mut Ui) -> R) -> R {
    ui.with_layout(Layout::right_to_left(Align::Center), contents).inner
}

/// A small square of a region's color.
pub(super) fn swatch(ui: &mut Ui, color: Color32) -> Response {
    let (rect, response) = ui.allocate_exact_size(Vec2::splat(10.0), Sense::hover());
    ui.painter().rect_filled(rect, 2.0, color);
    response
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
        let windows = [recent, recent, recent];
        RegionStatistics { columns, windows, ..RegionStatistics::new(DimensionId(0), RegionId::new(id)) }
    }

    #[test]
    fn rows_are_sorted_and_cut() {
        let regions = [
            region(4, 10, None, 0),
            region(1, 30, Some(20.0), 2),
            region(3, 30, Some(12.5), 9),
            region(2, 20, Some(19.0), 5),
        ];
        let ids = |sort_by, most| -> Vec<u64> {
            first_rows(&regions, sort_by, most).iter().map(|region| region.region.index()).collect()
        };
        assert_eq!(ids(SortBy::Region, 9), [1, 2, 3, 4]);
        assert_eq!(ids(SortBy::Columns, 9), [1, 3, 2, 4]);
        assert_eq!(ids(SortBy::Rate, 9), [3, 2, 1, 4]);
        assert_eq!(ids(SortBy::Median, 2), [3, 2]);
        assert_eq!(ids(SortBy::Worst, 0), [0; 0]);
    }
}
