//! [`Select`]: two generators, and the [`Mask`] that chooses between them.

#[cfg(test)]
mod tests;

use super::COLUMN_AREA;
use super::digest::{Digest, GeneratorIdentity};
use super::generator::{GenerateError, GenerateRequest, Generator};
use super::layers::cut;
use super::surface::{Surface, SurfaceAnswer, SurfaceRequest, SurfaceSource, block_at};
use super::terrain::{first_block, put_uniform};
use crate::block::{BlockId, BlockRegistry};
use crate::chunk::{Chunk, Column};
use crate::generation::noise::{fold, set_within, smooth_noise};
use crate::space::CHUNK_SIZE;
use fastnoise_lite::FastNoiseLite;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Grounds farther apart than this are not blended; they form a cliff.
const MAX_SHIFT: u64 = 512;

/// Chooses between two generators, place by place: plains here, mountains there.
///
/// Where the [`Mask`] is between the two, the ground's height is too: the ground of the nearer generator is moved up
/// or down as a whole. Blocks above the ground, such as a sea, are not moved, so both generators should have their sea
/// at the same level.
///
/// ```
/// use terrane_world::generation::*;
///
/// let plains = Hills::seeded(1).with_amplitude(6.0);
/// let mountains = Hills::seeded(2).with_amplitude(120.0);
/// let continent = Select::new(plains, mountains, NoiseMask::seeded(3).with_share(0.4));
/// ```
pub struct Select {
    first: SurfaceSource,
    second: SurfaceSource,
    mask: Box<dyn Mask>,
}

impl Select {
    /// The first generator where the mask's weight is 0, the second where it is 1.
    pub fn new(first: impl Generator, second: impl Generator, mask: impl Mask) -> Self {
        Self { first: SurfaceSource::new(first), second: SurfaceSource::new(second), mask: Box::new(mask) }
    }

    /// Sets the heights in which to search the surface of a generator that cannot compute it. -512..1024 by default;
    /// fewer heights are faster.
    #[must_use]
    pub fn with_surface_search(mut self, heights: Range<i64>) -> Self {
        self.first.search = heights.clone();
        self.second.search = heights;
        self
    }

    /// The weight at a place, within 0 ..= 1.
    fn weight(&self, x: i64, z: i64) -> f32 {
        let weight = self.mask.weight(x, z);
        if weight.is_nan() { 0.0 } else { weight.clamp(0.0, 1.0) }
    }

    fn strip(&self, blocks: &BlockRegistry, x: i64, z: i64, weight: f32) -> Result<Strip, GenerateError> {
        let mut strip = Strip { is_second: weight >= 0.5, moved: None };
        if weight == 0.0 || weight == 1.0 {
            return Ok(strip);
        }
        let request = SurfaceRequest { x, z, blocks };
        if let (Some(first), Some(second)) = (self.first.surface(&request)?, self.second.surface(&request)?)
            && first.y.abs_diff(second.y) <= MAX_SHIFT
        {
            // Exact at any height: only the small difference is computed in floating point.
            let y = first.y + (f64::from(weight) * (second.y - first.y) as f64).round() as i64;
            strip.moved = Some((y, if strip.is_second { [second, first] } else { [first, second] }));
        }
        Ok(strip)
    }
}

impl fmt::Debug for Select {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Select")
            .field("first", &self.first.generator.identity().name)
            .field("second", &self.second.generator.identity().name)
            .field("mask", &self.mask.identity().name)
            .finish_non_exhaustive()
    }
}

/// The source of the blocks at one place, seen from above.
#[derive(Clone, Copy)]
struct Strip {
    is_second: bool,
    /// For ground that is moved up or down: the new y of its highest block, and the surfaces of the chosen generator
    /// and of the other one.
    moved: Option<(i64, [Surface; 2])>,
}

impl Generator for Select {
    fn identity(&self) -> GeneratorIdentity {
        let digest = self.second.digest(self.first.digest(Digest::new())).identity(&self.mask.identity());
        GeneratorIdentity::new("terrane:select", 1, digest.finish())
    }

