//! The window of one region.

use super::color::region_color;
use super::format::{UNKNOWN, count, milliseconds, percent, rate};
use super::state::{Condition, coupled, text};
use super::table::{WINDOW_NAMES, swatch};
use super::wish::{RegionKey, Wish};
use super::{DimensionNames, summary};
use crate::coordinator::{RegionFault, RegionStatistics, Statistics, TickWindow};
use crate::view::RegionOrder;
use bevy_egui::egui::{Button, Context, DragValue, Frame, Grid, Id, Label, RichText, Stroke, Ui, Window};
use std::time::Duration;

/// The statistics tell of an order within this time; until then the overlay shows what was ordered.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// The window of the region that is selected.
#[derive(Default)]
pub(super) struct Selected {
    /// The tick rate that was given to a region, and when.
    ordered: Option<(RegionKey, Option<f64>, Duration)>,
}

impl Selected {
    /// Shows the region. Closing the window selects none.
    pub fn show(
        &mut self,
        context: &Context,
        statistics: &Statistics,
        names: &DimensionNames,
        selected: &mut Option<RegionKey>,
        wishes: &mut Vec<Wish>,
    ) {
        let Some(key) = *selected else { return };
        let region = statistics.region(key.0, key.1);
        let mut is_open = true;
        Window::new(format!("Region {}", key.1.index()))
            .id(Id::new("Terrane region"))
            .default_pos([652.0, 12.0])
            .default_width(320.0)
            .resizable(false)
            .open(&mut is_open)
            .show(context, |ui| {
                ui.set_width(320.0);
                match region {
                    Some(region) => self.contents(ui, region, statistics, names, wishes),
                    None => drop(ui.weak("There is no such region now.")),
                }
            });
        if !is_open {
            *selected = None;
        }
    }

    fn contents(
        &mut self,
        ui: &mut Ui,
        region: &RegionStatistics,
        statistics: &Statistics,
        names: &DimensionNames,
        wishes: &mut Vec<Wish>,
    ) {
        ui.horizontal(|ui| {
            swatch(ui, region_color(region.region));
            ui.label(RichText::new(names.name(region.dimension)).strong());
            ui.colored_label(Condition::of(region).color(ui), text(region));
        });
        if let Some(fault) = &region.fault {
            show_fault(ui, fault);
        }
        ui.separator();
        figures(ui, region, statistics.section_shift);
        if !region.coupled.is_empty() {
            let with = coupled(&region.coupled, region.dimension, |dimension| names.name(dimension));
            ui.label(format!("ticks back to back with {with}"));
        }
        ui.separator();
        times(ui, &region.windows);
        ui.separator();
        buttons(ui, region, wishes);
        self.tick_rate(ui, region, statistics, wishes);
    }

    /// Its own tick rate, instead of its dimension's.
    fn tick_rate(&mut self, ui: &mut Ui, region: &RegionStatistics, statistics: &Statistics, wishes: &mut Vec<Wish>) {
        let key = (region.dimension, region.region);
        let is_fresh = |at: Duration| statistics.clock < at + ANSWER_TIME;
        let ordered = self.ordered.filter(|(of, _, at)| *of == key && is_fresh(*at)).map(|(_, rate, _)| rate);
        let now = ordered.unwrap_or(region.tick_rate);
        let dimension = statistics.dimensions.iter().find(|dimension| dimension.dimension == region.dimension);
        let common = dimension.map_or(20.0, |dimension| dimension.clock.ticks_per_second);
        let mut has_own = now.is_some();
        let mut rate = now.unwrap_or(common);
        ui.horizontal(|ui| {
            ui.checkbox(&mut has_own, "own tick rate").on_hover_text("instead of its dimension's");
            let field = DragValue::new(&mut rate).range(0.1..=1_000.0).speed(0.1).min_decimals(1).suffix(" TPS");
            ui.add_enabled(has_own, field);
        });
        let wished = has_own.then_some(rate);
        if wished != now {
            self.ordered = Some((key, wished, statistics.clock));
            wishes.push(Wish::order(key, RegionOrder::TickRate(wished)));
        }
    }
}

