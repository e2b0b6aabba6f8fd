//! Features across column borders, in any order of generation.

use super::template_tests::Template;
use super::*;
use crate::block::{BlockId, BlockRegistry};
use crate::chunk::Column;
use crate::generation::rule_tests::{Silent, everything, hut};
use crate::generation::{Flat, GenerateRequest, Generator, Hills, Layers, NoiseMask, Select, basic_blocks};
use crate::space::ColumnPos;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashSet};

type Area = BTreeMap<ColumnPos, Column>;

fn columns(side: i64) -> Vec<ColumnPos> {
    (-side..side).flat_map(|x| (-side..side).map(move |z| ColumnPos::new(x, z))).collect()
}

fn generate(generator: &dyn Generator, registry: &BlockRegistry, column: ColumnPos) -> (ColumnPos, Column) {
    let request = GenerateRequest { column, heights: -64..160, blocks: registry };
    (column, generator.generate(&request).unwrap())
}

fn area(generator: &dyn Generator, registry: &BlockRegistry, columns: &[ColumnPos]) -> Area {
    columns.iter().map(|column| generate(generator, registry, *column)).collect()
}

fn block(area: &Area, place: BlockPos) -> BlockId {
    area[&place.column()].block(place)
}

fn shuffled(mut columns: Vec<ColumnPos>, seed: u64) -> Vec<ColumnPos> {
    let mut random = FeatureRandom::new(seed);
    for last in (1..columns.len()).rev() {
        columns.swap(last, random.below(last as u32 + 1) as usize);
    }
    columns
}

fn hills() -> Hills {
    Hills::seeded(11).with_frequency(0.02)
}

fn crowd(ground: Layers) -> Layers {
    let boulders = Features::new(Placement::seeded(8).with_spacing(2).with_covered(true))
        .with(Boulder::new(1..=6).with_block("terrane:gravel"), 2)
        .unwrap()
        .with(hut(), 1)
        .unwrap()
        .with(Boulder::new(2..=5).with_block("terrane:sand"), 2)
        .unwrap();
    ground.with(boulders)
}

fn choice() -> Select {
    let mask = NoiseMask::seeded(6).with_size(60.0).with_transition(0.8);
    Select::new(Silent(hills()), Hills::seeded(5).with_sea_level(30), mask)
}

