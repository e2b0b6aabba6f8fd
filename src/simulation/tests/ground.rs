//! Ground that lives, in region worlds without a coordinator: updates, random ticks, liquids, falling blocks, growth.

use super::*;
use crate::block::{BlockId, BlockType, Schema, tags};
use crate::liquid::{LiquidRules, liquid_states};
use crate::simulation::schedules::RegionTick;
use crate::simulation::{
    BlockChanged, BlockDropped, FallingBlock, GroundSettings, GrowthRule, RandomTick, RegionBlocks, RegionColumns,
    RuleLoop, add_falling_blocks, add_growth, add_liquids,
};
use proptest::prelude::*;

const PERIOD: Duration = Duration::from_millis(50);
/// The columns along x and z.
const WIDTH: i64 = 4;

/// The messages of a region, in order.
#[derive(Resource, Default)]
struct Heard {
    changed: Vec<BlockPos>,
    drawn: Vec<RandomTick>,
    loops: Vec<RuleLoop>,
    dropped: Vec<BlockDropped>,
}

fn hear(
    mut changed: MessageReader<BlockChanged>,
    mut drawn: MessageReader<RandomTick>,
    mut loops: MessageReader<RuleLoop>,
    mut dropped: MessageReader<BlockDropped>,
    mut heard: ResMut<Heard>,
) {
    heard.changed.extend(changed.read().map(|changed| changed.block));
    heard.drawn.extend(drawn.read());
    heard.loops.extend(loops.read());
    heard.dropped.extend(dropped.read().cloned());
}

/// Regions with water, sand, flowers and grass, all on one clock.
struct Living {
    regions: Regions,
    clock: u32,
}

fn at(x: i64, y: i64, z: i64) -> BlockPos {
    BlockPos::new(x, y, z)
}

impl Living {
    fn new(plugins: impl Fn(&mut SubApp) + Send + Sync + 'static) -> Self {
        let mut regions = Regions::with_plugins(
            |components| components.register_saved_with::<FallingBlock>(Schema::default()),
            move |region| {
                plugins(region);
                region.add_message::<BlockDropped>().init_resource::<Heard>().add_systems(Update, hear);
            },
        );
        let mut blocks = BlockRegistry::new();
        blocks.register_states(liquid_states(BlockType::new("game:water"))).unwrap();
        for (name, tags) in [
            ("game:sand", &[tags::NOTICES, tags::FALLS][..]),
            ("game:flower", &[tags::WASHED_AWAY]),
            ("game:bell", &[tags::NOTICES]),
            ("game:grass", &[tags::RANDOM_TICKS]),
            ("game:stone", &[]),
            ("game:dirt", &[]),
        ] {
            let block = BlockType::new(name);
            blocks.register(tags.iter().fold(block, |block, tag| block.with_tag(*tag))).unwrap();
        }
        regions.template.blocks = Arc::new(blocks);
        let blocks = regions.template.blocks.clone();
        regions.ground = Arc::new(ColumnSource::new(DIMENSION, -16..48, Arc::new(Void), blocks, Weak::new()));
        Self { regions, clock: 0 }
    }

    fn flooding() -> Self {
        Self::new(|region| add_liquids(region, &[LiquidRules::new("game:water")]))
    }

    fn id(&self, name: &str) -> BlockId {
        self.regions.template.blocks.id(name).unwrap()
    }

    /// A column of rough ground whose top is about y = 4, with holes and flowers. A wall keeps floods away from the edges of the
    /// world, where they would wait for more ground.
    fn rough(&self, pos: ColumnPos) -> LoadedColumn {
        let mut column = Column::new(pos);
        let [stone, flower] = ["game:stone", "game:flower"].map(|name| self.id(name));
        for (x, z) in (0..16).flat_map(|x| (0..16).map(move |z| (pos.x * 16 + x, pos.z * 16 + z))) {
            let mut random = crate::simulation::SplitMix64::from_parts([x as u64, z as u64]);
            let is_wall = [x, z].iter().any(|at| !(6..16 * WIDTH - 6).contains(at));
            let rough = 3 + i64::from(random.below(3)) - 4 * i64::from(random.below(40) == 0);
            let top = if is_wall { 14 } else { rough };
            for y in -4..=top {
                column.set_block(at(x, y, z), stone);
            }
            if !is_wall && random.below(9) == 0 {
                column.set_block(at(x, top + 1, z), flower);
            }
        }
        column.into()
    }

