//! Layers on top of generators.

use super::*;
use crate::block::{BlockId, BlockRegistry};
use crate::chunk::Chunk;
use crate::generation::rule_tests::Silent;
use crate::generation::surface::surfaces_of;
use crate::generation::{Flat, Hills, Void, basic_blocks};
use crate::space::{BlockPos, ColumnPos};
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const COLUMN: ColumnPos = ColumnPos::new(-3, 8);

fn column(generator: &impl Generator, registry: &BlockRegistry) -> Column {
    generator.generate(&GenerateRequest { column: COLUMN, heights: -128..320, blocks: registry }).unwrap()
}

fn at(column: &Column, x: i64, y: i64, z: i64) -> BlockId {
    let pos = column.pos();
    column.block(BlockPos::new((pos.x << 4) + x, y, (pos.z << 4) + z))
}

fn count(column: &Column, block: BlockId) -> usize {
    column.chunks().map(|(_, chunk)| chunk.blocks().filter(|other| *other == block).count()).sum()
}

#[test]
fn no_layers_change_nothing() {
    let registry = basic_blocks();
    assert!(column(&Layers::new(Hills::seeded(4)), &registry) == column(&Hills::seeded(4), &registry));
}

#[test]
fn ground_cover_replaces_the_surface() {
    let registry = basic_blocks();
    let [grass, snow, gravel, dirt] =
        ["grass", "snow", "gravel", "dirt"].map(|name| registry.id(&format!("terrane:{name}")).unwrap());
    let covered = |cover: GroundCover| column(&Layers::new(Flat::new()).with(cover), &registry);
    let made = covered(GroundCover::new("terrane:snow", "terrane:gravel").with_depth(2));
    assert_eq!([1, 0, -1, -2, -3].map(|y| at(&made, 4, y, 9)), [BlockId::AIR, snow, gravel, gravel, dirt]);
    let cover = || GroundCover::new("terrane:snow", "terrane:gravel");
    for elsewhere in [cover().with_heights(1..90), cover().with_replaced(["terrane:sand"])] {
        assert_eq!(at(&covered(elsewhere), 4, 0, 9), grass);
    }
    assert_eq!(at(&covered(cover().with_heights(0..1).with_replaced(["terrane:grass"])), 4, 0, 9), snow);
}

/// Promise, ground: `Layers` puts steps on top of any generator.
#[test]
fn later_layers_see_the_blocks_of_earlier_ones() {
    let registry = basic_blocks();
    let [snow, sand] = ["terrane:snow", "terrane:sand"].map(|name| registry.id(name).unwrap());
    let stack = |ground: Layers| {
        ground
            .with(GroundCover::new("terrane:snow", "terrane:dirt"))
            .with(GroundCover::new("terrane:sand", "terrane:dirt").with_replaced(["terrane:snow"]))
    };
    assert_eq!(count(&column(&stack(Layers::new(Flat::new())), &registry), sand), 256);
    let other_way = Layers::new(Flat::new())
        .with(GroundCover::new("terrane:sand", "terrane:dirt").with_replaced(["terrane:snow"]))
        .with(GroundCover::new("terrane:snow", "terrane:dirt"));
    assert_eq!(count(&column(&other_way, &registry), snow), 256);
}

#[test]
fn water_fills_open_cells_above_solid_ground() {
    let registry = basic_blocks();
    let [water, stone] = ["terrane:water", "terrane:stone"].map(|name| registry.id(name).unwrap());
    let made = column(&Layers::new(Flat::new()).with(WaterFill::new(70)), &registry);
    assert_eq!(count(&made, water), 69 * 256);
    assert_eq!((at(&made, 1, 69, 1), at(&made, 1, 70, 1)), (water, BlockId::AIR));
    assert!(column(&Layers::new(Void).with(WaterFill::new(70)), &registry).chunks().next().is_none());
    let lava = Layers::new(Flat::new()).with(WaterFill::new(3).with_block("terrane:stone"));
    assert_eq!(at(&column(&lava, &registry), 1, 2, 1), stone);

    let deep = Layers::new(Flat::new()).with(WaterFill::new(i64::MAX));
    let everything = GenerateRequest { column: COLUMN, heights: i64::MIN..i64::MAX, blocks: &registry };
    assert!(matches!(deep.generate(&everything), Err(GenerateError::TooTall { .. })));
}

