//! The rules of paths, one at a time; then [random rubble](random), compared with a slow and obvious search.

mod model;
mod random;

use super::*;
use crate::block::tags::CLIMBABLE;
use crate::block::{BlockId, BlockRegistry, BlockShape, BlockType, ShapeBox};
use crate::chunk::Chunk;
use crate::space::{BlockPos, ChunkPos, Turn};
use std::collections::BTreeMap;

/// Blocks of all shapes that matter to walkers.
fn types() -> BlockRegistry {
    let mut types = BlockRegistry::new();
    types.register_basic_blocks();
    let mut add = |name: &'static str, shape: BlockShape| {
        let block = BlockType::new(name).with_shape(shape);
        let block = if matches!(name, "test:ladder" | "test:vine") { block.with_tag(CLIMBABLE) } else { block };
        let block = if name.contains("mud") { block.with_tag("test:slow") } else { block };
        let block = match name {
            "test:tall_fence" => block.with_collision_height(24),
            "test:tall_stone" => block.with_collision_height(29),
            _ => block,
        };
        types.register(block).unwrap();
    };
    add("test:slab", BlockShape::slab());
    add("test:upper_slab", BlockShape::slab().upside_down());
    add("test:north_stairs", BlockShape::stairs());
    add("test:east_stairs", BlockShape::stairs().turned(Turn::quarters(1)));
    add("test:south_stairs", BlockShape::stairs().turned(Turn::quarters(2)));
    add("test:west_stairs", BlockShape::stairs().turned(Turn::quarters(3)));
    add("test:carpet", BlockShape::from_boxes([ShapeBox::new([0; 3], [16, 1, 16])]).unwrap());
    add("test:ladder", BlockShape::from_boxes([ShapeBox::new([0, 0, 14], [16, 16, 16])]).unwrap());
    add("test:vine", BlockShape::Cross);
    add("test:panel", BlockShape::from_boxes([ShapeBox::new([0, 0, 13], [16, 16, 16])]).unwrap());
    add("test:shallow", BlockShape::liquid(4).unwrap());
    add("test:fence", BlockShape::fence());
    add("test:tall_fence", BlockShape::fence());
    add("test:tall_stone", BlockShape::Cube);
    add("test:plant", BlockShape::Cross);
    add("test:lava", BlockShape::liquid(8).unwrap());
    add("test:mud", BlockShape::Cube);
    add("test:low_mud", BlockShape::slab());
    types
}

/// Chunks that are loaded, all others are not.
struct World {
    types: BlockRegistry,
    chunks: BTreeMap<ChunkPos, Chunk>,
}

impl World {
    /// A floor of stone at y = -1, from -32 to 31 on both axes, with air above.
    fn flat() -> Self {
        let mut world = Self { types: types(), chunks: BTreeMap::new() };
        for (x, y, z) in (-2..2).flat_map(|x| (-2..4).flat_map(move |y| (-2..2).map(move |z| (x, y, z)))) {
            world.chunks.insert(ChunkPos::new(x, y, z), Chunk::default());
        }
        world.fill([-32, -1, -32], [31, -1, 31], "terrane:stone");
        world
    }

    fn set(&mut self, pos: BlockPos, block: BlockId) {
        self.chunks.entry(pos.chunk()).or_default().set_block(pos.in_chunk(), block);
    }

    fn fill(&mut self, min: [i64; 3], max: [i64; 3], name: &str) {
        let block = self.types.id(name).unwrap();
        for x in min[0]..=max[0] {
            for y in min[1]..=max[1] {
                for z in min[2]..=max[2] {
                    self.set(at(x, y, z), block);
                }
            }
        }
    }

    fn chunk(&self, pos: ChunkPos) -> Option<Option<&Chunk>> {
        self.chunks.get(&pos).map(|chunk| (chunk.uniform_block() != Some(BlockId::AIR)).then_some(chunk))
    }

    fn path(&self, walker: &Walker, from: Waypoint, goal: BlockPos) -> Path {
        let table = WalkTable::new(&self.types, walker);
        let mut search = PathSearch::new(10_000, 1.0);
        search.start(&table, &from, goal);
        search.advance(&mut WalkableGround::new(&table, |pos| self.chunk(pos)), &mut 10_000).unwrap()
    }

