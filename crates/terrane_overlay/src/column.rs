//! Why a column is as it is.

use super::format::{UNKNOWN, count, counted, duration};
use super::widgets::{because, region_color, swatch};
use crate::view::{ColumnKey, RegionKey, View};
use bevy::prelude::*;
use bevy_egui::egui::{Button, DragValue, Grid, RichText, ScrollArea, Ui};
use bevy_terrane::view::{
    AskChunks, AskColumn, AskError, ChunksAnswer, ColumnAnswer, ColumnCause, ColumnReport, RetryColumns, Ticket,
};
use uuid::Uuid;

/// The time after which a column is asked about again, in seconds.
const REFRESH: f64 = 0.5;
/// The number of chunks whose versions are shown.
const MOST_CHUNKS: usize = 32;
/// The number of the overlay's own questions. Games count upwards.
const REQUEST: u64 = u64::MAX;

/// A column, as far as it is known.
#[derive(Default)]
pub(super) struct ColumnDetails {
    of: Option<ColumnKey>,
    report: Option<Result<ColumnReport, AskError>>,
    /// The heights, the versions, and whether the newest state is stored, of each chunk that exists.
    versions: Option<Vec<(i64, Result<(u64, bool), AskError>)>>,
    /// The time of the next question.
    due: f64,
}

impl ColumnDetails {
    /// Takes in the answers.
    pub fn hear(&mut self, columns: &mut MessageReader<ColumnAnswer>, chunks: &mut MessageReader<ChunksAnswer>) {
        let is_own = |request: u64, at| request == REQUEST && self.of == Some(at);
        let answer = columns.read().filter(|answer| is_own(answer.request, (answer.dimension, answer.column))).last();
        let chunks = chunks.read().filter(|answer| {
            let column = answer.chunks.first().map(|(chunk, _)| chunk.column());
            column.is_some_and(|column| is_own(answer.request, (answer.dimension, column)))
        });
        let chunks = chunks.last();
        if let Some(answer) = answer {
            self.report = Some(answer.report.clone());
        }
        if let Some(answer) = chunks {
            let known = answer.chunks.iter().filter_map(|(chunk, state)| {
                let state = state.as_ref().map(|state| state.as_ref().map(|state| (state.version, state.saved)));
                Some((chunk.y, state.map_err(Clone::clone).transpose()?))
            });
            self.versions = Some(known.collect());
        }
    }

    /// Shows the column and asks about it. Its place can be changed.
    pub fn show(
        &mut self,
        ui: &mut Ui,
        view: &View,
        (region, column, entity): (&mut Option<RegionKey>, &mut ColumnKey, &mut Option<Uuid>),
        commands: &mut Commands,
    ) {
        let (dimension, place) = column;
        ui.horizontal(|ui| {
            ui.label("column");
            ui.add(DragValue::new(&mut place.x).prefix("x "));
            ui.add(DragValue::new(&mut place.z).prefix("z "));
            ui.label(format!("of {}", view.name(*dimension)));
        });
        self.ask(ui.input(|input| input.time), *column, commands);
        ui.separator();
        ScrollArea::vertical().id_salt("column").auto_shrink([false, false]).show(ui, |ui| match &self.report {
            None => drop(ui.weak("The coordinator has not answered yet.")),
            Some(Err(error)) => drop(ui.colored_label(ui.visuals().error_fg_color, error.to_string())),
            Some(Ok(report)) => {
                contents(ui, report, (*column, region, entity), commands);
                self.versions(ui, view, *column, commands);
            }
        });
    }

    fn ask(&mut self, now: f64, at: ColumnKey, commands: &mut Commands) {
        if self.of != Some(at) {
            *self = Self { of: Some(at), ..Self::default() };
        }
        if now >= self.due {
            self.due = now + REFRESH;
            let (dimension, column) = at;
            commands.write_message(AskColumn { request: REQUEST, dimension, column });
        }
    }

    /// Shows the versions of the column's chunks, which are read from the store on demand.
    fn versions(&self, ui: &mut Ui, view: &View, (dimension, place): ColumnKey, commands: &mut Commands) {
        ui.separator();
        let Some(column) = view.published.column(dimension, place) else {
            ui.weak("Versions are shown of published columns.");
            return;
        };
        if ui.button("read versions").on_hover_text("of its chunks, from the store").clicked() {
            let chunks = column.chunks().map(|(y, _)| place.chunk(y)).take(MOST_CHUNKS).collect();
            commands.write_message(AskChunks { request: REQUEST, dimension, chunks });
        }
        let Some(versions) = &self.versions else { return };
        Grid::new("versions").num_columns(3).striped(true).show(ui, |ui| {
            for (y, state) in versions {
                ui.label(format!("chunk y {y}"));
                match state {
                    Ok((version, is_saved)) => {
                        ui.label(format!("version {}", count(*version)));
                        ui.label(if *is_saved { "stored" } else { "not stored yet" });
                    }
                    Err(error) => drop(ui.colored_label(ui.visuals().error_fg_color, error.to_string())),
                }
                ui.end_row();
            }
        });
    }
}

fn contents(
    ui: &mut Ui,
    report: &ColumnReport,
    ((dimension, column), selected, entity): (ColumnKey, &mut Option<RegionKey>, &mut Option<Uuid>),
    commands: &mut Commands,
) {
    let since = report.since.filter(|since| !since.is_zero());
    let since = since.map_or_else(String::new, |since| format!(" for {}", duration(since)));
    ui.label(RichText::new(format!("{}{since}", report.phase)).strong());
    because(ui, &report.cause, report.cause.action());
    if let ColumnCause::Failed { .. } = report.cause
        && ui.add(Button::new("try again")).clicked()
    {
        commands.write_message(RetryColumns { dimension, column: Some(column) });
    }
    if let Some(region) = report.region {
        ui.horizontal(|ui| {
            swatch(ui, region_color(region));
            let key = (dimension, region);
            let label = ui.selectable_label(*selected == Some(key), format!("region {}", region.index()));
            if label.on_hover_text("select it").clicked() {
                *selected = Some(key);
            }
        });
    }
    let time = |time: Option<_>| time.map_or_else(|| UNKNOWN.to_owned(), duration);
    let last = report.last_save.map_or_else(|| UNKNOWN.to_owned(), |last| format!("{} ago", duration(last)));
    let stored = match (report.is_stored, report.is_being_saved) {
        (_, true) => "changes are on their way",
        (true, false) => "yes",
        (false, false) => "no",
    };
    let entries = [
        ("stored", stored.to_owned()),
        ("its region's last save", last),
        ("its region's next save", time(report.next_save)),
        ("made in", time(report.made_in)),
    ];
    super::summary::figures(ui, "column", &entries, 1, 130.0);
    let mut holds = counted(report.holds.into(), "ticket holds it", "tickets hold it");
    if report.letters > 0 {
        holds = format!("{holds}, {}", counted(report.letters as u64, "letter waits for it", "letters wait for it"));
    }
    ui.label(holds);
    for by in &report.tickets {
        ui.horizontal_wrapped(|ui| {
            ui.label(format!("• {by}"));
            if let Ticket::Region(id) = by.ticket
                && ui.small_button("look").on_hover_text("at this entity").clicked()
            {
                *entity = Some(id);
            }
        });
    }
}
