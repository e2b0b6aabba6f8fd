//! The details of one region.

use super::clocks::ticks_per_second;
use super::format::{UNKNOWN, count, milliseconds, percent, rate};
use super::profile::Profile;
use super::state::{Condition, coupled, text};
use super::summary;
use super::table::WINDOW_NAMES;
use super::widgets::{because, region_color};
use crate::view::{RegionKey, View};
use crate::widgets::swatch;
use bevy::prelude::Commands;
use bevy_egui::egui::{Button, Frame, Grid, Label, RichText, ScrollArea, Stroke, Ui};
use bevy_terrane::view::{ControlRegion, RegionCause, RegionFault, RegionOrder, RegionStatistics, TickWindow};
use std::time::Duration;
use terrane_inspect::Inspector;

/// The statistics reflect an order within this time. Until then the overlay shows the ordered value.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// The tick rate that was given to a region, and when.
pub(super) type RateOrder = (RegionKey, Option<f64>, Duration);

/// Shows the selected region.
pub(super) fn show(
    ui: &mut Ui,
    view: &View,
    key: RegionKey,
    (ordered, profile): (&mut Option<RateOrder>, &mut Profile),
    (commands, inspector): (&mut Commands, &mut Inspector),
) {
    let (dimension, region) = key;
    let Some(region) = view.statistics.region(dimension, region) else {
        ui.weak("This region no longer exists.");
        return;
    };
    ScrollArea::vertical().id_salt("region").auto_shrink([false, false]).show(ui, |ui| {
        contents(ui, region, view, ordered, commands);
        ui.separator();
        profile.show(ui, inspector, key);
    });
}

fn contents(
    ui: &mut Ui,
    region: &RegionStatistics,
    view: &View,
    ordered: &mut Option<RateOrder>,
    commands: &mut Commands,
) {
    ui.horizontal(|ui| {
        swatch(ui, region_color(region.region));
        ui.label(RichText::new(view.name(region.dimension)).strong());
        ui.colored_label(Condition::of(region).color(ui), text(region));
    });
    if let Some(fault) = &region.fault {
        show_fault(ui, fault);
    }
    match view.statistics.why(region.dimension, region.region) {
        None | Some(RegionCause::OnTime | RegionCause::New) => {}
        // The fault is shown above.
        Some(cause @ RegionCause::Halted(_)) => drop(ui.weak(cause.action())),
        Some(cause) => because(ui, &cause, cause.action()),
    }
    ui.separator();
    figures(ui, region, view.statistics.section_shift);
    if !region.coupled.is_empty() {
        let with = coupled(&region.coupled, region.dimension, |dimension| view.name(dimension));
        ui.label(format!("ticks back to back with {with}"));
    }
    ui.separator();
    times(ui, &region.windows);
    ui.separator();
    let (dimension, region_id) = (region.dimension, region.region);
    let mut give = |order| {
        commands.write_message(ControlRegion { dimension, region: region_id, order });
    };
    buttons(ui, region, &mut give);
    tick_rate(ui, region, view, ordered, &mut give);
}

/// Shows the region's own tick rate, which replaces its dimension's.
fn tick_rate(
    ui: &mut Ui,
    region: &RegionStatistics,
    view: &View,
    ordered: &mut Option<RateOrder>,
    give: &mut impl FnMut(RegionOrder),
) {
    let key = (region.dimension, region.region);
    let is_fresh = |(of, _, at): &RateOrder| *of == key && view.statistics.clock < *at + ANSWER_TIME;
    let now = ordered.filter(is_fresh).map_or(region.tick_rate, |(_, rate, _)| rate);
    let dimension = view.statistics.dimensions.iter().find(|dimension| dimension.dimension == region.dimension);
    let common = dimension.map_or(20.0, |dimension| dimension.clock.ticks_per_second);
    let mut has_own = now.is_some();
    let mut rate = now.unwrap_or(common);
    ui.horizontal(|ui| {
        ui.checkbox(&mut has_own, "own tick rate").on_hover_text("instead of its dimension's");
        ui.add_enabled(has_own, ticks_per_second(&mut rate));
    });
    let wished = has_own.then_some(rate);
    if wished != now {
        *ordered = Some((key, wished, view.statistics.clock));
        give(RegionOrder::TickRate(wished));
    }
}

/// Shows the cause and the place of a fault.
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

/// Shows the tick times over all three windows.
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

fn buttons(ui: &mut Ui, region: &RegionStatistics, give: &mut impl FnMut(RegionOrder)) {
    ui.horizontal(|ui| {
        let mut button = |name: &str, is_enabled: bool, order: RegionOrder, hint: &str| {
            if ui.add_enabled(is_enabled, Button::new(name)).on_hover_text(hint).clicked() {
                give(order);
            }
        };
        let is_live = !region.halted;
        match region.paused_itself {
            true => button("resume", is_live, RegionOrder::Resume, "tick again"),
            false => button("pause", is_live, RegionOrder::Pause, "stop to tick; it is still saved"),
        }
        button("step", is_live && region.paused_itself, RegionOrder::Step(1), "one tick, while it is paused");
        button("restart", region.halted, RegionOrder::Restart, "begin again from the store, after it halted");
        button("halt", is_live, RegionOrder::Halt, "as if it had panicked: unsaved changes are lost");
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