    /// A person's path between the middles of two blocks.
    fn walk(&self, from: [i64; 3], goal: [i64; 3]) -> Path {
        self.path(&Walker::default(), standing(from), at(goal[0], goal[1], goal[2]))
    }

    fn first_blocked(&self, walker: &Walker, path: &Path) -> Option<usize> {
        let table = WalkTable::new(&self.types, walker);
        path.first_blocked(&mut WalkableGround::new(&table, |pos| self.chunk(pos)))
    }
}

fn at(x: i64, y: i64, z: i64) -> BlockPos {
    BlockPos::new(x, y, z)
}

fn standing([x, y, z]: [i64; 3]) -> Waypoint {
    Waypoint::new(at(x, y, z), [0.5, 0.0, 0.5])
}

fn end(path: &Path) -> ([i64; 3], f32) {
    let last = path.waypoints.last().unwrap();
    ([last.block.x, last.block.y, last.block.z], last.offset[1])
}

/// A corridor along x between walls, one block wide.
fn corridor() -> World {
    let mut world = World::flat();
    world.fill([-32, 0, -1], [31, 4, -1], "terrane:stone");
    world.fill([-32, 0, 1], [31, 4, 1], "terrane:stone");
    world
}

/// Promise, paths: No path leads over a fence with a collision height of one and a half blocks, unless the walker jumps so high.
#[test]
fn no_path_leads_over_a_fence_that_is_taller_than_its_block() {
    for (name, jump, is_way) in
        [("test:fence", 1.25, true), ("test:tall_fence", 1.25, false), ("test:tall_fence", 1.5, true)]
    {
        let mut world = corridor();
        world.fill([2, 0, 0], [2, 0, 0], name);
        let path = world.path(&Walker { jump, ..Walker::default() }, standing([0; 3]), at(6, 0, 0));
        assert_eq!(path.is_complete, is_way, "{name}, {jump}");
    }
}

/// Promise, paths: A walker steps up slabs and stairs without a jump, and jumps onto a block.
#[test]
fn walkers_step_up_slabs_and_stairs_and_jump_onto_blocks() {
    let mut world = corridor();
    let cost = |world: &World, jump| world.path(&Walker { jump, ..Walker::default() }, standing([0; 3]), at(6, 1, 0));
    world.fill([3, 0, 0], [8, 0, 0], "terrane:stone");
    let path = cost(&world, 1.0);
    assert_eq!((path.cost, path.is_complete, path.waypoints.len()), (6.5, true, 7));
    assert!(!cost(&world, 0.0).is_complete);
    world.fill([2, 0, 0], [2, 0, 0], "test:slab");
    let path = cost(&world, 0.0);
    assert_eq!((path.cost, path.is_complete), (6.0, true));
    assert_eq!((path.waypoints[2].block, path.waypoints[2].offset), (at(2, 0, 0), [0.5, 0.5, 0.5]));
    for (stairs, is_way) in [("east", true), ("north", false), ("south", false), ("west", false)] {
        world.fill([2, 0, 0], [2, 0, 0], &format!("test:{stairs}_stairs"));
        assert_eq!(cost(&world, 0.0).is_complete, is_way, "{stairs}");
        assert!(cost(&world, 1.0).is_complete);
    }
}

/// Promise, paths: A wall of two blocks is too high, and the way leads round it.
#[test]
fn a_wall_of_two_blocks_is_walked_around() {
    let mut world = corridor();
    world.fill([3, 0, 0], [3, 1, 0], "terrane:stone");
    let path = world.walk([0, 0, 0], [6, 0, 0]);
    assert!(!path.is_complete);
    assert_eq!(end(&path), ([2, 0, 0], 0.0));
    let mut world = World::flat();
    world.fill([3, 0, -5], [3, 1, 5], "terrane:stone");
    let path = world.walk([0, 0, 0], [6, 0, 0]);
    assert!(path.is_complete && path.cost > 12.0);
    assert!(path.waypoints.iter().all(|waypoint| waypoint.block.x != 3 || waypoint.block.z.abs() == 6));
}

