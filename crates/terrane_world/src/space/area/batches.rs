//! The batches of an area from its centre outwards, page by page, with a cursor that can be saved.
//!
//! The order is by the distance of a batch's nearest column, then by z, then by x. A page is a ring of equal area: all pages
//! span the same difference of squared distances, and so hold about the same number of batches. Only one page is in memory,
//! however large the area is. Beyond the shorter sides of an area, rings hold fewer batches, so the span grows.

use super::ColumnArea;
use crate::space::{BatchPos, ColumnPos};
use serde::{Deserialize, Serialize};
use std::ops::{Range, RangeInclusive};

/// The span of squared distances of the first page: about 3,200 batches in a complete ring.
const PAGE_SPAN: u128 = 1 << 14;
/// After a page with fewer batches than this, the next page has a larger span.
const SMALL_PAGE: usize = 512;

/// A position in a walk over an area's batches. All batches before it were returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AreaCursor {
    distance_squared: u128,
    z: i64,
    x: i64,
}

impl AreaCursor {
    /// The cursor whose next batch is this batch of the area.
    pub fn at(area: &ColumnArea, batch: BatchPos) -> Self {
        let gap = |center: i64, batch: i64| u128::from(gap_to_batch(center, batch)).pow(2);
        let ColumnPos { x, z } = area.center();
        Self::of(gap(x, batch.x) + gap(z, batch.z), batch)
    }

    fn of(distance_squared: u128, batch: BatchPos) -> Self {
        Self { distance_squared, z: batch.z, x: batch.x }
    }
}

/// The start of the walk.
impl Default for AreaCursor {
    fn default() -> Self {
        Self { distance_squared: 0, z: i64::MIN, x: i64::MIN }
    }
}

/// The [batches](ColumnArea::batches) of an area, nearest first, each with the mask of its columns that belong to the
/// area: bit x + 4 * z. Needs the same small amount of memory for any area.
#[derive(Clone, Debug)]
pub struct AreaBatches {
    area: ColumnArea,
    /// The next batches, nearest last.
    page: Vec<AreaCursor>,
    /// The squared distances of the next page; empty after the last page.
    next_page: Range<u128>,
    cursor: AreaCursor,
}

impl AreaBatches {
    /// Continues an earlier walk over the same area at its cursor.
    pub fn from_cursor(area: ColumnArea, cursor: AreaCursor) -> Self {
        let start = cursor.distance_squared;
        Self { area, page: Vec::new(), next_page: start..start.saturating_add(PAGE_SPAN), cursor }
    }

    /// The current position: all batches before it were returned, and none after it.
    pub fn cursor(&self) -> AreaCursor {
        self.cursor
    }

    fn turn_page(&mut self) -> Option<()> {
        let (min, max) = self.area.bounds()?;
        let center = self.area.center();
        let (x, z) = (Axis::new(center.x, min.x, max.x), Axis::new(center.z, min.z, max.z));
        let farthest = match self.area {
            ColumnArea::Disc { radius, .. } => u128::from(radius).pow(2),
            ColumnArea::Square { .. } | ColumnArea::Box { .. } => x.farthest_squared() + z.farthest_squared(),
        };
        while self.page.is_empty() {
            let Range { start, end } = self.next_page;
            if start > farthest {
                return None;
            }
            // Rows run along the shorter axis because they are visited one by one.
            if x.length() < z.length() {
                ring(&x, &z, start..=(end - 1).min(farthest), |x, z, at| {
                    self.page.push(AreaCursor::of(at, BatchPos::new(x, z)))
                });
            } else {
                ring(&z, &x, start..=(end - 1).min(farthest), |z, x, at| {
                    self.page.push(AreaCursor::of(at, BatchPos::new(x, z)))
                });
            }
            let span = if self.page.len() < SMALL_PAGE { (end - start).saturating_mul(4) } else { end - start };
            self.next_page = end..end.saturating_add(span);
            self.page.retain(|candidate| *candidate >= self.cursor);
        }
        self.page.sort_unstable_by(|a, b| b.cmp(a));
        Some(())
    }
}

impl Iterator for AreaBatches {
    type Item = (BatchPos, u16);

    fn next(&mut self) -> Option<Self::Item> {
        if self.page.is_empty() {
            self.turn_page()?;
        }
        let next = self.page.pop()?;
        // This cannot overflow: batch coordinates are far from the edges of an i64.
        self.cursor = AreaCursor { x: next.x + 1, ..next };
        let batch = BatchPos::new(next.x, next.z);
        Some((batch, self.area.mask(batch)))
    }
}

/// Calls `visit` for each batch at these squared distances, with its row, its place along the row and its distance.
fn ring(rows: &Axis, along: &Axis, distances: RangeInclusive<u128>, mut visit: impl FnMut(i64, i64, u128)) {
    for row in rows.within(distances.end().isqrt()) {
        let across = rows.gap_squared(row);
        let outer = along.within((distances.end() - across).isqrt());
        // A row beyond the inner circle lies completely in the ring.
        let inner = distances.start().checked_sub(across + 1).map(|nearer| along.within(nearer.isqrt()));
        let inner = inner.unwrap_or(outer.end() + 1..=*outer.end());
        for place in (*outer.start()..=*inner.start() - 1).chain(*inner.end() + 1..=*outer.end()) {
            visit(row, place, across + along.gap_squared(place));
        }
    }
}

/// The batches of an area along one axis. They include the batch of the centre, which is in columns.
struct Axis {
    center: i64,
    min: i64,
    max: i64,
}

impl Axis {
    fn new(center: i64, min: i64, max: i64) -> Self {
        Self { center, min: min >> 2, max: max >> 2 }
    }

    fn length(&self) -> u64 {
        self.max.abs_diff(self.min)
    }

    fn gap_squared(&self, batch: i64) -> u128 {
        u128::from(gap_to_batch(self.center, batch)).pow(2)
    }

    fn farthest_squared(&self) -> u128 {
        self.gap_squared(self.min).max(self.gap_squared(self.max))
    }

    /// The batches at most this far away, always including the batch of the centre.
    fn within(&self, reach: u128) -> RangeInclusive<i64> {
        let reach = u64::try_from(reach).unwrap_or(u64::MAX);
        let first = self.center.saturating_sub_unsigned(reach) >> 2;
        let last = self.center.saturating_add_unsigned(reach) >> 2;
        first.max(self.min)..=last.min(self.max)
    }
}

/// The distance from a column to the nearest column of a batch, along one axis.
fn gap_to_batch(center: i64, batch: i64) -> u64 {
    gap(center, batch << 2, batch << 2 | 3)
}

/// The distance from `center` to the nearest of `min..=max`.
#[inline]
pub fn gap(center: i64, min: i64, max: i64) -> u64 {
    if center < min {
        center.abs_diff(min)
    } else if center > max {
        center.abs_diff(max)
    } else {
        0
    }
}
