//! Spreading grass: it grows again where bots have trampled it down.

use crate::palette::Palette;
use bevy_terrane::prelude::*;

/// The number of columns for each place checked in a tick. Bare ground beside turf stays bare for about a minute.
const COLUMNS_PER_LOOK: usize = 4;

/// Turns dirt under the open sky, at random places of the region, into the turf that grows beside it.
pub fn spread_grass(mut blocks: RegionBlocks, palette: Res<Palette>, mut random: ResMut<RegionRandom>) -> Result {
    let RegionRandom(random) = &mut *random;
    for _ in 0..blocks.columns().len().div_ceil(COLUMNS_PER_LOOK) {
        let column = blocks.columns()[random.below(blocks.columns().len() as u32) as usize];
        let mut within = || i64::from(random.below(16));
        let (x, z) = ((column.x << 4) + within(), (column.z << 4) + within());
        let Some(place) = blocks.surface(x, z) else { continue };
        if blocks.block(place)? != palette.dirt {
            continue;
        }
        let beside = [(1, 0), (-1, 0), (0, 1), (0, -1)].into_iter().find_map(|(dx, dz)| {
            let neighbour = blocks.surface(x + dx, z + dz)?;
            let block = blocks.block(neighbour).ok()?;
            (palette.is_turf(block) && neighbour.y.abs_diff(place.y) <= 1).then_some(block)
        });
        if let Some(turf) = beside {
            blocks.set_block(place, turf)?;
        }
    }
    Ok(())
}
