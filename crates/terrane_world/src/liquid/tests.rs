//! The rules of liquids, one at a time; then random ground, compared with a [slow model](model).

mod model;
mod world;

use super::*;
use crate::block::{BlockId, BlockRegistry, BlockType};
use crate::space::BlockPos;
use proptest::prelude::*;
use world::{Ground, World};

fn at(x: i64, y: i64, z: i64) -> BlockPos {
    BlockPos::new(x, y, z)
}

/// The floor of the world, flat, with a source in the middle.
fn spring(rules: LiquidRules) -> World {
    let mut world = World::new(&[rules]);
    world.fill([0..17, 0..1, 0..17], world.stone);
    world.set(at(8, 1, 8), world.source(0));
    world
}

/// Promise, liquids: A liquid flows seven steps over flat ground, each step an eighth lower, and then rests.
#[test]
fn a_spring_flows_seven_steps_and_rests() {
    let mut world = spring(LiquidRules::new("game:water"));
    world.settle();
    for (x, z) in (0..17_i64).flat_map(|x| (0..17_i64).map(move |z| (x, z))) {
        let expected = match (x - 8).abs() + (z - 8).abs() {
            0 => "8".to_owned(),
            away if away <= 7 => (8 - away).to_string(),
            _ => String::new(),
        };
        assert_eq!(world.level(at(x, 1, z)), expected, "{x}, {z}");
    }
    assert_eq!(world.clock, 5 * 8, "five ticks for each step, and a last look at the edge");
    assert!(world.is_settled());
}

#[test]
fn a_liquid_with_fewer_steps_loses_more_at_each() {
    let mut world = spring(LiquidRules::new("game:water").with_steps(3));
    world.settle();
    assert_eq!([8, 9, 10, 11, 12].map(|x| world.level(at(x, 1, 8))), ["8", "6", "4", "2", ""]);
    // A level that no step has becomes the level of the cell's place.
    world.set(at(9, 1, 8), world.state(0, "7"));
    world.settle();
    assert_eq!(world.level(at(9, 1, 8)), "6");
}

/// Promise, liquids: Where the sources are taken away, all that flowed from them dries.
#[test]
fn without_its_source_a_liquid_dries() {
    let mut world = spring(LiquidRules::new("game:water"));
    world.settle();
    world.set(at(8, 1, 8), BlockId::AIR);
    world.settle();
    assert_eq!(world.count(|cell| cell != BlockId::AIR && cell != world.stone), 0);
}

/// Promise, liquids: A liquid dries also beside ground that is not loaded, except where it may come from there.
#[test]
fn without_its_source_a_liquid_dries_beside_ground_that_is_not_loaded() {
    for hidden_from in 10..=14 {
        let mut world = spring(LiquidRules::new("game:water"));
        world.settle();
        world.hidden_from = hidden_from;
        world.set(at(8, 1, 8), BlockId::AIR);
        world.settle();
        let left: Vec<_> = world.levels().into_keys().filter(|pos| pos.x < hidden_from - 1).collect();
        assert_eq!(left, [], "ground is loaded up to {hidden_from}");
        world.reveal();
        world.settle();
        assert_eq!(world.levels().len(), 0);
    }
}

#[test]
fn a_liquid_falls_first_and_spreads_where_it_lands() {
    let mut world = World::new(&[LiquidRules::new("game:water")]);
    world.fill([0..17, 0..1, 0..17], world.stone);
    world.set(at(8, 5, 8), world.source(0));
    world.settle();
    for y in 1..5 {
        assert_eq!(world.level(at(8, y, 8)), "falling");
    }
    assert_eq!([1, 2, 5].map(|y| world.level(at(9, y, 8))), ["7", "", ""]);
}

