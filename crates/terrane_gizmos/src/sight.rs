//! What the regions near the cameras have: they are asked for it.

use crate::eyes::Eyes;
use crate::{BodyGizmos, PathGizmos, UnsavedGizmos, is_enabled};
use bevy::prelude::*;
use bevy_terrane::chunk::Column;
use bevy_terrane::path::Waypoint;
use bevy_terrane::region::RegionId;
use bevy_terrane::simulation::{BlockBody, PathTo, Position, RegionColumns, StableId};
use bevy_terrane::space::{BlockPos, CHUNK_SIZE, ChunkPos, DimensionId, SectionPos};
use bevy_terrane::view::{PublishedColumns, RegionCommands, WorldStatistics};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The distance from a camera up to which things are shown, in blocks.
const RADIUS: i64 = 96;
/// The time between two questions to a region.
const PERIOD: Duration = Duration::from_millis(250);
/// The most of each that a region answers: the nearest ones.
const MOST_BODIES: usize = 256;
const MOST_PATHS: usize = 64;
const MOST_WAYPOINTS: usize = 256;
const MOST_CHUNKS: usize = 1_024;

/// What a region has near the cameras.
#[derive(Default)]
pub struct Seen {
    pub bodies: Vec<(StableId, Position, BlockBody)>,
    pub paths: Vec<SeenPath>,
    pub unsaved: Vec<ChunkPos>,
}

pub struct SeenPath {
    pub walker: StableId,
    pub position: Position,
    /// The waypoints that the walker has not reached.
    pub rest: Vec<Waypoint>,
    pub is_complete: bool,
}

/// The newest answers of the regions near the cameras.
#[derive(Resource, Default)]
pub struct Sights {
    regions: BTreeMap<(DimensionId, RegionId), Sight>,
    /// The app's time at the last questions.
    asked: Option<Duration>,
}

#[derive(Default)]
struct Sight {
    seen: Seen,
    /// The question that is under way.
    question: Option<Arc<Mutex<Option<Seen>>>>,
}

impl Sights {
    /// What the regions of these places' dimensions have.
    pub fn near(&self, places: &[Position]) -> impl Iterator<Item = &Seen> {
        let is_seen = |dimension| places.iter().any(|place| place.dimension == dimension);
        self.regions.iter().filter(move |((dimension, _), _)| is_seen(*dimension)).map(|(_, sight)| &sight.seen)
    }

    fn hear(&mut self) {
        for sight in self.regions.values_mut() {
            let Some(question) = &sight.question else { continue };
            // Read before the answer, which is given before the other half is dropped.
            let is_dropped = Arc::strong_count(question) == 1;
            let answer = question.lock().unwrap_or_else(PoisonError::into_inner).take();
            if is_dropped || answer.is_some() {
                *sight = Sight { seen: answer.unwrap_or_default(), question: None };
            }
        }
    }

    /// Forgets what is not wanted any more. A region with a question under way, and a halted one may keep it for a long time, is remembered, so
    /// that it is not asked again.
    fn keep(&mut self, statistics: &WorldStatistics, is_wanted: impl Fn(DimensionId, RegionId) -> bool) {
        self.regions.retain(|(dimension, region), sight| {
            if is_wanted(*dimension, *region) {
                return true;
            }
            sight.seen = Seen::default();
            sight.question.is_some() && statistics.region(*dimension, *region).is_some()
        });
    }
}

/// What is drawn of a region.
#[derive(Clone, Copy)]
struct Wanted {
    bodies: bool,
    paths: bool,
    unsaved: bool,
}

/// Asks the regions near the cameras, and takes their answers.
pub fn look_into_regions(
    mut sights: ResMut<Sights>,
    config: Res<GizmoConfigStore>,
    eyes: Eyes,
    (columns, statistics): (Res<PublishedColumns>, Res<WorldStatistics>),
    time: Res<Time<Real>>,
    mut commands: Commands,
) {
    let wanted = Wanted {
        bodies: is_enabled::<BodyGizmos>(&config),
        paths: is_enabled::<PathGizmos>(&config),
        unsaved: is_enabled::<UnsavedGizmos>(&config),
    };
    sights.hear();
    if !(wanted.bodies || wanted.paths || wanted.unsaved) {
        return sights.keep(&statistics, |_, _| false);
    }
    if sights.asked.is_some_and(|asked| time.elapsed() < asked + PERIOD) {
        return;
    }
    sights.asked = Some(time.elapsed());
    let places = eyes.places();
    let near = near_regions(&places, &columns, &statistics);
    sights.keep(&statistics, |dimension, region| near.contains_key(&(dimension, region)));
    for ((dimension, region), block) in near {
        let sight = sights.regions.entry((dimension, region)).or_default();
        if sight.question.is_some() {
            continue;
        }
        let question = Arc::default();
        sight.question = Some(Arc::clone(&question));
        let eyes = places.iter().filter(|place| place.dimension == dimension);
        let eyes: Vec<BlockPos> = eyes.map(|place| place.block).collect();
        commands.run_in_region(dimension, block, move |world: &mut World| {
            let seen = look(world, wanted, &eyes);
            *question.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
        });
    }
}