    fn own_seed(&self) -> Option<u64> {
        self.first.generator.own_seed().or_else(|| self.second.generator.own_seed())
    }

    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        let (x, z) = (first_block(request.column.x), first_block(request.column.z));
        let place = |at: usize| (x + (at % CHUNK_SIZE) as i64, z + (at / CHUNK_SIZE) as i64);
        let weights: [f32; COLUMN_AREA] = std::array::from_fn(|at| self.weight(place(at).0, place(at).1));
        if weights.iter().all(|weight| *weight == 0.0) || request.heights.is_empty() {
            return self.first.generator.generate(request);
        }
        if weights.iter().all(|weight| *weight == 1.0) {
            return self.second.generator.generate(request);
        }
        let mut strips = Vec::with_capacity(COLUMN_AREA);
        for (at, weight) in weights.iter().enumerate() {
            strips.push(self.strip(request.blocks, place(at).0, place(at).1, *weight)?);
        }
        let shifts = strips.iter().filter_map(|strip| strip.moved.map(|(y, [chosen, _])| (y - chosen.y).abs()));
        let reach = shifts.max().unwrap_or(0);
        let heights = request.heights.start.saturating_sub(reach)..request.heights.end.saturating_add(reach);
        let wide = GenerateRequest { heights, ..request.clone() };
        let sources = [self.first.generator.generate(&wide)?, self.second.generator.generate(&wide)?];
        Ok(join(&sources, &strips, reach, &request.heights))
    }

    fn surface(&self, request: &SurfaceRequest<'_>) -> Result<SurfaceAnswer, GenerateError> {
        let strip = self.strip(request.blocks, request.x, request.z, self.weight(request.x, request.z))?;
        let surface = match strip {
            Strip { moved: Some((y, surfaces)), .. } => Some(moved_surface(y, surfaces)),
            Strip { is_second: false, .. } => self.first.surface(request)?,
            Strip { is_second: true, .. } => self.second.surface(request)?,
        };
        Ok(SurfaceAnswer::Known(surface))
    }
}

/// Joins the columns of both generators. No block is moved by more than `reach`.
fn join(sources: &[Column; 2], strips: &[Strip], reach: i64, heights: &Range<i64>) -> Column {
    let mut column = Column::new(sources[0].pos());
    let mut shared = None;
    for y in chunks_in_reach(sources, reach, heights) {
        if let Some(block) = uniform_around(sources, y, reach) {
            put_uniform(&mut column, y, block, &mut shared);
        } else {
            let low = y << 4;
            let chunk =
                Chunk::from_fn(|[x, within, z]| strips[x + CHUNK_SIZE * z].block(sources, [x, z], low + within as i64));
            column.set_chunk(y, Arc::new(chunk));
        }
    }
    cut(&mut column, heights);
    column
}

/// The surface of ground that is moved to end at `y`.
fn moved_surface(y: i64, [chosen, other]: [Surface; 2]) -> Surface {
    let above = |covered_to: Option<i64>| covered_to.filter(|top| *top > y);
    let covered_to = if y >= chosen.y {
        above(chosen.covered_to)
    } else {
        // The other ground's cover is visible up to the former end of the chosen ground; above it, the chosen ground's cover.
        above(other.covered_to).map(|top| if top < chosen.y { top } else { chosen.covered_to.unwrap_or(chosen.y) })
    };
    Surface { y, covered_to, ..chosen }
}

impl Strip {
    fn block(&self, sources: &[Column; 2], place: [usize; 2], y: i64) -> BlockId {
        let chosen = usize::from(self.is_second);
        match &self.moved {
            Some((to, [from, _])) if y <= *to => {
                y.checked_sub(to - from.y).map_or(BlockId::AIR, |y| block_at(&sources[chosen], place, y))
            }
            // One of the two has its ground below this block, whichever is the chosen one.
            Some((_, [from, _])) if y <= from.y => block_at(&sources[1 - chosen], place, y),
            _ => block_at(&sources[chosen], place, y),
        }
    }
}

