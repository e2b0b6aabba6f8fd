//! [`Hills`]: endless smooth hills.

use super::COLUMN_AREA;
use super::digest::{Digest, GeneratorIdentity};
use super::generator::{GenerateError, GenerateRequest, Generator, block_id};
use super::noise::{fold, set_within, smooth_noise};
use super::surface::{SurfaceAnswer, SurfaceRequest};
use super::terrain::{Cell, Terrain, first_block};
use crate::block::{BlockId, BlockRegistry};
use crate::chunk::Column;
use crate::space::CHUNK_SIZE;
use fastnoise_lite::FastNoiseLite;

/// The deep ground (from three blocks down), the ground between it and the grass, the surface on land, the surface
/// near and under the sea, and the sea.
const BLOCKS: [&str; 5] = ["terrane:stone", "terrane:dirt", "terrane:grass", "terrane:sand", "terrane:water"];
const OCTAVES: i32 = 4;
const DIRT_DEPTH: i64 = 3;
/// The height in blocks that sand reaches above the sea.
const BEACH: i64 = 2;
/// The depth of stone below the deepest possible valley, in blocks.
const ROOTS: i64 = 64;

/// Smooth hills and lakes from four octaves of simplex noise: 48 blocks up and down from the sea at y = 0.
///
/// The noise is computed in `f32`, which is too coarse far from the origin, so the map is folded: every 2^20 blocks it
/// is mirrored, without a seam. The hills repeat after 2^21 blocks, and are correct everywhere.
#[derive(Clone, Debug)]
pub struct Hills {
    seed: u64,
    frequency: f32,
    amplitude: f32,
    sea_level: i64,
}

impl Hills {
    /// The hills of this seed.
    pub fn seeded(seed: u64) -> Self {
        Self { seed, frequency: 0.008, amplitude: 48.0, sea_level: 0 }
    }

    /// Sets the number of hills per block: higher values bring hills closer together. Clamped to 0.000001 ..= 0.5; NaN
    /// is ignored.
    #[must_use]
    pub fn with_frequency(mut self, frequency: f32) -> Self {
        set_within(&mut self.frequency, frequency, 1e-6..=0.5);
        self
    }

    /// Sets the height of the highest possible top above the sea, in blocks. Clamped to 0 ..= 65,536; NaN is ignored.
    #[must_use]
    pub fn with_amplitude(mut self, amplitude: f32) -> Self {
        set_within(&mut self.amplitude, amplitude, 0.0..=65_536.0);
        self
    }

    /// Moves the sea, and all hills with it, to this height: water lies below this y. 0 by default.
    #[must_use]
    pub fn with_sea_level(mut self, y: i64) -> Self {
        self.sea_level = y;
        self
    }

    /// The y of the highest block of the ground at this place. Water may stand above it.
    pub fn height_at(&self, x: i64, z: i64) -> i64 {
        self.height(&self.noise(), x, z)
    }

    fn height(&self, noise: &FastNoiseLite, x: i64, z: i64) -> i64 {
        self.sea_level.saturating_add((self.amplitude * noise.get_noise_2d(fold(x), fold(z))).round() as i64)
    }

    fn cell(&self, [_, dirt, grass, sand, _]: [BlockId; 5], height: i64) -> Cell {
        let is_beach = height < self.sea_level.saturating_add(BEACH);
        let (top, under) = if is_beach { (sand, sand) } else { (grass, dirt) };
        Cell { height, top, under }
    }

    /// The noise consists of a few numbers and no tables, so it is created on demand.
    fn noise(&self) -> FastNoiseLite {
        smooth_noise(self.seed, self.frequency, OCTAVES)
    }
}

impl Generator for Hills {
    fn identity(&self) -> GeneratorIdentity {
        let digest = Digest::new()
            .number(self.seed)
            .number(u64::from(self.frequency.to_bits()))
            .number(u64::from(self.amplitude.to_bits()));
        let digest = BLOCKS.iter().fold(digest, |digest, name| digest.text(name));
        // Worlds from before this setting existed have it at 0.
        let digest = if self.sea_level == 0 { digest } else { digest.number(self.sea_level as u64) };
        GeneratorIdentity::new("terrane:hills", 1, digest.finish())
    }

    fn own_seed(&self) -> Option<u64> {
        Some(self.seed)
    }

    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        let ground @ [stone, .., water] = ids(request.blocks)?;
        let (x, z) = (first_block(request.column.x), first_block(request.column.z));
        let noise = self.noise();
        let cells: [Cell; COLUMN_AREA] = std::array::from_fn(|at| {
            self.cell(ground, self.height(&noise, x + (at % CHUNK_SIZE) as i64, z + (at / CHUNK_SIZE) as i64))
        });
        let floor = self.sea_level.saturating_sub(self.amplitude.ceil() as i64 + ROOTS);
        let water = Some((water, self.sea_level));
        Terrain { cells, under_depth: DIRT_DEPTH, stone, floor, water }.column(request)
    }

    fn surface(&self, request: &SurfaceRequest<'_>) -> Result<SurfaceAnswer, GenerateError> {
        let ground @ [.., water] = ids(request.blocks)?;
        let cell = self.cell(ground, self.height_at(request.x, request.z));
        Ok(cell.surface(Some((water, self.sea_level)), request.blocks))
    }
}