    /// All columns of the world, or those of one quarter.
    fn columns(quarter: Option<u64>) -> Vec<ColumnPos> {
        let all = (0..WIDTH).flat_map(|x| (0..WIDTH).map(move |z| ColumnPos::new(x, z)));
        let of = |pos: &ColumnPos| (pos.x / (WIDTH / 2) * 2 + pos.z / (WIDTH / 2)) as u64;
        all.filter(|pos| quarter.is_none_or(|quarter| of(pos) == quarter)).collect()
    }

    fn load(&mut self, region: u64, columns: Vec<LoadedColumn>) {
        self.tick_with(region, Inbox { columns, ..Inbox::default() });
    }

    fn tick_with(&mut self, region: u64, inbox: Inbox) {
        let task = Task::Tick { clock: PERIOD * self.clock, delta: PERIOD, save: false };
        self.regions.run(region, inbox, task);
    }

    /// Runs so many ticks of all regions.
    fn tick(&mut self, times: u32) {
        for _ in 0..times {
            self.clock += 1;
            let regions: Vec<_> = self.regions.worlds.keys().copied().collect();
            regions.into_iter().for_each(|region| self.tick_with(region, Inbox::default()));
        }
    }

    /// Merges all regions into the first.
    fn merge(&mut self) {
        self.clock += 1;
        let task = Task::Tick { clock: PERIOD * self.clock, delta: PERIOD, save: false };
        let others = self.regions.worlds.split_off(&1);
        let mut assignment = self.regions.assignment(0, Inbox::default(), task);
        assignment.worlds.extend(others.into_values());
        self.regions.run_assignment(0, assignment);
    }

    fn owned(&mut self, region: u64) -> Mut<'_, RegionColumns> {
        self.regions.world(region).resource_mut::<RegionColumns>()
    }

    fn set(&mut self, region: u64, block: BlockPos, name: &str) {
        let id = self.id(name);
        self.owned(region).set_block(block, id).unwrap();
    }

    fn block(&mut self, region: u64, block: BlockPos) -> String {
        let id = self.owned(region).block(block).unwrap();
        self.regions.template.blocks.block(id).name().to_owned()
    }

    fn count(&mut self, region: u64, name: &str) -> usize {
        let id = self.id(name);
        let owned = self.owned(region);
        let columns = owned.columns().to_vec();
        let cells = |chunk: &crate::chunk::Chunk| {
            (0..4_096).filter(|cell| chunk.block(crate::space::cell_position(*cell)) == id).count()
        };
        columns
            .iter()
            .filter_map(|pos| owned.column(*pos))
            .flat_map(Column::chunks)
            .map(|(_, chunk)| cells(chunk))
            .sum()
    }

    /// All columns of a region.
    fn ground(&mut self, region: u64) -> Vec<Vec<(i64, Vec<BlockId>)>> {
        let owned = self.owned(region);
        let cells = |chunk: &crate::chunk::Chunk| -> Vec<BlockId> {
            (0..4_096).map(|cell| chunk.block(crate::space::cell_position(cell))).collect()
        };
        let chunks = |column: &Column| column.chunks().map(|(y, chunk)| (y, cells(chunk))).collect::<Vec<_>>();
        owned.columns().iter().filter_map(|pos| owned.column(*pos)).map(chunks).collect()
    }

    fn heard(&mut self, region: u64) -> Heard {
        std::mem::take(&mut *self.regions.world(region).resource_mut::<Heard>())
    }

    fn falling(&mut self, region: u64) -> usize {
        let world = self.regions.world(region);
        world.query::<&FallingBlock>().iter(world).count()
    }

    /// Loads the rough ground, as one region or as four.
    fn load_rough(&mut self, is_one: bool) {
        for quarter in 0..if is_one { 1 } else { 4 } {
            let columns = Self::columns((!is_one).then_some(quarter));
            let columns = columns.into_iter().map(|pos| self.rough(pos)).collect();
            self.load(quarter, columns);
        }
    }

    /// Runs until no block tick is scheduled.
    fn settle(&mut self) {
        for _ in 0..1_000 {
            self.tick(10);
            if self
                .regions
                .worlds
                .keys()
                .copied()
                .collect::<Vec<_>>()
                .into_iter()
                .all(|region| self.owned(region).ticks().is_empty())
            {
                return;
            }
        }
        panic!("it never rests");
    }
}

fn liquid_levels() -> impl Iterator<Item = String> {
    (1..=8).map(|level| level.to_string()).chain(["falling".to_owned()])
}