/// Promise, paths: A walker falls as deep as it may, and no deeper, and into liquids from any height.
#[test]
fn walkers_fall_three_blocks_and_not_four() {
    for (depth, is_way) in [(3, true), (4, false)] {
        let mut world = corridor();
        world.fill([-32, 0, 0], [2, depth - 1, 0], "terrane:stone");
        let path = world.walk([0, depth, 0], [5, 0, 0]);
        assert_eq!(path.is_complete, is_way);
        if is_way {
            assert_eq!(path.cost, 5.6);
        }
    }
    let mut world = corridor();
    world.fill([-32, 0, -32], [31, 20, 31], "terrane:stone");
    world.fill([3, 0, 0], [9, 20, 0], "terrane:air");
    assert!(!world.walk([0, 21, 0], [6, 0, 0]).is_complete);
    world.fill([3, 0, 0], [3, 0, 0], "terrane:water");
    assert!(world.walk([0, 21, 0], [6, 0, 0]).is_complete);
    assert!(!world.path(&Walker { swim: None, ..Walker::default() }, standing([0, 21, 0]), at(6, 0, 0)).is_complete);
}

/// Promise, paths: A walker swims across a river, and takes the bridge if that is cheaper.
#[test]
fn walkers_swim_across_a_river_or_take_a_bridge() {
    let mut world = World::flat();
    world.fill([3, -3, -32], [6, -1, 31], "terrane:stone");
    world.fill([3, -2, -32], [6, -1, 31], "terrane:water");
    let cross = |world: &World, swim| world.path(&Walker { swim, ..Walker::default() }, standing([0; 3]), at(9, 0, 0));
    let swum = cross(&world, Some(2.0));
    assert!(swum.is_complete && swum.waypoints.iter().any(|waypoint| waypoint.block == at(4, -1, 0)));
    assert!(!cross(&world, None).is_complete);
    world.fill([3, -1, 3], [6, -1, 3], "terrane:wood");
    for swim in [Some(4.0), None] {
        let path = cross(&world, swim);
        assert!(path.is_complete && path.waypoints.iter().all(|waypoint| waypoint.block.y == 0), "{path:?}");
    }
    let cheap = cross(&world, Some(1.0));
    assert!(cheap.is_complete && cheap.waypoints.iter().any(|waypoint| waypoint.block.y == -1));
}

/// Promise, paths: A walker climbs ladders up and down.
#[test]
fn walkers_climb_ladders() {
    let mut world = corridor();
    world.fill([5, 0, 0], [20, 9, 0], "terrane:stone");
    world.fill([4, 0, 0], [4, 9, 0], "test:ladder");
    let up = world.walk([0, 0, 0], [8, 10, 0]);
    assert!(up.is_complete, "{up:?}");
    let down = world.walk([8, 10, 0], [0, 0, 0]);
    assert!(down.is_complete, "{down:?}");
    assert!(!world.path(&Walker { climb: false, ..Walker::default() }, standing([0; 3]), at(8, 10, 0)).is_complete);
}

/// A ladder takes an eighth of its cell, on the south side.
#[test]
fn ladders_are_for_walkers_that_fit_beside_them_and_are_not_walked_through() {
    let mut world = corridor();
    world.fill([5, 0, 0], [20, 9, 0], "terrane:stone");
    world.fill([4, 0, 0], [4, 9, 0], "test:ladder");
    for (width, is_way) in [(0.7, true), (0.8, false)] {
        let walker = Walker::default().with_size(width, 1.3);
        assert_eq!(world.path(&walker, standing([0; 3]), at(8, 10, 0)).is_complete, is_way, "{width}");
    }
    world.fill([4, 0, 0], [4, 9, 0], "test:vine");
    assert!(world.path(&Walker::default().with_size(0.9, 1.3), standing([0; 3]), at(8, 10, 0)).is_complete);
    // A screen of ladders across the way, and the way along them.
    let mut world = World::flat();
    world.fill([-32, 0, 2], [31, 5, 2], "test:ladder");
    world.fill([-32, 0, 1], [31, 5, 1], "terrane:air");
    let [through, along] = [[3, 0, 4], [3, 0, 2]].map(|goal| world.walk([0, 0, 0], goal));
    assert!(!through.is_complete && along.is_complete);
}

