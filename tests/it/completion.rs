//! Generated columns stay generated: after crashes, and after loss or damage of the store's graph.

use crate::support::ground::{self, Watched};
use crate::support::{block_at, heard, id_of, listen, lockstep_on, spawn_dimension, start, update, update_until};
use bevy_terrane::prelude::*;
use bevy_terrane::storage::{Durability, Family, KeyValueStore, MemoryStore, WriteBatch, keys};
use bevy_terrane::view::{DimensionGeneration, DimensionStatistics, PublishedColumns, SaveWorld, WorldStatistics};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The radius within which columns are generated and stored.
const RADIUS: u32 = 6;
/// The radius within which columns are loaded too.
const LOADED: u32 = 3;
const EDITED: BlockPos = BlockPos::new(20, 30, -5);

fn open(disk: &Arc<MemoryStore>, generator: &Watched) -> (App, DimensionId) {
    let mut app = App::new();
    // Slow enough that a crash finds it half done.
    let settings = DimensionGeneration { columns_per_second: Some(100.0), ..default() };
    app.add_plugins((MinimalPlugins, TerranePlugin { generation: settings, ..lockstep_on(disk) }));
    listen::<DimensionOpened>(&mut app);
    let dimension = spawn_dimension(&mut app, Dimension::new("overworld", generator.clone()));
    let viewer = Viewer::in_dimension(dimension).with_radius(LOADED).with_generation_radius(RADIUS);
    app.world_mut().spawn((viewer, Transform::default()));
    start(&mut app);
    (app, dimension)
}

/// Returns `true` if everything near the viewer is loaded, and everything around it is generated.
fn is_done(world: &World) -> bool {
    let statistics = world.resource::<WorldStatistics>();
    let is_generated =
        |told: &DimensionStatistics| told.to_generate.total > 0 && told.to_generate.missing == 0 && told.in_flight == 0;
    let published = world.resource::<PublishedColumns>();
    statistics.dimensions.iter().any(is_generated)
        && disc(LOADED).all(|column| published.column(DimensionId(0), column).is_some())
}

fn disc(radius: u32) -> impl Iterator<Item = ColumnPos> {
    ground::disc(ColumnPos::new(0, 0), radius.into()).into_iter()
}

/// A store with the complete disc and one edit.
fn finished() -> (Arc<MemoryStore>, Watched) {
    let (disk, generator) = (Arc::new(MemoryStore::new()), Watched::default());
    let (mut app, dimension) = open(&disk, &generator);
    update_until(&mut app, "all is done", |world| is_done(world));
    let stone = id_of(app.world(), "terrane:stone");
    app.world_mut().write_message(SetBlock { dimension, position: EDITED, block: stone });
    update(&mut app, 3);
    assert_eq!(block_at(app.world_mut(), dimension, EDITED), Some(stone));
    drop(app);
    let generated = generator.take_calls();
    assert!(disc(RADIUS).all(|column| generated.get(&column) == Some(&1)), "each once");
    (disk, generator)
}

fn check_nothing_is_generated_again(disk: &Arc<MemoryStore>, generator: &Watched) {
    let (mut app, dimension) = open(disk, generator);
    update_until(&mut app, "all is done", |world| is_done(world));
    assert_eq!(generator.take_calls(), BTreeMap::new());
    let stone = id_of(app.world(), "terrane:stone");
    assert_eq!(block_at(app.world_mut(), dimension, EDITED), Some(stone));
}

fn tiles(disk: &MemoryStore) -> Vec<(Vec<u8>, Vec<u8>)> {
    let range = keys::dimension_range(keys::TILE, DimensionId(0));
    disk.scan(Family::Meta, &range.start..&range.end, usize::MAX).unwrap()
}

#[test]
fn a_damaged_graph_is_rebuilt_from_the_columns() {
    let (disk, generator) = finished();
    for change in [|value: &mut Vec<u8>| value[20] ^= 1, |value: &mut Vec<u8>| value.truncate(5)] {
        let mut damage = WriteBatch::default();
        let (key, mut value) = tiles(&disk).remove(0);
        change(&mut value);
        damage.put(Family::Meta, key, value);
        disk.write(damage, Durability::Sync).unwrap();
        check_nothing_is_generated_again(&disk, &generator);
    }
}

/// At any moment, every column on the disk that the graph calls stored is there, and stored columns are not generated
/// again.
#[test]
fn a_crash_leaves_no_hole_and_repeats_no_finished_work() {
    let (disk, generator) = (Arc::new(MemoryStore::new()), Watched::default());
    let (mut app, _) = open(&disk, &generator);
    let mut crashes = Vec::new();
    for number in 0..60 {
        update(&mut app, 1);
        if number % 5 == 0 {
            app.world_mut().write_message(SaveWorld { request: number });
            crashes.push(disk.snapshot());
        }
    }
    drop(app);
    let mut stored_before = 0;
    for crash in crashes {
        generator.take_calls();
        let disk = Arc::new(crash);
        let stored = stored_columns(&disk);
        assert!(stored.len() >= stored_before, "progress is never lost");
        stored_before = stored.len();
        let (mut app, _) = open(&disk, &generator);
        update_until(&mut app, "all is done", |world| is_done(world));
        assert_eq!(heard::<DimensionOpened>(&app)[0].stored_columns, stored.len() as u64);
        let generated = generator.take_calls();
        for column in disc(RADIUS) {
            let times = generated.get(&column).copied().unwrap_or_default();
            assert_eq!(times, usize::from(!stored.contains(&column)), "{column}");
        }
        let published = app.world().resource::<PublishedColumns>();
        let ground = |column| published.column(DimensionId(0), column).is_some_and(|it| it.surface(3, 3).is_some());
        assert!(disc(LOADED).all(ground), "no hole");
    }
    assert!(stored_before > 0);
}

fn stored_columns(disk: &MemoryStore) -> BTreeSet<ColumnPos> {
    let range = keys::dimension_range(keys::SUMMARY, DimensionId(0));
    let found = disk.scan(Family::Meta, &range.start..&range.end, usize::MAX).unwrap();
    found.into_iter().map(|(key, _)| keys::parse_summary_key(&key).unwrap().1).collect()
}
