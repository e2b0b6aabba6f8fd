//! The time of day in the main world.

use super::{Dimension, DimensionOpen, PublishedColumns};
use crate::coordinator::messages::Published;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn on_a_client_time_passes_from_what_the_game_sets() {
        let mut app = App::new();
        app.init_resource::<Published>().init_resource::<PublishedColumns>().init_resource::<Time>();
        app.add_systems(Update, follow_clocks);
        let id = DimensionId(3);
        let time = TimeOfDay { days: 2.5, seconds_per_day: 100.0 };
        let client = app.world_mut().spawn((DimensionOpen { id }, time)).id();
        let pass = |app: &mut App, seconds: u64| {
            app.world_mut().resource_mut::<Time>().advance_by(Duration::from_secs(seconds));
            app.update();
            app.world().get::<TimeOfDay>(client).unwrap().days
        };
        assert_eq!([0, 10, 15].map(|seconds| pass(&mut app, seconds)), [2.5, 2.6, 2.75]);
        assert!(app.world().resource::<PublishedColumns>().daylight(id) < 1.0, "the sun sets");
        // News of the server.
        app.world_mut().get_mut::<TimeOfDay>(client).unwrap().days = 8.0;
        assert_eq!([5, 25].map(|seconds| pass(&mut app, seconds)), [8.0, 8.25]);
        app.world_mut().entity_mut(client).remove::<TimeOfDay>();
        app.update();
        assert_eq!(app.world().resource::<PublishedColumns>().daylight(id), 1.0);
    }
}
