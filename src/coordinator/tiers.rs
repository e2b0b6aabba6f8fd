//! Moves unneeded chunks to colder tiers, on the storage thread when it has nothing to save.
//!
//! The store knows which groups of chunks have waited longest, and only the coordinator knows which columns are needed. So the
//! work goes in steps: the storage thread makes the moves that were decided and names the next groups, and the coordinator
//! decides on these. A decision may be outdated when it is carried out. Then a group is loaded from its new tier, without
//! further consequences.

#[cfg(test)]
mod tests;

use crate::coordinator::clock::Clock;
use crate::coordinator::demand::tickets::ViewerState;
use crate::coordinator::dimension::{DimensionBook, OpenDimension};
use crate::coordinator::messages::settings::Settings;
use crate::coordinator::messages::statistics::TierStatistics;
use crate::coordinator::threads::Threads;
use crate::space::ColumnPos;
use crate::storage::{
    ChunkGroup, CoolingGroup, Durability, Family, FamilySize, SaveBatch, StoreError, Tier, TierConfig, TierMoves,
    WorldStore,
};
use bevy::prelude::*;
use std::mem;
use std::time::Duration;

/// The number of groups per step.
const STEP: usize = 64;
/// The wait when there is nothing to do.
const REST: Duration = Duration::from_secs(1);
/// The wait after an error.
const RETRY: Duration = Duration::from_secs(10);
/// The time between two walks over all warm groups, which find those that viewers have left far behind.
const WALK_PERIOD: Duration = Duration::from_secs(60);
/// The longest time that accesses wait for the next save.
const HEAT_PERIOD: Duration = Duration::from_secs(60);
/// The limit up to which waiting groups are counted.
const COUNTED: usize = 1_024;

/// The work on the tiers, and its results.
#[derive(Resource, Default)]
pub struct Tiers {
    is_asked: bool,
    done: Option<Result<StepDone, StoreError>>,
    next_at: Duration,
    decided: Vec<(ChunkGroup, Tier)>,
    /// When the next walk over all warm groups begins, and where the running one is.
    walk_at: Duration,
    cursor: Option<Vec<u8>>,
    heat_saved: Duration,
    pub statistics: TierStatistics,
}

/// A task of the storage thread.
#[derive(Default)]
struct Step {
    now: Duration,
    config: TierConfig,
    moves: Vec<(ChunkGroup, Tier)>,
    /// `true` if it also names the groups that may move next.
    looks: bool,
    walks: bool,
    cursor: Option<Vec<u8>>,
    saves_heat: bool,
}

/// The result of a step.
#[derive(Default)]
struct StepDone {
    moves: TierMoves,
    /// Groups that may move next.
    candidates: Vec<CoolingGroup>,
    /// Where the walk continues.
    cursor: Option<Vec<u8>>,
    /// The sizes of everything stored, if the step looked.
    sizes: Option<[FamilySize; 3]>,
    memory_bytes: Option<u64>,
    remaining: usize,
    /// `true` if there is more to do than the step names.
    has_more: bool,
}

impl Step {
    fn run(self, store: &WorldStore) -> Result<StepDone, StoreError> {
        if self.saves_heat {
            store.commit(&SaveBatch::default(), Durability::Process)?;
        }
        let mut moves = store.promote_loaded()?;
        if !self.looks {
            return Ok(StepDone { moves, ..StepDone::default() });
        }
        let (decided, left) = store.move_groups(&self.moves)?;
        moves.add(decided);
        let is_adopting = !store.adopt_groups(STEP)?;
        let mut candidates = Vec::new();
        let mut remaining = 0;
        for (tier, after) in [(Tier::Hot, self.config.warm_after), (Tier::Warm, self.config.cold_after)] {
            if after < Duration::MAX {
                let until = self.now.checked_sub(after);
                candidates.extend(store.cooling_groups(tier, until, STEP)?);
                remaining += store.count_cooling_groups(tier, until, COUNTED)?;
            }
        }
        let mut cursor = None;
        if self.walks {
            let (groups, next) = store.walk_cooling_groups(Tier::Warm, self.cursor.as_ref(), STEP)?;
            candidates.extend(groups);
            cursor = next;
        }
        let size = |family| store.approximate_family(family).map(Option::unwrap_or_default);
        let sizes = [size(Family::Chunks)?, size(Family::WarmChunks)?, size(Family::ColdChunks)?];
        let has_more = left > 0 || is_adopting;
        let memory_bytes = store.memory_bytes();
        Ok(StepDone { moves, candidates, cursor, sizes: Some(sizes), memory_bytes, remaining, has_more })
    }
}