/// Springs on the rough ground, some near the seams.
const SPRINGS: [[i64; 3]; 6] = [[9, 8, 9], [31, 9, 12], [32, 7, 31], [50, 8, 50], [33, 12, 33], [14, 8, 52]];

fn quarter_of(block: BlockPos) -> u64 {
    (block.x / (8 * WIDTH) * 2 + block.z / (8 * WIDTH)) as u64
}

/// Promise, liquids: A flood over four regions that merge ends as in one region, whatever fits into a tick.
#[test]
fn a_flood_over_four_regions_that_merge_is_that_of_one_region() {
    let flooded = |is_one: bool, merged_after: u32, updates_per_tick: usize| {
        let mut living = Living::new(move |region| {
            add_liquids(region, &[LiquidRules::new("game:water").renewing()]);
            region.insert_resource(GroundSettings { updates_per_tick, ..GroundSettings::default() });
        });
        living.load_rough(is_one);
        for [x, y, z] in SPRINGS {
            let spring = at(x, y, z);
            living.set(if is_one { 0 } else { quarter_of(spring) }, spring, "game:water");
        }
        living.tick(merged_after);
        if !is_one {
            living.merge();
        }
        living.settle();
        assert!(living.count(0, "game:water[level=falling]") > 20);
        living.ground(0)
    };
    let one = flooded(true, 0, 4_096);
    for (merged_after, updates) in [(1, 4_096), (40, 4_096), (300, 4_096), (40, 25)] {
        assert!(
            flooded(false, merged_after, updates) == one,
            "merged after {merged_after} ticks, {updates} updates a tick"
        );
    }
    assert!(flooded(true, 0, 25) == one, "work that does not fit waits its turn");
}

#[test]
fn a_region_at_rest_has_nothing_scheduled_and_a_dried_one_too() {
    let mut living = Living::flooding();
    living.load_rough(true);
    living.set(0, at(20, 9, 20), "game:water");
    living.settle();
    assert!(living.count(0, "game:water[level=falling]") > 0);
    living.set(0, at(20, 9, 20), "terrane:air");
    living.settle();
    let water: usize = liquid_levels().map(|level| living.count(0, &format!("game:water[level={level}]"))).sum();
    assert_eq!(water, 0);
}

/// Promise, ground: A block hears of changes of itself and of its six neighbors, once in a tick, if its type asks for it.
#[test]
fn blocks_that_ask_hear_of_changes_beside_them() {
    let mut living = Living::new(|_| {});
    living.load(0, vec![Column::new(ColumnPos::new(0, 0)).into()]);
    living.set(0, at(5, 5, 5), "game:bell");
    living.set(0, at(5, 7, 5), "game:bell");
    living.tick(2);
    assert_eq!(living.heard(0).changed, [at(5, 5, 5), at(5, 7, 5)]);
    living.set(0, at(5, 6, 5), "game:stone");
    living.set(0, at(4, 5, 5), "game:stone");
    living.set(0, at(4, 4, 5), "game:stone");
    living.tick(2);
    assert_eq!(living.heard(0).changed, [at(5, 5, 5), at(5, 7, 5)], "each once, and not at a corner");
    living.set(0, at(5, 6, 5), "game:stone");
    living.tick(2);
    assert!(living.heard(0).changed.is_empty(), "nothing has changed");
    living.set(0, at(5, 5, 5), "game:stone");
    living.tick(2);
    assert!(living.heard(0).changed.is_empty(), "a bell that is gone hears nothing");
}

/// Promise, ground: A change at a border is heard beyond it after the neighbor was loaded, also after the change was stored.
#[test]
fn a_change_at_a_border_is_heard_after_the_neighbor_is_loaded() {
    let mut living = Living::new(|_| {});
    living.load(0, vec![Column::new(ColumnPos::new(0, 0)).into()]);
    living.set(0, at(15, 5, 5), "game:stone");
    living.tick(100);
    // The column goes to another region with its ticks, as it goes to the store and back.
    let sections = vec![ColumnPos::new(0, 0).section(0)];
    let parts = vec![RegionPart { id: RegionId::new(1), sections, section_shift: 0 }];
    let (_, inbox) = living.regions.run(0, Inbox::default(), Task::Split { parts }).parts.pop().unwrap();
    living.tick_with(1, inbox);
    living.tick(100);
    let mut beyond = Column::new(ColumnPos::new(1, 0));
    beyond.set_block(at(16, 5, 5), living.id("game:bell"));
    living.load(1, vec![beyond.into()]);
    assert!(living.heard(1).changed.is_empty());
    living.tick(25);
    assert_eq!(living.heard(1).changed, [at(16, 5, 5)]);
    // The other sides are still not loaded, or have heard; nothing comes twice.
    living.tick(50);
    assert!(living.heard(1).changed.is_empty());
}

