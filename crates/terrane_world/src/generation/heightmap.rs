//! [`Heightmap`]: terrain from a picture of heights.

mod axis;
mod samples;
#[cfg(test)]
mod tests;

pub use samples::HeightmapError;

use super::COLUMN_AREA;
use super::digest::{Digest, GeneratorIdentity, scramble};
use super::generator::{GenerateError, GenerateRequest, Generator, block_id};
use super::surface::{SurfaceAnswer, SurfaceRequest};
use super::terrain::{Cell, Terrain, first_block};
use crate::block::{BlockId, BlockRegistry};
use crate::chunk::Column;
use crate::space::CHUNK_SIZE;
use axis::{Axis, MAX_SCALE, MIN_SCALE, Tap};
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Seek};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

/// The maximum of heights in settings, in units: far above the maximum of a sample, and safe to compute with.
const MAX_UNITS: f32 = 1_000_000.0;
/// The number of `under` blocks below a band's top.
const UNDER_DEPTH: i64 = 3;
/// The depth of stone below the lowest surface, in blocks.
const ROOTS: i64 = 64;
/// The variation of a cliff's slope from block to block, as a fraction of it, so that its outline is not a level line.
const CLIFF_VARIATION: f64 = 0.4;

/// Real or drawn terrain, from a 16-bit greyscale PNG of any size up to 64 M samples.
///
/// A sample is a height in *units*, which are often metres. Row 0 is the northern edge (lowest z), each row runs from
/// west to east (ascending x), and the middle sample lies at x = z = 0. Between the samples the ground is smooth.
/// Beyond the map's edge it continues mirrored, without a seam and without an end.
///
/// By default one sample is one block wide, one unit is one block high, and the lowest sample lies at y = 0.
///
/// ```no_run
/// # use terrane_world::generation::{HeightBand, Heightmap, HeightmapError};
/// # fn main() -> Result<(), HeightmapError> {
/// let mountains = Heightmap::open("assets/jacksboro_fault_dem.png")?
///     .with_blocks_per_sample([7.4, 9.3])?
///     .with_blocks_per_unit(0.2)?
///     .with_sea_level(230.0)?;
/// # Ok(())
/// # }
/// ```
///
/// A clone shares the samples.
#[derive(Clone)]
pub struct Heightmap {
    values: Arc<[u16]>,
    width: usize,
    height: usize,
    lowest: u16,
    highest: u16,
    /// Digest of the size and the samples.
    digest: u64,
    x: Axis,
    z: Axis,
    seed: u64,
    centered: bool,
    blocks_per_sample: [f32; 2],
    blocks_per_unit: f32,
    sea_level: f32,
    bands: Vec<HeightBand>,
    transition: f32,
    cliffs: Option<(f32, String)>,
    stone: String,
    water: Option<(f32, String)>,
}

/// The blocks of the ground up to some height. See [`Heightmap::with_bands`].
#[derive(Clone, Debug, PartialEq)]
pub struct HeightBand {
    /// The band's upper end, in units.
    pub below: f32,
    /// The block of the surface.
    pub top: String,
    /// The block of the three cells below the surface.
    pub under: String,
}

impl HeightBand {
    /// Ground up to a height in units: `top` above `under`.
    pub fn new(below: f32, top: impl Into<String>, under: impl Into<String>) -> Self {
        Self { below, top: top.into(), under: under.into() }
    }
}