/// The regions that have published columns near these places and can answer, each with a block in such a column, so that a question
/// loads no ground.
fn near_regions(
    places: &[Position],
    columns: &PublishedColumns,
    statistics: &WorldStatistics,
) -> BTreeMap<(DimensionId, RegionId), BlockPos> {
    const COLUMNS: i64 = RADIUS / CHUNK_SIZE as i64;
    let disc = (-COLUMNS..=COLUMNS).flat_map(|x| (-COLUMNS..=COLUMNS).map(move |z| (x, z)));
    let disc: Vec<_> = disc.filter(|(x, z)| x * x + z * z <= COLUMNS * COLUMNS).collect();
    let mut sections: BTreeMap<(DimensionId, SectionPos), &Column> = BTreeMap::new();
    for place in places {
        let near = disc.iter().map(|(x, z)| place.column().offset(*x, *z));
        for column in near.filter_map(|column| columns.column(place.dimension, column)) {
            sections.entry((place.dimension, column.pos().section(statistics.section_shift))).or_insert(column);
        }
    }
    let mut regions = BTreeMap::new();
    for ((dimension, _), column) in sections {
        let region = statistics.region_at(dimension, column.pos());
        let Some(region) = region.filter(|region| !region.halted) else { continue };
        // In a sparse dimension only some heights are loaded.
        let height = column.loaded().and_then(|heights| heights.iter().next()).unwrap_or(0);
        regions.entry((dimension, region.region)).or_insert_with(|| column.pos().chunk(height).min_block());
    }
    regions
}

/// Runs in the region.
fn look(world: &mut World, wanted: Wanted, eyes: &[BlockPos]) -> Seen {
    let mut seen = Seen::default();
    if wanted.bodies {
        let mut bodies = world.query::<(&StableId, &Position, &BlockBody)>();
        let bodies = bodies.iter(world).map(|(id, position, body)| (position.block, (*id, *position, *body)));
        seen.bodies = nearest(bodies, eyes, MOST_BODIES);
    }
    if wanted.paths {
        let mut walkers = world.query::<(&StableId, &Position, &PathTo)>();
        let walkers = walkers.iter(world).filter_map(|(id, position, to)| {
            let path = to.path().filter(|path| path.next < path.waypoints.len())?;
            Some((position.block, (*id, *position, path)))
        });
        let paths = nearest(walkers, eyes, MOST_PATHS).into_iter().map(|(walker, position, path)| {
            let rest = path.waypoints.iter().skip(path.next).take(MOST_WAYPOINTS).copied().collect();
            SeenPath { walker, position, rest, is_complete: path.is_complete }
        });
        seen.paths = paths.collect();
    }
    if wanted.unsaved
        && let Some(columns) = world.get_resource::<RegionColumns>()
    {
        let middle = |chunk: ChunkPos| chunk.block([CHUNK_SIZE / 2; 3]);
        seen.unsaved = nearest(columns.unsaved_chunks().map(|chunk| (middle(chunk), chunk)), eyes, MOST_CHUNKS);
    }
    seen
}

/// Those near the eyes; the nearest ones if there are more than `most`.
fn nearest<T>(found: impl Iterator<Item = (BlockPos, T)>, eyes: &[BlockPos], most: usize) -> Vec<T> {
    let near = found.filter_map(|(block, it)| {
        let distance = eyes.iter().map(|eye| distance_squared(*eye, block)).min_by(f64::total_cmp)?;
        (distance <= (RADIUS * RADIUS) as f64).then_some((distance, it))
    });
    let mut near: Vec<(f64, T)> = near.collect();
    if near.len() > most {
        near.select_nth_unstable_by(most, |one, other| one.0.total_cmp(&other.0));
        near.truncate(most);
    }
    near.into_iter().map(|(_, it)| it).collect()
}

fn distance_squared(one: BlockPos, other: BlockPos) -> f64 {
    let along = [(one.x, other.x), (one.y, other.y), (one.z, other.z)];
    along.map(|(one, other)| one.abs_diff(other) as f64).iter().map(|blocks| blocks * blocks).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_ones_within_the_radius_are_seen() {
        let far = 1 << 50;
        let eyes = [BlockPos::new(far, 0, 0), BlockPos::new(far + 1_000, 0, 0)];
        let at = |x: i64| (BlockPos::new(far + x, 0, 0), x);
        let found = [-97, -96, -40, 3, 70, 200, 903, 904, 1_010];
        let seen = |most| {
            let mut seen = nearest(found.into_iter().map(at), &eyes, most);
            seen.sort_unstable();
            seen
        };
        assert_eq!(seen(10), [-96, -40, 3, 70, 904, 1_010]);
        assert_eq!(seen(2), [3, 1_010]);
        assert_eq!(nearest([at(0)].into_iter(), &[], 10), []);
        let ends = [BlockPos::new(i64::MIN, i64::MIN, i64::MIN), BlockPos::new(i64::MAX, i64::MAX, i64::MAX)];
        assert!(distance_squared(ends[0], ends[1]).is_finite());
    }
}
