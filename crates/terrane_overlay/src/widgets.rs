//! Parts that several lists share, and the colors of regions and servers.

use bevy_egui::egui::ecolor::Hsva;
use bevy_egui::egui::{Align, Color32, Label, Layout, Response, RichText, Sense, Ui, Vec2};
use bevy_terrane::region::RegionId;
use egui_extras::TableBuilder;
use std::fmt::Display;

/// A table that fills the rest of the window, with clickable rows.
pub(super) fn clickable_table<'a>(ui: &'a mut Ui, id: &str) -> TableBuilder<'a> {
    // A click on a text counts as a click on its row.
    ui.style_mut().interaction.selectable_labels = false;
    let table = TableBuilder::new(ui).id_salt(id).sense(Sense::click()).auto_shrink(false);
    let table = table.min_scrolled_height(0.0).max_scroll_height(f32::INFINITY);
    table.cell_layout(Layout::left_to_right(Align::Center))
}

/// A cause, and what to do about it.
pub(super) fn because(ui: &mut Ui, cause: &impl Display, action: &str) {
    ui.add(Label::new(cause.to_string()).wrap());
    ui.add(Label::new(RichText::new(action).weak()).wrap());
}

/// A small square of a region's color.
pub(super) fn swatch(ui: &mut Ui, color: Color32) -> Response {
    let (rect, response) = ui.allocate_exact_size(Vec2::splat(10.0), Sense::hover());
    ui.painter().rect_filled(rect, 2.0, color);
    response
}

/// The color of a region, always the same for the same id. Consecutively created regions have very different hues.
pub(super) fn region_color(region: RegionId) -> Color32 {
    let hue = hue(region.index());
    let saturation = if region.index().is_multiple_of(2) { 0.78 } else { 0.92 };
    Hsva::new(hue, saturation, 0.85, 1.0).into()
}

/// The color of sections without columns, which keep other regions at a distance.
pub(super) fn buffer_color(region: RegionId) -> Color32 {
    region_color(region).gamma_multiply(0.28)
}

/// The color of a server's ground, below that of its regions.
pub(super) fn server_color(incarnation: u64) -> Color32 {
    Hsva::new(hue(incarnation), 0.45, 0.42, 1.0).into()
}

/// Very different hues for consecutive numbers.
fn hue(number: u64) -> f32 {
    /// The fractional part of the golden ratio, times 2^64. Wrapping multiplication keeps the fraction of every multiple.
    const GOLDEN_RATIO: u64 = 0x9E37_79B9_7F4A_7C15;
    (number.wrapping_mul(GOLDEN_RATIO) >> 40) as f32 / (1 << 24) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(a: Color32, b: Color32) -> u32 {
        let channels = |color: Color32| [color.r(), color.g(), color.b()];
        channels(a).into_iter().zip(channels(b)).map(|(a, b)| u32::from(a.abs_diff(b))).sum()
    }

    #[test]
    fn a_color_is_stable_and_differs_from_its_neighbours() {
        for first in [0, 1_000, (1 << 53) - 8, u64::MAX - 16] {
            for index in first..first + 12 {
                let color = region_color(RegionId::new(index));
                assert_eq!(color, region_color(RegionId::new(index)));
                for near in 1..4 {
                    let other = region_color(RegionId::new(index + near));
                    assert!(difference(color, other) > 90, "{index} and {}: {color:?} {other:?}", index + near);
                }
            }
        }
    }

    #[test]
    fn a_buffer_is_fainter() {
        let region = RegionId::new(5);
        assert!(buffer_color(region).a() < region_color(region).a() / 2);
    }
}
