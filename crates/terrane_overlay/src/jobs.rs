//! The lists of jobs and of far views, one per row.

use super::format::{self, UNKNOWN, bytes, count, duration};
use crate::view::View;
use bevy::prelude::*;
use bevy_egui::egui::{Grid, Label, RichText, ScrollArea, Ui};
use bevy_terrane::space::{ColumnArea, ColumnPos};
use bevy_terrane::view::{
    ControlJob, FarColumnChanged, FarView, JobKind, JobOrder, JobProgress, JobState, Pregeneration,
};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::time::Duration;

/// Shows the jobs, oldest first.
pub(super) fn show(ui: &mut Ui, view: &View, commands: &mut Commands) {
    if view.jobs.is_empty() {
        ui.weak("Nothing is pre-generated, captured or restored.");
        return;
    }
    list(ui, "jobs", |ui| {
        for (entity, job, pregeneration, progress, name) in view.jobs.iter().sort::<Entity>() {
            let pregeneration = pregeneration.map(|order| JobKind::Pregeneration(*order));
            if let Some(kind) = pregeneration.or(job.map(|job| job.kind)) {
                show_job(ui, view, commands, (entity, kind, progress, name));
            }
        }
    });
}

fn list(ui: &mut Ui, id: &str, rows: impl FnOnce(&mut Ui)) {
    ScrollArea::both().id_salt(id).auto_shrink([false, false]).show(ui, |ui| {
        Grid::new(id).num_columns(7).striped(true).spacing([10.0, 3.0]).show(ui, rows);
    });
}

/// Shows a row: the name, the state, buttons, figures with their meanings, and the place.
fn row<const FIGURES: usize>(
    ui: &mut Ui,
    title: String,
    state: RichText,
    figures: [(String, &str); FIGURES],
    area: String,
    buttons: impl FnOnce(&mut Ui),
) {
    ui.label(RichText::new(title).strong()).on_hover_text(&area);
    ui.label(state);
    ui.horizontal(buttons);
    for (figure, hint) in figures {
        ui.label(figure).on_hover_text(hint);
    }
    ui.add(Label::new(RichText::new(area).weak()).extend());
    ui.end_row();
}

/// `Running` becomes `running`.
fn state_text(state: impl std::fmt::Debug) -> RichText {
    RichText::new(format!("{state:?}").to_lowercase())
}

fn show_job(
    ui: &mut Ui,
    view: &View,
    commands: &mut Commands,
    (entity, kind, progress, name): (Entity, JobKind, &JobProgress, Option<&Name>),
) {
    let (what, area) = match kind {
        JobKind::Capture { dimension, area } => (format!("capture in {}", view.name(dimension)), area.to_string()),
        JobKind::Restore { dimension, area, .. } => (format!("restore in {}", view.name(dimension)), area.to_string()),
        // Far views have their own list.
        JobKind::FarView => return,
        JobKind::Pregeneration(Pregeneration { dimension, area }) => {
            let dimension = view.name(dimension);
            (name.map_or_else(|| dimension.clone(), |name| format!("{name} in {dimension}")), area.to_string())
        }
    };
    let state = match progress.state {
        JobState::Running => state_text(progress.state),
        state if progress.failed > 0 => state_text(state).color(ui.visuals().warn_fg_color),
        state => state_text(state).weak(),
    };
    let figures = [
        (done(progress), "columns; of a capture or a restore, each once for every phase"),
        (pace(progress), "columns a second"),
        (work_time(progress), "the time is that within the ticks of regions"),
    ];
    row(ui, what, state, figures, area, |ui| {
        let mut button = |text: &str, hint: &str, order| {
            if ui.button(text).on_hover_text(hint).clicked() {
                commands.write_message(ControlJob { entity, order });
            }
        };
        match progress.state {
            state if state.is_over() => return,
            JobState::Paused => button("resume", "order again", JobOrder::Resume),
            _ => button("pause", "order nothing more until it is resumed", JobOrder::Pause),
        }
        button("cancel", "stop and be forgotten; what is under way is finished, what is done stays", JobOrder::Cancel);
    });
}

/// `1,234 of 2,000 (61 %), 2 failed`.
fn done(progress: &JobProgress) -> String {
    let total = u64::try_from(progress.total).unwrap_or(u64::MAX);
    let text = format::done(progress.done, total);
    match progress.failed {
        0 => text,
        failed => format!("{text}, {} failed", count(failed)),
    }
}

/// `120/s, 6.4 s left`, while the job runs.
fn pace(progress: &JobProgress) -> String {
    match progress.state {
        JobState::Running => format::pace(progress.per_second, progress.time_left()),
        _ => UNKNOWN.to_owned(),
    }
}

/// `1,234 chunks changed, 12.0 ms worked`: the work in regions.
fn work_time(progress: &JobProgress) -> String {
    let changed = match progress.chunks_changed {
        0 => String::new(),
        changed => format!("{} chunks changed, ", count(changed as u64)),
    };
    if progress.worked.is_zero() { changed } else { format!("{changed}{} worked", duration(progress.worked)) }
}

