//! The rules for every generator, of this crate or not: requested heights only cut, and a computed surface matches the
//! generated one.

use super::features::template_tests::Template;
use super::layers::cut;
use super::surface::surfaces_of;
use super::*;
use crate::block::{BlockId, BlockRegistry};
use crate::chunk::Column;
use crate::space::{BlockPos, CHUNK_SIZE, ColumnPos};
use proptest::prelude::*;
use std::ops::Range;

/// The heights of the test ground: at the origin, far out, and as close to the edges of `i64` as possible.
const SEA_LEVELS: [i64; 5] = [0, 1_000_000_000_000, -1_000_000_000_000, i64::MAX - 400, i64::MIN + 400];

/// A generator that does not compute its surface.
pub(super) struct Silent<G>(pub G);

impl<G: Generator> Generator for Silent<G> {
    fn identity(&self) -> GeneratorIdentity {
        self.0.identity()
    }

    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        self.0.generate(request)
    }
}

/// A layer that depends on the blocks above: moss three blocks below a hollow, or below the moss of an earlier layer.
struct Moss;

impl GenerateLayer for Moss {
    fn identity(&self) -> GeneratorIdentity {
        GeneratorIdentity::new("test:moss", 1, 0)
    }

    fn vertical_reach(&self) -> u16 {
        3
    }

    fn apply(&self, column: &mut LayerColumn<'_>) -> Result<(), GenerateError> {
        let (stone, moss) = (column.id("terrane:stone")?, column.id("terrane:leaves")?);
        let heights = column.filled_heights();
        let tops: Vec<_> = column
            .places()
            .flat_map(|(x, z)| heights.clone().map(move |y| (x, y, z)))
            .filter(|(x, y, z)| {
                let is = |y: i64, block| column.block(*x, y, *z) == Some(block);
                let grows_below = |above| is(above, BlockId::AIR) || is(above, moss);
                is(*y, stone) && y.checked_add(3).is_some_and(grows_below)
            })
            .collect();
        tops.into_iter().for_each(|(x, y, z)| column.set_block(x, y, z, moss));
        Ok(())
    }
}

pub(super) fn hut() -> Template {
    let walls = (-3i64..=3).flat_map(|x| (-3i64..=3).flat_map(move |z| (0..=4).map(move |y| [x, y, z])));
    let name = |[x, y, z]: [i64; 3]| match (x.abs().max(z.abs()), y) {
        (_, 0 | 4) | (3, _) => "terrane:wood",
        _ => "terrane:air",
    };
    Template { name: "test:hut", blocks: walls.map(|at| (at, name(at))).collect() }
}

/// All layers of this crate.
pub(super) fn everything(ground: impl Generator, sea_level: i64) -> Layers {
    let forest = Placement::seeded(4).with_spacing(3).with_soil(["terrane:grass", "terrane:snow"]);
    let rocks = Placement::seeded(5).with_spacing(9).with_covered(true);
    Layers::new(ground)
        .with(Veins::seeded(1, "terrane:gravel"))
        .with(Caves::seeded(2).with_width(0.2))
        .with(GroundCover::new("terrane:snow", "terrane:dirt").with_heights(sea_level + 12..i64::MAX))
        .with(WaterFill::new(sea_level + 2))
        .with(Features::new(rocks).with(Boulder::default(), 3).unwrap().with(hut(), 1).unwrap())
        .with(
            Features::new(forest)
                .with(Tree::round(), 2)
                .unwrap()
                .with(Tree::conifer(), 1)
                .unwrap()
                .with(Tree::umbrella(), 1)
                .unwrap(),
        )
        .with_surface_search(sea_level.saturating_sub(300)..sea_level.saturating_add(300))
}

