//! Earth, stone and snow.

use super::canvas::{Canvas, everywhere};
use super::noise::{Cells, Dice, Part, clouds, hash, turned_clouds};
use super::{BUILT_IN, EXAMPLES, Texture};

pub fn textures() -> Vec<Texture> {
    let built_in = |name, canvas| Texture::still(BUILT_IN, name, canvas);
    let example = |name, canvas| Texture::still(EXAMPLES, name, canvas);
    vec![
        built_in("stone", stone()),
        built_in("dirt", dirt()),
        built_in("grass_top", grass()),
        built_in("grass_side_overlay", fringe()),
        built_in("sand", sand()),
        built_in("gravel", gravel()),
        built_in("snow", snow()),
        example("cobblestone", cobblestone()),
        example("basalt", basalt()),
        example("marble", marble()),
        example("ore", ore()),
    ]
}

/// Flat layers, darker and lighter, with thin edges.
fn stone() -> Canvas {
    let broad: [&[&str]; 4] =
        [&["ccccc.", ".ccccc"], &["ccc.", "cccc", ".cc."], &[".cccc", "ccc.."], &["cccccc", ".ccc.."]];
    let narrow: [&[&str]; 4] = [&["ccc"], &["cc..", ".ccc"], &["cccc"], &[".cc", "cc."]];
    let mut canvas = Canvas::filled(0x7d7a77);
    let layers = [(8, &broad, 0x737174), (8, &broad, 0x87847f), (6, &narrow, 0x656368), (5, &narrow, 0x928e86)];
    for (seed, (count, shapes, color)) in (50_002..).zip(layers) {
        canvas.scatter(seed, count, shapes, &[('c', color)]);
    }
    canvas.toned([125, 122, 117])
}

/// Clods of earth, with pebbles and hollows.
fn dirt() -> Canvas {
    let clods = |x, y| turned_clouds(21, 4, x, y) * 2 + clouds(22, (4, 2), x, y) + clouds(24, (2, 2), x, y);
    let colors = [(0x664a39, 18), (0x735543, 32), (0x7e6048, 32), (0x8b6d51, 18)];
    let mut canvas = Canvas::ranked(&colors, clods);
    let shapes: [&[&str]; 4] = [&["pp", "qq"], &["h"], &["hh", ".k"], &["pq"]];
    canvas.scatter(23, 10, &shapes, &[('p', 0x9a8771), ('q', 0x685848), ('h', 0x533a30), ('k', 0x957858)]);
    canvas.toned([119, 90, 66])
}

/// Tufts of blades, seen from above.
fn grass() -> Canvas {
    let ground = |x, y| turned_clouds(31, 4, x, y) + clouds(32, (2, 2), x, y);
    let mut canvas = Canvas::ranked(&[(0x55803f, 25), (0x618a48, 45), (0x6c954e, 30)], ground);
    let tufts: [&[&str]; 4] =
        [&["l..", "ml.", ".md"], &["..l", ".lm", "dm."], &["l", "m", "d"], &["l.l", "mm.", ".d."]];
    canvas.scatter(34, 22, &tufts, &[('l', 0x86b05e), ('m', 0x739f52), ('d', 0x4b773c)]);
    canvas.toned([104, 139, 76])
}

/// How far the grass hangs down at each column.
const HANGING: [i32; 16] = [4, 3, 3, 5, 6, 4, 3, 4, 3, 5, 5, 3, 2, 4, 6, 5];

/// The grass that hangs over the edge of a block; the rest is clear.
fn fringe() -> Canvas {
    let top = grass();
    let mut canvas = Canvas::clear();
    for (x, y) in everywhere().filter(|(x, y)| *y < HANGING[*x as usize]) {
        canvas.put(x, y, top.get(x, y));
        let below = HANGING[x as usize] - y;
        canvas.shade(x, y, if y == 0 { 14 } else { [0, -30, -12][below.clamp(0, 3) as usize % 3] });
    }
    canvas.without_fringe()
}

/// Ripples that the wind made, and a few grains.
fn sand() -> Canvas {
    let ripples = |x, y| {
        let bent = y + clouds(41, (8, 8), x + y, y) / 170;
        [0, 260, 520, 340][bent.rem_euclid(4) as usize] + clouds(42, (4, 2), x, y)
    };
    let colors = [(0xc5b083, 10), (0xccb98e, 24), (0xd3c498, 36), (0xd9ca9e, 22), (0xe1d4ab, 8)];
    let mut canvas = Canvas::ranked(&colors, ripples);
    canvas.scatter(43, 6, &[&["d"], &["l"], &["dl"]], &[('d', 0xb9a47a), ('l', 0xe9debb)]);
    canvas.toned([211, 196, 152])
}