/// Two rules that undo each other.
fn quarrel(
    mut changed: MessageReader<BlockChanged>,
    types: Res<crate::simulation::block_types::BlockTypes>,
    mut blocks: RegionBlocks,
) {
    let stone = types.id("game:stone").unwrap();
    for BlockChanged { block } in changed.read() {
        let beside = block.offset(1, 0, 0);
        let new = if blocks.block(beside).unwrap() == stone { BlockId::AIR } else { stone };
        blocks.set_block(beside, new).unwrap();
    }
}

/// Promise, ground: Rules that undo each other are slowed down, and reported once in 64 ticks for each block.
#[test]
fn a_loop_of_rules_is_slowed_down_and_reported() {
    let mut living = Living::new(|region| {
        region.add_systems(RegionTick, quarrel);
    });
    living.load(0, vec![Column::new(ColumnPos::new(0, 0)).into()]);
    living.set(0, at(5, 5, 5), "game:bell");
    living.tick(10 * 64);
    let heard = living.heard(0);
    assert!((280..=360).contains(&heard.changed.len()), "{} updates", heard.changed.len());
    let bell = living.id("game:bell");
    assert!((9..=11).contains(&heard.loops.len()) && heard.loops[0] == RuleLoop { block: at(5, 5, 5), id: bell });
}

/// Promise, ground: Random ticks are the same in one region and in four, and only types that ask for them get them.
#[test]
fn random_ticks_do_not_depend_on_regions() {
    let drawn = |is_one: bool, block: &str| {
        let mut living = Living::new(|_| {});
        living.load_rough(is_one);
        for (x, z) in (0..64).flat_map(|x| (0..64).map(move |z| (x, z))) {
            let region = if is_one { 0 } else { quarter_of(at(x, 0, z)) };
            (5..9).for_each(|y| living.set(region, at(x, y, z), block));
        }
        let mut drawn = Vec::new();
        for _ in 0..20 {
            living.tick(1);
            let mut tick: Vec<_> =
                (0..if is_one { 1 } else { 4 }).flat_map(|region| living.heard(region).drawn).collect();
            tick.sort_by_key(|drawn| drawn.block);
            drawn.extend(tick.into_iter().map(|drawn| (drawn.block, drawn.random)));
        }
        let lookups = living.owned(0).random_chunk_count();
        (drawn, lookups)
    };
    let (one, _) = drawn(true, "game:grass");
    assert!(one == drawn(false, "game:grass").0);
    // 16 chunks, of which a quarter is grass, and 3 cells each in 20 ticks: 240 on average.
    assert!((150..=330).contains(&one.len()), "{}", one.len());
    assert_eq!(drawn(true, "game:dirt"), (Vec::new(), 0), "no chunk is looked at");
}

#[test]
fn a_chunk_without_such_blocks_is_dropped() {
    let mut living = Living::new(|_| {});
    living.load(0, vec![Column::new(ColumnPos::new(0, 0)).into()]);
    living.set(0, at(5, 5, 5), "game:grass");
    living.tick(1);
    assert_eq!(living.owned(0).random_chunk_count(), 1);
    let chunk = at(5, 5, 5).chunk();
    living.owned(0).replace_chunks(chunk.column(), vec![(chunk.y, Arc::default())]);
    living.tick(1);
    assert_eq!(living.owned(0).random_chunk_count(), 0);
}

/// Promise, ground: Blocks in other layers of a cell stay when the block falls out of it.
#[test]
fn water_in_the_sand_stays_when_the_sand_falls() {
    let mut living = Living::new(add_falling_blocks);
    let mut column = Column::new(ColumnPos::new(0, 0));
    column.set_block(at(8, 0, 8), living.id("game:stone"));
    living.load(0, vec![column.into()]);
    let [sand, water] = ["game:sand", "game:water"].map(|name| living.id(name));
    living.owned(0).set_block_at(at(8, 6, 8), 0, sand).unwrap();
    living.owned(0).set_block_at(at(8, 6, 8), 1, water).unwrap();
    living.tick(40);
    assert_eq!(living.block(0, at(8, 1, 8)), "game:sand");
    assert!(living.block(0, at(8, 6, 8)).starts_with("game:water"), "{}", living.block(0, at(8, 6, 8)));
}

