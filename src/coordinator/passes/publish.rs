//! Hands over the published changes, and logs repeated problems.

use crate::coordinator::clock::Clock;
use crate::coordinator::demand::failures::ColumnComplaints;
use crate::coordinator::dimension::DimensionBook;
use crate::coordinator::mail::queue::MailQueue;
use crate::coordinator::publish::Publisher;
use bevy::prelude::*;
use std::time::Duration;

pub fn publish(
    clock: Res<Clock>,
    mut dimensions: ResMut<DimensionBook>,
    mut post: ResMut<MailQueue>,
    mut publisher: ResMut<Publisher>,
) {
    tell_complaints(&mut dimensions, &mut post, &mut publisher, clock.now);
    let with_days = dimensions.open.iter().filter(|(_, dimension)| dimension.time.time_of_day.is_some());
    publisher.clocks(with_days.map(|(id, dimension)| (*id, dimension.time.now)));
    publisher.hand_over();
}

/// Logs repeated problems.
pub fn tell_complaints(dimensions: &mut DimensionBook, post: &mut MailQueue, publisher: &mut Publisher, now: Duration) {
    const OTHERS: &str = "more columns failed";
    if let Some(line) = publisher.refused.take(now, "more edits were refused") {
        warn!("a SetBlock was refused: {line}");
    }
    if let Some(line) = post.backlog.refused.take(now, "more letters came back") {
        warn!("{line}");
    }
    for dimension in dimensions.open.values_mut() {
        let ColumnComplaints { retried, set_aside, unread } = &mut dimension.orders.complaints;
        retried.take(now, OTHERS).into_iter().for_each(|line| warn!("{line}"));
        for line in [set_aside.take(now, OTHERS), unread.take(now, OTHERS)].into_iter().flatten() {
            error!("{line}");
        }
    }
}
