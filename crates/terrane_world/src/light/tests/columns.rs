//! Columns and chunks that appear and go.

use super::*;

const WEST: ColumnPos = ColumnPos::new(-1, 0);
const EAST: ColumnPos = ColumnPos::new(0, 0);

/// Two columns of stone with a tunnel along x through both, and a lamp at its western end, none of them loaded.
fn tunnel() -> World {
    let mut world = World::new(Blocks::new(), 0..2, 2);
    let (stone, lamp) = (world.blocks.stone, world.blocks.lamp);
    fill(&mut world, [-16..16, 0..32, 0..16], stone);
    fill(&mut world, [-6..10, 20..21, 8..9], BlockId::AIR);
    world.set(at(-6, 20, 8), lamp);
    world
}

/// Promise, light: Light waits at the border of a missing column, and flows on when the column appears.
#[test]
fn light_waits_at_the_border_of_a_missing_column() {
    for order in [[WEST, EAST], [EAST, WEST]] {
        let mut world = tunnel();
        for column in order {
            world.load(column);
            world.settle();
        }
        assert_eq!([-1, 0, 4, 9].map(|x| world.block_light(at(x, 20, 8))), [10, 9, 5, 0]);
    }
}

/// Promise, light: The light of a column leaves its neighbors when the column goes.
#[test]
fn light_leaves_with_its_column() {
    let mut world = tunnel();
    world.load(WEST);
    world.load(EAST);
    world.settle();
    let all = HeightSet::from(0..2);
    assert!(world.unload(WEST, &all).is_some());
    assert_eq!(world.light.levels(at(-1, 20, 8)), None);
    world.settle();
    assert_eq!(world.block_light(at(0, 20, 8)), 0);
    assert!(world.unload(WEST, &all).is_none(), "it is gone already");
}

/// Promise, light: Light that was taken out or stored with its neighbors' light is corrected when it is inserted again.
#[test]
fn removed_light_is_corrected_when_it_comes_back() {
    let mut world = tunnel();
    world.load(WEST);
    world.load(EAST);
    world.settle();
    let all = HeightSet::from(0..2);
    let east = world.unload(EAST, &all).unwrap();
    let east = ColumnLight::from_chunks(EAST, 2, east.chunks().map(|(y, light)| (y, light.clone())));
    assert_eq!(east.chunk(1).unwrap().block.level([0, 4, 8]), 9);
    // The lamp goes while the eastern column is away.
    let stone = world.blocks.stone;
    world.set(at(-6, 20, 8), stone);
    world.light.insert(east);
    world.loaded.insert(EAST, all);
    world.settle();
    assert_eq!(world.block_light(at(0, 20, 8)), 0);
}

#[test]
fn a_column_with_work_left_is_not_returned_when_it_is_removed() {
    let mut world = tunnel();
    world.load(WEST);
    world.settle();
    let lamp = world.blocks.lamp;
    world.set(at(-5, 20, 8), lamp);
    assert!(world.unload(WEST, &HeightSet::from(0..2)).is_none());
    assert!(world.light.is_settled());
}

/// Promise, light: A chunk that appears above others takes the open sky from them, and gives it back when it goes.
#[test]
fn a_chunk_above_covers_the_sky() {
    let mut world = World::new(Blocks::new(), 0..4, i64::MIN);
    let stone = world.blocks.stone;
    fill(&mut world, [0..16, 40..41, 0..16], stone);
    world.load_heights(EAST, HeightSet::from(0..2));
    world.settle();
    assert_eq!(world.sky(at(8, 0, 8)), 15);
    world.load_heights(EAST, HeightSet::from(2..3));
    world.settle();
    assert_eq!((world.sky(at(8, 0, 8)), world.sky(at(8, 41, 8))), (0, 15));
    world.unload(EAST, &HeightSet::from(2..3));
    world.settle();
    assert_eq!(world.sky(at(8, 0, 8)), 15);
}

#[test]
fn a_column_without_open_sky_is_dark() {
    let mut world = World::new(Blocks::new(), 0..2, i64::MAX);
    world.load(EAST);
    world.settle();
    assert_eq!(world.sky(at(8, 31, 8)), 0);
}

#[test]
fn columns_at_the_edge_of_the_world_have_light() {
    let mut registry = BlockRegistry::new();
    let stone = registry.register(BlockType::new("test:stone")).unwrap();
    let table = LightTable::new(&registry);
    let top = i64::MAX >> 4;
    let pos = ColumnPos::new(i64::MIN >> 4, top);
    let mut column = Column::new(pos);
    column.set_block(pos.chunk(top).block([3, 9, 3]), stone);
    let mut light = LightMap::new();
    light.insert(ColumnLight::new(&table, &column, &HeightSet::from(top - 1..top + 1), top + 1));
    light.block_changed(&table, pos.chunk(top).block([3, 9, 3]), BlockId::AIR, stone);
    assert!(light.advance(&table, &column, usize::MAX));
    assert_eq!(light.levels(pos.chunk(top).block([3, 8, 3])), Some([14, 0]));
}
