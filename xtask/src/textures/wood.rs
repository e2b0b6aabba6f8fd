//! Trunks, and what is made of planks.

use super::canvas::{Canvas, everywhere};
use super::noise::{clouds, hash};
use super::{BUILT_IN, EXAMPLES, Texture};

pub fn textures() -> Vec<Texture> {
    let built_in = |name, canvas| Texture::still(BUILT_IN, name, canvas);
    let example = |name, canvas| Texture::still(EXAMPLES, name, canvas);
    vec![
        built_in("wood_side", bark()),
        built_in("wood_top", rings()),
        example("planks", planks()),
        example("crate_side", crate_face(true)),
        example("crate_top", crate_face(false)),
        example("bookshelf", bookshelf()),
    ]
}

/// Ridges of bark between winding grooves.
fn bark() -> Canvas {
    let canvas = Canvas::painted(|x, y| {
        let bent = x + clouds(20_131, (8, 8), x, y) / 300;
        let strip = bent.rem_euclid(16) / 4;
        let along = (y + strip * 5).rem_euclid(16);
        let broken = along % 8 == 0 && hash(20_132, &[strip, along / 8]).is_multiple_of(3);
        let fleck = clouds(20_133, (2, 4), x, y);
        match bent.rem_euclid(4) {
            0 => 0x3c2a22,
            _ if broken => 0x46332a,
            1 if fleck > 380 => 0x8a6c4a,
            3 if fleck < 640 => 0x543e30,
            _ if fleck < 400 => 0x5f4838,
            _ if fleck > 700 => 0x7d6043,
            _ => 0x6d533b,
        }
    });
    canvas.toned([101, 78, 54])
}

/// Year rings within the bark.
fn rings() -> Canvas {
    Canvas::painted(|x, y| {
        let (across, down) = ((2 * x - 15).abs(), (2 * y - 15).abs());
        if across.max(down) == 15 {
            return if clouds(141, (2, 2), x, y) < 500 { 0x4b382b } else { 0x66503a };
        }
        let round = (across * across + down * down).isqrt();
        let out = (across.max(down) + round + (clouds(142, (4, 4), x, y) - 512) / 300) / 2;
        match out {
            0..2 => 0x7b5b3a,
            13.. => 0x7d6040,
            _ if out / 2 % 2 == 1 => 0x96764c,
            _ if clouds(143, (4, 4), x, y) < 500 => 0xb08f60,
            _ => 0xbd9d6c,
        }
    })
}

const PLANK: [u32; 5] = [0x6b4c2e, 0x8d683f, 0xa37b4c, 0xb48b58, 0xc59d68];

/// The color of boards that run across, each four pixels high.
fn board(x: i32, y: i32) -> u32 {
    let row = y.rem_euclid(16) / 4;
    let grain = clouds(150 + row as u32, (8, 1), x + 3 * row, y) + (hash(155, &[row]) % 240) as i32;
    match y % 4 {
        3 => PLANK[0],
        _ if grain < 300 => PLANK[1],
        0 if grain > 500 => PLANK[4],
        _ if grain < 660 => PLANK[2],
        _ => PLANK[3],
    }
}

/// Boards with joints, and nails beside them.
fn planks() -> Canvas {
    let mut canvas = Canvas::painted(board);
    for (row, joint) in [(0, 3), (1, 11), (2, 6), (3, 14)] {
        canvas.rectangle((joint, row * 4), (1, 3), PLANK[0]);
        canvas.rectangle((joint + 1, row * 4), (1, 3), PLANK[4]);
        for nail in [joint - 2, joint + 2] {
            canvas.set(nail, row * 4 + 1, 0x7a5634);
        }
    }
    canvas
}

/// Boards in a frame; on the sides a brace runs across them.
fn crate_face(is_side: bool) -> Canvas {
    let mut canvas = Canvas::painted(|x, y| if is_side { board(y, x) } else { board(x, y + 2) });
    for (x, y) in everywhere() {
        let edge = x.min(y).min(15 - x).min(15 - y);
        let along = if (x.min(15 - x)) <= y.min(15 - y) { y } else { x };
        let off = if is_side { x + y - 15 } else { 9 };
        let frame = if (along * 7 + edge * 3) % 5 == 0 { 0x94703f } else { 0xa98250 };
        match (edge, off) {
            (0, _) => canvas.set(x, y, if y == 0 || x == 0 { 0xc8a26c } else { 0x7c5a35 }),
            (1, _) => canvas.set(x, y, frame),
            (2, _) => canvas.set(x, y, if x == 2 || y == 2 { 0x553b25 } else { 0x6f5030 }),
            (_, -1) => canvas.set(x, y, 0xc8a26c),
            (_, 0) => canvas.set(x, y, 0xa98250),
            (_, 1) => canvas.set(x, y, 0x94703f),
            (_, 2) => canvas.set(x, y, 0x553b25),
            _ => canvas.shade(x, y, -22),
        }
    }
    for (x, y) in [(1, 1), (14, 1), (1, 14), (14, 14)] {
        canvas.set(x, y, 0x4a3a30);
    }
    canvas
}

/// Two shelves of books.
fn bookshelf() -> Canvas {
    let mut canvas = Canvas::painted(|x, y| if x % 15 == 0 { PLANK[2] } else { board(x, y / 8 * 4 + y % 8 / 7) });
    let spines = [0x8f3b35, 0x3d5c86, 0x5b7a45, 0xb08a3e, 0x6e4a78, 0x3f7a78, 0xa5623a];
    for (shelf, widths) in [(1, [2, 3, 2, 1, 3, 2, 1]), (9, [3, 1, 2, 2, 2, 3, 1])] {
        canvas.rectangle((1, shelf), (14, 6), 0x2e2019);
        let mut x = 1;
        for (book, width) in widths.into_iter().enumerate() {
            let low = shelf + [0, 1, 0, 2, 0, 1, 1][(book + shelf as usize) % 7];
            let end = shelf + 6;
            canvas.rectangle((x, low), (width, end - low), spines[(book * 3 + shelf as usize) % 7]);
            (low..end).for_each(|y| canvas.shade(x, y, 20));
            (low..end).for_each(|y| canvas.shade(x + width - 1, y, if width > 1 { -26 } else { -34 }));
            if width == 3 {
                canvas.rectangle((x + 1, low + 1), (1, 2), 0xdcc890);
            } else if book % 2 == 0 {
                canvas.rectangle((x, end - 2), (width, 1), 0xc9a95e);
            }
            x += width;
        }
        canvas.rectangle((1, shelf + 6), (14, 1), PLANK[3]);
        canvas.rectangle((1, shelf + 7), (14, 1), PLANK[0]);
    }
    canvas.rectangle((0, 0), (16, 1), PLANK[4]);
    canvas
}
