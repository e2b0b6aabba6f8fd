//! Smooth noise over all of `i64`.

use super::digest::scramble;
use crate::space::{CHUNK_SIZE, CHUNK_VOLUME, ChunkPos};
use fastnoise_lite::{FastNoiseLite, FractalType, NoiseType};
use std::ops::RangeInclusive;

/// The distance in blocks to the first fold of the map; a power of two, so that folding is exact.
pub(super) const FOLD: i64 = 1 << 20;

/// Sets a setting, clamped to a range. NaN is ignored.
pub(super) fn set_within(setting: &mut f32, to: f32, range: RangeInclusive<f32>) {
    if !to.is_nan() {
        *setting = to.clamp(*range.start(), *range.end());
    }
}

/// Simplex noise within -1 ..= 1.
pub(super) fn smooth_noise(seed: u64, frequency: f32, octaves: i32) -> FastNoiseLite {
    // 30 bits: every octave adds one to the seed, and the sum must fit into an i32.
    let mut noise = FastNoiseLite::with_seed((scramble(seed) >> 34) as i32);
    noise.set_noise_type(Some(NoiseType::OpenSimplex2));
    noise.set_fractal_type(Some(FractalType::FBm));
    noise.set_fractal_octaves(Some(octaves));
    noise.set_frequency(Some(frequency));
    noise
}

/// A triangle wave between -FOLD and FOLD, one step per block: continuous, and exact in `f32`.
pub(super) fn fold(block: i64) -> f32 {
    // Shifted by FOLD, the wave rises on 0..2 FOLD and falls on 2 FOLD..4 FOLD.
    let phase = block.wrapping_add(FOLD) & (4 * FOLD - 1);
    let rising = if phase <= 2 * FOLD { phase } else { 4 * FOLD - phase };
    (rising - FOLD) as f32
}

/// The distance in blocks between two samples of 3D noise.
const STEP: usize = 4;
/// The number of samples along the edge of a chunk, including both ends.
const SAMPLES: usize = CHUNK_SIZE / STEP + 1;

/// The noise at every block of a chunk, in the order of [`Chunk::blocks`](crate::chunk::Chunk::blocks).
///
/// The noise is sampled at every fourth block and interpolated linearly, which is 30 times as fast. Neighbouring
/// chunks share the samples of their common side.
pub(super) fn noise_in_chunk(noise: &FastNoiseLite, chunk: ChunkPos) -> Box<[f32; CHUNK_VOLUME]> {
    // The lattice of a chunk at the edge of `i64` ends beyond it; the folded space continues there.
    let places = |chunk: i64| -> [f32; SAMPLES] {
        std::array::from_fn(|at| fold((chunk << 4).wrapping_add((at * STEP) as i64)))
    };
    let (x, y, z) = (places(chunk.x), places(chunk.y), places(chunk.z));
    let samples: [[[f32; SAMPLES]; SAMPLES]; SAMPLES] = x.map(|x| y.map(|y| z.map(|z| noise.get_noise_3d(x, y, z))));

    let mut values = Box::new([0.0; CHUNK_VOLUME]);
    for (cell, row) in values.chunks_exact_mut(CHUNK_SIZE).enumerate() {
        let (x, y) = (cell / CHUNK_SIZE, cell % CHUNK_SIZE);
        let row_samples: [f32; SAMPLES] = std::array::from_fn(|z| {
            let along_y = |x: usize| between(y, |y| samples[x][y][z]);
            between(x, along_y)
        });
        for (z, value) in row.iter_mut().enumerate() {
            *value = between(z, |z| row_samples[z]);
        }
    }
    values
}

/// The value at a block, linearly interpolated between the samples before and after it.
fn between(block: usize, sample: impl Fn(usize) -> f32) -> f32 {
    let (before, part) = (sample(block / STEP), (block % STEP) as f32 / STEP as f32);
    before + part * (sample(block / STEP + 1) - before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fold_has_no_seam_and_no_end() {
        assert_eq!((fold(0), fold(-5), fold(FOLD), fold(FOLD + 1)), (0.0, -5.0, FOLD as f32, (FOLD - 1) as f32));
        for near in [FOLD, -FOLD, 2 * FOLD, 3 * FOLD, i64::MAX - 10, i64::MIN + 10] {
            for block in near - 9..near + 9 {
                assert_eq!((fold(block) - fold(block + 1)).abs(), 1.0, "between {block} and the next");
            }
        }
    }

    #[test]
    fn noise_in_space_has_no_seams_between_chunks() {
        let noise = smooth_noise(5, 0.05, 1);
        let value = |x: i64, y: i64, z: i64| {
            let within = [x, y, z].map(|block| (block & 15) as usize);
            noise_in_chunk(&noise, ChunkPos::new(x >> 4, y >> 4, z >> 4))[(within[0] * 16 + within[1]) * 16 + within[2]]
        };
        for (x, y, z) in [(0, 0, 0), (-32, 1_000_000_000_000, 16), (i64::MIN, i64::MAX - 31, 48)] {
            assert_eq!(value(x, y, z), noise.get_noise_3d(fold(x), fold(y), fold(z)));
            for step in 0..20 {
                for (a, b) in [
                    (value(x + step, y, z), value(x + step + 1, y, z)),
                    (value(x, y + step, z), value(x, y + step + 1, z)),
                    (value(x, y, z + step), value(x, y, z + step + 1)),
                ] {
                    assert!((a - b).abs() < 0.25, "a jump from {a} to {b}");
                }
            }
        }
    }
}
