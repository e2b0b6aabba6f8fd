use super::super::RenderMode;
use super::super::looks::{BlockLook, BlockLooks};
use super::super::neighborhood::Near;
use super::super::quads::axes;
use super::*;
use bevy_terrane::block::{BlockRegistry, BlockShape, BlockStates, BlockType};
use bevy_terrane::chunk::Chunk;
use bevy_terrane::light::{ChunkLight, LightLevels};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

const STONE: BlockId = BlockId::new(1);
const DIRT: BlockId = BlockId::new(2);
const GLASS: BlockId = BlockId::new(3);
const ICE: BlockId = BlockId::new(4);

/// Stone and dirt, glass and ice, which are blended, and a block that is not drawn.
fn looks() -> LookTable {
    let mut blocks = BlockRegistry::new();
    blocks.register(BlockType::new("test:stone").with_color([200, 0, 0])).unwrap();
    blocks.register(BlockType::new("test:dirt").with_color([0, 200, 0])).unwrap();
    blocks.register(BlockType::new("test:glass").transparent()).unwrap();
    blocks.register(BlockType::new("test:ice").transparent()).unwrap();
    blocks.register(BlockType::new("test:nothing").transparent()).unwrap();
    LookTable::new(&blocks, [&blended(&["test:glass", "test:ice"])])
}

fn blended(names: &[&str]) -> BlockLooks {
    let look = |name: &&str| ((*name).to_owned(), BlockLook { mode: RenderMode::Blended, ..BlockLook::all(*name) });
    BlockLooks { blocks: names.iter().map(look).collect() }
}

fn meshing(ambient_occlusion: bool) -> Meshing {
    Meshing { meshers: Vec::new().into(), ambient_occlusion }
}

fn alone(chunk: Chunk) -> Neighborhood {
    let chunk = Arc::new(chunk);
    Neighborhood::from_fn(|offset| if offset == [0; 3] { Near::Chunk(chunk.clone()) } else { Near::Air })
}

fn rectangles(meshed: &Meshed) -> Vec<(RenderMode, Rectangle)> {
    let modes = RenderMode::ALL.into_iter().zip(meshed);
    modes.flat_map(|(mode, quads)| quads.quads.iter().map(move |quad| (mode, Rectangle::unpack(*quad)))).collect()
}

fn meshed(neighborhood: &Neighborhood, looks: &LookTable) -> Option<Meshed> {
    mesh(ChunkPos::new(0, 0, 0), neighborhood, (looks, &BlockRegistry::new()), &meshing(true)).map(|(meshed, _)| meshed)
}

fn of(neighborhood: &Neighborhood, looks: &LookTable) -> Vec<(RenderMode, Rectangle)> {
    meshed(neighborhood, looks).map_or(Vec::new(), |meshed| rectangles(&meshed))
}

/// The quads of one block of a registry, alone.
fn of_block(block: BlockId, looks: &LookTable) -> Vec<Rectangle> {
    rectangles(&mesh_block(block, looks).unwrap()).into_iter().map(|(_, rectangle)| rectangle).collect()
}

#[test]
fn a_quad_is_the_same_after_packing() {
    for side in 0..8 {
        let (openness, drops) = ([3, 0, 2, 1], [15, 0, 7, 8]);
        let light = [0xf0, 0x0f, 0x5a, 0xff];
        let rectangle = Rectangle { corner: [256, 3, 77], side, size: [256, 1], openness, look: 65_535, drops, light };
        assert_eq!(Rectangle::unpack(rectangle.pack()), rectangle);
        assert_eq!(rectangle.pack()[0] >> 30 | rectangle.pack()[1] >> 26, 0, "8 bits are free");
    }
    assert_eq!(size_of::<Quad>(), 16);
}