/// Promise, ground: A limited number of blocks falls in a region at a time; the others wait, and none is lost.
#[test]
fn blocks_wait_while_many_others_fall() {
    let mut living = Living::new(add_falling_blocks);
    let columns = (0..2).flat_map(|x| (0..2).map(move |z| ColumnPos::new(x, z)));
    let sand = living.id("game:sand");
    let columns: Vec<LoadedColumn> = columns
        .map(|pos| {
            let mut column = Column::new(pos);
            for cell in 0..256 * 5 {
                column.set_block(at(pos.x * 16 + cell % 16, 30 + cell / 256, pos.z * 16 + cell / 16 % 16), sand);
            }
            column.into()
        })
        .collect();
    living.load(0, columns);
    let all = living.count(0, "game:sand");
    // Sand that was generated rests until something changes.
    for (x, y, z) in (0..32).flat_map(|x| (0..5).flat_map(move |y| (0..32).map(move |z| (x, y, z)))) {
        living.set(0, at(x, 30 + y, z), "game:stone");
        living.set(0, at(x, 30 + y, z), "game:sand");
    }
    let mut most = 0;
    for _ in 0..200 {
        living.tick(1);
        most = most.max(living.falling(0));
        assert_eq!(living.count(0, "game:sand") + living.falling(0), all);
    }
    assert_eq!((all, most, living.falling(0)), (5_120, 4_096, 0));
}

/// Promise, ground: Sand falls, and lies where it lands.
#[test]
fn sand_falls_and_lies() {
    let mut living = Living::new(add_falling_blocks);
    let mut column = Column::new(ColumnPos::new(0, 0));
    let stone = living.id("game:stone");
    for x in 0..16 {
        column.set_block(at(x, 0, 5), stone);
    }
    living.load(0, vec![column.into()]);
    for y in 10..13 {
        living.set(0, at(5, y, 5), "game:sand");
    }
    living.set(0, at(7, 1, 5), "game:sand");
    living.set(0, at(9, 10, 5), "game:sand");
    living.set(0, at(9, 1, 5), "game:flower");
    living.tick(4);
    assert_eq!(living.falling(0), 4, "a stack falls as a whole");
    living.tick(60);
    assert_eq!(living.falling(0), 0);
    for place in [at(5, 1, 5), at(5, 2, 5), at(5, 3, 5), at(7, 1, 5), at(9, 1, 5)] {
        assert_eq!(living.block(0, place), "game:sand", "{place}");
    }
    assert_eq!(living.count(0, "game:sand"), 5);
    // Below the world is nothing: the last block stays on its floor.
    living.set(0, at(5, 20, 9), "game:sand");
    living.tick(100);
    assert_eq!(living.block(0, at(5, -16, 9)), "game:sand");
}

