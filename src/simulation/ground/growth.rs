//! Growth by light: what blocks become at random ticks.

use super::{GroundError, GroundFault, GroundSystems, order_systems};
use crate::block::{BlockId, BlockRegistry};
use crate::simulation::block_types::BlockTypes;
use crate::simulation::schedules::RegionTick;
use crate::simulation::{RandomTick, RegionBlocks, RegionColumns, SplitMix64};
use crate::space::BlockPos;
use bevy::prelude::*;
use rustc_hash::FxHashMap;
use std::ops::RangeInclusive;

/// What happens to a block at a [`RandomTick`]. The block needs the tag
/// [`RANDOM_TICKS`](crate::block::tags::RANDOM_TICKS). By default it happens at every random tick, in any light.
///
/// ```
/// use bevy_terrane::prelude::*;
/// use bevy_terrane::simulation::GrowthRule;
///
/// let rules = [
///     GrowthRule::new("game:wheat[age=0]", "game:wheat[age=1]").with_light(9..=15).with_chance(0.2),
///     GrowthRule::spreading("terrane:grass", "terrane:dirt").with_light(9..=15),
///     GrowthRule::new("terrane:grass", "terrane:dirt").with_light(0..=3),
/// ];
/// # assert_eq!(rules.len(), 3);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct GrowthRule {
    block: String,
    other: String,
    spreads: bool,
    light: RangeInclusive<u8>,
    chance: f32,
}

impl GrowthRule {
    /// The block `block` becomes the block `becomes`.
    pub fn new(block: impl Into<String>, becomes: impl Into<String>) -> Self {
        Self { block: block.into(), other: becomes.into(), spreads: false, light: 0..=u8::MAX, chance: 1.0 }
    }

    /// A block `onto` near the block becomes like it: one place is tried, at most one block away to the sides, one up and three
    /// down. The light counts at that place.
    pub fn spreading(block: impl Into<String>, onto: impl Into<String>) -> Self {
        Self { spreads: true, ..Self::new(block, onto) }
    }

    /// The same rule, but only in this light at the present time of day, 0 to 15: that in the block, or above it if it is opaque.
    pub fn with_light(mut self, levels: RangeInclusive<u8>) -> Self {
        self.light = levels;
        self
    }

    /// The same rule, but with this chance at a random tick, 0 to 1.
    pub fn with_chance(mut self, chance: f32) -> Self {
        self.chance = chance;
        self
    }
}

/// A rule with the id of the other block.
struct Growth {
    other: BlockId,
    rule: GrowthRule,
}

/// The rules by block.
#[derive(Resource)]
struct RegionGrowth(FxHashMap<BlockId, Vec<Growth>>);

impl RegionGrowth {
    fn new(blocks: &BlockRegistry, rules: &[GrowthRule]) -> Result<Self, GroundError> {
        let id = |name: &str| {
            let nearest = || blocks.nearest_name(name).map(str::to_owned);
            blocks.id(name).ok_or_else(|| GroundError::UnknownBlock { name: name.to_owned(), nearest: nearest() })
        };
        let mut growth = FxHashMap::<_, Vec<_>>::default();
        for rule in rules {
            let other = id(&rule.other)?;
            growth.entry(id(&rule.block)?).or_default().push(Growth { other, rule: rule.clone() });
        }
        Ok(Self(growth))
    }
}

/// Adds growth by these rules to a region.
pub(crate) fn add_growth(region: &mut SubApp, rules: &[GrowthRule]) {
    match RegionGrowth::new(region.world().resource::<BlockTypes>(), rules) {
        Ok(growth) => {
            order_systems(region);
            region.insert_resource(growth).add_systems(RegionTick, grow.in_set(GroundSystems::Grow));
        }
        Err(error) => drop(region.insert_resource(GroundFault(error))),
    }
}

fn grow(
    mut drawn: MessageReader<RandomTick>,
    growth: Res<RegionGrowth>,
    types: Res<BlockTypes>,
    mut blocks: RegionBlocks,
) {
    for RandomTick { block, random } in drawn.read() {
        let Some(id) = blocks.known_block(*block) else { continue };
        let mut random = SplitMix64::new(*random);
        for Growth { other, rule } in growth.0.get(&id).into_iter().flatten() {
            let is_lucky = random.unit() < rule.chance;
            if !is_lucky {
                continue;
            }
            let (place, from, becomes) = match rule.spreads {
                true => (near(*block, &mut random), *other, id),
                false => (*block, id, *other),
            };
            let is_there = blocks.known_block(place) == Some(from);
            if is_there && is_lit(&blocks, &types, place, &rule.light) && blocks.set_block(place, becomes).is_ok() {
                break;
            }
        }
    }
}

fn near(block: BlockPos, random: &mut SplitMix64) -> BlockPos {
    let [x, y, z] = [3, 5, 3].map(|width| i64::from(random.below(width)));
    block.offset(x - 1, y - 3, z - 1)
}

fn is_lit(columns: &RegionColumns, types: &BlockRegistry, block: BlockPos, levels: &RangeInclusive<u8>) -> bool {
    let is_opaque = columns.known_block(block).is_none_or(|id| types.block(id).is_opaque());
    let place = if is_opaque { block.offset(0, 1, 0) } else { block };
    columns.light(place).is_ok_and(|light| levels.contains(&light.now))
}
