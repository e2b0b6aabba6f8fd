//! Advances all clocks.

use crate::coordinator::clock::Clock;
use crate::coordinator::dimension::DimensionBook;
use crate::coordinator::messages::settings::Settings;
use crate::coordinator::stream::orders::Orders;
use bevy::prelude::*;

pub fn advance_clocks(
    mut clock: ResMut<Clock>,
    mut orders: ResMut<Orders>,
    mut dimensions: ResMut<DimensionBook>,
    config: Res<Settings>,
) {
    let before = clock.now;
    let is_lockstep = config.tick_mode.is_lockstep();
    orders.pass += 1;
    clock.now = if is_lockstep { before.saturating_add(config.clock.period()) } else { clock.began.elapsed() };
    let passed = clock.now.saturating_sub(before);
    for dimension in dimensions.open.values_mut() {
        dimension.time.advance(passed, is_lockstep);
        dimension.time.real_now = clock.now;
    }
}
