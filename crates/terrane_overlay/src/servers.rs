//! The servers of a shared world.

use super::format::counted;
use super::widgets::server_color;
use crate::widgets::swatch;
use bevy::prelude::*;
use bevy_egui::egui::{Color32, Grid, RichText, Ui};
use bevy_terrane::view::{DrainServer, ServerStatistics, WorldStatistics};

/// Shows each server with its address and its ground. A button gives all ground of this server to another one.
pub(super) fn show(ui: &mut Ui, statistics: &WorldStatistics, commands: &mut Commands) {
    if statistics.is_frozen {
        ui.colored_label(Color32::ORANGE, "the database does not answer: regions stand still");
    }
    Grid::new("servers").num_columns(5).spacing([10.0, 3.0]).show(ui, |ui| {
        for server in &statistics.servers {
            swatch(ui, server_color(server.incarnation));
            ui.label(name(server));
            ui.label(RichText::new(counted(server.plots.len() as u64, "plot", "plots")).strong());
            ui.label(String::from_utf8_lossy(&server.address));
            if !server.is_this
                && ui.button("drain to it").on_hover_text("gives all ground of this server to it").clicked()
            {
                commands.write_message(DrainServer { to: server.incarnation });
            }
            ui.end_row();
        }
    });
}

fn name(server: &ServerStatistics) -> String {
    format!("server {}{}", server.incarnation, if server.is_this { " (this)" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_server_is_named_as_such() {
        let mut server = ServerStatistics { incarnation: 7, is_this: true, ..default() };
        assert_eq!(name(&server), "server 7 (this)");
        server.is_this = false;
        assert_eq!(name(&server), "server 7");
    }
}
