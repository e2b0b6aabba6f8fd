//! Leaves, flowers and other plants. What is not plant is clear.

use super::canvas::Canvas;
use super::noise::Dice;
use super::{BUILT_IN, EXAMPLES, Texture};

pub fn textures() -> Vec<Texture> {
    let example = |name, lines: &[&str]| {
        let mut canvas = Canvas::clear();
        canvas.stamp((0, 16 - lines.len() as i32), lines, &COLORS);
        Texture::still(EXAMPLES, name, canvas.without_fringe())
    };
    vec![
        Texture::still(BUILT_IN, "leaves", leaves()),
        example("flower_red", &POPPY),
        example("flower_yellow", &DANDELION),
        example("tall_grass", &TALL_GRASS),
        Texture::still(EXAMPLES, "fern", fern()),
        example("mushroom", &MUSHROOM),
    ]
}

/// Leaves above each other, the lower ones darker, with holes between them.
fn leaves() -> Canvas {
    let mut canvas = Canvas::clear();
    let shapes: [&[&str]; 3] = [&[".ll.", "lmmd", ".md."], &["ll.", "lmm", ".md"], &[".l.", "lmm", "lmd", ".d."]];
    let layers = [[0x3c6236, 0x325530, 0x29482a], [0x55823f, 0x466f38, 0x375c31], [0x83aa5a, 0x628f4a, 0x4a763d]];
    for (leaf, place) in Dice::new(1_171).places(30).into_iter().enumerate() {
        let [light, middle, dark] = layers[leaf / 10];
        canvas.stamp(place, shapes[leaf % 3], &[('l', light), ('m', middle), ('d', dark)]);
    }
    canvas.toned([76, 111, 62]).without_fringe()
}

/// A stem with pairs of leaves, which rise and droop again at their tips.
fn fern() -> Canvas {
    let mut canvas = Canvas::clear();
    let rise = [0, 0, 1, 1, 1, 1, 0, 0];
    for (pair, length) in [1, 2, 4, 5, 6, 5, 3].into_iter().enumerate() {
        let y = 2 + 2 * pair as i32;
        for out in 1..=length {
            let color = [0x4b7d3d, 0x568a43, 0x74a653, 0x9cc56c][(out * 4 / (length + 1)) as usize];
            let droop = i32::from(out == length && length > 3);
            canvas.set(7 - out, y - rise[out as usize] + droop, color);
            canvas.set(7 + out, y + 1 - rise[out as usize] + droop, color);
        }
    }
    canvas.rectangle((7, 3), (1, 13), 0x3f6f38);
    canvas.rectangle((7, 1), (1, 2), 0x9cc56c);
    canvas.without_fringe()
}

/// What the letters below stand for: `a` to `e` are greens from dark to light, `r` to `v` reds, `y` to `{` yellows.
const COLORS: [(char, u32); 17] = [
    ('a', 0x2c4f2e),
    ('b', 0x3f6f38),
    ('c', 0x568a43),
    ('d', 0x74a653),
    ('e', 0x9cc56c),
    ('q', 0x5a1420),
    ('r', 0x8e1f26),
    ('s', 0xc2322c),
    ('t', 0xe2523a),
    ('u', 0xf58a63),
    ('k', 0x2b1b22),
    ('x', 0xb56a12),
    ('y', 0xe0981a),
    ('z', 0xf7c92f),
    ('w', 0xfdeb86),
    ('i', 0xe9dcc0),
    ('j', 0xbba986),
];

const POPPY: [&str; 13] = [
    "......uu........",
    "....uutttt......",
    "...uttsstts.....",
    "...ttskksts.....",
    "...tsskkssr.....",
    "...rsssssrr.....",
    "....rrssrq......",
    ".......c........",
    "...d...b...d....",
    "...cd..b..dc....",
    "....bc.c.cb.....",
    ".....bbcba......",
    ".......b........",
];

const DANDELION: [&str; 11] = [
    ".....www........",
    "....wzzzz.......",
    "...wzzyzzy......",
    "...zzyxyzy......",
    "....yzyyyx......",
    ".....xyxx.......",
    ".......b...d....",
    "..d....c..dc....",
    "..cd...b.cb.....",
    "...bcc.c.ba.....",
    ".....abba.......",
];

const TALL_GRASS: [&str; 15] = [
    ".......e........",
    "...e...d....e...",
    "...d..dd....d...",
    "e..dd.dc...dd...",
    "d...d.dc...dc..e",
    "dd..c.dc.e.dc..d",
    ".d..cdcc.d.cc.dd",
    ".cd.cdcb.ddcb.dc",
    ".cc..cdb.dccb.cc",
    "..cd.ccb.cdcbdcb",
    "..cc.bcb.ccbbccb",
    "..bccbcbdcbbcbb.",
    "...bcbbbccbacb..",
    "...bbcabcbabbb..",
    "....baabbaaba...",
];

const MUSHROOM: [&str; 11] = [
    "......uutt......",
    "....uuttttts....",
    "...utiitttsss...",
    "..uttiittsssis..",
    "..ttttttssssss..",
    ".ttittsssiisssr.",
    ".tstsssssiissrr.",
    ".rrsssrrrrrrrrq.",
    "...qqjiijqqqq...",
    "......iij..d....",
    "...c..iijd.c....",
];