fn map() -> Heightmap {
    let map = Heightmap::open(concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/jacksboro_fault_dem.png")).unwrap();
    map.with_blocks_per_unit(0.2).unwrap().with_sea_level(600.0).unwrap().with_water(500.0, "terrane:water").unwrap()
}

/// All generators whose ground can be near this height.
fn generators(sea_level: i64) -> Vec<(&'static str, Box<dyn Generator>)> {
    let hills = || Hills::seeded(11).with_sea_level(sea_level).with_frequency(0.02);
    let low = || Hills::seeded(12).with_sea_level(sea_level - 30).with_amplitude(10.0);
    let layers = [("terrane:stone", 40), ("terrane:dirt", 3), ("terrane:water", 9)];
    let mask = || NoiseMask::seeded(6).with_size(60.0).with_transition(0.8);
    let flat = Flat::new().with_layers(sea_level, layers);
    let search = sea_level.saturating_sub(300)..sea_level.saturating_add(300);
    let mut all: Vec<(&'static str, Box<dyn Generator>)> = vec![
        ("void", Box::new(Void)),
        ("flat", Box::new(flat.clone())),
        ("hills", Box::new(hills())),
        ("everything on hills", Box::new(everything(hills(), sea_level))),
        ("everything on silent hills", Box::new(everything(Silent(hills()), sea_level))),
        ("moss in caves", Box::new(Layers::new(hills()).with(Caves::seeded(2)).with(Moss).with(Moss))),
        ("hills or low hills", Box::new(Select::new(hills(), low(), mask()))),
        ("low hills or silent flat", Box::new(Select::new(low(), Silent(flat), mask()).with_surface_search(search))),
        ("everything on a choice", Box::new(everything(Select::new(low(), hills(), mask()), sea_level))),
        ("a choice of everything", Box::new(Select::new(everything(low(), sea_level), Void, mask()))),
    ];
    if sea_level == 0 {
        all.push(("heightmap", Box::new(map())));
        all.push(("everything on a silent heightmap", Box::new(everything(Silent(map()), sea_level))));
    }
    all
}

fn columns() -> [ColumnPos; 4] {
    [
        ColumnPos::new(0, 0),
        ColumnPos::new(-7, 12),
        ColumnPos::new(i64::MIN >> 4, i64::MAX >> 4),
        ColumnPos::new(1 << 40, -5),
    ]
}

fn generate(generator: &dyn Generator, column: ColumnPos, heights: Range<i64>, blocks: &BlockRegistry) -> Column {
    generator.generate(&GenerateRequest { column, heights, blocks }).unwrap()
}

fn assert_windows_agree(sea_level: i64, cuts: &[i64]) {
    let registry = basic_blocks();
    let all = sea_level.saturating_sub(260)..sea_level.saturating_add(260);
    let mut edges: Vec<i64> = cuts.iter().map(|cut| all.start + cut).chain([all.start, all.end]).collect();
    edges.sort_unstable();
    for (name, generator) in generators(sea_level) {
        for column in columns() {
            let whole = generate(&*generator, column, all.clone(), &registry);
            let boundless = generate(&*generator, column, i64::MIN..i64::MAX, &registry);
            let mut clipped = boundless;
            cut(&mut clipped, &all);
            assert!(clipped == whole, "{name} at {column}: heights do more than cut");
            for pair in edges.windows(2) {
                let window = pair[0]..pair[1];
                let mut expected = whole.clone();
                cut(&mut expected, &window);
                let made = generate(&*generator, column, window.clone(), &registry);
                assert!(made == expected, "{name} at {column}, window {window:?}");
            }
        }
    }
}

#[test]
fn the_union_of_windows_is_the_whole() {
    for sea_level in SEA_LEVELS {
        // Windows of one block, of chunks, and others.
        assert_windows_agree(sea_level, &[4, 20, 36, 37, 240, 250, 251, 260, 263, 266, 267, 280, 312, 519]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// Promise, ground: A generated block depends only on its place and the settings, not on the requested heights.
    #[test]
    fn the_union_of_any_windows_is_the_whole(
        sea_level in prop::sample::select(&SEA_LEVELS[..]),
        cuts in prop::collection::vec(150i64..400, 1..6),
    ) {
        assert_windows_agree(sea_level, &cuts);
    }
}

/// A height map that lies 10^12 blocks up or down, as far as its settings allow.
///
/// Promise, ground: A column can be generated at any height within `i64`.
#[test]
fn windows_of_a_height_map_agree_far_from_sea_level() {
    let registry = basic_blocks();
    let level = map().with_blocks_per_unit(1_048_576.0).unwrap();
    for units in [1_000_000.0, -953_674.0] {
        let map = level.clone().with_sea_level(units).unwrap();
        for column in columns() {
            let (x, z) = (column.x << 4, column.z << 4);
            let surface = map.height_at(x + 5, z + 9);
            assert!(surface.abs() > 990_000_000_000);
            let whole = generate(&map, column, surface - 300..surface + 300, &registry);
            assert_ne!(whole.block(BlockPos::new(x + 5, surface, z + 9)), BlockId::AIR);
            for window in [surface - 300..surface - 11, surface - 11..surface + 1, surface + 1..surface + 300] {
                let mut expected = whole.clone();
                cut(&mut expected, &window);
                assert!(generate(&map, column, window, &registry) == expected);
            }
        }
    }
}

/// A computed surface matches the generated ground. Features are not ground, so they are left out.
#[test]
fn the_announced_surface_matches_the_generated_one() {
    let registry = basic_blocks();
    for sea_level in SEA_LEVELS {
        for (name, generator) in generators(sea_level).into_iter().filter(|(name, _)| !name.contains("everything")) {
            for column in columns() {
                let heights = sea_level.saturating_sub(300)..sea_level.saturating_add(300);
                let made = surfaces_of(&generate(&*generator, column, heights, &registry), &registry);
                for (at, expected) in made.iter().enumerate() {
                    let (x, z) = ((at % CHUNK_SIZE) as i64, (at / CHUNK_SIZE) as i64);
                    let request = SurfaceRequest { x: (column.x << 4) + x, z: (column.z << 4) + z, blocks: &registry };
                    let told = generator.surface(&request).unwrap();
                    assert_eq!(told, SurfaceAnswer::Known(*expected), "{name} at {column}, {x}, {z}");
                }
            }
        }
    }
}

#[test]
fn chunks_of_air_are_left_out() {
    let registry = basic_blocks();
    for (name, generator) in generators(0) {
        for column in columns() {
            let made = generate(&*generator, column, -77..301, &registry);
            for (y, chunk) in made.chunks() {
                assert_ne!(chunk.uniform_block(), Some(BlockId::AIR), "{name}: chunk {y} of {column}");
            }
        }
    }
}

#[test]
fn places_that_no_block_can_lie_in_do_no_harm() {
    let registry = basic_blocks();
    for (_, generator) in generators(0) {
        for (x, z) in [(i64::MAX, i64::MIN), (i64::MIN, 0)] {
            generate(&*generator, ColumnPos::new(x, z), -64..320, &registry);
        }
        for heights in [0..0, Range { start: 9, end: 3 }, i64::MIN..i64::MIN + 1, i64::MAX - 1..i64::MAX] {
            generate(&*generator, ColumnPos::new(0, 0), heights, &registry);
        }
    }
}