/// Draws each cell as a stone in one of these colors: gap, shadow, middle and light.
fn stones(cells: &Cells, seed: u32, gap: u32, colors: &[[u32; 3]]) -> Canvas {
    Canvas::painted(|x, y| {
        let [shadow, middle, light] = colors[(hash(seed, &[cells.of(x, y) as i32]) as usize) % colors.len()];
        match cells.part(x, y) {
            Part::Gap => gap,
            Part::Light => light,
            Part::Middle => middle,
            Part::Shadow => shadow,
        }
    })
}

/// Pebbles of four kinds, lit from the upper left.
fn gravel() -> Canvas {
    let mut canvas = Canvas::ranked(&[(0x645f5d, 50), (0x726c68, 50)], |x, y| clouds(50, (2, 2), x, y));
    let pebbles: [&[&str]; 5] = [
        &[".ll.", "lmmm", "mmmd", ".dd."],
        &["ll.", "lmm", ".dd"],
        &["lm", "md"],
        &["llm", "mmd"],
        &[".l", "lm", "md", "d."],
    ];
    let kinds = [
        (51, 8, [0x6f7178, 0x80838a, 0x969a9f]),
        (52, 9, [0x7c6f65, 0x948577, 0xaa9b8a]),
        (53, 9, [0x7b756f, 0x918b83, 0xaba59a]),
        (54, 7, [0x938d85, 0xaaa49a, 0xc3bdb1]),
    ];
    for (seed, count, [dark, middle, light]) in kinds {
        canvas.scatter(seed, count, &pebbles, &[('l', light), ('m', middle), ('d', dark)]);
    }
    canvas.toned([142, 136, 128])
}

fn cobblestone() -> Canvas {
    let cells = Cells::around(&Dice::new(61).places(9), (2, 3));
    let colors = [[0x686770, 0x807e80, 0x9d9a95], [0x706d6d, 0x8a8783, 0xa5a199], [0x5f6068, 0x767679, 0x929190]];
    let mut canvas = stones(&cells, 62, 0x474650, &colors);
    for (x, y) in everywhere().filter(|(x, y)| cells.part(*x, *y) != Part::Gap) {
        canvas.shade(x, y, if clouds(63, (2, 2), x, y) < 340 { -9 } else { 0 });
    }
    canvas
}

/// Soft dents with blue shadows, and a few sparks.
fn snow() -> Canvas {
    let dents = |x, y| turned_clouds(71, 8, x, y) + clouds(72, (4, 4), x, y) + clouds(74, (4, 2), x, y);
    let colors = [(0xe2e9f1, 14), (0xe8eef3, 30), (0xedf1f4, 36), (0xf2f5f6, 20)];
    let mut canvas = Canvas::ranked(&colors, dents);
    canvas.scatter(75, 5, &[&["l"], &["dl"]], &[('l', 0xfafcfd), ('d', 0xdae3ed)]);
    canvas.toned([236, 240, 242])
}

/// Columns, broken across.
fn basalt() -> Canvas {
    let cells = Cells::around(&Dice::new(81).places(7), (6, 1));
    let colors = [[0x363640, 0x42424b, 0x53535b], [0x3a3b45, 0x484850, 0x5a5a61], [0x32313b, 0x3d3c45, 0x4c4b53]];
    let mut canvas = stones(&cells, 82, 0x26252e, &colors);
    for (x, y) in everywhere() {
        canvas.shade(x, y, (clouds(83, (2, 4), x, y) - 512) / 60);
    }
    canvas
}

/// White stone with grey-blue veins, which wind once around the picture.
fn marble() -> Canvas {
    let shades = |x, y| turned_clouds(94, 8, x, y) + clouds(95, (4, 4), x, y);
    let mut canvas = Canvas::ranked(&[(0xe2e3e5, 26), (0xe9e9ea, 40), (0xefefed, 34)], shades);
    for (seed, slope, vein, beside) in [(91, -1, 0xd0d4da, 0xe0e2e5), (92, 1, 0xa9afbc, 0xd0d4da)] {
        let column = |y| 3 + slope * y + clouds(seed, (8, 4), 0, y) / 130;
        for y in 0..16 {
            let (from, to) = (column(y - 1), column(y));
            canvas.set(to + 1, y, beside);
            (from.min(to)..=from.max(to)).for_each(|x| canvas.set(x, y, vein));
        }
    }
    canvas
}

/// Stone with crystals in it.
fn ore() -> Canvas {
    let mut canvas = stone();
    let crystals: [&[&str]; 3] = [
        &["..w...", ".wlm.k", "wllmdk", ".lmmdk", "..mdk.", "..kk.."],
        &[".w..", "wlmk", "lmdk", "mddk", ".kk."],
        &["..wl", ".lmd", "lmdk", "mdk.", ".k.."],
    ];
    let colors = [('k', 0x4d4c55), ('w', 0xd2fbf0), ('l', 0x77dfd2), ('m', 0x37aeb6), ('d', 0x237591)];
    for (place, shape) in [((1, 0), 0), ((10, 3), 2), ((3, 9), 1), ((10, 10), 0)] {
        canvas.stamp(place, crystals[shape], &colors);
    }
    canvas
}
