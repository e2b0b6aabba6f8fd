//! What a person sees: the bar, an open chest, the block that the hand reaches, sheep, and blocks that fall.

use crate::game::bag::{BLOCKS, Bag, Chosen, Items};
use crate::game::chests::{self, OpenChest, Transfer};
use crate::game::{hand::Aim, land, sheep::Sheep};
use bevy_egui::{EguiContexts, EguiPrimaryContextPass, egui};
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::FallingBlock;
use terrane_render::BlockMesh;

#[path = "../shared/bodies.rs"]
mod bodies;
#[path = "../shared/outline.rs"]
mod outline;

pub fn build(app: &mut App) {
    app.add_plugins(bodies::PartsPlugin(sheep_body))
        .add_systems(Update, (outline, show_falling_blocks, turn_sheep))
        .add_systems(EguiPrimaryContextPass, (show_bar, show_chest));
}

/// The block that the hand reaches has dark edges.
fn outline(
    aim: Res<Aim>,
    (blocks, types, dimensions): (PublishedBlocks, Res<BlockTypes>, Res<Dimensions>),
    mut gizmos: Gizmos,
) {
    let Some(hit) = aim.0 else { return };
    let corner = Vec3::new(hit.block.x as f32, hit.block.y as f32, hit.block.z as f32);
    let block = blocks.block(dimensions.id(land::NAME), hit.block).unwrap_or_default();
    outline::draw(&mut gizmos, &types, block, corner);
}

/// The plugin of the renderer moves mirrors smoothly once they have a `Transform`. The mesh of a block begins at its lowest corner.
fn show_falling_blocks(
    mut commands: Commands,
    new: Query<(Entity, &FallingBlock), (With<Mirror>, Without<Transform>)>,
    types: Res<BlockTypes>,
) {
    for (entity, falling) in &new {
        let Some(block) = types.id(&falling.block) else { continue };
        let mesh = (BlockMesh(block), Transform::from_xyz(-0.5, 0.0, -0.5), Visibility::default());
        commands.entity(entity).insert((Transform::default(), Visibility::default())).with_child(mesh);
    }
}

/// Sheep look where they walk.
fn turn_sheep(mut sheep: Query<(&Intent, &mut Transform), (With<Sheep>, Changed<Intent>)>) {
    for (intent, mut transform) in &mut sheep {
        transform.rotation = Quat::from_rotation_y(intent.look.x);
    }
}

fn swatch(ui: &mut egui::Ui, types: &BlockTypes, kind: usize, number: u16, is_chosen: bool) -> egui::Response {
    let [red, green, blue] = types.id(BLOCKS[kind]).map_or([255; 3], |block| types.block(block).color());
    let (dark, light) = (egui::Color32::from_black_alpha(160), egui::Color32::WHITE);
    let name = BLOCKS[kind].split(':').next_back().unwrap_or_default();
    let text = egui::RichText::new(format!("{name}\n{number}")).color(light).background_color(dark);
    let button = egui::Button::new(text).fill(egui::Color32::from_rgb(red, green, blue)).min_size([64.0, 48.0].into());
    ui.add(button.stroke(egui::Stroke::new(if is_chosen { 4.0 } else { 1.0 }, light)))
}

/// The blocks of the bag, the chosen one with a thick border, and a cross in the middle of the view.
fn show_bar(
    mut contexts: EguiContexts,
    bag: Query<&Bag, With<Mirror>>,
    (chosen, types): (Res<Chosen>, Res<BlockTypes>),
) -> Result {
    let (context, Ok(bag)) = (contexts.ctx_mut()?, bag.single()) else { return Ok(()) };
    let bar = egui::Area::new("bar".into()).anchor(egui::Align2::CENTER_BOTTOM, [0.0, -12.0]);
    bar.show(context, |ui| {
        ui.horizontal(|ui| {
            for (kind, number) in bag.0.iter().enumerate() {
                swatch(ui, &types, kind, *number, kind == chosen.0);
            }
        });
    });
    let cross = egui::Area::new("cross".into()).anchor(egui::Align2::CENTER_CENTER, [0.0, 0.0]).interactable(false);
    cross.show(context, |ui| ui.label(egui::RichText::new("+").size(22.0).color(egui::Color32::WHITE)));
    Ok(())
}

/// An open chest: a click moves one block.
fn show_chest(
    mut contexts: EguiContexts,
    (blocks, types, dimensions): (PublishedBlocks, Res<BlockTypes>, Res<Dimensions>),
    player: Query<(&Mirror, &Bag)>,
    open: Res<OpenChest>,
    mut actions: Actions,
) -> Result {
    let (Some(chest), Ok((player, bag))) = (open.0, player.single()) else { return Ok(()) };
    let Some(items) = chests::items(&blocks, &types, dimensions.id(land::NAME), chest) else { return Ok(()) };
    let mut row = |ui: &mut egui::Ui, title: &str, items: &Items, into_chest: bool| {
        ui.label(title);
        ui.horizontal(|ui| {
            for (kind, number) in items.iter().enumerate() {
                if swatch(ui, &types, kind, *number, false).clicked() {
                    actions.act(player.id, Transfer { chest, kind, into_chest });
                }
            }
        });
    };
    let window =
        egui::Window::new("Chest (E closes it)").anchor(egui::Align2::CENTER_CENTER, [0.0, 0.0]).collapsible(false);
    window.show(contexts.ctx_mut()?, |ui| {
        row(ui, "In the chest", &items, false);
        row(ui, "In your bag", &bag.0, true);
    });
    Ok(())
}

fn sheep_body(_: &Sheep) -> Vec<bodies::Part> {
    vec![
        (Vec3::new(0.5, 0.4, 0.7), Color::srgb(0.3, 0.27, 0.25)),
        (Vec3::new(0.9, 0.8, 1.3), Color::srgb(0.93, 0.91, 0.86)),
    ]
}
