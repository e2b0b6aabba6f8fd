//! Advances all clocks.

use super::clock::Clock;
use crate::coordinator::config::Settings;
use crate::coordinator::dimension::Dimensions;
use crate::coordinator::streaming::orders::Orders;
use bevy::prelude::*;

pub fn advance_clocks(
    mut clock: ResMut<Clock>,
    mut orders: ResMut<Orders>,
    mut dimensions: ResMut<Dimensions>,
    config: Res<Settings>,
) {
    let before = clock.now;
    let is_lockstep = config.tick_mode.is_lockstep();
    orders.pass += 1;
    clock.now = if is_lockstep { before.saturating_add(config.clock.period()) } else { clock.began.elapsed() };
    let passed = clock.now.saturating_sub(before);
    for dimension in dimensions.open.values_mut() {
        dimension.time.advance(passed, is_lockstep);
        dimension.real_now = clock.now;
    }
}
