use super::model::{Model, Spot};
use super::*;
use proptest::prelude::*;

/// The edge of the rubble.
const EDGE: i64 = 12;

/// The number of repetitions of a test: `few` times `TERRANE_ROUNDS`.
fn rounds(few: u32) -> u32 {
    few * std::env::var("TERRANE_ROUNDS").ok().and_then(|times| times.parse().ok()).unwrap_or(1_u32)
}

fn any_walker() -> impl Strategy<Value = Walker> {
    let size = prop::sample::select(vec![(0.6, 1.8), (0.4, 0.4), (0.9, 1.3), (1.4, 1.0), (3.0, 2.5)]);
    let swim = prop::sample::select(vec![Some(1.0), Some(2.5), None]);
    let jump = prop::sample::select(vec![0.0, 1.0, 1.25, 2.0]);
    let step = prop::sample::select(vec![0.0, 0.6, 1.0]);
    (size, swim, jump, step, 0_u8..5, any::<bool>()).prop_map(|((width, height), swim, jump, step, fall, climb)| {
        let fall = f32::from(fall);
        let costs = vec![("test:slow".into(), 3.0), ("test:lava".into(), f32::INFINITY), ("test:plant".into(), 1.5)];
        Walker { width, height, step, jump, fall, swim, climb, costs }
    })
}

fn any_base() -> impl Strategy<Value = BlockPos> {
    let along = prop::sample::select(vec![0, -7, 1 << 40, i64::MIN, i64::MIN + 3, i64::MAX - EDGE + 1, i64::MAX - 20]);
    [along.clone(), along.clone(), along].prop_map(|[x, y, z]| at(x, y, z))
}

/// The rubble's blocks, by name. The more often a name is there, the more often its blocks are.
const NAMES: [&str; 30] = [
    "terrane:stone",
    "terrane:stone",
    "terrane:stone",
    "terrane:stone",
    "terrane:stone",
    "test:slab",
    "test:slab",
    "test:upper_slab",
    "test:north_stairs",
    "test:east_stairs",
    "test:south_stairs",
    "test:west_stairs",
    "test:carpet",
    "test:ladder",
    "test:ladder",
    "test:vine",
    "test:panel",
    "test:shallow",
    "test:shallow",
    "test:plant",
    "test:lava",
    "test:mud",
    "test:low_mud",
    "test:tall_fence",
    "test:tall_stone",
    "terrane:water",
    "terrane:water",
    "terrane:water",
    "terrane:water",
    "terrane:water",
];

fn any_rubble() -> impl Strategy<Value = Vec<usize>> {
    (2_usize..8).prop_flat_map(|thin| prop::collection::vec(0..NAMES.len() * thin, (EDGE * EDGE * EDGE) as usize))
}

fn rubble(base: BlockPos, blocks: &[usize]) -> World {
    let mut world = World { types: types(), chunks: BTreeMap::new() };
    for (number, block) in (0..).zip(blocks) {
        let name = NAMES.get(*block).copied().unwrap_or("terrane:air");
        let pos = base.offset(number / EDGE / EDGE, number / EDGE % EDGE, number % EDGE);
        world.set(pos, world.types.id(name).unwrap());
    }
    world
}

/// The same point for the path and the model.
fn spot(base: BlockPos, width: i32, waypoint: &Waypoint) -> Spot {
    let half = i64::from(width / 2);
    let along = |to: i64, from: i64| i64::try_from(i128::from(to) - i128::from(from)).unwrap();
    let feet = 16 * along(waypoint.block.y, base.y) + (waypoint.offset[1] * 16.0) as i64;
    [along(waypoint.block.x, base.x) - half, along(waypoint.block.z, base.z) - half, feet]
}

fn waypoint(base: BlockPos, width: i32, [x, z, feet]: Spot) -> Waypoint {
    let half = i64::from(width / 2);
    let middle = if width % 2 == 0 { 0.0 } else { 0.5 };
    let block = base.offset(x + half, feet.div_euclid(16), z + half);
    Waypoint::new(block, [middle, feet.rem_euclid(16) as f32 / 16.0, middle])
}