#[test]
fn a_liquid_flows_towards_the_nearest_drop_within_four_steps() {
    for (steps, is_found) in [(1, true), (3, true), (4, true), (5, false)] {
        let mut world = spring(LiquidRules::new("game:water"));
        world.set(at(8 + steps, 0, 8), BlockId::AIR);
        world.settle();
        assert_eq!(world.level(at(9, 1, 8)), "7");
        assert_eq!(world.level(at(7, 1, 8)), if is_found { "" } else { "7" }, "a drop after {steps} steps");
        assert_eq!(world.level(at(8 + steps, 0, 8)), "falling");
    }
    // A wall is in the way to the nearer drop.
    let mut world = spring(LiquidRules::new("game:water"));
    world.set(at(10, 0, 8), BlockId::AIR);
    world.set(at(5, 0, 8), BlockId::AIR);
    world.fill([9..10, 1..2, 6..11], world.stone);
    world.settle();
    assert_eq!([7, 9, 10].map(|x| world.level(at(x, 1, 8))), ["7", "", ""]);
}

#[test]
fn two_sources_renew_a_third_between_them_if_the_liquid_renews() {
    for renews in [false, true] {
        let rules = LiquidRules::new("game:water");
        let mut world = spring(if renews { rules.renewing() } else { rules });
        world.set(at(10, 1, 8), world.source(0));
        world.settle();
        assert_eq!(world.level(at(9, 1, 8)), if renews { "8" } else { "7" });
    }
}

/// Promise, liquids: Two liquids that touch become the block of their meeting, and stop each other without one.
#[test]
fn liquids_that_meet_become_a_block() {
    let lava = || LiquidRules::new("game:lava").with_steps(3).with_delay(30);
    for meets in [false, true] {
        let lava = if meets { lava().with_meeting("game:water", "game:stone") } else { lava() };
        let mut world = World::new(&[LiquidRules::new("game:water"), lava]);
        world.fill([0..17, 0..1, 7..10], world.stone);
        world.fill([0..17, 1..2, 7..8], world.stone);
        world.fill([0..17, 1..2, 9..10], world.stone);
        world.set(at(2, 1, 8), world.source(1));
        world.set(at(9, 1, 8), world.source(0));
        world.settle();
        assert_eq!(world.level(at(3, 1, 8)), if meets { "" } else { "6" });
        let stones = (1..17).filter(|x| world.block(at(*x, 1, 8)) == Some(world.stone)).count();
        assert_eq!(stones, usize::from(meets), "one cell, where they would touch: {meets}");
    }
}

#[test]
fn flowers_are_washed_away_and_torches_are_not() {
    let mut world = spring(LiquidRules::new("game:water"));
    world.set(at(9, 1, 8), world.flower);
    world.set(at(7, 1, 8), world.torch);
    world.settle();
    assert_eq!([9, 7].map(|x| world.block(at(x, 1, 8))), [Some(world.state(0, "7")), Some(world.torch)]);
}

/// Promise, liquids: Water in one place with a slab, in any layer, flows out of its sides, and not through what the slab closes.
#[test]
fn a_source_flows_out_of_the_block_with_which_it_shares_a_cell() {
    for (number, is_first) in (0..10).flat_map(|number| [(number, true), (number, false)]) {
        // Over a pit.
        let mut world = spring(LiquidRules::new("game:water"));
        world.fill([7..10, 0..1, 7..10], BlockId::AIR);
        world.fill([7..10, 1..2, 7..10], BlockId::AIR);
        let (source, part) = (world.source(0), world.partial[number]);
        world.put(at(8, 1, 8), if is_first { vec![source, part] } else { vec![part, source] });
        world.settle();
        let flows = |x, y, z| !world.level(at(x, y, z)).is_empty();
        let kind = number % 5;
        let is_bottom_closed = kind == 1 || kind == 3;
        assert_eq!(world.level(at(8, 0, 8)) == "falling", !is_bottom_closed, "{number}");
        // It flows to the sides only where it does not fall.
        let sides = [flows(7, 1, 8), flows(9, 1, 8), flows(8, 1, 7), flows(8, 1, 9)];
        assert_eq!(sides, [is_bottom_closed, is_bottom_closed, kind == 1, is_bottom_closed], "{number}");
        world.take_source(at(8, 1, 8));
        world.settle();
        assert_eq!((world.levels().len(), world.blocks(at(8, 1, 8))), (0, Some(vec![part])), "{number}");
    }
}

