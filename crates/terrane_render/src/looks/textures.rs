//! [`TextureArray`]: all textures of looks in one array, with mipmaps.

use bevy::asset::RenderAssetUsages;
use bevy::image::{ImageAddressMode, ImageFilterMode, ImageSampler, ImageSamplerDescriptor};
use bevy::prelude::*;
use bevy::render::render_resource::{
    Extent3d, TextureDescriptor, TextureDimension, TextureFormat, TextureUsages, TextureViewDescriptor,
    TextureViewDimension,
};

/// The edge of a texture while none is loaded.
const SMALLEST: usize = 16;
/// The widest texture.
const LARGEST: usize = 1_024;

/// A frame of a texture: linear light with straight alpha, 0 to 1.
type Pixels = Vec<[f32; 4]>;

/// The layers of the array, to be filled in order.
pub(super) struct TextureArray {
    edge: usize,
    /// sRGB with alpha, with all mipmaps, layer by layer.
    bytes: Vec<u8>,
    layers: u32,
}

/// A texture that does not fit.
#[derive(Debug, PartialEq)]
pub(super) struct WrongTexture(pub String);

impl TextureArray {
    /// An array for these textures, which begins with a white layer and a checkerboard. It is as wide as the widest of them.
    pub fn new<'a>(images: impl IntoIterator<Item = &'a Image>) -> Self {
        let edge = images.into_iter().map(|image| image.width() as usize).max().unwrap_or(SMALLEST).clamp(1, LARGEST);
        let mut array = Self { edge, bytes: Vec::new(), layers: 0 };
        array.push_layer(&vec![[1.0; 4]; edge * edge], false);
        array.push_layer(&checkerboard(edge), false);
        array
    }

    /// Adds the frames of a texture. Returns their mean color, in linear light, weighted by alpha.
    pub fn push(&mut self, image: &Image, frames: u16, has_holes: bool) -> Result<Vec3, WrongTexture> {
        let (width, height, frames) = (image.width() as usize, image.height() as usize, usize::from(frames));
        let edge = self.edge;
        // A smaller texture is drawn with larger pixels.
        let scale = edge / width.max(1);
        if height != width * frames {
            return Err(WrongTexture(format!("it has {width} x {height} pixels and not {width} x {}", width * frames)));
        }
        if scale * width != edge {
            return Err(WrongTexture(format!(
                "it is {width} pixels wide, which does not divide {edge}, the width of the widest"
            )));
        }
        let image = match image.texture_descriptor.format {
            TextureFormat::Rgba8UnormSrgb => None,
            format => Some(image.convert(TextureFormat::Rgba8UnormSrgb).ok_or_else(|| {
                WrongTexture(format!("its format is {format:?}, which cannot be converted to 8 bits a channel"))
            })?),
        }
        .map_or(std::borrow::Cow::Borrowed(image), std::borrow::Cow::Owned);
        let bytes = image.data.as_deref().unwrap_or_default();
        if bytes.len() != width * height * 4 {
            return Err(WrongTexture(format!("it has {} bytes of pixels and not {}", bytes.len(), width * height * 4)));
        }
        let mut sum = Vec4::ZERO;
        for frame in bytes.chunks_exact(width * width * 4) {
            let pixel = |place: usize| (place / edge / scale * width + place % edge / scale) * 4;
            let pixels: Pixels = (0..edge * edge).map(|place| linear(&frame[pixel(place)..][..4])).collect();
            sum += pixels.iter().map(|[r, g, b, a]| Vec4::new(r * a, g * a, b * a, *a)).sum::<Vec4>();
            self.push_layer(&pixels, has_holes);
        }
        Ok(sum.truncate() / sum.w.max(1e-6))
    }

    pub fn layers(&self) -> u32 {
        self.layers
    }

    fn push_layer(&mut self, pixels: &Pixels, has_holes: bool) {
        let solid = has_holes.then(|| share_of_solid(pixels));
        let mut level = pixels.clone();
        let mut edge = self.edge;
        loop {
            let scale = solid.map_or(1.0, |solid| alpha_scale(&level, solid));
            self.bytes.extend(level.iter().flat_map(|pixel| encoded(*pixel, scale)));
            if edge == 1 {
                break;
            }
            level = halved(&level, edge);
            edge /= 2;
        }
        self.layers += 1;
    }

    pub fn into_image(self) -> Image {
        let levels = self.edge.ilog2() + 1;
        let edge = self.edge as u32;
        let mut image = Image::new_uninit(
            Extent3d { width: edge, height: edge, depth_or_array_layers: self.layers },
            TextureDimension::D2,
            TextureFormat::Rgba8UnormSrgb,
            RenderAssetUsages::RENDER_WORLD,
        );
        image.data = Some(self.bytes);
        image.texture_descriptor = TextureDescriptor {
            label: Some("block textures"),
            mip_level_count: levels,
            usage: TextureUsages::TEXTURE_BINDING | TextureUsages::COPY_DST,
            ..image.texture_descriptor
        };
        image.texture_view_descriptor =
            Some(TextureViewDescriptor { dimension: Some(TextureViewDimension::D2Array), ..default() });
        image.sampler = ImageSampler::Descriptor(ImageSamplerDescriptor {
            address_mode_u: ImageAddressMode::Repeat,
            address_mode_v: ImageAddressMode::Repeat,
            mag_filter: ImageFilterMode::Nearest,
            min_filter: ImageFilterMode::Linear,
            mipmap_filter: ImageFilterMode::Linear,
            ..default()
        });
        image
    }
}