/// Promise, paths: A walker stands only on what is under its middle.
#[test]
fn walkers_do_not_stand_on_what_is_beside_their_middle() {
    let mut world = corridor();
    world.fill([2, -4, 0], [4, -1, 0], "terrane:air");
    for (floor, is_way) in [("test:panel", false), ("test:fence", true), ("test:slab", true)] {
        world.fill([2, -1, 0], [4, -1, 0], floor);
        assert_eq!(world.walk([0, 0, 0], [6, 0, 0]).is_complete, is_way, "{floor}");
    }
    // A walker that is narrower than the gap before a post falls into it.
    world.fill([2, -1, 0], [4, -1, 0], "test:fence");
    let narrow = Walker::default().with_size(0.3, 0.5);
    assert!(!world.path(&narrow, standing([0; 3]), at(6, 0, 0)).is_complete);
}

/// Promise, paths: A walker swims only where enough of it is in a liquid.
#[test]
fn shallow_water_carries_no_walker() {
    let mut world = corridor();
    world.fill([2, -4, 0], [4, -1, 0], "terrane:air");
    world.fill([2, -2, 0], [4, -2, 0], "terrane:water");
    world.fill([2, -1, 0], [4, -1, 0], "test:shallow");
    assert!(!world.walk([0, 0, 0], [6, 0, 0]).is_complete);
    let small = Walker::default().with_size(0.4, 0.7);
    assert!(world.path(&small, standing([0; 3]), at(6, 0, 0)).is_complete);
    // A wide walker is carried by what is under its middle.
    let mut world = World::flat();
    world.fill([2, -6, -32], [20, -1, 31], "terrane:air");
    world.fill([2, -2, 0], [20, -1, 0], "terrane:water");
    for (width, is_way) in [(1.0, true), (2.0, false), (3.0, true)] {
        let walker = Walker::default().with_size(width, 1.0);
        assert_eq!(world.path(&walker, standing([-3, 0, 0]), at(24, 0, 0)).is_complete, is_way, "{width}");
    }
}

/// Promise, paths: A walker needs room for all of its width and height.
#[test]
fn walkers_only_go_where_they_fit() {
    let mut world = World::flat();
    world.fill([3, 0, -32], [3, 6, 31], "terrane:stone");
    let pass = |world: &World, width, height| {
        let walker = Walker::default().with_size(width, height);
        let offset = if width > 1.0 && width <= 2.0 { 0.0 } else { 0.5 };
        world.path(&walker, Waypoint::new(at(0, 0, 0), [offset, 0.0, offset]), at(9, 0, 0)).is_complete
    };
    world.fill([3, 0, 0], [3, 0, 0], "test:upper_slab");
    assert_eq!([0.4, 0.5, 0.6].map(|height| pass(&world, 0.4, height)), [true, true, false]);
    world.fill([3, 0, 0], [3, 1, 0], "terrane:air");
    assert_eq!([1.8, 2.0, 2.1].map(|height| pass(&world, 0.9, height)), [true, true, false]);
    assert_eq!([0.9, 1.0, 1.1].map(|width| pass(&world, width, 1.3)), [true, true, false]);
    world.fill([3, 0, 0], [3, 1, 2], "terrane:air");
    assert_eq!([2.0, 3.0, 3.1].map(|width| pass(&world, width, 1.3)), [true, true, false]);
    assert!(!pass(&world, 3.0, 5.0));
    world.fill([3, 0, 0], [3, 4, 2], "terrane:air");
    assert!(pass(&world, 3.0, 5.0));
}

/// Promise, paths: A diagonal step needs both corners free.
#[test]
fn walkers_do_not_cut_corners() {
    let mut world = World::flat();
    assert_eq!(world.walk([0, 0, 0], [4, 0, 4]).cost, 5.64);
    world.fill([1, 0, 0], [1, 1, 0], "terrane:stone");
    assert_eq!(world.walk([0, 0, 0], [1, 0, 1]).cost, 2.0);
    world.fill([0, 0, 1], [0, 1, 1], "terrane:stone");
    let path = world.walk([0, 0, 0], [1, 0, 1]);
    assert!(path.is_complete && path.cost > 4.0);
}