/// Promise, liquids: Liquid flows into the place of a porous block and through it, dries there, and comes back; it stops at other blocks.
#[test]
fn a_liquid_flows_through_porous_blocks_and_stops_at_others() {
    for (number, is_passed) in [(0, true), (1, true), (3, true), (5, false), (6, false)] {
        let mut world = spring(LiquidRules::new("game:water"));
        world.fill([0..17, 1..2, 7..8], world.stone);
        world.fill([0..17, 1..2, 9..10], world.stone);
        let part = world.partial[number];
        world.set(at(10, 1, 8), part);
        for _ in 0..2 {
            world.settle();
            let expected = if is_passed { ["7", "6", "5"] } else { ["7", "", ""] };
            assert_eq!([9, 10, 11].map(|x| world.level(at(x, 1, 8))), expected, "{number}");
            assert_eq!(world.block(at(10, 1, 8)), Some(part));
            world.take_source(at(8, 1, 8));
            world.settle();
            assert_eq!((world.levels().len(), world.blocks(at(10, 1, 8))), (0, Some(vec![part])));
            world.set(at(8, 1, 8), world.source(0));
        }
        // Flowing liquid that a game puts into a block that is not porous dries.
        world.take_source(at(8, 1, 8));
        world.put(at(12, 1, 8), vec![world.partial[6], world.state(0, "7")]);
        world.settle();
        assert_eq!(world.blocks(at(12, 1, 8)), Some(vec![world.partial[6]]));
    }
}

#[test]
fn a_liquid_that_shares_a_cell_becomes_no_block() {
    let lava = LiquidRules::new("game:lava").with_meeting("game:water", "game:stone");
    let mut world = World::new(&[LiquidRules::new("game:water"), lava]);
    world.fill([0..17, 0..1, 0..17], world.stone);
    let fence = world.partial[0];
    world.put(at(8, 1, 8), vec![fence, world.source(1)]);
    world.set(at(9, 1, 8), world.source(0));
    world.settle();
    assert_eq!(world.blocks(at(8, 1, 8)), Some(vec![fence, world.source(1)]));
    assert_eq!(world.block(at(8, 1, 7)), Some(world.stone), "beside water that flows there");
}

#[test]
fn a_liquid_waits_where_the_ground_is_not_loaded() {
    let mut world = spring(LiquidRules::new("game:water"));
    world.hidden_from = 10;
    world.settle();
    assert_eq!(world.level(at(9, 1, 8)), "", "the nearest drop may be over there");
    world.reveal();
    world.settle();
    assert_eq!(world.level(at(15, 1, 8)), "1");
}

#[test]
fn at_the_edges_of_the_numbers_nothing_breaks() {
    let blocks = Ground::new(&[LiquidRules::new("game:water").renewing()]);
    for corner in [i64::MIN, i64::MAX] {
        let at = at(corner, corner, corner);
        let cell = |block: BlockId| blocks.liquids.cell([block]);
        let water = blocks.state(0, "3");
        let flow = blocks.liquids.flow(at, |pos| Some(cell(if pos == at { water } else { BlockId::AIR })));
        assert_eq!(flow, Flow { changes: vec![(at, 0, BlockId::AIR)], is_waiting: false }, "it does not feed itself");
        let source = blocks.state(0, "8");
        let flow = blocks.liquids.flow(at, |pos| Some(cell(if pos == at { source } else { BlockId::AIR })));
        assert!(!flow.changes.is_empty() && Liquids::farther_lookers(at).count() > 0);
    }
}

