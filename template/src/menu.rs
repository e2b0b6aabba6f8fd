//! The menu: Esc opens and closes it.

use bevy_egui::{EguiContexts, EguiPrimaryContextPass, egui};
use bevy_terrane::prelude::*;
use bevy_terrane::view::{SaveFailed, SaveWorld, WorldSaved};

pub struct MenuPlugin;

impl Plugin for MenuPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<Menu>()
            .add_systems(Update, (toggle, hear_of_saves))
            .add_systems(EguiPrimaryContextPass, show.run_if(|menu: Res<Menu>| menu.is_open));
    }
}

#[derive(Resource, Default)]
pub struct Menu {
    pub is_open: bool,
    /// The result of the last save.
    note: String,
}

fn toggle(keys: Res<ButtonInput<KeyCode>>, mut menu: ResMut<Menu>) {
    if keys.just_pressed(KeyCode::Escape) {
        *menu = Menu { is_open: !menu.is_open, note: String::new() };
    }
}

fn show(
    mut contexts: EguiContexts,
    mut menu: ResMut<Menu>,
    mut save: MessageWriter<SaveWorld>,
    mut exit: MessageWriter<AppExit>,
) -> Result {
    let context = contexts.ctx_mut()?;
    egui::Window::new("my_game").anchor(egui::Align2::CENTER_CENTER, [0.0, 0.0]).collapsible(false).show(
        context,
        |ui| {
            ui.vertical_centered_justified(|ui| {
                if ui.button("Continue").clicked() {
                    menu.is_open = false;
                }
                if ui.button("Save").clicked() {
                    menu.note = "Saving ...".to_owned();
                    save.write(SaveWorld { request: 1 });
                }
                // The world is saved as the app ends.
                if ui.button("Save and quit").clicked() {
                    exit.write(AppExit::Success);
                }
                ui.label(&menu.note);
            });
        },
    );
    Ok(())
}

fn hear_of_saves(mut saved: MessageReader<WorldSaved>, mut failed: MessageReader<SaveFailed>, mut menu: ResMut<Menu>) {
    if saved.read().count() > 0 {
        menu.note = "Saved".to_owned();
    }
    for SaveFailed { error, .. } in failed.read() {
        menu.note = format!("Not saved: {error}");
    }
}