/// Promise, paths: A walker avoids blocks by their cost, and never touches those with an infinite one.
#[test]
fn walkers_avoid_costly_ground() {
    let mut world = World::flat();
    world.fill([3, -1, -8], [6, -1, 8], "test:mud");
    let pass = |world: &World, factor| {
        let walker = Walker::default().with_cost("test:slow", factor);
        let path = world.path(&walker, standing([0; 3]), at(9, 0, 0));
        assert!(path.is_complete);
        path.waypoints.iter().any(|point| (3..=6).contains(&point.block.x) && point.block.z.abs() <= 8)
    };
    assert_eq!([1.0, 2.0, 8.0, f32::INFINITY].map(|factor| pass(&world, factor)), [true, true, false, false]);
    // By name, and in the way of the body.
    let mut world = corridor();
    world.fill([3, 0, 0], [3, 0, 0], "test:plant");
    let walker = |factor| Walker::default().with_cost("test:plant", factor);
    assert_eq!(world.path(&walker(3.0), standing([0; 3]), at(6, 0, 0)).cost, 8.0);
    assert!(!world.path(&walker(f32::INFINITY), standing([0; 3]), at(6, 0, 0)).is_complete);
}

/// Promise, paths: If the goal cannot be reached, the path leads to the nearest place, and says so.
#[test]
fn a_goal_out_of_reach_gives_the_way_to_the_nearest_place() {
    let mut world = World::flat();
    world.fill([8, 0, -3], [14, 3, 3], "terrane:stone");
    world.fill([9, 0, -2], [13, 2, 2], "terrane:air");
    let path = world.walk([0, 0, 0], [11, 0, 0]);
    assert!(!path.is_complete);
    assert_eq!(end(&path), ([7, 0, 0], 0.0));
    // Beyond the loaded ground, and beyond the reach of a search.
    for goal in [[50, 0, 0], [64, 0, 0], [1_000, 5, 0], [i64::MAX, i64::MIN, 0]] {
        let path = world.walk([0, 0, 10], goal);
        assert_eq!((end(&path).0[0], path.is_complete), (31, false), "{goal:?}");
    }
}

#[test]
fn a_far_goal_ends_the_search_at_its_edge() {
    let mut world = World::flat();
    let stone = world.types.id("terrane:stone").unwrap();
    for (x, z) in (-8..8).flat_map(|x| (-8..8).map(move |z| (x, z))) {
        world.chunks.insert(ChunkPos::new(x, -1, z), Chunk::uniform(stone));
        world.chunks.insert(ChunkPos::new(x, 0, z), Chunk::default());
    }
    let path = world.walk([0, 0, 0], [1_000, 0, 3]);
    assert_eq!((end(&path).0, path.waypoints.len()), ([64, 0, 3], 65));
}

#[test]
fn a_goal_in_the_air_is_the_ground_below() {
    let mut world = World::flat();
    assert_eq!(end(&world.walk([0, 0, 0], [5, 9, 0])), ([5, 0, 0], 0.0));
    world.fill([5, 0, 0], [5, 0, 0], "test:slab");
    let path = world.walk([0, 0, 0], [5, 0, 0]);
    assert_eq!((end(&path), path.is_complete), (([5, 0, 0], 0.5), true));
}

#[test]
fn a_walker_in_the_air_or_in_a_wall_finds_its_way_out() {
    let mut world = World::flat();
    world.fill([2, 0, 0], [2, 1, 0], "terrane:stone");
    for (start, first) in [([0, 2, 0], [0, 0, 0]), ([2, 0, 0], [2, 0, 0])] {
        let path = world.walk(start, [6, 0, 0]);
        assert!(path.is_complete, "{path:?}");
        assert_eq!(path.waypoints[0].block, at(first[0], first[1], first[2]));
    }
    // At the edge of a floor, with the middle of the feet over the void: it goes to where it stands first.
    world.fill([6, -2, 6], [6, -1, 6], "terrane:air");
    for (place, corner) in [([0.1, 0.5], [5, 6]), ([0.1, 0.1], [5, 6]), ([0.5, 0.9], [6, 7]), ([0.9, 0.9], [7, 6])] {
        let start = Waypoint::new(at(6, 0, 6), [place[0], 0.0, place[1]]);
        let edge = world.path(&Walker::default(), start, at(2, 0, 6));
        assert_eq!(edge.waypoints[0].block, at(corner[0], 0, corner[1]), "{place:?}");
        assert_eq!((edge.is_complete, edge.next), (true, 0));
    }
    assert!(world.path(&Walker::default(), Waypoint::new(at(2, 3, 0), [f32::NAN; 3]), at(6, 0, 0)).is_complete);
}

