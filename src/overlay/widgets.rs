//! Parts that several lists share.

use bevy_egui::egui::{Align, Color32, Layout, Response, Sense, Ui, Vec2};
use egui_extras::TableBuilder;

/// A table that fills the rest of the window, with clickable rows.
pub(super) fn clickable_table<'a>(ui: &'a mut Ui, id: &str) -> TableBuilder<'a> {
    // A click on a text counts as a click on its row.
    ui.style_mut().interaction.selectable_labels = false;
    let table = TableBuilder::new(ui).id_salt(id).sense(Sense::click()).auto_shrink(false);
    let table = table.min_scrolled_height(0.0).max_scroll_height(f32::INFINITY);
    table.cell_layout(Layout::left_to_right(Align::Center))
}

/// A small square of a region's color.
pub(super) fn swatch(ui: &mut Ui, color: Color32) -> Response {
    let (rect, response) = ui.allocate_exact_size(Vec2::splat(10.0), Sense::hover());
    ui.painter().rect_filled(rect, 2.0, color);
    response
}