#[test]
fn a_block_that_lands_where_another_was_set_goes_up_or_is_dropped() {
    for (above, is_dropped) in [(2, false), (20, true)] {
        let mut living = Living::new(add_falling_blocks);
        living.load(0, vec![Column::new(ColumnPos::new(0, 0)).into()]);
        living.set(0, at(3, 20, 5), "game:sand");
        living.tick(12);
        let world = living.regions.world(0);
        let place = world.query_filtered::<&Position, With<FallingBlock>>().single(world).unwrap().block;
        assert!((5..20).contains(&place.y), "it falls: {place}");
        // A pillar grows around it.
        for y in -1..=above {
            living.set(0, place.offset(0, y, 0), "game:stone");
        }
        living.tick(5);
        let heard = living.heard(0);
        assert_eq!((living.falling(0), heard.dropped.len()), (0, usize::from(is_dropped)));
        assert_eq!(living.block(0, place.offset(0, 3, 0)) == "game:sand", !is_dropped);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Promise, ground: No falling block is lost or doubled, however regions merge and split.
    #[test]
    fn the_number_of_falling_blocks_stays_the_same(
        sand in prop::collection::vec((0..16_i64, 4..40_i64, 0..64_i64), 1..60),
        changes in prop::collection::vec((0_u8..3, 0..16_i64, 0..8_i64, 0..64_i64), 0..30),
    ) {
        let mut living = Living::new(|region| {
            add_falling_blocks(region);
            add_liquids(region, &[LiquidRules::new("game:water")]);
        });
        let mut columns: Vec<_> = (0..4).map(|z| living.rough(ColumnPos::new(0, z))).collect();
        let far = columns.split_off(2);
        living.load(0, columns);
        living.load(1, far);
        let mut is_split = true;
        let region = |z: i64, is_split: bool| u64::from(is_split && z >= 32);
        for (x, y, z) in sand {
            living.set(region(z, is_split), at(x, y, z), "game:sand");
        }
        let mut expected = living.count(0, "game:sand") + living.count(1, "game:sand");
        for (change, x, y, z) in changes {
            let place = at(x, y, z);
            let here = region(z, is_split);
            match change {
                0 => {
                    expected -= usize::from(living.block(here, place) == "game:sand");
                    living.set(here, place, "terrane:air");
                }
                1 if is_split => {
                    living.merge();
                    is_split = false;
                }
                1 => {
                    let sections = (2..4).map(|z| ColumnPos::new(0, z).section(0)).collect();
                    let parts = vec![RegionPart { id: RegionId::new(1), sections, section_shift: 0 }];
                    let (_, inbox) = living.regions.run(0, Inbox::default(), Task::Split { parts }).parts.pop().unwrap();
                    living.tick_with(1, inbox);
                    is_split = true;
                }
                _ => living.tick(3),
            }
            let regions: &[u64] = if is_split { &[0, 1] } else { &[0] };
            let found: usize = regions.iter().map(|region| living.count(*region, "game:sand") + living.falling(*region)).sum();
            let dropped: usize = regions.iter().map(|region| living.heard(*region).dropped.len()).sum();
            expected -= dropped;
            prop_assert_eq!(found, expected);
        }
    }
}

/// Promise, ground: Blocks grow and spread at random ticks, in the light that their rules ask for.
#[test]
fn grass_spreads_in_the_light_and_not_in_other_light() {
    for (levels, spreads) in [(9..=15, true), (0..=3, false)] {
        let rules = [GrowthRule::spreading("game:grass", "game:dirt").with_light(levels)];
        let mut living = Living::new(move |region| {
            add_growth(region, &rules);
            region.insert_resource(GroundSettings { random_ticks: 400, ..GroundSettings::default() });
        });
        let mut column = Column::new(ColumnPos::new(0, 0));
        let [grass, dirt] = ["game:grass", "game:dirt"].map(|name| living.id(name));
        for cell in 0..256 {
            column.set_block(at(cell % 16, 0, cell / 16), dirt);
        }
        column.set_block(at(8, 0, 8), grass);
        living.load(0, vec![column.into()]);
        living.tick(1_500);
        let grown = living.count(0, "game:grass");
        assert_eq!(grown > 50, spreads, "{grown}");
        assert_eq!(grown == 1, !spreads, "{grown}");
    }
}

#[test]
fn a_block_grows_with_its_chance() {
    let rules = [GrowthRule::new("game:grass", "game:stone").with_chance(0.25)];
    let mut living = Living::new(move |region| {
        add_growth(region, &rules);
        region.insert_resource(GroundSettings { random_ticks: 100, ..GroundSettings::default() });
    });
    let mut column = Column::new(ColumnPos::new(0, 0));
    let grass = living.id("game:grass");
    for cell in 0..4_096 {
        column.set_block(at(cell % 16, cell / 256, cell / 16 % 16), grass);
    }
    living.load(0, vec![column.into()]);
    living.tick(10);
    // 1,000 random ticks or a little more.
    let grown = living.count(0, "game:stone");
    assert!((180..=330).contains(&grown), "{grown}");
}

#[test]
fn rules_that_name_unknown_blocks_are_errors_of_the_template() {
    let error = |plugins: fn(&mut SubApp)| {
        let mut regions = Regions::with_plugins(|_| {}, plugins);
        regions.assignment(0, Inbox::default(), Task::Save).run(&regions.template).map(drop).unwrap_err().to_string()
    };
    let unknown = error(|region| add_growth(region, &[GrowthRule::new("terrane:gras", "terrane:dirt")]));
    assert_eq!(unknown, "growth: there is no block \"terrane:gras\"; is \"terrane:grass\" meant?");
    let no_states = error(|region| add_liquids(region, &[LiquidRules::new("terrane:water")]));
    assert!(no_states.contains("has no state with the level 8"), "{no_states}");
}
