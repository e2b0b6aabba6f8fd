//! The clocks of the dimensions, with pause, step and speed.

use super::format::time;
use super::generation;
use crate::view::View;
use bevy::prelude::Commands;
use bevy_egui::egui::{Button, DragValue, Grid, RichText, ScrollArea, Ui};
use bevy_terrane::space::DimensionId;
use bevy_terrane::view::{DimensionClock, DimensionStatistics, StepDimension};

/// The maximum height of the list of dimensions, in points; a longer list scrolls.
const GREATEST_HEIGHT: f32 = 110.0;

/// Shows the clocks of the dimensions, one per row, and the progress of their generation.
pub(super) fn show(ui: &mut Ui, view: &View, commands: &mut Commands) {
    let dimensions = &view.statistics.dimensions;
    let area = ScrollArea::vertical().id_salt("dimensions").max_height(GREATEST_HEIGHT).auto_shrink([false, true]);
    area.show(ui, |ui| {
        Grid::new("dimensions").num_columns(6).spacing([10.0, 3.0]).show(ui, |ui| {
            for dimension in dimensions {
                row(ui, dimension, view, commands);
                ui.end_row();
            }
        });
        dimensions.iter().for_each(|dimension| generation::show(ui, dimension, view, commands));
    });
}

fn row(ui: &mut Ui, dimension: &DimensionStatistics, view: &View, commands: &mut Commands) {
    ui.label(RichText::new(view.name(dimension.dimension)).strong());
    ui.label(time(dimension.now)).on_hover_text("the dimension's clock");
    let Some((entity, _, own_clock)) = view.dimension(dimension.dimension) else { return };
    let clock = own_clock.unwrap_or(dimension.clock);
    let changed = controls(ui, dimension.dimension, clock, commands);
    if changed != clock {
        // The entity may have been despawned in this frame.
        commands.entity(entity).try_insert(changed);
    }
}

/// A field for a tick rate.
pub(super) fn ticks_per_second(rate: &mut f64) -> DragValue<'_> {
    DragValue::new(rate).range(0.1..=1_000.0).speed(0.1).min_decimals(1).suffix(" TPS")
}

fn controls(ui: &mut Ui, dimension: DimensionId, clock: DimensionClock, commands: &mut Commands) -> DimensionClock {
    let mut changed = clock;
    ui.add(ticks_per_second(&mut changed.ticks_per_second))
        .on_hover_text("ticks of each region in a second of the dimension's clock");
    let speed = DragValue::new(&mut changed.rate).range(0.01..=100.0).speed(0.01).fixed_decimals(2).prefix("× ");
    ui.add(speed).on_hover_text("how fast the dimension's clock runs");
    let pause = if clock.paused { "resume" } else { "pause" };
    if ui.button(pause).on_hover_text("all regions of the dimension").clicked() {
        changed.paused = !clock.paused;
    }
    let step = ui.add_enabled(clock.paused, Button::new("step"));
    if step.on_hover_text("one tick of each region").on_disabled_hover_text("while it is paused").clicked() {
        commands.write_message(StepDimension { dimension, ticks: 1 });
    }
    changed
}
