//! The arena and its generator: an oval of seats around sand.

use bevy_terrane::block::BlockRegistryError;
use bevy_terrane::generation::{GenerateError, GenerateRequest, Generator, GeneratorIdentity};
use bevy_terrane::prelude::*;
use bevy_terrane::space::BlockBox;

/// The name of the dimension in the world.
pub const DIMENSION: &str = "coliseum";
pub const ARENA: &str = "coliseum";
/// The arena, including everything that explosions can destroy.
pub const AREA: BlockBox = BlockBox { min: BlockPos::new(-64, -8, -64), max: BlockPos::new(63, 47, 63) };

/// Blocks from the middle to the sand's edge, to the highest seats, and to the outer face of the wall.
const SAND: f64 = 26.0;
const SEATS: f64 = 46.0;
const WALL: f64 = 50.0;
/// The height of the wall.
const TOP: i64 = 24;
const ARCHES: f64 = 28.0;

pub fn register(app: &mut App) -> Result<(), BlockRegistryError> {
    for (name, color) in [
        ("coliseum:sandstone", [203, 178, 132]),
        ("coliseum:marble", [226, 220, 208]),
        ("coliseum:tiles", [156, 82, 58]),
        ("coliseum:banner", [150, 28, 38]),
    ] {
        app.register_block(BlockType::new(name).with_color(color))?;
    }
    Ok(())
}

/// Generates the arena in a meadow.
pub struct Coliseum;

impl Generator for Coliseum {
    fn identity(&self) -> GeneratorIdentity {
        GeneratorIdentity { name: "coliseum".to_owned(), version: 1, seed: 0 }
    }

    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        let mut column = Column::new(request.column);
        let corner = request.column.chunk(0).min_block();
        let names = ["terrane:stone", "terrane:dirt", "terrane:grass", "terrane:sand"];
        let [stone, dirt, grass, sand] = names.map(|name| request.block(name));
        let (stone, dirt, grass, sand) = (stone?, dirt?, grass?, sand?);
        for (x, z) in (0..16).flat_map(|x| (0..16).map(move |z| (corner.x + x, corner.z + z))) {
            let is_inside = AREA.reaches(BlockPos::new(x, 0, z).column());
            let (top, ground) = if is_inside && radius(x, z) < WALL { (TOP + 16, sand) } else { (0, grass) };
            for y in request.heights.start..=top {
                let block = match y {
                    ..-4 => Some(stone),
                    -4..0 => Some(dirt),
                    0 => Some(ground),
                    _ => building(x, y, z).map(|name| request.block(name)).transpose()?,
                };
                if let Some(block) = block.filter(|_| request.heights.contains(&y)) {
                    column.set_block(BlockPos::new(x, y, z), block);
                }
            }
        }
        Ok(column)
    }
}

/// The distance of a place from the middle, scaled because the arena is longer along x than along z.
fn radius(x: i64, z: i64) -> f64 {
    let (x, z) = (x as f64 + 0.5, z as f64 + 0.5);
    (x * x * 0.82 + z * z * 1.1).sqrt()
}

/// The block above the sand.
fn building(x: i64, y: i64, z: i64) -> Option<&'static str> {
    let out = radius(x, z);
    let turn = (z as f64 + 0.5).atan2(x as f64 + 0.5) / std::f64::consts::TAU * ARCHES;
    // The position between two pillars of the wall, from -0.5 to 0.5.
    let across = turn - turn.round();
    match out {
        _ if out < SAND - 1.0 => obelisk(x, y, z),
        // A marble edge around the sand.
        _ if out < SAND => (y <= 3).then_some("coliseum:marble"),
        // Seats that rise by one block every block and a half, on vaults that are open to bots.
        _ if out < SEATS => {
            let seat = 3 + ((out - SAND) / 1.4) as i64;
            let is_vault = across.abs() < 0.28 && y < seat - 3 && y < 6 && out > SAND + 7.0;
            let is_gate = z.abs() < 4 && y < 6;
            (y <= seat && !is_vault && !is_gate).then_some(if y == seat && seat % 4 == 0 {
                "coliseum:marble"
            } else {
                "coliseum:sandstone"
            })
        }
        // The wall has three rows of arches.
        _ if out < WALL => {
            let within = y % 8;
            let is_arch = across.abs() < 0.26 && (1..6).contains(&within) && y < TOP;
            let is_gate = z.abs() < 4 && y < 8;
            if is_arch || is_gate || y > TOP {
                return (y > TOP && y <= TOP + 2 && across.abs() > 0.3).then_some("coliseum:marble");
            }
            Some(match within {
                7 => "coliseum:tiles",
                _ if across.abs() > 0.44 && y > 8 => "coliseum:banner",
                _ => "coliseum:sandstone",
            })
        }
        _ => None,
    }
}

/// Four obelisks on the sand, and one in the middle.
fn obelisk(x: i64, y: i64, z: i64) -> Option<&'static str> {
    let [dx, dz] = [(x.abs() - 16).min(x.abs()), (z.abs() - 9).min(z.abs())];
    let is_corner = (x.abs() - 16).abs() < 2 && (z.abs() - 9).abs() < 2;
    let is_middle = x.abs() < 3 && z.abs() < 3;
    let height = if is_middle { 15 } else { 9 };
    let is_edge = dx.abs() > 1 || dz.abs() > 1;
    ((is_corner || is_middle) && y <= height && !(is_edge && y == height)).then_some(if y == height {
        "coliseum:banner"
    } else {
        "coliseum:marble"
    })
}
