//! Columns and chunks that appear and go.

use super::model::Ground;
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
    world.unload(WEST, &all);
    assert_eq!(world.light.levels(at(-1, 20, 8)), None);
    world.settle();
    assert_eq!(world.block_light(at(0, 20, 8)), 0);
    world.light.remove(WEST);
    assert!(world.light.is_settled(), "it is gone already");
}

/// Promise, light: Light that was taken out with its neighbors' light is corrected when it is inserted again.
#[test]
fn removed_light_is_corrected_when_it_comes_back() {
    let mut world = tunnel();
    world.load(WEST);
    world.load(EAST);
    world.settle();
    let all = HeightSet::from(0..2);
    let east = world.light.column(EAST).unwrap();
    world.unload(EAST, &all);
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
fn the_work_of_a_column_goes_with_it() {
    let mut world = tunnel();
    world.load(WEST);
    world.settle();
    let lamp = world.blocks.lamp;
    world.set(at(-5, 20, 8), lamp);
    world.unload(WEST, &HeightSet::from(0..2));
    assert!(world.light.is_settled() && world.light.drain_changed().next().is_none());
}

/// Promise, light: Two maps merge with the work that is left in them, and light flows over the seam.
#[test]
fn light_flows_over_the_seam_of_two_merged_maps() {
    let mut world = tunnel();
    world.load(WEST);
    world.settle();
    let west = std::mem::take(&mut world.light);
    world.load(EAST);
    let lamp = world.blocks.lamp;
    world.set(at(8, 20, 8), lamp);
    world.light.append(west);
    assert!(!world.light.is_settled());
    world.settle();
    assert_eq!([-1, 0].map(|x| world.block_light(at(x, 20, 8))), [10, 9]);
    assert_eq!([9, 7].map(|x| world.block_light(at(x, 20, 8))), [14, 14]);
}

/// Promise, light: A part that splits off takes its light and its work along, without the light of the rest.
#[test]
fn a_map_splits_and_each_part_loses_the_light_of_the_other() {
    let mut world = tunnel();
    world.load(WEST);
    world.load(EAST);
    world.settle();
    let lamp = world.blocks.lamp;
    world.set(at(8, 20, 8), lamp);
    let mut east = world.light.split_off(|pos| pos == EAST);
    assert!(world.light.column(EAST).is_none() && !east.is_settled());
    assert!(east.advance(&world.table, &Ground(&world.columns), usize::MAX));
    assert_eq!([0, 8].map(|x| east.levels(at(x, 20, 8)).unwrap()[1]), [7, 15]);
    world.loaded.remove(&EAST);
    world.settle();
    assert_eq!(world.block_light(at(-1, 20, 8)), 10);
}

#[test]
fn a_map_that_loses_most_columns_gives_their_memory_back() {
    let mut world = tunnel();
    let far = |x: i64| ColumnPos::new(x, 5);
    for column in (0..40).map(far).chain([WEST, EAST]) {
        world.load(column);
    }
    let lamp = world.blocks.lamp;
    world.set(at(8, 20, 8), lamp);
    // With work left in the two columns that stay.
    (0..40).for_each(|x| world.unload(far(x), &HeightSet::from(0..2)));
    assert!(world.light.slots.len() < 4 + 16 + 4, "{} slots for 4 chunks", world.light.slots.len());
    world.settle();
    assert_eq!([-6, -1, 0, 8].map(|x| world.block_light(at(x, 20, 8))), [15, 10, 9, 15]);
    world.light.split_off(|pos| pos == EAST);
    world.loaded.remove(&EAST);
    world.settle();
    assert_eq!(world.block_light(at(-1, 20, 8)), 10);
}

/// Promise, light: A map that begins with settled light computes the same for an edit as the map that the light is from.
#[test]
fn settled_light_goes_on_in_another_map() {
    let mut world = tunnel();
    world.load(WEST);
    world.load(EAST);
    world.settle();
    let columns = [WEST, EAST].map(|pos| world.light.column(pos).unwrap());
    let mut other = LightMap::of_settled(&columns);
    assert!(other.is_settled());
    let (place, lamp) = (at(4, 20, 8), world.blocks.lamp);
    world.set(place, lamp);
    other.block_changed(&world.table, place, BlockId::AIR, lamp);
    world.settle();
    assert!(other.advance(&world.table, &Ground(&world.columns), usize::MAX));
    assert_eq!([WEST, EAST].map(|pos| other.column(pos)), [WEST, EAST].map(|pos| world.light.column(pos)));
}

/// Promise, light: Replacing a chunk relights only around the blocks that differ.
#[test]
fn a_replaced_chunk_is_relit_where_it_differs() {
    let mut world = tunnel();
    world.load(WEST);
    world.load(EAST);
    world.settle();
    let pos = EAST.chunk(1);
    let old = world.columns[&EAST].chunk(1).cloned();
    world.light.chunk_changed(&world.table, pos, old.as_deref(), old.as_deref());
    assert!(world.light.is_settled());
    let mut new = Chunk::clone(old.as_ref().unwrap());
    new.set_block([4, 4, 8], world.blocks.stone);
    world.light.chunk_changed(&world.table, pos, old.as_deref(), Some(&new));
    world.column_mut(EAST).set_chunk(1, std::sync::Arc::new(new));
    world.settle();
    assert_eq!([3, 5].map(|x| world.block_light(at(x, 20, 8))), [6, 0]);
    let old = world.columns[&EAST].chunk(1).cloned();
    world.light.chunk_changed(&world.table, pos, old.as_deref(), None);
    world.column_mut(EAST).remove_chunk(1);
    world.settle();
    assert_eq!(world.sky(at(8, 20, 8)), 15);
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

/// Promise, light: Light that is inserted over heights that are there gets the light of those heights, and no other.
#[test]
fn heights_that_are_inserted_twice_keep_their_light_and_give_it_to_the_new_ones() {
    let mut world = World::new(Blocks::new(), 0..4, 3);
    let stone = world.blocks.stone;
    fill(&mut world, [0..16, 50..51, 0..16], stone);
    world.load_heights(EAST, HeightSet::from(2..4));
    world.settle();
    // Without the chunk of the roof, the sky shines on these.
    world.load_heights(EAST, HeightSet::from(0..3));
    world.settle();
    assert_eq!([0, 31, 49, 51].map(|y| world.sky(at(8, y, 8))), [0, 0, 0, 15]);
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