#[test]
fn surfaces_of_layers_are_those_that_are_made() {
    let registry = basic_blocks();
    let stacks = || {
        [
            Layers::new(Hills::seeded(2)).with(GroundCover::new("terrane:snow", "terrane:dirt").with_heights(9..99)),
            Layers::new(Hills::seeded(2)).with(WaterFill::new(12)).with(Caves::seeded(1).with_width(0.4)),
            Layers::new(Hills::seeded(2)).with(WaterFill::new(12).with_block("terrane:snow")),
            Layers::new(Flat::new()).with(WaterFill::new(12)).with(WaterFill::new(20)),
            Layers::new(Silent(Hills::seeded(2))).with(WaterFill::new(5)),
            Layers::new(Void).with(GroundCover::new("terrane:snow", "terrane:dirt")),
        ]
    };
    for layers in stacks() {
        let made = surfaces_of(&column(&layers, &registry), &registry);
        for (place, expected) in made.iter().enumerate() {
            let (x, z) = ((COLUMN.x << 4) + (place % 16) as i64, (COLUMN.z << 4) + (place / 16) as i64);
            let told = layers.surface(&SurfaceRequest { x, z, blocks: &registry }).unwrap();
            assert_eq!(told, SurfaceAnswer::Known(*expected), "{layers:?} at {x}, {z}");
        }
    }
}

#[test]
fn caves_are_hollows_below_a_roof() {
    let registry = basic_blocks();
    let hollow = column(&Layers::new(Hills::seeded(4)).with(Caves::seeded(7).with_width(0.3).with_roof(9)), &registry);
    let solid = column(&Hills::seeded(4), &registry);
    let mut dug = 0;
    for (x, z) in (0..16).flat_map(|x| (0..16).map(move |z| (x, z))) {
        let surface = Hills::seeded(4).height_at((COLUMN.x << 4) + x, (COLUMN.z << 4) + z);
        for y in -128..200 {
            let (now, before) = (at(&hollow, x, y, z), at(&solid, x, y, z));
            if now != before {
                assert!(now == BlockId::AIR && y < surface - 9, "at {x}, {y}, {z} below {surface}");
                dug += 1;
            }
        }
    }
    assert!((500..12_000).contains(&dug), "{dug} blocks were dug out");
    let none = Layers::new(Hills::seeded(4)).with(Caves::seeded(7).with_width(0.0));
    assert!(column(&none, &registry) == solid);
}

#[test]
fn veins_replace_only_rock_and_richer_ones_more() {
    let registry = basic_blocks();
    let [gravel, dirt, stone] =
        ["gravel", "dirt", "stone"].map(|name| registry.id(&format!("terrane:{name}")).unwrap());
    let with = |veins: Veins| column(&Layers::new(Flat::new()).with(veins), &registry);
    let veins = || Veins::seeded(3, "terrane:gravel").with_size(10.0);
    let plain = column(&Flat::new(), &registry);
    let amounts = [0.0, 0.2, 0.4, 1.0].map(|richness| count(&with(veins().with_richness(richness)), gravel));
    assert!(amounts[0] == 0 && amounts.is_sorted() && amounts[1] > 0, "{amounts:?}");
    assert!(amounts[3] < 61 * 256 * 2 / 3, "{amounts:?}");
    let made = with(veins());
    assert_eq!(count(&made, dirt), count(&plain, dirt));
    assert_eq!(count(&made, stone) + count(&made, gravel), count(&plain, stone));
    assert!(with(veins().with_heights(100..200)) == plain);
    assert!(with(veins().with_replaced(["terrane:sand"])) == plain);
}

/// Counts requests for columns.
struct Counting(Hills, Arc<AtomicUsize>);

impl Generator for Counting {
    fn identity(&self) -> GeneratorIdentity {
        self.0.identity()
    }

    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.generate(request)
    }
}

#[test]
fn a_column_is_searched_once_for_each_registry() {
    let asked = Arc::new(AtomicUsize::new(0));
    let layers = Layers::new(Counting(Hills::seeded(1), Arc::clone(&asked)))
        .with(GroundCover::new("terrane:snow", "terrane:dirt"))
        .with(WaterFill::new(9));
    let registry = basic_blocks();
    let first = column(&layers, &registry);
    assert_eq!(asked.load(Ordering::Relaxed), 2, "once to make it, once to search it");
    assert!(first == column(&layers, &registry));
    assert_eq!(asked.load(Ordering::Relaxed), 3);

    // The same names with other ids.
    let mut other = BlockRegistry::new();
    other.register(crate::block::BlockType::new("game:first")).unwrap();
    other.register_basic_blocks();
    let second = column(&layers, &other);
    let name = |registry: &BlockRegistry, block: BlockId| registry.block(block).name().to_owned();
    for (x, y, z) in [(0, 0, 0), (3, -20, 9), (15, 8, 15)] {
        assert_eq!(name(&registry, at(&first, x, y, z)), name(&other, at(&second, x, y, z)));
    }
}

