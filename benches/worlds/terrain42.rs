//! terrain42: deterministic synthetic region, integer maths only. usage: gen OUTDIR
pub const W: usize = 384;
pub const H: usize = 384;
pub const L: usize = 384;
pub const NAMES: [&str; 44] = [
    "minecraft:air",
    "minecraft:bedrock",
    "minecraft:deepslate[axis=y]",
    "minecraft:stone",
    "minecraft:granite",
    "minecraft:diorite",
    "minecraft:andesite",
    "minecraft:tuff",
    "minecraft:gravel",
    "minecraft:dirt",
    "minecraft:coal_ore",
    "minecraft:iron_ore",
    "minecraft:copper_ore",
    "minecraft:gold_ore",
    "minecraft:redstone_ore[lit=false]",
    "minecraft:lapis_ore",
    "minecraft:diamond_ore",
    "minecraft:emerald_ore",
    "minecraft:deepslate_coal_ore",
    "minecraft:deepslate_iron_ore",
    "minecraft:deepslate_copper_ore",
    "minecraft:deepslate_gold_ore",
    "minecraft:deepslate_redstone_ore[lit=false]",
    "minecraft:deepslate_lapis_ore",
    "minecraft:deepslate_diamond_ore",
    "minecraft:deepslate_emerald_ore",
    "minecraft:lava[level=0]",
    "minecraft:water[level=0]",
    "minecraft:sand",
    "minecraft:sandstone",
    "minecraft:clay",
    "minecraft:grass_block[snowy=false]",
    "minecraft:grass_block[snowy=true]",
    "minecraft:snow_block",
    "minecraft:snow[layers=1]",
    "minecraft:short_grass",
    "minecraft:dandelion",
    "minecraft:poppy",
    "minecraft:dead_bush",
    "minecraft:cactus[age=0]",
    "minecraft:oak_log[axis=y]",
    "minecraft:oak_leaves[distance=1,persistent=false,waterlogged=false]",
    "minecraft:spruce_log[axis=y]",
    "minecraft:spruce_leaves[distance=1,persistent=false,waterlogged=false]",
];
fn sm(s: u64) -> u64 {
    let mut z = s.wrapping_add(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D049BB133111EB);
    z ^ (z >> 31)
}
/// h(salt,x,y,z) = sm(sm(42 + salt*1_000_003) ^ (x | y<<20 | z<<40))
fn h(salt: u64, x: u64, y: u64, z: u64) -> u64 {
    sm(sm(42u64.wrapping_add(salt.wrapping_mul(1_000_003))) ^ (x | y << 20 | z << 40))
}
/// bilinear value noise 0..=65535, lattice step s
fn n2(salt: u64, x: u64, z: u64, s: u64) -> u64 {
    let (cx, cz, fx, fz) = (x / s, z / s, x % s, z % s);
    let v = |a: u64, b: u64| h(salt, a, 0, b) & 0xFFFF;
    ((v(cx, cz) * (s - fx) + v(cx + 1, cz) * fx) * (s - fz) + (v(cx, cz + 1) * (s - fx) + v(cx + 1, cz + 1) * fx) * fz)
        / (s * s)
}
/// trilinear value noise 0..=65535
fn n3(salt: u64, x: u64, y: u64, z: u64, s: u64) -> u64 {
    let (cx, cy, cz, fx, fy, fz) = (x / s, y / s, z / s, x % s, y % s, z % s);
    let mut a = 0;
    for (dy, wy) in [(0, s - fy), (1, fy)] {
        for (dz, wz) in [(0, s - fz), (1, fz)] {
            for (dx, wx) in [(0, s - fx), (1, fx)] {
                a += (h(salt, cx + dx, cy + dy, cz + dz) & 0xFFFF) * wx * wy * wz;
            }
        }
    }
    a / (s * s * s)
}
pub fn height(x: u64, z: u64) -> u64 {
    90 + ((n2(1, x, z, 64) * 96 + n2(2, x, z, 16) * 24 + n2(3, x, z, 4) * 6) >> 16)
}
pub fn generate() -> Vec<u8> {
    const SEA: u64 = 126;
    let mut a = vec![0u8; W * H * L];
    let id = |x: usize, y: usize, z: usize| x + z * W + y * W * L;
    for z in 0..L as u64 {
        for x in 0..W as u64 {
            let g = height(x, z);
            let biome = n2(4, x, z, 96);
            for y in 0..=g {
                let b: u8;
                if y < 5 && (y == 0 || h(5, x, y, z) % 5 >= y) {
                    b = 1
                } else {
                    let depth = g - y;
                    let deep = y < 64 || (y < 68 && h(6, x, y, z) % 4 >= y - 64);
                    let cave = y + 4 < g && {
                        let c = n3(20, x, y, z, 16);
                        (31000..34500).contains(&c)
                    };
                    if cave {
                        b = if y < 11 { 26 } else { 0 }
                    } else if depth == 0 {
                        b = if g < SEA {
                            [28u8, 8, 30, 9][(h(7, x >> 2, 0, z >> 2) % 4) as usize]
                        } else if biome < 18000 {
                            28
                        } else if biome >= 46000 {
                            32
                        } else {
                            31
                        }
                    } else if depth < 4 {
                        b = if biome < 18000 { 28 } else { 9 }
                    } else if depth < 8 && biome < 18000 {
                        b = 29
                    } else {
                        let r = h(10, x >> 2, y >> 2, z >> 2) % 1000;
                        let o = h(11, x, y, z) % 4096;
                        let ore: u8 = match o {
                            0..=23 => 1,
                            24..=39 => 2,
                            40..=51 => 3,
                            52..=56 => 4,
                            57..=64 => 5,
                            65..=68 => 6,
                            69..=71 => 7,
                            72 => 8,
                            _ => 0,
                        };
                        b = if ore > 0 {
                            (if deep { 17 } else { 9 }) + ore
                        } else if r < 12 {
                            4
                        } else if r < 24 {
                            5
                        } else if r < 36 {
                            6
                        } else if r < 44 {
                            7
                        } else if r < 50 {
                            8
                        } else if r < 55 {
                            9
                        } else if deep {
                            2
                        } else {
                            3
                        }
                    }
                }
                a[id(x as usize, y as usize, z as usize)] = b;
            }
            if g < SEA {
                for y in g + 1..=SEA {
                    a[id(x as usize, y as usize, z as usize)] = 27;
                }
            } else {
                let r = h(8, x, 0, z) % 100;
                let p: u8 = if biome < 18000 {
                    if r < 1 {
                        39
                    } else if r < 3 {
                        38
                    } else {
                        0
                    }
                } else if biome >= 46000 {
                    if r < 85 { 34 } else { 0 }
                } else {
                    if r < 20 {
                        35
                    } else if r < 22 {
                        36
                    } else if r < 24 {
                        37
                    } else {
                        0
                    }
                };
                if p != 0 {
                    a[id(x as usize, (g + 1) as usize, z as usize)] = p;
                }
            }
        }
    }
    // trees: one candidate per 8x8 cell, in order cz then cx
    for cz in 0..(L / 8) as u64 {
        for cx in 0..(W / 8) as u64 {
            let r = h(9, cx, 0, cz);
            if r % 100 >= 45 {
                continue;
            }
            let x = cx * 8 + 2 + (r >> 8) % 4;
            let z = cz * 8 + 2 + (r >> 16) % 4;
            let g = height(x, z);
            let biome = n2(4, x, z, 96);
            if g < SEA || biome < 18000 {
                continue;
            }
            let (log, leaf) = if biome >= 46000 { (42u8, 43u8) } else { (40u8, 41u8) };
            let th = 4 + (r >> 24) % 4;
            let top = g + th;
            for dy in 0..4u64 {
                let rad: i64 = if dy < 2 { 2 } else { 1 };
                let y = top - 1 + dy;
                if y >= H as u64 {
                    continue;
                }
                for dz in -rad..=rad {
                    for dx in -rad..=rad {
                        if rad == 2 && dx.abs() == 2 && dz.abs() == 2 {
                            continue;
                        }
                        let (xx, zz) = (x as i64 + dx, z as i64 + dz);
                        if xx < 0 || zz < 0 || xx >= W as i64 || zz >= L as i64 {
                            continue;
                        }
                        let i = id(xx as usize, y as usize, zz as usize);
                        if a[i] == 0 {
                            a[i] = leaf
                        }
                    }
                }
            }
            for y in g + 1..=top {
                a[id(x as usize, y as usize, z as usize)] = log;
            }
        }
    }
    a
}