/// Shows the far views, oldest first.
pub(super) fn show_far_views(ui: &mut Ui, view: &View) {
    if view.far_views.is_empty() {
        ui.weak("Nobody listens to a far view.");
        return;
    }
    list(ui, "far views", |ui| {
        for (listener, far_view, name) in view.far_views.iter().sort::<Entity>() {
            let title = name.map_or_else(|| listener.to_string(), |name| name.as_str().to_owned());
            let columns = columns_known(far_view, view.far_columns.len(listener));
            let traffic = traffic_text(far_view, view.traffic.bytes_per_second(listener));
            let figures =
                [(columns, "what it was told of, of what its disc holds"), (traffic, "over five seconds, and its cap")];
            let radii = format!("radius {}, detail {}", far_view.radius, far_view.detail_radius);
            row(ui, title, RichText::default(), figures, radii, |_| {});
        }
    });
}

/// `3,211 of up to 12,853 columns`.
fn columns_known(view: &FarView, columns: usize) -> String {
    let disc = ColumnArea::Disc { center: ColumnPos::new(0, 0), radius: view.radius.min(FarView::MAX_RADIUS) };
    let most = u64::try_from(disc.columns()).unwrap_or(u64::MAX);
    format!("{} of up to {} columns", count(columns as u64), count(most))
}

/// `12.3 KiB/s of 1.0 MiB/s`.
fn traffic_text(view: &FarView, bytes_per_second: u64) -> String {
    match view.bytes_per_second {
        0 => "held".to_owned(),
        cap => format!("{}/s of {}/s", bytes(bytes_per_second), bytes(cap)),
    }
}

/// The time over which a listener's traffic is averaged.
const WINDOW: Duration = Duration::from_secs(5);

/// The recent traffic of each far view's listener, noted while the overlay is hidden too.
#[derive(Resource, Default)]
pub(super) struct Traffic {
    received: VecDeque<(Duration, Entity, u64)>,
    now: Duration,
}

impl Traffic {
    fn note(&mut self, now: Duration, received: impl Iterator<Item = (Entity, u64)>) {
        self.now = now;
        // One entry for each listener and frame.
        let mut sums = FxHashMap::default();
        received.for_each(|(listener, bytes)| *sums.entry(listener).or_default() += bytes);
        self.received.extend(sums.into_iter().map(|(listener, bytes)| (now, listener, bytes)));
        while self.received.front().is_some_and(|(at, ..)| *at + WINDOW < now) {
            self.received.pop_front();
        }
    }

    fn bytes_per_second(&self, listener: Entity) -> u64 {
        let bytes: u64 = self.received.iter().filter(|(_, of, _)| *of == listener).map(|(.., bytes)| bytes).sum();
        let seconds = WINDOW.min(self.now).as_secs_f64().max(1.0);
        (bytes as f64 / seconds) as u64
    }
}

pub(super) fn note_traffic(
    mut received: MessageReader<FarColumnChanged>,
    time: Res<Time<Real>>,
    mut traffic: ResMut<Traffic>,
) {
    traffic.note(time.elapsed(), received.read().map(|column| (column.listener, column.bytes)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_job_shows_its_progress_changes_and_time_left() {
        let mut progress = JobProgress {
            state: JobState::Running,
            done: 1_999,
            total: 2_000,
            per_second: Some(0.5),
            chunks_changed: 4_321,
            worked: Duration::from_millis(12),
            ..JobProgress::default()
        };
        assert_eq!(done(&progress), "1,999 of 2,000 (99 %)");
        assert_eq!(pace(&progress), "0/s, 2.0 s left");
        assert_eq!(work_time(&progress), "4,321 chunks changed, 12.0 ms worked");
        progress.per_second = None;
        assert_eq!(pace(&progress), format!("{UNKNOWN}/s"));
        progress.state = JobState::Paused;
        progress.failed = 3;
        progress.chunks_changed = 0;
        assert_eq!(pace(&progress), UNKNOWN);
        assert_eq!(done(&progress), "1,999 of 2,000 (99 %), 3 failed");
        assert_eq!(work_time(&progress), "12.0 ms worked");
        assert_eq!(work_time(&JobProgress::default()), "");
    }

    #[test]
    fn a_far_view_shows_its_columns_and_its_rate_beside_the_limit() {
        let view = FarView::new().with_radius(1);
        assert_eq!(columns_known(&view, 4), "4 of up to 5 columns");
        assert_eq!(traffic_text(&view, 512), "512 B/s of 1.0 MiB/s");
        assert_eq!(traffic_text(&view.with_bytes_per_second(0), 512), "held");
    }

    #[test]
    fn traffic_is_that_of_the_last_five_seconds() {
        let [one, other] = [1, 2].map(|number| Entity::from_raw_u32(number).unwrap());
        let mut traffic = Traffic::default();
        for second in 1..=20 {
            let bytes = if second <= 10 { 500 } else { 100 };
            traffic.note(Duration::from_secs(second), [(one, bytes), (one, bytes)].into_iter());
        }
        assert!((200..=240).contains(&traffic.bytes_per_second(one)), "{}", traffic.bytes_per_second(one));
        assert_eq!(traffic.bytes_per_second(other), 0);
        traffic.note(Duration::from_secs(60), std::iter::empty());
        assert_eq!(traffic.bytes_per_second(one), 0);
    }
}
