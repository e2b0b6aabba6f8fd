use super::*;
use crate::looks::FaceOverlay;
use bevy_terrane::block::BlockStates;

fn looks(blocks: &[(&str, BlockLook)]) -> BlockLooks {
    BlockLooks { blocks: blocks.iter().map(|(name, look)| ((*name).to_owned(), look.clone())).collect() }
}

/// A lamp and a furnace with states, glass, and a slab.
fn registry() -> BlockRegistry {
    let mut blocks = BlockRegistry::new();
    let facing = ["north", "east", "south", "west"];
    let furnace = BlockStates::new(BlockType::new("test:furnace")).with_property("facing", facing);
    blocks.register_states(furnace.with_property("lit", ["false", "true"])).unwrap();
    blocks.register(BlockType::new("test:glass").with_color([255, 0, 0]).transparent()).unwrap();
    blocks.register(BlockType::new("test:slab").with_shape(BlockShape::slab())).unwrap();
    blocks
}

/// The texture of each face.
fn textures(table: &LookTable, block: BlockId) -> [Option<&str>; 6] {
    table.of(block).faces.map(|face| {
        let texture = table.faces[usize::from(face)].texture?;
        Some(table.textures[texture as usize].path.as_str())
    })
}

#[test]
fn the_key_with_the_most_matching_properties_wins_and_of_equal_ones_the_later() {
    let blocks = registry();
    let first = looks(&[("test:furnace", BlockLook::all("a")), ("test:furnace[lit=true]", BlockLook::all("lit"))]);
    let both = "test:furnace[facing=east,lit=true]";
    let later = looks(&[
        ("test:furnace", BlockLook::all("b")),
        (both, BlockLook::all("east")),
        ("test:no", BlockLook::all("c")),
    ]);
    let table = LookTable::new(&blocks, [&first, &later]);
    let of = |facing, lit| {
        let block = blocks.state("test:furnace", &[("facing", facing), ("lit", lit)]).unwrap();
        textures(&table, block)[0].unwrap().to_owned()
    };
    assert_eq!(["north", "east"].map(|facing| of(facing, "false")), ["b", "b"], "the later file");
    assert_eq!([of("north", "true"), of("east", "true")], ["lit", "east"], "more properties");
    assert!(!table.textures.iter().any(|texture| texture.path == "c"), "a texture that no block uses is not loaded");
}

/// Promise, looks: A look without properties is that of the default state, and its faces turn with the states.
#[test]
fn faces_turn_with_the_state() {
    let blocks = registry();
    let front =
        BlockLook { north: Some(FaceLook::new("front")), top: Some(FaceLook::new("top")), ..BlockLook::all("side") };
    let table = LookTable::new(&blocks, [&looks(&[("test:furnace", front.clone())])]);
    // West, down, north, east, up, south.
    for (facing, side) in [("north", 2), ("east", 3), ("south", 5), ("west", 0)] {
        let block = blocks.state("test:furnace", &[("facing", facing)]).unwrap();
        let mut expected = [Some("side"); 6];
        (expected[4], expected[side]) = (Some("top"), Some("front"));
        assert_eq!(textures(&table, block), expected, "{facing}");
    }
    let fixed = looks(&[("test:furnace[facing=east]", front)]);
    let table = LookTable::new(&blocks, [&fixed]);
    let block = blocks.state("test:furnace", &[("facing", "east")]).unwrap();
    assert_eq!(textures(&table, block)[2], Some("front"), "a look of some states describes those states");
}

#[test]
fn a_look_decides_what_is_seen_behind_a_block() {
    let blocks = registry();
    let [glass, slab] = ["test:glass", "test:slab"].map(|name| blocks.id(name).unwrap());
    let plain = LookTable::new(&blocks, []);
    assert!(plain.is_invisible(glass) && !plain.is_opaque(glass), "nothing is known of its transparency");
    assert_eq!(plain.of(slab).hides, 1 << 1, "the bottom");
    for mode in RenderMode::ALL {
        let look = BlockLook { mode, ..BlockLook::all("x") };
        let table = LookTable::new(&blocks, [&looks(&[("test:glass", look.clone()), ("test:slab", look)])]);
        assert!(!table.is_invisible(glass));
        assert_eq!(table.is_opaque(glass), mode == RenderMode::Opaque);
        assert_eq!(table.of(slab).hides != 0, mode == RenderMode::Opaque);
        assert_eq!(table.textures[0].has_holes, mode == RenderMode::CutOut);
    }
    let mut shared = plain.clone();
    let is_slab = |block: &BlockType| block.name() == "test:slab";
    shared.share(&blocks, |_| false, is_slab);
    assert_eq!((shared.of(slab), shared.class(slab)), (plain.of(slab), plain.class(slab) | OTHER), "both mesh it");
    assert_eq!(shared.class(glass), plain.class(glass));
    shared.share(&blocks, is_slab, is_slab);
    assert!(!shared.is_invisible(slab) && shared.of(slab).form == Form::Nothing, "a mesher of the game draws it");
}

#[test]
fn a_face_becomes_what_the_shader_reads() {
    let blocks = registry();
    let overlay = Some(FaceOverlay { texture: "over".into(), tint: [0, 255, 0] });
    let face = FaceLook { frames: 4, random_turn: true, overlay, tint: [255, 0, 0], ..FaceLook::new("under") };
    let look = BlockLook { all: Some(face), emission: 15, ..BlockLook::default() };
    let table = LookTable::new(&blocks, [&looks(&[("test:glass", look)])]);
    let layers = [TextureLayers { first: 2, frames: 4 }, TextureLayers::MISSING];
    let glass = table.of(blocks.id("test:glass").unwrap());
    let words = table.faces[usize::from(glass.faces[0])].words(&layers);
    let one = 1_f32.to_bits();
    assert_eq!(words, [one, 0, 0, 2, 0, one, 0, 1, 4, 0.1_f32.to_bits(), 1, one]);
    let slab = table.of(blocks.id("test:slab").unwrap());
    let plain = table.faces[usize::from(slab.faces[0])].words(&layers);
    assert_eq!((plain[3], plain[7], plain[8]), (0, u32::MAX, 1), "white, without overlay");
}

#[test]
fn a_mistake_of_a_look_made_in_code_is_told_and_the_block_keeps_its_color() {
    let blocks = registry();
    let wrong = BlockLook { emission: 16, ..BlockLook::all("x") };
    let table = LookTable::new(&blocks, [&looks(&[("test:slab", wrong)])]);
    assert_eq!(table.errors, ["the look of \"test:slab\": its emission is 16, and at most 15"]);
    assert_eq!(textures(&table, blocks.id("test:slab").unwrap()), [None; 6]);
}
