//! Schematics of worlds that no game has open.

#[path = "../../../../terrane_world/src/snapshot/tests/sample.rs"]
mod sample;

use super::*;
use crate::block::{BlockId, BlockRegistry, BlockType, PLACEHOLDER};
use crate::chunk::{Chunk, Column, ColumnSummary};
use crate::space::{BlockBox, ChunkPos, GeneratorIdentity};
use crate::work::Progress;
use crate::{Durability, RegistryLists, SaveBatch, StorageConfig, StoredBlockTick, mark_stored, player_component};
use sample::{BLOCKS, cells, entity, positions_of};
use std::ops::ControlFlow;
use std::sync::Arc;
use terrane_world::snapshot::Snapshot;
use terrane_world::snapshot::schematic::nbt::{Compound, Nbt};
use terrane_world::snapshot::schematic::{BlockEntity, Schematic, SchematicEntity};
use terrane_world::snapshot::translation::TranslationOptions;

fn at(x: i64, y: i64, z: i64) -> BlockPos {
    BlockPos::new(x, y, z)
}

fn go_on(_: &Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn stone() -> BlockId {
    BLOCKS.id("game:stone").unwrap()
}

/// A world of 8 x 8 columns around the origin, without column 2, 2. Each has a layer of stone and a guard.
fn world() -> (WorldStore, DimensionId) {
    let store = WorldStore::open(&StorageConfig::Memory).unwrap();
    let lists = RegistryLists {
        blocks: BLOCKS.block_records().collect(),
        components: BLOCKS.component_records().cloned().collect(),
        ..RegistryLists::default()
    };
    store.save_registry_lists(&lists).unwrap();
    let origin = GeneratorIdentity { name: "flat".into(), version: 1, seed: 3 };
    let dimension = store.open_dimension("overworld", &origin).unwrap();
    let mut save = SaveBatch::default();
    let ground = Arc::new(Chunk::from_fn(|[_, y, _]| if y == 0 { stone() } else { BlockId::AIR }));
    for pos in (-4..4).flat_map(|x| (-4..4).map(move |z| ColumnPos::new(x, z))) {
        if pos == ColumnPos::new(2, 2) {
            continue;
        }
        let mut column = Column::new(pos);
        column.set_chunk(0, ground.clone());
        save.chunks.insert((dimension, pos.chunk(0)), ground.clone());
        save.summaries.insert((dimension, pos), Arc::new(ColumnSummary::new(&column)));
        let masks = save.tiles.entry((dimension, pos.tile())).or_insert([0; 64]);
        mark_stored(masks, pos);
    }
    let guard = crate::EntityRecord { dimension, ..entity(7, at(5, 3, 5)) };
    save.entities.insert(guard.id, Some(guard));
    let ticks = [at(1, 1, 1), at(1, 9, 1)].map(|block| StoredBlockTick { block, kind: "flow".into(), remaining: 9 });
    save.block_ticks.insert((dimension, ChunkPos::new(0, 0, 0)), ticks.to_vec());
    store.commit(&save, Durability::Process).unwrap();
    (store, dimension)
}

/// A house of 20 x 4 x 20 blocks of known and unknown states, with a chest and a cow.
fn house() -> Schematic {
    let mut schematic = Schematic::new([20, 4, 20]);
    let states = ["game:stone", "other:lamp[facing=north,lit=true]", "Not A Name", "other:chest", "game:water"];
    schematic.palette.extend(states.map(str::to_owned));
    for position in (0..20).flat_map(|x| (0..4).flat_map(move |y| (0..20).map(move |z| [x, y, z]))) {
        let number = (position[0] * 7 + position[1] * 5 + position[2] * 3) % 6;
        let [x, y, z] = position.map(|at| at / 16);
        let mut chunk =
            schematic.blocks.chunk(ChunkPos::new(x, y, z)).map_or_else(Chunk::default, |it| Chunk::clone(it));
        chunk.set_block(position.map(|at| (at % 16) as usize), BlockId::new(number as u32));
        schematic.blocks.set_chunk(ChunkPos::new(x, y, z), chunk.into());
    }
    let chest = (0..20).find(|x| schematic.state([*x, 1, 3]) == Some("other:chest")).unwrap();
    let data = Compound(vec![("Items".into(), Nbt::Int(3))]);
    let chest = BlockEntity { position: [chest as i32, 1, 3], id: "other:chest".into(), data: data.clone() };
    schematic.block_entities.push(chest);
    schematic.entities.push(SchematicEntity { position: [3.5, 1.0, 2.25], id: "other:cow".into(), data });
    schematic
}

fn import(world: &ClosedWorld<'_>, options: &SchematicImport) -> Result<SchematicImportReport> {
    world.import(house(), options, &TranslationOptions::default(), &mut go_on)
}

fn export(world: &ClosedWorld<'_>, area: &BlockBox) -> Schematic {
    world.export(area, &TranslationOptions::default(), &mut go_on).unwrap().0
}

fn here(at: BlockPos) -> SchematicImport {
    SchematicImport { at, ..SchematicImport::default() }
}

fn ground(world: &ClosedWorld<'_>) -> Snapshot {
    world.capture(&BlockBox::new(at(-64, -16, -64), at(63, 47, 63)), &mut go_on).unwrap()
}

fn states(schematic: &Schematic) -> Vec<String> {
    let [width, height, length] = schematic.size();
    let rows = (0..width).flat_map(|x| (0..height).map(move |y| (x, y)));
    let cells = rows.flat_map(|(x, y)| (0..length).map(move |z| [x, y, z]));
    cells.map(|at| schematic.state(at).unwrap().to_owned()).collect()
}

#[test]
fn an_imported_schematic_is_exported_unchanged_and_its_surroundings_stay() {
    let (store, dimension) = world();
    let world = ClosedWorld::new(&store, dimension).unwrap();
    let before = cells(&ground(&world));
    let corner = at(-5, 1, -9);
    let report = import(&world, &here(corner)).unwrap();
    assert!(report.finished && report.ungenerated == 0 && report.known_entities == 0);
    assert_eq!((report.columns, report.chunks, report.entities, report.new_types), (4, 4, 1, 2));
    assert_eq!((report.translation.block_entities, report.translation.entities), (0, 0));
    let area = BlockBox::new(corner, corner.offset(19, 3, 19));
    let again = export(&world, &area);
    let original = house();
    assert_eq!(states(&again), states(&original));
    assert_eq!(again.block_entities, original.block_entities);
    assert_eq!(again.entities.iter().filter(|it| it.id == "other:cow").collect::<Vec<_>>(), [&original.entities[0]]);
    assert_eq!(again.corner(), Some([-5, 1, -9]));
    let after = cells(&ground(&world));
    let changed = before.iter().filter(|(position, cell)| after[position] != **cell);
    assert!(changed.clone().count() > 300 && changed.clone().all(|(position, _)| area.contains(*position)));

    // The same import again finds everything in place.
    let report = import(&world, &here(corner)).unwrap();
    assert_eq!((report.chunks, report.entities, report.known_entities, report.new_types), (0, 0, 1, 0));
    assert_eq!(cells(&ground(&world)), after);
}

#[test]
fn summaries_opacity_and_scheduled_ticks_follow() {
    let (store, dimension) = world();
    let registry = store.blocks().unwrap();
    store.set_blocks(registry);
    let batch = ColumnPos::new(0, 0).batch();
    assert!(!store.opacity(dimension, batch).unwrap().is_opaque(1, 2, 3..4));
    let world = ClosedWorld::new(&store, dimension).unwrap();
    let mut tower = Schematic::new([2, 30, 2]);
    tower.palette.push("game:stone".into());
    let column =
        |y: usize| Chunk::from_fn(|[cx, cy, cz]| BlockId::new(u32::from(cx < 2 && cz < 2 && y * 16 + cy < 30)));
    for y in 0..2 {
        tower.blocks.set_chunk(ChunkPos::new(0, y, 0), column(y as usize).into());
    }
    let report = world.import(tower, &here(at(1, 1, 1)), &TranslationOptions::default(), &mut go_on).unwrap();
    assert_eq!((report.chunks, report.new_types), (2, 0));
    assert!(store.opacity(dimension, batch).unwrap().is_opaque(1, 2, 3..4));
    let summary = store.summaries(dimension, &[ColumnPos::new(0, 0)]).unwrap().remove(0).unwrap();
    let stored = store.load_batch(dimension, batch, &[ColumnPos::new(0, 0)], -4..4).unwrap().remove(0);
    assert_eq!(summary, ColumnSummary::new(&stored.column));
    assert_eq!(stored.block_ticks, [], "both lay where the tower is");
    assert_eq!(stored.column.surface(1, 1), Some(30));
}

#[test]
fn ground_that_was_never_generated_is_refused_or_left_out() {
    let (store, dimension) = world();
    let world = ClosedWorld::new(&store, dimension).unwrap();
    let (before, lists) = (cells(&ground(&world)), store.registry_lists().unwrap());
    let corner = at(20, 1, 20);
    let error = import(&world, &here(corner)).unwrap_err();
    assert_eq!(error, ClosedWorldError::Ungenerated { count: 1, first: ColumnPos::new(2, 2) });
    assert_eq!((cells(&ground(&world)), store.registry_lists().unwrap()), (before.clone(), lists));
    let report = import(&world, &SchematicImport { leaves_ungenerated: true, ..here(corner) }).unwrap();
    assert_eq!((report.columns, report.ungenerated, report.finished), (3, 1, true));
    assert!(!store.is_stored(dimension, ColumnPos::new(2, 2)).unwrap());
    let exported =
        world.export(&BlockBox::new(corner, corner.offset(19, 3, 19)), &TranslationOptions::default(), &mut go_on);
    assert_eq!(exported.unwrap().1, 1);
}

#[test]
fn in_a_sparse_dimension_the_chunks_that_a_box_fills_are_generated_by_it() {
    let (store, dimension) = world();
    store.make_sparse(dimension).unwrap();
    let world = ClosedWorld::new(&store, dimension).unwrap();
    let mut block = Schematic::new([32, 32, 32]);
    block.palette.push("game:stone".into());
    block.blocks.set_chunk(ChunkPos::new(1, 1, 1), Arc::new(Chunk::uniform(BlockId::new(1))));
    let options = |y| here(at(160, y, 0));
    let import =
        |options: &SchematicImport| world.import(block.clone(), options, &TranslationOptions::default(), &mut go_on);
    assert!(matches!(import(&options(8)).unwrap_err(), ClosedWorldError::Ungenerated { count: 8, .. }));
    let report = import(&options(16)).unwrap();
    assert_eq!((report.columns, report.chunks, report.ungenerated), (4, 8, 0));
    assert!(store.is_stored(dimension, ColumnPos::new(11, 1)).unwrap());
    let part = store.load_part(dimension, ColumnPos::new(10, 0), &(0..4).into()).unwrap();
    assert_eq!(part.column.loaded(), Some(&(1..3).into()), "air is there as well");
    let cow = crate::EntityRecord { dimension, ..entity(8, at(165, 30, 5)) };
    store
        .commit(&SaveBatch { entities: [(cow.id, Some(cow))].into(), ..Default::default() }, Durability::Process)
        .unwrap();
    let partly = import(&SchematicImport { leaves_ungenerated: true, ..options(24) }).unwrap();
    assert_eq!((partly.ungenerated, partly.chunks, partly.others), (4, 1, 1));
}

/// Promise, upkeep: `schematic import` reports the entities in the box, and `--replace-entities` removes them.
#[test]
fn entities_that_are_there_stay_or_are_replaced() {
    let (store, dimension) = world();
    let world = ClosedWorld::new(&store, dimension).unwrap();
    let beside = crate::EntityRecord { dimension, ..entity(8, at(5, 30, 5)) };
    let player =
        crate::EntityRecord { dimension, components: vec![player_component("Alice")], ..entity(9, at(6, 3, 6)) };
    let all = [entity(7, at(5, 3, 5)).id, beside.id, player.id];
    let save =
        SaveBatch { entities: [(beside.id, Some(beside)), (player.id, Some(player))].into(), ..Default::default() };
    store.commit(&save, Durability::Process).unwrap();
    let is_there = || all.map(|id| store.entity(id).unwrap().is_some());
    let kept = import(&world, &here(at(0, 1, 0))).unwrap();
    assert_eq!((kept.others, kept.entities, is_there()), (1, 1, [true; 3]));
    let replacing = SchematicImport { replaces_entities: true, ..here(at(0, 1, 0)) };
    let replaced = import(&world, &replacing).unwrap();
    assert_eq!((replaced.others, replaced.entities, replaced.known_entities), (1, 0, 1), "its own stays");
    assert_eq!(is_there(), [false, true, true]);
    assert_eq!(import(&world, &replacing).unwrap().others, 0);
    let cows = export(&world, &BlockBox::new(at(0, 1, 0), at(19, 4, 19))).entities;
    assert_eq!(cows, house().entities);
}

/// Promise, upkeep: `schematic export` writes a box of blocks, and `schematic import` puts it elsewhere and can turn it.
#[test]
fn a_turned_import_is_the_turned_schematic() {
    let (store, dimension) = world();
    let world = ClosedWorld::new(&store, dimension).unwrap();
    let turn = Turn::FLIP_X.then(Turn::quarters(1));
    let report = import(&world, &SchematicImport { turn, ..here(at(-10, 1, -10)) }).unwrap();
    assert!(report.finished);
    let again = export(&world, &BlockBox::new(at(-10, 1, -10), at(9, 4, 9)));
    let original = house();
    for position in positions_of(&BlockBox::new(at(0, 0, 0), at(19, 3, 19))) {
        let [x, y, z] = [position.x, position.y, position.z].map(|at| at as u32);
        // Flipped along x, then from north to east: x becomes -z, and z becomes -x.
        let there = [19 - z, y, 19 - x];
        let state = original.state([x, y, z]).unwrap().replace("facing=north", "facing=east");
        assert_eq!(again.state(there), Some(&*state), "{position}");
    }
}

#[test]
fn states_of_others_become_types_that_a_game_may_register_later() {
    let (store, dimension) = world();
    let world = ClosedWorld::new(&store, dimension).unwrap();
    import(&world, &here(at(0, 1, 0))).unwrap();
    let lists = store.registry_lists().unwrap();
    let mut game = BlockRegistry::from_records(lists.blocks, lists.components).unwrap();
    let lamp = game.register(BlockType::new("other:lamp[facing=north,lit=true]")).unwrap();
    assert_eq!(game.placeholders().filter(|block| *block == lamp).count(), 0);
    let snapshot = ground(&world);
    let original = house();
    for position in positions_of(&BlockBox::new(at(0, 0, 0), at(19, 3, 19))) {
        let state = original.state([position.x, position.y, position.z].map(|at| at as u32)).unwrap();
        let found = game.block(snapshot.block(position.offset(0, 1, 0)).unwrap()).name();
        let expected = match state {
            "minecraft:air" => "terrane:air",
            "Not A Name" => PLACEHOLDER,
            state => state,
        };
        assert_eq!(found, expected, "{position}");
    }
}

#[test]
fn a_stopped_import_continues_where_it_was() {
    let (store, dimension) = world();
    let (other, same) = world();
    assert_eq!(dimension, same);
    let [stopped, whole] = [&store, &other].map(|store| ClosedWorld::new(store, dimension).unwrap());
    import(&whole, &here(at(-5, 1, -9))).unwrap();
    let mut reports = Vec::new();
    let stop_at = |wanted| {
        move |progress: &Progress| {
            if progress.done == wanted { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    };
    let import =
        |wanted| stopped.import(house(), &here(at(-5, 1, -9)), &TranslationOptions::default(), &mut stop_at(wanted));
    assert_eq!(import(0).unwrap_err(), ClosedWorldError::Cancelled);
    assert_eq!(store.registry_lists().unwrap().blocks.len(), BLOCKS.len(), "nothing was changed");
    for wanted in [1, 2, 99] {
        reports.push(import(wanted).unwrap());
    }
    assert_eq!(reports.iter().map(|report| report.finished).collect::<Vec<_>>(), [false, false, true]);
    let of_all = import(99).unwrap();
    assert_eq!((of_all.chunks, of_all.entities, of_all.known_entities), (0, 0, 1));
    assert_eq!(cells(&ground(&stopped)), cells(&ground(&whole)));
}

#[test]
fn only_the_layers_that_were_read_are_taken() {
    let (store, dimension) = world();
    let world = ClosedWorld::new(&store, dimension).unwrap();
    import(&world, &SchematicImport { layers: Some(2), ..here(at(0, 0, 0)) }).unwrap();
    let again = export(&world, &BlockBox::new(at(0, 0, 0), at(19, 3, 19)));
    let original = house();
    for y in 0..4 {
        let row =
            |schematic: &Schematic| (0..20).map(|x| schematic.state([x, y, 3]).unwrap().to_owned()).collect::<Vec<_>>();
        assert_eq!(row(&again) == row(&original), y < 2, "layer {y}");
    }
    assert!(again.entities.iter().any(|entity| entity.id == "other:cow"), "it stands in layer 1");
    let nothing = import(&world, &SchematicImport { layers: Some(0), ..here(at(0, 0, 0)) }).unwrap();
    assert_eq!((nothing.chunks, nothing.entities), (0, 0));
}

#[test]
fn without_the_graph_stored_columns_are_unknown() {
    let (store, dimension) = world();
    let elsewhere = DimensionId(99);
    assert!(ClosedWorld::new(&store, elsewhere).is_ok(), "there is nothing to be lost");
    let world = ClosedWorld::new(&store, dimension).unwrap();
    let outside = SchematicImport { at: at(i64::MAX - 5, 0, 0), ..SchematicImport::default() };
    assert!(matches!(import(&world, &outside).unwrap_err(), ClosedWorldError::Translation(TranslationError::Place(_))));
    let huge = world.export(&BlockBox::ALL, &TranslationOptions::default(), &mut go_on).unwrap_err();
    assert!(matches!(huge, ClosedWorldError::Translation(_)));
}
