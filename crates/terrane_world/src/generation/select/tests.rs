//! Two generators and the blend between them.

use super::*;
use crate::generation::{Flat, Hills, NoiseMask, Void, basic_blocks};
use crate::space::{BlockPos, ColumnPos};
use std::collections::HashSet;

/// From the first generator at x = 0 to the second at x = 64.
struct Ramp;

impl Mask for Ramp {
    fn identity(&self) -> GeneratorIdentity {
        GeneratorIdentity::new("test:ramp", 1, 0)
    }

    fn weight(&self, x: i64, _: i64) -> f32 {
        x as f32 / 64.0
    }
}

/// Invalid weights of a mask.
struct Wild(f32);

impl Mask for Wild {
    fn identity(&self) -> GeneratorIdentity {
        GeneratorIdentity::new("test:wild", 1, 0)
    }

    fn weight(&self, _: i64, _: i64) -> f32 {
        self.0
    }
}

fn level(y: i64, block: &str) -> Flat {
    Flat::new().with_layers(y - 30, [("terrane:stone", 30), (block, 1)])
}

fn column(generator: &impl Generator, registry: &BlockRegistry, x: i64) -> Column {
    let request = GenerateRequest { column: ColumnPos::new(x, 0), heights: -200..700, blocks: registry };
    generator.generate(&request).unwrap()
}

fn surface(column: &Column, x: i64) -> i64 {
    column.surface((x & 15) as usize, 3).unwrap()
}

/// Promise, ground: `Select` chooses between two generators by a mask and blends their heights.
#[test]
fn heights_are_blended_between_the_two() {
    let registry = basic_blocks();
    let [grass, sand, stone] = ["grass", "sand", "stone"].map(|name| registry.id(&format!("terrane:{name}")).unwrap());
    let slope = Select::new(level(0, "terrane:grass"), level(40, "terrane:sand"), Ramp);
    let mut last = 0;
    for x in -20..90 {
        let made = column(&slope, &registry, x >> 4);
        let y = surface(&made, x);
        assert_eq!(y, (40.0 * (x as f64 / 64.0).clamp(0.0, 1.0)).round() as i64, "at x = {x}");
        assert!((0..=1).contains(&(y - last)));
        last = y;
        let block = |y| made.block(BlockPos::new(x, y, 3));
        assert_eq!(block(y), if x < 32 { grass } else { sand });
        assert_eq!([block(y - 1), block(y - 30), block(y - 31)], [stone, stone, BlockId::AIR]);
    }
}

#[test]
fn a_sea_stays_level_while_the_ground_is_moved() {
    let registry = basic_blocks();
    let water = registry.id("terrane:water").unwrap();
    let sea = Flat::new().with_layers(-40, [("terrane:stone", 21), ("terrane:water", 19)]);
    for (shore, x_of) in [
        (Select::new(sea.clone(), level(20, "terrane:grass"), Ramp), (|x| x) as fn(i64) -> i64),
        (Select::new(level(20, "terrane:grass"), sea, Ramp), |x| 64 - x),
    ] {
        let (mut wet, mut dry) = (0, 0);
        for x in 0..64 {
            let x = x_of(x).clamp(0, 63);
            let made = column(&shore, &registry, x >> 4);
            let request = SurfaceRequest { x, z: 3, blocks: &registry };
            let SurfaceAnswer::Known(Some(ground)) = shore.surface(&request).unwrap() else { panic!("no ground") };
            let top = surface(&made, x);
            assert_eq!(ground.covered_to.unwrap_or(ground.y), top);
            if top == ground.y {
                dry += 1;
                assert!(top >= -1, "dry at {top}");
            } else {
                wet += 1;
                assert_eq!(top, -1);
                assert!((ground.y + 1..=top).all(|y| made.block(BlockPos::new(x, y, 3)) == water));
            }
        }
        assert!(wet > 10 && dry > 10, "{wet} wet, {dry} dry");
    }
}

#[test]
fn generators_that_cannot_blend_meet_in_a_cliff() {
    let registry = basic_blocks();
    let cliff = Select::new(level(0, "terrane:grass"), level(600, "terrane:sand"), Ramp);
    assert_eq!((surface(&column(&cliff, &registry, 1), 31), surface(&column(&cliff, &registry, 2), 32)), (0, 600));
    let coast = Select::new(level(0, "terrane:grass"), Void, Ramp);
    assert_eq!(surface(&column(&coast, &registry, 1), 31), 0);
    assert_eq!(column(&coast, &registry, 2).surface(0, 3), None);
}

#[test]
fn weights_beyond_the_range_are_held_within_it() {
    let registry = basic_blocks();
    let (first, second) = (level(0, "terrane:grass"), level(40, "terrane:sand"));
    for (weight, expected) in [(f32::NAN, 0), (-3.0, 0), (7.0, 40), (f32::INFINITY, 40)] {
        let select = Select::new(first.clone(), second.clone(), Wild(weight));
        assert_eq!(surface(&column(&select, &registry, 0), 0), expected, "for {weight}");
    }
}

#[test]
fn a_noise_mask_shares_the_world_and_has_soft_edges() {
    let part = |mask: &NoiseMask| {
        let weights = (0..200).flat_map(|x| (0..200).map(move |z| (x * 37, z * 37)));
        weights.map(|(x, z)| f64::from(mask.weight(x, z))).sum::<f64>() / 40_000.0
    };
    let mask = NoiseMask::seeded(9).with_size(200.0);
    assert_eq!((part(&mask.clone().with_share(0.0)), part(&mask.clone().with_share(1.0))), (0.0, 1.0));
    let shares = [0.2, 0.35, 0.5, 0.65, 0.8].map(|share| part(&mask.clone().with_share(share)));
    assert!(shares.is_sorted() && (0.45..0.55).contains(&shares[2]), "{shares:?}");
    assert!((0.02..0.3).contains(&shares[0]) && (0.7..0.98).contains(&shares[4]), "{shares:?}");

    let step = |mask: &NoiseMask, z: i64| {
        let weights: Vec<f32> = (0..3_000).map(|x| mask.weight(x, z)).collect();
        weights.windows(2).map(|pair| (pair[0] - pair[1]).abs()).fold(0.0, f32::max)
    };
    for z in [0, 1_000_000_000_000, i64::MAX] {
        assert!(step(&mask, z) < 0.2);
        assert_eq!(step(&mask.clone().with_transition(0.0), z), 1.0);
    }
}

#[test]
fn every_setting_is_part_of_the_identity() {
    let mask = || NoiseMask::seeded(1);
    let select = |mask: NoiseMask| Select::new(Hills::seeded(1), Flat::new(), mask);
    let all = [
        select(mask()),
        Select::new(Flat::new(), Hills::seeded(1), mask()),
        Select::new(Hills::seeded(1), Void, mask()),
        Select::new(Hills::seeded(1), Flat::new(), Ramp),
        select(mask()).with_surface_search(0..1),
        select(NoiseMask::seeded(2)),
        select(mask().with_size(90.0)),
        select(mask().with_share(0.3)),
        select(mask().with_transition(0.1)),
    ];
    let identities: HashSet<_> = all.iter().map(Select::identity).collect();
    assert_eq!(identities.len(), all.len());
}