impl Heightmap {
    /// Reads a map from a file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, HeightmapError> {
        let path = path.as_ref();
        let map = path.display().to_string();
        match File::open(path) {
            Ok(file) => Self::read(BufReader::new(file), &map),
            Err(source) => Err(HeightmapError::Read { map, source }),
        }
    }

    /// Reads a map from the bytes of a PNG file.
    pub fn from_png(bytes: &[u8]) -> Result<Self, HeightmapError> {
        Self::read(Cursor::new(bytes), "(data)")
    }

    fn read(reader: impl BufRead + Seek, map: &str) -> Result<Self, HeightmapError> {
        let ([width, height], values) = samples::read(reader, map)?;
        let lowest = values.iter().copied().min().unwrap_or(0);
        let highest = values.iter().copied().max().unwrap_or(0);
        let size = Digest::new().number(u64::from(width)).number(u64::from(height));
        let digest = values.iter().fold(size, |digest, value| digest.bytes(&value.to_le_bytes())).finish();
        let span = f32::from(highest - lowest);
        let part = |part: f32| f32::from(lowest) + part * span;
        Ok(Self {
            values: values.into(),
            width: width as usize,
            height: height as usize,
            lowest,
            highest,
            digest,
            x: Axis::new(width, 1.0, width / 2),
            z: Axis::new(height, 1.0, height / 2),
            seed: 0,
            centered: true,
            blocks_per_sample: [1.0; 2],
            blocks_per_unit: 1.0,
            sea_level: f32::from(lowest),
            bands: vec![
                HeightBand::new(part(0.03), "terrane:sand", "terrane:sand"),
                HeightBand::new(part(0.65), "terrane:grass", "terrane:dirt"),
                HeightBand::new(part(0.85), "terrane:gravel", "terrane:stone"),
                HeightBand::new(part(1.0), "terrane:snow", "terrane:stone"),
            ],
            transition: 0.04 * span,
            cliffs: Some((1.25, "terrane:stone".to_owned())),
            stone: "terrane:stone".to_owned(),
            water: None,
        })
    }

    /// Sets the distance between samples in blocks along x and z. From 1/1024 to 1,048,576.
    pub fn with_blocks_per_sample(mut self, blocks: [f32; 2]) -> Result<Self, HeightmapError> {
        for blocks in blocks {
            scale("blocks per sample", blocks)?;
        }
        self.blocks_per_sample = blocks;
        Ok(self.with_axes())
    }

    /// Sets the height of one unit in blocks. From 1/1024 to 1,048,576.
    pub fn with_blocks_per_unit(mut self, blocks: f32) -> Result<Self, HeightmapError> {
        self.blocks_per_unit = scale("blocks per unit", blocks)?;
        Ok(self)
    }

    /// Sets the height in units that lies at y = 0. By default this is the lowest sample.
    pub fn with_sea_level(mut self, units: f32) -> Result<Self, HeightmapError> {
        self.sea_level = height("sea level", units)?;
        Ok(self)
    }

    /// Places the map's middle at x = z = 0 (the default) or, if `false`, its first sample, the north-western corner.
    #[must_use]
    pub fn with_centered(mut self, centered: bool) -> Self {
        self.centered = centered;
        self.with_axes()
    }

    /// Sets the blocks of the ground by height in units, from the lowest band to the highest. The last band also
    /// covers all higher ground. There must be at least one band, and each must end above the previous one.
    pub fn with_bands(mut self, bands: impl IntoIterator<Item = HeightBand>) -> Result<Self, HeightmapError> {
        let bands: Vec<_> = bands.into_iter().collect();
        let setting = |found, expected| HeightmapError::Setting { setting: "the list of bands", found, expected };
        if bands.is_empty() {
            return Err(setting("empty".to_owned(), "at least one band"));
        }
        // The end of the last band may be infinite.
        if let Some(band) = bands.iter().find(|band| band.below.is_nan()) {
            return Err(setting(format!("one that ends at {}", band.below), "of numbers"));
        }
        if let Some(pair) = bands.windows(2).find(|pair| pair[0].below >= pair[1].below) {
            let found = format!("one with {} before {}", pair[0].below, pair[1].below);
            return Err(setting(found, "in ascending order"));
        }
        self.bands = bands;
        Ok(self)
    }

    /// Sets the distance in units around a border within which neighbouring bands are mixed block by block. 0 is a
    /// sharp line.
    pub fn with_transition(mut self, units: f32) -> Result<Self, HeightmapError> {
        let setting = "transition between bands";
        self.transition = within(setting, height(setting, units)?, 0.0..=MAX_UNITS, "zero or more units")?;
        Ok(self)
    }

    /// Uses this block for bare ground wherever the slope (rise over run) is steeper. An infinite slope turns cliffs off.
    pub fn with_cliffs(mut self, slope: f32, block: impl Into<String>) -> Result<Self, HeightmapError> {
        within("slope of cliffs", slope, 0.0..=f32::INFINITY, "zero or more blocks up per block along")?;
        self.cliffs = (slope < f32::INFINITY).then(|| (slope, block.into()));
        Ok(self)
    }

    /// Sets the block of the deeper ground.
    #[must_use]
    pub fn with_stone(mut self, block: impl Into<String>) -> Self {
        self.stone = block.into();
        self
    }

    /// Adds a lake or a sea of this block over all ground below a height in units. By default there is none.
    pub fn with_water(mut self, units: f32, block: impl Into<String>) -> Result<Self, HeightmapError> {
        self.water = Some((height("water level", units)?, block.into()));
        Ok(self)
    }

    /// Sets the seed of the random mixing of bands.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The number of samples along x and z.
    pub fn size(&self) -> [u32; 2] {
        [self.width as u32, self.height as u32]
    }

    /// The lowest and the highest sample, in units.
    pub fn units(&self) -> RangeInclusive<u16> {
        self.lowest..=self.highest
    }

    /// The lowest and the highest surface in blocks, which a dimension's height range must contain.
    pub fn surface_heights(&self) -> RangeInclusive<i64> {
        self.blocks(f64::from(self.lowest))..=self.blocks(f64::from(self.highest))
    }

    /// The y of the highest block of the ground at this place. Water may stand above it.
    pub fn height_at(&self, x: i64, z: i64) -> i64 {
        self.blocks(self.units_at(&self.x.tap(x.into()), &self.z.tap(z.into())))
    }

    /// The slope of the ground at this place: rise over run in the steepest direction.
    pub fn slope_at(&self, x: i64, z: i64) -> f32 {
        self.exact_slope_at(x, z) as f32
    }

    fn exact_slope_at(&self, x: i64, z: i64) -> f64 {
        let [x, z] = [i128::from(x), i128::from(z)];
        let units = |x, z| self.units_at(&self.x.tap(x), &self.z.tap(z));
        self.slope(units(x + 1, z) - units(x - 1, z), units(x, z + 1) - units(x, z - 1))
    }

    fn with_axes(mut self) -> Self {
        let [width, height] = self.size();
        let origin = |samples| if self.centered { samples / 2 } else { 0 };
        self.x = Axis::new(width, self.blocks_per_sample[0], origin(width));
        self.z = Axis::new(height, self.blocks_per_sample[1], origin(height));
        self
    }

    /// The ground's height in units.
    fn units_at(&self, x: &Tap, z: &Tap) -> f64 {
        z.curve(z.samples.map(|row| self.units_along(x, row)))
    }

    /// The ground's height in units on a row of samples.
    fn units_along(&self, x: &Tap, row: usize) -> f64 {
        x.curve(x.samples.map(|sample| f64::from(self.values[row * self.width + sample])))
    }

    /// The y of the highest block of ground at this height in units.
    fn blocks(&self, units: f64) -> i64 {
        ((units - f64::from(self.sea_level)) * f64::from(self.blocks_per_unit)).round() as i64
    }

    /// The slope, from the rise of the ground in units over two blocks along each axis.
    fn slope(&self, along_x: f64, along_z: f64) -> f64 {
        0.5 * f64::from(self.blocks_per_unit) * (along_x * along_x + along_z * along_z).sqrt()
    }

    /// The ground's height in units for a column and one block around it, at index `x + BORDERED * z`.
    fn field(&self, first_x: i64, first_z: i64) -> [f64; BORDERED * BORDERED] {
        let taps_from = |axis: &Axis, first: i64| -> [Tap; BORDERED] {
            std::array::from_fn(|at| axis.tap(i128::from(first) - 1 + at as i128))
        };
        let x_taps = taps_from(&self.x, first_x);
        // A row of samples usually serves several rows of blocks, so each is interpolated along x only once.
        let mut rows: Vec<(usize, [f64; BORDERED])> = Vec::with_capacity(8);
        let mut field = [0.0; BORDERED * BORDERED];
        for (z_tap, line) in taps_from(&self.z, first_z).iter().zip(field.chunks_exact_mut(BORDERED)) {
            let near = z_tap.samples.map(|row| {
                rows.iter().rposition(|(known, _)| *known == row).unwrap_or_else(|| {
                    rows.push((row, x_taps.map(|x| self.units_along(&x, row))));
                    rows.len() - 1
                })
            });
            for (x, units) in line.iter_mut().enumerate() {
                *units = z_tap.curve(near.map(|row| rows[row].1[x]));
            }
        }
        field
    }

    fn ground(&self, blocks: &BlockRegistry) -> Result<GroundBlocks, GenerateError> {
        let id = |name: &str| block_id(blocks, name);
        let bands = self.bands.iter().map(|band| Ok((f64::from(band.below), id(&band.top)?, id(&band.under)?)));
        let cliffs = self.cliffs.as_ref().map(|(slope, block)| Ok((f64::from(*slope), id(block)?)));
        let water = self.water.as_ref().map(|(units, block)| Ok((id(block)?, self.blocks(f64::from(*units)))));
        Ok(GroundBlocks {
            stone: id(&self.stone)?,
            bands: bands.collect::<Result<_, GenerateError>>()?,
            cliffs: cliffs.transpose()?,
            water: water.transpose()?,
        })
    }

    /// The surface at a place of this height and slope.
    fn cell(&self, ground: &GroundBlocks, x: i64, z: i64, units: f64, slope: f64) -> Cell {
        let height = self.blocks(units);
        let [mixing, roughness] = self.chance(x, z);
        if let Some((limit, block)) = ground.cliffs
            && slope * (1.0 + CLIFF_VARIATION * roughness) > limit
        {
            return Cell { height, top: block, under: block };
        }
        let mixed = units + 2.0 * f64::from(self.transition) * mixing;
        let bands = &ground.bands;
        let band = bands.iter().position(|(below, ..)| mixed < *below).unwrap_or(bands.len() - 1);
        let (_, top, under) = bands[band];
        Cell { height, top, under }
    }

    /// Two random numbers within -0.5 .. 0.5 that only depend on the place and the seed. The first is usually close to 0.
    fn chance(&self, x: i64, z: i64) -> [f64; 2] {
        let hash = scramble(scramble(scramble(self.seed) ^ x as u64) ^ z as u64);
        let part = |shift: u32| f64::from((hash >> shift) as u16) / 65_536.0;
        [(part(0) + part(16)) / 2.0 - 0.5, part(32) - 0.5]
    }
}