#[test]
fn a_chunk_of_one_block_has_six_quads() {
    let quads = of(&alone(Chunk::uniform(STONE)), &looks());
    assert_eq!(quads.len(), 6);
    for (side, (mode, quad)) in (0..).zip(quads) {
        assert_eq!((mode, quad.side, quad.size, quad.openness), (RenderMode::Opaque, side, [256; 2], [3; 4]));
    }
    let meshed = meshed(&alone(Chunk::uniform(STONE)), &looks()).unwrap();
    assert_eq!(meshed[0].bounds, [[0; 3], [256; 3]]);
}

#[test]
fn faces_on_a_border_are_hidden_by_the_next_chunk_and_the_ground_below() {
    let full = Arc::new(Chunk::uniform(STONE));
    let beside = Neighborhood::from_fn(|[x, y, z]| match [x, y, z] {
        [0 | 1, 0, 0] => Near::Chunk(full.clone()),
        [_, -1, _] => Near::Solid,
        _ => Near::Air,
    });
    let mut sides: Vec<Side> = of(&beside, &looks()).iter().map(|(_, quad)| quad.side).collect();
    // The walls have a darker row at the foot.
    sides.dedup();
    assert_eq!(sides, [0, 2, 4, 5]);
}

#[test]
fn what_is_enclosed_or_invisible_gives_nothing() {
    let full = Arc::new(Chunk::uniform(STONE));
    let has_faces = |near: &dyn Fn([i64; 3]) -> Near| Neighborhood::with_faces(near, &looks()).is_some();
    let enclosed = |_| Near::Chunk(full.clone());
    assert!(!has_faces(&enclosed) && meshed(&Neighborhood::from_fn(enclosed), &looks()).is_none());
    let alone =
        |block| move |offset| if offset == [0; 3] { Near::Chunk(Arc::new(Chunk::uniform(block))) } else { Near::Air };
    for block in [BlockId::AIR, BlockId::new(5)] {
        assert!(!has_faces(&alone(block)) && meshed(&Neighborhood::from_fn(alone(block)), &looks()).is_none());
    }
    assert!(has_faces(&alone(STONE)) && has_faces(&alone(GLASS)));
}

#[test]
fn a_wall_darkens_the_ground_along_its_foot() {
    let chunk = Arc::new(Chunk::from_fn(|[x, y, _]| if y == 0 || x == 8 { STONE } else { BlockId::AIR }));
    let valley = Neighborhood::from_fn(|[_, y, _]| if y == 0 { Near::Chunk(chunk.clone()) } else { Near::Air });
    let ground: Vec<_> =
        of(&valley, &looks()).into_iter().map(|(_, quad)| quad).filter(|quad| quad.side == UP).collect();
    let at = |x: u16| {
        ground.iter().find(|quad| quad.corner[1] == 16 && quad.corner[0] <= x && x < quad.far_corner()[0]).unwrap()
    };
    assert_eq!(at(3 * 16).openness, [3; 4]);
    assert_eq!(at(7 * 16).openness, [3, 1, 3, 1], "dark on the side of the wall");
    assert_eq!(at(9 * 16).openness, [1, 3, 1, 3]);
    assert_eq!(at(7 * 16).size, [16, 256], "joined along the wall, not across the shade");
}

#[test]
fn without_ambient_occlusion_the_ground_along_a_wall_is_one_quad() {
    let chunk = Arc::new(Chunk::from_fn(|[x, y, _]| if y == 0 || x == 8 { STONE } else { BlockId::AIR }));
    let valley = Neighborhood::from_fn(|[_, y, _]| if y == 0 { Near::Chunk(chunk.clone()) } else { Near::Air });
    let (meshed, _) =
        mesh(ChunkPos::new(0, 0, 0), &valley, (&looks(), &BlockRegistry::new()), &meshing(false)).unwrap();
    let ground: Vec<_> =
        rectangles(&meshed).into_iter().filter(|(_, quad)| quad.side == UP && quad.corner[1] == 16).collect();
    assert_eq!(ground.iter().map(|(_, quad)| quad.size).collect::<Vec<_>>(), [[128, 256], [112, 256]]);
    assert!(rectangles(&meshed).iter().all(|(_, quad)| quad.openness == [3; 4]));
}

