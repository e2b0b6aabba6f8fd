//! The progress, the failures and the cap of a dimension's generation.

use super::format::{count, done, pace};
use crate::view::View;
use bevy::prelude::{Commands, Entity};
use bevy_egui::egui::{DragValue, Label, RichText, Ui};
use bevy_terrane::view::{DimensionGeneration, DimensionStatistics, FailedColumn, RetryColumns};

/// The number of failed columns that are listed for a dimension, at most.
const MAX_LISTED: usize = 8;

/// Shows the progress of a dimension's generation, its controls, and its failures.
pub(super) fn show(ui: &mut Ui, dimension: &DimensionStatistics, view: &View, commands: &mut Commands) {
    let Some((entity, name, _)) = view.dimension(dimension.dimension) else { return };
    ui.horizontal(|ui| {
        if view.has_dimensions() {
            ui.label(RichText::new(name).strong());
        }
        ui.label(text(dimension)).on_hover_text("columns within the viewers' generation radii");
        controls(ui, entity, dimension.generation, commands);
    });
    if dimension.failing > 0 || dimension.set_aside > 0 {
        ui.horizontal(|ui| show_failures(ui, dimension, commands));
    }
}

/// `generated 1,234 of 2,000 (61 %), 120/s, 6.4 s left`.
fn text(dimension: &DimensionStatistics) -> String {
    let ground = dimension.to_generate;
    let text = format!("generated {}", done(ground.total.saturating_sub(ground.missing), ground.total));
    match ground.missing {
        0 => text,
        _ => format!("{text}, {}", pace(dimension.generated_per_second, dimension.time_left)),
    }
}

fn controls(ui: &mut Ui, entity: Entity, settings: DimensionGeneration, commands: &mut Commands) {
    let mut changed = settings;
    // 0 stands for no limit.
    let mut most = settings.columns_per_second.unwrap_or(0.0);
    let cap = DragValue::new(&mut most)
        .range(0.0..=100_000.0)
        .speed(1.0)
        .custom_formatter(|most, _| if most > 0.0 { format!("at most {most:.0}/s") } else { "no cap".to_owned() })
        .custom_parser(|text| {
            text.chars().filter(|it| it.is_ascii_digit() || *it == '.').collect::<String>().parse().ok()
        });
    if ui.add(cap).on_hover_text("columns generated in a second; 0 for no limit").changed() {
        changed.columns_per_second = (most > 0.0).then_some(most);
    }
    let pause = if settings.paused { "generate on" } else { "hold generation" };
    if ui.button(pause).on_hover_text("what is stored is loaded all the same").clicked() {
        changed.paused = !settings.paused;
    }
    if changed != settings {
        commands.entity(entity).try_insert(changed);
    }
}

fn show_failures(ui: &mut Ui, dimension: &DimensionStatistics, commands: &mut Commands) {
    let size = |number: usize| count(number as u64);
    let failed = format!("{} failing, {} set aside", size(dimension.failing), count(dimension.set_aside));
    let label = ui.label(RichText::new(failed).color(ui.visuals().warn_fg_color));
    label.on_hover_text(dimension.failures.iter().take(MAX_LISTED).map(line).collect::<Vec<_>>().join("\n"));
    if ui.button("try again").on_hover_text("all columns that failed").clicked() {
        commands.write_message(RetryColumns { dimension: dimension.dimension, column: None });
    }
    if let Some(last) = dimension.failures.first() {
        ui.add(Label::new(RichText::new(line(last)).weak()).truncate());
    }
}

/// `column [3, 4]: no ground here (5 tries)`. The column is part of the error.
fn line(failed: &FailedColumn) -> String {
    let reason = failed.error.lines().next().unwrap_or_default();
    format!("{reason} ({} tries)", failed.attempts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::UNKNOWN;
    use bevy_terrane::generation::Completion;
    use bevy_terrane::space::ColumnPos;
    use std::time::Duration;

    #[test]
    fn progress_is_shown_and_never_rounds_up_to_done() {
        let mut dimension = DimensionStatistics {
            to_generate: Completion { missing: 1, total: 2_000 },
            generated_per_second: Some(120.4),
            time_left: Some(Duration::from_millis(6_400)),
            ..DimensionStatistics::default()
        };
        assert_eq!(text(&dimension), "generated 1,999 of 2,000 (99 %), 120/s, 6.4 s left");
        dimension.generated_per_second = None;
        dimension.time_left = None;
        assert_eq!(text(&dimension), format!("generated 1,999 of 2,000 (99 %), {UNKNOWN}/s"));
        dimension.to_generate.missing = 0;
        assert_eq!(text(&dimension), "generated 2,000 of 2,000 (100 %)");
    }

    #[test]
    fn a_failure_is_one_line() {
        let error = "column [3, 4]: no ground here\nand more".to_owned();
        let failed = FailedColumn { column: ColumnPos::new(3, 4), attempts: 5, error, set_aside: true };
        assert_eq!(line(&failed), "column [3, 4]: no ground here (5 tries)");
    }
}
