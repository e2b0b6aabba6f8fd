//! Arenas and snapshots: captures, and the way back to them.

use super::format::{bytes, counted};
use crate::view::{ColumnKey, View};
use bevy::prelude::*;
use bevy_egui::egui::{Button, DragValue, Grid, RichText, ScrollArea, TextEdit, Ui};
use bevy_terrane::snapshot::Snapshot;
use bevy_terrane::space::{BlockBox, BlockPos, CHUNK_SIZE, DimensionId};
use bevy_terrane::view::{
    Arena, ArenaRefused, ArenaState, CaptureSnapshot, JobEnded, JobId, Jobs, RestoreSnapshot, StoreSnapshot,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The number of snapshots that the overlay keeps in memory; the oldest is dropped first.
const MOST_HELD: usize = 16;

/// The panel's state.
#[derive(Resource)]
pub(super) struct Arenas {
    name: String,
    /// The distance of the box from the selected column along x and z, in chunks, and its heights in blocks.
    reach: i64,
    heights: (i64, i64),
    folder: String,
    /// The captures that run, with their names.
    running: BTreeMap<JobId, (String, DimensionId)>,
    held: Vec<(String, DimensionId, Arc<Snapshot>)>,
    error: Option<String>,
}

impl Default for Arenas {
    fn default() -> Self {
        let (name, folder, running, held, error) = Default::default();
        Self { name, reach: 1, heights: (0, 127), folder, running, held, error }
    }
}

/// Takes in the ends of captures and restores, and refusals of arenas, also while the overlay is hidden.
pub(super) fn note(
    mut arenas: ResMut<Arenas>,
    mut ended: MessageReader<JobEnded>,
    mut refused: MessageReader<ArenaRefused>,
) {
    for ended in ended.read() {
        let Some((name, dimension)) = arenas.running.remove(&ended.job.id) else { continue };
        arenas.error = ended.outcome.error.as_ref().map(ToString::to_string);
        if let Some(snapshot) = ended.outcome.snapshot.clone().filter(|_| !name.is_empty()) {
            if arenas.held.len() >= MOST_HELD {
                arenas.held.remove(0);
            }
            arenas.held.push((name, dimension, snapshot));
        }
    }
    if let Some(refused) = refused.read().last() {
        arenas.error = Some(refused.error.to_string());
    }
}

impl Arenas {
    /// Shows the panel. Boxes lie around the selected column.
    pub fn show(&mut self, ui: &mut Ui, view: &View, column: Option<ColumnKey>) {
        let Some(jobs) = &view.job_orders else { return };
        self.new_box(ui, jobs, column);
        if let Some(error) = &self.error {
            ui.colored_label(ui.visuals().error_fg_color, error);
        }
        ui.separator();
        ScrollArea::both().id_salt("arenas").auto_shrink([false, false]).show(ui, |ui| {
            arenas(ui, view, jobs);
            self.snapshots(ui, view, jobs);
        });
    }

    fn new_box(&mut self, ui: &mut Ui, jobs: &Jobs, column: Option<ColumnKey>) {
        ui.horizontal(|ui| {
            ui.add(TextEdit::singleline(&mut self.name).hint_text("name").desired_width(90.0));
            ui.add(DragValue::new(&mut self.reach).range(0..=31).prefix("± ").suffix(" chunks"))
                .on_hover_text("around the selected column");
            ui.label("y");
            ui.add(DragValue::new(&mut self.heights.0));
            ui.label("to");
            ui.add(DragValue::new(&mut self.heights.1));
        });
        let area = column.and_then(|(dimension, column)| {
            let side = CHUNK_SIZE as i64;
            let along = |at: i64| {
                let low = at.checked_sub(self.reach)?.checked_mul(side)?;
                Some((low, at.checked_add(self.reach)?.checked_mul(side)?.checked_add(side - 1)?))
            };
            let ((x, to_x), (z, to_z), (y, to_y)) = (along(column.x)?, along(column.z)?, self.heights);
            (y <= to_y).then(|| (dimension, BlockBox::new(BlockPos::new(x, y, z), BlockPos::new(to_x, to_y, to_z))))
        });
        ui.horizontal(|ui| {
            let name = self.name.trim().to_owned();
            let is_ready = area.is_some() && !name.is_empty();
            let create = ui.add_enabled(is_ready, Button::new("new arena"));
            let create = create.on_hover_text("captures the box and stores it, to revert to it again and again");
            let capture = ui.add_enabled(is_ready, Button::new("capture"));
            let capture = capture.on_hover_text("keeps a snapshot in memory, and in the folder if there is one");
            ui.add(TextEdit::singleline(&mut self.folder).hint_text("new folder, or none").desired_width(180.0));
            if column.is_none() {
                ui.weak("Select a column first.");
            }
            let Some((dimension, area)) = area else { return };
            if create.clicked() {
                self.error = None;
                jobs.create_arena(Arena::new(&name, dimension, area));
            }
            if capture.clicked() {
                self.error = None;
                let folder = self.folder.trim();
                let store = (!folder.is_empty()).then(|| StoreSnapshot::at(folder));
                let job = jobs.capture(CaptureSnapshot { store, ..CaptureSnapshot::new(dimension, area) });
                self.running.insert(job, (name, dimension));
            }
        });
    }

    fn snapshots(&mut self, ui: &mut Ui, view: &View, jobs: &Jobs) {
        ui.label(RichText::new("snapshots in memory").strong());
        if self.held.is_empty() {
            ui.weak("None was captured here.");
        }
        let mut dropped = None;
        Grid::new("snapshots").num_columns(3).striped(true).show(ui, |ui| {
            for (number, (name, dimension, snapshot)) in self.held.iter().enumerate() {
                ui.label(name);
                ui.label(format!("{} of {}", snapshot.area(), view.name(*dimension)));
                ui.horizontal(|ui| {
                    if ui.button("restore").on_hover_text("the box becomes what it was").clicked() {
                        let job = jobs.restore(RestoreSnapshot::new(*dimension, snapshot.clone()));
                        // Only its error is shown.
                        self.running.insert(job, (String::new(), *dimension));
                    }
                    if ui.button("drop").clicked() {
                        dropped = Some(number);
                    }
                });
                ui.end_row();
            }
        });
        if let Some(dropped) = dropped {
            self.held.remove(dropped);
        }
    }
}

fn arenas(ui: &mut Ui, view: &View, jobs: &Jobs) {
    ui.label(RichText::new("arenas").strong());
    if view.arenas.is_empty() {
        ui.weak("There is none.");
    }
    Grid::new("arenas").num_columns(5).striped(true).show(ui, |ui| {
        let mut arenas: Vec<_> = view.arenas.iter().collect();
        arenas.sort_by(|a, b| a.0.name.cmp(&b.0.name));
        for (arena, status) in arenas {
            ui.label(&arena.name).on_hover_text(format!("{} of {}", arena.area, view.name(arena.dimension)));
            ui.label(format!("{:?}", status.state).to_lowercase());
            ui.label(format!("{}, {}", counted(status.columns as u64, "column", "columns"), bytes(status.bytes)));
            ui.label(counted(status.reverts, "revert", "reverts"));
            ui.horizontal(|ui| {
                let is_ready = status.state == ArenaState::Ready;
                if ui.add_enabled(is_ready, Button::new("revert")).clicked() {
                    jobs.revert_arena(&arena.name);
                }
                let remove = ui.add_enabled(is_ready, Button::new("remove"));
                if remove.on_hover_text("the arena and its snapshot; the blocks stay").clicked() {
                    jobs.remove_arena(&arena.name);
                }
            });
            ui.end_row();
        }
    });
}
