//! What a texture is drawn on: 16 x 16 pixels that wrap around at the edges.

use super::noise::Dice;

/// Pixels per side.
pub const SIZE: usize = 16;

/// Red, green, blue and alpha.
pub type Pixel = [u8; 4];

/// A color is written as `0xRRGGBB`.
pub fn opaque(color: u32) -> Pixel {
    let [_, red, green, blue] = color.to_be_bytes();
    [red, green, blue, 255]
}

/// A picture. Coordinates outside of it wrap around, so everything that is drawn tiles.
#[derive(Clone)]
pub struct Canvas([[Pixel; SIZE]; SIZE]);

/// The coordinates of every pixel, line by line.
pub fn everywhere() -> impl Iterator<Item = (i32, i32)> {
    (0..SIZE as i32).flat_map(|y| (0..SIZE as i32).map(move |x| (x, y)))
}

fn wrapped(at: i32) -> usize {
    at.rem_euclid(SIZE as i32) as usize
}

impl Canvas {
    pub fn clear() -> Self {
        Self([[[0; 4]; SIZE]; SIZE])
    }

    pub fn filled(color: u32) -> Self {
        Self([[opaque(color); SIZE]; SIZE])
    }

    pub fn lines(&self) -> impl Iterator<Item = &[Pixel; SIZE]> {
        self.0.iter()
    }

    pub fn pixels(&self) -> impl Iterator<Item = &Pixel> {
        self.0.iter().flatten()
    }

    pub fn get(&self, x: i32, y: i32) -> Pixel {
        self.0[wrapped(y)][wrapped(x)]
    }

    pub fn put(&mut self, x: i32, y: i32, pixel: Pixel) {
        self.0[wrapped(y)][wrapped(x)] = pixel;
    }

    pub fn set(&mut self, x: i32, y: i32, color: u32) {
        self.put(x, y, opaque(color));
    }

    /// Draws a color for each pixel.
    pub fn painted(color: impl Fn(i32, i32) -> u32) -> Self {
        let mut canvas = Self::clear();
        everywhere().for_each(|(x, y)| canvas.set(x, y, color(x, y)));
        canvas
    }

    /// Gives the lowest values of a field the first color, and so on. Each color covers its share of the picture.
    pub fn ranked(colors: &[(u32, u32)], field: impl Fn(i32, i32) -> i32) -> Self {
        let mut order: Vec<_> = everywhere().collect();
        order.sort_by_cached_key(|(x, y)| field(*x, *y));
        let total: u32 = colors.iter().map(|(_, share)| share).sum();
        let mut canvas = Self::clear();
        let (mut start, mut shares) = (0, 0);
        for (color, share) in colors {
            shares += share;
            let end = order.len() * shares as usize / total as usize;
            order[start..end].iter().for_each(|(x, y)| canvas.set(*x, *y, *color));
            start = end;
        }
        canvas
    }

    pub fn rectangle(&mut self, (x, y): (i32, i32), (width, height): (i32, i32), color: u32) {
        (0..height).for_each(|row| (0..width).for_each(|column| self.set(x + column, y + row, color)));
    }

    /// Draws lines of characters, each of which stands for a color. Characters without a color leave the pixel as it is.
    pub fn stamp(&mut self, (x, y): (i32, i32), lines: &[&str], colors: &[(char, u32)]) {
        for (row, line) in lines.iter().enumerate() {
            for (column, letter) in line.chars().enumerate() {
                if let Some((_, color)) = colors.iter().find(|(name, _)| *name == letter) {
                    self.set(x + column as i32, y + row as i32, *color);
                }
            }
        }
    }

    /// Stamps one of several shapes at places spread by chance, the same for each `seed`.
    pub fn scatter(&mut self, seed: u32, count: u32, shapes: &[&[&str]], colors: &[(char, u32)]) {
        let mut dice = Dice::new(seed);
        for place in dice.places(count as usize) {
            let shape = shapes[dice.roll(shapes.len() as u32) as usize];
            self.stamp(place, shape, colors);
        }
    }

    /// Adds `amount` to the colors of a pixel; it may be negative.
    pub fn shade(&mut self, x: i32, y: i32, amount: i32) {
        let [red, green, blue, alpha] = self.get(x, y);
        let [red, green, blue] = [red, green, blue].map(|value| (i32::from(value) + amount).clamp(0, 255) as u8);
        self.put(x, y, [red, green, blue, alpha]);
    }

    /// The mean color of the pixels that are not clear.
    pub fn mean(&self) -> [u8; 3] {
        let drawn: Vec<_> = self.pixels().filter(|pixel| pixel[3] > 0).collect();
        [0, 1, 2].map(|channel| {
            let sum: usize = drawn.iter().map(|pixel| usize::from(pixel[channel])).sum();
            ((sum + drawn.len() / 2) / drawn.len().max(1)) as u8
        })
    }

    /// Shifts all colors so that their mean becomes this one.
    pub fn toned(mut self, color: [u8; 3]) -> Self {
        let mean = self.mean();
        for pixel in self.0.iter_mut().flatten() {
            for channel in 0..3 {
                let shifted = i32::from(pixel[channel]) + i32::from(color[channel]) - i32::from(mean[channel]);
                pixel[channel] = shifted.clamp(0, 255) as u8;
            }
        }
        self
    }

    /// Makes every pixel as transparent as a function of its place says.
    pub fn with_alpha(mut self, alpha: impl Fn(i32, i32) -> u8) -> Self {
        for (x, y) in everywhere() {
            let [red, green, blue, _] = self.get(x, y);
            self.put(x, y, [red, green, blue, alpha(x, y)]);
        }
        self
    }

    /// Gives clear pixels the mean color, so that smaller versions of the picture have no dark fringes.
    pub fn without_fringe(mut self) -> Self {
        let [red, green, blue] = self.mean();
        let clear = self.0.iter_mut().flatten().filter(|pixel| pixel[3] == 0);
        clear.for_each(|pixel| *pixel = [red, green, blue, 0]);
        self
    }
}