/// The width of a column with one more block on either side.
const BORDERED: usize = CHUNK_SIZE + 2;

impl Generator for Heightmap {
    fn identity(&self) -> GeneratorIdentity {
        let float = |number: f32| u64::from(number.to_bits());
        let part = |digest: Digest, part: &Option<(f32, String)>| match part {
            Some((number, block)) => digest.number(1).number(float(*number)).text(block),
            None => digest.number(0),
        };
        let digest = [
            self.digest,
            self.seed,
            u64::from(self.centered),
            float(self.blocks_per_sample[0]),
            float(self.blocks_per_sample[1]),
            float(self.blocks_per_unit),
            float(self.sea_level),
            float(self.transition),
            self.bands.len() as u64,
        ]
        .into_iter()
        .fold(Digest::new(), Digest::number);
        let digest = self
            .bands
            .iter()
            .fold(digest, |digest, band| digest.number(float(band.below)).text(&band.top).text(&band.under));
        let digest = part(part(digest.text(&self.stone), &self.cliffs), &self.water);
        GeneratorIdentity::new("terrane:heightmap", 1, digest.finish())
    }

    fn own_seed(&self) -> Option<u64> {
        (self.seed != 0).then_some(self.seed)
    }

    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        let ground = self.ground(request.blocks)?;
        let (first_x, first_z) = (first_block(request.column.x), first_block(request.column.z));
        let field = self.field(first_x, first_z);
        let cells: [Cell; COLUMN_AREA] = std::array::from_fn(|at| {
            let (x, z) = (at % CHUNK_SIZE, at / CHUNK_SIZE);
            let middle = (x + 1) + BORDERED * (z + 1);
            let slope =
                self.slope(field[middle + 1] - field[middle - 1], field[middle + BORDERED] - field[middle - BORDERED]);
            self.cell(&ground, first_x + x as i64, first_z + z as i64, field[middle], slope)
        });
        let floor = self.blocks(f64::from(self.lowest)) - UNDER_DEPTH - ROOTS;
        Terrain { cells, under_depth: UNDER_DEPTH, stone: ground.stone, floor, water: ground.water }.column(request)
    }

    fn surface(&self, request: &SurfaceRequest<'_>) -> Result<SurfaceAnswer, GenerateError> {
        let ground = self.ground(request.blocks)?;
        let (x, z) = (request.x, request.z);
        let units = self.units_at(&self.x.tap(x.into()), &self.z.tap(z.into()));
        let cell = self.cell(&ground, x, z, units, self.exact_slope_at(x, z));
        Ok(cell.surface(ground.water, request.blocks))
    }
}