/// The number of chunks by which a block may move up or down if it is moved by this many blocks.
const fn chunks_moved(blocks: i64) -> i64 {
    (blocks + CHUNK_SIZE as i64 - 1) / CHUNK_SIZE as i64
}

/// The chunk heights within the heights to which blocks of the sources may be moved.
fn chunks_in_reach(sources: &[Column; 2], reach: i64, heights: &Range<i64>) -> BTreeSet<i64> {
    let (first, last) = (heights.start >> 4, (heights.end - 1) >> 4);
    let chunks = chunks_moved(reach);
    let made = sources.iter().flat_map(|source| source.chunks()).map(|(y, _)| y);
    made.flat_map(|y| (y - chunks).max(first)..=(y + chunks).min(last)).collect()
}

/// The block that fills all cells of both sources that may be moved into a chunk.
fn uniform_around(sources: &[Column; 2], y: i64, reach: i64) -> Option<BlockId> {
    let chunks = chunks_moved(reach);
    let mut around = sources.iter().flat_map(|source| (y - chunks..=y + chunks).map(|y| source.chunk(y)));
    let block = around.next()??.uniform_block()?;
    around.all(|chunk| chunk.is_some_and(|chunk| chunk.uniform_block() == Some(block))).then_some(block)
}

/// Chooses between two generators, place by place. See [`Select`](super::Select).
///
/// Like a generator, a mask is a pure function of the place and of its own settings.
pub trait Mask: Send + Sync + 'static {
    /// The name, the version and a digest of the seed and all settings: a part of the generator's identity.
    fn identity(&self) -> GeneratorIdentity;

    /// The share of the second generator at a place: 0 is only the first generator, 1 only the second.
    fn weight(&self, x: i64, z: i64) -> f32;
}

/// A mask from smooth noise: patches of one generator in the other.
#[derive(Clone, Debug, PartialEq)]
pub struct NoiseMask {
    seed: u64,
    size: f32,
    share: f32,
    transition: f32,
}

impl NoiseMask {
    /// Patches about 512 blocks wide, half of the world each, with a transition of about a quarter of that width.
    pub fn seeded(seed: u64) -> Self {
        Self { seed, size: 512.0, share: 0.5, transition: 0.25 }
    }

    /// Sets the distance between patches in blocks. Clamped to 16 ..= 1,000,000; NaN is ignored.
    #[must_use]
    pub fn with_size(mut self, blocks: f32) -> Self {
        set_within(&mut self.size, blocks, 16.0..=1_000_000.0);
        self
    }

    /// Sets the approximate fraction of the world that the second generator gets. Clamped to 0 ..= 1; NaN is ignored.
    #[must_use]
    pub fn with_share(mut self, share: f32) -> Self {
        set_within(&mut self.share, share, 0.0..=1.0);
        self
    }

    /// Sets the width of the transition, approximately as a fraction of the size of a patch. 0 is a sharp line.
    /// Clamped to 0 ..= 1; NaN is ignored.
    #[must_use]
    pub fn with_transition(mut self, part: f32) -> Self {
        set_within(&mut self.transition, part, 0.0..=1.0);
        self
    }

    fn noise(&self) -> FastNoiseLite {
        smooth_noise(self.seed, 1.0 / self.size, 2)
    }
}

impl Mask for NoiseMask {
    fn identity(&self) -> GeneratorIdentity {
        let settings = [self.size, self.share, self.transition];
        let digest = Digest::new().number(self.seed);
        let digest = settings.iter().fold(digest, |digest, setting| digest.number(setting.to_bits().into()));
        GeneratorIdentity::new("terrane:noise_mask", 1, digest.finish())
    }

    fn weight(&self, x: i64, z: i64) -> f32 {
        // A share of 0 or 1 leaves no transition on either side.
        let span = 1.0 + self.transition;
        let above = self.noise().get_noise_2d(fold(x), fold(z)) + span * (2.0 * self.share - 1.0);
        if self.transition == 0.0 {
            return if above > 0.0 { 1.0 } else { 0.0 };
        }
        let part = (above / (2.0 * self.transition) + 0.5).clamp(0.0, 1.0);
        part * part * (3.0 - 2.0 * part)
    }
}
