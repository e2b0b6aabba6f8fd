//! The list of snapshot jobs.

use super::format::{self, UNKNOWN, count, duration};
use super::wish::Wish;
use crate::coordinator::{SnapshotJobState, SnapshotProgress};
use crate::space::BlockBox;
use bevy::prelude::Entity;
use bevy_egui::egui::{Grid, Label, RichText, Ui};

/// A snapshot job, as the overlay shows it.
pub(super) struct SnapshotRow {
    pub entity: Entity,
    pub is_restore: bool,
    /// The name of its dimension.
    pub dimension: String,
    pub area: BlockBox,
    pub progress: SnapshotProgress,
}

impl SnapshotRow {
    fn title(&self) -> String {
        let what = if self.is_restore { "restore" } else { "capture" };
        format!("{what} in {}", self.dimension)
    }

    /// `120 of 576 (20 %)`.
    fn done(&self) -> String {
        format::done(self.progress.done as u64, self.progress.total as u64, self.progress.fraction())
    }

    /// `120/s, 6.4 s left`, while it runs.
    fn pace(&self) -> String {
        if self.progress.state != SnapshotJobState::Running {
            return UNKNOWN.to_owned();
        }
        let seconds = self.progress.elapsed.as_secs_f64();
        let rate = (seconds > 0.0).then(|| self.progress.done as f64 / seconds);
        format::pace(rate, self.progress.time_left())
    }

    /// `1,234 chunks changed, 12.0 ms worked`.
    fn work(&self) -> String {
        let worked = format!("{} worked", duration(self.progress.worked));
        match self.is_restore {
            true => format!("{} chunks changed, {worked}", count(self.progress.chunks_changed as u64)),
            false => worked,
        }
    }
}

fn state(state: SnapshotJobState) -> &'static str {
    match state {
        SnapshotJobState::Waiting => "waiting",
        SnapshotJobState::Running => "running",
        SnapshotJobState::Finished => "finished",
        SnapshotJobState::Cancelled => "cancelled",
        SnapshotJobState::Failed => "failed",
    }
}

/// The snapshot jobs, one a row.
pub(super) fn show(ui: &mut Ui, jobs: &[SnapshotRow], wishes: &mut Vec<Wish>) {
    Grid::new("snapshot jobs").num_columns(7).striped(true).spacing([10.0, 3.0]).show(ui, |ui| {
        for job in jobs {
            row(ui, job, wishes);
            ui.end_row();
        }
    });
}

fn row(ui: &mut Ui, job: &SnapshotRow, wishes: &mut Vec<Wish>) {
    ui.label(RichText::new(job.title()).strong()).on_hover_text(job.area.to_string());
    ui.label(state(job.progress.state));
    ui.label(job.done()).on_hover_text("pieces of work: columns, each once for every phase");
    ui.label(job.pace());
    ui.label(job.work()).on_hover_text("the time is that within the ticks of regions");
    if ui.button("cancel").on_hover_text("stop; what is under way is finished, each chunk stays whole").clicked() {
        wishes.push(Wish::CancelSnapshotJob(job.entity));
    }
    ui.add(Label::new(RichText::new(job.area.to_string()).weak()).extend());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::BlockPos;
    use std::time::Duration;

    #[test]
    fn how_far_it_is_what_it_changed_and_how_long_it_takes_is_told() {
        let mut job = SnapshotRow {
            entity: Entity::PLACEHOLDER,
            is_restore: true,
            dimension: "overworld".to_owned(),
            area: BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(9, 9, 9)),
            progress: SnapshotProgress {
                state: SnapshotJobState::Running,
                done: 1_151,
                total: 1_152,
                chunks_changed: 4_321,
                elapsed: Duration::from_secs(2),
                worked: Duration::from_millis(12),
            },
        };
        assert_eq!((job.title().as_str(), job.done().as_str()), ("restore in overworld", "1,151 of 1,152 (99 %)"));
        assert_eq!(
            (job.pace().as_str(), job.work().as_str()),
            ("576/s, 1.74 ms left", "4,321 chunks changed, 12.0 ms worked")
        );
        job.progress = SnapshotProgress { total: 9, state: SnapshotJobState::Running, ..SnapshotProgress::default() };
        assert_eq!(job.pace(), format!("{UNKNOWN}/s"));
        job.progress.state = SnapshotJobState::Waiting;
        job.is_restore = false;
        assert_eq!((job.pace().as_str(), job.work().as_str()), (UNKNOWN, "0 µs worked"));
        assert_eq!(job.title(), "capture in overworld");
    }
}
