//! Bodies for entities of regions, which have mirrors in the main world.

use bevy::ecs::entity::EntityHashMap;
use bevy_terrane::light::Light;
use bevy_terrane::prelude::*;

/// A box of a body: its size and its colour. The first box stands on the ground, and each other on the one before.
pub type Part = (Vec3, Color);

/// Gives a body to every mirror that has the component.
pub struct PartsPlugin<Of>(pub fn(&Of) -> Vec<Part>);

impl<Of: Component> Plugin for PartsPlugin<Of> {
    fn build(&self, app: &mut App) {
        app.insert_resource(Plan(self.0)).add_systems(Update, (give_bodies::<Of>, shade::<Of>).chain());
    }
}

/// The color of a part in full light.
#[derive(Component)]
struct Paint(Color);

#[derive(Resource)]
struct Plan<Of>(fn(&Of) -> Vec<Part>);

fn give_bodies<Of: Component>(
    mut commands: Commands,
    new: Query<(Entity, &Of), (With<Mirror>, Added<Of>)>,
    plan: Res<Plan<Of>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) {
    for (entity, of) in &new {
        commands.entity(entity).insert((Transform::default(), Visibility::default())).with_children(|body| {
            let mut top = 0.0;
            for (size, color) in plan.0(of) {
                let material = StandardMaterial { base_color: color, perceptual_roughness: 0.8, ..default() };
                body.spawn((
                    Mesh3d(meshes.add(Cuboid::from_size(size))),
                    MeshMaterial3d(materials.add(material)),
                    Paint(color),
                    Transform::from_xyz(0.0, top + size.y / 2.0, 0.0),
                ));
                top += size.y;
            }
        });
    }
}

/// Lights bodies as the blocks around them: the game's lights reach them as far as sky light does, and the light of blocks is added.
fn shade<Of: Component>(
    blocks: PublishedBlocks,
    bodies: Query<(Entity, &Mirror, &Children), With<Of>>,
    parts: Query<(&MeshMaterial3d<StandardMaterial>, &Paint)>,
    mut materials: ResMut<Assets<StandardMaterial>>,
    mut shown: Local<EntityHashMap<Light>>,
) {
    shown.retain(|body, _| bodies.contains(*body));
    for (body, mirror, children) in &bodies {
        let Position { dimension, block, .. } = mirror.current.0;
        let Some(light) = blocks.light(dimension, block) else { continue };
        if shown.insert(body, light) == Some(light) {
            continue;
        }
        let [sky, block] = [light.sky, light.block].map(|level| f32::from(level) / (60.0 - 3.0 * f32::from(level)));
        for (material, Paint(color)) in children.iter().filter_map(|part| parts.get(part).ok()) {
            if let Some(mut material) = materials.get_mut(&material.0) {
                let color = color.to_linear();
                material.base_color = (color * sky).with_alpha(1.0).into();
                material.emissive = LinearRgba::rgb(color.red, 0.78 * color.green, 0.52 * color.blue) * block;
            }
        }
    }
}
