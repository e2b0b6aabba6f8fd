//! Reads summaries from the store for far views.

use super::sent::Sent;
use super::tracker::Choice;
use crate::chunk::ColumnSummary;
use crate::coordinator::messages::faults::{WorkError, caught};
use crate::space::{ColumnPos, DimensionId};
use crate::storage::{StoreError, WorldStore};
use bevy::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// The size of a message besides the binary form of the summary: the two coordinates of the column.
pub const PLACE_BYTES: u64 = 16;

pub enum Answer {
    /// The summary in the requested detail.
    Summary { summary: Arc<ColumnSummary>, bytes: u64, sent: Sent },
    /// The summary equals the one that the listener has.
    Unchanged,
    /// Neither the summary nor the column can be read.
    Unreadable,
    /// The store fails at present.
    NotNow,
}

/// Reads the requested summaries, except for columns whose newest state is passed along because the store may not have it
/// yet. Never panics, and answers for every column, in the same order.
pub fn read_summaries(
    store: &WorldStore,
    dimension: DimensionId,
    chunk_heights: &Range<i64>,
    columns: Vec<(Choice, Option<Arc<ColumnSummary>>)>,
) -> Vec<(Choice, Answer)> {
    let wanted: Vec<_> = columns.iter().filter(|(_, known)| known.is_none()).map(|(choice, _)| choice.column).collect();
    let mut stored = summaries(store, dimension, chunk_heights, &wanted).into_iter();
    let answer = |(choice, known): (Choice, Option<Arc<ColumnSummary>>)| {
        let mut read = || stored.next().unwrap_or(Err(Answer::Unreadable)).map(Arc::new);
        let summary = known.map_or_else(&mut read, Ok);
        let answer = summary.map_or_else(|missing| missing, |summary| answer(&choice, summary));
        (choice, answer)
    };
    columns.into_iter().map(answer).collect()
}

fn summaries(
    store: &WorldStore,
    dimension: DimensionId,
    chunk_heights: &Range<i64>,
    columns: &[ColumnPos],
) -> Vec<Result<ColumnSummary, Answer>> {
    // Computes a summary that is not stored.
    let make_anew = |column: &ColumnPos| {
        let read = || store.load_batch(dimension, column.batch(), &[*column], chunk_heights.clone());
        match attempt(read) {
            Ok(stored) => stored.first().map(|stored| ColumnSummary::new(&stored.column)).ok_or(Answer::Unreadable),
            Err(error) if is_outage(&error) => Err(Answer::NotNow),
            Err(error) => {
                error!("{dimension}, column {column}: it is missing from far views because it cannot be read: {error}");
                Err(Answer::Unreadable)
            }
        }
    };
    match attempt(|| store.summaries(dimension, columns)) {
        Ok(found) => {
            let found = found.into_iter().zip(columns);
            found.map(|(summary, column)| summary.map_or_else(|| make_anew(column), Ok)).collect()
        }
        // A damaged column must not make the others fail.
        Err(_) if columns.len() > 1 => {
            columns.chunks(1).flat_map(|column| summaries(store, dimension, chunk_heights, column)).collect()
        }
        Err(error) if is_outage(&error) => vec![Err(Answer::NotNow)],
        Err(error) => {
            warn!("{error}; it is computed again from the column");
            columns.iter().map(make_anew).collect()
        }
    }
}

fn answer(choice: &Choice, summary: Arc<ColumnSummary>) -> Answer {
    let mut bytes = Vec::new();
    let mut checksum = |summary: &ColumnSummary| {
        bytes.clear();
        summary.encode(&mut bytes);
        (crc32fast::hash(&bytes), bytes.len() as u64)
    };
    if let Some(Sent::Summary(detail, sent)) = choice.sent
        && detail <= choice.detail
        && Sent::shortened(checksum(&summary.at(detail)).0) == sent
    {
        return Answer::Unchanged;
    }
    let summary = if summary.detail() < choice.detail { Arc::new(summary.at(choice.detail)) } else { summary };
    let (checksum, length) = checksum(&summary);
    let sent = Sent::Summary(choice.detail, Sent::shortened(checksum));
    Answer::Summary { summary, bytes: PLACE_BYTES + length, sent }
}

fn is_outage(error: &WorkError) -> bool {
    matches!(error, WorkError::Store(error) if error.is_outage())
}

/// Turns a panic of the store into an error.
fn attempt<T>(read: impl FnOnce() -> Result<T, StoreError>) -> Result<T, WorkError> {
    Ok(caught(read)??)
}
