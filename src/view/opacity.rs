//! Asking which blocks are opaque.

use super::{DimensionOpen, PublishedColumns};
use crate::coordinator::{AskOpacity, MainLink, requests};
use bevy::prelude::*;

pub(super) fn build(app: &mut App) {
    app.add_message::<AskOpacity>();
}

/// What is published goes along: the store may not have it yet.
pub(super) fn send(
    link: Res<MainLink>,
    mut asks: MessageReader<AskOpacity>,
    dimensions: Query<&DimensionOpen>,
    published: Res<PublishedColumns>,
) {
    for ask in asks.read() {
        let dimension = dimensions.get(ask.dimension).ok().map(|open| open.id);
        let columns = ask.batch.columns().filter_map(|column| published.column(dimension?, column));
        link.request(requests::ask_opacity, (*ask, columns.cloned().collect()));
    }
}