fn checkerboard(edge: usize) -> Pixels {
    let half = edge.div_ceil(2).max(1);
    let pixel = |place: usize| {
        if (place % edge / half + place / edge / half).is_multiple_of(2) {
            [1.0, 0.0, 1.0, 1.0]
        } else {
            [0.0, 0.0, 0.0, 1.0]
        }
    };
    (0..edge * edge).map(pixel).collect()
}

fn linear(pixel: &[u8]) -> [f32; 4] {
    let color = Srgba::rgba_u8(pixel[0], pixel[1], pixel[2], pixel[3]);
    LinearRgba::from(color).to_f32_array()
}

fn encoded([red, green, blue, alpha]: [f32; 4], alpha_scale: f32) -> [u8; 4] {
    Srgba::from(LinearRgba::new(red, green, blue, (alpha * alpha_scale).min(1.0))).to_u8_array()
}

/// The next mipmap. Transparent pixels do not color their neighbors.
fn halved(pixels: &Pixels, edge: usize) -> Pixels {
    let half = edge / 2;
    let mean = |place: usize| {
        let (x, y) = (place % half * 2, place / half * 2);
        let four = [(x, y), (x + 1, y), (x, y + 1), (x + 1, y + 1)].map(|(x, y)| pixels[y * edge + x]);
        let alpha: f32 = four.iter().map(|pixel| pixel[3]).sum();
        let channel = |channel: usize| {
            let weighted: f32 = four.iter().map(|pixel| pixel[channel] * pixel[3]).sum();
            if alpha > 0.0 { weighted / alpha } else { four.iter().map(|pixel| pixel[channel]).sum::<f32>() / 4.0 }
        };
        [channel(0), channel(1), channel(2), alpha / 4.0]
    };
    (0..half * half).map(mean).collect()
}

fn share_of_solid(pixels: &Pixels) -> f32 {
    pixels.iter().filter(|pixel| pixel[3] >= 0.5).count() as f32 / pixels.len() as f32
}