/// A floor at y = 0, with light that falls off along x in the cells above it.
fn floor_in_light(light: impl Fn([usize; 3]) -> u8) -> Vec<Rectangle> {
    let chunk = Arc::new(Chunk::from_fn(|[_, y, _]| if y == 0 { STONE } else { BlockId::AIR }));
    let floor = Neighborhood::from_fn(|[_, y, _]| if y == 0 { Near::Chunk(chunk.clone()) } else { Near::Air });
    let light = ChunkLight { sky: LightLevels::default(), block: LightLevels::from_fn(light) };
    let floor = floor.with_light(|_| light.clone());
    of(&floor, &looks()).into_iter().map(|(_, quad)| quad).filter(|quad| quad.side == UP).collect()
}

#[test]
fn faces_are_joined_where_the_light_does_not_change() {
    assert_eq!(floor_in_light(|_| 7).len(), 1);
    let by_x = floor_in_light(|[x, _, _]| x as u8);
    let inner: Vec<_> = by_x.iter().filter(|quad| (16..15 * 16).contains(&quad.corner[0])).collect();
    assert_eq!(inner.len(), 14);
    assert!(inner.iter().all(|quad| quad.size == [16, 256]), "joined across the slope of the light only");
    // A level of 4.5 is rounded up.
    let fourth = inner.iter().find(|quad| quad.corner[0] == 4 * 16).unwrap();
    assert_eq!(fourth.light.map(|corner| corner >> 4), [4, 5, 4, 5]);
}

#[test]
fn plants_and_slabs_have_the_light_around_them() {
    let mut blocks = BlockRegistry::new();
    let slab = blocks.register(BlockType::new("test:slab").with_shape(BlockShape::slab())).unwrap();
    let plant = blocks.register(BlockType::new("test:plant").with_shape(BlockShape::Cross)).unwrap();
    let looks = LookTable::new(&blocks, []);
    // The block is as dark as an opaque one, and the cell above it is bright.
    let lit = |block, own: u8| {
        let light = move |place: [usize; 3]| match place {
            [4, 4, 4] => own,
            [4, 5, 4] => 12,
            _ => 2,
        };
        let light = ChunkLight { sky: LightLevels::from_fn(light), block: LightLevels::default() };
        let chunk = Chunk::from_fn(|place| if place == [4; 3] { block } else { BlockId::AIR });
        of(&alone(chunk).with_light(|_| light.clone()), &looks).into_iter().map(|(_, quad)| quad).collect::<Vec<_>>()
    };
    assert!(lit(plant, 9).iter().all(|quad| quad.light == [9; 4]));
    let of_slab = lit(slab, 0);
    let top = of_slab.iter().find(|quad| quad.side == UP).unwrap();
    assert_eq!(top.light, [12; 4]);
    assert_eq!(of_slab.iter().find(|quad| quad.side == 0).unwrap().light, [2; 4]);
    assert!(lit(slab, 14).iter().all(|quad| quad.light == [14; 4]), "a block that light enters has its own");
}

#[test]
fn a_single_block_is_fully_lit() {
    assert!(of_block(STONE, &looks()).iter().all(|quad| quad.light == [0x0f; 4]));
}

/// Promise, looks: Faces between two blocks of the same transparent kind are not drawn.
#[test]
fn faces_between_equal_glass_are_not_drawn() {
    let of_two = |first, second| {
        let pair = move |[x, y, z]: [usize; 3]| match [x, y, z] {
            [4, 4, 4] => first,
            [5, 4, 4] => second,
            _ => BlockId::AIR,
        };
        let quads = of(&alone(Chunk::from_fn(pair)), &looks());
        let area = |side| -> u32 {
            let quads = quads.iter().filter(|(_, quad)| quad.side == side);
            quads.map(|(_, quad)| u32::from(quad.size[0]) * u32::from(quad.size[1]) / 256).sum()
        };
        (area(0), area(3))
    };
    assert_eq!(of_two(GLASS, GLASS), (1, 1));
    assert_eq!(of_two(GLASS, ICE), (2, 2), "other glass is another surface");
    assert_eq!(of_two(STONE, GLASS), (1, 2), "stone behind glass is drawn, glass before stone is not");
}

