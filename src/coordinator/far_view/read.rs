//! Summaries that are read from the store for far views.

use super::sent::Sent;
use super::tracker::Choice;
use crate::chunk::ColumnSummary;
use crate::coordinator::threads::work_error::{WorkError, caught};
use crate::space::{ColumnPos, DimensionId};
use crate::storage::{StoreError, WorldStore};
use bevy::prelude::*;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

/// What a message takes besides a summary's binary form: the column's two coordinates.
pub const PLACE_BYTES: u64 = 16;

/// Summaries that are wanted, to be read on another thread.
pub struct SummaryOrder {
    pub(super) dimension: DimensionId,
    pub(super) chunk_heights: Range<i64>,
    /// With the newest summary, if the store may not have that yet.
    pub(super) columns: Vec<(Choice, Option<Arc<ColumnSummary>>)>,
}

pub enum Answer {
    /// As fine as it is wanted.
    Summary { summary: Arc<ColumnSummary>, bytes: u64, sent: Sent },
    /// It looks like what the listener has.
    Unchanged,
    /// Neither the summary nor the column can be read.
    Unreadable,
    /// The store does not work at the moment.
    NotNow,
}

impl SummaryOrder {
    /// Reads them. Never panics, and answers for every column, in their order.
    pub fn read(mut self, store: &WorldStore) -> Vec<(Choice, Answer)> {
        let columns = mem::take(&mut self.columns);
        let wanted: Vec<_> =
            columns.iter().filter(|(_, known)| known.is_none()).map(|(choice, _)| choice.column).collect();
        let mut stored = self.summaries(store, &wanted).into_iter();
        let answer = |(choice, known): (Choice, Option<Arc<ColumnSummary>>)| {
            let mut read = || stored.next().unwrap_or(Err(Answer::Unreadable)).map(Arc::new);
            let summary = known.map_or_else(&mut read, Ok);
            let answer = summary.map_or_else(|missing| missing, |summary| answer(&choice, summary));
            (choice, answer)
        };
        columns.into_iter().map(answer).collect()
    }

    fn summaries(&self, store: &WorldStore, columns: &[ColumnPos]) -> Vec<Result<ColumnSummary, Answer>> {
        match attempt(|| store.summaries(self.dimension, columns)) {
            Ok(found) => {
                let found = found.into_iter().zip(columns);
                found.map(|(summary, column)| summary.map_or_else(|| self.make_anew(store, *column), Ok)).collect()
            }
            // One that is damaged must not take the others with it.
            Err(_) if columns.len() > 1 => {
                columns.iter().flat_map(|column| self.summaries(store, std::slice::from_ref(column))).collect()
            }
            Err(error) if is_outage(&error) => vec![Err(Answer::NotNow)],
            Err(error) => {
                warn!("{error}; it is made anew from the column");
                columns.iter().map(|column| self.make_anew(store, *column)).collect()
            }
        }
    }

    /// What the column looks like, if that is not stored.
    fn make_anew(&self, store: &WorldStore, column: ColumnPos) -> Result<ColumnSummary, Answer> {
        let heights = self.chunk_heights.clone();
        match attempt(|| store.load_batch(self.dimension, column.batch(), &[column], heights)) {
            Ok(stored) => stored.first().map(|stored| ColumnSummary::new(&stored.column)).ok_or(Answer::Unreadable),
            Err(error) if is_outage(&error) => Err(Answer::NotNow),
            Err(error) => {
                error!(
                    "{}, column {column}: it is not seen from afar, since it cannot be read: {error}",
                    self.dimension
                );
                Err(Answer::Unreadable)
            }
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

/// A panic of the store is an error like another.
fn attempt<T>(read: impl FnOnce() -> Result<T, StoreError>) -> Result<T, WorkError> {
    Ok(caught(read)??)
}
