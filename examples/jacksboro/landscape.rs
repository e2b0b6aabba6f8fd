//! The land: a height map of the real place, and trees on it.

use crate::arguments::Arguments;
use crate::fault;
use crate::landmarks::BEACON;
use crate::palette::{HEATH, LEAVES, MEADOW};
use bevy_terrane::generation::{
    Feature, FeatureCanvas, FeatureError, FeatureReach, GenerateError, GeneratorIdentity, HeightBand, Heightmap,
    HeightmapError, Placement,
};
use bevy_terrane::prelude::*;

/// A sample of the map is 74 m by 93 m. This keeps the horizontal proportions.
const BLOCKS_PER_SAMPLE: [f32; 2] = [4.0, 5.0];
/// Three times the natural height, as in panoramas.
const BLOCKS_PER_METRE: f32 = 1.0 / 6.0;

/// The selected height map, with the demo's scale and ground.
pub fn heightmap(arguments: &Arguments) -> Result<Heightmap, HeightmapError> {
    let file = arguments.heightmap.clone().unwrap_or_else(fault::file);
    fault::land(&file)?
        .with_seed(arguments.seed)
        .with_blocks_per_sample(BLOCKS_PER_SAMPLE)?
        .with_blocks_per_unit(BLOCKS_PER_METRE)?
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

/// The land with its forests.
pub fn woods(ground: Heightmap, seed: u64) -> Result<Layers, FeatureError> {
    let places = Placement::seeded(seed).with_spacing(3).with_soil(["terrane:grass", MEADOW, HEATH]);
    let tree = MountainTree { ground: ground.clone() };
    Ok(Layers::new(ground).with(Features::new(places).with(tree, 1)?))
}

/// A tree, depending on the mountains: broad-leaved in the valley, and more spruces higher up.
struct MountainTree {
    ground: Heightmap,
}

/// The distance that crowns reach from the trunk.
const CROWN: i64 = 2;
/// The shortest trunk, and the number of lengths.
const TRUNKS: (i64, u32) = (3, 3);
/// The number of leaves above the trunk.
const TIP: i64 = 2;
/// The radius in blocks that stays open around the beacon.
const CLEARING: i64 = 8;

impl Feature for MountainTree {
    fn identity(&self) -> GeneratorIdentity {
        // The generator below identifies the ground.
        GeneratorIdentity::new("jacksboro:mountain_tree", 1, 0)
    }

    fn reach(&self) -> FeatureReach {
        let up = TRUNKS.0 as u32 + TRUNKS.1 - 1 + TIP as u32;
        FeatureReach { horizontal: CROWN as u32, up, down: 0 }
    }

    fn draw(&self, canvas: &mut FeatureCanvas<'_, '_>) -> Result<(), GenerateError> {
        let foot = canvas.origin();
        let random = canvas.random();
        let (kind, taste) = (random.unit(), random.unit());
        let height = TRUNKS.0 + i64::from(random.below(TRUNKS.1));
        let is_by_the_beacon = (foot.x - BEACON.x).abs().max((foot.z - BEACON.z).abs()) < CLEARING;
        if is_by_the_beacon || taste > self.density(foot) {
            return Ok(());
        }
        let is_conifer = kind < 0.15 + foot.y as f32 * 0.006;
        let [green, spruce, maple, birch] = LEAVES;
        let broad = [green, green, green, green, green, maple, birch, birch];
        let leaves = if is_conifer { spruce } else { broad[(kind * 80.0) as usize % broad.len()] };
        let (wood, leaves) = (canvas.id("terrane:wood")?, canvas.id(leaves)?);
        grow(canvas, height, is_conifer, wood, leaves);
        Ok(())
    }
}

impl MountainTree {
    /// The likelihood of a tree: none at the shore and on cliffs, low in the valley, highest on the slopes of the mountains.
    fn density(&self, foot: BlockPos) -> f32 {
        let slope = self.ground.slope_at(foot.x, foot.z);
        let by_height = match foot.y {
            ..3 => 0.0,
            3..16 => 0.05,
            16..100 => 0.6,
            _ => 0.2,
        };
        let by_slope = if slope > 1.35 { 0.0 } else { 0.35 + slope.min(0.65) };
        // Groves and clearings, a few hundred blocks wide.
        let (x, z) = (foot.x as f32, foot.z as f32);
        let grove = 0.65 + 0.45 * ((x * 0.031).sin() * (z * 0.027).cos() + (x * 0.011 + z * 0.017).sin()) * 0.5;
        by_height * by_slope * grove * 1.6
    }
}

/// Grows a trunk with a round or pointed crown.
fn grow(canvas: &mut FeatureCanvas<'_, '_>, height: i64, is_conifer: bool, wood: BlockId, leaves: BlockId) {
    let top = height + TIP;
    for y in 2..=top {
        let reach = match (is_conifer, top - y) {
            (true, 0 | 1) => 0,
            (true, below) => 1 + i64::from(below % 2 == 0 && below > 3),
            (false, 0) => 1,
            (false, below) if y > height - 2 && below < 4 => CROWN,
            (false, _) => continue,
        };
        for (x, z) in (-reach..=reach).flat_map(|x| (-reach..=reach).map(move |z| (x, z))) {
            // A square without its corners looks round.
            if reach == 0 || x.abs() + z.abs() < 2 * reach {
                canvas.set_in_air([x, y, z], leaves);
            }
        }
    }
    for y in 1..height + i64::from(!is_conifer) {
        canvas.set([0, y, 0], wood);
    }
}