#[test]
fn shapes_have_their_own_quads() {
    let mut blocks = BlockRegistry::new();
    let slab = blocks.register(BlockType::new("test:slab").with_shape(BlockShape::slab())).unwrap();
    let plant = blocks.register(BlockType::new("test:plant").with_shape(BlockShape::Cross)).unwrap();
    let stone = blocks.register(BlockType::new("test:stone")).unwrap();
    let looks = LookTable::new(&blocks, []);
    let quads = of_block(slab, &looks);
    assert_eq!(quads.len(), 6);
    assert!(quads.iter().all(|quad| quad.far_corner()[1] <= 8));
    assert_eq!(of_block(plant, &looks).iter().map(|quad| quad.side).collect::<Vec<_>>(), [6, 7]);
    let pair = |below, above| {
        let column = move |[x, y, z]: [usize; 3]| match [x, y, z] {
            [4, 4, 4] => below,
            [4, 5, 4] => above,
            _ => BlockId::AIR,
        };
        let quads = of(&alone(Chunk::from_fn(column)), &looks);
        quads.iter().filter(|(_, quad)| quad.side % 3 == 1).count()
    };
    assert_eq!(pair(stone, slab), 2, "the slab's closed face and the stone's top hide each other");
    assert_eq!(pair(slab, stone), 4, "the slab is open above");
    assert_eq!(pair(slab, slab), 4, "there is a gap between two slabs");
}

#[test]
fn stairs_turn_with_their_state() {
    let mut blocks = BlockRegistry::new();
    let stairs = BlockStates::new(BlockType::new("test:stairs").with_shape(BlockShape::stairs()))
        .with_property("facing", ["north", "east", "south", "west"]);
    let stairs = blocks.register_states(stairs).unwrap();
    let looks = LookTable::new(&blocks, []);
    // The whole back of the stairs is on the side that they face.
    for (block, back) in stairs.into_iter().zip([2, 3, 5, 0]) {
        let quads = of_block(block, &looks);
        let area = |side: Side| -> u32 {
            let on_border = |quad: &&Rectangle| {
                quad.side == side && quad.corner[usize::from(side % 3)] == if side < 3 { 0 } else { 16 }
            };
            quads.iter().filter(on_border).map(|quad| u32::from(quad.size[0]) * u32::from(quad.size[1])).sum()
        };
        for side in [0, 2, 3, 5] {
            let expected = if side == back {
                256
            } else if side == opposite(back) {
                128
            } else {
                192
            };
            assert_eq!(area(side), expected, "{back} {side}");
        }
    }
}

#[test]
fn panes_join_their_neighbors() {
    let mut blocks = BlockRegistry::new();
    let pane = blocks.register(BlockType::new("test:pane").with_shape(BlockShape::pane())).unwrap();
    let stone = blocks.register(BlockType::new("test:stone")).unwrap();
    let looks = LookTable::new(&blocks, []);
    let reach = |others: &[([usize; 3], BlockId)]| {
        let block = |place: [usize; 3]| {
            let other = others.iter().find(|(other, _)| *other == place).map(|(_, block)| *block);
            if place == [4; 3] { pane } else { other.unwrap_or(BlockId::AIR) }
        };
        let quads = of(&alone(Chunk::from_fn(block)), &looks);
        let inside = quads
            .iter()
            .map(|(_, quad)| quad)
            .filter(|quad| (0..3).all(|axis| quad.corner[axis] >= 64 && quad.far_corner()[axis] <= 80));
        let xs: Vec<_> = inside.flat_map(|quad| [quad.corner[0], quad.far_corner()[0]]).collect();
        (*xs.iter().min().unwrap() - 64, *xs.iter().max().unwrap() - 64)
    };
    let (low, high) = reach(&[]);
    assert!(low > 0 && high < 16, "a post");
    assert_eq!(reach(&[([5, 4, 4], stone)]).1, 16);
    assert_eq!(reach(&[([3, 4, 4], pane), ([5, 4, 4], pane)]), (0, 16));
}