/// The cost of a way between columns without any obstacle.
fn open_way(from: Spot, to: Spot) -> i64 {
    let (x, z) = ((from[0] - to[0]).abs(), (from[1] - to[1]).abs());
    100 * x.max(z) + 41 * x.min(z)
}

fn nearness(from: Spot, goal: Spot) -> i64 {
    open_way(from, goal) + 100 * (from[2] - goal[2]).abs() / 16
}

/// Compares a search with the model.
fn check(
    blocks: &[usize],
    base: BlockPos,
    walker: &Walker,
    start: usize,
    goal: [i64; 3],
    pieces: u32,
) -> Result<(), TestCaseError> {
    let world = rubble(base, blocks);
    let width = walker.width.ceil() as i32;
    let model = Model::new(&world, walker, base);
    let cells = (0..EDGE).flat_map(|x| (0..EDGE).flat_map(move |z| (1..EDGE * 16 - 40).map(move |feet| [x, z, feet])));
    let starts: Vec<Spot> = cells.filter(|spot| model.is_standing(*spot)).collect();
    prop_assume!(!starts.is_empty());
    let start = starts[start % starts.len()];
    let costs = model.costs(start);
    // The goal of a wide walker is the block above the middle of its lowest cells.
    let (middle, goal_block) = (i64::from((width - 1) / 2), base.offset(goal[0], goal[1], goal[2]));
    let goal = model.goal([goal[0] - middle, goal[1], goal[2] - middle]);

    let table = WalkTable::new(&world.types, walker);
    let mut ground = WalkableGround::new(&table, |pos| world.chunk(pos));
    let mut search = PathSearch::new(u32::MAX, 1.0);
    search.start(&table, &waypoint(base, width, start), goal_block);
    let path = search.advance(&mut ground, &mut { u32::MAX }).unwrap();
    let spots: Vec<Spot> = path.waypoints.iter().map(|waypoint| spot(base, width, waypoint)).collect();
    let (first, last) = (spots[0], *spots.last().unwrap());

    prop_assert_eq!(first, start);
    prop_assert_eq!(path.is_complete, costs.contains_key(&goal));
    prop_assert_eq!(path.is_complete, last == goal);
    prop_assert_eq!(costs.keys().map(|spot| nearness(*spot, goal)).min(), Some(nearness(last, goal)));
    let mut cost = 0;
    for (from, to) in spots.iter().zip(&spots[1..]) {
        let price = model.moves(*from).into_iter().filter(|(next, _)| next == to).map(|(_, price)| price).min();
        prop_assert!(price.is_some(), "no move leads from {:?} to {:?}", from, to);
        cost += price.unwrap();
    }
    prop_assert_eq!(cost, (path.cost * 100.0).round() as i64);
    prop_assert_eq!(cost, costs[&last]);
    prop_assert_eq!(path.first_blocked(&mut ground), None);

    // With slack.
    for slack in [1.2_f32, 2.0] {
        let mut search = PathSearch::new(u32::MAX, slack);
        search.start(&table, &waypoint(base, width, start), goal_block);
        let other = search.advance(&mut ground, &mut { u32::MAX }).unwrap();
        prop_assert_eq!(other.is_complete, path.is_complete);
        prop_assert!(!path.is_complete || other.cost <= path.cost * slack + 0.01);
        prop_assert_eq!(other.first_blocked(&mut ground), None);
    }

    // In pieces, and with memory that was used before.
    search.start(&table, &waypoint(base, width, start), goal_block);
    let mut calls = 0;
    let again = loop {
        calls += 1;
        prop_assert!(calls < 10_000);
        if let Some(path) = search.advance(&mut ground, &mut { pieces }) {
            break path;
        }
    };
    prop_assert_eq!(again, path);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(rounds(60)))]

    /// Promise, paths: A complete path is the cheapest one, and does not depend on the number of calls that the search takes.
    #[test]
    fn paths_cost_as_much_as_those_of_a_slow_and_obvious_search(
        blocks in any_rubble(),
        base in any_base(),
        walker in any_walker(),
        start in any::<usize>(),
        goal in [0..EDGE, 0..EDGE, 0..EDGE],
        pieces in 1_u32..50,
    ) {
        check(&blocks, base, &walker, start, goal, pieces)?;
    }
}
