//! Bricks, glass, lamps and torches.

use super::canvas::Canvas;
use super::noise::{clouds, hash};
use super::{EXAMPLES, Texture};

pub fn textures() -> Vec<Texture> {
    let example = |name, canvas| Texture::still(EXAMPLES, name, canvas);
    vec![
        example("brick", brick()),
        example("glass", glass([0xcfe6ea, 0xf2fbfb], 46)),
        example("stained_glass_red", glass([0xa32a2c, 0xe0675a], 120)),
        example("stained_glass_blue", glass([0x2c4fa3, 0x6d92e0], 120)),
        example("pane_edge", pane_edge()),
        example("iron_bars", iron_bars()),
        example("lamp_off", lamp(false)),
        example("lamp_on", lamp(true)),
        example("torch", torch()),
        Texture { folder: EXAMPLES, name: "torch_flame", frames: (0..4).map(flame).collect() },
        example("colour_test", color_test()),
    ]
}

fn brick() -> Canvas {
    let tones = [[0x6e2f2a, 0x8d4034, 0xa85544], [0x7a362c, 0x9a4a39, 0xb4604a], [0x642a2b, 0x803a34, 0x9a4e42]];
    Canvas::painted(|x, y| {
        let row = y / 4;
        let along = (x + row % 2 * 4).rem_euclid(16);
        let [dark, middle, light] = tones[hash(181, &[row, along / 8]) as usize % 3];
        match (along % 8, y % 4) {
            (7, 3) | (_, 3) if clouds(182, (2, 2), x, y) < 500 => 0x9d9184,
            (_, 3) => 0xada294,
            (7, _) => 0xa49888,
            (_, 0) | (0, _) => light,
            (_, 2) | (6, _) => dark,
            _ if clouds(183, (2, 2), x, y) < 380 => dark,
            _ => middle,
        }
    })
}

/// A pane in a frame, with two reflections.
fn glass([color, light]: [u32; 2], alpha: u8) -> Canvas {
    let edge = |x: i32, y: i32| x.min(y).min(15 - x).min(15 - y);
    let glint =
        |x: i32, y: i32| edge(x, y) > 1 && matches!((x + y, x - y), (9 | 10, -5..=5) | (19, -3..=5) | (13, -1..=4));
    let canvas = Canvas::painted(|x, y| match edge(x, y) {
        0 if x == 0 || y == 0 => light,
        _ if glint(x, y) => light,
        _ => color,
    });
    canvas.with_alpha(|x, y| match edge(x, y) {
        0 => 200,
        _ if glint(x, y) => alpha + 55,
        _ => alpha,
    })
}

/// The narrow side of a pane: a lit and a shaded line, again and again, so that each part of it will do.
fn pane_edge() -> Canvas {
    let canvas = Canvas::painted(|x, y| match (x % 2, y) {
        (1, 0) => 0xf2fbfb,
        (1, _) => 0xdceef0,
        (_, 15) => 0x9db8bf,
        _ => 0xbcd6db,
    });
    canvas.with_alpha(|_, _| 200)
}

fn iron_bars() -> Canvas {
    let mut canvas = Canvas::clear();
    for bar in [1, 5, 9, 13] {
        canvas.rectangle((bar, 0), (1, 16), 0x8d9299);
        canvas.rectangle((bar + 1, 0), (1, 16), 0x4f535d);
    }
    for (y, color) in [(3, 0x9da2a8), (4, 0x5b5f69), (11, 0x9da2a8), (12, 0x5b5f69)] {
        canvas.rectangle((0, y), (16, 1), color);
    }
    canvas.without_fringe()
}

/// Glass in a metal frame. The light of the lamp is brightest in the middle.
fn lamp(is_on: bool) -> Canvas {
    let glass = if is_on { [0xfff6c8, 0xffe79a, 0xffd066, 0xf2ad45] } else { [0x8a7357, 0x7b654d, 0x6b5744, 0x5c4b3d] };
    Canvas::painted(|x, y| {
        let edge = x.min(y).min(15 - x).min(15 - y);
        let out = ((2 * x - 15).pow(2) + (2 * y - 15).pow(2)).isqrt() / 4;
        let bar = |at: i32| matches!(at, 5 | 10);
        match edge {
            0 if x == 0 || y == 0 => 0x767a85,
            0 => 0x3a3c48,
            1 => 0x555965,
            _ if bar(x) || bar(y) => [0x4d505c, 0x9a7a4a][usize::from(is_on)],
            _ => glass[out.clamp(0, 3) as usize],
        }
    })
}

/// Colors of stick and flame.
const TORCH: [(char, u32); 9] = [
    ('a', 0x4b3524),
    ('b', 0x6e5033),
    ('c', 0x8f6c43),
    ('k', 0x2e2320),
    ('r', 0xd8481a),
    ('o', 0xf5861f),
    ('y', 0xffbf38),
    ('l', 0xffe57c),
    ('w', 0xfff8d8),
];

/// The stick fills the columns 7 and 8 of the lower ten rows; its tip glows. The flame is above.
fn torch() -> Canvas {
    let mut canvas = Canvas::clear();
    canvas.stamp((7, 6), &["lw", "oy", "kk", "cb", "cb", "ba", "cb", "cb", "ba", "ba"], &TORCH);
    canvas.stamp((6, 2), FLAMES[0], &TORCH);
    canvas.without_fringe()
}

const FLAMES: [&[&str]; 4] = [
    &["..r.", ".oo.", ".yyo", "oylo"],
    &[".r..", ".or.", "oyo.", "olyo"],
    &["....", ".ro.", "oyy.", "oylo"],
    &["...r", ".ro.", ".yyo", "oylo"],
];

/// The flame of the torch alone.
fn flame(frame: i32) -> Canvas {
    let mut canvas = Canvas::clear();
    canvas.stamp((6, 2), FLAMES[frame as usize], &TORCH);
    canvas.stamp((7, 6), &["lw", "oy"], &TORCH);
    canvas.without_fringe()
}

/// Red in the north-west, green in the north-east, blue in the south-west, white in the south-east.
fn color_test() -> Canvas {
    Canvas::painted(|x, y| match (x < 8, y < 8) {
        (true, true) => 0xff0000,
        (false, true) => 0x00ff00,
        (true, false) => 0x0000ff,
        (false, false) => 0xffffff,
    })
}