#[test]
fn water_slopes_from_its_source_and_neighbors_agree_on_corners() {
    let mut blocks = BlockRegistry::new();
    let flow = BlockStates::new(BlockType::new("test:water").with_shape(BlockShape::liquid(8).unwrap()))
        .with_property("level", ["8", "5", "2"])
        .varied_by(|state| {
            let level = state.property("level").unwrap().parse().unwrap();
            state.with_shape(BlockShape::liquid(level).unwrap())
        });
    let [full, middle, low] = blocks.register_states(flow).unwrap()[..] else { panic!("three levels") };
    let looks = LookTable::new(&blocks, [&blended(&["test:water"])]);
    let chunk = Chunk::from_fn(|[x, y, z]| match (x, y, z) {
        (4, 4, 4) => full,
        (5, 4, 4) => middle,
        (6, 4, 4) => low,
        (10..14, 4, 4..8) => full,
        _ => BlockId::AIR,
    });
    let quads = of(&alone(chunk), &looks);
    assert!(quads.iter().all(|(mode, _)| *mode == RenderMode::Blended));
    let top = |x: u16| quads.iter().find(|(_, quad)| quad.side == UP && quad.corner[0] == x * 16).unwrap().1;
    assert_eq!(top(4).drops, [2; 4]);
    assert_eq!(top(5).drops, [2, 16 - liquid_height(5), 2, 16 - liquid_height(5)]);
    assert_eq!(top(6).drops[0], top(5).drops[1], "neighbors agree");
    assert!(top(6).drops[1] > top(6).drops[0]);
    assert_eq!(top(10).size, [64; 2], "an even surface is one quad");
    assert!(!quads.iter().any(|(_, quad)| quad.side == 3 && quad.corner[0] == 5 * 16), "no faces within the water");
}

/// The openness of the corners of a face, straight from the definition.
fn slow_openness(hides: &impl Fn([i64; 3]) -> bool, place: [i64; 3], side: Side) -> [u8; 4] {
    let mut front = place;
    front[normal_axis(side)] += if side < 3 { -1 } else { 1 };
    let [width, height] = axes(side);
    [(-1, -1), (1, -1), (-1, 1), (1, 1)].map(|(along_width, along_height)| {
        let at = |by_width: i64, by_height: i64| {
            let mut place = front;
            place[width] += by_width;
            place[height] += by_height;
            u8::from(hides(place))
        };
        let [one, other, both] = [at(along_width, 0), at(0, along_height), at(along_width, along_height)];
        if one + other == 2 { 0 } else { 3 - one - other - both }
    })
}

