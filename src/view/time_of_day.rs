//! The time of day in the main world.

use super::{Dimension, DimensionOpen, PublishedColumns};
use crate::coordinator::Published;
use crate::simulation::{ClockedTimeOfDay, TimeOfDay};
use crate::space::DimensionId;
use bevy::prelude::*;
use rustc_hash::FxHashMap;

/// Moves each time of day on, from where the game has set it. A client of a server has no clock of the dimension, and uses its own
/// time.
pub(super) fn follow_clocks(
    published: Res<Published>,
    time: Res<Time>,
    mut times: Query<(&DimensionOpen, Has<Dimension>, &mut TimeOfDay)>,
    mut set: Local<FxHashMap<DimensionId, ClockedTimeOfDay>>,
    mut columns: ResMut<PublishedColumns>,
) {
    let before = std::mem::take(&mut *set);
    let columns = columns.bypass_change_detection();
    columns.daylight.clear();
    for (DimensionOpen { id }, is_own, mut shown) in &mut times {
        columns.daylight.insert(*id, shown.daylight());
        let clock = if is_own { published.clocks.get(id).copied() } else { Some(time.elapsed()) };
        let Some(clock) = clock else { continue };
        let known = before.get(id).filter(|_| !shown.is_changed());
        let known = known.copied().unwrap_or(ClockedTimeOfDay { time: *shown, clock });
        *shown.bypass_change_detection() = known.at(clock);
        columns.daylight.insert(*id, shown.daylight());
        set.insert(*id, known);
    }
}
