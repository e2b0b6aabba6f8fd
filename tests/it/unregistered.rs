//! Unregistered block ids cannot be set from anywhere: such an id would become the type that the game registers next.

use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::ColumnError;
use bevy_terrane::snapshot::Snapshot;
use bevy_terrane::storage::{MemoryStore, StorageConfig};
use bevy_terrane::view::{ColumnResult, JobEnded, Jobs, RestoreSnapshot};
use std::sync::Arc;

/// An id beyond all registered types.
const NOBODYS: BlockId = BlockId::new(4_000_000_000);

fn world(plugin: TerranePlugin) -> (App, DimensionId) {
    let mut app = game(plugin);
    listen::<BlockRefused>(&mut app);
    listen::<JobEnded>(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 20);
    (app, dimension)
}

/// Promise, blocks: A block id without a registered type is refused in systems, `SetBlock`, restores and generators.
#[test]
fn a_system_cannot_set_an_unregistered_id() {
    let (mut app, dimension) = world(lockstep());
    let expected = BlockAccessError::Unregistered { block: HERE, id: NOBODYS };
    let [set, layer] = ask_region(&mut app, dimension, HERE, |mut blocks: RegionBlocks| {
        [blocks.set_block(HERE, NOBODYS).err(), blocks.set_block_at(HERE, 1, NOBODYS).err()]
    });
    assert_eq!([set, layer], [Some(expected); 2]);
    assert!(expected.to_string().contains("4000000000") && expected.to_string().contains("BlockTypes"), "{expected}");
    assert_eq!(block_at(app.world(), dimension, HERE), Some(BlockId::AIR));
}

/// Promise, blocks: A block id without a registered type is refused in systems, `SetBlock`, restores and generators.
#[test]
fn an_edit_with_an_unregistered_id_is_refused() {
    let disk = Arc::new(MemoryStore::new());
    let (mut app, dimension) = world(lockstep_on(&disk));
    app.world_mut().write_message(SetBlock { dimension, position: HERE, block: NOBODYS });
    update(&mut app, 3);
    let refused: Vec<_> = heard::<BlockRefused>(&app).iter().map(|refused| refused.error).collect();
    assert_eq!(refused, [BlockAccessError::Unregistered { block: HERE, id: NOBODYS }]);
    save(&mut app);
    drop(app);
    let (app, dimension) = world(lockstep_on(&disk));
    assert_eq!(block_at(app.world(), dimension, HERE), Some(BlockId::AIR));
}

/// An edit that waits for a region whose tick never ends is applied to the saved chunk when the app ends.
#[test]
fn the_last_edits_cannot_set_it_either() {
    use crate::support::gate::Gate;

    let disk = Arc::new(MemoryStore::new());
    let gate = Gate::default();
    let copy = gate.clone();
    let storage = StorageConfig::Custom(disk.clone());
    let mut app = game(TerranePlugin {
        saving: SaveSettings { shutdown_patience: std::time::Duration::ZERO, ..default() },
        ..TerranePlugin::stored_in(storage)
    });
    app.add_region_plugins(move |region| {
        region.insert_resource(copy.clone()).add_systems(RegionTick, |gate: Res<Gate>| gate.pass());
    });
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    update_until(&mut app, "the ground is there", |world| block_at(world, dimension, HERE).is_some());
    save(&mut app);
    gate.close();
    update_until(&mut app, "the region hangs", |_| gate.waiting() == 1);
    let stone = id_of(app.world(), "terrane:stone");
    let beside = HERE.offset(1, 0, 0);
    app.world_mut().write_message(SetBlock { dimension, position: HERE, block: NOBODYS });
    app.world_mut().write_message(SetBlock { dimension, position: beside, block: stone });
    app.update();
    drop(app);
    gate.open();

    let (app, dimension) = world(lockstep_on(&disk));
    let blocks = [HERE, beside].map(|place| block_at(app.world(), dimension, place));
    assert_eq!(blocks, [Some(BlockId::AIR), Some(stone)]);
}

/// Promise, blocks: A block id without a registered type is refused in systems, `SetBlock`, restores and generators.
#[test]
fn a_restore_of_an_unregistered_id_fails_and_changes_nothing() {
    let (mut app, dimension) = world(lockstep());
    let area = BlockBox::new(HERE, HERE.offset(1, 1, 1));
    let mut column = Column::new(HERE.column());
    let stone = id_of(app.world(), "terrane:stone");
    column.set_block(HERE, stone);
    column.set_block(HERE.offset(1, 0, 0), NOBODYS);
    let mut snapshot = Snapshot::new(area);
    assert!(snapshot.add_column(&column, 0, Vec::new()));
    let id = dimension;
    app.world().resource::<Jobs>().restore(RestoreSnapshot::new(id, Arc::new(snapshot)));
    update_until(&mut app, "the restore ends", |world| !world.resource::<Heard<JobEnded>>().0.is_empty());
    let ended = &heard::<JobEnded>(&app)[0];
    let expected = ColumnError::Unregistered { block: HERE.offset(1, 0, 0), id: NOBODYS };
    let results: Vec<_> = ended.outcome.columns.iter().map(|column| column.result.clone()).collect();
    assert_eq!(results, [ColumnResult::Failed(expected)]);
    assert_eq!(block_at(app.world(), dimension, HERE), Some(BlockId::AIR));
}

/// Level terrain with one unregistered block.
struct Careless;

impl Generator for Careless {
    fn identity(&self) -> GeneratorIdentity {
        GeneratorIdentity::new("game:careless", 1, 0)
    }

    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        let mut column = Flat::new().generate(request)?;
        if column.pos() == ColumnPos::new(0, 0) {
            column.set_block(HERE, NOBODYS);
        }
        Ok(column)
    }
}

/// Promise, blocks: A block id without a registered type is refused in systems, `SetBlock`, restores and generators.
#[test]
fn a_generator_that_sets_an_unregistered_id_is_named() {
    let mut app = game(lockstep());
    listen::<ColumnFailed>(&mut app);
    let dimension = spawn_dimension(&mut app, Dimension::new("overworld", Careless));
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 30);
    let ColumnFailed { column, error, .. } = &heard::<ColumnFailed>(&app)[0];
    let generator = "game:careless".to_owned();
    let source = GenerateError::Unregistered { generator, position: HERE, block: NOBODYS };
    assert_eq!((column, error), (&HERE.column(), &ColumnError::Generate { column: *column, source }));
    assert!(error.to_string().contains("game:careless"), "{error}");
    assert_eq!(block_at(app.world(), dimension, HERE), None);
    assert!(block_at(app.world(), dimension, HERE.offset(16, 0, 0)).is_some(), "the others are there");
}
