//! The batches of an area from its centre outwards, page by page, with a cursor that can be kept.
//!
//! The order is by the distance of a batch's nearest column, then by z, then by x. A page is a ring of equal area: its
//! squared distances lie within a span of the same length. So each page has about as many batches as the next, and no more
//! than one page is in memory, however large the area is. Beyond the shorter sides of an area there are fewer of them in a
//! ring, and so the span becomes longer.

use super::ColumnArea;
use crate::space::{BatchPos, ColumnPos};
use serde::{Deserialize, Serialize};
use std::ops::{Range, RangeInclusive};

/// The difference of squared distances that the first page spans: some 3,200 batches in a ring that is whole.
const PAGE_SPAN: u128 = 1 << 14;
/// With fewer batches on a page the next one spans more.
const SMALL_PAGE: usize = 512;

/// How far a walk over an area's batches has come: what lies before it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AreaCursor {
    distance_squared: u128,
    z: i64,
    x: i64,
}

impl AreaCursor {
    /// The cursor at which this batch of the area comes next.
    pub fn at(area: &ColumnArea, batch: BatchPos) -> Self {
        let gap = |center: i64, batch: i64| u128::from(gap_to_batch(center, batch)).pow(2);
        let ColumnPos { x, z } = area.center();
        Self::of(gap(x, batch.x) + gap(z, batch.z), batch)
    }

    fn of(distance_squared: u128, batch: BatchPos) -> Self {
        Self { distance_squared, z: batch.z, x: batch.x }
    }
}

/// Before everything.
impl Default for AreaCursor {
    fn default() -> Self {
        Self { distance_squared: 0, z: i64::MIN, x: i64::MIN }
    }
}

/// The [batches](ColumnArea::batches) of an area, nearest first: each with the mask of its columns that belong to the
/// area, bit x + 4 * z. Needs the same little memory for any area.
#[derive(Clone, Debug)]
pub struct AreaBatches {
    area: ColumnArea,
    /// The next batches, the nearest last.
    page: Vec<AreaCursor>,
    /// The squared distances of the next page; empty behind the last one.
    next_page: Range<u128>,
    cursor: AreaCursor,
}

impl AreaBatches {
    /// The batches that come at the cursor of an earlier walk over the same area and behind it.
    pub fn from_cursor(area: ColumnArea, cursor: AreaCursor) -> Self {
        let start = cursor.distance_squared;
        Self { area, page: Vec::new(), next_page: start..start.saturating_add(PAGE_SPAN), cursor }
    }

    /// Where it goes on: it was given all that lies before, and nothing that lies behind.
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
            // The shorter axis has the rows: they are looked through one by one.
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
        // A batch's coordinates are far from the edges of an i64.
        self.cursor = AreaCursor { x: next.x + 1, ..next };
        let batch = BatchPos::new(next.x, next.z);
        Some((batch, self.area.mask(batch)))
    }
}

/// Calls `visit` for each batch at one of these squared distances, with its row, its place along the row, and its distance.
fn ring(rows: &Axis, along: &Axis, distances: RangeInclusive<u128>, mut visit: impl FnMut(i64, i64, u128)) {
    for row in rows.within(distances.end().isqrt()) {
        let across = rows.gap_squared(row);
        let outer = along.within((distances.end() - across).isqrt());
        // Of a row that lies beyond the inner circle, all is in the ring.
        let inner = distances.start().checked_sub(across + 1).map(|nearer| along.within(nearer.isqrt()));
        let inner = inner.unwrap_or(outer.end() + 1..=*outer.end());
        for place in (*outer.start()..=*inner.start() - 1).chain(*inner.end() + 1..=*outer.end()) {
            visit(row, place, across + along.gap_squared(place));
        }
    }
}

/// The batches of an area along one axis. The centre, in columns, lies among them.
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

    /// The batches no farther away than this: always that of the centre at least.
    fn within(&self, reach: u128) -> RangeInclusive<i64> {
        let reach = u64::try_from(reach).unwrap_or(u64::MAX);
        let first = self.center.saturating_sub_unsigned(reach) >> 2;
        let last = self.center.saturating_add_unsigned(reach) >> 2;
        first.max(self.min)..=last.min(self.max)
    }
}

/// How far the nearest column of a batch is from a column, along one axis.
fn gap_to_batch(center: i64, batch: i64) -> u64 {
    gap(center, batch << 2, batch << 2 | 3)
}

/// How far `center` is from the nearest of `min..=max`.
#[inline]
#[doc(hidden)]
pub fn gap(center: i64, min: i64, max: i64) -> u64 {
    if center < min {
        center.abs_diff(min)
    } else if center > max {
        center.abs_diff(max)
    } else {
        0
    }
}
