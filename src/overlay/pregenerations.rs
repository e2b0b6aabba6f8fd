//! The list of pre-generations.

use super::format::{self, UNKNOWN, count};
use super::wish::Wish;
use crate::space::ColumnArea;
use crate::view::{ControlPregeneration, PregenerationOrder, PregenerationProgress, PregenerationState};
use bevy::prelude::Entity;
use bevy_egui::egui::{Color32, Grid, Label, RichText, Ui};

/// A pre-generation, as the overlay shows it.
pub(super) struct PregenerationRow {
    pub entity: Entity,
    /// The name of its entity, if it has one.
    pub name: Option<String>,
    /// The name of its dimension.
    pub dimension: String,
    pub area: ColumnArea,
    pub progress: PregenerationProgress,
}

impl PregenerationRow {
    fn title(&self) -> String {
        match &self.name {
            Some(name) => format!("{name} in {}", self.dimension),
            None => self.dimension.clone(),
        }
    }

    /// `1,234 of 2,000 (61 %), 2 failed`.
    fn done(&self) -> String {
        let PregenerationProgress { done, total, failed, .. } = &self.progress;
        let text = format::done(*done, u64::try_from(*total).unwrap_or(u64::MAX), self.progress.fraction());
        match *failed {
            0 => text,
            failed => format!("{text}, {} failed", count(failed)),
        }
    }

    /// `120/s, 6.4 s left`, while it runs.
    fn pace(&self) -> String {
        if self.progress.state != PregenerationState::Running {
            return UNKNOWN.to_owned();
        }
        format::pace(self.progress.columns_per_second, self.progress.time_left())
    }
}

fn state(state: PregenerationState) -> &'static str {
    match state {
        PregenerationState::Waiting => "waiting",
        PregenerationState::Running => "running",
        PregenerationState::Paused => "paused",
        PregenerationState::Finished => "finished",
        PregenerationState::Cancelled => "cancelled",
    }
}

fn color(ui: &Ui, job: &PregenerationRow) -> Color32 {
    match job.progress.state {
        PregenerationState::Running => ui.visuals().text_color(),
        _ if job.progress.failed > 0 => ui.visuals().warn_fg_color,
        _ => ui.visuals().weak_text_color(),
    }
}

/// The pre-generations, one a row.
pub(super) fn show(ui: &mut Ui, jobs: &[PregenerationRow], wishes: &mut Vec<Wish>) {
    Grid::new("jobs").num_columns(6).striped(true).spacing([10.0, 3.0]).show(ui, |ui| {
        for job in jobs {
            row(ui, job, wishes);
            ui.end_row();
        }
    });
}

fn row(ui: &mut Ui, job: &PregenerationRow, wishes: &mut Vec<Wish>) {
    ui.label(RichText::new(job.title()).strong()).on_hover_text(job.area.to_string());
    ui.colored_label(color(ui, job), state(job.progress.state));
    ui.label(job.done()).on_hover_text("columns that are stored, whoever generated them");
    ui.label(job.pace());
    ui.horizontal(|ui| buttons(ui, job, wishes));
    ui.add(Label::new(RichText::new(job.area.to_string()).weak()).extend());
}

fn buttons(ui: &mut Ui, job: &PregenerationRow, wishes: &mut Vec<Wish>) {
    if job.progress.state.is_over() {
        return;
    }
    let mut button = |text: &str, hint: &str, order| {
        if ui.button(text).on_hover_text(hint).clicked() {
            wishes.push(Wish::Pregeneration(ControlPregeneration { pregeneration: job.entity, order }));
        }
    };
    match job.progress.state == PregenerationState::Paused {
        true => button("resume", "order again", PregenerationOrder::Resume),
        false => button("pause", "order nothing more until it is resumed", PregenerationOrder::Pause),
    }
    button("cancel", "stop and be forgotten; what is stored stays", PregenerationOrder::Cancel);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::ColumnPos;

    #[test]
    fn how_far_it_is_is_told_and_how_long_it_takes_while_it_runs() {
        let area = ColumnArea::Disc { center: ColumnPos::new(0, 0), radius: 9 };
        let mut job = PregenerationRow {
            entity: Entity::PLACEHOLDER,
            name: None,
            dimension: "overworld".to_owned(),
            area,
            progress: PregenerationProgress {
                state: PregenerationState::Running,
                done: 1_999,
                total: 2_000,
                columns_per_second: Some(0.5),
                ..PregenerationProgress::default()
            },
        };
        assert_eq!((job.title().as_str(), job.done().as_str()), ("overworld", "1,999 of 2,000 (99 %)"));
        assert_eq!(job.pace(), "0/s, 2.0 s left");
        job.progress.columns_per_second = None;
        assert_eq!(job.pace(), format!("{UNKNOWN}/s"));
        job.progress.state = PregenerationState::Paused;
        job.progress.failed = 3;
        job.name = Some("spawn".to_owned());
        assert_eq!((job.title().as_str(), job.pace().as_str()), ("spawn in overworld", UNKNOWN));
        assert_eq!(job.done(), "1,999 of 2,000 (99 %), 3 failed");
    }
}