/// What happened, and where.
fn show_fault(ui: &mut Ui, fault: &RegionFault) {
    let color = ui.visuals().error_fg_color;
    Frame::group(ui.style()).stroke(Stroke::new(1.0, color)).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.add(Label::new(RichText::new(&fault.reason).color(color)).wrap());
        let place = fault.column.map(|column| column.to_string());
        for (name, value) in [("at", &fault.location), ("in", &fault.system), ("near column", &place)] {
            if let Some(value) = value {
                ui.add(Label::new(format!("{name} {value}")).wrap());
            }
        }
    });
}

fn figures(ui: &mut Ui, region: &RegionStatistics, section_shift: u32) {
    let size = |number: usize| count(number as u64);
    let entries = [
        ("columns", size(region.columns)),
        ("entities", size(region.entities)),
        ("sections", size(region.sections.len())),
        ("viewers", size(region.viewers)),
        ("ticks", count(region.ticks)),
    ];
    summary::figures(ui, "figures", &entries, 2, 66.0);
    if let Some((low, high)) = region.bounds() {
        for (axis, low, high) in [("x", low.x, high.x), ("z", low.z, high.z)] {
            let [low, high] = block_bounds(low, high, section_shift);
            ui.label(format!("blocks from {axis} = {low} to {high}"));
        }
    }
}

/// The lowest and the highest block of these sections along one axis.
fn block_bounds(low: i64, high: i64, section_shift: u32) -> [i128; 2] {
    let side = 16i128 << section_shift;
    [i128::from(low) * side, (i128::from(high) + 1) * side - 1]
}

/// Its ticks over all three windows.
fn times(ui: &mut Ui, windows: &[TickWindow; 3]) {
    let time = |window: &TickWindow, time| match window.ticks {
        0 => UNKNOWN.to_owned(),
        _ => format!("{} ms", milliseconds(time)),
    };
    Grid::new("times").num_columns(4).spacing([10.0, 3.0]).min_col_width(66.0).striped(true).show(ui, |ui| {
        ui.label("over");
        WINDOW_NAMES.iter().for_each(|name| drop(ui.label(RichText::new(*name).strong())));
        ui.end_row();
        let mut row = |name: &str, value: &dyn Fn(&TickWindow) -> String| {
            ui.label(name);
            windows.iter().for_each(|window| drop(ui.label(value(window))));
            ui.end_row();
        };
        row("TPS", &|window| rate(window.ticks_per_second));
        row("median", &|window| time(window, window.median));
        row("95 %", &|window| time(window, window.p95));
        row("worst", &|window| time(window, window.worst));
        row("busy", &|window| percent(window.utilisation));
    });
}

fn buttons(ui: &mut Ui, region: &RegionStatistics, wishes: &mut Vec<Wish>) {
    let key = (region.dimension, region.region);
    ui.horizontal(|ui| {
        let mut button = |name: &str, is_enabled: bool, order: RegionOrder, hint: &str| {
            if ui.add_enabled(is_enabled, Button::new(name)).on_hover_text(hint).clicked() {
                wishes.push(Wish::order(key, order));
            }
        };
        let is_live = !region.halted;
        match region.paused_itself {
            true => button("resume", is_live, RegionOrder::Resume, "tick again"),
            false => button("pause", is_live, RegionOrder::Pause, "stop to tick; it is still saved"),
        }
        button("step", is_live && region.paused_itself, RegionOrder::Step(1), "one tick, while it is paused");
        button("restart", region.halted, RegionOrder::Restart, "begin again from the store, after it halted");
        button("halt", is_live, RegionOrder::Halt, "as if it had panicked: what was not saved is lost");
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_in_blocks_up_to_the_edges_of_the_world() {
        assert_eq!(block_bounds(-1, 2, 2), [-64, 191]);
        let edge = i64::MAX >> 8;
        assert_eq!(block_bounds(-edge - 1, edge, 4), [i128::from(i64::MIN), i128::from(i64::MAX)]);
    }
}
