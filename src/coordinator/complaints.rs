//! Hands over the published changes, and logs repeated problems.

use super::clocks::clock::Clock;
use super::dimension::Dimensions;
use super::publish::Publisher;
use super::streaming::failed_columns::ColumnComplaints;
use super::travel::letters::Post;
use bevy::prelude::*;
use std::time::Duration;

pub fn publish(
    clock: Res<Clock>,
    mut dimensions: ResMut<Dimensions>,
    mut post: ResMut<Post>,
    mut publisher: ResMut<Publisher>,
) {
    tell_complaints(&mut dimensions, &mut post, &mut publisher, clock.now);
    publisher.clocks(&dimensions);
    publisher.hand_over();
}

/// Logs repeated problems.
pub fn tell_complaints(dimensions: &mut Dimensions, post: &mut Post, publisher: &mut Publisher, now: Duration) {
    const OTHERS: &str = "more columns failed";
    if let Some(line) = publisher.refused.take(now, "more edits were refused") {
        warn!("a SetBlock was refused: {line}");
    }
    if let Some(line) = post.backlog.refused.take(now, "more letters came back") {
        warn!("{line}");
    }
    for dimension in dimensions.open.values_mut() {
        let ColumnComplaints { retried, set_aside, unread } = &mut dimension.complaints;
        retried.take(now, OTHERS).into_iter().for_each(|line| warn!("{line}"));
        for line in [set_aside.take(now, OTHERS), unread.take(now, OTHERS)].into_iter().flatten() {
            error!("{line}");
        }
    }
}
