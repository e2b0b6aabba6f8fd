//! The clocks of the dimensions, with pause, step and speed.

use super::format::time;
use super::wish::Wish;
use super::{DimensionNames, generation};
use crate::coordinator::{DimensionClock, DimensionStatistics, StepDimension};
use bevy::prelude::Entity;
use bevy_egui::egui::{Button, DragValue, Grid, RichText, ScrollArea, Ui};

/// Points that the dimensions take at most; more of them scroll.
const GREATEST_HEIGHT: f32 = 110.0;

/// The clocks of the dimensions, one a row, and how far their ground is generated.
pub(super) fn show(ui: &mut Ui, dimensions: &[DimensionStatistics], names: &DimensionNames, wishes: &mut Vec<Wish>) {
    ScrollArea::vertical().id_salt("dimensions").max_height(GREATEST_HEIGHT).auto_shrink([false, true]).show(
        ui,
        |ui| {
            Grid::new("dimensions").num_columns(6).spacing([10.0, 3.0]).show(ui, |ui| {
                for dimension in dimensions {
                    row(ui, dimension, names, wishes);
                    ui.end_row();
                }
            });
            dimensions.iter().for_each(|dimension| generation::show(ui, dimension, names, wishes));
        },
    );
}

fn row(ui: &mut Ui, dimension: &DimensionStatistics, names: &DimensionNames, wishes: &mut Vec<Wish>) {
    ui.label(RichText::new(names.name(dimension.dimension)).strong());
    ui.label(time(dimension.now)).on_hover_text("the dimension's clock");
    // One that is being closed has no entity any more.
    let Some((entity, own_clock)) = names.entity(dimension.dimension) else { return };
    let clock = own_clock.unwrap_or(dimension.clock);
    let changed = controls(ui, entity, clock, wishes);
    if changed != clock {
        wishes.push(Wish::Clock(entity, changed));
    }
}

fn controls(ui: &mut Ui, entity: Entity, clock: DimensionClock, wishes: &mut Vec<Wish>) -> DimensionClock {
    let mut changed = clock;
    let rate =
        DragValue::new(&mut changed.ticks_per_second).range(0.1..=1_000.0).speed(0.1).min_decimals(1).suffix(" TPS");
    ui.add(rate).on_hover_text("ticks of each region in a second of the dimension's clock");
    let speed = DragValue::new(&mut changed.rate).range(0.01..=100.0).speed(0.01).fixed_decimals(2).prefix("× ");
    ui.add(speed).on_hover_text("how fast the dimension's clock runs");
    let pause = if clock.paused { "resume" } else { "pause" };
    if ui.button(pause).on_hover_text("all regions of the dimension").clicked() {
        changed.paused = !clock.paused;
    }
    let step = ui.add_enabled(clock.paused, Button::new("step"));
    if step.on_hover_text("one tick of each region").on_disabled_hover_text("while it is paused").clicked() {
        wishes.push(Wish::Step(StepDimension { dimension: entity, ticks: 1 }));
    }
    changed
}