/// Promise, paths: A walker falls through a liquid that hangs in the air, and past the lowest block of a ladder that does.
#[test]
fn what_hangs_in_the_air_holds_no_walker() {
    for (block, under, is_way) in [
        ("terrane:water", "terrane:air", false),
        ("terrane:water", "test:shallow", false),
        ("terrane:water", "test:slab", false),
        ("terrane:water", "terrane:water", true),
        ("terrane:water", "terrane:stone", true),
        ("test:vine", "terrane:air", false),
        ("test:vine", "test:vine", true),
    ] {
        let mut world = corridor();
        world.fill([2, -9, 0], [3, -1, 0], "terrane:air");
        world.fill([2, -1, 0], [3, -1, 0], block);
        world.fill([2, -2, 0], [3, -2, 0], under);
        assert_eq!(world.walk([0, 0, 0], [6, 0, 0]).is_complete, is_way, "{block} over {under}");
    }
}

/// Promise, paths: A walker leaves a liquid or a ladder over a floor as wide as its cell, and not over a post.
#[test]
fn swimmers_leave_the_water_over_a_wall() {
    for (block, is_way) in
        [("terrane:stone", true), ("test:slab", true), ("test:upper_slab", true), ("test:fence", false)]
    {
        let mut world = corridor();
        world.fill([1, -1, 0], [4, -1, 0], "terrane:air");
        world.fill([1, -3, 0], [4, -3, 0], "terrane:stone");
        world.fill([1, -2, 0], [3, -2, 0], "terrane:water");
        world.fill([4, -2, 0], [4, -2, 0], block);
        let path = world.walk([2, -2, 0], [4, -1, 0]);
        assert_eq!(path.is_complete, is_way, "{block}");
    }
}

/// Promise, paths: A walker jumps only where there is room for the top of its jump, or to come down from it.
#[test]
fn jumps_need_room_to_come_down() {
    let ways = |roof: i64, block: &str| {
        let mut world = corridor();
        world.fill([3, 0, 0], [6, 0, 0], "terrane:stone");
        world.fill([3, roof, 0], [6, roof, 0], block);
        [1.7, 1.9].map(|height| {
            let walker = Walker { jump: 1.5, ..Walker::default().with_size(0.6, height) };
            world.path(&walker, standing([0; 3]), at(4, 1, 0)).is_complete
        })
    };
    assert_eq!(ways(3, "terrane:stone"), [false, false]);
    assert_eq!(ways(3, "test:upper_slab"), [true, true]);
    // A lower jump is slower on its way down.
    let mut world = corridor();
    world.fill([3, 0, 0], [6, 0, 0], "terrane:stone");
    world.fill([3, 3, 0], [6, 3, 0], "terrane:stone");
    let person = Walker { jump: 1.25 - 1.0 / 16.0, ..Walker::default() };
    assert!(world.path(&person, standing([0; 3]), at(4, 1, 0)).is_complete);
}

/// Promise, paths: A walker steps or jumps onto blocks that are higher than itself, and onto a slab in the air only by a jump.
#[test]
fn low_walkers_get_onto_blocks() {
    for (block, jump, is_way) in [
        ("terrane:stone", 1.0, true),
        ("terrane:stone", 0.9, false),
        ("test:upper_slab", 1.0, false),
        ("test:upper_slab", 1.25, true),
    ] {
        let mut world = corridor();
        world.fill([3, 0, 0], [6, 0, 0], block);
        for size in [(0.3, 0.4), (0.6, 0.9)] {
            let walker = Walker { jump, ..Walker::default().with_size(size.0, size.1) };
            let path = world.path(&walker, standing([0; 3]), at(4, 1, 0));
            // The higher one finds a wall.
            let is_way = is_way || size.1 == 0.9 && jump == 1.0;
            assert_eq!(path.is_complete && end(&path) == ([4, 1, 0], 0.0), is_way, "{block} {jump} {size:?}");
        }
    }
}

