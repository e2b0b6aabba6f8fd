//! Figures of the whole simulation.

use super::format::{bytes, count, duration, rate};
use bevy_egui::egui::{Grid, RichText, Ui};
use bevy_terrane::view::{Backlog, WorldStatistics};

/// Shows figures of the whole simulation, in three columns of names and values.
pub(super) fn show(ui: &mut Ui, statistics: &WorldStatistics) {
    let size = |number: usize| count(number as u64);
    let tick = |time| if statistics.ticks == 0 { super::format::UNKNOWN.to_owned() } else { duration(time) };
    let stored = |tier: usize| {
        let size = statistics.tiers.sizes[tier];
        format!("{}, {}", count(size.entries), bytes(size.bytes))
    };
    let entries = [
        ("columns", size(statistics.columns)),
        ("regions", size(statistics.regions.len())),
        ("saves", count(statistics.saves)),
        ("remaining", size(statistics.remaining)),
        ("slowest TPS", rate(statistics.slowest_tps())),
        ("stored", saved(statistics)),
        ("in flight", format!("{} of {}", size(statistics.in_flight), size(statistics.in_flight_limit))),
        ("median tick", tick(statistics.tick_time_median)),
        ("unsaved", unsaved(statistics)),
        ("generated", count(statistics.generated)),
        ("worst tick", tick(statistics.tick_time_worst)),
        ("save time", duration(statistics.save_time)),
        ("loaded", count(statistics.loaded)),
        ("merges / splits", format!("{} / {}", count(statistics.merges), count(statistics.splits))),
        ("clock", duration(statistics.clock)),
        ("hot chunks", stored(0)),
        ("warm groups", stored(1)),
        ("cold cubes", stored(2)),
    ];
    figures(ui, "summary", &entries, 3, 62.0);
}

/// Shows names and values, `in_row` of them per row, each at least `width` wide.
pub(super) fn figures(ui: &mut Ui, id: &str, entries: &[(&str, String)], in_row: usize, width: f32) {
    Grid::new(id).num_columns(2 * in_row).spacing([10.0, 3.0]).min_col_width(width).show(ui, |ui| {
        for row in entries.chunks(in_row) {
            for (name, value) in row {
                ui.label(*name);
                ui.label(RichText::new(value).strong());
            }
            ui.end_row();
        }
    });
}

/// The saved bytes, and how many were written for each.
pub(super) fn saved(statistics: &WorldStatistics) -> String {
    let bytes = bytes(statistics.bytes_saved);
    statistics.written_per_saved().map_or(bytes.clone(), |written| format!("{bytes}, written × {written:.1}"))
}

/// The backlog of the store, and what it holds back if the store cannot keep up.
pub(super) fn unsaved(statistics: &WorldStatistics) -> String {
    let unsaved = count(statistics.unsaved as u64);
    match statistics.backlog {
        Backlog::None => unsaved,
        Backlog::OrdersWait => format!("{unsaved}: the disk is slow, no new ground"),
        Backlog::TicksWait => format!("{unsaved}: the disk is slow, no ticks"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_shows_the_disk_figures() {
        let mut statistics = WorldStatistics { bytes_saved: 2_048, unsaved: 7, ..WorldStatistics::default() };
        assert_eq!((saved(&statistics).as_str(), unsaved(&statistics).as_str()), ("2.0 KiB", "7"));
        (statistics.bytes_written, statistics.backlog) = (Some(3_072), Backlog::TicksWait);
        assert_eq!(saved(&statistics), "2.0 KiB, written × 1.5");
        assert_eq!(unsaved(&statistics), "7: the disk is slow, no ticks");
    }
}