/// The sky light and the block light of the corners of a face, straight from the definition.
fn slow_light(
    hides: &impl Fn([i64; 3]) -> bool,
    light: &impl Fn([i64; 3]) -> [u8; 2],
    place: [i64; 3],
    side: Side,
) -> [[u8; 2]; 4] {
    let mut front = place;
    front[normal_axis(side)] += if side < 3 { -1 } else { 1 };
    let [width, height] = axes(side);
    [(-1, -1), (1, -1), (-1, 1), (1, 1)].map(|(along_width, along_height)| {
        let at = |by_width: i64, by_height: i64| {
            let mut place = front;
            place[width] += by_width;
            place[height] += by_height;
            place
        };
        let beside = [at(along_width, 0), at(0, along_height)];
        let mut cells = vec![front];
        cells.extend(beside.iter().filter(|cell| !hides(**cell)));
        let diagonal = at(along_width, along_height);
        if !hides(diagonal) && !beside.iter().all(|cell| hides(*cell)) {
            cells.push(diagonal);
        }
        [0, 1].map(|channel| {
            let sum: f64 = cells.iter().map(|cell| f64::from(light(*cell)[channel])).sum();
            (sum / cells.len() as f64).round() as u8
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Each block face that a walk over all blocks finds visible is covered by exactly one quad, with the block's look and the
    /// light of its corners.
    #[test]
    fn the_faces_are_those_of_a_walk_over_all_blocks(
        seed in any::<u64>(), fill in 1u64..8, rough in 0u32..3, around in prop::collection::vec(any::<bool>(), 27),
        light_rough in 0u32..6,
    ) {
        let block_at = |[x, y, z]: [i64; 3]| {
            let place = ((x >> 4) + 1) * 9 + ((y >> 4) + 1) * 3 + (z >> 4) + 1;
            if !around[place as usize] && place != 13 {
                return BlockId::AIR;
            }
            let [x, y, z] = [x, y, z].map(|axis| axis >> rough);
            let mixed = (x as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
                ^ (y as u64).wrapping_mul(0xC2B2_AE3D_27D4_EB4F)
                ^ (z as u64).wrapping_mul(0x1656_67B1_9E37_79F9)
                ^ seed;
            let mixed = mixed.wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 32;
            if mixed % 8 < fill { BlockId::new(1 + (mixed >> 8) as u32 % 5) } else { BlockId::AIR }
        };
        // Any light, in walls too. The roughest is even.
        let light_at = |place: [i64; 3]| {
            let mixed = place.iter().fold(seed, |sum, axis| {
                (sum ^ (*axis as u64 >> light_rough)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
            });
            if light_rough == 5 { [15, 3] } else { [(mixed >> 8) as u8 & 15, (mixed >> 20) as u8 & 15] }
        };
        let looks = looks();
        let neighborhood = Neighborhood::from_fn(|[dx, dy, dz]| {
            let at = |base: i64, within: usize| base * 16 + within as i64;
            Near::Chunk(Arc::new(Chunk::from_fn(|[x, y, z]| block_at([at(dx, x), at(dy, y), at(dz, z)]))))
        });
        let neighborhood = neighborhood.with_light(|offset| {
            let level = |channel: usize| {
                let of = |place: [usize; 3]| [0, 1, 2].map(|axis| offset[axis] * 16 + place[axis] as i64);
                LightLevels::from_fn(|place| light_at(of(place))[channel])
            };
            ChunkLight { sky: level(0), block: level(1) }
        });
        let hides = |place: [i64; 3]| [STONE, DIRT].contains(&block_at(place));
        let mut expected = BTreeMap::new();
        let cells = (0..16i64).flat_map(|x| (0..16i64).flat_map(move |y| (0..16i64).map(move |z| [x, y, z])));
        for place in cells {
            let block = block_at(place);
            if looks.is_invisible(block) {
                continue;
            }
            for side in 0..6 {
                let mut front = place;
                front[normal_axis(side)] += if side < 3 { -1 } else { 1 };
                if !hides(front) && block_at(front) != block {
                    let drawn = looks.of(block);
                    let look = (drawn.mode as u8, drawn.faces[usize::from(side)]);
                    let light = slow_light(&hides, &light_at, place, side);
                    expected.insert((place, side), (look, slow_openness(&hides, place, side), light));
                } else if !hides(front) && hides(place) {
                    prop_assert!(false, "equal opaque blocks hide each other");
                }
            }
        }
        let mut found = BTreeMap::new();
        for (mode, quad) in of(&neighborhood, &looks) {
            let [width, height] = axes(quad.side);
            for (along_width, along_height) in (0..quad.size[0] / 16).flat_map(|w| (0..quad.size[1] / 16).map(move |h| (w, h))) {
                let mut place = quad.corner.map(|axis| i64::from(axis / 16));
                place[normal_axis(quad.side)] -= i64::from(quad.side >= 3);
                place[width] += i64::from(along_width);
                place[height] += i64::from(along_height);
                let light = quad.light.map(|corner| [corner & 15, corner >> 4]);
                let before = found.insert((place, quad.side), ((mode as u8, quad.look), quad.openness, light));
                prop_assert!(before.is_none(), "{place:?} {} is covered twice", quad.side);
            }
        }
        prop_assert_eq!(found, expected);
    }
}
