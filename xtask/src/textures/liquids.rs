//! Water, lava and ice.

use super::canvas::Canvas;
use super::noise::{Cells, Dice, FRAMES, clouds, moving_clouds};
use super::{BUILT_IN, EXAMPLES, Texture};

pub fn textures() -> Vec<Texture> {
    vec![
        Texture { folder: BUILT_IN, name: "water", frames: (0..FRAMES).map(water).collect() },
        Texture { folder: EXAMPLES, name: "lava", frames: (0..FRAMES).map(lava).collect() },
        Texture::still(EXAMPLES, "ice", ice()),
    ]
}

/// Swaying shades, with light on the crests.
fn water(frame: i32) -> Canvas {
    let sway = |seed, spot, x, y| moving_clouds(seed, spot, (x, y), frame);
    let height = |x, y| sway(101, (8, 4), x + y, y) + sway(102, (8, 2), x, y) + sway(103, (4, 4), x, y + x) / 2;
    let colors = [(0x3a6690, 20), (0x416d93, 36), (0x497698, 26), (0x5783a3, 12), (0x7ba7be, 6)];
    let canvas = Canvas::ranked(&colors, height).toned([66, 110, 142]);
    let brightness = canvas.clone();
    canvas.with_alpha(|x, y| 160 + brightness.get(x, y)[0] / 8)
}

/// Plates of crust with glowing seams between them.
fn lava(frame: i32) -> Canvas {
    let plates = Cells::around(&Dice::new(111).places(7), (1, 1));
    let heat = |x, y| {
        let (bent, low) = (x + clouds(112, (4, 4), x, y) / 400, y + clouds(113, (4, 4), x, y) / 400);
        let sway = moving_clouds(114, (8, 8), (x + y, y - x), frame) + moving_clouds(115, (4, 4), (x, y), frame) / 2;
        sway - 1400 * plates.depth(bent, low) / (plates.depth(bent, low) + 30)
    };
    let colors = [(0x6b1d14, 16), (0x8f2911, 22), (0xbf430e, 22), (0xe36d14, 18), (0xf8a128, 14), (0xffd968, 8)];
    Canvas::ranked(&colors, heat)
}

/// Pale blue with white cracks.
fn ice() -> Canvas {
    let depth = |x, y| clouds(121, (8, 8), x + y, y) * 2 + clouds(122, (4, 4), x, y);
    let mut canvas = Canvas::ranked(&[(0x86b4e0, 24), (0x98c2e8, 42), (0xa9cfee, 34)], depth);
    let crack = ["w.......", ".w......", "..www...", ".....w..", ".....ww.", ".......w"];
    let split = ["...w", "..w.", ".ww.", "w..."];
    for (place, shape) in [((1, 2), &crack[..]), ((9, 8), &crack[..]), ((10, 1), &split[..]), ((3, 10), &split[..])] {
        canvas.stamp(place, shape, &[('w', 0xdcefff)]);
    }
    let bright = canvas.clone();
    canvas.with_alpha(move |x, y| if bright.get(x, y)[0] > 200 { 215 } else { 170 })
}
