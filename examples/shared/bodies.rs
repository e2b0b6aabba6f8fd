//! Bodies for entities of regions, which have mirrors in the main world.

use bevy_terrane::prelude::*;
use terrane_render::{LitExtension, LitMaterial};

/// A box of a body: its size and its colour. The first box stands on the ground, and each other on the one before.
pub type Part = (Vec3, Color);

/// Gives a body to every mirror that has the component.
pub struct PartsPlugin<Of>(pub fn(&Of) -> Vec<Part>);

impl<Of: Component> Plugin for PartsPlugin<Of> {
    fn build(&self, app: &mut App) {
        app.insert_resource(Plan(self.0)).add_systems(Update, give_bodies::<Of>);
    }
}

#[derive(Resource)]
struct Plan<Of>(fn(&Of) -> Vec<Part>);

fn give_bodies<Of: Component>(
    mut commands: Commands,
    new: Query<(Entity, &Of), (With<Mirror>, Added<Of>)>,
    plan: Res<Plan<Of>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<LitMaterial>>,
) {
    for (entity, of) in &new {
        commands.entity(entity).insert((Transform::default(), Visibility::default())).with_children(|body| {
            let mut top = 0.0;
            for (size, color) in plan.0(of) {
                let base = StandardMaterial { base_color: color, perceptual_roughness: 0.8, ..default() };
                // It has the light of its place.
                let material = LitMaterial { base, extension: LitExtension::default() };
                body.spawn((
                    Mesh3d(meshes.add(Cuboid::from_size(size))),
                    MeshMaterial3d(materials.add(material)),
                    Transform::from_xyz(0.0, top + size.y / 2.0, 0.0),
                ));
                top += size.y;
            }
        });
    }
}