/// Promise, paths: A walker climbs down a ladder that ends in the air, and falls from its lowest block.
#[test]
fn ladders_that_end_in_the_air_are_climbed_down() {
    for (end_at, is_way) in [(1, true), (3, true), (4, false)] {
        let mut world = corridor();
        world.fill([3, 0, 0], [9, 8, 0], "terrane:stone");
        world.fill([2, end_at, 0], [2, 8, 0], "test:vine");
        assert_eq!(world.walk([6, 9, 0], [0, 0, 0]).is_complete, is_way, "{end_at}");
    }
}

#[test]
fn water_in_another_layer_of_a_cell_counts() {
    let mut world = corridor();
    let water = world.types.id("terrane:water").unwrap();
    let slab = world.types.id("test:slab").unwrap();
    let chunk = world.chunks.get_mut(&ChunkPos::new(0, 0, 0)).unwrap();
    chunk.set_block([3, 0, 0], slab);
    chunk.set_block_at([3, 0, 0], 1, water).unwrap();
    assert_eq!(world.walk([0, 0, 0], [6, 0, 0]).cost, 7.0 + 0.1);
    assert!(!world.path(&Walker { swim: None, ..Walker::default() }, standing([0; 3]), at(6, 0, 0)).is_complete);
}

/// Promise, paths: A path knows when the rest of its way is blocked.
#[test]
fn a_path_knows_when_its_way_is_blocked() {
    let mut world = corridor();
    let walker = Walker::default();
    let mut path = world.walk([0, 0, 0], [10, 0, 0]);
    assert_eq!(world.first_blocked(&walker, &path), None);
    world.fill([6, 1, 0], [6, 1, 0], "terrane:stone");
    assert_eq!(world.first_blocked(&walker, &path), Some(6));
    world.fill([3, -1, 0], [3, -1, 0], "terrane:air");
    assert_eq!(world.first_blocked(&walker, &path), Some(3));
    // What lies behind the walker does not matter.
    path.next = 5;
    assert_eq!(world.first_blocked(&walker, &path), Some(6));
    path.next = 8;
    assert_eq!(world.first_blocked(&walker, &path), None);
    path.next = 11;
    assert_eq!(world.first_blocked(&walker, &path), None);
}

#[test]
fn a_path_is_followed_from_waypoint_to_waypoint() {
    let world = World::flat();
    let mut path = world.walk([0, 0, 0], [3, 0, 0]);
    assert_eq!(path.follow(&standing([0, 0, 0])), Some([1.0, 0.0, 0.0]));
    let near = Waypoint::new(at(1, 0, 0), [0.4, 0.0, 0.5]);
    let [x, y, z] = path.follow(&near).unwrap();
    assert!((x - 1.1).abs() < 1e-5 && y == 0.0 && z == 0.0);
    assert_eq!((path.follow(&standing([2, 0, 0])), path.next), (Some([1.0, 0.0, 0.0]), 3));
    assert_eq!((path.follow(&standing([3, 0, 0])), path.next), (None, 4));
    assert_eq!(Path::default().follow(&near), None);
}

/// Promise, paths: A search takes a bounded number of steps.
#[test]
fn a_search_is_bounded() {
    let world = World::flat();
    let table = WalkTable::new(&world.types, &Walker::default());
    let mut ground = WalkableGround::new(&table, |pos| world.chunk(pos));
    let mut search = PathSearch::new(300, 1.0);
    search.start(&table, &standing([0; 3]), at(5, -8, 0));
    for mut steps in [100, 100, 50] {
        assert_eq!((search.advance(&mut ground, &mut steps), steps), (None, 0));
    }
    let mut steps = 100;
    let path = search.advance(&mut ground, &mut steps).unwrap();
    assert_eq!((path.is_complete, end(&path), steps), (false, ([5, 0, 0], 0.0), 50));
    // It is over.
    assert_eq!(search.advance(&mut ground, &mut steps), Some(path));
    assert_eq!((PathSearch::default().advance(&mut ground, &mut steps), steps), (Some(Path::default()), 50));
}