#[test]
fn rules_that_do_not_fit_the_blocks_are_errors_that_name_them() {
    let mut blocks = BlockRegistry::new();
    blocks.register(BlockType::new("game:mud")).unwrap();
    blocks.register_states(liquid_states(BlockType::new("game:water"))).unwrap();
    let error = |rules: &[LiquidRules]| Liquids::new(&blocks, rules).unwrap_err().to_string();
    let water = || LiquidRules::new("game:water");
    let unknown = "the liquid \"game:mut\": there is no block \"game:mut\"; is \"game:mud\" meant?";
    assert_eq!(error(&[LiquidRules::new("game:mut")]), unknown);
    let no_states = "the liquid \"game:mud\" has no state with the level 8: register it with `liquid_states`";
    assert_eq!(error(&[LiquidRules::new("game:mud")]), no_states);
    assert_eq!(error(&[water(), water()]), "the liquid \"game:water\" has rules twice");
    let meeting = "the liquid \"game:water\" meets \"game:lava\", which has no rules";
    assert_eq!(error(&[water().with_meeting("game:lava", "game:mud")]), meeting);
    assert!(error(&[water().with_meeting("game:water", "game:glas")]).contains("there is no block \"game:glas\""));
}

fn cases() -> ProptestConfig {
    let rounds = std::env::var("TERRANE_ROUNDS").ok().and_then(|times| times.parse().ok()).unwrap_or(1_u32);
    ProptestConfig { cases: 60 * rounds, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    /// Promise, liquids: A flood over given ground always ends in the same state, in whatever order its cells are looked at and in
    /// whatever order the ground is loaded.
    #[test]
    fn a_flood_ends_as_the_model_says_in_any_order(
        ground in prop::collection::vec(0_u8..40, world::CELLS),
        order in any::<u64>(),
        hidden_from in 0..=world::WIDTH,
        steps in 1_u8..=7,
        renews in any::<bool>(),
    ) {
        let rules = LiquidRules::new("game:water").with_steps(steps);
        let mut world = World::random(if renews { rules.renewing() } else { rules }, &ground);
        let expected = model::flooded(&world, steps, renews);
        world.hidden_from = hidden_from;
        world.settle_in_random_order(order);
        world.reveal();
        world.settle_in_random_order(!order);
        prop_assert_eq!(world.levels(), expected);
    }

    /// Promise, liquids: After sources are taken away, each flowing cell still has a supplier, and without any source all is dry.
    #[test]
    fn what_still_flows_has_a_supplier(
        ground in prop::collection::vec(0_u8..40, world::CELLS),
        order in any::<u64>(),
        taken in prop::collection::vec(any::<bool>(), world::CELLS),
    ) {
        let mut world = World::random(LiquidRules::new("game:water"), &ground);
        world.settle_in_random_order(order);
        let sources = world.find(world.source(0));
        for source in sources.iter().zip(&taken).filter(|(_, taken)| **taken).map(|(source, _)| *source) {
            world.take_source(source);
        }
        world.settle_in_random_order(!order);
        prop_assert_eq!(model::cell_without_supplier(&world), None);
        for source in world.find(world.source(0)) {
            world.take_source(source);
        }
        world.settle_in_random_order(order);
        prop_assert_eq!(world.levels().len(), 0);
    }

    /// Promise, liquids: Without its sources, a liquid stays only where it may come from ground that is not loaded, until that is.
    #[test]
    fn what_stays_wet_may_come_from_ground_that_is_not_loaded(
        ground in prop::collection::vec(0_u8..40, world::CELLS),
        order in any::<u64>(),
        taken in prop::collection::vec(any::<bool>(), world::CELLS),
        hidden_from in 1..=world::RANDOM_WIDTH,
        renews in any::<bool>(),
    ) {
        let rules = LiquidRules::new("game:water");
        let mut world = World::random(if renews { rules.renewing() } else { rules }, &ground);
        world.settle_in_random_order(order);
        world.hidden_from = hidden_from;
        let take = |world: &mut World, taken: &dyn Fn(usize) -> bool| {
            let sources = world.find(world.source(0));
            sources.iter().enumerate().filter(|(place, _)| taken(*place)).for_each(|(_, pos)| world.take_source(*pos));
        };
        take(&mut world, &|place| taken[place]);
        world.settle_in_random_order(!order);
        prop_assert_eq!(model::cell_without_origin(&world), None);
        world.reveal();
        world.settle_in_random_order(order);
        prop_assert_eq!(model::cell_without_origin(&world), None);
        take(&mut world, &|_| true);
        world.settle_in_random_order(!order);
        prop_assert_eq!(world.levels().len(), 0);
    }
}