/// The ids of [`BLOCKS`].
fn ids(blocks: &BlockRegistry) -> Result<[BlockId; 5], GenerateError> {
    let mut ids = [BlockId::AIR; 5];
    for (id, name) in ids.iter_mut().zip(BLOCKS) {
        *id = block_id(blocks, name)?;
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generation::basic_blocks;
    use crate::generation::noise::FOLD;
    use crate::space::{BlockPos, ColumnPos};

    fn column(hills: &Hills, registry: &BlockRegistry, x: i64, z: i64) -> Column {
        let request = GenerateRequest { column: ColumnPos::new(x, z), heights: -64..320, blocks: registry };
        hills.generate(&request).unwrap()
    }

    /// Promise, ground: The generators `Void`, `Flat`, `Hills` and `Heightmap` work alone.
    #[test]
    fn the_surface_is_where_height_at_says() {
        let registry = basic_blocks();
        let [grass, sand, water] =
            ["grass", "sand", "water"].map(|name| registry.id(&format!("terrane:{name}")).unwrap());
        let hills = Hills::seeded(42);
        let (mut wet, mut dry) = (0, 0);
        for (column_x, column_z) in [(0, 0), (-1, 7), (20, -33), (-40, -40), (9, 60)] {
            let column = column(&hills, &registry, column_x, column_z);
            for (x, z) in [(0, 0), (15, 0), (3, 12)] {
                let (x, z) = ((column_x << 4) + x, (column_z << 4) + z);
                let height = hills.height_at(x, z);
                let above = column.block(BlockPos::new(x, height + 1, z));
                let top = column.block(BlockPos::new(x, height, z));
                if height >= 2 {
                    dry += 1;
                    assert_eq!((top, above), (grass, BlockId::AIR));
                } else if height < -1 {
                    wet += 1;
                    assert_eq!((top, above), (sand, water));
                    assert_eq!(column.block(BlockPos::new(x, -1, z)), water);
                    assert_eq!(column.block(BlockPos::new(x, 0, z)), BlockId::AIR);
                }
            }
        }
        assert!(wet > 0 && dry > 0, "both land and sea were looked at: {wet}, {dry}");
    }

    #[test]
    fn the_same_column_twice_is_the_same_and_seeds_differ() {
        let registry = basic_blocks();
        let hills = Hills::seeded(1);
        let first = column(&hills, &registry, -3, 8);
        column(&hills, &registry, 100, 100);
        assert!(first == column(&hills.clone(), &registry, -3, 8));
        assert!(first != column(&Hills::seeded(2), &registry, -3, 8));
    }

    #[test]
    fn hills_are_smooth_bounded_and_not_flat() {
        let hills = Hills::seeded(7);
        for line in [0, -5_000, FOLD, i64::MAX - 3] {
            let heights: Vec<_> = (-600..600).map(|x| hills.height_at(x, line)).collect();
            let step = heights.windows(2).map(|pair| (pair[0] - pair[1]).abs()).max();
            assert!(step <= Some(5), "a step of {step:?} at z = {line}");
            assert!(heights.iter().all(|height| height.abs() <= 48));
            assert!(heights.iter().max().unwrap() - heights.iter().min().unwrap() > 15, "flat at z = {line}");
        }
    }

    #[test]
    fn the_edges_of_the_world_and_odd_settings_do_no_harm() {
        let registry = basic_blocks();
        let odd = Hills::seeded(u64::MAX).with_amplitude(f32::INFINITY).with_frequency(f32::INFINITY);
        let still = Hills::seeded(0).with_amplitude(f32::NAN).with_frequency(-1.0);
        for hills in [Hills::seeded(3), odd, still] {
            for (x, z) in [(i64::MIN >> 4, i64::MAX >> 4), (i64::MAX, i64::MIN), (i64::MAX >> 4, 0)] {
                column(&hills, &registry, x, z);
            }
        }
        for (x, z) in [(i64::MIN >> 4, i64::MAX >> 4), (i64::MAX >> 4, 0)] {
            assert!(column(&Hills::seeded(3), &registry, x, z).chunks().count() > 0, "there is ground at {x}, {z}");
        }
    }

    #[test]
    fn every_setting_is_part_of_the_identity() {
        let hills = Hills::seeded(5);
        assert_eq!(hills.identity(), Hills::seeded(5).identity());
        for other in [
            Hills::seeded(6),
            Hills::seeded(5).with_frequency(0.01),
            Hills::seeded(5).with_amplitude(40.0),
            Hills::seeded(5).with_sea_level(-1),
        ] {
            assert_ne!(hills.identity(), other.identity(), "{other:?}");
        }
    }
}