struct GroundBlocks {
    stone: BlockId,
    /// (upper end in units, top, under), ascending.
    bands: Vec<(f64, BlockId, BlockId)>,
    cliffs: Option<(f64, BlockId)>,
    water: Option<(BlockId, i64)>,
}

impl fmt::Debug for Heightmap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heightmap")
            .field("size", &self.size())
            .field("units", &self.units())
            .field("blocks_per_sample", &self.blocks_per_sample)
            .field("blocks_per_unit", &self.blocks_per_unit)
            .field("sea_level", &self.sea_level)
            .finish_non_exhaustive()
    }
}

fn scale(setting: &'static str, blocks: f32) -> Result<f32, HeightmapError> {
    within(setting, blocks, MIN_SCALE..=MAX_SCALE, "from 1/1024 to 1,048,576 blocks")
}

fn height(setting: &'static str, units: f32) -> Result<f32, HeightmapError> {
    within(setting, units, -MAX_UNITS..=MAX_UNITS, "from -1,000,000 to 1,000,000 units")
}

/// Checks that a setting is within a range. NaN is not.
fn within(
    setting: &'static str,
    number: f32,
    range: RangeInclusive<f32>,
    expected: &'static str,
) -> Result<f32, HeightmapError> {
    match range.contains(&number) {
        true => Ok(number),
        false => Err(HeightmapError::Setting { setting, found: number.to_string(), expected }),
    }
}