/// The factor for alpha that keeps the share of solid pixels, so that leaves do not become thinner with the distance (Castaño,
/// "Computing Alpha Mipmaps", 2010).
fn alpha_scale(pixels: &Pixels, solid: f32) -> f32 {
    let mut alphas: Vec<_> = pixels.iter().map(|pixel| pixel[3]).collect();
    alphas.sort_by(|a, b| b.total_cmp(a));
    let kept = ((solid * alphas.len() as f32).round() as usize).clamp(1, alphas.len());
    0.5 / alphas[kept - 1].max(0.05)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(edge: u32, height: u32, pixel: impl Fn(u32, u32) -> [u8; 4]) -> Image {
        let bytes: Vec<u8> =
            (0..height).flat_map(|y| (0..edge).map(move |x| (x, y))).flat_map(|(x, y)| pixel(x, y)).collect();
        Image::new(
            Extent3d { width: edge, height, depth_or_array_layers: 1 },
            TextureDimension::D2,
            bytes,
            TextureFormat::Rgba8UnormSrgb,
            RenderAssetUsages::MAIN_WORLD,
        )
    }

    #[test]
    fn each_frame_is_a_layer_with_all_mipmaps() {
        let red_over_green = image(4, 8, |_, y| if y < 4 { [255, 0, 0, 255] } else { [0, 255, 0, 255] });
        let mut array = TextureArray::new([&red_over_green]);
        let mean = array.push(&red_over_green, 2, false).unwrap();
        assert!((mean - Vec3::new(0.5, 0.5, 0.0)).length() < 1e-5, "{mean}");
        assert_eq!(array.layers(), 2 + 2);
        let image = array.into_image();
        let bytes = image.data.unwrap();
        let layer = (16 + 4 + 1) * 4;
        assert_eq!(bytes.len(), 4 * layer);
        assert!(bytes[..layer].iter().all(|byte| *byte == 255), "the first layer is white");
        assert!(bytes[2 * layer..3 * layer].chunks(4).all(|pixel| pixel == [255, 0, 0, 255]));
        assert!(bytes[3 * layer..].chunks(4).all(|pixel| pixel == [0, 255, 0, 255]));
        assert_eq!(image.texture_descriptor.mip_level_count, 3);
    }

    #[test]
    fn a_texture_of_half_the_size_has_larger_pixels_and_others_are_refused() {
        let stripes = image(2, 2, |x, _| if x == 0 { [255, 0, 0, 255] } else { [0, 0, 255, 255] });
        let large = image(4, 4, |_, _| [1; 4]);
        let mut array = TextureArray::new([&stripes, &large]);
        array.push(&stripes, 1, false).unwrap();
        let first = &array.bytes[2 * 21 * 4..][..16 * 4];
        for (place, pixel) in first.chunks(4).enumerate() {
            assert_eq!(pixel[0] == 255, place % 4 < 2, "{place}");
        }
        assert!(array.push(&image(3, 3, |_, _| [1; 4]), 1, false).unwrap_err().0.contains("does not divide 4"));
        assert!(
            array.push(&large, 2, false).unwrap_err().0.contains("4 x 4 pixels and not 4 x 8"),
            "frames are missing"
        );
        assert_eq!(array.layers(), 2 + 1);
    }

    /// Mean brightness is kept in linear light, not in sRGB, and holes neither darken nor vanish.
    #[test]
    fn mipmaps_keep_brightness_and_holes() {
        let stripes = image(4, 4, |x, _| if x % 2 == 0 { [255, 255, 255, 255] } else { [0, 0, 0, 255] });
        let mut array = TextureArray::new([&stripes]);
        array.push(&stripes, 1, false).unwrap();
        let last = array.bytes.len() - 4;
        assert_eq!(array.bytes[last..], [188, 188, 188, 255], "188 in sRGB is half of the light");
        let holes = image(4, 4, |x, y| if x + y < 2 { [0, 0, 0, 0] } else { [0, 255, 0, 255] });
        array.push(&holes, 1, true).unwrap();
        let levels = &array.bytes[array.bytes.len() - 21 * 4..];
        assert!(levels[16 * 4..].chunks(4).all(|pixel| pixel[1] == 255), "the holes' black does not show");
        let solid = levels[16 * 4..20 * 4].chunks(4).filter(|pixel| pixel[3] >= 128).count();
        assert_eq!(solid, 3, "13 of 16 is three of four");
    }
}