/// On ground with a computed surface, and on ground without.
fn crowded() -> [(&'static str, fn() -> Layers); 3] {
    [
        ("hills", || crowd(everything(hills(), 0))),
        ("silent hills", || crowd(everything(Silent(hills()), 0))),
        ("a choice", || crowd(everything(choice(), 0))),
    ]
}

/// Promise, ground: A feature that crosses column borders is complete, for any order and number of threads.
#[test]
fn an_area_is_the_same_in_any_order_and_on_any_number_of_threads() {
    let registry = basic_blocks();
    let all = columns(4);
    for (name, fresh) in crowded() {
        let expected = area(&fresh(), &registry, &all);
        for seed in 0..3 {
            let order = shuffled(all.clone(), seed);
            assert!(area(&fresh(), &registry, &order) == expected, "{name} in order {seed}");
        }
        // One generator for all threads, as in a game, and one whose cache has been filled and emptied a lot.
        let shared = fresh();
        for round in 0..2 {
            let order = shuffled(all.clone(), 10 + round);
            let (shared, registry) = (&shared, &registry);
            let made: Area = std::thread::scope(|scope| {
                let work = |thread: usize| order.iter().skip(thread).step_by(4).copied().collect::<Vec<_>>();
                let threads: Vec<_> =
                    (0..4).map(|thread| scope.spawn(move || area(shared, registry, &work(thread)))).collect();
                threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
            });
            assert!(made == expected, "{name} on several threads, round {round}");
        }
    }
}

/// Draws the ground alone, and then all features in one go over the whole area: the result must be the same, including
/// overlaps.
#[test]
fn overlapping_features_are_drawn_in_the_order_of_their_origins() {
    let registry = basic_blocks();
    let placement = Placement::seeded(8).with_spacing(2);
    let boulder = |block: &str| Boulder::new(2..=2).with_block(block);
    let features = Features::new(placement.clone())
        .with(boulder("terrane:gravel"), 1)
        .unwrap()
        .with(boulder("terrane:sand"), 1)
        .unwrap();
    let kinds = ["terrane:gravel", "terrane:sand"].map(|name| registry.id(name).unwrap());
    let origins = placement.origins_near(ColumnPos::new(0, 0), 60);
    let drawn: Vec<_> = origins.iter().map(|origin| kinds[(origin.choice() % 2) as usize]).collect();
    let made = area(&Layers::new(Flat::new()).with(features), &registry, &columns(3));
    let mut overlaps = 0;
    for (x, z) in (-40..40).flat_map(|x| (-40..40).map(move |z| (x, z))) {
        let covers = |origin: &&Origin| (origin.x - x).pow(2) + (origin.z - z).pow(2) <= 5;
        let here: Vec<_> = origins.iter().zip(&drawn).filter(|(origin, _)| covers(origin)).collect();
        if let Some((_, last)) = here.last() {
            overlaps += usize::from(here.len() > 1);
            assert_eq!(block(&made, BlockPos::new(x, 0, z)), **last, "at {x}, {z}");
        }
    }
    assert!(overlaps > 100, "only {overlaps} places are drawn twice");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// However columns cut it, every block of a feature is there, and no block that does not belong to it.
    ///
    /// Promise, ground: A feature that crosses column borders is complete, for any order and number of threads.
    #[test]
    fn a_feature_drawn_by_neighbours_is_whole(
        seed in any::<u64>(),
        reach in 0i64..20,
        offsets in prop::collection::btree_set((-20i64..=20, -9i64..=20, -20i64..=20), 1..80),
        gap in 1u32..12,
    ) {
        let registry = basic_blocks();
        let gravel = registry.id("terrane:gravel").unwrap();
        let offsets: HashSet<_> = offsets.into_iter().map(|(x, y, z)| [x % (reach + 1), y, z % (reach + 1)]).collect();
        let blocks = offsets.iter().map(|at| (*at, "terrane:gravel")).collect();
        let template = Template { name: "test:thing", blocks };
        let placement = Placement::seeded(seed).with_spacing(2 * reach as u32 + gap);
        let side = 5;
        let origins: Vec<_> = placement.origins_near(ColumnPos::new(0, 0), 16 * side as u32 + 24);
        let features = Features::new(placement).with(template, 1).unwrap();
        let made = area(&Layers::new(Flat::new()).with(features), &registry, &columns(side));

        let inside = |x: i64, z: i64| made.contains_key(&BlockPos::new(x, 0, z).column());
        let mut expected = 0;
        for origin in origins {
            for [x, y, z] in &offsets {
                let place = BlockPos::new(origin.x + x, *y, origin.z + z);
                if inside(place.x, place.z) {
                    expected += 1;
                    prop_assert_eq!(block(&made, place), gravel, "at {} of {:?}", place, origin);
                }
            }
        }
        let counted: usize = made
            .values()
            .flat_map(|column| column.chunks())
            .map(|(_, chunk)| chunk.blocks().filter(|block| *block == gravel).count())
            .sum();
        prop_assert_eq!(counted, expected);
    }
}

/// The number of trees in the columns -4 ..= 4, and of their wood and leaf blocks.
fn tree_blocks(tree: Tree) -> (usize, [usize; 2]) {
    let registry = basic_blocks();
    let placement = Placement::seeded(3).with_spacing(12);
    let origins = placement.origins_near(ColumnPos::new(0, 0), 64).len();
    let made =
        area(&Layers::new(Flat::new()).with(Features::new(placement).with(tree, 1).unwrap()), &registry, &columns(5));
    let counted = |column: &&ColumnPos| (-4..=4).contains(&column.x) && (-4..=4).contains(&column.z);
    let mut blocks = [0; 2];
    for (_, column) in made.iter().filter(|(column, _)| counted(column)) {
        for (index, name) in ["terrane:wood", "terrane:leaves"].iter().enumerate() {
            let id = registry.id(name).unwrap();
            let chunks = column.chunks().map(|(_, chunk)| chunk.blocks().filter(|block| *block == id).count());
            blocks[index] += chunks.sum::<usize>();
        }
    }
    (origins, blocks)
}

#[test]
fn trees_have_their_trunk_and_leaves() {
    for shape in [TreeShape::Round, TreeShape::Conifer, TreeShape::Umbrella] {
        let (trees, [wood, _]) = tree_blocks(Tree::new(shape, 5..=5, 0));
        assert_eq!(wood, 5 * trees, "{shape:?}");
        let (_, [wood, leaves]) = tree_blocks(Tree::new(shape, 5..=5, 3));
        assert!(wood == 5 * trees && leaves > 6 * trees, "{shape:?}: {leaves} leaves on {trees} trees");
    }
}

#[test]
fn trees_stand_on_their_soil_and_not_in_water() {
    let registry = basic_blocks();
    let [wood, grass] = ["terrane:wood", "terrane:grass"].map(|name| registry.id(name).unwrap());
    let on = |placement: Placement| {
        let forest = Features::new(placement.with_spacing(3)).with(Tree::round(), 1).unwrap();
        let made = area(&Layers::new(Hills::seeded(9)).with(forest), &registry, &columns(4));
        let feet = (-64..64).flat_map(|x| (-64..64).map(move |z| (x, z))).filter_map(|(x, z)| {
            let y = Hills::seeded(9).height_at(x, z);
            (block(&made, BlockPos::new(x, y + 1, z)) == wood).then(|| (y, block(&made, BlockPos::new(x, y, z))))
        });
        feet.collect::<Vec<_>>()
    };
    let anywhere = on(Placement::seeded(1));
    let on_grass = on(Placement::seeded(1).with_soil(["terrane:grass"]));
    assert!(anywhere.iter().all(|(y, _)| *y >= -1) && anywhere.iter().any(|(_, soil)| *soil != grass));
    assert!(on_grass.len() > 50 && on_grass.iter().all(|(_, soil)| *soil == grass));
    let high = on(Placement::seeded(1).with_heights(10..20));
    assert!(!high.is_empty() && high.iter().all(|(y, _)| (10..20).contains(y)));
    assert!(on(Placement::seeded(1).with_chance(0.2)).len() < anywhere.len() / 2);
    assert!(on(Placement::seeded(1).with_chance(0.0)).is_empty());
}

#[test]
fn boulders_lie_in_water_if_they_may() {
    let registry = basic_blocks();
    let gravel = registry.id("terrane:gravel").unwrap();
    let boulders = |covered: bool| {
        let placement = Placement::seeded(2).with_spacing(6).with_covered(covered);
        let features = Features::new(placement).with(Boulder::default().with_block("terrane:gravel"), 1).unwrap();
        let sea = Flat::new().with_layers(-20, [("terrane:stone", 10), ("terrane:water", 10)]);
        let (_, made) = generate(&Layers::new(sea).with(features), &registry, ColumnPos::new(0, 0));
        made.chunks().map(|(_, chunk)| chunk.blocks().filter(|block| *block == gravel).count()).sum::<usize>()
    };
    assert!(boulders(true) > 0);
    assert_eq!(boulders(false), 0);
}

struct Stray(FeatureReach, [i64; 3]);

impl Feature for Stray {
    fn identity(&self) -> GeneratorIdentity {
        GeneratorIdentity::new("test:stray", 1, 0)
    }

    fn reach(&self) -> FeatureReach {
        self.0
    }

    fn draw(&self, canvas: &mut FeatureCanvas<'_, '_>) -> Result<(), GenerateError> {
        let stone = canvas.id("terrane:stone")?;
        canvas.set(self.1, stone);
        Ok(())
    }
}

#[test]
fn a_block_beyond_the_reach_is_an_error_that_says_where() {
    let registry = basic_blocks();
    let reach = FeatureReach { horizontal: 2, up: 3, down: 1 };
    let made = |offset: [i64; 3]| {
        let features = Features::new(Placement::seeded(1).with_spacing(3)).with(Stray(reach, offset), 1).unwrap();
        let request = GenerateRequest { column: ColumnPos::new(0, 0), heights: -64..64, blocks: &registry };
        Layers::new(Flat::new()).with(features).generate(&request)
    };
    for offset in [[2, 3, -2], [-2, -1, 2], [0, 0, 0]] {
        assert!(made(offset).is_ok());
    }
    for stray in [[3, 0, 0], [0, 4, 0], [0, -2, 0], [0, 0, -3], [i64::MIN, 0, 0], [0, i64::MAX, 0]] {
        match made(stray) {
            Err(GenerateError::BeyondReach { feature, offset, .. }) => {
                assert_eq!((feature.as_str(), offset), ("test:stray", stray));
            }
            other => panic!("{stray:?}: {other:?}"),
        }
    }
}

#[test]
fn reaches_beyond_the_limit_are_refused() {
    let with = |spacing, reach| Features::new(Placement::seeded(1).with_spacing(spacing)).with(Stray(reach, [0; 3]), 1);
    let limit = FeatureReach::LIMIT;
    assert!(with(4, limit).is_ok());
    for reach in [
        FeatureReach { horizontal: 65, ..limit },
        FeatureReach { up: 257, ..limit },
        FeatureReach { down: u32::MAX, ..limit },
    ] {
        let error = with(100, reach).unwrap_err();
        assert!(matches!(error, FeatureError::ReachTooLarge { .. }), "{error}");
        assert!(error.to_string().contains("test:stray"), "{error}");
    }
    assert!(matches!(with(1, limit), Err(FeatureError::TooCrowded { spacing: 1, limit: MAX_ORIGINS, .. })));
}

#[test]
fn features_at_the_edges_of_the_world_do_no_harm() {
    let registry = basic_blocks();
    for base in [i64::MAX - 3, i64::MIN] {
        let ground = Flat::new().with_layers(base, [("terrane:stone", 1)]);
        let features = Features::new(Placement::seeded(1).with_spacing(2));
        let features = features.with(Boulder::new(3..=9), 1).unwrap().with(Tree::round(), 1).unwrap();
        let layers = Layers::new(ground).with(features);
        for (x, z) in [(i64::MAX >> 4, i64::MIN >> 4), (i64::MIN >> 4, 0)] {
            let request =
                GenerateRequest { column: ColumnPos::new(x, z), heights: i64::MIN..i64::MAX, blocks: &registry };
            assert!(layers.generate(&request).unwrap().chunks().len() > 0);
        }
    }
}

#[test]
fn every_setting_is_part_of_the_identity() {
    let placement = || Placement::seeded(1).with_spacing(9);
    let of = |placement: Placement, tree: Tree| Features::new(placement).with(tree, 1).unwrap();
    let tree = Tree::round;
    let all = [
        Features::new(placement()),
        of(placement(), tree()),
        of(placement(), tree()).with(tree(), 1).unwrap(),
        Features::new(placement()).with(tree(), 2).unwrap(),
        of(Placement::seeded(2).with_spacing(9), tree()),
        of(placement().with_spacing(10), tree()),
        of(placement().with_chance(0.5), tree()),
        of(placement().with_soil(["terrane:grass"]), tree()),
        of(placement().with_soil(["terrane:grass", "terrane:dirt"]), tree()),
        of(placement().with_heights(0..1), tree()),
        of(placement().with_covered(true), tree()),
        of(placement(), Tree::new(TreeShape::Umbrella, 4..=6, 2)),
        of(placement(), Tree::new(TreeShape::Conifer, 4..=6, 2)),
        of(placement(), Tree::new(TreeShape::Round, 3..=6, 2)),
        of(placement(), Tree::new(TreeShape::Round, 4..=7, 2)),
        of(placement(), Tree::new(TreeShape::Round, 4..=6, 3)),
        of(placement(), tree().with_blocks("terrane:sand", "terrane:leaves")),
        of(placement(), tree().with_blocks("terrane:wood", "terrane:sand")),
        Features::new(placement()).with(Boulder::new(1..=2), 1).unwrap(),
        Features::new(placement()).with(Boulder::new(1..=3), 1).unwrap(),
        Features::new(placement()).with(Boulder::new(2..=3), 1).unwrap(),
        Features::new(placement()).with(Boulder::new(2..=3).with_block("terrane:sand"), 1).unwrap(),
        Features::new(placement()).with(hut(), 1).unwrap(),
    ];
    let identities: HashSet<_> = all.iter().map(Features::identity).collect();
    assert_eq!(identities.len(), all.len());
}
