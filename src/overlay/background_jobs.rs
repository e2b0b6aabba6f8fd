//! What is done in the background, by wish: pre-generations and snapshot jobs.

use super::pregenerations::{self, PregenerationRow};
use super::snapshot_jobs::{self, SnapshotRow};
use super::wish::Wish;
use bevy_egui::egui::{ScrollArea, Ui};

/// What is done in the background, by wish.
#[derive(Default)]
pub(super) struct Jobs {
    pub pregenerations: Vec<PregenerationRow>,
    pub snapshots: Vec<SnapshotRow>,
}

/// The pre-generations, one a row, and below them the snapshot jobs.
pub(super) fn show(ui: &mut Ui, Jobs { pregenerations, snapshots }: &Jobs, wishes: &mut Vec<Wish>) {
    if pregenerations.is_empty() && snapshots.is_empty() {
        ui.weak("Nothing is pre-generated, captured or restored.");
        return;
    }
    ScrollArea::both().id_salt("jobs").auto_shrink([false, false]).show(ui, |ui| {
        pregenerations::show(ui, pregenerations, wishes);
        snapshot_jobs::show(ui, snapshots, wishes);
    });
}