pub fn tend_tiers(
    config: Res<Settings>,
    clock: Res<Clock>,
    dimensions: Res<DimensionBook>,
    threads: Res<Threads>,
    mut tiers: ResMut<Tiers>,
) {
    let now = clock.now;
    let store = &*threads.store;
    if store.incarnation().is_some() {
        // Ground that several servers share stays as hot as it is.
        return;
    }
    store.set_session_time(now);
    if let Some(done) = tiers.done.take() {
        tiers.is_asked = false;
        match done {
            Ok(done) => tiers.take_step(done, now, &config.tiers, store, &dimensions),
            Err(error) => {
                warn!("chunks could not be moved to other tiers: {error}; the next try is in {RETRY:?}");
                // The groups are found again.
                tiers.decided.clear();
                (tiers.walk_at, tiers.cursor) = (Duration::ZERO, None);
                tiers.next_at = now.saturating_add(RETRY);
            }
        }
    }
    // Groups that were loaded and are to be hot again do not wait.
    if !tiers.is_asked && (now >= tiers.next_at || store.has_promotions()) {
        let step = tiers.next_step(now, &config.tiers, store);
        let answer = |world: &mut World, done| world.resource_mut::<Tiers>().done = Some(done);
        tiers.is_asked = threads.ask_when_idle(move |store| step.run(store), answer);
    }
}

impl Tiers {
    fn next_step(&mut self, now: Duration, config: &TierConfig, store: &WorldStore) -> Step {
        let mut step = Step { now: store.play_time(), config: config.clone(), ..Step::default() };
        if now >= self.next_at {
            step.looks = true;
            step.moves = mem::take(&mut self.decided);
            step.saves_heat = now.saturating_sub(self.heat_saved) >= HEAT_PERIOD;
            step.cursor = self.cursor.take();
            step.walks = step.cursor.is_some() || now >= self.walk_at;
            if step.walks {
                self.walk_at = now.saturating_add(WALK_PERIOD);
            }
            if step.saves_heat {
                self.heat_saved = now;
            }
        }
        step
    }

    fn take_step(
        &mut self,
        done: StepDone,
        now: Duration,
        config: &TierConfig,
        store: &WorldStore,
        dimensions: &DimensionBook,
    ) {
        let StepDone { moves, candidates, cursor, sizes, memory_bytes, remaining, has_more } = done;
        for damaged in &moves.damaged {
            warn!("damage found while moving chunks to another tier: {damaged}");
        }
        let statistics = &mut self.statistics;
        statistics.moved.iter_mut().zip(moves.groups).for_each(|(moved, groups)| *moved += groups);
        statistics.moved_bytes += moves.chunk_bytes;
        statistics.written_bytes += moves.written;
        statistics.left += moves.left;
        let Some(sizes) = sizes else { return };
        (statistics.sizes, statistics.memory_bytes, statistics.remaining) = (sizes, memory_bytes, remaining);
        self.cursor = cursor;
        let play_time = store.play_time();
        for CoolingGroup { group, tier, accessed } in candidates {
            let open = dimensions.open.get(&group.dimension());
            // A column of the batch is loaded or in flight.
            if open.is_some_and(|open| group.batch().columns().any(|column| open.columns.is_under_way(column))) {
                store.note_accesses([group]);
                continue;
            }
            let distance = open.and_then(|open| nearest_viewer(open, group));
            let belongs = config.tier(play_time, accessed, distance);
            if belongs > tier {
                self.decided.push((group, belongs));
            }
        }
        let has_more = has_more || !self.decided.is_empty() || self.cursor.is_some();
        let rate = config.bytes_per_second.max(1);
        let pause = Duration::try_from_secs_f64(moves.chunk_bytes as f64 / rate as f64).unwrap_or(Duration::MAX);
        self.next_at = now.saturating_add(if has_more { pause } else { pause.max(REST) });
    }
}

/// The distance in blocks from a group to the nearest viewer of its dimension, if there is one.
fn nearest_viewer(dimension: &OpenDimension, group: ChunkGroup) -> Option<u64> {
    let is_sparse = dimension.is_sparse();
    let distance = |viewer: &ViewerState| blocks_between(group, viewer.center, is_sparse.then_some(viewer.height));
    dimension.real_viewers().map(distance).min()
}

/// Notes an access to everything that is loaded, however long ago it was loaded.
pub fn note_resident(clock: Res<Clock>, threads: Res<Threads>, dimensions: Res<DimensionBook>) {
    let store = &*threads.store;
    store.set_session_time(clock.now);
    for (id, dimension) in &dimensions.open {
        for (column, _) in dimension.columns.iter().filter(|(_, state)| state.is_in_region()) {
            let batch = column.batch();
            match dimension.columns.heights(column) {
                Some(known) => known.loaded.ranges().for_each(|heights| store.note_access(*id, batch, heights)),
                None if dimension.is_sparse() => {}
                None => store.note_access(*id, batch, dimension.chunk_heights()),
            }
        }
    }
}

/// The distance in blocks from a group to a viewer's chunk. The vertical distance counts only if the viewer's height is known.
fn blocks_between(group: ChunkGroup, viewer: ColumnPos, height: Option<i64>) -> u64 {
    // The group spans the first chunk and three more.
    let gap = |first: i64, at: i64| {
        let last = first.saturating_add(3);
        if at < first { first.abs_diff(at) } else { at.saturating_sub(last).max(0) as u64 }
    };
    let first = group.first();
    let height = height.map_or(0, |height| gap(first.y, height));
    let gaps = [gap(first.x, viewer.x), height, gap(first.z, viewer.z)].map(|gap| u128::from(gap) * 16);
    let squared = gaps.iter().map(|gap| gap.saturating_mul(*gap)).fold(0, u128::saturating_add);
    u64::try_from(squared.isqrt()).unwrap_or(u64::MAX)
}
