//! An entity that leaves a region arrives exactly once, despite merges, splits and power failures.

use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::SplitMix64;
use bevy_terrane::storage::{KeyValueStore, MemoryStore, StorageConfig};
use bevy_terrane::view::{Pacing, RegionMerged, RegionSplit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// Half of the area in which the entities jump around, in columns.
const AREA: i64 = 32;

/// An entity that jumps, with luggage that must not change.
#[derive(Component, Clone, PartialEq, Debug, Serialize, Deserialize, TypePath)]
struct Jumper {
    number: u64,
    jumps: u64,
    luggage: Vec<u64>,
}

impl Jumper {
    fn new(number: u64) -> Self {
        Self { number, jumps: 0, luggage: (0..number % 5).map(|item| number * 31 + item).collect() }
    }

    fn is_whole(&self) -> bool {
        Self { jumps: self.jumps, ..Self::new(self.number) } == *self
    }
}

/// Jumps within the dimension and sometimes into the other one, to loaded columns or not.
fn jump(mut random: ResMut<RegionRandom>, mut jumpers: Query<(&StableId, &mut Jumper, &mut Position)>) {
    let mut jumpers: Vec<_> = jumpers.iter_mut().collect();
    jumpers.sort_by_key(|(id, ..)| **id);
    for (_, mut jumper, mut position) in jumpers {
        if random.0.below(8) != 0 {
            continue;
        }
        let blocks = AREA * 32;
        let mut place = || i64::from(random.0.below(blocks as u32)) - blocks / 2;
        let block = BlockPos::new(place(), 5, place());
        let dimension = if random.0.below(10) == 0 { 1 - position.dimension.0 } else { position.dimension.0 };
        *position = Position::new(DimensionId(dimension), block);
        jumper.jumps += 1;
    }
}

/// A world on this disk, with two dimensions.
fn world(disk: &Arc<dyn KeyValueStore>, seed: u64) -> (App, [DimensionId; 2]) {
    let plugin = TerranePlugin {
        tick_mode: TickMode::Lockstep,
        seed,
        // With frequent saves, entities are often in the store only while the columns at their new place are loading.
        saving: SaveSettings::every(Duration::from_millis([100, 500, 2_000][seed as usize % 3])),
        regionizer: parting_soon(),
        pacing: Pacing::fixed(10_000),
        ..TerranePlugin::stored_in(StorageConfig::Custom(disk.clone()))
    };
    let mut app = App::new();
    app.add_plugins((MinimalPlugins, plugin)).register_saved_component::<Jumper>().mirror_region_component::<Jumper>();
    let dimensions = ["one", "two"].map(|name| spawn_dimension(&mut app, Dimension::new(name, Flat::new())));
    (app, dimensions)
}

/// Returns how often regions merged and split.
fn jump_about(entities: u64, ticks: u64, seed: u64, ticks_to_crash: u64) -> usize {
    let mut random = SplitMix64::new(seed);
    let memory = Arc::new(MemoryStore::new());
    let mut disk: Arc<dyn KeyValueStore> = memory.clone();
    let mut content = memory;
    let (mut changes, mut crashes, mut next_crash) = (0, 0, ticks_to_crash);
    let open = |disk: &Arc<dyn KeyValueStore>, session: u64| {
        let (mut app, dimensions) = world(disk, seed * 1_000 + session);
        app.add_region_plugins(|region| {
            region.add_systems(RegionTick, jump);
        });
        listen::<RegionMerged>(&mut app);
        listen::<RegionSplit>(&mut app);
        let viewers: Vec<_> = [0, 0, 0, 1].map(|number| viewer(&mut app, dimensions[number], 0.0, 0.0, 2)).into();
        start(&mut app);
        update(&mut app, 10);
        (app, dimensions, viewers)
    };
    let (mut app, dimensions, mut viewers) = open(&disk, 0);
    for number in 0..entities {
        // Some hold the columns around them wherever they go.
        let (id, jumper) = (StableId(Uuid::from_u128(u128::from(number) + 1)), Jumper::new(number));
        let mut commands = app.world_mut().commands();
        match number % 100 {
            0 => commands.spawn_in_region(
                dimensions[0],
                BlockPos::new(0, 5, 0),
                (id, jumper, Viewer::new().with_radius(0)),
            ),
            _ => commands.spawn_in_region(dimensions[0], BlockPos::new(0, 5, 0), (id, jumper)),
        };
    }
    app.update();
    app.world_mut().write_message(SaveWorld { request: 1 });
    update(&mut app, 5);
    for tick in 0..ticks {
        if tick % 20 == 0 {
            for viewer in &viewers {
                let mut place = || (i64::from(random.below(2 * AREA as u32)) - AREA) as f32 * 16.0;
                let mut transform = app.world_mut().get_mut::<Transform>(*viewer).unwrap();
                (transform.translation.x, transform.translation.z) = (place(), place());
            }
        }
        app.update();
        if tick == next_crash {
            // The power fails: later writes of the old app never reach the new one's disk.
            next_crash += 1 + u64::from(random.below(2 * ticks_to_crash as u32));
            crashes += 1;
            changes += heard::<RegionMerged>(&app).len() + heard::<RegionSplit>(&app).len();
            content = Arc::new(content.snapshot());
            disk = content.clone();
            drop(app);
            (app, _, viewers) = open(&disk, crashes);
        }
    }
    changes += heard::<RegionMerged>(&app).len() + heard::<RegionSplit>(&app).len();
    drop(app);

    let (mut app, dimensions) = world(&disk, seed);
    for dimension in dimensions {
        viewer(&mut app, dimension, 0.0, 0.0, (AREA * 3 / 2) as u32);
    }
    start(&mut app);
    update(&mut app, 60);
    let mut query = app.world_mut().query::<(&StableId, &Jumper)>();
    let mut found: BTreeMap<u64, u64> = BTreeMap::new();
    for (id, jumper) in query.iter(app.world()) {
        assert!(jumper.is_whole(), "seed {seed}: {jumper:?}");
        assert_eq!(id.0, Uuid::from_u128(u128::from(jumper.number) + 1));
        assert_eq!(found.insert(jumper.number, jumper.jumps), None, "seed {seed}: {} is there twice", jumper.number);
    }
    let missing: Vec<_> = (0..entities).filter(|number| !found.contains_key(number)).collect();
    assert!(missing.is_empty(), "seed {seed}: {missing:?} are lost");
    let jumps: u64 = found.values().sum();
    assert!(jumps > entities, "seed {seed}: they jumped only {jumps} times");
    assert!(ticks <= ticks_to_crash || crashes > 0);
    changes
}

/// Promise, crashes: A crash neither loses nor duplicates anything that moves between regions.
#[test]
fn a_thousand_jumping_entities_exist_once_at_the_end() {
    // `TERRANE_ROUNDS=10` runs 10,000 ticks.
    let ticks = 1_000 * rounds(1).min(10);
    let changes = jump_about(1_000, ticks, 1, 400);
    assert!(changes as u64 > ticks / 40, "regions merged and split only {changes} times");
}

/// Promise, worlds: An entity that leaves its region travels to the region that owns the new place.
#[test]
fn many_seeds_of_fewer_entities_are_there_once_at_the_end() {
    let seeds = rounds(6);
    let changes: usize = (0..seeds).map(|seed| jump_about(40, 200, seed, 60)).sum();
    assert!(changes as u64 > 5 * seeds, "regions merged and split only {changes} times");
}

/// A walker called "doomed" is despawned in the tick in which it arrives beyond x = 1,000.
#[test]
fn an_entity_that_is_despawned_in_the_tick_of_its_arrival_leaves_no_mirror() {
    let mut app = game(lockstep());
    app.add_region_plugins(|region| {
        region.add_systems(First, |walkers: Query<(Entity, &Walker, &Position)>, mut commands: Commands| {
            for (entity, walker, position) in &walkers {
                if walker.name == "doomed" && position.block.x > 1_000 {
                    commands.entity(entity).despawn();
                }
            }
        });
    });
    let dimension = flat(&mut app);
    let there = BlockPos::new(16 * 200, 5, 0);
    for block in [HERE, there] {
        viewer(&mut app, dimension, block.x as f32, 0.0, 1);
    }
    start(&mut app);
    spawn_in_region(&mut app, dimension, HERE, walker("doomed", 0.0));
    update_until(&mut app, "it is seen", |world| walkers(world).len() == 1);
    in_region(&mut app, dimension, HERE, move |region| {
        let mut positions = region.query_filtered::<&mut Position, With<Walker>>();
        *positions.single_mut(region).expect("it is here") = Position::new(dimension, there);
    });
    update_until(&mut app, "its mirror is gone", |world| walkers(world).is_empty());
}
