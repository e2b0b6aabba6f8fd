//! The land: a height map of the real place, and trees on it.

use crate::arguments::Arguments;
use crate::palette::{HEATH, LEAVES, MEADOW};
use bevy_terrane::generation::{HeightBand, HeightmapError};
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::SplitMix64;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A sample of the map is 74 m by 93 m: this keeps the proportions seen from above.
const BLOCKS_PER_SAMPLE: [f32; 2] = [4.0, 5.0];
/// Three times as high as in nature, as panoramas are drawn.
const BLOCKS_PER_METRE: f32 = 1.0 / 6.0;
/// The level of Norris Lake as the survey saw it, in metres: y = 0 in the world.
const LAKE: f32 = 314.0;

/// The height map that the user wants, with the demo's scale and ground.
pub fn heightmap(arguments: &Arguments) -> Result<Heightmap, HeightmapError> {
    let path = arguments.heightmap.clone().unwrap_or_else(jacksboro);
    Heightmap::open(path)?
        .with_seed(arguments.seed)
        .with_blocks_per_sample(BLOCKS_PER_SAMPLE)?
        .with_blocks_per_unit(BLOCKS_PER_METRE)?
        .with_sea_level(LAKE)?
        .with_water(LAKE, "terrane:water")?
        .with_bands([
            HeightBand::new(322.0, "terrane:sand", "terrane:sand"),
            HeightBand::new(400.0, MEADOW, "terrane:dirt"),
            HeightBand::new(800.0, "terrane:grass", "terrane:dirt"),
            HeightBand::new(930.0, HEATH, "terrane:dirt"),
            HeightBand::new(f32::INFINITY, "terrane:gravel", "terrane:stone"),
        ])?
        .with_transition(12.0)?
        .with_cliffs(1.45, "terrane:stone")
}

/// From below the lowest place to above the highest trees.
pub fn heights(land: &Heightmap) -> Range<i64> {
    let surface = land.surface_heights();
    surface.start() - 20..surface.end() + 20
}

/// The picture that comes with the project, wherever the demo is started.
fn jacksboro() -> PathBuf {
    let asset = Path::new("assets/jacksboro_fault_dem.png");
    let in_project = Path::new(env!("CARGO_MANIFEST_DIR")).join(asset);
    if in_project.exists() { in_project } else { asset.to_owned() }
}

/// A generator around another one: it lets the height map make the ground and plants trees on it.
pub struct Woods {
    pub ground: Heightmap,
    pub seed: u64,
}

/// Trees that are tried in a column.
const ATTEMPTS: u32 = 24;
/// Crowns are this wide, so that a tree stays within its column and columns need not know each other.
const CROWN: i64 = 2;

impl Generator for Woods {
    fn identity(&self) -> GeneratorIdentity {
        let ground = self.ground.identity();
        let name = ground.name.bytes().map(u64::from);
        let parts = [self.seed, ground.seed, ground.version.into()].into_iter().chain(name);
        GeneratorIdentity {
            name: "jacksboro:woods".to_owned(),
            version: 1,
            seed: SplitMix64::from_parts(parts).next_u64(),
        }
    }

    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        let mut column = self.ground.generate(request)?;
        // The beacon's place stays open.
        if request.column != crate::landmarks::BEACON.column() {
            self.plant(&mut column, request)?;
        }
        Ok(column)
    }
}

impl Woods {
    fn plant(&self, column: &mut Column, request: &GenerateRequest<'_>) -> Result<(), GenerateError> {
        let soil = [request.block("terrane:grass")?, request.block(MEADOW)?, request.block(HEATH)?];
        let wood = request.block("terrane:wood")?;
        let mut leaves = [BlockId::AIR; LEAVES.len()];
        for (id, name) in leaves.iter_mut().zip(LEAVES) {
            *id = request.block(name)?;
        }
        let ColumnPos { x, z } = request.column;
        let mut random = SplitMix64::from_parts([self.seed, x as u64, z as u64]);
        let mut trunks: Vec<(i64, i64)> = Vec::new();
        for _ in 0..ATTEMPTS {
            let mut inside = || CROWN + i64::from(random.below(16 - 2 * CROWN as u32));
            let (in_x, in_z) = (inside(), inside());
            let kind = random.unit();
            let taste = random.unit();
            let height = 3 + i64::from(random.below(3));
            if trunks.iter().any(|(x, z)| (x - in_x).abs().max((z - in_z).abs()) < 3) {
                continue;
            }
            let Some(y) = column.surface(in_x as usize, in_z as usize) else { continue };
            let foot = BlockPos::new((x << 4) + in_x, y, (z << 4) + in_z);
            let top = y + height + 2;
            if !soil.contains(&column.block(foot)) || top >= request.heights.end || taste > self.density(foot) {
                continue;
            }
            trunks.push((in_x, in_z));
            let conifer = kind < 0.15 + y as f32 * 0.006;
            let crown = if conifer { leaves[1] } else { leaves[[0, 0, 0, 0, 0, 2, 3, 3][(kind * 80.0) as usize % 8]] };
            grow(column, foot, height, conifer, wood, crown);
        }
        Ok(())
    }

    /// How likely a tree is: none by the shore and on cliffs, few in the valley, most on the slopes of the mountains.
    fn density(&self, foot: BlockPos) -> f32 {
        let slope = self.ground.slope_at(foot.x, foot.z);
        let by_height = match foot.y {
            ..3 => 0.0,
            3..16 => 0.05,
            16..100 => 0.6,
            _ => 0.2,
        };
        let by_slope = if slope > 1.35 { 0.0 } else { 0.35 + slope.min(0.65) };
        // Groves and clearings, some hundred blocks wide.
        let (x, z) = (foot.x as f32, foot.z as f32);
        let grove = 0.65 + 0.45 * ((x * 0.031).sin() * (z * 0.027).cos() + (x * 0.011 + z * 0.017).sin()) * 0.5;
        by_height * by_slope * grove * 1.6
    }
}

/// A trunk with a crown: round, or pointed.
fn grow(column: &mut Column, foot: BlockPos, height: i64, conifer: bool, wood: BlockId, leaves: BlockId) {
    let top = height + 2;
    for y in 2..=top {
        let reach = match (conifer, top - y) {
            (true, 0 | 1) => 0,
            (true, below) => 1 + i64::from(below % 2 == 0 && below > 3),
            (false, 0) => 1,
            (false, below) if y > height - 2 && below < 4 => CROWN,
            (false, _) => continue,
        };
        for (x, z) in (-reach..=reach).flat_map(|x| (-reach..=reach).map(move |z| (x, z))) {
            // Without its corners a square looks round.
            if reach == 0 || x.abs() + z.abs() < 2 * reach {
                column.set_block(foot.offset(x, y, z), leaves);
            }
        }
    }
    for y in 1..height + i64::from(!conifer) {
        column.set_block(foot.offset(0, y, 0), wood);
    }
}
