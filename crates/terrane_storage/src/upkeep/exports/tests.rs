//! Small random worlds, with their contents by block names, for tests of exports and imports.

mod damage;
mod interruptions;
mod old_formats;
mod round_trips;

use super::*;
use crate::backends::test_store::TestStore;
use crate::block::{BlockComponent, BlockId, BlockLayout, BlockRegistry, BlockType};
use crate::chunk::{Chunk, Column, ColumnSummary, Detail};
use crate::space::{BlockPos, ChunkPos, DimensionId, GeneratorIdentity, cell_position};
use crate::work::Progress;
use crate::{
    ChildRecord, ChunkGroup, Durability, EntityRecord, RegistryLists, SaveBatch, StoredBlockTick, Tier, WorldStore,
    envelope, mark_stored,
};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use terrane_objects::ObjectStore;
use uuid::Uuid;

const NAME: &str = "overworld";

fn go_on(_: &Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn steps(objects_per_file: usize) -> ExportOptions {
    ExportOptions { objects_per_file, ..ExportOptions::default() }
}

/// A game that registers its blocks in this order.
fn game(order: &[usize]) -> BlockRegistry {
    let mut blocks = BlockRegistry::new();
    if order.first() == Some(&2) {
        blocks.register_component(BlockComponent::variable("game:label")).unwrap();
    }
    blocks.register_component(BlockComponent::variable("game:items")).unwrap();
    blocks.register_component(BlockComponent::fixed::<u32>("game:heat")).unwrap();
    for place in order {
        let block = match place {
            0 => BlockType::new("game:stone"),
            1 => BlockType::new("game:water"),
            2 => BlockType::new("game:chest").with_component("game:heat").with_component("game:items"),
            3 => BlockType::new("game:log[axis=x]"),
            _ => BlockType::new("game:oven").with_component("game:heat"),
        };
        blocks.register(block).unwrap();
    }
    blocks
}

fn lists(blocks: &BlockRegistry) -> RegistryLists {
    RegistryLists {
        blocks: blocks.block_records().collect(),
        components: blocks.component_records().cloned().collect(),
        entity_types: vec!["game::Cow".into(), "game::Pig@9".into()],
    }
}

/// A world whose game registers its blocks in this order, with an empty dimension.
fn empty_world(order: &[usize], is_sparse: bool) -> (TestStore, DimensionId) {
    let store = TestStore::default();
    let world = store.world();
    world.save_registry_lists(&lists(&game(order))).unwrap();
    let origin = GeneratorIdentity { name: "hills".into(), version: 2, seed: 7 };
    world.open_dimension("nether", &origin).unwrap();
    let dimension = world.open_dimension_as(NAME, &origin, is_sparse).unwrap();
    (store, dimension)
}

/// The position of a block, its layer, its type in the game, and the value of its components.
type Edit = ([i64; 3], u8, usize, Vec<u8>);

/// A random world around the origin.
#[derive(Clone, Debug)]
struct Spec {
    is_sparse: bool,
    columns: BTreeSet<(i64, i64)>,
    edits: Vec<Edit>,
    /// Edits of the same chunks that are saved later.
    later: Vec<Edit>,
    entities: Vec<[i64; 3]>,
    ticks: Vec<[i64; 3]>,
    /// The tiers of successive groups.
    tiers: Vec<u8>,
    /// Kept objects: of a column, of a chunk, or without a place.
    kept: Vec<(u8, [i64; 3])>,
}

/// The number of blocks along each axis from the origin: columns of four batches and of four tiles.
const REACH: i64 = 5 * 16;

fn place() -> impl Strategy<Value = [i64; 3]> {
    (-REACH..REACH, -40..40_i64, -REACH..REACH).prop_map(|(x, y, z)| [x, y, z])
}

fn edits(most: usize) -> impl Strategy<Value = Vec<Edit>> {
    vec((place(), prop_oneof![4 => Just(0_u8), 1 => 1..3_u8], 0..5_usize, vec(any::<u8>(), 4..9)), 0..most)
}

fn specs() -> impl Strategy<Value = Spec> {
    let columns = btree_set((-5..5_i64, -5..5_i64), 1..30);
    let others = (vec(place(), 0..6), vec(place(), 0..6), vec(0..3_u8, 1..5), vec((0..3_u8, place()), 0..5));
    (any::<bool>(), columns, edits(60), edits(20), others).prop_map(
        |(is_sparse, columns, edits, later, (entities, ticks, tiers, kept))| Spec {
            is_sparse,
            columns,
            edits,
            later,
            entities,
            ticks,
            tiers,
            kept,
        },
    )
}

impl Spec {
    /// Makes the world, saves it twice, and moves groups to all tiers.
    fn make(&self, order: &[usize]) -> (TestStore, DimensionId) {
        let (store, dimension) = empty_world(order, self.is_sparse);
        let (world, blocks) = (store.world(), game(order));
        let mut columns: BTreeMap<(i64, i64), Column> =
            self.columns.iter().map(|(x, z)| ((*x, *z), Column::new(ColumnPos::new(*x, *z)))).collect();
        for edits in [&self.edits, &self.later] {
            let mut save = SaveBatch::default();
            for ([x, y, z], layer, block, value) in edits {
                let pos = BlockPos::new(*x, *y, *z);
                let Some(column) = columns.get_mut(&(pos.column().x, pos.column().z)) else { continue };
                let chunk = column.chunk_mut(pos.chunk().y);
                let block = BlockId::new(1 + *block as u32);
                if chunk.place_block(&blocks, pos.in_chunk(), *layer, block).is_ok() {
                    for of in blocks.components(block) {
                        let value = &value[..of.size.map_or(value.len(), |size| size as usize)];
                        chunk.set_component(&blocks, pos.in_chunk(), *layer, of.id, value).unwrap();
                    }
                }
            }
            for column in columns.values() {
                for (y, chunk) in column.chunks() {
                    save.chunks.insert((dimension, column.pos().chunk(y)), chunk.clone());
                }
                if !self.is_sparse {
                    save.summaries.insert((dimension, column.pos()), Arc::new(ColumnSummary::new(column)));
                }
                let pos = column.pos();
                mark_stored(save.tiles.entry((dimension, pos.tile())).or_insert([0; 64]), pos);
                save.histories.entry((dimension, pos.tile())).or_default().set_new(pos, is_new(pos));
            }
            for (id, place) in (1..).zip(&self.entities) {
                let entity = entity(id, dimension, *place);
                if self.columns.contains(&(entity.column().x, entity.column().z)) {
                    save.entities.insert(entity.id, Some(entity));
                }
            }
            for [x, y, z] in &self.ticks {
                let block = BlockPos::new(*x, *y, *z);
                if self.columns.contains(&(block.column().x, block.column().z)) {
                    let tick = StoredBlockTick { block, kind: "flow".into(), remaining: 9 };
                    save.block_ticks.insert((dimension, block.chunk()), vec![tick]);
                }
            }
            world.commit(&save, Durability::Process).unwrap();
        }
        for (kind, [x, y, z]) in &self.kept {
            let key = match kind {
                0 => format!("game:weather/{x}"),
                1 => format!("column/{},{}/game:owner", x >> 4, z >> 4),
                _ => format!("chunk/{},{},{}/game:claim", x >> 4, y >> 4, z >> 4),
            };
            world.keep_object(dimension, &key, y.unsigned_abs(), format!("of {x}").as_bytes()).unwrap();
        }
        let groups: BTreeSet<ChunkGroup> = columns
            .values()
            .flat_map(|column| column.chunks().map(|(y, _)| ChunkGroup::of(dimension, column.pos().chunk(y))))
            .collect();
        let tier = |number: &u8| [Tier::Hot, Tier::Warm, Tier::Cold][usize::from(*number)];
        let moves: Vec<_> = groups.into_iter().zip(self.tiers.iter().cycle().map(tier)).collect();
        assert_eq!(world.move_groups(&moves).unwrap().1, 0);
        (store, dimension)
    }
}

/// Returns `true` if no region was told of the column.
fn is_new(column: ColumnPos) -> bool {
    (column.x + 2 * column.z).rem_euclid(3) == 0
}

/// An entity with a child beside it and one in another dimension.
fn entity(id: u128, dimension: DimensionId, [x, y, z]: [i64; 3]) -> EntityRecord {
    let child = |id, place| ChildRecord { parent: None, id, place, viewer: None, components: Vec::new() };
    let block = BlockPos::new(x, y, z);
    let beside = (dimension, BlockPos::new(x + 1, y, z), [0.25; 3]);
    EntityRecord {
        id: Uuid::from_u128(id),
        dimension,
        block,
        offset: [0.5; 3],
        viewer: None,
        components: vec![("game::Cow".into(), vec![7])],
        children: vec![child(Some(Uuid::from_u128(id << 64)), Some(beside)), child(None, None)],
    }
}

/// The blocks of a cell that is not only air, by layer, each with the name and value of its components.
type Cell = Vec<(String, Vec<(String, Vec<u8>)>)>;

#[derive(Clone, Debug, Default, PartialEq)]
struct Contents {
    columns: BTreeSet<(i64, i64)>,
    new: BTreeSet<(i64, i64)>,
    chunks: BTreeMap<(i64, i64, i64), (u64, BTreeMap<[usize; 3], Cell>)>,
    entities: BTreeMap<Uuid, EntityRecord>,
    ticks: BTreeSet<StoredBlockTick>,
    /// The height and block of each cell with ground.
    summaries: BTreeMap<(i64, i64), Vec<Option<(i64, String)>>>,
    kept: BTreeMap<String, (u64, Vec<u8>)>,
}

fn contents(store: &TestStore, name: &str) -> Contents {
    let world = store.world();
    let Some(dimension) = world.dimensions().unwrap().into_iter().find(|dimension| dimension.name == name) else {
        return Contents::default();
    };
    let (dimension, blocks) = (dimension.id, world.blocks().unwrap());
    let mut found = Contents::default();
    let stored = world.stored_tiles(dimension).unwrap();
    for (batch, mask) in ground::batches(&stored) {
        for pos in ground::columns_of(batch, mask) {
            found.columns.insert((pos.x, pos.z));
            found.new.extend(world.history(dimension, pos.tile()).unwrap().is_new(pos).then_some((pos.x, pos.z)));
            let summary = world.summaries(dimension, &[pos]).unwrap().pop().flatten();
            if let Some(summary) = summary {
                let side = Detail::FINEST.cells();
                let cells = (0..side * side).map(|cell| summary.surface(cell % side, cell / side));
                let named = |cell: crate::chunk::SummaryCell| (cell.height, blocks.block(cell.block).name().to_owned());
                found.summaries.insert((pos.x, pos.z), cells.map(|cell| cell.map(named)).collect());
            }
            for mut entity in world.load_batch(dimension, batch, &[pos], 0..0).unwrap().remove(0).entities {
                for (at, ..) in entity.children.iter_mut().filter_map(|child| child.place.as_mut()) {
                    assert_eq!(*at, dimension);
                    *at = DimensionId(0);
                }
                entity.dimension = DimensionId(0);
                found.entities.insert(entity.id, entity);
            }
            let column = world.load_batch(dimension, batch, &[pos], -99..99).unwrap().remove(0);
            found.ticks.extend(column.block_ticks);
        }
    }
    for (tile, _) in &stored {
        for group in world.groups_over(dimension, *tile, false).unwrap() {
            for pos in group.chunks(u64::MAX) {
                let Some((_, value)) = world.chunk_value(dimension, pos).unwrap() else { continue };
                let version = envelope::open(&value).unwrap().0;
                let known = world.known_blocks().unwrap();
                let chunk = world.decode_chunk(&known, (dimension, pos), &value).unwrap();
                found.chunks.insert((pos.x, pos.y, pos.z), (version, cells(&blocks, &chunk)));
            }
        }
    }
    for (key, version) in world.kept_objects(dimension).unwrap() {
        let data = world.kept_object(dimension, &key).unwrap().unwrap().data;
        found.kept.insert(key, (version, data));
    }
    found
}

fn cells(blocks: &BlockRegistry, chunk: &Chunk) -> BTreeMap<[usize; 3], Cell> {
    let mut cells = BTreeMap::new();
    for (position, block) in (0..).map(cell_position).zip(chunk.blocks()) {
        if block == BlockId::AIR && chunk.layer_count(position) == 1 {
            continue;
        }
        let layers = (0..).map_while(|layer| Some((layer, chunk.block_at(position, layer)?)));
        let named = layers.map(|(layer, block)| {
            let components = chunk.components(position, layer);
            let values =
                components.map(|(id, value)| (blocks.component_record(id).unwrap().name.clone(), value.to_vec()));
            let mut values: Vec<_> = values.collect();
            values.sort();
            (blocks.block(block).name().to_owned(), values)
        });
        cells.insert(position, named.collect());
    }
    cells
}

fn objects(path: &Path) -> Vec<BTreeMap<String, (u64, Vec<u8>)>> {
    let files = (1..).map(|number| export_file(path, number)).take_while(|path| path.exists());
    let read = |path: PathBuf| {
        let store = ObjectStore::open_to_read(&path, EXPORT_SIGNATURE).unwrap();
        let keys: Vec<String> = store.with_prefix("").map(|(key, _)| key.to_owned()).collect();
        let object = |key: String| {
            let object = store.read(&key).unwrap().unwrap();
            (key, (object.version, object.data))
        };
        keys.into_iter().map(object).collect()
    };
    files.map(read).collect()
}

fn copy_files(from: &Path, to: &Path) {
    for number in (1..).take_while(|number| export_file(from, *number).exists()) {
        fs::copy(export_file(from, number), export_file(to, number)).unwrap();
    }
}

fn export(store: &TestStore, path: &Path, options: &ExportOptions) -> ExportReport {
    let report = store.world().export_dimension(NAME, path, options, go_on).unwrap();
    assert!(report.finished);
    report
}

fn import(store: &TestStore, path: &Path, options: &ImportOptions) -> Result<ImportReport, UpkeepError> {
    let world: WorldStore = store.world();
    let report = world.import_dimension(path, options, go_on)?;
    assert!(report.finished);
    Ok(report)
}

/// A fixed world with data of every kind.
fn small_world() -> (TestStore, DimensionId) {
    let block = |x, y, z, kind| ([x, y, z], 0, kind, vec![1, 2, 3, x as u8]);
    let columns = (-5..5).flat_map(|x| (-5..5).map(move |z| (x, z))).filter(|(x, z)| (x * z) % 3 != 1).collect();
    let edits = (-70..70).step_by(9).flat_map(|x| [block(x, x / 3, -x, 2), block(x, 3, x, 0), block(x, 3, 5, 4)]);
    let spec = Spec {
        is_sparse: false,
        columns,
        edits: edits.collect(),
        later: vec![block(3, 3, 5, 1), block(20, -20, 20, 3)],
        entities: vec![[0, 5, 0], [-30, 2, 18], [40, -3, -40]],
        ticks: vec![[1, 1, 1], [33, -8, 33]],
        tiers: vec![0, 1, 2],
        kept: vec![(0, [1, 2, 3]), (1, [17, 2, 3]), (2, [-60, 2, 60]), (0, [5, 2, 3])],
    };
    spec.make(&[0, 1, 2, 3, 4])
}