#[test]
fn memory_of_searched_columns_is_bounded_and_forgetting_changes_nothing() {
    let registry = basic_blocks();
    let asked = Arc::new(AtomicUsize::new(0));
    let silent = Layers::new(Counting(Hills::seeded(1), Arc::clone(&asked))).with_surface_search(-70..70);
    let surface = |x: i64| silent.surface(&SurfaceRequest { x, z: 0, blocks: &registry }).unwrap();
    let there: Vec<_> = (0..400).map(|column| surface(16 * column)).collect();
    assert_eq!(asked.load(Ordering::Relaxed), 400);
    surface(16 * 399);
    assert_eq!(asked.load(Ordering::Relaxed), 400, "still remembered");
    let back: Vec<_> = (0..400).rev().map(|column| surface(16 * column)).collect();
    assert!(there.iter().rev().eq(back.iter()));
    assert_eq!(asked.load(Ordering::Relaxed), 400 + 144, "256 columns were remembered");
}

#[test]
fn every_setting_is_part_of_the_identity() {
    let cover = || GroundCover::new("terrane:snow", "terrane:dirt");
    let veins = || Veins::seeded(1, "terrane:gravel");
    let caves = || Caves::seeded(1);
    let ground = || Layers::new(Flat::new());
    let all = [
        ground(),
        Layers::new(Void),
        Layers::new(ground()),
        ground().with_surface_search(-1..1),
        ground().with(cover()),
        ground().with(cover()).with(cover()),
        ground().with(cover()).with(caves()),
        ground().with(caves()).with(cover()),
        ground().with(GroundCover::new("terrane:sand", "terrane:dirt")),
        ground().with(GroundCover::new("terrane:snow", "terrane:sand")),
        ground().with(cover().with_depth(1)),
        ground().with(cover().with_heights(0..1)),
        ground().with(cover().with_replaced(["terrane:sand"])),
        ground().with(veins()),
        ground().with(Veins::seeded(2, "terrane:gravel")),
        ground().with(Veins::seeded(1, "terrane:sand")),
        ground().with(veins().with_replaced(["terrane:sand"])),
        ground().with(veins().with_size(30.0)),
        ground().with(veins().with_richness(0.5)),
        ground().with(veins().with_heights(0..1)),
        ground().with(caves()),
        ground().with(Caves::seeded(2)),
        ground().with(caves().with_size(30.0)),
        ground().with(caves().with_width(0.5)),
        ground().with(caves().with_roof(1)),
        ground().with(caves().with_heights(0..1)),
        ground().with(WaterFill::new(1)),
        ground().with(WaterFill::new(2)),
        ground().with(WaterFill::new(1).with_block("terrane:sand")),
    ];
    let identities: std::collections::HashSet<_> = all.iter().map(Layers::identity).collect();
    assert_eq!(identities.len(), all.len());
    assert_eq!(ground().with(cover()).identity(), ground().with(cover()).identity());
}

#[test]
fn unknown_blocks_are_named() {
    let registry = basic_blocks();
    let request = GenerateRequest { column: COLUMN, heights: 0..16, blocks: &registry };
    for layers in [
        Layers::new(Flat::new()).with(Veins::seeded(1, "game:ore")),
        Layers::new(Flat::new()).with(WaterFill::new(1).with_block("game:ore")),
        Layers::new(Flat::new()).with(GroundCover::new("game:ore", "terrane:dirt")),
        Layers::new(Flat::new()).with(GroundCover::new("terrane:dirt", "game:ore")),
    ] {
        let error = layers.generate(&request).err();
        assert_eq!(
            error,
            Some(GenerateError::UnknownBlock { name: "game:ore".to_owned(), nearest: None }),
            "{layers:?}"
        );
    }
}

proptest! {
    #[test]
    fn cutting_keeps_the_inside(
        edits in prop::collection::vec((0i64..16, -40i64..40, 0i64..16, 0u32..3), 0..60),
        uniform in -3i64..3,
        from in -50i64..50,
        length in 0i64..60,
    ) {
        let mut column = Column::new(ColumnPos::new(0, 0));
        column.set_chunk(uniform, Arc::new(Chunk::uniform(BlockId::new(3))));
        column.set_chunk(9, Arc::new(Chunk::default()));
        for (x, y, z, block) in edits {
            column.set_block(BlockPos::new(x, y, z), BlockId::new(block));
        }
        let heights = from..from + length;
        let mut made = column.clone();
        cut(&mut made, &heights);
        for y in -64i64..200 {
            for (x, z) in (0..16).flat_map(|x| (0..16).map(move |z| (x, z))) {
                let expected = if heights.contains(&y) { at(&column, x, y, z) } else { BlockId::AIR };
                prop_assert_eq!(at(&made, x, y, z), expected);
            }
        }
        prop_assert!(made.chunks().all(|(_, chunk)| chunk.uniform_block() != Some(BlockId::AIR)));
    }
}
