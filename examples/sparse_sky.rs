//! The digging game in a sky without end: a dimension as high as `i64` reaches, of which only the heights around a viewer exist.

use bevy_terrane::generation::{GenerateError, GenerateRequest, GeneratorIdentity};
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::SplitMix64;
use terrane_dev::FlyCamera;
use terrane_render::RenderOrigin;

#[expect(dead_code, reason = "the `main` of an earlier step")]
#[path = "edit.rs"]
mod edit;

/// One island at most is in each cube of so many blocks.
const SPACING: i64 = 40;
/// Heights that Home, Page Up and End go to. The last is as high as a world can be.
const HEIGHTS: [i64; 3] = [0, 1 << 40, i64::MAX - 400];

fn main() -> Result<AppExit> {
    let mut app = edit::build("sparse_sky")?;
    app.add_systems(Startup, rise.after(edit::start)).add_systems(Update, (jump, follow).chain());
    Ok(app.run())
}

/// Takes the camera, and with it the viewer, from the overworld to the sky.
fn rise(
    mut commands: Commands,
    mut origin: ResMut<RenderOrigin>,
    camera: Single<Entity, With<FlyCamera>>,
    dimensions: Res<Dimensions>,
) {
    // More than 16,384 blocks of height make a dimension sparse.
    commands.spawn(Dimension::new("sky", Islands { seed: 42 }).with_height(i64::MIN..i64::MAX));
    let sky = dimensions.id("sky");
    origin.0 = BlockPos::new(0, HEIGHTS[1], 0);
    commands.entity(*camera).insert((
        // The vertical radius counts in chunks. Columns are loaded in slabs of 16 chunks, and only where it reaches.
        Viewer::in_dimension(sky).with_radius(20).with_vertical_radius(10),
        // A `Position` is exact at any height, where the `f32` of a `Transform` is not.
        Position::new(sky, origin.0),
        Transform::from_xyz(-20.0, 44.0, 70.0).looking_to(Vec3::new(1.0, -0.4, 0.6), Vec3::Y),
    ));
}

fn jump(keys: Res<ButtonInput<KeyCode>>, mut origin: ResMut<RenderOrigin>) {
    let chosen = [KeyCode::Home, KeyCode::PageUp, KeyCode::End].iter().position(|key| keys.just_pressed(*key));
    if let Some(chosen) = chosen {
        origin.0.y = HEIGHTS[chosen];
    }
}

/// The camera stays near the origin of what is drawn, where `f32` is exact: from time to time the origin moves to the camera.
fn follow(mut origin: ResMut<RenderOrigin>, camera: Single<(&mut Transform, &mut Position), With<FlyCamera>>) {
    let (mut transform, mut position) = camera.into_inner();
    let mut place = Position { block: origin.0, offset: Vec3::ZERO, ..*position };
    place.translate(transform.translation);
    position.set_if_neq(place);
    if transform.translation.length() > 256.0 {
        origin.0 = place.block;
        transform.translation = place.offset;
    }
}

/// Round islands, flat on top. The block at a place depends on the place and the seed alone, so any part of a column can be generated
/// by itself.
struct Islands {
    seed: u64,
}

/// An island: the middle of its surface, and its radius.
struct Island {
    x: i64,
    y: i64,
    z: i64,
    radius: i64,
}

impl Islands {
    /// The island in a cell of the grid, if there is one.
    fn island(&self, cell: [i64; 3]) -> Option<Island> {
        let mut random = SplitMix64::from_parts([self.seed, cell[0] as u64, cell[1] as u64, cell[2] as u64]);
        let radius = i64::from(random.below(10)) + 5;
        let mut place = |cell: i64| {
            let free = (SPACING - 2 * radius).max(1) as u32;
            cell.checked_mul(SPACING)?.checked_add(radius + i64::from(random.below(free)))
        };
        let (x, y, z) = (place(cell[0])?, place(cell[1])?, place(cell[2])?);
        (random.below(2) == 0).then_some(Island { x, y, z, radius })
    }
}

impl Generator for Islands {
    fn identity(&self) -> GeneratorIdentity {
        GeneratorIdentity::new("sparse_sky:islands", 1, self.seed)
    }

    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        let [grass, dirt, stone] = ["terrane:grass", "terrane:dirt", "terrane:stone"].map(|name| request.block(name));
        let (grass, dirt, stone) = (grass?, dirt?, stone?);
        let mut column = Column::new(request.column);
        let corner = request.column.chunk(0).min_block();
        let cells = |from: i64, to: i64| from.div_euclid(SPACING)..=to.div_euclid(SPACING);
        let (low, high) = (request.heights.start, request.heights.end - 1);
        // An island lies within its cell, so only the cells that the column and the heights touch matter.
        for y in cells(low, high) {
            for (x, z) in
                cells(corner.x, corner.x + 15).flat_map(|x| cells(corner.z, corner.z + 15).map(move |z| (x, z)))
            {
                let Some(island) = self.island([x, y, z]) else { continue };
                for (at_x, at_z) in (0..16).flat_map(|dx| (0..16).map(move |dz| (corner.x + dx, corner.z + dz))) {
                    let out = (at_x - island.x).pow(2) + (at_z - island.z).pow(2);
                    // The lower side is a hemisphere.
                    let depth =
                        (0..=island.radius).take_while(|depth| out + depth * depth <= island.radius.pow(2)).last();
                    for depth in depth.into_iter().flat_map(|deepest| 0..=deepest) {
                        let height = island.y - depth;
                        if request.heights.contains(&height) {
                            let block = [grass, dirt, dirt].get(depth as usize).copied().unwrap_or(stone);
                            column.set_block(BlockPos::new(at_x, height, at_z), block);
                        }
                    }
                }
            }
        }
        Ok(column)
    }
}
