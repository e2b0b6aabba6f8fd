//! Makes the pictures of README and guide again: `cargo xtask pictures`, or with names only these.
//!
//! Runs the examples without a window in a temporary folder, scales their pictures, and puts several side by side where a picture
//! compares.

use color_quant::NeuQuant;
use image::imageops::{FilterType, overlay, resize};
use image::{Rgba, RgbaImage};
use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::process::Command;

/// The pictures of the documentation: the name, the example, its pictures from left to right, and their width.
const PICTURES: [(&str, &str, &[&str], u32); 21] = [
    ("arena", "arena", &["before", "ruins", "after"], 640),
    ("barrels", "barrels", &["barrels"], 960),
    ("blocks", "blocks", &["day"], 960),
    ("dimensions", "dimensions", &["dimensions"], 960),
    ("edit", "edit", &["edit"], 960),
    ("first_world", "first_world", &["first_world"], 960),
    ("halted", "jacksboro", &["halted"], 1_280),
    ("horizon", "horizon", &["horizon"], 1_280),
    ("islands", "islands", &["islands"], 960),
    ("jacksboro", "jacksboro", &["jacksboro"], 1_280),
    ("light", "cave", &["torch", "cave"], 640),
    ("mobs", "mobs", &["mobs"], 960),
    ("multiplayer", "multiplayer", &["multiplayer"], 960),
    ("overlay", "jacksboro", &["overlay"], 1_280),
    ("smooth", "smooth", &["smooth"], 960),
    ("sparse_sky", "sparse_sky", &["sparse_sky"], 960),
    ("why_gone", WINDOW, &["why_gone"], 960),
    ("why_halted", WINDOW, &["why_halted"], 960),
    ("why_held", WINDOW, &["why_held"], 960),
    ("why_missing", WINDOW, &["why_missing"], 960),
    ("why_slow", WINDOW, &["why_slow"], 960),
];

/// Stands for the test in a window, which clicks through the example `troubles`. `cargo xtask pictures` runs it before, with its pictures in the
/// folder that this variable names.
const WINDOW: &str = "TERRANE_WINDOW_PICTURES";

/// Pixels between pictures that stand side by side.
const GAP: u32 = 6;

fn main() -> Result<(), Box<dyn Error>> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if let Some(name) = wanted.iter().find(|name| PICTURES.iter().all(|(picture, ..)| picture != name)) {
        return Err(format!("there is no picture {name:?}").into());
    }
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/images");
    let folder = tempfile::tempdir()?;
    for (name, example, parts, width) in PICTURES.into_iter().filter(|(name, ..)| is_wanted(name)) {
        let taken = match example {
            WINDOW => std::env::var(WINDOW).map_err(|error| format!("{WINDOW}: {error}"))?.into(),
            _ => folder.path().join("target/examples").join(example),
        };
        if !taken.exists() {
            run(example, folder.path())?;
        }
        let parts =
            parts.iter().map(|part| image::open(taken.join(format!("{part}.png"))).map(|image| image.to_rgba8()));
        let picture = side_by_side(&parts.collect::<Result<Vec<_>, _>>()?, width);
        write(&picture, &documents.join(format!("{name}.png")))?;
        println!("docs/images/{name}.png");
    }
    Ok(())
}

/// Runs an example, built beside this program, until it has taken its pictures.
fn run(example: &str, folder: &Path) -> Result<(), Box<dyn Error>> {
    let example_of_the_package = std::env::current_exe()?.with_file_name("examples").join(example);
    // `barrels` is a package of its own.
    let other = std::env::current_exe()?.with_file_name(example);
    let program = if example_of_the_package.exists() { example_of_the_package } else { other };
    // Without a display, the display driver stays silent.
    let status =
        Command::new(program).arg("--headless").current_dir(folder).env("XDG_RUNTIME_DIR", "/nonexistent").status()?;
    if status.success() { Ok(()) } else { Err(format!("{example} fails: {status}").into()) }
}

fn side_by_side(parts: &[RgbaImage], width: u32) -> RgbaImage {
    let scaled = |part: &RgbaImage| resize(part, width, width * part.height() / part.width(), FilterType::Lanczos3);
    let scaled: Vec<RgbaImage> = parts.iter().map(scaled).collect();
    let count = scaled.len() as u32;
    let height = scaled.iter().map(RgbaImage::height).max().unwrap_or(0);
    let mut picture = RgbaImage::from_pixel(count * (width + GAP) - GAP, height, Rgba([255; 4]));
    for (part, number) in scaled.iter().zip(0..) {
        overlay(&mut picture, part, number * i64::from(width + GAP), 0);
    }
    picture
}

/// Writes a PNG of 256 colors, which takes a third of the bytes.
fn write(picture: &RgbaImage, path: &Path) -> Result<(), Box<dyn Error>> {
    let colors = NeuQuant::new(3, 256, picture.as_raw());
    let mut encoder = png::Encoder::new(BufWriter::new(File::create(path)?), picture.width(), picture.height());
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_compression(png::Compression::High);
    encoder.set_palette(colors.color_map_rgb());
    encoder.write_header()?.write_image_data(&dithered(picture, &colors))?;
    Ok(())
}

/// The nearest color of each pixel; what it is off goes to its neighbors (Floyd and Steinberg, 1976).
fn dithered(picture: &RgbaImage, colors: &NeuQuant) -> Vec<u8> {
    let (width, height) = (picture.width() as usize, picture.height() as usize);
    let mut off = vec![[0i32; 3]; width * height];
    let mut indices = Vec::with_capacity(width * height);
    for (place, pixel) in picture.pixels().enumerate() {
        let wanted: [i32; 3] =
            std::array::from_fn(|channel| (i32::from(pixel[channel]) + off[place][channel] / 16).clamp(0, 255));
        let mut nearest = [wanted[0] as u8, wanted[1] as u8, wanted[2] as u8, 255];
        indices.push(colors.index_of(&nearest) as u8);
        colors.map_pixel(&mut nearest);
        let (x, y) = (place % width, place / width);
        let beside = [(x + 1, y, 7), (x.wrapping_sub(1), y + 1, 3), (x, y + 1, 5), (x + 1, y + 1, 1)];
        for (x, y, share) in beside.into_iter().filter(|(x, y, _)| *x < width && *y < height) {
            (0..3).for_each(|channel| {
                off[y * width + x][channel] += (wanted[channel] - i32::from(nearest[channel])) * share
            });
        }
    }
    indices
}
