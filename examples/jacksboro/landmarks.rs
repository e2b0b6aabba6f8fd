//! Landmarks: stones piled up by bots, and a beacon. A saved entity records each landmark, so that a later run can check
//! that every block is still in its place.

use crate::palette::Palette;
use bevy::platform::collections::{HashMap, HashSet};
use bevy_terrane::prelude::*;
use bevy_terrane::view::PublishedColumns;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The record of a pile of blocks at the entity's position.
#[derive(Component, Clone, Debug, PartialEq, Serialize, Deserialize, TypePath)]
#[type_path = "jacksboro"]
pub struct Landmark {
    /// The height in blocks.
    pub height: u32,
    /// The run that built it.
    pub run: u64,
}

impl Landmark {
    /// The landmark's blocks, from the bottom up.
    pub fn blocks(&self, foot: BlockPos) -> impl Iterator<Item = BlockPos> {
        (0..i64::from(self.height)).map(move |y| foot.offset(0, y, 0))
    }
}

/// The number of this run: its start time, in milliseconds.
#[derive(Resource, Clone, Copy)]
pub struct Run(pub u64);

/// The position of the beacon, whose height is that of the ground.
pub const BEACON: BlockPos = BlockPos::new(326, 0, 258);
const BEACON_HEIGHT: u32 = 20;

/// Builds and checks landmarks.
pub struct LandmarkPlugin;

impl Plugin for LandmarkPlugin {
    fn build(&self, app: &mut App) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let run = Run(now.as_millis() as u64);
        app.register_saved_component::<Landmark>()
            .mirror_region_component::<Landmark>()
            .add_region_plugins(move |region| {
                region.insert_resource(run);
            })
            .insert_resource(run)
            .init_resource::<LandmarkChecks>()
            .add_systems(Update, (build_beacon, check));
    }
}

#[derive(Default)]
enum BeaconWork {
    #[default]
    Undecided,
    WaitForColumn(DimensionId),
    WaitForBlocks(DimensionId, BlockPos),
    Done,
}

/// Builds a beacon block by block from the main world if the world is new, and records it when it is complete.
fn build_beacon(
    mut work: Local<BeaconWork>,
    mut opened: MessageReader<DimensionOpened>,
    mut commands: Commands,
    mut edits: MessageWriter<SetBlock>,
    blocks: PublishedBlocks,
    palette: Res<Palette>,
    run: Res<Run>,
) {
    let beacon = Landmark { height: BEACON_HEIGHT, run: run.0 };
    match *work {
        BeaconWork::Undecided => {
            let Some(opened) = opened.read().next() else { return };
            let is_new = opened.stored_columns == 0;
            *work = if is_new { BeaconWork::WaitForColumn(opened.dimension) } else { BeaconWork::Done };
        }
        BeaconWork::WaitForColumn(dimension) => {
            let Some(ground) = blocks.surface(dimension, BEACON.x, BEACON.z) else { return };
            let foot = ground.offset(0, 1, 0);
            edits.write_batch(beacon.blocks(foot).map(|position| SetBlock {
                dimension,
                position,
                block: palette.beacon,
            }));
            *work = BeaconWork::WaitForBlocks(dimension, foot);
        }
        BeaconWork::WaitForBlocks(dimension, foot) => {
            if beacon.blocks(foot).all(|position| blocks.block(dimension, position) == Some(palette.beacon)) {
                commands.spawn_in_region(dimension, foot, beacon);
                *work = BeaconWork::Done;
            }
        }
        BeaconWork::Done => {}
    }
}

/// The state of the landmarks that were loaded in this run.
#[derive(Resource, Default)]
pub struct LandmarkChecks {
    built: HashSet<StableId>,
    found: HashSet<StableId>,
    blocks_found: u64,
    incomplete: HashMap<StableId, Incomplete>,
}

struct Incomplete {
    foot: BlockPos,
    missing: u64,
    since: Instant,
}

/// Entities and blocks are published separately. After this time both are there.
const PATIENCE: Duration = Duration::from_secs(3);

fn check(
    mut checks: ResMut<LandmarkChecks>,
    landmarks: Query<(&StableId, &Landmark, &Position), With<Mirror>>,
    columns: Res<PublishedColumns>,
    palette: Res<Palette>,
    run: Res<Run>,
) {
    for (&id, landmark, position) in &landmarks {
        if landmark.run == run.0 {
            checks.built.insert(id);
        } else if !checks.found.contains(&id)
            && let Some(column) = columns.column(position.dimension, position.column())
        {
            let stands = |block: &BlockPos| palette.is_landmark(column.block(*block));
            let standing = landmark.blocks(position.block).filter(stands).count() as u64;
            checks.note(id, position.block, standing, u64::from(landmark.height));
        }
    }
}

impl LandmarkChecks {
    fn note(&mut self, id: StableId, foot: BlockPos, standing: u64, height: u64) {
        if standing == height {
            self.incomplete.remove(&id);
            self.found.insert(id);
            self.blocks_found += height;
        } else {
            let since = self.incomplete.get(&id).map_or_else(Instant::now, |known| known.since);
            self.incomplete.insert(id, Incomplete { foot, missing: height - standing, since });
        }
    }

    /// Landmarks built in this run.
    pub fn built(&self) -> usize {
        self.built.len()
    }

    /// The number of blocks of earlier runs that were found in their places.
    pub fn found(&self) -> u64 {
        self.blocks_found
    }

    /// The number of blocks of earlier runs that are missing.
    pub fn lost(&self) -> u64 {
        self.incomplete().map(|landmark| landmark.missing).sum()
    }

    /// The places of incomplete landmarks of earlier runs.
    pub fn lost_places(&self) -> Vec<BlockPos> {
        let mut places: Vec<_> = self.incomplete().map(|landmark| landmark.foot).collect();
        places.sort_unstable();
        places
    }

    fn incomplete(&self) -> impl Iterator<Item = &Incomplete> {
        self.incomplete.values().filter(|landmark| landmark.since.elapsed() > PATIENCE)
    }
}
