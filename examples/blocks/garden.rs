//! Plants the garden, once.

use bevy::prelude::*;
use bevy_terrane::prelude::*;

/// The block that is planted last.
const LAST: BlockPos = BlockPos::new(-4, 4, -9);

/// `true` once the garden is there.
#[derive(Resource, Default)]
pub struct Planted(pub bool);

/// Plants the garden when its ground is there.
pub fn plant(
    mut commands: Commands,
    mut opened: MessageReader<DimensionOpened>,
    mut planted: ResMut<Planted>,
    blocks: PublishedBlocks,
    dimensions: Res<Dimensions>,
) {
    for opened in opened.read() {
        commands.run_in_region(opened.dimension, BlockPos::new(0, 0, 0), |region: &mut World| {
            if let Err(error) = region.run_system_cached::<(), _, _>(build) {
                error!("the garden cannot be planted: {error}");
            }
        });
    }
    let last = blocks.block(dimensions.id("garden"), LAST);
    planted.0 |= last.is_some_and(|block| block != BlockId::AIR);
}

/// Builds blocks by their names.
struct Builder<'a, 'w> {
    blocks: RegionBlocks<'w>,
    types: &'a BlockTypes,
}

impl Builder<'_, '_> {
    fn set(&mut self, [x, y, z]: [i64; 3], name: &str) -> Result {
        // Properties that are not given are those of the default state.
        let (base, properties) = name.trim_end_matches(']').split_once('[').unwrap_or((name, ""));
        let base = if base.contains(':') { base.to_owned() } else { format!("garden:{base}") };
        let properties: Vec<_> = properties.split(',').filter_map(|property| property.split_once('=')).collect();
        let block = self.types.state(&base, &properties).ok_or_else(|| format!("{name} is not registered"))?;
        self.blocks.set_block(BlockPos::new(x, y, z), block)?;
        Ok(())
    }

    fn fill(&mut self, low: [i64; 3], high: [i64; 3], name: &str) -> Result {
        for x in low[0]..=high[0] {
            for y in low[1]..=high[1] {
                (low[2]..=high[2]).try_for_each(|z| self.set([x, y, z], name))?;
            }
        }
        Ok(())
    }
}

fn build(blocks: RegionBlocks, types: Res<BlockTypes>) -> Result {
    let mut builder = Builder { blocks, types: &types };
    shapes(&mut builder)?;
    beds(&mut builder)?;
    pond(&mut builder)?;
    house(&mut builder)?;
    trees(&mut builder)
}

/// A path with a block of each shape beside it, and the plinth of the item.
fn shapes(to: &mut Builder) -> Result {
    to.fill([-8, 0, -1], [12, 0, 1], "terrane:gravel")?;
    to.fill([-8, 0, -3], [12, 0, -3], "cobblestone")?;
    let row = [
        "planks",
        "planks_slab",
        "planks_slab[half=top]",
        "planks_stairs[facing=north]",
        "planks_stairs[facing=south,half=top]",
        "brick_stairs[facing=east]",
        "table",
        "fence",
        "bars",
        "torch",
        "lamp[lit=true]",
        "lamp",
        "furnace[facing=south]",
        "crate",
        "bookshelf",
        "ore",
        "marble",
        "basalt",
        "ice",
        "colour_test",
    ];
    for (place, name) in (-8..).zip(row) {
        to.set([place, 1, -3], name)?;
    }
    for place in [-7, -4, -1, 2, 5, 8, 11] {
        to.set([place, 1, 2], "fence")?;
        to.set([place, 2, 2], "torch")?;
    }
    to.fill([-1, 1, 7], [1, 1, 9], "brick_slab")?;
    to.set([0, 1, 8], "brick")
}

/// Beds with plants, behind a fence.
fn beds(to: &mut Builder) -> Result {
    to.fill([-8, 1, 3], [-3, 1, 3], "fence")?;
    to.fill([-8, 1, 9], [-3, 1, 9], "fence")?;
    to.fill([-8, 1, 4], [-8, 1, 8], "fence")?;
    let plants = ["poppy", "tall_grass", "dandelion", "fern", "mushroom", "tall_grass", "poppy"];
    for (x, z) in (-7..-2).flat_map(|x: i64| (4..9).map(move |z: i64| (x, z))) {
        let plant = plants[(x * 3 + z * 5).rem_euclid(7) as usize];
        to.set([x, 1, z], plant)?;
    }
    to.fill([-3, 1, 5], [-3, 1, 7], "brick_stairs[facing=west]")
}

/// A pond with a sandy floor and a glass wall, a stream that flows into it, and a basin of lava.
fn pond(to: &mut Builder) -> Result {
    to.fill([4, -3, 4], [14, -3, 14], "terrane:sand")?;
    to.fill([4, -2, 4], [14, 0, 14], "terrane:sand")?;
    to.fill([5, -2, 5], [13, 0, 13], "terrane:water")?;
    to.fill([5, -2, 5], [6, -2, 13], "terrane:gravel")?;
    to.set([8, -2, 6], "lamp[lit=true]")?;
    to.set([11, -2, 7], "marble")?;
    to.set([11, -1, 7], "marble")?;
    to.fill([9, -2, 5], [9, -2, 5], "ore")?;
    // The stream comes down from a hill of stone.
    to.fill([14, 1, 6], [16, 1, 8], "terrane:stone")?;
    to.fill([15, 2, 6], [16, 2, 8], "terrane:stone")?;
    to.set([16, 2, 7], "stream")?;
    to.set([15, 2, 7], "stream[level=6]")?;
    to.set([14, 1, 7], "stream[level=5]")?;
    to.set([13, 1, 7], "stream[level=2]")?;
    to.fill([5, 0, -8], [9, 0, -5], "basalt")?;
    to.fill([6, 0, -7], [8, 0, -6], "lava")
}

/// A house of glass.
fn house(to: &mut Builder) -> Result {
    to.fill([-12, 0, -6], [-7, 0, -1], "planks")?;
    to.fill([-12, 4, -6], [-7, 4, -1], "planks_slab")?;
    for (x, z) in [(-12, -6), (-12, -1), (-7, -6), (-7, -1)] {
        to.fill([x, 1, z], [x, 3, z], "log")?;
    }
    to.fill([-11, 1, -1], [-8, 3, -1], "glass")?;
    to.fill([-7, 1, -5], [-7, 3, -2], "pane")?;
    to.fill([-12, 1, -5], [-12, 3, -4], "red_glass")?;
    to.fill([-12, 1, -3], [-12, 3, -2], "blue_glass")?;
    to.fill([-11, 1, -6], [-8, 3, -6], "brick")?;
    to.set([-9, 1, -5], "table")?;
    to.set([-9, 2, -5], "lamp[lit=true]")?;
    to.fill([-11, 1, -5], [-11, 2, -5], "bookshelf")
}

fn trees(to: &mut Builder) -> Result {
    for (x, z) in [(12, -10), (2, -9), (-4, -9)] {
        for (dx, dz) in (-2..=2).flat_map(|dx: i64| (-2..=2).map(move |dz: i64| (dx, dz))) {
            for dy in 3..=6_i64 {
                let reach = if dy < 5 { 5 } else { 2 };
                if dx * dx + dz * dz <= reach {
                    to.set([x + dx, dy, z + dz], "terrane:leaves")?;
                }
            }
        }
        to.fill([x, 1, z], [x, 4, z], "terrane:wood")?;
    }
    Ok(())
}
