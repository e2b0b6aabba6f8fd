//! The store: its tiers, what waits for it, and saves and backups on demand.

use super::format::{bytes, count, duration};
use super::history::History;
use super::summary;
use bevy::prelude::*;
use bevy_egui::egui::{Button, Grid, RichText, TextEdit, Ui};
use bevy_terrane::view::{
    BackupFailed, BackupWorld, SaveFailed, SaveWorld, WorldBackedUp, WorldSaved, WorldStatistics,
};
use std::time::Duration;

/// The number of the overlay's own saves and backups. Games count upwards.
const REQUEST: u64 = u64::MAX;

/// The names of the tiers, hottest first, with what they consist of.
const TIERS: [(&str, &str); 3] =
    [("hot", "chunks"), ("warm", "groups of 64 chunks"), ("cold", "cubes of 4,096 chunks")];

/// The panel's state.
#[derive(Resource, Default)]
pub(super) struct Storage {
    folder: String,
    is_busy: bool,
    /// The end of the last save or backup, and whether it succeeded.
    ended: Option<(String, bool)>,
}

/// Takes in the answers to this panel's orders, also while the overlay is hidden.
pub(super) fn note(
    mut storage: ResMut<Storage>,
    mut saved: MessageReader<WorldSaved>,
    mut failed: MessageReader<SaveFailed>,
    mut backed_up: MessageReader<WorldBackedUp>,
    mut backup_failed: MessageReader<BackupFailed>,
) {
    let saved = saved.read().filter(|saved| saved.request == REQUEST);
    let saved: Vec<_> = saved.map(|_| ("Everything is saved.".to_owned(), true)).collect();
    let failed = failed.read().filter(|failed| failed.requests.contains(&REQUEST));
    let failed: Vec<_> = failed.map(|failed| (failed.error.to_string(), false)).collect();
    let backed_up = backed_up.read().filter(|done| done.request == REQUEST);
    let backed_up: Vec<_> =
        backed_up.map(|done| (format!("Backup {} has {}.", done.number, bytes(done.bytes)), true)).collect();
    let not_backed_up = backup_failed.read().filter(|failed| failed.request == REQUEST);
    let not_backed_up: Vec<_> = not_backed_up.map(|failed| (failed.error.to_string(), false)).collect();
    if let Some(ended) = [saved, failed, backed_up, not_backed_up].into_iter().flatten().last() {
        (storage.ended, storage.is_busy) = (Some(ended), false);
    }
}

impl Storage {
    /// Shows the panel.
    pub fn show(
        &mut self,
        ui: &mut Ui,
        statistics: &WorldStatistics,
        (history, now): (&History, Duration),
        commands: &mut Commands,
    ) {
        tiers(ui, statistics);
        ui.separator();
        let last = history.committed_at().map(|at| format!("{} ago", duration(now.saturating_sub(at))));
        let memory = statistics.tiers.memory_bytes.map_or_else(|| super::format::UNKNOWN.to_owned(), bytes);
        let entries = [
            ("waits for the store", summary::unsaved(statistics)),
            ("last commit", last.unwrap_or_else(|| "none yet".to_owned())),
            ("commits", format!("{}, {}", count(statistics.saves), duration(statistics.save_time))),
            ("saved", summary::saved(statistics)),
            ("cache and memory tables", memory),
            ("to cool down", count(statistics.tiers.remaining as u64)),
        ];
        summary::figures(ui, "store", &entries, 1, 150.0);
        ui.separator();
        ui.horizontal(|ui| {
            if ui.add_enabled(!self.is_busy, Button::new("save now")).on_hover_text("all regions").clicked() {
                commands.write_message(SaveWorld { request: REQUEST });
                (self.ended, self.is_busy) = (None, true);
            }
            ui.add(TextEdit::singleline(&mut self.folder).hint_text("folder of backups").desired_width(200.0));
            let folder = self.folder.trim();
            let backup = ui.add_enabled(!self.is_busy && !folder.is_empty(), Button::new("back up"));
            if backup.on_hover_text("saves, and makes a backup while the game runs on").clicked() {
                commands.write_message(BackupWorld { request: REQUEST, folder: folder.into(), keep: None });
                (self.ended, self.is_busy) = (None, true);
            }
            if self.is_busy {
                ui.spinner();
            }
        });
        if let Some((text, is_success)) = &self.ended {
            let visuals = ui.visuals();
            let color = if *is_success { visuals.text_color() } else { visuals.error_fg_color };
            ui.colored_label(color, text);
        }
    }
}

fn tiers(ui: &mut Ui, statistics: &WorldStatistics) {
    Grid::new("tiers").num_columns(4).striped(true).spacing([14.0, 3.0]).show(ui, |ui| {
        for title in ["tier", "entries", "bytes", "moved here"] {
            ui.label(RichText::new(title).small());
        }
        ui.end_row();
        for (tier, (name, of)) in TIERS.into_iter().enumerate() {
            let size = statistics.tiers.sizes[tier];
            ui.label(name).on_hover_text(of);
            ui.label(format!("{} {of}", count(size.entries)));
            ui.label(bytes(size.bytes));
            ui.label(count(statistics.tiers.moved[tier])).on_hover_text("groups, since the app began");
            ui.end_row();
        }
    });
}
