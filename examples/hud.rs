//! The game so far, with a line on the screen about the sheep, the region below the camera, and the last save. F5 saves.

use bevy_egui::{EguiContexts, EguiPrimaryContextPass, egui};
use bevy_terrane::prelude::*;
use bevy_terrane::view::{SaveFailed, SaveWorld, WorldSaved, WorldStatistics};
use terrane_overlay::OverlayPlugin;

#[expect(dead_code, reason = "the `main` of the step before")]
#[path = "mobs.rs"]
pub mod mobs;

fn main() -> Result<AppExit> {
    Ok(build("hud")?.run())
}

/// The game up to this step.
pub fn build(name: &str) -> Result<App> {
    let mut app = mobs::build(name)?;
    app.add_plugins(OverlayPlugin) // F3 shows regions
        .init_resource::<LastSave>()
        .add_systems(Update, (save, hear_of_saves).chain())
        .add_systems(EguiPrimaryContextPass, show);
    Ok(app)
}

/// The outcome of the last save.
#[derive(Resource, Default)]
struct LastSave {
    number: u64,
    result: String,
}

/// F5 saves the world now, and so does the opening of a dimension. Without it, a change is saved within five seconds.
fn save(
    keys: Res<ButtonInput<KeyCode>>,
    mut opened: MessageReader<DimensionOpened>,
    mut last: ResMut<LastSave>,
    mut saves: MessageWriter<SaveWorld>,
) {
    if keys.just_pressed(KeyCode::F5) || opened.read().count() > 0 {
        *last = LastSave { number: last.number + 1, result: "saving ...".to_owned() };
        saves.write(SaveWorld { request: last.number });
    }
}

fn hear_of_saves(
    mut saved: MessageReader<WorldSaved>,
    mut failed: MessageReader<SaveFailed>,
    mut last: ResMut<LastSave>,
) {
    let number = last.number;
    if saved.read().any(|saved| saved.request == number) {
        last.result = format!("save {number} survives a loss of power");
    }
    for SaveFailed { error, .. } in failed.read() {
        last.result = format!("the world cannot be saved: {error}");
    }
}

/// The main world sees mirrors of entities, and the state of each region as it was published last.
fn show(
    mut contexts: EguiContexts,
    sheep: Query<&mobs::Sheep, With<Mirror>>,
    camera: Single<(&Transform, &Viewer)>,
    (regions, world): (Regions, Res<WorldStatistics>),
    last: Res<LastSave>,
) -> Result {
    let (camera, viewer) = *camera;
    let place = |dimension| Position::from_translation(dimension, camera.translation).block;
    let here = viewer.dimension().and_then(|dimension| regions.at(dimension, place(dimension)));
    let region = here.map_or("no region".to_owned(), |here| format!("{}: {} columns", here.region, here.columns));
    let tps = world.slowest_tps().unwrap_or_default();
    let line = format!("{} sheep   {region}   slowest region: {tps:.1} TPS   {}", sheep.iter().len(), last.result);
    egui::Window::new("hud")
        .title_bar(false)
        .anchor(egui::Align2::LEFT_TOP, [12.0, 12.0])
        .default_width(1_000.0)
        .show(contexts.ctx_mut()?, |ui| ui.label(egui::RichText::new(line).size(20.0)));
    Ok(())
}
